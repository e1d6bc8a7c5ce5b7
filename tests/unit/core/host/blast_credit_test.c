/* Blasts on credit: what the sender does with it, and what the receiver grants. */
#include "unit/core/host/blast_fixture.h"

enum {
    FIRST = 11, /* packets: one bdp of the fixture's path, as the plan of eqds says */
    AHEAD = 23,
    PACKETS = 100,
    MANY = 200, /* gaps: longer than all that is granted takes */
};

static struct gw_pkt pkts[PACKETS];

static void open_stalling(struct endpoint_fixture *f, gw_time stall)
{
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.stall = stall;
    cfg.grant = (struct gw_grant_plan){
        .first = FIRST, .ahead = AHEAD, .pace = gw_byte_time_from_bps(RATE_BPS)};
    fixture_open(f, &cfg, "4000");
    f->transport = gw_test_transport("eqds+dlcp", "spray", "trim");
}

static void open(struct endpoint_fixture *f)
{
    open_stalling(f, 0);
}

/* What leaves in so many gaps. */
static uint32_t pull_for(struct endpoint_fixture *f, uint32_t gaps)
{
    uint32_t got = 0;
    for (uint32_t i = 0; i < gaps; i++) {
        got += fixture_pull(f, &pkts[got], PACKETS - got);
        blast_wait(f, GAP);
    }
    return got;
}

/* ---- The sender. ---- */

static uint32_t start_short(struct endpoint_fixture *f, uint32_t packets)
{
    uint32_t flow = fixture_send(f, packets * MTU);
    assert_int_equal(fixture_pull(f, pkts, 1), 1);
    assert_int_equal(pkts[0].hail.op, GW_HAIL_RENDEZVOUS);
    assert_int_equal(pkts[0].hail.marks, GW_HAIL_BARE | GW_HAIL_ON_CREDIT);
    struct gw_pkt accept = blast_hail(GW_HAIL_ACCEPT, flow, pkts[0].sent_at);
    fixture_input(f, &accept);
    return flow;
}

static uint32_t start(struct endpoint_fixture *f)
{
    open(f);
    return start_short(f, PACKETS);
}

static void grant(struct endpoint_fixture *f, uint32_t flow, uint32_t packets)
{
    struct gw_pkt pkt = blast_hail(GW_HAIL_ACCEPT, flow, 0);
    pkt.q.kind = GW_PKT_CREDIT;
    pkt.seq = packets;
    fixture_input(f, &pkt);
}

/* So many packets leave, none of which says that there is no credit. */
static void leave(struct endpoint_fixture *f, uint32_t packets)
{
    assert_int_equal(pull_for(f, packets + 2), packets);
    for (uint32_t i = 0; i < packets; i++)
        assert_int_equal(pkts[i].q.flags, GW_PKT_BLAST | GW_PKT_ON_CREDIT);
}

static void blast_tx__sends_what_credit_allows(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start(&f);
    leave(&f, FIRST);
    grant(&f, flow, 5);
    leave(&f, 5);
    grant(&f, flow, 5); /* doubled */
    grant(&f, flow, 3); /* overtaken */
    leave(&f, 0);
    grant(&f, flow, 7);
    leave(&f, 2);
    grant(&f, flow + 1, 9); /* of another flow */
    grant(&f, flow, UINT32_MAX / 2);
    uint32_t rest = PACKETS - FIRST - 7;
    assert_int_equal(pull_for(&f, rest + 2), rest + 1); /* with the STOP */
    assert_int_equal(pkts[rest].hail.op, GW_HAIL_STOP);
    assert_true(fixture_stats(&f)->data_sent == PACKETS);
    fixture_abandon(&f);
}

/* The next packet, which leaves in less than that. */
static void await_packet(struct endpoint_fixture *f, gw_time most)
{
    const gw_time before = f->now;
    while (pull_for(f, 1) == 0)
        assert_true(f->now < before + most);
}

