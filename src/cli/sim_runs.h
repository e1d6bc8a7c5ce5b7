/*
 * The runs of one `gradwire sim`: all points of the scenario's sweep, each with all seeds, one
 * after the other; with progress, reports and files.
 */
#ifndef GW_CLI_SIM_RUNS_H
#define GW_CLI_SIM_RUNS_H

#include <stdio.h>

#include "config/scenario.h"

enum {
    GW_SIM_OVERRIDES_MAX = 256,
};

/* What the command line asks for. */
struct gw_sim_args {
    const char *scenario;
    struct gw_override overrides[GW_SIM_OVERRIDES_MAX];
    uint32_t override_count;
    uint64_t seed, seeds, threads;
    bool has_seed;
    bool wire, json;
    const char *out, *pcap, *timeline;
};

/* Both complain themselves, and return an exit status. */
int gw_sim_runs(const struct gw_sim_args *args);
/* Whether all points of a sweep could run. */
int gw_sim_check(const struct gw_sim_args *args);

#endif
