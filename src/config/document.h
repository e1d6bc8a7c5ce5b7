/*
 * A YAML document as a tree of values.
 *
 * The tree is made from a file, then changed by `--set key=value`. YAML's anchors, with their
 * aliases, and its tags are refused: a scenario says what it means.
 */
#ifndef GW_CONFIG_DOCUMENT_H
#define GW_CONFIG_DOCUMENT_H

#include "config/doc_value.h"
#include "config/scenario.h"

struct gw_document {
    const char *file;
    struct gw_doc_value *root; /* a map */
    char *why;                 /* bytes: GW_WHY_MAX */
};

/*
 * Reads `file` and applies the overrides (overrides.h). The strings must outlive the document.
 * Returns 0, or a negative error with one line in `why`; the document is then empty.
 * gw_document_free() takes it back in either case.
 */
int gw_document_load(struct gw_document *document, const char *file,
                     const struct gw_override *overrides, uint32_t override_count, char *why);
void gw_document_free(struct gw_document *document);

/* Parses the only document of a YAML text into an empty value. */
int gw_document_parse(struct gw_document *document, const char *text, size_t length,
                      struct gw_doc_value *value);

/*
 * Sets document->why to "file:line: path: sentence", or "--set key=value: sentence", and returns
 * `error`. `value` may be NULL for what concerns the whole file.
 */
int gw_document_error(const struct gw_document *document, const struct gw_doc_value *value,
                      int error, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
