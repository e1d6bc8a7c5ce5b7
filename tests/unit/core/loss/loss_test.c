/* Loss detectors: whom they believe, how long they wait, and how they back off. */
#include "support.h"

#include "core/loss/loss.h"

#define BRTT (12 * GW_US)

struct detector {
    const struct gw_loss_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LOSS_STATE_MAX / 8];
};

static struct detector detector_preset(const char *name, const char *preset, uint16_t hops)
{
    struct detector d = {.ops = (const void *)gw_registry_find(&gw_loss_registry, name)};
    const struct gw_path path = {.brtt = BRTT / 3,
                                 .brtt_max = BRTT,
                                 .rate_bps = UINT64_C(100000000000),
                                 .bdp = 150000,
                                 .mtu = 4096,
                                 .hdr = 64,
                                 .hops = hops};
    gw_algo_defaults(&d.ops->algo, &d.cfg);
    assert_int_equal(gw_algo_preset(&d.ops->algo, &d.cfg, preset), 0);
    d.ops->init(d.state, &d.cfg, &path);
    return d;
}

static struct detector detector_make(const char *name, uint16_t hops)
{
    return detector_preset(name, "paper", hops);
}

static gw_time period(const struct detector *d)
{
    return d->ops->period(d->state, &d->cfg);
}

static void expire(struct detector *d, gw_time sent_at, gw_time now)
{
    d->ops->on_timeout(d->state, &d->cfg, sent_at, now);
}

static void loss_on_nack__is_believed_where_switches_trim(void **state)
{
    (void)state;
    struct detector trim = detector_make("trim", 6), timeout = detector_make("timeout", 6);
    assert_true(trim.ops->on_nack(trim.state, &trim.cfg));
    assert_false(timeout.ops->on_nack(timeout.state, &timeout.cfg));
}

/* Full queues of one bdp at all H - 1 switches make an RTT of H base RTTs: it must not expire. */
static void loss_period__outlasts_full_queues(void **state)
{
    (void)state;
    for (uint16_t hops = 1; hops <= 6; hops++) {
        struct detector trim = detector_make("trim", hops);
        assert_true(period(&trim) > hops * BRTT);
        assert_true(period(&trim) < (hops + 1) * BRTT);
    }
    struct detector timeout = detector_make("timeout", 6);
    assert_in_range(period(&timeout), BRTT * 22 / 10 - GW_NS, BRTT * 22 / 10);
}

/* Packets that were sent before the first timeout are lost at the same age as the first. */
static void loss_on_timeout__spares_the_rest_of_a_burst(void **state)
{
    (void)state;
    struct detector d = detector_make("timeout", 6);
    gw_time base = period(&d), start = GW_S;
    for (gw_time sent = start; sent < start + base; sent += GW_US) {
        expire(&d, sent, sent + base);
        assert_int_equal(period(&d), base);
    }
}

static void loss_on_timeout__doubles_for_what_was_sent_after_it(void **state)
{
    (void)state;
    struct detector d = detector_make("timeout", 6);
    gw_time base = period(&d), now = GW_S;
    expire(&d, now - base, now);
    for (unsigned step = 1; step <= 10; step++) {
        gw_time sent = now;
        now += period(&d);
        expire(&d, sent, now);
        assert_int_equal(period(&d), base << (step < 6 ? step : 6));
    }
    /* An ACK of something older proves nothing; one of something younger ends the episode. */
    d.ops->on_ack(d.state, &d.cfg, now - 1, BRTT);
    assert_int_equal(period(&d), base << 6);
    d.ops->on_ack(d.state, &d.cfg, now, BRTT);
    assert_int_equal(period(&d), base);
    expire(&d, now, now + base);
    assert_int_equal(period(&d), base);
}

/* As the authors of SMaRTT-REPS ran it: 2.1 base RTTs, however often that was too short. */
static void loss_on_timeout__leaves_a_fixed_period(void **state)
{
    (void)state;
    struct detector d = detector_preset("timeout", "drafts", 6);
    gw_time base = period(&d), now = GW_S;
    assert_in_range(base, BRTT * 21 / 10 - GW_NS, BRTT * 21 / 10 + GW_NS);
    for (unsigned step = 1; step <= 10; step++) {
        gw_time sent = now;
        now += base;
        expire(&d, sent, now);
        assert_int_equal(period(&d), base);
    }
    struct detector trim = detector_preset("trim", "drafts", 6);
    assert_in_range(period(&trim), 89999 * BRTT, 90000 * BRTT);
}

static void loss_on_timeout__works_across_the_wrap_of_time(void **state)
{
    (void)state;
    struct detector d = detector_make("trim", 2);
    gw_time base = period(&d), now = (gw_time)0 - base / 2;
    expire(&d, now - base, now);
    expire(&d, now + 1, now + 1 + base); /* beyond the wrap */
    assert_int_equal(period(&d), 2 * base);
    d.ops->on_ack(d.state, &d.cfg, now + 1 + base, BRTT);
    assert_int_equal(period(&d), base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_on_nack__is_believed_where_switches_trim),
        cmocka_unit_test(loss_period__outlasts_full_queues),
        cmocka_unit_test(loss_on_timeout__spares_the_rest_of_a_burst),
        cmocka_unit_test(loss_on_timeout__doubles_for_what_was_sent_after_it),
        cmocka_unit_test(loss_on_timeout__leaves_a_fixed_period),
        cmocka_unit_test(loss_on_timeout__works_across_the_wrap_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
