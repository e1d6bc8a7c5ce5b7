/* Lanes of blasts: what blasts to one peer share, and for how long it is remembered. */
#include "unit/core/host/blast_fixture.h"

enum {
    PACKETS = 900,
    MANY = 2048,
    OTHER = 3, /* another peer */
};

static struct gw_pkt pkts[MANY];

/* An endpoint with room for all that a test sends, whose blasts use `cc`. */
static void open_with(struct endpoint_fixture *f, const char *cc)
{
    blast_open(f);
    f->transport = gw_test_transport(cc, "spray", "trim");
}

/* A message of full packets, of whose receiver has been heard. */
static uint32_t begin(struct endpoint_fixture *f, uint32_t peer, uint32_t packets)
{
    struct gw_send send = {
        .peer = peer,
        .bytes = (uint64_t)packets * MTU,
        .transport = &f->transport,
        .path = gw_test_path(&f->cfg, RATE_BPS, BRTT),
    };
    uint32_t flow;
    assert_int_equal(gw_endpoint_send(f->endpoint, &send, &flow, f->now), GW_OK);
    struct gw_pkt accept = blast_hail(GW_HAIL_ACCEPT, flow, f->now);
    accept.src = peer;
    fixture_input(f, &accept);
    return flow;
}

/* Data packets that leave in a time, of the flow, or of all (0). */
static uint32_t sent_in(struct endpoint_fixture *f, gw_time time, uint32_t flow)
{
    uint32_t count = 0;
    for (gw_time until = f->now + time; gw_time_before(f->now, until);) {
        uint32_t got = fixture_pull(f, pkts, MANY);
        for (uint32_t i = 0; i < got; i++)
            count += pkts[i].q.kind == GW_PKT_DATA && (!flow || pkts[i].flow == flow);
        blast_wait(f, GAP / 2);
    }
    return count;
}

/* The receiver has got `bytes` in period `period`, which has just ended. */
static void report(struct endpoint_fixture *f, uint32_t flow, uint32_t peer, uint32_t period,
                   uint32_t bytes)
{
    struct gw_pkt pkt = blast_hail(GW_HAIL_REPORT, flow, f->now);
    pkt.src = peer;
    pkt.seq = period;
    pkt.hail.word[0] = bytes;
    fixture_input(f, &pkt);
}

/* Packets of a period at line rate. */
static uint32_t full(void)
{
    return (uint32_t)(REPORT_EVERY / GAP);
}

/* A flow begins at line rate, and half of what it sent in its first period arrived. */
static uint32_t begin_and_lose(struct endpoint_fixture *f)
{
    uint32_t flow = begin(f, THEIRS, PACKETS);
    uint32_t sent = sent_in(f, REPORT_EVERY, flow);
    assert_in_range(sent, full() - 2, full() + 2);
    report(f, flow, THEIRS, 0, sent * (MTU + HDR) / 2);
    return flow;
}

/* All of it leaves, and arrives. */
static void end(struct endpoint_fixture *f, uint32_t flow, uint32_t peer, uint32_t packets)
{
    while (sent_in(f, REPORT_EVERY, flow))
        ;
    struct gw_pkt finish = blast_hail(GW_HAIL_FINISH, flow, f->now);
    finish.src = peer;
    finish.seq = packets;
    finish.hail.word[0] = packets * MTU;
    fixture_input(f, &finish);
    assert_int_equal(fixture_event(f).kind, GW_EVENT_SENT);
}

static void blast_lane__is_one_per_peer(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_with(&f, "follow");
    begin_and_lose(&f);
    assert_in_range(sent_in(&f, REPORT_EVERY, 0), full() / 2 - 2, full() / 2 + 2);
    /* A second one takes a half of that half, and does not begin at line rate. */
    uint32_t second = begin(&f, THEIRS, PACKETS);
    assert_in_range(sent_in(&f, REPORT_EVERY, second), full() / 4 - 2, full() / 4 + 2);
    assert_in_range(sent_in(&f, REPORT_EVERY / 2, 0), full() / 4 - 2, full() / 4 + 2);
    /* To another peer it does. */
    uint32_t third = begin(&f, OTHER, PACKETS);
    assert_in_range(sent_in(&f, REPORT_EVERY, third), full() - 2, full() + 2);
    gw_test_host_abandon(&f.host);
}

