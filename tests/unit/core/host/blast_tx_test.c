/* The sender half of a blast, against a receiver that keeps to the rules, or does not. */
#include "unit/core/host/blast_fixture.h"

#include "core/loss/rto.h"

enum {
    PACKETS = 100,
    MANY = 256,
    TRAIN = 4,
};

static struct gw_pkt pkts[MANY];

/* All that leaves until `count` packets have, as time passes; returns how many did. */
static uint32_t pull_all(struct endpoint_fixture *f, uint32_t count)
{
    uint32_t got = 0;
    for (uint32_t i = 0; i < 4 * MANY && got < count; i++) {
        got += fixture_pull(f, &pkts[got], count - got);
        f->now += GAP;
        gw_node_expire(f->node, f->now);
        fixture_take_ready(f);
    }
    return got;
}

/* A message of PACKETS full ones, of which `bound` may be missing; its rendezvous has left. */
static uint32_t start_stalling(struct endpoint_fixture *f, gw_q16 bound, gw_time stall)
{
    blast_open_stalling(f, stall);
    f->bound = bound;
    uint32_t flow = fixture_send(f, PACKETS * MTU);
    assert_int_equal(flow & UINT16_MAX, TX_FLOWS);
    assert_int_equal(fixture_pull(f, pkts, 1), 1);
    return flow;
}

static uint32_t start(struct endpoint_fixture *f, gw_q16 bound)
{
    return start_stalling(f, bound, 0);
}

static void answer(struct endpoint_fixture *f, uint32_t flow, enum gw_hail_op op, uint8_t marks)
{
    struct gw_pkt pkt = blast_hail(op, flow, pkts[0].sent_at);
    pkt.hail.marks = marks;
    fixture_input(f, &pkt);
}

/* Sends all, and the STOP; the receiver has been heard of. */
static void send_and_stop(struct endpoint_fixture *f, uint32_t flow)
{
    answer(f, flow, GW_HAIL_ACCEPT, 0);
    assert_int_equal(pull_all(f, PACKETS + 1), PACKETS + 1);
    assert_int_equal(pkts[PACKETS].hail.op, GW_HAIL_STOP);
}

static uint32_t start_and_stop(struct endpoint_fixture *f, gw_q16 bound)
{
    uint32_t flow = start(f, bound);
    send_and_stop(f, flow);
    return flow;
}

static void request(struct endpoint_fixture *f, uint32_t flow, uint32_t round, uint32_t first,
                    uint64_t mask, bool is_last)
{
    struct gw_pkt pkt = blast_hail(GW_HAIL_REQUEST, flow, f->now - GW_US);
    pkt.seq = first;
    pkt.hail.number = (uint16_t)round;
    pkt.hail.word[0] = (uint32_t)mask;
    pkt.hail.word[1] = (uint32_t)(mask >> 32);
    pkt.hail.marks = is_last ? GW_HAIL_LAST : 0;
    fixture_input(f, &pkt);
}

static void finish(struct endpoint_fixture *f, uint32_t flow, uint32_t packets, uint64_t bytes)
{
    struct gw_pkt pkt = blast_hail(GW_HAIL_FINISH, flow, f->now - GW_US);
    pkt.seq = packets;
    pkt.hail.word[0] = (uint32_t)bytes;
    pkt.hail.word[1] = (uint32_t)(bytes >> 32);
    fixture_input(f, &pkt);
}

