/*
 * All-reduces among 2 to 8 workers by every schedule, over real flows, one switch and links that
 * may be bad. Every worker must end with exactly the bits that the schedule's order of additions
 * gives, whatever arrives when; and when there can be no result, every worker must say so in time.
 */
#include "host.h"
#include "support.h"

#include "base/error.h"
#include "core/coll_run.h"
#include "core/switch.h"
#include "net/mem.h"

enum {
    WORLD_MAX = 8,
    FIRST_ADDRESS = 3, /* of rank 0, so that ranks are no addresses */
    ADDRESSES = FIRST_ADDRESS + WORLD_MAX,
    MTU = 1000,
    HDR = 44,
    PKTS = 4096,
    COUNT_MAX = 40000,
    STEPS_MAX = 4000000, /* guards against hanging only */
};

#define LATENCY  (2 * GW_US)
#define RATE_BPS UINT64_C(10000000000)
#define BRTT     (4 * LATENCY + 2 * GW_US)
#define STALL    (5 * GW_MS) /* of flows */
#define PATIENCE (8 * GW_MS) /* of runs */

struct setup {
    const char *coll;
    uint32_t world;
    uint32_t segment;
    uint32_t flows;
    uint32_t tx_flows_max;  /* 0: as documented */
    uint32_t expect_max;    /* 0: as documented */
    uint64_t queue_max;     /* bytes of a switch port; 0: enough */
    struct gw_mem_link bad; /* what the links do to packets */
};

struct worker {
    struct gw_test_host host;
    struct gw_coll_run *run;
    unsigned char *tensor;
    struct gw_event events[64]; /* those that were not the run's */
    uint32_t event_count;
    gw_time ended; /* when its last call was found to have ended */
    bool is_dead;
};

struct model {
    struct setup setup;
    struct gw_mem *mem;
    const struct gw_coll_ops *coll;
    struct gw_transport transport;
    uint32_t addresses[WORLD_MAX];
    struct gw_coll_run_cfg cfg;
    struct worker workers[WORLD_MAX];
    struct gw_switch *sw;
    struct gw_pkt_pool sw_pool;
    struct gw_buf_pool sw_bufs;
    uint32_t tag;
};

