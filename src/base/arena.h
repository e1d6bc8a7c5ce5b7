/*
 * Carving an object's tables out of one piece of memory.
 *
 * The same function measures and builds: with `base` NULL it only adds up, so a size query and an
 * init that share it cannot disagree. Every piece begins on a cache line if `base` does.
 */
#ifndef GW_BASE_ARENA_H
#define GW_BASE_ARENA_H

#include "base/align.h"

struct gw_arena {
    unsigned char *base; /* NULL: measures */
    size_t used;         /* bytes, whole cache lines */
};

/* The next `size` bytes, or NULL while measuring. What they contain is the owner's matter. */
static inline void *gw_arena_take(struct gw_arena *arena, size_t size)
{
    void *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used += gw_aligned(size);
    return piece;
}

#endif