static void blast_tx__says_what_comes_and_sends_all_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    bool seen[PACKETS] = {false};
    uint32_t flow = start(&f, GW_Q16_ONE / 10);
    assert_int_equal(pkts[0].hail.op, GW_HAIL_RENDEZVOUS);
    assert_int_equal(pkts[0].hail.word[0], PACKETS);
    assert_int_equal(pkts[0].hail.number, MTU);
    assert_int_equal(pkts[0].index, MTU);
    assert_int_equal(pkts[0].seq, (uint32_t)(BRTT / GW_US) << 16 | GW_Q16_ONE / 10);
    assert_int_equal(pkts[0].hail.marks, GW_HAIL_BARE);
    gw_time began = f.now;
    answer(&f, flow, GW_HAIL_ACCEPT, 0);
    assert_int_equal(pull_all(&f, PACKETS + 1), PACKETS + 1);
    uint32_t steps = 0;
    for (uint32_t i = 0; i < PACKETS; i++) {
        assert_int_equal(pkts[i].q.flags, GW_PKT_BLAST);
        assert_false(seen[pkts[i].seq]);
        seen[pkts[i].seq] = true;
        steps += i && pkts[i].seq == pkts[i - 1].seq + 1;
        assert_true(pkts[i].sent_at >= began + i * (GAP - 1)); /* at line rate */
        assert_int_equal(pkts[i].data.tag, 0);
    }
    assert_true(steps < PACKETS / 2); /* not in the order of the message */
    finish(&f, flow, PACKETS, PACKETS * MTU);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_SENT);
    assert_true(event.missing == 0 && event.bytes == PACKETS * MTU && event.retransmits == 0);
    blast_hears(&f, GW_HAIL_CONFIRM);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_close(&f);
}

/* In mid-message, with what is enough; nothing leaves any more but the CONFIRM. */
static void blast_tx__stops_in_mid_message(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start(&f, GW_Q16_ONE / 2);
    answer(&f, flow, GW_HAIL_ACCEPT, 0);
    assert_int_equal(pull_all(&f, 60), 60);
    finish(&f, flow, 55, 55 * MTU);
    struct gw_event event = fixture_event(&f);
    assert_true(event.kind == GW_EVENT_SENT && event.missing == PACKETS - 55);
    assert_int_equal(pull_all(&f, MANY), 1);
    assert_int_equal(pkts[0].hail.op, GW_HAIL_CONFIRM);
    finish(&f, flow, 55, 55 * MTU); /* again: the CONFIRM was lost */
    blast_hears(&f, GW_HAIL_CONFIRM);
    fixture_no_event(&f);
    fixture_close(&f);
}

/* More than has left, less than the bound allows, bytes and packets that do not fit. */
static void blast_tx__sees_through_a_finish_that_lies(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start(&f, GW_Q16_ONE / 2);
    answer(&f, flow, GW_HAIL_ACCEPT, 0);
    assert_int_equal(pull_all(&f, 60), 60);
    finish(&f, flow, 61, 61 * MTU);
    finish(&f, flow, 50, 50 * MTU); /* 50 of 100 are missing, and the last may be short */
    finish(&f, flow, 0, 0);
    finish(&f, flow, 55, 55 * MTU + 1);
    finish(&f, flow, 55, 54 * MTU);
    finish(&f, flow, 55, UINT64_MAX);
    finish(&f, flow, UINT32_MAX, 55 * MTU);
    assert_true(fixture_stats(&f)->malformed == 7);
    fixture_no_event(&f);
    struct gw_pkt stranger = blast_hail(GW_HAIL_FINISH, flow, f.now);
    stranger.src = THEIRS + 1;
    stranger.seq = 55;
    stranger.hail.word[0] = 55 * MTU;
    fixture_input(&f, &stranger);
    fixture_no_event(&f);
    finish(&f, flow, 60, 60 * MTU);
    assert_int_equal(fixture_event(&f).missing, 40);
    pull_all(&f, MANY);
    fixture_close(&f);
}

