/* A rate that follows what arrives, as a fluid through one link. */
#include "blast_fluid.h"

/* In thousandths of the line rate. */
static uint64_t rate(const struct fluid *f, uint32_t i)
{
    return offered(&f->senders[i].window) * 1000 / line();
}

/* P1: of n senders that begin at line rate each is at its share after one report, or, as none falls
 * to less than a quarter at once, after log4(n) of them. */
static void cc_follow__shares_a_link_at_once(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= SENDERS_MAX; n++) {
        struct fluid f;
        fluid_open(&f, "follow", n);
        period(&f);
        if (n > 4)
            period(&f);
        if (n > 16)
            period(&f);
        for (uint32_t i = 0; i < n; i++)
            assert_in_range(offered(&f.senders[i].window), line() / n - n, line() / n + n);
    }
}

/* P2: from then on, whatever they began at, they offer together at most a tolerated part more than
 * the link and what they grow by in a period, and use most of it. */
static void cc_follow__keeps_the_sum_in_bounds(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(3, 0);
    for (uint32_t n = 1; n <= SENDERS_MAX; n += 7) {
        struct fluid f;
        fluid_open(&f, "follow", n);
        for (uint32_t i = 0; i < n; i++)
            report(&f, i, line(), line() / (1 + gw_prng_below(&prng, 8)));
        for (uint32_t i = 0; i < 100; i++)
            period(&f);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < 500; i++) {
            period(&f);
            assert_true(total_offered(&f) <= line() * 106 / 100 + n * (line() / 20));
            sum += total_offered(&f);
        }
        assert_true(sum >= 500 * line() / 100 * 98);
    }
}

/* P3: whom nobody disturbs stays at line rate, also when a packet in twenty is lost. */
static void cc_follow__leaves_one_at_line_rate(void **state)
{
    (void)state;
    struct fluid f;
    fluid_open(&f, "follow", 1);
    for (uint32_t i = 0; i < 1000; i++) {
        report(&f, 0, line(), line() - line() / 21);
        assert_int_equal(f.senders[0].window.pace, gw_byte_time_from_bps(RATE_BPS));
    }
    /* Nor is he slowed down who has little to send. */
    report(&f, 0, 10, 10);
    report(&f, 0, 0, 0);
    assert_int_equal(f.senders[0].window.pace, gw_byte_time_from_bps(RATE_BPS));
}

/* A fall is to what arrived, and a late report of the same does not make it deeper. */
static void cc_follow__falls_to_what_arrived(void **state)
{
    (void)state;
    struct fluid f;
    fluid_open(&f, "follow", 1);
    report(&f, 0, line(), line() / 2);
    assert_in_range(rate(&f, 0), 499, 500);
    report(&f, 0, line(), line() / 2);
    assert_in_range(rate(&f, 0), 499, 500);
    report(&f, 0, line(), 0);
    assert_in_range(rate(&f, 0), 124, 125); /* a quarter is left */
    for (uint32_t i = 0; i < 100; i++)
        report(&f, 0, UINT64_MAX, 0);
    assert_in_range(offered(&f.senders[0].window), MTU + HDR - 1, MTU + HDR + 1);
}

/* The growth itself grows: few periods, not hundreds, until the line rate; and each loss ends it.
 */
static void cc_follow__grows_faster_and_faster(void **state)
{
    (void)state;
    struct fluid f;
    fluid_open(&f, "follow", 1);
    report(&f, 0, line(), line() / 4);
    uint64_t before = rate(&f, 0), last = 0;
    uint32_t periods = 0;
    for (; rate(&f, 0) < 999; periods++) {
        report(&f, 0, 1000, 1000);
        uint64_t now = rate(&f, 0);
        assert_true(now == 1000 || now - before + 1 >= last);
        last = now - before;
        before = now;
    }
    assert_in_range(periods, 15, 25);
    report(&f, 0, line(), line() / 4);
    report(&f, 0, 1000, 1000);
    assert_in_range(rate(&f, 0), 253, 255);
    /* A round of repair changes nothing. */
    f.cc->on_round(f.senders[0].state, f.cfg.bytes, &PATH, &f.senders[0].window, 0);
    assert_in_range(rate(&f, 0), 253, 255);
    report(&f, 0, 1000, 1000);
    assert_in_range(rate(&f, 0), 261, 263);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cc_follow__shares_a_link_at_once),
        cmocka_unit_test(cc_follow__keeps_the_sum_in_bounds),
        cmocka_unit_test(cc_follow__leaves_one_at_line_rate),
        cmocka_unit_test(cc_follow__falls_to_what_arrived),
        cmocka_unit_test(cc_follow__grows_faster_and_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
