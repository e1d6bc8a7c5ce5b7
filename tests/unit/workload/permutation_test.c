/* Permutations are derangements that cross groups wherever that is possible. */
#include "unit/workload/workload_fixture.h"

enum {
    HOSTS_MAX = 1024,
};

/* Each host sends once and receives once, never to itself. */
static void check_derangement(const struct gw_flow_spec *flows, uint32_t host_count)
{
    bool received[HOSTS_MAX] = {false};
    for (uint32_t h = 0; h < host_count; h++) {
        assert_int_equal(flows[h].src, h);
        assert_int_not_equal(flows[h].dst, h);
        assert_true(flows[h].dst < host_count);
        assert_false(received[flows[h].dst]);
        received[flows[h].dst] = true;
    }
}

static void permutation__crosses_the_core_for_many_seeds(void **state)
{
    static const char *const cases[][2] = {
        {"fat-tree", "k=4"},
        {"fat-tree", "k=8"},
        {"fat-tree", "k=16 oversubscription=8"},
        {"dumbbell", "hosts=5"}, /* two groups: each host must hit the other one */
        {"leaf-spine", "leaves=3 hosts_per_leaf=1"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        build(&topo, cases[i][0], cases[i][1]);
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct generated made;
            generate(&made, &topo, "permutation", "size=64KiB count=2", seed);
            assert_int_equal(made.error, GW_OK);
            assert_int_equal(made.workload.flow_count, 2 * topo.host_count);
            check_derangement(made.workload.flows, topo.host_count);
            check_derangement(made.workload.flows + topo.host_count, topo.host_count);
            for (uint32_t f = 0; f < made.workload.flow_count; f++) {
                const struct gw_flow_spec *flow = &made.workload.flows[f];
                assert_int_not_equal(topo.nodes[flow->src].group, topo.nodes[flow->dst].group);
                assert_int_equal(flow->bytes, 65536);
                assert_int_equal(flow->start, 0);
                assert_int_equal(flow->id, f);
                assert_int_equal(flow->fires_sent, GW_TRIGGER_NONE);
                assert_false(flow->background);
            }
            gw_workload_fini(&made.workload);
        }
        gw_topo_fini(&topo);
    }
}

static void permutation__is_a_derangement_within_one_group(void **state)
{
    (void)state;
    for (uint32_t hosts = 2; hosts < 9; hosts++) {
        struct gw_topo topo;
        char settings[16];
        snprintf(settings, sizeof(settings), "hosts=%u", hosts);
        build(&topo, "star", settings);
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct generated made;
            generate(&made, &topo, "permutation", "", seed);
            assert_int_equal(made.workload.flow_count, hosts);
            check_derangement(made.workload.flows, hosts);
            gw_workload_fini(&made.workload);
        }
        gw_topo_fini(&topo);
    }
}

static void permutation__depends_on_the_seed_alone(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated a, b, c;
    build(&topo, "fat-tree", "k=8");
    generate(&a, &topo, "permutation", "start=1us start_spread=1us", 3);
    generate(&b, &topo, "permutation", "start=1us start_spread=1us", 3);
    generate(&c, &topo, "permutation", "start=1us start_spread=1us", 4);
    uint32_t same = 0;
    for (uint32_t f = 0; f < a.workload.flow_count; f++) {
        assert_int_equal(a.workload.flows[f].dst, b.workload.flows[f].dst);
        assert_int_equal(a.workload.flows[f].start, b.workload.flows[f].start);
        assert_in_range(a.workload.flows[f].start, GW_US, 2 * GW_US - 1);
        same += a.workload.flows[f].dst == c.workload.flows[f].dst;
    }
    assert_true(same < a.workload.flow_count / 8);
    gw_workload_fini(&a.workload);
    gw_workload_fini(&b.workload);
    gw_workload_fini(&c.workload);
    gw_topo_fini(&topo);
}

/* Of two permutations of eight hosts: the first eleven messages. */
static void permutation__has_some_longer_messages(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=8");
    generate(&made, &topo, "permutation", "size=1MiB count=2 long_count=11 long_size=3MiB", 1);
    assert_int_equal(made.workload.flow_count, 16);
    for (uint32_t f = 0; f < 16; f++)
        assert_int_equal(made.workload.flows[f].bytes, f < 11 ? 3 << 20 : 1 << 20);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

/* As the authors of SMaRTT-REPS ran it: the hosts of each half share out those of the other. */
static void permutation__crosses_halves(void **state)
{
    enum { HOSTS = 32 }; /* two pods of the tree */
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=8");
    bool met[HOSTS][HOSTS] = {{false}};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct generated made;
        generate(&made, &topo, "permutation", "across=halves hosts=32 count=3", seed);
        assert_int_equal(made.error, GW_OK);
        assert_int_equal(made.workload.flow_count, 3 * HOSTS);
        for (uint32_t n = 0; n < 3; n++)
            check_derangement(made.workload.flows + n * HOSTS, HOSTS);
        for (uint32_t f = 0; f < 3 * HOSTS; f++) {
            const struct gw_flow_spec *flow = &made.workload.flows[f];
            assert_int_not_equal(flow->src < HOSTS / 2, flow->dst < HOSTS / 2);
            met[flow->src][flow->dst] = true;
        }
        gw_workload_fini(&made.workload);
    }
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < HOSTS * HOSTS; i++)
        pairs += met[i / HOSTS][i % HOSTS];
    assert_int_equal(pairs, HOSTS * HOSTS / 2); /* none of them is drawn less than the others */
    gw_topo_fini(&topo);
}

/* Among the first hosts alone; a pod that has more than half of these does not count. */
static void permutation__is_among_the_first_hosts(void **state)
{
    static const uint32_t counts[] = {2, 5, 8, 9, 16};
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=4"); /* four pods of four hosts */
    for (size_t i = 0; i < GW_COUNT_OF(counts); i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            char settings[32];
            struct generated made;
            snprintf(settings, sizeof(settings), "hosts=%u", counts[i]);
            generate(&made, &topo, "permutation", settings, seed);
            assert_int_equal(made.workload.flow_count, counts[i]);
            check_derangement(made.workload.flows, counts[i]);
            for (uint32_t f = 0; counts[i] >= 8 && f < counts[i]; f++)
                assert_int_not_equal(made.workload.flows[f].src / 4,
                                     made.workload.flows[f].dst / 4);
            gw_workload_fini(&made.workload);
        }
    gw_topo_fini(&topo);
}

static void permutation__refuses_what_it_cannot_do(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=1");
    generate_refused(&topo, "permutation", "", "a permutation needs two hosts");
    gw_topo_fini(&topo);
    build(&topo, "star", "hosts=2");
    generate_refused(&topo, "permutation", "count=4294967295", "count gives 8589934590 flows");
    generate_refused(&topo, "permutation", "hosts=1", "hosts must be from 2 to 2");
    generate_refused(&topo, "permutation", "hosts=3", "hosts must be from 2 to 2");
    gw_topo_fini(&topo);
    build(&topo, "star", "hosts=3");
    generate_refused(&topo, "permutation", "across=halves",
                     "across: halves needs an even number of hosts, not 3");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutation__crosses_the_core_for_many_seeds),
        cmocka_unit_test(permutation__is_a_derangement_within_one_group),
        cmocka_unit_test(permutation__depends_on_the_seed_alone),
        cmocka_unit_test(permutation__has_some_longer_messages),
        cmocka_unit_test(permutation__crosses_halves),
        cmocka_unit_test(permutation__is_among_the_first_hosts),
        cmocka_unit_test(permutation__refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
