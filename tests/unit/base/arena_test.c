/* The arena: what it measures is what it hands out, in whole cache lines that do not overlap. */
#include "support.h"

#include "base/arena.h"
#include "base/prng.h"

enum {
    PIECES = 12,
    SIZE_MAX_OF_PIECE = 300, /* some lines, and what is left of one */
    SEEDS = 64,
};

/* Takes the pieces as an owner's one function does, whether it measures or builds. */
static size_t carve(unsigned char *base, const size_t *sizes, unsigned char **pieces)
{
    struct gw_arena arena = {.base = base};
    for (uint32_t i = 0; i < PIECES; i++)
        pieces[i] = gw_arena_take(&arena, sizes[i]);
    return arena.used;
}

static void arena_take__hands_out_what_it_measured(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_prng prng = {.state = seed};
        size_t sizes[PIECES];
        for (uint32_t i = 0; i < PIECES; i++)
            sizes[i] = gw_prng_below(&prng, 4) ? gw_prng_below(&prng, SIZE_MAX_OF_PIECE) : 0;
        unsigned char *pieces[PIECES];
        size_t measured = carve(NULL, sizes, pieces);
        for (uint32_t i = 0; i < PIECES; i++)
            assert_null(pieces[i]);

        /* Of exactly that size: a sanitizer sees whatever lies beyond. */
        unsigned char *base = aligned_alloc(GW_CACHE_LINE, measured);
        assert_true(measured == 0 || base != NULL);
        assert_int_equal(carve(base, sizes, pieces), measured);
        for (uint32_t i = 0; i < PIECES; i++)
            memset(pieces[i], (int)i, sizes[i]);
        for (uint32_t i = 0; i < PIECES; i++) {
            assert_int_equal((uintptr_t)pieces[i] % GW_CACHE_LINE, 0);
            assert_true(pieces[i] + sizes[i] <= base + measured);
            for (size_t at = 0; at < sizes[i]; at++)
                assert_int_equal(pieces[i][at], i);
        }
        free(base);
    }
}

static void arena_take__wastes_less_than_a_line_per_piece(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{0, 0}, {1, 64}, {63, 64}, {64, 64}, {65, 128}, {128, 128}};
    for (size_t i = 0; i < GW_COUNT_OF(sizes); i++) {
        struct gw_arena arena = {.used = 0};
        assert_null(gw_arena_take(&arena, sizes[i][0]));
        assert_int_equal(arena.used, sizes[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_take__hands_out_what_it_measured),
        cmocka_unit_test(arena_take__wastes_less_than_a_line_per_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
