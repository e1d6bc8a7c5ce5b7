/*
 * SMaRTT by direct calls: each rule against its formula, each latch against its text.
 */
#include "support.h"

#include "base/prng.h"
#include "core/cc/smartt.h"

enum {
    MTU = 4096,
    HDR = 64,
    BDP = 150000, /* the reference bdp: gamma is 1 */
};

#define BRTT (12 * GW_US)
#define TRTT (18 * GW_US)

static const struct gw_path PATH = {
    .brtt = BRTT,
    .brtt_max = BRTT,
    .rate_bps = UINT64_C(100000000000),
    .bdp = BDP,
    .mtu = MTU,
    .hdr = HDR,
    .hops = 6,
    .trims = true,
};

/* A flow with its options; `now` is handed to every call. */
struct flow {
    struct gw_smartt cc;
    union gw_algo_cfg cfg;
    struct gw_path path;
    struct gw_cc_window window;
    gw_time now;
};

static const struct gw_cc_ops *smartt(void)
{
    return (const void *)gw_registry_find(&gw_cc_registry, "smartt");
}

static void set(struct flow *f, const char *name, const char *text)
{
    assert_int_equal(gw_algo_set(&smartt()->algo, &f->cfg, name, text), 0);
}

/* A flow with default options; change them, then call start(). */
static struct flow flow_make(void)
{
    struct flow f = {.path = PATH, .now = GW_US};
    gw_algo_defaults(&smartt()->algo, &f.cfg);
    return f;
}

static void start(struct flow *f)
{
    smartt()->init(&f->cc, &f->cfg, &f->path, &f->window, f->now);
}

/* A flow in which only the four rules act. */
static struct flow flow_bare(void)
{
    struct flow f = flow_make();
    set(&f, "quick_adapt", "no");
    set(&f, "fast_increase", "no");
    set(&f, "wait_to_decrease", "no");
    start(&f);
    return f;
}

static void ack_sized(struct flow *f, uint32_t bytes, gw_time rtt, bool ce, uint32_t in_flight)
{
    struct gw_cc_ack ack = {.bytes = bytes, .in_flight = in_flight, .rtt = rtt, .ce = ce};
    smartt()->on_ack(&f->cc, &f->cfg, &f->path, &ack, &f->window, f->now);
}

static void ack(struct flow *f, gw_time rtt, bool ce)
{
    ack_sized(f, MTU, rtt, ce, 10 * MTU);
}

static void lose(struct flow *f, bool trimmed, uint32_t in_flight)
{
    struct gw_cc_loss loss = {.bytes = MTU, .in_flight = in_flight, .trimmed = trimmed};
    smartt()->on_loss(&f->cc, &f->cfg, &f->path, &loss, &f->window, f->now);
}

static double cwnd_of(const struct flow *f)
{
    return (double)f->cc.cwnd / 65536;
}

static void set_cwnd(struct flow *f, double bytes)
{
    f->cc.cwnd = (uint64_t)(bytes * 65536);
}

static bool is_close(double a, double b, double tolerance)
{
    return a - b <= tolerance && b - a <= tolerance;
}

static double min_of(double a, double b)
{
    return a < b ? a : b;
}

/* Equations 1 to 4 with the corrections of smartt.c, in floating point. */
static double expected_change(double cwnd, double bytes, double rtt, bool ce)
{
    const double fi = 0.25, mi = 2, fd = 0.8, md = 2, trtt = TRTT;
    if (ce) {
        double cut = cwnd / BDP * fd * bytes;
        return rtt <= trtt ? -cut : -min_of(bytes, cut + (rtt - trtt) / rtt * md * bytes);
    }
    double fair = bytes / cwnd * MTU * fi;
    if (rtt > trtt)
        return fair;
    return fair + min_of(bytes, (trtt - rtt) / rtt * bytes / cwnd * MTU * mi);
}

