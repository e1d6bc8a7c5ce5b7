/* Faults and routing, at their times; see control.c. */
#ifndef GW_SIM_CONTROL_H
#define GW_SIM_CONTROL_H

#include "sim/sim_impl.h"

/* Something that happens to the network at a given time, in the serial phase. */
struct gw_sim_control {
    gw_time at;
    enum gw_sim_control_kind {
        GW_CONTROL_FAULT_BEGINS,
        GW_CONTROL_FAULT_ENDS,
        GW_CONTROL_ROUTES, /* routing has noticed: compute routes anew */
    } kind;
    uint32_t fault;
};

/* Lists all that the scenario's faults will do. */
void gw_sim_controls_init(struct gw_sim *sim);

/* In the serial phase: everything due at or before `now`. */
void gw_sim_controls(struct gw_sim *sim, gw_time now);

#endif
