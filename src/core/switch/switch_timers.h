/*
 * The timers of a switch, in one heap: those of the switch as a whole, and one of each kind for
 * every port. The node's deadline is always the earliest of them.
 *
 * A kind is a line in an enum here and a case in switch_expire(); its owner moves its own timers.
 */
#ifndef GW_CORE_SWITCH_TIMERS_H
#define GW_CORE_SWITCH_TIMERS_H

#include "base/heap.h"
#include "core/node.h"

enum gw_switch_timer {
    GW_SWITCH_TIMER_JOBS,   /* jobs whose server may have fallen silent are looked for */
    GW_SWITCH_TIMER_SWEEP,  /* aggregators that nobody will come for are looked for */
    GW_SWITCH_TIMER_NOTICE, /* announcements that are too old are looked for */
    GW_SWITCH_TIMERS,
};

enum gw_port_timer {
    GW_PORT_TIMER_TELL, /* the other end of the link is told to hold data back, or to go on */
    GW_PORT_TIMER_GATE, /* the time of a PAUSE is over */
    GW_PORT_TIMERS,
};

struct gw_switch_timers {
    struct gw_heap heap; /* ids: gw_switch_timer, then for each gw_port_timer all ports */
    struct gw_node *node;
};

static inline uint32_t gw_switch_timer_count(uint16_t port_count)
{
    return GW_SWITCH_TIMERS + GW_PORT_TIMERS * (uint32_t)port_count;
}

/* Moves a timer of the switch to `at`; GW_TIME_NEVER disarms it. */
static inline void gw_switch_timer_set(struct gw_switch_timers *timers, uint32_t id, gw_time at)
{
    gw_heap_set(&timers->heap, id, at);
    timers->node->deadline = gw_heap_next(&timers->heap);
}

/* The same for a timer of a port. */
static inline void gw_port_timer_set(struct gw_switch_timers *timers, enum gw_port_timer kind,
                                     uint16_t port, gw_time at)
{
    gw_switch_timer_set(timers, GW_SWITCH_TIMERS + kind * timers->node->port_count + port, at);
}

static inline bool gw_switch_timer_is_armed(const struct gw_switch_timers *timers,
                                            enum gw_switch_timer id)
{
    return gw_heap_deadline(&timers->heap, id) != GW_TIME_NEVER;
}

/* Disarms the earliest timer that is due and stores its id; false: none is due. */
static inline bool gw_switch_timer_pop(struct gw_switch_timers *timers, gw_time now, uint32_t *id)
{
    if (timers->heap.count == 0 || gw_time_before(now, gw_heap_next(&timers->heap)))
        return false;
    *id = gw_heap_first(&timers->heap);
    gw_switch_timer_set(timers, *id, GW_TIME_NEVER);
    return true;
}

#endif
