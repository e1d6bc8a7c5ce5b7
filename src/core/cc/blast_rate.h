/* What rate controls of blasts have in common: a window that is only paced. */
#ifndef GW_CORE_BLAST_RATE_H
#define GW_CORE_BLAST_RATE_H

#include "core/cc/cc.h"
#include "core/cc/window.h"

/* In flight is whatever the pace allows; nobody counts it. */
static inline struct gw_cc_window gw_blast_rate_window(const struct gw_path *path,
                                                       uint64_t rate_bps)
{
    return (struct gw_cc_window){.cwnd = path->bdp > path->mtu ? path->bdp : path->mtu,
                                 .pace = gw_byte_time_from_bps(rate_bps)};
}

/* A packet per period. */
static inline uint64_t gw_blast_rate_least(const struct gw_path *path, gw_time period)
{
    const uint64_t bits = (uint64_t)(path->mtu + path->hdr) * 8;
    return period ? bits * GW_S / period : path->rate_bps;
}

#endif
