/*
 * What the members of training jobs did when, for --timeline: spans of computation, of pieces under
 * way, and bursts. Without the option nothing is kept.
 *
 * A span is written when its end is known. A member keeps at most SPANS_MAX (timeline.c) of them;
 * more are counted and forgotten.
 */
#ifndef GW_SIM_TIMELINE_H
#define GW_SIM_TIMELINE_H

#include "sim/jobs_impl.h"

/* NULL, unless the run is to have a timeline. */
struct gw_sim_timeline *gw_sim_timeline_open(const struct gw_sim *sim,
                                             const struct gw_sim_job *job);
void gw_sim_timeline_close(struct gw_sim_timeline *timeline);

/* The member computes a layer until member->layer_end. */
void gw_sim_timeline_compute(const struct gw_sim_member *member, gw_time now);

/* A piece is handed out, or done; `moving`: pieces that are under way then. */
void gw_sim_timeline_moves(const struct gw_sim_member *member, uint32_t berth, uint32_t moving,
                           gw_time now);
void gw_sim_timeline_moved(const struct gw_sim_member *member, uint32_t berth, uint32_t moving,
                           gw_time now);

/* The member ends: it may have been computing. */
void gw_sim_timeline_end(const struct gw_sim_member *member, gw_time now);

#endif
