/*
 * Broadcast, reduce, all-gather and reduce-scatter among up to 8 workers, over real flows. Every
 * worker must end with the bits that the order of the ring gives, whatever arrives when, and write
 * nothing else.
 */
#include "coll_kinds_fixture.h"

static struct gw_endpoint_stats stats_of(const struct model *m)
{
    struct gw_endpoint_stats sum = {0};
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        const struct gw_endpoint_stats *stats = gw_endpoint_stats(m->workers[rank].host.endpoint);
        sum.refused += stats->refused;
        sum.retransmits += stats->retransmits;
        sum.duplicates += stats->duplicates;
    }
    return sum;
}

/* The first operation from `op` on that the type has. */
static enum gw_op op_of(uint32_t op, enum gw_dtype type)
{
    while (!gw_op_exists((enum gw_op)(op % GW_OPS), type))
        op++;
    return (enum gw_op)(op % GW_OPS);
}

/* Every kind, number of workers, root, type, operation; counts below the number of workers and
 * beside multiples of it; in place and not. */
static void coll_kinds__give_what_they_say(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 0, 2, 5, 64, 257, 1501};
    uint32_t turn = 0;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        struct model m;
        model_open(&m, &(struct setup){.coll = "ring", .world = world, .segment = 160, .flows = 4});
        for (uint32_t i = 0; i < 4 * world * GW_DTYPES; i++) {
            enum gw_dtype type = (enum gw_dtype)(i % GW_DTYPES);
            enum gw_coll_kind kind =
                (enum gw_coll_kind)(GW_COLL_REDUCE_SCATTER + i / GW_DTYPES % 4);
            struct ask ask = {kind, i / GW_DTYPES / 4, turn / 2 % 2, {0}};
            ask.call = (struct call){counts[turn % GW_COUNT_OF(counts)], type,
                                     op_of(turn / GW_COUNT_OF(counts), type), turn};
            turn += 1 + (turn % 5 == 0);
            ask_once(&m, &ask);
            model_drain(&m);
        }
        assert_true(stats_of(&m).retransmits == 0);
        model_close(&m);
    }
}

/* Whatever links do to packets, nothing but the time may change. */
static void coll_kinds__are_the_same_whatever_is_lost(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= WORLD_MAX; world += world < 4 ? 1 : 4) {
        struct model m;
        model_open(&m,
                   &(struct setup){.coll = "ring", .world = world, .segment = 3000, .flows = 3});
        model_worsen(&m);
        for (uint32_t i = 0; i < 4 * GW_DTYPES; i++) {
            enum gw_dtype type = (enum gw_dtype)(i % GW_DTYPES);
            ask_once(&m, &(struct ask){(enum gw_coll_kind)(GW_COLL_REDUCE_SCATTER + i % 4),
                                       i % world,
                                       i / 2 % 2,
                                       {3000 + 97 * i, type, op_of(i / 4, type), i}});
        }
        struct gw_endpoint_stats stats = stats_of(&m);
        assert_true(stats.retransmits > 100 && stats.duplicates > 100);
        model_close(&m);
    }
}

/* Segments are many more than the run has memory for, and whoever is late makes all others fill
 * theirs: they may neither overwrite what waits nor wait for each other. */
static void coll_kinds__have_enough_memory(void **state)
{
    (void)state;
    for (uint32_t kind = GW_COLL_REDUCE_SCATTER; kind < GW_COLL_KINDS; kind++)
        for (uint32_t flows = 1; flows <= 5; flows += 2)
            for (uint32_t late = 0; late < 4; late++) {
                struct model m;
                struct setup setup = {.coll = "ring", .world = 4, .segment = 8, .flows = flows};
                struct ask ask = {kind, 1, late % 2, {60, GW_DTYPE_F64, GW_OP_SUM, late}};
                model_open(&m, &setup);
                assert_true(gw_coll_run_size(&m.cfg) < 4096);
                ask_late(&m, &ask, late, 300 * GW_US);
                /* As many segments as places, for which a ring would be full. */
                ask.call.count = 3 * flows;
                ask_once(&m, &ask);
                model_close(&m);
            }
}

