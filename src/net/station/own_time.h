/*
 * The time of a process: that of the clock, without what passed while the process did not run
 * (stopped by a signal or a debugger, moved to another machine, without a processor).
 *
 * Whoever did not run has heard nobody, and cannot say that others were silent: what they sent lies
 * in the socket. So nothing that waits, and no session, grows older by more than GW_OWN_TIME_STEP
 * between two looks at the clock, unless the process wanted to sleep for longer.
 */
#ifndef GW_NET_OWN_TIME_H
#define GW_NET_OWN_TIME_H

#include "base/time.h"

#define GW_OWN_TIME_STEP (200 * GW_MS) /* two beats: more than a busy system lets us wait */

/* Times of the clock. */
struct gw_own_time {
    gw_time origin;  /* where the process's own time is 0; moves on while it does not run */
    gw_time seen_at; /* the last look */
    gw_time away;    /* for how long it did not run, the last time, */
    gw_time back_at; /* and its own time then */
};

static inline struct gw_own_time gw_own_time_from(gw_time clock)
{
    return (struct gw_own_time){.origin = clock, .seen_at = clock};
}

/* The process's own time at `clock`. */
static inline gw_time gw_own_time_at(struct gw_own_time *own, gw_time clock)
{
    gw_time passed = clock - own->seen_at;
    own->seen_at = clock;
    if (passed > GW_OWN_TIME_STEP) {
        own->origin += passed - GW_OWN_TIME_STEP;
        own->away = passed;
        own->back_at = clock - own->origin;
    }
    return clock - own->origin;
}

/* The process's own time at the last look. */
static inline gw_time gw_own_time_seen(const struct gw_own_time *own)
{
    return own->seen_at - own->origin;
}

/* The process has slept until `clock`, as it wanted to for at most so long; GW_TIME_NEVER: without
 * an end. */
static inline void gw_own_time_slept(struct gw_own_time *own, gw_time wanted, gw_time clock)
{
    bool has_overslept = wanted != GW_TIME_NEVER && clock - own->seen_at > wanted;
    own->seen_at = has_overslept ? own->seen_at + wanted : clock;
}

#endif
