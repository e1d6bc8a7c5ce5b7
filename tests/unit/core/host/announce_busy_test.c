/* Busy periods: which bursts are announced, who waits with whom, and what is left when they end. */
#include "announce_fixture.h"

/* Of a message that is given up. */
static const unsigned char data[2 * MTU] = {1};

static void announce__those_who_come_meanwhile_wait_and_are_not_announced(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    uint32_t first = start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    f.now += RTT / 4;
    uint32_t second = start_for(&f, JOB);
    uint32_t third = start_for(&f, JOB);
    quiet(&f);
    reply(&f, &notice);
    struct gw_pkt pkts[COPIES];
    assert_int_equal(fixture_pull(&f, pkts, COPIES), 6);
    const uint32_t order[] = {first, second, third, first, second, third};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(pkts[i].flow, order[i]);
        assert_int_equal(pkts[i].q.flags & GW_PKT_HEAD, i == 0 ? GW_PKT_HEAD : 0);
    }
    start_for(&f, JOB); /* at once */
    assert_false(first_out(&f, 2).q.flags & GW_PKT_HEAD);
    assert_int_equal(fixture_stats(&f)->bursts_announced, 1);
    assert_int_equal(fixture_stats(&f)->bursts_unannounced, 0);
    fixture_close(&f);
}

static void announce__jobs_and_peers_have_bursts_of_their_own(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 3);
    start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    start_for(&f, JOB + 1);
    assert_int_equal(first_out(&f, 1).notice.job, JOB + 1);
    struct gw_send send = send_of(&f, JOB);
    send.peer = THEIRS + 1;
    start(&f, &send);
    assert_int_equal(first_out(&f, 1).dst, THEIRS + 1);
    reply(&f, &notice);
    assert_int_equal(first_out(&f, 2).flow, notice.flow);
    assert_int_equal(fixture_stats(&f)->bursts_announced, 3);
    fixture_close(&f);
}

/* Sends a message `idle` after another was acknowledged; returns whether it was announced. */
static bool is_announced_after(gw_time idle)
{
    struct endpoint_fixture f;
    announce_open(&f, 1);
    whole_burst(&f, JOB, 8 * GW_US); /* that is the round trip now */
    f.now += idle;
    start_for(&f, JOB);
    struct gw_pkt pkts[COPIES];
    uint32_t count = fixture_pull(&f, pkts, COPIES);
    assert_int_equal(count, pkts[0].q.kind == GW_PKT_NOTICE ? 1 : 2);
    fixture_close(&f);
    return count == 1;
}

static void announce__busy_period_ends_after_more_than_a_round_trip(void **state)
{
    (void)state;
    assert_false(is_announced_after(0));
    assert_false(is_announced_after(8 * GW_US));
    assert_true(is_announced_after(8 * GW_US + 1));
}

static void announce__busy_period_lasts_while_anything_is_in_flight(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    reply(&f, &notice);
    struct gw_pkt head = first_out(&f, 2);
    f.now += 10 * RTT;
    start_for(&f, JOB);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    finish(&f, &head);
    f.now += 10 * RTT; /* the other one is still in flight */
    start_for(&f, JOB);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    fixture_close(&f);
}

/* ---- Room. ---- */

static void announce__without_a_free_announcer_a_burst_leaves_and_is_counted(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    for (uint32_t announcers = 0; announcers < 2; announcers++) {
        announce_open(&f, announcers);
        if (announcers) {
            start_for(&f, JOB);
            first_out(&f, 1);
        }
        start_for(&f, JOB + 1);
        struct gw_pkt first = first_out(&f, 2);
        assert_int_equal(first.q.kind, GW_PKT_DATA);
        assert_false(first.q.flags & GW_PKT_HEAD);
        assert_int_equal(fixture_stats(&f)->bursts_unannounced, 1);
        finish(&f, &first);
        fixture_close(&f);
    }
}

static void announce__reuses_the_announcer_that_was_idle_for_longest(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    gw_time rtt;
    announce_open(&f, 3);
    for (uint32_t job = 0; job < 3; job++)
        whole_burst(&f, job, 8 * GW_US);
    f.now += GW_MS;
    whole_burst(&f, 0, 8 * GW_US); /* so 1 is the one */
    start_for(&f, 9);
    first_out(&f, 1);
    assert_false(gw_endpoint_notice_rtt(f.endpoint, 9, THEIRS, &rtt)); /* that of 1 is forgotten */
    for (uint32_t job = 0; job < 3; job++)
        assert_int_equal(gw_endpoint_notice_rtt(f.endpoint, job, THEIRS, &rtt), job != 1);
    fixture_close(&f);
}

static void announce__burst_leaves_without_head_when_its_notice_could_not(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    start_for(&f, JOB);
    gw_time begin = f.now;
    quiet(&f);
    assert_int_equal(fixture_stats(&f)->pool_empty, 1);
    fixture_expire(&f); /* tries again */
    assert_int_equal(f.now - begin, RTT);
    quiet(&f);
    assert_int_equal(fixture_stats(&f)->pool_empty, 2);
    fixture_give_back(&f, &hoard);
    fixture_expire(&f);
    assert_int_equal(f.now - begin, 2 * RTT);
    struct gw_pkt first = first_out(&f, 2);
    assert_int_equal(first.q.kind, GW_PKT_DATA);
    assert_false(first.q.flags & GW_PKT_HEAD);
    assert_int_equal(fixture_stats(&f)->bursts_announced, 0);
    assert_int_equal(fixture_stats(&f)->bursts_unannounced, 1);
    fixture_close(&f);
}

