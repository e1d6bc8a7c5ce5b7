/*
 * `--set key=value` on a document.
 *
 * A key is a path with dots: "workload.size". One that the file's `aliases:` map to a path stands
 * for that path: an alias is a short key, and has no meaning but its path's. One of the file's
 * `variants:` stands for all settings that the value names; variants are applied first, so that a
 * single setting always wins.
 */
#ifndef GW_CONFIG_OVERRIDES_H
#define GW_CONFIG_OVERRIDES_H

#include "config/document.h"

/* Applies all. Returns 0, or a negative error with document->why set. */
int gw_overrides_apply(struct gw_document *document, const struct gw_override *overrides,
                       uint32_t count);

/* The path that the file's `aliases:` give a short key, else the key itself. */
const char *gw_override_path(const struct gw_document *document, const char *key);

#endif
