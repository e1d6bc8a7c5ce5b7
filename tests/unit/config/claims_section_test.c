/* `claims:` of a scenario: what is read, and what is refused with its place. */
#include "unit/config/scenario_file.h"

#define CLAIM_HEAD "claims:\n  - id: a.b\n    text: REPS is faster\n    source: section 4\n"
#define MEASURED   "    measured: '.[0].x'\n"

static int load(struct gw_sweep *sweep, const char *source, char why[GW_WHY_MAX])
{
    char name[SCENARIO_NAME_MAX];
    scenario_file(name, source);
    int error = gw_sweep_load(sweep, name, NULL, 0, why);
    unlink(name);
    return error;
}

static void claims_load__reads_all_forms_of_expected(void **state)
{
    static const struct {
        const char *expected;
        struct gw_claim claim;
    } cases[] = {
        {"yes", {.is_truth = true}},
        {"{at_least: 1.2}", {.has_least = true, .at_least = 1.2}},
        {"{at_most: 80%}", {.has_most = true, .at_most = 0.8}},
        {"{at_least: -2, at_most: 1e3}",
         {.has_least = true, .at_least = -2, .has_most = true, .at_most = 1000}},
        {"{about: 3}\n    tolerance: 10%", {.has_about = true, .about = 3, .tolerance = 0.1}},
        {"{at_most: 3}\n    tolerance: 0.25", {.has_most = true, .at_most = 3, .tolerance = 0.25}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char text[512], why[GW_WHY_MAX];
        struct gw_sweep sweep;
        snprintf(text, sizeof(text), CLAIM_HEAD MEASURED "    expected: %s\n", cases[i].expected);
        assert_int_equal(load(&sweep, text, why), GW_OK);
        assert_int_equal(sweep.claim_count, 1);
        const struct gw_claim *claim = &sweep.claims[0], *expected = &cases[i].claim;
        assert_string_equal(claim->id, "a.b");
        assert_string_equal(claim->text, "REPS is faster");
        assert_string_equal(claim->source, "section 4");
        assert_string_equal(claim->measured, ".[0].x");
        assert_non_null(strstr(claim->place, ".yaml:5: claims.0.measured: "));
        assert_true(claim->is_truth == expected->is_truth);
        assert_true(claim->has_about == expected->has_about && claim->about == expected->about);
        assert_true(claim->has_least == expected->has_least &&
                    claim->at_least == expected->at_least);
        assert_true(claim->has_most == expected->has_most && claim->at_most == expected->at_most);
        assert_true(claim->tolerance == expected->tolerance);
        gw_sweep_free(&sweep);
    }
}

static void claims_load__gives_none_where_none_are(void **state)
{
    (void)state;
    struct gw_sweep sweep;
    char why[GW_WHY_MAX];
    assert_int_equal(load(&sweep, "topology: star\n", why), GW_OK);
    assert_int_equal(sweep.claim_count, 0);
    gw_sweep_free(&sweep);
    gw_sweep_free(&sweep); /* is empty, and stays so */
}

static void claims_load__names_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"claims: 3\n", ":1: claims: expected a list of claims"},
        {"claims:\n  - faster\n", ":2: claims.0: expected a map of id"},
        {"claims:\n  - id: a\n    txt: b\n", ":3: claims.0.txt: unknown key"},
        {"claims:\n  - text: b\n", ":2: claims.0: id is missing"},
        {"claims:\n  - id:\n    text: b\n", ":2: claims.0.id: id is missing"},
        {"claims:\n  - id: a\n    text: [b]\n", ":3: claims.0.text: expected a single value"},
        {CLAIM_HEAD "    expected: yes\n", ":2: claims.0: measured is missing"},
        {CLAIM_HEAD MEASURED, ":2: claims.0: expected is missing: yes, or a map"},
        {CLAIM_HEAD MEASURED "    expected: no\n", ":6: claims.0.expected: not understood: no"},
        {CLAIM_HEAD MEASURED "    expected: 3\n", ":6: claims.0.expected: not understood: 3"},
        {CLAIM_HEAD MEASURED "    expected: {}\n", ":6: claims.0.expected: give about, or one"},
        {CLAIM_HEAD MEASURED "    expected: [1]\n", ":6: claims.0.expected: expected a map"},
        {CLAIM_HEAD MEASURED "    expected: {is: 1}\n", ":6: claims.0.expected.is: unknown key"},
        {CLAIM_HEAD MEASURED "    expected: {about: 1, at_most: 2}\n", "give about, or one"},
        {CLAIM_HEAD MEASURED "    expected: {at_least: 1x}\n",
         ":6: claims.0.expected.at_least: not understood: 1x; expected a number"},
        {CLAIM_HEAD MEASURED "    expected: {at_least: inf}\n", "not understood: inf"},
        {CLAIM_HEAD MEASURED "    expected: {at_least: }\n", "not understood: (nothing)"},
        {CLAIM_HEAD MEASURED "    expected: {about: 1}\n", ":2: claims.0: tolerance is missing"},
        {CLAIM_HEAD MEASURED "    expected: yes\n    tolerance: 1%\n",
         ":7: claims.0.tolerance: what is true or false has no tolerance"},
        {CLAIM_HEAD MEASURED "    expected: {about: 1}\n    tolerance: -1%\n",
         ":7: claims.0.tolerance: value out of range: -1%"},
        {"claims:\n  - {id: a b, text: b, source: c, measured: d, expected: yes}\n",
         ":2: claims.0.id: an id has letters"},
        {"claims:\n  - {id: a, text: b, source: c, measured: d, expected: yes}\n"
         "  - {id: a, text: b, source: c, measured: d, expected: yes}\n",
         ":3: claims.1.id: another claim has this id: a"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_sweep sweep;
        char why[GW_WHY_MAX] = "";
        assert_true(load(&sweep, cases[i].text, why) < 0);
        if (!strstr(why, cases[i].why) || strchr(why, '\n'))
            fail_msg("case %zu: said \"%s\"", i, why);
        gw_sweep_free(&sweep);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_load__reads_all_forms_of_expected),
        cmocka_unit_test(claims_load__gives_none_where_none_are),
        cmocka_unit_test(claims_load__names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
