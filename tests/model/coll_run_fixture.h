/*
 * Up to 8 workers, or as many as COLL_RUN_WORLD_MAX says, for tests of coll_run.h: each has an
 * endpoint with a run, and one switch joins them. An all-reduce is checked against the schedule
 * played step by step.
 */
#ifndef GW_TESTS_COLL_RUN_FIXTURE_H
#define GW_TESTS_COLL_RUN_FIXTURE_H

#include "host.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/error.h"
#include "core/quant/combine.h"
#include "core/ranks/coll_run.h"
#include "net/mem.h"

#ifndef COLL_RUN_WORLD_MAX
#define COLL_RUN_WORLD_MAX 8
#endif

enum {
    WORLD_MAX = COLL_RUN_WORLD_MAX,
    FIRST_ADDRESS = 3, /* of rank 0, so that ranks are no addresses */
    ADDRESSES = FIRST_ADDRESS + WORLD_MAX,
    MTU = 1000,
    HDR = 44,
    PKTS = 4096,
    COUNT_MAX = 40000,
    ELEMENT_MAX = 8,      /* bytes */
    STEPS_MAX = 40000000, /* guards against hanging only */
};

#define LATENCY  (2 * GW_US)
#define RATE_BPS UINT64_C(10000000000)
#define STALL    (5 * GW_MS) /* of flows */
#define PATIENCE (8 * GW_MS) /* of runs */

struct setup {
    const char *coll;
    uint32_t world;
    uint32_t segment;
    uint32_t flows;
    uint32_t tx_flows_max; /* 0: as documented */
    uint32_t expect_max;   /* 0: as documented */
    uint64_t queue_max;    /* bytes of a switch port; 0: enough */
    uint64_t rate_bps;     /* of links; 0: RATE_BPS */
    gw_time latency;       /* of links; 0: LATENCY */
    gw_time stall;         /* of runs; 0: PATIENCE, and longer with slower links */
    bool is_bare;          /* messages carry no payload */
    bool takes_parts;      /* of calls */
    uint64_t gap;          /* elements between the parts of two workers, which nobody touches */
};

struct worker {
    struct gw_test_host host;
    struct gw_coll_run *run;
    struct gw_coll_run *second; /* another one, or NULL */
    unsigned char *tensor;
    struct gw_event events[4]; /* those that were not the runs' */
    uint32_t event_count;
    gw_time ended; /* when its last call was found to have ended */
    bool is_dead;
};

struct model {
    struct setup setup;
    struct gw_mem *mem;
    const struct gw_coll_ops *coll;
    struct gw_transport transport, parts_transport;
    uint32_t addresses[WORLD_MAX];
    struct gw_coll_run_cfg cfg;
    struct worker workers[WORLD_MAX];
    struct gw_switch *sw;
    struct gw_pkt_pool sw_pool;
    struct gw_buf_pool sw_bufs;
    uint32_t tag;
};

/* Port i of the switch leads to rank i. */
static inline void switch_open(struct model *m)
{
    static uint16_t leaves[ADDRESSES]; /* outlives the switch */
    for (uint16_t i = 0; i < WORLD_MAX; i++)
        leaves[FIRST_ADDRESS + i] = i < m->setup.world ? i : 0;
    struct gw_switch_cfg cfg = gw_test_switch_cfg((uint16_t)m->setup.world, "red", &m->sw_pool);
    cfg.capacity = gw_test_capacity(m->setup.queue_max ? (uint32_t)m->setup.queue_max : 1 << 22);
    cfg.trim_size = HDR;
    cfg.routes = gw_test_routes(leaves, ADDRESSES);
    gw_test_pool_open(&m->sw_pool, &m->sw_bufs, PKTS, MTU);
    m->sw = gw_test_switch_open(&cfg);
}

