/* Pieces of a pool: zeroed, aligned, apart, and larger than a chunk if need be. */
#include <stdbool.h>
#include <string.h>

#include "support.h"

#include "base/align.h"
#include "topo/memory_pool.h"

enum {
    PIECES = 3000, /* more than a chunk holds */
    SIZE = 1000,
    LARGE = 5 << 20, /* larger than a chunk */
};

static bool is_filled_with(const unsigned char *piece, size_t size, unsigned char value)
{
    return piece[0] == value && memcmp(piece, piece + 1, size - 1) == 0;
}

static void memory_pool_take__gives_zeroed_pieces_of_their_own(void **state)
{
    (void)state;
    static unsigned char *pieces[PIECES];
    struct gw_memory_pool pool = {0};
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = gw_memory_pool_take(&pool, SIZE);
        assert_true((uintptr_t)pieces[i] % (2 * GW_CACHE_LINE) == 0);
        assert_true(is_filled_with(pieces[i], SIZE, 0));
        memset(pieces[i], (int)(i % 255 + 1), SIZE);
    }
    for (size_t i = 0; i < PIECES; i++)
        assert_true(is_filled_with(pieces[i], SIZE, (unsigned char)(i % 255 + 1)));
    gw_memory_pool_clear(&pool);
    assert_null(pool.chunks);
}

static void memory_pool_take__has_room_for_any_size(void **state)
{
    (void)state;
    struct gw_memory_pool pool = {0};
    assert_non_null(gw_memory_pool_take(&pool, 0));
    unsigned char *small = gw_memory_pool_take(&pool, 1);
    unsigned char *large = gw_memory_pool_take(&pool, LARGE);
    assert_true(is_filled_with(large, LARGE, 0));
    memset(large, 1, LARGE);
    assert_int_equal(small[0], 0);
    assert_true(is_filled_with(gw_memory_pool_take(&pool, SIZE), SIZE, 0));
    gw_memory_pool_clear(&pool);
    assert_non_null(gw_memory_pool_take(&pool, SIZE));
    gw_memory_pool_clear(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_pool_take__gives_zeroed_pieces_of_their_own),
        cmocka_unit_test(memory_pool_take__has_room_for_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
