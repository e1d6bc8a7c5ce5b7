/*
 * Reads tables of models; see model.h.
 *
 * The same reader takes the project's own tables and a user's file. Its limits keep every sum that
 * is made of a table within 64 bits, and the pieces of its tensors within 32.
 */
#include "workload/model/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/units.h"
#include "topo/memory.h"
#include "workload/model/csv_line.h"
#include "workload/model/model_tables.h"

#define HEADER     "layer,kind,weights,biases,macs"
#define PARAMS_MAX UINT64_C(1000000000000) /* of a model */
#define MACS_MAX   UINT64_C(1000000000000000)

enum {
    COLUMNS = 5,
    LINE_MAX_SIZE = 512,
    LAYERS_MAX = 10000,
    FILE_BYTES_MAX = 1 << 26,
};

/* A table on its way in. */
struct reader {
    const char *name; /* as the user wrote it, for errors */
    const char *rest; /* what has not been read */
    uint32_t line;    /* number of the line read last */
    char text[LINE_MAX_SIZE];
    char *why;
    uint32_t why_size;
    uint32_t layer_room;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct reader *reader, int error,
                                                        const char *format, ...)
{
    int used = reader->line
                   ? snprintf(reader->why, reader->why_size, "%s:%u: ", reader->name, reader->line)
                   : snprintf(reader->why, reader->why_size, "%s: ", reader->name);
    if (used < 0 || (uint32_t)used >= reader->why_size)
        return error;
    va_list args;
    va_start(args, format);
    vsnprintf(reader->why + used, reader->why_size - (uint32_t)used, format, args);
    va_end(args);
    return error;
}

/* Reads the next line that is neither empty nor a comment. Returns 1, 0 at the end, or an error. */
static int next_line(struct reader *reader)
{
    while (*reader->rest) {
        size_t length = strcspn(reader->rest, "\n");
        reader->line++;
        if (length >= sizeof(reader->text))
            return refuse(reader, GW_ERR_RANGE, "the line is longer than %d characters",
                          LINE_MAX_SIZE - 1);
        memcpy(reader->text, reader->rest, length);
        reader->text[length] = '\0';
        reader->rest += length + (reader->rest[length] == '\n');
        reader->text[strcspn(reader->text, "\r")] = '\0';
        const char *first = reader->text + strspn(reader->text, " \t");
        if (*first && *first != '#')
            return 1;
    }
    return 0;
}

static int read_number(struct reader *reader, const char *column, const char *text, uint64_t limit,
                       uint64_t *number)
{
    if (gw_parse_count(text, number) == GW_OK && *number <= limit)
        return GW_OK;
    return refuse(reader, GW_ERR_INVALID, "%s must be a whole number up to %llu, not '%s'", column,
                  (unsigned long long)limit, text);
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(gw_memory_zeroed(size, 1), text, size);
}

static int add_layer(struct gw_model *model, struct reader *reader, char *const columns[COLUMNS])
{
    struct gw_layer layer = {0};
    int error = read_number(reader, "weights", columns[2], PARAMS_MAX, &layer.weights);
    if (!error)
        error = read_number(reader, "biases", columns[3], PARAMS_MAX, &layer.biases);
    if (!error)
        error = read_number(reader, "macs", columns[4], MACS_MAX, &layer.macs);
    if (error)
        return error;
    if (columns[0][0] == '\0')
        return refuse(reader, GW_ERR_INVALID, "layer: missing: its name");
    if (model->layer_count == LAYERS_MAX)
        return refuse(reader, GW_ERR_RANGE, "more than %d layers", LAYERS_MAX);
    model->params += layer.weights + layer.biases;
    model->macs += layer.macs;
    if (model->params > PARAMS_MAX || model->macs > MACS_MAX)
        return refuse(reader, GW_ERR_RANGE, "the layers up to here have more than %s in all",
                      model->params > PARAMS_MAX ? "10^12 parameters" : "10^15 macs");
    layer.name = copy_text(columns[0]);
    layer.kind = copy_text(columns[1]);
    model->layers = gw_memory_grow(model->layers, &reader->layer_room, model->layer_count + 1,
                                   sizeof(model->layers[0]));
    model->layers[model->layer_count++] = layer;
    model->tensor_count += (layer.weights > 0) + (layer.biases > 0);
    return GW_OK;
}

