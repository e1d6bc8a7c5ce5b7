/* Flows that end when a part has arrived: each half, with the other played by the test. */
#include "percent_policy.h"
#include "unit/core/host/endpoint_fixture.h"

enum {
    SPAN = 64,
    FLOW = 7,
    TOTAL = 20,
    NEEDED = 18,
    ACKS_MAX = 32,
};

static struct gw_finish ninety;

static struct gw_endpoint_cfg part_cfg(void)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    ninety = percent_policy(90);
    cfg.span_max = SPAN;
    cfg.ack_delay = 5 * GW_US;
    return cfg;
}

/* An endpoint that posts no memory, and takes 90 % of what comes without payload. */
static void part_open(struct endpoint_fixture *f, uint32_t ack_every)
{
    struct gw_endpoint_cfg cfg = part_cfg();
    cfg.ack_every = ack_every;
    fixture_open(f, &cfg, "1MB");
    /* With buffers, only posted memory has a policy. */
    gw_endpoint_fini(f->endpoint);
    cfg.finish = &ninety;
    cfg.pool = &f->host.pool;
    f->host.pool.bufs = NULL;
    gw_endpoint_init(f->endpoint, &cfg);
}

static void part_close(struct endpoint_fixture *f)
{
    f->host.pool.bufs = &f->host.bufs;
    fixture_close(f);
}

static void feed(struct endpoint_fixture *f, uint32_t seq, uint32_t total, uint8_t flags)
{
    struct gw_pkt pkt = fixture_data(FLOW, seq, total);
    pkt.q.flags |= flags;
    fixture_input(f, &pkt);
}

static struct gw_pkt answer(struct endpoint_fixture *f)
{
    struct gw_pkt pkts[2];
    assert_int_equal(fixture_pull(f, pkts, 2), 1);
    return pkts[0];
}

static void assert_final(const struct gw_pkt *ack, uint32_t total, uint64_t bytes)
{
    assert_int_equal(ack->q.kind, GW_PKT_ACK);
    assert_true(ack->q.flags & GW_PKT_GIVEN_UP);
    assert_int_equal(ack->ack.cum, total);
    assert_true(gw_pkt_mask(ack) == bytes);
}

/* ---- The receiver. ---- */

static void flow_finish_rx__ends_with_the_packet_that_is_enough(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt ack;
    part_open(&f, 1);
    for (uint32_t seq = TOTAL; seq-- > TOTAL - NEEDED;) {
        fixture_no_event(&f);
        feed(&f, seq, TOTAL, 0);
        ack = answer(&f);
        assert_int_equal(ack.q.flags & GW_PKT_GIVEN_UP,
                         seq == TOTAL - NEEDED ? GW_PKT_GIVEN_UP : 0);
    }
    assert_final(&ack, TOTAL, NEEDED * MTU);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_RECEIVED);
    assert_true(event.bytes == NEEDED * MTU);
    assert_int_equal(event.missing, TOTAL - NEEDED);
    /* What comes later is told the same, whether it is new, old or trimmed. */
    static const uint8_t flags[] = {0, 0, GW_PKT_TRIMMED};
    for (uint32_t i = 0; i < GW_COUNT_OF(flags); i++) {
        feed(&f, i, TOTAL, flags[i]);
        ack = answer(&f);
        assert_final(&ack, TOTAL, NEEDED * MTU);
        assert_int_equal(ack.seq, i);
    }
    fixture_no_event(&f);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    part_close(&f);
}

/* With nothing lost the answers are those of a flow without a policy, up to the end. */
static void flow_finish_rx__says_nothing_while_nothing_is_lost(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    part_open(&f, 1);
    for (uint32_t seq = 0; seq < NEEDED - 1; seq++) {
        feed(&f, seq, TOTAL, 0);
        struct gw_pkt ack = answer(&f);
        assert_int_equal(ack.q.flags, 0);
        assert_int_equal(ack.ack.cum, seq + 1);
        assert_true(gw_pkt_mask(&ack) == 0);
    }
    part_close(&f);
}

