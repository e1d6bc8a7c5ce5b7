/* NSCC by direct calls: each quadrant of mark and delay, QuickAdapt, and the bounds. */
#include "cc_fixture.h"

#define TARGET (BRTT * 3 / 4) /* queueing delay, where switches trim */
#define MAXWND (BDP * 3 / 2)

/* A flow at a share of the bdp in which QuickAdapt is off. */
static struct flow flow_at(const char *initial)
{
    struct flow f = flow_make("nscc");
    flow_set(&f, "quick_adapt", "no");
    flow_set(&f, "cwnd_initial", initial);
    flow_start(&f);
    return f;
}

/* The change by nine ACKs in no time: the ninth is beyond eight packets, and grants. */
static double nine_acks(struct flow *f, gw_time delay)
{
    double before = (double)f->window.cwnd;
    for (int i = 0; i < 8; i++)
        assert_int_equal(flow_ack(f, BRTT + delay, false), 0);
    flow_ack(f, BRTT + delay, false);
    return (double)f->window.cwnd - before;
}

static void nscc_increase__is_proportional_below_the_target(void **state)
{
    static const gw_time delays[] = {1 * GW_US, 3 * GW_US, 6 * GW_US, TARGET - GW_NS};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(delays); i++) {
        struct flow f = flow_at("0.5");
        double cwnd = (double)f.window.cwnd;
        double alpha = 4.0 * MTU * ((double)TARGET / (12 * GW_US)) / (double)TARGET;
        double expected = alpha * 9 * MTU * (double)(TARGET - delays[i]) / cwnd;
        assert_true(is_close(nine_acks(&f, delays[i]), expected, 1 + 0.001 * expected));
    }
}

static void nscc_increase__is_fair_beyond_the_target(void **state)
{
    static const gw_time delays[] = {TARGET, 2 * TARGET, 3 * TARGET};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(delays); i++) {
        struct flow f = flow_at("0.5");
        double expected = 5.0 * MTU * 9 * MTU / (double)f.window.cwnd;
        assert_true(is_close(nine_acks(&f, delays[i]), expected, 1 + 0.001 * expected));
    }
}

/* Every gain but gamma grows with the bdp. */
static void nscc_increase__scales_with_the_bdp(void **state)
{
    (void)state;
    struct flow f = flow_make("nscc");
    flow_set(&f, "quick_adapt", "no");
    flow_set(&f, "cwnd_initial", "0.5");
    f.path.bdp = 6 * BDP;
    flow_start(&f);
    double expected = 6 * 5.0 * MTU * 9 * MTU / (double)f.window.cwnd;
    assert_true(is_close(nine_acks(&f, TARGET), expected, 1 + 0.001 * expected));
}

/* A base RTT without eight packets grants too, and adds eta: 0.15 packets. */
static void nscc_increase__grants_every_base_rtt(void **state)
{
    (void)state;
    struct flow f = flow_at("0.5");
    double cwnd = (double)f.window.cwnd;
    assert_int_equal(flow_ack(&f, BRTT + TARGET, false), 0);
    f.now += BRTT;
    assert_int_equal(flow_ack(&f, BRTT + TARGET, false), 0);
    f.now += 1;
    double expected = 5.0 * MTU * 3 * MTU / cwnd + 0.15 * MTU;
    assert_true(is_close((double)flow_ack(&f, BRTT + TARGET, false), expected, 1.5));
    /* What was granted is gone, and eta comes once per base RTT. */
    expected = 5.0 * MTU * 9 * MTU / (double)f.window.cwnd;
    assert_true(is_close(nine_acks(&f, TARGET), expected, 1 + 0.001 * expected));
}

