/*
 * The switch; see switch.h. Per packet: look up the next-hop set, hash over it, enqueue; and at the
 * port's turn, dequeue. Queue disciplines live behind a table, one instance per port.
 */
#include "core/switch/switch.h"

#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "core/job.h"
#include "core/switch/switch_jobs.h"

/* What every packet touches, in as few cache lines as possible. */
struct port {
    uint64_t in_bytes;
    uint64_t out_bytes;
    uint64_t out_packets;
    bool is_ready; /* see core/node.h */
    bool is_edge;
    uint16_t group;      /* port by which its host is reached with others, or GW_ROUTE_NONE */
    struct gw_pkt *kept; /* with trains: the first of the next one, out of the queue already */
    uint64_t qdisc_state[];
};

/* What only losses touch. */
struct port_losses {
    uint64_t trimmed_bytes;
    uint64_t dropped_bytes;
    uint64_t trims;
    uint64_t drops;
    uint64_t control_drops;
};

struct gw_switch {
    struct gw_node node;
    const struct gw_qdisc_ops *qdisc;
    const void *qdisc_cfg;
    struct gw_qdisc_port qdisc_port;
    struct gw_switch_routes routes;
    bool learns; /* instead of having routes */
    bool turns;  /* the packet in hand is our own answer */
    bool has_groups;
    uint16_t in; /* port by which it came */
    uint16_t uplink;
    uint32_t train;
    struct gw_learned learned;
    unsigned char *ports; /* struct port, port_stride apart */
    size_t port_stride;
    struct port_losses *losses; /* per port */
    uint32_t salt;
    uint64_t shared_bytes; /* 0: no shared pool */
    uint64_t shared_used;
    gw_q16 shared_alpha;
    struct gw_aggregate *aggregate; /* or NULL */
    gw_time leak;                   /* its cfg.leak */
    struct gw_slots *slots;         /* or NULL */
    struct gw_lossless *lossless;   /* or NULL */
    struct gw_prng prng;
    struct gw_pkt_pool *pool;
    struct gw_switch_stats stats;
    gw_time sweep_at; /* next sweep of aggregators, or never */
    struct gw_switch_jobs jobs;
};

static struct port *port_at(const struct gw_switch *sw, uint16_t index)
{
    return (struct port *)(void *)(sw->ports + index * sw->port_stride);
}

/* In the queue; gw_switch_backlog() has the rest. */
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

static uint16_t route_entry(const struct gw_switch *sw, uint32_t dst)
{
    const struct gw_switch_routes *routes = &sw->routes;
    if (sw->learns) {
        uint16_t port = gw_learned_port(&sw->learned, dst);
        return port == GW_LEARNED_NONE ? sw->uplink : port;
    }
    if (dst >= routes->destination_count)
        return GW_ROUTE_NONE;
    uint32_t low = dst & ((1u << routes->block_shift) - 1);
    uint32_t leaf = routes->blocks[dst >> routes->block_shift];
    return routes->leaves[leaf << routes->block_shift | low];
}

static bool is_set(uint16_t entry)
{
    return entry & GW_ROUTE_SET && entry != GW_ROUTE_NONE;
}

/* Which of `routes.members` a packet takes for its destination's set. */
static uint32_t spread(const struct gw_switch *sw, const struct gw_pkt *pkt, uint32_t index)
{
    const struct gw_switch_routes *routes = &sw->routes;
    struct gw_switch_set set = routes->sets[index];
    if (routes->turns) {
        uint16_t turn = routes->turns[index];
        routes->turns[index] = turn + 1u < set.count ? turn + 1 : 0;
        return set.first + turn;
    }
    if (routes->label_divisor)
        return set.first + pkt->entropy / routes->label_divisor % set.count;
    return set.first + ecmp_pick(pkt->q.key, pkt->entropy, sw->salt, set.count);
}