static void *take(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

/* Port i of the switch leads to rank i: one block, one leaf per address, no set. */
static void switch_open(struct model *m)
{
    static const uint16_t blocks[] = {0};
    static uint16_t leaves[ADDRESSES]; /* these three outlive the switch */
    static uint32_t capacity[WORLD_MAX];
    static union gw_algo_cfg qdisc_cfg;
    const struct gw_algo *algo = gw_registry_find(&gw_qdisc_registry, "red");
    assert_non_null(algo);
    gw_algo_defaults(algo, qdisc_cfg.bytes);
    for (uint16_t i = 0; i < WORLD_MAX; i++) {
        leaves[FIRST_ADDRESS + i] = i < m->setup.world ? i : 0;
        capacity[i] = m->setup.queue_max ? (uint32_t)m->setup.queue_max : 1 << 22;
    }
    gw_buf_pool_init(&m->sw_bufs, take(gw_buf_pool_size(PKTS, MTU)), PKTS, MTU);
    gw_pkt_pool_init(&m->sw_pool, take(PKTS * sizeof(struct gw_pkt)), 0, PKTS, &m->sw_bufs);
    struct gw_switch_cfg cfg = {
        .port_count = (uint16_t)m->setup.world,
        .qdisc = (const struct gw_qdisc_ops *)algo,
        .qdisc_cfg = qdisc_cfg.bytes,
        .capacity = capacity,
        .trim_size = HDR,
        .routes = {.blocks = blocks,
                   .leaves = leaves,
                   .destination_count = ADDRESSES,
                   .block_shift = 31},
        .seed = 1,
        .pool = &m->sw_pool,
    };
    m->sw = gw_switch_init(take(gw_switch_size(&cfg)), &cfg);
}

static void worker_open(struct model *m, uint32_t rank)
{
    struct worker *worker = &m->workers[rank];
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(m->addresses[rank], MTU);
    uint32_t awaits = gw_coll_run_awaits(&m->cfg);
    cfg.hdr = HDR;
    cfg.stall = STALL;
    cfg.tx_flows_max = m->setup.tx_flows_max ? m->setup.tx_flows_max : m->setup.flows;
    cfg.rx_flows_max = 2 * awaits + 1;
    cfg.expect_max = m->setup.expect_max ? m->setup.expect_max : awaits;
    gw_test_host_open(&worker->host, &cfg, PKTS);
    m->cfg.rank = rank;
    m->cfg.path = gw_test_path(&cfg, RATE_BPS, BRTT);
    m->cfg.path.hops = 2;
    size_t size = gw_coll_run_size(&m->cfg);
    assert_true(size > 0);
    worker->run = gw_coll_run_init(take(size), &m->cfg, worker->host.endpoint);
    worker->tensor = take(COUNT_MAX * sizeof(uint32_t));
    gw_mem_add(m->mem, gw_endpoint_node(worker->host.endpoint), &worker->host.pool);
}

static void model_open(struct model *m, const struct setup *setup)
{
    *m = (struct model){.setup = *setup, .tag = UINT32_MAX - 100}; /* wraps soon, as the clock */
    m->mem = gw_mem_open(&(struct gw_mem_cfg){
        .cookie = 3, .mtu = MTU, .frames_max = 2 * PKTS, .batch = 1, .start = (gw_time)0 - GW_MS});
    assert_non_null(m->mem);
    m->coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, setup->coll);
    assert_non_null(m->coll);
    m->transport = gw_test_transport("smartt", "spray", "timeout");
    for (uint32_t i = 0; i < WORLD_MAX; i++)
        m->addresses[i] = FIRST_ADDRESS + i;
    m->cfg = (struct gw_coll_run_cfg){
        .coll = m->coll,
        .world = setup->world,
        .addresses = m->addresses,
        .transport = &m->transport,
        .path = {.rate_bps = RATE_BPS},
        .segment = setup->segment,
        .flows = setup->flows,
        .stall = PATIENCE,
        .kernels = gw_kernels_best(0),
    };
    for (uint32_t rank = 0; rank < setup->world; rank++)
        worker_open(m, rank);
    switch_open(m);
    uint32_t sw = gw_mem_add(m->mem, gw_switch_node(m->sw), &m->sw_pool);
    struct gw_mem_link link = setup->bad;
    link.latency = LATENCY;
    link.rate_bps = RATE_BPS;
    for (uint16_t i = 0; i < setup->world; i++) {
        gw_mem_connect(m->mem, i, 0, sw, i, &link);
        gw_mem_connect(m->mem, sw, i, i, 0, &link);
    }
}

static enum gw_coll_run_state state_of(const struct worker *worker)
{
    return gw_coll_run_status(worker->run).state;
}

static void take_events(struct model *m, struct worker *worker)
{
    struct gw_event event;
    gw_time now = gw_mem_now(m->mem);
    bool ran = state_of(worker) == GW_COLL_RUN_RUNNING;
    while (gw_endpoint_poll(worker->host.endpoint, &event, 1))
        if (!gw_coll_run_event(worker->run, &event, now)) {
            assert_true(worker->event_count < GW_COUNT_OF(worker->events));
            worker->events[worker->event_count++] = event;
        }
    gw_coll_run_expire(worker->run, now);
    if (ran && state_of(worker) != GW_COLL_RUN_RUNNING)
        worker->ended = now;
}

/* One instant; false: nothing is left to do until `until`. */
static bool model_step(struct model *m, gw_time until)
{
    bool stepped = gw_mem_step(m->mem, until);
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (!m->workers[rank].is_dead)
            take_events(m, &m->workers[rank]);
    return stepped;
}

/* Until no call runs. */
static void model_run(struct model *m)
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
static void model_drain(struct model *m)
{
    uint32_t steps = 0;
    while (model_step(m, GW_TIME_NEVER))
        assert_true(steps++ < STEPS_MAX);
}