static void blast_tx__sends_again_what_is_asked_for(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start_and_stop(&f, 0);
    request(&f, flow, 0, 0, 5, false);
    request(&f, flow, 0, 0, 5, false); /* doubled */
    assert_int_equal(pull_all(&f, 2), 2);
    assert_int_equal(pkts[0].seq + pkts[1].seq, 2);
    assert_int_equal(pkts[0].data.tag, UINT32_C(1) << GW_HAIL_ROUND_SHIFT);
    request(&f, flow, 0, 64, UINT64_C(1) << 35, true);
    assert_int_equal(pull_all(&f, 2), 2);
    assert_int_equal(pkts[0].seq, 99);
    assert_int_equal(pkts[1].hail.op, GW_HAIL_STOP);
    assert_int_equal(pkts[1].seq, 1);
    request(&f, flow, 0, 0, 8, true); /* of the round before */
    request(&f, flow, 2, 0, 8, true); /* and of one to come */
    pull_all(&f, 1);
    assert_int_equal(fixture_stats(&f)->retransmits, 3);
    fixture_close(&f);
}

/* The last request of a round is lost: its STOP comes without it. */
static void blast_tx__does_not_wait_for_the_last_request_for_ever(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start_and_stop(&f, 0);
    request(&f, flow, 0, 0, 5, false);
    assert_int_equal(pull_all(&f, 2), 2);
    for (uint32_t i = 0; i < 50 && !fixture_pull(&f, pkts, 1); i++)
        fixture_expire(&f);
    assert_int_equal(pkts[0].hail.op, GW_HAIL_STOP);
    assert_int_equal(pkts[0].seq, 1);
    fixture_close(&f);
}

/* A receiver asks for the same for ever, or for nothing, or tells of data that has not left: the
 * message stalls all the same. */
static void blast_tx__does_not_send_for_ever(void **state)
{
    (void)state;
    enum { MOST = 80 * PACKETS };
    const gw_time stall = GW_MS;
    struct gw_event event = {.kind = GW_EVENT_SENT};
    for (uint32_t kind = 0; kind < 3; kind++) {
        struct endpoint_fixture f;
        uint32_t flow = start_stalling(&f, 0, stall);
        send_and_stop(&f, flow);
        const gw_time begin = f.now;
        for (uint32_t i = 0; !gw_endpoint_poll(f.endpoint, &event, 1); i++) {
            struct gw_pkt report = blast_hail(GW_HAIL_REPORT, flow, f.now - GW_US);
            report.seq = i;
            if (kind == 2)
                fixture_input(&f, &report);
            else
                request(&f, flow, i, 0, kind ? 0 : UINT64_MAX, true);
            for (uint32_t j = 0; j < 70; j++) {
                fixture_pull(&f, pkts, MANY);
                blast_wait(&f, REPORT_EVERY / 70 + 1);
            }
            assert_true(fixture_stats(&f)->data_sent <= MOST);
            assert_true(kind == 0 || f.now - begin < 2 * stall);
        }
        assert_int_equal(event.kind, GW_EVENT_FAILED);
        fixture_close(&f);
    }
}

/* A round in which all leaves that its request is for, and the STOP; a fifth of a stall. */
static void pass_round(struct endpoint_fixture *f, uint32_t flow, uint32_t round, uint64_t mask)
{
    request(f, flow, round, 0, mask, true);
    for (uint32_t i = 0; i < 70; i++) {
        fixture_pull(f, pkts, MANY);
        blast_wait(f, GW_MS / 5 / 70);
    }
}

/* It has been sent very often, but each time less of it is missing: so it goes on, and stalls when
 * that ends. */
static void blast_tx__goes_on_while_something_arrives(void **state)
{
    (void)state;
    enum { OFTEN = 64 * PACKETS / 64, LESS = 60 };
    struct endpoint_fixture f;
    struct gw_event event = {.kind = GW_EVENT_SENT};
    uint32_t round = 0, flow = start_stalling(&f, 0, GW_MS);
    send_and_stop(&f, flow);
    while (round < OFTEN)
        pass_round(&f, flow, round++, UINT64_MAX);
    assert_true(fixture_stats(&f)->data_sent >= 64 * PACKETS);
    for (uint32_t i = 1; i <= LESS; i++)
        pass_round(&f, flow, round++, UINT64_MAX >> i);
    assert_int_equal(gw_endpoint_poll(f.endpoint, &event, 1), 0);
    for (uint32_t i = 0; i < 10; i++)
        pass_round(&f, flow, round++, UINT64_MAX >> LESS);
    assert_int_equal(gw_endpoint_poll(f.endpoint, &event, 1), 1);
    assert_int_equal(event.kind, GW_EVENT_FAILED);
    fixture_close(&f);
}

