/*
 * Ranks that make different collectives at the same turn: no rank gets a result of it that is not
 * one, and the job ends for all.
 */
#include "calls_fixture.h"

enum {
    SEGMENT = 4096 / sizeof(int32_t), /* elements of calls_fixture.h's */
    COUNT_MAX = 64 * SEGMENT,
};

struct pair {
    struct gw_call of_one, of_others;
};

static void start_with(struct net *net, uint32_t rank, const struct gw_call *call, int32_t *memory)
{
    struct gw_call own = *call;
    own.via = GW_VIA_RING;
    own.number = 1;
    if (own.kind != GW_CALL_BROADCAST)
        own.in = memory;
    own.out = memory + COUNT_MAX;
    start(net, rank, &own);
}

/* Rank `one` makes the one call, all others the other one. */
static void expect_nothing(const struct pair *pair, uint32_t world, uint32_t one)
{
    struct net net;
    int32_t *memory[RANKS_MAX];
    net_start(&net,
              &(struct plan){.world = world, .servers = 1, .via = GW_VIA_RING, .whole = 4096});
    for (uint32_t rank = 0; rank < world; rank++) {
        memory[rank] = gw_test_take(2 * COUNT_MAX * sizeof(int32_t));
        memset(memory[rank], 0, 2 * COUNT_MAX * sizeof(int32_t));
        start_with(&net, rank, rank == one ? &pair->of_one : &pair->of_others, memory[rank]);
    }
    run_for(&net, 4 * STALL);
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_int_equal(last_event(&net.ranks[rank])->kind, GW_COMMUNICATOR_FAILED);
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 0);
        free(memory[rank]);
    }
    net_close(&net);
}

static void expect_nothing_of_any(const struct pair *pair, uint32_t world_max)
{
    for (uint32_t world = 2; world <= world_max; world++)
        for (uint32_t one = 0; one < world; one++)
            expect_nothing(pair, world, one);
}

/* Messages of such calls are all of the same length. */
static void communicator_mismatch__by_whole_segments(void **state)
{
    (void)state;
    static const enum gw_call_kind kinds[] = {GW_CALL_ALLREDUCE, GW_CALL_REDUCE_SCATTER,
                                              GW_CALL_ALLGATHER};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t each = kinds[i] == GW_CALL_ALLREDUCE ? 12 * SEGMENT : SEGMENT;
        const struct gw_call less = {.kind = kinds[i], .type = GW_DTYPE_I32, .count = each};
        struct gw_call more = less;
        more.count = 2 * each;
        expect_nothing_of_any(&(struct pair){less, more}, RANKS_MAX);
        expect_nothing_of_any(&(struct pair){more, less}, RANKS_MAX);
    }
}

static void communicator_mismatch__by_type_or_operation(void **state)
{
    (void)state;
    static const struct gw_call sum = {
        .kind = GW_CALL_ALLREDUCE, .type = GW_DTYPE_I32, .count = 100};
    struct gw_call other = sum;
    other.type = GW_DTYPE_F32;
    expect_nothing_of_any(&(struct pair){sum, other}, RANKS_MAX);
    other = sum;
    other.op = GW_OP_MAX;
    expect_nothing_of_any(&(struct pair){sum, other}, RANKS_MAX);
}

static void communicator_mismatch__by_kind_or_root(void **state)
{
    (void)state;
    static const struct gw_call gather = {
        .kind = GW_CALL_ALLGATHER, .type = GW_DTYPE_I32, .count = 100};
    struct gw_call other = gather;
    other.kind = GW_CALL_REDUCE_SCATTER;
    expect_nothing_of_any(&(struct pair){gather, other}, RANKS_MAX);
    /* Of a longer chain those before whoever differs have what they are to have. */
    struct gw_call first = {.kind = GW_CALL_BROADCAST, .type = GW_DTYPE_I32, .count = 5000};
    struct gw_call second = first;
    second.peer = 1;
    expect_nothing_of_any(&(struct pair){first, second}, 2);
    first.kind = second.kind = GW_CALL_REDUCE;
    expect_nothing_of_any(&(struct pair){first, second}, 2);
}

/* Lengths tell at once. */
static void communicator_mismatch__by_elements(void **state)
{
    (void)state;
    struct net net;
    int32_t memory[2][2 * 101] = {{0}};
    net_start(&net, &(struct plan){.world = 2, .servers = 1, .via = GW_VIA_RING, .whole = 4096});
    for (uint32_t rank = 0; rank < 2; rank++)
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                .via = GW_VIA_RING,
                                .type = GW_DTYPE_I32,
                                .in = memory[rank],
                                .out = memory[rank] + 101,
                                .count = 98 + 2 * rank});
    run_for(&net, STALL / 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct gw_communicator_event *last = last_event(&net.ranks[rank]);
        assert_int_equal(last->kind, GW_COMMUNICATOR_FAILED);
        assert_int_equal(last->reason, GW_JOB_MISMATCH);
    }
    net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator_mismatch__by_whole_segments),
        cmocka_unit_test(communicator_mismatch__by_type_or_operation),
        cmocka_unit_test(communicator_mismatch__by_kind_or_root),
        cmocka_unit_test(communicator_mismatch__by_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
