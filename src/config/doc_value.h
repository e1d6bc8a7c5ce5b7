/*
 * The tree of values that a document is.
 *
 * Each value remembers its line, or the override that set it, so that every error can name its
 * place. Recursion over a tree is bounded by 2 * GW_DOC_DEPTH_MAX.
 */
#ifndef GW_CONFIG_DOC_VALUE_H
#define GW_CONFIG_DOC_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gw_override;

enum {
    GW_DOC_DEPTH_MAX = 64, /* of a tree that is read, and of a path to it: together twice that */
};

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

/* A value without contents, of what set its parent; `key` is copied. It is not in the parent yet.
 */
struct gw_doc_value *gw_doc_value_new(struct gw_doc_value *parent, enum gw_doc_value_kind kind,
                                      const char *key, uint32_t line);
void gw_doc_value_append(struct gw_doc_value *parent, struct gw_doc_value *item);

/* Makes an empty value a scalar; the text is copied. */
void gw_doc_value_set_text(struct gw_doc_value *value, const char *text, size_t length);

/* Makes it an empty scalar, which keeps its key and its place. */
void gw_doc_value_clear(struct gw_doc_value *value);

/* Frees it with all below; it is in no parent any more. NULL is allowed. */
void gw_doc_value_free(struct gw_doc_value *value);

/* The value of `key` in a map; NULL when it is absent or `map` is NULL. */
struct gw_doc_value *gw_doc_value_get(const struct gw_doc_value *map, const char *key);

/* Writes the dotted path of a value; list items by number. Returns its length. */
size_t gw_doc_value_path(const struct gw_doc_value *value, char *path, size_t size);

/* Writes the value as YAML on one line. */
void gw_doc_value_write(const struct gw_doc_value *value, FILE *out);
/* Writes text as a YAML scalar, quoted if need be. */
void gw_doc_text_write(const char *text, FILE *out);

#endif
