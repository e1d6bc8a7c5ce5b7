/*
 * All-reduces among 2 to 8 workers by every schedule, over real flows. Every worker must end with
 * exactly the bits that the schedule's order of additions gives, whatever arrives when.
 */
#include "coll_run_fixture.h"

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
 * Every schedule, number of workers, type and operation, one call after the other. In a network
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
            struct setup setup = {.coll = coll->algo.name,
                                  .world = world,
                                  .segment = 160,
                                  .flows = 4,
                                  .tx_flows_max = 16};
            struct model m;
            model_open(&m, &setup);
            for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPES; type++)
                for (uint32_t i = 0; i < GW_OPS * GW_COUNT_OF(counts); i++) {
                    enum gw_op op = (enum gw_op)(i % GW_OPS);
                    /* What needs no kernels of its own has a third of the counts. */
                    if (!gw_op_exists(op, type) ||
                        (!gw_op_by_switch(op, type) && i / GW_OPS % 3 != type % 3))
                        continue;
                    call_once(&m, &(struct call){counts[i / GW_OPS], type, op, i + world});
                    model_drain(&m);
                }
            assert_true(stats_of(&m).refused == 0 && stats_of(&m).retransmits == 0);
            model_close(&m);
        }
}

/* Whatever links do to packets, nothing but the time may change. */
static void coll_run__is_the_same_whatever_is_lost(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "halving-doubling", "doubling"};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++)
        for (uint32_t world = 2; world <= WORLD_MAX; world += world < 4 ? 1 : 4) {
            if (world == 3 && c > 0)
                continue;
            struct setup setup = {.coll = colls[c], .world = world, .segment = 3000, .flows = 3};
            struct model m;
            model_open(&m, &setup);
            model_worsen(&m);
            for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPE_SUMMABLE; type++)
                for (uint64_t i = 0; i < 3; i++)
                    call_once(&m, &(struct call){5000 + 997 * i, type, (enum gw_op)(i % 2), i});
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
    struct call call = {COUNT, GW_DTYPE_F32, GW_OP_AVERAGE, 9};
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
    call_once(&m, &(struct call){COUNT_MAX / 4, GW_DTYPE_F32, GW_OP_SUM, 1});
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
    static const char *const colls[] = {"ring", "halving-doubling", "doubling"};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++) {
        struct model m;
        model_open(&m, &(struct setup){.coll = colls[c], .world = 4, .segment = 4000, .flows = 4});
        for (uint32_t late = 0; late < 4; late++)
            call_late(&m, &(struct call){10000, GW_DTYPE_F32, GW_OP_AVERAGE, late}, late,
                      300 * GW_US);
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
        {.coll = "doubling", .world = 4, .segment = 400, .flows = 2, .expect_max = 2},
        {.coll = "doubling", .world = 2, .segment = 400, .flows = 8, .tx_flows_max = 1},
        {.coll = "ring", .world = 2, .segment = 4, .flows = 1},
        {.coll = "ring", .world = 4, .segment = 4000, .flows = 4, .queue_max = 5 * (MTU + HDR)},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(setups); i++) {
        struct model m;
        model_open(&m, &setups[i]);
        call_once(&m, &(struct call){1500, GW_DTYPE_BF16, GW_OP_SUM, i});
        call_once(&m, &(struct call){1500, GW_DTYPE_I32, GW_OP_AVERAGE, i});
        model_close(&m);
    }
}

/* A second run on a worker's endpoint, whose result goes elsewhere. */
static void second_start(struct model *m, uint32_t rank, const struct call *call, void *in,
                         void *out)
{
    struct worker *worker = &m->workers[rank];
    m->cfg.rank = rank;
    worker->second =
        gw_coll_run_init(gw_test_take(gw_coll_run_size(&m->cfg)), &m->cfg, worker->host.endpoint);
    fill_tensor(in, call, rank);
    const struct gw_coll_call reduce = call_at(m, call, in, out);
    assert_int_equal(gw_coll_run_start(worker->second, &reduce, gw_mem_now(m->mem)), GW_OK);
}