static void flow_finish_rx__gives_up_what_was_trimmed_within_the_bound(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    part_open(&f, 1);
    for (uint32_t seq = 0; seq < TOTAL - NEEDED; seq++) {
        feed(&f, seq, TOTAL, GW_PKT_TRIMMED);
        struct gw_pkt nack = answer(&f);
        /* The first of an unknown flow is answered without opening one. */
        assert_int_equal(nack.q.kind, GW_PKT_NACK);
        assert_int_equal(nack.q.flags, 0);
    }
    feed(&f, 5, TOTAL, 0);
    answer(&f);
    for (uint32_t seq = 0; seq < TOTAL - NEEDED; seq++) {
        feed(&f, seq, TOTAL, GW_PKT_TRIMMED);
        struct gw_pkt nack = answer(&f);
        assert_int_equal(nack.q.kind, GW_PKT_NACK);
        assert_int_equal(nack.q.flags, GW_PKT_GIVEN_UP);
        assert_int_equal(nack.ack.cum, seq + 1);
    }
    feed(&f, 2, TOTAL, GW_PKT_TRIMMED); /* one too many: it is wanted */
    assert_int_equal(answer(&f).q.flags, 0);
    assert_true(fixture_stats(&f)->given_up == TOTAL - NEEDED);
    feed(&f, 0, TOTAL, 0); /* late: given up is given up */
    assert_int_equal(answer(&f).ack.cum, 2);
    assert_true(fixture_stats(&f)->duplicates == 1);
    for (uint32_t seq = 2; seq < TOTAL; seq++)
        feed(&f, seq, TOTAL, 0);
    struct gw_event event = fixture_event(&f);
    assert_true(event.bytes == NEEDED * MTU && event.missing == TOTAL - NEEDED);
    struct gw_pkt acks[TOTAL];
    assert_int_equal(fixture_pull(&f, acks, TOTAL), NEEDED);
    assert_final(&acks[NEEDED - 1], TOTAL, NEEDED * MTU);
    part_close(&f);
}

/* Wants to know of each packet what became of it, and half of them. */
static bool half_of_all_settled(const void *config, const struct gw_finish_sample *sample)
{
    (void)config;
    return sample->arrived + sample->lost == sample->total && sample->arrived >= sample->total / 2;
}

static void flow_finish_rx__may_end_with_a_packet_that_is_given_up(void **state)
{
    (void)state;
    static const struct gw_finish_ops ops = {.is_enough = half_of_all_settled};
    struct endpoint_fixture f;
    part_open(&f, 1);
    ninety = (struct gw_finish){.ops = &ops};
    feed(&f, 0, 4, 0);
    feed(&f, 3, 4, GW_PKT_TRIMMED);
    feed(&f, 1, 4, 0);
    fixture_no_event(&f);
    feed(&f, 2, 4, GW_PKT_TRIMMED);
    struct gw_pkt answers[4];
    assert_int_equal(fixture_pull(&f, answers, 4), 4);
    assert_int_equal(answers[1].q.kind, GW_PKT_NACK);
    assert_int_equal(answers[2].q.flags, 0);
    assert_final(&answers[3], 4, 2 * MTU);
    assert_int_equal(fixture_event(&f).missing, 2);
    part_close(&f);
}

/* A hole in each span: cum stays no further behind than half a span, and says so once each. */
static void flow_finish_rx__does_not_wait_for_holes(void **state)
{
    (void)state;
    enum {
        MANY = 50 * SPAN,
    };
    struct endpoint_fixture f;
    part_open(&f, 1);
    uint32_t flagged = 0, needed = percent_needed(MANY, 90);
    for (uint32_t seq = 0, arrived = 0; arrived < needed; seq++) {
        if (seq % SPAN == 5)
            continue;
        arrived++;
        feed(&f, seq, MANY, 0);
        struct gw_pkt ack = answer(&f);
        assert_in_range(seq + 1 - ack.ack.cum, 0, arrived == needed ? UINT32_MAX : SPAN / 2);
        if (arrived < needed)
            flagged += ack.q.flags == GW_PKT_GIVEN_UP;
        else
            assert_final(&ack, MANY, (uint64_t)needed * MTU);
    }
    assert_in_range(flagged, 50 * 9 / 10 - 1, 50);
    assert_true(fixture_stats(&f)->given_up == flagged && fixture_stats(&f)->refused == 0);
    fixture_event(&f);
    part_close(&f);
}

