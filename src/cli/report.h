/*
 * Reports of simulation runs: JSON, text for people, CSV files.
 */
#ifndef GW_CLI_REPORT_H
#define GW_CLI_REPORT_H

#include <jansson.h>

#include "sim/sim.h"

enum {
    GW_REPORT_DIGITS = 12, /* of a number in JSON */
};

/* What the machine did; not a part of the result. */
struct gw_host_report {
    uint32_t threads;
    double wall_s;
    double peak_rss_mb;
};

/* One finished run. */
struct gw_run_report {
    const struct gw_scenario *scenario;
    const struct gw_sim *sim;
    const struct gw_override *params; /* every overridden key */
    uint32_t param_count;
    uint64_t seed;
    struct gw_host_report host;
};

/* The run as a JSON object; the caller owns it. NULL: it has none, see gw_json_print(). */
json_t *gw_report_json(const struct gw_run_report *run);

/* The run as text on standard output: a table and a histogram of completion times. */
void gw_report_text(const struct gw_run_report *run);

/*
 * Writes flows.csv, result.json and, if there are samples, series.csv into `directory`, which must
 * exist. Returns 0, or a negative error after a complaint that names the file.
 */
int gw_report_files(const struct gw_run_report *run, const char *directory);

/*
 * Prints the entries of the registry called `kind` with their parameters. Returns an exit status:
 * GW_EXIT_USAGE when there is no such registry.
 */
int gw_report_list(const char *kind, bool as_json);

/* The names of all registries, for messages: "cc, lb, ..."; to be freed. */
char *gw_report_kinds(void);

#endif
