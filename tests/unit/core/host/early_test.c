/* Messages that come before there is memory for them: both ends, with the other played by the test.
 */
#include "unit/core/host/blast_fixture.h"

#include "core/host/early.h"

static unsigned char memory[MTU];

/* An endpoint of flows and blasts, with a window of four packets. */
static void open(struct endpoint_fixture *f)
{
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.expect_max = GW_EARLY_MAX + 2;
    fixture_open(f, &cfg, "4000");
}

/* Packet `seq` of so many with payload, all of whose bytes are its number and one more. */
static struct gw_pkt full(struct endpoint_fixture *f, uint32_t flow, uint32_t seq, uint32_t packets)
{
    struct gw_pkt data = fixture_data(flow, seq, packets);
    data.buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, data.buf), (int)seq + 1, MTU);
    return data;
}

static struct gw_pkt come(struct endpoint_fixture *f, uint32_t flow, uint32_t seq, uint32_t packets)
{
    struct gw_pkt data = full(f, flow, seq, packets);
    fixture_input(f, &data);
    return data;
}

/* A message that nobody expects is refused. */
static struct gw_pkt come_early(struct endpoint_fixture *f, uint32_t flow)
{
    struct gw_pkt data = come(f, flow, 0, 1), back;
    assert_int_equal(fixture_pull(f, &back, 1), 1);
    assert_int_equal(back.q.flags, GW_PKT_NOT_READY);
    return data;
}

static void expect(struct endpoint_fixture *f, uint32_t tag)
{
    assert_int_equal(gw_endpoint_expect(f->endpoint, THEIRS, tag, memory, sizeof(memory)), GW_OK);
}

static void early__is_told_of_memory_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt back;
    open(&f);
    struct gw_pkt data = come_early(&f, FLOW);
    come_early(&f, FLOW);
    expect(&f, FLOW + 1);
    blast_hears_nothing(&f);
    expect(&f, FLOW);
    assert_int_equal(fixture_pull(&f, &back, 1), 1);
    assert_true(back.q.kind == GW_PKT_NACK && back.q.flags == GW_PKT_READY);
    assert_true(back.dst == THEIRS && back.flow == FLOW && back.seq == 0);
    assert_true(back.sent_at == data.sent_at && back.echo_entropy == data.entropy);
    expect(&f, FLOW);
    blast_hears_nothing(&f);
    fixture_close(&f);
}

/* What came first gives way; who is not told asks again. */
static void early__is_noted_in_bounded_memory(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt back;
    open(&f);
    for (uint32_t i = 0; i < GW_EARLY_MAX; i++)
        come_early(&f, FLOW + i);
    expect(&f, FLOW + 5); /* its place is free, ... */
    assert_int_equal(fixture_pull(&f, &back, 1), 1);
    come_early(&f, FLOW + GW_EARLY_MAX); /* ... until now */
    come_early(&f, FLOW + GW_EARLY_MAX + 1);
    expect(&f, FLOW);
    blast_hears_nothing(&f);
    for (uint32_t i = 1; i < GW_EARLY_MAX + 2; i++) {
        if (i == 5)
            continue;
        expect(&f, FLOW + i);
        assert_int_equal(fixture_pull(&f, &back, 1), 1);
        assert_int_equal(back.flow, FLOW + i);
    }
    fixture_close(&f);
}

static void early__without_a_packet_is_not_told(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open(&f);
    come_early(&f, FLOW);
    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    expect(&f, FLOW);
    assert_true(fixture_stats(&f)->pool_empty == 1);
    fixture_give_back(&f, &hoard);
    blast_hears_nothing(&f);
    fixture_close(&f);
}

/* ---- What is kept. ---- */

enum {
    KEPT = 4,
    PACKETS = 6,
};

static unsigned char message[PACKETS * MTU];

static void open_keeping(struct endpoint_fixture *f)
{
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.expect_max = GW_EARLY_MAX + 2;
    cfg.early_packets = KEPT;
    cfg.ack_every = PACKETS; /* each has an answer only if it asks */
    cfg.ack_delay = GW_MS;
    fixture_open(f, &cfg, "4000");
    memset(message, 0, sizeof(message));
}

static void post(struct endpoint_fixture *f, uint32_t tag)
{
    assert_int_equal(gw_endpoint_expect(f->endpoint, THEIRS, tag, message, sizeof(message)), GW_OK);
    blast_wait(f, 0);
}