/* A message of somebody else takes the only flow; when it has ended, two runs compete for it. */
static void coll_run__shares_an_endpoint(void **state)
{
    (void)state;
    enum { WORLD = 2, COUNT = 4000 };
    const struct call calls[] = {{COUNT, GW_DTYPE_I32, GW_OP_SUM, 4},
                                 {COUNT, GW_DTYPE_F16, GW_OP_AVERAGE, 5}};
    struct model m;
    unsigned char *results[2][WORLD_MAX], message[3 * MTU], copy[WORLD][3 * MTU];
    uint16_t in[WORLD][COUNT], out[WORLD][COUNT];
    model_open(&m, &(struct setup){.coll = "ring",
                                   .world = WORLD,
                                   .segment = 800,
                                   .flows = 3,
                                   .tx_flows_max = 1,
                                   .expect_max = 7});
    gw_test_fill(message, sizeof(message), 7);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        uint32_t flow, peer = m.addresses[1 - rank];
        struct gw_endpoint *endpoint = m.workers[rank].host.endpoint;
        struct gw_send send = {.peer = peer,
                               .bytes = sizeof(message),
                               .data = message,
                               .tag = m.tag - 1,
                               .transport = &m.transport,
                               .path = m.cfg.path};
        assert_int_equal(gw_endpoint_expect(endpoint, peer, send.tag, copy[rank], sizeof(message)),
                         GW_OK);
        assert_int_equal(gw_endpoint_send(endpoint, &send, &flow, gw_mem_now(m.mem)), GW_OK);
    }
    fill_all(&m, &calls[1], results[1]);
    fill_all(&m, &calls[0], results[0]);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        start(&m, rank, &calls[0]);
    move_tags(&m, &calls[0]);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        second_start(&m, rank, &calls[1], in[rank], out[rank]);
    model_run(&m);
    model_drain(&m);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct worker *worker = &m.workers[rank];
        assert_int_equal(worker->event_count, 2); /* of the messages: sent, received */
        worker->event_count = 0;
        assert_memory_equal(copy[rank], message, sizeof(message));
        assert_int_equal(gw_coll_run_status(worker->second).state, GW_COLL_RUN_DONE);
        assert_memory_equal(out[rank], results[1][rank], sizeof(out[rank]));
        gw_coll_run_fini(worker->second);
        free(worker->second);
        worker->second = NULL;
        free(results[1][rank]);
    }
    check_all(&m, &calls[0], results[0]);
    model_close(&m);
}

/* Events that say more than is true, as those of a message without payload would. */
static void coll_run__ignores_what_it_does_not_await(void **state)
{
    (void)state;
    struct model m;
    struct call call = {1000, GW_DTYPE_F32, GW_OP_SUM, 6};
    unsigned char *results[WORLD_MAX];
    model_open(&m, &(struct setup){.coll = "ring", .world = 3, .segment = 400, .flows = 2});
    fill_all(&m, &call, results);
    for (uint32_t rank = 0; rank < 3; rank++)
        start(&m, rank, &call);
    struct gw_event event = {
        .kind = GW_EVENT_RECEIVED, .peer = m.addresses[1], .tag = m.tag, .bytes = 400};
    assert_true(gw_coll_run_event(m.workers[0].run, &event, gw_mem_now(m.mem))); /* not from 1 */
    event.peer = m.addresses[2];
    event.tag = m.tag + 3; /* from 2, but not yet */
    assert_true(gw_coll_run_event(m.workers[0].run, &event, gw_mem_now(m.mem)));
    uint32_t tag = m.tag;
    move_tags(&m, &call);
    event.tag = m.tag;
    m.tag = tag;
    assert_false(gw_coll_run_event(m.workers[0].run, &event, gw_mem_now(m.mem)));
    event = (struct gw_event){.kind = GW_EVENT_REDUCED, .tag = m.tag};
    assert_false(gw_coll_run_event(m.workers[0].run, &event, gw_mem_now(m.mem)));
    event = (struct gw_event){.kind = GW_EVENT_FAILED, .tag = m.tag, .reason = GW_JOB_STALLED};
    assert_false(gw_coll_run_event(m.workers[0].run, &event, gw_mem_now(m.mem)));
    model_run(&m);
    check_all(&m, &call, results);
    model_close(&m);
}

/* Nobody else is needed, or nothing is to be done. */
static void coll_run__ends_at_once_when_alone(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.coll = "ring", .world = 1, .segment = 400, .flows = 2});
    struct call call = {100, GW_DTYPE_F32, GW_OP_AVERAGE, 3};
    fill_tensor(m.workers[0].tensor, &call, 0);
    float in[100], out[100];
    memcpy(in, m.workers[0].tensor, sizeof(in));
    struct gw_coll_call reduce = call_at(&m, &call, in, out);
    assert_int_equal(gw_coll_run_start(m.workers[0].run, &reduce, 0), GW_OK);
    assert_int_equal(state_of(&m.workers[0]), GW_COLL_RUN_DONE);
    assert_memory_equal(out, in, sizeof(out));
    model_close(&m);
    model_open(&m, &(struct setup){.coll = "ring", .world = 3, .segment = 400, .flows = 2});
    reduce = call_at(&m, &(struct call){.count = 0}, NULL, NULL);
    assert_int_equal(gw_coll_run_start(m.workers[2].run, &reduce, 0), GW_OK);
    assert_int_equal(state_of(&m.workers[2]), GW_COLL_RUN_DONE);
    model_close(&m);
}

