/*
 * Blasts: flows whose data is not acknowledged (DLCP, sections 3.2.1 and 4.1; "blast" after the
 * reliable blast UDP that it follows). Of the endpoint's inside; see endpoint_impl.h.
 *
 *   blast_tx.c       the sender begins and ends, and sends
 *   blast_due.c      what is still to be sent, and which of it is important
 *   blast_tx_hear.c  what its receiver's hails do
 *   blast_rx.c       the receiver opens and ends, and takes data
 *   blast_rx_hear.c  what its sender's hails do, and what time does
 *   blast_hails.c    hails leave, and find their flow
 *   blast_lane.c     how fast the blasts to a peer may leave
 *   credit.c         what a blast on credit is granted
 *
 * The sender says by a RENDEZVOUS what comes, and sends at once, at the rate that congestion
 * control allows. What is still to be sent it keeps as a set of places, `due`; they leave in an
 * order drawn anew for each blast. When nothing is due it says STOP. The receiver REPORTs how fast
 * it receives; it answers a STOP by REQUESTs of what is missing, which makes that due again in the
 * next *round*; and says FINISH, at any time, when it has enough. That ends the sender.
 *
 * Hails leave as control, so they overtake data. The receiver therefore answers a STOP when no
 * data has come for a while: twice the largest delay of data over hails that it has seen. Both
 * delays are by the clock of the sender, so that clocks need not agree.
 *
 * Hails may be lost: the sender repeats RENDEZVOUS and STOP until they are answered, first after
 * the period of its loss detection, then at distances that double (core/loss/rto.h), whatever that
 * detection does: hails go before data, so that many senders whose hails never became more seldom
 * could fill a slow link for ever. The receiver repeats FINISH, a few times. Nothing that is
 * received is answered by more than one hail, but a STOP, by as many as there are words of places
 * with something missing: at most once per round trip, whatever rounds it names, and while nothing
 * of what was asked for comes more and more seldom, down to once per period of reports. So who only
 * says STOP gets little for it, and whose packets are lost since many send at once goes on.
 *
 * Where the transport has a grant, a packet needs a credit, too (credit.h). Who has had none for
 * long sends one packet that says so, at distances that double.
 *
 * Invariants: `due` has places of the message only, each once; a packet that arrived is marked
 * before anything is said of it, and nothing is written outside the memory of its place; a running
 * sender waits for its turn, its pace, credit, or an answer, and has a timer armed for all but the
 * first.
 */
#ifndef GW_CORE_BLAST_H
#define GW_CORE_BLAST_H

#include "base/arena.h"
#include "base/bitmap.h"
#include "base/bits.h"
#include "core/blast_hail.h"
#include "core/host/blast_lane.h"
#include "core/host/blast_order.h"
#include "core/host/endpoint_impl.h"
#include "core/loss/rto.h"

enum {
    GW_BLAST_PERIODS = 8,      /* that the sender remembers */
    GW_BLAST_FINISHES = 5,     /* copies of a FINISH; the time from one to the next doubles */
    GW_BLAST_REPORTS_LOST = 3, /* periods without a report that count as nothing received (own
                                  choice) */
};

/* Answers that bring nothing lie apart by no more round trips than 2 to the power of this, and by
 * no more than a period of reports if that is longer than a round trip (own choice). */
#define GW_BLAST_PATIENCE_MAX 10

/* Of how long data lags behind hails, no more than this is believed (own choice). */
#define GW_BLAST_LAG_MAX (10 * GW_MS)

enum gw_blast_importance {
    GW_UNIMPORTANT,
    GW_IMPORTANT,
    GW_IMPORTANCES,
};

