/*
 * Distributions of message sizes: from a file, or one of those that papers share.
 *
 * A distribution is a row of points, of bytes and of the probability of a size up to that; both
 * ascend, the last probability is 1, and between two points it is linear. All arithmetic is on
 * integers, so that draws are the same on every machine.
 */
#ifndef GW_WORKLOAD_SIZES_H
#define GW_WORKLOAD_SIZES_H

#include "workload/generate.h"

struct gw_size_point {
    uint64_t bytes;
    uint64_t chance; /* of a size up to `bytes`, in 1/2^32 */
};

struct gw_sizes {
    struct gw_size_point *points;
    uint32_t count, room;
};

/* What a parameter chooses from: a word for the file, then those of papers, for a GW_PARAM_ENUM. */
#define GW_SIZES_CHOICES "file|web-search"

/*
 * Makes the distribution that `choice`, an index into GW_SIZES_CHOICES, names; `file` is the value
 * of the parameter "file", or "". Returns 0, or a negative error with ctx->why set. Either way
 * free(sizes->points) afterwards.
 */
int gw_sizes_make(struct gw_sizes *sizes, uint32_t choice, const char *file,
                  struct gw_workload_ctx *ctx);

/* Size at which the cumulative probability is `chance`, below 2^32; at least 1. */
uint64_t gw_sizes_at(const struct gw_sizes *sizes, uint64_t chance);

/* Mean size in 1/2^32 bytes. */
unsigned __int128 gw_sizes_mean(const struct gw_sizes *sizes);

#endif
