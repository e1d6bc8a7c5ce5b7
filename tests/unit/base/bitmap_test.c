/* Bitmaps that find their first bit: against a plain one. */
#include "support.h"

#include "base/bitmap.h"
#include "base/prng.h"

enum {
    BITS_MAX = 20000,
    STEPS = 20000,
};

static uint64_t memory[BITS_MAX];
static bool model[BITS_MAX];

static void bitmap_first__is_the_first_of_all(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, BITS_MAX};
    struct gw_prng prng = gw_prng_derive(5, 0);
    for (uint32_t s = 0; s < GW_COUNT_OF(sizes); s++) {
        const uint32_t bits = sizes[s];
        struct gw_bitmap map;
        assert_true(gw_bitmap_size(bits) <= sizeof(memory));
        gw_bitmap_init(&map, memory, bits);
        gw_bitmap_fill(&map, bits, false);
        memset(model, 0, sizeof(model));
        for (uint32_t i = 0; i < STEPS; i++) {
            uint32_t bit = gw_prng_below(&prng, bits), first = 0;
            if (gw_prng_below(&prng, 2) && map.count) {
                while (!model[first])
                    first++;
                assert_int_equal(gw_bitmap_first(&map), first);
                bit = first;
            }
            assert_int_equal(gw_bitmap_test(&map, bit), model[bit]);
            if (model[bit])
                gw_bitmap_clear(&map, bit);
            else
                gw_bitmap_set(&map, bit);
            model[bit] = !model[bit];
        }
    }
}

static void bitmap_fill__sets_as_many_as_there_are(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits < 9000; bits += 61) {
        struct gw_bitmap map;
        gw_bitmap_init(&map, memory, 9000);
        memset(memory, 0xaa, sizeof(memory));
        gw_bitmap_fill(&map, bits, true);
        assert_int_equal(map.count, bits);
        for (uint32_t bit = 0; bit < bits; bit++) {
            assert_int_equal(gw_bitmap_first(&map), bit);
            gw_bitmap_clear(&map, bit);
        }
        assert_int_equal(map.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitmap_first__is_the_first_of_all),
        cmocka_unit_test(bitmap_fill__sets_as_many_as_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
