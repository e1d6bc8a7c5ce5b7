/*
 * The host endpoint: a node that runs many concurrent flows over one or more ports.
 *
 * A flow moves one message (`bytes` long) to a peer as a row of packets and completes when the
 * sender knows that all of them arrived, or as many as its receiver finds enough. The endpoint owns
 * the sender and the receiver half of its flows; packets, windows, repair and acknowledgement are
 * in flow_tx.h and flow_rx.h, the order of sending in egress.c: control first, then by class, then
 * round robin over flows, one train each.
 *
 * Applications call send, expect and poll; the endpoint never calls them back.
 */
#ifndef GW_CORE_ENDPOINT_H
#define GW_CORE_ENDPOINT_H

#include "base/prng.h"
#include "core/finish/finish.h"
#include "core/grant/grant.h"
#include "core/node.h"
#include "core/notice.h"
#include "core/quant/combine.h"
#include "core/quant/importance.h"
#include "core/host/transport.h"

enum {
    GW_BLASTS_MAX = 32768,
    GW_BLAST_PACKETS_MAX = 1 << 24,
    GW_HAIL_COPIES_MAX = 4,
    GW_EARLY_PACKETS = 128, /* the first ones of a message, that can be kept */
    GW_ACK_ENTROPIES_MAX = 65536,
    GW_ACK_EVERY_MAX = 128, /* beyond GW_ACK_MASK_BEFORE senders ask for ACKs themselves, ... */
    GW_ACK_ASKED = 16,      /* ... after so many packets and a quarter of their window */
};

struct gw_endpoint_cfg {
    uint32_t address;        /* of this host */
    uint16_t port_count;     /* at least 1 */
    uint32_t tx_flows_max;   /* sending at the same time, at most 65536 */
    uint32_t rx_flows_max;   /* receiving at the same time, at most 2^20 */
    uint32_t span_max;       /* packets between the oldest unacknowledged and the newest sent of a
                                flow: a power of two, 64 to 8192; equal on both ends */
    uint32_t control_max;    /* control packets queued per port; more are dropped and counted */
    uint32_t expect_max;     /* receive buffers posted at the same time; may be 0 */
    uint32_t early_packets;  /* with payload, of messages that no memory is posted for, kept until
                                there is (early.h); 0: all are dropped, and sent again */
    uint32_t apps_max;       /* workers and servers attached at the same time; may be 0 */
    uint32_t app_events_max; /* events that these may have promised or posted; may be 0 */
    uint32_t blasts_max;     /* flows whose data is not acknowledged (blast.h): sent at the same
                                time, and as many received; up to GW_BLASTS_MAX, may be 0. Their
                                numbers are behind tx_flows_max, 65536 together at most */
    uint32_t blast_packets_max; /* of the longest of these, up to GW_BLAST_PACKETS_MAX; a longer one
                                   is refused. Memory is set apart when the endpoint is made */
    gw_time report_every;       /* period of receivers' reports; equal on both ends */
    uint32_t hail_copies;       /* that leave at once of a hail which begins or ends a blast, up to
                                     GW_HAIL_COPIES_MAX; 0 is one. More where links lose packets for no
                                     reason: one that is lost costs round trips */
    uint32_t announcers_max;    /* jobs and peers to which bursts are announced at the same time, at
                                   most 65536; may be 0 (announce.h) */
    uint32_t mtu;               /* payload bytes of a full packet, 1 to 65535 */
    uint32_t hdr;               /* header bytes of every packet; the size of ACKs */
    uint32_t ack_every;         /* data packets per ACK, 1 to GW_ACK_EVERY_MAX; alike at all hosts
                                   if it is more than GW_ACK_MASK_BEFORE */
    gw_time ack_delay;          /* longest time that an ACK is held back when ack_every > 1 */
    uint32_t ack_entropies;     /* ACKs and NACKs of a flow carry so many in turn, up to
                                   GW_ACK_ENTROPIES_MAX; 0: random ones */
    gw_time pace_late;          /* a paced flow makes good for so much of the time that it is asked
                                   too late; 0: its driver is never late */
    bool resend_over;           /* a lost packet is sent again while less than the window is in
                                   flight; else it must fit into it, as a new one must */
    bool ack_holes;             /* what arrives above a hole, or fills one, is acknowledged at once
                                   whatever ack_every says: for senders that infer losses from that */
    bool is_lossless;           /* links hold data back when the other end says PAUSE (pause.h);
                                   else that changes nothing, whoever sent it */
    uint32_t train;             /* packets per train, at least 1 */
    gw_time stall;              /* a flow without progress for this long fails; 0: never */
    uint64_t seed;              /* of this node's random stream */
    uint16_t generation;        /* of the first flow numbers: a host that starts again must not use
                                   those of its earlier flows, which peers may remember */
    bool tells_unexpected; /* GW_EVENT_UNEXPECTED happens: of several before a poll, the first */
    struct gw_grant_plan grant; /* for flows that arrive and wait for credit; `first` is equal on
                                   both ends, and counts as span_max if it is larger */
    const struct gw_finish *finish; /* of messages that arrive without payload (simulation); as
                                       in struct gw_expect */
    bool lends; /* data leaves with its payload where the message has it (GW_BUF_LENT), which
                   whoever takes packets from this node must know; else in a buffer */
    struct gw_pkt_pool *pool; /* packets and, if messages carry payload, buffers of >= mtu bytes */
};

