/*
 * Notices of bursts in a run: who announces how, what switches and hosts need for that, and what
 * became of them. Without `pcn.enable` nobody announces, and no switch has the stage.
 */
#ifndef GW_SIM_NOTICES_H
#define GW_SIM_NOTICES_H

#include "core/switch/switch_notice.h"
#include "sim/jobs.h"

/* How a flow of the workload is announced. */
struct gw_notice_terms gw_sim_notices_of_flow(const struct gw_sim *sim, uint32_t flow);

/* One notice of a flow that is silent; nothing follows it. */
void gw_sim_notices_send(struct gw_sim_part *part, const struct gw_sim_node *node, uint32_t flow);

/* How a job announces messages between its hosts. Via fragments jobs have numbers of their own. */
struct gw_notice_terms gw_sim_notices_of_job(const struct gw_sim *sim,
                                             const struct gw_job_spec *spec);

/* Its gw_notice_option, for job control. */
uint8_t gw_sim_notices_option(const struct gw_sim *sim, const struct gw_job_spec *spec);

/* The options of the switches' stage; false: they have none. */
bool gw_sim_notices_stage(const struct gw_sim *sim, struct gw_switch_notice_cfg *cfg);

/* In the serial phase: a switch crashes, and its stage is to be made anew. */
void gw_sim_notices_crashed(struct gw_sim *sim, const struct gw_sim_node *node, gw_time now);

/* Adds the announcers that the workload needs; `demands` by host. */
void gw_sim_notices_demand(const struct gw_sim *sim, struct gw_sim_demand *demands);

#endif