static void model_close(struct model *m)
{
    model_drain(m);
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        struct worker *worker = &m->workers[rank];
        gw_coll_run_fini(worker->run);
        gw_endpoint_fini(worker->host.endpoint);
        if (!worker->is_dead)
            assert_true(gw_node_deadline(gw_endpoint_node(worker->host.endpoint)) == GW_TIME_NEVER);
        assert_int_equal(gw_endpoint_stats(worker->host.endpoint)->malformed, 0);
        gw_test_host_close(&worker->host);
        free(worker->run);
        free(worker->tensor);
    }
    assert_int_equal(m->sw_pool.free_count + (m->sw_pool.end - m->sw_pool.fresh), PKTS);
    free(m->sw);
    free(m->sw_pool.pkts);
    free(m->sw_bufs.refs);
    gw_mem_close(m->mem);
}

struct call {
    uint64_t count;
    enum gw_dtype type;
    bool average;
    uint64_t seed;
};

static void expect_start(struct model *m, uint32_t rank, const struct call *call, int result)
{
    unsigned char *tensor = m->workers[rank].tensor;
    assert_int_equal(gw_coll_run_start(m->workers[rank].run,
                                       &(struct gw_tensor){.in = tensor,
                                                           .out = tensor,
                                                           .count = call->count,
                                                           .type = call->type,
                                                           .average = call->average,
                                                           .tag = m->tag},
                                       gw_mem_now(m->mem)),
                     result);
}

static void start(struct model *m, uint32_t rank, const struct call *call)
{
    expect_start(m, rank, call, GW_OK);
}

/* The next call takes other tags. */
static void move_tags(struct model *m, const struct call *call)
{
    m->tag += (uint32_t)gw_coll_run_tags(m->workers[0].run, call->count, call->type);
}

/* Floats of either sign and about the same magnitude, integers whose sums fit. */
static void fill_tensor(unsigned char *tensor, const struct call *call, uint32_t rank)
{
    uint32_t size = gw_dtype_size(call->type);
    gw_test_fill(tensor, call->count * size, call->seed * WORLD_MAX + rank);
    for (uint64_t i = 0; i < call->count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, tensor + size * i, size);
        if (call->type == GW_DTYPE_F32)
            bits = (bits & UINT32_C(0x81ffffff)) | UINT32_C(0x3c000000);
        else if (call->type == GW_DTYPE_I32)
            bits = (uint32_t)((int32_t)bits >> 4);
        else
            bits = (bits & 0x83ff) | (call->type == GW_DTYPE_F16 ? 0x3800 : 0x3c00);
        memcpy(tensor + size * i, &bits, size);
    }
}

/*
 * What the schedule's order of additions gives, step by step, all workers in step. Each worker has
 * it all in the end.
 */
static void reference(const struct model *m, const struct call *call, unsigned char **results)
{
    const struct gw_kernels *kernels = gw_kernels_best(0);
    uint32_t n = m->setup.world, steps = m->coll->steps(n), size = gw_dtype_size(call->type);
    unsigned char *before[WORLD_MAX];
    for (uint32_t rank = 0; rank < n; rank++)
        before[rank] = take(call->count * size);
    for (uint32_t at = 0; at < steps; at++) {
        for (uint32_t rank = 0; rank < n; rank++)
            memcpy(before[rank], results[rank], call->count * size);
        for (uint32_t rank = 0; rank < n; rank++) {
            struct gw_coll_step step = m->coll->step(rank, n, at, call->count);
            bool is_last = m->coll->step(rank, n, at + 1, call->count).op == GW_COLL_COPY;
            unsigned char *to = results[rank] + step.recv_first * size;
            const unsigned char *from = before[step.from] + step.recv_first * size;
            if (step.op == GW_COLL_COPY)
                memcpy(to, from, step.recv_count * size);
            else
                assert_true(kernels->reduce[call->type](to, from, (uint32_t)step.recv_count,
                                                        call->average && is_last ? n : 1));
        }
    }
    for (uint32_t rank = 0; rank < n; rank++)
        free(before[rank]);
}