/* Beyond the bound a hole is wanted, and pins the window as ever. */
static void flow_finish_rx__waits_for_holes_beyond_the_bound(void **state)
{
    (void)state;
    enum {
        MANY = 10 * SPAN, /* a tenth of them is SPAN */
    };
    struct endpoint_fixture f;
    part_open(&f, 1);
    struct gw_pkt ack = {.ack = {.cum = 0}};
    for (uint32_t seq = 1; seq < 3 * SPAN; seq += 2) {
        feed(&f, seq, MANY, 0);
        if (fixture_pull(&f, &ack, 1) == 0)
            break;
    }
    assert_int_equal(ack.ack.cum, 2 * SPAN); /* SPAN holes are behind, the next one is not */
    assert_true(fixture_stats(&f)->given_up == SPAN && fixture_stats(&f)->refused == 0);
    feed(&f, 3 * SPAN + 1, MANY, 0);
    assert_true(fixture_stats(&f)->refused == 1);
    part_close(&f);
}

/* An ACK that is held back leaves at once when the flow ends, and the sum takes the mask's place.
 */
static void flow_finish_rx__ends_coalesced(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt acks[ACKS_MAX];
    part_open(&f, 8);
    for (uint32_t seq = 0; seq < NEEDED; seq++)
        feed(&f, seq == 3 ? TOTAL - 1 : seq, TOTAL, 0);
    uint32_t count = fixture_pull(&f, acks, ACKS_MAX);
    assert_int_equal(count, 3); /* 8, 8, and the 2 that are left */
    for (uint32_t i = 0; i + 1 < count; i++)
        assert_int_equal(acks[i].q.flags, 0);
    assert_final(&acks[count - 1], TOTAL, NEEDED * MTU);
    assert_true(fixture_event(&f).missing == TOTAL - NEEDED);
    part_close(&f);
}

/* What is given up needs no credit. */
static void flow_finish_rx__grants_no_credit_for_what_is_given_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[ACKS_MAX];
    for (int with_policy = 0; with_policy < 2; with_policy++) {
        part_open(&f, 1);
        struct gw_endpoint_cfg cfg = part_cfg();
        cfg.pool = &f.host.pool;
        cfg.finish = with_policy ? &ninety : NULL;
        cfg.grant = (struct gw_grant_plan){.first = TOTAL, .ahead = TOTAL, .pace = 1};
        gw_endpoint_init(f.endpoint, &cfg);
        feed(&f, 0, TOTAL, GW_PKT_ON_CREDIT);
        for (uint32_t seq = 1; seq <= TOTAL - NEEDED; seq++)
            feed(&f, seq, TOTAL, GW_PKT_ON_CREDIT | GW_PKT_TRIMMED);
        for (uint32_t i = 0; i < TOTAL && gw_node_deadline(f.node) != GW_TIME_NEVER; i++)
            fixture_expire(&f);
        uint32_t count = fixture_pull(&f, pkts, ACKS_MAX), credit = 0;
        for (uint32_t i = 0; i < count; i++)
            if (pkts[i].q.kind == GW_PKT_CREDIT)
                credit = pkts[i].seq;
        assert_int_equal(credit, with_policy ? 0 : TOTAL - NEEDED);
        part_close(&f);
    }
}

/* What was lost without a trace, and is let go, is not under way any more: it holds no credit. */
static void flow_finish_rx__takes_credit_back_for_holes(void **state)
{
    (void)state;
    enum {
        MANY = 1000,
        AHEAD = SPAN,
    };
    struct endpoint_fixture f;
    struct gw_pkt pkts[4 * SPAN];
    part_open(&f, 1);
    struct gw_endpoint_cfg cfg = part_cfg();
    cfg.pool = &f.host.pool;
    cfg.finish = &ninety;
    cfg.grant = (struct gw_grant_plan){.first = 1, .ahead = AHEAD, .pace = 1};
    gw_endpoint_init(f.endpoint, &cfg);
    uint32_t granted = 0, arrived = 0;
    for (uint32_t seq = 0; seq < 500; seq++) {
        if (seq % 20 != 10) {
            arrived++;
            feed(&f, seq, MANY, GW_PKT_ON_CREDIT);
        }
        while (gw_node_deadline(f.node) != GW_TIME_NEVER)
            fixture_expire(&f);
        uint32_t count = fixture_pull(&f, pkts, GW_COUNT_OF(pkts));
        for (uint32_t i = 0; i < count; i++)
            if (pkts[i].q.kind == GW_PKT_CREDIT)
                granted = pkts[i].seq;
    }
    /* As much is under way as ever, but for the holes that are not let go yet. */
    uint32_t under_way = granted + 1 - 500, open = 2;
    assert_in_range(under_way, AHEAD - open, AHEAD);
    assert_int_equal(arrived, 475);
    part_close(&f);
}

