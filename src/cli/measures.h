/*
 * What a run's flows and packets achieved, as JSON: the part of a result that figures plot.
 */
#ifndef GW_CLI_MEASURES_H
#define GW_CLI_MEASURES_H

#include "cli/report.h"

/*
 * Adds to the JSON object of a run: `goodput_gbps` of flows, message bytes over completion time;
 * `messages`, what arrived of them, if any may
 * lose a part; `sizes`, the completion times by message size, the smallest first, if there are few
 * sizes; `collectives`, from the first start of each to its last end, 0 unless all its flows
 * completed; `rtt_us` of packets with metrics.rtt; `cwnd_kib` over time with the series of that
 * name, and `rate_gbps`, the sum over all flows; jobs[].series with those of jobs.
 */
void gw_measures_add(const struct gw_run_report *run, json_t *json);

#endif
