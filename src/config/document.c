/* YAML in, tree of values out; see document.h. libfyaml parses; nothing outside this file sees it.
 */
#include "config/document.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topo/memory.h"

enum {
    FILE_SIZE_MAX = 16 << 20, /* bytes; a scenario is a few hundred */
    READ_SIZE = 1 << 14,      /* bytes read at once */
    PATH_MAX_BYTES = 256,     /* a dotted key in an error message */
    DEPTH_MAX = 64,           /* of a tree that is read, and of a path to it: together twice that */
    LIST_MAX = 256,           /* bytes of a list of names in an error message */
};

/* The section with the words that stand for several settings. */
#define VARIANTS "variants"

static char *copy_text(const char *text, size_t length)
{
    char *copy = gw_memory_zeroed(length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

static struct gw_doc_value *value_new(struct gw_doc_value *parent, enum gw_doc_value_kind kind,
                                      const char *key, uint32_t line)
{
    struct gw_doc_value *value = gw_memory_zeroed(1, sizeof(*value));
    value->kind = kind;
    value->key = key ? copy_text(key, strlen(key)) : NULL;
    value->parent = parent;
    value->line = line;
    value->override = parent ? parent->override : NULL;
    return value;
}

static void value_append(struct gw_doc_value *parent, struct gw_doc_value *item)
{
    parent->items =
        gw_memory_grow(parent->items, &parent->room, parent->count + 1, sizeof(parent->items[0]));
    parent->items[parent->count++] = item;
}

/* Recursion is bounded by 2 * DEPTH_MAX. */
static void value_free(struct gw_doc_value *value)
{
    if (!value)
        return;
    for (uint32_t i = 0; i < value->count; i++)
        value_free(value->items[i]);
    free(value->items);
    free(value->text);
    free(value->key);
    free(value);
}

struct gw_doc_value *gw_doc_value_get(const struct gw_doc_value *map, const char *key)
{
    if (!map || map->kind != GW_DOC_VALUE_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i]->key, key) == 0)
            return map->items[i];
    return NULL;
}

/* Writes the dotted path of a value; list items by number. Recursion: 2 * DEPTH_MAX. */
static size_t write_path(const struct gw_doc_value *value, char *path, size_t size)
{
    if (!value->parent)
        return 0;
    size_t used = write_path(value->parent, path, size);
    const char *dot = used ? "." : "";
    if (used >= size)
        return used;
    if (value->key)
        return used + (size_t)snprintf(path + used, size - used, "%s%s", dot, value->key);
    uint32_t index = 0;
    while (value->parent->items[index] != value)
        index++;
    return used + (size_t)snprintf(path + used, size - used, "%s%u", dot, index);
}

