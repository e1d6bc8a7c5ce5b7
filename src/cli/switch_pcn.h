/*
 * What `gradwire switch` says and is told of announced bursts (PCN): a section of its config, and
 * its status.
 */
#ifndef GW_CLI_SWITCH_PCN_H
#define GW_CLI_SWITCH_PCN_H

#include <jansson.h>

#include "cli/daemon_queue.h"
#include "config/pcn_section.h"
#include "net/attach/neighbours.h"
#include "net/roles/overlay_switch.h"

/* Reads the section `pcn:` of a config, which is that of a scenario's switches. Returns 0, or a
 * negative error with document->why set. */
int gw_switch_pcn_read(const struct gw_document *document, struct gw_pcn_cfg *pcn);

/* Why no room is made whatever is announced; NULL: it is. */
const char *gw_switch_pcn_why_not(const struct gw_pcn_cfg *pcn, uint64_t rate_bps,
                                  const struct gw_daemon_queue *queue);

/* The longest round trip by way of this switch, hosts included: from one neighbour to another, or
 * up to the top and down again. */
gw_time gw_switch_pcn_rtt(const struct gw_neighbours *neighbours, uint16_t peers_max);

/* Counters over all ports, and the ports whose threshold is lowered now; the caller's. `why` is as
 * gw_switch_pcn_why_not() said. */
json_t *gw_switch_pcn_status(const struct gw_overlay_switch *sw, const char *why, gw_time now);

#endif
