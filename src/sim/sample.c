/*
 * Sampled time series: windows, rates and queues, taken in the serial phase at the first window
 * that begins at or after each multiple of the interval.
 */
#include "sim/sample.h"

#include "sim/jobs.h"
#include "topo/memory.h"

void gw_sim_sample_add(struct gw_sim *sim, struct gw_sample sample)
{
    sim->samples = gw_memory_grow(sim->samples, &sim->sample_room, (uint32_t)sim->sample_count + 1,
                                  sizeof(*sim->samples));
    sim->samples[sim->sample_count++] = sample;
}

/* The interval is at least a nanosecond, and at most 2^31 bytes are acknowledged in it. */
static void sample_flows(struct gw_sim *sim, gw_time at, enum gw_series series)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    const gw_time interval = sim->scenario->metrics.sample;
    for (uint32_t flow = 0; flow < workload->flow_count; flow++) {
        const struct gw_flow_result *result = &sim->flows[flow];
        const struct gw_sim_node *node = &sim->nodes[sim->place[workload->flows[flow].src]];
        struct gw_flow_info info;
        if (!result->started || result->outcome != GW_FLOW_PENDING ||
            !gw_endpoint_flow_info(node->endpoint, sim->flow_numbers[flow], &info))
            continue;
        uint64_t value = info.cwnd;
        if (series == GW_SERIES_RATE) {
            /* Bytes per interval to bit/s: 8e9 bits per byte and nanosecond. */
            value = (info.acked_bytes - sim->acked_before[flow]) * 8000000000 / (interval / GW_NS);
            sim->acked_before[flow] = info.acked_bytes;
        }
        gw_sim_sample_add(
            sim, (struct gw_sample){.at = at, .series = series, .subject = flow, .value = value});
    }
}

static void sample_queues(struct gw_sim *sim, gw_time at)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    for (uint32_t id = topo->host_count; id < topo->node_count; id++) {
        const struct gw_sim_node *node = &sim->nodes[sim->place[id]];
        for (uint16_t port = 0; port < topo->nodes[id].port_count; port++) {
            uint32_t backlog = gw_switch_backlog(node->sw, port);
            if (backlog)
                gw_sim_sample_add(sim, (struct gw_sample){.at = at,
                                                          .series = GW_SERIES_QUEUE,
                                                          .subject = id,
                                                          .port = port,
                                                          .value = backlog});
        }
    }
}

/* A switch that crashed counts anew. */
static void sample_collisions(struct gw_sim *sim, gw_time at)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    for (uint32_t id = topo->host_count; id < topo->node_count; id++) {
        struct gw_sim_node *node = &sim->nodes[sim->place[id]];
        if (!node->aggregate)
            continue;
        uint64_t count = gw_aggregate_stats(node->aggregate)->collisions;
        uint64_t before = count < node->collisions ? 0 : node->collisions;
        node->collisions = count;
        gw_sim_sample_add(sim, (struct gw_sample){.at = at,
                                                  .series = GW_SERIES_COLLISIONS,
                                                  .subject = id,
                                                  .value = count - before});
    }
}

void gw_sim_sample(struct gw_sim *sim, gw_time now)
{
    const struct gw_metrics_cfg *metrics = &sim->scenario->metrics;
    if (metrics->sample == 0)
        return;
    for (; sim->sample_next <= now; sim->sample_next += metrics->sample) {
        if (metrics->cwnd)
            sample_flows(sim, sim->sample_next, GW_SERIES_CWND);
        if (metrics->rate)
            sample_flows(sim, sim->sample_next, GW_SERIES_RATE);
        if (metrics->queue)
            sample_queues(sim, sim->sample_next);
        gw_sim_jobs_sample(sim, sim->sample_next);
        if (metrics->collisions)
            sample_collisions(sim, sim->sample_next);
    }
}

const struct gw_sample *gw_sim_samples(const struct gw_sim *sim, uint64_t *count)
{
    *count = sim->sample_count;
    return sim->samples;
}
