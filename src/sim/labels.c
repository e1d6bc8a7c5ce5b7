/*
 * The controller of source routing: it knows the network, gives every flow that starts the list of
 * its paths, and renews all lists when routing has noticed a change (`convergence`). Flows of jobs
 * between the same hosts have one list, made before the run.
 *
 * Lists change in the serial phase only; a flow's list belongs to the partition of its sender.
 */
#include "sim/labels.h"

#include <stdlib.h>

#include "topo/memory.h"

static bool is_label_routed(const struct gw_sim *sim)
{
    return sim->scenario->transport.lb->spread == GW_SPREAD_LABELS;
}

/* The list of a pair of hosts; flows hold its address. */
struct gw_sim_pair_labels {
    uint32_t src, dst;
    struct gw_path_labels list;
    struct gw_sim_pair_labels *next;
};

static void list_paths(const struct gw_sim *sim, uint32_t src, uint32_t dst,
                       struct gw_path_labels *list)
{
    uint16_t *labels;
    free((void *)list->labels);
    list->count = gw_topo_schedule(&sim->scenario->topo, &sim->labels, src, dst, &labels);
    list->labels = labels;
}

static void list_flow(struct gw_sim *sim, uint32_t flow)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    list_paths(sim, spec->src, spec->dst, &sim->path_labels[flow]);
}

void gw_sim_labels_renew(struct gw_sim *sim)
{
    if (!is_label_routed(sim))
        return;
    uint32_t flow_count = sim->scenario->workload.flow_count;
    if (!sim->path_labels)
        sim->path_labels = gw_memory_aligned(flow_count * sizeof(*sim->path_labels));
    gw_topo_labels_fini(&sim->labels);
    gw_topo_labels_init(&sim->labels, &sim->scenario->topo);
    for (uint32_t flow = 0; flow < flow_count; flow++)
        if (sim->path_labels[flow].labels)
            list_flow(sim, flow);
    for (struct gw_sim_pair_labels *pair = sim->pair_labels; pair; pair = pair->next)
        list_paths(sim, pair->src, pair->dst, &pair->list);
}

const struct gw_path_labels *gw_sim_labels_claim(struct gw_sim *sim, uint32_t flow)
{
    if (!is_label_routed(sim))
        return NULL;
    list_flow(sim, flow);
    return &sim->path_labels[flow];
}

void gw_sim_labels_release(struct gw_sim *sim, uint32_t flow)
{
    if (!sim->path_labels)
        return;
    free((void *)sim->path_labels[flow].labels);
    sim->path_labels[flow] = (struct gw_path_labels){0};
}

const struct gw_path_labels *gw_sim_labels_between(struct gw_sim *sim, uint32_t src, uint32_t dst)
{
    if (!is_label_routed(sim))
        return NULL;
    struct gw_sim_pair_labels *pair = gw_memory_zeroed(1, sizeof(*pair));
    *pair = (struct gw_sim_pair_labels){.src = src, .dst = dst, .next = sim->pair_labels};
    sim->pair_labels = pair;
    return &pair->list;
}

void gw_sim_labels_close(struct gw_sim *sim)
{
    for (uint32_t flow = 0; sim->path_labels && flow < sim->scenario->workload.flow_count; flow++)
        gw_sim_labels_release(sim, flow);
    free(sim->path_labels);
    while (sim->pair_labels) {
        struct gw_sim_pair_labels *pair = sim->pair_labels;
        sim->pair_labels = pair->next;
        free((void *)pair->list.labels);
        free(pair);
    }
    gw_topo_labels_fini(&sim->labels);
}
