/*
 * The inside of the endpoint, shared by endpoint.c, app.c, flow_tx.c, flow_rx.c, credit.c and
 * egress.c and by nobody else.
 *
 * Sender half. Every packet between the oldest unacknowledged and the newest sent has a slot
 * (seq modulo span) that is on one of two lists: in flight, in the order of sending, or lost, in
 * the order of detection; an acknowledged packet's slot is on neither. So the oldest packet in
 * flight and the next packet to resend are found at once, and an ACK costs the same however many
 * are out.
 *
 * Flow numbers are (generation << 16 | slot), so an ACK finds its flow without a search and one
 * for an earlier flow in the same slot is recognised.
 */
#ifndef GW_CORE_ENDPOINT_IMPL_H
#define GW_CORE_ENDPOINT_IMPL_H

#include "base/heap.h"
#include "base/index_queue.h"
#include "base/map.h"
#include "core/host/app.h"
#include "core/pause.h"

enum {
    GW_SPAN_MIN = 64,
    GW_SPAN_MAX = 8192, /* leaves room for the list heads in 14 bits */
    GW_TX_FLOWS_MAX = 65536,
    GW_RX_FLOWS_MAX = 1 << 20,
    GW_TICK_SHIFT = 12, /* send times are kept in units of 4096 ps: 32 bits last 17 s */
};

/* Longest timeout: half of what a 32-bit tick distinguishes, less a margin. */
#define GW_RTO_MAX (8 * GW_S)

enum gw_tx_state {
    GW_TX_ACKED,  /* acknowledged, or not sent yet: seq >= next */
    GW_TX_FLIGHT, /* sent; an ACK, a NACK or a timeout moves it on */
    GW_TX_LOST,   /* waits to be sent again; sending or a late ACK moves it on */
};

struct gw_tx_slot {
    uint32_t sent; /* tick of the last transmission, rounded up */
    uint16_t prev : 14;
    uint16_t state : 2; /* enum gw_tx_state */
    uint16_t next : 14;
    uint16_t resent : 1; /* sent more than once */
};

_Static_assert(sizeof(struct gw_tx_slot) == 8, "slots are the bulk of a flow");

struct gw_tx_flow {
    struct gw_sender sender;
    const struct gw_transport *transport; /* NULL: the slot is free */
    struct gw_tx_slot *slots;             /* span of them, then the heads of the two lists */
    uint32_t next;                        /* first packet never sent */
    uint32_t una;                         /* first packet not acknowledged */
    uint32_t total;                       /* packets of the message */
    uint32_t in_flight;                   /* payload bytes */
    uint32_t lost_count;                  /* slots on the lost list */
    uint32_t last_len;                    /* payload bytes of packet total - 1 */
    struct gw_cc_window window;
    gw_time rto;     /* loss->period(), cached */
    gw_time pace_at; /* earliest time of the next packet when paced or held */
    gw_byte_time pace;
    uint32_t credit; /* packets that the receiver has granted; UINT32_MAX: it need not */
    uint32_t unpaid; /* packets that may leave before credit */
    uint16_t generation;
    uint32_t id;
    uint32_t peer;
    uint32_t key;
    uint32_t tag;
    uint32_t free_next;  /* next free slot */
    gw_time progress_at; /* last time that something new was acknowledged */
    uint64_t bytes;
    uint64_t acked_bytes;
    uint64_t resent_packets;
    const unsigned char *data;
    bool is_held;  /* the receiver is not ready: one packet at a time */
    uint8_t holds; /* times that it was not, up to a limit */
    /* The rest of a flow on credit; see credit.h. */
    bool is_starved;     /* one packet without credit tells the receiver so */
    uint32_t free;       /* packets that could leave before credit: those below this number */
    uint32_t granted;    /* the receiver's count */
    gw_time answered_at; /* last time that a CREDIT or NACK came */
    struct gw_path path;
    uint64_t loss_state[GW_LOSS_STATE_MAX / 8];
    uint64_t lb_state[GW_LB_STATE_MAX / 8];
    uint64_t cc_state[GW_CC_STATE_MAX / 8];
};

enum gw_rx_state {
    GW_RX_FREE,   /* data of an unknown flow moves it on */
    GW_RX_ACTIVE, /* the last missing packet, or a stall, moves it on */
    GW_RX_DONE,   /* complete; answers duplicates until another flow needs the slot */
    GW_RX_FAILED, /* gave up; answers nothing, so that the sender does not complete either, until
                     another flow needs the slot */
};

struct gw_rx_flow {
    uint64_t *bits; /* bit (seq modulo span): packet seq >= cum has arrived */
    uint32_t peer;
    uint32_t flow;
    uint32_t key; /* of our packets to the peer */
    uint32_t total;
    uint32_t cum; /* every packet below has arrived */
    uint32_t tag;
    uint16_t mss;
    uint8_t state;      /* enum gw_rx_state */
    uint8_t held;       /* packets that the next ACK will report; 0 unless coalescing */
    uint32_t list_next; /* next free or next done slot */
    gw_time heard_at;   /* last arrival */
    uint64_t bytes;     /* payload that arrived, without duplicates */
    unsigned char *data;
    uint64_t room; /* bytes at `data` */
    /* Of a flow on credit; see credit.h. */
    struct gw_rx_flow *pull_next; /* of those that want credit */
    uint32_t due;                 /* packets under way, or granted and not sent yet */
    uint32_t granted;             /* packets, since the flow began */
    bool in_pull;
    /* The packet that causes the ACK now held back, and the others relative to it. */
    uint32_t held_seq;
    uint16_t held_entropy;
    bool held_ce;
    gw_time held_sent_at;
    gw_time held_since;
    uint64_t held_mask;
};

