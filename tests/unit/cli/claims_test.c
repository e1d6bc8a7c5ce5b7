/* Verdicts: bounds and tolerances, medians over seeds, points that are absent. */
#include "support.h"

#include "cli/claims.h"
#include "cli/cli.h"

static const struct gw_claim at_least = {.has_least = true, .at_least = 2};
static const struct gw_claim truth = {.is_truth = true};

static int last_status; /* of the judge */

/* The verdict over results whose only key is "x", of `seeds` seeds of one point. */
static json_t *verdict(const struct gw_claim *form, const char *measured, const double *x,
                       uint32_t seeds, bool is_narrowed)
{
    char id[] = "a", text[] = "b", source[] = "c", place[] = "f:1: m: ", copy[128];
    struct gw_claim claim = *form;
    snprintf(copy, sizeof(copy), "%s", measured);
    claim.id = id;
    claim.text = text;
    claim.source = source;
    claim.place = place;
    claim.measured = copy;
    struct gw_sweep sweep = {.point_count = 1, .claims = &claim, .claim_count = 1};
    struct gw_claims *claims = gw_claims_open(&sweep);
    assert_non_null(claims);
    json_t *results = json_array();
    for (uint32_t i = 0; i < seeds; i++)
        json_array_append_new(results, json_pack("{s:f, s:{}}", "x", x[i], "params"));
    last_status = gw_claims_judge(claims, results, is_narrowed);
    json_t *list = gw_claims_json(claims);
    assert_int_equal(json_array_size(list), 1);
    json_t *json = json_incref(json_array_get(list, 0));
    json_decref(list);
    json_decref(results);
    gw_claims_close(claims);
    return json;
}

static bool holds(struct gw_claim form, double x)
{
    json_t *json = verdict(&form, ".[0].x", &x, 1, false);
    const json_t *value = json_object_get(json, "holds");
    assert_true(json_is_boolean(value));
    assert_true(json_number_value(json_object_get(json, "measured")) == x);
    assert_int_equal(json_integer_value(json_object_get(json, "seeds_holding")),
                     json_is_true(value));
    bool is = json_is_true(value);
    json_decref(json);
    return is;
}

static void claims_judge__knows_bounds(void **state)
{
    (void)state;
    assert_true(holds(at_least, 2));
    assert_false(holds(at_least, 1.999));
    const struct gw_claim at_most = {.has_most = true, .at_most = 2};
    assert_true(holds(at_most, 2));
    assert_false(holds(at_most, 2.001));
    const struct gw_claim between = {
        .has_least = true, .at_least = 1, .has_most = true, .at_most = 2};
    assert_true(holds(between, 1.5));
    assert_false(holds(between, 0.9));
    assert_false(holds(between, 2.1));
}

static void claims_judge__widens_by_the_tolerance(void **state)
{
    (void)state;
    const struct gw_claim about = {.has_about = true, .about = 4, .tolerance = 0.25};
    assert_true(holds(about, 3) && holds(about, 5));
    assert_false(holds(about, 2.99) || holds(about, 5.01));
    const struct gw_claim negative = {.has_about = true, .about = -4, .tolerance = 0.25};
    assert_true(holds(negative, -3) && holds(negative, -5));
    assert_false(holds(negative, -2.99) || holds(negative, -5.01));
    struct gw_claim least = at_least;
    least.tolerance = 0.5;
    assert_true(holds(least, 1));
    assert_false(holds(least, 0.99));
    const struct gw_claim most = {.has_most = true, .at_most = -2, .tolerance = 0.5};
    assert_true(holds(most, -1));
    assert_false(holds(most, -0.99));
}

/* The median decides, also where most seeds fail. */
static void claims_judge__takes_the_median_over_seeds(void **state)
{
    static const double odd[] = {9, 1, 2}, even[] = {1, 9, 2, 1};
    (void)state;
    json_t *json = verdict(&at_least, ".[0].x", odd, 3, false);
    assert_true(json_number_value(json_object_get(json, "measured")) == 2);
    assert_true(json_is_true(json_object_get(json, "holds")));
    assert_int_equal(json_integer_value(json_object_get(json, "seeds_holding")), 2);
    json_decref(json);
    json = verdict(&at_least, ".[0].x", even, 4, false);
    assert_true(json_number_value(json_object_get(json, "measured")) == 1.5);
    assert_true(json_is_false(json_object_get(json, "holds")));
    assert_int_equal(json_integer_value(json_object_get(json, "seeds_holding")), 2);
    json_decref(json);
}

/* What is measured of each seed by itself has another median. */
static void claims_judge__joins_seeds_where_told(void **state)
{
    static const double x[] = {9, 1, 2};
    static const char expression[] = "[every({})[].x] | max - min";
    struct gw_claim joint = at_least;
    (void)state;
    joint.is_joint = true;
    json_t *json = verdict(&joint, expression, x, 3, false);
    assert_true(json_number_value(json_object_get(json, "measured")) == 8);
    assert_true(json_is_true(json_object_get(json, "holds")));
    assert_int_equal(json_integer_value(json_object_get(json, "seeds_holding")), 3);
    json_decref(json);
    json = verdict(&at_least, expression, x, 3, false);
    assert_true(json_number_value(json_object_get(json, "measured")) == 0);
    assert_true(json_is_false(json_object_get(json, "holds")));
    json_decref(json);
}

static void claims_judge__counts_what_is_true(void **state)
{
    static const double x[] = {1, 9, 9, 1};
    (void)state;
    json_t *json = verdict(&truth, ".[0].x > 5", x, 3, false);
    assert_true(json_is_true(json_object_get(json, "measured")));
    assert_true(json_is_true(json_object_get(json, "holds")));
    assert_true(json_is_true(json_object_get(json, "expected")));
    assert_int_equal(json_integer_value(json_object_get(json, "seeds_holding")), 2);
    json_decref(json);
    json = verdict(&truth, ".[0].x > 5", x, 4, false); /* half is not most */
    assert_true(json_is_false(json_object_get(json, "holds")));
    json_decref(json);
}

/* Without --set an expression that gives nothing is wrong; with it, points may be absent. */
static void claims_judge__does_not_compute_what_is_absent(void **state)
{
    static const double x[] = {3};
    static const struct {
        const struct gw_claim *form;
        const char *measured;
    } cases[] = {
        {&at_least, "at({lb: \"reps\"}).x"},
        {&at_least, ".[0].y"},
        {&at_least, ".[0].x > 1"},
        {&truth, ".[0].x"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        for (int is_narrowed = 0; is_narrowed < 2; is_narrowed++) {
            json_t *json = verdict(cases[i].form, cases[i].measured, x, 1, is_narrowed);
            assert_int_equal(last_status, is_narrowed ? GW_EXIT_OK : GW_EXIT_USAGE);
            assert_true(json_is_null(json_object_get(json, "measured")));
            assert_true(json_is_null(json_object_get(json, "holds")));
            assert_int_equal(json_integer_value(json_object_get(json, "seeds_holding")), 0);
            json_decref(json);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_judge__knows_bounds),
        cmocka_unit_test(claims_judge__widens_by_the_tolerance),
        cmocka_unit_test(claims_judge__takes_the_median_over_seeds),
        cmocka_unit_test(claims_judge__joins_seeds_where_told),
        cmocka_unit_test(claims_judge__counts_what_is_true),
        cmocka_unit_test(claims_judge__does_not_compute_what_is_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
