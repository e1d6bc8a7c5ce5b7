/* With metrics.rtt: RTTs of acknowledged packets; see rtt.c and gw_sim_rtt(). */
#ifndef GW_SIM_RTT_H
#define GW_SIM_RTT_H

#include "sim/sim_impl.h"

void gw_sim_rtt_open(struct gw_sim_part *part);

/* Counts an ACK that reaches its host. */
void gw_sim_rtt_add(struct gw_sim_part *part, const struct gw_pkt *ack, gw_time now);

#endif