/* One packet at a time, at distances that double. */
static void blast_tx__asks_when_no_credit_comes(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start(&f);
    leave(&f, FIRST);
    gw_time before = f.now, apart = 0;
    for (uint32_t i = 0; i < 4; i++) {
        await_packet(&f, GW_MS);
        assert_int_equal(pkts[0].q.flags, GW_PKT_BLAST | GW_PKT_ON_CREDIT | GW_PKT_STARVED);
        if (i > 0)
            assert_true(f.now - before > 3 * apart / 2);
        apart = f.now - before;
        before = f.now;
    }
    grant(&f, flow, 2);
    leave(&f, 2);
    fixture_abandon(&f);
}

static void request(struct endpoint_fixture *f, uint32_t flow, uint32_t places)
{
    struct gw_pkt pkt = blast_hail(GW_HAIL_REQUEST, flow, f->now - GW_US);
    pkt.hail.word[0] = places;
    pkt.hail.marks = GW_HAIL_LAST;
    fixture_input(f, &pkt);
}

/* Of a short message all is free, once. */
static void blast_tx__has_no_credit_left_of_a_short_message(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open(&f);
    uint32_t flow = start_short(&f, FIRST / 2);
    assert_int_equal(pull_for(&f, FIRST), FIRST / 2 + 1); /* with the STOP */
    request(&f, flow, 3);
    leave(&f, 0);
    grant(&f, flow, 2);
    assert_int_equal(pull_for(&f, 4), 2 + 1);
    fixture_abandon(&f);
}

/* What is asked for again needs credit, too, and some is asked for if none comes. */
static void blast_tx__repairs_on_credit(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start(&f);
    grant(&f, flow, PACKETS - FIRST);
    assert_int_equal(pull_for(&f, PACKETS), PACKETS);
    assert_int_equal(blast_hears(&f, GW_HAIL_STOP).seq, 0);
    request(&f, flow, 0xff);
    leave(&f, 0);
    grant(&f, flow, PACKETS - FIRST + 3);
    leave(&f, 3);
    await_packet(&f, GW_MS);
    assert_true(pkts[0].q.flags & GW_PKT_STARVED);
    fixture_abandon(&f);
}

/* Questions that are all lost: their path may be broken. */
static void blast_tx__leaves_a_path_by_which_no_credit_comes(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open(&f);
    f.transport = gw_test_transport("eqds+dlcp", "plb", "trim");
    start_short(&f, PACKETS);
    leave(&f, FIRST);
    uint32_t changes = 0;
    uint16_t entropy = pkts[0].entropy;
    for (uint32_t questions = 0; questions < 6; questions++) {
        await_packet(&f, 5 * GW_MS);
        changes += pkts[0].entropy != entropy;
        entropy = pkts[0].entropy;
    }
    assert_in_range(changes, 4, 6);
    fixture_abandon(&f);
}

/* What is left of credit at a STOP is given up: its receiver counts anew. */
static void blast_tx__gives_up_credit_at_a_stop(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t flow = start(&f);
    leave(&f, FIRST);
    grant(&f, flow, PACKETS);
    assert_int_equal(pull_for(&f, PACKETS), PACKETS - FIRST + 1); /* with the STOP */
    request(&f, flow, 7);
    leave(&f, 0);
    grant(&f, flow, PACKETS + 2);
    leave(&f, 2);
    fixture_abandon(&f);
}

/* Nobody reports what was not sent for want of credit, so nothing of it is missing: the rate
 * stays. */
static void blast_tx__misses_no_report_of_a_time_without_credit(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open(&f);
    uint32_t flow = start_short(&f, BLAST_PACKETS);
    for (gw_time end = f.now + 5 * REPORT_EVERY / 2; gw_time_before(f.now, end);)
        pull_for(&f, 1);
    grant(&f, flow, BLAST_PACKETS);
    const uint64_t before = fixture_stats(&f)->data_sent, gaps = 2 * REPORT_EVERY / GAP;
    for (uint64_t i = 0; i < gaps; i++)
        pull_for(&f, 1);
    assert_in_range(fixture_stats(&f)->data_sent - before, gaps - 2, gaps);
    fixture_abandon(&f);
}

