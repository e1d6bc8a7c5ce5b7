/* The nodes of a run; see nodes.c. */
#ifndef GW_SIM_NODES_H
#define GW_SIM_NODES_H

#include "sim/sim_impl.h"

/* Makes all nodes. Returns 0, or a negative error with `why` set. */
int gw_sim_nodes_open(struct gw_sim *sim, char *why);
void gw_sim_nodes_close(struct gw_sim *sim);

/* Makes a place's core node in its memory, empty, with the random stream of a new life. */
void gw_sim_node_make(struct gw_sim *sim, uint32_t place);

#endif
