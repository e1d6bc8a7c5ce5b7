/*
 * Cache lines: objects that are made in a caller's memory lay out their tables on them.
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

#endif
