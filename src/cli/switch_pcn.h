/*
 * What `gradwire switch` says and is told of announced bursts (PCN): the keys of its config, and
 * its status.
 */
#ifndef GW_CLI_SWITCH_PCN_H
#define GW_CLI_SWITCH_PCN_H

#include <jansson.h>

#include "core/algo.h"
#include "net/attach/neighbours.h"
#include "net/roles/overlay_switch.h"

/* As the config has it. */
struct gw_switch_pcn {
    bool enable;
    uint32_t floor;
    gw_time hold;
    gw_q16 share;
};

/* Rows of the parameter table: `member` is the struct gw_switch_pcn within `config`. */
#define GW_SWITCH_PCN_PARAMS(config, member)                                                       \
    {.name = "pcn",                                                                                \
     .type = GW_PARAM_BOOL,                                                                        \
     .offset = offsetof(config, member.enable),                                                    \
     .initial = "yes",                                                                             \
     .help = "ports make room for bursts that are announced: marking begins earlier until they "   \
             "come; needs a rate and a queue that marks"},                                         \
        {.name = "pcn_floor",                                                                      \
         .type = GW_PARAM_COUNT,                                                                   \
         .offset = offsetof(config, member.floor),                                                 \
         .initial = "5",                                                                           \
         .help = "packets: the lowest threshold that an announcement gets"},                       \
        {.name = "pcn_hold",                                                                       \
         .type = GW_PARAM_TIME,                                                                    \
         .offset = offsetof(config, member.hold),                                                  \
         .help = "after so long a burst that has not come is forgotten; none: four round trips, "  \
                 "as measured, and four full queues"},                                             \
    {                                                                                              \
        .name = "pcn_share", .type = GW_PARAM_Q16, .offset = offsetof(config, member.share),       \
        .initial = "25%",                                                                          \
        .help = "of all time in which announcements may lower a port's threshold"                  \
    }

/* For the check of the config: 0, or an error with the sentence. */
int gw_switch_pcn_check(const struct gw_switch_pcn *pcn, char *error);

/* Why no room is made whatever is announced; NULL: it is. */
const char *gw_switch_pcn_why_not(const struct gw_switch_pcn *pcn, uint64_t rate_bps,
                                  const struct gw_qdisc_ops *qdisc);

/* The longest round trip by way of this switch, hosts included: from one neighbour to another, or
 * up to the top and down again. */
gw_time gw_switch_pcn_rtt(const struct gw_neighbours *neighbours, uint16_t peers_max);

/* Counters over all ports, and the ports whose threshold is lowered now; the caller's. `why` is as
 * gw_switch_pcn_why_not() said. */
json_t *gw_switch_pcn_status(const struct gw_overlay_switch *sw, const char *why, gw_time now);

#endif