/* A window of bytes without delay, then a quarter byte per byte at the reference bdp. */
static void nscc_increase__reclaims_an_empty_path(void **state)
{
    (void)state;
    const gw_time calm = BRTT + GW_US - 1;
    struct flow f = flow_make("nscc");
    flow_set(&f, "cwnd_initial", "0.2"); /* 7.3 packets */
    flow_set(&f, "adjust_packets", "1000");
    flow_start(&f);
    for (int i = 0; i < 7; i++)
        assert_int_equal(flow_ack(&f, calm, false), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(flow_ack(&f, calm, false), MTU / 4);
    /* Also when the window grows faster than bytes are counted. */
    struct flow wide = flow_make("nscc");
    wide.path.bdp = 8 * BDP;
    flow_set(&wide, "cwnd_initial", "0.025");
    flow_set(&wide, "adjust_packets", "1000");
    flow_start(&wide);
    for (int i = 0; i < 30; i++)
        assert_int_equal(flow_ack(&wide, calm, false), i < 7 ? 0 : 2 * MTU);
    /* A microsecond of delay ends it. */
    struct flow delayed = f;
    flow_ack(&delayed, BRTT + GW_US, false);
    assert_true(flow_ack(&delayed, calm, false) < MTU / 4);
}

/* P1: below the target delay nothing lowers the window, marked or not. */
static void nscc_window__never_falls_below_the_target(void **state)
{
    (void)state;
    struct flow f = flow_make("nscc");
    flow_set(&f, "cwnd_initial", "0.3");
    flow_start(&f);
    struct gw_prng prng = gw_prng_derive(5, 0);
    for (int i = 0; i < 20000; i++) {
        f.now += gw_prng_below(&prng, GW_US);
        gw_time delay = gw_prng_below(&prng, TARGET);
        assert_true(flow_ack(&f, BRTT + delay, gw_prng_below(&prng, 2)) >= 0);
    }
    assert_int_equal(f.window.cwnd, MAXWND);
}

/* A mark below the target asks for nothing: the load balancer changes the path. */
static void nscc_window__leaves_early_marks_to_load_balancing(void **state)
{
    (void)state;
    struct flow f = flow_at("0.5");
    for (int i = 0; i < 100; i++)
        assert_int_equal(flow_ack(&f, BRTT + TARGET - 1, true), 0);
    /* Also when the average lies beyond the target. */
    f = flow_at("1.5");
    for (int i = 0; i < 100; i++)
        flow_ack(&f, BRTT + 4 * TARGET, true);
    f.now += 3 * BRTT;
    assert_true(flow_ack(&f, BRTT + TARGET - 1, true) >= 0);
    assert_true(flow_ack(&f, BRTT + TARGET, true) < 0);
}

/* P2: beyond it, once per base RTT, never more than half; and by the average, which must exceed
 * the target first. */
static void nscc_decrease__comes_once_per_rtt_and_halves_at_most(void **state)
{
    (void)state;
    struct flow f = flow_at("1.5");
    struct gw_prng prng = gw_prng_derive(6, 0);
    gw_time fell_at = f.now;
    int falls = 0;
    for (int i = 0; i < 40000; i++) {
        f.now += gw_prng_below(&prng, GW_US);
        uint64_t before = f.window.cwnd;
        /* Unmarked ACKs below the target let the window recover. */
        bool ce = gw_prng_below(&prng, 4) != 0;
        gw_time delay = ce ? TARGET + gw_prng_below(&prng, 40 * TARGET) : TARGET / 2;
        if (flow_ack(&f, BRTT + delay, ce) >= 0)
            continue;
        assert_true(f.window.cwnd >= before / 2);
        assert_true(f.now - fell_at > BRTT);
        fell_at = f.now;
        falls++;
    }
    assert_true(falls > 500);
}

static void nscc_decrease__follows_the_average_delay(void **state)
{
    (void)state;
    struct flow f = flow_at("1.5");
    double average = 0;
    f.now += 2 * BRTT;
    /* The first marks only raise the average: 1 - 0.9875^n of the delay. */
    for (int i = 0;; i++) {
        assert_true(i < 100);
        double before = (double)f.window.cwnd;
        average += 0.0125 * (2.0 * TARGET - average);
        int64_t change = flow_ack(&f, BRTT + 2 * TARGET, true);
        assert_int_equal(change<0, average> TARGET);
        if (change < 0) {
            double cut = 0.8 * (average - TARGET) / average * before;
            assert_true(is_close(-(double)change, cut, 1 + 0.03 * cut));
            break;
        }
        assert_int_equal(change, 0);
    }
    /* Late samples without a mark count as a quarter of the base RTT. */
    for (int i = 0; i < 200; i++)
        flow_ack(&f, BRTT + 3 * TARGET, false);
    f.now += 2 * BRTT;
    for (int i = 0; i < 30; i++)
        assert_true(flow_ack(&f, BRTT + 2 * TARGET, true) >= 0);
}

/* A flow that lost a packet, with `acks` packets achieved within the interval that ends now. */
static struct flow flow_lossy(int acks, const char *quick_adapt)
{
    struct flow f = flow_make("nscc");
    flow_set(&f, "quick_adapt", quick_adapt);
    flow_set(&f, "eta", "0");
    flow_start(&f);
    flow_ack(&f, BRTT + TARGET, true); /* opens the interval */
    f.now += GW_US;
    flow_lose(&f, true, 10 * MTU);
    for (int i = 0; i < acks; i++)
        flow_ack(&f, BRTT + TARGET, true);
    f.now += BRTT + TARGET;
    return f;
}

/* The gate is an eighth of the largest window: 28125 bytes, so six packets pass and seven do not.
 */
static void nscc_quick_adapt__takes_what_was_achieved(void **state)
{
    (void)state;
    for (int acks = 0; acks <= 6; acks++) {
        struct flow f = flow_lossy(acks, "yes");
        flow_ack(&f, BRTT + TARGET, true);
        int achieved = acks + 1;
        if (achieved <= 6)
            assert_int_equal(f.window.cwnd, achieved * MTU);
        else
            assert_true(f.window.cwnd > MAXWND / 2);
        f = flow_lossy(acks, "no");
        flow_ack(&f, BRTT + TARGET, true);
        assert_int_equal(f.window.cwnd, MAXWND - MTU);
    }
    /* Nothing arrived: one packet. */
    struct flow f = flow_lossy(0, "yes");
    flow_lose(&f, true, 9 * MTU);
    assert_int_equal(f.window.cwnd, MTU);
}

/* One loss is good for one QuickAdapt. */
static void nscc_quick_adapt__forgets_the_loss(void **state)
{
    (void)state;
    struct flow f = flow_lossy(5, "yes");
    flow_ack_with(&f, &(struct gw_cc_ack){.bytes = MTU, .rtt = 2 * BRTT, .ce = true});
    assert_int_equal(f.window.cwnd, 6 * MTU);
    for (int i = 0; i < 3; i++) {
        f.now += BRTT + TARGET + 1;
        flow_ack(&f, BRTT + TARGET - 1, true);
        assert_int_equal(f.window.cwnd, 6 * MTU);
    }
}

static void nscc_quick_adapt__needs_the_end_of_the_interval(void **state)
{
    (void)state;
    struct flow f = flow_lossy(2, "yes");
    f.now -= GW_US; /* exactly base RTT and target after the interval began */
    flow_ack(&f, BRTT + TARGET, true);
    assert_true(f.window.cwnd > MAXWND / 2);
    f.now += 1;
    flow_ack(&f, BRTT + TARGET, true);
    assert_int_equal(f.window.cwnd, 4 * MTU);
}

/* Four times the target is as bad as a loss. */
static void nscc_quick_adapt__is_triggered_by_delay(void **state)
{
    (void)state;
    for (int over = 0; over <= 1; over++) {
        struct flow f = flow_make("nscc");
        flow_start(&f);
        flow_ack(&f, BRTT + TARGET, true);
        f.now += BRTT + TARGET + 1;
        flow_ack(&f, BRTT + 4 * TARGET + (gw_time)over, true);
        assert_int_equal(f.window.cwnd == MTU, over);
    }
}

/* Marks and losses of what was in flight are ignored; unmarked ACKs are not. */
static void nscc_quick_adapt__ignores_marks_of_the_past(void **state)
{
    (void)state;
    struct flow f = flow_lossy(2, "yes");
    struct gw_cc_ack last = {.bytes = MTU, .in_flight = 6 * MTU, .rtt = 2 * BRTT, .ce = true};
    flow_ack_with(&f, &last);
    assert_int_equal(f.window.cwnd, 3 * MTU);
    struct flow unmarked = f;
    unmarked.now += BRTT + 1;
    assert_true(flow_ack(&unmarked, BRTT, false) > 0);
    /* Six packets are to come: five of them leave the window alone. */
    for (int i = 0; i < 5; i++)
        assert_int_equal(i % 2 ? flow_ack(&f, BRTT + 3 * TARGET, true) : flow_lose(&f, true, 0), 0);
    struct flow sixth = f;
    assert_int_equal(flow_lose(&sixth, true, 0), -MTU);
}

static void nscc_on_loss__takes_the_packet(void **state)
{
    (void)state;
    struct flow f = flow_make("nscc");
    flow_start(&f);
    assert_int_equal(f.window.cwnd, MAXWND);
    assert_int_equal(flow_lose(&f, true, 20 * MTU), -MTU);
    assert_int_equal(flow_lose(&f, false, 20 * MTU), -MTU);
    for (int i = 0; i < 100; i++)
        flow_lose(&f, true, 20 * MTU);
    assert_int_equal(f.window.cwnd, MTU);
}

/* The limit belongs to the pair, the target to the fabric; without trimming it is the base RTT. */
static void nscc_init__knows_short_paths_and_dropping_switches(void **state)
{
    (void)state;
    struct flow f = flow_make("nscc");
    f.path.brtt = BRTT / 4;
    flow_set(&f, "quick_adapt", "no");
    flow_start(&f);
    assert_in_range(f.window.cwnd, MAXWND / 4 - 1, MAXWND / 4);

    f = flow_make("nscc");
    f.path.trims = false;
    flow_set(&f, "quick_adapt", "no");
    flow_set(&f, "cwnd_initial", "0.5");
    flow_start(&f);
    double fair = 5.0 * MTU * 9 * MTU / (double)f.window.cwnd;
    struct flow below = f;
    assert_true(nine_acks(&below, BRTT - GW_US / 2) < fair / 4);
    assert_true(is_close(nine_acks(&f, BRTT), fair, 1 + 0.001 * fair));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nscc_increase__is_proportional_below_the_target),
        cmocka_unit_test(nscc_increase__is_fair_beyond_the_target),
        cmocka_unit_test(nscc_increase__scales_with_the_bdp),
        cmocka_unit_test(nscc_increase__grants_every_base_rtt),
        cmocka_unit_test(nscc_increase__reclaims_an_empty_path),
        cmocka_unit_test(nscc_window__never_falls_below_the_target),
        cmocka_unit_test(nscc_window__leaves_early_marks_to_load_balancing),
        cmocka_unit_test(nscc_decrease__comes_once_per_rtt_and_halves_at_most),
        cmocka_unit_test(nscc_decrease__follows_the_average_delay),
        cmocka_unit_test(nscc_quick_adapt__takes_what_was_achieved),
        cmocka_unit_test(nscc_quick_adapt__forgets_the_loss),
        cmocka_unit_test(nscc_quick_adapt__needs_the_end_of_the_interval),
        cmocka_unit_test(nscc_quick_adapt__is_triggered_by_delay),
        cmocka_unit_test(nscc_quick_adapt__ignores_marks_of_the_past),
        cmocka_unit_test(nscc_on_loss__takes_the_packet),
        cmocka_unit_test(nscc_init__knows_short_paths_and_dropping_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