/* A receiver that grants for ever, and takes nothing, does not keep the sender for ever. */
static void blast_tx__stalls_whatever_is_granted(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_stalling(&f, GW_MS);
    uint32_t flow = start_short(&f, PACKETS);
    gw_time end = f.now + 3 * GW_MS;
    for (uint32_t i = 1; gw_time_before(f.now, end); i++) {
        grant(&f, flow, i * PACKETS);
        pull_for(&f, 20);
    }
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_FAILED);
    fixture_abandon(&f);
}

/* Nor does one that grants for ever, and is never ready. */
static void blast_tx__stalls_while_it_is_held(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_stalling(&f, GW_MS);
    uint32_t flow = fixture_send(&f, PACKETS * MTU);
    struct gw_pkt answer = blast_hail(GW_HAIL_ACCEPT, flow, f.now);
    answer.hail.marks = GW_HAIL_NOT_READY;
    gw_time end = f.now + 3 * GW_MS;
    for (uint32_t i = 1; gw_time_before(f.now, end); i++) {
        fixture_input(&f, &answer);
        grant(&f, flow, i * PACKETS);
        pull_for(&f, 20);
    }
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_FAILED);
    fixture_abandon(&f);
}

static void blast_tx__without_grant_takes_no_credit(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    blast_open(&f);
    uint32_t flow = fixture_send(&f, PACKETS * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 1), 1);
    assert_int_equal(pkts[0].hail.marks, GW_HAIL_BARE);
    grant(&f, flow, 1);
    assert_true(fixture_stats(&f)->malformed == 1);
    assert_true(pull_for(&f, 3 * FIRST) >= 3 * FIRST);
    assert_int_equal(pkts[0].q.flags, GW_PKT_BLAST);
    fixture_abandon(&f);
}

/* ---- The receiver. ---- */

static void announce_of(struct endpoint_fixture *f, uint32_t flow, uint8_t marks, uint16_t mss)
{
    struct gw_pkt pkt = blast_rendezvous(flow, PACKETS, 0, f->now - GW_US);
    pkt.hail.marks |= marks;
    pkt.hail.number = mss;
    fixture_input(f, &pkt);
    blast_hears(f, GW_HAIL_ACCEPT);
}

static void announce(struct endpoint_fixture *f, uint32_t flow, uint8_t marks)
{
    announce_of(f, flow, marks, MTU);
}

static void arrive(struct endpoint_fixture *f, uint32_t flow, uint32_t place, uint8_t flags)
{
    struct gw_pkt pkt = blast_data(flow, place, PACKETS, f->now - GW_US);
    pkt.q.flags |= GW_PKT_ON_CREDIT | flags;
    fixture_input(f, &pkt);
}

/* What the flow is granted in so many gaps; `others`, likewise of all others. */
static uint32_t granted(struct endpoint_fixture *f, uint32_t flow, uint32_t gaps, uint32_t *others)
{
    uint32_t count = pull_for(f, gaps), most = 0;
    *others = 0;
    for (uint32_t i = 0; i < count; i++)
        if (pkts[i].q.kind == GW_PKT_CREDIT && pkts[i].flow == flow)
            most = pkts[i].seq;
        else if (pkts[i].q.kind == GW_PKT_CREDIT)
            *others = pkts[i].seq;
    return most;
}

static void blast_rx__grants_in_turn_at_its_pace(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t others;
    open(&f);
    announce(&f, FLOW, GW_HAIL_ON_CREDIT);
    announce(&f, FLOW + 1, GW_HAIL_ON_CREDIT);
    announce(&f, FLOW + 2, 0); /* that asks for none */
    assert_in_range(granted(&f, FLOW, 10, &others), 5, 6);
    assert_in_range(others, 5, 6);
    assert_int_equal(granted(&f, FLOW, MANY, &others), AHEAD - FIRST);
    assert_int_equal(others, AHEAD - FIRST);
    arrive(&f, FLOW, 4, 0);
    arrive(&f, FLOW, 9, 0);
    arrive(&f, FLOW, 9, 0); /* twice: it is not under way any more either */
    arrive(&f, FLOW + 2, 9, 0);
    assert_int_equal(granted(&f, FLOW, MANY, &others), AHEAD - FIRST + 3);
    assert_int_equal(others, 0);
    assert_true(fixture_stats(&f)->credits_sent == 2 * (AHEAD - FIRST) + 3);
    fixture_abandon(&f);
}

