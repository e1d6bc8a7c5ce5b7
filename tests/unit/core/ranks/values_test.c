/* The table of values: what is added is found, rounded as promised, and nothing else changes. */
#include "support.h"

#include "base/cpu.h"
#include "base/error.h"
#include "base/prng.h"
#include "core/ranks/values.h"

enum {
    KEYS = 5000,
    LONG = 5000,
};

static struct gw_values values;

/* Memory that is counted; the piece `refusal_at`, counted from now, is refused. */
static uint32_t pieces, refusal_at;

static void *take(void *context, size_t size)
{
    void *memory = refusal_at && --refusal_at == 0 ? NULL : calloc(1, size);
    assert_ptr_equal(context, &values);
    pieces += memory != NULL;
    return memory;
}

static void give(void *context, void *memory)
{
    assert_ptr_equal(context, &values);
    pieces -= memory != NULL;
    free(memory);
}

static int setup(void **state)
{
    (void)state;
    const struct gw_allocator allocator = {.take = take, .give = give, .context = &values};
    refusal_at = 0;
    gw_values_init(&values, gw_kernels_best(gw_cpu_features()), &allocator);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gw_values_fini(&values);
    return pieces == 0 ? 0 : -1;
}

static const struct gw_value *make(uint64_t key, uint64_t count, enum gw_dtype type)
{
    assert_int_equal(
        gw_values_make(&values, key, &(struct gw_value_shape){.count = count, .type = type}),
        GW_OK);
    return gw_values_find(&values, key);
}

static void values_find__knows_what_was_made(void **state)
{
    (void)state;
    assert_null(gw_values_find(&values, 0));
    for (uint32_t i = 0; i < KEYS; i++) {
        uint64_t key = gw_mix64(i); /* 0 is among them */
        float x = (float)i;
        assert_null(gw_values_find(&values, key));
        gw_value_add(&values, make(key, 1, GW_DTYPE_F32), 0, &x, 1);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        float x;
        const struct gw_value *value = gw_values_find(&values, gw_mix64(i));
        assert_non_null(value);
        gw_value_read(&values, value, 0, &x, 1);
        assert_true(x == (float)i);
    }
    assert_null(gw_values_find(&values, gw_mix64(KEYS)));
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
    struct gw_value_shape shape = {.count = UINT64_C(1) << 50, .type = GW_DTYPE_F32};
    assert_int_equal(gw_values_make(&values, 1, &shape), GW_ERR_NO_MEMORY);
    /* A product that wraps around to 8 bytes. */
    shape = (struct gw_value_shape){.count = (UINT64_C(1) << 61) + 1, .type = GW_DTYPE_F64};
    assert_int_equal(gw_values_make(&values, 1, &shape), GW_ERR_NO_MEMORY);
    assert_null(gw_values_find(&values, 1));
    make(1, 1, GW_DTYPE_F32);
}

/* Whichever piece of memory is refused, of those that the first value and that which makes the
 * table grow need: all is as it was. */
static void values_make__changes_nothing_without_memory(void **state)
{
    (void)state;
    struct gw_value_shape shape = {.count = 1, .type = GW_DTYPE_F32};
    for (uint32_t key = 0; key < 200; key++)
        for (uint32_t piece = 1; piece <= 4; piece++) {
            uint32_t before = pieces;
            refusal_at = piece;
            int code = gw_values_make(&values, key, &shape);
            bool was_refused = refusal_at == 0;
            refusal_at = 0;
            assert_int_equal(code, was_refused ? GW_ERR_NO_MEMORY : GW_OK);
            assert_true(was_refused == (gw_values_find(&values, key) == NULL));
            for (uint32_t other = 0; other < key; other++)
                assert_non_null(gw_values_find(&values, other));
            if (!was_refused)
                break;
            /* A table that has grown, empty as yet, stays. */
            assert_in_range(pieces, before, before + 2);
        }
}

/* A value is worked on in parts, whose borders may be anywhere. */
static void value_add__adds_a_part(void **state)
{
    (void)state;
    static int32_t ones[LONG], sums[LONG];
    const struct gw_value *value = make(3, LONG, GW_DTYPE_I32);
    for (uint32_t i = 0; i < LONG; i++)
        ones[i] = 1;
    gw_value_add(&values, value, 100, ones, 1);
    gw_value_add(&values, value, 1023, ones, 2050);
    gw_value_add(&values, value, 0, ones, LONG);
    gw_value_read(&values, value, 0, sums, 200);
    gw_value_read(&values, value, 200, sums + 200, LONG - 200);
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
        const struct gw_value *value = make(k, LONG, cases[k].type);
        for (uint32_t i = 0; i < LONG; i++) {
            bigs[i] = cases[k].big;
            ones[i] = cases[k].one;
        }
        gw_value_add(&values, value, 0, bigs, LONG);
        gw_value_add(&values, value, 0, ones, LONG);
        gw_value_read(&values, value, 0, sums, LONG);
        assert_int_equal(sums[LONG - 1], cases[k].big); /* a tie, to even */
        gw_value_add(&values, value, 0, ones, LONG);
        gw_value_read(&values, value, 0, sums, LONG);
        for (uint32_t i = 0; i < LONG; i++)
            assert_int_equal(sums[i], cases[k].sum);
    }
}

