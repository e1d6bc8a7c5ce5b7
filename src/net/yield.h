/*
 * Who has nothing to do lets others have the core before he sleeps: what they send meanwhile is
 * there at once, and nobody has to wake him, which costs most of a small sum.
 *
 * Who does that beside those who compute spends his share of the core, and is late when it counts.
 * So whoever comes back late does not do it again for a while. Once is no matter: threads of a
 * kernel that have work twice a second compute for a millisecond or two, and the rest would be a
 * fifth of the time.
 */
#ifndef GW_NET_YIELD_H
#define GW_NET_YIELD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "net/clock.h"

#define GW_YIELD_REST (100 * GW_MS)

/* Times by the clock; of several threads, if need be. */
struct gw_yield {
    _Atomic gw_time rests_until;
    _Atomic gw_time late_at; /* when somebody came back late, last */
};

static inline void gw_yield_init(struct gw_yield *yield, gw_time now)
{
    atomic_init(&yield->rests_until, now);
    atomic_init(&yield->late_at, now - 2 * GW_YIELD_REST);
}

/* It is not to be done now: others need the core. */
static inline bool gw_yield_rests(const struct gw_yield *yield, gw_time now)
{
    gw_time left = atomic_load_explicit(&yield->rests_until, memory_order_relaxed) - now;
    return left - 1 < GW_YIELD_REST; /* not if it was over long ago: times wrap */
}

/* Returns the time after it; the clock says `now` before. Late is who comes back after more than
 * `most`; he rests if it is so again when a rest would just have been over. */
static inline gw_time gw_yield(struct gw_yield *yield, gw_time now, gw_time most)
{
    sched_yield();
    gw_time after = gw_clock_now();
    if (after - now > most) {
        gw_time last = atomic_exchange_explicit(&yield->late_at, after, memory_order_relaxed);
        /* No: it was long ago, or meanwhile, which is another thread's. */
        bool is_again = now - last < 2 * GW_YIELD_REST;
        if (is_again)
            atomic_store_explicit(&yield->rests_until, gw_time_add(after, GW_YIELD_REST),
                                  memory_order_relaxed);
    }
    return after;
}

#endif
