/*
 * Triggers of the workload: flows that end fire them, and they start other flows.
 *
 * A trigger crosses hosts, so what it starts begins one window after the flow that fired it ended,
 * or after the trigger's delay if that is longer.
 */
#ifndef GW_SIM_TRIGGERS_H
#define GW_SIM_TRIGGERS_H

#include <stdint.h>

#include "base/time.h"

struct gw_sim;
struct gw_sim_part;

/* A trigger that a flow fired in the window that just ran. */
struct gw_sim_firing {
    gw_time at;
    uint32_t flow;
    uint32_t trigger;
};

/* Flow `flow` fires a trigger; GW_TRIGGER_NONE: nothing happens. */
void gw_sim_trigger_fire(struct gw_sim_part *part, uint32_t trigger, uint32_t flow, gw_time at);

/* In the serial phase: starts what the firings of the last window start, in the order of time. */
void gw_sim_triggers(struct gw_sim *sim);

#endif
