/*
 * Training jobs in the simulator, as the rest of it sees them: servers and members on hosts, and
 * the stages of switches that add up.
 */
#ifndef GW_SIM_JOBS_H
#define GW_SIM_JOBS_H

#include "sim/sim_impl.h"

/* Opens the workload's jobs on hosts that exist; 0, or an error with `why` set. */
int gw_sim_jobs_open(struct gw_sim *sim, char *why);
void gw_sim_jobs_close(struct gw_sim *sim);

/* Members that have finished all their iterations. */
uint32_t gw_sim_members_done(const struct gw_sim *sim);

/* The aggregation stage of switch `id`, or NULL when it needs none. */
struct gw_aggregate *gw_sim_aggregate(const struct gw_sim *sim, struct gw_pkt_pool *pool,
                                      uint32_t id);

/* Likewise the stage of SwitchML's slots, with all jobs installed. */
struct gw_slots *gw_sim_slots(const struct gw_sim *sim, struct gw_pkt_pool *pool, uint32_t id);
/* Installs them again; slots that were in use are empty then. */
void gw_sim_slots_install(const struct gw_sim *sim, struct gw_slots *slots, uint32_t id);

/* Lets a member join its job; false when its endpoint has no room. */
bool gw_sim_member_start(struct gw_sim *sim, uint32_t index, gw_time now);

/* True for an event of a job; it has then been handled. */
bool gw_sim_member_event(struct gw_sim_part *part, const struct gw_event *event, gw_time now);

/*
 * In the serial phase: the node at `place` crashes, or is back. The first is called while the core
 * node still is what it was; on return nothing may refer to packets, buffers or the endpoint. Then
 * the node is made anew: applications are detached, a switch's stage knows no job and starts of
 * members are forgotten. The second is called when routes and links are up.
 */
void gw_sim_jobs_crashed(struct gw_sim *sim, uint32_t place, gw_time now);
void gw_sim_jobs_restarted(struct gw_sim *sim, uint32_t place);

#endif
