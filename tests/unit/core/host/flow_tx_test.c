/* The sender half of a flow, with the peer played by the test. */
#include "unit/core/host/endpoint_fixture.h"

#include "core/loss/rto.h"

#include <stdio.h>

enum {
    SPAN = 64,
    TICK = 4096, /* ps: how exactly send times are kept */
};

/* A timeout of the trimming detector over one hop: 1.2 base RTTs. */
#define RTO (BRTT * 12 / 10)

static void open_span(struct endpoint_fixture *f, const char *window)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.span_max = SPAN;
    fixture_open(f, &cfg, window);
}

/* Acknowledges everything until the flow has ended. */
static void finish(struct endpoint_fixture *f)
{
    struct gw_pkt pkts[PULLS_MAX];
    struct gw_event event;
    for (uint32_t i = 0; i < PULLS_MAX; i++) {
        uint32_t count = fixture_pull(f, pkts, PULLS_MAX);
        for (uint32_t j = 0; j < count; j++)
            if (pkts[j].q.kind == GW_PKT_DATA)
                fixture_ack(f, &pkts[j], 0);
        if (gw_endpoint_poll(f->endpoint, &event, 1)) {
            assert_int_equal(event.kind, GW_EVENT_SENT);
            assert_int_equal(fixture_pull(f, pkts, PULLS_MAX), 0);
            return;
        }
        f->now += GW_US;
        if (count == 0)
            fixture_expire(f);
    }
    fail_msg("the flow does not end");
}

/* Lets time pass until the next timeout, and takes the packet that is sent again. */
static void time_out(struct endpoint_fixture *f, struct gw_pkt *pkt)
{
    /* Deadlines may be early, by the coarseness of ticks. */
    for (uint32_t i = 0; i < 4; i++) {
        fixture_expire(f);
        if (fixture_pull(f, pkt, 1))
            return;
    }
    fail_msg("no timeout");
}

static void flow_tx_emit__fills_in_the_packet(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[4];
    open_span(&f, "10000");
    uint32_t flow = fixture_send(&f, 2 * MTU + 1);
    assert_int_equal(fixture_pull(&f, pkts, 4), 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct gw_pkt *pkt = &pkts[i];
        uint32_t len = i < 2 ? MTU : 1;
        assert_int_equal(pkt->q.kind, GW_PKT_DATA);
        assert_int_equal(pkt->q.size, len + HDR);
        assert_int_equal(pkt->q.ecn, GW_ECN_ECT0);
        assert_int_equal(pkt->q.class, 0);
        assert_int_equal(pkt->q.flags, GW_PKT_TRIMMABLE);
        assert_int_equal(pkt->q.key, gw_flow_key(OURS, THEIRS, flow));
        assert_int_equal(pkt->src, OURS);
        assert_int_equal(pkt->dst, THEIRS);
        assert_int_equal(pkt->flow, flow);
        assert_int_equal(pkt->seq, i);
        assert_true(pkt->sent_at == f.now);
        assert_int_equal(pkt->data.total, 3);
        assert_int_equal(pkt->data.len, len);
        assert_int_equal(pkt->data.mss, MTU);
    }
    finish(&f);
    fixture_close(&f);
}

/* With a window of one packet, each waits for the ACK of the one before. */
static void flow_tx_window__of_one_packet(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    open_span(&f, "1000");
    fixture_send(&f, 5 * MTU);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
        assert_int_equal(pkt.seq, i);
        assert_int_equal(fixture_pull(&f, &pkt, 1), 0);
        f.now += GW_US;
        fixture_ack(&f, &pkt, 0);
    }
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
    fixture_close(&f);
}

/* The payload in flight never exceeds the window; a short packet may use what a full one cannot. */
static void flow_tx_window__counts_payload(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8];
    struct gw_flow_info info;
    open_span(&f, "3500");
    uint32_t flow = fixture_send(&f, 3 * MTU + 400);
    assert_int_equal(fixture_pull(&f, pkts, 8), 4);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_int_equal(info.in_flight_bytes, 3 * MTU + 400);
    assert_int_equal(info.window_packets, 4);
    assert_true(info.cwnd == 3500 && info.acked_bytes == 0);
    fixture_ack(&f, &pkts[1], 0);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_int_equal(info.in_flight_bytes, 2 * MTU + 400);
    assert_true(info.acked_bytes == MTU);
    fixture_ack(&f, &pkts[0], 0);
    fixture_ack(&f, &pkts[2], 0);
    fixture_ack(&f, &pkts[3], 0);
    assert_false(gw_endpoint_flow_info(f.endpoint, flow, &info));
    fixture_event(&f);
    fixture_close(&f);
}

