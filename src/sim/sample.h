/* Sampled series; see sample.c and gw_sim_samples(). */
#ifndef GW_SIM_SAMPLE_H
#define GW_SIM_SAMPLE_H

#include "sim/sim_impl.h"

/* In the serial phase: takes all samples that are due at or before `now`. */
void gw_sim_sample(struct gw_sim *sim, gw_time now);

/* Adds a value to the samples. */
void gw_sim_sample_add(struct gw_sim *sim, struct gw_sample sample);

#endif
