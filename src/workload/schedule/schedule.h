/*
 * Which gradients of a worker leave next: the order and the size of the pieces in which the tensors
 * of an iteration are handed to whatever moves them.
 *
 * A schedule decides about ready tensors; scheduler.h runs one. It knows no time and no network.
 * One file here and one line in schedule.def make a schedule.
 */
#ifndef GW_WORKLOAD_SCHEDULE_H
#define GW_WORKLOAD_SCHEDULE_H

#include <stdbool.h>

#include "core/algo.h"

struct gw_schedule_ops {
    struct gw_algo algo;
    /* Bytes of the largest piece that a tensor is cut into, a multiple of 4; 0: it stays whole. */
    uint64_t (*partition)(const void *cfg);
    /* Bytes that may be under way when another piece leaves; UINT64_MAX: any number. */
    uint64_t (*credit)(const void *cfg);
    bool by_layer;          /* of what is ready the frontmost layer goes first; else what has been
                               ready for longest */
    bool after_backward;    /* nothing leaves before the backward pass has ended */
    bool forward_waits_all; /* the next forward pass waits for all tensors; else each layer for its
                               own */
};

extern const struct gw_registry gw_schedule_registry;

#endif
