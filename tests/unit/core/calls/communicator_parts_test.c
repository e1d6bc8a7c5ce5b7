/* Calls of a communicator that may lose a part: which there are, and what they tell where nothing
 * is lost. What they do where something is, is in the swarm and in coll_parts_test.c. */
#include "calls_fixture.h"

#include "base/bits.h"

enum {
    WORLD = 3,
    COUNT = 5000,
    FRAGMENT = MTU / sizeof(float),
    FRAGMENTS = (COUNT + FRAGMENT - 1) / FRAGMENT,
};

static const struct gw_parts tenth = {.bound = GW_Q16_ONE / 10, .bound_pull = GW_Q16_ONE / 20};

static const struct plan plan = {
    .world = WORLD, .servers = 2, .via = GW_VIA_INA, .whole = 4096, .takes_parts = true};

static void expect_code(struct net *net, const struct gw_call *call, int code)
{
    assert_int_equal(gw_communicator_call(net->ranks[0].comm, call, gw_mem_now(net->mem)), code);
}

static void communicator_call__refuses_parts_that_it_cannot_lose(void **state)
{
    (void)state;
    static const struct gw_parts bad[] = {
        {.bound = -1},
        {.bound = GW_Q16_ONE},
        {.bound_pull = -1},
        {.bound_pull = GW_Q16_ONE},
        {.class = GW_CLASS_DATA_MAX + 1},
    };
    static float x[1 << 15];
    struct gw_call call = {
        .kind = GW_CALL_ALLREDUCE, .via = GW_VIA_RING, .in = x, .out = x, .count = 1};
    struct net net;
    net_start(&net, &plan);
    for (uint32_t i = 0; i < GW_COUNT_OF(bad); i++) {
        call.parts = &bad[i];
        expect_code(&net, &call, GW_ERR_INVALID);
    }
    const struct gw_call none[] = {
        {.kind = GW_CALL_BARRIER, .parts = &tenth},
        {.kind = GW_CALL_SEND, .in = x, .count = (1 << 16) + 1, .peer = 1, .parts = &tenth},
        {.kind = GW_CALL_PUSH, .in = x, .count = (1 << 14) + 1, .parts = &tenth},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(none); i++)
        expect_code(&net, &none[i], GW_ERR_INVALID);
    net_close(&net);
    struct plan without = plan;
    without.takes_parts = false;
    net_start(&net, &without);
    call.parts = &tenth;
    expect_code(&net, &call, GW_ERR_INVALID);
    assert_int_equal(gw_communicator_fragment(net.ranks[0].comm, &call), 0);
    net_close(&net);
}

static void communicator_fragment__fills_a_packet(void **state)
{
    (void)state;
    struct net net;
    struct gw_call call = {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_RING, .type = GW_DTYPE_F16};
    net_start(&net, &plan);
    const struct gw_communicator *comm = net.ranks[0].comm;
    assert_int_equal(gw_communicator_fragment(comm, &call), MTU / 2);
    call.via = GW_VIA_INA; /* where all travel as integers of 32 bits */
    assert_int_equal(gw_communicator_fragment(comm, &call), VALUES);
    call.type = GW_DTYPE_F64; /* which switches cannot sum */
    assert_int_equal(gw_communicator_fragment(comm, &call), MTU / 8);
    call.kind = GW_CALL_SEND;
    assert_int_equal(gw_communicator_fragment(comm, &call), MTU);
    net_close(&net);
}

/* Where nothing is lost nothing is missing, whatever the bounds; and masks and counts say so. */
static void communicator_call__tells_that_nothing_is_missing(void **state)
{
    (void)state;
    static float values[WORLD][COUNT];
    static uint64_t arrived[WORLD][FRAGMENTS / 64 + 1];
    static uint16_t counts[WORLD][FRAGMENTS];
    for (uint32_t via = 0; via < GW_VIAS; via++) {
        struct net net;
        net_start(&net, &plan);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            struct gw_parts parts = tenth;
            parts.arrived = arrived[rank];
            parts.counts = counts[rank];
            memset(counts[rank], 0, sizeof(counts[rank]));
            memset(arrived[rank], 0, sizeof(arrived[rank]));
            for (uint32_t i = 0; i < COUNT; i++)
                values[rank][i] = (float)(1 << rank);
            start(&net, rank,
                  &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                    .via = (enum gw_via)via,
                                    .in = values[rank],
                                    .out = values[rank],
                                    .count = COUNT,
                                    .parts = &parts});
        }
        run_for(&net, 20 * GW_MS);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 1);
            for (uint32_t i = 0; i < COUNT; i++)
                assert_true(values[rank][i] == 7);
            for (uint32_t i = 0; i < FRAGMENTS; i++) {
                assert_true(gw_bit_is_set(arrived[rank], i));
                assert_int_equal(counts[rank][i], WORLD);
            }
            assert_int_equal(arrived[rank][FRAGMENTS / 64] >> FRAGMENTS % 64, 0);
        }
        leave(&net);
        net_close(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator_call__refuses_parts_that_it_cannot_lose),
        cmocka_unit_test(communicator_fragment__fills_a_packet),
        cmocka_unit_test(communicator_call__tells_that_nothing_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
