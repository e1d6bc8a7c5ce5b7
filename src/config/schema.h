/*
 * Sections of a scenario or of a config, read and written by table.
 *
 * A section is a map whose keys are the parameters of one or more tables (struct gw_algo), plus
 * keys that its reader handles itself. Reading fills the tables' options; an unknown key or a value
 * that its table refuses is an error that names the place, the key, and what was expected.
 */
#ifndef GW_CONFIG_SCHEMA_H
#define GW_CONFIG_SCHEMA_H

#include <stdio.h>

#include "config/document.h"
#include "core/algo.h"

/* One table of a section, and the options that it fills. */
struct gw_schema_part {
    const struct gw_algo *algo;
    void *cfg;
    const char *preset; /* the key that names one of the table's presets; NULL: none does */
};

struct gw_schema {
    struct gw_schema_part parts[3];
    uint32_t part_count;
    const char *const *others; /* keys that the reader handles itself, ended by NULL; may be NULL */
};

/*
 * Fills the options of all parts: defaults, then presets, then the map's keys. `value` is a map;
 * NULL or a scalar sets nothing. Returns 0 or a negative error with document->why set.
 */
int gw_schema_read(const struct gw_document *document, const struct gw_doc_value *value,
                   const struct gw_schema *schema);

/*
 * The algorithm that a section chooses: "cc: smartt" or "cc: {kind: smartt}". `initial` is taken
 * when nothing is said; NULL makes that an error. Returns NULL with document->why set.
 */
const struct gw_algo *gw_schema_kind(const struct gw_document *document,
                                     const struct gw_doc_value *value, const char *section,
                                     const struct gw_registry *registry, const char *initial);

/* The name that gw_schema_kind() looks up: text, `initial`, or NULL with document->why set. */
const char *gw_schema_name(const struct gw_document *document, const struct gw_doc_value *value,
                           const char *section, const char *initial);

/* Sets document->why for a name that none of the registries has; `last` may be NULL. */
int gw_schema_unknown(const struct gw_document *document, const struct gw_doc_value *value,
                      const char *name, const struct gw_registry *first,
                      const struct gw_registry *last);

/* The text of a scalar; otherwise NULL with document->why set. */
const char *gw_schema_text(const struct gw_document *document, const struct gw_doc_value *value);

/* Sets document->why for a value that a parser of base/units.h refused; returns `error`. */
int gw_schema_refuse(const struct gw_document *document, const struct gw_doc_value *value,
                     int error, const char *expected);

/*
 * Sets document->why from a sentence that begins with the name of a parameter, and returns `error`.
 * The place is that of the parameter's key in `section` if it is there, else the section's.
 */
int gw_schema_blame(const struct gw_document *document, const struct gw_doc_value *section,
                    int error, const char *sentence);

/* Writes "key: value" for every parameter of all parts, each behind `indent` and on its own line.
 */
void gw_schema_write(const struct gw_schema *schema, const char *indent, FILE *out);

#endif
