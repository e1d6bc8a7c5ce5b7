/* Crashes of nodes; see crash.c. */
#ifndef GW_SIM_CRASH_H
#define GW_SIM_CRASH_H

#include "sim/sim_impl.h"

/*
 * In the serial phase: one fault that keeps a node crashed begins, or ends. Faults may overlap.
 * `until` is when this one will end; GW_TIME_NEVER: never.
 */
void gw_sim_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until);
void gw_sim_restart(struct gw_sim *sim, uint32_t place);

#endif
