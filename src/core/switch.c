/*
 * The switch; see switch.h. Per packet: look up the next-hop set, hash over it, enqueue; and at the
 * port's turn, dequeue. Queue disciplines live behind a table, one instance per port.
 */
#include "core/switch.h"

#include <string.h>

#include "base/align.h"

/* What every packet touches, in as few cache lines as possible. */
struct port {
    uint64_t in_bytes;
    uint64_t out_bytes;
    uint64_t out_packets;
    bool is_ready; /* see core/node.h */
    uint64_t qdisc_state[];
};

/* What only losses touch. */
struct port_losses {
    uint64_t trimmed_bytes;
    uint64_t dropped_bytes;
    uint64_t trims;
    uint64_t drops;
};

struct gw_switch {
    struct gw_node node;
    const struct gw_qdisc_ops *qdisc;
    const void *qdisc_cfg;
    struct gw_qdisc_port qdisc_port;
    struct gw_switch_routes routes;
    unsigned char *ports; /* struct port, port_stride apart */
    size_t port_stride;
    struct port_losses *losses; /* per port */
    uint32_t salt;
    uint64_t shared_bytes; /* 0: no shared pool */
    uint64_t shared_used;
    gw_q16 shared_alpha;
    struct gw_aggregate *aggregate; /* or NULL */
    gw_time leak;                   /* its cfg.leak */
    struct gw_prng prng;
    struct gw_pkt_pool *pool;
    struct gw_switch_stats stats;
};

static struct port *port_at(const struct gw_switch *sw, uint16_t index)
{
    return (struct port *)(void *)(sw->ports + index * sw->port_stride);
}

static uint32_t backlog(const struct port *port)
{
    return ((const struct gw_qdisc_state *)port->qdisc_state)->backlog;
}

/*
 * ECMP: 96 bits to an index below `count`. Two rounds of multiply and fold, as in a finaliser; only
 * the high half of the last product is used, where all input bits meet.
 */
static uint32_t ecmp_pick(uint32_t key, uint16_t entropy, uint32_t salt, uint32_t count)
{
    uint64_t x = ((uint64_t)key << 16 | entropy) ^ (uint64_t)salt << 32;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(((x >> 32) * count) >> 32);
}

/* The port towards `pkt`'s destination, or GW_ROUTE_NONE. */
static uint16_t route(const struct gw_switch *sw, const struct gw_pkt *pkt)
{
    const struct gw_switch_routes *routes = &sw->routes;
    if (pkt->dst >= routes->destination_count)
        return GW_ROUTE_NONE;
    uint32_t low = pkt->dst & ((1u << routes->block_shift) - 1);
    uint32_t leaf = routes->blocks[pkt->dst >> routes->block_shift];
    uint16_t entry = routes->leaves[leaf << routes->block_shift | low];
    if (!(entry & GW_ROUTE_SET) || entry == GW_ROUTE_NONE)
        return entry;
    struct gw_switch_set set = routes->sets[entry & ~GW_ROUTE_SET];
    return routes->members[set.first + ecmp_pick(pkt->q.key, pkt->entropy, sw->salt, set.count)];
}

/* Bytes that this port may still take from the shared pool. */
static uint64_t pool_free(const struct gw_switch *sw, const struct port *port)
{
    if (sw->shared_bytes == 0)
        return UINT64_MAX;
    uint64_t room = sw->shared_bytes - sw->shared_used;
    uint64_t share = (uint64_t)gw_q16_mul((gw_q16)room, sw->shared_alpha);
    uint64_t own = share > backlog(port) ? share - backlog(port) : 0;
    return own < room ? own : room;
}