static void smartt_on_ack__follows_the_four_rules(void **state)
{
    (void)state;
    struct flow f = flow_bare();
    struct gw_prng prng = gw_prng_derive(7, 0);
    for (int i = 0; i < 20000; i++) {
        double cwnd = 3 * MTU + gw_prng_below(&prng, BDP);
        uint32_t bytes = 1 + gw_prng_below(&prng, MTU);
        gw_time rtt = BRTT / 2 + gw_prng_below(&prng, 3 * BRTT);
        bool ce = gw_prng_below(&prng, 2);
        set_cwnd(&f, cwnd);
        ack_sized(&f, bytes, rtt, ce, 0);
        double change = expected_change(cwnd, bytes, (double)rtt, ce);
        /* gamma and the gains are rounded to 1/65536. */
        double rounding = 0.001 + (change < 0 ? -change : change) * 1e-4;
        assert_true(is_close(cwnd_of(&f) - cwnd, change, rounding));
        assert_int_equal(f.window.cwnd, f.cc.cwnd >> 16);
        assert_int_equal(f.window.pace, 0);
    }
}

/* P1: at twice the target RTT an ACK costs exactly its packet, whatever little fair decrease adds.
 */
static void smartt_on_ack__cuts_one_packet_at_twice_the_target(void **state)
{
    (void)state;
    struct flow f = flow_bare();
    f.path.bdp = 1 << 30;
    start(&f);
    for (uint32_t bytes = 1; bytes <= MTU; bytes += 117) {
        set_cwnd(&f, 3 * MTU);
        ack_sized(&f, bytes, 2 * TRTT, true, 0);
        assert_true(f.cc.cwnd == (uint64_t)(3 * MTU - bytes) << 16);
    }
}

/* P2: on an empty path a window of ACKs adds one packet and the fair increase. */
static void smartt_on_ack__adds_one_packet_per_window_on_an_empty_path(void **state)
{
    (void)state;
    struct flow f = flow_bare();
    double before = 20 * MTU;
    set_cwnd(&f, before);
    for (int i = 0; i < 20; i++)
        ack(&f, BRTT, false);
    assert_true(cwnd_of(&f) - before <= MTU + MTU * 0.25);
    assert_true(cwnd_of(&f) - before >= 0.95 * (MTU + MTU * 0.25));
}

/* P6: rare marks never lower the window, frequent ones do. */
static void smartt_on_ack__waits_to_decrease(void **state)
{
    (void)state;
    struct flow f = flow_make();
    set(&f, "quick_adapt", "no");
    start(&f);
    set_cwnd(&f, BDP / 2.0);
    for (int i = 0; i < 2000; i++) {
        uint64_t before = f.cc.cwnd;
        /* One mark in eight: the average peaks at 0.125 / (1 - 0.875^8) = 0.19. */
        ack(&f, 2 * TRTT, i % 8 == 0);
        assert_true(f.cc.marked < 65536 / 4);
        assert_true(f.cc.cwnd >= before);
    }
    start(&f);
    set_cwnd(&f, BDP / 2.0);
    /* 0.125, 0.234, 0.330: the third mark in a row passes the threshold. */
    for (int i = 0; i < 3; i++) {
        uint64_t before = f.cc.cwnd;
        ack(&f, 2 * TRTT, true);
        assert_int_equal(f.cc.cwnd < before, i == 2);
    }
}

/* Figure 4: four packets in flight, two of them trimmed; after a target RTT the window is two. */
static void smartt_quick_adapt__halves_a_window_that_lost_half(void **state)
{
    (void)state;
    struct flow f = flow_make();
    set(&f, "qa_scaling", "1");
    set(&f, "cwnd_initial", "0.11"); /* 4.03 packets */
    start(&f);
    assert_int_equal(f.window.cwnd / MTU, 4);
    ack(&f, 2 * BRTT, true); /* opens the interval */
    f.now += TRTT / 4;
    ack(&f, 2 * BRTT, true);
    f.now += TRTT / 4;
    lose(&f, true, 4 * MTU);
    f.now += TRTT / 4;
    lose(&f, true, 3 * MTU);
    assert_int_equal(f.cc.qa.count, 0);
    f.now += TRTT / 4;
    ack_sized(&f, MTU, 2 * BRTT, true, 2 * MTU);
    assert_int_equal(f.cc.qa.count, 1);
    assert_int_equal(f.window.cwnd, 2 * MTU + 2 * HDR);
    assert_int_equal(f.cc.qa.ignore, 2 * MTU);
}

