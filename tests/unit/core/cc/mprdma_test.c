/* MP-RDMA's window by direct calls: half a packet down, a packet per window up. */
#include "cc_fixture.h"

/* P2: a marked ACK takes half of its packet, however large the window is. */
static void mprdma_on_ack__takes_half_a_packet_for_a_mark(void **state)
{
    static const char *const initials[] = {"0.1", "0.5", "1"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(initials); i++) {
        struct flow f = flow_make("mprdma");
        flow_set(&f, "cwnd_initial", initials[i]);
        flow_start(&f);
        for (int k = 0; k < 4; k++)
            assert_int_equal(flow_ack(&f, 9 * BRTT, true), -MTU / 2);
    }
}

static void mprdma_on_ack__adds_a_packet_per_window(void **state)
{
    (void)state;
    struct flow f = flow_make("mprdma");
    flow_set(&f, "cwnd_initial", "0.5");
    flow_start(&f);
    uint64_t before = f.window.cwnd;
    assert_int_equal(flow_ack(&f, BRTT, false), MTU * MTU / before);
    /* 75000 bytes are 18 packets; the window grows while they are acknowledged. */
    for (int i = 1; i < 18; i++)
        flow_ack(&f, BRTT, false);
    assert_in_range(f.window.cwnd - before, MTU * 93 / 100, MTU);
}

/* An ACK that covers several packets counts for each. */
static void mprdma_on_ack__counts_coalesced_packets(void **state)
{
    (void)state;
    struct flow f = flow_make("mprdma");
    flow_set(&f, "cwnd_initial", "0.5");
    flow_start(&f);
    struct gw_cc_ack four = {.bytes = 4 * MTU, .rtt = BRTT, .ce = true};
    assert_int_equal(flow_ack_with(&f, &four), -2 * MTU);
    four.ce = false;
    int64_t expected = (int64_t)(4 * MTU * MTU / f.window.cwnd);
    assert_int_equal(flow_ack_with(&f, &four), expected);
}

static void mprdma_on_loss__takes_the_packet(void **state)
{
    (void)state;
    struct flow f = flow_make("mprdma");
    flow_start(&f);
    assert_int_equal(f.window.cwnd, BDP);
    assert_int_equal(flow_lose(&f, true, 0), -MTU);
    assert_int_equal(flow_lose(&f, false, 0), -MTU);
}

static void mprdma_window__stays_within_its_bounds(void **state)
{
    (void)state;
    struct flow f = flow_make("mprdma");
    flow_start(&f);
    flow_ack(&f, BRTT, false);
    assert_int_equal(f.window.cwnd, BDP);
    for (int i = 0; i < 100; i++)
        flow_ack(&f, BRTT, true);
    assert_int_equal(f.window.cwnd, MTU);
    flow_lose(&f, true, 0);
    assert_int_equal(f.window.cwnd, MTU);
    assert_int_equal(f.window.pace, 0);
}

/* P1: with a share p of marks the window settles around 2 (1 - p) / p packets. */
static void mprdma_window__settles_where_marks_balance(void **state)
{
    static const double shares[] = {0.02, 0.05, 0.1, 0.2};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(shares); i++) {
        struct flow f = flow_make("mprdma");
        f.path.bdp = 1 << 24;
        flow_set(&f, "cwnd_initial", "0.01");
        flow_start(&f);
        struct gw_prng prng = gw_prng_derive(3, i);
        double sum = 0, expected = 2 * (1 - shares[i]) / shares[i];
        const int settle = 20000, count = 400000;
        for (int k = 0; k < settle + count; k++) {
            flow_ack(&f, BRTT, gw_prng_below(&prng, 1000000) < shares[i] * 1000000);
            sum += k < settle ? 0 : (double)f.window.cwnd / MTU / count;
        }
        print_message("p = %.2f: %.2f packets, %.2f expected\n", shares[i], sum, expected);
        assert_true(is_close(sum, expected, 0.05 * expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mprdma_on_ack__takes_half_a_packet_for_a_mark),
        cmocka_unit_test(mprdma_on_ack__adds_a_packet_per_window),
        cmocka_unit_test(mprdma_on_ack__counts_coalesced_packets),
        cmocka_unit_test(mprdma_on_loss__takes_the_packet),
        cmocka_unit_test(mprdma_window__stays_within_its_bounds),
        cmocka_unit_test(mprdma_window__settles_where_marks_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
