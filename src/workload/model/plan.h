/*
 * What one worker does in one iteration of training: how long each layer computes, forward and
 * backward, and which tensors of gradients come out of it.
 *
 * A job without computation, which sums one tensor over and over, is the plan of one layer that
 * takes no time.
 */
#ifndef GW_WORKLOAD_PLAN_H
#define GW_WORKLOAD_PLAN_H

#include "base/time.h"

struct gw_plan_layer {
    char *name; /* of the model's; NULL: it has none */
    gw_time forward;
    gw_time backward;
    uint32_t first_tensor;
    uint32_t tensor_count; /* 0: nothing to learn in this layer */
};

/* A tensor of gradients: there when its layer's backward pass ends. */
struct gw_plan_tensor {
    uint32_t layer;
    uint64_t bytes; /* as they travel: of gradients, a multiple of 4 */
};

struct gw_plan {
    struct gw_plan_layer *layers;   /* front to back */
    struct gw_plan_tensor *tensors; /* by layer, weights before biases */
    uint32_t layer_count;
    uint32_t tensor_count;
    uint64_t bytes;            /* of all tensors */
    gw_time forward, backward; /* of all layers, exactly */
};

/* One layer that takes no time, with one tensor; `bytes` is a multiple of 4 and not 0. */
void gw_plan_single(struct gw_plan *plan, uint64_t bytes);

/* One layer that takes no time, with `count` tensors of so many bytes each, none of them 0. */
void gw_plan_row(struct gw_plan *plan, const uint64_t *bytes, uint32_t count);

/* Takes back what gw_plan_single(), gw_plan_row() or gw_plan_make() (compute.h) has made. */
void gw_plan_free(struct gw_plan *plan);

#endif
