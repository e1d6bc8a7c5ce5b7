/* Flows on credit: what the receiver grants and when, and what the sender does with it. */
#include "endpoint_fixture.h"

enum {
    FIRST = 11, /* packets: one bdp of the fixture's path, as the plan of eqds says */
    AHEAD = 23,
    GAPS = 400,
};

static struct gw_endpoint_cfg credit_cfg(void)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.grant = (struct gw_grant_plan){
        .first = FIRST, .ahead = AHEAD, .pace = gw_byte_time_from_bps(RATE_BPS)};
    return cfg;
}

/* An endpoint whose flows have credit and a window of `window` bytes. */
static void credit_open(struct endpoint_fixture *f, const char *window)
{
    struct gw_endpoint_cfg cfg = credit_cfg();
    fixture_open(f, &cfg, window);
    f->transport.grant = (const void *)gw_registry_find(&gw_grant_registry, "eqds");
    assert_non_null(f->transport.grant);
    gw_algo_defaults(&f->transport.grant->algo, f->transport.grant_cfg.bytes);
}

/* Packet `seq` of a message of theirs on credit arrives, with more flags. */
static void arrive(struct endpoint_fixture *f, uint32_t flow, uint32_t seq, uint32_t total,
                   uint8_t flags)
{
    struct gw_pkt pkt = fixture_data(flow, seq, total);
    pkt.q.flags |= GW_PKT_ON_CREDIT | flags;
    fixture_input(f, &pkt);
}

/* What left as CREDIT; all else is dropped. Counts per flow, and in all. */
static uint32_t take_credits(struct endpoint_fixture *f, uint32_t *granted, uint32_t flows)
{
    struct gw_pkt pkts[64];
    uint32_t count, credits = 0;
    while ((count = fixture_pull(f, pkts, GW_COUNT_OF(pkts))) > 0)
        for (uint32_t i = 0; i < count; i++)
            if (pkts[i].q.kind == GW_PKT_CREDIT) {
                assert_int_equal(pkts[i].q.class, GW_CLASS_CONTROL);
                assert_int_equal(pkts[i].dst, THEIRS);
                assert_true(pkts[i].flow < flows);
                credits += pkts[i].seq - granted[pkts[i].flow];
                granted[pkts[i].flow] = pkts[i].seq;
            }
    return credits;
}

/* Lets `gaps` times of a packet pass; returns the credits of that time. */
static uint32_t pass(struct endpoint_fixture *f, uint32_t gaps, uint32_t *granted, uint32_t flows)
{
    uint32_t credits = take_credits(f, granted, flows);
    gw_time end = f->now + gaps * GAP;
    while (gw_node_deadline(f->node) != GW_TIME_NEVER &&
           !gw_time_before(end, gw_node_deadline(f->node))) {
        fixture_expire(f);
        credits += take_credits(f, granted, flows);
    }
    f->now = end;
    return credits;
}

static void credit__needs_none_for_a_message_within_the_first_window(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0};
    credit_open(&f, "1MB");
    for (uint32_t seq = 0; seq < FIRST - 1; seq++)
        arrive(&f, 0, seq, FIRST, 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), 0);
    fixture_abandon(&f);
}

/* Each trim is one packet to send again: one credit, once. */
static void credit__brings_back_each_trimmed_packet_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0};
    credit_open(&f, "1MB");
    for (uint32_t seq = 0; seq < FIRST; seq++)
        arrive(&f, 0, seq, FIRST, seq % 3 ? GW_PKT_TRIMMED : 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), FIRST - (FIRST + 2) / 3);
    /* Trimmed once more: once more granted. */
    arrive(&f, 0, 1, FIRST, GW_PKT_TRIMMED);
    assert_int_equal(pass(&f, GAPS, granted, 1), 1);
    fixture_abandon(&f);
}

static void credit__is_never_faster_than_its_pace(void **state)
{
    (void)state;
    enum {
        FLOWS = 5,
        TOTAL = 1000,
    };
    struct endpoint_fixture f;
    uint32_t granted[FLOWS] = {0}, seq[FLOWS] = {0}, credits = 0;
    struct gw_prng prng = gw_prng_derive(1, 0);
    credit_open(&f, "1MB");
    gw_time begin = f.now;
    for (uint32_t i = 0; i < GAPS; i++) {
        for (uint32_t n = gw_prng_below(&prng, 12); n > 0; n--) {
            uint32_t flow = gw_prng_below(&prng, FLOWS);
            arrive(&f, flow, seq[flow]++, TOTAL, 0);
        }
        /* The driver is late by up to three credits. */
        f.now += gw_prng_below(&prng, 3) * GAP + gw_prng_below(&prng, 1000);
        gw_node_expire(f.node, f.now);
        fixture_take_ready(&f);
        credits += take_credits(&f, granted, FLOWS);
        assert_in_range(credits, 0, (f.now - begin) / GAP + 1);
    }
    assert_in_range(credits, (f.now - begin) / GAP * 9 / 10, (f.now - begin) / GAP + 1);
    fixture_abandon(&f);
}