/* The sender half. */
struct gw_blast_tx {
    struct gw_sender sender;
    const struct gw_transport *transport; /* NULL: no blast is here */
    struct gw_bitmap due[GW_IMPORTANCES]; /* turns whose places are to be sent */
    uint32_t in_round[GW_IMPORTANCES];    /* of these, at the beginning of the round and since */
    uint32_t in_round_least;              /* of both kinds, in any round that is over */
    uint32_t foreseen;                    /* turns that may be in these; those behind are all due */
    struct gw_importance rule; /* by which places are weighed, if `important` is `found` */
    uint64_t *found;           /* bit p: place p is important, as far as places have been weighed */
    uint64_t *asked;           /* bit w: word w of the message has been requested for this round */
    struct gw_blast_order order;
    uint32_t id;
    uint32_t peer;
    uint32_t key;
    uint32_t tag;
    uint32_t total;
    uint32_t last_len;
    uint32_t free_next;
    uint16_t generation;
    uint16_t round;
    uint8_t importance; /* of the running train */
    uint8_t class;      /* that the message was given; the sender's is that of the next train */
    uint8_t holds;      /* times that the receiver was not ready, up to a limit */
    bool is_bare;       /* without payload (simulation) */
    bool is_refused;    /* the receiver will never take it */
    bool is_accepted;   /* the receiver has been heard of, and takes data */
    bool is_held;       /* it is not ready: nothing leaves until it is */
    bool is_stopped;    /* nothing is due: a STOP waits for its answer */
    bool has_last;      /* the last REQUEST for this round has come */
    bool has_begun;     /* the first packet of this round has left */
    bool important_first;
    bool is_starved; /* one packet without credit tells the receiver so */
    uint8_t starves; /* times that credit was missing since some came, up to a limit */
    uint8_t ecn[GW_IMPORTANCES];
    gw_q16 bound;
    const unsigned char *data;
    const uint64_t *important; /* of the application, or `found`; NULL: all are */
    const uint16_t *notes;
    uint64_t bytes;
    uint64_t sent_packets;
    uint32_t sent_most; /* different places that have been sent */
    struct gw_blast_lane *lane;
    gw_time pace_at;   /* when the next train may leave */
    gw_time joined_at; /* when it could have, had it been its turn */
    struct gw_rto rto; /* of hails that wait for an answer */
    gw_time progress_at;
    gw_time rendezvous_at; /* when the first left */
    gw_time hail_at;       /* when a hail is repeated; GW_TIME_NEVER: none waits for an answer */
    gw_time hailed_at;     /* when it left last */
    gw_time hold_at;       /* when to ask whether the receiver is ready, likewise */
    gw_time report_at;     /* when a report will be missing, likewise */
    gw_time starve_at;     /* when credit will be missing, likewise */
    uint32_t credit;       /* packets that may leave; UINT32_MAX: it needs none */
    uint32_t granted;      /* the receiver's count */
    gw_time round_at;      /* first packet of the round */
    uint32_t period;       /* the present one of the round */
    uint32_t reported;     /* periods before it have been reported, or were too long ago */
    uint64_t sent[GW_BLAST_PERIODS]; /* wire bytes of period p, at p modulo their number */
    uint64_t received;               /* payload that reports told of, roughly */
    struct gw_path path;
    uint64_t lb_state[GW_LB_STATE_MAX / 8];
};

enum gw_blast_state {
    GW_BLAST_FREE,      /* a RENDEZVOUS moves it on */
    GW_BLAST_ACTIVE,    /* the packet that is enough, or a stall, moves it on */
    GW_BLAST_LINGERING, /* it has enough, and takes what still comes until its sender knows, or for
                           a round trip */
    GW_BLAST_DONE,      /* it says so until its sender knows; then answers by FINISH until another
                           needs the place */
    GW_BLAST_FAILED,    /* answers nothing, until another needs the place */
};

/* The receiver half. */
struct gw_blast_rx {
    struct gw_sender sender; /* of REQUESTs */
    uint64_t *bits;          /* bit p: place p has arrived */
    uint32_t peer;
    uint32_t flow;
    uint32_t key; /* of our packets to the peer */
    uint32_t tag;
    uint32_t total;
    uint16_t mss;
    uint16_t last_len;
    uint32_t arrived;
    uint32_t list_next; /* index of the next that is free, or done */
    uint8_t state;      /* enum gw_blast_state */
    uint8_t finishes;   /* copies of FINISH that have left */
    uint8_t echoes;     /* entropies that wait to be reported */
    uint8_t echoes_ce;  /* bit i: that one was of a packet with CE */
    uint16_t echo[GW_HAIL_ECHOES];
    uint16_t round; /* the latest that has been heard of */
    bool is_bare;   /* data without payload */
    bool is_on_credit;
    bool is_stopped;  /* its STOP has come, and is not answered */
    bool is_answered; /* it has been answered */
    bool has_begun;   /* data of the round has come */
    uint64_t bytes;   /* payload that arrived */
    gw_q16 bound;     /* of the sender */
    gw_time rtt;      /* what the sender takes for the round trip */
    const struct gw_finish *finish;
    struct gw_rx_memory memory;
    uint16_t *notes;
    gw_time heard_at; /* last arrival of something new */
    gw_time data_at;  /* last arrival of data */
    gw_time data_sent_at;
    gw_time round_at;      /* first data of the round, or when it had come without a queue */
    gw_time round_sent_at; /* when that had left, by the sender's clock */
    uint32_t period;       /* of the round, that bytes are counted for */
    uint32_t period_bytes; /* wire bytes that came in it; 0: nothing is to be reported */
    uint32_t ask_word;     /* REQUESTs: the next word with something missing; total: none */
    uint16_t ask_round;    /* the round whose STOP they answer */
    uint8_t patience;      /* doublings of the time between answers that bring nothing */
    uint32_t asked_for;    /* places that the last answer asked for; 0: there was none */
    gw_time hail_delay;    /* arrival less sending, of the fastest hail; clocks differ */
    gw_time lag;           /* largest delay of data in this round above that */
    gw_time stop_at;       /* arrival of the STOP */
    gw_time stop_sent_at;
    gw_time answered_at;
    gw_time linger_at; /* when it is done, whether its sender knows or not */
    gw_time finish_at; /* when FINISH is said again; GW_TIME_NEVER: no more */
    struct gw_grantee grantee;
};

