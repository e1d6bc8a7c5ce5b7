/* Swift by direct calls: the target delay, both directions of the window, pacing, timeouts. */
#include "cc_fixture.h"

#include <math.h>
#include <stdio.h>

/* Defaults: no flow scaling from 100 packets on, so the target is the path's. */
#define BASE_TARGET (BRTT + 6 * (gw_time)(BRTT * 0.1527))

/* A flow whose window is `packets`: one timeout takes it to its smallest window. */
static struct flow flow_at(double packets, const char *preset)
{
    struct flow f = flow_make("swift");
    char text[32];
    f.path.bdp = 1000 * MTU;
    flow_preset(&f, preset);
    snprintf(text, sizeof(text), "%.6f", packets);
    flow_set(&f, "cwnd_min", text);
    flow_set(&f, "reset_after", "1");
    flow_start(&f);
    flow_lose(&f, false, 0);
    assert_true(is_close((double)f.window.cwnd, packets * MTU, 2));
    return f;
}

static bool increases_at(const struct flow *flow, gw_time rtt)
{
    struct flow f = *flow;
    return flow_ack(&f, rtt, false) > 0;
}

/* The delay from which the window grows no more. */
static gw_time target_of(const struct flow *f)
{
    gw_time low = 0, high = 100 * BRTT;
    while (high - low > 1) {
        gw_time middle = low + (high - low) / 2;
        *(increases_at(f, middle) ? &low : &high) = middle;
    }
    return high;
}

/* P1: strictly falling from the smallest to the largest window that it scales with, and as printed:
 * fs_alpha / sqrt(cwnd) + fs_beta, within [0, fs_range]. */
static void swift_target__falls_with_the_window(void **state)
{
    const double range = 5.0 * BRTT, alpha = range / (1 / sqrt(0.1) - 1 / sqrt(100));
    (void)state;
    gw_time before = UINT64_MAX;
    for (double packets = 0.1; packets <= 100; packets *= 1.1) {
        struct flow f = flow_at(packets, "htsim");
        gw_time target = target_of(&f);
        double expected = BASE_TARGET + alpha / sqrt(packets) - alpha / sqrt(100);
        assert_true(target < before);
        assert_true(is_close((double)target, expected, 0.001 * expected));
        before = target;
    }
    struct flow small = flow_at(0.02, "htsim"), large = flow_at(150, "htsim");
    assert_true(is_close((double)target_of(&small), BASE_TARGET + range, 0.0001 * range));
    assert_true(is_close((double)target_of(&large), BASE_TARGET, 0.0001 * BRTT));
}

/* The evaluation of SMaRTT-REPS: one link's allowance, flow scaling up to the bdp. */
static void swift_target__is_tight_as_smartt_is_compared_with_it(void **state)
{
    (void)state;
    static const double packets[] = {1, 10, 100, 990};
    const double alpha = 5.0 * BRTT / (1 / sqrt(0.1) - 1 / sqrt(1000));
    for (size_t i = 0; i < GW_COUNT_OF(packets); i++) {
        struct flow f = flow_at(packets[i], "smartt");
        double expected = BRTT * 1.02545 + alpha * (1 / sqrt(packets[i]) - 1 / sqrt(1000));
        assert_true(is_close((double)target_of(&f), expected, 0.001 * expected));
    }
}

static void swift_on_ack__adds_packets_per_window(void **state)
{
    (void)state;
    for (int ai = 1; ai <= 2; ai++) {
        struct flow f = flow_at(40, ai == 2 ? "smartt" : "htsim");
        uint64_t before = f.window.cwnd;
        for (int i = 0; i < 40; i++)
            flow_ack(&f, BRTT, true);
        assert_in_range(f.window.cwnd - before, ai * MTU * 95 / 100, ai * MTU);
    }
    /* Below a packet, each acknowledged packet adds one. */
    struct flow f = flow_at(0.5, "htsim");
    flow_ack(&f, BRTT, false);
    assert_in_range(f.window.cwnd, MTU + MTU / 2 - 1, MTU + MTU / 2);
}

/* cwnd * max(1 - beta * (delay - target) / delay, 1 - max_mdf). */
static void swift_on_ack__cuts_by_the_excess_delay(void **state)
{
    static const struct {
        double times, kept;
    } cases[] = {{1.25, 1 - 0.8 * 0.2}, {2, 1 - 0.8 * 0.5}, {4, 0.5}, {100, 0.5}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct flow f = flow_make("swift");
        f.path.bdp = 1000 * MTU;
        flow_start(&f);
        f.now += 100 * BRTT; /* the sample itself raises the RTT that lies between decreases */
        double before = (double)f.window.cwnd;
        flow_ack(&f, (gw_time)(cases[i].times * BASE_TARGET), false);
        assert_true(is_close((double)f.window.cwnd, cases[i].kept * before, 0.001 * before));
    }
}