int gw_document_error(const struct gw_document *document, const struct gw_doc_value *value,
                      int error, const char *format, ...)
{
    char path[PATH_MAX_BYTES] = "";
    int used;
    if (value && value->parent)
        write_path(value, path, sizeof(path));
    if (value && value->override) {
        /* A value below the key that was set is named as well. */
        bool below = path[0] && strcmp(path, value->override->key) != 0;
        used = snprintf(document->why, GW_WHY_MAX, "--set %s=%s: %s%s", value->override->key,
                        value->override->value, below ? path : "", below ? ": " : "");
    } else if (value && value->parent) {
        used =
            snprintf(document->why, GW_WHY_MAX, "%s:%u: %s: ", document->file, value->line, path);
    } else {
        used = snprintf(document->why, GW_WHY_MAX, "%s:1: ", document->file);
    }
    if (used >= 0 && used < GW_WHY_MAX) {
        va_list args;
        va_start(args, format);
        vsnprintf(document->why + used, GW_WHY_MAX - (size_t)used, format, args);
        va_end(args);
    }
    /* One line, whatever a file name or a value holds. */
    for (char *c = document->why; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    return error;
}

/* Line of a libfyaml node, from 1; of the first scalar inside it when it is not a scalar itself. */
static uint32_t node_line(struct fy_node *node, uint32_t otherwise)
{
    for (uint32_t depth = 0; node && depth < DEPTH_MAX; depth++) {
        if (fy_node_is_scalar(node)) {
            const struct fy_mark *mark = fy_token_start_mark(fy_node_get_scalar_token(node));
            return mark ? (uint32_t)mark->line + 1 : otherwise;
        }
        void *cursor = NULL;
        if (fy_node_is_sequence(node)) {
            node = fy_node_sequence_iterate(node, &cursor);
        } else {
            struct fy_node_pair *pair = fy_node_mapping_iterate(node, &cursor);
            node = pair ? fy_node_pair_key(pair) : NULL;
        }
    }
    return otherwise;
}

static int convert(struct gw_document *document, struct fy_node *node, struct gw_doc_value *value,
                   uint32_t depth);

static int convert_map(struct gw_document *document, struct fy_node *node,
                       struct gw_doc_value *value, uint32_t depth)
{
    struct fy_node_pair *pair;
    void *cursor = NULL;
    int error = GW_OK;
    while (!error && (pair = fy_node_mapping_iterate(node, &cursor))) {
        struct fy_node *key_node = fy_node_pair_key(pair);
        const char *key = key_node && fy_node_is_scalar(key_node) && !fy_node_is_alias(key_node)
                              ? fy_node_get_scalar0(key_node)
                              : NULL;
        struct gw_doc_value *item = value_new(value, GW_DOC_VALUE_SCALAR, key ? key : "?",
                                              node_line(key_node, value->line));
        value_append(value, item);
        if (!key)
            return gw_document_error(document, item, GW_ERR_INVALID, "a key must be a word");
        error = convert(document, fy_node_pair_value(pair), item, depth + 1);
    }
    return error;
}

/* Fills `value`, whose key, parent and line are set, from a node of libfyaml (NULL: nothing). */
static int convert(struct gw_document *document, struct fy_node *node, struct gw_doc_value *value,
                   uint32_t depth)
{
    if (depth > DEPTH_MAX)
        return gw_document_error(document, NULL, GW_ERR_RANGE, "nested deeper than %d", DEPTH_MAX);
    if (node && (fy_node_is_alias(node) || fy_node_get_tag(node, NULL)))
        return gw_document_error(document, value, GW_ERR_INVALID,
                                 "aliases and tags are not supported");
    if (!node || fy_node_is_scalar(node)) {
        size_t length = 0;
        const char *text = node ? fy_node_get_scalar(node, &length) : NULL;
        value->kind = GW_DOC_VALUE_SCALAR;
        value->text = copy_text(text ? text : "", text ? length : 0);
        return GW_OK;
    }
    if (fy_node_is_mapping(node)) {
        value->kind = GW_DOC_VALUE_MAP;
        return convert_map(document, node, value, depth);
    }
    value->kind = GW_DOC_VALUE_LIST;
    struct fy_node *item_node;
    void *cursor = NULL;
    int error = GW_OK;
    while (!error && (item_node = fy_node_sequence_iterate(node, &cursor))) {
        struct gw_doc_value *item =
            value_new(value, GW_DOC_VALUE_SCALAR, NULL, node_line(item_node, value->line));
        value_append(value, item);
        error = convert(document, item_node, item, depth + 1);
    }
    return error;
}

/* Says why the parser gave up, with the line of the file. */
static int parse_error(const struct gw_document *document, const struct gw_doc_value *value,
                       const char *text, size_t length, const struct fy_diag_error *first)
{
    if (value->override)
        return gw_document_error(document, value, GW_ERR_INVALID, "%s", first->msg);
    /* What is missing at the end of the file is reported one line too late. */
    int line = 1;
    for (size_t i = 0; i + 1 < length && line < first->line; i++)
        line += text[i] == '\n';
    snprintf(document->why, GW_WHY_MAX, "%s:%d: %s", document->file, line, first->msg);
    return GW_ERR_INVALID;
}

/* Parses the only document of a YAML text into `value`. */
static int parse(struct gw_document *document, const char *text, size_t length,
                 struct gw_doc_value *value)
{
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET, .diag = diag};
    struct fy_parser *parser = fy_parser_create(&cfg);
    fy_parser_set_string(parser, text, length);
    struct fy_document *first = fy_parse_load_document(parser);
    struct fy_document *second = first ? fy_parse_load_document(parser) : NULL;
    void *cursor = NULL;
    const struct fy_diag_error *problem = fy_diag_errors_iterate(diag, &cursor);
    int error;
    if (problem)
        error = parse_error(document, value, text, length, problem);
    else if (second)
        error = gw_document_error(document, value, GW_ERR_INVALID,
                                  "there must be one YAML document, not several");
    else
        error = convert(document, first ? fy_document_root(first) : NULL, value, 0);
    fy_parse_document_destroy(parser, second);
    fy_parse_document_destroy(parser, first);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    return error;
}

/* Reads the whole file; *text is to be freed. */
static int read_file(struct gw_document *document, char **text, size_t *length)
{
    errno = 0;
    FILE *stream = fopen(document->file, "r");
    *text = NULL;
    *length = 0;
    if (stream) {
        uint32_t room = 0;
        size_t count;
        do {
            *text = gw_memory_grow(*text, &room, (uint32_t)*length + READ_SIZE, 1);
            count = fread(*text + *length, 1, READ_SIZE, stream);
            *length += count;
        } while (count > 0 && *length <= FILE_SIZE_MAX);
    }
    if (!stream || ferror(stream)) {
        snprintf(document->why, GW_WHY_MAX, "%s: %s", document->file, strerror(errno));
        if (stream)
            fclose(stream);
        return GW_ERR_SYSTEM;
    }
    fclose(stream);
    if (*length > FILE_SIZE_MAX)
        return gw_document_error(document, NULL, GW_ERR_RANGE, "larger than %d bytes",
                                 FILE_SIZE_MAX);
    return GW_OK;
}

