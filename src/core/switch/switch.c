/*
 * The pipeline of a switch: which stages a packet passes, and in which order; see switch.h.
 */
#include "core/switch/switch_forward.h"

#include <string.h>

#include "base/error.h"

void gw_switch_apply_notices(struct gw_switch *sw)
{
    struct gw_switch_notice_change change;
    while (gw_switch_notice_next(sw->notice, &change))
        gw_switch_queue_mark_at(&sw->queue, change.port, change.bytes);
    gw_time deadline = gw_switch_notice_deadline(sw->notice);
    gw_switch_timer_set(&sw->timers, GW_SWITCH_TIMER_NOTICE, deadline);
    GW_DEBUG_ASSERT((gw_switch_notice_check(sw->notice), true));
}

/* A burst is announced, or begins, for so many workers. */
static void notice(struct gw_switch *sw, const struct gw_pkt *pkt, const struct gw_switch_hop *hop,
                   uint32_t workers, gw_time now)
{
    if (pkt->q.kind == GW_PKT_NOTICE)
        gw_switch_notice_announce(sw->notice, hop, pkt, now);
    else
        gw_switch_notice_head(sw->notice, hop, pkt, workers, now);
    gw_switch_apply_notices(sw);
}

/* The head of a burst leaves, or a notice. */
static void notice_leaving(struct gw_switch *sw, const struct gw_pkt *pkt,
                           const struct gw_switch_hop *hop, gw_time now)
{
    bool is_grad = pkt->q.kind == GW_PKT_GRAD;
    if (pkt->q.kind != GW_PKT_NOTICE) {
        sw->stats.heads++;
        sw->stats.heads_met += gw_switch_backlog(sw, hop->out);
    }
    if (!hop->has_begun)
        notice(sw, pkt, hop, is_grad ? gw_switch_aggregate_workers(&sw->aggregate, pkt) : 1, now);
}

static inline bool is_of_burst(const struct gw_pkt *pkt)
{
    return pkt->q.kind == GW_PKT_NOTICE ||
           (pkt->q.flags & GW_PKT_HEAD &&
            (pkt->q.kind == GW_PKT_DATA || pkt->q.kind == GW_PKT_GRAD));
}

/* The last stages, if there is a way. */
static void leave(struct gw_switch *sw, struct gw_pkt *pkt, const struct gw_switch_hop *hop,
                  gw_time now)
{
    if (gw_switch_route_allows(&sw->route, hop)) {
        if (sw->notice && is_of_burst(pkt))
            notice_leaving(sw, pkt, hop, now);
        gw_switch_queue_push(&sw->queue, hop->in, hop->out, pkt, now);
        return;
    }
    sw->stats.unroutable += !sw->route.learned || pkt->dst != GW_ADDRESS_NONE;
    gw_pkt_release(sw->pool, pkt);
}

void gw_switch_send_own(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    struct gw_switch_hop hop = {.is_own = true};
    gw_switch_route_find(&sw->route, pkt, &hop);
    leave(sw, pkt, &hop, now);
}

/* Where one of several packets goes that begin as one. */
struct target {
    uint32_t dst;
    uint32_t key; /* 0: it was not needed yet */
    uint16_t out;
    bool is_shared; /* `out` reaches others of a group as well */
};

/* Where addresses are learned the way is that of the address, and most of a group need no packet:
 * so their keys are computed for those that do. */
static inline struct target target_of(const struct gw_switch *sw, const struct gw_pkt *pkt,
                                      uint32_t dst)
{
    const struct gw_pkt turned = {
        .q.key = sw->route.learned ? 0 : gw_flow_key(pkt->src, dst, pkt->flow),
        .dst = dst,
        .entropy = pkt->entropy, /* and nothing else decides on a way */
    };
    struct gw_switch_hop hop;
    gw_switch_route_find(&sw->route, &turned, &hop);
    bool is_shared =
        sw->has_groups && hop.out != GW_PORT_NONE && sw->links[hop.out].group != GW_PORT_NONE;
    return (struct target){
        .dst = dst,
        .key = turned.q.key,
        .out = is_shared ? sw->links[hop.out].group : hop.out,
        .is_shared = is_shared,
    };
}

