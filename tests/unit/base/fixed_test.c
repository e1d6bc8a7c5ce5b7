/* Fixed-point arithmetic: exact products and roots, and the direction of rounding. */
#include "support.h"

#include "base/fixed.h"

static void fixed_mul__rounds_down(void **state)
{
    static const struct {
        gw_q16 a, b, product;
    } cases[] = {
        {GW_Q16_ONE, GW_Q16_ONE, GW_Q16_ONE},
        {3 * GW_Q16_ONE, GW_Q16_ONE / 2, 3 * GW_Q16_ONE / 2},
        {1, GW_Q16_ONE - 1, 0},
        {-1, GW_Q16_ONE - 1, -1},
        {-3 * GW_Q16_ONE, GW_Q16_ONE / 4, -3 * GW_Q16_ONE / 4},
        /* The product of the integers does not fit 64 bits. */
        {INT64_MAX, GW_Q16_ONE, INT64_MAX},
        {INT64_MIN, GW_Q16_ONE, INT64_MIN},
        {INT64_C(1) << 50, INT64_C(1) << 20, INT64_C(1) << 54},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        assert_true(gw_q16_mul(cases[i].a, cases[i].b) == cases[i].product);
        assert_true(gw_q16_mul(cases[i].b, cases[i].a) == cases[i].product);
    }
}

/* The root is the largest whose square is no larger: on both sides of squares, at both ends. */
static void fixed_sqrt__rounds_down(void **state)
{
    (void)state;
    assert_int_equal(gw_sqrt(0), 0);
    assert_int_equal(gw_sqrt(UINT64_MAX), UINT32_MAX);
    for (uint64_t root = 1; root < UINT32_MAX; root += 1 + root / 7) {
        assert_int_equal(gw_sqrt(root * root), root);
        assert_int_equal(gw_sqrt(root * root - 1), root - 1);
        assert_int_equal(gw_sqrt(root * root + 2 * root), root);
    }
}

/* The same of cubes, up to the largest that is allowed. */
static void fixed_cbrt__rounds_down(void **state)
{
    (void)state;
    const uint64_t largest = (UINT64_C(1) << 42) - 1;
    assert_true(gw_cbrt(0) == 0);
    assert_true(gw_cbrt(((unsigned __int128)1 << 126) - 1) == largest);
    for (uint64_t root = 1; root <= largest; root += 1 + root / 7) {
        unsigned __int128 cube = (unsigned __int128)root * root * root;
        unsigned __int128 next = (unsigned __int128)(root + 1) * (root + 1) * (root + 1);
        assert_true(gw_cbrt(cube) == root);
        assert_true(gw_cbrt(cube - 1) == root - 1);
        assert_true(gw_cbrt(next - 1) == root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_mul__rounds_down),
        cmocka_unit_test(fixed_sqrt__rounds_down),
        cmocka_unit_test(fixed_cbrt__rounds_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