static void blast_rx__counts_anew(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t others;
    open(&f);
    announce(&f, FLOW, GW_HAIL_ON_CREDIT);
    uint32_t before = granted(&f, FLOW, MANY, &others);
    arrive(&f, FLOW, 7, GW_PKT_STARVED);
    assert_int_equal(granted(&f, FLOW, MANY, &others), before + AHEAD);
    struct gw_pkt stop = blast_hail(GW_HAIL_STOP, FLOW, f.now - GW_US);
    fixture_input(&f, &stop);
    assert_int_equal(granted(&f, FLOW, MANY, &others), before + 2 * AHEAD);
    fixture_abandon(&f);
}

/* Whoever claims large packets does not have the pacer wait for them. */
static void blast_rx__grants_at_the_pace_of_its_link_whatever_packets_a_peer_claims(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t others;
    open(&f);
    announce(&f, FLOW, GW_HAIL_ON_CREDIT);
    announce_of(&f, FLOW + 1, GW_HAIL_ON_CREDIT, UINT16_MAX);
    assert_in_range(granted(&f, FLOW, 10, &others), 5, 6);
    fixture_abandon(&f);
}

/* No more than is missing, and nothing once there is enough. */
static void blast_rx__grants_what_is_missing(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t others;
    open(&f);
    announce(&f, FLOW, GW_HAIL_ON_CREDIT);
    for (uint32_t place = 0; place < PACKETS - 3; place++) {
        arrive(&f, FLOW, place, 0);
        pull_for(&f, 2);
    }
    arrive(&f, FLOW, 0, GW_PKT_STARVED);
    uint32_t sent = (uint32_t)fixture_stats(&f)->credits_sent;
    assert_true(granted(&f, FLOW, MANY, &others) > 0);
    assert_true(fixture_stats(&f)->credits_sent == sent + 3);
    for (uint32_t place = PACKETS - 3; place < PACKETS; place++)
        arrive(&f, FLOW, place, 0);
    assert_int_equal(granted(&f, FLOW, MANY, &others), 0);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_RECEIVED);
    fixture_abandon(&f);
}

/* A sender without credit that missed the end is told, even if it has more to send than STOP. */
static void blast_rx__tells_who_waits_for_credit_of_the_end(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint32_t others;
    open(&f);
    announce(&f, FLOW, GW_HAIL_ON_CREDIT);
    for (uint32_t place = 0; place < PACKETS; place++)
        arrive(&f, FLOW, place, 0);
    granted(&f, FLOW, MANY, &others);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_RECEIVED);
    blast_wait(&f, GW_MS); /* all its FINISHes */
    while (pull_for(&f, 1))
        ;
    arrive(&f, FLOW, 3, 0);
    blast_hears_nothing(&f);
    arrive(&f, FLOW, 3, GW_PKT_STARVED);
    assert_int_equal(blast_hears(&f, GW_HAIL_FINISH).seq, PACKETS);
    fixture_abandon(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blast_tx__sends_what_credit_allows),
        cmocka_unit_test(blast_tx__asks_when_no_credit_comes),
        cmocka_unit_test(blast_tx__has_no_credit_left_of_a_short_message),
        cmocka_unit_test(blast_tx__repairs_on_credit),
        cmocka_unit_test(blast_tx__leaves_a_path_by_which_no_credit_comes),
        cmocka_unit_test(blast_tx__gives_up_credit_at_a_stop),
        cmocka_unit_test(blast_tx__misses_no_report_of_a_time_without_credit),
        cmocka_unit_test(blast_tx__stalls_whatever_is_granted),
        cmocka_unit_test(blast_tx__stalls_while_it_is_held),
        cmocka_unit_test(blast_tx__without_grant_takes_no_credit),
        cmocka_unit_test(blast_rx__grants_in_turn_at_its_pace),
        cmocka_unit_test(blast_rx__counts_anew),
        cmocka_unit_test(blast_rx__grants_at_the_pace_of_its_link_whatever_packets_a_peer_claims),
        cmocka_unit_test(blast_rx__tells_who_waits_for_credit_of_the_end),
        cmocka_unit_test(blast_rx__grants_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
