/*
 * All-reduces without payload, as simulations run them: tensors have no memory. Everything but the
 * contents must be as with payload.
 */
#include "coll_run_fixture.h"

static struct gw_coll_call bare(const struct model *m, uint64_t count)
{
    return call_at(m, &(struct call){.count = count, .type = GW_DTYPE_F32}, NULL, NULL);
}

static void bare_start(struct model *m, uint32_t rank, uint64_t count)
{
    const struct gw_coll_call call = bare(m, count);
    assert_int_equal(gw_coll_run_start(m->workers[rank].run, &call, gw_mem_now(m->mem)), GW_OK);
}

/* Runs a call, and gives away when each worker was done and what it sent. */
static void measure(const struct setup *setup, uint64_t count, gw_time *times, uint64_t *packets)
{
    struct model m;
    struct call call = {count, GW_DTYPE_F32, GW_OP_SUM, 1};
    unsigned char *results[WORLD_MAX];
    model_open(&m, setup);
    gw_time begin = gw_mem_now(m.mem);
    if (!setup->is_bare)
        fill_all(&m, &call, results);
    for (uint32_t rank = 0; rank < setup->world; rank++) {
        if (setup->is_bare)
            bare_start(&m, rank, count);
        else
            start(&m, rank, &call);
    }
    model_run(&m);
    if (!setup->is_bare)
        check_all(&m, &call, results);
    for (uint32_t rank = 0; rank < setup->world; rank++) {
        const struct worker *worker = &m.workers[rank];
        const struct gw_endpoint_stats *stats = gw_endpoint_stats(worker->host.endpoint);
        assert_int_equal(gw_coll_run_status(worker->run).state, GW_COLL_RUN_DONE);
        assert_true(gw_coll_run_is_summed(worker->run));
        times[rank] = worker->ended - begin;
        packets[rank] = stats->data_sent - stats->retransmits;
    }
    model_close(&m);
}

/* To the picosecond, since no memory is ever missing in these runs. */
static void coll_run_bare__takes_as_long_as_with_payload(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < gw_coll_registry.count; c++)
        for (uint32_t world = 2; world <= WORLD_MAX; world++) {
            const struct gw_coll_ops *coll = (const struct gw_coll_ops *)gw_coll_registry.algos[c];
            if (!coll->allows(world))
                continue;
            struct setup setup = {
                .coll = coll->algo.name, .world = world, .segment = 2400, .flows = 16};
            gw_time times[2][WORLD_MAX];
            uint64_t packets[2][WORLD_MAX];
            measure(&setup, 30011, times[0], packets[0]);
            setup.is_bare = true;
            measure(&setup, 30011, times[1], packets[1]);
            assert_memory_equal(times[0], times[1], world * sizeof(times[0][0]));
            assert_memory_equal(packets[0], packets[1], world * sizeof(packets[0][0]));
            assert_true(packets[1][0] >= 2 * 30011 * 4 / WORLD_MAX / MTU);
        }
}

/* Loss, copies and overtaking: what comes in any order is counted once. */
static void coll_run_bare__counts_whatever_the_network_does(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "halving-doubling"};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++) {
        struct setup setup = {
            .coll = colls[c], .world = 8, .segment = 3000, .flows = 3, .is_bare = true};
        struct model m;
        model_open(&m, &setup);
        model_worsen(&m);
        for (uint64_t i = 0; i < 6; i++) {
            for (uint32_t rank = 0; rank < setup.world; rank++)
                bare_start(&m, rank, 9000 + 997 * i);
            model_run(&m);
            for (uint32_t rank = 0; rank < setup.world; rank++)
                assert_int_equal(state_of(&m.workers[rank]), GW_COLL_RUN_DONE);
            move_tags(&m, &(struct call){.count = 9000 + 997 * i, .type = GW_DTYPE_F32});
        }
        model_close(&m);
    }
}

/* Who begins late hands over what came before; the others go as far as they can, and send nothing
 * again. */
