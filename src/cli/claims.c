/* Verdicts over claims; see claims.h. */
#include "cli/claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/query.h"
#include "cli/report.h"
#include "topo/memory.h"

enum {
    EXPECTED_MAX = 96, /* bytes of what is expected, as text */
};

struct verdict {
    struct gw_query *query;
    double *values; /* by seed; 1 and 0 of what is true or false */
    double median;
    uint32_t seeds_holding;
    bool is_computed, holds;
    char why[GW_QUERY_WHY_MAX]; /* it is not computed */
};

struct gw_claims {
    const struct gw_sweep *sweep;
    struct verdict *verdicts; /* one per claim */
    uint32_t seeds;
};

struct gw_claims *gw_claims_open(const struct gw_sweep *sweep)
{
    struct gw_claims *claims = gw_memory_zeroed(1, sizeof(*claims));
    claims->sweep = sweep;
    claims->verdicts = gw_memory_zeroed(sweep->claim_count, sizeof(claims->verdicts[0]));
    for (uint32_t i = 0; i < sweep->claim_count; i++) {
        char why[GW_QUERY_WHY_MAX];
        claims->verdicts[i].query = gw_query_open(sweep->claims[i].measured, why);
        if (claims->verdicts[i].query)
            continue;
        gw_complain("%s%s", sweep->claims[i].place, why);
        gw_claims_close(claims);
        return NULL;
    }
    return claims;
}

/* A bound widened by the tolerance, away from what is allowed. */
static double widened(double bound, double tolerance, int direction)
{
    return bound + direction * fabs(bound) * tolerance;
}

static bool holds(const struct gw_claim *claim, double value)
{
    double tolerance = claim->tolerance;
    if (claim->is_truth)
        return value > 0.5; /* the median of as many yes as no is no */
    if (claim->has_about)
        return value >= widened(claim->about, tolerance, -1) &&
               value <= widened(claim->about, tolerance, 1);
    return (!claim->has_least || value >= widened(claim->at_least, tolerance, -1)) &&
           (!claim->has_most || value <= widened(claim->at_most, tolerance, 1));
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Evaluates a claim over the results with one seed; what it gives must be of the claim's kind. */
static enum gw_query_kind evaluate(const struct gw_claim *claim, struct verdict *verdict,
                                   const char *results, uint32_t seed)
{
    struct gw_query_result result;
    gw_query_run(verdict->query, results, &result);
    if (result.kind == GW_QUERY_TRUTH && !claim->is_truth) {
        result.kind = GW_QUERY_FAILED;
        snprintf(result.why, sizeof(result.why),
                 "the expression is true or false, which 'expected: yes' is for");
    } else if (result.kind == GW_QUERY_NUMBER && claim->is_truth) {
        result.kind = GW_QUERY_FAILED;
        snprintf(result.why, sizeof(result.why),
                 "the expression gives a number, and 'expected: yes' needs true or false");
    }
    verdict->values[seed] = result.number;
    memcpy(verdict->why, result.why, sizeof(verdict->why));
    return result.kind;
}

/* The results of all points with every `step`th seed, from one on, as text to be freed. */
static char *results_of(const json_t *results, uint32_t seed, uint32_t step)
{
    json_t *points = json_array();
    for (size_t i = seed; i < json_array_size(results); i += step)
        json_array_append(points, json_array_get(results, i));
    char *text = json_dumps(points, JSON_REAL_PRECISION(GW_REPORT_DIGITS));
    json_decref(points);
    if (!text)
        abort();
    return text;
}

/* Judges one claim; texts[seed] has the results, and texts[claims->seeds] those of all seeds.
 * Returns an exit status. */
static int judge(struct gw_claims *claims, uint32_t number, char *const *texts, bool is_narrowed)
{
    const struct gw_claim *claim = &claims->sweep->claims[number];
    struct verdict *verdict = &claims->verdicts[number];
    uint32_t times = claim->is_joint ? 1 : claims->seeds;
    texts += claim->is_joint ? claims->seeds : 0;
    verdict->values = gw_memory_zeroed(times, sizeof(double));
    for (uint32_t seed = 0; seed < times; seed++) {
        enum gw_query_kind kind = evaluate(claim, verdict, texts[seed], seed);
        if (kind == GW_QUERY_NUMBER || kind == GW_QUERY_TRUTH)
            continue;
        if (is_narrowed)
            return GW_EXIT_OK;
        gw_complain("%s%s", claim->place, verdict->why);
        return GW_EXIT_USAGE;
    }
    verdict->is_computed = true;
    for (uint32_t seed = 0; seed < times; seed++)
        verdict->seeds_holding += holds(claim, verdict->values[seed]) * (claims->seeds / times);
    verdict->median = median(verdict->values, times);
    verdict->holds = holds(claim, verdict->median);
    return GW_EXIT_OK;
}

int gw_claims_judge(struct gw_claims *claims, const json_t *results, bool is_narrowed)
{
    claims->seeds = (uint32_t)(json_array_size(results) / claims->sweep->point_count);
    char **texts = gw_memory_zeroed(claims->seeds + 1, sizeof(*texts));
    int status = GW_EXIT_OK;
    for (uint32_t seed = 0; seed < claims->seeds; seed++)
        texts[seed] = results_of(results, seed, claims->seeds);
    texts[claims->seeds] = results_of(results, 0, 1);
    for (uint32_t i = 0; i < claims->sweep->claim_count; i++) {
        int error = judge(claims, i, texts, is_narrowed);
        status = error ? error : status;
    }
    for (uint32_t i = 0; i <= claims->seeds; i++)
        free(texts[i]);
    free(texts);
    return status;
}

static void write_expected(const struct gw_claim *claim, char text[EXPECTED_MAX])
{
    size_t used = 0;
    const struct {
        const char *word;
        bool is_given;
        double number;
    } parts[] = {{"about", claim->has_about, claim->about},
                 {"at least", claim->has_least, claim->at_least},
                 {"at most", claim->has_most, claim->at_most}};
    if (claim->is_truth)
        snprintf(text, EXPECTED_MAX, "yes");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].is_given)
            used += (size_t)snprintf(text + used, EXPECTED_MAX - used, "%s%s %.4g",
                                     used ? " and " : "", parts[i].word, parts[i].number);
    if (claim->tolerance > 0)
        snprintf(text + used, EXPECTED_MAX - used, " within %.4g %%", 100 * claim->tolerance);
}

