/*
 * Stalls: what has made no progress for too long is given up.
 *
 * The owner keeps the time of the last progress, and a limit; 0 means that it waits for ever.
 */
#ifndef GW_BASE_STALL_H
#define GW_BASE_STALL_H

#include "base/time.h"

/* When it will have stalled, unless there is progress before; GW_TIME_NEVER: not at all. */
static inline gw_time gw_stall_at(gw_time progress_at, gw_time limit)
{
    return limit ? gw_time_add(progress_at, limit) : GW_TIME_NEVER;
}

/* Whether it has stalled. Progress may lie behind `now`: then it has not. */
static inline bool gw_stall_is_over(gw_time progress_at, gw_time limit, gw_time now)
{
    return limit && !gw_time_before(now, gw_stall_at(progress_at, limit));
}

#endif
