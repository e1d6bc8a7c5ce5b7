/* The memory of plans, and those of jobs without computation; see plan.h. */
#include "workload/model/plan.h"

#include <stdlib.h>

#include "base/assert.h"
#include "topo/memory.h"

void gw_plan_row(struct gw_plan *plan, const uint64_t *bytes, uint32_t count)
{
    *plan = (struct gw_plan){
        .layers = gw_memory_zeroed(1, sizeof(plan->layers[0])),
        .tensors = gw_memory_zeroed(count, sizeof(plan->tensors[0])),
        .layer_count = 1,
        .tensor_count = count,
    };
    plan->layers[0].tensor_count = count;
    for (uint32_t i = 0; i < count; i++) {
        GW_ASSERT(bytes[i] > 0);
        plan->tensors[i].bytes = bytes[i];
        plan->bytes += bytes[i];
    }
}

void gw_plan_single(struct gw_plan *plan, uint64_t bytes)
{
    GW_ASSERT(bytes % 4 == 0);
    gw_plan_row(plan, &bytes, 1);
}

void gw_plan_free(struct gw_plan *plan)
{
    for (uint32_t l = 0; l < plan->layer_count; l++)
        free(plan->layers[l].name);
    free(plan->layers);
    free(plan->tensors);
    *plan = (struct gw_plan){0};
}
