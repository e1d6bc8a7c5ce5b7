/*
 * Load balancers for tests: one by itself, to be called directly; and a small fabric of parallel
 * paths in which flows with constant windows send, queues mark and overflow, and links die. Its
 * clock counts ticks.
 */
#ifndef GW_TESTS_LB_FABRIC_H
#define GW_TESTS_LB_FABRIC_H

#include "support.h"

#include "core/lb/lb.h"

enum {
    MTU = 4096,
    ENTROPIES = 256,
    DELAY = 20, /* ticks from service to ACK: the base RTT */
};

#define TICK GW_US

struct balancer {
    const struct gw_lb_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LB_STATE_MAX / 8];
    gw_time now; /* of the next call */
};

/* Settings that most tests share. */
struct balancer_options {
    const char *name;
    const char *preset;      /* or NULL */
    const char *settings[4]; /* name, value, name, value; or NULL */
    uint32_t bdp;
    bool is_sampled; /* see struct gw_path */
};

static inline struct balancer balancer_of(const struct balancer_options *options, uint64_t seed)
{
    struct balancer b = {.ops = (const void *)gw_registry_find(&gw_lb_registry, options->name)};
    const struct gw_path path = {
        .brtt = DELAY * TICK,
        .brtt_max = DELAY * TICK,
        .bdp = options->bdp,
        .mtu = MTU,
        .hdr = 64,
        .hops = 6,
        .is_sampled = options->is_sampled,
    };
    assert_non_null(b.ops);
    gw_algo_defaults(&b.ops->algo, &b.cfg);
    if (options->preset)
        assert_int_equal(gw_algo_preset(&b.ops->algo, &b.cfg, options->preset), 0);
    for (int i = 0; i < 4 && options->settings[i]; i += 2)
        assert_int_equal(
            gw_algo_set(&b.ops->algo, &b.cfg, options->settings[i], options->settings[i + 1]), 0);
    b.ops->init(b.state, &b.cfg, &path, gw_prng_derive(seed, 1));
    return b;
}

static inline struct balancer balancer_make(const char *name, const char *preset, uint32_t bdp,
                                            uint64_t seed)
{
    const struct balancer_options options = {.name = name, .preset = preset, .bdp = bdp};
    return balancer_of(&options, seed);
}

static inline uint16_t pick(struct balancer *b)
{
    const struct gw_lb_next next = {.bytes = MTU};
    return b->ops->pick(b->state, &b->cfg, &next, b->now);
}

/* The entropy of a packet that is sent again. */
static inline uint16_t pick_again(struct balancer *b)
{
    const struct gw_lb_next next = {.bytes = MTU, .is_resent = true};
    return b->ops->pick(b->state, &b->cfg, &next, b->now);
}

static inline void on_ack_after(struct balancer *b, uint16_t entropy, bool ce, gw_time rtt)
{
    const struct gw_lb_echo echo = {.rtt = rtt, .in_flight = MTU, .entropy = entropy, .ce = ce};
    b->ops->on_ack(b->state, &b->cfg, &echo, b->now);
}

static inline void on_ack(struct balancer *b, uint16_t entropy, bool ce)
{
    on_ack_after(b, entropy, ce, DELAY * TICK);
}

static inline void on_trim(struct balancer *b, uint16_t entropy)
{
    const struct gw_lb_echo echo = {.rtt = DELAY * TICK, .in_flight = MTU, .entropy = entropy};
    b->ops->on_trim(b->state, &b->cfg, &echo, b->now);
}

static inline void on_timeout_of(struct balancer *b, gw_time sent_at)
{
    b->ops->on_timeout(b->state, &b->cfg, sent_at, b->now);
}

/* Of a packet that was sent an RTT ago. */
static inline void on_timeout(struct balancer *b)
{
    on_timeout_of(b, b->now - DELAY * TICK);
}

/* ---- The fabric. ---- */

enum {
    PATHS_MAX = 8,
    FLOWS_MAX = 16,
    QUEUE = 60,   /* packets */
    RTO = 45,     /* ticks */
    HORIZON = 64, /* ticks that the calendar reaches; above RTO */
    SLOT = 512,   /* feedback per tick */
};

enum outcome {
    CLEAN,
    MARKED,
    TRIMMED,
    TIMED_OUT,
};

struct feedback {
    uint16_t flow;
    uint16_t entropy;
    uint64_t sent; /* tick */
    enum outcome outcome;
};

struct parallel {
    uint32_t rate; /* packets per tick */
    bool dead;     /* swallows what is sent */
    uint32_t head, count;
    struct feedback queue[QUEUE];
    uint32_t chosen; /* packets sent to it since the last reset */
};

struct fabric {
    struct parallel paths[PATHS_MAX];
    uint32_t path_count;
    struct balancer flows[FLOWS_MAX];
    uint32_t in_flight[FLOWS_MAX];
    uint32_t flow_count;
    uint32_t window; /* packets */
    struct feedback calendar[HORIZON][SLOT];
    uint32_t due[HORIZON];
    uint64_t tick;
    uint32_t dropped; /* by dead paths */
    uint32_t delivered;
    bool used[FLOWS_MAX][ENTROPIES]; /* since the last reset */
    struct gw_prng prng;
};