/* 2^53 + 1 is no float64; as two float32 both would be lost. */
static void value_add__keeps_64_bits(void **state)
{
    (void)state;
    static double doubles[LONG], sums[LONG];
    static int64_t integers[LONG], totals[LONG];
    const struct gw_value *f64 = make(1, LONG, GW_DTYPE_F64);
    const struct gw_value *i64 = make(2, LONG, GW_DTYPE_I64);
    for (uint32_t i = 0; i < LONG; i++) {
        doubles[i] = 0x1p52 + i;
        integers[i] = (INT64_C(1) << 60) + i;
    }
    for (uint32_t k = 0; k < 2; k++) {
        gw_value_add(&values, f64, 0, doubles, LONG);
        gw_value_add(&values, i64, 0, integers, LONG);
    }
    gw_value_read(&values, f64, 0, sums, LONG);
    gw_value_read(&values, i64, 7, totals, LONG - 7);
    for (uint32_t i = 0; i < LONG; i++)
        assert_true(sums[i] == 0x1p53 + 2 * i);
    for (uint32_t i = 7; i < LONG; i++)
        assert_true(totals[i - 7] == (INT64_C(1) << 61) + 2 * (int64_t)i);
}

static void value_has_room__knows_all_integers(void **state)
{
    (void)state;
    static const int64_t i64[] = {INT64_MAX - 1, INT64_MIN + 1}, up[] = {1, -1}, over[] = {2, -2};
    static const uint8_t u8[] = {0, 254}, one[] = {255, 1}, two[] = {255, 2};
    const struct gw_value *wide = make(1, 2, GW_DTYPE_I64), *byte = make(2, 2, GW_DTYPE_U8);
    gw_value_add(&values, wide, 0, i64, 2);
    gw_value_add(&values, byte, 0, u8, 2);
    assert_true(gw_value_has_room(wide, 0, up, 2));
    assert_false(gw_value_has_room(wide, 0, over, 1));
    assert_false(gw_value_has_room(wide, 1, over + 1, 1));
    assert_true(gw_value_has_room(wide, 0, over + 1, 1));
    assert_true(gw_value_has_room(byte, 0, one, 2));
    assert_true(gw_value_has_room(byte, 0, two, 1));
    assert_false(gw_value_has_room(byte, 0, two, 2));
    gw_value_add(&values, byte, 0, one, 2);
    uint8_t sums[2];
    gw_value_read(&values, byte, 0, sums, 2);
    assert_true(sums[0] == 255 && sums[1] == 255);
}

static void value_has_room__sees_every_overflow(void **state)
{
    (void)state;
    static int32_t x[LONG];
    const struct gw_value *value = make(9, LONG, GW_DTYPE_I32);
    x[17] = INT32_MAX;
    x[18] = INT32_MIN;
    assert_true(gw_value_has_room(value, 0, x, LONG));
    gw_value_add(&values, value, 0, x, LONG);
    x[17] = -1;
    x[18] = 1;
    assert_true(gw_value_has_room(value, 0, x, LONG));
    x[17] = 1;
    assert_false(gw_value_has_room(value, 0, x, LONG));
    assert_false(gw_value_has_room(value, 17, &x[17], 1));
    assert_true(gw_value_has_room(value, 18, &x[17], LONG - 18));
    x[17] = 0;
    x[18] = -1;
    assert_false(gw_value_has_room(value, 0, x, LONG));
    assert_true(gw_value_has_room(value, 0, x, 18));
}

/* No map can hold twice as many. */
static void values_make__refuses_more_keys_than_a_map_can_hold(void **state)
{
    (void)state;
    struct gw_value_shape shape = {.count = 1, .type = GW_DTYPE_F32};
    make(1, 1, GW_DTYPE_F32);
    struct gw_map map = values.map;
    values.map.count = values.map.limit = 1 << 29;
    assert_int_equal(gw_values_make(&values, 2, &shape), GW_ERR_NO_MEMORY);
    values.map = map;
    assert_non_null(gw_values_find(&values, 1));
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
        cmocka_unit_test_setup_teardown(values_make__changes_nothing_without_memory, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(value_add__keeps_64_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(value_has_room__knows_all_integers, setup, teardown),
        cmocka_unit_test_setup_teardown(value_has_room__sees_every_overflow, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