/* P2: whatever the feedback, a decrease comes no sooner than a smoothed RTT after the last. */
static void swift_window__falls_once_per_rtt(void **state)
{
    (void)state;
    struct flow f = flow_make("swift");
    f.path.bdp = 1000 * MTU;
    flow_start(&f);
    flow_set(&f, "nack_cut", "0"); /* a NACK counts as a fast retransmission */
    struct gw_prng prng = gw_prng_derive(11, 0);
    gw_time fell_at = 0;
    double smoothed = BRTT;
    int falls = 0;
    for (int i = 0; i < 20000; i++) {
        f.now += gw_prng_below(&prng, BRTT / 4);
        int64_t change;
        if (gw_prng_below(&prng, 4) == 0) {
            change = flow_lose(&f, true, 0);
        } else {
            gw_time rtt = gw_prng_below(&prng, 8) == 0 ? 4 * BRTT : BRTT;
            smoothed = smoothed * 7 / 8 + (double)rtt / 8;
            change = flow_ack(&f, rtt, false);
        }
        if (change >= 0)
            continue;
        if (falls++)
            assert_true((double)(f.now - fell_at) >= smoothed - GW_NS);
        fell_at = f.now;
    }
    assert_true(falls > 500);
}

/* P3: a window below a packet is one packet per rtt * mtu / cwnd; from a packet on, no pace. */
static void swift_window__paces_below_a_packet(void **state)
{
    static const double packets[] = {0.02, 0.1, 0.5, 0.9};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(packets); i++) {
        struct flow f = flow_at(packets[i], "htsim");
        double gap = (double)gw_serialisation(f.window.pace, MTU + HDR);
        double expected = (double)BRTT * MTU / (double)f.window.cwnd;
        assert_true(is_close(gap, expected, 0.0001 * expected));
    }
    struct flow f = flow_at(1.5, "htsim");
    assert_int_equal(f.window.pace, 0);
    /* The pace follows the smoothed RTT. */
    f = flow_at(0.1, "htsim");
    for (int i = 0; i < 200; i++)
        flow_ack(&f, 50 * BRTT, true); /* far beyond the target: cannot grow, may not fall yet */
    double gap = (double)gw_serialisation(f.window.pace, MTU + HDR);
    double expected = 50.0 * BRTT * MTU / (double)f.window.cwnd;
    assert_true(is_close(gap, expected, 0.001 * expected));
}

/* Timeouts; NACKs likewise if they are fast retransmissions. */
static void swift_on_loss__halves_once_per_rtt(void **state)
{
    (void)state;
    for (int trimmed = 0; trimmed <= 1; trimmed++) {
        struct flow f = flow_make("swift");
        flow_set(&f, "nack_cut", "0");
        flow_start(&f);
        assert_int_equal(f.window.cwnd, BDP);
        assert_int_equal(flow_lose(&f, trimmed, 0), -BDP / 2);
        assert_int_equal(flow_lose(&f, trimmed, 0), 0);
        f.now += BRTT - 1;
        assert_int_equal(flow_lose(&f, trimmed, 0), 0);
        f.now += 1;
        assert_int_equal(flow_lose(&f, trimmed, 0), -BDP / 4);
    }
}

/* A NACK costs a packet, however many there are, but not more than half of the window; delay may
 * still cut it. */
static void swift_on_loss__takes_a_packet_per_nack(void **state)
{
    (void)state;
    struct flow f = flow_make("swift");
    flow_start(&f);
    for (int i = 0; i < 30; i++)
        assert_int_equal(flow_lose(&f, true, 0), -MTU);
    uint64_t before = f.window.cwnd;
    f.now += 100 * BRTT; /* the sample itself raises the RTT that lies between decreases */
    flow_ack(&f, 100 * BRTT, false);
    assert_in_range(f.window.cwnd, before / 2 - 1, before / 2 + 1);
    while (f.window.cwnd >= 2 * MTU)
        flow_lose(&f, true, 0);
    before = f.window.cwnd;
    flow_lose(&f, true, 0);
    assert_in_range(f.window.cwnd, before / 2 - 1, before / 2 + 1);
}

/* As its competitors ran it, Swift has QuickAdapt first, ended by NACKs, and a floor of a packet.
 */
