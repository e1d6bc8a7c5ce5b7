/* QuickAdapt by direct calls: when the window is set, to what, and what is ignored afterwards. */
#include "cc_fixture.h"

#include "core/cc/quick_adapt.h"

enum {
    TEN = 10 * MTU, /* in flight */
};

#define INTERVAL       (18 * GW_US)
#define PACKETS(count) ((uint64_t)((count)*MTU) << 16)

static const struct gw_path PATH = {.brtt = BRTT, .mtu = MTU, .hdr = HDR};

/* The options of the paper, but for the scaling, so that windows are what was measured. */
static const struct gw_quick_adapt_cfg PAPER = {
    .qa_scaling = GW_Q16_ONE,
    .qa_ignore_length = GW_Q16_ONE,
    .quick_adapt = true,
};

struct owner {
    struct gw_quick_adapt qa;
    struct gw_quick_adapt_cfg cfg;
    gw_time now;
};

static struct owner owner_make(const struct gw_quick_adapt_cfg *cfg)
{
    struct owner o = {.cfg = *cfg, .now = GW_US};
    gw_quick_adapt_init(&o.qa, &o.cfg, BRTT, INTERVAL);
    return o;
}

static struct gw_quick_adapt_advice ack(struct owner *o, bool ce, uint32_t in_flight)
{
    struct gw_cc_ack ack = {.bytes = MTU, .in_flight = in_flight, .rtt = BRTT, .ce = ce};
    return gw_quick_adapt_on_ack(&o->qa, &o->cfg, &PATH, &ack, o->now);
}

static struct gw_quick_adapt_advice lose(struct owner *o, bool trimmed, uint32_t in_flight)
{
    struct gw_cc_loss loss = {.bytes = MTU, .in_flight = in_flight, .trimmed = trimmed};
    return gw_quick_adapt_on_loss(&o->qa, &o->cfg, &PATH, &loss, o->now);
}

/* An interval that begins with a trimmed packet, and ends with the ACK that sets the window. */
static void adapt(struct owner *o, uint32_t in_flight)
{
    lose(o, true, in_flight);
    o->now += o->qa.interval;
    uint32_t before = o->qa.count;
    ack(o, true, in_flight);
    assert_int_equal(o->qa.count, before + 1);
}

static void quick_adapt__sets_the_window_to_what_arrived(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    o.cfg.qa_scaling = GW_Q16_ONE / 2;
    assert_false(ack(&o, false, TEN).is_done);
    for (int i = 0; i < 6; i++) {
        o.now += INTERVAL / 8;
        struct gw_quick_adapt_advice advice = ack(&o, true, TEN);
        assert_false(advice.is_done);
        assert_true(advice.cwnd == 0);
    }
    assert_false(lose(&o, true, TEN).is_done);
    assert_false(lose(&o, false, TEN).is_done);
    o.now += INTERVAL / 4 - 1;
    assert_true(ack(&o, false, TEN).cwnd == 0);
    o.now += 1;
    struct gw_quick_adapt_advice advice = ack(&o, false, TEN);
    assert_true(advice.is_done);
    /* Eight packets and a trimmed header; the one that began the interval is not in it. */
    assert_true(advice.cwnd == (uint64_t)(8 * MTU + HDR) << 15);
    assert_int_equal(o.qa.count, 1);
}

/* A loss in the first interval waits for its end. */
static void quick_adapt__skips_what_began_before_the_first_interval(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    o.now = (gw_time)0 - INTERVAL / 2; /* the interval lies across the wrap of time */
    assert_true(lose(&o, true, TEN).cwnd == 0);
    o.now += INTERVAL - 1;
    assert_true(ack(&o, false, TEN).cwnd == 0);
    o.now += 1;
    assert_true(ack(&o, false, TEN).cwnd == PACKETS(2));
}

