/* Who lets others go first, and when he does so again. */
#include "support.h"

#include "net/yield.h"

static void yield__of_one_who_came_back_late_is_not_repeated_soon(void **state)
{
    (void)state;
    gw_time before = gw_clock_now(), until = 0;
    gw_time after = gw_yield(before, 0, &until); /* no call takes no time */
    assert_true(gw_time_before(before, after));
    assert_false(gw_time_before(gw_clock_now(), after));
    assert_true(until == after + GW_YIELD_REST);
}

static void yield__of_one_who_came_back_in_time_may_be_repeated(void **state)
{
    (void)state;
    gw_time until = GW_TIME_NEVER;
    assert_true(gw_yield(gw_clock_now(), 1000 * GW_S, &until) == until);
    assert_false(gw_time_before(gw_clock_now(), until));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yield__of_one_who_came_back_late_is_not_repeated_soon),
        cmocka_unit_test(yield__of_one_who_came_back_in_time_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
