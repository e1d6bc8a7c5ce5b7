/* What `gradwire bench --via send` measures: messages from rank 0 to rank 1, one flow each. */
#ifndef GW_CLI_BENCH_SEND_H
#define GW_CLI_BENCH_SEND_H

#include "cli/reduce.h"

/*
 * Moves `iters` messages of `size` bytes, after one that is not timed, between the two ranks of an
 * open job, and checks every byte. `times`, room for `iters`: seconds, that mean something at rank
 * 0. Returns an error of the library; bytes that are wrong fail as GRADWIRE_ERR_PEER.
 */
int gw_bench_send(gradwire *job, uint64_t size, uint64_t iters, double *times,
                  struct gradwire_stats *stats);

/* Prints what rank 0 measured. Returns an exit status. */
int gw_bench_send_print(const struct gw_reduce_args *args, uint64_t size, const double *times,
                        uint32_t iters, const struct gradwire_stats *stats);

#endif
