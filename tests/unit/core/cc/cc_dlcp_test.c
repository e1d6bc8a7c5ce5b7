/* DLCP's minimal rate control, as a fluid through one link. */
#include "blast_fluid.h"

/* P1: of n senders each falls to at most twice its share within few periods; then it grows again,
 * by the next property. */
static void cc_dlcp__yields_to_many_in_few_periods(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= SENDERS_MAX; n++) {
        struct fluid f;
        fluid_open(&f, "dlcp", n);
        uint32_t periods = 1;
        while ((UINT64_C(2) << (periods - 1)) < n) /* ceil(log2(n / 2)) + 1 */
            periods++;
        uint64_t least = UINT64_MAX; /* they are all alike */
        for (uint32_t i = 0; i < periods; i++) {
            period(&f);
            uint64_t now = offered(&f.senders[0].window);
            least = now < least ? now : least;
        }
        assert_true(least * n <= 2 * line() + 16 * n);
    }
}

/* P2: whom nobody disturbs, or only one other, stays at line rate. */
static void cc_dlcp__leaves_one_or_two_at_line_rate(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        struct fluid f;
        fluid_open(&f, "dlcp", n);
        for (uint32_t i = 0; i < 1000; i++) {
            period(&f);
            for (uint32_t j = 0; j < n; j++)
                assert_int_equal(f.senders[j].window.pace, gw_byte_time_from_bps(RATE_BPS));
        }
    }
}

/* P3: together they offer at most twice the link and what they grow by in a period. */
static void cc_dlcp__keeps_the_sum_in_bounds(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(3, 0);
    for (uint32_t n = 1; n <= SENDERS_MAX; n += 7) {
        struct fluid f;
        fluid_open(&f, "dlcp", n);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = gw_prng_below(&prng, 6); j; j--)
                report(&f, i, 1000, 0); /* they begin at different rates */
        for (uint32_t i = 0; i < 10; i++)
            period(&f);
        for (uint32_t i = 0; i < 500; i++) {
            period(&f);
            assert_true(total_offered(&f) <= 2 * line() + n * (line() / 20 + 1));
        }
        assert_true(total_offered(&f) + n * line() / 20 >= line()); /* and use it */
    }
}

static uint64_t rate_after(uint64_t sent, uint64_t received, bool is_avoiding)
{
    struct fluid f;
    fluid_open(&f, "dlcp", 1);
    if (is_avoiding)
        for (int i = 0; i < 3; i++)
            report(&f, 0, 1000, 0);
    report(&f, 0, sent, received);
    return offered(&f.senders[0].window) * 1000 / line();
}

/* The rule of both phases, in thousandths of the line rate. */
static void cc_dlcp__halves_when_less_than_half_arrives(void **state)
{
    (void)state;
    assert_in_range(rate_after(2000, 1000, false), 999, 1000);
    assert_in_range(rate_after(2001, 1000, false), 499, 500);
    assert_in_range(rate_after(2000, 1000, true), 174, 175);
    assert_in_range(rate_after(2001, 1000, true), 62, 63);
    /* Who has little to send is not slowed down, whatever it may send. */
    assert_in_range(rate_after(10, 10, false), 999, 1000);
    assert_in_range(rate_after(0, 0, false), 999, 1000);
}

/* A packet per period always leaves. */
static void cc_dlcp__has_a_floor(void **state)
{
    (void)state;
    struct fluid f;
    fluid_open(&f, "dlcp", 1);
    for (uint32_t i = 0; i < 100; i++)
        report(&f, 0, UINT64_MAX, 0);
    assert_in_range(offered(&f.senders[0].window), MTU + HDR - 1, MTU + HDR + 1);
    f.cc->on_round(f.senders[0].state, f.cfg.bytes, &PATH, &f.senders[0].window, 0);
    assert_int_equal(f.senders[0].window.pace, gw_byte_time_from_bps(RATE_BPS));
    report(&f, 0, 1000, 1000); /* the new round starts at line rate, and does not grow yet */
    assert_int_equal(f.senders[0].window.pace, gw_byte_time_from_bps(RATE_BPS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cc_dlcp__yields_to_many_in_few_periods),
        cmocka_unit_test(cc_dlcp__leaves_one_or_two_at_line_rate),
        cmocka_unit_test(cc_dlcp__keeps_the_sum_in_bounds),
        cmocka_unit_test(cc_dlcp__halves_when_less_than_half_arrives),
        cmocka_unit_test(cc_dlcp__has_a_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
