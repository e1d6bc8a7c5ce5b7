/* Plans made by hand, and schedulers over them, for the tests of schedules. */
#ifndef GW_TESTS_SCHEDULE_FIXTURE_H
#define GW_TESTS_SCHEDULE_FIXTURE_H

#include <stdio.h>

#include "unit/topo/topo_fixture.h"

#include "base/prng.h"
#include "workload/schedule/scheduler.h"

enum {
    HAND_LAYERS_MAX = 64,
};

/* A plan in place: layers of up to two tensors. */
struct hand_plan {
    struct gw_plan plan;
    struct gw_plan_layer layers[HAND_LAYERS_MAX];
    struct gw_plan_tensor tensors[2 * HAND_LAYERS_MAX];
};

static inline void hand_plan_init(struct hand_plan *hand)
{
    *hand = (struct hand_plan){.plan = {.layers = hand->layers, .tensors = hand->tensors}};
}

/* Appends a layer with a tensor of weights and one of biases; 0 bytes: without. */
static inline void hand_plan_add(struct hand_plan *hand, uint64_t weights, uint64_t biases,
                                 gw_time forward)
{
    struct gw_plan *plan = &hand->plan;
    assert_true(plan->layer_count < HAND_LAYERS_MAX);
    struct gw_plan_layer *layer = &hand->layers[plan->layer_count];
    *layer = (struct gw_plan_layer){
        .forward = forward, .backward = 2 * forward, .first_tensor = plan->tensor_count};
    const uint64_t bytes[] = {weights, biases};
    for (int i = 0; i < 2; i++) {
        if (!bytes[i])
            continue;
        hand->tensors[plan->tensor_count++] =
            (struct gw_plan_tensor){.layer = plan->layer_count, .bytes = bytes[i]};
        layer->tensor_count++;
        plan->bytes += bytes[i];
    }
    plan->layer_count++;
    plan->forward += forward;
    plan->backward += 2 * forward;
}

/* A scheduler, with its schedule's settings as in "partition=4KB credit=8KB". */
static inline struct gw_scheduler *scheduler_open(const struct gw_plan *plan, const char *schedule,
                                                  const char *settings, uint64_t fusion,
                                                  gw_time cycle)
{
    const struct gw_algo *algo = gw_registry_find(&gw_schedule_registry, schedule);
    assert_non_null(algo);
    union gw_algo_cfg cfg;
    build_settings(algo, &cfg, settings);
    return gw_scheduler_open(&(struct gw_scheduler_cfg){
        .ops = (const void *)algo, .cfg = &cfg, .plan = plan, .fusion = fusion, .cycle = cycle});
}

/* The backward pass of one layer ends. */
static inline void layer_ready(struct gw_scheduler *scheduler, const struct gw_plan *plan,
                               uint32_t layer, gw_time now)
{
    const struct gw_plan_layer *l = &plan->layers[layer];
    for (uint32_t t = l->tensor_count; t-- > 0;)
        gw_scheduler_ready(scheduler, l->first_tensor + t, now);
}

#endif
