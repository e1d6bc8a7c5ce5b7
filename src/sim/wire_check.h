/* --wire: packets pass through encode and decode; see wire_check.c. */
#ifndef GW_SIM_WIRE_CHECK_H
#define GW_SIM_WIRE_CHECK_H

#include "sim/sim_impl.h"

/* Whether the packet is the same after encode and decode. */
bool gw_sim_survives_wire(const struct gw_sim_part *part, const struct gw_pkt *pkt, gw_time now);

#endif
