/* When a receiver pauses a link, and what an endpoint does that is paused or pauses. */
#include "unit/core/host/endpoint_fixture.h"

#include "core/pause.h"

enum {
    SENT_MAX = 64,
};

static const gw_time pause_time = 100 * GW_US;

static void pause_meter__has_hysteresis(void **state)
{
    (void)state;
    static const struct gw_pause_cfg cfg = {.xoff = 1000, .xon = 400, .time = 800};
    static const struct {
        int step; /* bytes that come or go */
        bool must_tell;
        bool says; /* gw_pause_tell() after it */
        gw_time time;
        uint64_t pauses;
    } steps[] = {
        {1000, false, false, 0, 0},  {1, true, true, 800, 1},     {500, false, true, 800, 1},
        {-900, false, true, 800, 1}, {-200, false, true, 800, 1}, {-1, true, true, 0, 1},
        {600, false, false, 0, 1},   {1, true, true, 800, 2},     {-1001, true, true, 0, 2},
        {0, false, false, 0, 2},
    };
    struct gw_pause_meter meter = {0};
    for (size_t i = 0; i < GW_COUNT_OF(steps); i++) {
        gw_time time = 77;
        bool must = steps[i].step >= 0 ? gw_pause_take(&meter, &cfg, (uint32_t)steps[i].step)
                                       : gw_pause_give(&meter, &cfg, (uint32_t)-steps[i].step);
        assert_int_equal(must, steps[i].must_tell);
        assert_int_equal(gw_pause_tell(&meter, &cfg, &time), steps[i].says);
        assert_true(time == steps[i].time);
        assert_true(meter.pauses == steps[i].pauses);
    }
}

/* What was not told in time, and is no longer true, is not told at all. */
static void pause_meter__forgets_what_has_passed(void **state)
{
    (void)state;
    static const struct gw_pause_cfg cfg = {.xoff = 1000, .xon = 400, .time = 800};
    struct gw_pause_meter meter = {0};
    gw_time time;
    assert_true(gw_pause_take(&meter, &cfg, 2000));
    assert_false(gw_pause_give(&meter, &cfg, 1500));
    assert_false(gw_pause_tell(&meter, &cfg, &time));
    assert_true(meter.pauses == 0);
}

static void pause_gate__adds_up_its_time(void **state)
{
    (void)state;
    struct gw_pause_gate gate = {0};
    gw_pause_gate_set(&gate, false, 5);
    gw_pause_gate_set(&gate, true, 10);
    gw_pause_gate_set(&gate, true, 20); /* said again */
    assert_true(gate.is_shut && gate.total == 0);
    gw_pause_gate_set(&gate, false, 30);
    gw_pause_gate_set(&gate, true, (gw_time)0 - 1);
    gw_pause_gate_set(&gate, false, 1);
    assert_true(!gate.is_shut && gate.total == 22);
}

/* A PAUSE from the other end of the link. */
static void input_pause(struct endpoint_fixture *f, gw_time time)
{
    struct gw_pkt pkt;
    gw_pause_fill(&pkt, HDR, time);
    fixture_input(f, &pkt);
}

static void open_with_flow(struct endpoint_fixture *f)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_pkt pkts[2];
    fixture_open(f, &cfg, "1000000");
    fixture_send(f, (uint64_t)10 * MTU);
    assert_int_equal(fixture_pull(f, pkts, 2), 2);
}

/* Where links are not lossless, whoever sends a PAUSE. */
static void endpoint_paused__only_where_links_are_lossless(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_pkt pkts[3];
    cfg.is_lossless = false;
    fixture_open(&f, &cfg, "1000000");
    input_pause(&f, 30 * GW_US);
    fixture_send(&f, (uint64_t)3 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 3), 3);
    assert_true(gw_endpoint_paused(f.endpoint) == 0);
    fixture_close(&f);
}