static void preset(struct flow *f, const char *name)
{
    assert_int_equal(gw_algo_preset(&smartt()->algo, &f->cfg, name), 0);
}

static struct flow flow_adapted(const char *name, uint32_t in_flight)
{
    struct flow f = flow_make();
    preset(&f, name);
    start(&f);
    lose(&f, true, 10 * MTU);
    f.now += f.cc.gains.trtt;
    ack_sized(&f, MTU, TRTT, false, in_flight);
    assert_int_equal(f.cc.qa.count, 1);
    return f;
}

/* While what was in flight at the time of QuickAdapt comes back, nothing moves the window. */
static void smartt_quick_adapt__ignores_what_was_in_flight(void **state)
{
    (void)state;
    struct flow f = flow_adapted("paper", 4 * MTU);
    uint64_t cwnd = f.cc.cwnd;
    f.now += 2 * TRTT;
    ack(&f, 3 * TRTT, true);
    lose(&f, true, 4 * MTU);
    lose(&f, false, 4 * MTU);
    assert_true(f.cc.cwnd == cwnd);
    assert_false(f.cc.qa.lossy);
    assert_int_equal(f.cc.qa.count, 1);
    assert_int_equal(f.cc.qa.ignore, MTU);
    /* The last of the four packets ends the phase; the interval has long ended too. */
    lose(&f, true, 4 * MTU);
    assert_int_equal(f.cc.qa.count, 2);
}

static void smartt_quick_adapt__reacts_to_losses_while_ignoring_as_printed(void **state)
{
    (void)state;
    struct flow f = flow_adapted("alg1", 4 * MTU);
    set_cwnd(&f, 20 * MTU);
    lose(&f, true, 4 * MTU);
    assert_true(f.cc.cwnd == (uint64_t)(19 * MTU) << 16);
    assert_true(f.cc.qa.lossy);
    assert_int_equal(f.cc.qa.acked, MTU);
}

/* Algorithm 1, line 14: FastIncrease sees the ACK that QuickAdapt takes, and adds nothing by it. */
static void smartt_quick_adapt__lets_fast_increase_measure(void **state)
{
    (void)state;
    for (int ce = 0; ce <= 1; ce++) {
        struct flow f = flow_make();
        start(&f);
        set_cwnd(&f, 4 * MTU);
        uint32_t acks = 0; /* of the interval: not the first, but the last */
        for (; !f.cc.fast; acks++)
            ack(&f, BRTT, false);
        lose(&f, true, 10 * MTU);
        f.now += TRTT;
        ack(&f, BRTT, ce);
        assert_int_equal(f.cc.qa.count, 1);
        assert_int_equal(f.cc.fast, !ce);
        assert_true(is_close(cwnd_of(&f), 0.8 * (acks * MTU + HDR), 1));
    }
}

/* The authors' rules: unmarked ACKs are heeded at once after QuickAdapt, but add no k packets. */
static void smartt_quick_adapt__ignores_marks_alone_in_drafts(void **state)
{
    (void)state;
    struct flow f = flow_adapted("drafts", 4 * MTU);
    assert_int_equal(f.cc.qa.ignore, 5 * MTU);
    uint64_t cwnd = f.cc.cwnd;
    ack(&f, 2 * TRTT, true);
    lose(&f, true, 4 * MTU);
    assert_true(f.cc.cwnd == cwnd);
    ack(&f, TRTT, false);
    assert_true(f.cc.cwnd > cwnd && f.cc.cwnd < cwnd + ((uint64_t)MTU << 16));
    f.cc.fast = true;
    cwnd = f.cc.cwnd;
    ack(&f, BRTT, false);
    assert_true(f.cc.cwnd == cwnd);
    ack(&f, BRTT, false); /* the fifth packet: the phase has ended */
    assert_true(f.cc.cwnd == cwnd + ((uint64_t)(32 * MTU) << 16));
    /* A loss costs half of its packet. */
    cwnd = f.cc.cwnd;
    lose(&f, true, 4 * MTU);
    assert_true(f.cc.cwnd == cwnd - ((uint64_t)MTU << 15));
}