static void coll_run_bare__takes_what_came_before_the_start(void **state)
{
    (void)state;
    enum { WORLD = 4, LATE = 2, COUNT = 20000, KEPT_MAX = 200 };
    struct gw_event kept[KEPT_MAX];
    uint32_t kept_count = 0;
    struct model m;
    model_open(&m,
               &(struct setup){
                   .coll = "ring", .world = WORLD, .segment = 800, .flows = 4, .is_bare = true});
    struct worker *late = &m.workers[LATE];
    for (uint32_t rank = 0; rank < WORLD; rank++)
        if (rank != LATE)
            bare_start(&m, rank, COUNT);
    late->is_dead = true; /* the fixture leaves its events alone */
    while (model_step(&m, GW_TIME_NEVER))
        while (kept_count < KEPT_MAX && gw_endpoint_poll(late->host.endpoint, &kept[kept_count], 1))
            kept_count++;
    late->is_dead = false;
    assert_in_range(kept_count, COUNT / WORLD / 200, KEPT_MAX - 1);
    bare_start(&m, LATE, COUNT);
    for (uint32_t i = 0; i < kept_count; i++)
        assert_true(gw_coll_run_event(late->run, &kept[i], gw_mem_now(m.mem)));
    model_run(&m);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        const struct gw_endpoint *endpoint = m.workers[rank].host.endpoint;
        assert_int_equal(state_of(&m.workers[rank]), GW_COLL_RUN_DONE);
        assert_true(gw_endpoint_stats(endpoint)->retransmits == 0);
        assert_true(gw_endpoint_stats(endpoint)->refused == 0);
    }
    model_close(&m);
}

/* A sum is there when the last message has come, which is before the last own one is acknowledged.
 */
static void coll_run_bare__has_its_sum_before_it_is_done(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){
                       .coll = "ring", .world = 2, .segment = 800, .flows = 4, .is_bare = true});
    bare_start(&m, 0, 100);
    bare_start(&m, 1, 100);
    gw_time summed = 0;
    while (state_of(&m.workers[0]) == GW_COLL_RUN_RUNNING) {
        assert_true(model_step(&m, GW_TIME_NEVER));
        if (!summed && gw_coll_run_is_summed(m.workers[0].run))
            summed = gw_mem_now(m.mem);
    }
    assert_true(m.workers[0].ended - summed > (gw_time)LATENCY);
    model_close(&m);
}

static void coll_run_bare__fails_when_sizes_differ(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){
                       .coll = "ring", .world = 2, .segment = 4000, .flows = 2, .is_bare = true});
    bare_start(&m, 0, 1000);
    bare_start(&m, 1, 996);
    model_run(&m);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct gw_coll_run_status status = gw_coll_run_status(m.workers[rank].run);
        assert_int_equal(status.state, GW_COLL_RUN_FAILED);
        assert_int_equal(status.reason, GW_JOB_MISMATCH);
        assert_int_equal(status.about, 1 - rank);
    }
    model_close(&m);
}

/* Segments of a gigabyte need no memory; a tensor with memory cannot be summed. */
static void coll_run_bare__has_no_memory(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){
                       .coll = "ring", .world = 2, .segment = 4000, .flows = 2, .is_bare = true});
    struct gw_coll_run_cfg cfg = m.cfg;
    cfg.segment = GW_COLL_RUN_SEGMENT_MAX;
    assert_in_range(gw_coll_run_size(&cfg), 1, 4096);
    struct gw_coll_call call = bare(&m, 10);
    call.tensor.out = m.workers[0].tensor;
    assert_int_equal(gw_coll_run_start(m.workers[0].run, &call, 0), GW_ERR_INVALID);
    assert_int_equal(state_of(&m.workers[0]), GW_COLL_RUN_IDLE);
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_run_bare__takes_as_long_as_with_payload),
        cmocka_unit_test(coll_run_bare__counts_whatever_the_network_does),
        cmocka_unit_test(coll_run_bare__takes_what_came_before_the_start),
        cmocka_unit_test(coll_run_bare__has_its_sum_before_it_is_done),
        cmocka_unit_test(coll_run_bare__fails_when_sizes_differ),
        cmocka_unit_test(coll_run_bare__has_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
