/* How long the server waits: what is usual, between the least and the most. */
#include "core/aggregation/patience.h"

#include "support.h"

enum {
    WINDOW = 4,
};

static struct gw_patience patience;

static void start(void)
{
    gw_patience_init(&patience, 10 * GW_US, 40 * GW_MS);
}

static void patience__begins_with_the_most(void **state)
{
    (void)state;
    start();
    assert_int_equal(gw_patience_of(&patience), 40 * GW_MS);
    gw_patience_note(&patience, GW_MS);
    assert_int_equal(gw_patience_of(&patience), 3 * GW_MS); /* RFC 6298, section 2.2 */
}

static void patience__follows_what_is_usual(void **state)
{
    (void)state;
    start();
    for (uint32_t i = 0; i < 100; i++)
        gw_patience_note(&patience, 20 * GW_US);
    assert_in_range(gw_patience_of(&patience), 20 * GW_US, 21 * GW_US);
    for (uint32_t i = 0; i < 100; i++)
        gw_patience_note(&patience, 5 * GW_MS);
    assert_in_range(gw_patience_of(&patience), 5 * GW_MS - GW_US, 6 * GW_MS);
}

/* One worker that was away for long is not usual. */
static void patience__one_long_waiting_counts_as_twice_the_patience(void **state)
{
    (void)state;
    start();
    for (uint32_t i = 0; i < 100; i++)
        gw_patience_note(&patience, 20 * GW_US);
    gw_patience_note(&patience, GW_S);
    assert_true(gw_patience_of(&patience) < 60 * GW_US);
}

static void patience__keeps_to_its_limits(void **state)
{
    (void)state;
    start();
    for (uint32_t i = 0; i < 100; i++)
        gw_patience_note(&patience, 0);
    assert_int_equal(gw_patience_of(&patience), 10 * GW_US);
    for (uint32_t i = 0; i < 100; i++)
        gw_patience_note(&patience, UINT64_MAX);
    assert_int_equal(gw_patience_of(&patience), 40 * GW_MS);
    gw_patience_init(&patience, GW_MS, GW_MS);
    gw_patience_note(&patience, GW_US);
    assert_int_equal(gw_patience_of(&patience), GW_MS);
}

/* Of the results of a window the longest waiting counts. */
static void patience__goes_by_the_longest_of_a_window(void **state)
{
    (void)state;
    start();
    for (uint32_t i = 0; i < 100 * WINDOW; i++) {
        assert_int_equal(gw_patience_of(&patience) == 40 * GW_MS, i < WINDOW);
        gw_patience_result(&patience, i % WINDOW == 1 ? 2 * GW_MS : GW_US, 1, WINDOW);
    }
    assert_in_range(gw_patience_of(&patience), 2 * GW_MS - GW_US, 2 * GW_MS + GW_US);
}

/* Several at once are the first of them and others right behind it. */
static void patience__takes_several_results_at_once(void **state)
{
    (void)state;
    struct gw_patience single;
    start();
    single = patience;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t count = 1 + i % WINDOW;
        gw_time waited = (i * 7919) % 5000 * GW_NS;
        gw_patience_result(&patience, waited, count, WINDOW);
        for (uint32_t at = 0; at < count; at++)
            gw_patience_result(&single, at ? 0 : waited, 1, WINDOW);
        assert_int_equal(patience.results, single.results);
        assert_int_equal(gw_patience_of(&patience), gw_patience_of(&single));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patience__begins_with_the_most),
        cmocka_unit_test(patience__follows_what_is_usual),
        cmocka_unit_test(patience__one_long_waiting_counts_as_twice_the_patience),
        cmocka_unit_test(patience__keeps_to_its_limits),
        cmocka_unit_test(patience__goes_by_the_longest_of_a_window),
        cmocka_unit_test(patience__takes_several_results_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
