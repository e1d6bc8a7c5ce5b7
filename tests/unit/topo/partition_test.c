/* Partitions: groups whole, work balanced, and the same every time. */
#include "unit/topo/topo_fixture.h"

enum {
    PARTS_MAX = 8,
    NODES_MAX = 2000,
};

static void topo_partition__keeps_groups_whole_and_work_even(void **state)
{
    static const char *const cases[][2] = {
        {"fat-tree", "k=8"},
        {"fat-tree", "k=16 oversubscription=8"},
        {"fat-tree", "tiers=2 k=16"},
        {"leaf-spine", "leaves=8 spines=8"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        build(&topo, cases[i][0], cases[i][1]);
        for (uint32_t parts = 1; parts <= PARTS_MAX; parts *= 2) {
            uint16_t part[NODES_MAX], part_of_group[NODES_MAX];
            uint32_t hosts[PARTS_MAX] = {0}, ports[PARTS_MAX] = {0};
            assert_true(topo.node_count <= NODES_MAX);
            memset(part_of_group, 0xff, sizeof(part_of_group));
            gw_topo_partition(&topo, parts, part);
            for (uint32_t n = 0; n < topo.node_count; n++) {
                assert_true(part[n] < parts);
                uint32_t group = topo.nodes[n].group;
                if (group != GW_GROUP_ANY && part_of_group[group] == UINT16_MAX)
                    part_of_group[group] = part[n];
                if (group != GW_GROUP_ANY)
                    assert_int_equal(part[n], part_of_group[group]);
                hosts[part[n]] += n < topo.host_count;
                ports[part[n]] += topo.nodes[n].port_count;
            }
            for (uint32_t p = 0; p < parts; p++) {
                assert_int_equal(hosts[p], topo.host_count / parts);
                assert_in_range(ports[p], 2 * topo.link_count / parts * 9 / 10,
                                2 * topo.link_count / parts * 11 / 10);
            }
        }
        gw_topo_fini(&topo);
    }
}

static void topo_partition__leaves_parts_empty_when_groups_are_few(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "dumbbell", "hosts=2");
    uint16_t part[6];
    gw_topo_partition(&topo, 4, part);
    static const uint16_t expected[] = {0, 0, 1, 1, 0, 1};
    for (uint32_t n = 0; n < GW_COUNT_OF(expected); n++)
        assert_int_equal(part[n], expected[n]);
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topo_partition__keeps_groups_whole_and_work_even),
        cmocka_unit_test(topo_partition__leaves_parts_empty_when_groups_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
