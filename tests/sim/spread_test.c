/*
 * Load balancing that needs the switches' help, on a whole fabric: how many packets went by each
 * uplink of the only leaf that sends data, and what a failure costs.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"

enum {
    SPINES = 4,
    MTU = 4096,
    HEADER = 64,
};

/* What a topology has unless it says otherwise: of a link, and of a switch. */
static const gw_time LINK = 600 * GW_NS, CROSSING = 400 * GW_NS;

/* One flow, from the host of leaf1 to that of leaf0; so leaf1's uplinks carry its data alone. */
static const char scenario[] = "topology: {kind: leaf-spine, leaves: 2, spines: 4,"
                               " hosts_per_leaf: 1}\n"
                               "workload: {kind: incast, degree: 1}\n"
                               "convergence: never\n";

/* Packets that left leaf1 by its link to each spine. */
static void count_uplinks(const struct gw_test_sim *run, uint64_t counts[SPINES])
{
    const struct gw_topo *topo = &run->scenario.topo;
    uint32_t leaf = gw_topo_find(topo, "leaf1");
    const struct gw_topo_node *node = &topo->nodes[leaf];
    for (uint16_t p = 0; p < node->port_count; p++) {
        uint32_t peer = topo->ports[node->first_port + p].peer;
        if (peer < topo->host_count)
            continue;
        uint32_t spine = peer - gw_topo_find(topo, "spine0");
        assert_true(spine < SPINES);
        counts[spine] =
            gw_switch_port_stats(run->sim->nodes[run->sim->place[leaf]].sw, p).out_packets;
    }
}

static void run_flow(struct gw_test_sim *run, uint32_t packets, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_run(run, &options, scenario, "workload.size=%uB; %s", packets * MTU, set);
    assert_int_equal(run->totals.completed, 1);
}

/* Equal paths: the same number of packets by each. */
static void spread__is_exact_on_equal_paths(void **state)
{
    static const char *const settings[] = {"lb=round-robin", "lb=source-routed"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(settings); i++) {
        struct gw_test_sim run;
        uint64_t counts[SPINES];
        run_flow(&run, 4000, settings[i]);
        assert_int_equal(run.totals.data_packets, 4000);
        count_uplinks(&run, counts);
        for (uint32_t spine = 0; spine < SPINES; spine++)
            assert_int_equal(counts[spine], 1000);
        gw_test_sim_close(&run);
    }
}

/* Switches that all began with the same spine would meet there. */
static void spread__by_turns_begins_anywhere(void **state)
{
    (void)state;
    enum { RUNS = 32 };
    uint64_t firsts[SPINES] = {0};
    for (uint32_t seed = 1; seed <= RUNS; seed++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(seed);
        struct gw_test_sim run;
        uint64_t counts[SPINES];
        gw_test_sim_run(&run, &options, scenario, "workload.size=1B; lb=round-robin");
        count_uplinks(&run, counts);
        for (uint32_t spine = 0; spine < SPINES; spine++)
            firsts[spine] += counts[spine];
        gw_test_sim_close(&run);
    }
    for (uint32_t spine = 0; spine < SPINES; spine++)
        assert_in_range(firsts[spine], 1, RUNS / 2);
}

/* A path of half the rate gets half as many packets; by turns it gets as many as the others. */
static void spread__of_source_routing_follows_capacity(void **state)
{
    static const char slow[] =
        "topology.override=[{between: [leaf0, spine2], rate: 400Gbps}]; lb=source-routed";
    (void)state;
    struct gw_test_sim run;
    uint64_t counts[SPINES];
    run_flow(&run, 3500, slow);
    assert_int_equal(run.totals.data_packets, 3500);
    count_uplinks(&run, counts);
    for (uint32_t spine = 0; spine < SPINES; spine++)
        assert_int_equal(counts[spine], spine == 2 ? 500 : 1000);
    gw_test_sim_close(&run);
}

/*
 * A link dies. What it takes until the controller withdraws its path, 10 us later, is lost: at most
 * a quarter of the data that the host can send in that time, and as many acknowledgements. Where
 * the controller never notices, that is a quarter of all packets, and of those sent again.
 */
static void spread__of_source_routing_withdraws_a_dead_path(void **state)
{
    static const char dead[] = "faults=[{at: 5us, link: [leaf1, spine1], down: yes}]; "
                               "lb=source-routed; cc=fixed; loss=timeout; convergence=";
    const gw_time packet_time = gw_test_exact_time(MTU + HEADER, 800000000000);
    const uint64_t most = 2 * (10 * GW_US / packet_time / SPINES);
    (void)state;
    struct gw_test_sim run;
    char set[256];
    snprintf(set, sizeof(set), "%s10us", dead);
    run_flow(&run, 8000, set);
    print_message("lost: %llu of at most %llu\n", (unsigned long long)run.totals.link_losses,
                  (unsigned long long)most);
    assert_true(run.totals.link_losses > 0);
    assert_true(run.totals.link_losses <= most);
    /*
     * The others share the rest. What differs is one packet of the list before and one of the list
     * after, and what was on its way to the switch when the path was withdrawn: packets with the
     * label of that path, which the switch takes for any of the others.
     */
    const uint64_t on_the_way = (LINK + CROSSING) / packet_time / SPINES + 1;
    uint64_t counts[SPINES], fewest = UINT64_MAX, highest = 0;
    count_uplinks(&run, counts);
    assert_true(counts[1] < 1000);
    for (uint32_t spine = 0; spine < SPINES; spine++) {
        if (spine == 1)
            continue;
        fewest = counts[spine] < fewest ? counts[spine] : fewest;
        highest = counts[spine] > highest ? counts[spine] : highest;
    }
    assert_true(highest - fewest <= 2 + on_the_way);
    gw_test_sim_close(&run);
    snprintf(set, sizeof(set), "%snever", dead);
    run_flow(&run, 8000, set);
    assert_true(run.totals.link_losses > 8000 / 4);
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spread__is_exact_on_equal_paths),
        cmocka_unit_test(spread__by_turns_begins_anywhere),
        cmocka_unit_test(spread__of_source_routing_follows_capacity),
        cmocka_unit_test(spread__of_source_routing_withdraws_a_dead_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