static void fill_all(struct model *m, const struct call *call, unsigned char **results)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        fill_tensor(m->workers[rank].tensor, call, rank);
        results[rank] = take(call->count * sizeof(uint32_t) + 1);
        memcpy(results[rank], m->workers[rank].tensor, call->count * gw_dtype_size(call->type));
    }
    reference(m, call, results);
}

static void check_all(struct model *m, const struct call *call, unsigned char **results)
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
static void call_late(struct model *m, const struct call *call, uint32_t late, gw_time delay)
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

static void call_once(struct model *m, const struct call *call)
{
    call_late(m, call, UINT32_MAX, 0);
}

static struct gw_endpoint_stats stats_of(const struct model *m)
{
    struct gw_endpoint_stats sum = {0};
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        const struct gw_endpoint_stats *stats = gw_endpoint_stats(m->workers[rank].host.endpoint);
        sum.refused += stats->refused;
        sum.retransmits += stats->retransmits;
        sum.duplicates += stats->duplicates;
        sum.data_sent += stats->data_sent;
    }
    return sum;
}

/*
 * Every schedule, number of workers, type and operation, one call after the other; in a network
 * where nothing is lost no data is refused, as memory is posted before it arrives.
 */
static void coll_run__gives_the_bits_of_the_schedule(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 2, 5, 64, 257, 3001};
    for (uint32_t c = 0; c < gw_coll_registry.count; c++)
        for (uint32_t world = 2; world <= WORLD_MAX; world++) {
            const struct gw_coll_ops *coll = (const struct gw_coll_ops *)gw_coll_registry.algos[c];
            if (!coll->allows(world))
                continue;
            struct setup setup = {
                .coll = coll->algo.name, .world = world, .segment = 160, .flows = 4};
            struct model m;
            model_open(&m, &setup);
            for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPES; type++)
                for (uint32_t i = 0; i < 2 * GW_COUNT_OF(counts); i++) {
                    call_once(&m, &(struct call){counts[i / 2], type, i % 2, i + world});
                    model_drain(&m);
                }
            assert_true(stats_of(&m).refused == 0 && stats_of(&m).retransmits == 0);
            model_close(&m);
        }
}

/* Each link loses, doubles and delays packets, others at each: nothing but the time may change. */
static void coll_run__is_the_same_whatever_is_lost(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "halving-doubling"};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++)
        for (uint32_t world = 2; world <= WORLD_MAX; world += world < 4 ? 1 : 4) {
            if (world == 3 && c == 1)
                continue;
            struct setup setup = {.coll = colls[c], .world = world, .segment = 3000, .flows = 3};
            struct model m;
            model_open(&m, &setup);
            for (uint32_t link = 0; link < 2 * world; link++) {
                struct gw_mem_link bad = {.latency = LATENCY,
                                          .rate_bps = RATE_BPS,
                                          .lose = UINT64_C(0x0000100000200001) << link % 7,
                                          .duplicate = UINT64_C(0x0100000000400010) << link % 5,
                                          .delay = UINT64_C(0x0008001000000800) << link % 3,
                                          .delay_by = 30 * GW_US};
                gw_mem_change(m.mem, link, &bad);
            }
            for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPES; type++)
                for (uint64_t i = 0; i < 3; i++)
                    call_once(&m, &(struct call){5000 + 997 * i, type, i % 2, i});
            struct gw_endpoint_stats stats = stats_of(&m);
            assert_true(stats.retransmits > 100 && stats.duplicates > 100);
            model_close(&m);
        }
}

/*
 * The order of a ring, spelt out: chunk c begins as the value of rank c, and goes up the ranks. The
 * values are such that other orders give other sums.
 */
