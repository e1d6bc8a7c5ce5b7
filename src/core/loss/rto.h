/*
 * The retransmission timer that loss detectors share: a fixed period with exponential back-off.
 *
 * The paths of a datacenter have known base RTTs, so the period is a multiple of them and not an
 * estimate. The first timeout opens an episode and leaves the period as it is, because packets of
 * the same burst are probably lost as well and must not wait longer. A packet that was sent after
 * the latest step of the episode and times out too doubles the period; one that was sent after it
 * and is acknowledged ends the episode (the ACK of an older copy proves nothing: Karn's rule).
 *
 * Invariant: base <= period <= 64 * base, and within an episode the period never shrinks.
 */
#ifndef GW_CORE_RTO_H
#define GW_CORE_RTO_H

#include "base/fixed.h"
#include "core/loss/loss.h"

enum {
    GW_RTO_SHIFT_MAX = 6, /* 64 times */
};

struct gw_rto {
    gw_time base;  /* period without back-off */
    gw_time since; /* latest step of the episode; meaningless when there is none */
    uint8_t shift; /* the period is base << shift */
    bool episode;  /* a timeout happened and nothing sent since was acknowledged */
};

_Static_assert(sizeof(struct gw_rto) <= GW_LOSS_STATE_MAX, "state fits");

/* Longest base period: far above any base RTT, and 64 times it is far below half of all time. */
#define GW_RTO_BASE_MAX (60 * GW_S)

/* `multiple` times the longest base RTT of the fabric, at most GW_RTO_BASE_MAX. */
static inline gw_time gw_rto_multiple(const struct gw_path *path, gw_q16 multiple)
{
    if (multiple <= 0)
        return 0;
    unsigned __int128 time = ((unsigned __int128)path->brtt_max * (uint64_t)multiple) >> 16;
    return time < GW_RTO_BASE_MAX ? (gw_time)time : GW_RTO_BASE_MAX;
}

static inline void gw_rto_init(struct gw_rto *rto, gw_time base)
{
    *rto = (struct gw_rto){.base = base == 0 ? 1 : base < GW_RTO_BASE_MAX ? base : GW_RTO_BASE_MAX};
}

static inline gw_time gw_rto_period(const struct gw_rto *rto)
{
    return rto->base << rto->shift;
}

static inline void gw_rto_on_ack(struct gw_rto *rto, gw_time sent_at)
{
    if (rto->episode && !gw_time_before(sent_at, rto->since)) {
        rto->episode = false;
        rto->shift = 0;
    }
}

static inline void gw_rto_on_timeout(struct gw_rto *rto, gw_time sent_at, gw_time now)
{
    if (rto->episode && gw_time_before(sent_at, rto->since))
        return;
    rto->shift += rto->episode && rto->shift < GW_RTO_SHIFT_MAX;
    rto->episode = true;
    rto->since = now;
}

#endif