/* A driver that slept for long does not let all senders go at once. */
static void credit__makes_good_for_little_of_a_long_delay(void **state)
{
    (void)state;
    enum {
        FLOWS = 7, /* they want AHEAD - FIRST credits each */
        TOTAL = 1000,
    };
    struct endpoint_fixture f;
    uint32_t granted[FLOWS] = {0};
    struct gw_endpoint_cfg cfg = credit_cfg();
    cfg.grant.pace = gw_byte_time_from_bps(RATE_BPS / 100);
    fixture_open(&f, &cfg, "1MB");
    for (uint32_t flow = 0; flow < FLOWS; flow++)
        arrive(&f, flow, 0, TOTAL, 0);
    f.now += 50 * GW_MS;
    gw_node_expire(f.node, f.now);
    fixture_take_ready(&f);
    uint32_t allowed = (uint32_t)(2 * GW_MS / (100 * GAP));
    assert_true(allowed + 1 < FLOWS * (AHEAD - FIRST)); /* they want more than that */
    assert_int_equal(take_credits(&f, granted, FLOWS), allowed + 1);
    fixture_abandon(&f);
}

static void credit__is_shared_in_turn(void **state)
{
    (void)state;
    enum {
        FLOWS = 7,
        TOTAL = 300,
        ROUNDS = AHEAD - FIRST,
    };
    struct endpoint_fixture f;
    uint32_t granted[FLOWS] = {0};
    credit_open(&f, "1MB");
    for (uint32_t flow = 0; flow < FLOWS; flow++)
        arrive(&f, flow, 0, TOTAL, 0);
    for (uint32_t i = 1; i < FLOWS * ROUNDS; i++) {
        pass(&f, 1, granted, FLOWS);
        for (uint32_t flow = 0; flow < FLOWS; flow++)
            assert_in_range(granted[flow], i / FLOWS, i / FLOWS + 1);
    }
    fixture_abandon(&f);
}

/* A sender that does not use its credit gets no more than `ahead`. */
static void credit__does_not_pile_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0};
    credit_open(&f, "1MB");
    arrive(&f, 0, 0, 500, 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), AHEAD - (FIRST - 1));
    arrive(&f, 0, 1, 500, 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), 1);
    fixture_abandon(&f);
}

/* More may be free than may be ahead: then credit waits until so much has come. */
static void credit__comes_after_a_first_window_that_is_larger(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0}, seq = 0;
    struct gw_endpoint_cfg cfg = credit_cfg();
    cfg.grant.ahead = FIRST / 2;
    fixture_open(&f, &cfg, "1MB");
    while (seq < FIRST - FIRST / 2) {
        arrive(&f, 0, seq++, 500, 0);
        assert_int_equal(pass(&f, GAPS, granted, 1), 0);
    }
    arrive(&f, 0, seq, 500, 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), 1);
    fixture_abandon(&f);
}

static void credit__of_a_flow_that_ended_goes_to_the_others(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[2] = {0};
    struct gw_event event;
    credit_open(&f, "1MB");
    arrive(&f, 0, 0, 2, GW_PKT_TRIMMED);
    arrive(&f, 0, 1, 2, GW_PKT_TRIMMED);
    arrive(&f, 1, 0, 500, 0);
    arrive(&f, 0, 0, 2, 0);
    arrive(&f, 0, 1, 2, 0);
    assert_int_equal(gw_endpoint_poll(f.endpoint, &event, 1), 1);
    assert_int_equal(pass(&f, 9, granted, 2), 10);
    assert_int_equal(granted[0], 0);
    assert_int_equal(granted[1], 10);
    fixture_abandon(&f);
}

/* The sender stopped early: what it did not send for free needs credit. */
static void credit__learns_where_the_first_window_ended(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0};
    credit_open(&f, "1MB");
    arrive(&f, 0, 1, FIRST, GW_PKT_LAST_FREE); /* overtakes packet 0 */
    assert_int_equal(pass(&f, GAPS, granted, 1), FIRST - 2);
    arrive(&f, 0, 0, FIRST, 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), 0);
    fixture_abandon(&f);
}

static void credit__begins_anew_for_a_starved_sender(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0};
    credit_open(&f, "1MB");
    arrive(&f, 0, 3, FIRST, GW_PKT_STARVED); /* all others are lost */
    assert_int_equal(pass(&f, GAPS, granted, 1), FIRST - 1);
    fixture_abandon(&f);
}

