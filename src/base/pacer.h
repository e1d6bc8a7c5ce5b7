/*
 * A pacer: how soon the next piece may leave.
 *
 * Over any time t no more leaves than the pace allows in t, and one piece, if its owner comes in
 * time. Who comes late makes good for it, by GW_PACER_LATE_MAX at most: that much more may leave.
 */
#ifndef GW_BASE_PACER_H
#define GW_BASE_PACER_H

#include "base/time.h"

#define GW_PACER_LATE_MAX (2 * GW_MS)

struct gw_pacer {
    gw_time free_at; /* when the next piece may leave */
};

/* Whether a piece may leave now. */
static inline bool gw_pacer_is_free(const struct gw_pacer *pacer, gw_time now)
{
    return !gw_time_before(now, pacer->free_at);
}

/* Something has waited since `since` for the pacer alone: it could have left then, at the earliest.
 */
static inline void gw_pacer_wait(struct gw_pacer *pacer, gw_time since)
{
    if (gw_time_before(pacer->free_at, since))
        pacer->free_at = since;
}

/* Forgets of the time that passed unused all but what may be made good for. */
static inline void gw_pacer_catch_up(struct gw_pacer *pacer, gw_time now)
{
    if (gw_time_before(pacer->free_at, now) && now - pacer->free_at > GW_PACER_LATE_MAX)
        pacer->free_at = now - GW_PACER_LATE_MAX;
}

/* A piece leaves that takes `time` at the pace. */
static inline void gw_pacer_take(struct gw_pacer *pacer, gw_time time)
{
    pacer->free_at = gw_time_add(pacer->free_at, time);
}

#endif