/* The rule of the paper is about each blast alone. */
static void blast_lane__is_one_per_blast_without_sharing(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_with(&f, "dlcp");
    uint32_t first = begin(&f, THEIRS, PACKETS);
    uint32_t sent = sent_in(&f, REPORT_EVERY, first);
    report(&f, first, THEIRS, 0, sent * (MTU + HDR) / 4);
    assert_in_range(sent_in(&f, REPORT_EVERY, 0), full() / 2 - 2, full() / 2 + 2);
    uint32_t second = begin(&f, THEIRS, PACKETS);
    assert_in_range(sent_in(&f, REPORT_EVERY, second), full() - 2, full() + 2);
    gw_test_host_abandon(&f.host);
}

/* Reports tell of one blast each, and within a period they are added up: of two that send as much,
 * one that loses all and one that loses nothing have lost a half. */
static void blast_lane__adds_reports_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_with(&f, "follow");
    uint32_t flows[] = {begin(&f, THEIRS, PACKETS), begin(&f, THEIRS, PACKETS)};
    sent_in(&f, REPORT_EVERY, 0);
    report(&f, flows[0], THEIRS, 0, full() / 2 * (MTU + HDR)); /* at line rate still */
    sent_in(&f, REPORT_EVERY / 2, 0);
    report(&f, flows[1], THEIRS, 0, 0);
    sent_in(&f, REPORT_EVERY / 2, 0);
    report(&f, flows[0], THEIRS, 1, full() / 2 * (MTU + HDR));
    assert_in_range(sent_in(&f, REPORT_EVERY, 0), full() / 2 - 2, full() / 2 + 2);
    gw_test_host_abandon(&f.host);
}

/* What one blast has learned the next one knows, but not for ever. */
static void blast_lane__remembers_for_a_while(void **state)
{
    (void)state;
    for (uint32_t is_old = 0; is_old < 2; is_old++) {
        struct endpoint_fixture f;
        open_with(&f, "follow");
        uint32_t flow = begin_and_lose(&f);
        end(&f, flow, THEIRS, PACKETS);
        f.now += (is_old ? 20 : 0) * REPORT_EVERY;
        flow = begin(&f, THEIRS, PACKETS);
        uint32_t sent = sent_in(&f, REPORT_EVERY, flow);
        if (is_old)
            assert_in_range(sent, full() - 2, full() + 2);
        else
            assert_true(sent <= full() / 2 + 2);
        gw_test_host_abandon(&f.host);
    }
}

/* There are as many lanes as blasts: who needs one takes that which has been idle the longest. */
static void blast_lane__makes_room(void **state)
{
    (void)state;
    for (uint32_t others = BLASTS - 1; others <= BLASTS; others++) {
        struct endpoint_fixture f;
        open_with(&f, "follow");
        end(&f, begin_and_lose(&f), THEIRS, PACKETS);
        uint32_t flow = 0;
        for (uint32_t i = 0; i < others; i++)
            flow = begin(&f, OTHER + i, 1);
        end(&f, flow, OTHER + others - 1, 1);
        flow = begin(&f, THEIRS, PACKETS);
        uint32_t sent = sent_in(&f, REPORT_EVERY, flow);
        if (others == BLASTS)
            assert_in_range(sent, full() - 2, full() + 2);
        else
            assert_true(sent <= full() / 2 + 2);
        gw_test_host_abandon(&f.host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blast_lane__is_one_per_peer),
        cmocka_unit_test(blast_lane__is_one_per_blast_without_sharing),
        cmocka_unit_test(blast_lane__adds_reports_up),
        cmocka_unit_test(blast_lane__remembers_for_a_while),
        cmocka_unit_test(blast_lane__makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
