/* What must hold after every run; see audit.c. */
#ifndef GW_SIM_AUDIT_H
#define GW_SIM_AUDIT_H

#include "sim/sim_impl.h"

/* Checks the invariants after a run; 0, or an error with sim->why set. */
int gw_sim_audit(struct gw_sim *sim);

/* Checks the ports of a core node that is about to be destroyed, and keeps its counters. */
void gw_sim_audit_crash(struct gw_sim *sim, uint32_t place);

#endif
