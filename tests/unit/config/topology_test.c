/* `topology:` in a scenario: explicit lists, overrides of single links, and what is refused. */
#include "unit/config/scenario_file.h"

#define WORKLOAD "workload: {kind: incast, degree: 1}\n"

static const char lists[] = "topology:\n"
                            "  kind: links\n"
                            "  hosts: [a, b, c]\n"
                            "  switches: [s, t]\n"
                            "  rate: 100Gbps\n"
                            "  latency: 1us\n"
                            "  switch_latency: 100ns\n"
                            "  links:\n"
                            "    - {between: [a, s]}\n"
                            "    - {between: [b, s], rate: 25Gbps}\n"
                            "    - {between: [c, t], latency: 0, queue: 1MiB}\n"
                            "    - {between: [s, t]}\n"
                            "    - {between: [s, t], rate: 40Gbps}\n" WORKLOAD;

static const struct gw_link *link_of(const struct gw_scenario *scenario, uint32_t index)
{
    assert_true(index < scenario->topo.link_count);
    return &scenario->topo.links[index];
}

static void topology_load__builds_lists(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, lists, NULL);
    const struct gw_topo *topo = &scenario.topo;
    assert_int_equal(topo->host_count, 3);
    assert_int_equal(topo->node_count, 5);
    assert_int_equal(gw_topo_find(topo, "c"), 2);
    assert_int_equal(topo->nodes[gw_topo_find(topo, "t")].delay, 100 * GW_NS);
    assert_int_equal(topo->nodes[0].group, topo->nodes[1].group);
    assert_int_not_equal(topo->nodes[0].group, topo->nodes[2].group);
    assert_int_equal(topo->nodes[2].group, topo->nodes[gw_topo_find(topo, "t")].group);
    assert_int_equal(link_of(&scenario, 0)->side[0].rate_bps, 100000000000);
    assert_int_equal(link_of(&scenario, 0)->latency, GW_US);
    assert_int_equal(link_of(&scenario, 1)->side[1].rate_bps, 25000000000);
    assert_int_equal(link_of(&scenario, 2)->latency, 0);
    assert_int_equal(link_of(&scenario, 2)->side[0].queue_bytes, 1 << 20);
    assert_int_equal(link_of(&scenario, 4)->side[1].rate_bps, 40000000000);
    assert_int_equal(gw_topo_path(topo, 0, 2, 100, 10).hops, 3);
    gw_scenario_free(&scenario);
}

static void topology_load__applies_overrides(void **state)
{
    static const char text[] =
        "topology:\n"
        "  kind: leaf-spine\n"
        "  links_per_pair: 2\n"
        "  override:\n"
        "    - {between: [leaf0, spine1], rate: 200Gbps, queue: 64KiB}\n"
        "    - {between: [spine2, leaf1], rate: 100Gbps, direction: forward}\n"
        "    - {between: [leaf3, spine3, 1], latency: 5us}\n" WORKLOAD;
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, text, NULL);
    const struct gw_topo *topo = &scenario.topo;
    uint32_t changed = 0;
    for (uint32_t i = 0; i < topo->link_count; i++) {
        const struct gw_link *link = &topo->links[i];
        const char *a = topo->nodes[link->side[0].node].name;
        const char *b = topo->nodes[link->side[1].node].name;
        bool first = !strcmp(a, "leaf0") && !strcmp(b, "spine1");
        bool second = !strcmp(a, "leaf1") && !strcmp(b, "spine2");
        bool third = !strcmp(a, "leaf3") && !strcmp(b, "spine3") &&
                     link->side[0].port == topo->nodes[link->side[0].node].port_count - 1;
        assert_int_equal(link->side[0].rate_bps, first ? 200000000000 : 800000000000);
        assert_int_equal(link->side[1].rate_bps, first    ? 200000000000
                                                 : second ? 100000000000
                                                          : 800000000000);
        assert_int_equal(link->side[0].queue_bytes, first ? 65536 : 0);
        assert_int_equal(link->side[1].queue_bytes, first ? 65536 : 0);
        assert_int_equal(link->latency, third ? 5 * GW_US : 600 * GW_NS);
        changed += first + second + third;
    }
    assert_int_equal(changed, 2 + 2 + 1);
    gw_scenario_free(&scenario);
}

/* The base RTT is that of the network as overridden. */
static void topology_load__measures_after_overrides(void **state)
{
    (void)state;
    struct gw_scenario plain, slower;
    static const char text[] = "topology: {kind: star, hosts: 4}\n" WORKLOAD;
    scenario_load(&plain, text, NULL);
    scenario_load(&slower, text, "topology.override=[{between: [host2, sw0], latency: 1600ns}]");
    assert_int_equal(slower.brtt_max, plain.brtt_max + 2 * GW_US);
    gw_scenario_free(&plain);
    scenario_load(&plain, text, "topology.override=[{between: [host2, sw0], rate: 1600Gbps}]");
    assert_int_equal(plain.host_rate_bps, 1600000000000);
    gw_scenario_free(&plain);
    gw_scenario_free(&slower);
}