/* The endpoint has five flows, of which a run takes two and leaves the rest to others. */
static void coll_run__sends_no_more_than_its_flows(void **state)
{
    (void)state;
    enum { OTHERS = 3 };
    struct model m;
    model_open(
        &m,
        &(struct setup){
            .coll = "ring", .world = 2, .segment = 400, .flows = 2, .tx_flows_max = 2 + OTHERS});
    start(&m, 0, &(struct call){COUNT_MAX, GW_DTYPE_F32, GW_OP_AVERAGE, 3});
    struct gw_send send = {.peer = m.addresses[1],
                           .bytes = 1,
                           .data = "",
                           .tag = m.tag - 1,
                           .transport = &m.transport,
                           .path = m.cfg.path};
    uint32_t flow;
    for (uint32_t i = 0; i <= OTHERS; i++)
        assert_int_equal(
            gw_endpoint_send(m.workers[0].host.endpoint, &send, &flow, gw_mem_now(m.mem)),
            i < OTHERS ? GW_OK : GW_ERR_NO_ROOM);
    model_close(&m);
}

static void coll_run__refuses_what_it_cannot_run(void **state)
{
    (void)state;
    struct model m;
    model_open(&m,
               &(struct setup){.coll = "halving-doubling", .world = 4, .segment = 4, .flows = 2});
    struct call call = {100, GW_DTYPE_F32, GW_OP_AVERAGE, 3};
    unsigned char *tensor = m.workers[0].tensor;
    /* 4 steps, of which the largest has 2^30 segments: half of the elements. */
    call.count = UINT64_C(1) << 31;
    struct gw_coll_call most = call_at(&m, &call, NULL, NULL);
    assert_true(gw_coll_run_tags(m.workers[0].run, &most) == UINT64_C(1) << 32);
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    call.count = 100;
    call.type = GW_DTYPES;
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    call.type = GW_DTYPE_F64; /* larger than a segment */
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    call.type = GW_DTYPE_F32;
    call.op = GW_OPS;
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    call.op = GW_OP_AVERAGE;
    m.workers[0].tensor = NULL;
    expect_start(&m, 0, &call, GW_ERR_INVALID);
    m.workers[0].tensor = tensor;
    assert_int_equal(state_of(&m.workers[0]), GW_COLL_RUN_IDLE);
    start(&m, 0, &call);
    expect_start(&m, 0, &call, GW_ERR_INVALID);

    struct gw_coll_run_cfg good = m.cfg, bad;
    assert_true(gw_coll_run_size(&good) > 3 * 2 * good.segment);
    assert_int_equal(gw_coll_run_awaits(&good), 2 * 2);
    bad = good, bad.rank = bad.world;
    assert_int_equal(gw_coll_run_size(&bad), 0);
    bad = good, bad.lanes_max = bad.world + 1;
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

/*
 * Where pairs exchange, the tensor is the caller's again while copies of it are still under way:
 * whatever becomes of it then, and is lost, the others have the same bits.
 */
static void coll_run__gives_back_the_tensor_of_an_exchange(void **state)
{
    (void)state;
    enum { CALLS = 60, COUNT = 2000 };
    const struct setup setup = {.coll = "doubling", .world = 4, .segment = 3000, .flows = 3};
    const uint32_t size = COUNT * sizeof(float);
    uint32_t early = 0;
    struct model m;
    model_open(&m, &setup);
    model_worsen(&m);
    for (uint32_t i = 0; i < CALLS; i++) {
        unsigned char *results[WORLD_MAX];
        struct call call = {COUNT, GW_DTYPE_F32, GW_OP_SUM, i};
        bool is_back[WORLD_MAX] = {false};
        uint32_t running = setup.world;
        fill_all(&m, &call, results);
        for (uint32_t rank = 0; rank < setup.world; rank++)
            start(&m, rank, &call);
        while (running) {
            assert_true(model_step(&m, GW_TIME_NEVER));
            running = 0;
            for (uint32_t rank = 0; rank < setup.world; rank++) {
                struct worker *worker = &m.workers[rank];
                running += state_of(worker) == GW_COLL_RUN_RUNNING;
                bool is_over = state_of(worker) == GW_COLL_RUN_DONE;
                if (is_back[rank] || (!is_over && !gw_coll_run_trails(worker->run)))
                    continue;
                early += !is_over;
                assert_memory_equal(worker->tensor, results[rank], size);
                memset(worker->tensor, 0xff, size);
                is_back[rank] = true;
            }
        }
        for (uint32_t rank = 0; rank < setup.world; rank++) {
            assert_true(is_back[rank]);
            free(results[rank]);
        }
        move_tags(&m, &call);
    }
    assert_true(early > CALLS);
    assert_true(stats_of(&m).retransmits > 100);
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
        cmocka_unit_test(coll_run__gives_back_the_tensor_of_an_exchange),
        cmocka_unit_test(coll_run__shares_an_endpoint),
        cmocka_unit_test(coll_run__ignores_what_it_does_not_await),
        cmocka_unit_test(coll_run__ends_at_once_when_alone),
        cmocka_unit_test(coll_run__sends_no_more_than_its_flows),
        cmocka_unit_test(coll_run__refuses_what_it_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