/* ---- Memory. ---- */

static void feed_payload(struct endpoint_fixture *f, uint32_t seq, uint32_t total, uint8_t byte)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    *pkt = fixture_data(FLOW, seq, total);
    pkt->buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, pkt->buf), byte, MTU);
    gw_node_input(f->node, 0, &pkt, 1, f->now);
    fixture_take_ready(f);
}

/* Marked is what holds data, all else is as it was, and after the end nothing is written. */
static void flow_finish_memory__says_which_packets_arrived(void **state)
{
    (void)state;
    static unsigned char memory[TOTAL * MTU];
    uint64_t arrived[1] = {UINT64_MAX};
    struct endpoint_fixture f;
    struct gw_pkt pkts[ACKS_MAX];
    struct gw_endpoint_cfg cfg = part_cfg();
    fixture_open(&f, &cfg, "1MB");
    memset(memory, 0x55, sizeof(memory));
    const struct gw_expect expect = {.peer = THEIRS,
                                     .tag = FLOW,
                                     .data = memory,
                                     .bytes = sizeof(memory),
                                     .finish = &ninety,
                                     .arrived = arrived,
                                     .packets_max = TOTAL};
    assert_int_equal(gw_endpoint_expect_part(f.endpoint, &expect), GW_OK);
    assert_true(gw_endpoint_expects(f.endpoint, THEIRS, FLOW));
    assert_true(arrived[0] == 0);
    for (uint32_t seq = 0; seq < TOTAL; seq++)
        if (seq != 4 && seq != 11)
            feed_payload(&f, seq, TOTAL, (uint8_t)seq);
    assert_int_equal(fixture_event(&f).missing, 2);
    feed_payload(&f, 4, TOTAL, 0xee);
    feed_payload(&f, 5, TOTAL, 0xee);
    assert_true(arrived[0] == ((UINT64_C(1) << TOTAL) - 1 - (1u << 4) - (1u << 11)));
    for (uint32_t i = 0; i < TOTAL * MTU; i++)
        assert_int_equal(memory[i], arrived[0] >> i / MTU & 1 ? i / MTU : 0x55);
    fixture_pull(&f, pkts, ACKS_MAX);
    fixture_close(&f);
}

static void flow_finish_memory__refuses_more_packets_than_it_can_mark(void **state)
{
    (void)state;
    unsigned char memory[3 * MTU];
    uint64_t arrived[2] = {0, 0x55};
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    struct gw_endpoint_cfg cfg = part_cfg();
    fixture_open(&f, &cfg, "1MB");
    const struct gw_expect expect = {.peer = THEIRS,
                                     .tag = FLOW,
                                     .data = memory,
                                     .bytes = sizeof(memory),
                                     .arrived = arrived,
                                     .packets_max = 2};
    assert_int_equal(gw_endpoint_expect_part(f.endpoint, &expect), GW_OK);
    feed_payload(&f, 0, 3, 1);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1); /* it takes no place, and its sender is told */
    assert_true(pkt.q.kind == GW_PKT_NACK && pkt.q.flags & GW_PKT_NOT_READY);
    assert_true(fixture_stats(&f)->refused == 1);
    assert_true(arrived[0] == 0 && arrived[1] == 0x55);
    fixture_close(&f);
}

/* The memory of the marks is given back like the other, before and after the first packet. */
static void flow_finish_memory__of_marks_is_given_back(void **state)
{
    (void)state;
    for (uint32_t packets = 0; packets < 2; packets++) {
        unsigned char memory[3 * MTU];
        uint64_t arrived[1];
        struct endpoint_fixture f;
        struct gw_pkt pkts[2];
        struct gw_endpoint_cfg cfg = part_cfg();
        fixture_open(&f, &cfg, "1MB");
        const struct gw_expect expect = {.peer = THEIRS,
                                         .tag = FLOW,
                                         .data = memory,
                                         .bytes = sizeof(memory),
                                         .arrived = arrived,
                                         .packets_max = 3};
        assert_int_equal(gw_endpoint_expect_part(f.endpoint, &expect), GW_OK);
        if (packets)
            feed_payload(&f, 0, 3, 1);
        gw_endpoint_forget(f.endpoint, arrived, sizeof(arrived));
        assert_false(gw_endpoint_expects(f.endpoint, THEIRS, FLOW));
        feed_payload(&f, 1, 3, 1);
        assert_true(arrived[0] == packets);
        fixture_pull(&f, pkts, 2);
        fixture_close(&f);
    }
}

