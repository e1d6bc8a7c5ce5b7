/* Source routing: the paths of each flow, and of each line of a job, as labels; see labels.c. */
#ifndef GW_SIM_LABELS_H
#define GW_SIM_LABELS_H

#include "sim/sim_impl.h"

/* Routes are new. */
void gw_sim_labels_renew(struct gw_sim *sim);

/* A flow starts: its paths, valid until release; NULL without source routing. */
const struct gw_path_labels *gw_sim_labels_claim(struct gw_sim *sim, uint32_t flow);
void gw_sim_labels_release(struct gw_sim *sim, uint32_t flow);

/* Before the run: the paths of all flows from one host to another that a job will start, valid
 * until close; NULL without source routing. */
const struct gw_path_labels *gw_sim_labels_between(struct gw_sim *sim, uint32_t src, uint32_t dst);

void gw_sim_labels_close(struct gw_sim *sim);

#endif
