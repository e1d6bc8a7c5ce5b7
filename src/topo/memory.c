/* Memory, or the end of the program; see memory.h. */
#include "topo/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"

enum {
    ROOM_MIN = 8, /* items in the first allocation of an array */
    ALIGNMENT = 2 * GW_CACHE_LINE,
};

static void *check(void *memory, size_t count, size_t size)
{
    if (memory)
        return memory;
    fprintf(stderr, "gradwire: out of memory (%zu items of %zu bytes)\n", count, size);
    exit(EXIT_FAILURE);
}

void *gw_memory_zeroed(size_t count, size_t size)
{
    return check(calloc(count ? count : 1, size), count, size);
}

void *gw_memory_aligned(size_t size)
{
    size_t whole = (size / ALIGNMENT + 1) * ALIGNMENT;
    return memset(check(aligned_alloc(ALIGNMENT, whole), size, 1), 0, whole);
}

void *gw_memory_grow(void *array, uint32_t *room, uint32_t need, size_t size)
{
    if (need <= *room)
        return array;
    uint32_t wanted = *room < ROOM_MIN / 2 ? ROOM_MIN : *room * 2;
    if (wanted < need)
        wanted = need;
    array = check(realloc(array, wanted * size), wanted, size);
    *room = wanted;
    return array;
}
