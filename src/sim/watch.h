/*
 * The watched port: what bursts met at the port where they are most likely to wait, or at the one
 * that `metrics.port` names.
 *
 * A burst is inside the port from the arrival of its first data packet until its last one leaves.
 * All is counted by the partition of the port's switch, but for the end of bursts, which the serial
 * phase notices; so it does not depend on the partitions.
 */
#ifndef GW_SIM_WATCH_H
#define GW_SIM_WATCH_H

#include "sim/sim.h"

struct gw_pkt;
struct gw_sim;
struct gw_sim_node;
struct gw_sim_part;

/* Chooses the port, and makes what is counted there; without bursts and without the key nothing.
 * Returns 0, or an error with `why` set. */
int gw_sim_watch_open(struct gw_sim *sim, char *why);
void gw_sim_watch_close(struct gw_sim *sim);

/* A packet arrives at the port's switch, and is handed to it. */
void gw_sim_watch_arrived(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t in,
                          struct gw_pkt *pkt, gw_time now);

/* A packet begins to leave the port. */
void gw_sim_watch_left(struct gw_sim *sim, const struct gw_pkt *pkt, gw_time now);

/* In the serial phase: bursts of which all flows have ended. */
void gw_sim_watch_settle(struct gw_sim *sim);

#endif
