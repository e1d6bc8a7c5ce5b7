/*
 * The controller of source routing: it knows the network, gives every flow that starts the list of
 * its paths, and renews all lists when routing has noticed a change (`convergence`).
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

static void list_paths(struct gw_sim *sim, uint32_t flow)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    struct gw_path_labels *list = &sim->path_labels[flow];
    uint16_t *labels;
    free((void *)list->labels);
    list->count =
        gw_topo_schedule(&sim->scenario->topo, &sim->labels, spec->src, spec->dst, &labels);
    list->labels = labels;
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
            list_paths(sim, flow);
}

const struct gw_path_labels *gw_sim_labels_claim(struct gw_sim *sim, uint32_t flow)
{
    if (!is_label_routed(sim))
        return NULL;
    list_paths(sim, flow);
    return &sim->path_labels[flow];
}

void gw_sim_labels_release(struct gw_sim *sim, uint32_t flow)
{
    if (!sim->path_labels)
        return;
    free((void *)sim->path_labels[flow].labels);
    sim->path_labels[flow] = (struct gw_path_labels){0};
}

void gw_sim_labels_close(struct gw_sim *sim)
{
    for (uint32_t flow = 0; sim->path_labels && flow < sim->scenario->workload.flow_count; flow++)
        gw_sim_labels_release(sim, flow);
    free(sim->path_labels);
    gw_topo_labels_fini(&sim->labels);
}