/* ---- The sender. ---- */

static struct gw_pkt final_ack(const struct gw_pkt *data, uint32_t total, uint64_t bytes)
{
    struct gw_pkt ack = fixture_answer(data, GW_PKT_ACK, total);
    ack.q.flags = GW_PKT_GIVEN_UP;
    ack.ack.mask[0] = (uint32_t)bytes;
    ack.ack.mask[1] = (uint32_t)(bytes >> 32);
    return ack;
}

/* Ends with packets acknowledged, in flight, lost and unsent. */
static void flow_finish_tx__stops_in_mid_message(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_pkt pkts[8];
    fixture_open(&f, &cfg, "4000");
    f.bound = GW_Q16_ONE;
    uint32_t flow = fixture_send(&f, TOTAL * MTU - 1);
    assert_int_equal(fixture_pull(&f, pkts, 8), 4);
    fixture_nack(&f, &pkts[1]);
    fixture_ack(&f, &pkts[0], 1);
    struct gw_pkt ack = final_ack(&pkts[3], TOTAL, 3 * MTU);
    fixture_input(&f, &ack);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_SENT);
    assert_int_equal(event.flow, flow);
    assert_true(event.bytes == 3 * MTU);
    assert_int_equal(event.missing, TOTAL - 3);
    assert_int_equal(fixture_pull(&f, pkts, 8), 0);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_input(&f, &ack); /* again, as for what was in flight */
    assert_true(fixture_stats(&f)->stray == 1);
    fixture_close(&f);
}

/* The last packet is a short one: the bytes tell how many packets are missing all the same. */
static void flow_finish_tx__counts_what_is_missing(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes, missing;
    } cases[] = {{3 * MTU, 1}, {2 * MTU + 1, 1}, {2 * MTU, 2}, {MTU + 1, 2}, {1, 3}, {0, 4}};
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = part_cfg();
        struct gw_pkt pkt;
        fixture_open(&f, &cfg, "1000");
        f.bound = GW_Q16_ONE;
        fixture_send(&f, 3 * MTU + 1);
        assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
        struct gw_pkt ack = final_ack(&pkt, 4, cases[i].bytes);
        fixture_input(&f, &ack);
        struct gw_event event = fixture_event(&f);
        assert_true(event.bytes == cases[i].bytes && event.missing == cases[i].missing);
        fixture_close(&f);
    }
}

static void flow_finish_tx__does_not_send_again_what_is_given_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_flow_info info;
    struct gw_pkt pkts[8];
    fixture_open(&f, &cfg, "4000");
    f.bound = GW_Q16_ONE;
    uint32_t flow = fixture_send(&f, TOTAL * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 4), 4);
    struct gw_pkt nack = fixture_answer(&pkts[0], GW_PKT_NACK, 0);
    nack.q.flags = GW_PKT_GIVEN_UP;
    fixture_input(&f, &nack);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_int_equal(info.window_packets, 3); /* the oldest of all, and yet the window moves on */
    assert_int_equal(info.in_flight_bytes, 3 * MTU);
    assert_int_equal(info.acked_bytes, 0);
    assert_int_equal(fixture_pull(&f, &pkts[4], 4), 1);
    assert_int_equal(pkts[4].seq, 4);
    fixture_input(&f, &nack); /* doubled */
    /* The same of one that was taken for lost already. */
    nack = fixture_answer(&pkts[1], GW_PKT_NACK, 0);
    fixture_input(&f, &nack);
    nack.q.flags = GW_PKT_GIVEN_UP;
    fixture_input(&f, &nack);
    assert_int_equal(fixture_pull(&f, &pkts[5], 3), 1);
    assert_int_equal(pkts[5].seq, 5);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_int_equal(info.window_packets, 4);
    assert_true(fixture_stats(&f)->retransmits == 0);
    fixture_close(&f);
}