/* FastIncrease hears of marks that QuickAdapt ignores, on request; of the others in either case. */
static void smartt_quick_adapt__lets_fast_increase_measure_all(void **state)
{
    (void)state;
    for (int all = 0; all <= 1; all++) {
        struct flow f = flow_adapted("paper", 4 * MTU);
        set(&f, "measure_all", all ? "yes" : "no");
        f.cc.fast = true;
        ack(&f, BRTT, true);
        assert_int_equal(f.cc.fast, !all);
        assert_int_equal(f.cc.marked > 0, all);
    }
}

/* The fair increase is a fifth of a small window, of one packet here. */
static void smartt_quick_adapt__caps_the_fair_increase_on_request(void **state)
{
    (void)state;
    struct flow f = flow_adapted("drafts", 0);
    assert_true(is_close((double)f.cc.gains.fi / 65536, 0.2 * MTU, 0.1));
}

/* FastIncrease: k packets per ACK after more than a window of calm bytes, until congestion. */
static void smartt_fast_increase__reclaims_an_empty_path(void **state)
{
    (void)state;
    const gw_time near = BRTT + 5 * gw_path_packet_time(&PATH);
    struct flow f = flow_make();
    start(&f);
    set_cwnd(&f, 4 * MTU);
    uint32_t acks = 0;
    while (!f.cc.fast) {
        ack(&f, near, false);
        acks++;
    }
    /* The window grew meanwhile by about 1.25 packets per window of ACKs. */
    assert_in_range(acks, 5, 7);
    double before = cwnd_of(&f);
    ack_sized(&f, 100, near, false, 0);
    assert_true(cwnd_of(&f) - before == 2 * MTU);

    before = cwnd_of(&f);
    ack(&f, near + 1, false);
    assert_false(f.cc.fast);
    assert_true(cwnd_of(&f) - before < MTU);
    assert_int_equal(f.cc.calm, 0);
    ack(&f, near, true);
    assert_int_equal(f.cc.calm, 0);
}

static void smartt_window__stays_within_its_bounds(void **state)
{
    (void)state;
    struct flow f = flow_make();
    set(&f, "fast_increase", "no");
    start(&f);
    assert_int_equal(f.window.cwnd, BDP * 5 / 4);
    for (int i = 0; i < 5000; i++)
        ack(&f, BRTT, false);
    assert_int_equal(f.window.cwnd, BDP * 5 / 4);
    for (int i = 0; i < 5000; i++)
        ack(&f, 9 * BRTT, true);
    assert_int_equal(f.window.cwnd, MTU);
    for (int i = 0; i < 5000; i++) {
        lose(&f, false, 0);
        f.now += GW_US;
        assert_true(f.window.cwnd >= MTU);
    }
}

/* The authors' threshold is the window as it was when the path was last congested. */
static void smartt_fast_increase__remembers_the_congested_window(void **state)
{
    (void)state;
    for (int remembers = 0; remembers <= 1; remembers++) {
        struct flow f = flow_make();
        set(&f, "fast_after", remembers ? "congested" : "window");
        set(&f, "react_every", "4096"); /* the window stays */
        start(&f);
        set_cwnd(&f, 4 * MTU);
        ack(&f, 2 * BRTT, true);
        set_cwnd(&f, 8 * MTU);
        for (int i = 1; i <= 9; i++) {
            ack(&f, BRTT, false);
            assert_int_equal(f.cc.fast, i > (remembers ? 4 : 8));
        }
    }
}

/* Section 3.5: with a smaller least window the flow is paced, and falls by halves. */
static void smartt_window__is_paced_below_a_packet_on_request(void **state)
{
    (void)state;
    struct flow f = flow_make();
    set(&f, "cwnd_min", "0.1");
    set(&f, "quick_adapt", "no");
    start(&f);
    set_cwnd(&f, MTU);
    lose(&f, true, 0);
    assert_int_equal(f.window.cwnd, MTU / 2);
    double gap = (double)gw_serialisation(f.window.pace, MTU + HDR);
    assert_true(is_close(gap, 2.0 * TRTT, 0.001 * TRTT));
    for (int i = 0; i < 20; i++)
        lose(&f, true, 0);
    assert_int_equal(f.window.cwnd, MTU / 10);
    /* An ACK adds what it would to a window of one packet. */
    ack(&f, 2 * TRTT, false);
    assert_true(is_close(cwnd_of(&f), MTU / 10.0 + MTU * 0.25, 2));
    set_cwnd(&f, MTU);
    ack(&f, 2 * TRTT, false);
    assert_int_equal(f.window.pace, 0);
}

