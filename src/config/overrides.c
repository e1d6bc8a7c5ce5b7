/* `--set key=value`, applied to a document; see overrides.h. */
#include "config/overrides.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    WORD_SIZE = 256, /* bytes of one word of a dotted key */
    LIST_MAX = 256,  /* bytes of a list of names in an error message */
};

/* The section with the words that stand for several settings. */
#define VARIANTS "variants"

const char *gw_override_path(const struct gw_document *document, const char *key)
{
    const struct gw_doc_value *alias =
        gw_doc_value_get(gw_doc_value_get(document->root, "aliases"), key);
    return alias && alias->kind == GW_DOC_VALUE_SCALAR ? alias->text : key;
}

/* Makes "cc: smartt" into "cc: {kind: smartt}", so that a key below it can be set. */
static void scalar_to_map(struct gw_doc_value *value)
{
    struct gw_doc_value *kind = gw_doc_value_new(value, GW_DOC_VALUE_SCALAR, "kind", value->line);
    kind->text = value->text;
    value->text = NULL;
    value->kind = GW_DOC_VALUE_MAP;
    gw_doc_value_append(value, kind);
}

/* The item of `parent` called by one word of a --set path; made if it is a map's and absent. */
static int step(struct gw_document *document, struct gw_doc_value **at, const char *word,
                const struct gw_override *override)
{
    struct gw_doc_value *parent = *at;
    const struct gw_doc_value origin = {.override = override};
    if (parent->kind == GW_DOC_VALUE_SCALAR && parent->text[0] != '\0')
        scalar_to_map(parent);
    else if (parent->kind == GW_DOC_VALUE_SCALAR)
        parent->kind = GW_DOC_VALUE_MAP;
    if (parent->kind == GW_DOC_VALUE_LIST) {
        char *end;
        unsigned long index = strtoul(word, &end, 10);
        if (*end != '\0' || end == word || index >= parent->count)
            return gw_document_error(document, &origin, GW_ERR_UNKNOWN,
                                     "%s is a list of %u; its items are called by their numbers "
                                     "from 0",
                                     parent->key ? parent->key : "this", parent->count);
        *at = parent->items[index];
        return GW_OK;
    }
    *at = gw_doc_value_get(parent, word);
    if (!*at) {
        *at = gw_doc_value_new(parent, GW_DOC_VALUE_MAP, word, parent->line);
        (*at)->override = override;
        gw_doc_value_append(parent, *at);
    }
    return GW_OK;
}

/* The value that a path calls, made if need be and empty in any case. */
static int locate(struct gw_document *document, const char *path,
                  const struct gw_override *override, struct gw_doc_value **found)
{
    struct gw_doc_value *at = document->root;
    const struct gw_doc_value origin = {.override = override};
    uint32_t depth = 0;
    while (path) {
        char word[WORD_SIZE];
        const char *dot = strchr(path, '.');
        size_t length = dot ? (size_t)(dot - path) : strlen(path);
        if (length == 0 || length >= sizeof(word) || ++depth > GW_DOC_DEPTH_MAX)
            return gw_document_error(document, &origin, GW_ERR_INVALID,
                                     "the key must be words separated by dots");
        memcpy(word, path, length);
        word[length] = '\0';
        int error = step(document, &at, word, override);
        if (error)
            return error;
        path = dot ? dot + 1 : NULL;
    }
    gw_doc_value_clear(at);
    at->override = override;
    *found = at;
    return GW_OK;
}

/*
 * Gives an empty value the contents of a variant's. These are of the file, so the recursion is
 * bounded by GW_DOC_DEPTH_MAX; they may come to a place that is as deep.
 */
static void copy_contents(struct gw_doc_value *to, const struct gw_doc_value *from)
{
    if (from->text)
        gw_doc_value_set_text(to, from->text, strlen(from->text));
    to->kind = from->kind;
    for (uint32_t i = 0; i < from->count; i++) {
        struct gw_doc_value *item =
            gw_doc_value_new(to, from->items[i]->kind, from->items[i]->key, from->items[i]->line);
        gw_doc_value_append(to, item);
        copy_contents(item, from->items[i]);
    }
}

static int unknown_variant(const struct gw_document *document, const struct gw_doc_value *names,
                           const struct gw_override *override)
{
    const struct gw_doc_value origin = {.override = override};
    char list[LIST_MAX] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < names->count && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 names->items[i]->key ? names->items[i]->key : "");
    return gw_document_error(document, &origin, GW_ERR_UNKNOWN, "unknown; expected one of: %s",
                             list);
}

/* Applies all settings of the variant that the override's value names, in their order. */
static int apply_variant(struct gw_document *document, const struct gw_doc_value *names,
                         const struct gw_override *override)
{
    const struct gw_doc_value *settings = gw_doc_value_get(names, override->value);
    if (!settings)
        return unknown_variant(document, names, override);
    bool is_empty = settings->kind == GW_DOC_VALUE_SCALAR && settings->text[0] == '\0';
    if (settings->kind != GW_DOC_VALUE_MAP && !is_empty)
        return gw_document_error(document, settings, GW_ERR_INVALID,
                                 "expected a map of paths and values");
    for (uint32_t i = 0; i < settings->count; i++) {
        const struct gw_doc_value *setting = settings->items[i];
        const char *path = gw_override_path(document, setting->key);
        struct gw_doc_value *at;
        if (strncmp(path, VARIANTS, strlen(VARIANTS)) == 0)
            return gw_document_error(document, setting, GW_ERR_INVALID,
                                     "a variant cannot change variants");
        int error = locate(document, path, override, &at);
        if (error)
            return error;
        copy_contents(at, setting);
    }
    return GW_OK;
}

static int apply_setting(struct gw_document *document, const struct gw_override *override)
{
    struct gw_doc_value *at;
    int error = locate(document, gw_override_path(document, override->key), override, &at);
    return error ? error
                 : gw_document_parse(document, override->value, strlen(override->value), at);
}

int gw_overrides_apply(struct gw_document *document, const struct gw_override *overrides,
                       uint32_t count)
{
    int error = GW_OK;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count && !error; i++) {
            const struct gw_doc_value *names =
                gw_doc_value_get(gw_doc_value_get(document->root, VARIANTS), overrides[i].key);
            if (names && pass == 0)
                error = apply_variant(document, names, &overrides[i]);
            else if (!names && pass == 1)
                error = apply_setting(document, &overrides[i]);
        }
    return error;
}
