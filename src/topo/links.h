/*
 * The cfg of the topology kind "links": an explicit list of nodes and links.
 *
 * Its lists cannot be written as parameters; who reads a scenario fills them in before build().
 */
#ifndef GW_TOPO_LINKS_H
#define GW_TOPO_LINKS_H

#include "topo/kinds.h"

struct gw_topo_links_item {
    const char *ends[2];
    uint64_t rate_bps;
    gw_time latency;
    uint32_t queue_bytes; /* of both directions; 0: the scenario's default */
};

struct gw_topo_links {
    struct gw_topo_fabric fabric; /* rate and latency: of links that do not say otherwise */
    const char *const *hosts;     /* names; borrowed, as are all below */
    const char *const *switches;
    const struct gw_topo_links_item *links;
    uint32_t host_count, switch_count, link_count;
};

#endif
