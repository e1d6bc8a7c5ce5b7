/* The table of a sweep; see table.h. */
#include "cli/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/box.h"
#include "cli/cli.h"
#include "topo/memory.h"

enum {
    CELL_MAX = 64,   /* bytes of a cell; longer texts are cut */
    WORD_MAX = 64,   /* bytes of one word of a column's path */
    TITLE_MAX = 128, /* of a column's title, which is cut likewise */
    BOX_ALL = (1 << GW_BOX_PARTS) - 1,
};

typedef char cell[CELL_MAX];

struct gw_table {
    const struct gw_sweep *sweep;
    cell *cells; /* by row */
    uint32_t cell_count, room;
    char (*titles)[TITLE_MAX]; /* of the sweep's keys, then of its columns, a box being several */
    uint32_t columns, title_room;
};

/* Takes "box PATH" or "max PATH" apart: a bit per part of a box, and the path. 0: it is a path. */
static uint32_t parts_of(const char *column, const char **path)
{
    size_t length = strcspn(column, " ");
    uint32_t parts = length == 3 && strncmp(column, "box", length) == 0 ? BOX_ALL : 0;
    for (uint32_t part = 0; part < GW_BOX_PARTS; part++)
        if (strlen(gw_box_names[part]) == length &&
            strncmp(column, gw_box_names[part], length) == 0)
            parts = 1U << part;
    if (column[length] == '\0')
        parts = 0;
    *path = parts ? column + length + 1 : column;
    return parts;
}

static void add_column(struct gw_table *table, const char *before, const char *name)
{
    table->titles =
        gw_memory_grow(table->titles, &table->title_room, table->columns + 1, TITLE_MAX);
    snprintf(table->titles[table->columns++], TITLE_MAX, "%s%s%s", before, before[0] ? " " : "",
             name);
}

struct gw_table *gw_table_open(const struct gw_sweep *sweep)
{
    struct gw_table *table = gw_memory_zeroed(1, sizeof(*table));
    table->sweep = sweep;
    for (uint32_t k = 0; k < sweep->key_count; k++)
        add_column(table, "", sweep->overrides[k].key);
    for (uint32_t c = 0; c < sweep->column_count; c++) {
        const char *path;
        uint32_t parts = parts_of(sweep->columns[c], &path);
        for (uint32_t part = 0; part < GW_BOX_PARTS; part++)
            if (parts & 1U << part)
                add_column(table, gw_box_names[part], path);
        if (!parts)
            add_column(table, "", path);
    }
    return table;
}

/* What the first word of a dotted path names, and the rest of the path, NULL behind the last word.
 * Words that call items of a list are numbers. NULL: there is nothing. */
static const json_t *step(const json_t *json, const char **path)
{
    char word[WORD_MAX];
    size_t length = strcspn(*path, ".");
    if (length >= sizeof(word))
        return NULL;
    memcpy(word, *path, length);
    word[length] = '\0';
    *path = (*path)[length] ? *path + length + 1 : NULL;
    return json_is_array(json) ? json_array_get(json, strtoul(word, NULL, 10))
                               : json_object_get(json, word);
}

/* The value at a dotted path; NULL: there is none. */
static const json_t *find(const json_t *json, const char *path)
{
    while (json && path)
        json = step(json, &path);
    return json;
}

/* Rows that one value takes. */
static size_t rows_of(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) : 1;
}

/* Four digits that count, or more where that is a whole number. */
static void write_number(cell to, double number)
{
    double size = fabs(number);
    int decimals = size >= 1000 || number == floor(number) ? 0 : size >= 10 ? 2 : 3;
    snprintf(to, CELL_MAX, "%.*f", decimals, number);
}

/* The mean over the runs that have a number in this row; "-" when none has. */
static void write_mean(cell to, const json_t *runs, const char *path, size_t row)
{
    double sum = 0;
    uint32_t count = 0;
    size_t i;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        const json_t *value = find(run, path);
        if (json_is_array(value))
            value = json_array_get(value, row);
        if (!json_is_number(value))
            continue;
        sum += json_number_value(value);
        count++;
    }
    snprintf(to, CELL_MAX, "-");
    if (count)
        write_number(to, sum / count);
}

static char *add_cell(struct gw_table *table)
{
    table->cells =
        gw_memory_grow(table->cells, &table->room, table->cell_count + 1, sizeof(table->cells[0]));
    return table->cells[table->cell_count++];
}

