/*
 * Memory whose size the network decides, such as the values that ranks keep for each other: the
 * core asks its driver for it. Everything else is carved out of memory of the caller at init.
 */
#ifndef GW_CORE_ALLOCATOR_H
#define GW_CORE_ALLOCATOR_H

#include <stddef.h>

struct gw_allocator {
    /* Zeroed memory, aligned to 64; NULL: there is none. */
    void *(*take)(void *context, size_t size);
    /* The same memory back; NULL is allowed. */
    void (*give)(void *context, void *memory);
    void *context;
};

static inline void *gw_allocator_take(const struct gw_allocator *allocator, size_t size)
{
    return allocator->take(allocator->context, size);
}

static inline void gw_allocator_give(const struct gw_allocator *allocator, void *memory)
{
    allocator->give(allocator->context, memory);
}

#endif
