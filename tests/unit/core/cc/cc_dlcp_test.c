/*
 * DLCP's minimal rate control, as a fluid through one link: in a period each sender gets as much of
 * the link as it offers of all that is offered.
 */
#include "support.h"

#include "base/prng.h"
#include "core/cc/cc.h"

enum {
    SENDERS_MAX = 64,
    MTU = 1400,
    HDR = 60,
};

#define RATE_BPS UINT64_C(100000000000)
#define PERIOD   (200 * GW_US)

static const struct gw_path PATH = {
    .brtt = 85200 * GW_NS,
    .brtt_max = 85200 * GW_NS,
    .rate_bps = RATE_BPS,
    .bdp = 1065000,
    .mtu = MTU,
    .hdr = HDR,
    .hops = 4,
};

struct fluid {
    const struct gw_cc_ops *cc;
    union gw_algo_cfg cfg;
    struct sender {
        _Alignas(8) unsigned char state[GW_CC_STATE_MAX];
        struct gw_cc_window window;
    } senders[SENDERS_MAX];
    uint32_t count;
};

static void fluid_open(struct fluid *f, uint32_t count)
{
    memset(f, 0, sizeof(*f));
    f->cc = (const struct gw_cc_ops *)gw_registry_find(&gw_cc_registry, "dlcp");
    assert_non_null(f->cc);
    gw_algo_defaults(&f->cc->algo, f->cfg.bytes);
    f->count = count;
    for (uint32_t i = 0; i < count; i++)
        f->cc->init(f->senders[i].state, f->cfg.bytes, &PATH, &f->senders[i].window, 0);
}

/* Wire bytes that the pace allows in a period. */
static uint64_t offered(const struct gw_cc_window *window)
{
    return (PERIOD << GW_BYTE_TIME_SHIFT) / window->pace;
}

static uint64_t line(void)
{
    return RATE_BPS / 8 * PERIOD / GW_S;
}

static uint64_t total_offered(const struct fluid *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->count; i++)
        sum += offered(&f->senders[i].window);
    return sum;
}

static void report(struct fluid *f, uint32_t i, uint64_t sent, uint64_t received)
{
    const struct gw_cc_report what = {.period = PERIOD, .sent = sent, .received = received};
    f->cc->on_report(f->senders[i].state, f->cfg.bytes, &PATH, &what, &f->senders[i].window, 0);
}

static void period(struct fluid *f)
{
    uint64_t sum = total_offered(f);
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t sent = offered(&f->senders[i].window);
        report(f, i, sent, sum > line() ? sent * line() / sum : sent);
    }
}

/* P1: of n senders each falls to at most twice its share within few periods; then it grows again,
 * by the next property. */
static void cc_dlcp__yields_to_many_in_few_periods(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= SENDERS_MAX; n++) {
        struct fluid f;
        fluid_open(&f, n);
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
        fluid_open(&f, n);
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
        fluid_open(&f, n);
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
    fluid_open(&f, 1);
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
    fluid_open(&f, 1);
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
