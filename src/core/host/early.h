/*
 * Messages that came before memory was posted for them. Their senders ask again, ever less often;
 * who is noted here is told as soon as there is memory, so that a rank that comes late to a call is
 * not kept waiting until the others ask. Of the endpoint's inside.
 *
 * Where ranks share cores one of them is often late, and to send a short message again takes as
 * long as the sum. So the first packets of flows that are acknowledged are kept, if the endpoint
 * is to (cfg.early_packets): when there is memory they are taken in as if they came then, without
 * the time they waited.
 *
 * The table is small. The entry that was made first gives way, and so do the packets of that which
 * was made before all others with some; its sender goes on asking: no message depends on it.
 *
 * Whoever asks is answered, whether what he asks by is kept or not. Of two flows with one tag the
 * packets of the later one are kept, as the other may have been given up.
 *
 * Invariant: packets are kept of entries of the table alone, each number once, all with its tag; of
 * one peer and tag in one entry, besides one that has memory.
 */
#ifndef GW_CORE_EARLY_H
#define GW_CORE_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/host/endpoint.h"

enum {
    GW_EARLY_MAX = 32, /* messages; a rank awaits a few of each of its peers (own choice) */
};

/* One of them, and what its answer echoes. */
struct gw_early_flow {
    uint32_t peer;
    uint32_t flow;
    uint32_t tag;
    uint32_t seq;
    gw_time sent_at;
    uint16_t entropy;
    bool is_blast;
    bool is_starved;                      /* its sender has no credit, and said so */
    bool has_memory;                      /* what is kept is taken in at once */
    struct gw_pkt_fifo kept;              /* sent_at: less the time of arrival */
    uint64_t seqs[GW_EARLY_PACKETS / 64]; /* bit s: number s is among them */
};

struct gw_early {
    struct gw_early_flow flows[GW_EARLY_MAX];
    uint32_t count; /* of these, the oldest first */
    uint32_t kept;  /* packets of all */
};

/* A rendezvous of a message that there is no memory for. */
void gw_early_note(struct gw_endpoint *ep, const struct gw_pkt *pkt);

/* Data of one. True: it is kept, and its sender knows. False: the packet remains the caller's. */
bool gw_early_keep(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now);

/* Now there is: tells its sender, if it is noted, or takes in what was kept. */
void gw_early_tell(struct gw_endpoint *ep, uint32_t peer, uint32_t tag);
void gw_early_expire(struct gw_endpoint *ep, gw_time now);

/* Releases what is kept; returns how many packets. */
uint32_t gw_early_fini(struct gw_endpoint *ep);

#endif
