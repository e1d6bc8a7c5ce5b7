/*
 * BBR by direct calls: a link that delivers at a known rate is played by evenly spaced ACKs, and
 * the mode shows in the ratio of the pace to that rate.
 */
#include "cc_fixture.h"

#define LINE_GBPS 100.0

/* The pace in Gb/s of payload. */
static double pace_gbps(const struct flow *f)
{
    return 8000.0 * (1 << GW_BYTE_TIME_SHIFT) / (double)f->window.pace * MTU / (MTU + HDR);
}

/* ACKs of packets that arrive at `gbps` of payload, for `duration`. */
static void deliver(struct flow *f, double gbps, gw_time duration, uint32_t in_flight)
{
    gw_time gap = (gw_time)(MTU * 8 / gbps * 1000), end = f->now + duration;
    assert_true(gap < duration);
    while (gw_time_before(f->now + gap, end)) {
        f->now += gap;
        flow_ack_with(f, &(struct gw_cc_ack){.bytes = MTU, .in_flight = in_flight, .rtt = BRTT});
    }
}

static struct flow flow_started(void)
{
    struct flow f = flow_make("bbr");
    flow_start(&f);
    return f;
}

static struct flow flow_probing(double gbps)
{
    struct flow f = flow_started();
    deliver(&f, gbps, 8 * BRTT, 0);
    return f;
}

static void bbr_init__paces_at_an_eighth_of_the_line(void **state)
{
    (void)state;
    struct flow f = flow_started();
    assert_true(is_close(pace_gbps(&f), LINE_GBPS / 8 * MTU / (MTU + HDR), 0.5));
    assert_int_equal(f.window.cwnd, BDP);
}

/* Evenly spaced ACKs are measured exactly, at any rate of the link. */
static void bbr_rate__is_what_was_delivered(void **state)
{
    static const double rates[] = {5, 20, 50, 90, 400};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(rates); i++) {
        struct flow f = flow_started();
        deliver(&f, rates[i], 3 * BRTT, 0);
        assert_true(is_close(pace_gbps(&f), 2.89 * rates[i], 0.01 * 2.89 * rates[i]));
    }
}

/*
 * A sample spans an RTT to 4/3 of one, so bursts within an RTT do not count as rate: a quarter RTT
 * of silence and the rest at 40 Gb/s are 30 Gb/s, at most 32.5 where a sample is 4/3 RTT.
 */
static void bbr_rate__spans_an_rtt(void **state)
{
    (void)state;
    struct flow f = flow_started();
    for (int i = 0; i < 3; i++) {
        f.now += BRTT / 4;
        deliver(&f, 40, BRTT * 3 / 4, BDP);
    }
    assert_true(pace_gbps(&f) < 2.89 * 34);
    assert_true(pace_gbps(&f) > 2.89 * 28);
}

/* P3: STARTUP ends in the third round in a row that grew by less than a quarter. */
static void bbr_startup__ends_after_three_rounds_without_growth(void **state)
{
    (void)state;
    struct flow f = flow_started();
    /* The rate doubles per round; then it stays. */
    double rate = 4;
    for (int i = 0; i < 4; i++, rate *= 2) {
        deliver(&f, rate, 2 * BRTT, BDP);
        assert_true(pace_gbps(&f) > 2.5 * rate);
    }
    rate /= 2;
    gw_time settled = f.now;
    while (pace_gbps(&f) > 2 * rate)
        deliver(&f, rate, BRTT / 8, BDP);
    /* The round in which the rate was last seen to grow ends within one; then three follow. */
    assert_in_range(f.now - settled, 2 * BRTT, 4 * BRTT + BRTT / 8);
    assert_true(is_close(pace_gbps(&f), 0.35 * rate, 0.02 * rate));
}

/* Growth by a quarter per round goes on without end. */
static void bbr_startup__lasts_while_the_rate_grows(void **state)
{
    (void)state;
    struct flow f = flow_started();
    double rate = 4;
    for (int i = 0; i < 12; i++, rate *= 1.3) {
        deliver(&f, rate, BRTT, BDP);
        assert_true(pace_gbps(&f) > rate);
    }
}

/* In STARTUP the pace never falls, though deliveries do. */
static void bbr_startup__never_slows_down(void **state)
{
    (void)state;
    struct flow f = flow_started();
    deliver(&f, 50, 2 * BRTT, BDP);
    double before = pace_gbps(&f);
    assert_true(before > 2.5 * 50);
    deliver(&f, 10, BRTT, BDP);
    assert_true(pace_gbps(&f) >= before);
}

