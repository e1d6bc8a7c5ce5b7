/* `faults:` in a scenario. */
#include "unit/config/scenario_file.h"

#define SCENARIO                                                                                   \
    "topology: {kind: leaf-spine, links_per_pair: 2}\n"                                            \
    "workload: permutation\n"

static void faults_load__reads_every_kind(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario,
                  SCENARIO "faults:\n"
                           "  - {at: 20us, until: 1ms, link: [leaf0, spine1, 1], down: yes}\n"
                           "  - {at: 0, link: [leaf0, spine2, 0], rate: 25%}\n"
                           "  - {at: 1ns, until: never, link: [host0, leaf0], loss: 0.000001}\n"
                           "  - {at: 1ns, link: [leaf0, host0], corrupt: 50%}\n"
                           "  - {at: 5us, node: spine3, down: on}\n"
                           "  - {at: 0, link: [leaf0, host0], duplicate: 25%}\n"
                           "  - {at: 0, link: [leaf0, host0], reorder: 0.5, delay: 3us}\n"
                           "  - {at: 5us, until: 6us, node: host3, crash: yes}\n"
                           "  - {at: 5us, node: leaf1, crash: yes}\n"
                           "  - {at: 5us, until: 9us, node: host2, sleep: yes}\n",
                  NULL);
    assert_int_equal(scenario.fault_count, 10);
    const struct gw_fault *faults = scenario.faults;
    const struct gw_topo *topo = &scenario.topo;
    assert_int_equal(faults[0].kind, GW_FAULT_LINK_DOWN);
    assert_int_equal(faults[0].at, 20 * GW_US);
    assert_int_equal(faults[0].until, GW_MS);
    const struct gw_link *link = &topo->links[faults[0].link];
    assert_string_equal(topo->nodes[link->side[0].node].name, "leaf0");
    assert_string_equal(topo->nodes[link->side[1].node].name, "spine1");
    assert_int_equal(topo->links[faults[0].link - 1].side[1].node, link->side[1].node);
    assert_int_equal(faults[1].kind, GW_FAULT_LINK_RATE);
    assert_int_equal(faults[1].factor, GW_Q16_ONE / 4);
    assert_int_equal(faults[1].until, GW_TIME_NEVER);
    assert_int_equal(faults[2].kind, GW_FAULT_LINK_LOSS);
    assert_int_equal(faults[2].chance_q32, 4295);
    assert_int_equal(faults[2].until, GW_TIME_NEVER);
    assert_int_equal(faults[3].kind, GW_FAULT_LINK_CORRUPT);
    assert_int_equal(faults[3].chance_q32, UINT64_C(1) << 31);
    assert_int_equal(faults[3].link, faults[2].link);
    assert_int_equal(faults[4].kind, GW_FAULT_NODE_DOWN);
    assert_int_equal(faults[4].node, gw_topo_find(topo, "spine3"));
    assert_int_equal(faults[5].kind, GW_FAULT_LINK_DUPLICATE);
    assert_int_equal(faults[5].chance_q32, UINT64_C(1) << 30);
    assert_int_equal(faults[5].delay, 0);
    assert_int_equal(faults[6].kind, GW_FAULT_LINK_REORDER);
    assert_int_equal(faults[6].chance_q32, UINT64_C(1) << 31);
    assert_int_equal(faults[6].delay, 3 * GW_US);
    assert_int_equal(faults[7].kind, GW_FAULT_NODE_CRASH);
    assert_int_equal(faults[7].node, 3);
    assert_int_equal(faults[7].until, 6 * GW_US);
    assert_int_equal(faults[8].kind, GW_FAULT_NODE_CRASH);
    assert_int_equal(faults[8].node, gw_topo_find(topo, "leaf1"));
    assert_int_equal(faults[8].until, GW_TIME_NEVER);
    assert_int_equal(faults[9].kind, GW_FAULT_HOST_SLEEP);
    assert_int_equal(faults[9].node, 2);
    gw_scenario_free(&scenario);
}

static void faults_load__takes_all_parallel_links(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, SCENARIO, "faults=[{at: 0, link: [spine1, leaf2], down: yes}]");
    assert_int_equal(scenario.fault_count, 2);
    assert_int_equal(scenario.faults[1].link, scenario.faults[0].link + 1);
    gw_scenario_free(&scenario);
}

