/*
 * Partitions: nodes that one thread runs.
 *
 * Groups are placed whole, the heaviest first, each where there is least so far; then the nodes
 * that may go anywhere. Ties go to the lower number, so that the result depends on the topology
 * only.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "topo/memory.h"
#include "topo/topo.h"

enum {
    /* A host's port costs more than a switch's: it runs the transport as well. */
    HOST_WORK = 3,
};

struct item {
    uint64_t work;
    uint32_t id; /* of a group, or of a node */
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->work != y->work)
        return x->work > y->work ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t node_work(const struct gw_topo *topo, uint32_t node)
{
    return (uint64_t)topo->nodes[node].port_count * (node < topo->host_count ? HOST_WORK : 1);
}

/* Places the items; part_of[item.id] tells where. */
static void place(struct item *items, uint32_t count, uint64_t *load, uint32_t parts,
                  uint16_t *part_of)
{
    qsort(items, count, sizeof(items[0]), compare_items);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t least = 0;
        for (uint32_t p = 1; p < parts; p++)
            if (load[p] < load[least])
                least = p;
        load[least] += items[i].work;
        part_of[items[i].id] = (uint16_t)least;
    }
}

void gw_topo_partition(const struct gw_topo *topo, uint32_t parts, uint16_t *part)
{
    GW_ASSERT(parts > 0 && parts <= UINT16_MAX);
    struct item *groups = gw_memory_zeroed(topo->node_count, sizeof(*groups));
    struct item *others = gw_memory_zeroed(topo->node_count, sizeof(*others));
    uint16_t *part_of_group = gw_memory_zeroed(topo->node_count, sizeof(*part_of_group));
    uint64_t *load = gw_memory_zeroed(parts, sizeof(*load));
    uint32_t other_count = 0;
    for (uint32_t i = 0; i < topo->node_count; i++)
        groups[i].id = i;
    for (uint32_t i = 0; i < topo->node_count; i++) {
        uint32_t group = topo->nodes[i].group;
        if (group == GW_GROUP_ANY)
            others[other_count++] = (struct item){.work = node_work(topo, i), .id = i};
        else
            groups[group].work += node_work(topo, i);
    }
    place(groups, topo->node_count, load, parts, part_of_group);
    place(others, other_count, load, parts, part);
    for (uint32_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].group != GW_GROUP_ANY)
            part[i] = part_of_group[topo->nodes[i].group];
    free(load);
    free(part_of_group);
    free(others);
    free(groups);
}
