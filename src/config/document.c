/* YAML in, tree of values out; see document.h. libfyaml parses; nothing outside this file sees it.
 */
#include "config/document.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/overrides.h"
#include "topo/memory.h"

enum {
    FILE_SIZE_MAX = 16 << 20, /* bytes; a file is a few hundred */
    READ_SIZE = 1 << 14,      /* bytes read at once */
    PATH_MAX_BYTES = 256,     /* a dotted key in an error message */
};

int gw_document_error(const struct gw_document *document, const struct gw_doc_value *value,
                      int error, const char *format, ...)
{
    char path[PATH_MAX_BYTES] = "";
    int used;
    if (value && value->parent)
        gw_doc_value_path(value, path, sizeof(path));
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
    for (uint32_t depth = 0; node && depth < GW_DOC_DEPTH_MAX; depth++) {
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
        struct gw_doc_value *item = gw_doc_value_new(value, GW_DOC_VALUE_SCALAR, key ? key : "?",
                                                     node_line(key_node, value->line));
        gw_doc_value_append(value, item);
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
    if (depth > GW_DOC_DEPTH_MAX)
        return gw_document_error(document, NULL, GW_ERR_RANGE, "nested deeper than %d",
                                 GW_DOC_DEPTH_MAX);
    if (node && (fy_node_is_alias(node) || fy_node_get_tag(node, NULL)))
        return gw_document_error(document, value, GW_ERR_INVALID,
                                 "aliases and tags are not supported");
    if (!node || fy_node_is_scalar(node)) {
        size_t length = 0;
        const char *text = node ? fy_node_get_scalar(node, &length) : NULL;
        if (text && memchr(text, '\0', length))
            return gw_document_error(document, value, GW_ERR_INVALID, "there is a NUL in it");
        gw_doc_value_set_text(value, text ? text : "", text ? length : 0);
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
            gw_doc_value_new(value, GW_DOC_VALUE_SCALAR, NULL, node_line(item_node, value->line));
        gw_doc_value_append(value, item);
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

int gw_document_parse(struct gw_document *document, const char *text, size_t length,
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
    if (memchr(*text, '\0', *length)) /* where the parser would take the text to end */
        return gw_document_error(document, NULL, GW_ERR_INVALID, "no text: there is a NUL byte");
    return GW_OK;
}

int gw_document_load(struct gw_document *document, const char *file,
                     const struct gw_override *overrides, uint32_t override_count, char *why)
{
    *document = (struct gw_document){.file = file, .why = why};
    document->root = gw_doc_value_new(NULL, GW_DOC_VALUE_MAP, NULL, 1);
    char *text;
    size_t length;
    int error = read_file(document, &text, &length);
    if (!error)
        error = gw_document_parse(document, text, length, document->root);
    free(text);
    if (!error && document->root->kind != GW_DOC_VALUE_MAP)
        error =
            gw_document_error(document, NULL, GW_ERR_INVALID, "expected a map of keys and values");
    if (!error)
        error = gw_overrides_apply(document, overrides, override_count);
    if (error)
        gw_document_free(document);
    return error;
}

void gw_document_free(struct gw_document *document)
{
    gw_doc_value_free(document->root);
    document->root = NULL;
}
