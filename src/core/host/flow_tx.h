/*
 * The sender half of a flow: its state, and the records of its packets. Of the endpoint's inside;
 * see endpoint_impl.h.
 *
 *   flow_tx.c        begins and ends a flow, and sends
 *   flow_feedback.c  what ACK, NACK and CREDIT do
 *   flow_repair.c    what is lost: timeouts, and a receiver that is not ready
 *
 * Every packet between the oldest unsettled and the newest sent has a record (seq modulo span)
 * that is on one of two lists: in flight, in the order of sending, or lost, in the order of
 * detection; a settled packet's record is on neither. So the oldest packet in flight and the next
 * packet to resend are found at once, and an ACK costs the same however many are out.
 *
 * Invariants: una <= next <= total; next - una <= span; in_flight is the payload of the records in
 * flight; a running flow has a timer armed while anything is in flight, and always when it may
 * stall.
 */
#ifndef GW_CORE_FLOW_TX_H
#define GW_CORE_FLOW_TX_H

#include "base/index_list.h"
#include "core/host/endpoint_impl.h"

/* Longest timeout: half of what a 32-bit tick distinguishes, less a margin. */
#define GW_RTO_MAX (8 * GW_S)

enum {
    GW_TICK_SHIFT = 12, /* send times are kept in units of 4096 ps: 32 bits last 17 s */
};

enum gw_tx_state {
    GW_TX_SETTLED, /* arrived, given up by the receiver, or not sent yet: seq >= next */
    GW_TX_FLIGHT,  /* sent; an ACK, a NACK or a timeout moves it on */
    GW_TX_LOST,    /* waits to be sent again; sending or a late ACK moves it on */
};

/* How it is known that a packet is lost. */
enum gw_tx_cause {
    GW_TX_TRIMMED,
    GW_TX_OVERTAKEN, /* later ones arrived, or it was given up */
    GW_TX_TIMEOUT,
};

/* What is known of a packet. */
struct gw_tx_record {
    uint32_t sent; /* tick of the last transmission, rounded up */
    uint16_t prev : 14;
    uint16_t state : 2; /* enum gw_tx_state */
    uint16_t next : 14;
    uint16_t resent : 1; /* sent more than once */
};

_Static_assert(sizeof(struct gw_tx_record) == 8, "records are the bulk of a flow");

GW_INDEX_LIST(gw_tx_list, struct gw_tx_record)

struct gw_tx_flow {
    struct gw_sender sender;
    const struct gw_transport *transport; /* NULL: no flow is here */
    struct gw_tx_record *records;         /* span of them, then the heads of the two lists */
    uint32_t next;                        /* first packet never sent */
    uint32_t una;                         /* first packet not settled */
    uint32_t total;                       /* packets of the message */
    uint32_t in_flight;                   /* payload bytes */
    uint32_t unasked;                     /* of these, sent since an ACK was asked for */
    uint32_t lost_count;                  /* records on the lost list */
    uint32_t last_len;                    /* payload bytes of packet total - 1 */
    struct gw_cc_window window;
    gw_time rto;     /* loss->period(), cached */
    gw_time pace_at; /* earliest time of the next packet when paced or held */
    gw_byte_time pace;
    bool waits_for_pace; /* and for nothing else, since pace_at was set */
    uint32_t credit;     /* packets that the receiver has granted; UINT32_MAX: it need not */
    uint32_t unpaid;     /* packets that may leave before credit */
    uint16_t generation;
    uint32_t id;
    uint32_t peer;
    uint32_t key;
    uint32_t tag;
    uint32_t free_next;  /* index of the next that is free */
    gw_time progress_at; /* last time that something new was settled */
    uint64_t bytes;
    uint64_t acked_bytes;
    uint64_t resent_packets;
    const unsigned char *data;
    uint8_t class;       /* that the message was given; the sender's is that of the next packet */
    uint8_t ecn;         /* enum gw_ecn; of its data packets, if `important` does not tell */
    uint8_t weighed_ecn; /* that of the packet `weighed` */
    bool weighs;         /* its packets, by `rule` */
    const uint64_t *important; /* see struct gw_send, as is the next */
    gw_q16 bound;
    uint32_t weighed; /* the packet that was last; UINT32_MAX: none */
    struct gw_importance rule;
    uint32_t given_up; /* packets that the receiver has let go one by one */
    bool is_held;      /* the receiver is not ready, or silent: one packet at a time */
    bool is_urged;     /* one packet leaves whatever the window says: a probe, or the first that is
                          resent after a loss was found */
    uint8_t holds;     /* times that it was not, up to a limit */
    /* The rest of a flow on credit; see credit.h. */
    bool is_starved;     /* one packet without credit tells the receiver so */
    uint32_t free;       /* packets that could leave before credit: those below this number */
    uint32_t granted;    /* the receiver's count */
    gw_time answered_at; /* last time that a CREDIT or NACK came */
    struct gw_path path;
    uint64_t lb_state[GW_LB_STATE_MAX / 8];
    uint64_t cc_state[GW_CC_STATE_MAX / 8];
    uint64_t loss_state[GW_LOSS_STATE_MAX / 8];
};

