/* Scales are exact numbers, and the greatest safe exponent at its limits. */
#include "quant_reference.h"

static void scale_power__is_the_power(void **state)
{
    (void)state;
    double expected = 0x1p-110;
    for (int exponent = GW_SCALE_EXPONENT_MIN; exponent <= GW_SCALE_EXPONENT_MAX; exponent++) {
        struct gw_scale scale = gw_scale_power(exponent, 3);
        assert_true(scale.up == expected);
        assert_true(scale.down == 3 * expected);
        expected *= 2;
    }
}

static void scale_integer__is_exact(void **state)
{
    (void)state;
    struct gw_scale paper = gw_scale_integer(100000000, 1);
    assert_true(paper.up == 1e8 && paper.down == 1e8);
    struct gw_scale largest = gw_scale_integer(GW_SCALE_INTEGER_MAX, GW_SCALE_SHARES_MAX);
    assert_true(largest.down == 0x1p53);
}

static void scale_exponent_max__holds_at_its_limits(void **state)
{
    static const struct {
        float x;
        uint32_t workers;
        int exponent;
    } cases[] = {
        {1, 1, 30},                /* 2^31 - 1 is the limit */
        {1, 2, 29},                /* 2 * 2^30 is above 2^31 - 2 */
        {1, 1024, 20},             /* the same for any power of two */
        {1, 3, 29},                /* 3 * 2^29 fits */
        {0.2f, 100, 26},           /* the ATP paper's B for 100 workers and 10^8, which is 2^26.6 */
        {0x1.fffffep0f, 2, 29},    /* 2^31 - 128 fits for 2 workers, */
        {0x1.fffffep0f, 1024, 19}, /* but not for 1024 */
        {0x1.fffffep127f, 1, -97},
        {0x1.fffffep127f, 8192, -110},
        {0x1p-79f, 2, 108},
        {0x1p-82f, 2, 110}, /* 111, if there were one */
        {0x1p-149f, 1024, 110},
        {0, 7, 110},
        {__builtin_inff(), 7, 110},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        uint32_t bits;
        memcpy(&bits, &cases[i].x, sizeof(bits));
        assert_int_equal(gw_scale_exponent_max(bits, cases[i].workers), cases[i].exponent);
    }
    assert_int_equal(gw_scale_exponent_max(UINT32_C(0x7fc00000), 1), GW_SCALE_EXPONENT_MAX);
    assert_int_equal(gw_scale_exponent_max(UINT32_C(0x7fffffff), 1), GW_SCALE_EXPONENT_MAX);
}

static void kernels_best__needs_no_more_than_there_is(void **state)
{
    (void)state;
    size_t count = 0;
    for (uint32_t features = 0; features < 4; features++) {
        const struct gw_kernels *best = gw_kernels_best(features);
        assert_int_equal(best->needs & ~features, 0);
        /* Nothing that comes earlier in the list would do. */
        for (count = 0; gw_kernels_list[count] != best; count++)
            assert_int_not_equal(gw_kernels_list[count]->needs & ~features, 0);
    }
    assert_string_equal(gw_kernels_best(0)->name, "portable");
#if defined(__x86_64__)
    assert_string_equal(gw_kernels_best(GW_CPU_AVX2)->name, "avx2");
    assert_string_equal(gw_kernels_best(GW_CPU_AVX2 | GW_CPU_AVX512)->name, "avx512");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_power__is_the_power),
        cmocka_unit_test(scale_integer__is_exact),
        cmocka_unit_test(scale_exponent_max__holds_at_its_limits),
        cmocka_unit_test(kernels_best__needs_no_more_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