struct gw_expectation {
    unsigned char *data; /* NULL: free */
    uint64_t bytes;
    uint32_t peer;
    uint32_t tag;
};

/* What waits to leave by one port. */
struct gw_egress {
    struct gw_pkt_fifo control;
    struct gw_sender *ring_tail[GW_CLASS_DATA_MAX + 1]; /* circular; the head is the tail's next */
    uint8_t classes;                                    /* bit c: ring c is not empty */
    bool is_ready;                                      /* see core/node.h */
    struct gw_pkt *pause;      /* goes first: the latest of our PAUSEs that has not left; or NULL */
    struct gw_pause_gate gate; /* shut: data waits */
};

struct gw_endpoint {
    struct gw_node node;
    struct gw_pkt_pool *pool;
    struct gw_tx_flow *tx_flows;
    struct gw_rx_flow *rx_flows;
    struct gw_egress *egress;
    struct gw_map rx_map;    /* (peer, flow) to slot */
    struct gw_map app_map;   /* (job, role) to index in `apps` */
    struct gw_app **apps;    /* NULL: free */
    struct gw_app *last_app; /* that a packet was for, so that a train costs one look; or NULL */
    struct gw_heap timers;   /* ids: tx slots, rx slots, apps, ports, then the pacer of credit */
    struct gw_prng prng;
    uint32_t span_mask;
    uint32_t tx_free;   /* chain through free_next */
    uint32_t promised;  /* events that will be posted: running flows, promises of apps */
    uint32_t rx_free;   /* chain through list_next */
    uint32_t done_head; /* done and failed rx flows, oldest first */
    uint32_t done_tail;
    struct gw_event *events;
    struct gw_index_queue event_queue; /* over them; its count is the node's event_count */
    struct gw_rx_flow *pull_tail;      /* circular: flows that want credit; NULL: none */
    gw_time pull_at;                   /* of the next credit, while pacing */
    bool is_pacing; /* the time of the last credit is not over, or somebody waits */
    struct gw_expectation *expectations;
    struct gw_endpoint_cfg cfg;
    struct gw_endpoint_stats stats;
};

#define GW_SLOT_NONE UINT32_MAX

static inline uint32_t gw_tx_index(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return (uint32_t)(flow - ep->tx_flows);
}

/* By which the endpoint finds the application of a job in a role. */
static inline uint64_t gw_app_map_key(uint32_t job, enum gw_app_role role)
{
    return (uint64_t)role << 32 | job;
}

static inline uint32_t gw_credit_timer(const struct gw_endpoint *ep)
{
    return ep->cfg.tx_flows_max + ep->cfg.rx_flows_max + ep->cfg.apps_max + ep->node.port_count;
}

/* Moves the timer `id` to `at`, or disarms it. */
static inline void gw_endpoint_arm(struct gw_endpoint *ep, uint32_t id, gw_time at)
{
    gw_heap_set(&ep->timers, id, at);
    ep->node.deadline = gw_heap_next(&ep->timers);
}

/* The same, unless it is armed for an earlier time. */
static inline void gw_endpoint_arm_by(struct gw_endpoint *ep, uint32_t id, gw_time at)
{
    if (gw_deadline_before(at, gw_heap_deadline(&ep->timers, id)))
        gw_endpoint_arm(ep, id, at);
}

/* True when another flow or tensor can start: its closing event will find room. */
static inline bool gw_endpoint_has_event_room(const struct gw_endpoint *ep)
{
    return ep->event_queue.count + ep->promised < ep->event_queue.room;
}

void gw_endpoint_post(struct gw_endpoint *ep, const struct gw_event *event);

/* A sender is about to emit a packet. True: it begins a train, and may choose an entropy. */
static inline bool gw_sender_begins_train(const struct gw_endpoint *ep, struct gw_sender *sender)
{
    bool begins = sender->train_left == 0;
    sender->train_left = (begins ? ep->cfg.train : sender->train_left) - 1;
    return begins;
}

/* egress.c, besides egress.h */
/* A PAUSE for `time` arrived by `port`. */
void gw_egress_obey(struct gw_endpoint *ep, uint16_t port, gw_time time, gw_time now);
/* The time of the last PAUSE is over. */
void gw_egress_expire(struct gw_endpoint *ep, uint16_t port, gw_time now);
uint32_t gw_egress_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                          gw_time now);

/* flow_tx.c */
void gw_flow_tx_start(struct gw_endpoint *ep, struct gw_tx_flow *flow, const struct gw_send *send,
                      gw_time now);
void gw_flow_tx_ack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
void gw_flow_tx_nack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
void gw_flow_tx_credit(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
void gw_flow_tx_expire(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now);
/* Ends a running flow without an event; its slot is free. */
void gw_flow_tx_drop(struct gw_endpoint *ep, struct gw_tx_flow *flow);

/* flow_rx.c: takes the packet. */
void gw_flow_rx_data(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);
void gw_flow_rx_expire(struct gw_endpoint *ep, uint32_t slot, gw_time now);
/* Ends an active flow without an event; its packets are answered no more. */
void gw_flow_rx_drop(struct gw_endpoint *ep, struct gw_rx_flow *flow);

#endif