/* A host that was not told to grant does not, and answers as ever. */
static void credit__is_not_granted_without_a_plan(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    uint32_t granted[1] = {0};
    fixture_open(&f, &cfg, "1MB");
    arrive(&f, 0, 0, 100, 0);
    assert_int_equal(pass(&f, GAPS, granted, 1), 0);
    assert_int_equal(fixture_stats(&f)->acks_sent, 1);
    fixture_abandon(&f);
}

/* Trims that outnumber the pool: the pacer skips a turn and goes on when there are packets. */
static void credit__waits_for_the_pool(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t granted[1] = {0};
    credit_open(&f, "1MB");
    arrive(&f, 0, 0, 500, 0);
    take_credits(&f, granted, 1);
    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    assert_int_equal(pass(&f, 5, granted, 1), 0);
    assert_true(fixture_stats(&f)->pool_empty > 0);
    fixture_give_back(&f, &hoard);
    assert_int_equal(pass(&f, GAPS, granted, 1), AHEAD - (FIRST - 1));
    fixture_abandon(&f);
}

/* ---- The sender. ---- */

static void give(struct endpoint_fixture *f, uint32_t flow, uint32_t granted)
{
    struct gw_pkt credit = {
        .q = {.size = HDR, .class = GW_CLASS_CONTROL, .kind = GW_PKT_CREDIT},
        .src = THEIRS,
        .dst = OURS,
        .flow = flow,
        .seq = granted,
        .buf = GW_BUF_NONE,
    };
    fixture_input(f, &credit);
}

static void credit_sender__sends_the_first_window_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200];
    credit_open(&f, "1MB");
    uint32_t flow = fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 200), FIRST);
    for (uint32_t i = 0; i < FIRST; i++)
        assert_int_equal(pkts[i].q.flags, GW_PKT_TRIMMABLE | GW_PKT_ON_CREDIT);
    /* Neither ACKs nor trims make room for more. */
    for (uint32_t i = 0; i < FIRST; i += 2)
        fixture_ack(&f, &pkts[i], i == 0);
    for (uint32_t i = 1; i < FIRST; i += 2)
        fixture_nack(&f, &pkts[i]);
    assert_int_equal(fixture_pull(&f, pkts, 200), 0);
    /* Each credit is a packet: first what was trimmed. */
    give(&f, flow, FIRST / 2 + 3);
    assert_int_equal(fixture_pull(&f, pkts, 200), FIRST / 2 + 3);
    for (uint32_t i = 0; i < FIRST / 2; i++)
        assert_int_equal(pkts[i].seq, 2 * i + 1);
    assert_int_equal(pkts[FIRST / 2].seq, FIRST);
    fixture_abandon(&f);
}

static void credit_sender__counts_from_the_beginning(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200];
    credit_open(&f, "1MB");
    uint32_t flow = fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 200), FIRST);
    give(&f, flow, 2);
    assert_int_equal(fixture_pull(&f, pkts, 200), 2);
    give(&f, flow, 5); /* 3 and 4 were lost */
    assert_int_equal(fixture_pull(&f, pkts, 200), 3);
    give(&f, flow, 4); /* overtaken */
    give(&f, flow, 5); /* twice */
    assert_int_equal(fixture_pull(&f, pkts, 200), 0);
    give(&f, flow, 6);
    assert_int_equal(fixture_pull(&f, pkts, 200), 1);
    give(&f, flow ^ 1, 9); /* of another flow */
    assert_int_equal(fixture_stats(&f)->stray, 1);
    assert_int_equal(fixture_pull(&f, pkts, 200), 0);
    fixture_abandon(&f);
}

/* The first that is heard of the receiver ends the first window; one packet says where. */
static void credit_sender__says_where_the_first_window_ended(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200], first;
    credit_open(&f, "1MB");
    fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, &first, 1), 1);
    assert_int_equal(fixture_pull(&f, pkts, 3), 3);
    fixture_nack(&f, &first);
    assert_int_equal(fixture_pull(&f, pkts, 200), 1);
    assert_int_equal(pkts[0].seq, 4); /* a new one, though 0 is to be sent again */
    assert_int_equal(pkts[0].q.flags, GW_PKT_TRIMMABLE | GW_PKT_ON_CREDIT | GW_PKT_LAST_FREE);
    fixture_abandon(&f);
}

static void credit_sender__needs_both_credit_and_window(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200];
    credit_open(&f, "3000B");
    uint32_t flow = fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 200), 3);
    give(&f, flow, 10);
    assert_int_equal(fixture_pull(&f, pkts, 200), 0);
    fixture_ack(&f, &pkts[0], 1);
    assert_int_equal(fixture_pull(&f, &pkts[3], 100), 1);
    fixture_abandon(&f);
}