static void swift_quick_adapt__comes_before_nacks(void **state)
{
    (void)state;
    for (int drafts = 0; drafts <= 1; drafts++) {
        struct flow f = flow_make("swift");
        flow_preset(&f, drafts ? "drafts" : "smartt");
        flow_start(&f);
        flow_lose(&f, true, 0);
        f.now += BRTT * 151 / 100 + GW_US;
        for (int i = 0; i < 10; i++)
            flow_ack(&f, BRTT, true);
        int64_t change = flow_lose(&f, true, 4 * MTU);
        assert_int_equal(change == -MTU, !drafts);
        /* Ten packets and a header came within 19.12 us; the interval is 1.51 * 12 us. */
        if (drafts)
            assert_true(is_close((double)f.window.cwnd, 0.8 * (10 * MTU + HDR) * 18.12 / 19.12, 9));
        for (int i = 0; i < 4; i++)
            assert_int_equal(flow_lose(&f, true, 4 * MTU), drafts ? 0 : -MTU);
        assert_true(flow_ack(&f, BRTT, false) > 0); /* the fifth packet of the phase */
        assert_int_equal(flow_lose(&f, true, 4 * MTU), -MTU);
        for (int i = 0; i < 100; i++)
            flow_lose(&f, true, 0);
        assert_int_equal(f.window.cwnd, MTU);
    }
}

/* Five timeouts in a row reset the window; those of one RTT are one, and an ACK ends the row. */
/* With the drafts' rules delay may cut the window right after QuickAdapt has set it. */
static void swift_quick_adapt__is_a_cut_unless_told_otherwise(void **state)
{
    (void)state;
    for (int is_cut = 0; is_cut <= 1; is_cut++) {
        struct flow f = flow_make("swift");
        flow_preset(&f, "drafts");
        flow_set(&f, "qa_is_cut", is_cut ? "yes" : "no");
        flow_start(&f);
        flow_lose(&f, true, 0);
        flow_ack(&f, 9 * BRTT, true); /* the decrease of this RTT */
        f.now += 2 * BRTT;
        for (int i = 0; i < 10; i++)
            flow_ack(&f, BRTT, false);
        flow_lose(&f, true, 4 * MTU);
        uint64_t cwnd = f.window.cwnd;
        flow_ack(&f, 9 * BRTT, true);
        assert_true(is_cut ? f.window.cwnd == cwnd : f.window.cwnd <= cwnd / 2 + 1);
    }
}

static void swift_on_loss__resets_after_five_timeouts(void **state)
{
    (void)state;
    for (int interrupted = 0; interrupted <= 1; interrupted++) {
        struct flow f = flow_make("swift");
        f.path.bdp = 1000 * MTU;
        flow_start(&f);
        for (int i = 1; i <= 5; i++) {
            for (int k = 0; k < 7; k++)
                flow_lose(&f, false, 0);
            assert_int_equal(f.window.cwnd <= MTU / 100, i == 5 && !interrupted);
            if (i == 3 && interrupted)
                flow_ack(&f, BRTT, false);
            f.now += BRTT;
        }
    }
}

static void swift_window__stays_within_its_bounds(void **state)
{
    (void)state;
    struct flow f = flow_make("swift");
    flow_start(&f);
    for (int i = 0; i < 100; i++)
        flow_ack(&f, BRTT, false);
    assert_int_equal(f.window.cwnd, BDP);
    for (int i = 0; i < 100; i++) {
        flow_lose(&f, true, 0);
        f.now += BRTT;
    }
    assert_in_range(f.window.cwnd, MTU / 100 - 1, MTU / 100);
}

static void swift_window__falls_across_the_wrap_of_time(void **state)
{
    (void)state;
    struct flow f = flow_make("swift");
    f.now = (gw_time)0 - BRTT / 2;
    flow_start(&f);
    assert_int_equal(flow_lose(&f, false, 0), -BDP / 2);
    f.now += BRTT - 1;
    assert_int_equal(flow_lose(&f, false, 0), 0);
    f.now += 1;
    assert_int_equal(flow_lose(&f, false, 0), -BDP / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swift_target__falls_with_the_window),
        cmocka_unit_test(swift_target__is_tight_as_smartt_is_compared_with_it),
        cmocka_unit_test(swift_on_ack__adds_packets_per_window),
        cmocka_unit_test(swift_on_ack__cuts_by_the_excess_delay),
        cmocka_unit_test(swift_window__falls_once_per_rtt),
        cmocka_unit_test(swift_window__paces_below_a_packet),
        cmocka_unit_test(swift_on_loss__halves_once_per_rtt),
        cmocka_unit_test(swift_on_loss__takes_a_packet_per_nack),
        cmocka_unit_test(swift_quick_adapt__comes_before_nacks),
        cmocka_unit_test(swift_quick_adapt__is_a_cut_unless_told_otherwise),
        cmocka_unit_test(swift_on_loss__resets_after_five_timeouts),
        cmocka_unit_test(swift_window__stays_within_its_bounds),
        cmocka_unit_test(swift_window__falls_across_the_wrap_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