static void coll_run__adds_around_the_ring(void **state)
{
    (void)state;
    enum { WORLD = 5, COUNT = 503 };
    struct model m;
    model_open(&m, &(struct setup){.coll = "ring", .world = WORLD, .segment = 64, .flows = 2});
    float values[WORLD][COUNT], sum[COUNT], other[COUNT];
    struct call call = {COUNT, GW_DTYPE_F32, true, 9};
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        fill_tensor(m.workers[rank].tensor, &call, rank);
        memcpy(values[rank], m.workers[rank].tensor, sizeof(values[rank]));
    }
    for (uint32_t chunk = 0; chunk < WORLD; chunk++)
        for (uint64_t i = gw_coll_chunk(chunk, WORLD, COUNT);
             i < gw_coll_chunk(chunk + 1, WORLD, COUNT); i++) {
            float partial = values[chunk][i], up = values[0][i];
            for (uint32_t hop = 1; hop + 1 < WORLD; hop++)
                partial = values[(chunk + hop) % WORLD][i] + partial;
            for (uint32_t rank = 1; rank + 1 < WORLD; rank++)
                up = values[rank][i] + up;
            uint32_t last = (chunk + WORLD - 1) % WORLD;
            sum[i] = (float)(((double)values[last][i] + partial) / WORLD);
            other[i] = (float)(((double)values[WORLD - 1][i] + up) / WORLD);
        }
    assert_memory_not_equal(sum, other, sizeof(sum));
    for (uint32_t rank = 0; rank < WORLD; rank++)
        start(&m, rank, &call);
    model_run(&m);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_memory_equal(m.workers[rank].tensor, sum, sizeof(sum));
    model_close(&m);
}

static gw_time time_of(const char *coll, uint32_t segment)
{
    struct model m;
    model_open(&m, &(struct setup){.coll = coll, .world = 4, .segment = segment, .flows = 16});
    gw_time begin = gw_mem_now(m.mem);
    call_once(&m, &(struct call){COUNT_MAX / 4, GW_DTYPE_F32, false, 1});
    gw_time time = gw_mem_now(m.mem) - begin;
    model_close(&m);
    return time;
}

/*
 * Of 40 kB each worker sends 60 kB, 48 us without headers. In whole steps the latency of two links
 * comes on top of each step, of which a ring has six and halving and doubling have four; in
 * segments it should come about once, with the time to store and forward what depends on one
 * another.
 */
static void coll_run__segments_overlap(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "halving-doubling"};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++) {
        gw_time whole = time_of(colls[c], COUNT_MAX), cut = time_of(colls[c], 1000);
        print_message("%s: %llu us in whole steps, %llu us in segments\n", colls[c],
                      (unsigned long long)(whole / GW_US), (unsigned long long)(cut / GW_US));
        assert_true(cut > 48 * GW_US && whole > cut + 4 * LATENCY);
    }
}

/* What comes before a worker has begun is refused, and sent again. */
static void coll_run__waits_for_who_begins_late(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "halving-doubling"};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++) {
        struct model m;
        model_open(&m, &(struct setup){.coll = colls[c], .world = 4, .segment = 4000, .flows = 4});
        for (uint32_t late = 0; late < 4; late++)
            call_late(&m, &(struct call){10000, GW_DTYPE_F32, true, late}, late, 300 * GW_US);
        assert_true(stats_of(&m).refused > 0);
        model_close(&m);
    }
}

/* With less room in the endpoint than documented, and with the least there is, it only takes
 * longer. */
static void coll_run__waits_for_room_in_the_endpoint(void **state)
{
    (void)state;
    static const struct setup setups[] = {
        {.coll = "ring", .world = 3, .segment = 400, .flows = 8, .tx_flows_max = 1},
        {.coll = "ring", .world = 3, .segment = 400, .flows = 2, .expect_max = 1},
        {.coll = "halving-doubling", .world = 4, .segment = 400, .flows = 8, .tx_flows_max = 2},
        {.coll = "halving-doubling", .world = 4, .segment = 400, .flows = 2, .expect_max = 3},
        {.coll = "ring", .world = 2, .segment = 4, .flows = 1},
        {.coll = "ring", .world = 4, .segment = 4000, .flows = 4, .queue_max = 5 * (MTU + HDR)},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(setups); i++) {
        struct model m;
        model_open(&m, &setups[i]);
        call_once(&m, &(struct call){1500, GW_DTYPE_BF16, false, i});
        call_once(&m, &(struct call){1500, GW_DTYPE_I32, true, i});
        model_close(&m);
    }
}

