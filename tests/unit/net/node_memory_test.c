/* Memory of a process: what nobody uses costs none. */
#include "support.h"

#include "base/align.h"
#include "net/node_memory.h"

enum {
    PACKETS = 65536,
    SIZE = 1500,
    MOST_AT_ONCE = 4 << 20, /* bytes: what is near, and the first large page */
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

typedef void *take_fn(size_t size);

/* Zeroed, on whole cache lines, all of it there, and none of it touched before. */
static void check_piece(take_fn *take, size_t size)
{
    size_t before = gw_test_resident_bytes();
    unsigned char *piece = take(size);
    assert_non_null(piece);
    assert_int_equal((uintptr_t)piece % GW_CACHE_LINE, 0);
    assert_true(gw_test_resident_bytes() <= before + size / 4 + MOST_AT_ONCE);
    for (size_t i = 0; i < size; i++)
        if (piece[i])
            fail_msg("byte %zu of %zu is %u", i, size, piece[i]);
    memset(piece, 1, size);
    gw_node_memory_give(piece);
}

static void node_memory_take__zeroes_what_was_used_before_and_touches_little(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 100000, 3 << 20, 50 << 20};
    (void)state;
    /* A later piece may be in the place of an earlier one. */
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            check_piece(gw_node_memory_take, sizes[i]);
            check_piece(gw_node_memory_take_large, sizes[i]);
        }
    gw_node_memory_give(NULL);
}

static void node_memory_take__gives_none_where_there_is_none(void **state)
{
    (void)state;
    assert_null(gw_node_memory_take(SIZE_MAX));
    assert_null(gw_node_memory_take_large(SIZE_MAX));
    assert_null(gw_node_memory_take_large(SIZE_MAX - GW_LARGE_PAGE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_memory_take__zeroes_what_was_used_before_and_touches_little),
        cmocka_unit_test(node_memory_take__gives_none_where_there_is_none),
        cmocka_unit_test(node_memory_open__takes_no_page_that_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
