/* Running nodes in a window; see node_loop.c. */
#ifndef GW_SIM_NODE_LOOP_H
#define GW_SIM_NODE_LOOP_H

#include "sim/sim_impl.h"

/* Runs `count` places of part->places from the start of the window to its end. */
void gw_sim_run_places(struct gw_sim_part *part, uint32_t count);

#endif
