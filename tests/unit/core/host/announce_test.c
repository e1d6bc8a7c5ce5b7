/* Notices: what they and heads of bursts say, how long a burst waits, and whose answer counts. */
#include "announce_fixture.h"

/* ---- The notice and the head. ---- */

static void announce__says_nothing_of_flows_that_do_not_ask_for_it(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    fixture_send(&f, 2 * MTU);
    fixture_take_ready(&f);
    struct gw_pkt first = first_out(&f, 2);
    assert_int_equal(first.q.kind, GW_PKT_DATA);
    assert_false(first.q.flags & GW_PKT_HEAD);
    assert_int_equal(fixture_stats(&f)->notices_sent, 0);
    finish(&f, &first);
    fixture_close(&f);
}

static void announce__notice_has_what_finds_the_way_of_the_burst(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    uint32_t flow = start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    assert_int_equal(notice.q.kind, GW_PKT_NOTICE);
    assert_int_equal(notice.q.size, HDR);
    assert_int_equal(notice.q.class, 2);
    assert_int_equal(notice.q.ecn, GW_ECN_ECT0);
    assert_int_equal(notice.q.flags, 0);
    assert_int_equal(notice.q.key, gw_flow_key(OURS, THEIRS, flow));
    assert_int_equal(notice.src, OURS);
    assert_int_equal(notice.dst, THEIRS);
    assert_int_equal(notice.flow, flow);
    assert_int_equal(notice.notice.job, JOB);
    assert_int_equal(notice.notice.units, UNITS);
    assert_false(notice.notice.is_answer);
    reply(&f, &notice);
    struct gw_pkt pkts[COPIES];
    assert_int_equal(fixture_pull(&f, pkts, COPIES), 2);
    assert_int_equal(pkts[0].seq, 0);
    assert_int_equal(pkts[0].q.flags, GW_PKT_TRIMMABLE | GW_PKT_HEAD);
    assert_int_equal(pkts[0].q.key, notice.q.key);
    assert_int_equal(pkts[0].entropy, notice.entropy);
    assert_int_equal(pkts[1].q.flags, GW_PKT_TRIMMABLE);
    assert_int_equal(fixture_stats(&f)->notices_sent, 1);
    assert_int_equal(fixture_stats(&f)->answers_received, 1);
    assert_int_equal(fixture_stats(&f)->bursts_announced, 1);
    assert_int_equal(fixture_stats(&f)->bursts_unanswered, 0);
    finish(&f, &pkts[0]);
    fixture_close(&f);
}

static void announce__first_train_has_its_full_length(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = announce_cfg(1);
    cfg.train = 3;
    fixture_open(&f, &cfg, "8000");
    struct gw_send send = send_of(&f, JOB);
    send.bytes = 8 * MTU;
    start(&f, &send);
    struct gw_pkt notice = first_out(&f, 1), pkts[COPIES];
    reply(&f, &notice);
    assert_int_equal(fixture_pull(&f, pkts, COPIES), 8);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(pkts[i].entropy, notice.entropy);
    assert_int_equal(pkts[3].entropy, pkts[5].entropy);
    assert_int_not_equal(pkts[3].entropy, notice.entropy);
    fixture_close(&f);
}

static void announce__head_is_one_when_it_is_resent(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    reply(&f, &notice);
    struct gw_pkt head = first_out(&f, 2);
    fixture_nack(&f, &head);
    head = first_out(&f, 1);
    assert_int_equal(head.seq, 0);
    assert_true(head.q.flags & GW_PKT_HEAD);
    finish(&f, &head);
    fixture_close(&f);
}

static void announce__what_is_unimportant_says_so_in_the_notice(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_send send = send_of(&f, JOB);
    send.is_unimportant = true;
    start(&f, &send);
    assert_int_equal(first_out(&f, 1).q.ecn, GW_ECN_NOT_ECT);
    fixture_close(&f);
}

static void announce__leaves_by_the_port_of_the_flow(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = announce_cfg(4);
    cfg.port_count = 3;
    fixture_open(&f, &cfg, "4000");
    uint32_t seen = 0;
    for (uint32_t job = 0; job < 4; job++) {
        uint32_t flow = start_for(&f, job);
        uint16_t port = (uint16_t)(gw_flow_key(OURS, THEIRS, flow) % 3);
        assert_int_equal(f.ready_count, 1);
        assert_int_equal(f.ready[0], port);
        seen |= 1u << port;
        struct gw_pkt notice = first_out(&f, 1);
        reply(&f, &notice);
        assert_int_equal(f.ready[0], port);
        first_out(&f, 2);
    }
    assert_true(seen & (seen - 1)); /* more than one */
    fixture_close(&f);
}

