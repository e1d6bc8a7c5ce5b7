/*
 * Micro benchmarks of the registries: congestion control, load balancing, queue disciplines. Every
 * entry is measured, so that a new algorithm appears with its registry line.
 */
#include "micro.h"

#include <stdio.h>

#include "core/cc/cc.h"
#include "core/lb/lb.h"
#include "core/qdisc/qdisc.h"

enum {
    NAME_SIZE = 64,
};

/* An operation of an algorithm of a registry: "kind name: what". */
static void add_algo(struct gw_bench_suite *suite, const struct gw_registry *registry,
                     const struct gw_algo *algo, const char *what, gw_bench_run *run, void *state)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof(name), "%s %s: %s", registry->kind, algo->name, what);
    gw_bench_add(suite, name, run, state);
}

/* Congestion control: a window's worth of random feedback, a quarter of it marked. */

struct cc_bench {
    const struct gw_cc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_CC_STATE_MAX / 8];
    struct gw_cc_window window;
    struct gw_cc_ack acks[GW_BENCH_INPUTS];
    gw_time now;
};

static void cc_run(void *state, uint64_t count)
{
    struct cc_bench *b = state;
    const gw_time packet_time = gw_path_packet_time(&gw_bench_path);
    for (uint64_t i = 0; i < count; i++) {
        b->now += packet_time;
        b->ops->on_ack(b->state, &b->cfg, &gw_bench_path, &b->acks[i % GW_BENCH_INPUTS], &b->window,
                       b->now);
    }
    gw_bench_sink += b->window.cwnd;
}

static void add_cc(struct gw_bench_suite *suite, const struct gw_algo *algo)
{
    struct cc_bench *b = gw_bench_take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(1, 0);
    b->ops = (const struct gw_cc_ops *)algo;
    gw_algo_defaults(algo, &b->cfg);
    b->ops->init(b->state, &b->cfg, &gw_bench_path, &b->window, b->now);
    for (uint32_t i = 0; i < GW_BENCH_INPUTS; i++)
        b->acks[i] = (struct gw_cc_ack){
            .bytes = GW_BENCH_MTU,
            .in_flight = GW_BENCH_BDP / 2,
            .rtt = gw_bench_path.brtt + gw_prng_below(&prng, (uint32_t)gw_bench_path.brtt),
            .ce = gw_prng_below(&prng, 4) == 0,
        };
    add_algo(suite, &gw_cc_registry, algo, "on_ack", cc_run, b);
}

/* Load balancing: pick an entropy, hear of the one picked a batch earlier. */

struct lb_bench {
    const struct gw_lb_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LB_STATE_MAX / 8];
    uint16_t picked[GW_BENCH_BATCH];
    bool ce[GW_BENCH_INPUTS];
    gw_time now;
};

static void lb_run(void *state, uint64_t count)
{
    struct lb_bench *b = state;
    const gw_time packet_time = gw_path_packet_time(&gw_bench_path);
    const struct gw_lb_next next = {.bytes = GW_BENCH_MTU};
    for (uint64_t i = 0; i < count; i++) {
        b->now += packet_time;
        struct gw_lb_echo echo = {
            .rtt = gw_bench_path.brtt,
            .in_flight = gw_bench_path.bdp,
            .entropy = b->picked[i % GW_BENCH_BATCH],
            .ce = b->ce[i % GW_BENCH_INPUTS],
        };
        b->ops->on_ack(b->state, &b->cfg, &echo, b->now);
        b->picked[i % GW_BENCH_BATCH] = b->ops->pick(b->state, &b->cfg, &next, b->now);
    }
    gw_bench_sink += b->picked[0];
}

static void add_lb(struct gw_bench_suite *suite, const struct gw_algo *algo)
{
    struct lb_bench *b = gw_bench_take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(2, 0);
    b->ops = (const struct gw_lb_ops *)algo;
    gw_algo_defaults(algo, &b->cfg);
    b->ops->init(b->state, &b->cfg, &gw_bench_path, gw_prng_derive(2, 1));
    for (uint32_t i = 0; i < GW_BENCH_INPUTS; i++)
        b->ce[i] = gw_prng_below(&prng, 4) == 0;
    add_algo(suite, &gw_lb_registry, algo, "pick + on_ack", lb_run, b);
}

/* Queue discipline: one packet in, one out, with a standing queue in the range of marking. */

struct qdisc_bench {
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_QDISC_STATE_MAX / 8];
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port port;
    struct gw_pkt *spare; /* the packet that is not queued */
};

static void qdisc_run(void *state, uint64_t count)
{
    struct qdisc_bench *b = state;
    struct gw_pkt *victim;
    for (uint64_t i = 0; i < count; i++) {
        b->spare->q.ecn = GW_ECN_ECT0;
        enum gw_qdisc_verdict verdict =
            b->ops->enqueue(b->state, &b->cfg, &b->port, b->spare, UINT64_MAX, &victim);
        GW_ASSERT(verdict == GW_QDISC_QUEUED);
        b->spare = b->ops->dequeue(b->state, &b->cfg, &b->port);
    }
    gw_bench_sink += b->spare->q.ecn;
}

static void add_qdisc(struct gw_bench_suite *suite, const struct gw_algo *algo)
{
    struct qdisc_bench *b = gw_bench_take(sizeof(*b));
    struct gw_pkt *victim;
    b->ops = (const struct gw_qdisc_ops *)algo;
    gw_algo_defaults(algo, &b->cfg);
    gw_pkt_pool_init(&b->pool, gw_bench_take((GW_BENCH_BATCH + 1) * sizeof(struct gw_pkt)), 0,
                     GW_BENCH_BATCH + 1, NULL);
    b->prng = gw_prng_derive(3, 0);
    b->port = (struct gw_qdisc_port){.pool = &b->pool, .prng = &b->prng, .trim_size = GW_BENCH_HDR};
    b->ops->init(b->state, &b->cfg, 2 * GW_BENCH_BATCH * (GW_BENCH_MTU + GW_BENCH_HDR));
    for (uint32_t i = 0; i < GW_BENCH_BATCH; i++) {
        struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
        pkt->q = (struct gw_qpkt){
            .size = GW_BENCH_MTU + GW_BENCH_HDR, .flags = GW_PKT_TRIMMABLE, .key = i};
        b->ops->enqueue(b->state, &b->cfg, &b->port, pkt, UINT64_MAX, &victim);
    }
    b->spare = gw_pkt_claim(&b->pool);
    b->spare->q = (struct gw_qpkt){
        .size = GW_BENCH_MTU + GW_BENCH_HDR, .flags = GW_PKT_TRIMMABLE, .key = GW_BENCH_BATCH};
    add_algo(suite, &gw_qdisc_registry, algo, "enqueue + dequeue", qdisc_run, b);
}

void gw_bench_add_algos(struct gw_bench_suite *suite)
{
    for (uint32_t i = 0; i < gw_cc_registry.count; i++)
        add_cc(suite, gw_cc_registry.algos[i]);
    for (uint32_t i = 0; i < gw_lb_registry.count; i++)
        add_lb(suite, gw_lb_registry.algos[i]);
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++)
        add_qdisc(suite, gw_qdisc_registry.algos[i]);
}