static void quick_adapt__needs_a_loss_and_to_be_on(void **state)
{
    (void)state;
    for (int on = 0; on <= 1; on++) {
        struct owner o = owner_make(&PAPER);
        o.cfg.quick_adapt = on;
        for (int i = 0; i < 50; i++) {
            struct gw_quick_adapt_advice advice = ack(&o, i % 2, TEN);
            assert_true(advice.cwnd == 0 && !advice.is_done);
            if (!on)
                assert_false(lose(&o, true, TEN).is_done);
            o.now += INTERVAL;
        }
        assert_int_equal(o.qa.count, 0);
    }
}

static void quick_adapt__leaves_at_least_a_packet(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    lose(&o, true, TEN);
    o.now += INTERVAL;
    assert_true(lose(&o, true, TEN).cwnd == PACKETS(1));
}

/* Three packets were in flight: two are ignored, the third is the first of the new time. */
static void quick_adapt__ignores_what_was_in_flight(void **state)
{
    static const struct {
        uint32_t ignores;
        bool clean, marked, lost;
    } cases[] = {
        {GW_QUICK_ADAPT_IGNORES_ALL, true, true, true},
        {GW_QUICK_ADAPT_IGNORES_MARKED, false, true, true},
        {GW_QUICK_ADAPT_IGNORES_LOSSES, false, false, true},
        {GW_QUICK_ADAPT_IGNORES_ACKS, true, true, false},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct owner o = owner_make(&PAPER);
        o.cfg.qa_ignores = cases[i].ignores;
        adapt(&o, 4 * MTU);
        o.now += 3 * INTERVAL;
        assert_int_equal(ack(&o, false, TEN).is_done, cases[i].clean);
        assert_int_equal(ack(&o, true, TEN).is_done, cases[i].marked);
        assert_int_equal(lose(&o, true, TEN).is_done, cases[i].lost);
        assert_int_equal(o.qa.lossy, !cases[i].lost);
        assert_int_equal(o.qa.count, 1);
        assert_int_equal(o.qa.ignore, MTU);
        assert_true(lose(&o, true, TEN).cwnd > 0);
    }
}

static void quick_adapt__ignores_as_much_as_asked(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    o.cfg.qa_ignore_length = GW_Q16_ONE * 5 / 4;
    adapt(&o, 4 * MTU);
    assert_int_equal(o.qa.ignore, 5 * MTU);
    o = owner_make(&PAPER);
    o.cfg.qa_ignore_length = 0;
    adapt(&o, 4 * MTU);
    assert_false(ack(&o, true, TEN).is_done);
}

static void quick_adapt__credits_as_asked(void **state)
{
    static const struct {
        uint32_t credit, trimmed, timed_out;
    } cases[] = {{GW_QUICK_ADAPT_CREDITS_HEADER, HDR, 0},
                 {GW_QUICK_ADAPT_CREDITS_NOTHING, 0, 0},
                 {GW_QUICK_ADAPT_CREDITS_PACKET, MTU, MTU}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct owner o = owner_make(&PAPER);
        o.cfg.qa_credit = cases[i].credit;
        ack(&o, false, TEN);
        assert_int_equal(o.qa.acked, 0);
        lose(&o, true, TEN);
        assert_int_equal(o.qa.acked, cases[i].trimmed);
        lose(&o, false, TEN);
        assert_int_equal(o.qa.acked, cases[i].trimmed + cases[i].timed_out);
        ack(&o, false, TEN);
        assert_int_equal(o.qa.acked, cases[i].trimmed + cases[i].timed_out + MTU);
    }
}

/* After a silence of four intervals the same bytes mean a quarter of the rate. */
static void quick_adapt__normalises_on_request(void **state)
{
    (void)state;
    for (int normalise = 0; normalise <= 1; normalise++) {
        struct owner o = owner_make(&PAPER);
        o.cfg.qa_normalise = normalise;
        lose(&o, true, TEN);
        for (int i = 0; i < 7; i++)
            ack(&o, true, TEN);
        o.now += 4 * INTERVAL;
        assert_true(ack(&o, true, TEN).cwnd == (normalise ? PACKETS(2) : PACKETS(8)));
    }
}

