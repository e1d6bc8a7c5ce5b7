/*
 * The scenario's `claims:`: what a paper says of a figure, and how our results are asked for it.
 *
 *     claims:
 *       - id: reps-is-faster
 *         text: REPS takes about 10 % less time than spraying
 *         source: SMaRTT-REPS section 4.3
 *         measured: 'at({lb: "spray"}).completion_us / at({lb: "reps"}).completion_us'
 *         expected: {about: 1.1}
 *         tolerance: 5%
 *
 * `expected` is a map of `about`, `at_least` and `at_most`, or `yes` for an expression that is true
 * or false. `seeds: together` evaluates it over the results of all seeds, else it is over those of
 * each. Here the expression is a text; cli/query.h says what it may be.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"
#include "topo/memory.h"

enum {
    CLAIMS_MAX = 1000,
};

static const char *const claim_keys[] = {"id",       "text",      "source", "measured",
                                         "expected", "tolerance", "seeds",  NULL};
static const char *const expected_keys[] = {"about", "at_least", "at_most", NULL};

/* A copy of the text of `key`, which must be there; NULL with document->why set. */
static char *read_text(const struct gw_document *document, const struct gw_doc_value *item,
                       const char *key)
{
    const struct gw_doc_value *value = gw_doc_value_get(item, key);
    const char *text = value ? gw_schema_text(document, value) : "";
    if (!text)
        return NULL;
    if (text[0] == '\0') {
        gw_document_error(document, value ? value : item, GW_ERR_INVALID, "%s is missing", key);
        return NULL;
    }
    size_t size = strlen(text) + 1;
    return memcpy(gw_memory_zeroed(size, 1), text, size);
}

/* A decimal number, or a percentage. */
static int read_number(const struct gw_document *document, const struct gw_doc_value *value,
                       double *number)
{
    const char *text = gw_schema_text(document, value);
    if (!text)
        return GW_ERR_INVALID;
    char *end;
    *number = strtod(text, &end);
    bool is_percent = end != text && strcmp(end, "%") == 0;
    if (is_percent)
        *number /= 100;
    if (end == text || (*end && !is_percent) || !isfinite(*number))
        return gw_schema_refuse(document, value, GW_ERR_INVALID, "a number such as 1.25 or 80%");
    return GW_OK;
}

static int read_expected(const struct gw_document *document, const struct gw_doc_value *item,
                         struct gw_claim *claim)
{
    static const char form[] = "yes, or a map such as {at_least: 1.2} or {about: 0.5}";
    const struct gw_schema schema = {.others = expected_keys};
    const struct gw_doc_value *expected = gw_doc_value_get(item, "expected");
    if (!expected)
        return gw_document_error(document, item, GW_ERR_INVALID, "expected is missing: %s", form);
    if (expected->kind == GW_DOC_VALUE_SCALAR) {
        if (gw_parse_bool(expected->text, &claim->is_truth) != GW_OK || !claim->is_truth)
            return gw_schema_refuse(document, expected, GW_ERR_INVALID, form);
        return GW_OK;
    }
    int error = gw_schema_read(document, expected, &schema);
    double *const numbers[] = {&claim->about, &claim->at_least, &claim->at_most};
    bool *const given[] = {&claim->has_about, &claim->has_least, &claim->has_most};
    for (uint32_t i = 0; expected_keys[i] && !error; i++) {
        const struct gw_doc_value *value = gw_doc_value_get(expected, expected_keys[i]);
        *given[i] = value != NULL;
        if (value)
            error = read_number(document, value, numbers[i]);
    }
    bool has_bound = claim->has_least || claim->has_most;
    if (!error && claim->has_about == has_bound)
        error = gw_document_error(document, expected, GW_ERR_INVALID,
                                  "give about, or one or both of at_least and at_most");
    return error;
}

static int read_tolerance(const struct gw_document *document, const struct gw_doc_value *item,
                          struct gw_claim *claim)
{
    const struct gw_doc_value *value = gw_doc_value_get(item, "tolerance");
    if (!value && claim->has_about)
        return gw_document_error(document, item, GW_ERR_INVALID,
                                 "tolerance is missing: about needs one, such as 10%%");
    if (!value)
        return GW_OK;
    if (claim->is_truth)
        return gw_document_error(document, value, GW_ERR_INVALID,
                                 "what is true or false has no tolerance");
    int error = read_number(document, value, &claim->tolerance);
    if (!error && claim->tolerance < 0)
        error = gw_schema_refuse(document, value, GW_ERR_RANGE, "a part such as 10%");
    return error;
}