/* No further ahead of the oldest missing packet than the span, whatever the window. */
static void flow_tx_window__is_limited_by_the_span(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[3 * SPAN], more;
    open_span(&f, "1000000");
    fixture_send(&f, 3 * SPAN * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 3 * SPAN), SPAN);
    for (uint32_t i = 1; i < SPAN; i++)
        fixture_ack(&f, &pkts[i], 0);
    assert_int_equal(fixture_pull(&f, &more, 1), 0);
    fixture_ack(&f, &pkts[0], 0);
    assert_int_equal(fixture_pull(&f, pkts, 3 * SPAN), SPAN);
    assert_int_equal(pkts[0].seq, SPAN);
    for (uint32_t i = 0; i < SPAN; i++)
        fixture_ack(&f, &pkts[i], 0);
    finish(&f);
    fixture_close(&f);
}

/* What is below the cumulative number counts as acknowledged, once. */
static void flow_tx_ack__is_cumulative(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8];
    struct gw_flow_info info;
    open_span(&f, "8000");
    uint32_t flow = fixture_send(&f, 20 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 8), 8);
    fixture_ack(&f, &pkts[2], 0);
    fixture_ack(&f, &pkts[4], 5);
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_true(info.acked_bytes == 5 * MTU);
    fixture_ack(&f, &pkts[4], 5); /* the same once more, and an older one */
    fixture_ack(&f, &pkts[0], 1);
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_true(info.acked_bytes == 5 * MTU);
    fixture_ack(&f, &pkts[7], UINT32_MAX); /* not beyond what was sent */
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_true(info.acked_bytes == 8 * MTU);
    assert_int_equal(info.window_packets, 0);
    finish(&f);
    fixture_close(&f);
}

/* A mask reports the packets from 32 before to 31 behind its own number. */
static void flow_tx_ack__reads_the_mask(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SPAN];
    struct gw_flow_info info;
    open_span(&f, "64000");
    uint32_t flow = fixture_send(&f, SPAN * MTU);
    assert_int_equal(fixture_pull(&f, pkts, SPAN), SPAN);
    struct gw_pkt ack = fixture_answer(&pkts[32], GW_PKT_ACK, 0);
    ack.ack.mask[0] = 1 | UINT32_C(1) << 31; /* 0 and 31 */
    ack.ack.mask[1] = 1 | UINT32_C(1) << 31; /* 32 itself and 63 */
    fixture_input(&f, &ack);
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_true(info.acked_bytes == 4 * MTU);
    assert_int_equal(info.window_packets, SPAN - 1);
    /* Bits before packet 0 and behind the newest mean nothing. */
    ack = fixture_answer(&pkts[1], GW_PKT_ACK, 0);
    ack.ack.mask[0] = UINT32_MAX >> 1;
    fixture_input(&f, &ack);
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_true(info.acked_bytes == 5 * MTU);
    finish(&f);
    fixture_close(&f);
}

/* Packets that were lost go first, in the order of their loss, restamped and with a new entropy. */
static void flow_tx_nack__resends_before_new_data(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[4], again[8];
    open_span(&f, "4000");
    fixture_send(&f, 10 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 4), 4);
    f.now += 2 * GW_US;
    fixture_nack(&f, &pkts[2]);
    fixture_nack(&f, &pkts[0]);
    fixture_ack(&f, &pkts[1], 0);
    assert_int_equal(fixture_pull(&f, again, 8), 3);
    assert_int_equal(again[0].seq, 2);
    assert_int_equal(again[1].seq, 0);
    assert_int_equal(again[2].seq, 4);
    assert_true(again[0].sent_at == f.now);
    assert_int_not_equal(again[0].entropy, pkts[2].entropy);
    assert_true(fixture_stats(&f)->retransmits == 2);
    finish(&f);
    fixture_close(&f);
}