/* Makes "cc: smartt" into "cc: {kind: smartt}", so that a key below it can be set. */
static void scalar_to_map(struct gw_doc_value *value)
{
    struct gw_doc_value *kind = value_new(value, GW_DOC_VALUE_SCALAR, "kind", value->line);
    kind->text = value->text;
    value->text = NULL;
    value->kind = GW_DOC_VALUE_MAP;
    value_append(value, kind);
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
        *at = value_new(parent, GW_DOC_VALUE_MAP, word, parent->line);
        (*at)->override = override;
        value_append(parent, *at);
    }
    return GW_OK;
}

const char *gw_document_path(const struct gw_document *document, const char *key)
{
    const struct gw_doc_value *alias =
        gw_doc_value_get(gw_doc_value_get(document->root, "aliases"), key);
    return alias && alias->kind == GW_DOC_VALUE_SCALAR ? alias->text : key;
}

/* The value that a path calls, made if need be and empty in any case. */
static int locate(struct gw_document *document, const char *path,
                  const struct gw_override *override, struct gw_doc_value **found)
{
    struct gw_doc_value *at = document->root;
    const struct gw_doc_value origin = {.override = override};
    uint32_t depth = 0;
    while (path) {
        char word[PATH_MAX_BYTES];
        const char *dot = strchr(path, '.');
        size_t length = dot ? (size_t)(dot - path) : strlen(path);
        if (length == 0 || length >= sizeof(word) || ++depth > DEPTH_MAX)
            return gw_document_error(document, &origin, GW_ERR_INVALID,
                                     "the key must be words separated by dots");
        memcpy(word, path, length);
        word[length] = '\0';
        int error = step(document, &at, word, override);
        if (error)
            return error;
        path = dot ? dot + 1 : NULL;
    }
    for (uint32_t i = 0; i < at->count; i++)
        value_free(at->items[i]);
    free(at->items);
    free(at->text);
    at->items = NULL;
    at->text = NULL;
    at->count = at->room = 0;
    at->kind = GW_DOC_VALUE_SCALAR;
    at->override = override;
    *found = at;
    return GW_OK;
}

/*
 * Gives an empty value the contents of a variant's. These are of the file, so the recursion is
 * bounded by DEPTH_MAX; they may come to a place that is as deep.
 */
static void copy_contents(struct gw_doc_value *to, const struct gw_doc_value *from)
{
    to->kind = from->kind;
    to->text = from->text ? copy_text(from->text, strlen(from->text)) : NULL;
    for (uint32_t i = 0; i < from->count; i++) {
        struct gw_doc_value *item =
            value_new(to, from->items[i]->kind, from->items[i]->key, from->items[i]->line);
        value_append(to, item);
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
        const char *path = gw_document_path(document, setting->key);
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
    int error = locate(document, gw_document_path(document, override->key), override, &at);
    return error ? error : parse(document, override->value, strlen(override->value), at);
}

/* Variants first, so that a single setting always wins. */
static int apply_all(struct gw_document *document, const struct gw_override *overrides,
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

int gw_document_load(struct gw_document *document, const char *file,
                     const struct gw_override *overrides, uint32_t override_count, char *why)
{
    *document = (struct gw_document){.file = file, .why = why};
    document->root = value_new(NULL, GW_DOC_VALUE_MAP, NULL, 1);
    char *text;
    size_t length;
    int error = read_file(document, &text, &length);
    if (!error)
        error = parse(document, text, length, document->root);
    free(text);
    if (!error && document->root->kind != GW_DOC_VALUE_MAP)
        error = gw_document_error(document, NULL, GW_ERR_INVALID,
                                  "a scenario must be a map of keys and values");
    if (!error)
        error = apply_all(document, overrides, override_count);
    if (error)
        gw_document_free(document);
    return error;
}

void gw_document_free(struct gw_document *document)
{
    value_free(document->root);
    document->root = NULL;
}

void gw_text_write(const char *text, FILE *out)
{
    /* Plain where nothing can be misread; YAML's double quotes otherwise. */
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./+-";
    if (*text && *text != '-' && text[strspn(text, plain)] == '\0') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text < ' ')
            fprintf(out, "\\x%02x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

/* Writes in flow style, on one line: nothing that is echoed is long. */
void gw_value_write(const struct gw_doc_value *value, FILE *out)
{
    if (value->kind == GW_DOC_VALUE_SCALAR) {
        gw_text_write(value->text, out);
        return;
    }
    fputc(value->kind == GW_DOC_VALUE_MAP ? '{' : '[', out);
    for (uint32_t i = 0; i < value->count; i++) {
        if (i)
            fputs(", ", out);
        if (value->items[i]->key) {
            gw_text_write(value->items[i]->key, out);
            fputs(": ", out);
        }
        gw_value_write(value->items[i], out);
    }
    fputc(value->kind == GW_DOC_VALUE_MAP ? '}' : ']', out);
}
