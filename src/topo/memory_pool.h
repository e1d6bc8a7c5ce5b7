/*
 * Memory for many pieces that live as long as a run, and that a run touches in no order of
 * addresses: in large pages, where the system has them, since a processor remembers too few small
 * ones. The first bytes are in small pages: a large one costs milliseconds where a hypervisor must
 * find it first, which a short run does not earn back. Pieces are never freed one by one.
 */
#ifndef GW_TOPO_MEMORY_POOL_H
#define GW_TOPO_MEMORY_POOL_H

#include <stddef.h>

enum {
    GW_MEMORY_SMALL = 16 << 20, /* bytes in small pages, before those in large ones */
};

/* All zero: empty. */
struct gw_memory_pool {
    struct gw_memory_chunk *chunks;
    size_t left; /* bytes of the first one that are free */
    size_t size; /* bytes of all chunks */
};

/* `size` zeroed bytes on whole pairs of cache lines, as gw_memory_aligned() gives them. */
void *gw_memory_pool_take(struct gw_memory_pool *pool, size_t size);

/* Frees all pieces. */
void gw_memory_pool_clear(struct gw_memory_pool *pool);

/* Asks for large pages for mapped memory, but for its first `small` bytes. Where that is refused,
 * runs are slower. */
void gw_memory_use_large_pages(void *memory, size_t size, size_t small);

#endif