/* Losses that the window algorithm is told of. */
static uint32_t losses;

static void count_loss(void *state, const void *cfg, const struct gw_path *path,
                       const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)window;
    (void)now;
    assert_int_equal(loss->bytes, MTU);
    losses++;
}

/* cum passes packets that never arrived: they are lost to congestion control, not acknowledged. */
static void flow_finish_tx__lets_cum_pass_what_never_arrived(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_flow_info info;
    struct gw_pkt pkts[SPAN];
    fixture_open(&f, &cfg, "1MB");
    struct gw_cc_ops counting = *f.transport.cc;
    counting.on_loss = count_loss;
    f.transport.cc = &counting;
    losses = 0;
    f.bound = GW_Q16_ONE;
    uint32_t flow = fixture_send(&f, 200 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, SPAN), SPAN);
    fixture_nack(&f, &pkts[1]); /* this one is known already */
    assert_int_equal(losses, 1);
    struct gw_pkt ack = fixture_answer(&pkts[40], GW_PKT_ACK, 3);
    ack.q.flags = GW_PKT_GIVEN_UP;
    fixture_input(&f, &ack);
    assert_int_equal(losses, 3);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_int_equal(info.acked_bytes, MTU);
    assert_int_equal(info.window_packets, SPAN - 3);
    ack.ack.cum = 4; /* the rest is old news */
    struct gw_pkt more[SPAN];
    assert_int_equal(fixture_pull(&f, more, SPAN), 3); /* the window has moved by as many */
    fixture_input(&f, &ack);
    assert_int_equal(losses, 4);
    assert_int_equal(fixture_pull(&f, more, SPAN), 1);
    assert_int_equal(more[0].seq, SPAN + 3);
    fixture_close(&f);
}

/* A receiver that lies harms only itself. */
static void flow_finish_tx__survives_lies(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_pkt pkts[4];
    fixture_open(&f, &cfg, "1MB");
    f.bound = GW_Q16_ONE;
    fixture_send(&f, 4 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 4), 4);
    for (uint32_t i = 0; i < 2; i++) { /* less than all cannot be all, or more */
        struct gw_pkt ack = final_ack(&pkts[0], 4, i ? UINT64_MAX : 4 * MTU);
        fixture_input(&f, &ack);
        assert_true(fixture_stats(&f)->malformed == i + 1);
        fixture_no_event(&f);
    }
    for (uint32_t i = 0; i < 4; i++) { /* everything is lost and nothing is wanted */
        struct gw_pkt nack = fixture_answer(&pkts[i], GW_PKT_NACK, 0);
        nack.q.flags = GW_PKT_GIVEN_UP;
        fixture_input(&f, &nack);
    }
    struct gw_event event = fixture_event(&f);
    assert_true(event.kind == GW_EVENT_SENT && event.bytes == 0 && event.missing == 4);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_close(&f);
}

/* Of a message that must arrive whole nothing is given up, whatever a receiver says. */
static void flow_finish_tx__loses_no_part_unasked(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_pkt pkts[4];
    fixture_open(&f, &cfg, "1MB");
    fixture_send(&f, 4 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 4), 4);
    struct gw_pkt ack = final_ack(&pkts[0], 4, MTU);
    fixture_input(&f, &ack);
    struct gw_pkt nack = fixture_answer(&pkts[1], GW_PKT_NACK, 0);
    nack.q.flags = GW_PKT_GIVEN_UP;
    fixture_input(&f, &nack);
    assert_true(fixture_stats(&f)->malformed == 2);
    fixture_no_event(&f);
    for (uint32_t i = 0; i < 4; i++)
        fixture_ack(&f, &pkts[i], i + 1);
    struct gw_event event = fixture_event(&f);
    assert_true(event.kind == GW_EVENT_SENT && event.missing == 0);
    fixture_close(&f);
}

/* An ACK that lets a hole go overtakes the ACKs of what arrived before it: nothing of that is
 * lost but the hole, half a span behind. */