/* A path whose bdp is below a packet still may send one. */
static void smartt_window__holds_a_packet_on_a_tiny_path(void **state)
{
    (void)state;
    struct flow f = flow_make();
    f.path.bdp = 100;
    start(&f);
    assert_int_equal(f.window.cwnd, MTU);
}

/* Section 3.5: at 800 Gb/s and 8.65 us the gains are 1.44 and 11.5. */
static void smartt_init__scales_the_gains_with_the_bdp(void **state)
{
    (void)state;
    struct flow f = flow_make();
    f.path.bdp = 865344;
    start(&f);
    assert_int_equal(f.cc.gains.fi * 100 / MTU >> 16, 144);
    assert_int_equal(f.cc.gains.mi * 100 / MTU >> 16, 1153);
    set(&f, "gain_scaling", "no");
    start(&f);
    assert_int_equal(f.cc.gains.fi, (uint64_t)MTU << 14);
    assert_int_equal(f.cc.gains.mi, (uint64_t)MTU << 17);
}

static void smartt_init__takes_the_target_from_the_flows_own_path(void **state)
{
    (void)state;
    struct flow f = flow_make();
    f.path.brtt_max = 2 * BRTT;
    start(&f);
    assert_int_equal(f.cc.gains.trtt, TRTT);
}

static void smartt_init__knows_the_authors_preset(void **state)
{
    (void)state;
    struct flow f = flow_make();
    preset(&f, "drafts");
    f.path.bdp = 865344;
    start(&f);
    assert_int_equal(f.window.cwnd, 865344);
    assert_int_equal(f.cc.gains.cwnd_max >> 16, 865344);
    assert_int_equal(f.cc.gains.fi, (uint64_t)MTU * 5 << 14);
    assert_int_equal(f.cc.gains.mi, (uint64_t)MTU * 5 << 16);
    assert_in_range(f.cc.gains.trtt, BRTT * 151 / 100 - GW_NS, BRTT * 151 / 100 + GW_NS);
}

/* Without trimming md is 4: at 4/3 of the target an ACK costs its whole packet. */
static void smartt_on_ack__is_stricter_without_trimming(void **state)
{
    (void)state;
    for (int trims = 0; trims <= 1; trims++) {
        struct flow f = flow_bare();
        f.path.bdp = 1 << 30;
        f.path.trims = trims;
        start(&f);
        set_cwnd(&f, 3 * MTU);
        ack(&f, TRTT * 4 / 3, true);
        double cut = 3 * MTU - cwnd_of(&f);
        assert_true(is_close(cut, trims ? MTU / 2 : MTU, 0.3));
    }
}

/* N7: one reaction per eight ACKs is eight times as large; the measurements go on. */
static void smartt_on_ack__reacts_every_nth_time(void **state)
{
    (void)state;
    struct flow every = flow_bare(), eighth = flow_bare();
    set(&eighth, "react_every", "8");
    set(&eighth, "quick_adapt", "yes");
    ack(&eighth, 2 * TRTT, false); /* opens the interval */
    eighth.cc.waited = 0;
    set_cwnd(&every, BDP / 2.0);
    set_cwnd(&eighth, BDP / 2.0);
    ack(&every, 2 * TRTT, false);
    double single = cwnd_of(&every) - BDP / 2.0;
    for (int i = 1; i <= 8; i++) {
        ack(&eighth, 2 * TRTT, false);
        assert_true(cwnd_of(&eighth) == BDP / 2.0 + (i == 8 ? 8 * single : 0));
    }
    assert_int_equal(eighth.cc.qa.acked, 8 * MTU);
}

