/* Who lets others go first, and when he does so again. */
#include "support.h"

#include "net/yield.h"

enum { LATE = 0, IN_TIME = 1 }; /* no call takes no time */

static gw_time yield(struct gw_yield *yield, int how)
{
    gw_time before = gw_clock_now(), after = gw_yield(yield, before, how * 1000 * GW_S);
    assert_true(gw_time_before(before, after));
    assert_false(gw_time_before(gw_clock_now(), after));
    return after;
}

static void yield__of_one_who_came_back_late_twice_is_not_repeated_soon(void **state)
{
    (void)state;
    struct gw_yield here;
    gw_yield_init(&here, gw_clock_now());
    gw_time first = yield(&here, LATE);
    assert_false(gw_yield_rests(&here, first));
    gw_time second = yield(&here, LATE);
    assert_true(gw_yield_rests(&here, second));
    assert_true(gw_yield_rests(&here, second + GW_YIELD_REST - 1));
    assert_false(gw_yield_rests(&here, second + GW_YIELD_REST));
    for (gw_time later = GW_YIELD_REST; later > 0; later *= 2) /* also when times wrap */
        assert_false(gw_yield_rests(&here, second + later));
}

/* Else who computes beside us would get a share after each rest. */
static void yield__that_is_late_again_right_after_a_rest_is_followed_by_another(void **state)
{
    (void)state;
    struct gw_yield here;
    gw_yield_init(&here, gw_clock_now());
    atomic_store(&here.late_at, gw_clock_now() - 2 * GW_YIELD_REST);
    assert_false(gw_yield_rests(&here, yield(&here, LATE)));
    atomic_store(&here.late_at, gw_clock_now() - GW_YIELD_REST - 10 * GW_MS);
    assert_true(gw_yield_rests(&here, yield(&here, LATE)));
}

/* Two threads of a process, of which both were away while a third one computed. */
static void yield__that_is_late_together_with_another_counts_once(void **state)
{
    (void)state;
    struct gw_yield here;
    gw_yield_init(&here, gw_clock_now());
    atomic_store(&here.late_at, gw_clock_now() + 1 * GW_S);
    assert_false(gw_yield_rests(&here, yield(&here, LATE)));
    assert_true(gw_yield_rests(&here, yield(&here, LATE)));
}

static void yield__of_one_who_came_back_in_time_may_be_repeated(void **state)
{
    (void)state;
    struct gw_yield here;
    gw_yield_init(&here, gw_clock_now());
    yield(&here, LATE);
    for (int i = 0; i < 3; i++)
        assert_false(gw_yield_rests(&here, yield(&here, IN_TIME)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yield__of_one_who_came_back_late_twice_is_not_repeated_soon),
        cmocka_unit_test(yield__that_is_late_again_right_after_a_rest_is_followed_by_another),
        cmocka_unit_test(yield__that_is_late_together_with_another_counts_once),
        cmocka_unit_test(yield__of_one_who_came_back_in_time_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
