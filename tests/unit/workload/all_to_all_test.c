/* All-to-all: every ordered pair once, and a window of flows at a time. */
#include "unit/workload/workload_fixture.h"

enum {
    HOSTS = 6,
};

static void check_pairs(const struct gw_workload *workload)
{
    bool seen[HOSTS][HOSTS] = {{false}};
    assert_int_equal(workload->flow_count, HOSTS * (HOSTS - 1));
    for (uint32_t f = 0; f < workload->flow_count; f++) {
        const struct gw_flow_spec *flow = &workload->flows[f];
        assert_true(flow->src < HOSTS && flow->dst < HOSTS && flow->src != flow->dst);
        assert_false(seen[flow->src][flow->dst]);
        seen[flow->src][flow->dst] = true;
    }
}

static void all_to_all__starts_a_window_and_chains_the_rest(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=8");
    generate(&made, &topo, "all-to-all", "window=2 hosts=6 size=1MiB", 1);
    const struct gw_workload *workload = &made.workload;
    check_pairs(workload);
    assert_int_equal(workload->trigger_count, HOSTS);
    for (uint32_t h = 0; h < HOSTS; h++) {
        const struct gw_trigger_spec *trigger = &workload->triggers[h];
        assert_true(trigger->one_each);
        assert_int_equal(trigger->needs, 1);
        assert_int_equal(trigger->start_count, HOSTS - 1 - 2);
        for (uint32_t i = 0; i < HOSTS - 1; i++) {
            const struct gw_flow_spec *flow = &workload->flows[h * (HOSTS - 1) + i];
            assert_int_equal(flow->src, h);
            assert_int_equal(flow->dst, (h + 1 + i) % HOSTS);
            assert_int_equal(flow->fires_sent, h);
            assert_int_equal(flow->start, i < 2 ? 0 : GW_TIME_NEVER);
            if (i >= 2)
                assert_int_equal(workload->starts[trigger->first_start + i - 2],
                                 h * (HOSTS - 1) + i);
        }
    }
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void all_to_all__needs_no_trigger_with_a_wide_window(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=6");
    generate(&made, &topo, "all-to-all", "window=5", 1);
    check_pairs(&made.workload);
    assert_int_equal(made.workload.trigger_count, 0);
    for (uint32_t f = 0; f < made.workload.flow_count; f++)
        assert_int_equal(made.workload.flows[f].start, 0);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void all_to_all__refuses_what_it_cannot_do(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=8");
    generate_refused(&topo, "all-to-all", "hosts=9", "hosts must be from 2 to 8");
    generate_refused(&topo, "all-to-all", "hosts=1", "hosts must be from 2 to 8");
    generate_refused(&topo, "all-to-all", "window=0", "window must be");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_to_all__starts_a_window_and_chains_the_rest),
        cmocka_unit_test(all_to_all__needs_no_trigger_with_a_wide_window),
        cmocka_unit_test(all_to_all__refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
