/* Random jobs that make calls, as entries of the list `workload`: as random_jobs.h. */
#ifndef GW_TESTS_RANDOM_CALL_JOBS_H
#define GW_TESTS_RANDOM_CALL_JOBS_H

#include "swarm/random_jobs.h"

/* Whether such a job fits: it has two ranks and a server at least. */
bool gw_random_call_jobs_fit(const struct gw_scenario *network);

/* Writes one entry. */
void gw_random_call_jobs_write(const struct gw_random_jobs *jobs);

#endif
