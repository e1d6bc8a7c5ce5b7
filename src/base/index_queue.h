/*
 * A first-in first-out queue in a circle over an array of its owner: says which element to write
 * and which to read, and holds none itself.
 *
 * Any room is allowed; no step divides. Invariant: head < room, unless room is 0; count <= room.
 */
#ifndef GW_BASE_INDEX_QUEUE_H
#define GW_BASE_INDEX_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct gw_index_queue {
    uint32_t room; /* elements of the array, at most 2^31 */
    uint32_t head; /* element of the oldest entry */
    uint32_t count;
};

static inline void gw_index_queue_init(struct gw_index_queue *queue, uint32_t room)
{
    *queue = (struct gw_index_queue){.room = room};
}

static inline void gw_index_queue_clear(struct gw_index_queue *queue)
{
    queue->head = queue->count = 0;
}

static inline bool gw_index_queue_is_full(const struct gw_index_queue *queue)
{
    return queue->count == queue->room;
}

/* Element of the entry that has `at` older ones before it; `at` may be count: the next to push. */
static inline uint32_t gw_index_queue_at(const struct gw_index_queue *queue, uint32_t at)
{
    uint32_t element = queue->head + at;
    return element < queue->room ? element : element - queue->room;
}

/* Appends an entry, for which there must be room; returns the element to write. */
static inline uint32_t gw_index_queue_push(struct gw_index_queue *queue)
{
    GW_DEBUG_ASSERT(queue->count < queue->room);
    return gw_index_queue_at(queue, queue->count++);
}

/* Removes the oldest `count` entries, which must be there; returns the element of the first. */
static inline uint32_t gw_index_queue_pop_many(struct gw_index_queue *queue, uint32_t count)
{
    GW_DEBUG_ASSERT(count <= queue->count);
    uint32_t first = queue->head;
    queue->head = gw_index_queue_at(queue, count);
    queue->count -= count;
    return first;
}

/* Removes the oldest entry, which must be there; returns the element to read. */
static inline uint32_t gw_index_queue_pop(struct gw_index_queue *queue)
{
    return gw_index_queue_pop_many(queue, 1);
}

#endif
