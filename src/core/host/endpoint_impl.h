/*
 * The inside of the endpoint: what its files share besides the two halves of a flow (flow_tx.h,
 * flow_rx.h). Only core/host includes it.
 *
 * Flow numbers are (generation << 16 | index), so an ACK finds its flow without a search and one
 * for an earlier flow of the same index is recognised.
 */
#ifndef GW_CORE_ENDPOINT_IMPL_H
#define GW_CORE_ENDPOINT_IMPL_H

#include <string.h>

#include "base/align.h"
#include "base/bits.h"
#include "base/heap.h"
#include "base/index_queue.h"
#include "base/map.h"
#include "base/pacer.h"
#include "core/host/app.h"
#include "core/host/early.h"
#include "core/host/past_flows.h"
#include "core/pause.h"

enum {
    GW_SPAN_MIN = 64,
    GW_SPAN_MAX = 8192, /* leaves room for the list heads in 14 bits */
    GW_TX_FLOWS_MAX = 65536,
    GW_RX_FLOWS_MAX = 1 << 20,
    GW_ANNOUNCERS_MAX = 65536,
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

/* Where a flow's payload goes: apart, since not all have any. */
struct gw_rx_memory {
    unsigned char *data;            /* NULL: there is none */
    uint64_t room;                  /* bytes at `data` */
    uint64_t *arrived_bits;         /* see struct gw_expect */
    const struct gw_merger *merger; /* into `data`; NULL: that is overwritten */
    bool overflows;                 /* a sum or product there does not fit */
};

/* A flow on credit as its receiver sees it; see credit.h. */
struct gw_grantee {
    struct gw_grantee *next; /* of those that want credit; NULL: it does not */
    uint32_t due;            /* packets under way, or granted and not sent yet */
    uint32_t granted;        /* packets, since the flow began */
};

struct gw_endpoint {
    struct gw_node node;
    struct gw_pkt_pool *pool;
    struct gw_tx_flow *tx_flows;
    struct gw_rx_flow *rx_flows;
    struct gw_rx_memory *rx_memory; /* of each */
    struct gw_egress *egress;
    struct gw_map rx_map;    /* (peer, flow) to index in `rx_flows` */
    struct gw_map app_map;   /* (job, role) to index in `apps` */
    struct gw_app **apps;    /* NULL: free */
    struct gw_app *last_app; /* that a packet was for, so that a train costs one look; or NULL */
    struct gw_announcer *announcers;
    struct gw_map announcer_map; /* (job, peer) to index in `announcers` */
    struct gw_blast_tx *blasts_tx;
    struct gw_blast_rx *blasts_rx;
    struct gw_map blast_map; /* (peer, flow) to index in `blasts_rx` */
    struct gw_blast_lane *lanes;
    struct gw_map lane_map;   /* peer to index in `lanes` */
    uint32_t blast_tx_free;   /* chain through free_next */
    uint32_t blast_rx_free;   /* chain through list_next */
    uint32_t blast_done_head; /* done and failed ones, oldest first */
    uint32_t blast_done_tail;
    gw_time blast_lag; /* how far data came behind hails lately, at the worst */
    gw_time looked_at; /* when something last came, or was due */
    gw_time nap_from;  /* the last time that nobody looked for GW_NAP or longer: ... */
    gw_time nap_until; /* ... what came in it has waited here until its end */
    bool has_looked;
    struct gw_heap timers; /* ids: tx flows, rx flows, apps, ports, credit, early messages,
                              announcers, blasts: sent, received */
    struct gw_prng prng;
    uint32_t span_mask;
    uint32_t tx_free;   /* chain through free_next */
    uint32_t promised;  /* events that will be posted: running flows, promises of apps */
    uint32_t rx_free;   /* chain through list_next */
    uint32_t done_head; /* done and failed rx flows, oldest first */
    uint32_t done_tail;
    struct gw_event *events;
    struct gw_index_queue event_queue; /* over them */
    struct gw_grantee *want_tail;      /* circular: who wants credit; NULL: nobody */
    struct gw_pacer credit_pacer;      /* while granting */
    bool is_granting;               /* the time of the last credit is not over, or somebody waits */
    struct gw_event unexpected;     /* the next to be polled, behind the others; bytes 0: none */
    struct gw_expect *expectations; /* data NULL: free */
    struct gw_past_flows past_flows;
    uint32_t expect_end; /* of these: all from here on are free. Few are in use where many are room
                            for others, and every unknown flow is looked for among them */
    struct gw_endpoint_cfg cfg;
    struct gw_endpoint_stats stats;
    struct gw_early early;
};

#define GW_FLOW_NONE UINT32_MAX /* index of no flow */

/* What a host that does not get to its packets for a shorter time adds to their delay matters to
 * nobody (own choice). */
#define GW_NAP GW_MS

/* The host looks for what has come. */
static inline void gw_endpoint_look(struct gw_endpoint *ep, gw_time now)
{
    if (!ep->has_looked)
        ep->looked_at = now;
    if (!ep->has_looked || now - ep->looked_at >= GW_NAP) {
        ep->nap_from = ep->looked_at;
        ep->nap_until = now;
    }
    ep->looked_at = now;
    ep->has_looked = true;
}

/* Posted memory has been taken or forgotten. */
static inline void gw_endpoint_trim(struct gw_endpoint *ep)
{
    while (ep->expect_end && !ep->expectations[ep->expect_end - 1].data)
        ep->expect_end--;
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

static inline uint32_t gw_early_timer(const struct gw_endpoint *ep)
{
    return gw_credit_timer(ep) + 1;
}

/* Of the first announcer. */
static inline uint32_t gw_announcer_timer(const struct gw_endpoint *ep)
{
    return gw_early_timer(ep) + 1;
}

/* Of the first blast that is sent; behind them are those that are received. */
static inline uint32_t gw_blast_timer(const struct gw_endpoint *ep)
{
    return gw_announcer_timer(ep) + ep->cfg.announcers_max;
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

/* A message of at least so many bytes has come, and there is memory for `room`, or none. Its
 * sender may say it again and again, so of those that nobody has polled one is kept. */
void gw_endpoint_tell_unexpected(struct gw_endpoint *ep, const struct gw_event *event);

/* The memory posted for a message, or NULL. */
struct gw_expect *gw_endpoint_find_memory(const struct gw_endpoint *ep, uint32_t peer,
                                          uint32_t tag);

/* Whether a piece of memory begins in `size` bytes at `first`. */
static inline bool gw_begins_in(const void *piece, const void *first, uint64_t size)
{
    return piece && (uintptr_t)piece - (uintptr_t)first < size;
}

/* A packet, with a payload buffer if it needs one; or NULL: the pool is empty, which is counted. */
static inline struct gw_pkt *gw_sender_claim(struct gw_endpoint *ep, bool has_payload)
{
    struct gw_pkt *pkt = gw_pkt_claim(ep->pool);
    if (pkt && has_payload && !ep->cfg.lends) {
        pkt->buf = gw_buf_claim(ep->pool->bufs);
        if (pkt->buf == GW_BUF_NONE) {
            gw_pkt_release(ep->pool, pkt);
            pkt = NULL;
        }
    }
    ep->stats.pool_empty += !pkt;
    return pkt;
}

/* Gives the packet `size` bytes of a message for its payload. Lent ones are fetched into the
 * caches: they are read when the train is full. */
static inline void gw_sender_fill(const struct gw_endpoint *ep, struct gw_pkt *pkt,
                                  const void *bytes, uint32_t size)
{
    if (!ep->cfg.lends) {
        memcpy(gw_buf_bytes(ep->pool->bufs, pkt->buf), bytes, size);
        return;
    }
    pkt->buf = gw_buf_lend(ep->pool->bufs, bytes);
    gw_prefetch(bytes, size, GW_PREFETCH_LATER);
}

/* A sender is about to emit a packet. True: it begins a train, and may choose an entropy. */
static inline bool gw_sender_begins_train(const struct gw_endpoint *ep, struct gw_sender *sender)
{
    bool begins = sender->train_left == 0;
    sender->train_left = (begins ? ep->cfg.train : sender->train_left) - 1;
    return begins;
}

/* Which samples a rule of importance takes: the same of equal messages. */
#define GW_IMPORTANCE_SEED 0

/* Whether a message's packets are weighed by a rule as they leave. */
static inline bool gw_send_is_weighed(const struct gw_send *send)
{
    return send->data && !send->important && send->importance.rule != GW_IMPORTANCE_ALL;
}

/* What a packet travels with whose sender knows which are important (struct gw_send). */
static inline uint8_t gw_ecn_by_importance(const uint64_t *important, uint32_t place)
{
    return gw_bit_is_set(important, place) ? GW_ECN_ECT0 : GW_ECN_NOT_ECT;
}

/* egress.c, besides egress.h */
/* A PAUSE for `time` arrived by `port`. */
void gw_egress_obey(struct gw_endpoint *ep, uint16_t port, gw_time time, gw_time now);
/* The time of the last PAUSE is over. */
void gw_egress_expire(struct gw_endpoint *ep, uint16_t port, gw_time now);
uint32_t gw_egress_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                          gw_time now);

#endif
