/*
 * Memory that a rank's communicator asks its driver for (core/allocator.h), counted, so that what
 * it does not give back is noticed.
 */
#ifndef GW_SIM_RANK_MEMORY_H
#define GW_SIM_RANK_MEMORY_H

#include <stdlib.h>

#include "base/assert.h"
#include "core/allocator.h"
#include "topo/memory.h"

struct gw_sim_rank_memory {
    uint64_t pieces; /* lent */
};

static inline void *gw_sim_rank_memory_take(void *context, size_t size)
{
    struct gw_sim_rank_memory *lent = context;
    lent->pieces++;
    return gw_memory_aligned(size);
}

static inline void gw_sim_rank_memory_give(void *context, void *memory)
{
    struct gw_sim_rank_memory *lent = context;
    lent->pieces -= memory != NULL;
    free(memory);
}

static inline struct gw_allocator gw_sim_rank_memory_allocator(struct gw_sim_rank_memory *lent)
{
    return (struct gw_allocator){
        .take = gw_sim_rank_memory_take, .give = gw_sim_rank_memory_give, .context = lent};
}

/* All has been given back. */
static inline void gw_sim_rank_memory_check(const struct gw_sim_rank_memory *lent)
{
    GW_ASSERT(lent->pieces == 0);
}

#endif
