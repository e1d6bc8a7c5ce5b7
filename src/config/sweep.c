/*
 * Sweeps: the points of the cartesian product of a scenario's `sweep:` lists.
 *
 *     sweep: {cc: [smartt, fixed], workload.size: [64KiB, 2MiB]}
 *
 * The last key changes fastest. Keys are those of --set: paths, aliases or variants. The `table:`
 * of the scenario names what is printed of each point, and its `claims:` what is asked of all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/loader.h"
#include "config/overrides.h"
#include "config/schema.h"
#include "topo/memory.h"

enum {
    POINTS_MAX = 10000,
    PATH_SIZE = 256, /* bytes of a key in an error message */
};

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(gw_memory_zeroed(size, 1), text, size);
}

static bool is_overridden(const struct gw_document *document, const char *key,
                          const struct gw_override *overrides, uint32_t count)
{
    const char *path = gw_override_path(document, key);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(gw_override_path(document, overrides[i].key), path) == 0)
            return true;
    return false;
}

/* A key with dots is one word in the map, whatever --set makes of it. */
static int refuse_split_key(const struct gw_document *document, const struct gw_doc_value *map)
{
    char path[PATH_SIZE];
    const struct gw_doc_value *value = map;
    while (value->kind == GW_DOC_VALUE_MAP && value->count > 0)
        value = value->items[0];
    gw_doc_value_path(value, path, sizeof(path));
    return gw_document_error(document, map, GW_ERR_INVALID,
                             "expected a list of values; those of %s are sweep={%s: [...]}",
                             path + strlen("sweep."), path + strlen("sweep."));
}

/* Lists the swept keys that no override replaces, and counts the points. */
static int list_keys(const struct gw_document *document, const struct gw_override *overrides,
                     uint32_t override_count, const struct gw_doc_value **lists,
                     uint32_t *list_count, uint32_t *point_count)
{
    const struct gw_doc_value *section = gw_doc_value_get(document->root, "sweep");
    *list_count = 0;
    *point_count = 1;
    if (!section)
        return GW_OK;
    if (section->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(document, section, GW_ERR_INVALID,
                                 "expected a map such as {cc: [smartt, fixed]}");
    for (uint32_t i = 0; i < section->count; i++) {
        const struct gw_doc_value *list = section->items[i];
        if (is_overridden(document, list->key, overrides, override_count))
            continue;
        if (list->kind == GW_DOC_VALUE_MAP && list->count > 0)
            return refuse_split_key(document, list);
        if (list->kind != GW_DOC_VALUE_LIST || list->count == 0)
            return gw_document_error(document, list, GW_ERR_INVALID, "expected a list of values");
        for (uint32_t v = 0; v < list->count; v++)
            if (!gw_schema_text(document, list->items[v]))
                return GW_ERR_INVALID;
        if ((uint64_t)*point_count * list->count > POINTS_MAX)
            return gw_document_error(document, list, GW_ERR_RANGE,
                                     "the sweep has more than %d points", POINTS_MAX);
        *point_count *= list->count;
        lists[(*list_count)++] = list;
    }
    return GW_OK;
}

static void fill(struct gw_sweep *sweep, const struct gw_doc_value *const *lists)
{
    for (uint32_t point = 0; point < sweep->point_count; point++) {
        uint32_t rest = point;
        for (uint32_t k = sweep->key_count; k-- > 0;) {
            const struct gw_doc_value *value = lists[k]->items[rest % lists[k]->count];
            rest /= lists[k]->count;
            sweep->overrides[point * sweep->key_count + k] =
                (struct gw_override){.key = copy(lists[k]->key), .value = copy(value->text)};
        }
    }
}

/* Copies the names of the table's columns. */
static int load_columns(const struct gw_document *document, struct gw_sweep *sweep)
{
    const struct gw_doc_value *table = gw_doc_value_get(document->root, "table");
    if (!table)
        return GW_OK;
    if (table->kind != GW_DOC_VALUE_LIST || table->count == 0)
        return gw_document_error(document, table, GW_ERR_INVALID,
                                 "expected a list of columns such as [fct_us.max, trims]");
    for (uint32_t i = 0; i < table->count; i++)
        if (!gw_schema_text(document, table->items[i]))
            return GW_ERR_INVALID;
    sweep->columns = gw_memory_zeroed(table->count, sizeof(sweep->columns[0]));
    for (; sweep->column_count < table->count; sweep->column_count++)
        sweep->columns[sweep->column_count] = copy(table->items[sweep->column_count]->text);
    return GW_OK;
}

int gw_sweep_load(struct gw_sweep *sweep, const char *file, const struct gw_override *overrides,
                  uint32_t override_count, char *why)
{
    *sweep = (struct gw_sweep){0};
    struct gw_document document;
    int error = gw_document_load(&document, file, overrides, override_count, why);
    if (error)
        return error;
    const struct gw_doc_value *section = gw_doc_value_get(document.root, "sweep");
    const struct gw_doc_value **lists =
        gw_memory_zeroed(section ? section->count : 0, sizeof(*lists));
    error = list_keys(&document, overrides, override_count, lists, &sweep->key_count,
                      &sweep->point_count);
    if (!error) {
        sweep->overrides = gw_memory_zeroed((size_t)sweep->point_count * sweep->key_count,
                                            sizeof(sweep->overrides[0]));
        fill(sweep, lists);
        error = load_columns(&document, sweep);
        if (!error)
            error = gw_claims_load(&document, sweep);
    } else {
        *sweep = (struct gw_sweep){0};
    }
    free(lists);
    gw_document_free(&document);
    return error;
}

void gw_sweep_free(struct gw_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->point_count * sweep->key_count; i++) {
        /* The sweep owns its strings; the type has const for those of the command line. */
        free((void *)(uintptr_t)sweep->overrides[i].key);
        free((void *)(uintptr_t)sweep->overrides[i].value);
    }
    free(sweep->overrides);
    for (uint32_t i = 0; i < sweep->column_count; i++)
        free(sweep->columns[i]);
    free(sweep->columns);
    gw_claims_free(sweep);
    *sweep = (struct gw_sweep){0};
}
