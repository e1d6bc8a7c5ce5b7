/* The table of values: what is added is found, rounded as promised, and nothing else changes. */
#include "support.h"

#include "base/cpu.h"
#include "base/error.h"
#include "base/prng.h"
#include "net/ranks/team_values.h"

enum {
    KEYS = 5000,
    LONG = 5000,
};

static struct gw_team_values values;

static int setup(void **state)
{
    (void)state;
    gw_team_values_init(&values, gw_kernels_best(gw_cpu_features()));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gw_team_values_fini(&values);
    return 0;
}

static const struct gw_team_value *make(uint64_t key, uint64_t count, enum gw_dtype type)
{
    assert_int_equal(gw_team_values_make(
                         &values, key, &(struct gw_team_value_shape){.count = count, .type = type}),
                     GW_OK);
    return gw_team_values_find(&values, key);
}

static void values_find__knows_what_was_made(void **state)
{
    (void)state;
    assert_null(gw_team_values_find(&values, 0));
    for (uint32_t i = 0; i < KEYS; i++) {
        uint64_t key = gw_mix64(i); /* 0 is among them */
        float x = (float)i;
        assert_null(gw_team_values_find(&values, key));
        gw_team_value_add(&values, make(key, 1, GW_DTYPE_F32), 0, &x, 1);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        float x;
        const struct gw_team_value *value = gw_team_values_find(&values, gw_mix64(i));
        assert_non_null(value);
        gw_team_value_read(&values, value, 0, &x, 1);
        assert_true(x == (float)i);
    }
    assert_null(gw_team_values_find(&values, gw_mix64(KEYS)));
}

/* Keys that one of many ranks keeps have hashes that are equal in part: they must not make rows. */
static void values_find__is_fast_for_a_part_of_the_keys(void **state)
{
    (void)state;
    uint32_t kept = 0, farthest = 0;
    for (uint64_t key = 0; kept < 1000; key++)
        if (gw_mix64(key) % 256 == 7) {
            make(key, 1, GW_DTYPE_I32);
            kept++;
        }
    for (uint32_t i = 0, row = 0; i <= values.map.mask; i++) {
        row = values.map.cells[i].value == GW_MAP_NONE ? 0 : row + 1;
        farthest = row > farthest ? row : farthest;
    }
    assert_true(farthest < 50); /* of 1000 in 2048 cells; else all are one row */
}

/* Otherwise the sanitizer ends a program that asks for too much. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void values_make__refuses_what_memory_cannot_hold(void **state)
{
    (void)state;
    struct gw_team_value_shape shape = {.count = UINT64_C(1) << 50, .type = GW_DTYPE_F32};
    assert_int_equal(gw_team_values_make(&values, 1, &shape), GW_ERR_NO_MEMORY);
    assert_null(gw_team_values_find(&values, 1));
    make(1, 1, GW_DTYPE_F32);
}

/* A value is worked on in parts, whose borders may be anywhere. */
static void value_add__adds_a_part(void **state)
{
    (void)state;
    static int32_t ones[LONG], sums[LONG];
    const struct gw_team_value *value = make(3, LONG, GW_DTYPE_I32);
    for (uint32_t i = 0; i < LONG; i++)
        ones[i] = 1;
    gw_team_value_add(&values, value, 100, ones, 1);
    gw_team_value_add(&values, value, 1023, ones, 2050);
    gw_team_value_add(&values, value, 0, ones, LONG);
    gw_team_value_read(&values, value, 0, sums, 200);
    gw_team_value_read(&values, value, 200, sums + 200, LONG - 200);
    for (uint32_t i = 0; i < LONG; i++)
        assert_int_equal(sums[i], 1 + (i == 100) + (i >= 1023 && i < 3073));
}

/* 2048 + 1 + 1 is 2050 in a binary16, but 2048 + 1 alone rounds back to 2048; the like for bfloat16
 * with 256. */
static void value_add__keeps_what_16_bits_would_lose(void **state)
{
    (void)state;
    static const struct {
        enum gw_dtype type;
        uint16_t big, one, sum;
    } cases[] = {
        {GW_DTYPE_F16, 0x6800, 0x3c00, 0x6801},
        {GW_DTYPE_BF16, 0x4380, 0x3f80, 0x4381},
    };
    static uint16_t bigs[LONG], ones[LONG], sums[LONG];
    for (uint32_t k = 0; k < GW_COUNT_OF(cases); k++) {
        const struct gw_team_value *value = make(k, LONG, cases[k].type);
        for (uint32_t i = 0; i < LONG; i++) {
            bigs[i] = cases[k].big;
            ones[i] = cases[k].one;
        }
        gw_team_value_add(&values, value, 0, bigs, LONG);
        gw_team_value_add(&values, value, 0, ones, LONG);
        gw_team_value_read(&values, value, 0, sums, LONG);
        assert_int_equal(sums[LONG - 1], cases[k].big); /* a tie, to even */
        gw_team_value_add(&values, value, 0, ones, LONG);
        gw_team_value_read(&values, value, 0, sums, LONG);
        for (uint32_t i = 0; i < LONG; i++)
            assert_int_equal(sums[i], cases[k].sum);
    }
}

static void value_has_room__sees_every_overflow(void **state)
{
    (void)state;
    static int32_t x[LONG];
    const struct gw_team_value *value = make(9, LONG, GW_DTYPE_I32);
    x[17] = INT32_MAX;
    x[18] = INT32_MIN;
    assert_true(gw_team_value_has_room(value, 0, x, LONG));
    gw_team_value_add(&values, value, 0, x, LONG);
    x[17] = -1;
    x[18] = 1;
    assert_true(gw_team_value_has_room(value, 0, x, LONG));
    x[17] = 1;
    assert_false(gw_team_value_has_room(value, 0, x, LONG));
    assert_false(gw_team_value_has_room(value, 17, &x[17], 1));
    assert_true(gw_team_value_has_room(value, 18, &x[17], LONG - 18));
    x[17] = 0;
    x[18] = -1;
    assert_false(gw_team_value_has_room(value, 0, x, LONG));
    assert_true(gw_team_value_has_room(value, 0, x, 18));
}

/* No map can hold twice as many. */
static void values_make__refuses_more_keys_than_a_map_can_hold(void **state)
{
    (void)state;
    struct gw_team_value_shape shape = {.count = 1, .type = GW_DTYPE_F32};
    make(1, 1, GW_DTYPE_F32);
    struct gw_map map = values.map;
    values.map.count = values.map.limit = 1 << 29;
    assert_int_equal(gw_team_values_make(&values, 2, &shape), GW_ERR_NO_MEMORY);
    values.map = map;
    assert_non_null(gw_team_values_find(&values, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_find__knows_what_was_made, setup, teardown),
        cmocka_unit_test_setup_teardown(values_find__is_fast_for_a_part_of_the_keys, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(values_make__refuses_more_keys_than_a_map_can_hold, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(values_make__refuses_what_memory_cannot_hold, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(value_add__adds_a_part, setup, teardown),
        cmocka_unit_test_setup_teardown(value_add__keeps_what_16_bits_would_lose, setup, teardown),
        cmocka_unit_test_setup_teardown(value_has_room__sees_every_overflow, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