static void not_ready(struct endpoint_fixture *f, const struct gw_pkt *data)
{
    struct gw_pkt nack = fixture_answer(data, GW_PKT_NACK, 0);
    nack.q.flags = GW_PKT_NOT_READY;
    fixture_input(f, &nack);
}

/*
 * The receiver has no memory yet: single packets ask again, at distances that double from an eighth
 * of a base RTT to four. Nothing counts as congestion: once one is acknowledged, all may be sent.
 */
static void flow_tx_nack__that_says_not_ready_makes_it_ask(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[PULLS_MAX];
    struct gw_flow_info before, info;
    open_span(&f, "4000");
    uint32_t flow = fixture_send(&f, 10 * MTU);
    gw_endpoint_flow_info(f.endpoint, flow, &before);
    assert_int_equal(fixture_pull(&f, pkts, PULLS_MAX), 4);
    for (uint32_t i = 0; i < 4; i++)
        not_ready(&f, &pkts[i]);
    for (uint32_t k = 0; k < 8; k++) {
        gw_time wait = (BRTT >> 3) << (k < 5 ? k : 5);
        f.now += wait - 1;
        gw_node_expire(f.node, f.now);
        assert_int_equal(fixture_pull(&f, pkts, PULLS_MAX), 0);
        f.now += 1;
        gw_node_expire(f.node, f.now);
        fixture_take_ready(&f);
        assert_int_equal(fixture_pull(&f, pkts, PULLS_MAX), 1);
        assert_int_equal(pkts[0].q.flags & GW_PKT_TRIMMED, 0);
        if (k < 7)
            not_ready(&f, &pkts[0]);
    }
    fixture_ack(&f, &pkts[0], 0);
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_true(info.cwnd == before.cwnd);
    assert_true(fixture_stats(&f)->timeouts == 0);
    struct gw_pkt late = pkts[0];
    assert_int_equal(fixture_pull(&f, pkts, PULLS_MAX), 4);
    not_ready(&f, &late); /* from before the acknowledgement */
    not_ready(&f, &pkts[0]);
    gw_endpoint_flow_info(f.endpoint, flow, &info);
    assert_int_equal(info.in_flight_bytes, 4 * MTU);
    for (uint32_t i = 0; i < 4; i++)
        fixture_ack(&f, &pkts[i], 0);
    finish(&f);
    fixture_close(&f);
}

/* A NACK for an earlier copy of a packet says nothing of the copy now in flight. */
static void flow_tx_nack__of_an_older_copy_is_ignored(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt first, second, third;
    open_span(&f, "1000");
    fixture_send(&f, MTU);
    assert_int_equal(fixture_pull(&f, &first, 1), 1);
    f.now += GW_US;
    fixture_nack(&f, &first);
    assert_int_equal(fixture_pull(&f, &second, 1), 1);
    f.now += GW_US;
    fixture_nack(&f, &first);
    assert_int_equal(fixture_pull(&f, &third, 1), 0);
    fixture_nack(&f, &second);
    assert_int_equal(fixture_pull(&f, &third, 1), 1);
    assert_int_equal(third.seq, 0);
    assert_true(fixture_stats(&f)->nacks_received == 3);
    finish(&f);
    fixture_close(&f);
}

static void flow_tx_nack__after_the_ack_is_ignored(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[2], more;
    open_span(&f, "2000");
    fixture_send(&f, 2 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 2), 2);
    fixture_ack(&f, &pkts[1], 0);
    fixture_nack(&f, &pkts[1]);
    assert_int_equal(fixture_pull(&f, &more, 1), 0);
    assert_true(fixture_stats(&f)->retransmits == 0);
    finish(&f);
    fixture_close(&f);
}