/* With less room in the endpoint than documented it only takes longer. */
static void coll_kinds__wait_for_room_in_the_endpoint(void **state)
{
    (void)state;
    static const struct setup setups[] = {
        {.coll = "ring", .world = 3, .segment = 400, .flows = 8, .tx_flows_max = 1},
        {.coll = "ring", .world = 3, .segment = 400, .flows = 2, .expect_max = 1},
        {.coll = "ring", .world = 2, .segment = 4, .flows = 1},
        {.coll = "ring", .world = 4, .segment = 4000, .flows = 4, .queue_max = 5 * (MTU + HDR)},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(setups); i++) {
        struct model m;
        model_open(&m, &setups[i]);
        for (uint32_t kind = GW_COLL_REDUCE_SCATTER; kind < GW_COLL_KINDS; kind++)
            ask_once(&m, &(struct ask){kind, 1, i % 2, {700, GW_DTYPE_BF16, GW_OP_AVERAGE, i}});
        model_close(&m);
    }
}

/* Parts of workers that lie apart: what is between them stays. */
static void coll_kinds__leave_what_lies_between(void **state)
{
    (void)state;
    static const uint64_t gaps[] = {1, 7, 3000};
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        struct setup setup = {.coll = "ring", .world = world, .segment = 160, .flows = 3};
        struct model m;
        setup.gap = gaps[world % GW_COUNT_OF(gaps)];
        model_open(&m, &setup);
        for (uint32_t i = 0; i < 8 * GW_DTYPES; i++) {
            const enum gw_dtype type = (enum gw_dtype)(i % GW_DTYPES);
            ask_once(&m, &(struct ask){i % 2 ? GW_COLL_ALLGATHER : GW_COLL_REDUCE_SCATTER,
                                       0,
                                       i / 2 % 2,
                                       {1 + 37 * i, type, op_of(i, type), i}});
        }
        model_close(&m);
    }
}

/* All kinds at the same time as an all-reduce, one after the other without a pause, so that whoever
 * is done begins the next while others still need what it sends. */
static void coll_kinds__follow_one_another(void **state)
{
    (void)state;
    enum { CALLS = 10 };
    struct model m;
    struct ask asks[CALLS];
    struct memory memories[CALLS][WORLD_MAX];
    uint32_t tags[CALLS], next[WORLD_MAX] = {0};
    model_open(&m, &(struct setup){.coll = "ring", .world = 5, .segment = 400, .flows = 3});
    model_worsen(&m);
    for (uint32_t i = 0; i < CALLS; i++) {
        asks[i] = (struct ask){(enum gw_coll_kind)(GW_COLL_REDUCE_SCATTER + i % 4),
                               i % 5,
                               i % 3 == 0,
                               {500 + i, GW_DTYPE_I64, GW_OP_SUM, i}};
        for (uint32_t rank = 0; rank < 5; rank++)
            memory_open(&m, &asks[i], rank, &memories[i][rank]);
        expect_all(&m, &asks[i], memories[i]);
        tags[i] = m.tag;
        ask_move_tags(&m, &asks[i]);
    }
    for (uint32_t left = 5 * CALLS, steps = 0; left; steps++) {
        for (uint32_t rank = 0; rank < 5; rank++) {
            if (next[rank] == CALLS || state_of(&m.workers[rank]) == GW_COLL_RUN_RUNNING)
                continue;
            m.tag = tags[next[rank]];
            ask_start(&m, &asks[next[rank]], rank, &memories[next[rank]][rank]);
            next[rank]++;
            left--;
        }
        assert_true(steps < STEPS_MAX);
        model_step(&m, GW_TIME_NEVER);
    }
    model_run(&m);
    for (uint32_t i = 0; i < CALLS; i++)
        for (uint32_t rank = 0; rank < 5; rank++) {
            const struct memory *memory = &memories[i][rank];
            assert_memory_equal(memory->block, memory->before, memory->size);
            free(memory->block);
            free(memory->before);
        }
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_kinds__give_what_they_say),
        cmocka_unit_test(coll_kinds__are_the_same_whatever_is_lost),
        cmocka_unit_test(coll_kinds__have_enough_memory),
        cmocka_unit_test(coll_kinds__wait_for_room_in_the_endpoint),
        cmocka_unit_test(coll_kinds__leave_what_lies_between),
        cmocka_unit_test(coll_kinds__follow_one_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
