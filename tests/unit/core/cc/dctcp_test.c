/* DCTCP by direct calls: alpha follows the share of marks, and decides how much a mark takes. */
#include "tcp_fixture.h"

enum {
    WINDOW = 200, /* packets */
};

/* Share of the window that the first mark of a new window of data takes. */
static double cut_of(struct flow f)
{
    double before = (double)f.window.cwnd;
    gw_time sent_at = f.now;
    f.now += BRTT / 2;
    tcp_ack(&f, sent_at, true);
    return 1 - (double)f.window.cwnd / before;
}

static double power(double base, int exponent)
{
    double product = 1;
    for (; exponent > 0; exponent--)
        product *= base;
    return product;
}

/* P1: with nothing but marks alpha goes to 1 and a cut to a half; without, both go to 0. */
static void dctcp_alpha__follows_the_marks(void **state)
{
    (void)state;
    struct flow f = tcp_at("dctcp", WINDOW);
    assert_true(is_close(cut_of(f), 0.5, 0.002)); /* alpha is 1 at first */
    for (int windows = 1; windows <= 40; windows++) {
        tcp_round(&f, 0);
        /* The first window of data ends with the first ACK of what was sent in it. */
        double least = power(15.0 / 16, windows + 1) / 2, most = power(15.0 / 16, windows) / 2;
        double cut = cut_of(f);
        assert_true(cut > least - 0.002 && cut < most + 0.002);
    }
    assert_true(cut_of(f) < 0.05);
    struct flow all = tcp_make("dctcp");
    flow_set(&all, "alpha_initial", "0");
    flow_set(&all, "cwnd_min", "100"); /* so that windows have packets */
    all.path.window = WINDOW * MTU;
    flow_start(&all);
    double before = 0;
    for (int windows = 0; windows < 60; windows++) {
        tcp_round(&all, UINT64_MAX);
        uint64_t alpha = all.ops->remember(all.state, &all.cfg) >> 32;
        assert_true((double)alpha >= before);
        before = (double)alpha;
    }
    assert_true(is_close(before / (1 << 30), 1, 0.05));
}

/* A constant share of marked bytes is what alpha becomes. */
static void dctcp_alpha__is_the_share_of_marked_bytes(void **state)
{
    (void)state;
    struct flow f = tcp_at("dctcp", WINDOW);
    const gw_time gap = BRTT / 100;
    for (int windows = 0; windows < 200; windows++) {
        const gw_time begin = f.now;
        for (gw_time i = 0; i < 100; i++) {
            f.now = begin + BRTT + i * gap;
            tcp_ack(&f, begin + i * gap, i % 5 == 0);
        }
    }
    double alpha = (double)(f.ops->remember(f.state, &f.cfg) >> 32) / (1 << 30);
    assert_true(is_close(alpha, 0.2, 0.01));
}

/* P3: one cut per round trip, whatever the number of marks. */
static void dctcp_on_ack__cuts_once_per_window(void **state)
{
    (void)state;
    struct flow f = tcp_at("dctcp", WINDOW);
    gw_time sent_at = f.now;
    f.now += BRTT;
    assert_true(tcp_ack(&f, sent_at, true) < 0);
    for (gw_time at = sent_at; at < f.now; at += BRTT / 100)
        assert_int_equal(tcp_ack(&f, at, true), 0);
    gw_time cut_at = f.now;
    f.now += BRTT;
    assert_true(tcp_ack(&f, cut_at, true) < 0);
}

/* P2: alpha stays within 0 and 1, so no mark takes more than half. */
static void dctcp_alpha__stays_within_bounds(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(1, 0);
    struct flow f = tcp_at("dctcp", WINDOW);
    for (int step = 0; step < 20000; step++) {
        f.now += gw_prng_below(&prng, (uint32_t)BRTT / 10);
        uint64_t before = f.window.cwnd;
        struct gw_cc_ack ack = {.bytes = 1 + gw_prng_below(&prng, 3 * MTU),
                                .in_flight = gw_prng_below(&prng, WINDOW * MTU),
                                .rtt = gw_prng_below(&prng, 2 * (uint32_t)BRTT),
                                .ce = gw_prng_below(&prng, 3) == 0};
        flow_ack_with(&f, &ack);
        assert_true(f.window.cwnd >= before / 2);
        uint64_t alpha = (f.ops->remember(f.state, &f.cfg) >> 32) - 1;
        assert_in_range(alpha, 0, 1 << 30);
    }
}

/* RFC 8257, section 3.5: a loss is no mark. */
static void dctcp_on_loss__halves(void **state)
{
    (void)state;
    struct flow f = tcp_make("dctcp");
    flow_set(&f, "alpha_initial", "0");
    f.path.window = WINDOW * MTU;
    flow_start(&f);
    gw_time sent_at = f.now;
    f.now += BRTT;
    tcp_lose(&f, sent_at, false);
    assert_in_range(packets_of(&f), WINDOW / 2 - 1, WINDOW / 2 + 1);
    assert_int_equal(tcp_lose(&f, sent_at, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dctcp_alpha__follows_the_marks),
        cmocka_unit_test(dctcp_alpha__is_the_share_of_marked_bytes),
        cmocka_unit_test(dctcp_on_ack__cuts_once_per_window),
        cmocka_unit_test(dctcp_alpha__stays_within_bounds),
        cmocka_unit_test(dctcp_on_loss__halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