/* A second run on a worker's endpoint, whose result goes elsewhere. */
struct second {
    struct gw_coll_run *run;
    unsigned char *in, *out;
};

static void second_start(struct model *m, uint32_t rank, const struct call *call,
                         struct second *second)
{
    size_t size = call->count * gw_dtype_size(call->type);
    m->cfg.rank = rank;
    second->run =
        gw_coll_run_init(take(gw_coll_run_size(&m->cfg)), &m->cfg, m->workers[rank].host.endpoint);
    second->in = take(size);
    second->out = take(size);
    fill_tensor(second->in, call, rank);
    struct gw_tensor tensor = {.in = second->in,
                               .out = second->out,
                               .count = call->count,
                               .type = call->type,
                               .average = call->average,
                               .tag = m->tag};
    assert_int_equal(gw_coll_run_start(second->run, &tensor, gw_mem_now(m->mem)), GW_OK);
}

/* Hands on the events that were not the first run's; those stay that are nobody's. */
static void hand_on(struct model *m, uint32_t rank, struct second *second)
{
    struct worker *worker = &m->workers[rank];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < worker->event_count; i++)
        if (!gw_coll_run_event(second->run, &worker->events[i], gw_mem_now(m->mem)))
            worker->events[kept++] = worker->events[i];
    worker->event_count = kept;
}

/* A message of somebody else and two runs, which compete for four flows. */
static void coll_run__shares_an_endpoint(void **state)
{
    (void)state;
    enum { WORLD = 2, COUNT = 4000 };
    const struct call calls[] = {{COUNT, GW_DTYPE_I32, false, 4}, {COUNT, GW_DTYPE_F16, true, 5}};
    struct setup setup = {.coll = "ring", .world = WORLD, .segment = 800, .flows = 3};
    struct model m;
    struct second second[WORLD];
    unsigned char *results[2][WORLD_MAX], message[3 * MTU], copy[3 * MTU];
    uint32_t flow;
    setup.tx_flows_max = 4;
    setup.expect_max = 7;
    model_open(&m, &setup);
    gw_test_fill(message, sizeof(message), 7);
    struct gw_send send = {.peer = m.addresses[1],
                           .bytes = sizeof(message),
                           .data = message,
                           .tag = m.tag - 1,
                           .transport = &m.transport,
                           .path = m.cfg.path};
    assert_int_equal(gw_endpoint_expect(m.workers[1].host.endpoint, m.addresses[0], send.tag, copy,
                                        sizeof(copy)),
                     GW_OK);
    assert_int_equal(gw_endpoint_send(m.workers[0].host.endpoint, &send, &flow, gw_mem_now(m.mem)),
                     GW_OK);
    fill_all(&m, &calls[1], results[1]);
    fill_all(&m, &calls[0], results[0]);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        start(&m, rank, &calls[0]);
    move_tags(&m, &calls[0]);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        second_start(&m, rank, &calls[1], &second[rank]);
    while (model_step(&m, GW_TIME_NEVER))
        for (uint32_t rank = 0; rank < WORLD; rank++)
            hand_on(&m, rank, &second[rank]);
    assert_int_equal(m.workers[0].event_count, 1);
    assert_int_equal(m.workers[1].event_count, 1);
    assert_int_equal(m.workers[0].events[0].kind, GW_EVENT_SENT);
    assert_int_equal(m.workers[1].events[0].kind, GW_EVENT_RECEIVED);
    assert_memory_equal(copy, message, sizeof(copy));
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        m.workers[rank].event_count = 0;
        assert_int_equal(gw_coll_run_status(second[rank].run).state, GW_COLL_RUN_DONE);
        assert_memory_equal(second[rank].out, results[1][rank], COUNT * sizeof(uint16_t));
        gw_coll_run_fini(second[rank].run);
        free(second[rank].run);
        free(second[rank].in);
        free(second[rank].out);
        free(results[1][rank]);
    }
    check_all(&m, &calls[0], results[0]);
    model_close(&m);
}

