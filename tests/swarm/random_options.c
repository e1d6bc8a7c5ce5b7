/* Draws options of algorithms; see random_options.h. */
#include "swarm/random_options.h"

#include <inttypes.h>
#include <string.h>

#include "support.h"

#include "base/error.h"
#include "base/fixed.h"
#include "base/time.h"
#include "swarm/draw.h"

enum {
    VALUE_MAX = 256, /* characters of a parameter */
};

struct gw_random_options gw_random_options_of(const struct gw_algo *algo, const char *preset)
{
    struct gw_random_options options = {.algo = algo};
    gw_algo_defaults(algo, &options.cfg);
    if (preset)
        assert_int_equal(gw_algo_preset(algo, &options.cfg, preset), 0);
    return options;
}

/* Takes a parameter's value. False: it is beyond its limits, contradicts what was taken, or
 * replaces it. */
static bool take(struct gw_random_options *options, uint32_t index, const char *text)
{
    const struct gw_algo *algo = options->algo;
    const char *name = algo->params[index].name;
    union gw_algo_cfg cfg = options->cfg;
    for (uint32_t i = 0; i < algo->param_count; i++) {
        const char *unless = algo->params[i].unless;
        if (options->drawn >> i & 1 && unless && strcmp(unless, name) == 0)
            return false;
    }
    int error = gw_algo_set(algo, &cfg, name, text);
    if (error == GW_ERR_RANGE || (algo->check && algo->check(&cfg)))
        return false;
    assert_int_equal(error, 0);
    options->cfg = cfg;
    options->drawn |= UINT64_C(1) << index;
    return true;
}

/* A parameter's value by its type, around its default. */
static void draw_value(const struct gw_algo *algo, const struct gw_param *param,
                       const struct gw_random_scale *scale, struct gw_prng *prng,
                       char text[VALUE_MAX])
{
    union gw_algo_cfg defaults;
    gw_algo_defaults(algo, &defaults);
    const void *field = defaults.bytes + param->offset;
    size_t used = 0;
    text[0] = '\0';
    switch (param->type) {
    case GW_PARAM_BOOL:
        snprintf(text, VALUE_MAX, "%s", gw_draw_once_in(prng, 2) ? "yes" : "no");
        break;
    case GW_PARAM_COUNT:
        snprintf(text, VALUE_MAX, "%" PRIu64,
                 gw_draw_log(prng, 1, 2 * (uint64_t) * (const uint32_t *)field + 2));
        break;
    case GW_PARAM_Q16: {
        uint64_t value = (uint64_t) * (const gw_q16 *)field;
        uint64_t milli =
            (value ? gw_draw_around(prng, value) : gw_draw_between(prng, 0, GW_Q16_ONE)) * 1000 /
            GW_Q16_ONE;
        snprintf(text, VALUE_MAX, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);
        break;
    }
    case GW_PARAM_TIME:
        snprintf(text, VALUE_MAX, "%" PRIu64 "ps", gw_draw_around(prng, *(const gw_time *)field));
        break;
    case GW_PARAM_BYTES: {
        uint64_t value = *(const uint64_t *)field;
        value = value ? gw_draw_around(prng, value)
                      : gw_draw_between(prng, scale->mtu / 2 + 1, 2 * scale->bdp);
        snprintf(text, VALUE_MAX, "%" PRIu64, value);
        break;
    }
    case GW_PARAM_SIZES:
        for (uint64_t count = gw_draw_between(prng, 0, GW_SIZES_MAX); count > 0; count--)
            used += (size_t)snprintf(text + used, VALUE_MAX - used, "%" PRIu64 "%s",
                                     gw_draw_log(prng, 1, 2 * scale->bdp), count > 1 ? ", " : "");
        break;
    case GW_PARAM_RATE:
        snprintf(text, VALUE_MAX, "%" PRIu64 "bps",
                 gw_draw_between(prng, scale->rate_bps / 8, scale->rate_bps));
        break;
    case GW_PARAM_ENUM: {
        const char *word = gw_draw_word(prng, param->choices);
        snprintf(text, VALUE_MAX, "%.*s", (int)strcspn(word, "|"), word);
        break;
    }
    case GW_PARAM_TEXT:
        break;
    }
}

void gw_random_options_write(struct gw_random_options *options, uint32_t index,
                             const struct gw_random_scale *scale, FILE *out, struct gw_prng *prng)
{
    const struct gw_param *param = &options->algo->params[index];
    char text[VALUE_MAX];
    if (param->type == GW_PARAM_TEXT)
        return;
    draw_value(options->algo, param, scale, prng, text);
    if (take(options, index, text))
        fprintf(out, "  %s: \"%s\"\n", param->name, text);
}
