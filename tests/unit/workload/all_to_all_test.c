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

/*
 * Three chains among eleven hosts: three receivers each, the next of the ring first, and the tenth
 * behind the first chain. What a flow starts when it ends is the next of its own chain.
 */
static void all_to_all__sends_along_chains(void **state)
{
    enum { COUNT = 11, CHAINS = 3 };
    static const uint32_t distances[] = {1, 2, 3, 10, 4, 5, 6, 7, 8, 9};
    static const uint32_t first_of[CHAINS + 1] = {0, 4, 7, 10};
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=11");
    generate(&made, &topo, "all-to-all", "window=3 chains=yes", 1);
    const struct gw_workload *workload = &made.workload;
    assert_int_equal(workload->flow_count, COUNT * (COUNT - 1));
    assert_int_equal(workload->trigger_count, COUNT * CHAINS);
    for (uint32_t h = 0; h < COUNT; h++)
        for (uint32_t c = 0; c < CHAINS; c++) {
            const struct gw_trigger_spec *trigger = &workload->triggers[h * CHAINS + c];
            assert_true(trigger->one_each);
            assert_int_equal(trigger->needs, 1);
            assert_int_equal(trigger->start_count, first_of[c + 1] - first_of[c] - 1);
            for (uint32_t i = first_of[c]; i < first_of[c + 1]; i++) {
                uint32_t f = h * (COUNT - 1) + i;
                assert_int_equal(workload->flows[f].src, h);
                assert_int_equal(workload->flows[f].dst, (h + distances[i]) % COUNT);
                assert_int_equal(workload->flows[f].fires_sent, h * CHAINS + c);
                assert_int_equal(workload->flows[f].start, i == first_of[c] ? 0 : GW_TIME_NEVER);
                if (i > first_of[c])
                    assert_int_equal(workload->starts[trigger->first_start + i - first_of[c] - 1],
                                     f);
            }
        }
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

/* One order for all: whoever is the next of one host has the same next one as that. */
static void all_to_all__shuffles_the_ring_once(void **state)
{
    (void)state;
    struct gw_topo topo;
    uint32_t moved = 0;
    build(&topo, "star", "hosts=6");
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct generated made;
        generate(&made, &topo, "all-to-all", "window=1 shuffle=yes", seed);
        check_pairs(&made.workload);
        const struct gw_flow_spec *flows = made.workload.flows;
        uint32_t next[HOSTS];
        for (uint32_t f = 0; f < HOSTS * (HOSTS - 1); f += HOSTS - 1)
            next[flows[f].src] = flows[f].dst;
        for (uint32_t f = 0; f < HOSTS * (HOSTS - 1); f++) {
            moved += flows[f].dst != (flows[f].src + f % (HOSTS - 1) + 1) % HOSTS;
            if (f % (HOSTS - 1) != 0)
                assert_int_equal(flows[f].dst, next[flows[f - 1].dst]);
        }
        gw_workload_fini(&made.workload);
    }
    assert_true(moved > 20 * HOSTS * (HOSTS - 1) / 2); /* expected: four fifths */
    gw_topo_fini(&topo);
}

/* Every pair has its message, however the window divides the hosts; wider is no more than all. */
static void all_to_all__leaves_nobody_out(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=6");
    for (uint32_t window = 1; window < 8; window++) {
        char settings[64];
        struct generated made;
        snprintf(settings, sizeof(settings), "window=%u chains=yes shuffle=yes", window);
        generate(&made, &topo, "all-to-all", settings, window);
        check_pairs(&made.workload);
        uint32_t at_once = 0;
        for (uint32_t f = 0; f < made.workload.flow_count; f++)
            at_once += made.workload.flows[f].start == 0;
        assert_int_equal(at_once, HOSTS * (window < HOSTS - 1 ? window : HOSTS - 1));
        gw_workload_fini(&made.workload);
    }
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
        cmocka_unit_test(all_to_all__sends_along_chains),
        cmocka_unit_test(all_to_all__shuffles_the_ring_once),
        cmocka_unit_test(all_to_all__leaves_nobody_out),
        cmocka_unit_test(all_to_all__needs_no_trigger_with_a_wide_window),
        cmocka_unit_test(all_to_all__refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
