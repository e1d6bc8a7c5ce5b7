/* Pieces out of chunks; see memory_pool.h. AddressSanitizer finds what is beyond a piece as if each
 * had been allocated alone. */
#include "topo/memory_pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "base/align.h"

enum {
    ALIGNMENT = 2 * GW_CACHE_LINE,
#ifdef __SANITIZE_ADDRESS__
    GAP = ALIGNMENT, /* bytes between two pieces */
#else
    GAP = 0,
#endif
};

/* The front of each chunk. */
struct gw_memory_chunk {
    struct gw_memory_chunk *next;
    size_t size; /* of the chunk: whole large pages */
    void *mapped;
    size_t mapped_size; /* enough for a chunk that begins with a large page */
};

/* Makes memory one that nobody may touch, or that one may. */
static void set_open(void *memory, size_t size, bool is_open)
{
#ifdef __SANITIZE_ADDRESS__
    if (is_open)
        ASAN_UNPOISON_MEMORY_REGION(memory, size);
    else
        ASAN_POISON_MEMORY_REGION(memory, size);
#else
    (void)memory;
    (void)size;
    (void)is_open;
#endif
}

void gw_memory_use_large_pages(void *memory, size_t size, size_t small)
{
    unsigned char *begin = memory;
    size_t first = gw_whole((uintptr_t)memory + small, GW_LARGE_PAGE) - (uintptr_t)memory;
    if (first < size)
        madvise(begin + first, size - first, MADV_HUGEPAGE);
}

/* The first `small` bytes are in small pages. */
static struct gw_memory_chunk *chunk_open(size_t size, size_t small)
{
    size_t mapped_size = size + GW_LARGE_PAGE;
    void *mapped =
        mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        fprintf(stderr, "gradwire: out of memory (%zu bytes)\n", size);
        exit(EXIT_FAILURE);
    }
    struct gw_memory_chunk *chunk = (void *)gw_whole((uintptr_t)mapped, GW_LARGE_PAGE);
    gw_memory_use_large_pages(chunk, size, small);
    *chunk = (struct gw_memory_chunk){.size = size, .mapped = mapped, .mapped_size = mapped_size};
    set_open(chunk + 1, size - sizeof(*chunk), false);
    return chunk;
}

void *gw_memory_pool_take(struct gw_memory_pool *pool, size_t size)
{
    size_t room = gw_whole(size + !size + GAP, ALIGNMENT);
    if (room > pool->left) {
        size_t front = gw_whole(sizeof(struct gw_memory_chunk), ALIGNMENT);
        size_t small = pool->size < GW_MEMORY_SMALL ? GW_MEMORY_SMALL - pool->size : 0;
        struct gw_memory_chunk *chunk = chunk_open(gw_whole(front + room, GW_LARGE_PAGE), small);
        chunk->next = pool->chunks;
        pool->chunks = chunk;
        pool->size += chunk->size;
        pool->left = chunk->size - front;
    }
    void *piece = (unsigned char *)pool->chunks + pool->chunks->size - pool->left;
    pool->left -= room;
    set_open(piece, size, true);
    return piece;
}

void gw_memory_pool_clear(struct gw_memory_pool *pool)
{
    while (pool->chunks) {
        struct gw_memory_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        set_open(chunk, chunk->size, true);
        munmap(chunk->mapped, chunk->mapped_size);
    }
    pool->left = pool->size = 0;
}