static int read_seeds(const struct gw_document *document, const struct gw_doc_value *item,
                      struct gw_claim *claim)
{
    const struct gw_doc_value *value = gw_doc_value_get(item, "seeds");
    const char *text = value ? gw_schema_text(document, value) : "each";
    if (!text)
        return GW_ERR_INVALID;
    claim->is_joint = strcmp(text, "together") == 0;
    if (claim->is_joint || strcmp(text, "each") == 0)
        return GW_OK;
    return gw_schema_refuse(document, value, GW_ERR_INVALID, "each or together");
}

/* An id is what other files call the claim by: letters, digits, dots and dashes, and unique. */
static int check_id(const struct gw_document *document, const struct gw_doc_value *item,
                    const struct gw_sweep *sweep)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const struct gw_doc_value *value = gw_doc_value_get(item, "id");
    const char *id = sweep->claims[sweep->claim_count].id;
    if (id[strspn(id, allowed)])
        return gw_document_error(document, value, GW_ERR_INVALID,
                                 "an id has letters, digits, dots and dashes: %s", id);
    for (uint32_t i = 0; i < sweep->claim_count; i++)
        if (strcmp(sweep->claims[i].id, id) == 0)
            return gw_document_error(document, value, GW_ERR_INVALID,
                                     "another claim has this id: %s", id);
    return GW_OK;
}

static int read_claim(const struct gw_document *document, const struct gw_doc_value *item,
                      struct gw_sweep *sweep)
{
    const struct gw_schema schema = {.others = claim_keys};
    struct gw_claim *claim = &sweep->claims[sweep->claim_count];
    if (item->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(document, item, GW_ERR_INVALID,
                                 "expected a map of id, text, source, measured and expected");
    int error = gw_schema_read(document, item, &schema);
    char **const texts[] = {&claim->id, &claim->text, &claim->source, &claim->measured};
    for (uint32_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !error; i++) {
        *texts[i] = read_text(document, item, claim_keys[i]);
        if (!*texts[i])
            error = GW_ERR_INVALID;
    }
    if (!error)
        error = check_id(document, item, sweep);
    if (!error)
        error = read_expected(document, item, claim);
    if (!error)
        error = read_tolerance(document, item, claim);
    if (!error)
        error = read_seeds(document, item, claim);
    if (error)
        return error;
    /* An expression is judged later; the line for its errors begins as those of the document. */
    gw_document_error(document, gw_doc_value_get(item, "measured"), GW_OK, "%s", "");
    size_t size = strlen(document->why) + 1;
    claim->place = memcpy(gw_memory_zeroed(size, 1), document->why, size);
    return GW_OK;
}

int gw_claims_load(const struct gw_document *document, struct gw_sweep *sweep)
{
    const struct gw_doc_value *section = gw_doc_value_get(document->root, "claims");
    if (!section)
        return GW_OK;
    if (section->kind != GW_DOC_VALUE_LIST)
        return gw_document_error(document, section, GW_ERR_INVALID, "expected a list of claims");
    if (section->count > CLAIMS_MAX)
        return gw_document_error(document, section, GW_ERR_RANGE, "more than %d claims",
                                 CLAIMS_MAX);
    sweep->claims = gw_memory_zeroed(section->count, sizeof(sweep->claims[0]));
    int error = GW_OK;
    for (uint32_t i = 0; i < section->count && !error; i++) {
        error = read_claim(document, section->items[i], sweep);
        sweep->claim_count++; /* also of a claim that was read in part: it is freed */
    }
    return error;
}

void gw_claims_free(struct gw_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->claim_count; i++) {
        struct gw_claim *claim = &sweep->claims[i];
        char *const texts[] = {claim->id, claim->text, claim->source, claim->measured,
                               claim->place};
        for (uint32_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
            free(texts[t]);
    }
    free(sweep->claims);
    sweep->claims = NULL;
    sweep->claim_count = 0;
}