/* The packet arrived after all: it is not sent again. */
static void flow_tx_ack__of_a_lost_packet_saves_the_resend(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[2], more;
    open_span(&f, "2000");
    fixture_send(&f, 2 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 2), 2);
    fixture_nack(&f, &pkts[0]);
    fixture_ack(&f, &pkts[0], 1);
    assert_int_equal(fixture_pull(&f, &more, 1), 0);
    fixture_ack(&f, &pkts[1], 2);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_SENT);
    assert_true(event.retransmits == 0 && fixture_stats(&f)->spurious == 0);
    fixture_close(&f);
}

/* It arrived after all, but had been sent again: that is counted. */
static void flow_tx_ack__of_the_first_copy_is_spurious(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt first, second;
    open_span(&f, "1000");
    fixture_send(&f, MTU);
    assert_int_equal(fixture_pull(&f, &first, 1), 1);
    time_out(&f, &second);
    f.now += GW_US;
    fixture_ack(&f, &first, 1);
    struct gw_event event = fixture_event(&f);
    assert_true(event.retransmits == 1 && fixture_stats(&f)->spurious == 1);
    assert_true(fixture_stats(&f)->timeouts == 1);
    /* The ACK of the second copy finds no flow. */
    fixture_ack(&f, &second, 1);
    assert_true(fixture_stats(&f)->stray == 1);
    fixture_no_event(&f);
    fixture_close(&f);
}

/*
 * Nothing is ever answered: the first timeout leaves the period as it is, each further one doubles
 * it, up to 64 times.
 */
static void flow_tx_timeout__backs_off_to_64_times(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    open_span(&f, "1000");
    fixture_send(&f, MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t shift = i == 0 ? 0 : i - 1 < GW_RTO_SHIFT_MAX ? i - 1 : GW_RTO_SHIFT_MAX;
        gw_time sent = pkt.sent_at;
        time_out(&f, &pkt);
        gw_time waited = f.now - sent;
        assert_true(waited >= RTO << shift && waited <= (RTO << shift) + 2 * TICK);
    }
    assert_true(fixture_stats(&f)->timeouts == 12);
    finish(&f);
    fixture_close(&f);
}

/* An ACK of a packet that was sent after the timeout ends the back-off. */
static void flow_tx_timeout__starts_over_after_an_ack(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    open_span(&f, "1000");
    fixture_send(&f, 2 * MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    for (uint32_t i = 0; i < 4; i++)
        time_out(&f, &pkt);
    fixture_ack(&f, &pkt, 1);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    gw_time sent = f.now;
    while (fixture_stats(&f)->timeouts < 5)
        fixture_expire(&f);
    assert_true(f.now - sent >= RTO && f.now - sent <= RTO + 2 * TICK);
    finish(&f);
    fixture_close(&f);
}

/* Send times are kept in ticks; whatever the period, the timer does not fire within one in vain. */
static void flow_tx_timeout__takes_few_expiries(void **state)
{
    (void)state;
    for (uint32_t percent = 101; percent < 200; percent++) {
        struct endpoint_fixture f;
        struct gw_pkt pkt;
        char text[8];
        open_span(&f, "1000");
        snprintf(text, sizeof(text), "%u%%", percent);
        assert_int_equal(
            gw_algo_set(&f.transport.loss->algo, f.transport.loss_cfg.bytes, "rto", text), GW_OK);
        f.now += percent; /* somewhere within a tick */
        fixture_send(&f, MTU);
        assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
        time_out(&f, &pkt);
        finish(&f);
        fixture_close(&f);
    }
}

/* All packets of a burst are lost: each times out once, at its own time, and nothing hangs. */
static void flow_tx_timeout__covers_a_whole_window(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[16];
    open_span(&f, "16000");
    fixture_send(&f, 16 * MTU);
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(fixture_pull(&f, &pkts[i], 1), 1);
        f.now += 100 * GW_NS;
    }
    uint32_t resent = 0;
    while (resent < 16) {
        fixture_expire(&f);
        uint32_t count = fixture_pull(&f, &pkts[resent], 16 - resent);
        for (; count > 0; count--, resent++)
            assert_int_equal(pkts[resent].seq, resent);
    }
    assert_true(fixture_stats(&f)->timeouts == 16);
    finish(&f);
    fixture_close(&f);
}

