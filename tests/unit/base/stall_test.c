/* Stalls: the moment and the verdict agree, at the limit and across the wrap of time. */
#include "support.h"

#include "base/prng.h"
#include "base/stall.h"

enum {
    STEPS = 20000,
};

static void stall_is_over__agrees_with_the_time_since(void **state)
{
    (void)state;
    struct gw_prng prng = {.state = 1};
    uint32_t over = 0;
    for (int step = 0; step < STEPS; step++) {
        gw_time progress_at = 0 - 50 * GW_NS + gw_prng_below(&prng, 100) * GW_NS;
        gw_time limit = (1 + gw_prng_below(&prng, 20)) * GW_NS;
        gw_time since = gw_prng_below(&prng, 40) * GW_NS;
        gw_time now = progress_at + since;
        if (now == GW_TIME_NEVER || progress_at == GW_TIME_NEVER)
            continue;
        assert_int_equal(gw_stall_at(progress_at, limit), progress_at + limit);
        assert_int_equal(gw_stall_is_over(progress_at, limit, now), since >= limit);
        over += since >= limit;
    }
    assert_in_range(over, STEPS / 4, STEPS * 3 / 4);
}

static void stall_at__without_limit_is_never(void **state)
{
    (void)state;
    assert_int_equal(gw_stall_at(GW_S, 0), GW_TIME_NEVER);
    assert_false(gw_stall_is_over(0, 0, 1000 * GW_S));
}

static void stall_at__with_limit_is_never_never(void **state)
{
    (void)state;
    gw_time progress_at = GW_TIME_NEVER - GW_S;
    assert_int_equal(gw_stall_at(progress_at, GW_S), 0);
    assert_false(gw_stall_is_over(progress_at, GW_S, GW_TIME_NEVER - 1));
    assert_true(gw_stall_is_over(progress_at, GW_S, 0));
}

/* Clocks of two calls may differ: progress may be later than now. */
static void stall_is_over__not_before_the_progress(void **state)
{
    (void)state;
    assert_false(gw_stall_is_over(GW_S, GW_NS, GW_S - 1));
    assert_false(gw_stall_is_over(2, GW_NS, 0 - GW_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stall_is_over__agrees_with_the_time_since),
        cmocka_unit_test(stall_at__without_limit_is_never),
        cmocka_unit_test(stall_at__with_limit_is_never_never),
        cmocka_unit_test(stall_is_over__not_before_the_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