/* A message to send. */
struct gw_send {
    uint32_t peer;       /* address */
    uint64_t bytes;      /* at most (2^32 - 2) * mtu */
    const void *data;    /* `bytes` long, unchanged until the flow ended; NULL: the
                            message carries no payload (simulation) */
    uint32_t tag;        /* handed to the receiving application */
    uint8_t class;       /* GW_CLASS_BEST_EFFORT to GW_CLASS_DATA_MAX */
    bool is_unimportant; /* all of it leaves as Not-ECT, else as ECT(0): where a queue
                            marks the others, these may be dropped */
    gw_q16 bound; /* the largest part of it that may be missing in the end; 0: none, and whoever
                     says that it does without is not believed */
    const uint64_t *important; /* NULL, or a bit for each packet, unchanged until the flow ended:
                                  which leave as ECT(0), and the others as Not-ECT, whatever
                                  is_unimportant says */
    struct gw_importance_terms importance; /* with payload, without `important`: how that is found
                                              for each packet shortly before it leaves */
    const uint16_t *notes; /* of a blast: NULL, or a number for each packet that travels with it */
    bool important_first;  /* of a blast: the important ones before the others; else all in an
                              order drawn anew for each message */
    const struct gw_transport *transport; /* must outlive the flow; a blast if its congestion
                                             control is for these */
    struct gw_path path;
    struct gw_notice_terms notice; /* as part of which burst it is announced, if it begins one */
};

/* How a message is combined with other values, packet by packet, in whatever order these come. */
struct gw_merger {
    const struct gw_kernels *kernels;
    struct gw_combination how;
};

/* Memory for a message to receive. */
struct gw_expect {
    uint32_t peer; /* that sends it */
    uint32_t tag;
    void *data;     /* the endpoint's until the flow ended */
    uint64_t bytes; /* there */
    void *into; /* NULL, or values, as many bytes, that it is combined with, instead of being stored
                   at `data`, unless elements lie in two packets or it is a blast */
    const struct gw_merger *merger; /* how; must outlive the flow */
    const struct gw_finish *finish; /* when it is enough; must outlive the flow. NULL: when all of
                                       it has arrived */
    uint64_t *arrived;    /* NULL, or a bit for each packet, cleared by the call that posts it: bit
                             i % 64 of word i / 64 is set when packet i is in its place, at i times the
                             event's mss */
    uint16_t *notes;      /* NULL, or where the number goes that came with each packet of a blast */
    uint32_t packets_max; /* that these have room for; a message of more is refused */
};

