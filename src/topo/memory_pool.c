/* Pieces out of chunks of large pages; see memory_pool.h. */
#include "topo/memory_pool.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/align.h"

enum {
    ALIGNMENT = 2 * GW_CACHE_LINE,
    LARGE_PAGE = 2 << 20, /* bytes, of x86-64 and of most others */
};

/* The front of each chunk. */
struct gw_memory_chunk {
    struct gw_memory_chunk *next;
    size_t size; /* of the chunk: whole large pages */
    void *mapped;
    size_t mapped_size; /* enough for a chunk that begins with a large page */
};

static size_t whole(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static struct gw_memory_chunk *chunk_open(size_t size)
{
    size_t mapped_size = size + LARGE_PAGE;
    void *mapped =
        mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        fprintf(stderr, "gradwire: out of memory (%zu bytes)\n", size);
        exit(EXIT_FAILURE);
    }
    struct gw_memory_chunk *chunk = (void *)whole((uintptr_t)mapped, LARGE_PAGE);
    madvise(chunk, size, MADV_HUGEPAGE); /* where that is refused, runs are slower */
    *chunk = (struct gw_memory_chunk){.size = size, .mapped = mapped, .mapped_size = mapped_size};
    return chunk;
}

void *gw_memory_pool_take(struct gw_memory_pool *pool, size_t size)
{
    size = whole(size + !size, ALIGNMENT);
    if (size > pool->left) {
        size_t front = whole(sizeof(struct gw_memory_chunk), ALIGNMENT);
        struct gw_memory_chunk *chunk = chunk_open(whole(front + size, LARGE_PAGE));
        chunk->next = pool->chunks;
        pool->chunks = chunk;
        pool->left = chunk->size - front;
    }
    unsigned char *end = (unsigned char *)pool->chunks + pool->chunks->size;
    void *piece = end - pool->left;
    pool->left -= size;
    return piece;
}

void gw_memory_pool_clear(struct gw_memory_pool *pool)
{
    while (pool->chunks) {
        struct gw_memory_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        munmap(chunk->mapped, chunk->mapped_size);
    }
    pool->left = 0;
}