static void quick_adapt__measures_the_interval_that_is_asked_for(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    assert_int_equal(o.qa.interval, INTERVAL);
    o.cfg.qa_interval = 2 * GW_Q16_ONE;
    gw_quick_adapt_init(&o.qa, &o.cfg, BRTT, INTERVAL);
    lose(&o, true, TEN);
    o.now += 2 * BRTT - 1;
    assert_true(lose(&o, true, TEN).cwnd == 0);
    o.now += 1;
    assert_true(lose(&o, true, TEN).cwnd > 0);
}

/* Losses in the gap are not remembered either. */
static void quick_adapt__rests_for_the_gap(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    o.cfg.qa_gap = 3 * GW_Q16_ONE;
    adapt(&o, 0);
    o.now += 3 * INTERVAL - 1;
    assert_false(lose(&o, true, 0).is_done);
    assert_false(o.qa.lossy);
    o.now += 1;
    lose(&o, true, 0);
    assert_true(o.qa.lossy);
    o.now += INTERVAL;
    assert_true(ack(&o, false, 0).cwnd > 0);
}

/* As for Swift: ACKs count, but only a loss begins or ends an interval. */
static void quick_adapt__can_leave_intervals_to_losses(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    o.cfg.qa_on = GW_QUICK_ADAPT_ON_LOSSES;
    ack(&o, false, TEN);
    assert_false(o.qa.started);
    lose(&o, true, TEN);
    assert_true(o.qa.started);
    o.now += INTERVAL;
    assert_true(ack(&o, true, TEN).cwnd == 0);
    assert_true(ack(&o, true, TEN).cwnd == 0);
    assert_true(lose(&o, false, TEN).cwnd == PACKETS(2));
}

/* The authors' order: what ends an interval reads its bytes before an ACK at hand is added. */
static void quick_adapt__can_count_the_last_ack_in_the_next_interval(void **state)
{
    (void)state;
    for (int late = 0; late <= 1; late++) {
        struct owner o = owner_make(&PAPER);
        o.cfg.qa_late = late;
        ack(&o, false, TEN); /* begins the interval */
        lose(&o, true, TEN);
        for (int i = 0; i < 3; i++)
            ack(&o, false, TEN);
        o.now += INTERVAL;
        assert_true(ack(&o, false, 0).cwnd == PACKETS(4) + (HDR << 16));
        assert_int_equal(o.qa.acked, late ? MTU : 0);
        lose(&o, true, TEN);
        for (int i = 0; i < 3; i++)
            ack(&o, false, TEN);
        o.now += INTERVAL;
        assert_true(lose(&o, true, 0).cwnd == PACKETS(late ? 4 : 3) + (2 * HDR << 16));
    }
}

/* An ACK to which its owner does not react counts, also for the phase, but ends no interval. */
static void quick_adapt_count__ends_no_interval(void **state)
{
    (void)state;
    struct owner o = owner_make(&PAPER);
    const struct gw_cc_ack counted = {.bytes = MTU, .rtt = BRTT};
    assert_false(gw_quick_adapt_count(&o.qa, &o.cfg, &counted, o.now).is_done);
    assert_false(o.qa.started);
    lose(&o, true, TEN);
    o.now += INTERVAL;
    assert_false(gw_quick_adapt_count(&o.qa, &o.cfg, &counted, o.now).is_done);
    assert_int_equal(o.qa.count, 0);
    assert_true(ack(&o, false, 2 * MTU).cwnd == PACKETS(2));
    assert_true(gw_quick_adapt_count(&o.qa, &o.cfg, &counted, o.now).is_done);
    assert_false(gw_quick_adapt_count(&o.qa, &o.cfg, &counted, o.now).is_done);
}