/* Adds all numbers at a path to a list; a word that is no number means every item of a list. */
static void collect(const json_t *json, const char *path, json_t *numbers)
{
    bool is_item = path && path[0] >= '0' && path[0] <= '9';
    if (json_is_array(json) && !is_item) {
        size_t i;
        const json_t *item;
        json_array_foreach(json, i, item) collect(item, path, numbers);
        return;
    }
    if (!path) {
        if (json_is_number(json))
            json_array_append_new(numbers, json_real(json_number_value(json)));
        return;
    }
    const json_t *next = step(json, &path);
    if (next)
        collect(next, path, numbers);
}

/* The cells of a box over all numbers of all runs. */
static void add_box(struct gw_table *table, const json_t *runs, const char *path, uint32_t parts)
{
    json_t *numbers = json_array();
    collect(runs, path, numbers);
    size_t count = json_array_size(numbers);
    double box[GW_BOX_PARTS], *values = gw_memory_zeroed(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = json_real_value(json_array_get(numbers, i));
    json_decref(numbers);
    if (count)
        gw_box_of(values, count, box);
    for (uint32_t part = 0; part < GW_BOX_PARTS; part++) {
        if (!(parts & 1U << part))
            continue;
        char *to = add_cell(table);
        snprintf(to, CELL_MAX, "-");
        if (count)
            write_number(to, box[part]);
    }
    free(values);
}

/* The rows that a point takes; 0 after a complaint when a run has no such column. */
static size_t count_rows(const struct gw_sweep *sweep, const json_t *runs)
{
    size_t rows = 1;
    for (uint32_t c = 0; c < sweep->column_count; c++) {
        const char *path;
        bool is_box = parts_of(sweep->columns[c], &path) != 0;
        const json_t *value = is_box ? NULL : find(json_array_get(runs, 0), path);
        json_t *numbers = json_array();
        if (is_box)
            collect(runs, path, numbers);
        bool is_there = json_array_size(numbers) || json_is_number(value) || json_is_array(value);
        json_decref(numbers);
        if (!is_there) {
            gw_complain("table: %s: the result of a run has no such number", sweep->columns[c]);
            return 0;
        }
        rows = rows_of(value) > rows ? rows_of(value) : rows;
    }
    return rows;
}

int gw_table_add(struct gw_table *table, uint32_t point, const json_t *runs)
{
    const struct gw_sweep *sweep = table->sweep;
    size_t rows = count_rows(sweep, runs);
    for (size_t row = 0; row < rows; row++) {
        for (uint32_t k = 0; k < sweep->key_count; k++)
            snprintf(add_cell(table), CELL_MAX, "%s",
                     sweep->overrides[point * sweep->key_count + k].value);
        for (uint32_t c = 0; c < sweep->column_count; c++) {
            const char *path;
            uint32_t parts = parts_of(sweep->columns[c], &path);
            if (parts)
                add_box(table, runs, path, parts);
            else
                write_mean(add_cell(table), runs, path, row);
        }
    }
    return rows ? GW_OK : GW_ERR_UNKNOWN;
}

static int width(const struct gw_table *table, uint32_t column)
{
    size_t widest = strlen(table->titles[column]);
    for (uint32_t i = column; i < table->cell_count; i += table->columns)
        widest = strlen(table->cells[i]) > widest ? strlen(table->cells[i]) : widest;
    return (int)widest;
}

/* Settings to the left, numbers to the right. */
static void print_cell(const struct gw_table *table, uint32_t column, const char *text)
{
    bool is_setting = column < table->sweep->key_count;
    int wide = width(table, column);
    printf("%s%*s", column ? "  " : "", is_setting ? -wide : wide, text);
    if (column + 1 == table->columns)
        putchar('\n');
}

void gw_table_print(const struct gw_table *table)
{
    for (uint32_t c = 0; c < table->columns; c++)
        print_cell(table, c, table->titles[c]);
    for (uint32_t i = 0; i < table->cell_count; i++)
        print_cell(table, i % table->columns, table->cells[i]);
}

/* A cell that has a comma or a quote is quoted. */
static void write_csv_cell(const struct gw_table *table, uint32_t column, const char *text,
                           FILE *file)
{
    bool is_quoted = strpbrk(text, ",\"\n") != NULL;
    if (column)
        fputc(',', file);
    if (is_quoted)
        fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    if (is_quoted)
        fputc('"', file);
    if (column + 1 == table->columns)
        fputc('\n', file);
}

void gw_table_write(const struct gw_table *table, FILE *file)
{
    for (uint32_t c = 0; c < table->columns; c++)
        write_csv_cell(table, c, table->titles[c], file);
    for (uint32_t i = 0; i < table->cell_count; i++)
        write_csv_cell(table, i % table->columns, table->cells[i], file);
}

void gw_table_close(struct gw_table *table)
{
    if (!table)
        return;
    free(table->titles);
    free(table->cells);
    free(table);
}
