/* Pools of packets for tests; see pool_fixture.h. */
#include "pool_fixture.h"

#include "support.h"

void gw_test_pool_open(struct gw_pkt_pool *pool, struct gw_buf_pool *bufs, uint32_t count,
                       uint32_t size)
{
    if (bufs)
        gw_buf_pool_init(bufs, gw_test_take(gw_buf_pool_size(count, size)), count, size);
    gw_pkt_pool_init(pool, gw_test_take(count * sizeof(struct gw_pkt)), 0, count, bufs);
}

void gw_test_pool_close(struct gw_pkt_pool *pool)
{
    assert_int_equal(gw_test_pool_free(pool), pool->end);
    if (pool->bufs)
        for (uint32_t i = 0; i < pool->bufs->count; i++)
            assert_int_not_equal(gw_buf_claim(pool->bufs), GW_BUF_NONE);
    gw_test_pool_abandon(pool);
}

void gw_test_pool_abandon(struct gw_pkt_pool *pool)
{
    if (pool->bufs)
        free(pool->bufs->memory);
    free(pool->pkts);
}
