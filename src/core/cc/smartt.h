/*
 * The state of a SMaRTT flow, for reports and tests; only smartt.c changes it.
 */
#ifndef GW_CORE_SMARTT_H
#define GW_CORE_SMARTT_H

#include "core/cc/quick_adapt.h"

/* What a flow's path makes of the options; the same for all flows of one path length. */
struct gw_smartt_gains {
    gw_time trtt;      /* target RTT */
    gw_time near;      /* an RTT up to this is close to the base RTT */
    uint64_t cwnd_min; /* 1/65536 byte */
    uint64_t cwnd_max; /* 1/65536 byte */
    uint64_t fd;       /* fd / bdp, in 1/2^48 per byte */
    uint64_t fi;       /* fi * gamma * mtu, in 1/65536 byte; less after a QuickAdapt with fi_cap */
    uint64_t mi;       /* mi * gamma * mtu, in 1/65536 byte */
};

struct gw_smartt {
    uint64_t cwnd; /* 1/65536 byte */
    struct gw_quick_adapt qa;
    uint32_t calm;      /* FastIncrease: consecutive bytes without congestion */
    uint32_t calm_goal; /* window in bytes at the last ACK that was not calm */
    uint32_t marked;    /* moving average of CE, 1/65536 */
    uint16_t waited;    /* ACKs since the last reaction */
    bool fast;          /* FastIncrease is active */
    struct gw_smartt_gains gains;
};

_Static_assert(sizeof(struct gw_smartt) <= GW_CC_STATE_MAX, "state fits");

#endif