static void announce__is_not_made_to_oneself(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_send send = send_of(&f, JOB);
    send.peer = OURS;
    start(&f, &send);
    quiet(&f); /* it is all here, and has been acknowledged */
    struct gw_event events[3];
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 3), 2);
    assert_int_equal(fixture_stats(&f)->notices_sent, 0);
    fixture_close(&f);
}

static void announce__refuses_units_that_a_notice_cannot_say(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_send send = send_of(&f, JOB);
    uint32_t flow;
    send.notice.units = GW_NOTICE_UNITS_MAX + 1;
    assert_int_equal(gw_endpoint_send(f.endpoint, &send, &flow, f.now), GW_ERR_INVALID);
    fixture_close(&f);
}

/* ---- Time. ---- */

static void announce__repeats_after_half_a_round_trip_and_leaves_after_one(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    start_for(&f, JOB);
    gw_time begin = f.now;
    struct gw_pkt notice = first_out(&f, 1);
    pass_until(&f, begin + RTT - 1);
    f.now = begin + RTT; /* twice the round trip is the time, and this is half of it */
    fixture_expire(&f);
    struct gw_pkt repeat = first_out(&f, 1);
    assert_int_equal(repeat.q.kind, GW_PKT_NOTICE);
    assert_int_equal(repeat.seq, notice.seq + 1);
    assert_int_equal(repeat.q.key, notice.q.key);
    assert_int_equal(repeat.entropy, notice.entropy);
    pass_until(&f, begin + 2 * RTT - 1);
    f.now++;
    fixture_expire(&f);
    struct gw_pkt head = first_out(&f, 2);
    assert_true(head.q.flags & GW_PKT_HEAD);
    assert_int_equal(fixture_stats(&f)->notices_sent, 2);
    assert_int_equal(fixture_stats(&f)->bursts_announced, 1);
    assert_int_equal(fixture_stats(&f)->bursts_unanswered, 1);
    finish(&f, &head);
    fixture_close(&f);
}

static void announce__burst_waits_behind_the_answer_for_its_lead(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    gw_time rtt;
    announce_open(&f, 1);
    struct gw_send send = send_of(&f, JOB);
    send.notice.lead = 5 * RTT;
    start(&f, &send);
    struct gw_pkt notice = first_out(&f, 1);
    fixture_expire(&f); /* the repeat wants to leave, which is in vain then */
    reply(&f, &notice);
    gw_time answered_at = f.now;
    quiet(&f);
    start_for(&f, JOB); /* waits with it */
    quiet(&f);
    fixture_expire(&f);
    assert_int_equal(f.now - answered_at, 5 * RTT);
    assert_true(first_out(&f, 4).q.flags & GW_PKT_HEAD);
    assert_int_equal(fixture_stats(&f)->notices_sent, 1);
    assert_int_equal(fixture_stats(&f)->bursts_unanswered, 0);
    assert_true(gw_endpoint_notice_rtt(f.endpoint, JOB, THEIRS, &rtt));
    assert_int_equal(rtt, RTT); /* without the lead */
    fixture_close(&f);
}

/* Also when half of an odd time, twice, is less than all of it. */
static void announce__sends_no_third_copy(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    whole_burst(&f, JOB, 8 * GW_US + 1); /* so the deviation is half of that, rounded down */
    f.now += GW_MS;
    gw_time begin = f.now;
    start_for(&f, JOB);
    first_out(&f, 1);
    fixture_expire(&f);
    first_out(&f, 1);
    fixture_expire(&f);
    assert_int_equal(f.now - begin, 24 * GW_US);
    quiet(&f);
    fixture_expire(&f);
    assert_int_equal(f.now - begin, 24 * GW_US + 1);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    fixture_close(&f);
}

static void announce__without_a_round_trip_takes_the_path_s(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_send send = send_of(&f, JOB);
    send.notice.rtt = 0;
    start(&f, &send);
    gw_time begin = f.now;
    first_out(&f, 1);
    fixture_expire(&f);
    assert_int_equal(f.now - begin, BRTT);
    first_out(&f, 1);
    fixture_expire(&f);
    assert_int_equal(f.now - begin, 2 * BRTT);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    fixture_close(&f);
}

