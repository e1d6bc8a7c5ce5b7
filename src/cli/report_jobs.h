/* What reports say of training jobs. */
#ifndef GW_CLI_REPORT_JOBS_H
#define GW_CLI_REPORT_JOBS_H

#include <jansson.h>

#include "cli/report.h"

/* `jobs` of a run's JSON; the caller's reference. */
json_t *gw_report_jobs_json(const struct gw_run_report *run);

/* See gw_sim_fairness(). */
double gw_report_fairness(const struct gw_run_report *run);

/* A line or two for each job. */
void gw_report_jobs_text(const struct gw_run_report *run);

#endif
