/* Pools of packets and of payload buffers; see pkt.h. */
#include "core/pkt.h"

#include <string.h>

#include "base/prng.h"

void gw_pkt_pool_init(struct gw_pkt_pool *pool, struct gw_pkt *pkts, uint32_t first, uint32_t count,
                      struct gw_buf_pool *bufs)
{
    GW_ASSERT(count <= GW_PKT_NONE - first);
    *pool = (struct gw_pkt_pool){
        .pkts = pkts,
        .bufs = bufs,
        .free_head = GW_PKT_NONE,
        .fresh = first,
        .end = first + count,
    };
}

size_t gw_buf_pool_size(uint32_t count, uint32_t size)
{
    return (size_t)count * (size + sizeof(uint32_t));
}

void gw_buf_pool_init(struct gw_buf_pool *bufs, void *memory, uint32_t count, uint32_t size)
{
    uint32_t *refs = memory;
    *bufs = (struct gw_buf_pool){
        .bytes = (unsigned char *)(refs + count),
        .refs = refs,
        .size = size,
        .count = count,
        .free_head = count ? 0 : GW_BUF_NONE,
    };
    for (uint32_t i = 0; i < count; i++)
        refs[i] = i + 1 < count ? i + 1 : GW_BUF_NONE;
}

uint32_t gw_buf_claim(struct gw_buf_pool *bufs)
{
    uint32_t buf = bufs->free_head;
    if (buf != GW_BUF_NONE) {
        bufs->free_head = bufs->refs[buf];
        bufs->refs[buf] = 1;
    }
    return buf;
}

void gw_buf_share(struct gw_buf_pool *bufs, uint32_t buf)
{
    GW_ASSERT(buf < bufs->count && bufs->refs[buf] > 0);
    bufs->refs[buf]++;
}

void gw_buf_release(struct gw_buf_pool *bufs, uint32_t buf)
{
    GW_ASSERT(buf < bufs->count && bufs->refs[buf] > 0);
    if (--bufs->refs[buf] == 0) {
        bufs->refs[buf] = bufs->free_head;
        bufs->free_head = buf;
    }
}

uint32_t gw_buf_own(struct gw_buf_pool *bufs, uint32_t buf, size_t size)
{
    if (bufs->refs[buf] == 1)
        return buf;
    uint32_t copy = gw_buf_claim(bufs);
    if (copy == GW_BUF_NONE)
        return GW_BUF_NONE;
    memcpy(gw_buf_bytes(bufs, copy), gw_buf_bytes(bufs, buf), size);
    gw_buf_release(bufs, buf);
    return copy;
}

uint32_t gw_flow_key(uint32_t src, uint32_t dst, uint32_t flow)
{
    return (uint32_t)(gw_mix64(((uint64_t)src << 32 | dst) ^ gw_mix64(flow)) >> 32);
}
