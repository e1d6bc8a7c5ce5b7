/* Pools of packets and of payload buffers; see pkt.h. */
#include "core/pkt.h"

#include <string.h>

#include "base/arena.h"
#include "base/index_list.h"
#include "base/prng.h"

enum {
    BLOCK = 64, /* buffers */
};

/* Buffers that lie side by side. On the list of those that are wholly or partly free if any is, but
 * for the current block. */
struct gw_buf_block {
    uint64_t free; /* a bit for each */
    uint64_t all;  /* the bits that stand for a buffer */
    uint32_t prev, next;
};

GW_INDEX_LIST(block_list, struct gw_buf_block)

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

/* The heads of the two lists lie behind the blocks. */
static uint32_t whole_head(const struct gw_buf_pool *bufs)
{
    return blocks_of(bufs->count);
}

static uint32_t part_head(const struct gw_buf_pool *bufs)
{
    return blocks_of(bufs->count) + 1;
}

/* The same measures and builds. */
static void carve(struct gw_buf_pool *bufs, uint32_t count, uint32_t size, struct gw_arena *arena)
{
    bufs->blocks = gw_arena_take(arena, (blocks_of(count) + 2) * sizeof(*bufs->blocks));
    bufs->refs = gw_arena_take(arena, count * sizeof(*bufs->refs));
    bufs->bytes = gw_arena_take(arena, (size_t)count * size);
}

size_t gw_buf_pool_size(uint32_t count, uint32_t size)
{
    struct gw_buf_pool bufs;
    struct gw_arena arena = {.used = 0};
    carve(&bufs, count, size, &arena);
    return arena.used;
}

void gw_buf_pool_init(struct gw_buf_pool *bufs, void *memory, uint32_t count, uint32_t size)
{
    GW_ASSERT((uintptr_t)memory % _Alignof(struct gw_buf_block) == 0);
    struct gw_arena arena = {.base = memory};
    *bufs = (struct gw_buf_pool){
        .memory = memory,
        .size = size,
        .stride = size,
        .count = count,
        .current = GW_BUF_NONE,
    };
    carve(bufs, count, size, &arena);
    block_list_init(bufs->blocks, whole_head(bufs));
    block_list_init(bufs->blocks, part_head(bufs));
    for (uint32_t i = 0; i < blocks_of(count); i++) {
        uint32_t bits = count - i * BLOCK < BLOCK ? count - i * BLOCK : BLOCK;
        uint64_t all = UINT64_MAX >> (BLOCK - bits);
        bufs->blocks[i] = (struct gw_buf_block){.free = all, .all = all};
        block_list_append(bufs->blocks, whole_head(bufs), i);
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
    uint32_t head = whole_head(bufs), first = block_list_first(bufs->blocks, head);
    if (first == head) {
        head = part_head(bufs);
        first = block_list_first(bufs->blocks, head);
    }
    bufs->current = first == head ? GW_BUF_NONE : first;
    if (first != head)
        block_list_remove(bufs->blocks, first);
    return first != head;
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
        block_list_remove(bufs->blocks, index);
    if (block->free == block->all)
        block_list_push(bufs->blocks, whole_head(bufs), index);
    else if (!before)
        block_list_push(bufs->blocks, part_head(bufs), index);
}

bool gw_buf_own(struct gw_buf_pool *bufs, uint32_t *buf, size_t size)
{
    if (bufs->refs[*buf] == 1)
        return true;
    uint32_t copy = gw_buf_claim(bufs);
    if (copy == GW_BUF_NONE)
        return false;
    memcpy(gw_buf_bytes(bufs, copy), gw_buf_bytes(bufs, *buf), size);
    gw_buf_release(bufs, *buf);
    *buf = copy;
    return true;
}

static bool settle(struct gw_buf_pool *bufs, struct gw_pkt *pkt)
{
    if (!gw_buf_is_lent(pkt->buf))
        return true;
    uint32_t buf = gw_buf_claim(bufs);
    if (buf == GW_BUF_NONE)
        return false;
    memcpy(gw_buf_bytes(bufs, buf), gw_buf_payload(bufs, pkt->buf), pkt->data.len);
    pkt->buf = buf;
    return true;
}

uint32_t gw_pkt_settle(struct gw_pkt_pool *pool, struct gw_pkt **pkts, uint32_t count,
                       uint64_t *lost)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (settle(pool->bufs, pkts[i]))
            pkts[kept++] = pkts[i];
        else
            gw_pkt_release(pool, pkts[i]);
    }
    *lost += count - kept;
    return kept;
}

uint32_t gw_flow_key(uint32_t src, uint32_t dst, uint32_t flow)
{
    return (uint32_t)(gw_mix64(((uint64_t)src << 32 | dst) ^ gw_mix64(flow)) >> 32);
}
