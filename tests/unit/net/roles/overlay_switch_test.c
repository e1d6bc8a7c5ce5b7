/* The switch of the overlay: how long it waits for announced bursts. */
#include "pool_fixture.h"
#include "support.h"

#include "core/algo.h"
#include "net/roles/overlay_switch.h"

enum {
    PKTS = 16,
};

struct fixture {
    struct gw_pkt_pool pool;
    struct gw_loop *loop;
    struct gw_overlay_switch *sw;
};

#define QUEUE_TIME (10 * GW_MS) /* of a full one */

static void fixture_open(struct fixture *f, gw_time hold)
{
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->loop = gw_loop_open(&(struct gw_loop_cfg){.pool = &f->pool, .peers_max = 1});
    assert_non_null(f->loop);
    const struct gw_overlay_switch_cfg cfg = {
        .loop = f->loop,
        .pool = &f->pool,
        .address = 1,
        .ports = 4,
        .hdr = 80,
        .mtu = 1408,
        .qdisc = (const struct gw_qdisc_ops *)gw_registry_find(&gw_qdisc_registry, "red"),
        .queue_bytes = 250000,
        .rate_bps = 200000000,
        .notices = {.enable = true,
                    .floor = 5,
                    .hold = hold,
                    .share = GW_Q16_ONE / 4,
                    .jobs = 16,
                    .announcements = 4096},
    };
    assert_int_equal(gw_overlay_switch_open(&cfg, &f->sw), 0);
}

static void fixture_close(struct fixture *f)
{
    gw_loop_close(f->loop);
    gw_overlay_switch_close(f->sw);
    gw_test_pool_close(&f->pool);
}

/* What neighbours say of their round trips counts up to a limit: each may say what he likes. What
 * is announced to a full queue comes later by as much. */
static void overlay_switch_hold__follows_measured_round_trips(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, 0);
    assert_int_equal(gw_overlay_switch_hold(f.sw), 4 * (gw_overlay_brtt(0) + QUEUE_TIME));
    gw_overlay_switch_set_rtt(f.sw, 30 * GW_MS);
    assert_int_equal(gw_overlay_switch_hold(f.sw), 4 * (30 * GW_MS + QUEUE_TIME));
    gw_overlay_switch_set_rtt(f.sw, GW_OVERLAY_BRTT_MAX);
    assert_int_equal(gw_overlay_switch_hold(f.sw), 4 * (GW_OVERLAY_HOLD_RTT_MAX + QUEUE_TIME));
    assert_true(4 * GW_OVERLAY_HOLD_RTT_MAX <= 400 * GW_MS);
    gw_overlay_switch_set_rtt(f.sw, 2 * GW_MS);
    assert_int_equal(gw_overlay_switch_hold(f.sw), 4 * (2 * GW_MS + QUEUE_TIME));
    fixture_close(&f);
}

static void overlay_switch_hold__is_as_the_config_says(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, 2 * GW_S);
    gw_overlay_switch_set_rtt(f.sw, 30 * GW_MS);
    assert_int_equal(gw_overlay_switch_hold(f.sw), 2 * GW_S);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_switch_hold__follows_measured_round_trips),
        cmocka_unit_test(overlay_switch_hold__is_as_the_config_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