static struct gw_pkt answer(struct endpoint_fixture *f, enum gw_pkt_kind kind, uint8_t flags)
{
    struct gw_pkt back;
    assert_int_equal(fixture_pull(f, &back, 1), 1);
    assert_true(back.q.kind == kind && back.q.flags == flags);
    return back;
}

static void is_whole(struct endpoint_fixture *f, uint32_t flow, uint32_t packets)
{
    struct gw_event event = fixture_event(f);
    assert_true(event.kind == GW_EVENT_RECEIVED && event.flow == flow);
    assert_true(event.bytes == packets * MTU);
    for (uint32_t i = 0; i < packets * MTU; i++)
        assert_int_equal(message[i], i / MTU + 1);
}

/* The sender is told once, and what it sent is there with the memory; its round trip is not longer
 * for that. */
static void early__packets_are_kept_until_there_is_memory(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    come(&f, FLOW, 2, 3);
    come(&f, FLOW, 0, 3);
    struct gw_pkt last = come(&f, FLOW, 1, 3);
    assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY).seq, 2);
    blast_hears_nothing(&f);
    f.now += GW_MS;
    post(&f, FLOW + 1);
    blast_hears_nothing(&f);
    post(&f, FLOW);
    struct gw_pkt back = answer(&f, GW_PKT_ACK, 0);
    assert_true(back.seq == 1 && back.sent_at == last.sent_at + GW_MS && back.ack.cum == 3);
    is_whole(&f, FLOW, 3);
    assert_true(fixture_stats(&f)->kept == 3 && fixture_stats(&f)->data_received == 3);
    fixture_close(&f);
}

/* Of more than there is room for, or a second time, nothing is kept; that comes again. */
static void early__more_than_can_be_kept_is_refused(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    come(&f, FLOW, 0, PACKETS);
    come(&f, FLOW, 0, PACKETS);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY).seq, 0);
    for (uint32_t seq = 1; seq < PACKETS; seq++)
        come(&f, FLOW, seq, PACKETS);
    for (uint32_t seq = KEPT; seq < PACKETS; seq++)
        assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY).seq, seq);
    assert_true(fixture_stats(&f)->refused == 1 + PACKETS - KEPT);
    post(&f, FLOW);
    assert_int_equal(answer(&f, GW_PKT_ACK, 0).ack.cum, KEPT); /* it waits for nothing */
    for (uint32_t seq = KEPT; seq < PACKETS; seq++)
        come(&f, FLOW, seq, PACKETS);
    answer(&f, GW_PKT_ACK, 0);
    is_whole(&f, FLOW, PACKETS);
    fixture_close(&f);
}

/* What is kept of an older message gives way; its sender is told, and sends it again. */
static void early__newer_packets_take_the_room_of_older_ones(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    for (uint32_t seq = 0; seq < 2; seq++)
        come(&f, FLOW, seq, 2);
    for (uint32_t seq = 0; seq < 3; seq++)
        come(&f, FLOW + 1, seq, 3);
    for (uint32_t i = 0; i < 2; i++)
        answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    post(&f, FLOW);
    assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_READY).flow, FLOW);
    post(&f, FLOW + 1);
    answer(&f, GW_PKT_ACK, 0);
    is_whole(&f, FLOW + 1, 3);
    fixture_close(&f);
}

/* A peer that says two things of one message has none of it kept, or is found out later. */
static void early__contradictions_are_malformed(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    come(&f, FLOW, 0, 2);
    struct gw_pkt data = full(&f, FLOW, 1, 2);
    data.data.tag = FLOW + 1;
    fixture_input(&f, &data); /* the message has another tag now, with one packet */
    come(&f, FLOW + 2, 0, 2);
    come(&f, FLOW + 2, 1, 3); /* and this one another length */
    for (uint32_t i = 0; i < 3; i++)
        answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    post(&f, FLOW);
    blast_hears_nothing(&f);
    post(&f, FLOW + 2);
    answer(&f, GW_PKT_ACK, 0);
    assert_true(fixture_stats(&f)->malformed == 1 && fixture_stats(&f)->kept == 4);
    blast_hears_nothing(&f);
    assert_int_equal(gw_endpoint_fini(f.endpoint), 1); /* of FLOW + 1 */
    fixture_close(&f);
}

/* Who asks is answered, also by what is kept: else its timeout would take it for lost. */
static void early__questions_are_answered(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    come(&f, FLOW, 1, 3);
    answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    struct gw_pkt question = full(&f, FLOW, 0, 3);
    question.q.flags |= GW_PKT_ACK_NOW;
    fixture_input(&f, &question);
    assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY).seq, 0);
    assert_true(fixture_stats(&f)->kept == 2);
    assert_int_equal(gw_endpoint_fini(f.endpoint), 2);
    fixture_close(&f);
}

