/*
 * The buffer that the ports of a switch share, with dynamic thresholds (Choudhury and Hahne, 1998):
 * a port may hold a multiple of what is free. So a port that is alone gets most of it, and the more
 * are busy, the less each has, while something always stays free for one that becomes busy.
 *
 * Important packets may have a multiple of their own: with a larger one, data that may be lost
 * leaves room for data that may not, and for control.
 *
 * Invariant: the ports together never hold more than `bytes`.
 */
#ifndef GW_CORE_SHARED_BUFFER_H
#define GW_CORE_SHARED_BUFFER_H

#include "base/fixed.h"
#include "core/pkt.h"

struct gw_shared_buffer {
    uint64_t bytes;         /* 0: none; each port has its capacity alone */
    gw_q16 alpha;           /* a port may hold this multiple of the free bytes */
    gw_q16 alpha_important; /* the same where a packet is important or control; 0: alpha */
};

/* Bytes that may be added for `pkt` at a port that holds `held`, of `used` in all. */
static inline uint64_t gw_shared_buffer_room(const struct gw_shared_buffer *shared, uint64_t used,
                                             uint64_t held, const struct gw_pkt *pkt)
{
    if (shared->bytes == 0)
        return UINT64_MAX;
    bool is_important = pkt->q.ecn != GW_ECN_NOT_ECT || pkt->q.class == GW_CLASS_CONTROL;
    gw_q16 alpha =
        is_important && shared->alpha_important ? shared->alpha_important : shared->alpha;
    uint64_t room = shared->bytes - used;
    uint64_t share = (uint64_t)gw_q16_mul((gw_q16)room, alpha);
    uint64_t own = share > held ? share - held : 0;
    return own < room ? own : room;
}

#endif
