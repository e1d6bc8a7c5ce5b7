/* TCP's loss detection: three later arrivals, probes, and timeouts from measured round trips. */
#include "support.h"

#include "core/loss/loss.h"

#define BRTT (100 * GW_US)

struct detector {
    const struct gw_loss_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LOSS_STATE_MAX / 8];
};

/* With settings "name=value" up to NULL. */
static struct detector detector_make(const char *const (*settings)[2])
{
    struct detector d = {.ops = (const void *)gw_registry_find(&gw_loss_registry, "sack")};
    const struct gw_path path = {.brtt = BRTT, .brtt_max = 2 * BRTT, .mtu = 1460, .hdr = 54};
    gw_algo_defaults(&d.ops->algo, &d.cfg);
    for (; settings && (*settings)[0]; settings++)
        assert_int_equal(gw_algo_set(&d.ops->algo, &d.cfg, (*settings)[0], (*settings)[1]), 0);
    d.ops->init(d.state, &d.cfg, &path);
    return d;
}

static gw_time period(const struct detector *d)
{
    return d->ops->period(d->state, &d->cfg);
}

static gw_time arrive(struct detector *d, gw_time sent_at)
{
    return d->ops->on_delivery(d->state, &d->cfg, sent_at);
}

static enum gw_loss_verdict expire(struct detector *d, gw_time now)
{
    return d->ops->on_timeout(d->state, &d->cfg, now - period(d), now);
}

/* RFC 6675: exactly what was sent before three that have arrived, in whatever order these came. */
static void sack_on_delivery__counts_later_arrivals(void **state)
{
    static const gw_time orders[][4] = {
        {10, 20, 30, 40}, {40, 30, 20, 10}, {20, 40, 10, 30}, {30, 10, 40, 20}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(orders); i++) {
        struct detector d = detector_make(NULL);
        assert_true(arrive(&d, orders[i][0]) == GW_TIME_NEVER);
        assert_true(arrive(&d, orders[i][1]) == GW_TIME_NEVER);
        assert_true(arrive(&d, orders[i][2]) != GW_TIME_NEVER);
        assert_true(arrive(&d, orders[i][3]) == 20);
        assert_true(arrive(&d, 5) == 20); /* what is older changes nothing */
        assert_true(arrive(&d, 35) == 30);
        assert_true(arrive(&d, 50) == 35);
    }
}

static void sack_on_delivery__has_a_threshold(void **state)
{
    static const char *const texts[] = {"0", "1", "2", "8", "9", "1000"};
    static const uint32_t thresholds[] = {1, 1, 2, 8, 8, 8};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(texts); i++) {
        const char *const settings[][2] = {{"dup_thresh", texts[i]}, {NULL, NULL}};
        struct detector d = detector_make(settings);
        for (gw_time sent = 1; sent < thresholds[i]; sent++)
            assert_true(arrive(&d, sent) == GW_TIME_NEVER);
        for (gw_time sent = thresholds[i]; sent < 50; sent++)
            assert_true(arrive(&d, sent) == sent - thresholds[i] + 1);
    }
}

static void sack_on_delivery__works_across_the_wrap_of_time(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL);
    const gw_time begin = (gw_time)0 - 25;
    for (gw_time i = 0; i < 6; i++) {
        gw_time lost_before = arrive(&d, begin + 10 * i);
        assert_true(lost_before == (i < 2 ? GW_TIME_NEVER : begin + 10 * (i - 2)));
    }
}

/* RFC 6298: SRTT + 4 RTTVAR, with gains of an eighth and a quarter, and no less than rto_min. */
static void sack_period__follows_the_estimate(void **state)
{
    static const char *const settings[][2] = {{"rto_min", "0"}, {"probe", "0"}, {NULL, NULL}};
    static const gw_time samples[] = {100, 100, 300, 50, 1000, 80, 80, 80};
    (void)state;
    struct detector d = detector_make(settings);
    assert_true(period(&d) == 3 * BRTT); /* R + 4 * R / 2 */
    double srtt = (double)BRTT, rttvar = (double)BRTT / 2;
    for (size_t i = 0; i < GW_COUNT_OF(samples); i++) {
        double rtt = (double)(samples[i] * GW_US);
        rttvar = 0.75 * rttvar + 0.25 * (srtt > rtt ? srtt - rtt : rtt - srtt);
        srtt = 0.875 * srtt + 0.125 * rtt;
        d.ops->on_ack(d.state, &d.cfg, GW_S, samples[i] * GW_US);
        double expected = srtt + 4 * rttvar;
        assert_in_range(period(&d), (gw_time)expected - 100, (gw_time)expected + 100);
    }
    for (int i = 0; i < 200; i++)
        d.ops->on_ack(d.state, &d.cfg, GW_S, BRTT);
    assert_in_range(period(&d), BRTT - GW_NS, BRTT + GW_NS);
}