static void faults_load__names_what_is_wrong(void **state)
{
    static const struct {
        const char *fault, *why;
    } cases[] = {
        {"{link: [leaf0, spine1], down: yes}", ":4: faults.0: at is missing"},
        {"{at: 5, link: [leaf0, spine1], down: yes}", ":4: faults.0.at: wrong or missing unit: 5"},
        {"{at: never, link: [leaf0, spine1], down: yes}", "faults.0.at: not understood: never"},
        {"{at: 5us, until: 5us, link: [leaf0, spine1], down: yes}", "until: must be later than at"},
        {"{at: 0, link: [leaf0, spine9], down: yes}", "link.1: no node is called spine9"},
        {"{at: 0, link: [leaf0, leaf1], down: yes}", "link: no link between leaf0 and leaf1"},
        {"{at: 0, link: leaf0, down: yes}", "link: expected two nodes that are linked"},
        {"{at: 0, link: [leaf0, spine0, 2], down: yes}", "the number of one of 2 links"},
        {"{at: 0, link: [leaf0, spine0]}",
         "one of down, rate, loss, corrupt, duplicate, reorder, crash and sleep is missing"},
        {"{at: 0, link: [leaf0, spine0], down: yes, loss: 1%}", "loss: down is already said"},
        {"{at: 0, link: [leaf0, spine0], down: no}", "down: not understood: no; expected yes"},
        {"{at: 0, link: [leaf0, spine0], rate: 0}", "rate: value out of range: 0"},
        {"{at: 0, link: [leaf0, spine0], rate: 1.5}", "rate: value out of range: 1.5"},
        {"{at: 0, link: [leaf0, spine0], rate: 1Gbps}", "rate: wrong or missing unit: 1Gbps"},
        {"{at: 0, link: [leaf0, spine0], loss: 101%}", "loss: value out of range: 101%"},
        {"{at: 0, link: [leaf0, spine0], corrupt: -1}", "corrupt: value out of range: -1"},
        {"{at: 0, node: spine9, down: yes}", "node: no node is called spine9"},
        {"{at: 0, node: spine0, loss: 1%}", "node: a node can only be down, crash or sleep"},
        {"{at: 0, node: spine0, reorder: 1%, delay: 1us}", "node: a node can only be down, crash"},
        {"{at: 0, until: 1us, node: spine0, sleep: yes}", "node: only a host can sleep"},
        {"{at: 0, node: host1, sleep: yes}", "node: sleep needs until: when the host wakes"},
        {"{at: 0, until: 1us, node: host1, sleep: no}", "sleep: not understood: no; expected yes"},
        {"{at: 0, until: 1us, link: [leaf0, host0], sleep: yes}", "link: a link cannot sleep; a"},
        {"{at: 0, node: host99, crash: yes}", "node: no node is called host99"},
        {"{at: 2us, until: 1us, node: host0, crash: yes}", "until: must be later than at"},
        {"{at: 2us, node: host0, crash: no}", "crash: not understood: no; expected yes"},
        {"{at: 2us, node: host0, crash: yes, down: yes}", "crash: down is already said"},
        {"{at: 2us, link: [leaf0, spine0], crash: yes}", "link: a link cannot crash; a node can"},
        {"{at: 0, link: [leaf0, spine0], duplicate: 2}", "duplicate: value out of range: 2"},
        {"{at: 0, link: [leaf0, spine0], reorder: 1%}", "faults.0: reorder needs delay"},
        {"{at: 0, link: [leaf0, spine0], reorder: 1%, delay: 0}", "delay: delay must be above 0"},
        {"{at: 0, link: [leaf0, spine0], reorder: 1%, delay: 5}", "delay: wrong or missing unit"},
        {"{at: 0, link: [leaf0, spine0], loss: 1%, delay: 5us}", "delay: only a fault with reor"},
        {"{at: 0, down: yes}", "either link or node must be given"},
        {"{at: 0, node: spine0, link: [leaf0, spine0], down: yes}", "either link or node"},
        {"{at: 0, node: spine0, dwon: yes}", "unknown key \"dwon\"; the nearest known are: down"},
        {"down", "faults.0: expected a map"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), SCENARIO "faults:\n  - %s\n", cases[i].fault);
        scenario_refused(text, NULL, cases[i].why);
    }
    scenario_refused(SCENARIO "faults: none\n", NULL, ":3: faults: expected a list");
    scenario_refused("topology: {kind: star, rate: 200Kbps}\nworkload: permutation\n"
                     "faults: [{at: 0, link: [host0, sw0], rate: 0.1}]\n",
                     NULL, "link: the rate that is left is below 100000 bit/s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_load__reads_every_kind),
        cmocka_unit_test(faults_load__takes_all_parallel_links),
        cmocka_unit_test(faults_load__names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
