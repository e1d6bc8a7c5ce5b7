/* pFabric's loss detection: a timeout that stays as it is, and headers after several in a row. */
#include "support.h"

#include "core/loss/loss.h"

#define BRTT (100 * GW_US)

struct detector {
    const struct gw_loss_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LOSS_STATE_MAX / 8];
};

static struct detector detector_make(const char *preset, const char *name, const char *value)
{
    struct detector d = {.ops = (const void *)gw_registry_find(&gw_loss_registry, "pfabric")};
    const struct gw_path path = {.brtt = BRTT / 2, .brtt_max = BRTT, .mtu = 1460, .hdr = 40};
    gw_algo_defaults(&d.ops->algo, &d.cfg);
    if (preset)
        assert_int_equal(gw_algo_preset(&d.ops->algo, &d.cfg, preset), 0);
    if (name)
        assert_int_equal(gw_algo_set(&d.ops->algo, &d.cfg, name, value), 0);
    d.ops->init(d.state, &d.cfg, &path);
    return d;
}

static gw_time period(const struct detector *d)
{
    return d->ops->period(d->state, &d->cfg);
}

static enum gw_loss_verdict expire(struct detector *d)
{
    return d->ops->on_timeout(d->state, &d->cfg, GW_S, GW_S + period(d));
}

static void loss_pfabric_period__is_three_round_trips(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL, NULL, NULL);
    assert_int_equal(period(&d), 3 * BRTT);
    d = detector_make("dlcp", NULL, NULL);
    assert_int_equal(period(&d), 10 * GW_MS);
    d = detector_make("dlcp", "rto_min", "1ms");
    assert_int_equal(period(&d), GW_MS);
    d = detector_make(NULL, "rto", "1");
    assert_int_equal(period(&d), BRTT);
}

static void loss_pfabric_on_timeout__asks_after_five_in_a_row(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL, NULL, NULL);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(expire(&d), GW_LOSS_ALL);
    assert_false(d.ops->on_nack(d.state, &d.cfg));
    /* Something arrives: they are not in a row. */
    d.ops->on_ack(d.state, &d.cfg, GW_S, BRTT);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(expire(&d), GW_LOSS_ALL);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(expire(&d), GW_LOSS_ASK);
        assert_true(d.ops->on_nack(d.state, &d.cfg));
        assert_int_equal(period(&d), 3 * BRTT);
    }
    d.ops->on_ack(d.state, &d.cfg, GW_S, BRTT);
    assert_false(d.ops->on_nack(d.state, &d.cfg));
    assert_int_equal(expire(&d), GW_LOSS_ALL);
}

static void loss_pfabric_on_timeout__need_not_ask(void **state)
{
    (void)state;
    struct detector d = detector_make(NULL, "probe_after", "0");
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(expire(&d), GW_LOSS_ALL);
    assert_false(d.ops->on_nack(d.state, &d.cfg));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_pfabric_period__is_three_round_trips),
        cmocka_unit_test(loss_pfabric_on_timeout__asks_after_five_in_a_row),
        cmocka_unit_test(loss_pfabric_on_timeout__need_not_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
