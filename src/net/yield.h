/*
 * Who has nothing to do lets others have the core before he sleeps: what they send meanwhile is
 * there at once, and nobody has to wake him, which costs most of a small sum.
 *
 * Who does that beside those who compute spends his share of the core, and is late when it counts.
 * So whoever comes back late does not do it again for a while.
 */
#ifndef GW_NET_YIELD_H
#define GW_NET_YIELD_H

#include <sched.h>
#include <stdbool.h>

#include "net/clock.h"

#define GW_YIELD_REST (100 * GW_MS)

/* Whether others had the core for more than `most`. `until` is when, by the clock, it may be done
 * again. */
static inline bool gw_yield(gw_time most, gw_time *until)
{
    gw_time before = gw_clock_now();
    sched_yield();
    gw_time now = gw_clock_now();
    bool is_late = now - before > most;
    *until = is_late ? gw_time_add(now, GW_YIELD_REST) : now;
    return is_late;
}

#endif
