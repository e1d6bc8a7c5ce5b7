/* The window of a flow, its pace, its silence, and the timer of both. */
#include "unit/core/host/endpoint_fixture.h"

/* A paced flow keeps the distance of its packets, and asks to be woken for the next one. */
static void flow_pace__keeps_the_distance(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt, last = {0};
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "64000");
    assert_int_equal(gw_algo_set(&f.transport.cc->algo, f.transport.cc_cfg.bytes, "rate", "1Gbps"),
                     GW_OK);
    fixture_send(&f, 10 * MTU);
    const gw_time gap = (MTU + HDR) * 8 * GW_NS;
    uint32_t sent = 0;
    while (sent < 10) {
        if (fixture_pull(&f, &pkt, 1)) {
            if (sent++ > 0)
                assert_true(pkt.sent_at - last.sent_at == gap);
            last = pkt;
            fixture_ack(&f, &pkt, 0);
        } else {
            fixture_expire(&f);
        }
    }
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
    fixture_close(&f);
}

/* Pulls what may leave at a time that comes `gaps` of its pace after the last one. */
static uint32_t pull_after(struct endpoint_fixture *f, uint32_t gaps)
{
    struct gw_pkt pkts[16];
    f->now += gaps * (MTU + HDR) * 8 * GW_NS;
    gw_node_expire(f->node, f->now);
    return fixture_pull(f, pkts, GW_COUNT_OF(pkts));
}

/* Who was woken late sends what was due meanwhile, up to a limit, if it has waited for its pace
 * alone; a driver that is never late has no such flows. */
static void flow_pace__makes_good_for_being_late(void **state)
{
    (void)state;
    enum { LIMIT = 4 };
    for (uint32_t late = 0; late <= LIMIT; late += LIMIT) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        cfg.pace_late = late * (MTU + HDR) * 8 * GW_NS;
        fixture_open(&f, &cfg, "64000");
        assert_int_equal(
            gw_algo_set(&f.transport.cc->algo, f.transport.cc_cfg.bytes, "rate", "1Gbps"), GW_OK);
        fixture_send(&f, 20 * MTU);
        assert_int_equal(pull_after(&f, 0), 1);
        assert_int_equal(pull_after(&f, 3), late ? 3 : 1);
        assert_int_equal(pull_after(&f, 1), 1);
        assert_int_equal(pull_after(&f, 100), late ? LIMIT + 1 : 1);
        fixture_abandon(&f);
    }
}

static void flow_pace__makes_good_for_nothing_else(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.pace_late = 100 * GW_MS;
    fixture_open(&f, &cfg, "2000");
    assert_int_equal(gw_algo_set(&f.transport.cc->algo, f.transport.cc_cfg.bytes, "rate", "1Gbps"),
                     GW_OK);
    fixture_send(&f, 20 * MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    uint32_t left = 0;
    while (pull_after(&f, 1))
        left++;
    assert_true(left + 1 < 20); /* the window is full */
    f.now += 50 * (MTU + HDR) * 8 * GW_NS;
    fixture_ack(&f, &pkt, left + 1);
    assert_int_equal(pull_after(&f, 0), 1);
    fixture_abandon(&f);
}

/* What a receiver that was not ready kept is acknowledged: the next packet leaves at its pace, and
 * not when the sender would have asked. */
static void flow_pace__goes_on_when_what_was_kept_is_acknowledged(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt, question;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "2000");
    assert_int_equal(gw_algo_set(&f.transport.cc->algo, f.transport.cc_cfg.bytes, "rate", "1Gbps"),
                     GW_OK);
    fixture_send(&f, 4 * MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    question = pkt;
    for (uint32_t i = 0; i < 6; i++) {
        struct gw_pkt no = fixture_answer(&question, GW_PKT_NACK, 0);
        no.q.flags = GW_PKT_NOT_READY;
        fixture_input(&f, &no);
        while (fixture_pull(&f, &question, 1) == 0)
            fixture_expire(&f);
    }
    struct gw_pkt no = fixture_answer(&question, GW_PKT_NACK, 0);
    no.q.flags = GW_PKT_NOT_READY;
    fixture_input(&f, &no);
    const gw_time before = f.now;
    fixture_ack(&f, &pkt, 1);
    while (fixture_pull(&f, &pkt, 1) == 0)
        fixture_expire(&f);
    assert_true(pkt.seq == 1 && f.now - before <= (MTU + HDR) * 8 * GW_NS);
    fixture_abandon(&f);
}

/* Congestion control whose window and pace the test chooses, and the silence that follows a loss.
 */
static gw_byte_time chosen_pace;
static uint64_t chosen_cwnd = 2 * MTU;
static gw_time chosen_silence;
static uint32_t silence_ends, silence_in_flight;

static void chosen_init(void *state, const void *cfg, const struct gw_path *path,
                        struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)now;
    *window = (struct gw_cc_window){.cwnd = chosen_cwnd, .pace = chosen_pace};
}

static void chosen_on_ack(void *state, const void *cfg, const struct gw_path *path,
                          const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    (void)ack;
    if (!window->is_silent)
        chosen_init(state, cfg, path, window, now);
}

static void chosen_on_loss(void *state, const void *cfg, const struct gw_path *path,
                           const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    (void)loss;
    chosen_init(state, cfg, path, window, now);
    window->is_silent = chosen_silence > 0;
    window->silent_until = now + chosen_silence;
}