static void blast_tx__refuses_places_outside(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start_and_stop(&f, 0);
    request(&f, flow, 0, 1, 1, true);                        /* no multiple of 64 */
    request(&f, flow, 0, 128, 1, true);                      /* behind the end */
    request(&f, flow, 0, 64, UINT64_C(1) << 36, true);       /* likewise */
    request(&f, flow, 0, UINT32_MAX - 63, UINT64_MAX, true); /* far behind it */
    request(&f, flow, 0, 0, 0, false);                       /* nothing */
    assert_true(fixture_stats(&f)->malformed == 5);
    assert_true(fixture_stats(&f)->requests_received == 0);
    struct gw_pkt report = blast_hail(GW_HAIL_REPORT, flow, f.now);
    report.hail.marks = 5 << GW_HAIL_ECHOES_SHIFT;
    fixture_input(&f, &report);
    assert_true(fixture_stats(&f)->malformed == 6);
    fixture_close(&f);
}

static void blast_tx__repeats_rendezvous_and_stop(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    start(&f, 0);
    uint32_t rendezvous = 0, stops = 0;
    assert_int_equal(pull_all(&f, PACKETS + 1), PACKETS + 1);
    for (uint32_t i = 0; i < 10; i++) {
        fixture_expire(&f);
        uint32_t count = fixture_pull(&f, pkts, MANY);
        for (uint32_t j = 0; j < count; j++) {
            rendezvous += pkts[j].hail.op == GW_HAIL_RENDEZVOUS;
            stops += pkts[j].hail.op == GW_HAIL_STOP;
        }
    }
    assert_true(rendezvous >= 3 && stops >= 3);
    assert_true(fixture_stats(&f)->data_sent == PACKETS);
    fixture_close(&f);
}

/* How long it takes until so many leave. */
static gw_time until_hails(struct endpoint_fixture *f, uint32_t count)
{
    gw_time since = f->now;
    uint32_t left;
    while (!(left = fixture_pull(f, pkts, MANY)))
        fixture_expire(f);
    assert_int_equal(left, count);
    return f->now - since;
}

/* Hails go before data: they become more seldom while nobody answers, whatever the loss detection,
 * and as they were when somebody does. */
static void blast_tx__repeats_more_and_more_seldom(void **state)
{
    (void)state;
    static const char *const kinds[] = {"trim", "timeout", "sack", "pfabric"};
    for (uint32_t i = 0; i < GW_COUNT_OF(kinds); i++) {
        struct endpoint_fixture f;
        blast_open(&f);
        f.transport = gw_test_transport("dlcp", "spray", kinds[i]);
        uint32_t flow = fixture_send(&f, MTU);
        assert_int_equal(fixture_pull(&f, pkts, MANY), 3); /* RENDEZVOUS, data, STOP */
        const gw_time first = until_hails(&f, 2);
        for (uint32_t shift = 0; shift <= GW_RTO_SHIFT_MAX; shift++)
            assert_true(until_hails(&f, 2) == first << shift);
        struct gw_pkt accept = blast_hail(GW_HAIL_ACCEPT, flow, f.now);
        accept.seq = 1;
        fixture_input(&f, &accept);
        assert_true(until_hails(&f, 1) == first << GW_RTO_SHIFT_MAX);
        assert_true(until_hails(&f, 1) == first);
        fixture_close(&f);
    }
}

