/* How the window of a worker grows and is cut. */
#include "core/aggregation/agg_window.h"
#include "support.h"

enum {
    INITIAL = 4,
    MOST = 16,
};

static struct gw_agg_window window_open(uint32_t least, bool is_fixed)
{
    struct gw_agg_window window = {
        .increase = GW_Q16_ONE,
        .initial = (uint64_t)INITIAL << 16,
        .least = (uint64_t)least << 16,
        .most = (uint64_t)MOST << 16,
        .is_fixed = is_fixed,
    };
    gw_agg_window_restart(&window);
    return window;
}

static void window_grow__is_by_result_and_then_by_window(void **state)
{
    (void)state;
    struct gw_agg_window window = window_open(1, false);
    for (uint32_t i = 0; i < INITIAL; i++)
        gw_agg_window_grow(&window);
    assert_int_equal(gw_agg_window_fragments(&window), 2 * INITIAL);
    assert_true(gw_agg_window_cut(&window, 0, 8)); /* ends slow start */
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL);
    for (uint32_t i = 0; i < INITIAL; i++)
        gw_agg_window_grow(&window);
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL);
    gw_agg_window_grow(&window);
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL + 1);
    for (uint32_t i = 0; i < MOST * MOST; i++)
        gw_agg_window_grow(&window);
    assert_int_equal(window.size, window.most);
}

static void window_cut__comes_once_per_window(void **state)
{
    (void)state;
    struct gw_agg_window window = window_open(1, false);
    uint32_t begin = UINT32_MAX - 1; /* numbers wrap */
    assert_true(gw_agg_window_cut(&window, begin, begin + INITIAL));
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL / 2);
    assert_false(gw_agg_window_cut(&window, begin + INITIAL - 1, begin + INITIAL + 1));
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL / 2);
    assert_true(gw_agg_window_cut(&window, begin + INITIAL, begin + INITIAL + 1));
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL / 4);
}

static void window_cut__ends_at_the_least(void **state)
{
    (void)state;
    struct gw_agg_window window = window_open(3, false);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(gw_agg_window_cut(&window, i, i));
    assert_int_equal(gw_agg_window_fragments(&window), 3);
}

static void window_restart__forgets_cuts(void **state)
{
    (void)state;
    struct gw_agg_window window = window_open(1, false);
    assert_true(gw_agg_window_cut(&window, 0, 100));
    gw_agg_window_restart(&window);
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL);
    gw_agg_window_grow(&window); /* in slow start again */
    assert_int_equal(gw_agg_window_fragments(&window), INITIAL + 1);
    assert_true(gw_agg_window_cut(&window, 0, 100));
}

static void window__is_fixed_without_congestion_control(void **state)
{
    (void)state;
    struct gw_agg_window window = window_open(1, true);
    gw_agg_window_grow(&window);
    assert_false(gw_agg_window_cut(&window, 0, 1));
    assert_int_equal(window.size, window.initial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_grow__is_by_result_and_then_by_window),
        cmocka_unit_test(window_cut__comes_once_per_window),
        cmocka_unit_test(window_cut__ends_at_the_least),
        cmocka_unit_test(window_restart__forgets_cuts),
        cmocka_unit_test(window__is_fixed_without_congestion_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
