/*
 * The receiver half of a flow: its state. Of the endpoint's inside; see endpoint_impl.h.
 *
 *   flow_rx.c      what arrives, and where it goes
 *   flow_answer.c  the ACKs and NACKs
 *   credit.c       what a flow on credit is granted
 *
 * Each packet of the message is wanted until it is settled: it has arrived, or it was lost and the
 * policy of core/finish does without it. Then it is given up for good, and a copy that comes after
 * all is a duplicate. So a hole does not pin the window for longer than it is worth. A packet
 * counts as lost when it comes trimmed, or when one half a span behind it has arrived: packets that
 * overtake each other by less cost nothing, and a sender with no more than that in flight does not
 * wait.
 *
 * The sender learns what is given up by the flag GIVEN_UP: a NACK with it says that the packet need
 * not be sent again; an ACK with it, that some below `cum` did not arrive. One whose cum is the
 * number of packets ends the flow, and tells how much arrived. If that is lost, the packet that
 * caused it is sent again in time and causes the same.
 *
 * Invariants: bit (seq modulo span) is set only for settled packets with cum < seq < cum + span;
 * with all that is not lost the message would be enough.
 */
#ifndef GW_CORE_FLOW_RX_H
#define GW_CORE_FLOW_RX_H

#include "core/host/endpoint_impl.h"

enum gw_rx_state {
    GW_RX_FREE,   /* data of an unknown flow moves it on */
    GW_RX_ACTIVE, /* the last packet that is wanted, or a stall, moves it on */
    GW_RX_DONE,   /* it has what it wanted; answers duplicates until another flow needs the place */
    GW_RX_FAILED, /* gave up; answers nothing, so that the sender does not complete either, until
                     another flow needs the place */
};

struct gw_rx_flow {
    /* What each packet needs, in one cache line. */
    uint64_t *bits; /* bit (seq modulo span): packet seq >= cum is settled */
    uint32_t peer;
    uint32_t flow;
    uint32_t key; /* of our packets to the peer */
    uint32_t total;
    uint32_t cum; /* every packet below is settled */
    uint16_t mss;
    uint8_t state;                  /* enum gw_rx_state */
    uint8_t held;                   /* packets that the next ACK will report; 0 unless coalescing */
    gw_time heard_at;               /* last arrival */
    uint64_t bytes;                 /* payload that arrived, without duplicates */
    uint32_t arrived;               /* packets, likewise */
    uint32_t lost;                  /* packets given up; once it is done, all that did not arrive */
    const struct gw_finish *finish; /* NULL: all packets are wanted */
    uint32_t tag;
    uint32_t list_next;        /* index of the next that is free, or done */
    struct gw_grantee grantee; /* of a flow on credit */
    bool has_let_go;      /* the next ACK says that cum has passed a packet that never arrived */
    uint16_t ack_entropy; /* of the next answer, where these take turns */
    /* The packet that causes the ACK now held back, and the others relative to it. */
    uint32_t held_seq;
    uint16_t held_entropy;
    bool held_ce;
    gw_time held_sent_at;
    gw_time held_since;
    uint64_t held_mask;
};

_Static_assert(sizeof(struct gw_rx_flow) == 128, "a flow takes two cache lines");

static inline struct gw_rx_memory *gw_rx_memory_of(const struct gw_endpoint *ep,
                                                   const struct gw_rx_flow *flow)
{
    return &ep->rx_memory[flow - ep->rx_flows];
}

/* The flow's timer. */
static inline uint32_t gw_rx_timer(const struct gw_endpoint *ep, const struct gw_rx_flow *flow)
{
    return ep->cfg.tx_flows_max + (uint32_t)(flow - ep->rx_flows);
}

/* flow_rx.c */

/* A data packet will arrive: fetches its flow. */
void gw_flow_rx_foresee(const struct gw_endpoint *ep, const struct gw_pkt *pkt);
/* A data packet arrived; takes it. */
void gw_flow_rx_data(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);
/* The same for one that arrived before, and was kept. */
void gw_flow_rx_take(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);
/* An ACK of the flow, if there is one, waits for nothing any more. */
void gw_flow_rx_flush(struct gw_endpoint *ep, uint32_t peer, uint32_t flow);
void gw_flow_rx_expire(struct gw_endpoint *ep, struct gw_rx_flow *flow, gw_time now);
/* Ends an active flow without an event; its packets are answered no more. */
void gw_flow_rx_drop(struct gw_endpoint *ep, struct gw_rx_flow *flow);

/* flow_answer.c: a packet given to it is taken. */

/* Answers a packet at once. */
void gw_flow_answer_ack(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt);
/* Acknowledges a packet with those held back, or holds it back as well. */
void gw_flow_answer_coalesce(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                             gw_time now);
/* Sends the ACK that is held back, if any, from a fresh packet. */
void gw_flow_answer_flush(struct gw_endpoint *ep, struct gw_rx_flow *flow);
/* `flags` say more than that it was trimmed. */
void gw_flow_answer_nack(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                         uint8_t flags);
/* The same of a flow that is not open, of which there is nothing to remember. */
void gw_flow_answer_unknown(struct gw_endpoint *ep, struct gw_pkt *pkt, uint8_t flags);

#endif
