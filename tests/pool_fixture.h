/* Pools of packets for tests, with memory of their own, and whether all packets came back. */
#ifndef GW_TESTS_POOL_FIXTURE_H
#define GW_TESTS_POOL_FIXTURE_H

#include "core/pkt.h"

/* Makes a pool of `count` packets, and as many buffers of `size` bytes; `bufs` NULL: none. */
void gw_test_pool_open(struct gw_pkt_pool *pool, struct gw_buf_pool *bufs, uint32_t count,
                       uint32_t size);

/* Frees the pool's memory. Fails the test when a packet or a buffer is missing. */
void gw_test_pool_close(struct gw_pkt_pool *pool);

/* Frees the memory of a pool whose packets are lost with it. */
void gw_test_pool_abandon(struct gw_pkt_pool *pool);

/* Packets that are not in use. */
static inline uint32_t gw_test_pool_free(const struct gw_pkt_pool *pool)
{
    return pool->free_count + (pool->end - pool->fresh);
}

#endif
