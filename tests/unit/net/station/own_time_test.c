/* What passes while a process does not run is not part of its time. */
#include "support.h"

#include "net/station/own_time.h"

static const gw_time begin = 7 * GW_S;

static void own_time__passes_as_the_clock_does(void **state)
{
    struct gw_own_time own = gw_own_time_from(begin);
    (void)state;
    for (gw_time at = 0; at < GW_S; at += GW_OWN_TIME_STEP)
        assert_int_equal(gw_own_time_at(&own, begin + at), at);
}

static void own_time__stands_while_the_process_does(void **state)
{
    struct gw_own_time own = gw_own_time_from(begin);
    (void)state;
    assert_int_equal(gw_own_time_at(&own, begin + GW_MS), GW_MS);
    assert_int_equal(gw_own_time_at(&own, begin + GW_MS + 5 * GW_S), GW_MS + GW_OWN_TIME_STEP);
    assert_int_equal(gw_own_time_at(&own, begin + 2 * GW_MS + 5 * GW_S),
                     2 * GW_MS + GW_OWN_TIME_STEP);
    assert_int_equal(own.away, 5 * GW_S);
    assert_int_equal(own.back_at, GW_MS + GW_OWN_TIME_STEP);
}

/* It sleeps as long as it wants to, and what it oversleeps is no more than any other step. */
static void own_time__passes_in_sleep(void **state)
{
    struct gw_own_time own = gw_own_time_from(begin);
    (void)state;
    gw_own_time_slept(&own, 3 * GW_S, begin + 3 * GW_S);
    assert_int_equal(gw_own_time_at(&own, begin + 3 * GW_S), 3 * GW_S);
    gw_own_time_slept(&own, 3 * GW_S, begin + 4 * GW_S);
    assert_int_equal(gw_own_time_at(&own, begin + 4 * GW_S), 4 * GW_S);
    gw_own_time_slept(&own, GW_TIME_NEVER, begin + 104 * GW_S);
    assert_int_equal(gw_own_time_at(&own, begin + 104 * GW_S), 104 * GW_S);
    gw_own_time_slept(&own, GW_S, begin + 110 * GW_S);
    assert_int_equal(gw_own_time_at(&own, begin + 110 * GW_S), 105 * GW_S + GW_OWN_TIME_STEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_time__passes_as_the_clock_does),
        cmocka_unit_test(own_time__stands_while_the_process_does),
        cmocka_unit_test(own_time__passes_in_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