/* Reports of less than half: the pace falls; without any report as well. */
static void blast_tx__slows_down(void **state)
{
    (void)state;
    for (uint32_t is_told = 0; is_told < 2; is_told++) {
        struct endpoint_fixture f;
        blast_open(&f);
        uint32_t flow = fixture_send(&f, 990 * MTU);
        assert_int_equal(fixture_pull(&f, pkts, 1), 1);
        answer(&f, flow, GW_HAIL_ACCEPT, 0);
        uint64_t sent[6] = {0};
        gw_time began = f.now;
        for (uint32_t period = 0; period < 6; period++) {
            uint64_t before = fixture_stats(&f)->data_sent;
            while (f.now - began < (period + 1) * REPORT_EVERY)
                pull_all(&f, 1);
            sent[period] = fixture_stats(&f)->data_sent - before;
            if (!is_told)
                continue;
            struct gw_pkt report = blast_hail(GW_HAIL_REPORT, flow, f.now);
            report.seq = period;
            report.hail.word[0] = period == 0 ? MTU : UINT32_MAX;
            fixture_input(&f, &report);
            fixture_input(&f, &report); /* doubled */
        }
        assert_in_range(sent[0], REPORT_EVERY / GAP - 4, REPORT_EVERY / GAP + 1);
        if (is_told) {
            assert_in_range(sent[1], sent[0] / 2 - 3, sent[0] / 2 + 3);
            assert_in_range(sent[3], sent[0] / 2 + 1, sent[0] * 7 / 10);
        } else {
            assert_in_range(sent[4], sent[0] / 2 - 3, sent[0] / 2 + 3);
        }
        fixture_close(&f);
    }
}

/* The packets that leave in the period after one of which `late` less than half, and a train, had
 * arrived. */
static uint64_t sent_after(uint32_t train, uint32_t late)
{
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.train = train;
    fixture_open(&f, &cfg, "4000");
    f.transport = gw_test_transport("dlcp", "spray", "trim");
    uint32_t flow = fixture_send(&f, 990 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 1), 1);
    answer(&f, flow, GW_HAIL_ACCEPT, 0);
    gw_time began = f.now;
    while (f.now - began < REPORT_EVERY)
        pull_all(&f, 1);
    const uint64_t sent = fixture_stats(&f)->data_sent;
    struct gw_pkt report = blast_hail(GW_HAIL_REPORT, flow, f.now);
    report.hail.word[0] = (uint32_t)(sent - TRAIN) / 2 * (MTU + HDR) - late;
    fixture_input(&f, &report);
    while (f.now - began < 2 * REPORT_EVERY)
        pull_all(&f, 1);
    const uint64_t after = fixture_stats(&f)->data_sent - sent;
    fixture_close(&f);
    return after;
}

/* A train that is under way at the end of a period arrives in the next one. */
static void blast_tx__waits_for_trains_under_way(void **state)
{
    (void)state;
    const uint64_t at_line_rate = REPORT_EVERY / GAP;
    assert_in_range(sent_after(TRAIN, 0), at_line_rate - TRAIN, at_line_rate + TRAIN);
    assert_in_range(sent_after(TRAIN, 2 * (MTU + HDR)), 1, at_line_rate / 2 + TRAIN);
    assert_in_range(sent_after(1, 0), 1, at_line_rate / 2 + TRAIN);
}

static void blast_tx__says_what_it_is_doing(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_flow_info info;
    uint32_t flow = start(&f, 0);
    assert_int_equal(pull_all(&f, 10), 10);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_int_equal(info.window_packets, PACKETS - 10);
    assert_non_null(info.cc_state);
    assert_false(gw_endpoint_flow_info(f.endpoint, flow + 1, &info));
    assert_false(gw_endpoint_flow_info(f.endpoint, flow + (1u << 16), &info));
    fixture_close(&f);
}

