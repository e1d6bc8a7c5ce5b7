/* Routes: complete, minimal, by next-hop sets that hold exactly the nearer peers, around failures.
 */
#include "unit/topo/topo_fixture.h"

#include "base/prng.h"

#define FAR UINT32_MAX

/* Links from every node to `dst` over links that are up, hosts not forwarding: the plain
 * definition. */
static void distances_to(const struct gw_topo *topo, uint32_t dst, uint32_t *distance)
{
    for (uint32_t n = 0; n < topo->node_count; n++)
        distance[n] = FAR;
    distance[dst] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
            const struct gw_link *link = &topo->links[i / 2];
            uint32_t from = link->side[i % 2].node, to = link->side[!(i % 2)].node;
            bool forwards = to == dst || to >= topo->host_count;
            if (link->down || !forwards || distance[to] == FAR ||
                distance[to] + 1 >= distance[from])
                continue;
            distance[from] = distance[to] + 1;
            changed = true;
        }
    }
}

/* The routes of all switches towards all hosts must be those that the distances ask for. */
static void check_routes(const struct gw_topo *topo)
{
    uint32_t *distance = calloc(topo->node_count, sizeof(*distance));
    for (uint32_t dst = 0; dst < topo->host_count; dst++) {
        distances_to(topo, dst, distance);
        for (uint32_t n = topo->host_count; n < topo->node_count; n++) {
            const struct gw_topo_routes *routes = &topo->routes[n - topo->host_count];
            if (distance[n] == FAR) {
                assert_int_equal(routes->route[dst], GW_PORT_NONE);
                continue;
            }
            assert_true(routes->route[dst] < routes->set_count);
            const struct gw_topo_set *set = &routes->sets[routes->route[dst]];
            uint32_t expected = 0;
            for (uint32_t p = 0; p < topo->nodes[n].port_count; p++) {
                const struct gw_topo_port *port = &topo->ports[topo->nodes[n].first_port + p];
                bool nearer = distance[port->peer] + 1 == distance[n];
                if (!nearer || topo->links[port->link].down)
                    continue;
                if (port->peer < topo->host_count && port->peer != dst)
                    continue;
                assert_true(expected < set->count);
                assert_int_equal(routes->members[set->first + expected], p);
                expected++;
            }
            assert_int_equal(set->count, expected);
        }
    }
    free(distance);
}

static void topo_route__is_minimal_in_every_kind(void **state)
{
    static const char *const cases[][2] = {
        {"fat-tree", "k=4"},
        {"fat-tree", "k=8 oversubscription=4"},
        {"fat-tree", "k=4 tiers=2"},
        {"fat-tree", "k=8 tor_oversubscription=2"},
        {"leaf-spine", "links_per_pair=2"},
        {"star", "hosts=9"},
        {"dumbbell", "hosts=3"},
        {"tree", "depth=4 fanout=3 hosts_per_leaf=1"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        build(&topo, cases[i][0], cases[i][1]);
        check_routes(&topo);
        gw_topo_fini(&topo);
    }
}

static void topo_route__stores_equal_sets_once(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=4");
    uint32_t tor = gw_topo_find(&topo, "tor0") - topo.host_count;
    assert_int_equal(topo.routes[tor].set_count, 2 + 1); /* its hosts, and upwards */
    assert_int_equal(topo.routes[tor].member_count, 2 + 2);
    uint32_t core = gw_topo_find(&topo, "core0") - topo.host_count;
    assert_int_equal(topo.routes[core].set_count, 4); /* one per pod */
    gw_topo_fini(&topo);
}

static void topo_route__avoids_links_that_are_down(void **state)
{
    (void)state;
    const uint64_t seed = 7;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = {.state = seed};
    struct gw_topo topo;
    build(&topo, "fat-tree", "k=4");
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < topo.link_count; i++)
            topo.links[i].down = gw_prng_below(&prng, 4) == 0;
        assert_int_equal(gw_topo_route(&topo), GW_OK);
        check_routes(&topo);
    }
    gw_topo_fini(&topo);
}

static void topo_route__loses_a_host_whose_link_is_down(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=3");
    topo.links[1].down = true;
    assert_int_equal(gw_topo_route(&topo), GW_OK);
    assert_int_equal(topo.routes[0].route[1], GW_PORT_NONE);
    assert_int_equal(gw_topo_path(&topo, 0, 1, 100, 10).hops, 0);
    assert_int_equal(gw_topo_path(&topo, 1, 0, 100, 10).hops, 0);
    assert_int_equal(gw_topo_path(&topo, 0, 2, 100, 10).hops, 2);
    gw_topo_fini(&topo);
}

/* Two switches, a host on both of them, and one host on each. */
static void topo_route__reaches_a_host_with_two_switches(void **state)
{
    (void)state;
    struct gw_topo topo;
    char why[BUILD_WHY_MAX];
    gw_topo_init(&topo);
    for (uint32_t h = 0; h < 3; h++)
        gw_topo_add_node(&topo, false, GW_GROUP_ANY, 0, "host%u", h);
    uint32_t a = gw_topo_add_node(&topo, true, GW_GROUP_ANY, 0, "a");
    uint32_t b = gw_topo_add_node(&topo, true, GW_GROUP_ANY, 0, "b");
    gw_topo_add_link(&topo, 0, a, 1000000000, 1000);
    gw_topo_add_link(&topo, 0, b, 1000000000, 1000);
    gw_topo_add_link(&topo, 1, a, 1000000000, 1000);
    gw_topo_add_link(&topo, 2, b, 1000000000, 1000);
    assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_OK);
    assert_int_equal(gw_topo_route(&topo), GW_OK);
    check_routes(&topo);
    assert_int_equal(gw_topo_path(&topo, 1, 0, 100, 10).hops, 2);
    assert_int_equal(gw_topo_path(&topo, 0, 2, 100, 10).hops, 2);
    assert_int_equal(gw_topo_path(&topo, 1, 2, 100, 10).hops, 0); /* a host does not forward */
    topo.links[0].down = true;
    assert_int_equal(gw_topo_route(&topo), GW_OK);
    check_routes(&topo);
    assert_int_equal(gw_topo_path(&topo, 1, 0, 100, 10).hops, 0);
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topo_route__is_minimal_in_every_kind),
        cmocka_unit_test(topo_route__stores_equal_sets_once),
        cmocka_unit_test(topo_route__avoids_links_that_are_down),
        cmocka_unit_test(topo_route__loses_a_host_whose_link_is_down),
        cmocka_unit_test(topo_route__reaches_a_host_with_two_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
