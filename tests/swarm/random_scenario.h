/*
 * Random scenarios: small networks with small workloads and faults, written as the files that the
 * simulator's users write.
 *
 * Each scenario first draws which features it has at all, so that some runs combine few of them and
 * others many. Whatever a registry lists is covered: parameters are drawn by their type around
 * their defaults, and only what decides how large a network or a message becomes is bounded by
 * name.
 */
#ifndef GW_TESTS_RANDOM_SCENARIO_H
#define GW_TESTS_RANDOM_SCENARIO_H

#include "sim/sim.h"

enum {
    GW_RANDOM_PATH_MAX = 512,
};

struct gw_random_scenario {
    char file[GW_RANDOM_PATH_MAX]; /* the YAML file; other files lie beside it */
    struct gw_sim_options options; /* seed, --wire and pcap_link; everything else is zero */
};

/*
 * Writes the scenario that `seed` means into `directory`, which must exist and is best empty; files
 * of an earlier one are replaced. Fails the test when its own network does not load.
 */
void gw_random_scenario_write(struct gw_random_scenario *random, const char *directory,
                              uint64_t seed);

/* Removes the files. */
void gw_random_scenario_remove(const char *directory);

#endif