static inline void worker_open(struct model *m, uint32_t rank)
{
    struct worker *worker = &m->workers[rank];
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(m->addresses[rank], MTU);
    uint32_t awaits = gw_coll_run_awaits(&m->cfg);
    cfg.hdr = HDR;
    cfg.stall = STALL;
    cfg.early_packets = 2 * rank;
    cfg.tx_flows_max = m->setup.tx_flows_max ? m->setup.tx_flows_max : gw_coll_run_sends(&m->cfg);
    cfg.rx_flows_max = 2 * awaits + 1;
    if (m->setup.takes_parts) {
        cfg.blasts_max = 2 * awaits + 1;
        cfg.blast_packets_max = m->setup.segment / MTU;
        cfg.report_every = 20 * GW_US;
    }
    cfg.expect_max = m->setup.expect_max ? m->setup.expect_max : awaits;
    gw_test_host_open(&worker->host, &cfg, PKTS);
    if (m->setup.is_bare)
        worker->host.pool.bufs = NULL;
    m->cfg.rank = rank;
    gw_time brtt = 4 * m->setup.latency + 2 * GW_US * (RATE_BPS / m->setup.rate_bps);
    m->cfg.path = gw_test_path(&cfg, m->setup.rate_bps, brtt);
    m->cfg.path.hops = 2;
    size_t size = gw_coll_run_size(&m->cfg);
    assert_true(size > 0);
    worker->run = gw_coll_run_init(gw_test_take(size), &m->cfg, worker->host.endpoint);
    worker->tensor = gw_test_take(COUNT_MAX * ELEMENT_MAX);
    gw_mem_add(m->mem, gw_endpoint_node(worker->host.endpoint), &worker->host.pool);
}

static inline void model_open(struct model *m, const struct setup *setup)
{
    *m = (struct model){.setup = *setup, .tag = UINT32_MAX - 100}; /* wraps soon, as the clock */
    m->setup.rate_bps = setup->rate_bps ? setup->rate_bps : RATE_BPS;
    m->setup.latency = setup->latency ? setup->latency : LATENCY;
    m->mem = gw_mem_open(&(struct gw_mem_cfg){
        .cookie = 3, .mtu = MTU, .frames_max = 2 * PKTS, .batch = 1, .start = (gw_time)0 - GW_MS});
    assert_non_null(m->mem);
    m->coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, setup->coll);
    assert_non_null(m->coll);
    m->transport = gw_test_transport("smartt", "spray", "timeout");
    for (uint32_t i = 0; i < WORLD_MAX; i++)
        m->addresses[i] = FIRST_ADDRESS + i;
    m->parts_transport = gw_test_transport("dlcp", "spray", "timeout");
    m->cfg = (struct gw_coll_run_cfg){
        .world = setup->world,
        .lanes_max = gw_coll_run_lanes(m->coll, 0, setup->world),
        .addresses = m->addresses,
        .transport = &m->transport,
        .path = {.rate_bps = RATE_BPS},
        .segment = setup->segment,
        .flows = setup->flows,
        .stall = setup->stall ? setup->stall : PATIENCE * (RATE_BPS / m->setup.rate_bps),
        .parts_transport = setup->takes_parts ? &m->parts_transport : NULL,
        .mtu = MTU,
        .kernels = setup->is_bare ? NULL : gw_kernels_best(0),
    };
    for (uint32_t rank = 0; rank < setup->world; rank++)
        worker_open(m, rank);
    switch_open(m);
    uint32_t sw = gw_mem_add(m->mem, gw_switch_node(m->sw), &m->sw_pool);
    struct gw_mem_link link = {.latency = m->setup.latency, .rate_bps = m->setup.rate_bps};
    for (uint16_t i = 0; i < setup->world; i++) {
        gw_mem_connect(m->mem, i, 0, sw, i, &link);
        gw_mem_connect(m->mem, sw, i, i, 0, &link);
    }
}

/* From now on each link loses, doubles and delays packets, others at each. */
static inline void model_worsen(struct model *m)
{
    for (uint32_t link = 0; link < 2 * m->setup.world; link++) {
        struct gw_mem_link bad = {.latency = LATENCY,
                                  .rate_bps = RATE_BPS,
                                  .lose = UINT64_C(0x0000100000200001) << link % 7,
                                  .duplicate = UINT64_C(0x0100000000400010) << link % 5,
                                  .delay = UINT64_C(0x0008001000000800) << link % 3,
                                  .delay_by = 30 * GW_US};
        gw_mem_change(m->mem, link, &bad);
    }
}

static inline enum gw_coll_run_state state_of(const struct worker *worker)
{
    return gw_coll_run_status(worker->run).state;
}

