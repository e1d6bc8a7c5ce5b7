/*
 * Bursts, and the port where they wait, in reports of simulation runs.
 *
 * Include this from reports only.
 */
#ifndef GW_CLI_REPORT_BURSTS_H
#define GW_CLI_REPORT_BURSTS_H

#include "cli/report.h"

/* Adds what was measured of bursts and of the watched port, if there is one, and of notices. */
void gw_report_bursts_add(const struct gw_run_report *run, json_t *json);

/* Prints a line for each of these. */
void gw_report_bursts_text(const struct gw_run_report *run);

#endif
