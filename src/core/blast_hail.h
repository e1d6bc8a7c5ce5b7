/*
 * Hails: what the two ends of a blast say to each other (host/blast.h; DLCP, sections 3.2.1 and
 * 4.1). They travel as control; the fields of GW_PKT_HAIL mean:
 *
 *                 from      seq                 number    index      word 0, word 1
 *     RENDEZVOUS  sender    bound, RTT          mss       last_len   packets of the message, tag
 *     ACCEPT      receiver  packets arrived     -         -          -
 *     REPORT      receiver  round, period       entropy   entropy    wire bytes; two entropies
 *     STOP        sender    round               -         -          -
 *     REQUEST     receiver  first place         round     -          mask of 64 places from there
 *     FINISH      receiver  packets arrived     round     -          payload that arrived
 *     CONFIRM     sender    -                   -         -          -
 *
 * Those that answer one hail (ACCEPT, REQUEST, CONFIRM) echo its time, a REPORT that of the last
 * packet of data that arrived; the others carry the time at which they leave. Rounds begin with 0,
 * and count modulo 65536.
 *
 * In the place of a tag a packet of data carries its round in the upper half, and the note of its
 * fragment in the lower.
 */
#ifndef GW_CORE_BLAST_HAIL_H
#define GW_CORE_BLAST_HAIL_H

#include "core/pkt.h"

enum gw_hail_op {
    GW_HAIL_RENDEZVOUS = 0, /* a message comes, and its data already does */
    GW_HAIL_ACCEPT = 1,     /* that has been heard */
    GW_HAIL_REPORT = 2,     /* what has come in the last period */
    GW_HAIL_STOP = 3,       /* all has been sent that was to be sent in this round */
    GW_HAIL_REQUEST = 4,    /* places that are to be sent in the next one */
    GW_HAIL_FINISH = 5,     /* what has arrived is enough */
    GW_HAIL_CONFIRM = 6,    /* that has been heard */
    GW_HAIL_OPS,
};

/* What `marks` says. */
enum gw_hail_mark {
    GW_HAIL_BARE = 1,      /* RENDEZVOUS: the data is without payload (simulation) */
    GW_HAIL_ON_CREDIT = 2, /* RENDEZVOUS: the sender waits for credit */
    GW_HAIL_NOT_READY = 1, /* ACCEPT: there is no memory for the message yet, all was dropped */
    GW_HAIL_REFUSED = 2,   /* ACCEPT: there will not be; it is too long */
    GW_HAIL_READY = 4, /* ACCEPT: now there is, as of a rendezvous that was answered NOT_READY */
    GW_HAIL_LAST = 1,  /* REQUEST: of the round */
    /* REPORT: four bits that say which of the entropies were of packets with CE, and how many
     * entropies there are. */
    GW_HAIL_ECHOES_SHIFT = 4,
};

enum {
    GW_HAIL_PLACES = 64,       /* in the mask of a REQUEST, whose first place is a multiple of it */
    GW_HAIL_ECHOES = 4,        /* entropies in a REPORT at most */
    GW_HAIL_RTT_SHIFT = 16,    /* in `seq` of a RENDEZVOUS; in microseconds, up to 65535 */
    GW_HAIL_BOUND_MAX = 65535, /* below it in 1/65536; what is above counts as this */
    GW_HAIL_ROUND_SHIFT = 16,  /* in `seq` of a REPORT, and of data in the tag */
};

/* The words of a hail as one number, word 0 the lower half. */
static inline uint64_t gw_hail_words(const struct gw_pkt *pkt)
{
    return (uint64_t)pkt->hail.word[1] << 32 | pkt->hail.word[0];
}

#endif
