/*
 * What packets cost a simulated host: a queue in front of the endpoint that one server works off in
 * the order of arrival, at a time per packet plus a time per byte.
 *
 * The queue has a limit for data (control always gets in). Beyond it a packet is dropped and
 * counted or, in a lossless network, the host pauses its links in time, by the rules of the core's
 * pause.h. A PAUSE that arrives passes by the queue, as in a network adapter.
 *
 * A host that sleeps, as a process does that gets no processor, leaves in the queue what comes, and
 * goes on with it when it wakes.
 *
 * A packet in the queue carries the port of its arrival in q.in.
 */
#include "sim/host_cost.h"

#include <stdlib.h>
#include <string.h>

#include "sim/sim_impl.h"
#include "topo/memory.h"

struct gw_sim_host_cost *gw_sim_host_cost_open(const struct gw_host_cost_cfg *cfg, bool is_lossless,
                                               uint16_t port_count)
{
    struct gw_sim_host_cost *cost = gw_memory_aligned(sizeof(*cost));
    *cost = (struct gw_sim_host_cost){
        .rx_cost = cfg->rx_cost,
        .rx_byte_time = cfg->rx_rate_bps ? gw_byte_time_from_bps(cfg->rx_rate_bps) : 0,
        .tx_cost = cfg->tx_cost,
        .tx_byte_time = cfg->tx_rate_bps ? gw_byte_time_from_bps(cfg->tx_rate_bps) : 0,
        .rx_queue = cfg->rx_queue,
        .done_at = GW_TIME_NEVER,
        .tell_at = GW_TIME_NEVER,
        .port_count = port_count,
    };
    if (is_lossless && cfg->rx_queue) {
        cost->meters = gw_memory_aligned(port_count * sizeof(*cost->meters));
        cost->pause = cfg->pause;
    }
    return cost;
}

void gw_sim_host_cost_close(struct gw_sim_host_cost *cost)
{
    if (cost)
        free(cost->meters);
    free(cost);
}

uint64_t gw_sim_host_cost_crash(struct gw_sim *sim, struct gw_sim_node *node)
{
    struct gw_sim_host_cost *cost = node->cost;
    struct gw_pkt_pool *pool = &gw_sim_part_of(sim, sim->place[node->id])->pool;
    uint64_t lost = cost->queue.count;
    while (cost->queue.count)
        gw_pkt_release(pool, gw_pkt_fifo_pop(&cost->queue, pool));
    if (cost->meters)
        memset(cost->meters, 0, cost->port_count * sizeof(*cost->meters));
    cost->done_at = cost->tell_at = GW_TIME_NEVER;
    cost->asleep_until = 0;
    cost->data_bytes = cost->drops = 0; /* its drops are in the books already */
    return lost;
}

void gw_sim_host_cost_count(const struct gw_sim_host_cost *cost, struct gw_sim_totals *totals)
{
    totals->host_drops += cost->drops;
    for (uint16_t port = 0; cost->meters && port < cost->port_count; port++)
        totals->pauses += cost->meters[port].pauses;
}

gw_time gw_sim_host_tx_time(const struct gw_sim_host_cost *cost, struct gw_pkt *const *pkts,
                            uint32_t count)
{
    gw_time time = count * cost->tx_cost;
    for (uint32_t i = 0; i < count; i++)
        time += gw_serialisation(cost->tx_byte_time, pkts[i]->q.size);
    return time;
}

static bool is_control(const struct gw_pkt *pkt)
{
    return pkt->q.class == GW_CLASS_CONTROL;
}

static gw_time time_of(const struct gw_sim_host_cost *cost, const struct gw_pkt *pkt)
{
    return cost->rx_cost + gw_serialisation(cost->rx_byte_time, pkt->q.size);
}

/* Tells each link what it must be told; again when a PAUSE must be repeated. */
static void tell(struct gw_sim_node *node, gw_time now)
{
    struct gw_sim_host_cost *cost = node->cost;
    cost->tell_at = GW_TIME_NEVER;
    for (uint16_t port = 0; port < cost->port_count; port++) {
        gw_time time;
        if (!gw_pause_tell(&cost->meters[port], &cost->pause, &time))
            continue;
        bool was_told = gw_endpoint_pause(node->endpoint, port, time);
        if (time || !was_told)
            cost->tell_at = now + gw_pause_refresh(&cost->pause);
    }
}

void gw_sim_host_sleep(struct gw_sim_host_cost *cost, gw_time until)
{
    cost->asleep_until = gw_sim_host_awake(cost, until);
    cost->done_at = gw_sim_host_awake(cost, cost->done_at);
}

void gw_sim_host_put(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t port,
                     struct gw_pkt *pkt, gw_time now)
{
    struct gw_sim_host_cost *cost = node->cost;
    if (pkt->q.kind == GW_PKT_PAUSE) {
        gw_node_input(node->core, port, &pkt, 1, now);
        return;
    }
    if (!is_control(pkt)) {
        if (cost->rx_queue && cost->data_bytes + pkt->q.size > cost->rx_queue) {
            cost->drops++;
            gw_pkt_release(&part->pool, pkt);
            return;
        }
        cost->data_bytes += pkt->q.size;
        if (cost->meters && gw_pause_take(&cost->meters[port], &cost->pause, pkt->q.size))
            cost->tell_at = now;
    }
    if (cost->queue.count == 0)
        cost->done_at = gw_time_add(gw_sim_host_awake(cost, now), time_of(cost, pkt));
    pkt->q.in = port;
    gw_pkt_fifo_push(&cost->queue, &part->pool, pkt);
}

static void serve(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now)
{
    struct gw_sim_host_cost *cost = node->cost;
    struct gw_pkt *pkt = gw_pkt_fifo_pop(&cost->queue, &part->pool);
    uint16_t port = pkt->q.in;
    pkt->q.in = 0;
    cost->done_at = GW_TIME_NEVER;
    if (cost->queue.count)
        cost->done_at = now + time_of(cost, gw_pkt_at(&part->pool, cost->queue.head));
    if (!is_control(pkt)) {
        cost->data_bytes -= pkt->q.size;
        if (cost->meters && gw_pause_give(&cost->meters[port], &cost->pause, pkt->q.size))
            cost->tell_at = now;
    }
    gw_node_input(node->core, port, &pkt, 1, now);
}

void gw_sim_host_serve(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now)
{
    if (node->cost->done_at == now)
        serve(part, node, now);
    else
        tell(node, now);
}
