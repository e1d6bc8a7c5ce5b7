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

/* Returns the time after it; the clock says `now` before. `until` is when it may be done again:
 * later, if others had the core for more than `most`. */
static inline gw_time gw_yield(gw_time now, gw_time most, gw_time *until)
{
    sched_yield();
    gw_time after = gw_clock_now();
    *until = after - now > most ? gw_time_add(after, GW_YIELD_REST) : after;
    return after;
}

#endif
