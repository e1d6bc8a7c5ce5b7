/*
 * Broadcast, reduce, all-gather and reduce-scatter that cannot have a result: every worker must end
 * in time, and hold on to nothing.
 */
#include "coll_kinds_fixture.h"

static void open_all(struct model *m, const struct ask *ask, struct memory *memories)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        memory_open(m, ask, rank, &memories[rank]);
}

static void close_all(struct model *m, struct memory *memories)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        free(memories[rank].block);
        free(memories[rank].before);
    }
    model_close(m);
}

static void check_failed(const struct model *m, uint32_t rank, enum gw_job_reason reason,
                         uint32_t about)
{
    struct gw_coll_run_status status = gw_coll_run_status(m->workers[rank].run);
    assert_int_equal(status.state, GW_COLL_RUN_FAILED);
    assert_int_equal(status.reason, reason);
    assert_int_equal(status.about, about);
}

/* By a flow that has no answer, or by nothing that comes. */
static void check_missing(const struct model *m, uint32_t rank, uint32_t about)
{
    enum gw_job_reason reason = gw_coll_run_status(m->workers[rank].run).reason;
    check_failed(m, rank, reason == GW_JOB_LOST ? GW_JOB_LOST : GW_JOB_STALLED, about);
}

/* The worker's memory is the caller's again: what packets still come for it write nothing there. */
static void check_let_go(struct model *m, struct memory *memory)
{
    memset(memory->block, 0xee, memory->size);
    model_run(m);
    model_drain(m);
    for (uint64_t i = 0; i < memory->size; i++)
        assert_int_equal(memory->block[i], 0xee);
}

/*
 * A worker dies on the way, at first before it has begun. The rank before it names it, by a flow
 * that stalls, and the one behind it by the deadline, unless these have nothing left to do with it.
 */
static void coll_kinds__end_when_a_worker_dies(void **state)
{
    (void)state;
    enum { WORLD = 5, DEAD = 3 };
    for (uint32_t kind = GW_COLL_REDUCE_SCATTER; kind < GW_COLL_KINDS; kind++)
        for (gw_time life = 0; life <= 60 * GW_US; life += 20 * GW_US) {
            struct model m;
            struct memory memories[WORLD_MAX];
            uint64_t count = kind < GW_COLL_BROADCAST ? 5000 : 20000; /* 100 us or more */
            struct ask ask = {kind, 1, false, {count, GW_DTYPE_F64, GW_OP_MAX, 2}};
            model_open(
                &m, &(struct setup){.coll = "ring", .world = WORLD, .segment = 4000, .flows = 4});
            open_all(&m, &ask, memories);
            for (uint32_t rank = 0; rank < WORLD; rank++)
                if (rank != DEAD || life)
                    ask_start(&m, &ask, rank, &memories[rank]);
            gw_time death = gw_time_add(gw_mem_now(m.mem), life);
            while (model_step(&m, death)) {
            }
            m.workers[DEAD].is_dead = true;
            gw_mem_replace(m.mem, DEAD, NULL, NULL);
            model_run(&m);
            check_missing(&m, DEAD - 1, DEAD);
            check_missing(&m, DEAD + 1, DEAD);
            for (uint32_t rank = 0; rank < WORLD; rank++) {
                if (rank == DEAD)
                    continue;
                /* Who begins a chain may have sent all; who ends it waits for all. */
                if (kind == GW_COLL_REDUCE && rank == ask.root)
                    assert_int_equal(state_of(&m.workers[rank]), GW_COLL_RUN_FAILED);
                assert_true(m.workers[rank].ended - death < PATIENCE + 300 * GW_US);
                check_let_go(&m, &memories[rank]);
            }
            close_all(&m, memories);
        }
}

/* Two of four values have a sum that does not fit; rank 0 finds out, which is neither the first to
 * add nor the root. */
static void coll_kinds__fail_when_a_sum_does_not_fit(void **state)
{
    (void)state;
    enum { WORLD = 4, COUNT = 2000, AT = 1700 };
    static const int64_t values[WORLD] = {INT64_MAX, -1, 0, 1};
    for (uint32_t i = 0; i < 2; i++) {
        struct model m;
        struct memory memories[WORLD_MAX];
        /* From rank 2 over 3 and 0 to 1. */
        struct ask ask = {i ? GW_COLL_REDUCE : GW_COLL_REDUCE_SCATTER,
                          1,
                          false,
                          {COUNT, GW_DTYPE_I64, GW_OP_SUM, 3}};
        model_open(&m, &(struct setup){.coll = "ring", .world = WORLD, .segment = 400, .flows = 4});
        open_all(&m, &ask, memories);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            uint64_t at = i ? AT : 1 * COUNT + AT; /* of the part of rank 1 */
            memcpy(memories[rank].in + at * sizeof(int64_t), &values[rank], sizeof(int64_t));
            ask_start(&m, &ask, rank, &memories[rank]);
        }
        while (state_of(&m.workers[0]) == GW_COLL_RUN_RUNNING)
            assert_true(model_step(&m, GW_TIME_NEVER));
        check_failed(&m, 0, GW_JOB_OVERFLOW, 0);
        check_let_go(&m, &memories[0]);
        check_missing(&m, 1, 0);
        /* The call is over; another one goes well. */
        ask_move_tags(&m, &ask);
        ask_once(&m, &ask);
        close_all(&m, memories);
    }
}

/* One worker has a tensor of another size. Whoever gets what does not fit says so; if all fits that
 * comes, somebody waits for more, or has sent more than is taken. */
static void coll_kinds__fail_when_sizes_differ(void **state)
{
    (void)state;
    enum { WORLD = 3, OTHER = 2 };
    for (uint32_t kind = GW_COLL_REDUCE_SCATTER; kind < GW_COLL_KINDS; kind++)
        for (int32_t more = -400; more <= 400; more += more == -4 ? 8 : 396) {
            struct model m;
            struct memory memories[WORLD_MAX];
            struct ask ask = {kind, 1, false, {1000, GW_DTYPE_F32, GW_OP_SUM, 3}};
            model_open(&m,
                       &(struct setup){.coll = "ring", .world = WORLD, .segment = 800, .flows = 2});
            uint32_t failed = 0;
            struct ask other = ask;
            other.call.count += (uint64_t)more;
            for (uint32_t rank = 0; rank < WORLD; rank++) {
                const struct ask *own = rank == OTHER ? &other : &ask;
                memory_open(&m, own, rank, &memories[rank]);
                ask_start(&m, own, rank, &memories[rank]);
            }
            model_run(&m);
            for (uint32_t rank = 0; rank < WORLD; rank++)
                failed += state_of(&m.workers[rank]) == GW_COLL_RUN_FAILED;
            assert_in_range(failed, 1, WORLD);
            if (more == -4 && kind != GW_COLL_BROADCAST)
                check_failed(&m, 0, GW_JOB_MISMATCH, OTHER);
            for (uint32_t rank = 0; rank < WORLD; rank++)
                check_let_go(&m, &memories[rank]);
            close_all(&m, memories);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_kinds__end_when_a_worker_dies),
        cmocka_unit_test(coll_kinds__fail_when_a_sum_does_not_fit),
        cmocka_unit_test(coll_kinds__fail_when_sizes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
