/* Memory of a process: what nobody uses costs none. */
#include "support.h"

#include "net/node_memory.h"

enum {
    PACKETS = 65536,
    SIZE = 1500,
};

static void node_memory_open__takes_no_page_that_is_not_used(void **state)
{
    (void)state;
    struct gw_node_memory memory;
    size_t before = gw_test_resident_bytes();
    assert_int_equal(gw_node_memory_open(&memory, PACKETS, SIZE), 0);
    assert_true(gw_test_resident_bytes() < before + (size_t)PACKETS * SIZE / 4);
    for (uint32_t i = 0; i < PACKETS; i++) { /* and all of it is there */
        struct gw_pkt *pkt = gw_pkt_claim(&memory.pool);
        assert_non_null(pkt);
        pkt->buf = gw_buf_claim(&memory.bufs);
        assert_true(pkt->buf != GW_BUF_NONE);
        memset(gw_buf_bytes(&memory.bufs, pkt->buf), 1, SIZE);
    }
    assert_null(gw_pkt_claim(&memory.pool));
    assert_int_equal(gw_buf_claim(&memory.bufs), GW_BUF_NONE);
    assert_true(gw_test_resident_bytes() >= before + (size_t)PACKETS * SIZE);
    gw_node_memory_close(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_memory_open__takes_no_page_that_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
