/*
 * One endpoint for tests, with the peer played by the test: it pulls what the endpoint sends, and
 * feeds packets and acknowledgements that it makes up. A pull checks the contract of core/node.h.
 */
#ifndef GW_TESTS_ENDPOINT_FIXTURE_H
#define GW_TESTS_ENDPOINT_FIXTURE_H

#include "host.h"
#include "support.h"

#include "base/error.h"

enum {
    OURS = 1,
    THEIRS = 2,
    MTU = 1000,
    HDR = 64,
    PKTS = 1024,
    PULLS_MAX = 4096,
};

#define RATE_BPS UINT64_C(10000000000)
#define BRTT     (10 * GW_US)
/* Of full packets, at that rate. */
#define GAP gw_serialisation(gw_byte_time_from_bps(RATE_BPS), MTU + HDR)

struct endpoint_fixture {
    struct gw_test_host host;
    struct gw_endpoint_cfg cfg;
    struct gw_endpoint *endpoint;
    struct gw_node *node;
    struct gw_transport transport;
    gw_time now;
    uint16_t ready[8]; /* ports that the endpoint reported and the test has not pulled */
    uint32_t ready_count;
    gw_q16 bound; /* of what is sent */
};

/* cfg as the test wants it, before open: begin with fixture_cfg(). */
static inline struct gw_endpoint_cfg fixture_cfg(void)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, MTU);
    cfg.hdr = HDR;
    return cfg;
}

/*
 * An endpoint whose flows have a fixed window of `window` bytes. Time begins an hour before 2^64,
 * and between two ticks of the send times.
 */
static inline void fixture_open(struct endpoint_fixture *f, const struct gw_endpoint_cfg *cfg,
                                const char *window)
{
    *f = (struct endpoint_fixture){.cfg = *cfg, .now = (gw_time)0 - 3600 * GW_S + 3000};
    gw_test_host_open(&f->host, cfg, PKTS);
    f->endpoint = f->host.endpoint;
    f->node = gw_endpoint_node(f->endpoint);
    f->transport = gw_test_transport("fixed", "spray", "trim");
    assert_int_equal(
        gw_algo_set(&f->transport.cc->algo, f->transport.cc_cfg.bytes, "window", window), GW_OK);
}

static inline void fixture_close(struct endpoint_fixture *f)
{
    gw_test_host_close(&f->host);
}

/* The same with packets that wait to leave, or flows that have not ended. */
static inline void fixture_abandon(struct endpoint_fixture *f)
{
    gw_endpoint_fini(f->endpoint);
    fixture_close(f);
}

static inline const struct gw_endpoint_stats *fixture_stats(const struct endpoint_fixture *f)
{
    return gw_endpoint_stats(f->endpoint);
}

static inline int fixture_try_send(struct endpoint_fixture *f, uint64_t bytes, uint8_t class,
                                   uint32_t *flow)
{
    struct gw_send send = {
        .peer = THEIRS,
        .bytes = bytes,
        .class = class,
        .bound = f->bound,
        .transport = &f->transport,
        .path = gw_test_path(&f->cfg, RATE_BPS, BRTT),
    };
    return gw_endpoint_send(f->endpoint, &send, flow, f->now);
}

static inline uint32_t fixture_send(struct endpoint_fixture *f, uint64_t bytes)
{
    uint32_t flow;
    assert_int_equal(fixture_try_send(f, bytes, 0, &flow), GW_OK);
    return flow;
}

/* Takes over the ready list, as a driver does; no port may be listed that already is. */
static inline void fixture_take_ready(struct endpoint_fixture *f)
{
    for (uint32_t i = 0; i < f->node->ready_count; i++) {
        for (uint32_t j = 0; j < f->ready_count; j++)
            assert_int_not_equal(f->ready[j], f->node->ready[i]);
        assert_true(f->ready_count < GW_COUNT_OF(f->ready));
        f->ready[f->ready_count++] = f->node->ready[i];
    }
    f->node->ready_count = 0;
}

/*
 * Pulls the ports that are ready until they are quiet, or until `max` packets came. Stores copies;
 * the packets themselves are gone, as if sent. Not inlined: tests assert how many came, which the
 * compiler does not take as proof that the copies are written.
 */