/* Calling expire at any time changes nothing: no packet, no counter. */
static void flow_tx_expire__at_any_time_is_harmless(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8], more;
    open_span(&f, "4000");
    gw_node_expire(f.node, f.now);
    fixture_send(&f, 8 * MTU);
    gw_node_expire(f.node, f.now);
    assert_int_equal(fixture_pull(&f, pkts, 8), 4);
    while (gw_time_before(f.now + 100 * GW_NS, gw_node_deadline(f.node))) {
        f.now += 100 * GW_NS;
        gw_node_expire(f.node, f.now);
        assert_int_equal(fixture_pull(&f, &more, 1), 0);
    }
    f.now = gw_node_deadline(f.node) - 1;
    gw_node_expire(f.node, f.now);
    assert_int_equal(fixture_pull(&f, &more, 1), 0);
    assert_true(fixture_stats(&f)->timeouts == 0);
    finish(&f);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    gw_node_expire(f.node, f.now + GW_S);
    fixture_close(&f);
}

static void flow_tx_end__cancels_the_timer(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    open_span(&f, "1000");
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_send(&f, MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    assert_true(gw_node_deadline(f.node) != GW_TIME_NEVER);
    fixture_ack(&f, &pkt, 1);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_event(&f);
    fixture_close(&f);
}

static void flow_tx_feedback__that_makes_no_sense_is_counted(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[2];
    open_span(&f, "2000");
    fixture_send(&f, 10 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 2), 2);
    struct gw_pkt ack = fixture_answer(&pkts[0], GW_PKT_ACK, 0);
    ack.seq = 2; /* not sent yet */
    fixture_input(&f, &ack);
    assert_true(fixture_stats(&f)->malformed == 1);
    ack = fixture_answer(&pkts[0], GW_PKT_NACK, 0);
    ack.seq = UINT32_MAX;
    fixture_input(&f, &ack);
    assert_true(fixture_stats(&f)->malformed == 2);
    ack = fixture_answer(&pkts[0], GW_PKT_ACK, 0);
    ack.flow += 1 << 16; /* another generation of the index */
    fixture_input(&f, &ack);
    ack.flow = 100; /* no such index */
    fixture_input(&f, &ack);
    ack = fixture_answer(&pkts[0], GW_PKT_ACK, 0);
    ack.src = THEIRS + 1; /* not the peer */
    fixture_input(&f, &ack);
    assert_true(fixture_stats(&f)->stray == 3);
    struct gw_flow_info info;
    assert_true(gw_endpoint_flow_info(f.endpoint, pkts[0].flow, &info));
    assert_true(info.acked_bytes == 0);
    finish(&f);
    fixture_close(&f);
}

/* A load balancer that counts: entropy 100, 101, ... */
static void counting_init(void *state, const void *cfg, const struct gw_path *path,
                          struct gw_prng prng)
{
    (void)cfg;
    (void)path;
    (void)prng;
    *(uint16_t *)state = 100;
}

/* What the load balancer was asked last, and what it was told. */
static struct gw_lb_next last_next;
static struct gw_lb_echo last_echo;

static uint16_t counting_pick(void *state, const void *cfg, const struct gw_lb_next *next,
                              gw_time now)
{
    (void)cfg;
    (void)now;
    last_next = *next;
    return (*(uint16_t *)state)++;
}

static void keep_echo(void *state, const void *cfg, const struct gw_lb_echo *echo, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)now;
    last_echo = *echo;
}

static const struct gw_lb_ops counting = {
    .algo = {.name = "counting", .cfg_size = 1, .state_size = sizeof(uint16_t)},
    .init = counting_init,
    .pick = counting_pick,
    .on_ack = keep_echo,
    .on_trim = keep_echo,
};