/* As many as there is room for, and none that is longer than any may be. */
static void blast_tx__has_limits(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow;
    blast_open(&f);
    assert_int_equal(fixture_try_send(&f, BLAST_PACKETS * MTU + 1, 0, &flow), GW_ERR_INVALID);
    assert_int_equal(fixture_try_send(&f, 0, 0, &flow), GW_OK); /* which ends at once */
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
    for (uint32_t i = 0; i < BLASTS; i++)
        assert_int_equal(fixture_try_send(&f, BLAST_PACKETS * MTU, 0, &flow), GW_OK);
    assert_int_equal(fixture_try_send(&f, 1, 0, &flow), GW_ERR_NO_ROOM);
    gw_test_host_abandon(&f.host);
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "4000");
    f.transport = gw_test_transport("dlcp", "spray", "trim");
    assert_int_equal(fixture_try_send(&f, 1, 0, &flow), GW_ERR_INVALID);
    fixture_close(&f);
}

/* How a blast that waits for the answer to its notice goes on. */
enum event_while_waiting {
    ANSWERED,
    NOT_READY_FIRST, /* and then answered */
    FORGOTTEN,
    WAITS,
};

/* Of two that say the same one opens the flow, and the other finds it open. */
static void blast_tx__says_rendezvous_in_copies(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.hail_copies = 2;
    fixture_open(&f, &cfg, "4000");
    f.transport = gw_test_transport("dlcp", "spray", "trim");
    uint32_t flow = fixture_send(&f, PACKETS * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 2), 2);
    for (uint32_t copy = 0; copy < 2; copy++) {
        assert_int_equal(pkts[copy].hail.op, GW_HAIL_RENDEZVOUS);
        assert_true(pkts[copy].sent_at == f.now);
    }
    answer(&f, flow, GW_HAIL_ACCEPT, 0);
    answer(&f, flow, GW_HAIL_ACCEPT, 0);
    assert_int_equal(pull_all(&f, PACKETS + 1), PACKETS + 1); /* all places, once, and a STOP */
    assert_int_equal(pkts[PACKETS].hail.op, GW_HAIL_STOP);
    assert_true(fixture_stats(&f)->data_sent == PACKETS);
    fixture_close(&f);
}

/* By PIAS a blast falls by what has left of it, not by which places that are: no train reaches over
 * a threshold, and what is sent again is as old as its message. */
static void blast_tx__falls_as_the_message_ages(void **state)
{
    (void)state;
    for (uint32_t train = 1; train <= 7; train += 3) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = blast_cfg();
        cfg.train = train;
        fixture_open(&f, &cfg, "4000");
        f.transport = gw_test_transport("dlcp", "spray", "trim");
        const struct gw_algo *pias = gw_registry_find(&gw_urgency_registry, "pias");
        f.transport.urgency = (const void *)pias;
        gw_algo_defaults(pias, f.transport.urgency_cfg.bytes);
        static const char *const thresholds[][2] = {
            {"th0", "30000"}, {"th1", "80000"}, {"th2", "0"}};
        for (uint32_t i = 0; i < GW_COUNT_OF(thresholds); i++)
            assert_int_equal(gw_algo_set(pias, f.transport.urgency_cfg.bytes, thresholds[i][0],
                                         thresholds[i][1]),
                             GW_OK);
        uint32_t flow = fixture_send(&f, PACKETS * MTU);
        assert_int_equal(fixture_pull(&f, pkts, 1), 1);
        send_and_stop(&f, flow);
        for (uint32_t i = 0; i < PACKETS; i++)
            assert_int_equal(pkts[i].q.class, i < 30 ? 6 : i < 80 ? 5 : 4);
        request(&f, flow, 0, 0, 1, true);
        assert_int_equal(pull_all(&f, 2), 2);
        assert_int_equal(pkts[0].seq, 0);
        assert_int_equal(pkts[0].q.class, 4);
        assert_int_equal(pkts[1].hail.op, GW_HAIL_STOP);
        fixture_close(&f);
    }
}