static void announce__an_answer_to_the_repeat_will_do(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    gw_time rtt;
    announce_open(&f, 1);
    start_for(&f, JOB);
    first_out(&f, 1);
    fixture_expire(&f);
    struct gw_pkt repeat = first_out(&f, 1);
    assert_false(gw_endpoint_notice_rtt(f.endpoint, JOB, THEIRS, &rtt));
    f.now += 7 * GW_US;
    reply(&f, &repeat);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    assert_true(gw_endpoint_notice_rtt(f.endpoint, JOB, THEIRS, &rtt));
    assert_int_equal(rtt, 7 * GW_US); /* it is known which copy was answered */
    assert_int_equal(fixture_stats(&f)->bursts_unanswered, 0);
    fixture_close(&f);
}

static void announce__waits_as_long_as_exchanges_take(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    gw_time rtt;
    announce_open(&f, 1);
    for (uint32_t i = 0; i < 64; i++) {
        whole_burst(&f, JOB, 8 * GW_US);
        f.now += GW_MS;
    }
    assert_true(gw_endpoint_notice_rtt(f.endpoint, JOB, THEIRS, &rtt));
    assert_in_range(rtt, 8 * GW_US - 100, 8 * GW_US);
    assert_false(gw_endpoint_notice_rtt(f.endpoint, JOB + 1, THEIRS, &rtt));
    start_for(&f, JOB);
    gw_time begin = f.now;
    struct gw_pkt pkts[COPIES];
    while (fixture_pull(&f, pkts, COPIES), pkts[0].q.kind != GW_PKT_DATA)
        fixture_expire(&f);
    /* The answers were even: an eighth more than they took, and what rounding makes of it. */
    assert_in_range(f.now - begin, 9 * GW_US - 200, 9 * GW_US + 200);
    fixture_close(&f);
}

static void announce__learns_from_answers_that_come_too_late(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    for (uint32_t i = 0; i < 64; i++) {
        whole_burst(&f, JOB, 15 * RTT);
        f.now += 100 * RTT;
    }
    uint64_t late = fixture_stats(&f)->bursts_unanswered;
    assert_in_range(late, 1, 40);
    whole_burst(&f, JOB, 15 * RTT);
    assert_int_equal(fixture_stats(&f)->bursts_unanswered, late);
    fixture_close(&f);
}

/* One answer a minute late does not make the next burst wait for a minute. */
static void announce__counts_a_late_answer_for_twice_its_patience(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    gw_time rtt;
    announce_open(&f, 1);
    whole_burst(&f, JOB, 60 * GW_S);
    assert_true(gw_endpoint_notice_rtt(f.endpoint, JOB, THEIRS, &rtt));
    assert_int_equal(rtt, 4 * RTT);
    fixture_close(&f);
}

/* The clock passes 2^64 between the notice and the end of the round trip. */
static void announce__survives_the_wrap_of_time(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    f.now = (gw_time)0 - 3 * RTT / 2;
    start_for(&f, JOB);
    first_out(&f, 1);
    fixture_expire(&f);
    first_out(&f, 1);
    fixture_expire(&f);
    assert_int_equal(f.now, RTT / 2);
    struct gw_pkt head = first_out(&f, 2);
    assert_int_equal(head.q.kind, GW_PKT_DATA);
    finish(&f, &head);
    start_for(&f, JOB); /* still in the busy period */
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    fixture_close(&f);
}

/* ---- Whose answer counts. ---- */

static void announce__leaves_only_for_its_own_answer(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    for (uint32_t wrong = 0; wrong < 6; wrong++) {
        struct gw_pkt answer = answer_to(&notice);
        answer.src += wrong == 0;
        answer.seq += wrong == 1; /* a copy that has not left */
        answer.seq -= wrong == 2;
        answer.flow ^= (uint32_t)(wrong == 3) << 16;
        answer.notice.job += wrong == 4;
        answer.dst += wrong == 5;
        fixture_input(&f, &answer);
        quiet(&f);
        assert_int_equal(fixture_stats(&f)->stray, wrong + 1);
    }
    assert_int_equal(fixture_stats(&f)->answers_received, 0);
    f.now += 8 * GW_US;
    reply(&f, &notice);
    first_out(&f, 2);
    f.now += 8 * GW_US;
    reply(&f, &notice); /* doubled by the network */
    quiet(&f);
    assert_int_equal(fixture_stats(&f)->answers_received, 2);
    gw_time rtt;
    assert_true(gw_endpoint_notice_rtt(f.endpoint, JOB, THEIRS, &rtt));
    assert_int_equal(rtt, 8 * GW_US); /* the first one's */
    fixture_close(&f);
}

