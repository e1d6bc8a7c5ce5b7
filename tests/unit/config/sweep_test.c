/* Sweeps: the product of the lists, less what the command line fixes. */
#include "unit/config/scenario_file.h"

static const char text[] = "topology: star\n"
                           "workload: permutation\n"
                           "sweep: {cc: [smartt, fixed], workload.size: [64KiB, 2MiB, 8MiB]}\n";

static int load(struct gw_sweep *sweep, const char *source, const char *set, char why[GW_WHY_MAX])
{
    char name[SCENARIO_NAME_MAX], copy[256];
    struct gw_override override;
    if (set)
        override = scenario_override(copy, set);
    scenario_file(name, source);
    int error = gw_sweep_load(sweep, name, set ? &override : NULL, set != NULL, why);
    unlink(name);
    return error;
}

static void sweep_load__gives_the_product(void **state)
{
    static const char *const expected[][2] = {{"smartt", "64KiB"}, {"smartt", "2MiB"},
                                              {"smartt", "8MiB"},  {"fixed", "64KiB"},
                                              {"fixed", "2MiB"},   {"fixed", "8MiB"}};
    (void)state;
    struct gw_sweep sweep;
    char why[GW_WHY_MAX];
    assert_int_equal(load(&sweep, text, NULL, why), GW_OK);
    assert_int_equal(sweep.key_count, 2);
    assert_int_equal(sweep.point_count, GW_COUNT_OF(expected));
    for (uint32_t p = 0; p < sweep.point_count; p++) {
        assert_string_equal(sweep.overrides[2 * p].key, "cc");
        assert_string_equal(sweep.overrides[2 * p].value, expected[p][0]);
        assert_string_equal(sweep.overrides[2 * p + 1].key, "workload.size");
        assert_string_equal(sweep.overrides[2 * p + 1].value, expected[p][1]);
        /* Each point loads. */
        struct gw_scenario scenario;
        char name[SCENARIO_NAME_MAX];
        scenario_file(name, text);
        assert_int_equal(gw_scenario_load(&scenario, name, &sweep.overrides[2 * p], 2, why), GW_OK);
        unlink(name);
        assert_string_equal(scenario.transport.cc->algo.name, expected[p][0]);
        gw_scenario_free(&scenario);
    }
    gw_sweep_free(&sweep);
}

static void sweep_load__leaves_out_what_is_overridden(void **state)
{
    (void)state;
    struct gw_sweep sweep;
    char why[GW_WHY_MAX];
    assert_int_equal(load(&sweep, text, "workload.size=1MiB", why), GW_OK);
    assert_int_equal(sweep.key_count, 1);
    assert_int_equal(sweep.point_count, 2);
    assert_string_equal(sweep.overrides[1].value, "fixed");
    gw_sweep_free(&sweep);
}

/* A list may be called by an alias, and a variant may change a list. */
static void sweep_load__knows_aliases_and_variants(void **state)
{
    static const char short_text[] = "aliases: {size: workload.size}\n"
                                     "variants: {scale: {small: {sweep.size: [1KiB]}}}\n"
                                     "sweep: {size: [64KiB, 2MiB], scale: [small]}\n";
    static const struct {
        const char *set;
        uint32_t keys, points;
    } cases[] = {
        {NULL, 2, 2},
        {"size=1MiB", 1, 1},
        {"workload.size=1MiB", 1, 1},
        {"scale=small", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_sweep sweep;
        char why[GW_WHY_MAX];
        assert_int_equal(load(&sweep, short_text, cases[i].set, why), GW_OK);
        assert_int_equal(sweep.key_count, cases[i].keys);
        assert_int_equal(sweep.point_count, cases[i].points);
        if (i == 3)
            assert_string_equal(sweep.overrides[0].value, "1KiB");
        gw_sweep_free(&sweep);
    }
}

static void sweep_load__lists_the_columns_of_the_table(void **state)
{
    (void)state;
    struct gw_sweep sweep;
    char why[GW_WHY_MAX];
    assert_int_equal(load(&sweep, "table: [fct_us.max, trims]\n", NULL, why), GW_OK);
    assert_int_equal(sweep.column_count, 2);
    assert_string_equal(sweep.columns[0], "fct_us.max");
    assert_string_equal(sweep.columns[1], "trims");
    gw_sweep_free(&sweep);
    assert_int_equal(load(&sweep, "topology: star\n", NULL, why), GW_OK);
    assert_int_equal(sweep.column_count, 0);
    gw_sweep_free(&sweep);
}

static void sweep_load__gives_one_empty_point_without_a_sweep(void **state)
{
    (void)state;
    struct gw_sweep sweep;
    char why[GW_WHY_MAX];
    assert_int_equal(load(&sweep, "topology: star\n", NULL, why), GW_OK);
    assert_int_equal(sweep.key_count, 0);
    assert_int_equal(sweep.point_count, 1);
    gw_sweep_free(&sweep);
}

static void sweep_load__names_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"a: 1\nsweep: 3\n", ":2: sweep: expected a map"},
        {"sweep:\n  cc: smartt\n", ":2: sweep.cc: expected a list"},
        {"sweep:\n  workload: {degree: [4, 8]}\n",
         ":2: sweep.workload: expected a list of values; those of workload.degree are "
         "sweep={workload.degree: [...]}"},
        {"sweep:\n  cc: {}\n", ":2: sweep.cc: expected a list"},
        {"sweep:\n  cc: []\n", ":2: sweep.cc: expected a list"},
        {"sweep:\n  cc: [smartt,\n    {kind: fixed}]\n", ":3: sweep.cc.1: expected a single value"},
        {"sweep: [\n", ".yaml:1: "},
        {"a: 1\ntable: trims\n", ":2: table: expected a list of columns"},
        {"table: []\n", ":1: table: expected a list of columns"},
        {"table:\n  - a\n  - {b: c}\n", ":3: table.1: expected a single value"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_sweep sweep;
        char why[GW_WHY_MAX];
        assert_true(load(&sweep, cases[i].text, NULL, why) < 0);
        if (!strstr(why, cases[i].why))
            fail_msg("case %zu: said \"%s\"", i, why);
        gw_sweep_free(&sweep);
    }
}

static void sweep_load__limits_the_points(void **state)
{
    (void)state;
    struct gw_sweep sweep;
    char why[GW_WHY_MAX], many[1024] = "sweep:\n";
    for (char key = 'a'; key < 'f'; key++) {
        size_t used = strlen(many);
        snprintf(many + used, sizeof(many) - used, "  %c: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n", key);
    }
    assert_int_equal(load(&sweep, many, NULL, why), GW_ERR_RANGE);
    assert_non_null(strstr(why, ":6: sweep.e: the sweep has more than 10000 points"));
    gw_sweep_free(&sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweep_load__gives_the_product),
        cmocka_unit_test(sweep_load__leaves_out_what_is_overridden),
        cmocka_unit_test(sweep_load__knows_aliases_and_variants),
        cmocka_unit_test(sweep_load__lists_the_columns_of_the_table),
        cmocka_unit_test(sweep_load__gives_one_empty_point_without_a_sweep),
        cmocka_unit_test(sweep_load__names_what_is_wrong),
        cmocka_unit_test(sweep_load__limits_the_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
