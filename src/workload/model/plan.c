/* The memory of plans, and the one of a job without computation; see plan.h. */
#include "workload/model/plan.h"

#include <stdlib.h>

#include "base/assert.h"
#include "topo/memory.h"

void gw_plan_single(struct gw_plan *plan, uint64_t bytes)
{
    GW_ASSERT(bytes > 0 && bytes % 4 == 0);
    *plan = (struct gw_plan){
        .layers = gw_memory_zeroed(1, sizeof(plan->layers[0])),
        .tensors = gw_memory_zeroed(1, sizeof(plan->tensors[0])),
        .layer_count = 1,
        .tensor_count = 1,
        .bytes = bytes,
    };
    plan->layers[0].tensor_count = 1;
    plan->tensors[0].bytes = bytes;
}

void gw_plan_free(struct gw_plan *plan)
{
    for (uint32_t l = 0; l < plan->layer_count; l++)
        free(plan->layers[l].name);
    free(plan->layers);
    free(plan->tensors);
    *plan = (struct gw_plan){0};
}