/* An acknowledged packet is out of flight when the load balancer hears of it; a trimmed one not. */
static void flow_tx_echo__tells_of_the_packet(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[4];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "100000");
    f.transport.lb = &counting;
    fixture_send(&f, 4 * MTU);
    gw_time sent_at = f.now;
    assert_int_equal(fixture_pull(&f, pkts, 4), 4);

    f.now = sent_at + 7 * GW_US;
    struct gw_pkt ack = fixture_answer(&pkts[1], GW_PKT_ACK, 0);
    ack.q.flags |= GW_PKT_ECHO_CE;
    fixture_input(&f, &ack);
    assert_int_equal(last_echo.rtt, 7 * GW_US);
    assert_int_equal(last_echo.in_flight, 3 * MTU);
    assert_int_equal(last_echo.entropy, 101);
    assert_true(last_echo.ce);

    f.now = sent_at + 9 * GW_US;
    fixture_nack(&f, &pkts[3]);
    assert_int_equal(last_echo.rtt, 9 * GW_US);
    assert_int_equal(last_echo.in_flight, 3 * MTU);
    assert_int_equal(last_echo.entropy, 103);
    assert_false(last_echo.ce);

    assert_int_equal(last_next.bytes, MTU);
    assert_false(last_next.is_resent);
    assert_int_equal(fixture_pull(&f, pkts, 4), 1);
    assert_int_equal(last_next.bytes, MTU);
    assert_true(last_next.is_resent);
    fixture_close(&f);
}

/* Entropies are picked once per train, and a train of 4 is 4 packets with one entropy. */
static void flow_tx_train__shares_one_pick(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.train = 4;
    fixture_open(&f, &cfg, "100000");
    f.transport.lb = &counting;
    fixture_send(&f, 10 * MTU);
    uint32_t seq = 0;
    fixture_take_ready(&f);
    for (uint32_t train = 0; train < 3; train++) {
        struct gw_pkt *pkts[8];
        uint32_t result = gw_node_output(f.node, 0, pkts, 8, f.now);
        uint32_t count = result & ~GW_OUTPUT_MORE;
        assert_int_equal(count, train < 2 ? 4 : 2);
        assert_int_equal(result & GW_OUTPUT_MORE, train < 2 ? GW_OUTPUT_MORE : 0);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(pkts[i]->entropy, 100 + train);
            assert_int_equal(pkts[i]->seq, seq++);
            struct gw_pkt copy = *pkts[i];
            gw_pkt_release(&f.host.pool, pkts[i]);
            fixture_ack(&f, &copy, 0);
        }
    }
    f.ready_count = 0;
    fixture_event(&f);
    fixture_close(&f);
}

/* A pull of fewer packets than a train has does not end the train. */
static void flow_tx_train__goes_on_after_a_short_pull(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[10];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.train = 4;
    fixture_open(&f, &cfg, "100000");
    f.transport.lb = &counting;
    fixture_send(&f, 10 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 10), 10); /* one by one */
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(pkts[i].entropy, 100 + i / 4);
    for (uint32_t i = 0; i < 10; i++)
        fixture_ack(&f, &pkts[i], 0);
    fixture_event(&f);
    fixture_close(&f);
}

/* When nothing more may follow, the receiver must not wait for more. */
static void flow_tx_ack_now__is_set_on_the_last_of_the_window(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.ack_every = 8;
    fixture_open(&f, &cfg, "3000");
    fixture_send(&f, 5 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 8), 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(pkts[i].q.flags & GW_PKT_ACK_NOW, i == 2 ? GW_PKT_ACK_NOW : 0);
    fixture_ack(&f, &pkts[2], 3);
    assert_int_equal(fixture_pull(&f, pkts, 8), 2);
    assert_int_equal(pkts[1].q.flags & GW_PKT_ACK_NOW, GW_PKT_ACK_NOW);
    fixture_ack(&f, &pkts[1], 5);
    fixture_event(&f);
    fixture_close(&f);
}

/* A receiver that may hold back more than a mask has room for is asked by who would wait for it. */
static void flow_tx_ack_now__is_set_at_each_quarter_of_the_window(void **state)
{
    (void)state;
    static const struct {
        const char *window;
        uint32_t ack_every, step;
    } cases[] = {{"100000", 96, 25}, {"32000", 96, GW_ACK_ASKED}, {"100000", 32, 100}};
    for (size_t c = 0; c < GW_COUNT_OF(cases); c++) {
        struct endpoint_fixture f;
        struct gw_pkt pkts[200];
        struct gw_endpoint_cfg cfg = fixture_cfg();
        cfg.span_max = 256;
        cfg.ack_every = cases[c].ack_every;
        fixture_open(&f, &cfg, cases[c].window);
        fixture_send(&f, 200 * MTU);
        uint32_t count = fixture_pull(&f, pkts, 200);
        assert_int_equal(count, strtoul(cases[c].window, NULL, 10) / MTU);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(!!(pkts[i].q.flags & GW_PKT_ACK_NOW), (i + 1) % cases[c].step == 0);
        gw_test_host_close(&f.host);
    }
}