static void check_failed(const struct model *m, uint32_t rank, enum gw_job_reason reason,
                         uint32_t about)
{
    struct gw_coll_run_status status = gw_coll_run_status(m->workers[rank].run);
    assert_int_equal(status.state, GW_COLL_RUN_FAILED);
    assert_int_equal(status.reason, reason);
    assert_int_equal(status.about, about);
}

/*
 * A worker dies on the way. Its neighbours name it, in a ring by a flow that stalls and by the
 * deadline; nobody goes on, and nothing of the call stays in the endpoints of those that live.
 */
static void coll_run__fails_when_a_worker_dies(void **state)
{
    (void)state;
    enum { WORLD = 5, DEAD = 3 };
    struct call call = {COUNT_MAX, GW_DTYPE_F32, false, 2};
    for (gw_time life = 0; life <= 80 * GW_US; life += 20 * GW_US) {
        struct model m;
        model_open(&m,
                   &(struct setup){.coll = "ring", .world = WORLD, .segment = 4000, .flows = 4});
        for (uint32_t rank = 0; rank < WORLD; rank++)
            if (rank != DEAD || life)
                start(&m, rank, &call);
        gw_time death = gw_time_add(gw_mem_now(m.mem), life);
        while (model_step(&m, death)) {
        }
        m.workers[DEAD].is_dead = true;
        gw_mem_replace(m.mem, DEAD, NULL, NULL);
        model_run(&m);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            if (rank == DEAD)
                continue;
            struct gw_coll_run_status status = gw_coll_run_status(m.workers[rank].run);
            assert_int_equal(status.state, GW_COLL_RUN_FAILED);
            assert_int_equal(status.reason, GW_JOB_LOST);
            if (rank == DEAD - 1 || rank == DEAD + 1)
                assert_int_equal(status.about, DEAD);
            /* What was under way has arrived before a whole call could have ended. */
            assert_true(m.workers[rank].ended - death < PATIENCE + 300 * GW_US);
        }
        assert_true(m.workers[DEAD - 1].ended - death < STALL + 100 * GW_US);
        model_close(&m);
    }
}

/* Rank 1 finds the overflow at the second of three additions; the sum of all would fit. */
static void coll_run__fails_when_a_sum_does_not_fit(void **state)
{
    (void)state;
    enum {
        WORLD = 4,
        COUNT = 4000,
        AT = 3 * COUNT / 4 + 500 /* in the chunk that rank 3 begins */
    };
    static const int32_t values[WORLD] = {1, INT32_MAX, -INT32_MAX, 0};
    struct model m;
    model_open(&m, &(struct setup){.coll = "ring", .world = WORLD, .segment = 400, .flows = 4});
    struct call call = {COUNT, GW_DTYPE_I32, false, 3};
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        fill_tensor(m.workers[rank].tensor, &call, rank);
        memcpy(m.workers[rank].tensor + AT * sizeof(int32_t), &values[rank], sizeof(int32_t));
        start(&m, rank, &call);
    }
    while (state_of(&m.workers[1]) == GW_COLL_RUN_RUNNING)
        assert_true(model_step(&m, GW_TIME_NEVER));
    check_failed(&m, 1, GW_JOB_OVERFLOW, 1);
    unsigned char *tensor = m.workers[1].tensor;
    memset(tensor, 0xee, COUNT * sizeof(int32_t));
    model_run(&m);
    model_drain(&m);
    for (uint32_t i = 0; i < COUNT * sizeof(int32_t); i++)
        assert_int_equal(tensor[i], 0xee);
    check_failed(&m, 0, GW_JOB_LOST, 1);
    check_failed(&m, 2, GW_JOB_LOST, 1);
    check_failed(&m, 3, GW_JOB_LOST, 2);
    /* The call is over; another one goes well. */
    move_tags(&m, &call);
    call_once(&m, &call);
    model_close(&m);
}

