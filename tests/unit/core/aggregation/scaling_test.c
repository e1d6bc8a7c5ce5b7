/* Exponents of fragments: as bytes, at the limit that is safe, and when it is worth to agree. */
#include "unit/core/quant/quant_reference.h"

#include "core/aggregation/scaling.h"

/* The least of bytes is that of the least exponent, and none is above all. */
static void scaling_byte__keeps_the_order(void **state)
{
    (void)state;
    int before = -1;
    for (int exponent = GW_SCALE_EXPONENT_MIN; exponent <= GW_SCALE_EXPONENT_MAX; exponent++) {
        uint8_t byte = gw_scaling_byte(exponent);
        assert_true(byte > before && byte < GW_PKT_SCALE_NONE);
        assert_int_equal(gw_scaling_exponent(byte, GW_SCALE_EXPONENT_MAX), exponent);
        before = byte;
    }
}

/* Whatever a packet says is an exponent that exists, and not above the job's. */
static void scaling_exponent__takes_any_byte(void **state)
{
    (void)state;
    for (int job = GW_SCALE_EXPONENT_MIN; job <= GW_SCALE_EXPONENT_MAX; job += 11)
        for (uint32_t byte = 0; byte <= UINT8_MAX; byte++) {
            int exponent = gw_scaling_exponent((uint8_t)byte, job);
            assert_in_range(exponent - GW_SCALE_EXPONENT_MIN, 0, job - GW_SCALE_EXPONENT_MIN);
            if (byte >= gw_scaling_byte(job))
                assert_int_equal(exponent, job);
            else
                assert_int_equal(gw_scaling_byte(exponent), byte);
        }
}

static int safe_of(const struct gw_kernels *kernels, enum gw_dtype type, uint32_t bits,
                   uint32_t workers, int exponent)
{
    unsigned char x[3 * 4] = {0};
    uint32_t size = gw_dtype_size(type);
    memcpy(x + size, &bits, size);
    struct gw_scaling_values values = {.x = x, .count = 3, .type = type, .workers = workers};
    return gw_scaling_safe(kernels, &values, exponent);
}

/* Both sides of B = (2^31 - n) / (n * 2^27) for eight workers, which is just below 2. */
static void scaling_safe__changes_at_the_bound(void **state)
{
    static const struct {
        enum gw_dtype type;
        uint32_t below, above;
    } cases[] = {
        {GW_DTYPE_F32, 0x3fffffff, 0x40000000},
        {GW_DTYPE_F16, 0x3fff, 0x4000},
        {GW_DTYPE_BF16, 0x3fff, 0x4000},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        for (uint32_t k = 0; gw_kernels_list[k]; k++) {
            const struct gw_kernels *kernels = gw_kernels_list[k];
            enum gw_dtype type = cases[i].type;
            uint32_t sign = UINT32_C(1) << (8 * gw_dtype_size(type) - 1);
            if (kernels->needs & ~gw_cpu_features())
                continue;
            assert_int_equal(safe_of(kernels, type, cases[i].below, 8, 27), 27);
            assert_int_equal(safe_of(kernels, type, cases[i].above, 8, 27), 26);
            assert_int_equal(safe_of(kernels, type, sign | cases[i].below, 8, 27), 27);
            assert_int_equal(safe_of(kernels, type, sign | cases[i].above, 8, 27), 26);
            assert_int_equal(safe_of(kernels, type, cases[i].above, 8, 20), 20);
            assert_int_equal(safe_of(kernels, type, 0, 8, 27), 27);
        }
}

/* No sum of `workers` such fragments saturates, and with one bit more some would. */
static void scaling_safe__is_safe_and_greatest(void **state)
{
    struct gw_prng prng = gw_prng_derive(20, 0);
    const struct gw_kernels *kernels = gw_kernels_best(0);
    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t workers = 1 + gw_prng_below(&prng, 1024);
        float x;
        uint32_t bits = (100 + gw_prng_below(&prng, 60)) << 23 | gw_prng_below(&prng, 1 << 23);
        memcpy(&x, &bits, sizeof(x));
        int safe = safe_of(kernels, GW_DTYPE_F32, bits, workers, GW_SCALE_EXPONENT_MAX);
        int32_t wire;
        struct gw_scale scale = gw_scale_power(safe, 1);
        assert_true(kernels->quantise[GW_DTYPE_F32](&wire, &x, 1, &scale));
        assert_true((int64_t)wire * workers < INT32_MAX);
        /* (2^31 - n) / n, in units of the next exponent, is less than x. */
        assert_true((double)x * 2 * scale.up * workers > 0x1p31 - workers);
    }
}

static void scaling_safe__leaves_alone_what_is_not_scaled(void **state)
{
    const struct gw_kernels *kernels = gw_kernels_best(0);
    (void)state;
    assert_int_equal(safe_of(kernels, GW_DTYPE_F32, 0x7f800000, 8, 27), 27);
    assert_int_equal(safe_of(kernels, GW_DTYPE_F32, 0xffc00001, 8, 27), 27);
    assert_int_equal(safe_of(kernels, GW_DTYPE_F16, 0x7c00, 8, 27), 27);
}

/* After `fragments` of which every `every`th overflows. */
static bool is_high_after(struct gw_overflow_rate *rate, uint32_t fragments, uint32_t every)
{
    for (uint32_t i = 1; i <= fragments; i++)
        gw_overflow_rate_note(rate, every && i % every == 0);
    return gw_overflow_rate_is_high(rate);
}

static void overflow_rate__is_high_above_one_in_a_thousand(void **state)
{
    (void)state;
    struct gw_overflow_rate rate = {0};
    assert_false(gw_overflow_rate_is_high(&rate));
    assert_false(is_high_after(&rate, 1, 1)); /* one alone */
    assert_false(is_high_after(&rate, 100000, 2000));
    assert_true(is_high_after(&rate, 100000, 500));
    assert_false(is_high_after(&rate, 100000, 2000)); /* what was is forgotten */
    assert_true(is_high_after(&rate, 10, 1));
    assert_true(is_high_after(&rate, 1000000, 1)); /* all of them: the sum does not wrap */
    assert_true(is_high_after(&rate, 20000, 0));
    assert_false(is_high_after(&rate, 20000, 0));
    assert_false(is_high_after(&rate, 1000000, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_byte__keeps_the_order),
        cmocka_unit_test(scaling_exponent__takes_any_byte),
        cmocka_unit_test(scaling_safe__changes_at_the_bound),
        cmocka_unit_test(scaling_safe__is_safe_and_greatest),
        cmocka_unit_test(scaling_safe__leaves_alone_what_is_not_scaled),
        cmocka_unit_test(overflow_rate__is_high_above_one_in_a_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
