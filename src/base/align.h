/*
 * Cache lines and pages: objects that are made in a caller's memory lay out their tables on them,
 * and what is known to be needed soon is fetched by them.
 */
#ifndef GW_BASE_ALIGN_H
#define GW_BASE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

enum {
    GW_CACHE_LINE = 64,      /* bytes */
    GW_LARGE_PAGE = 2 << 20, /* of x86-64 and of most others */
};

/* `size` rounded up to whole units. */
static inline size_t gw_whole(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* `size` rounded up to whole cache lines. */
static inline size_t gw_aligned(size_t size)
{
    return gw_whole(size, GW_CACHE_LINE);
}

/* What is fetched is for: */
enum gw_prefetch_for {
    GW_PREFETCH_WRITE,
    GW_PREFETCH_READ,
    GW_PREFETCH_LATER, /* to be read, but not at once: L2 is near enough */
};

/*
 * Fetches a cache line each 64 bytes from `memory` on, as far as `size` goes. Nothing is touched,
 * so there need not be any memory there. Compilers leave calls out that have no effect: inline.
 */
static inline __attribute__((always_inline)) void gw_prefetch(const void *memory, size_t size,
                                                              enum gw_prefetch_for use)
{
    uintptr_t at = (uintptr_t)memory;
    /* Of 22 lines, a full packet, 60 instructions instead of 92. */
#pragma GCC unroll 4
    for (uintptr_t end = at + size; at < end; at += GW_CACHE_LINE)
        if (use == GW_PREFETCH_WRITE)
            __builtin_prefetch((const void *)at, 1);
        else if (use == GW_PREFETCH_READ)
            __builtin_prefetch((const void *)at);
        else
            __builtin_prefetch((const void *)at, 0, 2);
}

#endif
