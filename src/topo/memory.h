/*
 * Memory for the layers that describe a run (topo, workload, config) and for the simulator, which
 * makes one: arrays that grow, and pieces that are zeroed. All of it is freed with free().
 *
 * A run that does not fit in memory cannot be worked with at all, so running out ends the program
 * with one clear line instead of an error path in every caller.
 */
#ifndef GW_TOPO_MEMORY_H
#define GW_TOPO_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* `count` zeroed items of `size` bytes; never NULL, also for none. */
void *gw_memory_zeroed(size_t count, size_t size);

/* `size` zeroed bytes on whole pairs of cache lines, which processors fetch together. */
void *gw_memory_aligned(size_t size);

/* Returns `array`, moved if necessary, with room for `need` items; *room is what it has now. */
void *gw_memory_grow(void *array, uint32_t *room, uint32_t need, size_t size);

#endif
