/*
 * An expression over JSON that gives one number or one truth value, in the language of jq.
 *
 * It sees an array of results, as `gradwire sim --json` prints them, and besides the functions of
 * jq these:
 *
 *     at({lb: "reps", size: "4MiB"})   the one result of a point with these settings
 *     every({lb: "reps"})              the array of all of them
 *     mean                             of an array of numbers
 *
 * libjq evaluates, in a child process, so that an expression without end, or one that needs all
 * memory or makes libjq crash, costs its own value only. Nothing outside query.c sees libjq. An
 * expression cannot read files.
 */
#ifndef GW_CLI_QUERY_H
#define GW_CLI_QUERY_H

#include <stdint.h>

enum {
    GW_QUERY_WHY_MAX = 256, /* bytes of a sentence, on one line */
};

struct gw_query;

enum gw_query_kind {
    GW_QUERY_NUMBER,
    GW_QUERY_TRUTH,
    GW_QUERY_ABSENT, /* at() found no such point */
    GW_QUERY_FAILED, /* the expression gives no number or truth value for these results */
};

struct gw_query_result {
    enum gw_query_kind kind;
    double number;              /* or 0 and 1 */
    char why[GW_QUERY_WHY_MAX]; /* of the last two kinds */
};

/* Compiles. NULL: not an expression, with a sentence in why[GW_QUERY_WHY_MAX]. */
struct gw_query *gw_query_open(const char *expression, char *why);
/* Gives each evaluation another limit of processor time than the usual seconds. */
void gw_query_limit(struct gw_query *query, uint32_t cpu_ms);
/* Evaluates over a text that is valid JSON. */
void gw_query_run(struct gw_query *query, const char *json, struct gw_query_result *result);
void gw_query_close(struct gw_query *query);

#endif
