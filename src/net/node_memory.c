/* Memory of a process on the overlay; see node_memory.h. */
#include "net/node_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/error.h"
#include "wire/wire.h"

/* With whatever is in it: who writes before he reads touches no page that he never needs. */
static void *allocate(size_t size)
{
    size_t unit = size < GW_LARGE_PAGE ? GW_CACHE_LINE : GW_LARGE_PAGE;
    size = gw_whole(size ? size : 1, unit);
    void *memory = aligned_alloc(unit, size);
    if (memory && unit == GW_LARGE_PAGE)
        madvise(memory, size, MADV_HUGEPAGE); /* where that is refused, runs are slower */
    return memory;
}

void *gw_node_memory_take(size_t size)
{
    void *memory = allocate(size);
    return memory ? memset(memory, 0, size) : NULL;
}

int gw_node_memory_open(struct gw_node_memory *memory, uint32_t packets, uint32_t size)
{
    void *bufs = allocate(gw_buf_pool_size(packets, GW_WIRE_DATA_SIZE + size));
    struct gw_pkt *pkts = allocate(packets * sizeof(*pkts));
    if (!bufs || !pkts) {
        free(bufs);
        free(pkts);
        return GW_ERR_NO_MEMORY;
    }
    gw_buf_pool_init(&memory->bufs, bufs, packets, GW_WIRE_DATA_SIZE + size);
    gw_buf_pool_set_front(&memory->bufs, GW_WIRE_DATA_SIZE);
    gw_pkt_pool_init(&memory->pool, pkts, 0, packets, &memory->bufs);
    return GW_OK;
}

void gw_node_memory_close(struct gw_node_memory *memory)
{
    free(memory->pool.pkts);
    free(memory->bufs.memory);
}