/* With react_all QuickAdapt too is a reaction, and what it ignores takes turns as well. */
static void smartt_on_ack__may_adapt_every_nth_time_only(void **state)
{
    (void)state;
    for (int all = 0; all <= 1; all++) {
        struct flow f = flow_bare();
        set(&f, "quick_adapt", "yes");
        set(&f, "react_every", "8");
        set(&f, "react_all", all ? "yes" : "no");
        lose(&f, true, 0); /* opens the interval */
        f.now += TRTT;
        for (int i = 1; i <= 8; i++) {
            ack(&f, BRTT, false);
            assert_int_equal(f.cc.qa.count, !all || i == 8);
        }
    }
}

static void smartt_on_ack__obeys_a_single_signal(void **state)
{
    (void)state;
    struct flow f = flow_make();
    preset(&f, "ecn-only");
    start(&f);
    set_cwnd(&f, BDP / 2.0);
    ack(&f, 5 * TRTT, true);
    assert_true(cwnd_of(&f) == BDP / 2.0 - MTU / 2);
    set_cwnd(&f, BDP / 2.0);
    ack(&f, BRTT, false);
    double fair = MTU / (BDP / 2.0) * MTU * 0.25;
    assert_true(is_close(cwnd_of(&f) - BDP / 2.0, fair, 0.01));

    preset(&f, "rtt-only");
    start(&f);
    set_cwnd(&f, BDP / 2.0);
    ack(&f, 5 * TRTT, false);
    assert_true(cwnd_of(&f) == BDP / 2.0 - MTU / 2);
    set_cwnd(&f, BDP / 2.0);
    ack(&f, BRTT, true);
    double increase = expected_change(BDP / 2.0, MTU, BRTT, false);
    assert_true(is_close(cwnd_of(&f) - BDP / 2.0, increase, 0.05));
}

/* The paper needs 19 bytes per flow and 28 for all flows; smartt.c says why these are more. */
static void smartt_state__is_as_small_as_documented(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct gw_smartt, gains), 64);
    assert_int_equal(sizeof(struct gw_smartt_gains), 56);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smartt_on_ack__follows_the_four_rules),
        cmocka_unit_test(smartt_on_ack__cuts_one_packet_at_twice_the_target),
        cmocka_unit_test(smartt_on_ack__adds_one_packet_per_window_on_an_empty_path),
        cmocka_unit_test(smartt_on_ack__waits_to_decrease),
        cmocka_unit_test(smartt_quick_adapt__halves_a_window_that_lost_half),
        cmocka_unit_test(smartt_quick_adapt__ignores_what_was_in_flight),
        cmocka_unit_test(smartt_quick_adapt__reacts_to_losses_while_ignoring_as_printed),
        cmocka_unit_test(smartt_quick_adapt__lets_fast_increase_measure),
        cmocka_unit_test(smartt_quick_adapt__ignores_marks_alone_in_drafts),
        cmocka_unit_test(smartt_quick_adapt__lets_fast_increase_measure_all),
        cmocka_unit_test(smartt_quick_adapt__caps_the_fair_increase_on_request),
        cmocka_unit_test(smartt_fast_increase__remembers_the_congested_window),
        cmocka_unit_test(smartt_window__is_paced_below_a_packet_on_request),
        cmocka_unit_test(smartt_fast_increase__reclaims_an_empty_path),
        cmocka_unit_test(smartt_window__stays_within_its_bounds),
        cmocka_unit_test(smartt_window__holds_a_packet_on_a_tiny_path),
        cmocka_unit_test(smartt_init__scales_the_gains_with_the_bdp),
        cmocka_unit_test(smartt_init__takes_the_target_from_the_flows_own_path),
        cmocka_unit_test(smartt_init__knows_the_authors_preset),
        cmocka_unit_test(smartt_on_ack__is_stricter_without_trimming),
        cmocka_unit_test(smartt_on_ack__reacts_every_nth_time),
        cmocka_unit_test(smartt_on_ack__may_adapt_every_nth_time_only),
        cmocka_unit_test(smartt_on_ack__obeys_a_single_signal),
        cmocka_unit_test(smartt_state__is_as_small_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