static void come_of_tag(struct endpoint_fixture *f, uint32_t flow, uint32_t tag, uint32_t seq)
{
    struct gw_pkt data = full(f, flow, seq, 2);
    data.data.tag = tag;
    fixture_input(f, &data);
}

/* A message that its sender gave up, and sends again by another flow, does not take its memory. */
static void early__newer_flow_of_a_tag_is_taken(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    come_of_tag(&f, FLOW, TAG, 1);
    for (uint32_t seq = 0; seq < 2; seq++)
        come_of_tag(&f, FLOW + 1, TAG, seq);
    for (uint32_t i = 0; i < 2; i++)
        answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    post(&f, TAG);
    assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_READY).flow, FLOW);
    answer(&f, GW_PKT_ACK, 0);
    is_whole(&f, FLOW + 1, 2);
    post(&f, TAG); /* nothing of both is left */
    blast_hears_nothing(&f);
    assert_int_equal(gw_endpoint_fini(f.endpoint), 0);
    fixture_close(&f);
}

/* Packets that give way after their memory was posted: then their sender is told. */
static void early__who_has_memory_and_no_packets_is_told(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    for (uint32_t seq = 0; seq < KEPT; seq++)
        come(&f, FLOW, seq, PACKETS);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, FLOW, message, sizeof(message)), GW_OK);
    come(&f, FLOW + 1, 0, 1);
    for (uint32_t i = 0; i < 2; i++)
        answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    blast_wait(&f, 0);
    assert_int_equal(answer(&f, GW_PKT_NACK, GW_PKT_READY).flow, FLOW);
    assert_int_equal(gw_endpoint_fini(f.endpoint), 1);
    fixture_close(&f);
}

/* A sender without credit asks by a packet that is there already. */
static void early__who_has_no_credit_gets_some_with_memory(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.early_packets = KEPT;
    cfg.grant = (struct gw_grant_plan){
        .first = PACKETS, .ahead = PACKETS, .pace = gw_byte_time_from_bps(RATE_BPS)};
    fixture_open(&f, &cfg, "4000");
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_pkt data = full(&f, FLOW, 0, 2);
        data.q.flags |= GW_PKT_ON_CREDIT | (i ? GW_PKT_STARVED : 0);
        fixture_input(&f, &data);
        answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    }
    post(&f, FLOW);
    answer(&f, GW_PKT_ACK, 0);
    blast_wait(&f, 2 * GAP);
    assert_int_equal(answer(&f, GW_PKT_CREDIT, 0).seq, 1);
    fixture_abandon(&f);
}

/* Memory that is taken back at once: what was kept stays so. */
static void early__packets_survive_memory_that_is_taken_back(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_keeping(&f);
    come(&f, FLOW, 0, 1);
    answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, FLOW, message, MTU), GW_OK);
    gw_endpoint_forget(f.endpoint, message, MTU);
    blast_wait(&f, 0);
    answer(&f, GW_PKT_NACK, GW_PKT_NOT_READY);
    post(&f, FLOW);
    answer(&f, GW_PKT_ACK, 0);
    is_whole(&f, FLOW, 1);
    fixture_close(&f);
}

/* ---- The sender. ---- */

static struct gw_pkt said(const struct gw_pkt *data, uint8_t flag)
{
    struct gw_pkt nack = fixture_answer(data, GW_PKT_NACK, 0);
    nack.q.flags = flag;
    return nack;
}

/* All that the window allows leaves at once. */
static void early__sender_goes_on_when_told(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8], again[8];
    open(&f);
    fixture_send(&f, 10 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 8), 4);
    struct gw_pkt ready = said(&pkts[0], GW_PKT_READY);
    fixture_input(&f, &ready); /* nobody has said that it is not */
    assert_int_equal(fixture_pull(&f, again, 8), 0);
    for (uint32_t i = 0; i < 4; i++) {
        struct gw_pkt no = said(&pkts[i], GW_PKT_NOT_READY);
        fixture_input(&f, &no);
    }
    assert_int_equal(fixture_pull(&f, again, 8), 0);
    fixture_input(&f, &ready);
    assert_int_equal(fixture_pull(&f, again, 8), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(again[i].seq, i);
    fixture_input(&f, &ready);
    assert_int_equal(fixture_pull(&f, pkts, 8), 0);
    /* If that was not true, it asks as soon as at first. */
    struct gw_pkt no = said(&again[0], GW_PKT_NOT_READY);
    fixture_input(&f, &no);
    f.now += (BRTT >> 3) - 1;
    gw_node_expire(f.node, f.now);
    assert_int_equal(fixture_pull(&f, pkts, 8), 0);
    f.now += 1;
    gw_node_expire(f.node, f.now);
    assert_int_equal(fixture_pull(&f, pkts, 8), 1);
    assert_true(fixture_stats(&f)->timeouts == 0);
    fixture_close(&f);
}

