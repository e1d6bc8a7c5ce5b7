/*
 * Bursts that are announced: what hosts, switches and job control share of proactive congestion
 * notification (PCN, sections 3.1 to 3.3).
 *
 * Before a burst its sender tells the switches on its way by a *notice*, a packet of kind
 * GW_PKT_NOTICE towards the receiver of the burst, with the marking threshold that their ports are
 * to have until the burst comes. Other senders on these ports are marked, slow down, and the queue
 * has room. The receiver answers the notice; then, or after a round trip, the burst leaves, and its
 * first packet, the *head* (GW_PKT_HEAD), gives the ports their own threshold back. A notice has
 * the q.key, class and entropy of the burst that it announces, so it goes the same way, waits in
 * the same queues, and its answer tells that those whom it marked have had their time. It is
 * repeated until it is answered or the burst has left.
 *
 * Thresholds travel in units of five packets, in four bits. All workers of a job announce with the
 * same one, which follows from what they were told (an option) and, by the formula, from the path.
 */
#ifndef GW_CORE_NOTICE_H
#define GW_CORE_NOTICE_H

#include <stdint.h>

#include "base/time.h"

enum {
    GW_NOTICE_STEP = 5,       /* packets of a unit (section 3.1) */
    GW_NOTICE_UNITS_MAX = 15, /* four bits */
    GW_NOTICE_PACKETS_MAX = GW_NOTICE_STEP * GW_NOTICE_UNITS_MAX,
    GW_NOTICE_FLOWS = 3, /* long flows that share a port: N of the formula (section 3.3) */
};

/*
 * How a job announces its bursts, in five bits: GW_NOTICE_OFF; 1 to GW_NOTICE_UNITS_MAX: with that
 * threshold, in units; GW_NOTICE_FORMULA + i, i up to 15: by the formula with the ratio k = 1/2^i.
 */
enum gw_notice_option {
    GW_NOTICE_OFF = 0,
    GW_NOTICE_FORMULA = 16,
    GW_NOTICE_OPTIONS = 32,
};

/*
 * Reads an option: "no", a number of packets ("10": a multiple of five up to 75), or a ratio of the
 * formula ("1/4": one over a power of two). Returns 0, GW_ERR_INVALID or GW_ERR_RANGE.
 */
int gw_notice_parse(const char *text, uint8_t *option);

/* What the formula needs of the path. */
struct gw_notice_path {
    gw_time rtt;
    uint64_t rate_bps; /* C: of the slowest link that bursts share with others */
    uint32_t packet;   /* bytes of a full packet with its headers */
};

/* The threshold of a formula, in packets, rounded up: RTT x C / (3 x packet) / 2^halvings. The path
 * must be known. */
uint32_t gw_notice_formula(const struct gw_notice_path *path, uint32_t halvings);

/*
 * The threshold of an option in units: 0 for GW_NOTICE_OFF, else at least 1. Returns 0, or when the
 * option is a formula GW_ERR_INVALID (nothing is known of the path's rate or packets), or
 * GW_ERR_RANGE with the largest that a notice can say, above which it is.
 */
int gw_notice_units(uint8_t option, const struct gw_notice_path *path, uint8_t *units);

/* What the sender of a burst says of it; all zero: the burst is not announced. */
struct gw_notice_terms {
    uint32_t job;
    uint8_t units; /* 1 to GW_NOTICE_UNITS_MAX; 0: no notice */
    gw_time rtt;   /* of an exchange, before one was measured; 0: the path's brtt */
    gw_time lead;  /* that the burst waits behind an answer: what a notice has marked, slows down
                      when the answer comes, and the room takes another round trip to come about */
};

#endif
