/*
 * Grants: the receiver of a flow decides when its sender may go on.
 *
 * An algorithm here says how much a sender may send before it hears of its receiver, how far a
 * receiver lets a flow go ahead, and at which pace it grants; core/host/credit.h does it. A
 * transport may have a grant beside its congestion control: a packet then needs both. One file here
 * and one line in grant.def make an algorithm.
 */
#ifndef GW_CORE_GRANT_H
#define GW_CORE_GRANT_H

#include "core/algo.h"
#include "core/path.h"

/* The decision; the same at both ends of a flow. All zero: nothing is granted. */
struct gw_grant_plan {
    uint32_t first;    /* packets that a flow may send before it is granted any; at least 1 */
    uint32_t ahead;    /* most packets of a flow that are under way or granted and not sent yet */
    gw_byte_time pace; /* least time per wire byte that is granted, over all flows of a host */
};

struct gw_grant_ops {
    struct gw_algo algo; /* it has no private memory */
    void (*plan)(const void *cfg, const struct gw_path *path, struct gw_grant_plan *plan);
};

extern const struct gw_registry gw_grant_registry;

#endif
