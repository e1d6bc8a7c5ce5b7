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
    bool is_silent; /* nobody sends anything: they differ until they have stalled */
};

static void start_with(struct net *net, uint32_t rank, const struct gw_call *call, int32_t *memory)
{
    struct gw_call own = *call;
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
    net_start(
        &net,
        &(struct plan){
            .world = world, .servers = 1, .via = GW_VIA_RING, .whole = 4096, .takes_parts = true});
    for (uint32_t rank = 0; rank < world; rank++) {
        memory[rank] = gw_test_take(2 * COUNT_MAX * sizeof(int32_t));
        memset(memory[rank], 0, 2 * COUNT_MAX * sizeof(int32_t));
        start_with(&net, rank, rank == one ? &pair->of_one : &pair->of_others, memory[rank]);
    }
    run_for(&net, pair->is_silent ? 4 * STALL : STALL / 2);
    for (uint32_t rank = 0; rank < world; rank++) {
        const struct gw_communicator_event *last = last_event(&net.ranks[rank]);
        assert_int_equal(last->kind, GW_COMMUNICATOR_FAILED);
        assert_int_equal(last->reason, pair->is_silent ? GW_JOB_STALLED : GW_JOB_MISMATCH);
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
        const struct gw_call less = {
            .kind = kinds[i], .via = GW_VIA_RING, .type = GW_DTYPE_I32, .count = each};
        struct gw_call more = less;
        more.count = 2 * each;
        expect_nothing_of_any(&(struct pair){.of_one = less, .of_others = more}, RANKS_MAX);
        expect_nothing_of_any(&(struct pair){.of_one = more, .of_others = less}, RANKS_MAX);
    }
}

static void communicator_mismatch__by_type_or_operation(void **state)
{
    (void)state;
    static const struct gw_call sum = {
        .kind = GW_CALL_ALLREDUCE, .via = GW_VIA_RING, .type = GW_DTYPE_I32, .count = 100};
    struct gw_call other = sum;
    other.type = GW_DTYPE_F32;
    expect_nothing_of_any(&(struct pair){.of_one = sum, .of_others = other}, RANKS_MAX);
    other = sum;
    other.op = GW_OP_MAX;
    expect_nothing_of_any(&(struct pair){.of_one = sum, .of_others = other}, RANKS_MAX);
}

static void communicator_mismatch__by_kind_or_root(void **state)
{
    (void)state;
    static const struct gw_call gather = {
        .kind = GW_CALL_ALLGATHER, .type = GW_DTYPE_I32, .count = 100};
    struct gw_call other = gather;
    other.kind = GW_CALL_REDUCE_SCATTER;
    expect_nothing_of_any(&(struct pair){.of_one = gather, .of_others = other}, RANKS_MAX);
    /* Of a longer chain those before whoever differs have what they are to have. */
    struct gw_call first = {.kind = GW_CALL_BROADCAST, .type = GW_DTYPE_I32, .count = 5000};
    struct gw_call second = first;
    second.peer = 1;
    struct pair pair = {.of_one = first, .of_others = second};
    expect_nothing(&pair, 2, 0);
    pair.is_silent = true; /* both wait for the other one */
    expect_nothing(&pair, 2, 1);
    pair.of_one.kind = pair.of_others.kind = GW_CALL_REDUCE;
    pair.of_one.via = pair.of_others.via = GW_VIA_RING;
    expect_nothing(&pair, 2, 0);
    pair.is_silent = false;
    expect_nothing(&pair, 2, 1);
}

/* Some ranks agree on what is missing of results, and others want all of them, or keep their own.
 */
static void communicator_mismatch__by_bound_pull(void **state)
{
    (void)state;
    static const struct gw_parts exact = {.bound = GW_Q16_ONE / 10};
    static const struct gw_parts loses = {.bound = GW_Q16_ONE / 10, .bound_pull = GW_Q16_ONE / 10};
    static const struct gw_parts keeps = {.bound_pull = GW_Q16_ONE / 10, .keeps_own = true};
    struct gw_call first = {.kind = GW_CALL_ALLREDUCE,
                            .via = GW_VIA_RING,
                            .type = GW_DTYPE_I32,
                            .count = 5000,
                            .parts = &exact};
    struct gw_call second = first;
    second.parts = &loses;
    expect_nothing_of_any(&(struct pair){.of_one = first, .of_others = second}, RANKS_MAX);
    first.parts = &keeps;
    expect_nothing_of_any(&(struct pair){.of_one = first, .of_others = second}, RANKS_MAX);
    first.parts = &exact;
    first.kind = second.kind = GW_CALL_ALLGATHER;
    first.count = second.count = 500;
    expect_nothing_of_any(&(struct pair){.of_one = first, .of_others = second}, RANKS_MAX);
}