static inline uint32_t gw_blast_tx_timer(const struct gw_endpoint *ep,
                                         const struct gw_blast_tx *blast)
{
    return gw_blast_timer(ep) + (uint32_t)(blast - ep->blasts_tx);
}

static inline uint32_t gw_blast_rx_timer(const struct gw_endpoint *ep,
                                         const struct gw_blast_rx *blast)
{
    return gw_blast_timer(ep) + ep->cfg.blasts_max + (uint32_t)(blast - ep->blasts_rx);
}

static inline bool gw_blast_tx_needs_credit(const struct gw_blast_tx *blast)
{
    return blast->credit != UINT32_MAX;
}

/* Places that are still to be sent. */
static inline uint32_t gw_blast_tx_due(const struct gw_blast_tx *blast)
{
    return blast->due[GW_UNIMPORTANT].count + blast->due[GW_IMPORTANT].count +
           (blast->total - blast->foreseen);
}

/* A report is missing after so long, counted from one, or from when sending begins or goes on. */
static inline void gw_blast_tx_await_report(const struct gw_endpoint *ep, struct gw_blast_tx *blast,
                                            gw_time now)
{
    blast->report_at =
        gw_time_add(now, GW_BLAST_REPORTS_LOST * ep->cfg.report_every + blast->path.brtt);
}

/* How long a hail waits for its answer; never longer than this, whatever the loss detection. */
#define GW_BLAST_RTO_MAX (8 * GW_S)

static inline gw_time gw_blast_rto(const struct gw_blast_tx *blast)
{
    gw_time rto = gw_rto_period(&blast->rto);
    return rto < GW_BLAST_RTO_MAX ? rto : GW_BLAST_RTO_MAX;
}

/* Payload bytes of a place. */
static inline uint32_t gw_blast_len(const struct gw_blast_tx *blast, uint32_t place)
{
    return place + 1 == blast->total ? blast->last_len : blast->path.mtu;
}

/* Packets that leave at once of a hail which begins or ends a blast. */
static inline uint32_t gw_blast_copies(const struct gw_endpoint *ep)
{
    return ep->cfg.hail_copies ? ep->cfg.hail_copies : 1;
}

/* blast_tx.c */

/* As gw_endpoint_send(), whose checks have been made; `bytes` is not 0. */
int gw_blast_tx_start(struct gw_endpoint *ep, const struct gw_send *send, uint32_t *flow,
                      gw_time now);