static void flow_finish_tx__loses_only_what_is_far_behind(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_pkt pkts[SPAN];
    struct gw_flow_info info;
    fixture_open(&f, &cfg, "1MB");
    f.bound = GW_Q16_ONE;
    uint32_t flow = fixture_send(&f, 2 * SPAN * MTU);
    assert_int_equal(fixture_pull(&f, pkts, SPAN), SPAN);
    struct gw_pkt ack = fixture_answer(&pkts[SPAN / 2], GW_PKT_ACK, SPAN / 2 + 1);
    ack.q.flags = GW_PKT_GIVEN_UP;
    fixture_input(&f, &ack);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_true(info.acked_bytes == SPAN / 2 * MTU);
    fixture_close(&f);
}

/* Class and importance are the message's, and each of its packets has them. */
static void flow_finish_tx__carries_class_and_importance(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_pkt pkts[8];
    uint32_t flow;
    fixture_open(&f, &cfg, "4000");
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_send send = {.peer = THEIRS,
                               .bytes = 4 * MTU,
                               .class = (uint8_t)(3 - i),
                               .is_unimportant = i == 1,
                               .bound = GW_Q16_ONE,
                               .transport = &f.transport,
                               .path = gw_test_path(&cfg, RATE_BPS, BRTT)};
        assert_int_equal(gw_endpoint_send(f.endpoint, &send, &flow, f.now), GW_OK);
    }
    assert_int_equal(fixture_pull(&f, pkts, 8), 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(pkts[i].q.class, i < 4 ? 3 : 2);
        assert_int_equal(pkts[i].q.ecn, i < 4 ? GW_ECN_ECT0 : GW_ECN_NOT_ECT);
    }
    fixture_close(&f);
}

/* What the receiver says it does without is believed up to the sender's bound, and no further. */
static void flow_finish_tx__believes_its_receiver_up_to_the_bound(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    struct gw_pkt pkts[16];
    fixture_open(&f, &cfg, "1MB");
    f.bound = GW_Q16_ONE / 5; /* 1 of 11: of 10, that is less than 2 by the rounding */
    fixture_send(&f, 11 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 11), 11);
    struct gw_pkt ack = final_ack(&pkts[0], 11, 8 * MTU);
    fixture_input(&f, &ack);
    assert_true(fixture_stats(&f)->malformed == 1);
    fixture_no_event(&f);
    for (uint32_t i = 0; i < 3; i++) {
        struct gw_pkt nack = fixture_answer(&pkts[i], GW_PKT_NACK, 0);
        nack.q.flags = GW_PKT_GIVEN_UP;
        fixture_input(&f, &nack);
        assert_true(fixture_stats(&f)->malformed == 1 + i);
    }
    for (uint32_t i = 1; i < 11; i++)
        fixture_ack(&f, &pkts[i], 0);
    assert_int_equal(fixture_event(&f).missing, 1);
    fixture_close(&f);
}

/* Packets that say for themselves how important they are; a train has one kind of them. */
static void flow_finish_tx__carries_importance_per_packet(void **state)
{
    (void)state;
    static const uint64_t important[] = {0x0f, 0x03};
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = part_cfg();
    uint32_t flow, seq = 0, trains = 0;
    cfg.train = 16;
    fixture_open(&f, &cfg, "1MB");
    struct gw_send send = {.peer = THEIRS,
                           .bytes = 64 * MTU,
                           .important = important,
                           .transport = &f.transport,
                           .path = gw_test_path(&cfg, RATE_BPS, BRTT)};
    assert_int_equal(gw_endpoint_send(f.endpoint, &send, &flow, f.now), GW_OK);
    f.node->ready_count = 0;
    for (uint32_t result = GW_OUTPUT_MORE; result & GW_OUTPUT_MORE; trains++) {
        struct gw_pkt *pkts[64];
        result = gw_node_output(f.node, 0, pkts, 64, f.now);
        for (uint32_t i = 0; i < (result & ~GW_OUTPUT_MORE); i++, seq++) {
            assert_int_equal(pkts[i]->seq, seq);
            assert_int_equal(pkts[i]->q.ecn, seq < 4 ? GW_ECN_ECT0 : GW_ECN_NOT_ECT);
            assert_int_equal(pkts[i]->q.ecn, pkts[0]->q.ecn);
            gw_pkt_release(&f.host.pool, pkts[i]);
        }
    }
    assert_int_equal(seq, 64);
    assert_in_range(trains, 5, 6); /* 4, three times 16, and 12; the last pull may be empty */
    fixture_close(&f);
}

