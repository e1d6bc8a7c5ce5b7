/*
 * Random training jobs for random scenarios: entries of the list `workload`.
 *
 * Times are drawn from the scenario's host.stall, which bounds how long a job can go on without
 * progress, so that every job ends whatever happens to its network.
 */
#ifndef GW_TESTS_RANDOM_JOBS_H
#define GW_TESTS_RANDOM_JOBS_H

#include <stdio.h>

#include "base/prng.h"
#include "config/scenario.h"

struct gw_random_jobs {
    FILE *out;
    struct gw_prng *prng;
    const struct gw_scenario *network; /* with the scenario's section `host` */
    uint64_t packets;                  /* that all workers together may send, about */
    gw_time horizon;                   /* about how long the run takes without faults */
};

/* Whether jobs can run there: each host has one link, to a switch. */
bool gw_random_jobs_fit(const struct gw_scenario *network);

/* Writes one entry. */
void gw_random_jobs_write(const struct gw_random_jobs *jobs);

#endif
