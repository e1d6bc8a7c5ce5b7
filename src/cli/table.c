/* The table of a sweep; see table.h. */
#include "cli/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "topo/memory.h"

enum {
    CELL_MAX = 64, /* bytes of a cell; longer texts are cut */
    WORD_MAX = 64, /* bytes of one word of a column's path */
};

typedef char cell[CELL_MAX];

struct gw_table {
    const struct gw_sweep *sweep;
    cell *cells; /* by row */
    uint32_t cell_count, room;
    uint32_t columns; /* of the sweep's keys, then of its columns */
};

struct gw_table *gw_table_open(const struct gw_sweep *sweep)
{
    struct gw_table *table = gw_memory_zeroed(1, sizeof(*table));
    table->sweep = sweep;
    table->columns = sweep->key_count + sweep->column_count;
    return table;
}

/* The value at a dotted path; NULL: there is none. Words that call items of a list are numbers. */
static const json_t *find(const json_t *json, const char *path)
{
    while (json && path) {
        char word[WORD_MAX];
        size_t length = strcspn(path, ".");
        if (length >= sizeof(word))
            return NULL;
        memcpy(word, path, length);
        word[length] = '\0';
        json = json_is_array(json) ? json_array_get(json, strtoul(word, NULL, 10))
                                   : json_object_get(json, word);
        path = path[length] ? path + length + 1 : NULL;
    }
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

int gw_table_add(struct gw_table *table, uint32_t point, const json_t *runs)
{
    const struct gw_sweep *sweep = table->sweep;
    size_t rows = 1;
    for (uint32_t c = 0; c < sweep->column_count; c++) {
        const json_t *value = find(json_array_get(runs, 0), sweep->columns[c]);
        if (!json_is_number(value) && !json_is_array(value)) {
            gw_complain("table: %s: the result of a run has no such number", sweep->columns[c]);
            return GW_ERR_UNKNOWN;
        }
        rows = rows_of(value) > rows ? rows_of(value) : rows;
    }
    for (size_t row = 0; row < rows; row++) {
        for (uint32_t k = 0; k < sweep->key_count; k++)
            snprintf(add_cell(table), CELL_MAX, "%s",
                     sweep->overrides[point * sweep->key_count + k].value);
        for (uint32_t c = 0; c < sweep->column_count; c++)
            write_mean(add_cell(table), runs, sweep->columns[c], row);
    }
    return GW_OK;
}

static const char *title(const struct gw_table *table, uint32_t column)
{
    const struct gw_sweep *sweep = table->sweep;
    return column < sweep->key_count ? sweep->overrides[column].key
                                     : sweep->columns[column - sweep->key_count];
}

static int width(const struct gw_table *table, uint32_t column)
{
    size_t widest = strlen(title(table, column));
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
        print_cell(table, c, title(table, c));
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
        write_csv_cell(table, c, title(table, c), file);
    for (uint32_t i = 0; i < table->cell_count; i++)
        write_csv_cell(table, i % table->columns, table->cells[i], file);
}

void gw_table_close(struct gw_table *table)
{
    if (!table)
        return;
    free(table->cells);
    free(table);
}
