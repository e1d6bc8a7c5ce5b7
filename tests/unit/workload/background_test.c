/* Background flows: given pairs, random pairs, and never waited for. */
#include "unit/workload/workload_fixture.h"

#include "workload/workload.h"

/* build_settings() splits at spaces, so pairs are separated by commas here. */
static void background__takes_the_given_pairs(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=8");
    generate(&made, &topo, "background", "pairs=0->7,3->1 start=5us", 1);
    assert_int_equal(made.error, GW_OK);
    assert_int_equal(made.workload.flow_count, 2);
    static const uint32_t ends[][2] = {{0, 7}, {3, 1}};
    for (uint32_t f = 0; f < 2; f++) {
        assert_int_equal(made.workload.flows[f].src, ends[f][0]);
        assert_int_equal(made.workload.flows[f].dst, ends[f][1]);
        assert_int_equal(made.workload.flows[f].bytes, UINT64_C(1) << 40);
        assert_int_equal(made.workload.flows[f].start, 5 * GW_US);
        assert_true(made.workload.flows[f].background);
    }
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void background__draws_pairs(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    bool sends[4] = {false}, receives[4] = {false};
    build(&topo, "star", "hosts=4");
    generate(&made, &topo, "background", "count=100 size=1MiB", 1);
    assert_int_equal(made.workload.flow_count, 100);
    for (uint32_t f = 0; f < 100; f++) {
        const struct gw_flow_spec *flow = &made.workload.flows[f];
        assert_true(flow->src < 4 && flow->dst < 4 && flow->src != flow->dst);
        assert_true(flow->background);
        sends[flow->src] = receives[flow->dst] = true;
    }
    for (uint32_t h = 0; h < 4; h++)
        assert_true(sends[h] && receives[h]);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void background__refuses_what_is_no_pair(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=4");
    generate_refused(&topo, "background", "pairs=0->4", "pairs: 0->4 is not a pair");
    generate_refused(&topo, "background", "pairs=1->1", "pairs: 1->1 is not a pair");
    generate_refused(&topo, "background", "pairs=0-1", "pairs must be like");
    generate_refused(&topo, "background", "pairs=0->1x", "pairs must be like");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background__takes_the_given_pairs),
        cmocka_unit_test(background__draws_pairs),
        cmocka_unit_test(background__refuses_what_is_no_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
