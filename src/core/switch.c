/*
 * The switch; see switch.h. Per packet: look up the next-hop set, hash over it, enqueue; and at the
 * port's turn, dequeue. Queue disciplines live behind a table, one instance per port.
 */
#include "core/switch.h"

#include <string.h>

enum {
    ALIGNMENT = 64,
};

struct port {
    struct gw_port_stats stats;
    bool is_ready; /* see core/node.h */
    uint64_t qdisc_state[GW_QDISC_STATE_MAX / 8];
} __attribute__((aligned(ALIGNMENT)));

struct gw_switch {
    struct gw_node node;
    const struct gw_qdisc_ops *qdisc;
    const void *qdisc_cfg;
    struct gw_qdisc_port qdisc_port;
    struct gw_switch_routes routes;
    struct port *ports;
    uint32_t salt;
    uint64_t shared_bytes; /* 0: no shared pool */
    uint64_t shared_used;
    gw_q16 shared_alpha;
    struct gw_prng prng;
    struct gw_pkt_pool *pool;
    struct gw_switch_stats stats;
};

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
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

/* The port towards `pkt`'s destination, or UINT16_MAX. */
static uint16_t route(const struct gw_switch *sw, const struct gw_pkt *pkt)
{
    if (pkt->dst >= sw->routes.destination_count)
        return UINT16_MAX;
    uint16_t set_index = sw->routes.route[pkt->dst];
    if (set_index == UINT16_MAX)
        return UINT16_MAX;
    struct gw_switch_set set = sw->routes.sets[set_index];
    uint32_t choice = set.count == 1 ? 0 : ecmp_pick(pkt->q.key, pkt->entropy, sw->salt, set.count);
    return sw->routes.members[set.first + choice];
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
    if (out == UINT16_MAX) {
        sw->stats.unroutable++;
        gw_pkt_release(sw->pool, pkt);
        return;
    }
    struct port *port = &sw->ports[out];
    uint32_t before = backlog(port);
    uint32_t size = pkt->q.size;
    struct gw_pkt *victim = NULL;
    port->stats.in_bytes += size;
    enum gw_qdisc_verdict verdict = sw->qdisc->enqueue(
        port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port, pkt, pool_free(sw, port), &victim);
    sw->shared_used += backlog(port) - before;
    if (verdict == GW_QDISC_TRIMMED) {
        port->stats.trims++;
        port->stats.trimmed_bytes += before + size - backlog(port);
        gw_pkt_drop_payload(sw->pool, victim);
    } else if (verdict == GW_QDISC_DROPPED) {
        port->stats.drops++;
        port->stats.dropped_bytes += before + size - backlog(port);
        gw_pkt_release(sw->pool, victim);
    }
    if (backlog(port))
        gw_node_report(&sw->node, out, &port->is_ready);
}

static void switch_input(struct gw_node *node, uint16_t in, struct gw_pkt **pkts, uint32_t count,
                         gw_time now)
{
    (void)in;
    (void)now;
    for (uint32_t i = 0; i < count; i++)
        forward((struct gw_switch *)node, pkts[i]);
}

static uint32_t switch_output(struct gw_node *node, uint16_t out, struct gw_pkt **pkts,
                              uint32_t max, gw_time now)
{
    (void)now;
    struct gw_switch *sw = (struct gw_switch *)node;
    struct port *port = &sw->ports[out];
    uint32_t before = backlog(port);
    if (max == 0 || before == 0) {
        port->is_ready = before != 0;
        return before ? GW_OUTPUT_MORE : 0;
    }
    pkts[0] = sw->qdisc->dequeue(port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port);
    port->stats.out_packets++;
    port->stats.out_bytes += before - backlog(port);
    sw->shared_used -= before - backlog(port);
    port->is_ready = backlog(port) != 0;
    return port->is_ready ? 1 | GW_OUTPUT_MORE : 1;
}

/* A switch has no timers. */
static void switch_expire(struct gw_node *node, gw_time now)
{
    (void)node;
    (void)now;
}

static const struct gw_node_ops switch_ops = {
    .input = switch_input,
    .output = switch_output,
    .expire = switch_expire,
};

size_t gw_switch_size(const struct gw_switch_cfg *cfg)
{
    return aligned(sizeof(struct gw_switch)) + cfg->port_count * sizeof(struct port) +
           aligned(cfg->port_count * sizeof(uint16_t));
}

struct gw_switch *gw_switch_init(void *memory, const struct gw_switch_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % ALIGNMENT == 0);
    GW_ASSERT(cfg->qdisc->algo.state_size <= GW_QDISC_STATE_MAX);
    unsigned char *bytes = memory;
    struct gw_switch *sw = memory;
    struct port *ports = (struct port *)(void *)(bytes + aligned(sizeof(*sw)));
    memset(bytes, 0, gw_switch_size(cfg));
    *sw = (struct gw_switch){
        .node = {.ops = &switch_ops,
                 .deadline = GW_TIME_NEVER,
                 .ready = (uint16_t *)(void *)(ports + cfg->port_count),
                 .port_count = cfg->port_count},
        .qdisc = cfg->qdisc,
        .qdisc_cfg = cfg->qdisc_cfg,
        .qdisc_port = {.pool = cfg->pool, .prng = &sw->prng, .trim_size = cfg->trim_size},
        .routes = cfg->routes,
        .ports = ports,
        .shared_bytes = cfg->shared_bytes,
        .shared_alpha = cfg->shared_alpha,
        .prng = gw_prng_derive(cfg->seed, 0),
        .pool = cfg->pool,
    };
    sw->salt = (uint32_t)gw_prng_next(&sw->prng);
    for (uint16_t i = 0; i < cfg->port_count; i++)
        sw->qdisc->init(ports[i].qdisc_state, sw->qdisc_cfg, cfg->capacity[i]);
    return sw;
}

struct gw_node *gw_switch_node(struct gw_switch *sw)
{
    return &sw->node;
}

void gw_switch_set_routes(struct gw_switch *sw, const struct gw_switch_routes *routes)
{
    sw->routes = *routes;
}

struct gw_port_stats gw_switch_port_stats(const struct gw_switch *sw, uint16_t port)
{
    const struct gw_qdisc_state *state = (const void *)sw->ports[port].qdisc_state;
    struct gw_port_stats stats = sw->ports[port].stats;
    stats.marks = state->marks;
    return stats;
}

const struct gw_switch_stats *gw_switch_stats(const struct gw_switch *sw)
{
    return &sw->stats;
}

uint32_t gw_switch_backlog(const struct gw_switch *sw, uint16_t port)
{
    return backlog(&sw->ports[port]);
}