static void forward(struct gw_switch *sw, struct gw_pkt *pkt)
{
    uint16_t out = route(sw, pkt);
    if (out == GW_ROUTE_NONE) {
        sw->stats.unroutable++;
        gw_pkt_release(sw->pool, pkt);
        return;
    }
    struct port *port = port_at(sw, out);
    uint32_t before = backlog(port);
    uint32_t size = pkt->q.size;
    struct gw_pkt *victim = NULL;
    port->in_bytes += size;
    enum gw_qdisc_verdict verdict = sw->qdisc->enqueue(
        port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port, pkt, pool_free(sw, port), &victim);
    sw->shared_used += (uint64_t)backlog(port) - before; /* may fall: a tail was cut */
    if (verdict == GW_QDISC_TRIMMED) {
        sw->losses[out].trims++;
        sw->losses[out].trimmed_bytes += before + size - backlog(port);
        gw_pkt_drop_payload(sw->pool, victim);
    } else if (verdict == GW_QDISC_DROPPED) {
        sw->losses[out].drops++;
        sw->losses[out].dropped_bytes += before + size - backlog(port);
        gw_pkt_release(sw->pool, victim);
    }
    if (backlog(port))
        gw_node_report(&sw->node, out, &port->is_ready);
}

/* One more packet like `pkt` towards `dst`, sharing its payload; NULL when the pool is empty. */
static struct gw_pkt *copy_pkt(struct gw_switch *sw, const struct gw_pkt *pkt)
{
    struct gw_pkt *copy = gw_pkt_claim(sw->pool);
    if (!copy) {
        sw->stats.copies_lost++;
        return NULL;
    }
    *copy = *pkt;
    if (copy->buf != GW_BUF_NONE)
        gw_buf_share(sw->pool->bufs, copy->buf);
    return copy;
}

static void forward_to(struct gw_switch *sw, struct gw_pkt *pkt, uint32_t dst)
{
    pkt->dst = dst;
    pkt->q.key = gw_flow_key(pkt->src, dst, pkt->flow);
    forward(sw, pkt);
}

/* A result frees its aggregator here and goes on to all members of its job below this switch. */
static void multiply(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    gw_aggregate_parameter(sw->aggregate, pkt, now);
    const struct gw_aggregate_job *job = gw_aggregate_job(sw->aggregate, pkt->flow);
    if (!job || job->epoch != pkt->epoch || pkt->agg_flags & GW_AGG_UNICAST) {
        forward(sw, pkt);
        return;
    }
    for (uint32_t i = 0; i + 1 < job->member_count; i++) {
        struct gw_pkt *copy = copy_pkt(sw, pkt);
        if (copy)
            forward_to(sw, copy, job->members[i]);
    }
    forward_to(sw, pkt, job->members[job->member_count - 1]);
}

static void aggregate(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    if (pkt->q.kind == GW_PKT_PARAM)
        multiply(sw, pkt, now);
    else if (gw_aggregate_gradient(sw->aggregate, pkt, now))
        forward(sw, pkt);
    /* While anything is held, the sweep looks after what nobody will come for. */
    if (sw->node.deadline == GW_TIME_NEVER && gw_aggregate_taken(sw->aggregate))
        sw->node.deadline = gw_time_add(now, sw->leak);
}

static void switch_input(struct gw_node *node, uint16_t in, struct gw_pkt **pkts, uint32_t count,
                         gw_time now)
{
    (void)in;
    struct gw_switch *sw = (struct gw_switch *)node;
    for (uint32_t i = 0; i < count; i++) {
        if (sw->aggregate && (pkts[i]->q.kind == GW_PKT_GRAD || pkts[i]->q.kind == GW_PKT_PARAM))
            aggregate(sw, pkts[i], now);
        else
            forward(sw, pkts[i]);
    }
}

static uint32_t switch_output(struct gw_node *node, uint16_t out, struct gw_pkt **pkts,
                              uint32_t max, gw_time now)
{
    (void)now;
    struct gw_switch *sw = (struct gw_switch *)node;
    struct port *port = port_at(sw, out);
    uint32_t before = backlog(port);
    if (max == 0 || before == 0) {
        port->is_ready = before != 0;
        return before ? GW_OUTPUT_MORE : 0;
    }
    pkts[0] = sw->qdisc->dequeue(port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port);
    port->out_packets++;
    port->out_bytes += before - backlog(port);
    sw->shared_used -= before - backlog(port);
    port->is_ready = backlog(port) != 0;
    return port->is_ready ? 1 | GW_OUTPUT_MORE : 1;
}