/* The port towards `pkt`'s destination, or GW_ROUTE_NONE. */
static uint16_t route(const struct gw_switch *sw, const struct gw_pkt *pkt)
{
    uint16_t entry = route_entry(sw, pkt->dst);
    if (sw->learns && entry == sw->in && !sw->turns)
        return GW_ROUTE_NONE;
    if (!is_set(entry))
        return entry;
    return sw->routes.members[spread(sw, pkt, entry & ~GW_ROUTE_SET)];
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

static void enqueue(struct gw_switch *sw, uint16_t out, struct gw_pkt *pkt, gw_time now)
{
    struct port *port = port_at(sw, out);
    uint32_t before = backlog(port);
    uint32_t size = pkt->q.size;
    struct gw_pkt *victim = NULL;
    port->in_bytes += size;
    if (sw->lossless)
        gw_lossless_queued(sw->lossless, out, pkt, now);
    enum gw_qdisc_verdict verdict = sw->qdisc->enqueue(
        port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port, pkt, pool_free(sw, port), &victim);
    sw->shared_used += (uint64_t)backlog(port) - before; /* may fall: a tail was cut */
    if (verdict == GW_QDISC_TRIMMED) {
        sw->losses[out].trims++;
        sw->losses[out].trimmed_bytes += before + size - backlog(port);
        if (sw->lossless)
            gw_lossless_trimmed(sw->lossless, out, victim,
                                before + size - backlog(port) + victim->q.size, now);
        gw_pkt_drop_payload(sw->pool, victim);
    } else if (verdict == GW_QDISC_DROPPED) {
        sw->losses[out].drops++;
        sw->losses[out].control_drops += victim->q.class == GW_CLASS_CONTROL;
        sw->losses[out].dropped_bytes += before + size - backlog(port);
        if (sw->lossless)
            gw_lossless_left(sw->lossless, out, victim, now);
        gw_pkt_release(sw->pool, victim);
    }
    if (backlog(port))
        gw_node_report(&sw->node, out, &port->is_ready);
}

static void forward(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    uint16_t out = route(sw, pkt);
    if (out != GW_ROUTE_NONE) {
        enqueue(sw, out, pkt, now);
        return;
    }
    sw->stats.unroutable += !sw->learns || pkt->dst != GW_ADDRESS_NONE;
    gw_pkt_release(sw->pool, pkt);
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

static void forward_to(struct gw_switch *sw, struct gw_pkt *pkt, uint32_t dst, gw_time now)
{
    pkt->dst = dst;
    pkt->q.key = gw_flow_key(pkt->src, dst, pkt->flow);
    forward(sw, pkt, now);
}

/* The port by which `dst` is reached with others at once, or GW_ROUTE_NONE. */
static uint16_t group_of(const struct gw_switch *sw, uint32_t dst)
{
    uint16_t entry = sw->has_groups ? route_entry(sw, dst) : GW_ROUTE_NONE;
    return entry == GW_ROUTE_NONE || is_set(entry) ? GW_ROUTE_NONE : port_at(sw, entry)->group;
}

/* Sends the packet to `dst`, by `group` unless that is GW_ROUTE_NONE. */
static void forward_by(struct gw_switch *sw, struct gw_pkt *pkt, uint32_t dst, uint16_t group,
                       gw_time now)
{
    if (group == GW_ROUTE_NONE) {
        forward_to(sw, pkt, dst, now);
        return;
    }
    pkt->dst = dst;
    enqueue(sw, group, pkt, now);
}

/* Sends the packet to each of `count` addresses, at least one; to those of a group once. */
static void forward_to_each(struct gw_switch *sw, struct gw_pkt *pkt, const uint32_t *dsts,
                            uint32_t count, gw_time now)
{
    uint16_t group = group_of(sw, dsts[0]), served = group; /* jobs have one */
    uint32_t last = 0;                                      /* who is to get the packet itself */
    for (uint32_t i = 1; i < count; i++) {
        uint16_t next = group_of(sw, dsts[i]);
        if (next != GW_ROUTE_NONE && next == served) {
            sw->stats.copies_saved++;
            continue;
        }
        struct gw_pkt *copy = copy_pkt(sw, pkt);
        if (copy)
            forward_by(sw, copy, dsts[last], group, now);
        last = i;
        group = next;
        served = next == GW_ROUTE_NONE ? served : next;
    }
    forward_by(sw, pkt, dsts[last], group, now);
}

/* Whether a result on its way to `dst` is for all below this switch, not for others beyond it. */
static bool is_member(const struct gw_aggregate_job *job, uint32_t dst)
{
    for (uint32_t i = 0; i < job->member_count; i++)
        if (job->members[i] == dst)
            return true;
    return false;
}

/* A result frees its aggregator here and goes on to all members of its job below this switch. */
static void multiply(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    gw_aggregate_parameter(sw->aggregate, pkt, now);
    const struct gw_aggregate_job *job = gw_aggregate_job(sw->aggregate, pkt->flow);
    if (!job || job->epoch != pkt->epoch || pkt->agg_flags & GW_AGG_UNICAST ||
        !is_member(job, pkt->dst)) {
        forward(sw, pkt, now);
        return;
    }
    forward_to_each(sw, pkt, job->members, job->member_count, now);
}

/* The earliest of the switch's timers. */
static void set_deadline(struct gw_switch *sw)
{
    gw_time at = sw->lossless ? gw_lossless_deadline(sw->lossless) : GW_TIME_NEVER;
    if (gw_deadline_before(sw->sweep_at, at))
        at = sw->sweep_at;
    sw->node.deadline = gw_deadline_before(sw->jobs.deadline, at) ? sw->jobs.deadline : at;
}

static void aggregate(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    if (pkt->q.kind == GW_PKT_PARAM)
        multiply(sw, pkt, now);
    else if (gw_aggregate_gradient(sw->aggregate, pkt, now))
        forward(sw, pkt, now);
    /* While anything is held, the sweep looks after what nobody will come for. */
    if (sw->sweep_at == GW_TIME_NEVER && gw_aggregate_taken(sw->aggregate)) {
        sw->sweep_at = gw_time_add(now, sw->leak);
        set_deadline(sw);
    }
}

static bool join(const struct gw_switch *sw, struct gw_pkt *pkt)
{
    uint16_t entry = route_entry(sw, pkt->dst), out = route(sw, pkt);
    bool spreads = is_set(entry) && sw->routes.sets[entry & ~GW_ROUTE_SET].count > 1;
    bool is_edge = out != GW_ROUTE_NONE && port_at(sw, out)->is_edge;
    return gw_switch_jobs_join(&sw->jobs, pkt, is_edge, spreads);
}

static void job_control(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    bool is_good = true;
    if (pkt->agg_flags == GW_JOB_JOIN)
        is_good = join(sw, pkt);
    else if (gw_switch_jobs_is_addressed(&sw->jobs, pkt)) {
        sw->turns = true;
        is_good = gw_switch_jobs_input(&sw->jobs, pkt, now);
    }
    if (is_good) {
        forward(sw, pkt, now);
    } else {
        sw->stats.malformed++;
        gw_pkt_release(sw->pool, pkt);
    }
    sw->turns = false;
    set_deadline(sw);
}

/* A gradient for slots ends here, or turns into a result. */
static void aggregate_in_slot(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    const uint32_t *dsts;
    uint32_t count = gw_slots_gradient(sw->slots, pkt, &dsts);
    if (count)
        forward_to_each(sw, pkt, dsts, count, now);
}

/* Notes where the packet came from; false: it is dropped. */
static bool learn(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    uint16_t known = sw->in == sw->uplink ? gw_learned_port(&sw->learned, pkt->src) : sw->in;
    int code = GW_OK;
    if (sw->in != sw->uplink)
        code = gw_learned_note(&sw->learned, pkt->src, sw->in, now);
    else if (known != GW_LEARNED_NONE)
        code = GW_ERR_INVALID;
    if (code == GW_OK)
        return true;
    sw->stats.spoofed += code == GW_ERR_INVALID;
    sw->stats.unlearned += code == GW_ERR_NO_ROOM;
    gw_pkt_release(sw->pool, pkt);
    return false;
}

static void switch_input(struct gw_node *node, uint16_t in, struct gw_pkt **pkts, uint32_t count,
                         gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    sw->in = in;
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *pkt = pkts[i];
        if (sw->learns && !learn(sw, pkt, now))
            continue;
        bool is_gradient = pkt->q.kind == GW_PKT_GRAD;
        bool is_tensor = is_gradient || pkt->q.kind == GW_PKT_PARAM;
        bool is_slots = is_tensor && pkt->agg_flags & GW_AGG_SLOT;
        if (sw->slots && is_slots && is_gradient)
            aggregate_in_slot(sw, pkt, now);
        else if (sw->aggregate && is_tensor && !is_slots)
            aggregate(sw, pkt, now);
        else if (pkt->q.kind == GW_PKT_JOB)
            job_control(sw, pkt, now);
        else
            forward(sw, pkt, now);
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

/* Whether `pkt` may follow `last` in a train: all but the last are of one length. */
static bool may_follow(const struct gw_pkt *first, const struct gw_pkt *last,
                       const struct gw_pkt *pkt)
{
    return pkt->dst == first->dst && pkt->entropy == first->entropy &&
           pkt->q.kind == first->q.kind && pkt->q.class == first->q.class &&
           pkt->q.ecn == first->q.ecn && last->q.size == first->q.size &&
           pkt->q.size <= first->q.size;
}

/* The next packet of a port: the kept one, or the head of the queue; NULL when there is none. */
static struct gw_pkt *take_next(struct gw_switch *sw, struct port *port)
{
    struct gw_pkt *pkt = port->kept;
    port->kept = NULL;
    if (pkt || backlog(port) == 0)
        return pkt;
    uint32_t before = backlog(port);
    pkt = sw->qdisc->dequeue(port->qdisc_state, sw->qdisc_cfg, &sw->qdisc_port);
    sw->shared_used -= before - backlog(port);
    return pkt;
}

static uint32_t train_output(struct gw_node *node, uint16_t out, struct gw_pkt **pkts, uint32_t max,
                             gw_time now)
{
    (void)now;
    struct gw_switch *sw = (struct gw_switch *)node;
    struct port *port = port_at(sw, out);
    uint32_t count = 0;
    max = max < sw->train ? max : sw->train;
    while (count < max) {
        struct gw_pkt *pkt = take_next(sw, port);
        if (!pkt)
            break;
        if (count > 0 && !may_follow(pkts[0], pkts[count - 1], pkt)) {
            port->kept = pkt;
            break;
        }
        port->out_packets++;
        port->out_bytes += pkt->q.size;
        pkts[count++] = pkt;
    }
    port->is_ready = port->kept || backlog(port);
    return port->is_ready ? count | GW_OUTPUT_MORE : count;
}

/* Makes `out` ready if it has anything that it may send now. */
static void report_lossless(struct gw_switch *sw, uint16_t out)
{
    struct port *port = port_at(sw, out);
    if (gw_lossless_is_ready(sw->lossless, out, backlog(port)))
        gw_node_report(&sw->node, out, &port->is_ready);
}

static void lossless_input(struct gw_node *node, uint16_t in, struct gw_pkt **pkts, uint32_t count,
                           gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    for (uint32_t i = 0; i < count; i++) {
        if (pkts[i]->q.kind == GW_PKT_PAUSE) {
            if (gw_lossless_obey(sw->lossless, in, pkts[i]->pause, now))
                report_lossless(sw, in);
            gw_pkt_release(sw->pool, pkts[i]);
        } else {
            pkts[i]->q.rank = in;
            switch_input(node, in, &pkts[i], 1, now);
        }
    }
    set_deadline(sw);
}

/* A PAUSE first; then, while the port is shut, control alone, which every discipline serves first.
 */
static uint32_t lossless_output(struct gw_node *node, uint16_t out, struct gw_pkt **pkts,
                                uint32_t max, gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    struct port *port = port_at(sw, out);
    uint32_t count = 0;
    if (max > 0 && (pkts[0] = gw_lossless_pause(sw->lossless, out, sw->pool,
                                                sw->qdisc_port.trim_size, now)) != NULL) {
        count = 1;
    } else if (gw_lossless_is_ready(sw->lossless, out, backlog(port))) {
        count = switch_output(node, out, pkts, max, now) & ~GW_OUTPUT_MORE;
        if (count) {
            gw_lossless_left(sw->lossless, out, pkts[0], now);
            pkts[0]->q.rank = 0;
        }
    }
    set_deadline(sw);
    port->is_ready = gw_lossless_is_ready(sw->lossless, out, backlog(port));
    return port->is_ready ? count | GW_OUTPUT_MORE : count;
}

/* The timers of a switch: for aggregators that nobody will come for, jobs likewise, and pauses. */
static void switch_expire(struct gw_node *node, gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    if (node->deadline == GW_TIME_NEVER || gw_time_before(now, node->deadline))
        return;
    sw->stats.jobs_idle += gw_switch_jobs_expire(&sw->jobs, now);
    if (sw->sweep_at != GW_TIME_NEVER && !gw_time_before(now, sw->sweep_at)) {
        gw_aggregate_sweep(sw->aggregate, GW_AGGREGATORS_MAX, now);
        sw->sweep_at =
            gw_aggregate_taken(sw->aggregate) ? gw_time_add(now, sw->leak) : GW_TIME_NEVER;
    }
    uint16_t port;
    while (sw->lossless && (port = gw_lossless_expire(sw->lossless, now)) != GW_LOSSLESS_NONE)
        report_lossless(sw, port);
    set_deadline(sw);
}

static const struct gw_node_ops switch_ops = {
    .input = switch_input,
    .output = switch_output,
    .expire = switch_expire,
};

static const struct gw_node_ops train_ops = {
    .input = switch_input,
    .output = train_output,
    .expire = switch_expire,
};

static const struct gw_node_ops lossless_ops = {
    .input = lossless_input,
    .output = lossless_output,
    .expire = switch_expire,
};

static size_t port_stride(const struct gw_switch_cfg *cfg)
{
    return gw_aligned(sizeof(struct port) + cfg->qdisc->algo.state_size);
}

static size_t learned_size(const struct gw_switch_cfg *cfg)
{
    return cfg->learned_max ? gw_learned_size(cfg->learned_max, cfg->port_count) : 0;
}

size_t gw_switch_size(const struct gw_switch_cfg *cfg)
{
    return gw_aligned(sizeof(struct gw_switch)) + cfg->port_count * port_stride(cfg) +
           gw_aligned(cfg->port_count * sizeof(uint16_t)) +
           gw_aligned(cfg->port_count * sizeof(struct port_losses)) +
           gw_switch_jobs_size(cfg->aggregate) +
           (cfg->lossless ? gw_lossless_size(cfg->port_count) : 0) + learned_size(cfg);
}

struct gw_switch *gw_switch_init(void *memory, const struct gw_switch_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->qdisc->algo.state_size <= GW_QDISC_STATE_MAX);
    GW_ASSERT(cfg->train <= 1 || !cfg->lossless);
    struct gw_switch *sw = memory;
    memset(memory, 0, gw_switch_size(cfg));
    unsigned char *ready = (unsigned char *)memory + gw_aligned(sizeof(*sw));
    unsigned char *ports = ready + gw_aligned(cfg->port_count * sizeof(uint16_t));
    unsigned char *losses = ports + cfg->port_count * port_stride(cfg);
    *sw = (struct gw_switch){
        .node = {.ops = cfg->lossless    ? &lossless_ops
                        : cfg->train > 1 ? &train_ops
                                         : &switch_ops,
                 .deadline = GW_TIME_NEVER,
                 .ready = (uint16_t *)(void *)ready,
                 .port_count = cfg->port_count},
        .qdisc = cfg->qdisc,
        .qdisc_cfg = cfg->qdisc_cfg,
        .qdisc_port = {.pool = cfg->pool, .prng = &sw->prng, .trim_size = cfg->trim_size},
        .routes = cfg->routes,
        .learns = cfg->learned_max != 0,
        .uplink = cfg->uplink,
        .train = cfg->train,
        .ports = ports,
        .port_stride = port_stride(cfg),
        .losses = (struct port_losses *)(void *)losses,
        .aggregate = cfg->aggregate,
        .leak = cfg->aggregate ? gw_aggregate_cfg(cfg->aggregate)->leak : 0,
        .sweep_at = GW_TIME_NEVER,
        .slots = cfg->slots,
        .shared_bytes = cfg->shared_bytes,
        .shared_alpha = cfg->shared_alpha,
        .prng = gw_prng_derive(cfg->seed, 0),
        .pool = cfg->pool,
    };
    if (cfg->lossless)
        sw->lossless =
            gw_lossless_init(losses + gw_aligned(cfg->port_count * sizeof(struct port_losses)) +
                                 gw_switch_jobs_size(cfg->aggregate),
                             cfg->lossless, cfg->port_count);
    if (sw->learns)
        gw_learned_init(&sw->learned,
                        (unsigned char *)memory + gw_switch_size(cfg) - learned_size(cfg),
                        cfg->learned_max, cfg->port_count, cfg->learned_idle);
    sw->salt = (uint32_t)gw_prng_next(&sw->prng);
    gw_switch_jobs_init(&sw->jobs, losses + gw_aligned(cfg->port_count * sizeof(*sw->losses)),
                        cfg->aggregate, cfg->address);
    for (uint16_t i = 0; i < cfg->port_count; i++) {
        port_at(sw, i)->is_edge = cfg->is_edge && cfg->is_edge[i];
        port_at(sw, i)->group = GW_ROUTE_NONE;
        sw->qdisc->init(port_at(sw, i)->qdisc_state, sw->qdisc_cfg, cfg->capacity[i]);
    }
    return sw;
}

uint32_t gw_switch_fini(struct gw_switch *sw)
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < sw->node.port_count; i++)
        for (struct gw_pkt *pkt; (pkt = take_next(sw, port_at(sw, i))) != NULL; count++)
            gw_pkt_release(sw->pool, pkt);
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

/* Lets the switches above know that `address` is below; without room or packet they learn it when
 * it sends. */
static void announce(struct gw_switch *sw, uint32_t address, gw_time now)
{
    struct gw_pkt *pkt = sw->uplink == GW_ROUTE_NONE ? NULL : gw_pkt_claim(sw->pool);
    if (!pkt)
        return;
    *pkt = (struct gw_pkt){
        .q = {.size = sw->qdisc_port.trim_size, .class = GW_CLASS_CONTROL, .kind = GW_PKT_ACK},
        .src = address,
        .dst = GW_ADDRESS_NONE,
        .buf = GW_BUF_NONE,
    };
    sw->turns = true;
    forward(sw, pkt, now);
    sw->turns = false;
}

int gw_switch_open_port(struct gw_switch *sw, uint16_t index, uint32_t address, bool is_edge,
                        gw_time now)
{
    GW_ASSERT(sw->learns);
    int code = GW_OK;
    if (index != sw->uplink)
        code = gw_learned_note(&sw->learned, address, index, now);
    if (code)
        return code;
    port_at(sw, index)->is_edge = is_edge;
    if (index != sw->uplink)
        announce(sw, address, now);
    else
        gw_switch_announce(sw, now);
    return GW_OK;
}

void gw_switch_announce(struct gw_switch *sw, gw_time now)
{
    for (uint32_t i = 0; i < sw->learned.count; i++) {
        const struct gw_learned_entry *entry = &sw->learned.entries[i];
        if (entry->port != GW_LEARNED_NONE && entry->port != sw->uplink &&
            (port_at(sw, entry->port)->is_edge || now - entry->seen < sw->learned.idle))
            announce(sw, entry->address, now);
    }
}

/* Drops what a port holds. */
static void clear_port(struct gw_switch *sw, uint16_t index)
{
    struct port_losses *losses = &sw->losses[index];
    for (struct gw_pkt *pkt; (pkt = take_next(sw, port_at(sw, index))) != NULL; losses->drops++) {
        losses->dropped_bytes += pkt->q.size;
        gw_pkt_release(sw->pool, pkt);
    }
}

void gw_switch_set_group(struct gw_switch *sw, uint16_t port, uint16_t group)
{
    uint16_t before = port_at(sw, port)->group;
    GW_ASSERT(group == GW_ROUTE_NONE || (group < sw->node.port_count && group != port));
    port_at(sw, port)->group = group;
    sw->has_groups |= group != GW_ROUTE_NONE;
    if (before == GW_ROUTE_NONE || before == group)
        return;
    for (uint16_t i = 0; i < sw->node.port_count; i++)
        if (port_at(sw, i)->group == before)
            return;
    clear_port(sw, before); /* nobody hears it; the next to do so may be others */
}

void gw_switch_close_port(struct gw_switch *sw, uint16_t index)
{
    gw_learned_forget(&sw->learned, index);
    port_at(sw, index)->is_edge = false;
    gw_switch_set_group(sw, index, GW_ROUTE_NONE);
    clear_port(sw, index);
}

struct gw_port_stats gw_switch_port_stats(const struct gw_switch *sw, uint16_t index)
{
    const struct port *port = port_at(sw, index);
    const struct port_losses *losses = &sw->losses[index];
    struct gw_port_stats stats = {
        .in_bytes = port->in_bytes,
        .out_bytes = port->out_bytes,
        .trimmed_bytes = losses->trimmed_bytes,
        .dropped_bytes = losses->dropped_bytes,
        .out_packets = port->out_packets,
        .marks = ((const struct gw_qdisc_state *)port->qdisc_state)->marks,
        .trims = losses->trims,
        .drops = losses->drops,
        .control_drops = losses->control_drops,
    };
    if (sw->lossless) {
        stats.pauses = gw_lossless_meter(sw->lossless, index)->pauses;
        stats.paused = gw_lossless_gate(sw->lossless, index)->total;
    }
    return stats;
}

const struct gw_switch_stats *gw_switch_stats(const struct gw_switch *sw)
{
    return &sw->stats;
}

uint32_t gw_switch_job_count(const struct gw_switch *sw)
{
    return sw->jobs.count;
}

uint32_t gw_switch_backlog(const struct gw_switch *sw, uint16_t port)
{
    const struct gw_pkt *kept = port_at(sw, port)->kept;
    return backlog(port_at(sw, port)) + (kept ? kept->q.size : 0);
}
