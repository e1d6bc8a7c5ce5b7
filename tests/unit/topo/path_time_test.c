/*
 * Path times against SMaRTT's base RTT, H * (2 * t_l + ser(mtu + hdr) + ser(64)) + 2 * (H - 1) *
 * t_s, with the figures of its two settings for 2, 4 and 6 links.
 */
#include "unit/topo/topo_fixture.h"

enum {
    FULL = 4096 + 64,
    ACK = 64,
};

static gw_time brtt(const struct gw_topo *topo, uint32_t src, uint32_t dst)
{
    struct gw_topo_path path = gw_topo_path(topo, src, dst, FULL, ACK);
    return path.one_way_full + path.one_way_ack;
}

static void topo_path__gives_the_base_rtt_of_the_papers(void **state)
{
    static const struct {
        const char *settings;
        gw_time expected[3]; /* same ToR, same pod, across the core */
    } cases[] = {
        {"latency=700ns switch_latency=0", {2884480, 5768960, 8653440}},
        {"latency=600ns switch_latency=400ns", {3284480, 7368960, 11453440}},
    };
    static const uint32_t peer[] = {1, 8, 1023};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        build(&topo, "fat-tree", cases[i].settings);
        for (uint32_t h = 0; h < GW_COUNT_OF(peer); h++) {
            assert_int_equal(gw_topo_path(&topo, 0, peer[h], FULL, ACK).hops, 2 * (h + 1));
            assert_int_equal(brtt(&topo, 0, peer[h]), cases[i].expected[h]);
        }
        assert_int_equal(gw_topo_brtt_max(&topo, FULL, ACK), cases[i].expected[2]);
        gw_topo_fini(&topo);
    }
}

static void topo_path__separates_the_two_directions(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=2 rate=8Gbps latency=1us switch_latency=100ns host_delay=7ns");
    topo.links[0].side[0].rate_bps = 4000000000; /* host0 sends at half the rate */
    struct gw_topo_path path = gw_topo_path(&topo, 0, 1, 1000, 100);
    /* 8 Gb/s is 1 ns a byte. */
    assert_int_equal(path.one_way_full, 2000000 + 1000000 + 2 * 1000000 + 100000 + 7000);
    assert_int_equal(path.one_way_ack, 100000 + 100000 + 2 * 1000000 + 100000 + 7000);
    assert_int_equal(path.rate_bps_min, 4000000000);
    assert_int_equal(gw_topo_path(&topo, 1, 0, 1000, 100).rate_bps_min, 8000000000);
    gw_topo_fini(&topo);
}

static void topo_path__is_nothing_from_a_host_to_itself(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=2");
    assert_int_equal(gw_topo_path(&topo, 1, 1, FULL, ACK).hops, 0);
    gw_topo_fini(&topo);
}

/* The short cut over hosts that are alike must not miss one that is not. */
static void topo_brtt_max__equals_the_search_over_all_pairs(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "leaf-spine", "leaves=3 hosts_per_leaf=5");
    for (uint32_t slow = 0; slow < topo.host_count; slow++) {
        topo.links[slow].latency += 1000 * (slow + 1);
        gw_time longest = 0;
        for (uint32_t src = 0; src < topo.host_count; src++)
            for (uint32_t dst = 0; dst < topo.host_count; dst++) {
                gw_time one = src == dst ? 0 : brtt(&topo, src, dst);
                longest = one > longest ? one : longest;
            }
        assert_int_equal(gw_topo_brtt_max(&topo, FULL, ACK), longest);
        if (slow % 2)
            topo.links[slow].latency -= 1000 * (slow + 1);
    }
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topo_path__gives_the_base_rtt_of_the_papers),
        cmocka_unit_test(topo_path__separates_the_two_directions),
        cmocka_unit_test(topo_path__is_nothing_from_a_host_to_itself),
        cmocka_unit_test(topo_brtt_max__equals_the_search_over_all_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