/* DRAIN ends when no more is in flight than the bottleneck needs, and a packet. */
static void bbr_drain__waits_for_the_queue(void **state)
{
    (void)state;
    const uint32_t needed = (uint32_t)(50e9 / 8 * BRTT / 1e12);
    struct flow f = flow_started();
    deliver(&f, 50, 12 * BRTT, needed + 2 * MTU);
    assert_true(is_close(pace_gbps(&f), 0.35 * 50, 0.5));
    deliver(&f, 50, BRTT / 4, needed);
    assert_true(is_close(pace_gbps(&f), 1.25 * 50, 0.7));
}

/* P2: the gains of PROBE_BW's eight rounds are 5/4, 3/4 and six times 1; their mean is 1. */
static void bbr_probe__averages_to_the_rate(void **state)
{
    (void)state;
    struct flow f = flow_started();
    deliver(&f, 50, 12 * BRTT, BDP);
    while (pace_gbps(&f) < 50)
        deliver(&f, 50, BRTT / 16, 0); /* DRAIN ends at the first of these */
    double sum = 0;
    gw_time begin = f.now;
    int highs = 0, lows = 0, count = 0;
    for (; f.now - begin < 80 * BRTT; count++) {
        deliver(&f, 50, BRTT / 16, 0);
        double gain = pace_gbps(&f) / 50;
        sum += gain;
        highs += is_close(gain, 1.25, 0.02);
        lows += is_close(gain, 0.75, 0.02);
        assert_true(is_close(gain, 1, 0.02) || is_close(gain, 1.25, 0.02) ||
                    is_close(gain, 0.75, 0.02));
    }
    assert_true(is_close(sum / count, 1, 0.015));
    assert_true(is_close((double)highs / count, 0.125, 0.02));
    assert_true(is_close((double)lows / count, 0.125, 0.02));
}

/* The filter forgets what lies more than ten rounds back, and not sooner. */
static void bbr_rate__forgets_after_ten_rounds(void **state)
{
    (void)state;
    struct flow f = flow_probing(80);
    deliver(&f, 20, 7 * BRTT, 0);
    assert_true(pace_gbps(&f) > 0.74 * 80);
    deliver(&f, 20, 6 * BRTT, 0);
    assert_true(pace_gbps(&f) < 1.27 * 20);
}

/* A silence is no measurement: what arrives after it counts at its own rate. */
static void bbr_rate__survives_a_silence(void **state)
{
    (void)state;
    struct flow f = flow_probing(40);
    f.now += 100 * GW_S;
    deliver(&f, 40, 12 * BRTT, 0);
    assert_true(pace_gbps(&f) < 1.27 * 40);
    assert_true(pace_gbps(&f) > 0.73 * 40);
}

static void bbr_rate__has_a_floor(void **state)
{
    (void)state;
    struct flow f = flow_probing(30);
    deliver(&f, 0.1, 100 * BRTT * 13, 0);
    assert_true(pace_gbps(&f) > 0.74 * 3 && pace_gbps(&f) < 1.26 * 3);
    /* On a slower line it is the line. */
    f = flow_make("bbr");
    f.path.rate_bps = 1000000000;
    flow_start(&f);
    deliver(&f, 0.01, GW_S, 0);
    assert_true(pace_gbps(&f) < 1.3);
}

static void bbr_feedback__ignores_losses_and_marks(void **state)
{
    (void)state;
    struct flow f = flow_probing(50);
    struct gw_cc_window before = f.window;
    for (int i = 0; i < 50; i++) {
        flow_lose(&f, true, 0);
        flow_lose(&f, false, 0);
    }
    assert_memory_equal(&f.window, &before, sizeof(before));
    struct flow marked = f;
    for (int i = 0; i < 50; i++) {
        f.now += 700 * GW_NS;
        marked.now = f.now;
        flow_ack(&f, BRTT, false);
        flow_ack(&marked, BRTT, true);
        assert_int_equal(f.window.pace, marked.window.pace);
    }
    assert_int_equal(f.window.cwnd, BDP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bbr_init__paces_at_an_eighth_of_the_line),
        cmocka_unit_test(bbr_rate__is_what_was_delivered),
        cmocka_unit_test(bbr_rate__spans_an_rtt),
        cmocka_unit_test(bbr_startup__ends_after_three_rounds_without_growth),
        cmocka_unit_test(bbr_startup__lasts_while_the_rate_grows),
        cmocka_unit_test(bbr_startup__never_slows_down),
        cmocka_unit_test(bbr_drain__waits_for_the_queue),
        cmocka_unit_test(bbr_probe__averages_to_the_rate),
        cmocka_unit_test(bbr_rate__forgets_after_ten_rounds),
        cmocka_unit_test(bbr_rate__survives_a_silence),
        cmocka_unit_test(bbr_rate__has_a_floor),
        cmocka_unit_test(bbr_feedback__ignores_losses_and_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