/* A chunk of another worker is shorter, or longer than the memory for it: no result either way. */
static void coll_run__fails_when_sizes_differ(void **state)
{
    (void)state;
    for (int32_t more = -4; more <= 4; more += 8) {
        struct model m;
        model_open(&m, &(struct setup){.coll = "ring", .world = 2, .segment = 4000, .flows = 2});
        struct call call = {1000, GW_DTYPE_F32, false, 3};
        for (uint32_t rank = 0; rank < 2; rank++) {
            start(&m, rank, &call);
            call.count += (uint64_t)more;
        }
        model_run(&m);
        check_failed(&m, 0, more < 0 ? GW_JOB_MISMATCH : GW_JOB_LOST, 1);
        check_failed(&m, 1, more < 0 ? GW_JOB_LOST : GW_JOB_MISMATCH, 0);
        model_close(&m);
    }
}

/* Nobody else is needed, or nothing is to be done. */
static void coll_run__ends_at_once_when_alone(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.coll = "ring", .world = 1, .segment = 400, .flows = 2});
    struct call call = {100, GW_DTYPE_F32, true, 3};
    fill_tensor(m.workers[0].tensor, &call, 0);
    float in[100], out[100];
    memcpy(in, m.workers[0].tensor, sizeof(in));
    struct gw_tensor tensor = {.in = in, .out = out, .count = 100, .average = true};
    assert_int_equal(gw_coll_run_start(m.workers[0].run, &tensor, 0), GW_OK);
    assert_int_equal(state_of(&m.workers[0]), GW_COLL_RUN_DONE);
    assert_memory_equal(out, in, sizeof(out));
    model_close(&m);
    model_open(&m, &(struct setup){.coll = "ring", .world = 3, .segment = 400, .flows = 2});
    tensor = (struct gw_tensor){.count = 0};
    assert_int_equal(gw_coll_run_start(m.workers[2].run, &tensor, 0), GW_OK);
    assert_int_equal(state_of(&m.workers[2]), GW_COLL_RUN_DONE);
    model_close(&m);
}

static void coll_run__refuses_what_it_cannot_run(void **state)
{
    (void)state;
    struct model m;
    model_open(&m,
               &(struct setup){.coll = "halving-doubling", .world = 4, .segment = 4, .flows = 2});
    struct call call = {100, GW_DTYPE_F32, true, 3};
    unsigned char *tensor = m.workers[0].tensor;
    /* 4 steps of 2^30 segments each. */
    call.count = UINT64_C(1) << 30;
    assert_true(gw_coll_run_tags(m.workers[0].run, call.count, call.type) == UINT64_C(1) << 32);
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    call.count = 100;
    call.type = GW_DTYPES;
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    call.type = GW_DTYPE_F32;
    m.workers[0].tensor = NULL;
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    m.workers[0].tensor = tensor;
    assert_int_equal(state_of(&m.workers[0]), GW_COLL_RUN_IDLE);
    start(&m, 0, &call);
    expect_start(&m, 0, &call, GW_ERR_INVALID);

    struct gw_coll_run_cfg good = m.cfg, bad;
    assert_true(gw_coll_run_size(&good) > 2 * 2 * good.segment);
    assert_int_equal(gw_coll_run_awaits(&good), 2 * 2);
    bad = good, bad.rank = bad.world;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    bad = good, bad.world = 3, bad.rank = 0;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    bad = good, bad.segment = 6;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    bad = good, bad.segment = 0;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    bad = good, bad.flows = 0;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    bad = good, bad.flows = GW_COLL_RUN_FLOWS_MAX + 1;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    gw_coll_run_fini(m.workers[0].run);
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_run__gives_the_bits_of_the_schedule),
        cmocka_unit_test(coll_run__is_the_same_whatever_is_lost),
        cmocka_unit_test(coll_run__adds_around_the_ring),
        cmocka_unit_test(coll_run__segments_overlap),
        cmocka_unit_test(coll_run__waits_for_who_begins_late),
        cmocka_unit_test(coll_run__waits_for_room_in_the_endpoint),
        cmocka_unit_test(coll_run__shares_an_endpoint),
        cmocka_unit_test(coll_run__fails_when_a_worker_dies),
        cmocka_unit_test(coll_run__fails_when_a_sum_does_not_fit),
        cmocka_unit_test(coll_run__fails_when_sizes_differ),
        cmocka_unit_test(coll_run__ends_at_once_when_alone),
        cmocka_unit_test(coll_run__refuses_what_it_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
