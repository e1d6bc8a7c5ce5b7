/*
 * Announcers: a host tells the switches on the way of its bursts, and lets these leave a round trip
 * later (PCN, section 3.1). Of the endpoint's inside; see endpoint_impl.h.
 *
 * There is one announcer per job and peer, of a bounded number. What announces is a *user* of it:
 * a flow while it runs, a worker while it has tensors in work. A *busy period* begins with the
 * first user after a time of more than one round trip without any. That one leads: a notice with
 * its flow, key, class, port and first entropy goes out in its turn, and its first packet is the
 * head of the burst. All users wait until the notice is answered, or for one round trip; then they
 * join the egress, the leader first. Who becomes a user later in the busy period, leaves at once. A
 * user may ask for a while more behind the answer (struct gw_notice_terms, `lead`).
 *
 * A notice is sent twice at most: again after half of that time, since a later copy would do no
 * good. Packet numbers of notices grow with every copy, so an answer tells which one it answers,
 * and is a sample of the round trip also after a repeat. The time begins when the notice is to be
 * sent: what holds it back in this host would hold the burst back, too. If it has not left at all
 * when the time is over, the burst leaves without a head, and counts as not announced.
 *
 * The time of a round trip is srtt + 4 rttvar (RFC 6298, section 2), of exchanges of this
 * announcer; before the first one, twice of what the user says it is.
 *
 * What is given up rather than ended leaves no trace: without another user, the busy period is
 * over. Without its leader it has no head, and those who waited with it leave.
 *
 * Invariants: of an announcer without users nothing is armed or queued; its users wait exactly as
 * long as it asks; a user that waits counts as in a ring, but is in none.
 */
#ifndef GW_CORE_ANNOUNCE_H
#define GW_CORE_ANNOUNCE_H

#include "base/index_list.h"
#include "core/host/endpoint_impl.h"
#include "core/notice.h"

enum {
    GW_NOTICES_MAX = 2, /* copies of a notice */
};

/* What a user of an announcer is about to send. */
struct gw_burst {
    struct gw_notice_terms terms; /* its units and rtt are not 0 */
    uint32_t peer;
    uint32_t flow;
    uint32_t key;
    uint8_t ecn; /* enum gw_ecn */
};

struct gw_announcer {
    struct gw_sender sender;        /* of notices */
    const struct gw_sender *leader; /* NULL: given up, or the burst has left */
    struct gw_sender *waiting;      /* last of those who wait; circular through ring_next */
    struct gw_burst burst;          /* the last one */
    uint32_t prev;                  /* in the list of those without users */
    uint32_t next;
    uint32_t users;
    uint32_t number;                  /* of the first copy of the last notice */
    uint8_t sent;                     /* copies of it */
    bool is_asking;                   /* it is not answered, and the time is not over */
    bool is_due;                      /* a copy is to leave */
    bool is_answered;                 /* a copy has been */
    bool is_known;                    /* it is in the map */
    bool is_over;                     /* the last busy period, whatever the time */
    bool is_measured;                 /* the next two are */
    gw_time srtt;                     /* of an exchange */
    gw_time rttvar;                   /* its mean deviation */
    gw_time until;                    /* while asking: when the burst leaves anyway */
    gw_time asked_at[GW_NOTICES_MAX]; /* when each copy was to leave */
    gw_time idle_since;               /* without users */
};

/*
 * `sender` has something to send. True: it is a user now, and waits, as if it was in its ring; if
 * it `leads`, its first train has begun, whose entropy the caller sets: that of the notices, too.
 * Otherwise it may send; it is a user if sender->announcer says so.
 */
bool gw_announce_begin(struct gw_endpoint *ep, struct gw_sender *sender,
                       const struct gw_burst *burst, gw_time now);

/* A user has sent all, and all of that has been answered. */
void gw_announce_end(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now);

/* A user gives up. */
void gw_announce_give_up(struct gw_endpoint *ep, struct gw_sender *sender);

/* A notice arrived, or an answer; it is taken. */
void gw_announce_input(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);

void gw_announce_expire(struct gw_endpoint *ep, uint32_t timer, gw_time now);

/* All announcers, without users; the endpoint has carved their memory. */
void gw_announce_init(struct gw_endpoint *ep);

#endif