static void print_claim(const struct gw_claim *claim, const struct verdict *verdict, uint32_t seeds)
{
    char expected[EXPECTED_MAX];
    write_expected(claim, expected);
    printf("  %-8s  %s (%s): %s\n",
           !verdict->is_computed ? "?"
           : verdict->holds      ? "holds"
                                 : "FAILS",
           claim->id, claim->source, claim->text);
    printf("            expected %s; ", expected);
    if (!verdict->is_computed) {
        printf("not computed: %s\n", verdict->why);
        return;
    }
    if (claim->is_truth)
        printf("measured %s", verdict->holds ? "yes" : "no");
    else
        printf("measured %.4g", verdict->median);
    if (claim->is_joint && seeds > 1)
        printf(" over %u seeds together", seeds);
    else if (seeds > 1)
        printf("; holds with %u of %u seeds", verdict->seeds_holding, seeds);
    putchar('\n');
}

void gw_claims_print(const struct gw_claims *claims)
{
    uint32_t holding = 0, computed = 0, count = claims->sweep->claim_count;
    for (uint32_t i = 0; i < count; i++) {
        holding += claims->verdicts[i].holds;
        computed += claims->verdicts[i].is_computed;
    }
    printf("\nclaims: %u of %u hold", holding, computed);
    printf(computed < count ? ", %u not computed\n" : "\n", count - computed);
    for (uint32_t i = 0; i < count; i++)
        print_claim(&claims->sweep->claims[i], &claims->verdicts[i], claims->seeds);
}

static json_t *expected_json(const struct gw_claim *claim)
{
    if (claim->is_truth)
        return json_true();
    json_t *json = json_object();
    if (claim->has_about)
        json_object_set_new(json, "about", json_real(claim->about));
    if (claim->has_least)
        json_object_set_new(json, "at_least", json_real(claim->at_least));
    if (claim->has_most)
        json_object_set_new(json, "at_most", json_real(claim->at_most));
    if (claim->tolerance > 0)
        json_object_set_new(json, "tolerance", json_real(claim->tolerance));
    return json;
}

json_t *gw_claims_json(const struct gw_claims *claims)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < claims->sweep->claim_count; i++) {
        const struct gw_claim *claim = &claims->sweep->claims[i];
        const struct verdict *verdict = &claims->verdicts[i];
        json_t *measured = !verdict->is_computed ? json_null()
                           : claim->is_truth     ? json_boolean(verdict->holds)
                                                 : json_real(verdict->median);
        json_t *holding = verdict->is_computed ? json_boolean(verdict->holds) : json_null();
        json_t *json =
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:i}", "id", claim->id, "text", claim->text,
                      "source", claim->source, "expected", expected_json(claim), "measured",
                      measured, "holds", holding, "seeds_holding", (int)verdict->seeds_holding);
        if (claim->is_joint)
            json_object_set_new(json, "seeds", json_string("together"));
        json_array_append_new(list, json);
    }
    return list;
}

void gw_claims_close(struct gw_claims *claims)
{
    if (!claims)
        return;
    for (uint32_t i = 0; i < claims->sweep->claim_count; i++) {
        gw_query_close(claims->verdicts[i].query);
        free(claims->verdicts[i].values);
    }
    free(claims->verdicts);
    free(claims);
}
