/*
 * Which hosts the workers and servers of jobs get.
 *
 * Workers are spread evenly over the racks (groups of the topology), or for SwitchML are in one;
 * servers are in the last rack. A host is taken once by the jobs of an entry.
 */
#ifndef GW_WORKLOAD_PLACEMENT_H
#define GW_WORKLOAD_PLACEMENT_H

#include <stdbool.h>

#include "topo/topo.h"

/* Which hosts are taken, by rack. */
struct gw_racks {
    uint32_t *group; /* of each host */
    uint32_t *names; /* distinct groups in the order of their hosts */
    bool *is_taken;
    uint32_t count;
    uint32_t host_count;
};

void gw_racks_init(struct gw_racks *racks, const struct gw_topo *topo);
void gw_racks_fini(struct gw_racks *racks);

/* Takes a free host of rack `rack` or of the next ones; UINT32_MAX when none is left. */
uint32_t gw_racks_take(struct gw_racks *racks, uint32_t rack);

#endif
