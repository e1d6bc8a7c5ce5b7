/* CUBIC by direct calls: the curve, its way back to the old window, TCP's share, fast convergence.
 */
#include "tcp_fixture.h"

enum {
    WINDOW = 200, /* packets before the loss */
};

#define LONG_RTT (100 * GW_MS)

/* A flow of a long path that lost a packet at WINDOW packets, and learns of it now. */
static struct flow after_loss(gw_time rtt)
{
    struct flow f = tcp_make("cubic");
    f.path.brtt = f.path.brtt_max = rtt;
    f.path.window = WINDOW * MTU;
    flow_start(&f);
    gw_time sent_at = f.now;
    f.now += rtt;
    tcp_lose(&f, sent_at, false);
    return f;
}

static double window_of(const struct flow *f)
{
    return (double)f->window.cwnd / MTU;
}

static void cubic_on_loss__leaves_seven_tenths(void **state)
{
    (void)state;
    struct flow f = after_loss(BRTT);
    assert_true(is_close(window_of(&f), 0.7 * WINDOW, 1));
    assert_int_equal(tcp_lose(&f, f.now - 1, false), 0);
    gw_time cut_at = f.now;
    f.now += BRTT;
    assert_true(tcp_ack(&f, cut_at, true) < 0); /* a mark takes as much */
    assert_true(is_close(window_of(&f), 0.49 * WINDOW, 1));
}

/*
 * P1 and P2: C (t - K)^3 + W_max, with K the cube root of 0.3 W_max / C, 5.31 s here. So the window
 * is W_max when K has passed; and it never falls, which tcp_round() checks.
 */
static void cubic_on_ack__follows_the_curve(void **state)
{
    (void)state;
    struct flow f = after_loss(LONG_RTT);
    const double k = 5.3133;
    tcp_round(&f, 0); /* the curve begins with the first ACK of what was sent after the cut */
    const gw_time begin = f.now - LONG_RTT;
    uint32_t checked = 0;
    for (int i = 0; i < 80; i++) {
        double t = (double)(f.now - begin) / (double)GW_S;
        double curve = 0.4 * (t - k) * (t - k) * (t - k) + WINDOW;
        /* The window aims at where the curve will be a round trip later. */
        double next = 0.4 * (t + 0.2 - k) * (t + 0.2 - k) * (t + 0.2 - k) + WINDOW;
        if (t > 0.5 && t < 1.3 * k) {
            assert_true(window_of(&f) > curve - 2 && window_of(&f) < next + 2);
            checked++;
        }
        if (t > k - 0.2 && t < k + 0.2)
            assert_true(is_close(window_of(&f), WINDOW, 1));
        tcp_round(&f, 0);
    }
    assert_true(checked > 25 && window_of(&f) > WINDOW + 10);
}

/* Where round trips are short, TCP's share rules: 9/17 of a packet per round trip, and one from the
 * old window on. */
static void cubic_on_ack__gives_way_to_tcp(void **state)
{
    (void)state;
    struct flow f = after_loss(BRTT);
    tcp_round(&f, 0);
    double before = window_of(&f);
    for (int i = 0; i < 100; i++)
        tcp_round(&f, 0);
    assert_true(is_close(window_of(&f) - before, 100 * 9.0 / 17, 1));
    while (window_of(&f) < WINDOW)
        tcp_round(&f, 0);
    before = window_of(&f);
    for (int i = 0; i < 20; i++)
        tcp_round(&f, 0);
    assert_true(is_close(window_of(&f) - before, 20, 0.5));
}

/* A second loss before the window is back aims at 0.85 of it, not at it. */
static void cubic_on_loss__converges_fast(void **state)
{
    static const char *const settings[] = {"no", "yes"};
    static const double aims[] = {0.7, 0.7 * 0.85};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(settings); i++) {
        struct flow f = after_loss(LONG_RTT);
        flow_set(&f, "fast_convergence", settings[i]);
        gw_time sent_at = f.now;
        f.now += LONG_RTT;
        tcp_lose(&f, sent_at, false);
        uint64_t w_max = f.ops->remember(f.state, &f.cfg) >> 32;
        assert_true(is_close((double)w_max / MTU, aims[i] * WINDOW, 1));
    }
}

static void cubic_on_loss__starts_over_after_a_timeout(void **state)
{
    (void)state;
    struct flow f = tcp_at("cubic", 100);
    gw_time sent_at = f.now;
    f.now += 10 * GW_MS;
    tcp_lose(&f, sent_at, true);
    assert_int_equal(packets_of(&f), 1);
    for (int i = 0; i < 8; i++)
        tcp_round(&f, 0);
    assert_in_range(packets_of(&f), 69, 72);                  /* slow start to 0.7, ... */
    assert_true(f.ops->remember(f.state, &f.cfg) >> 32 == 0); /* ... then a curve without a past */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubic_on_loss__leaves_seven_tenths),
        cmocka_unit_test(cubic_on_ack__follows_the_curve),
        cmocka_unit_test(cubic_on_ack__gives_way_to_tcp),
        cmocka_unit_test(cubic_on_loss__converges_fast),
        cmocka_unit_test(cubic_on_loss__starts_over_after_a_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
