/*
 * Cache lines: objects that are made in a caller's memory lay out their tables on them, and what is
 * known to be needed soon is fetched by them.
 */
#ifndef GW_BASE_ALIGN_H
#define GW_BASE_ALIGN_H

#include <stddef.h>

enum {
    GW_CACHE_LINE = 64, /* bytes */
};

/* `size` rounded up to whole cache lines. */
static inline size_t gw_aligned(size_t size)
{
    return (size + GW_CACHE_LINE - 1) / GW_CACHE_LINE * GW_CACHE_LINE;
}

/* Fetches `size` bytes for writing that begin a cache line, or lie in one. */
static inline void gw_prefetch(const void *memory, size_t size)
{
    for (size_t i = 0; i < size; i += GW_CACHE_LINE)
        __builtin_prefetch((const char *)memory + i, 1);
}

#endif
