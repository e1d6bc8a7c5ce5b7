/* Expressions over results: values, points by their settings, and one sentence for each mistake. */
#include "support.h"

#include "cli/query.h"

static const char results[] =
    "[{\"params\": {\"lb\": \"reps\", \"size\": \"8\"}, \"x\": 2, \"jobs\": [{\"y\": 5}]},"
    " {\"params\": {\"lb\": \"ecmp\", \"size\": \"8\"}, \"x\": 3, \"jobs\": []}]";

static struct gw_query_result evaluate(const char *expression)
{
    char why[GW_QUERY_WHY_MAX];
    struct gw_query_result first, again;
    struct gw_query *query = gw_query_open(expression, why);
    if (!query)
        fail_msg("%s: %s", expression, why);
    gw_query_run(query, results, &first);
    gw_query_run(query, results, &again);
    gw_query_close(query);
    assert_int_equal(first.kind, again.kind);
    assert_true(first.number == again.number);
    assert_string_equal(first.why, again.why);
    return first;
}

static void query_run__gives_numbers_and_truth(void **state)
{
    static const struct {
        const char *expression;
        enum gw_query_kind kind;
        double number;
    } cases[] = {
        {".[0].x", GW_QUERY_NUMBER, 2},
        {"at({lb: \"ecmp\"}).x / at({lb: \"reps\", size: 8}).x", GW_QUERY_NUMBER, 1.5},
        {"[.[].x] | mean", GW_QUERY_NUMBER, 2.5},
        {"at({lb: \"reps\"}) | .jobs[0].y", GW_QUERY_NUMBER, 5},
        {"def f:\n  3;\nf", GW_QUERY_NUMBER, 3},
        {"all(.[]; .x > 1)", GW_QUERY_TRUTH, 1},
        {"all(.[]; .x > 2)", GW_QUERY_TRUTH, 0},
        {".[0].x | debug", GW_QUERY_NUMBER, 2},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_query_result result = evaluate(cases[i].expression);
        assert_int_equal(result.kind, cases[i].kind);
        assert_true(result.number == cases[i].number);
    }
}

static void query_run__says_why_there_is_no_value(void **state)
{
    static const struct {
        const char *expression;
        enum gw_query_kind kind;
        const char *why;
    } cases[] = {
        {"at({lb: \"plb\"}).x", GW_QUERY_ABSENT, "no point has {\"lb\":\"plb\"}"},
        {"at({mtu: 3}).x", GW_QUERY_ABSENT, "no point has {\"mtu\":3}"},
        {"at({size: 8}).x", GW_QUERY_FAILED, "2 points have {\"size\":8}"},
        {".[0].z", GW_QUERY_FAILED, "the expression gives null, not a number or truth value"},
        {".[0].params", GW_QUERY_FAILED, "the expression gives an object, not a number"},
        {".[0].params.lb", GW_QUERY_FAILED, "the expression gives a string, not a number"},
        {"empty", GW_QUERY_FAILED, "the expression gives nothing"},
        {"halt", GW_QUERY_FAILED, "the expression gives nothing"},
        {"error(null)", GW_QUERY_FAILED, "the expression gives nothing"},
        {"error({a: 1})", GW_QUERY_FAILED, "the expression ends with an error"},
        {"error(\"two\\nlines\")", GW_QUERY_FAILED, "two"},
        {".[].x", GW_QUERY_FAILED, "the expression gives more than one value"},
        {"nan", GW_QUERY_FAILED, "the expression gives no finite number"},
        {".[0].x / 0", GW_QUERY_FAILED, "cannot be divided because the divisor is zero"},
        {".[0].x + \"a\"", GW_QUERY_FAILED, "number (2) and string (\"a\") cannot be added"},
        {"input", GW_QUERY_FAILED, "there is no other input"},
        {"error({absent: \"a\\nb\"})", GW_QUERY_ABSENT, "no point has a"},
        {"path(.[0], .[1]) | length", GW_QUERY_FAILED, "the expression gives more than one value"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_query_result result = evaluate(cases[i].expression);
        assert_int_equal(result.kind, cases[i].kind);
        if (!strstr(result.why, cases[i].why) || strchr(result.why, '\n'))
            fail_msg("%s: said \"%s\"", cases[i].expression, result.why);
    }
}

/* Expressions that would end, stop or fill the program, were they evaluated in it. */
static void query_run__outlives_expressions(void **state)
{
    static const struct {
        const char *expression, *why;
    } cases[] = {
        {"def f: f; f", "cannot be evaluated: it takes more than 50 ms"},
        {"[repeat(1)] | length",
         "cannot be evaluated: "}, /* time or memory, whichever ends first */
        {"1e18 | todate | 1", "cannot be evaluated: jq fails, or needs more than 1024 MiB"},
        {"[1] | .[1e9] = 1 | length", "cannot be evaluated: "}, /* likewise */
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char why[GW_QUERY_WHY_MAX];
        struct gw_query_result result;
        struct gw_query *query = gw_query_open(cases[i].expression, why);
        assert_non_null(query);
        gw_query_limit(query, 50);
        gw_query_run(query, results, &result);
        gw_query_close(query);
        assert_int_equal(result.kind, GW_QUERY_FAILED);
        if (!strstr(result.why, cases[i].why) || strchr(result.why, '\n'))
            fail_msg("%s: said \"%s\"", cases[i].expression, result.why);
    }
}

static void query_open__refuses_what_is_no_expression(void **state)
{
    static const struct {
        const char *expression, *why;
    } cases[] = {
        {".[0", "syntax error, unexpected $end"},
        {"rate(3)", "rate/1 is not defined"},
        {"$x", "$x is not defined"},
        {"import \"a\" as a; 1", "syntax error, unexpected import"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char why[GW_QUERY_WHY_MAX];
        assert_null(gw_query_open(cases[i].expression, why));
        if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0 || strchr(why, '\n'))
            fail_msg("%s: said \"%s\"", cases[i].expression, why);
    }
    gw_query_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(query_run__gives_numbers_and_truth),
        cmocka_unit_test(query_run__says_why_there_is_no_value),
        cmocka_unit_test(query_run__outlives_expressions),
        cmocka_unit_test(query_open__refuses_what_is_no_expression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