static bool has_quick_adapt(const struct gw_algo *algo)
{
    union gw_algo_cfg cfg;
    gw_algo_defaults(algo, &cfg);
    return gw_algo_set(algo, &cfg, "qa_interval", "1.5") == 0;
}

/* What would change any window: a packet sent within the last RTT was marked, came late, or was
 * lost. Returns by how much it did. */
static int64_t provoke(struct flow *f, int kind)
{
    if (kind % 3 < 2)
        return flow_ack(f, kind % 3 ? 9 * BRTT : BRTT / 2, true);
    const struct gw_cc_loss loss = {
        .bytes = MTU, .in_flight = TEN, .sent_at = f->now - BRTT / 2, .trimmed = true};
    uint64_t before = f->window.cwnd;
    f->ops->on_loss(f->state, &f->cfg, &f->path, &loss, &f->window, f->now);
    return (int64_t)(f->window.cwnd - before);
}

/* Section 1 of the paper: it can be retrofitted. In each algorithm that has it, it sets the window
 * where the algorithm's own rules would not, and holds it for the phase. */
static void quick_adapt__works_in_every_owner(void **state)
{
    (void)state;
    uint32_t owners = 0;
    for (uint32_t i = 0; i < 2 * gw_cc_registry.count; i++) {
        const struct gw_algo *algo = gw_cc_registry.algos[i / 2];
        bool is_on = i % 2;
        if (!has_quick_adapt(algo))
            continue;
        struct flow f = flow_make(algo->name);
        flow_set(&f, "quick_adapt", is_on ? "yes" : "no");
        flow_set(&f, "qa_scaling", "1");
        f.path.window = BDP; /* of an earlier flow, for those that begin with little */
        flow_start(&f);
        flow_lose(&f, true, TEN);
        for (int k = 0; k < 5; k++) {
            f.now += INTERVAL / 5;
            flow_ack(&f, 2 * BRTT, true);
        }
        flow_lose(&f, true, TEN);
        bool is_measured = f.window.cwnd == 5 * MTU;
        assert_int_equal(is_measured, is_on);
        owners += is_on;
        for (int k = 0; k < 8 && is_on; k++) {
            f.now += BRTT;
            assert_int_equal(provoke(&f, k), 0);
        }
    }
    assert_int_equal(owners, 4);
}

/* ---- Silence, where switches drop. ---- */

static struct gw_cc_window silence_of(const struct owner *o)
{
    struct gw_cc_window window = {0};
    gw_quick_adapt_say_silence(&o->qa, &o->cfg, &window);
    return window;
}

/* One that began at o.now. */
static struct owner silent_make(gw_time start)
{
    struct owner o = owner_make(&PAPER);
    o.cfg.qa_silence = true;
    o.now = start;
    gw_quick_adapt_start(&o.qa, o.now);
    return o;
}

/* Intervals lie one behind the other from the start, also when nothing is heard for some of them;
 * no ACK ends one, and the window is what arrived in the one that the loss was in. */
static void quick_adapt_silence__lasts_to_the_end_of_the_interval(void **state)
{
    (void)state;
    for (uint64_t skipped = 0; skipped < 4; skipped++) {
        const gw_time start = (gw_time)0 - 2 * INTERVAL; /* time wraps */
        struct owner o = silent_make(start);
        ack(&o, false, TEN);
        o.now = start + skipped * INTERVAL + 5;
        for (int i = 0; i < 3; i++)
            ack(&o, true, TEN);
        assert_false(silence_of(&o).is_silent);
        o.now = start + (skipped + 1) * INTERVAL - 7;
        struct gw_quick_adapt_advice advice = lose(&o, false, TEN);
        assert_true(advice.is_done && advice.cwnd == 0);
        assert_true(silence_of(&o).is_silent);
        assert_true(silence_of(&o).silent_until == start + (skipped + 1) * INTERVAL);
        assert_true(ack(&o, false, TEN).cwnd == 0);
        o.now = silence_of(&o).silent_until;
        ack(&o, false, TEN); /* just before the timer */
        assert_true(silence_of(&o).silent_until == o.now);
        uint64_t cwnd = gw_quick_adapt_on_silence_end(&o.qa, &o.cfg, &PATH, TEN, o.now);
        assert_true(cwnd == PACKETS(5 + (skipped == 0)));
        assert_false(silence_of(&o).is_silent);
    }
}