__attribute__((noinline, unused)) static uint32_t fixture_pull(struct endpoint_fixture *f,
                                                               struct gw_pkt *copies, uint32_t max)
{
    uint32_t count = 0;
    fixture_take_ready(f);
    while (f->ready_count && count < max) {
        struct gw_pkt *pkt;
        uint32_t result = gw_node_output(f->node, f->ready[0], &pkt, 1, f->now);
        uint32_t got = result & ~GW_OUTPUT_MORE;
        assert_true(got <= 1);
        assert_true(got == 1 || !(result & GW_OUTPUT_MORE));
        assert_int_equal(f->node->ready_count, 0); /* output itself reports nothing */
        if (got) {
            copies[count++] = *pkt;
            gw_pkt_release(&f->host.pool, pkt);
        }
        if (!(result & GW_OUTPUT_MORE))
            f->ready[0] = f->ready[--f->ready_count];
    }
    return count;
}

static inline void fixture_input(struct endpoint_fixture *f, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(f->node, 0, &pkt, 1, f->now);
    fixture_take_ready(f);
}

/* What the peer answers to a data packet of ours. */
static inline struct gw_pkt fixture_answer(const struct gw_pkt *data, enum gw_pkt_kind kind,
                                           uint32_t cum)
{
    return (struct gw_pkt){
        .q = {.size = HDR, .class = GW_CLASS_CONTROL, .kind = (uint8_t)kind},
        .src = data->dst,
        .dst = data->src,
        .flow = data->flow,
        .sent_at = data->sent_at,
        .seq = data->seq,
        .echo_entropy = data->entropy,
        .buf = GW_BUF_NONE,
        .ack = {.cum = cum},
    };
}

static inline void fixture_ack(struct endpoint_fixture *f, const struct gw_pkt *data, uint32_t cum)
{
    struct gw_pkt ack = fixture_answer(data, GW_PKT_ACK, cum);
    fixture_input(f, &ack);
}

static inline void fixture_nack(struct endpoint_fixture *f, const struct gw_pkt *data)
{
    struct gw_pkt nack = fixture_answer(data, GW_PKT_NACK, 0);
    fixture_input(f, &nack);
}

/* Packet `seq` of a message of `total` full packets from the peer, without payload. */
static inline struct gw_pkt fixture_data(uint32_t flow, uint32_t seq, uint32_t total)
{
    return (struct gw_pkt){
        .q = {.size = MTU + HDR,
              .ecn = GW_ECN_ECT0,
              .flags = GW_PKT_TRIMMABLE,
              .kind = GW_PKT_DATA},
        .src = THEIRS,
        .dst = OURS,
        .flow = flow,
        .seq = seq,
        .entropy = (uint16_t)(1000 + seq),
        .sent_at = 7000 + seq,
        .buf = GW_BUF_NONE,
        .data = {.total = total, .len = MTU, .mss = MTU, .tag = flow},
    };
}

/* Goes to the endpoint's next deadline, at which something must be due. */
static inline void fixture_expire(struct endpoint_fixture *f)
{
    gw_time deadline = gw_node_deadline(f->node);
    assert_true(deadline != GW_TIME_NEVER);
    if (gw_time_before(f->now, deadline))
        f->now = deadline;
    gw_node_expire(f->node, f->now);
    fixture_take_ready(f);
}

/* Takes all packets out of the pool, as a chain that fixture_give_back() ends. */
static inline struct gw_pkt_fifo fixture_hoard(struct endpoint_fixture *f)
{
    struct gw_pkt_fifo hoard = {.count = 0};
    for (struct gw_pkt *pkt; (pkt = gw_pkt_claim(&f->host.pool)) != NULL;)
        gw_pkt_fifo_push(&hoard, &f->host.pool, pkt);
    return hoard;
}

static inline void fixture_give_back(struct endpoint_fixture *f, struct gw_pkt_fifo *hoard)
{
    while (hoard->count)
        gw_pkt_release(&f->host.pool, gw_pkt_fifo_pop(hoard, &f->host.pool));
}

/* The only event that waits. */
static inline struct gw_event fixture_event(struct endpoint_fixture *f)
{
    struct gw_event events[2];
    assert_int_equal(gw_endpoint_poll(f->endpoint, events, 2), 1);
    return events[0];
}

static inline void fixture_no_event(struct endpoint_fixture *f)
{
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(f->endpoint, &event, 1), 0);
}

#endif
