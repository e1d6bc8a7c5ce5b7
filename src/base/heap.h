/*
 * Indexed binary min-heap of timers: each of a fixed number of ids has at most one deadline.
 *
 * Equal deadlines leave in the order of their ids, so the order of expiry does not depend on the
 * order of arming. Invariant: no parent's (deadline, id) lies after its child's.
 */
#ifndef GW_BASE_HEAP_H
#define GW_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

struct gw_heap_entry {
    gw_time deadline;
    uint32_t id;
};

struct gw_heap {
    struct gw_heap_entry *entries;
    uint32_t *position; /* of each id in `entries`; GW_HEAP_ABSENT when not armed */
    uint32_t count;
    uint32_t limit; /* ids are below this */
};

#define GW_HEAP_ABSENT UINT32_MAX

/* Bytes of memory that gw_heap_init() needs for ids below `limit`. */
size_t gw_heap_size(uint32_t limit);

/* Makes an empty heap in `memory`, aligned to 8. */
void gw_heap_init(struct gw_heap *heap, void *memory, uint32_t limit);

/* Arms `id` or moves its deadline; GW_TIME_NEVER disarms it. */
void gw_heap_set(struct gw_heap *heap, uint32_t id, gw_time deadline);

/* Earliest deadline, GW_TIME_NEVER when nothing is armed. */
static inline gw_time gw_heap_next(const struct gw_heap *heap)
{
    return heap->count ? heap->entries[0].deadline : GW_TIME_NEVER;
}

/* Id of the earliest deadline; the heap must not be empty. */
static inline uint32_t gw_heap_first(const struct gw_heap *heap)
{
    return heap->entries[0].id;
}

/* Deadline of `id`, GW_TIME_NEVER when it is not armed. */
static inline gw_time gw_heap_deadline(const struct gw_heap *heap, uint32_t id)
{
    uint32_t at = heap->position[id];
    return at == GW_HEAP_ABSENT ? GW_TIME_NEVER : heap->entries[at].deadline;
}

#endif
