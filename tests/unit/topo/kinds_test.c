/* Every topology kind: counts, names and groups; and parameters that make no network. */
#include "unit/topo/topo_fixture.h"

/* What a kind must give. */
struct expected {
    const char *kind, *settings;
    uint32_t hosts, switches, links;
};

static void kinds_build__gives_the_right_counts(void **state)
{
    static const struct expected cases[] = {
        {"fat-tree", "k=4", 16, 20, 48},
        {"fat-tree", "k=8", 128, 80, 384},
        {"fat-tree", "k=16", 1024, 320, 3072},
        {"fat-tree", "k=16 oversubscription=8", 1024, 264, 2176},
        {"fat-tree", "k=8 tor_oversubscription=2", 128, 32 + 16 + 8, 128 + 64 + 64},
        {"fat-tree", "k=8 oversubscription=4", 128, 32 + 32 + 4, 128 + 128 + 32},
        {"fat-tree", "k=4 hosts_per_tor=6", 48, 20, 48 + 16 + 16},
        {"fat-tree", "tiers=2 k=8", 32, 12, 64},
        {"fat-tree", "tiers=2 k=8 tor_oversubscription=4", 32, 9, 40},
        {"leaf-spine", "leaves=2 spines=8 hosts_per_leaf=64 links_per_pair=2", 128, 10, 160},
        {"star", "hosts=5", 5, 1, 5},
        {"dumbbell", "hosts=3", 6, 2, 7},
        {"tree", "depth=3 fanout=2 hosts_per_leaf=3", 12, 7, 18},
        {"tree", "depth=1 fanout=2 hosts_per_leaf=3", 3, 1, 3},
        {"tree", "depth=2 fanout=2 hosts_per_leaf=3 root_hosts=2", 8, 3, 10},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        build(&topo, cases[i].kind, cases[i].settings);
        assert_int_equal(topo.host_count, cases[i].hosts);
        assert_int_equal(topo.node_count - topo.host_count, cases[i].switches);
        assert_int_equal(topo.link_count, cases[i].links);
        gw_topo_fini(&topo);
    }
}

/* A core switch of a fat tree reaches every pod once, whatever the oversubscription. */
static void fat_tree_build__links_each_core_to_every_pod(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=8 oversubscription=2");
    for (uint32_t c = gw_topo_find(&topo, "core0"); c < topo.node_count; c++) {
        assert_int_equal(topo.nodes[c].port_count, 8);
        assert_int_equal(topo.nodes[c].group, GW_GROUP_ANY);
        for (uint32_t p = 0; p < 8; p++) {
            uint32_t agg = topo.ports[topo.nodes[c].first_port + p].peer;
            assert_int_equal(topo.nodes[agg].group, p);
        }
    }
    gw_topo_fini(&topo);
}

static void fat_tree_build__names_and_groups_nodes(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=4");
    assert_int_equal(gw_topo_find(&topo, "host15"), 15);
    assert_int_equal(topo.nodes[15].group, 3);
    assert_int_equal(topo.nodes[gw_topo_find(&topo, "tor2")].group, 1);
    assert_int_equal(topo.nodes[gw_topo_find(&topo, "agg7")].group, 3);
    gw_topo_fini(&topo);
    build(&topo, "fat-tree", "tiers=2 k=4");
    assert_int_equal(topo.nodes[7].group, 3); /* racks */
    assert_int_equal(topo.nodes[gw_topo_find(&topo, "agg0")].group, GW_GROUP_ANY);
    gw_topo_fini(&topo);
}