/* Packets are weighed by a rule as they leave, and alike when they are sent again. */
static void flow_finish_tx__weighs_packets_as_they_leave(void **state)
{
    enum { PACKETS = 60, VALUES = MTU / sizeof(float), AGAIN = 31 };
    static float values[PACKETS * VALUES];
    (void)state;
    for (uint32_t i = 0; i < PACKETS * VALUES; i++) /* packets differ, in no order */
        values[i] = (float)(1 + i / VALUES * 37 % PACKETS);
    for (uint32_t rule = 0; rule < GW_IMPORTANCE_RULES; rule++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = part_cfg();
        struct gw_pkt pkts[PACKETS];
        uint32_t flow, important = 0;
        cfg.train = 16;
        fixture_open(&f, &cfg, "1MB");
        struct gw_send send = {.peer = THEIRS,
                               .bytes = sizeof(values),
                               .data = values,
                               .bound = GW_Q16_ONE / 10,
                               .importance = {.rule = (enum gw_importance_rule)rule,
                                              .type = GW_DTYPE_F32,
                                              .kernels = gw_kernels_best(0)},
                               .transport = &f.transport,
                               .path = gw_test_path(&cfg, RATE_BPS, BRTT)};
        assert_int_equal(gw_endpoint_send(f.endpoint, &send, &flow, f.now), GW_OK);
        assert_int_equal(fixture_pull(&f, pkts, PACKETS), PACKETS);
        for (uint32_t i = 0; i < PACKETS; i++) {
            bool is_important = pkts[i].q.ecn == GW_ECN_ECT0;
            important += is_important;
            if (rule == GW_IMPORTANCE_MEDIAN_OF_MEANS) /* the greater half */
                assert_int_equal(is_important, values[i * VALUES] > PACKETS / 2);
        }
        assert_in_range(important, rule == GW_IMPORTANCE_ALL ? PACKETS : 0,
                        rule == GW_IMPORTANCE_NONE ? 0 : PACKETS);
        for (uint32_t i = AGAIN; i < AGAIN + 2; i++) {
            struct gw_pkt again;
            fixture_nack(&f, &pkts[i]);
            assert_int_equal(fixture_pull(&f, &again, 1), 1);
            assert_int_equal(again.seq, i);
            assert_int_equal(again.q.ecn, pkts[i].q.ecn);
        }
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_finish_rx__ends_with_the_packet_that_is_enough),
        cmocka_unit_test(flow_finish_rx__says_nothing_while_nothing_is_lost),
        cmocka_unit_test(flow_finish_rx__gives_up_what_was_trimmed_within_the_bound),
        cmocka_unit_test(flow_finish_rx__may_end_with_a_packet_that_is_given_up),
        cmocka_unit_test(flow_finish_rx__does_not_wait_for_holes),
        cmocka_unit_test(flow_finish_rx__waits_for_holes_beyond_the_bound),
        cmocka_unit_test(flow_finish_rx__ends_coalesced),
        cmocka_unit_test(flow_finish_rx__grants_no_credit_for_what_is_given_up),
        cmocka_unit_test(flow_finish_rx__takes_credit_back_for_holes),
        cmocka_unit_test(flow_finish_memory__says_which_packets_arrived),
        cmocka_unit_test(flow_finish_memory__refuses_more_packets_than_it_can_mark),
        cmocka_unit_test(flow_finish_memory__of_marks_is_given_back),
        cmocka_unit_test(flow_finish_tx__stops_in_mid_message),
        cmocka_unit_test(flow_finish_tx__counts_what_is_missing),
        cmocka_unit_test(flow_finish_tx__does_not_send_again_what_is_given_up),
        cmocka_unit_test(flow_finish_tx__lets_cum_pass_what_never_arrived),
        cmocka_unit_test(flow_finish_tx__survives_lies),
        cmocka_unit_test(flow_finish_tx__loses_no_part_unasked),
        cmocka_unit_test(flow_finish_tx__loses_only_what_is_far_behind),
        cmocka_unit_test(flow_finish_tx__carries_class_and_importance),
        cmocka_unit_test(flow_finish_tx__carries_importance_per_packet),
        cmocka_unit_test(flow_finish_tx__weighs_packets_as_they_leave),
        cmocka_unit_test(flow_finish_tx__believes_its_receiver_up_to_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
