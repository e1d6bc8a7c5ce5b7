/* The generator against its published vector, and the shape of what is derived from it. */
#include "support.h"

#include "base/prng.h"

static void prng_next__gives_the_reference_sequence(void **state)
{
    static const uint64_t expected[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                        UINT64_C(0x06c45d188009454f)};
    (void)state;
    struct gw_prng prng = {.state = 0};
    for (size_t i = 0; i < GW_COUNT_OF(expected); i++)
        assert_int_equal(gw_prng_next(&prng), expected[i]);
}

static void prng_below__stays_below_the_bound(void **state)
{
    static const uint32_t bounds[] = {1, 2, 3, 1000, UINT32_C(1) << 31, UINT32_MAX};
    (void)state;
    struct gw_prng prng = {.state = 1};
    assert_int_equal(gw_prng_below(&prng, 0), 0);
    for (size_t i = 0; i < GW_COUNT_OF(bounds); i++)
        for (int draw = 0; draw < 1000; draw++)
            assert_true(gw_prng_below(&prng, bounds[i]) < bounds[i]);
}

static void prng_below__is_uniform(void **state)
{
    enum { BUCKETS = 10, DRAWS = 100000, SLACK = DRAWS / BUCKETS / 20 };
    (void)state;
    int32_t counts[BUCKETS] = {0};
    struct gw_prng prng = {.state = 2};
    for (int draw = 0; draw < DRAWS; draw++)
        counts[gw_prng_below(&prng, BUCKETS)]++;
    for (int i = 0; i < BUCKETS; i++)
        assert_in_range(counts[i], DRAWS / BUCKETS - SLACK, DRAWS / BUCKETS + SLACK);
}

static void prng_chance__follows_its_probability(void **state)
{
    enum { DRAWS = 10000 };
    static const uint64_t always = UINT64_C(1) << 32;
    (void)state;
    struct gw_prng prng = {.state = 3};
    int hits = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        assert_false(gw_prng_chance(&prng, 0));
        assert_true(gw_prng_chance(&prng, always));
        hits += gw_prng_chance(&prng, always / 4);
    }
    assert_in_range(hits, DRAWS / 4 - DRAWS / 50, DRAWS / 4 + DRAWS / 50);
}

static void prng_derive__separates_streams_and_seeds(void **state)
{
    enum { SIDE = 16 };
    (void)state;
    uint64_t first[SIDE * SIDE];
    for (uint64_t i = 0; i < SIDE * SIDE; i++) {
        struct gw_prng prng = gw_prng_derive(i / SIDE, i % SIDE);
        struct gw_prng again = gw_prng_derive(i / SIDE, i % SIDE);
        first[i] = gw_prng_next(&prng);
        assert_int_equal(gw_prng_next(&again), first[i]);
        for (uint64_t j = 0; j < i; j++)
            assert_int_not_equal(first[i], first[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prng_next__gives_the_reference_sequence),
        cmocka_unit_test(prng_below__stays_below_the_bound),
        cmocka_unit_test(prng_below__is_uniform),
        cmocka_unit_test(prng_chance__follows_its_probability),
        cmocka_unit_test(prng_derive__separates_streams_and_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