/* Rates of links of their own, which are otherwise those of the others. */
static void kinds_build__gives_special_links_their_rate(void **state)
{
    static const struct {
        const char *kind, *settings, *from, *to;
        uint64_t rate_bps;
    } cases[] = {
        {"fat-tree", "k=4 rate=100Gbps", "host0", "tor0", 100000000000},
        {"fat-tree", "k=4 rate=100Gbps host_rate=25Gbps", "host0", "tor0", 25000000000},
        {"fat-tree", "k=4 rate=100Gbps host_rate=25Gbps", "tor0", "agg0", 100000000000},
        {"leaf-spine", "rate=100Gbps uplink_rate=400Gbps", "leaf0", "spine3", 400000000000},
        {"leaf-spine", "rate=100Gbps", "leaf0", "spine3", 100000000000},
        {"dumbbell", "rate=100Gbps bottleneck_rate=10Gbps", "sw0", "sw1", 10000000000},
        {"tree", "rate=100Gbps uplink_rate=40Gbps", "sw0", "sw1", 40000000000},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        build(&topo, cases[i].kind, cases[i].settings);
        const struct gw_topo_node *from = &topo.nodes[gw_topo_find(&topo, cases[i].from)];
        uint32_t to = gw_topo_find(&topo, cases[i].to), found = 0;
        for (uint32_t p = 0; p < from->port_count; p++) {
            const struct gw_topo_port *port = &topo.ports[from->first_port + p];
            if (port->peer != to)
                continue;
            assert_int_equal(topo.links[port->link].side[port->side].rate_bps, cases[i].rate_bps);
            found++;
        }
        assert_int_equal(found, 1);
        gw_topo_fini(&topo);
    }
}

static void kinds_build__refuses_impossible_parameters(void **state)
{
    static const struct {
        const char *kind, *settings, *why;
    } cases[] = {
        {"fat-tree", "k=7", "k must be even, not 7"},
        {"fat-tree", "k=0", "k must be from"},
        {"fat-tree", "k=66", "k must be from"},
        {"fat-tree", "tiers=4", "tiers must be from 2 to 3, not 4"},
        {"fat-tree", "k=8 oversubscription=3", "oversubscription must divide the 4"},
        {"fat-tree", "k=8 oversubscription=0", "oversubscription must divide"},
        {"fat-tree", "k=8 tor_oversubscription=8", "tor_oversubscription must divide"},
        {"fat-tree", "tiers=2 oversubscription=2", "oversubscription must be 1 with two tiers"},
        {"fat-tree", "k=64 hosts_per_tor=33", "hosts_per_tor must be from"},
        {"leaf-spine", "leaves=0", "leaves must be"},
        {"leaf-spine", "spines=0", "spines must be"},
        {"leaf-spine", "hosts_per_leaf=0", "hosts_per_leaf must be"},
        {"leaf-spine", "links_per_pair=0", "links_per_pair must be"},
        {"leaf-spine", "leaves=1 hosts_per_leaf=65536", "node leaf0 has 65540 links"},
        {"star", "hosts=0", "hosts must be"},
        {"star", "hosts=65535", "hosts must be"},
        {"dumbbell", "hosts=0", "hosts must be"},
        {"tree", "depth=0", "depth must be"},
        {"tree", "fanout=0", "fanout must be"},
        {"tree", "depth=16 fanout=16", "depth 16 with fanout 16 gives more than"},
        {"tree", "hosts_per_leaf=0", "hosts_per_leaf must be"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        char why[BUILD_WHY_MAX];
        assert_int_equal(build_try(&topo, cases[i].kind, cases[i].settings, why), GW_ERR_INVALID);
        if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("%s: said \"%s\"", cases[i].settings, why);
        gw_topo_fini(&topo);
    }
}

/* Every kind but the one that needs lists works with its defaults, and can be partitioned. */
static void kinds__have_usable_defaults(void **state)
{
    (void)state;
    uint32_t built = 0;
    for (uint32_t i = 0; i < gw_topo_registry.count; i++) {
        const struct gw_algo *algo = gw_topo_registry.algos[i];
        assert_true(algo->cfg_size <= GW_ALGO_CFG_MAX);
        if (strcmp(algo->name, "links") == 0)
            continue;
        struct gw_topo topo;
        build(&topo, algo->name, "");
        assert_true(topo.host_count >= 2);
        gw_topo_fini(&topo);
        built++;
    }
    assert_int_equal(built, gw_topo_registry.count - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_build__gives_the_right_counts),
        cmocka_unit_test(fat_tree_build__links_each_core_to_every_pod),
        cmocka_unit_test(fat_tree_build__names_and_groups_nodes),
        cmocka_unit_test(kinds_build__gives_special_links_their_rate),
        cmocka_unit_test(kinds_build__refuses_impossible_parameters),
        cmocka_unit_test(kinds__have_usable_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
