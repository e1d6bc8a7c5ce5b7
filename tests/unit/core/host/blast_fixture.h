/* An endpoint with blasts, whose peer the test plays: hails and data of that peer. */
#ifndef GW_TESTS_BLAST_FIXTURE_H
#define GW_TESTS_BLAST_FIXTURE_H

#include "unit/core/host/endpoint_fixture.h"

#include "core/blast_hail.h"

enum {
    TX_FLOWS = 8, /* of the fixture's endpoint: the first blast has this number */
    BLASTS = 4,
    BLAST_PACKETS = 1000,
    FLOW = 77, /* of the peer */
    TAG = 5,
    RTT_US = 10,
};

#define REPORT_EVERY (100 * GW_US)

static inline struct gw_endpoint_cfg blast_cfg(void)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.tx_flows_max = TX_FLOWS;
    cfg.blasts_max = BLASTS;
    cfg.blast_packets_max = BLAST_PACKETS;
    cfg.report_every = REPORT_EVERY;
    return cfg;
}

static inline void blast_open_stalling(struct endpoint_fixture *f, gw_time stall)
{
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.stall = stall;
    fixture_open(f, &cfg, "4000");
    f->transport = gw_test_transport("dlcp", "spray", "trim");
}

static inline void blast_open(struct endpoint_fixture *f)
{
    blast_open_stalling(f, 0);
}

/* A hail from the peer, to be filled in. */
static inline struct gw_pkt blast_hail(enum gw_hail_op op, uint32_t flow, gw_time sent_at)
{
    return (struct gw_pkt){
        .q = {.size = HDR, .class = GW_CLASS_CONTROL, .kind = GW_PKT_HAIL},
        .src = THEIRS,
        .dst = OURS,
        .flow = flow,
        .sent_at = sent_at,
        .buf = GW_BUF_NONE,
        .hail = {.op = (uint8_t)op},
    };
}

/* Of a message of full packets without payload. */
static inline struct gw_pkt blast_rendezvous(uint32_t flow, uint32_t packets, gw_q16 bound,
                                             gw_time sent_at)
{
    struct gw_pkt pkt = blast_hail(GW_HAIL_RENDEZVOUS, flow, sent_at);
    pkt.seq = RTT_US << GW_HAIL_RTT_SHIFT | (uint32_t)bound;
    pkt.index = pkt.hail.number = MTU;
    pkt.hail.word[0] = packets;
    pkt.hail.word[1] = TAG;
    pkt.hail.marks = GW_HAIL_BARE;
    return pkt;
}

static inline struct gw_pkt blast_data(uint32_t flow, uint32_t place, uint32_t total,
                                       gw_time sent_at)
{
    struct gw_pkt pkt = fixture_data(flow, place, total);
    pkt.q.flags = GW_PKT_BLAST;
    pkt.sent_at = sent_at;
    pkt.data.tag = 0;
    return pkt;
}

/* The only packet that leaves: a hail of this operation. */
static inline struct gw_pkt blast_hears(struct endpoint_fixture *f, enum gw_hail_op op)
{
    struct gw_pkt pkts[2] = {{.src = 0}};
    assert_int_equal(fixture_pull(f, pkts, 2), 1);
    assert_int_equal(pkts[0].q.kind, GW_PKT_HAIL);
    assert_int_equal(pkts[0].hail.op, op);
    assert_int_equal(pkts[0].q.class, GW_CLASS_CONTROL);
    assert_int_equal(pkts[0].dst, THEIRS);
    return pkts[0];
}

static inline void blast_hears_nothing(struct endpoint_fixture *f)
{
    struct gw_pkt pkt;
    assert_int_equal(fixture_pull(f, &pkt, 1), 0);
}

/* Lets time pass, with whatever is due in it. */
static inline void blast_wait(struct endpoint_fixture *f, gw_time time)
{
    gw_time until = f->now + time;
    for (gw_time at;
         (at = gw_node_deadline(f->node)) != GW_TIME_NEVER && !gw_time_before(until, at);) {
        if (gw_time_before(f->now, at))
            f->now = at;
        gw_node_expire(f->node, f->now);
        fixture_take_ready(f);
    }
    f->now = until;
}

#endif