static inline void take_events(struct model *m, struct worker *worker)
{
    struct gw_event event;
    gw_time now = gw_mem_now(m->mem);
    bool ran = state_of(worker) == GW_COLL_RUN_RUNNING;
    while (gw_endpoint_poll(worker->host.endpoint, &event, 1)) {
        bool is_known = gw_coll_run_event(worker->run, &event, now);
        if (worker->second && gw_coll_run_event(worker->second, &event, now)) {
            assert_false(is_known);
            is_known = true;
        }
        if (!is_known) {
            assert_true(worker->event_count < GW_COUNT_OF(worker->events));
            worker->events[worker->event_count++] = event;
        }
    }
    gw_coll_run_expire(worker->run, now);
    if (ran && state_of(worker) != GW_COLL_RUN_RUNNING)
        worker->ended = now;
}

/* One instant; false: nothing is left to do until `until`. */
static inline bool model_step(struct model *m, gw_time until)
{
    bool stepped = gw_mem_step(m->mem, until);
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (!m->workers[rank].is_dead)
            take_events(m, &m->workers[rank]);
    return stepped;
}

/* Until no call runs. */
static inline void model_run(struct model *m)
{
    for (uint32_t steps = 0;; steps++) {
        gw_time until = GW_TIME_NEVER;
        bool is_running = false;
        for (uint32_t rank = 0; rank < m->setup.world; rank++) {
            const struct worker *worker = &m->workers[rank];
            if (worker->is_dead || state_of(worker) != GW_COLL_RUN_RUNNING)
                continue;
            is_running = true;
            gw_time deadline = gw_coll_run_deadline(worker->run);
            if (gw_deadline_before(deadline, until))
                until = deadline;
        }
        if (!is_running)
            return;
        assert_true(steps < STEPS_MAX);
        model_step(m, until);
    }
}

/* Until nothing moves. */
static inline void model_drain(struct model *m)
{
    uint32_t steps = 0;
    while (model_step(m, GW_TIME_NEVER))
        assert_true(steps++ < STEPS_MAX);
}

static inline void model_close(struct model *m)
{
    model_drain(m);
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        struct worker *worker = &m->workers[rank];
        gw_coll_run_fini(worker->run);
        gw_endpoint_fini(worker->host.endpoint);
        if (!worker->is_dead)
            assert_true(gw_node_deadline(gw_endpoint_node(worker->host.endpoint)) == GW_TIME_NEVER);
        assert_int_equal(gw_endpoint_stats(worker->host.endpoint)->malformed, 0);
        worker->host.pool.bufs = &worker->host.bufs;
        gw_test_host_close(&worker->host);
        free(worker->run);
        free(worker->tensor);
    }
    gw_test_pool_close(&m->sw_pool);
    free(m->sw);
    gw_mem_close(m->mem);
}

struct call {
    uint64_t count;
    enum gw_dtype type;
    enum gw_op op;
    uint64_t seed;
};

static inline struct gw_coll_call call_at(const struct model *m, const struct call *call,
                                          const void *in, void *out)
{
    return (struct gw_coll_call){
        .coll = m->coll,
        .tensor = {.in = in,
                   .out = out,
                   .count = call->count,
                   .type = call->type,
                   .op = call->op,
                   .tag = m->tag},
    };
}

static inline void expect_start(struct model *m, uint32_t rank, const struct call *call, int result)
{
    unsigned char *tensor = m->workers[rank].tensor;
    const struct gw_coll_call reduce = call_at(m, call, tensor, tensor);
    assert_int_equal(gw_coll_run_start(m->workers[rank].run, &reduce, gw_mem_now(m->mem)), result);
}

static inline void start(struct model *m, uint32_t rank, const struct call *call)
{
    expect_start(m, rank, call, GW_OK);
}

/* The next call takes other tags. */
static inline void move_tags(struct model *m, const struct call *call)
{
    const struct gw_coll_call reduce = call_at(m, call, NULL, NULL);
    m->tag += (uint32_t)gw_coll_run_tags(m->workers[0].run, &reduce);
}

/* Numbers as `op` should have them: for minimum and maximum any, else floats of either sign and
 * about the same magnitude, and integers whose sums or products fit. */