enum gw_event_kind {
    GW_EVENT_SENT,       /* the peer has the message, as far as it wants it */
    GW_EVENT_RECEIVED,   /* this host has one, as far as it wants it */
    GW_EVENT_REDUCED,    /* a worker's tensor has its sum; `flow` is the job, `peer` the server */
    GW_EVENT_FAILED,     /* a message: no progress for cfg.stall, it may or may not have arrived; a
                            tensor: `reason` and `about` say why there is no sum */
    GW_EVENT_JOINED,     /* a member is in its job, as `rank` */
    GW_EVENT_REFUSED,    /* it is not, or no more; `reason` and `about` say why */
    GW_EVENT_LEFT,       /* it has left on its own wish */
    GW_EVENT_UNEXPECTED, /* a message has come that no memory is posted for, or too little; it is
                            kept, or was dropped, and its sender asks again or has given up */
};

struct gw_event {
    enum gw_event_kind kind;
    uint32_t flow; /* as returned by gw_endpoint_send(); received: the sender's number for it */
    uint32_t peer;
    uint32_t tag;
    uint64_t bytes;       /* sent, received: of the message that arrived; both ends agree, but of a
                             blast more may have arrived than the sender was told, as of `missing` */
    uint64_t retransmits; /* packets sent again; 0 on the receiver */
    uint64_t window;      /* bytes: with which the flow ended, for the path of the next one */
    uint64_t memory;      /* for that path, too; see core/path.h */
    gw_time at;
    uint64_t room;    /* unexpected: bytes of the memory posted for it, which are less than the
                         message has, `bytes` or more; 0: none is posted */
    uint32_t missing; /* sent, received: packets of the message that did not arrive and need not */
    uint32_t about;   /* rank or address that the reason is about */
    uint16_t rank;    /* of the member, or the one that it asked for */
    uint16_t mss;     /* payload bytes of every packet of the message but the last */
    uint8_t reason;   /* enum gw_job_reason */
    bool is_refused;  /* a message has failed since its receiver will never take it */
    bool is_merged;   /* received: into the values that it was to be combined with ... */
    bool overflows;   /* ... some of which do not fit their type */
};

/* Counters; all in packets. */
struct gw_endpoint_stats {
    uint64_t data_sent;     /* retransmissions included */
    uint64_t data_received; /* duplicates included */
    uint64_t progress;      /* data that was taken in, and ACKs of flows under way: nothing that a
                               stranger sends */
    uint64_t acks_sent;
    uint64_t nacks_sent, nacks_received;
    uint64_t credits_sent, credits_received;
    uint64_t retransmits;
    uint64_t timeouts;        /* packets given up by loss detection for their age; hails of a
                                 blast that were repeated */
    uint64_t overtaken;       /* packets given up since later ones had arrived */
    uint64_t probes;          /* sent to find out whether others are lost */
    uint64_t spurious;        /* retransmitted although the peer already had them */
    uint64_t duplicates;      /* received twice, or after they were given up */
    uint64_t given_up;        /* lost, and not wanted again */
    uint64_t control_dropped; /* control queue full */
    uint64_t kept;            /* data that came before its memory was posted, until it was */
    uint64_t refused;         /* data without room for a flow, a buffer or memory to put it into */
    uint64_t stray;           /* for an unknown or ended flow, or another host */
    uint64_t malformed;       /* fields that contradict each other */
    uint64_t pool_empty;      /* no packet or buffer to send with: tried again later */
    /* Blasts; see blast.h. */
    uint64_t hails_sent, hails_received;
    uint64_t reports_received;
    uint64_t requests_sent, requests_received; /* of 64 places each, at most */
    uint64_t early;                            /* data whose rendezvous has not come: dropped */
    uint64_t rendezvous_early;                 /* for which there was no memory or room yet */
    uint64_t rendezvous_refused;               /* of messages that are too long */
    uint64_t stops_ignored;                    /* repeated sooner than an answer can have come */
    /* Notices; see announce.h. */
    uint64_t notices_sent;       /* repeated ones included */
    uint64_t notices_received;   /* and answered */
    uint64_t answers_received;   /* of those, for the latest burst */
    uint64_t bursts_announced;   /* in bursts, as are the next two */
    uint64_t bursts_unanswered;  /* of these: left after a round trip, or when their first flow had
                                    ended, without an answer */
    uint64_t bursts_unannounced; /* no announcer was free, or the notice could not leave in time */
};

struct gw_endpoint;

/* Bytes of memory that an endpoint needs; 0 when `cfg` is out of its limits. */
size_t gw_endpoint_size(const struct gw_endpoint_cfg *cfg);