/* What was in flight and what the new window adds is ignored; then losses are heeded again. */
static void quick_adapt_silence__ignores_the_new_window_too(void **state)
{
    (void)state;
    struct owner o = silent_make(GW_US);
    for (int i = 0; i < 4; i++)
        ack(&o, false, TEN);
    lose(&o, false, TEN);
    o.now += INTERVAL;
    gw_quick_adapt_on_silence_end(&o.qa, &o.cfg, &PATH, TEN, o.now);
    for (int i = 0; i < 13; i++) {
        assert_true(ack(&o, i % 2, TEN).is_done);
        o.now += i == 6 ? INTERVAL : 0;
    }
    assert_true(lose(&o, false, TEN).is_done); /* the last of fourteen */
    assert_int_equal(silence_of(&o).is_silent, true);
}

/* One that was sent again and lost again asks for nothing. */
static void quick_adapt_silence__begins_with_first_losses_alone(void **state)
{
    (void)state;
    struct owner o = silent_make(GW_US);
    const struct gw_cc_loss again = {.bytes = MTU, .in_flight = TEN, .is_again = true};
    assert_true(gw_quick_adapt_on_loss(&o.qa, &o.cfg, &PATH, &again, o.now).is_done);
    assert_false(silence_of(&o).is_silent);
    assert_true(lose(&o, false, TEN).is_done);
    assert_true(silence_of(&o).is_silent);
}

/* Where losses count in the phase that ignores ACKs, silence ends although that phase lasts:
 * nothing that is not sent can end it. */
static void quick_adapt_silence__ends_in_any_phase(void **state)
{
    (void)state;
    struct owner o = silent_make(GW_US);
    o.cfg.qa_ignores = GW_QUICK_ADAPT_IGNORES_ACKS;
    for (int i = 0; i < 4; i++) {
        lose(&o, false, TEN); /* the first sets the phase, the others are in it */
        assert_true(silence_of(&o).is_silent);
        o.now = silence_of(&o).silent_until;
        assert_true(gw_quick_adapt_on_silence_end(&o.qa, &o.cfg, &PATH, TEN, o.now) > 0);
        assert_false(silence_of(&o).is_silent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_adapt__sets_the_window_to_what_arrived),
        cmocka_unit_test(quick_adapt__skips_what_began_before_the_first_interval),
        cmocka_unit_test(quick_adapt__needs_a_loss_and_to_be_on),
        cmocka_unit_test(quick_adapt__leaves_at_least_a_packet),
        cmocka_unit_test(quick_adapt__ignores_what_was_in_flight),
        cmocka_unit_test(quick_adapt__ignores_as_much_as_asked),
        cmocka_unit_test(quick_adapt__credits_as_asked),
        cmocka_unit_test(quick_adapt__normalises_on_request),
        cmocka_unit_test(quick_adapt__measures_the_interval_that_is_asked_for),
        cmocka_unit_test(quick_adapt__rests_for_the_gap),
        cmocka_unit_test(quick_adapt__can_leave_intervals_to_losses),
        cmocka_unit_test(quick_adapt__can_count_the_last_ack_in_the_next_interval),
        cmocka_unit_test(quick_adapt_count__ends_no_interval),
        cmocka_unit_test(quick_adapt__works_in_every_owner),
        cmocka_unit_test(quick_adapt_silence__lasts_to_the_end_of_the_interval),
        cmocka_unit_test(quick_adapt_silence__ignores_the_new_window_too),
        cmocka_unit_test(quick_adapt_silence__begins_with_first_losses_alone),
        cmocka_unit_test(quick_adapt_silence__ends_in_any_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