/* As the authors of SMaRTT-REPS ran it: 700 ns per link and no time in switches, so six links make
 * 6 * (2 * 700 ns + a packet and its ACK), while their scripts call 864000 bytes a bdp. */
static void topology_load__has_the_authors_tree(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    static const char text[] = "topology: {kind: fat-tree, preset: drafts, k: 8}\n" WORKLOAD;
    scenario_load(&scenario, text, NULL);
    assert_int_equal(scenario.brtt_max, 6 * (1400 * GW_NS + 41600 + 640));
    assert_int_equal(scenario.bdp, 865344);
    gw_scenario_free(&scenario);
    scenario_load(&scenario, text, "host.preset=drafts");
    assert_int_equal(scenario.bdp, 864000);
    assert_int_equal(scenario.queue.capacity, 864000);
    assert_int_equal(scenario.host.jitter, 66); /* 1/65536 */
    assert_int_equal(scenario.host.ack_entropies, 256);
    assert_true(scenario.host.resend_over);
    gw_scenario_free(&scenario);
}

static void topology_load__names_what_is_wrong(void **state)
{
    static const struct {
        const char *topology, *why;
    } cases[] = {
        {"topology: {hosts: 3}\n", ":1: topology: topology.kind is missing"},
        {"topology: torus\n", ":1: topology: unknown kind: torus; expected one of: fat-tree"},
        {"topology:\n  kind: fat-tree\n  k: 7\n", ":3: topology.k: must be even, not 7"},
        {"topology:\n  kind: fat-tree\n  k: 8\n  oversubscription: 3\n",
         ":4: topology.oversubscription: must divide the 4 uplinks"},
        {"topology: {kind: fat-tree, tiers: 2,\n  oversubscription: 2}\n",
         ":2: topology.oversubscription: must be 1 with two tiers"},
        {"topology: {kind: fat-tree, preset: huge}\n",
         ":1: topology.preset: unknown preset: huge; the presets of fat-tree are: paper, drafts"},
        {"topology: {kind: star, hosts: 0}\n", ":1: topology.hosts: must be from 1"},
        {"topology: {kind: star, hosts: 1}\n", ":1: topology: no two hosts are connected"},
        {"topology: {kind: star, leaves: 3}\n", ":1: topology.leaves: unknown key \"leaves\""},
        {"topology: {kind: star, override: 3}\n", ":1: topology.override: expected a list"},
        {"topology: {kind: star, override: [3]}\n", ":1: topology.override.0: expected a map"},
        {"topology: {kind: star, override: [{rate: 1Gbps}]}\n", "override.0: between is missing"},
        {"topology: {kind: star, override: [{between: sw0}]}\n", "between: expected the names"},
        {"topology: {kind: star, override: [{between: [sw0, host9]}]}\n",
         "between.1: no node is called host9"},
        {"topology: {kind: star, override: [{between: [host1, host2]}]}\n",
         "between: no link between host1 and host2"},
        {"topology: {kind: star, override: [{between: [host1, sw0, 1]}]}\n",
         "between: the third item must be"},
        {"topology: {kind: star, override: [{between: [host1, sw0], queue: 8GiB}]}\n",
         "override.0.queue: more than"},
        {"topology: {kind: star, override: [{between: [host1, sw0], colour: red}]}\n",
         "override.0.colour: unknown key"},
        {"topology: {kind: star, override: [{between: [host1, sw0], latency: 1us, "
         "direction: forward}]}\n",
         "latency: a link's latency is the same"},
        {"topology: {kind: links}\n", ":1: topology: hosts must be from 1"},
        {"topology: {kind: links, hosts: [a, b],\n  switches: [s]}\n",
         ":1: topology: host a has no link"},
        {"topology: {kind: links, hosts: [a, a]}\n",
         ":1: topology.hosts: the name a is used twice"},
        {"topology: {kind: links, hosts: [a_name_that_is_far_too_long]}\n",
         ":1: topology.hosts: a name must have 1 to 23 characters: a_name"},
        {"topology: {kind: links, hosts: [a], switches: [s],\n  links: [{between: [a, x]}]}\n",
         ":2: topology.links: no node is called x"},
        {"topology: {kind: links, hosts: [a], switches: [s], links: [{between: [s, s]}]}\n",
         "topology.links: a link from s to itself"},
        {"topology: {kind: links, hosts: [a], switches: [s], links: [{between: [a, s, 0]}]}\n",
         "between: expected the names of two nodes"},
        {"topology: {kind: links, hosts: [a], switches: [s],\n  links: [{between: [a, s], "
         "direction: forward}]}\n",
         "links.0.direction: unknown key"},
        {"topology: {kind: links, hosts: [a, b], switches: [s, t],\n"
         "  links: [{between: [a, s]}, {between: [b, t]}]}\n",
         ":1: topology: no two hosts are connected"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s" WORKLOAD, cases[i].topology);
        scenario_refused(text, NULL, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topology_load__builds_lists),
        cmocka_unit_test(topology_load__applies_overrides),
        cmocka_unit_test(topology_load__measures_after_overrides),
        cmocka_unit_test(topology_load__has_the_authors_tree),
        cmocka_unit_test(topology_load__names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
