/*
 * Which gradients of a worker leave next: the order and the size of the pieces in which the tensors
 * of an iteration are handed to whatever moves them.
 *
 * A schedule sees its own options and nothing else: it answers with a size, a limit and three
 * rules. What runs it (scheduler.h) sees which tensors are ready, since when, and how many bytes
 * are under way; it knows no rate, no window, no other worker, and of time only when buffers are
 * fused. One file here and one line in schedule.def make a schedule.
 */
#ifndef GW_WORKLOAD_SCHEDULE_H
#define GW_WORKLOAD_SCHEDULE_H

#include <stdbool.h>

#include "core/algo.h"

enum {
    GW_SCHEDULE_PIECE_MIN = 1024, /* bytes: keeps the number of a large model's pieces in bounds */
};

struct gw_schedule_ops {
    struct gw_algo algo;
    /* Bytes of the largest piece that a tensor is cut into, as gw_schedule_partition() has it;
     * 0: it stays whole. */
    uint64_t (*partition)(const void *cfg);
    /* Another piece leaves while fewer bytes than these are under way; it may overdraw them.
     * UINT64_MAX: always; 0 counts as 1, one piece after the other. */
    uint64_t (*credit)(const void *cfg);
    bool by_layer;          /* of what is ready the frontmost layer goes first; else what has been
                               ready for longest */
    bool after_backward;    /* nothing leaves before the backward pass has ended */
    bool forward_waits_all; /* the next forward pass waits for all tensors; else each layer for its
                               own */
};

extern const struct gw_registry gw_schedule_registry;

/* Schedules that move tensors whole, and as many as are ready, have no options. */
uint64_t gw_schedule_whole(const void *cfg);
uint64_t gw_schedule_unlimited(const void *cfg);

/* The options of those that cut tensors. */
struct gw_schedule_sizes {
    uint64_t partition; /* made whole elements, and at least GW_SCHEDULE_PIECE_MIN; or 0 */
    uint64_t credit;
};

uint64_t gw_schedule_partition(const void *sizes);
uint64_t gw_schedule_credit(const void *sizes);

#endif