/* All is lost, the CREDITs too: one packet per timeout, which says so, until one comes. */
static void credit_sender__asks_again_when_starved(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200];
    credit_open(&f, "1MB");
    uint32_t flow = fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 200), FIRST);
    for (uint32_t asked = 0; asked < 4;) {
        fixture_expire(&f);
        uint32_t count = fixture_pull(&f, pkts, 200);
        assert_in_range(count, 0, 1);
        if (count)
            assert_int_equal(pkts[0].q.flags, GW_PKT_TRIMMABLE | GW_PKT_ON_CREDIT | GW_PKT_STARVED);
        asked += count;
    }
    give(&f, flow, 8);
    assert_int_equal(fixture_pull(&f, pkts, 200), 8);
    fixture_abandon(&f);
}

/* Nothing is in flight, but credit may be on its way: not before a timeout. */
static void credit_sender__is_patient(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200];
    credit_open(&f, "1MB");
    uint32_t flow = fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 200), FIRST);
    for (uint32_t i = 0; i < FIRST; i++)
        fixture_nack(&f, &pkts[i]);
    gw_time heard = f.now + BRTT;
    gw_node_expire(f.node, heard);
    f.now = heard;
    give(&f, flow, 1);
    assert_int_equal(fixture_pull(&f, pkts, 200), 1);
    fixture_nack(&f, &pkts[0]);
    while (fixture_pull(&f, pkts, 200) == 0)
        fixture_expire(&f);
    assert_true(f.now - heard >= BRTT); /* the period of `trim` is 1.2 base RTTs on one link */
    assert_true(pkts[0].q.flags & GW_PKT_STARVED);
    fixture_abandon(&f);
}

static void credit_sender__refuses_credit_that_it_does_not_need(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[200];
    struct gw_endpoint_cfg cfg = credit_cfg();
    fixture_open(&f, &cfg, "3000B");
    uint32_t flow = fixture_send(&f, 100 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 200), 3);
    assert_int_equal(pkts[0].q.flags, GW_PKT_TRIMMABLE);
    give(&f, flow, 5);
    assert_int_equal(fixture_stats(&f)->malformed, 1);
    assert_int_equal(fixture_pull(&f, pkts, 200), 0);
    fixture_abandon(&f);
}

static void transport_choose__takes_a_grant_and_a_congestion_control_apart(void **state)
{
    (void)state;
    struct gw_transport t = {0};
    assert_int_equal(gw_transport_choose(&t, "smartt"), GW_OK);
    assert_null(t.grant);
    assert_string_equal(t.cc->algo.name, "smartt");
    assert_int_equal(gw_transport_choose(&t, "eqds+mprdma"), GW_OK);
    assert_string_equal(t.grant->algo.name, "eqds");
    assert_string_equal(t.cc->algo.name, "mprdma");
    assert_string_equal(t.name, "eqds+mprdma");
    assert_int_equal(gw_transport_choose(&t, "eqds"), GW_OK);
    assert_string_equal(t.grant->algo.name, "eqds");
    static const char *const unknown[] = {
        "",   "+",    "eqds+",     "+smartt",       "smartt+eqds",
        "eq", "open", "eqds+eqds", "smartt+smartt", "eqds+smartt+"};
    for (size_t i = 0; i < GW_COUNT_OF(unknown); i++)
        assert_int_equal(gw_transport_choose(&t, unknown[i]), GW_ERR_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit__needs_none_for_a_message_within_the_first_window),
        cmocka_unit_test(credit__brings_back_each_trimmed_packet_once),
        cmocka_unit_test(credit__is_never_faster_than_its_pace),
        cmocka_unit_test(credit__makes_good_for_little_of_a_long_delay),
        cmocka_unit_test(credit__is_shared_in_turn),
        cmocka_unit_test(credit__does_not_pile_up),
        cmocka_unit_test(credit__comes_after_a_first_window_that_is_larger),
        cmocka_unit_test(credit__of_a_flow_that_ended_goes_to_the_others),
        cmocka_unit_test(credit__learns_where_the_first_window_ended),
        cmocka_unit_test(credit__begins_anew_for_a_starved_sender),
        cmocka_unit_test(credit__is_not_granted_without_a_plan),
        cmocka_unit_test(credit__waits_for_the_pool),
        cmocka_unit_test(credit_sender__sends_the_first_window_once),
        cmocka_unit_test(credit_sender__counts_from_the_beginning),
        cmocka_unit_test(credit_sender__says_where_the_first_window_ended),
        cmocka_unit_test(credit_sender__needs_both_credit_and_window),
        cmocka_unit_test(credit_sender__asks_again_when_starved),
        cmocka_unit_test(credit_sender__is_patient),
        cmocka_unit_test(credit_sender__refuses_credit_that_it_does_not_need),
        cmocka_unit_test(transport_choose__takes_a_grant_and_a_congestion_control_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
