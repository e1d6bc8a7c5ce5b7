/*
 * A YAML document as a tree of values that know where they come from.
 *
 * The tree is made from a file, then changed by `--set key=value`. Each value remembers its line,
 * or the override that set it, so that every error can name its place. Aliases, anchors and tags
 * are refused: a scenario says what it means.
 */
#ifndef GW_CONFIG_DOCUMENT_H
#define GW_CONFIG_DOCUMENT_H

#include <stdint.h>
#include <stdio.h>

#include "config/scenario.h"

enum gw_doc_value_kind {
    GW_DOC_VALUE_SCALAR,
    GW_DOC_VALUE_LIST,
    GW_DOC_VALUE_MAP,
};

struct gw_doc_value {
    enum gw_doc_value_kind kind;
    char *key;  /* in a map; NULL in a list and for the root */
    char *text; /* GW_DOC_VALUE_SCALAR; "" for an empty value */
    struct gw_doc_value *parent;
    struct gw_doc_value **items; /* of a list or a map, in the order of the file */
    uint32_t count, room;
    uint32_t line;                      /* from 1; where the key, or the value in a list, stands */
    const struct gw_override *override; /* that set it; NULL: the file */
};

struct gw_document {
    const char *file;
    struct gw_doc_value *root; /* a map */
    char *why;                 /* bytes: GW_WHY_MAX */
};

/*
 * Reads `file` and applies the overrides; a key that the file's `aliases:` map to a path stands for
 * that path, and one of its `variants:` for all settings that the value names. The strings must
 * outlive the document. Returns 0, or a negative error with one line in
 * `why`; the document is then empty. gw_document_free() takes it back in either case.
 */
int gw_document_load(struct gw_document *document, const char *file,
                     const struct gw_override *overrides, uint32_t override_count, char *why);
void gw_document_free(struct gw_document *document);

/* The path that the file's `aliases:` give a short key, else the key itself. */
const char *gw_document_path(const struct gw_document *document, const char *key);

/* The value of `key` in a map; NULL when it is absent or `map` is NULL. */
struct gw_doc_value *gw_doc_value_get(const struct gw_doc_value *map, const char *key);

/*
 * Sets document->why to "file:line: path: sentence", or "--set key=value: sentence", and returns
 * `error`. `value` may be NULL for what concerns the whole file.
 */
int gw_document_error(const struct gw_document *document, const struct gw_doc_value *value,
                      int error, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Writes the value as YAML on one line. */
void gw_value_write(const struct gw_doc_value *value, FILE *out);
/* Writes text as a YAML scalar, quoted if need be. */
void gw_text_write(const char *text, FILE *out);

#endif
