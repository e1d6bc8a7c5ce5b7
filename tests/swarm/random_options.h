/* Options of algorithms, drawn one by one, that hold together. */
#ifndef GW_TESTS_RANDOM_OPTIONS_H
#define GW_TESTS_RANDOM_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/prng.h"
#include "core/algo.h"

struct gw_random_options {
    const struct gw_algo *algo;
    union gw_algo_cfg cfg; /* as drawn so far */
    uint64_t drawn;        /* bit i: parameter i */
};

/* What sizes and rates are drawn by. */
struct gw_random_scale {
    uint64_t mtu;      /* bytes */
    uint64_t bdp;      /* bytes */
    uint64_t rate_bps; /* of most links */
};

/* Those of a preset; NULL: the defaults. */
struct gw_random_options gw_random_options_of(const struct gw_algo *algo, const char *preset);

/* Draws a parameter by its type, around its default, and writes it as a line of a section. Nothing
 * is written for what has no scale, contradicts what was drawn before, or replaces it. */
void gw_random_options_write(struct gw_random_options *options, uint32_t index,
                             const struct gw_random_scale *scale, FILE *out, struct gw_prng *prng);

#endif