static void leave_for(struct gw_switch *sw, struct gw_pkt *pkt, uint16_t in,
                      const struct target *target, gw_time now)
{
    const struct gw_switch_hop hop = {.in = in, .out = target->out};
    pkt->dst = target->dst;
    pkt->q.key = target->key ? target->key : gw_flow_key(pkt->src, pkt->dst, pkt->flow);
    leave(sw, pkt, &hop, now);
}

/* One more packet like `pkt`, sharing its payload; NULL when the pool is empty. */
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

/*
 * Sends the packet to each of some addresses, at least one; to those of a group once. A copy leaves
 * as soon as another address needs a packet too, and the packet itself for the last one. Until then
 * it stays as it is: to copy what has just been written would wait for that.
 */
static void leave_to_each(struct gw_switch *sw, struct gw_pkt *pkt, uint16_t in,
                          const struct gw_switch_copies *copies, gw_time now)
{
    struct target target = {.out = GW_PORT_NONE};
    uint16_t served = GW_PORT_NONE; /* the group that has its packet: jobs have one */
    for (uint32_t i = 0; i < copies->count; i++) {
        const struct target next = target_of(sw, pkt, copies->dsts[i]);
        if (next.is_shared && next.out == served) {
            sw->stats.copies_saved++;
            continue;
        }
        struct gw_pkt *copy = i > 0 ? copy_pkt(sw, pkt) : NULL;
        if (copy)
            leave_for(sw, copy, in, &target, now);
        served = next.is_shared ? next.out : served;
        target = next;
    }
    leave_for(sw, pkt, in, &target, now);
}

/* What is wrong with a packet is counted, and it ends here. */
static void drop(struct gw_switch *sw, struct gw_pkt *pkt, uint64_t *reason)
{
    ++*reason;
    gw_pkt_release(sw->pool, pkt);
}

/* Job control for this switch: the packet becomes the answer. */
static bool turn_round(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now)
{
    bool is_good = gw_switch_jobs_input(&sw->jobs, pkt, now);
    gw_switch_timer_set(&sw->timers, GW_SWITCH_TIMER_JOBS, sw->jobs.deadline);
    return is_good;
}

/* A worker asks its server. False: what it says was malformed, and ends here. */
static bool pass(struct gw_switch *sw, struct gw_pkt *pkt, struct gw_switch_hop *hop, gw_time now)
{
    const struct gw_switch_jobs_way way = {
        .is_edge = gw_switch_route_allows(&sw->route, hop) && sw->links[hop->out].is_edge,
        .spreads = hop->spreads,
    };
    if (gw_switch_jobs_pass(&sw->jobs, pkt, &way, now))
        return true;
    gw_switch_route_return(&sw->route, hop);
    drop(sw, pkt, &sw->stats.malformed);
    return false;
}

/* A burst that is added up here, or ends in slots, has begun: for its own sender, whoever else is
 * waited for, and before it is one with others'. */
static void begin_burst(struct gw_switch *sw, const struct gw_pkt *pkt, uint16_t in, gw_time now)
{
    struct gw_switch_hop hop = {.in = in};
    bool is_slot = pkt->agg_flags & GW_AGG_SLOT;
    uint32_t workers = is_slot ? 1 : gw_switch_aggregate_workers(&sw->aggregate, pkt);
    if (workers > 1) {
        gw_switch_route_find(&sw->route, pkt, &hop);
        gw_switch_route_return(&sw->route, &hop);
    }
    if (hop.out != GW_PORT_NONE)
        notice(sw, pkt, &hop, workers, now);
}

/* A sum makes room for a packet that goes the same way. */
static void leave_beside(struct gw_switch *sw, struct gw_pkt *sum, uint16_t in, gw_time now)
{
    struct gw_switch_hop hop = {.in = in, .has_begun = true};
    gw_switch_route_find(&sw->route, sum, &hop);
    leave(sw, sum, &hop, now);
}

/* Adds up or multiplies a packet of a job. True: it goes on, and its way is still to be found,
 * which most that are added up do not need. */
