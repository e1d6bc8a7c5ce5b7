/* The calendar: what is marked comes once, in its window, to the partition that has the place. */
#include <string.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "base/error.h"
#include "sim/calendar.h"

/* Seven places, all in one word of a row. Nothing is to happen before 1 ms. */
static const char fabric[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}\n"
    "workload: {kind: background, pairs: \"0->1\", start: 1ms}\n";

enum {
    PLACES = 7,
};

static void open_fabric(struct gw_test_sim *run, uint32_t threads)
{
    const struct gw_sim_options options = {.seed = 1, .threads = threads};
    gw_test_sim_open(run, &options, fabric, "%s", "");
}

/* Goes on to the window that is `ahead` windows later, and enters it. */
static uint32_t enter(struct gw_sim *sim, struct gw_sim_part *part, uint32_t ahead)
{
    gw_sim_calendar_leave(sim);
    sim->window_index += ahead;
    return gw_sim_calendar_enter(part);
}

static void calendar__has_marked_places_in_their_window(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_fabric(&run, 1);
    struct gw_sim_part *part = &run.sim->parts[0];
    assert_int_equal(gw_sim_calendar_enter(part), 0);
    uint64_t to_start = GW_MS / run.sim->window;
    assert_true(gw_sim_calendar_ahead(run.sim) == to_start);
    gw_sim_calendar_mark(gw_sim_calendar_row(part, 3), 4);
    gw_sim_calendar_mark(gw_sim_calendar_row(part, 3), 2);
    gw_sim_calendar_mark(gw_sim_calendar_row(part, 3), 4);
    assert_true(gw_sim_calendar_ahead(run.sim) == 3);
    assert_int_equal(enter(run.sim, part, 3), 2);
    assert_int_equal(part->places[0], 2);
    assert_int_equal(part->places[1], 4);
    /* When the circle of rows has come round, the row is empty again. */
    assert_int_equal(enter(run.sim, part, run.sim->row_mask + 1), 0);
    assert_true(gw_sim_calendar_ahead(run.sim) == to_start - run.sim->window_index);
    gw_test_sim_close(&run);
}

/* Two partitions share the word: each runs its own places, whoever has marked them. */
static void calendar__gives_each_partition_its_own(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_fabric(&run, 2);
    struct gw_sim_part *parts = run.sim->parts;
    assert_true(parts[0].last > 0 && parts[1].first == parts[0].last);
    assert_true(parts[1].first < parts[1].last && parts[1].last == PLACES);
    for (uint32_t p = 0; p < 2; p++)
        gw_sim_calendar_enter(&parts[p]);
    for (uint32_t place = 0; place < PLACES; place++)
        gw_sim_calendar_mark(gw_sim_calendar_row(&parts[place % 2], 1), place);
    assert_int_equal(enter(run.sim, &parts[0], 1), parts[0].last);
    assert_int_equal(gw_sim_calendar_enter(&parts[1]), PLACES - parts[1].first);
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t i = 0; i < parts[p].last - parts[p].first; i++)
            assert_int_equal(parts[p].places[i], parts[p].first + i);
    gw_test_sim_close(&run);
}

/* The earliest of a place's wakes counts, and comes once. */
static void calendar__wakes_a_place_at_the_earliest_time(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_fabric(&run, 1);
    struct gw_sim_part *part = &run.sim->parts[0];
    gw_time window = run.sim->window;
    gw_sim_calendar_enter(part);
    gw_sim_calendar_wake(part, 3, 20 * window + 1);
    gw_sim_calendar_wake(part, 3, 10 * window + 1);
    gw_sim_calendar_wake(part, 3, 30 * window);
    assert_true(gw_sim_calendar_ahead(run.sim) == 10);
    assert_int_equal(enter(run.sim, part, 9), 0);
    assert_int_equal(enter(run.sim, part, 1), 1);
    assert_int_equal(part->places[0], 3);
    assert_int_equal(enter(run.sim, part, 20), 0);
    gw_test_sim_close(&run);
}

static void calendar__refuses_a_flight_of_too_many_windows(void **state)
{
    (void)state;
    static const char text[] =
        "topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}\n"
        "workload: {kind: background, pairs: \"0->1\"}\n"
        "faults: [{at: 0, link: [leaf0, spine0], reorder: 0.1, delay: 10ms}]\n";
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_scenario scenario;
    struct gw_sim *sim;
    char path[GW_TEST_PATH_MAX], why[GW_WHY_MAX];
    gw_test_write_file(path, text);
    assert_int_equal(gw_scenario_load(&scenario, path, NULL, 0, why), GW_OK);
    assert_int_equal(gw_sim_open(&sim, &scenario, &options, why), GW_ERR_RANGE);
    assert_non_null(strstr(why, "the longest packet flight is"));
    assert_null(sim);
    gw_scenario_free(&scenario);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calendar__has_marked_places_in_their_window),
        cmocka_unit_test(calendar__gives_each_partition_its_own),
        cmocka_unit_test(calendar__wakes_a_place_at_the_earliest_time),
        cmocka_unit_test(calendar__refuses_a_flight_of_too_many_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
