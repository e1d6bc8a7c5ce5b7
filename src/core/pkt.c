/* Pools of packets and of payload buffers; see pkt.h. */
#include "core/pkt.h"

#include <string.h>

#include "base/align.h"
#include "base/prng.h"

enum {
    BLOCK = 64, /* buffers */
};

/* Buffers that lie side by side. On the list `part` or `whole` if any is free, but for the current
 * block. */
struct gw_buf_block {
    uint64_t free; /* a bit for each */
    uint64_t all;  /* the bits that stand for a buffer */
    uint32_t previous, next;
};

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

static uint32_t blocks_of(uint32_t count)
{
    return (count + BLOCK - 1) / BLOCK;
}

/* Where the buffers begin in the pool's memory. */
static size_t bytes_at(uint32_t count)
{
    return gw_aligned(blocks_of(count) * sizeof(struct gw_buf_block) + count * sizeof(uint32_t));
}

size_t gw_buf_pool_size(uint32_t count, uint32_t size)
{
    return bytes_at(count) + (size_t)count * size;
}

static void list_push(struct gw_buf_pool *bufs, uint32_t *list, uint32_t index)
{
    bufs->blocks[index].previous = GW_BUF_NONE;
    bufs->blocks[index].next = *list;
    if (*list != GW_BUF_NONE)
        bufs->blocks[*list].previous = index;
    *list = index;
}

static void list_remove(struct gw_buf_pool *bufs, uint32_t *list, uint32_t index)
{
    const struct gw_buf_block *block = &bufs->blocks[index];
    if (block->previous != GW_BUF_NONE)
        bufs->blocks[block->previous].next = block->next;
    else
        *list = block->next;
    if (block->next != GW_BUF_NONE)
        bufs->blocks[block->next].previous = block->previous;
}

void gw_buf_pool_init(struct gw_buf_pool *bufs, void *memory, uint32_t count, uint32_t size)
{
    GW_ASSERT((uintptr_t)memory % _Alignof(struct gw_buf_block) == 0);
    *bufs = (struct gw_buf_pool){
        .memory = memory,
        .blocks = memory,
        .refs = (uint32_t *)((struct gw_buf_block *)memory + blocks_of(count)),
        .bytes = (unsigned char *)memory + bytes_at(count),
        .size = size,
        .stride = size,
        .count = count,
        .current = GW_BUF_NONE,
        .whole = GW_BUF_NONE,
        .part = GW_BUF_NONE,
    };
    for (uint32_t i = blocks_of(count); i-- > 0;) {
        uint32_t bits = count - i * BLOCK < BLOCK ? count - i * BLOCK : BLOCK;
        uint64_t all = UINT64_MAX >> (BLOCK - bits);
        bufs->blocks[i] = (struct gw_buf_block){.free = all, .all = all};
        list_push(bufs, &bufs->whole, i);
    }
    memset(bufs->refs, 0, count * sizeof(*bufs->refs));
}

void gw_buf_pool_set_front(struct gw_buf_pool *bufs, uint32_t front)
{
    GW_ASSERT(front < bufs->size && bufs->size == bufs->stride);
    bufs->bytes += front;
    bufs->size -= front;
}

/* Makes a block with free buffers the current one; false: there is none. */
static bool change_block(struct gw_buf_pool *bufs)
{
    uint32_t *list = bufs->whole != GW_BUF_NONE ? &bufs->whole : &bufs->part;
    bufs->current = *list;
    if (*list == GW_BUF_NONE)
        return false;
    list_remove(bufs, list, *list);
    return true;
}

uint32_t gw_buf_claim(struct gw_buf_pool *bufs)
{
    bool is_used_up = bufs->current == GW_BUF_NONE || bufs->blocks[bufs->current].free == 0;
    if (is_used_up && !change_block(bufs))
        return GW_BUF_NONE;
    struct gw_buf_block *block = &bufs->blocks[bufs->current];
    uint32_t buf = bufs->current * BLOCK + (uint32_t)__builtin_ctzll(block->free);
    block->free &= block->free - 1;
    bufs->refs[buf] = 1;
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
    if (--bufs->refs[buf])
        return;
    uint32_t index = buf / BLOCK;
    struct gw_buf_block *block = &bufs->blocks[index];
    uint64_t before = block->free;
    block->free |= UINT64_C(1) << buf % BLOCK;
    if (index == bufs->current)
        return;
    if (before && block->free == block->all)
        list_remove(bufs, &bufs->part, index);
    if (block->free == block->all)
        list_push(bufs, &bufs->whole, index);
    else if (!before)
        list_push(bufs, &bufs->part, index);
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