static bool aggregate(struct gw_switch *sw, struct gw_pkt *pkt, enum gw_switch_traffic traffic,
                      uint16_t in, gw_time now)
{
    struct gw_switch_copies copies;
    if (sw->notice && is_of_burst(pkt))
        begin_burst(sw, pkt, in, now);
    enum gw_switch_verdict verdict =
        gw_switch_aggregate(&sw->aggregate, pkt, traffic, &copies, now);
    if (verdict == GW_SWITCH_COPY)
        leave_to_each(sw, pkt, in, &copies, now);
    if (verdict == GW_SWITCH_PASS && copies.beside)
        leave_beside(sw, copies.beside, in, now);
    return verdict == GW_SWITCH_PASS;
}

/* Whether the packet may come by `in`; else it is dropped. */
static bool admits(struct gw_switch *sw, struct gw_pkt *pkt, uint16_t in, gw_time now)
{
    if (!sw->classify.learned)
        return true;
    int code = gw_switch_classify_sender(&sw->classify, pkt, in, sw->links[in].is_edge, now);
    if (code == GW_OK)
        return true;
    drop(sw, pkt, code == GW_ERR_INVALID ? &sw->stats.spoofed : &sw->stats.unlearned);
    return false;
}

/* Whether a packet of a job that is added up here has the place of whoever sent it. What comes from
 * a switch below has been looked at there. */
static bool is_at_home(const struct gw_switch *sw, const struct gw_pkt *pkt, uint16_t in)
{
    return !sw->links[in].is_edge || gw_switch_aggregate_is_own(&sw->aggregate, pkt);
}

enum {
    FETCH_AHEAD = 4, /* packets of a train: the sums of those between take longer than memory */
};

static inline void fetch(const struct gw_switch *sw, const struct gw_pkt *pkt)
{
    if (pkt->q.kind == GW_PKT_GRAD && sw->aggregate.aggregators)
        gw_aggregate_fetch(sw->aggregate.aggregators, pkt);
}

/* Values, or a result, pass the stage of aggregation; what goes on finds its way and leaves. */
static void take_values(struct gw_switch *sw, uint16_t in, struct gw_pkt *pkt,
                        enum gw_switch_traffic traffic, gw_time now)
{
    struct gw_switch_hop hop = {.in = in, .has_begun = true};
    if (!aggregate(sw, pkt, traffic, in, now))
        return;
    gw_switch_route_find(&sw->route, pkt, &hop);
    leave(sw, pkt, &hop, now);
}

/* One packet goes through all stages. True: it was values for an aggregator, or a result, and may
 * come from there, as may others of its train that claim the same (switch_classify.h). */
static __attribute__((noinline)) bool take(struct gw_switch *sw, uint16_t in, struct gw_pkt *pkt,
                                           gw_time now)
{
    struct gw_switch_hop hop = {.in = in};
    enum gw_switch_traffic traffic = gw_switch_classify(&sw->classify, pkt);
    if (traffic == GW_TRAFFIC_PAUSE) {
        gw_switch_queue_obey(&sw->queue, in, pkt->pause, now);
        gw_pkt_release(sw->pool, pkt);
        return false;
    }
    if (!admits(sw, pkt, in, now))
        return false;
    if (traffic == GW_TRAFFIC_OWN) {
        if (!turn_round(sw, pkt, now)) {
            drop(sw, pkt, &sw->stats.malformed);
            return false;
        }
        hop.is_own = true;
    }
    if (traffic == GW_TRAFFIC_TENSOR && !is_at_home(sw, pkt, in)) {
        drop(sw, pkt, &sw->stats.spoofed);
        return false;
    }
    if (traffic == GW_TRAFFIC_TENSOR || traffic == GW_TRAFFIC_SLOT) {
        take_values(sw, in, pkt, traffic, now);
        return traffic == GW_TRAFFIC_TENSOR;
    }
    gw_switch_route_find(&sw->route, pkt, &hop);
    if (traffic != GW_TRAFFIC_WORKER || pass(sw, pkt, &hop, now))
        leave(sw, pkt, &hop, now);
    return false;
}