/* Makes an endpoint in `memory`, aligned to 64 and gw_endpoint_size() long. Never fails. */
struct gw_endpoint *gw_endpoint_init(void *memory, const struct gw_endpoint_cfg *cfg);

/*
 * Releases the packets that the endpoint holds and returns how many. Applications must have
 * detached; then the memory may be used for something else.
 */
uint32_t gw_endpoint_fini(struct gw_endpoint *endpoint);

/* The node, for drivers. */
struct gw_node *gw_endpoint_node(struct gw_endpoint *endpoint);

/* For drivers of many nodes: the packet will arrive shortly. Fetches the memory that it will lead
 * to, and changes nothing. */
void gw_endpoint_foresee(const struct gw_endpoint *endpoint, const struct gw_pkt *pkt);

/*
 * Starts a flow and stores its number in *flow. An empty message completes at once. Returns 0,
 * GW_ERR_NO_ROOM (tx_flows_max flows are running: poll, then try again), or GW_ERR_INVALID.
 */
int gw_endpoint_send(struct gw_endpoint *endpoint, const struct gw_send *send, uint32_t *flow,
                     gw_time now);

/*
 * Posts memory for the message `tag` from `peer`. Payload that arrives for a message without memory
 * is kept (cfg.early_packets) or refused; its sender is told when there is, and asks again, soon at
 * first, then every few milliseconds, and fails when that has stalled. Returns 0 or GW_ERR_NO_ROOM.
 */
int gw_endpoint_expect(struct gw_endpoint *endpoint, uint32_t peer, uint32_t tag, void *data,
                       uint64_t bytes);

/*
 * The same for a message of which a part may be enough. What `finish` calls enough ends the flow:
 * RECEIVED says how much is missing, `arrived` says what, and the memory of these packets is as it
 * was. Packets that come later are answered and dropped.
 */
int gw_endpoint_expect_part(struct gw_endpoint *endpoint, const struct gw_expect *expect);

/* Whether memory is posted for the message and nothing of it has come yet. */
bool gw_endpoint_expects(const struct gw_endpoint *endpoint, uint32_t peer, uint32_t tag);

/*
 * Gives up, without an event, all that reads from or writes to `size` bytes at `memory`, which is
 * the caller's again: flows that send from it, memory posted in it, and flows that fill such
 * memory. The peers of these flows see them stall.
 */
void gw_endpoint_forget(struct gw_endpoint *endpoint, const void *memory, uint64_t size);

/*
 * Tells the other end of `port`'s link to hold its data back for `time`, or, with 0, no longer: for
 * a driver whose receive buffer fills up (pause.h). What was told before and has not left yet is
 * forgotten. False when the pool is empty: try again later.
 */
bool gw_endpoint_pause(struct gw_endpoint *endpoint, uint16_t port, gw_time time);

/* Time that data was held back by PAUSEs, over all ports, until it last flowed again. */
gw_time gw_endpoint_paused(const struct gw_endpoint *endpoint);

/* Takes up to `max` events in the order in which they happened; returns how many. */
uint32_t gw_endpoint_poll(struct gw_endpoint *endpoint, struct gw_event *events, uint32_t max);

/* What a flow is doing, for samples and tests. */
struct gw_flow_info {
    uint64_t cwnd;
    uint64_t acked_bytes;
    uint64_t retransmits; /* packets sent again */
    uint32_t in_flight_bytes;
    uint32_t window_packets; /* sent but not yet below the cumulative acknowledgement; of a blast:
                                to be sent */
    const void *cc_state;
};

/* Returns false when the flow has ended. */
bool gw_endpoint_flow_info(const struct gw_endpoint *endpoint, uint32_t flow,
                           struct gw_flow_info *info);

/*
 * The round trip of notices of `job` to `peer` and their answers, as measured; false when none was
 * answered, or its announcer announces somebody else's bursts by now.
 */
bool gw_endpoint_notice_rtt(const struct gw_endpoint *endpoint, uint32_t job, uint32_t peer,
                            gw_time *rtt);

const struct gw_endpoint_stats *gw_endpoint_stats(const struct gw_endpoint *endpoint);

#endif
