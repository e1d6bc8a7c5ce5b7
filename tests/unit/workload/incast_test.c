/* Incasts: distinct senders, from other groups than the receiver's while these have hosts. */
#include "unit/workload/workload_fixture.h"

static void incast__takes_distinct_senders_from_other_groups_first(void **state)
{
    static const uint32_t degrees[] = {1, 8, 12, 13, 15};
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=4"); /* 16 hosts, 4 of them in the receiver's pod */
    for (size_t i = 0; i < GW_COUNT_OF(degrees); i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            char settings[64];
            struct generated made;
            snprintf(settings, sizeof(settings), "degree=%u size=1MiB receiver=6", degrees[i]);
            generate(&made, &topo, "incast", settings, seed);
            assert_int_equal(made.error, GW_OK);
            assert_int_equal(made.workload.flow_count, degrees[i]);
            bool sends[16] = {false};
            uint32_t near = 0;
            for (uint32_t f = 0; f < degrees[i]; f++) {
                const struct gw_flow_spec *flow = &made.workload.flows[f];
                assert_int_equal(flow->dst, 6);
                assert_int_equal(flow->bytes, 1 << 20);
                assert_true(flow->src < 16 && flow->src != 6 && !sends[flow->src]);
                sends[flow->src] = true;
                near += topo.nodes[flow->src].group == topo.nodes[6].group;
            }
            assert_int_equal(near, degrees[i] > 12 ? degrees[i] - 12 : 0);
            gw_workload_fini(&made.workload);
        }
    gw_topo_fini(&topo);
}

/* As the authors of SMaRTT-REPS ran it; the receiver does not send to itself. */
static void incast__takes_the_first_hosts(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=4");
    for (uint32_t receiver = 0; receiver < 16; receiver++) {
        char settings[64];
        struct generated made;
        snprintf(settings, sizeof(settings), "senders=first degree=7 receiver=%u", receiver);
        generate(&made, &topo, "incast", settings, 1);
        assert_int_equal(made.workload.flow_count, 7);
        for (uint32_t f = 0; f < 7; f++) {
            assert_int_equal(made.workload.flows[f].src, f < receiver ? f : f + 1);
            assert_int_equal(made.workload.flows[f].dst, receiver);
        }
        gw_workload_fini(&made.workload);
    }
    gw_topo_fini(&topo);
}

static void incast__spreads_starts(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=65");
    generate(&made, &topo, "incast", "degree=64 start=2us start_spread=100ns", 1);
    gw_time sum = 0;
    for (uint32_t f = 0; f < 64; f++) {
        assert_in_range(made.workload.flows[f].start, 2 * GW_US, 2 * GW_US + 100 * GW_NS - 1);
        sum += made.workload.flows[f].start - 2 * GW_US;
    }
    assert_in_range(sum / 64, 40 * GW_NS, 60 * GW_NS);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void incast__refuses_what_it_cannot_do(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=8");
    generate_refused(&topo, "incast", "degree=8", "degree must be from 1 to 7");
    generate_refused(&topo, "incast", "degree=1 bound=1",
                     "bound must be at least 0 and below 100%");
    generate_refused(&topo, "incast", "degree=1 important=1.1", "important must be from 0 to 100%");
    generate_refused(&topo, "incast", "degree=1 class=7", "class must be from 0 to 6, not 7");
    generate_refused(&topo, "incast", "degree=0", "degree must be from 1 to 7");
    generate_refused(&topo, "incast", "receiver=8 degree=1", "receiver must be one of the 8");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incast__takes_distinct_senders_from_other_groups_first),
        cmocka_unit_test(incast__takes_the_first_hosts),
        cmocka_unit_test(incast__spreads_starts),
        cmocka_unit_test(incast__refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
