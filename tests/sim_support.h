/*
 * Runs of the simulator for tests: a scenario is loaded, opened and run in one call that fails the
 * test when any of that fails.
 */
#ifndef GW_TESTS_SIM_SUPPORT_H
#define GW_TESTS_SIM_SUPPORT_H

#include "sim/sim.h"

enum {
    GW_TEST_PATH_MAX = 64, /* of a temporary file */
};

struct gw_test_sim {
    struct gw_scenario scenario;
    struct gw_sim *sim;
    struct gw_sim_totals totals;        /* once it has run */
    const struct gw_flow_result *flows; /* of scenario.workload, by index */
};

/* One thread and the seed. */
#define GW_TEST_SIM_OPTIONS(seed_value)                                                            \
    {                                                                                              \
        .seed = (seed_value), .threads = 1                                                         \
    }

/*
 * Loads a scenario, the text of a file or the name of one below the source folder, with overrides
 * "key=value; key=value", formatted as by printf; "" for none. The simulation is open, not run.
 * Which link a pcap file records is said by the scenario, as on the command line.
 */
void gw_test_sim_open(struct gw_test_sim *run, const struct gw_sim_options *options,
                      const char *scenario, const char *set, ...)
    __attribute__((format(printf, 4, 5)));

/* Runs it to its end. */
void gw_test_sim_finish(struct gw_test_sim *run);

/* Open and finish. */
void gw_test_sim_run(struct gw_test_sim *run, const struct gw_sim_options *options,
                     const char *scenario, const char *set, ...)
    __attribute__((format(printf, 4, 5)));

void gw_test_sim_close(struct gw_test_sim *run);

/* Writes `text` to a new file, whose name the caller unlinks. */
void gw_test_write_file(char path[GW_TEST_PATH_MAX], const char *text);

/* Time that `bytes` take at `rate_bps`; fails the test unless that is a whole picosecond. */
gw_time gw_test_exact_time(uint64_t bytes, uint64_t rate_bps);

#endif
