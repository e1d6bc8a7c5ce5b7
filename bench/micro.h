/*
 * The micro benchmarks' common part: a list of operations to measure, and what they measure with.
 *
 * To measure something else, write a function that does it `count` times and add it to the suite in
 * one of micro_*.c; what it needs it prepares once, in memory of gw_bench_take().
 */
#ifndef GW_BENCH_MICRO_H
#define GW_BENCH_MICRO_H

#include <stddef.h>
#include <stdint.h>

#include "core/switch/aggregate.h"
#include "core/path.h"

enum {
    GW_BENCH_BATCH = 64,    /* operations between two steps of time; `count` is a multiple */
    GW_BENCH_INPUTS = 1024, /* prepared random inputs, a power of two */
    GW_BENCH_MTU = 4096,
    GW_BENCH_HDR = 64,
    GW_BENCH_BDP = 1145300,
};

/* Three tiers at 800 Gb/s, with links of 600 ns and switches of 400 ns. */
extern const struct gw_path gw_bench_path;

/* What an operation found out goes here, so that the compiler cannot leave it out. */
extern volatile uint64_t gw_bench_sink;

struct gw_bench_suite;

/* Does the operation `count` times. */
typedef void gw_bench_run(void *state, uint64_t count);

/* Zeroed memory, aligned to 64, for the whole run; ends the program when there is none. */
void *gw_bench_take(size_t size);

/* Adds an operation. */
void gw_bench_add(struct gw_bench_suite *suite, const char *name, gw_bench_run *run, void *state);

/* An aggregation stage for one job, which it knows. */
struct gw_aggregate *gw_bench_aggregate(struct gw_pkt_pool *pool, uint32_t aggregators,
                                        const struct gw_aggregate_job *job);

/* The operations of micro_algo.c, micro_node.c, micro_data.c, micro_aggregate.c, micro_reduce.c and
 * micro_net.c. */
void gw_bench_add_algos(struct gw_bench_suite *suite);
void gw_bench_add_nodes(struct gw_bench_suite *suite);
void gw_bench_add_data(struct gw_bench_suite *suite);
void gw_bench_add_aggregate(struct gw_bench_suite *suite);
void gw_bench_add_reduce(struct gw_bench_suite *suite);
void gw_bench_add_net(struct gw_bench_suite *suite);

#endif
