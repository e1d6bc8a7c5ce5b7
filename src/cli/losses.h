/*
 * What switches dropped, by class: for the results of runs and the status of daemons.
 */
#ifndef GW_CLI_LOSSES_H
#define GW_CLI_LOSSES_H

#include <jansson.h>

#include "core/switch/port_stats.h"

/* `drops`, `unimportant` and `shed`: lists by class, best effort first. */
json_t *gw_losses_json(const struct gw_class_losses losses[GW_CLASSES]);

/* A line for each class of data that lost something, the most urgent first; none when all that was
 * lost is best effort, or control, and nothing was shed. */
void gw_losses_print(const struct gw_class_losses losses[GW_CLASSES]);

#endif
