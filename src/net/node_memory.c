/* Memory of a process on the overlay; see node_memory.h. */
#include "net/node_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/error.h"
#include "wire/wire.h"

/* Before the piece that it returns stands what free() wants to know. */
static void *allocate(size_t size, bool is_large, bool is_zeroed)
{
    size_t unit = is_large && size >= GW_LARGE_PAGE ? GW_LARGE_PAGE : GW_CACHE_LINE;
    if (size > SIZE_MAX - 3 * (size_t)GW_LARGE_PAGE)
        return NULL;
    size = gw_whole(size, unit);
    size_t room = sizeof(void *) + unit + size;
    void *allocated = is_zeroed ? calloc(1, room) : malloc(room);
    if (!allocated)
        return NULL;
    void **memory = (void *)gw_whole((uintptr_t)allocated + sizeof(void *), unit);
    memory[-1] = allocated;
    if (unit == GW_LARGE_PAGE)
        madvise(memory, size, MADV_HUGEPAGE); /* where that is refused, runs are slower */
    return memory;
}

void *gw_node_memory_take(size_t size)
{
    return allocate(size, false, true);
}

void *gw_node_memory_take_large(size_t size)
{
    return allocate(size, true, true);
}

void gw_node_memory_give(void *memory)
{
    if (memory)
        free(((void **)memory)[-1]);
}

static void *take(void *context, size_t size)
{
    (void)context;
    return gw_node_memory_take(size);
}

static void give(void *context, void *memory)
{
    (void)context;
    gw_node_memory_give(memory);
}

struct gw_allocator gw_node_memory_allocator(void)
{
    return (struct gw_allocator){.take = take, .give = give};
}

int gw_node_memory_open(struct gw_node_memory *memory, uint32_t packets, uint32_t size)
{
    /* With whatever is in it: who writes before he reads touches no page that he never needs. */
    void *bufs = allocate(gw_buf_pool_size(packets, GW_WIRE_DATA_SIZE + size), true, false);
    struct gw_pkt *pkts = allocate(packets * sizeof(*pkts), true, false);
    if (!bufs || !pkts) {
        gw_node_memory_give(bufs);
        gw_node_memory_give(pkts);
        return GW_ERR_NO_MEMORY;
    }
    gw_buf_pool_init(&memory->bufs, bufs, packets, GW_WIRE_DATA_SIZE + size);
    gw_buf_pool_set_front(&memory->bufs, GW_WIRE_DATA_SIZE);
    gw_pkt_pool_init(&memory->pool, pkts, 0, packets, &memory->bufs);
    return GW_OK;
}

void gw_node_memory_close(struct gw_node_memory *memory)
{
    gw_node_memory_give(memory->pool.pkts);
    gw_node_memory_give(memory->bufs.memory);
}