/* Switches learn of the burst before its data leaves, and the rendezvous leaves at once. */
static void blast_tx__announces_its_burst(void **state)
{
    (void)state;
    for (uint32_t how = 0; how < WAITS; how++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        static const uint64_t important[] = {1};
        uint32_t flow;
        cfg.blasts_max = 1;
        cfg.blast_packets_max = PACKETS;
        cfg.report_every = REPORT_EVERY;
        cfg.announcers_max = 1;
        fixture_open(&f, &cfg, "4000");
        f.transport = gw_test_transport("dlcp", "spray", "trim");
        struct gw_send send = {
            .peer = THEIRS,
            .bytes = 10 * MTU,
            .important = important,
            .important_first = true,
            .transport = &f.transport,
            .path = gw_test_path(&f.cfg, RATE_BPS, BRTT),
            .notice = {.job = 3, .units = 2},
        };
        assert_int_equal(gw_endpoint_send(f.endpoint, &send, &flow, f.now), GW_OK);
        assert_int_equal(fixture_pull(&f, pkts, MANY), 2);
        assert_int_equal(pkts[0].hail.op, GW_HAIL_RENDEZVOUS);
        struct gw_pkt notice = pkts[1];
        assert_int_equal(notice.q.kind, GW_PKT_NOTICE);
        assert_int_equal(notice.q.ecn, GW_ECN_ECT0); /* as its first packet */
        if (how == FORGOTTEN) {
            gw_endpoint_forget(f.endpoint, important, sizeof(important));
            assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
            blast_hears_nothing(&f);
            fixture_close(&f);
            continue;
        }
        if (how == NOT_READY_FIRST)
            answer(&f, flow, GW_HAIL_ACCEPT, GW_HAIL_NOT_READY);
        notice.src = THEIRS;
        notice.dst = OURS;
        notice.notice.is_answer = true;
        fixture_input(&f, &notice);
        if (how == NOT_READY_FIRST) {
            blast_hears_nothing(&f);
            answer(&f, flow, GW_HAIL_ACCEPT, 0);
        }
        assert_int_equal(pull_all(&f, 11), 11);
        for (uint32_t i = 0; i < 10; i++) {
            assert_int_equal(pkts[i].q.kind, GW_PKT_DATA);
            assert_int_equal(pkts[i].q.flags, GW_PKT_BLAST | (i == 0 ? GW_PKT_HEAD : 0));
            assert_int_equal(pkts[i].q.ecn, i == 0 ? GW_ECN_ECT0 : GW_ECN_NOT_ECT);
        }
        assert_int_equal(pkts[0].entropy, notice.entropy);
        finish(&f, flow, 10, 10 * MTU);
        assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
        pull_all(&f, MANY);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blast_tx__says_what_comes_and_sends_all_once),
        cmocka_unit_test(blast_tx__stops_in_mid_message),
        cmocka_unit_test(blast_tx__sees_through_a_finish_that_lies),
        cmocka_unit_test(blast_tx__sends_again_what_is_asked_for),
        cmocka_unit_test(blast_tx__does_not_wait_for_the_last_request_for_ever),
        cmocka_unit_test(blast_tx__does_not_send_for_ever),
        cmocka_unit_test(blast_tx__goes_on_while_something_arrives),
        cmocka_unit_test(blast_tx__refuses_places_outside),
        cmocka_unit_test(blast_tx__repeats_rendezvous_and_stop),
        cmocka_unit_test(blast_tx__repeats_more_and_more_seldom),
        cmocka_unit_test(blast_tx__slows_down),
        cmocka_unit_test(blast_tx__waits_for_trains_under_way),
        cmocka_unit_test(blast_tx__says_what_it_is_doing),
        cmocka_unit_test(blast_tx__has_limits),
        cmocka_unit_test(blast_tx__says_rendezvous_in_copies),
        cmocka_unit_test(blast_tx__falls_as_the_message_ages),
        cmocka_unit_test(blast_tx__announces_its_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