static inline uint64_t number_of(uint64_t bits, const struct call *call, uint32_t rank)
{
    bool is_product = call->op == GW_OP_PRODUCT;
    if (call->op == GW_OP_MIN || call->op == GW_OP_MAX)
        return bits;
    switch (call->type) {
    case GW_DTYPE_F32:
        return (bits & 0x81ffffff) | 0x3c000000;
    case GW_DTYPE_F16:
        return (bits & 0x83ff) | 0x3800;
    case GW_DTYPE_BF16:
        return (bits & 0x83ff) | 0x3c00;
    case GW_DTYPE_F64:
        return (bits & UINT64_C(0x803fffffffffffff)) | UINT64_C(0x3f80000000000000);
    case GW_DTYPE_I32:
        return is_product ? bits % 3 + 1 : (uint32_t)((int32_t)bits >> 4);
    case GW_DTYPE_I64:
        return is_product ? bits % 30 : (uint64_t)((int64_t)bits >> 4);
    default:
        return is_product ? 1 + (rank & bits & 1) : bits % 32;
    }
}

static inline void fill_tensor(unsigned char *tensor, const struct call *call, uint32_t rank)
{
    uint32_t size = gw_dtype_size(call->type);
    gw_test_fill(tensor, call->count * size, call->seed * WORLD_MAX + rank);
    for (uint64_t i = 0; i < call->count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, tensor + size * i, size);
        bits = number_of(bits, call, rank);
        memcpy(tensor + size * i, &bits, size);
    }
}

/*
 * What the schedule's order of additions gives, step by step, all workers in step. Each worker has
 * it all in the end.
 */
static inline void reference(const struct model *m, const struct call *call,
                             unsigned char **results)
{
    const struct gw_kernels *kernels = gw_kernels_best(0);
    uint32_t n = m->setup.world, steps = m->coll->steps(n), size = gw_dtype_size(call->type);
    unsigned char *before[WORLD_MAX];
    for (uint32_t rank = 0; rank < n; rank++)
        before[rank] = gw_test_take(call->count * size);
    for (uint32_t at = 0; at < steps; at++) {
        for (uint32_t rank = 0; rank < n; rank++)
            memcpy(before[rank], results[rank], call->count * size);
        for (uint32_t rank = 0; rank < n; rank++) {
            struct gw_coll_step step = m->coll->step(rank, n, 0, at, call->count);
            bool is_share = call->op == GW_OP_AVERAGE && step.merge == GW_COLL_COMPLETE;
            const struct gw_combination how = {call->op, call->type, is_share ? n : 1};
            unsigned char *to = results[rank] + step.recv_first * size;
            const unsigned char *from = before[step.from] + step.recv_first * size;
            if (step.merge == GW_COLL_COPY)
                memcpy(to, from, step.recv_count * size);
            else
                assert_true(gw_combine(kernels, &how, to, from, (uint32_t)step.recv_count));
        }
    }
    for (uint32_t rank = 0; rank < n; rank++)
        free(before[rank]);
}

static inline void fill_all(struct model *m, const struct call *call, unsigned char **results)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        fill_tensor(m->workers[rank].tensor, call, rank);
        results[rank] = gw_test_take(call->count * ELEMENT_MAX + 1);
        memcpy(results[rank], m->workers[rank].tensor, call->count * gw_dtype_size(call->type));
    }
    reference(m, call, results);
}

static inline void check_all(struct model *m, const struct call *call, unsigned char **results)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        assert_int_equal(state_of(&m->workers[rank]), GW_COLL_RUN_DONE);
        assert_true(gw_coll_run_deadline(m->workers[rank].run) == GW_TIME_NEVER);
        assert_memory_equal(results[rank], results[0], call->count * gw_dtype_size(call->type));
        assert_memory_equal(m->workers[rank].tensor, results[rank],
                            call->count * gw_dtype_size(call->type));
        assert_int_equal(m->workers[rank].event_count, 0);
    }
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        free(results[rank]);
}

/* A call from start to end; rank `late` begins `delay` after the others. */
static inline void call_late(struct model *m, const struct call *call, uint32_t late, gw_time delay)
{
    unsigned char *results[WORLD_MAX];
    fill_all(m, call, results);
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (rank != late)
            start(m, rank, call);
    if (late < m->setup.world) {
        gw_time until = gw_time_add(gw_mem_now(m->mem), delay);
        while (model_step(m, until)) {
        }
        start(m, late, call);
    }
    model_run(m);
    move_tags(m, call);
    check_all(m, call, results);
}

static inline void call_once(struct model *m, const struct call *call)
{
    call_late(m, call, UINT32_MAX, 0);
}

#endif
