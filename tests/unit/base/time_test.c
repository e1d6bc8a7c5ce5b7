/* Comparison across the wrap, "never", and the exactness of serialisation times. */
#include "support.h"

#include "base/time.h"

static void time_before__holds_across_the_wrap(void **state)
{
    static const gw_time bases[] = {0, 1, GW_S, UINT64_C(1) << 63, 0 - GW_S, 0 - GW_NS};
    static const gw_time steps[] = {1, GW_NS, GW_S, 100 * 86400 * GW_S, INT64_MAX};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(bases); i++) {
        assert_false(gw_time_before(bases[i], bases[i]));
        for (size_t j = 0; j < GW_COUNT_OF(steps); j++) {
            assert_true(gw_time_before(bases[i], bases[i] + steps[j]));
            assert_false(gw_time_before(bases[i] + steps[j], bases[i]));
        }
    }
}

static void deadline_before__puts_never_last(void **state)
{
    static const gw_time points[] = {0, GW_S, UINT64_C(1) << 63, GW_TIME_NEVER - 1};
    (void)state;
    assert_false(gw_deadline_before(GW_TIME_NEVER, GW_TIME_NEVER));
    for (size_t i = 0; i < GW_COUNT_OF(points); i++) {
        assert_true(gw_deadline_before(points[i], GW_TIME_NEVER));
        assert_false(gw_deadline_before(GW_TIME_NEVER, points[i]));
    }
    assert_true(gw_deadline_before(GW_TIME_NEVER - 1, 1));
    assert_false(gw_deadline_before(1, GW_TIME_NEVER - 1));
}

static void time_add__never_yields_never(void **state)
{
    (void)state;
    assert_int_equal(gw_time_add(GW_US, GW_NS), GW_US + GW_NS);
    assert_int_equal(gw_time_add(GW_TIME_NEVER - 1, 1), 0);
    assert_int_equal(gw_time_add(GW_TIME_NEVER - 1, 2), 0);
    assert_int_equal(gw_time_add(GW_TIME_NEVER - 1, 3), 1);
}

static void serialisation__is_exact_where_the_rate_divides(void **state)
{
    static const struct {
        uint64_t rate_bps;
        gw_time byte_ps;
    } cases[] = {
        {UINT64_C(1600000000000), 5}, {UINT64_C(800000000000), 10}, {UINT64_C(400000000000), 20},
        {UINT64_C(200000000000), 40}, {UINT64_C(100000000000), 80}, {UINT64_C(25000000000), 320},
        {1000000000, 8000},           {GW_RATE_BPS_MIN, 80000000},
    };
    static const uint32_t sizes[] = {0, 1, 64, 1500, 4160, 9000, 65536};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        for (size_t j = 0; j < GW_COUNT_OF(sizes); j++)
            assert_int_equal(gw_serialisation(gw_byte_time_from_bps(cases[i].rate_bps), sizes[j]),
                             sizes[j] * cases[i].byte_ps);
}

/* ser * rate and bytes * 8e12 may differ by what one picosecond carries, and no more. */
static void serialisation__is_within_a_picosecond_elsewhere(void **state)
{
    static const uint64_t rates[] = {UINT64_C(3000000000), UINT64_C(7777777777),
                                     UINT64_C(56000000000), UINT64_C(300000000000), 123456789};
    static const uint32_t sizes[] = {1, 64, 1500, 4160, 9000, 65536};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(rates); i++)
        for (size_t j = 0; j < GW_COUNT_OF(sizes); j++) {
            gw_time time = gw_serialisation(gw_byte_time_from_bps(rates[i]), sizes[j]);
            int64_t error = (int64_t)(time * rates[i] - sizes[j] * UINT64_C(8000000000000));
            assert_true(error <= (int64_t)rates[i] && -error <= (int64_t)rates[i]);
        }
}

static void serialisation__rounds_to_nearest(void **state)
{
    (void)state;
    assert_int_equal(gw_byte_time_from_bps(UINT64_C(3000000000)), 174762667); /* 2/3 above ...666 */
    gw_byte_time third = gw_byte_time_from_bps(UINT64_C(24000000000000));     /* 1/3 ps */
    assert_int_equal(gw_serialisation(third, 1), 0);
    assert_int_equal(gw_serialisation(third, 2), 1);
    assert_int_equal(gw_serialisation(third, 4), 1);
    assert_int_equal(gw_serialisation(third, 5), 2);
    assert_int_equal(gw_serialisation(0, 65536), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_before__holds_across_the_wrap),
        cmocka_unit_test(deadline_before__puts_never_last),
        cmocka_unit_test(time_add__never_yields_never),
        cmocka_unit_test(serialisation__is_exact_where_the_rate_divides),
        cmocka_unit_test(serialisation__is_within_a_picosecond_elsewhere),
        cmocka_unit_test(serialisation__rounds_to_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
