/* What `gradwire bench` measures of all-reduces, over all ranks of a job. */
#ifndef GW_CLI_BENCH_REDUCE_H
#define GW_CLI_BENCH_REDUCE_H

#include <stdint.h>

#include "gradwire.h"

/* The same on every rank, but for the statistics, which are its own. */
struct gw_bench_reduce {
    double max_abs_error; /* of all ranks; 1e6 stands for all that is larger, and for no number */
    double cpu_s;         /* CPU seconds of all ranks in the timed all-reduces */
    double prepare_cpu_s; /* in making tensors and checking sums, timed or not */
    struct gradwire_stats stats;
};

/*
 * All-reduces `count` float32 tensors, of `tensors[i]` elements each, the last one first as
 * training makes them; once without and then `iters` times with a clock. Each time a sample of the
 * sums is checked, and all of them the last time. `times`, room for `iters` seconds: from a barrier
 * to the end of the slowest rank. Collective: every rank calls it alike. Returns an error of the
 * library.
 */
int gw_bench_reduce(gradwire *job, const uint64_t *tensors, uint32_t count, uint64_t iters,
                    struct gw_bench_reduce *result, double *times);

#endif