/*
 * Most packets of a simulation meet two stages alone, so they pass by the others. And of a train of
 * gradients or results only the first is asked whence it comes, as long as the others claim the
 * same: what decides on that, besides the claim, are the port, the jobs that are installed and the
 * addresses that are learned, and aggregation changes none of them. All else that comes in between
 * may, so the claim is forgotten then.
 */
static void switch_input(struct gw_node *node, uint16_t in, struct gw_pkt **pkts, uint32_t count,
                         gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    const struct gw_switch_claim none = {.kind = GW_PKT_KINDS};
    struct gw_switch_claim admitted = none;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t out = gw_switch_way(sw, pkts[i]);
        if (out != GW_PORT_NONE) {
            gw_switch_queue_push(&sw->queue, in, out, pkts[i], now);
            continue;
        }
        if (count - i > FETCH_AHEAD)
            fetch(sw, pkts[i + FETCH_AHEAD]);
        if (gw_switch_claims(pkts[i], &admitted)) {
            GW_DEBUG_ASSERT(is_at_home(sw, pkts[i], in));
            GW_DEBUG_ASSERT(gw_switch_classify(&sw->classify, pkts[i]) == GW_TRAFFIC_TENSOR);
            take_values(sw, in, pkts[i], GW_TRAFFIC_TENSOR, now);
            continue;
        }
        const struct gw_switch_claim claim = gw_switch_claim_of(pkts[i]); /* it is given away */
        admitted = take(sw, in, pkts[i], now) ? claim : none;
    }
}

static uint32_t switch_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts,
                              uint32_t max, gw_time now)
{
    return gw_switch_pull((struct gw_switch *)node, port, pkts, max, now);
}

static void switch_expire(struct gw_node *node, gw_time now)
{
    struct gw_switch *sw = (struct gw_switch *)node;
    uint32_t id;
    /* Each timer that fires is moved behind `now` or stays disarmed, so this ends. */
    while (gw_switch_timer_pop(&sw->timers, now, &id)) {
        if (id == GW_SWITCH_TIMER_JOBS) {
            sw->stats.jobs_idle += gw_switch_jobs_expire(&sw->jobs, now);
            gw_switch_timer_set(&sw->timers, id, sw->jobs.deadline);
        } else if (id == GW_SWITCH_TIMER_NOTICE) {
            gw_switch_notice_expire(sw->notice, now);
            gw_switch_apply_notices(sw);
        } else if (id == GW_SWITCH_TIMER_SWEEP) {
            gw_switch_aggregate_sweep(&sw->aggregate, now);
        } else {
            uint32_t of_port = id - GW_SWITCH_TIMERS;
            gw_switch_queue_expire(&sw->queue, of_port / node->port_count,
                                   (uint16_t)(of_port % node->port_count), now);
        }
    }
}

static const struct gw_node_ops switch_ops = {
    .input = switch_input,
    .output = switch_output,
    .expire = switch_expire,
};

void gw_switch_foresee(const struct gw_switch *sw)
{
    gw_switch_queue_foresee(&sw->queue);
}

/* What the last stage is told. */
static struct gw_switch_queue_cfg queue_cfg(const struct gw_switch_cfg *cfg)
{
    return (struct gw_switch_queue_cfg){
        .port_count = cfg->port_count,
        .qdisc = cfg->qdisc,
        .qdisc_cfg = cfg->qdisc_cfg,
        .capacity = cfg->capacity,
        .trim_size = cfg->trim_size,
        .shared = cfg->shared,
        .train = cfg->train,
        .lossless = cfg->lossless,
        .pool = cfg->pool,
    };
}

static struct gw_learned_cfg learned_cfg(const struct gw_switch_cfg *cfg)
{
    return (struct gw_learned_cfg){
        .max = cfg->learned_max,
        .port_count = cfg->port_count,
        .uplink = cfg->uplink,
        .idle = cfg->learned_idle,
    };
}

/* Where the tables of stages that have init functions of their own lie. */
struct tables {
    void *jobs;
    void *learned;
    void *timers;
    void *notice;
};