/* Told, but without credit: it asks for some in time. */
static void early__sender_on_credit_goes_on(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[64];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "4000");
    f.transport.grant = (const void *)gw_registry_find(&gw_grant_registry, "eqds");
    gw_algo_defaults(&f.transport.grant->algo, f.transport.grant_cfg.bytes);
    fixture_send(&f, 10 * MTU);
    uint32_t sent = fixture_pull(&f, pkts, GW_COUNT_OF(pkts));
    assert_true(sent > 0);
    for (uint32_t i = 0; i < sent; i++) {
        struct gw_pkt no = said(&pkts[i], GW_PKT_NOT_READY);
        fixture_input(&f, &no);
    }
    struct gw_pkt ready = said(&pkts[0], GW_PKT_READY);
    fixture_input(&f, &ready);
    assert_int_equal(fixture_pull(&f, pkts, GW_COUNT_OF(pkts)), 0);
    for (uint32_t i = 0; i < 3 && gw_node_deadline(f.node) != GW_TIME_NEVER; i++)
        fixture_expire(&f);
    assert_int_equal(fixture_pull(&f, pkts, GW_COUNT_OF(pkts)), 1);
    assert_true(pkts[0].q.flags & GW_PKT_STARVED);
    fixture_abandon(&f);
}

static void early__blast_is_told_and_says_rendezvous_again(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8];
    open(&f);
    struct gw_pkt pkt = blast_rendezvous(FLOW, 1, 0, f.now);
    pkt.hail.marks = 0;
    fixture_input(&f, &pkt);
    assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks, GW_HAIL_NOT_READY);
    expect(&f, TAG);
    pkt = blast_hears(&f, GW_HAIL_ACCEPT);
    assert_true(pkt.hail.marks == GW_HAIL_READY && pkt.flow == FLOW && pkt.sent_at == f.now);

    f.transport = gw_test_transport("dlcp", "spray", "trim");
    uint32_t flow = fixture_send(&f, MTU);
    fixture_pull(&f, pkts, 8);
    pkt = blast_hail(GW_HAIL_ACCEPT, flow, f.now);
    for (uint32_t i = 0; i < 3; i++) { /* each time it would wait as long as at first, ... */
        pkt.hail.marks = GW_HAIL_NOT_READY;
        fixture_input(&f, &pkt);
        blast_wait(&f, (BRTT >> 3) - 1);
        blast_hears_nothing(&f);
        pkt.hail.marks = GW_HAIL_READY; /* ... and is told to go on */
        fixture_input(&f, &pkt);
        blast_wait(&f, 0);
        assert_true(fixture_pull(&f, pkts, 8) >= 1);
        assert_int_equal(pkts[0].hail.op, GW_HAIL_RENDEZVOUS);
    }
    pkt.hail.marks = GW_HAIL_NOT_READY;
    fixture_input(&f, &pkt);
    blast_wait(&f, BRTT >> 3);
    assert_true(fixture_pull(&f, pkts, 8) >= 1);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early__is_told_of_memory_once),
        cmocka_unit_test(early__is_noted_in_bounded_memory),
        cmocka_unit_test(early__without_a_packet_is_not_told),
        cmocka_unit_test(early__packets_are_kept_until_there_is_memory),
        cmocka_unit_test(early__more_than_can_be_kept_is_refused),
        cmocka_unit_test(early__newer_packets_take_the_room_of_older_ones),
        cmocka_unit_test(early__contradictions_are_malformed),
        cmocka_unit_test(early__questions_are_answered),
        cmocka_unit_test(early__newer_flow_of_a_tag_is_taken),
        cmocka_unit_test(early__who_has_memory_and_no_packets_is_told),
        cmocka_unit_test(early__who_has_no_credit_gets_some_with_memory),
        cmocka_unit_test(early__packets_survive_memory_that_is_taken_back),
        cmocka_unit_test(early__sender_goes_on_when_told),
        cmocka_unit_test(early__sender_on_credit_goes_on),
        cmocka_unit_test(early__blast_is_told_and_says_rendezvous_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
