/* Places jobs on hosts; see placement.h. */
#include "workload/placement.h"

#include <stdlib.h>

#include "topo/memory.h"
#include "workload/generate.h"

void gw_racks_init(struct gw_racks *racks, const struct gw_topo *topo)
{
    *racks = (struct gw_racks){
        .group = gw_workload_groups(topo),
        .names = gw_memory_zeroed(topo->host_count, sizeof(uint32_t)),
        .is_taken = gw_memory_zeroed(topo->host_count, sizeof(bool)),
        .host_count = topo->host_count,
    };
    for (uint32_t h = 0; h < topo->host_count; h++) {
        uint32_t i = 0;
        while (i < racks->count && racks->names[i] != racks->group[h])
            i++;
        if (i == racks->count)
            racks->names[racks->count++] = racks->group[h];
    }
}

void gw_racks_fini(struct gw_racks *racks)
{
    free(racks->group);
    free(racks->names);
    free(racks->is_taken);
}

uint32_t gw_racks_take(struct gw_racks *racks, uint32_t rack)
{
    for (uint32_t i = 0; i < racks->count; i++) {
        uint32_t name = racks->names[(rack + i) % racks->count];
        for (uint32_t h = 0; h < racks->host_count; h++)
            if (!racks->is_taken[h] && racks->group[h] == name) {
                racks->is_taken[h] = true;
                return h;
            }
    }
    return UINT32_MAX;
}
