/*
 * Messages that came before memory was posted for them. Their senders ask again, ever less often;
 * who is noted here is told as soon as there is memory, so that a rank that comes late to a call is
 * not kept waiting until the others ask. Of the endpoint's inside.
 *
 * The table is small. The entry that was made first gives way, and its sender goes on asking: no
 * message depends on it.
 */
#ifndef GW_CORE_EARLY_H
#define GW_CORE_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/pkt.h"

enum {
    GW_EARLY_MAX = 32, /* messages; a rank awaits a few of each of its peers (own choice) */
};

struct gw_endpoint;

/* One of them, and what its answer echoes. */
struct gw_early_flow {
    uint32_t peer;
    uint32_t flow;
    uint32_t tag;
    uint32_t seq;
    gw_time sent_at;
    uint16_t entropy;
    bool is_blast;
};

struct gw_early {
    struct gw_early_flow flows[GW_EARLY_MAX];
    uint32_t count; /* of these, the oldest first */
};

/* A packet of a message that there is no memory for: data, or a rendezvous. */
void gw_early_note(struct gw_endpoint *ep, const struct gw_pkt *pkt);

/* Now there is: tells its sender, if it is noted. */
void gw_early_tell(struct gw_endpoint *ep, uint32_t peer, uint32_t tag);

#endif
