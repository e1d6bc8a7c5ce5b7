/* --pcap: what one link carried, as a file; see capture.c. Without the option nothing happens. */
#ifndef GW_SIM_CAPTURE_H
#define GW_SIM_CAPTURE_H

#include "sim/sim_impl.h"

/* Creates the file and marks the link's ports; 0, or an error with `why` set. */
int gw_capture_open(struct gw_sim *sim, char *why);

/* A packet has left a marked port of this node completely at `at`. */
void gw_capture_packet(struct gw_sim *sim, const struct gw_sim_node *node, uint16_t port,
                       const struct gw_pkt *pkt, gw_time at);

/* After the run: writes the file; 0, or an error with sim->why set. */
int gw_capture_write(struct gw_sim *sim);
void gw_capture_close(struct gw_sim *sim);

#endif