/* Carves all tables out of the arena. The same code measures and builds. */
static struct tables carve(struct gw_switch *sw, const struct gw_switch_cfg *cfg,
                           struct gw_arena *arena)
{
    const struct gw_switch_queue_cfg queue = queue_cfg(cfg);
    struct tables tables = {0};
    sw->node.ready = gw_arena_take(arena, cfg->port_count * sizeof(*sw->node.ready));
    gw_switch_queue_carve(&sw->queue, &queue, arena);
    sw->links = gw_arena_take(arena, cfg->port_count * sizeof(*sw->links));
    tables.timers = gw_arena_take(arena, gw_heap_size(gw_switch_timer_count(cfg->port_count)));
    tables.jobs = gw_arena_take(arena, gw_switch_jobs_size(cfg->aggregate));
    if (cfg->learned_max) {
        const struct gw_learned_cfg learned = learned_cfg(cfg);
        tables.learned = gw_arena_take(arena, gw_learned_size(&learned));
    }
    if (cfg->notice)
        tables.notice = gw_arena_take(arena, gw_switch_notice_size(cfg->notice, cfg->port_count));
    return tables;
}

size_t gw_switch_size(const struct gw_switch_cfg *cfg)
{
    struct gw_switch sw;
    struct gw_arena arena = {.used = 0};
    gw_arena_take(&arena, sizeof(sw));
    carve(&sw, cfg, &arena);
    return arena.used;
}

/* What the first two stages know of addresses. */
static void start_routing(struct gw_switch *sw, const struct gw_switch_cfg *cfg, void *learned)
{
    sw->classify = (struct gw_switch_classify){
        .learned = learned ? &sw->learned : NULL,
        .uplink = cfg->uplink,
        .address = cfg->address,
        .is_lossless = cfg->lossless != NULL,
        .has_aggregators = cfg->aggregate != NULL,
        .has_slots = cfg->slots != NULL,
    };
    sw->route = (struct gw_switch_route){
        .table = cfg->routes,
        .learned = sw->classify.learned,
        .uplink = cfg->uplink,
        .salt = (uint32_t)gw_prng_next(&sw->prng),
    };
    const struct gw_learned_cfg table = learned_cfg(cfg);
    if (learned)
        gw_learned_init(&sw->learned, learned, &table);
}

struct gw_switch *gw_switch_init(void *memory, const struct gw_switch_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->port_count <= GW_PORTS_MAX);
    const struct gw_switch_queue_cfg queue = queue_cfg(cfg);
    struct gw_arena arena = {.base = memory};
    memset(memory, 0, gw_switch_size(cfg));
    struct gw_switch *sw = gw_arena_take(&arena, sizeof(*sw));
    struct tables tables = carve(sw, cfg, &arena);
    sw->node.ops = &switch_ops;
    sw->is_plain = !cfg->learned_max && !cfg->notice;
    sw->node.port_count = cfg->port_count;
    sw->node.deadline = GW_TIME_NEVER;
    sw->timers.node = &sw->node;
    gw_heap_init(&sw->timers.heap, tables.timers, gw_switch_timer_count(cfg->port_count));
    sw->prng = gw_prng_derive(cfg->seed, 0);
    sw->pool = cfg->pool;
    sw->trim_size = cfg->trim_size;
    start_routing(sw, cfg, tables.learned);
    sw->aggregate = (struct gw_switch_aggregate){
        .aggregators = cfg->aggregate, .slots = cfg->slots, .timers = &sw->timers};
    gw_switch_jobs_init(&sw->jobs, tables.jobs, cfg->aggregate, cfg->address);
    gw_switch_queue_init(&sw->queue, &queue, &sw->prng, &sw->timers);
    if (cfg->notice)
        sw->notice = gw_switch_notice_init(tables.notice, cfg->notice, cfg->port_count, cfg->seed);
    for (uint16_t i = 0; i < cfg->port_count; i++)
        sw->links[i] = (struct gw_switch_link){
            .group = GW_PORT_NONE,
            .is_edge = cfg->is_edge && cfg->is_edge[i],
        };
    return sw;
}

uint32_t gw_switch_fini(struct gw_switch *sw)
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < sw->node.port_count; i++)
        count += gw_switch_queue_clear(&sw->queue, i, 0);
    return count;
}