/* A port that may not send holds back the notice no longer than the burst waits. */
static void announce__a_shut_port_does_not_hold_the_burst_back_for_longer(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_pkt pause = {
        .q = {.kind = GW_PKT_PAUSE}, .pause = 2 * RTT + GW_US, .buf = GW_BUF_NONE};
    fixture_input(&f, &pause);
    start_for(&f, JOB);
    quiet(&f);
    pass_until(&f, f.now + 2 * RTT);
    fixture_expire(&f); /* the pause is over */
    struct gw_pkt first = first_out(&f, 2);
    assert_int_equal(first.q.kind, GW_PKT_DATA);
    assert_false(first.q.flags & GW_PKT_HEAD);
    fixture_close(&f);
}

/* ---- Ends. ---- */

static void announce__leader_that_stalls_lets_the_others_go(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = announce_cfg(1);
    cfg.stall = RTT / 2;
    fixture_open(&f, &cfg, "4000");
    uint32_t leader = start_for(&f, JOB);
    first_out(&f, 1);
    f.now += RTT / 4;
    uint32_t other = start_for(&f, JOB);
    fixture_expire(&f);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_FAILED);
    assert_int_equal(event.flow, leader);
    struct gw_pkt first = first_out(&f, 2);
    assert_int_equal(first.flow, other);
    assert_false(first.q.flags & GW_PKT_HEAD);
    assert_int_equal(fixture_stats(&f)->bursts_unanswered, 1);
    finish(&f, &first);
    assert_int_equal(gw_node_deadline(f.node), GW_TIME_NEVER);
    fixture_close(&f);
}

static void announce__follower_that_is_given_up_waits_no_more(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    uint32_t first = start_for(&f, JOB);
    struct gw_send send = send_of(&f, JOB);
    send.data = data;
    start(&f, &send);
    uint32_t third = start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1), pkts[COPIES];
    gw_endpoint_forget(f.endpoint, data, sizeof(data)); /* in the middle */
    start(&f, &send);
    gw_endpoint_forget(f.endpoint, data, sizeof(data)); /* at the end */
    uint32_t last = start_for(&f, JOB);
    reply(&f, &notice);
    assert_int_equal(fixture_pull(&f, pkts, COPIES), 6);
    assert_int_equal(pkts[0].flow, first);
    assert_int_equal(pkts[1].flow, third);
    assert_int_equal(pkts[2].flow, last);
    fixture_close(&f);
}

/* Nothing is armed or queued after it, and the next burst is announced at once. */
static void announce__burst_that_is_given_up_leaves_no_trace(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    for (uint32_t left = 0; left < 3; left++) { /* nothing, the notice, or the burst */
        announce_open(&f, 1);
        struct gw_send send = send_of(&f, JOB);
        send.data = data;
        start(&f, &send);
        struct gw_pkt notice = {.seq = 0};
        if (left > 0)
            notice = first_out(&f, 1);
        if (left > 1) {
            reply(&f, &notice);
            first_out(&f, 2);
        }
        gw_endpoint_forget(f.endpoint, data, sizeof(data));
        assert_int_equal(gw_node_deadline(f.node), GW_TIME_NEVER);
        send.class = 5;
        start(&f, &send);
        notice = first_out(&f, 1);
        assert_int_equal(notice.q.kind, GW_PKT_NOTICE);
        assert_int_equal(notice.q.class, 5);
        fixture_close(&f);
    }
}

static void announce__busy_period_ends_with_what_is_given_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    whole_burst(&f, JOB, 8 * GW_US);
    struct gw_send send = send_of(&f, JOB);
    send.data = data;
    start(&f, &send);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    gw_endpoint_forget(f.endpoint, data, sizeof(data));
    start_for(&f, JOB);
    assert_int_equal(first_out(&f, 1).q.kind, GW_PKT_NOTICE);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(announce__those_who_come_meanwhile_wait_and_are_not_announced),
        cmocka_unit_test(announce__jobs_and_peers_have_bursts_of_their_own),
        cmocka_unit_test(announce__busy_period_ends_after_more_than_a_round_trip),
        cmocka_unit_test(announce__busy_period_lasts_while_anything_is_in_flight),
        cmocka_unit_test(announce__without_a_free_announcer_a_burst_leaves_and_is_counted),
        cmocka_unit_test(announce__reuses_the_announcer_that_was_idle_for_longest),
        cmocka_unit_test(announce__burst_leaves_without_head_when_its_notice_could_not),
        cmocka_unit_test(announce__a_shut_port_does_not_hold_the_burst_back_for_longer),
        cmocka_unit_test(announce__leader_that_stalls_lets_the_others_go),
        cmocka_unit_test(announce__follower_that_is_given_up_waits_no_more),
        cmocka_unit_test(announce__burst_that_is_given_up_leaves_no_trace),
        cmocka_unit_test(announce__busy_period_ends_with_what_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
