/* What `gradwire bench --via send` measures: messages from rank 0 to rank 1, one flow each. */
#ifndef GW_CLI_BENCH_SEND_H
#define GW_CLI_BENCH_SEND_H

#include "cli/bench_parts.h"
#include "cli/reduce.h"

struct gw_bench_send_cfg {
    uint64_t size; /* bytes */
    uint64_t iters;
    const struct gw_bench_parts_cfg *parts; /* of which the bound counts; of 0: all must arrive */
};

struct gw_bench_send {
    double missing; /* share of the messages; at rank 0 */
    struct gradwire_stats stats;
};

/*
 * Moves `iters` messages of `size` bytes, after one that is not timed, between the two ranks of an
 * open job, and checks every byte that is there. `times`, room for `iters`: seconds, that mean
 * something at rank 0. Returns an error of the library; bytes that are wrong fail as
 * GRADWIRE_ERR_PEER.
 */
int gw_bench_send(gradwire *job, const struct gw_bench_send_cfg *cfg, double *times,
                  struct gw_bench_send *result);

/* Prints what rank 0 measured. Returns an exit status. */
int gw_bench_send_print(const struct gw_reduce_args *args, const struct gw_bench_send_cfg *cfg,
                        const double *times, const struct gw_bench_send *result);

#endif
