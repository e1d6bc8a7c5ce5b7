/* What `gradwire bench` measures of all-reduces, over all ranks of a job. */
#ifndef GW_CLI_BENCH_REDUCE_H
#define GW_CLI_BENCH_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/bench_parts.h"
#include "gradwire.h"

/* The same on every rank, but for the statistics, which are its own. */
struct gw_bench_reduce {
    double max_abs_error; /* 1e6 stands for all that is larger, and for no number. Of all ranks;
                             after an error of this one alone, up to the error. */
    double cpu_s;         /* CPU seconds of all ranks in the timed all-reduces */
    struct gw_bench_missing missing; /* as every rank is told */
    struct gradwire_stats stats;
};

struct gw_bench_reduce_cfg {
    const uint64_t *tensors; /* elements of each; the last comes first, as in training */
    uint32_t count;
    uint64_t iters;
    bool checks_all;                        /* sums each time, not a sample of them */
    const struct gw_bench_parts_cfg *parts; /* what they may lose */
    double pause_s; /* between the barrier that all ranks pass and the all-reduces */
};

/* Element `i` of rank's tensors, which go on from one iteration to the next: between -1 and 1. */
float gw_bench_element(uint32_t rank, uint64_t i);

/*
 * All-reduces float32 tensors, once without and then `iters` times with a clock. Each time a sample
 * of the sums is checked, and all of them the last time. `times`, room for `iters` seconds: from
 * the barrier, and the pause, to the end of the slowest rank. Collective: every rank calls it
 * alike. Returns an error of the library.
 */
int gw_bench_reduce(gradwire *job, const struct gw_bench_reduce_cfg *cfg,
                    struct gw_bench_reduce *result, double *times);

#endif