static inline uint32_t path_of(const struct fabric *f, uint16_t flow, uint16_t entropy)
{
    return (uint32_t)(gw_mix64(((uint64_t)flow << 16) | entropy) % f->path_count);
}

static inline void fabric_post(struct fabric *f, struct feedback feedback, uint32_t delay)
{
    uint32_t slot = (uint32_t)((f->tick + delay) % HORIZON);
    assert_true(f->due[slot] < SLOT);
    f->calendar[slot][f->due[slot]++] = feedback;
}

static inline void fabric_send(struct fabric *f, uint16_t flow)
{
    f->flows[flow].now = f->tick * TICK;
    struct feedback pkt = {.flow = flow, .entropy = pick(&f->flows[flow]), .sent = f->tick};
    struct parallel *path = &f->paths[path_of(f, flow, pkt.entropy)];
    path->chosen++;
    f->used[flow][pkt.entropy % ENTROPIES] = true;
    f->in_flight[flow]++;
    if (path->dead) {
        f->dropped++;
        pkt.outcome = TIMED_OUT;
        fabric_post(f, pkt, RTO);
    } else if (path->count == QUEUE) {
        pkt.outcome = TRIMMED;
        fabric_post(f, pkt, DELAY);
    } else {
        path->queue[(path->head + path->count++) % QUEUE] = pkt;
    }
}

/* Serves one packet; the chance of a mark rises from 0 to 1 between 20 and 80 % of the queue. */
static inline void path_serve(struct fabric *f, struct parallel *path)
{
    struct feedback pkt = path->queue[path->head];
    path->head = (path->head + 1) % QUEUE;
    path->count--;
    const uint32_t kmin = QUEUE / 5, kmax = QUEUE * 4 / 5;
    bool mark = path->count > kmin && gw_prng_below(&f->prng, kmax - kmin) < path->count - kmin;
    pkt.outcome = mark ? MARKED : CLEAN;
    f->delivered++;
    fabric_post(f, pkt, DELAY);
}

static inline void fabric_react(struct fabric *f, struct feedback pkt)
{
    struct balancer *b = &f->flows[pkt.flow];
    f->in_flight[pkt.flow]--;
    b->now = f->tick * TICK;
    if (pkt.outcome == TRIMMED)
        on_trim(b, pkt.entropy);
    else if (pkt.outcome == TIMED_OUT)
        on_timeout_of(b, pkt.sent * TICK);
    else
        on_ack_after(b, pkt.entropy, pkt.outcome == MARKED, (f->tick - pkt.sent) * TICK);
    while (f->in_flight[pkt.flow] < f->window)
        fabric_send(f, pkt.flow);
}

static inline void fabric_run(struct fabric *f, uint64_t ticks)
{
    for (uint64_t end = f->tick + ticks; f->tick < end; f->tick++) {
        uint32_t slot = (uint32_t)(f->tick % HORIZON);
        /* Reactions post into later slots only. */
        for (uint32_t i = 0; i < f->due[slot]; i++)
            fabric_react(f, f->calendar[slot][i]);
        f->due[slot] = 0;
        for (uint32_t p = 0; p < f->path_count; p++)
            for (uint32_t i = 0; i < f->paths[p].rate && f->paths[p].count > 0; i++)
                path_serve(f, &f->paths[p]);
    }
}

static inline void fabric_reset(struct fabric *f)
{
    f->delivered = f->dropped = 0;
    memset(f->used, 0, sizeof(f->used));
    for (uint32_t p = 0; p < f->path_count; p++)
        f->paths[p].chosen = 0;
}

/* `rates` are of the paths; the bdp of a flow is its share of them all. */
static inline struct fabric *fabric_make(struct balancer_options options, const uint32_t *rates,
                                         uint32_t path_count, uint32_t flow_count, uint32_t window,
                                         uint64_t seed)
{
    struct fabric *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->path_count = path_count;
    f->flow_count = flow_count;
    f->window = window;
    f->prng = gw_prng_derive(seed, 99);
    options.bdp = 0;
    for (uint32_t p = 0; p < path_count; p++) {
        f->paths[p].rate = rates[p];
        options.bdp += rates[p] * DELAY * MTU / flow_count;
    }
    for (uint32_t i = 0; i < flow_count; i++)
        f->flows[i] = balancer_of(&options, seed * 1000 + i);
    for (uint32_t i = 0; i < flow_count; i++)
        while (f->in_flight[i] < window)
            fabric_send(f, (uint16_t)i);
    return f;
}

static inline struct fabric *fabric_open(const char *lb, const char *preset, const uint32_t *rates,
                                         uint32_t path_count, uint32_t flow_count, uint32_t window,
                                         uint64_t seed)
{
    const struct balancer_options options = {.name = lb, .preset = preset};
    return fabric_make(options, rates, path_count, flow_count, window, seed);
}

#endif