/* Something may leave: joins the egress ring, or waits for its time. */
void gw_blast_tx_wake(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* A round begins; what is due in it follows. */
void gw_blast_tx_begin_round(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* The period that `now` lies in; what was sent in those that are new is 0. */
uint32_t gw_blast_tx_period(const struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* Says RENDEZVOUS, and what of the message it is about. */
void gw_blast_tx_announce(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* Says STOP. */
void gw_blast_tx_stop(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* Arms the timer for the earliest thing to do. */
void gw_blast_tx_arm(struct gw_endpoint *ep, struct gw_blast_tx *blast);
/* Ends with an event: as much has arrived as `packets` and `bytes` say, or it has stalled. */
void gw_blast_tx_complete(struct gw_endpoint *ep, struct gw_blast_tx *blast, uint32_t packets,
                          uint64_t bytes, gw_time now);
void gw_blast_tx_fail(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* Ends without one. */
void gw_blast_tx_drop(struct gw_endpoint *ep, struct gw_blast_tx *blast);

/* blast_due.c */

/* How it is known which places are important; the order and the length of the message are. */
void gw_blast_tx_appraise(struct gw_blast_tx *blast, const struct gw_send *send);
/* All places are due, and so many packets may leave without credit, as in the beginning. */
void gw_blast_tx_renew(const struct gw_endpoint *ep, struct gw_blast_tx *blast);
/* Place `place` is due, which is not due yet. */
void gw_blast_tx_demand(struct gw_blast_tx *blast, uint32_t place);
/* Foresees as many places as trains need to be full, and finds out whether they are important;
 * where that is found in their values these come nearer. */
void gw_blast_tx_look_ahead(const struct gw_endpoint *ep, struct gw_blast_tx *blast);
/* Which of the two kinds has the next train; something is due. */
enum gw_blast_importance gw_blast_tx_choose(const struct gw_blast_tx *blast);

/* blast_tx_hear.c: the packet remains the caller's. */
void gw_blast_tx_hear(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_pkt *pkt,
                      gw_time now);
void gw_blast_tx_expire(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now);
/* CREDIT for a blast. */
void gw_blast_tx_take_credit(struct gw_endpoint *ep, struct gw_blast_tx *blast,
                             const struct gw_pkt *pkt, gw_time now);

/* blast_rx.c */

/* Data of a blast arrived; takes it. */
void gw_blast_rx_data(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);
/* Answers a RENDEZVOUS, of which source, flow and time are looked at. */
void gw_blast_rx_accept(struct gw_endpoint *ep, const struct gw_pkt *pkt, uint32_t arrived,
                        uint8_t marks);
/* A RENDEZVOUS of an unknown flow: opens it. Returns the marks of the answer. */
uint8_t gw_blast_rx_open(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
/* The flow of a packet from its sender, or NULL. */
struct gw_blast_rx *gw_blast_rx_of(const struct gw_endpoint *ep, const struct gw_pkt *pkt);
/* It has ended: an event says that it was received, or failed. */
void gw_blast_rx_close(struct gw_endpoint *ep, struct gw_blast_rx *blast, enum gw_event_kind kind,
                       gw_time now);
/* It has ended, and says no more of itself: its place is free for others, the oldest first. */
void gw_blast_rx_settle(struct gw_endpoint *ep, struct gw_blast_rx *blast);
/* It ends without one. */
void gw_blast_rx_drop(struct gw_endpoint *ep, struct gw_blast_rx *blast);
/* Reports the bytes of the period that is over, if any. */
void gw_blast_rx_report(struct gw_endpoint *ep, struct gw_blast_rx *blast);
/* Says FINISH. */
void gw_blast_rx_finish(struct gw_endpoint *ep, const struct gw_blast_rx *blast, gw_time now);
/* When it is to be said again, if it is not confirmed until then. */
gw_time gw_blast_rx_finish_again(struct gw_blast_rx *blast, gw_time now);
/* A round has been heard of that may be new. False: it is an old one. */
bool gw_blast_rx_round(struct gw_blast_rx *blast, uint16_t round);

/* blast_rx_hear.c: the packet remains the caller's. */
void gw_blast_rx_hear(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
void gw_blast_rx_expire(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now);
/* Of the senders of REQUESTs. */
extern const struct gw_sender_ops gw_blast_request_ops;

/* blast_hails.c */

/* What a hail says; the rest follows from the endpoint. */
struct gw_blast_say {
    enum gw_hail_op op;
    uint32_t peer;
    uint32_t flow;
    uint32_t key;
    uint32_t seq;
    uint32_t word[2];
    uint16_t number;
    uint16_t index;
    uint8_t marks;
    gw_time time;
};

/* A packet that says it, or NULL: the pool is empty, which is counted. */
struct gw_pkt *gw_blast_hail(struct gw_endpoint *ep, const struct gw_blast_say *say);
/* Queues such a packet as control. False: the pool is empty. */
bool gw_blast_say(struct gw_endpoint *ep, const struct gw_blast_say *say);
/* CREDIT arrived for a flow with this number; false: it is no blast. The packet remains the
 * caller's. */
bool gw_blast_credit(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now);
/* A hail arrived; takes it. */
void gw_blast_input(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);

/* endpoint.c's part */
void gw_blast_expire(struct gw_endpoint *ep, uint32_t timer, gw_time now);
/* Carves the tables out of the arena; makes them if it has memory. */
void gw_blast_carve(struct gw_endpoint *ep, const struct gw_endpoint_cfg *cfg,
                    struct gw_arena *arena);
/* Gives up what uses `size` bytes at `memory`. */
void gw_blast_forget(struct gw_endpoint *ep, const void *memory, uint64_t size);
bool gw_blast_info(const struct gw_endpoint *ep, uint32_t flow, struct gw_flow_info *info);

#endif
