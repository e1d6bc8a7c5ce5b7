/* Memory of a process on the overlay; see overlay.h. */
#include "net/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"

void *gw_overlay_take(size_t size)
{
    size = gw_aligned(size ? size : 1);
    void *memory = aligned_alloc(GW_CACHE_LINE, size);
    if (memory)
        memset(memory, 0, size);
    return memory;
}

int gw_overlay_memory_open(struct gw_overlay_memory *memory, uint32_t packets, uint32_t size)
{
    void *bufs = gw_overlay_take(gw_buf_pool_size(packets, GW_WIRE_DATA_SIZE + size));
    struct gw_pkt *pkts = gw_overlay_take(packets * sizeof(*pkts));
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

void gw_overlay_memory_close(struct gw_overlay_memory *memory)
{
    free(memory->pool.pkts);
    free(memory->bufs.memory);
}

uint32_t gw_overlay_train(uint32_t hdr, uint32_t payload)
{
    uint32_t fits = UINT16_MAX / (hdr + payload);
    if (fits < 1)
        return 1;
    return fits < GW_UDP_TRAIN_MAX ? fits : GW_UDP_TRAIN_MAX;
}