static inline uint32_t gw_tx_index(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return (uint32_t)(flow - ep->tx_flows);
}

/* The two list heads lie behind the records of the span. */
static inline uint32_t gw_tx_flight_head(const struct gw_endpoint *ep)
{
    return ep->span_mask + 1;
}

static inline uint32_t gw_tx_lost_head(const struct gw_endpoint *ep)
{
    return ep->span_mask + 2;
}

/* A time as a tick, rounded up, so that no packet looks older than it is. */
static inline uint32_t gw_tx_tick(gw_time time)
{
    return (uint32_t)((time + (1u << GW_TICK_SHIFT) - 1) >> GW_TICK_SHIFT);
}

static inline uint32_t gw_tx_payload(const struct gw_tx_flow *flow, uint32_t seq)
{
    return seq + 1 == flow->total ? flow->last_len : flow->path.mtu;
}

/* Packets that are missing when `bytes` of payload have arrived: all are full but the last. */
static inline uint32_t gw_tx_missing(const struct gw_tx_flow *flow, uint64_t bytes)
{
    return (uint32_t)((flow->bytes - bytes + flow->path.mtu - 1) / flow->path.mtu);
}

/* Which packet of the span the record `at` in flight or lost is of: the seq >= una there. */
static inline uint32_t gw_tx_seq(const struct gw_endpoint *ep, const struct gw_tx_flow *flow,
                                 uint32_t at)
{
    return flow->una + ((at - flow->una) & ep->span_mask);
}

/* Whether `seq` was sent and is not below the oldest unsettled packet. */
static inline bool gw_tx_is_out(const struct gw_tx_flow *flow, uint32_t seq)
{
    return seq - flow->una < flow->next - flow->una;
}

/* Whether the receiver lets another packet go; for most flows it has no say. */
static inline bool gw_tx_credit_allows(const struct gw_tx_flow *flow)
{
    return flow->credit || flow->unpaid || flow->is_starved || flow->is_held;
}

static inline bool gw_tx_has_work(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return flow->lost_count ||
           (flow->next != flow->total && flow->next - flow->una <= ep->span_mask);
}

/* flow_tx.c */

void gw_flow_tx_start(struct gw_endpoint *ep, struct gw_tx_flow *flow, const struct gw_send *send,
                      gw_time now);

/* The header of the packet in flight at record `at` leaves without its payload. */
void gw_flow_tx_ask(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at, gw_time now);

/* Joins the egress ring, or waits for its time, if there is something that may be sent. */
void gw_flow_tx_wake(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);

/* The peer has the message, `bytes` of it: the flow ends with an event, and is there no more. */
void gw_flow_tx_complete(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint64_t bytes,
                         gw_time now);
/* The same when the flow has stalled. */
void gw_flow_tx_fail(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);

/* Ends a running flow without an event. */
void gw_flow_tx_drop(struct gw_endpoint *ep, struct gw_tx_flow *flow);

/* flow_feedback.c: the packet remains the caller's. */

/* An ACK or NACK will arrive: fetches its flow. */
void gw_flow_tx_foresee(const struct gw_endpoint *ep, const struct gw_pkt *pkt);

void gw_flow_tx_ack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
void gw_flow_tx_nack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
void gw_flow_tx_credit(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);

/* flow_repair.c */

/* Asks loss detection how long the oldest packet in flight may stay unanswered. */
void gw_flow_tx_refresh_rto(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);

/* The packet in flight at record `at` is lost, and congestion control learns of it. */
void gw_flow_tx_lose(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at,
                     enum gw_tx_cause cause, gw_time now);

/* Of a flow whose loss detection infers losses from arrivals, around the settling of what an ACK
 * reports: tells it of what that is, and returns before which time all in flight is lost; ... */
gw_time gw_flow_tx_deliver(const struct gw_endpoint *ep, struct gw_tx_flow *flow,
                           const struct gw_pkt *pkt, gw_time now);
/* ... takes that for lost. */
void gw_flow_tx_lose_before(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time lost_before,
                            gw_time now);

/* The receiver is not ready: what is in flight is dropped there, and one packet asks again. */
void gw_flow_tx_hold(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);
/* It is now: all leaves that the window allows. */
void gw_flow_tx_release(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);

void gw_flow_tx_expire(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);

#endif
