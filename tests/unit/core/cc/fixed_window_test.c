/* The constant window: its size, its pace, and that nothing moves it. */
#include "support.h"

#include "core/cc/cc.h"

enum {
    MTU = 4096,
    HDR = 64,
    BDP = 150000,
};

static const struct gw_path PATH = {
    .brtt = 12 * GW_US,
    .brtt_max = 12 * GW_US,
    .rate_bps = UINT64_C(100000000000),
    .bdp = BDP,
    .mtu = MTU,
    .hdr = HDR,
    .hops = 6,
};

static struct gw_cc_window window_with(const char *name, const char *text)
{
    const struct gw_cc_ops *fixed = (const void *)gw_registry_find(&gw_cc_registry, "fixed");
    union gw_algo_cfg cfg;
    uint64_t state[GW_CC_STATE_MAX / 8] = {0};
    struct gw_cc_window window;
    gw_algo_defaults(&fixed->algo, &cfg);
    if (name)
        assert_int_equal(gw_algo_set(&fixed->algo, &cfg, name, text), 0);
    fixed->init(state, &cfg, &PATH, &window, 0);
    struct gw_cc_window before = window;
    struct gw_cc_ack ack = {.bytes = MTU, .rtt = 40 * GW_US, .ce = true};
    struct gw_cc_loss loss = {.bytes = MTU};
    fixed->on_ack(state, &cfg, &PATH, &ack, &window, 10 * GW_US);
    fixed->on_loss(state, &cfg, &PATH, &loss, &window, 20 * GW_US);
    assert_int_equal(window.cwnd, before.cwnd);
    assert_int_equal(window.pace, before.pace);
    return window;
}

static void fixed_window__is_the_bdp_or_bytes(void **state)
{
    (void)state;
    assert_int_equal(window_with(NULL, NULL).cwnd, BDP);
    assert_int_equal(window_with("bdp", "0.5").cwnd, BDP / 2);
    assert_int_equal(window_with("bdp", "0").cwnd, 1);
    assert_int_equal(window_with("window", "64KiB").cwnd, 65536);
    assert_int_equal(window_with("window", "64KiB").pace, 0);
}

static void fixed_window__paces_at_the_rate(void **state)
{
    (void)state;
    struct gw_cc_window window = window_with("rate", "50Gbps");
    assert_int_equal(window.cwnd, BDP);
    assert_int_equal(window.pace, gw_byte_time_from_bps(UINT64_C(50000000000)));
}

/* A quarter of a packet per base RTT is one packet in four base RTTs. */
static void fixed_window__keeps_less_than_a_packet_by_pacing(void **state)
{
    (void)state;
    struct gw_cc_window window = window_with("window", "1024");
    gw_time gap = gw_serialisation(window.pace, MTU + HDR);
    assert_in_range(gap, 4 * PATH.brtt - GW_NS, 4 * PATH.brtt);
    assert_int_equal(window_with("window", "4096").pace, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_window__is_the_bdp_or_bytes),
        cmocka_unit_test(fixed_window__paces_at_the_rate),
        cmocka_unit_test(fixed_window__keeps_less_than_a_packet_by_pacing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