static void endpoint_paused__sends_control_alone(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX], data = fixture_data(3, 0, 9);
    open_with_flow(&f);
    input_pause(&f, pause_time);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 0);
    fixture_input(&f, &data);
    fixture_send(&f, MTU); /* a flow that begins now waits as well */
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 1);
    assert_int_equal(pkts[0].q.kind, GW_PKT_ACK);

    f.now += 30 * GW_US;
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 0);
    input_pause(&f, 0);
    assert_int_equal(f.ready_count, 1);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 9);
    assert_true(gw_endpoint_paused(f.endpoint) == 30 * GW_US);
    assert_true(fixture_stats(&f)->malformed == 0 && fixture_stats(&f)->stray == 0);
    fixture_close(&f);
}

/* Time passes to `at`; returns how many packets then leave. */
static uint32_t pull_at(struct endpoint_fixture *f, gw_time at)
{
    struct gw_pkt pkts[SENT_MAX];
    f->now = at;
    gw_node_expire(f->node, f->now);
    fixture_take_ready(f);
    uint32_t count = 0;
    for (uint32_t sent = fixture_pull(f, pkts, SENT_MAX); sent > 0; sent--)
        count += pkts[sent - 1].q.kind == GW_PKT_DATA;
    return count;
}

static void endpoint_paused__goes_on_when_the_time_is_over(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_with_flow(&f);
    gw_time start = f.now;
    /* Of packets in flight none may be given up meanwhile, or it would be sent again. */
    assert_true(gw_endpoint_stats(f.endpoint)->timeouts == 0);
    input_pause(&f, 5 * GW_US);
    assert_true(gw_node_deadline(f.node) - start <= 5 * GW_US);
    assert_int_equal(pull_at(&f, start + 5 * GW_US - 1), 0);
    assert_int_equal(pull_at(&f, start + 5 * GW_US), 8);
    assert_true(gw_endpoint_paused(f.endpoint) == 5 * GW_US);
    fixture_close(&f);
}

static void endpoint_paused__counts_from_the_latest_pause(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_with_flow(&f);
    gw_time start = f.now;
    input_pause(&f, 5 * GW_US);
    f.now = start + 4 * GW_US;
    input_pause(&f, 5 * GW_US);
    assert_int_equal(pull_at(&f, start + 9 * GW_US - 1), 0);
    assert_int_equal(pull_at(&f, start + 9 * GW_US), 8);
    assert_true(gw_endpoint_paused(f.endpoint) == 9 * GW_US);
    input_pause(&f, 0); /* nothing to resume */
    assert_true(gw_endpoint_paused(f.endpoint) == 9 * GW_US);
    assert_int_equal(f.ready_count, 0);
    fixture_close(&f);
}

/* In front of ACKs that wait, also while paused itself; of several the last. */
static void endpoint_pause__leaves_first(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX], data = fixture_data(3, 0, 9);
    open_with_flow(&f);
    input_pause(&f, pause_time);
    fixture_input(&f, &data);
    assert_true(gw_endpoint_pause(f.endpoint, 0, pause_time));
    assert_true(gw_endpoint_pause(f.endpoint, 0, 0));
    assert_true(gw_endpoint_pause(f.endpoint, 0, 2 * pause_time));
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 2);
    assert_int_equal(pkts[0].q.kind, GW_PKT_PAUSE);
    assert_int_equal(pkts[0].q.class, GW_CLASS_CONTROL);
    assert_int_equal(pkts[0].q.size, HDR);
    assert_true(pkts[0].pause == 2 * pause_time);
    assert_int_equal(pkts[1].q.kind, GW_PKT_ACK);

    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    assert_false(gw_endpoint_pause(f.endpoint, 0, 0));
    fixture_give_back(&f, &hoard);
    assert_true(gw_endpoint_pause(f.endpoint, 0, 0));
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 1);
    assert_true(pkts[0].q.kind == GW_PKT_PAUSE && pkts[0].pause == 0);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pause_meter__has_hysteresis),
        cmocka_unit_test(pause_meter__forgets_what_has_passed),
        cmocka_unit_test(pause_gate__adds_up_its_time),
        cmocka_unit_test(endpoint_paused__only_where_links_are_lossless),
        cmocka_unit_test(endpoint_paused__sends_control_alone),
        cmocka_unit_test(endpoint_paused__goes_on_when_the_time_is_over),
        cmocka_unit_test(endpoint_paused__counts_from_the_latest_pause),
        cmocka_unit_test(endpoint_pause__leaves_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
