/*
 * Builds a simulation from a scenario, and frees it: places and partitions, memory for packets, and
 * everything that other files of sim/ make. All that a run needs is sized here; only inboxes, lists
 * of starts and records of the run grow later.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "sim/calendar.h"
#include "sim/capture.h"
#include "sim/control.h"
#include "sim/jobs.h"
#include "sim/labels.h"
#include "sim/nodes.h"
#include "sim/payload.h"
#include "sim/routes.h"
#include "sim/rtt.h"
#include "sim/watch.h"
#include "topo/memory.h"

/* Numbers the places so that each partition is a range. */
static void assign_places(struct gw_sim *sim)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    uint16_t *part = gw_memory_aligned(topo->node_count * sizeof(*part));
    gw_topo_partition(topo, sim->part_count, part);
    uint32_t place = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        sim->parts[p].first = place;
        for (uint32_t id = 0; id < topo->node_count; id++)
            if (part[id] == p) {
                sim->place[id] = place;
                sim->nodes[place++].id = id;
            }
        sim->parts[p].last = place;
    }
    free(part);
}

static void build_starts(struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *spec = &workload->flows[i];
        sim->awaited += !spec->background;
        if (spec->start == GW_TIME_NEVER)
            continue;
        struct gw_sim_node *node = &sim->nodes[sim->place[spec->src]];
        gw_sim_app_add(&node->app, (struct gw_sim_start){.at = spec->start, .flow = i});
    }
    for (uint32_t p = 0; p < sim->part_count; p++)
        for (uint32_t place = sim->parts[p].first; place < sim->parts[p].last; place++)
            gw_sim_calendar_wake(&sim->parts[p], place, gw_sim_app_next(&sim->nodes[place].app));
}

static int build_pool(struct gw_sim *sim, char *why)
{
    const uint32_t count = 1u << GW_SIM_INDEX_BITS;
    /* Address space only: pages are touched when packets are first used. */
    void *memory = mmap(NULL, (size_t)count * sizeof(struct gw_pkt), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(why, GW_WHY_MAX, "cannot reserve memory for packets: %s", strerror(errno));
        return GW_ERR_NO_MEMORY;
    }
    sim->pkts = memory;
    uint32_t share = count / sim->part_count;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        gw_memory_use_large_pages(sim->pkts + p * share, share * sizeof(*sim->pkts),
                                  GW_MEMORY_SMALL / sim->part_count);
        gw_pkt_pool_init(&sim->parts[p].pool, sim->pkts, p * share, share, NULL);
    }
    return GW_OK;
}

int gw_sim_open(struct gw_sim **result, struct gw_scenario *scenario,
                const struct gw_sim_options *options, char *why)
{
    const struct gw_topo *topo = &scenario->topo;
    if (scenario->host.train > GW_SIM_TRAIN_MAX) {
        snprintf(why, GW_WHY_MAX, "host.train: at most %d", GW_SIM_TRAIN_MAX);
        return GW_ERR_RANGE;
    }
    struct gw_sim *sim = gw_memory_aligned(sizeof(*sim));
    *result = sim;
    sim->scenario = scenario;
    sim->options = *options;
    sim->node_count = topo->node_count;
    sim->part_count = scenario->host.payload ? 1 : options->threads;
    sim->parts = gw_memory_aligned(sim->part_count * sizeof(*sim->parts));
    sim->nodes = gw_memory_pool_take(&sim->memory, sim->node_count * sizeof(*sim->nodes));
    sim->place = gw_memory_aligned(sim->node_count * sizeof(*sim->place));
    for (uint32_t p = 0; p < sim->part_count; p++) {
        sim->parts[p].sim = sim;
        sim->parts[p].first_start = GW_TIME_NEVER;
        gw_sim_rtt_open(&sim->parts[p]);
    }
    uint32_t flows = scenario->workload.flow_count;
    sim->flows = gw_memory_aligned(flows * sizeof(*sim->flows));
    for (uint32_t i = 0; i < flows && !sim->legacies; i++)
        if (scenario->workload.flows[i].follows)
            sim->legacies = gw_memory_aligned(flows * sizeof(*sim->legacies));
    for (uint32_t i = 0; i < flows && !sim->important; i++)
        if (scenario->workload.flows[i].unimportant)
            sim->important = gw_memory_aligned(flows * sizeof(*sim->important));
    sim->flow_numbers = gw_memory_aligned(flows * sizeof(*sim->flow_numbers));
    sim->acked_before = gw_memory_aligned(flows * sizeof(*sim->acked_before));
    sim->fired = gw_memory_aligned(scenario->workload.trigger_count * sizeof(*sim->fired));
    assign_places(sim);
    for (uint32_t place = 0; place < sim->node_count; place++)
        gw_sim_app_init(&sim->nodes[place].app);
    int error = gw_sim_jobs_prepare(sim, why);
    if (!error)
        error = gw_sim_calendar_open(sim, why);
    if (!error)
        error = build_pool(sim, why);
    if (!error && scenario->host.payload)
        error = gw_sim_payload_open(sim, why);
    if (!error)
        error = gw_sim_nodes_open(sim, why);
    if (!error)
        error = gw_sim_jobs_open(sim, why);
    if (!error)
        error = gw_sim_watch_open(sim, why);
    if (!error && options->pcap_file)
        error = gw_capture_open(sim, why);
    if (error) {
        gw_sim_close(sim);
        *result = NULL;
        return error;
    }
    gw_sim_install_routes(sim);
    gw_sim_controls_init(sim);
    build_starts(sim);
    return GW_OK;
}

void gw_sim_close(struct gw_sim *sim)
{
    if (!sim)
        return;
    gw_sim_calendar_close(sim);
    gw_sim_jobs_close(sim); /* some say good-bye to their endpoints */
    gw_sim_nodes_close(sim);
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        for (uint32_t i = 0; i < 3; i++)
            free(part->batches[i].keys);
        gw_memory_pool_clear(&part->memory);
        free(part->firings);
        free(part->rtt_counts);
    }
    if (sim->pkts)
        munmap(sim->pkts, sizeof(struct gw_pkt) << GW_SIM_INDEX_BITS);
    gw_capture_close(sim);
    gw_sim_payload_close(sim);
    gw_sim_labels_close(sim);
    gw_sim_watch_close(sim);
    gw_memory_pool_clear(&sim->memory);
    free(sim->parts);
    free(sim->place);
    free(sim->flows);
    for (uint32_t i = 0; sim->important && i < sim->scenario->workload.flow_count; i++)
        free(sim->important[i]);
    free(sim->important);
    free(sim->flow_numbers);
    free(sim->legacies);
    free(sim->acked_before);
    free(sim->fired);
    free(sim->controls);
    free(sim->samples);
    free(sim);
}
