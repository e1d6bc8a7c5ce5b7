/* What processes on the network know without talking: what a rank lets leave by its port, and by
 * which rules. */
#include "support.h"

#include "base/error.h"
#include "net/roles/overlay.h"

/* What is between packets on the wire is part of the rate that a process was told. */
static void overlay_port_bps__leaves_room_for_what_ethernet_adds(void **state)
{
    static const struct {
        struct gw_overlay_links links;
        uint64_t port_bps;
    } cases[] = {
        {{.hdr = 72, .mtu = 1408, .rate_bps = 1498000000}, 1480000000},
        {{.hdr = 82, .mtu = 100, .rate_bps = 200000000}, 182000000},
        {{.hdr = 72, .mtu = 1408, .rate_bps = GW_OVERLAY_RATE_MAX_BPS}, 395193591455},
        {{.hdr = 72, .mtu = 1408, .rate_bps = 0}, 0},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        assert_true(gw_overlay_port_bps(&cases[i].links) == cases[i].port_bps);
}

/* Windows of all workers fit the caches together, unless one alone would be too small, and none
 * is more than a few trains. */
static void overlay_window__shares_the_caches_among_workers(void **state)
{
    static const struct {
        uint32_t world, payload;
        uint16_t window;
    } cases[] = {
        {1, 1408, 512},   {2, 1408, 512}, {4, 1408, 512},   {5, 1408, 512},    {6, 1408, 256},
        {8, 1408, 256},   {9, 1408, 256}, {64, 1408, 256},  {1024, 1408, 256}, {1, 8192, 64},
        {2, 8192, 64},    {4, 8192, 64},  {8, 8192, 64},    {16, 8192, 32},    {1024, 8192, 32},
        {1024, 248, 512}, {2, 64000, 8},  {1024, 64000, 8},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        assert_int_equal(gw_overlay_window(cases[i].world, cases[i].payload), cases[i].window);
}

/* Over one path what arrives tells what was lost; over several it may have been overtaken. */
static void overlay_transport__infers_losses_where_packets_keep_their_order(void **state)
{
    static const struct {
        bool by_switch;
        uint32_t paths;
        const char *loss;
        bool believes;
    } cases[] = {
        {false, 1, "sack", false},
        {true, 1, "sack", true},
        {false, 2, "timeout", false},
        {true, 256, "trim", true},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_transport t;
        char error[GW_NET_ERROR_MAX];
        uint64_t detector[GW_LOSS_STATE_MAX / 8];
        const struct gw_path path = {.brtt = GW_MS, .brtt_max = GW_MS, .hops = 2};
        assert_int_equal(
            gw_overlay_transport("smartt", "reps", cases[i].by_switch, cases[i].paths, &t, error),
            0);
        assert_string_equal(t.loss->algo.name, cases[i].loss);
        t.loss->init(detector, &t.loss_cfg, &path);
        assert_int_equal(t.loss->on_nack(detector, &t.loss_cfg), cases[i].believes);
    }
}

static void overlay_urgency__takes_rules_and_their_presets(void **state)
{
    static const struct gw_urgency_sample young = {.bytes = 10000000, .sent = 200000, .class = 2};
    struct gw_transport t = {0}, blasts = {0};
    char error[GW_NET_ERROR_MAX];
    (void)state;
    assert_int_equal(gw_overlay_transport("smartt", "reps", false, 1, &t, error), 0);
    assert_int_equal(gw_overlay_parts_transport("reps", &blasts, error), 0);
    assert_int_equal(gw_overlay_urgency("pias", &t, error), 0);
    assert_int_equal(t.urgency->pick(&t.urgency_cfg, &young).class, GW_CLASS_DATA_MAX);
    assert_int_equal(gw_overlay_urgency("pias:kernel", &t, error), 0);
    assert_int_equal(t.urgency->pick(&t.urgency_cfg, &young).class, GW_CLASS_DATA_MAX - 1);
    assert_int_equal(gw_overlay_urgency("message", &t, error), 0);
    assert_null(t.urgency);
    assert_int_equal(gw_overlay_urgency("pfabric", &t, error), 0);
    assert_non_null(t.urgency);
    assert_int_equal(gw_overlay_urgency("pfabric", &blasts, error), 0);
    assert_null(blasts.urgency);
    assert_int_equal(gw_overlay_urgency("pias:none", &t, error), GW_ERR_UNKNOWN);
    assert_string_equal(error, "pias has no preset none");
    assert_int_equal(gw_overlay_urgency("haste", &t, error), GW_ERR_UNKNOWN);
    assert_string_equal(error, "no rule of urgency is called haste");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_port_bps__leaves_room_for_what_ethernet_adds),
        cmocka_unit_test(overlay_window__shares_the_caches_among_workers),
        cmocka_unit_test(overlay_transport__infers_losses_where_packets_keep_their_order),
        cmocka_unit_test(overlay_urgency__takes_rules_and_their_presets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