/* Some ranks go from rank to rank, and others by servers, whom they have nothing to say to. */
static void communicator_mismatch__by_bound_via_ps(void **state)
{
    (void)state;
    static const struct gw_parts tenth = {.bound = GW_Q16_ONE / 10};
    struct gw_call exact = {
        .kind = GW_CALL_ALLREDUCE, .via = GW_VIA_PS, .type = GW_DTYPE_I32, .count = 5000};
    struct gw_call bounded = exact;
    bounded.parts = &tenth;
    expect_nothing_of_any(&(struct pair){.of_one = exact, .of_others = bounded}, RANKS_MAX);
    expect_nothing_of_any(&(struct pair){.of_one = bounded, .of_others = exact}, RANKS_MAX);
}

static void communicator_mismatch__by_via(void **state)
{
    (void)state;
    for (enum gw_via via = GW_VIA_INA; via < GW_VIA_RING; via++) {
        struct gw_call by_server = {
            .kind = GW_CALL_ALLREDUCE, .via = via, .type = GW_DTYPE_I32, .count = 5000};
        struct gw_call by_ring = by_server;
        by_ring.via = GW_VIA_RING;
        expect_nothing_of_any(&(struct pair){.of_one = by_server, .of_others = by_ring}, RANKS_MAX);
        expect_nothing_of_any(&(struct pair){.of_one = by_ring, .of_others = by_server}, RANKS_MAX);
    }
}

/* Servers cannot tell: each via has shards of its own. Some rank asks the next one. */
static void communicator_mismatch__by_via_of_servers(void **state)
{
    (void)state;
    struct gw_call in_switches = {
        .kind = GW_CALL_ALLREDUCE, .via = GW_VIA_INA, .type = GW_DTYPE_I32, .count = 5000};
    struct gw_call past_them = in_switches;
    past_them.via = GW_VIA_PS;
    expect_nothing_of_any(&(struct pair){.of_one = in_switches, .of_others = past_them}, RANKS_MAX);
    expect_nothing_of_any(&(struct pair){.of_one = past_them, .of_others = in_switches}, RANKS_MAX);
}

/* Who makes the same call is late, and not another one. */
static void communicator_mismatch__is_not_to_be_late(void **state)
{
    (void)state;
    static int32_t memory[RANKS_MAX][2 * 5000];
    struct net net;
    net_start(&net, &(struct plan){.world = 3, .servers = 1, .via = GW_VIA_INA, .whole = 4096});
    for (uint32_t i = 0; i < 2 * 3; i++) {
        uint32_t rank = i % 3;
        struct gw_call call = {.kind = GW_CALL_ALLREDUCE,
                               .via = i < 3 ? GW_VIA_PS : GW_VIA_INA,
                               .type = GW_DTYPE_I32,
                               .number = 1,
                               .in = memory[rank],
                               .out = memory[rank] + 5000,
                               .count = 5000};
        start(&net, rank, &call);
        run_for(&net, STALL / 3);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_FAILED), 0);
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 2);
    }
    net_close(&net);
}

/* A message that is longer than the room for it ends at once, for both. */
static void communicator_mismatch__by_length_of_a_message(void **state)
{
    (void)state;
    static const struct gw_parts tenth = {.bound = GW_Q16_ONE / 10};
    static const uint32_t sizes[][2] = {{2, 1}, {10000, 9999}, {10000, 1}, {60000, 10000}};
    static char sent[60000], got[10000];
    for (uint32_t i = 0; i < 2 * GW_COUNT_OF(sizes); i++) {
        const uint32_t *size = sizes[i / 2];
        const struct gw_parts *parts = i % 2 ? &tenth : NULL;
        struct net net;
        net_start(
            &net,
            &(struct plan){
                .world = 2, .servers = 1, .via = GW_VIA_RING, .whole = 4096, .takes_parts = true});
        start(&net, 1,
              &(struct gw_call){
                  .kind = GW_CALL_RECEIVE, .out = got, .count = size[1], .tag = 7, .parts = parts});
        start(&net, 0,
              &(struct gw_call){.kind = GW_CALL_SEND,
                                .in = sent,
                                .count = size[0],
                                .peer = 1,
                                .tag = 7,
                                .parts = parts});
        run_for(&net, STALL / 4);
        for (uint32_t rank = 0; rank < 2; rank++) {
            const struct gw_communicator_event *last = last_event(&net.ranks[rank]);
            assert_int_equal(last->kind, GW_COMMUNICATOR_FAILED);
            assert_int_equal(last->reason, GW_JOB_MISMATCH);
            assert_int_equal(last->about, 0);
            if (rank == 1) {
                assert_true(last->room == size[1] && last->tag == 7);
                assert_true(last->bytes > size[1] && last->bytes <= size[0]);
            }
        }
        net_close(&net);
    }
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
        cmocka_unit_test(communicator_mismatch__by_bound_pull),
        cmocka_unit_test(communicator_mismatch__by_bound_via_ps),
        cmocka_unit_test(communicator_mismatch__by_via),
        cmocka_unit_test(communicator_mismatch__by_via_of_servers),
        cmocka_unit_test(communicator_mismatch__is_not_to_be_late),
        cmocka_unit_test(communicator_mismatch__by_length_of_a_message),
        cmocka_unit_test(communicator_mismatch__by_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