static void chosen_on_silence_end(void *state, const void *cfg, const struct gw_path *path,
                                  uint32_t in_flight, struct gw_cc_window *window, gw_time now)
{
    silence_ends++;
    silence_in_flight = in_flight;
    chosen_init(state, cfg, path, window, now);
}

static const struct gw_cc_ops chosen = {
    .algo = {.name = "chosen", .cfg_size = 1},
    .init = chosen_init,
    .on_ack = chosen_on_ack,
    .on_loss = chosen_on_loss,
    .on_silence_end = chosen_on_silence_end,
};

/*
 * A flow may be free to send and, before it is asked to, be paced again, with its next packet far
 * away and nothing in flight: then only its timer brings it back.
 */
static void flow_pace__that_falls_before_sending_arms_the_timer(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[4];
    const gw_byte_time slow = gw_byte_time_from_bps(10000000);
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "64000");
    f.transport.cc = &chosen;
    chosen_pace = 0;
    fixture_send(&f, 5 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 4), 2);

    chosen_pace = slow;
    fixture_nack(&f, &pkts[0]);
    assert_int_equal(fixture_pull(&f, &pkts[2], 1), 1); /* the next one must wait */
    gw_time next = f.now + gw_serialisation(slow, pkts[2].q.size);

    chosen_pace = 0;
    while (fixture_stats(&f)->timeouts < 2)
        fixture_expire(&f); /* all are lost, and nothing holds the flow back */
    chosen_pace = slow;
    fixture_ack(&f, &pkts[1], 0); /* late */
    assert_int_equal(fixture_pull(&f, &pkts[3], 1), 0);
    assert_true(gw_node_deadline(f.node) != GW_TIME_NEVER);
    while (f.now < next)
        fixture_expire(&f);
    assert_int_equal(fixture_pull(&f, &pkts[3], 1), 1);
    fixture_close(&f);
}

/* Neither what is lost nor what is new leaves, even with nothing in flight, until its end; that is
 * told on time. */
static void flow_silence__holds_everything_back(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[4];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "64000");
    f.transport.cc = &chosen;
    chosen_pace = 0;
    chosen_silence = 3 * GW_US + 1;
    silence_ends = 0;
    fixture_send(&f, 5 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 4), 2);
    gw_time end = f.now + chosen_silence;
    fixture_nack(&f, &pkts[0]);
    assert_int_equal(fixture_pull(&f, &pkts[2], 1), 0);
    fixture_ack(&f, &pkts[1], 0);
    assert_int_equal(fixture_pull(&f, &pkts[2], 1), 0);
    while (silence_ends == 0) {
        assert_true(f.now < end);
        assert_int_equal(fixture_pull(&f, &pkts[2], 1), 0);
        fixture_expire(&f);
    }
    assert_true(f.now == end);
    assert_int_equal(silence_in_flight, 0);
    assert_int_equal(fixture_pull(&f, &pkts[2], 2), 2);
    assert_int_equal(pkts[2].seq, 0);
    assert_int_equal(pkts[3].seq, 2);
    chosen_silence = 0;
    fixture_close(&f);
}

/* The window falls below what is in flight and a lost packet: that waits, or goes over it; a new
 * one waits in any case. */
static void flow_window__lets_lost_packets_over_on_request(void **state)
{
    (void)state;
    for (int over = 0; over <= 1; over++) {
        struct endpoint_fixture f;
        struct gw_pkt pkts[4];
        struct gw_endpoint_cfg cfg = fixture_cfg();
        cfg.resend_over = over;
        fixture_open(&f, &cfg, "64000");
        f.transport.cc = &chosen;
        chosen_pace = 0;
        chosen_cwnd = 3 * MTU;
        fixture_send(&f, 6 * MTU);
        assert_int_equal(fixture_pull(&f, pkts, 4), 3);
        chosen_cwnd = 2 * MTU - 1;
        fixture_nack(&f, &pkts[0]);
        assert_int_equal(fixture_pull(&f, &pkts[3], 1), 0); /* two are in flight */
        fixture_nack(&f, &pkts[1]);
        assert_int_equal(fixture_pull(&f, pkts, 2), over); /* one is */
        if (!over)
            fixture_ack(&f, &pkts[2], 0);
        assert_int_equal(fixture_pull(&f, pkts, 1), !over);
        assert_int_equal(pkts[0].seq, 0);
        if (over)
            fixture_ack(&f, &pkts[2], 0);
        assert_int_equal(fixture_pull(&f, &pkts[1], 1), over);
        fixture_ack(&f, &pkts[0], 1);
        assert_int_equal(fixture_pull(&f, &pkts[1], 2), !over);
        assert_int_equal(pkts[1].seq, 1);
        fixture_ack(&f, &pkts[1], 3);
        assert_int_equal(fixture_pull(&f, &pkts[2], 2), 1);
        assert_int_equal(pkts[2].seq, 3);
        fixture_close(&f);
    }
    chosen_cwnd = 2 * MTU;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_pace__keeps_the_distance),
        cmocka_unit_test(flow_pace__makes_good_for_being_late),
        cmocka_unit_test(flow_pace__makes_good_for_nothing_else),
        cmocka_unit_test(flow_pace__goes_on_when_what_was_kept_is_acknowledged),
        cmocka_unit_test(flow_pace__that_falls_before_sending_arms_the_timer),
        cmocka_unit_test(flow_window__lets_lost_packets_over_on_request),
        cmocka_unit_test(flow_silence__holds_everything_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
