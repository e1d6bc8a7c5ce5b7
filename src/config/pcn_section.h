/*
 * A section `pcn:` wherever it stands, in a scenario or in the config of a switch on sockets: what
 * switches make of bursts that are announced.
 */
#ifndef GW_CONFIG_PCN_SECTION_H
#define GW_CONFIG_PCN_SECTION_H

#include "config/document.h"
#include "config/scenario.h"
#include "config/schema.h"

/* The keys; without hosts those of switches alone, and `lead` is none. */
struct gw_schema gw_pcn_section_schema(struct gw_pcn_cfg *pcn, bool has_hosts);

/* Reads the section, which may be NULL, by that schema, and checks it. Times that are 0 are for the
 * caller to set. Returns 0, or a negative error with document->why set. */
int gw_pcn_section_read(const struct gw_document *document, const struct gw_doc_value *section,
                        const struct gw_schema *schema);

#endif
