/* Expressions over JSON; see query.h. */
#include "cli/query.h"

#include <jq.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confined.h"
#include "topo/memory.h"

/*
 * What expressions find defined, on a line of its own. The settings of a result are texts; an error
 * that is an object tells a point that is absent from all other errors.
 */
static const char prelude[] =
    "def mean: add / length; "
    "def every($settings): [.[] | select(.params as $params | $settings | to_entries |"
    " all(.[]; $params[.key] == (.value | tostring)))] |"
    " if length == 0 then error({absent: ($settings | tojson)}) else . end;"
    "def at($settings): every($settings) | if length == 1 then .[0]"
    " else error(\"\\(length) points have \\($settings | tojson)\") end;\n";

enum {
    CPU_MS = 10000, /* for one evaluation; real ones take a few */
};

struct gw_query {
    jq_state *jq;
    char *why;        /* of the call that runs; only the first complaint is kept */
    const char *json; /* of the evaluation that runs */
    uint32_t cpu_ms;
};

/* Copies a text of libjq as one line, without what is about jq's own command line. */
static void say(char why[GW_QUERY_WHY_MAX], const char *text)
{
    static const char *const heads[] = {"jq: error: ", "jq: error (at <unknown>): "};
    static const char *const tails[] = {" (Unix shell quoting issues?)", " at <top-level>"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (strncmp(text, heads[i], strlen(heads[i])) == 0)
            text += strlen(heads[i]);
    snprintf(why, GW_QUERY_WHY_MAX, "%.*s", (int)strcspn(text, "\r\n"), text);
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        char *tail = strstr(why, tails[i]);
        if (tail)
            *tail = '\0';
    }
}

/* Takes `message`. */
static void keep_first(void *arg, jv message)
{
    struct gw_query *query = arg;
    jv text = jq_format_error(message);
    if (query->why && query->why[0] == '\0')
        say(query->why, jv_string_value(text));
    jv_free(text);
}

/* libjq calls these without asking whether they are there. */
static void ignore(void *arg, jv message)
{
    (void)arg;
    jv_free(message);
}

static jv no_input(jq_state *jq, void *arg)
{
    (void)jq;
    (void)arg;
    return jv_invalid_with_msg(jv_string("there is no other input"));
}

struct gw_query *gw_query_open(const char *expression, char *why)
{
    struct gw_query *query = gw_memory_zeroed(1, sizeof(*query));
    size_t size = sizeof(prelude) + strlen(expression);
    char *program = gw_memory_zeroed(size, 1);
    snprintf(program, size, "%s%s", prelude, expression);
    why[0] = '\0';
    query->why = why;
    query->cpu_ms = CPU_MS;
    query->jq = jq_init();
    if (!query->jq)
        abort();
    jq_set_error_cb(query->jq, keep_first, query);
    jq_set_debug_cb(query->jq, ignore, NULL);
    jq_set_input_cb(query->jq, no_input, NULL);
    /* No folder to import from. */
    jq_set_attr(query->jq, jv_string("JQ_LIBRARY_PATH"), jv_array());
    bool compiled = jq_compile(query->jq, program) != 0;
    free(program);
    query->why = NULL;
    if (!compiled) {
        gw_query_close(query);
        return NULL;
    }
    return query;
}

/* Why the expression gave nothing; takes `last`, what jq_next() returned. */
static void explain(jv last, struct gw_query_result *result)
{
    result->kind = GW_QUERY_FAILED;
    jv message = jv_invalid_get_msg(last);
    if (jv_get_kind(message) == JV_KIND_OBJECT) {
        jv absent = jv_object_get(message, jv_string("absent"));
        if (jv_get_kind(absent) == JV_KIND_STRING) {
            result->kind = GW_QUERY_ABSENT;
            const char *text = jv_string_value(absent);
            snprintf(result->why, GW_QUERY_WHY_MAX, "no point has %.*s", (int)strcspn(text, "\r\n"),
                     text);
        } else {
            snprintf(result->why, GW_QUERY_WHY_MAX, "the expression ends with an error");
        }
        jv_free(absent);
        return;
    }
    if (jv_get_kind(message) == JV_KIND_STRING)
        say(result->why, jv_string_value(message));
    else
        snprintf(result->why, GW_QUERY_WHY_MAX, "the expression gives nothing");
    jv_free(message);
}

/* Takes `value`. */
static void read_value(jv value, struct gw_query_result *result)
{
    jv_kind kind = jv_get_kind(value);
    result->kind = GW_QUERY_FAILED;
    if (kind == JV_KIND_NUMBER) {
        double number = jv_number_value(value);
        if (isfinite(number)) {
            result->kind = GW_QUERY_NUMBER;
            result->number = number;
        } else {
            snprintf(result->why, GW_QUERY_WHY_MAX, "the expression gives no finite number");
        }
    } else if (kind == JV_KIND_TRUE || kind == JV_KIND_FALSE) {
        result->kind = GW_QUERY_TRUTH;
        result->number = kind == JV_KIND_TRUE;
    } else {
        snprintf(result->why, GW_QUERY_WHY_MAX,
                 "the expression gives %s%s, not a number or truth value",
                 kind == JV_KIND_NULL                              ? ""
                 : kind == JV_KIND_ARRAY || kind == JV_KIND_OBJECT ? "an "
                                                                   : "a ",
                 jv_kind_name(kind));
    }
    jv_free(value);
}

/* In the child: libjq ends the program where an expression meets a defect of libjq. */
static void evaluate(void *arg, void *bytes)
{
    struct gw_query *query = arg;
    struct gw_query_result *result = bytes;
    jq_start(query->jq, jv_parse(query->json), 0);
    jv value = jq_next(query->jq);
    if (!jv_is_valid(value)) {
        explain(value, result);
        return;
    }
    read_value(value, result);
    value = jq_next(query->jq);
    if (jv_is_valid(value)) {
        result->kind = GW_QUERY_FAILED;
        snprintf(result->why, GW_QUERY_WHY_MAX, "the expression gives more than one value");
    }
    jv_free(value);
}

void gw_query_limit(struct gw_query *query, uint32_t cpu_ms)
{
    query->cpu_ms = cpu_ms;
}

void gw_query_run(struct gw_query *query, const char *json, struct gw_query_result *result)
{
    *result = (struct gw_query_result){0};
    query->json = json;
    struct gw_confined confined = {
        .work = evaluate,
        .arg = query,
        .result = result,
        .result_size = sizeof(*result),
        .cpu_ms = query->cpu_ms,
    };
    enum gw_confined_end end = gw_confined_run(&confined);
    query->json = NULL;
    if (end == GW_CONFINED_DONE)
        return;
    *result = (struct gw_query_result){.kind = GW_QUERY_FAILED};
    if (end == GW_CONFINED_SLOW)
        snprintf(result->why, GW_QUERY_WHY_MAX,
                 "the expression cannot be evaluated: it takes more than %u ms", query->cpu_ms);
    else
        snprintf(result->why, GW_QUERY_WHY_MAX,
                 "the expression cannot be evaluated: jq fails, or needs more than %d MiB",
                 GW_CONFINED_MEMORY_MIB);
}

void gw_query_close(struct gw_query *query)
{
    if (!query)
        return;
    jq_teardown(&query->jq);
    free(query);
}