/* No packet to send with: tried again later, and nothing is lost. */
static void flow_tx_pool__empty_recovers(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt copy;
    open_span(&f, "2000");
    fixture_send(&f, 3 * MTU);
    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    assert_int_equal(hoard.count, PKTS);
    assert_int_equal(fixture_pull(&f, &copy, 1), 0);
    assert_true(fixture_stats(&f)->pool_empty == 1);
    fixture_expire(&f);
    assert_int_equal(fixture_pull(&f, &copy, 1), 0);
    assert_true(fixture_stats(&f)->pool_empty == 2);
    fixture_give_back(&f, &hoard);
    fixture_expire(&f);
    assert_int_equal(fixture_pull(&f, &copy, 1), 1);
    fixture_ack(&f, &copy, 1);
    finish(&f);
    fixture_close(&f);
}

/* Without an answer for `stall` the flow fails, at that time, also when it never sent anything. */
static void flow_tx_stall__fails_on_time(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.stall = GW_MS;
    fixture_open(&f, &cfg, "1000");
    gw_time start = f.now;
    uint32_t silent = fixture_send(&f, MTU);
    fixture_send(&f, MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1); /* only the first gets a turn */
    assert_int_equal(pkt.flow, silent);
    f.ready_count = 0; /* from now on the port is stuck */
    while (f.node->event_count == 0)
        fixture_expire(&f);
    assert_true(f.now == start + GW_MS);
    struct gw_event events[3];
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 3), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(events[i].kind, GW_EVENT_FAILED);
        assert_true(events[i].at == start + GW_MS);
    }
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_ack(&f, &pkt, 1); /* too late */
    assert_true(fixture_stats(&f)->stray == 1);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_tx_emit__fills_in_the_packet),
        cmocka_unit_test(flow_tx_window__of_one_packet),
        cmocka_unit_test(flow_tx_window__counts_payload),
        cmocka_unit_test(flow_tx_window__is_limited_by_the_span),
        cmocka_unit_test(flow_tx_ack__is_cumulative),
        cmocka_unit_test(flow_tx_ack__reads_the_mask),
        cmocka_unit_test(flow_tx_nack__resends_before_new_data),
        cmocka_unit_test(flow_tx_nack__that_says_not_ready_makes_it_ask),
        cmocka_unit_test(flow_tx_nack__of_an_older_copy_is_ignored),
        cmocka_unit_test(flow_tx_nack__after_the_ack_is_ignored),
        cmocka_unit_test(flow_tx_ack__of_a_lost_packet_saves_the_resend),
        cmocka_unit_test(flow_tx_ack__of_the_first_copy_is_spurious),
        cmocka_unit_test(flow_tx_timeout__backs_off_to_64_times),
        cmocka_unit_test(flow_tx_timeout__starts_over_after_an_ack),
        cmocka_unit_test(flow_tx_timeout__takes_few_expiries),
        cmocka_unit_test(flow_tx_timeout__covers_a_whole_window),
        cmocka_unit_test(flow_tx_expire__at_any_time_is_harmless),
        cmocka_unit_test(flow_tx_end__cancels_the_timer),
        cmocka_unit_test(flow_tx_feedback__that_makes_no_sense_is_counted),
        cmocka_unit_test(flow_tx_echo__tells_of_the_packet),
        cmocka_unit_test(flow_tx_train__shares_one_pick),
        cmocka_unit_test(flow_tx_train__goes_on_after_a_short_pull),
        cmocka_unit_test(flow_tx_ack_now__is_set_on_the_last_of_the_window),
        cmocka_unit_test(flow_tx_ack_now__is_set_at_each_quarter_of_the_window),
        cmocka_unit_test(flow_tx_pool__empty_recovers),
        cmocka_unit_test(flow_tx_stall__fails_on_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