static void announce__answer_of_an_earlier_burst_does_not_count(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    start_for(&f, JOB);
    struct gw_pkt notice = first_out(&f, 1);
    fixture_expire(&f);
    struct gw_pkt repeat = first_out(&f, 1);
    fixture_expire(&f);
    struct gw_pkt head = first_out(&f, 2);
    finish(&f, &head);
    f.now += GW_MS;
    start_for(&f, JOB);
    struct gw_pkt next = first_out(&f, 1);
    assert_int_equal(next.seq, notice.seq + 2);
    reply(&f, &notice);
    reply(&f, &repeat);
    quiet(&f);
    assert_int_equal(fixture_stats(&f)->stray, 2);
    reply(&f, &next);
    assert_int_equal(first_out(&f, 2).q.kind, GW_PKT_DATA);
    fixture_close(&f);
}

/* ---- The receiver. ---- */

static struct gw_pkt their_notice(void)
{
    return (struct gw_pkt){
        .q = {.size = HDR + 4, .class = 3, .ecn = GW_ECN_CE, .kind = GW_PKT_NOTICE},
        .src = THEIRS,
        .dst = OURS,
        .flow = 5,
        .seq = 123,
        .buf = GW_BUF_NONE,
        .notice = {.job = JOB, .units = UNITS},
    };
}

static void announce__any_host_answers_at_once_with_no_more_bytes(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 0);
    struct gw_pkt notice = their_notice();
    fixture_input(&f, &notice);
    struct gw_pkt answer = first_out(&f, 1);
    assert_int_equal(answer.q.kind, GW_PKT_NOTICE);
    assert_int_equal(answer.q.class, GW_CLASS_CONTROL);
    assert_int_equal(answer.q.ecn, GW_ECN_NOT_ECT);
    assert_int_equal(answer.q.size, HDR + 4);
    assert_int_equal(answer.q.key, gw_flow_key(OURS, THEIRS, 5));
    assert_int_equal(answer.src, OURS);
    assert_int_equal(answer.dst, THEIRS);
    assert_int_equal(answer.flow, 5);
    assert_int_equal(answer.seq, 123);
    assert_int_equal(answer.notice.job, JOB);
    assert_int_equal(answer.notice.units, UNITS);
    assert_true(answer.notice.is_answer);
    assert_int_equal(fixture_stats(&f)->notices_received, 1);
    fixture_close(&f);
}

static void announce__notices_for_others_are_stray(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_pkt notice = their_notice();
    notice.dst = OURS + 7;
    fixture_input(&f, &notice);
    quiet(&f);
    assert_int_equal(fixture_stats(&f)->stray, 1);
    fixture_close(&f);
}

/* Who pretends to be us gets an answer that nobody waits for. */
static void announce__notice_from_our_own_address_goes_nowhere(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    announce_open(&f, 1);
    struct gw_pkt notice = their_notice();
    notice.src = OURS;
    fixture_input(&f, &notice);
    quiet(&f);
    assert_int_equal(fixture_stats(&f)->stray, 1);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(announce__says_nothing_of_flows_that_do_not_ask_for_it),
        cmocka_unit_test(announce__notice_has_what_finds_the_way_of_the_burst),
        cmocka_unit_test(announce__first_train_has_its_full_length),
        cmocka_unit_test(announce__head_is_one_when_it_is_resent),
        cmocka_unit_test(announce__what_is_unimportant_says_so_in_the_notice),
        cmocka_unit_test(announce__leaves_by_the_port_of_the_flow),
        cmocka_unit_test(announce__is_not_made_to_oneself),
        cmocka_unit_test(announce__refuses_units_that_a_notice_cannot_say),
        cmocka_unit_test(announce__repeats_after_half_a_round_trip_and_leaves_after_one),
        cmocka_unit_test(announce__burst_waits_behind_the_answer_for_its_lead),
        cmocka_unit_test(announce__sends_no_third_copy),
        cmocka_unit_test(announce__without_a_round_trip_takes_the_path_s),
        cmocka_unit_test(announce__an_answer_to_the_repeat_will_do),
        cmocka_unit_test(announce__waits_as_long_as_exchanges_take),
        cmocka_unit_test(announce__learns_from_answers_that_come_too_late),
        cmocka_unit_test(announce__counts_a_late_answer_for_twice_its_patience),
        cmocka_unit_test(announce__survives_the_wrap_of_time),
        cmocka_unit_test(announce__leaves_only_for_its_own_answer),
        cmocka_unit_test(announce__answer_of_an_earlier_burst_does_not_count),
        cmocka_unit_test(announce__any_host_answers_at_once_with_no_more_bytes),
        cmocka_unit_test(announce__notices_for_others_are_stray),
        cmocka_unit_test(announce__notice_from_our_own_address_goes_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
