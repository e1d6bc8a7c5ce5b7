/*
 * All-reduces among workers that cannot have a result: every worker must say so in time, and hold
 * on to nothing.
 */
#include "coll_run_fixture.h"

static void check_failed(const struct model *m, uint32_t rank, enum gw_job_reason reason,
                         uint32_t about)
{
    struct gw_coll_run_status status = gw_coll_run_status(m->workers[rank].run);
    assert_int_equal(status.state, GW_COLL_RUN_FAILED);
    assert_int_equal(status.reason, reason);
    assert_int_equal(status.about, about);
}

/* By a flow that has no answer, or by nothing that comes. */
static bool is_missing(const struct model *m, uint32_t rank)
{
    struct gw_coll_run_status status = gw_coll_run_status(m->workers[rank].run);
    return status.state == GW_COLL_RUN_FAILED &&
           (status.reason == GW_JOB_LOST || status.reason == GW_JOB_STALLED);
}

static void check_missing(const struct model *m, uint32_t rank, uint32_t about)
{
    assert_true(is_missing(m, rank));
    assert_int_equal(gw_coll_run_status(m->workers[rank].run).about, about);
}

/*
 * A worker dies on the way. Its neighbours name it, in a ring by a flow that stalls and by the
 * deadline; nobody goes on, and nothing of the call stays in the endpoints of those that live.
 */
static void coll_run__fails_when_a_worker_dies(void **state)
{
    (void)state;
    enum { WORLD = 5, DEAD = 3 };
    struct call call = {COUNT_MAX, GW_DTYPE_F32, GW_OP_SUM, 2};
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
            assert_true(is_missing(&m, rank));
            if (rank == DEAD - 1 || rank == DEAD + 1)
                check_missing(&m, rank, DEAD);
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
    struct call call = {COUNT, GW_DTYPE_I32, GW_OP_SUM, 3};
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
    check_missing(&m, 0, 1);
    check_missing(&m, 2, 1);
    check_missing(&m, 3, 2);
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
        struct call call = {1000, GW_DTYPE_F32, GW_OP_SUM, 3};
        for (uint32_t rank = 0; rank < 2; rank++) {
            start(&m, rank, &call);
            call.count += (uint64_t)more;
        }
        model_run(&m);
        check_failed(&m, more < 0 ? 0 : 1, GW_JOB_MISMATCH, more < 0 ? 1 : 0);
        check_missing(&m, more < 0 ? 1 : 0, more < 0 ? 0 : 1);
        model_close(&m);
    }
}

/* One of two stops at any moment: whatever still comes, its tensor is its own again. */
static void coll_run__leaves_the_tensor_alone_once_it_is_stopped(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "doubling"};
    enum { COUNT = 20000 };
    const struct call call = {COUNT, GW_DTYPE_I32, GW_OP_SUM, 4};
    uint32_t amid = 0;
    for (uint32_t i = 0; i < 2 * 20; i++) {
        struct model m;
        model_open(&m,
                   &(struct setup){.coll = colls[i % 2], .world = 2, .segment = 40000, .flows = 2});
        unsigned char *tensor = m.workers[0].tensor;
        for (uint32_t rank = 0; rank < 2; rank++) {
            fill_tensor(m.workers[rank].tensor, &call, rank);
            start(&m, rank, &call);
        }
        gw_time stop = gw_time_add(gw_mem_now(m.mem), i / 2 * 5 * GW_US);
        while (model_step(&m, stop)) {
        }
        amid += !gw_coll_run_is_summed(m.workers[0].run);
        gw_coll_run_fini(m.workers[0].run);
        memset(tensor, 0xee, COUNT * sizeof(int32_t));
        model_run(&m);
        for (uint32_t at = 0; at < COUNT * sizeof(int32_t); at++)
            assert_int_equal(tensor[at], 0xee);
        model_close(&m);
    }
    assert_in_range(amid, 10, 39);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_run__fails_when_a_worker_dies),
        cmocka_unit_test(coll_run__fails_when_a_sum_does_not_fit),
        cmocka_unit_test(coll_run__fails_when_sizes_differ),
        cmocka_unit_test(coll_run__leaves_the_tensor_alone_once_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