/* Reads a whole table into an empty model; what is there at an error is the caller's to free. */
static int read_table(struct gw_model *model, struct reader *reader)
{
    int more = next_line(reader);
    if (more < 0)
        return more;
    if (more == 0 || strcmp(gw_csv_trim(reader->text), HEADER) != 0)
        return refuse(reader, GW_ERR_INVALID, "%sthe first line must be " HEADER,
                      reader->line ? "" : "the file is empty; ");
    while ((more = next_line(reader)) > 0) {
        char *columns[COLUMNS];
        uint32_t count = gw_csv_split(reader->text, columns, COLUMNS);
        if (count != COLUMNS)
            return refuse(reader, GW_ERR_INVALID, "has %u columns instead of %d (" HEADER ")",
                          count, COLUMNS);
        int error = add_layer(model, reader, columns);
        if (error)
            return error;
    }
    reader->line = 0; /* what follows is about the file as a whole */
    if (!more && model->params == 0)
        return refuse(reader, GW_ERR_INVALID, "no layer has parameters");
    return more;
}

/* Names the line in which the text ends before the file does. */
static void refuse_nul(struct reader *reader, const char *text)
{
    for (reader->line = 1; (text = strchr(text, '\n')); text++)
        reader->line++;
    refuse(reader, GW_ERR_INVALID, "no text: there is a NUL byte");
}

/* The text of a file, to be freed; NULL with a sentence in reader->why. */
static char *read_file(struct reader *reader)
{
    FILE *stream = fopen(reader->name, "r");
    if (!stream) {
        refuse(reader, GW_ERR_SYSTEM, "%s", strerror(errno));
        return NULL;
    }
    char *text = NULL;
    uint32_t room = 0, size = 0;
    do {
        text = gw_memory_grow(text, &room, size + BUFSIZ + 1, 1);
        size += (uint32_t)fread(text + size, 1, BUFSIZ, stream);
    } while (!feof(stream) && !ferror(stream) && size <= FILE_BYTES_MAX);
    text[size] = '\0';
    bool is_text = strlen(text) == size;
    if (ferror(stream))
        refuse(reader, GW_ERR_SYSTEM, "%s", strerror(errno));
    else if (!is_text)
        refuse_nul(reader, text);
    else if (size > FILE_BYTES_MAX)
        refuse(reader, GW_ERR_INVALID, "larger than 64 MiB");
    if (ferror(stream) || !is_text || size > FILE_BYTES_MAX) {
        free(text);
        text = NULL;
    }
    fclose(stream);
    return text;
}

static int refuse_name(const char *name, char *why, uint32_t why_size)
{
    int used = snprintf(why, why_size, "unknown model: %s; expected a file *.csv or one of", name);
    for (uint32_t i = 0; gw_model_table_names[i]; i++)
        if (used >= 0 && (uint32_t)used < why_size)
            used += snprintf(why + used, why_size - (uint32_t)used, "%s %s", i ? "," : "",
                             gw_model_table_names[i]);
    return GW_ERR_UNKNOWN;
}

int gw_model_load(struct gw_model *model, const char *name, char *why, uint32_t why_size)
{
    struct reader reader = {.name = name, .why = why, .why_size = why_size};
    size_t length = strlen(name), suffix = strlen(".csv");
    char *text = NULL;
    *model = (struct gw_model){0};
    if (length >= suffix && strcmp(name + length - suffix, ".csv") == 0) {
        text = read_file(&reader);
        if (!text)
            return GW_ERR_SYSTEM;
        reader.rest = text;
    } else {
        for (uint32_t i = 0; gw_model_table_names[i] && !reader.rest; i++)
            if (strcmp(name, gw_model_table_names[i]) == 0)
                reader.rest = gw_model_table_texts[i];
        if (!reader.rest)
            return refuse_name(name, why, why_size);
    }
    const char *slash = strrchr(name, '/');
    model->name = copy_text(slash ? slash + 1 : name);
    int error = read_table(model, &reader);
    GW_ASSERT(!error || text); /* the project's own are right */
    free(text);
    if (error)
        gw_model_free(model);
    return error;
}

void gw_model_free(struct gw_model *model)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        free(model->layers[i].name);
        free(model->layers[i].kind);
    }
    free(model->layers);
    free(model->name);
    *model = (struct gw_model){0};
}

const char *const *gw_model_names(void)
{
    return gw_model_table_names;
}