static void sack_period__has_a_minimum_and_a_beginning(void **state)
{
    static const char *const first[][2] = {
        {"rto_initial", "1s"}, {"rto_min", "5ms"}, {"probe", "0"}, {NULL, NULL}};
    (void)state;
    struct detector d = detector_make(NULL);
    assert_true(period(&d) == 2 * BRTT); /* the probe */
    assert_int_equal(expire(&d, GW_S), GW_LOSS_PROBE);
    assert_true(period(&d) == 10 * GW_MS);
    struct detector slow = detector_make(first);
    assert_true(period(&slow) == GW_S);
    slow.ops->on_ack(slow.state, &slow.cfg, 0, BRTT);
    assert_true(period(&slow) == 5 * GW_MS);
}

/* One probe, then timeouts that double; what was sent before does not end that, what came after
 * does. */
static void sack_on_timeout__probes_then_backs_off(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL);
    gw_time now = GW_S;
    assert_int_equal(expire(&d, now), GW_LOSS_PROBE);
    for (unsigned step = 0; step < 10; step++) {
        assert_true(period(&d) == (10 * GW_MS) << (step < 6 ? step : 6));
        now += period(&d);
        assert_int_equal(expire(&d, now), GW_LOSS_ALL);
    }
    arrive(&d, now - 1);
    assert_true(period(&d) == (10 * GW_MS) << 6);
    arrive(&d, now);
    assert_true(period(&d) == 2 * BRTT);
}

/* The answer to a probe tells that all that was sent before it and is unanswered is lost. */
static void sack_on_delivery__takes_a_probes_answer_for_news(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL);
    arrive(&d, GW_S - 10);
    assert_int_equal(expire(&d, GW_S), GW_LOSS_PROBE);
    assert_true(arrive(&d, GW_S - 5) == GW_TIME_NEVER); /* late, and no answer to it */
    assert_true(arrive(&d, GW_S) == GW_S);
    assert_true(arrive(&d, GW_S + 10) == GW_S - 5); /* that was once; the count is as ever */
    /* After a timeout there is nothing left that an answer could tell of. */
    struct detector late = detector_make(NULL);
    expire(&late, GW_S);
    expire(&late, 2 * GW_S);
    assert_true(arrive(&late, 2 * GW_S) == GW_TIME_NEVER);
}

/* While losses are repaired the timer is the timeout's (RFC 8985, section 7.2). */
static void sack_on_loss__suspends_probes(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL);
    d.ops->on_loss(d.state, &d.cfg, GW_S);
    assert_true(period(&d) == 10 * GW_MS);
    arrive(&d, GW_S - 1);
    assert_true(period(&d) == 10 * GW_MS);
    arrive(&d, GW_S);
    assert_true(period(&d) == 2 * BRTT);
    d.ops->on_loss(d.state, &d.cfg, 2 * GW_S);
    assert_int_equal(expire(&d, 3 * GW_S), GW_LOSS_ALL);
}

/* TCP has none. */
static void sack_on_nack__is_believed_on_demand(void **state)
{
    static const char *const settings[][2] = {{"nacks", "yes"}, {NULL}};
    (void)state;
    struct detector tcp = detector_make(NULL), d = detector_make(settings);
    assert_false(tcp.ops->on_nack(tcp.state, &tcp.cfg));
    assert_true(d.ops->on_nack(d.state, &d.cfg));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sack_on_delivery__counts_later_arrivals),
        cmocka_unit_test(sack_on_delivery__has_a_threshold),
        cmocka_unit_test(sack_on_delivery__works_across_the_wrap_of_time),
        cmocka_unit_test(sack_period__follows_the_estimate),
        cmocka_unit_test(sack_period__has_a_minimum_and_a_beginning),
        cmocka_unit_test(sack_on_timeout__probes_then_backs_off),
        cmocka_unit_test(sack_on_delivery__takes_a_probes_answer_for_news),
        cmocka_unit_test(sack_on_loss__suspends_probes),
        cmocka_unit_test(sack_on_nack__is_believed_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