/* The only timer of a switch: the sweep for aggregators that nobody will come for. */
static void switch_expire(struct gw_node *node, gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    if (node->deadline == GW_TIME_NEVER || gw_time_before(now, node->deadline))
        return;
    gw_aggregate_sweep(sw->aggregate, GW_AGGREGATORS_MAX, now);
    node->deadline = gw_aggregate_taken(sw->aggregate) ? gw_time_add(now, sw->leak) : GW_TIME_NEVER;
}

static const struct gw_node_ops switch_ops = {
    .input = switch_input,
    .output = switch_output,
    .expire = switch_expire,
};

static size_t port_stride(const struct gw_switch_cfg *cfg)
{
    return gw_aligned(sizeof(struct port) + cfg->qdisc->algo.state_size);
}

size_t gw_switch_size(const struct gw_switch_cfg *cfg)
{
    return gw_aligned(sizeof(struct gw_switch)) + cfg->port_count * port_stride(cfg) +
           gw_aligned(cfg->port_count * sizeof(uint16_t)) +
           gw_aligned(cfg->port_count * sizeof(struct port_losses));
}

struct gw_switch *gw_switch_init(void *memory, const struct gw_switch_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->qdisc->algo.state_size <= GW_QDISC_STATE_MAX);
    struct gw_switch *sw = memory;
    memset(memory, 0, gw_switch_size(cfg));
    unsigned char *ready = (unsigned char *)memory + gw_aligned(sizeof(*sw));
    unsigned char *ports = ready + gw_aligned(cfg->port_count * sizeof(uint16_t));
    unsigned char *losses = ports + cfg->port_count * port_stride(cfg);
    *sw = (struct gw_switch){
        .node = {.ops = &switch_ops,
                 .deadline = GW_TIME_NEVER,
                 .ready = (uint16_t *)(void *)ready,
                 .port_count = cfg->port_count},
        .qdisc = cfg->qdisc,
        .qdisc_cfg = cfg->qdisc_cfg,
        .qdisc_port = {.pool = cfg->pool, .prng = &sw->prng, .trim_size = cfg->trim_size},
        .routes = cfg->routes,
        .ports = ports,
        .port_stride = port_stride(cfg),
        .losses = (struct port_losses *)(void *)losses,
        .aggregate = cfg->aggregate,
        .leak = cfg->aggregate ? gw_aggregate_leak(cfg->aggregate) : 0,
        .shared_bytes = cfg->shared_bytes,
        .shared_alpha = cfg->shared_alpha,
        .prng = gw_prng_derive(cfg->seed, 0),
        .pool = cfg->pool,
    };
    sw->salt = (uint32_t)gw_prng_next(&sw->prng);
    for (uint16_t i = 0; i < cfg->port_count; i++)
        sw->qdisc->init(port_at(sw, i)->qdisc_state, sw->qdisc_cfg, cfg->capacity[i]);
    return sw;
}

uint32_t gw_switch_fini(struct gw_switch *sw)
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < sw->node.port_count; i++)
        for (struct port *port = port_at(sw, i); backlog(port); count++)
            gw_pkt_release(sw->pool,
                           sw->qdisc->dequeue(port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port));
    return count;
}

struct gw_node *gw_switch_node(struct gw_switch *sw)
{
    return &sw->node;
}

void gw_switch_set_routes(struct gw_switch *sw, const struct gw_switch_routes *routes)
{
    sw->routes = *routes;
}

struct gw_port_stats gw_switch_port_stats(const struct gw_switch *sw, uint16_t index)
{
    const struct port *port = port_at(sw, index);
    const struct port_losses *losses = &sw->losses[index];
    return (struct gw_port_stats){
        .in_bytes = port->in_bytes,
        .out_bytes = port->out_bytes,
        .trimmed_bytes = losses->trimmed_bytes,
        .dropped_bytes = losses->dropped_bytes,
        .out_packets = port->out_packets,
        .marks = ((const struct gw_qdisc_state *)port->qdisc_state)->marks,
        .trims = losses->trims,
        .drops = losses->drops,
    };
}

const struct gw_switch_stats *gw_switch_stats(const struct gw_switch *sw)
{
    return &sw->stats;
}

uint32_t gw_switch_backlog(const struct gw_switch *sw, uint16_t port)
{
    return backlog(port_at(sw, port));
}
