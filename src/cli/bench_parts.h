/*
 * All-reduces of `gradwire bench` that may lose a part: their options, what was missing, and
 * whether the sums are those of the ranks that have contributed.
 */
#ifndef GW_CLI_BENCH_PARTS_H
#define GW_CLI_BENCH_PARTS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradwire.h"

struct gw_bench_parts_cfg {
    bool is_given; /* a bound, if only of 0: losses are of interest */
    double bound, bound_pull;
    enum gradwire_importance importance;
    bool important_first;
};

/* An argp child that parses into a struct gw_bench_parts_cfg as its input. */
extern const struct argp gw_bench_parts_argp;

/* Whether the options say something together, of messages (`is_send`) or of tensors that go `via`;
 * else complains. */
bool gw_bench_parts_check_cfg(const struct gw_bench_parts_cfg *cfg, enum gradwire_via via,
                              bool is_send);

/* What is missing of all all-reduces that are timed, and in any one of the most; shares of the
 * ranks' fragments. */
struct gw_bench_missing {
    double contributions; /* that results do without, or no rank has a result of */
    double results;       /* that no rank has */
    double most_left_out; /* of one all-reduce: contributions that results do without */
    double most_results;  /* and results that no rank has */
};

/* Whether each all-reduce has kept to the bounds; else complains. */
bool gw_bench_parts_kept(const struct gw_bench_missing *missing,
                         const struct gw_bench_parts_cfg *cfg);

struct gw_bench_parts;

/* Of tensors with so many elements each. NULL: out of memory. The tensors are the layers of a
 * network, the first at its front. */
struct gw_bench_parts *gw_bench_parts_open(const gradwire *job,
                                           const struct gw_bench_parts_cfg *cfg,
                                           const uint64_t *tensors, uint32_t count);
void gw_bench_parts_close(struct gw_bench_parts *parts);

/* Options of the all-reduce of a tensor; NULL: it may lose nothing. */
const struct gradwire_call_options *gw_bench_parts_options(const struct gw_bench_parts *parts,
                                                           uint32_t tensor);

/*
 * The largest error of a tensor's sums, each compared with the sum of as many ranks as have
 * contributed to its fragment. All elements are looked at, or with `is_sample` a few.
 */
double gw_bench_parts_check(struct gw_bench_parts *parts, uint32_t tensor, const float *sums,
                            uint64_t first, bool is_sample);

/* Collective. False in *are_equal: not all ranks have the same sums in `size` bytes at `data`.
 * Returns an error of the library, after which nothing speaks against them. */
int gw_bench_parts_compare(gradwire *job, const void *data, size_t size, bool *are_equal);

/* Collective: all ranks are there. Where losses are of interest one that is lost here is made good
 * for at once, so that none waits for others in its first all-reduce. */
int gw_bench_parts_meet(gradwire *job, const struct gw_bench_parts *parts);

/* Counts what the all-reduces just done are missing. */
void gw_bench_parts_count(struct gw_bench_parts *parts);

struct gw_bench_missing gw_bench_parts_missing(const struct gw_bench_parts *parts);

#endif
