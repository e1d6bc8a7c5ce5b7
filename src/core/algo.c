/* Registries: lookup by name, defaults, presets and single settings; see algo.h. */
#include "core/algo.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/units.h"

enum {
    WORD_MAX = 64, /* longest name or value inside a preset */
};

/* Copies the word that ends at a character of `stops` or at the end; returns what follows it. */
static const char *take_word(const char *text, const char *stops, char word[WORD_MAX])
{
    size_t length = 0;
    while (text[length] && text[length] != stops[0] && text[length] != stops[1]) {
        GW_ASSERT(length + 1 < WORD_MAX);
        word[length] = text[length];
        length++;
    }
    word[length] = '\0';
    return text + length + (text[length] != '\0');
}

static int parse_choice(const char *choices, const char *text, uint32_t *index)
{
    char word[WORD_MAX];
    for (uint32_t i = 0; *choices; i++) {
        choices = take_word(choices, "||", word);
        if (gw_text_equal(word, text)) {
            *index = i;
            return GW_OK;
        }
    }
    return GW_ERR_INVALID;
}

/* "32KB, 48KB", or nothing. */
static int parse_sizes(const char *text, struct gw_size_list *sizes)
{
    struct gw_size_list list = {.count = 0};
    while (*text) {
        char word[WORD_MAX];
        size_t length = 0;
        while (*text == ' ')
            text++;
        while (*text && *text != ',' && length + 1 < WORD_MAX)
            word[length++] = *text++;
        word[length] = '\0';
        if (list.count == GW_SIZES_MAX)
            return GW_ERR_RANGE;
        int error = gw_parse_bytes(word, &list.bytes[list.count++]);
        if (error)
            return error;
        bool ends = *text == '\0';
        if (!ends && (*text != ',' || *++text == '\0'))
            return GW_ERR_INVALID;
    }
    *sizes = list;
    return GW_OK;
}

static int parse_number(enum gw_param_type type, const char *text, uint64_t *number)
{
    switch (type) {
    case GW_PARAM_COUNT:
        return gw_parse_count(text, number);
    case GW_PARAM_TIME:
        return gw_parse_time(text, number);
    case GW_PARAM_BYTES:
        return gw_parse_bytes(text, number);
    default:
        return gw_parse_rate(text, number);
    }
}

static int set_number(const struct gw_param *param, const char *text, void *field)
{
    uint64_t number = 0;
    gw_q16 q16 = 0;
    bool is_q16 = param->type == GW_PARAM_Q16;
    int error = is_q16 ? gw_parse_q16(text, &q16) : parse_number(param->type, text, &number);
    if (error)
        return error;
    /* A size may be beyond what has a sign. */
    __int128 value = is_q16 ? (__int128)q16 : (__int128)number;
    if (value < param->least || (param->most && value > param->most) ||
        (param->type == GW_PARAM_COUNT && value > UINT32_MAX))
        return GW_ERR_RANGE;
    if (param->type == GW_PARAM_COUNT)
        *(uint32_t *)field = (uint32_t)number;
    else
        memcpy(field, is_q16 ? (void *)&q16 : (void *)&number, sizeof(number));
    return GW_OK;
}

static int param_parse(const struct gw_param *param, const char *text, void *field)
{
    switch (param->type) {
    case GW_PARAM_BOOL:
        return gw_parse_bool(text, field);
    case GW_PARAM_COUNT:
    case GW_PARAM_Q16:
    case GW_PARAM_TIME:
    case GW_PARAM_BYTES:
    case GW_PARAM_RATE:
        return set_number(param, text, field);
    case GW_PARAM_SIZES:
        return parse_sizes(text, field);
    case GW_PARAM_ENUM:
        return parse_choice(param->choices, text, field);
    case GW_PARAM_TEXT: {
        size_t length = 0;
        while (text[length])
            length++;
        if (length >= GW_PARAM_TEXT_MAX)
            return GW_ERR_RANGE;
        memcpy(field, text, length + 1);
        return GW_OK;
    }
    }
    return GW_ERR_INVALID;
}

const struct gw_algo *gw_registry_find(const struct gw_registry *registry, const char *name)
{
    for (uint32_t i = 0; i < registry->count; i++)
        if (gw_text_equal(registry->algos[i]->name, name))
            return registry->algos[i];
    return NULL;
}

void gw_algo_defaults(const struct gw_algo *algo, void *cfg)
{
    memset(cfg, 0, algo->cfg_size);
    for (uint32_t i = 0; i < algo->param_count; i++) {
        if (!algo->params[i].initial)
            continue;
        int error = gw_algo_set(algo, cfg, algo->params[i].name, algo->params[i].initial);
        GW_ASSERT(error == GW_OK);
    }
}

int gw_algo_set(const struct gw_algo *algo, void *cfg, const char *name, const char *text)
{
    for (uint32_t i = 0; i < algo->param_count; i++)
        if (gw_text_equal(algo->params[i].name, name))
            return param_parse(&algo->params[i], text, (char *)cfg + algo->params[i].offset);
    return GW_ERR_UNKNOWN;
}

int gw_algo_preset(const struct gw_algo *algo, void *cfg, const char *name)
{
    for (uint32_t i = 0; i < algo->preset_count; i++) {
        if (!gw_text_equal(algo->presets[i].name, name))
            continue;
        const char *settings = algo->presets[i].settings;
        while (*settings) {
            char key[WORD_MAX], value[WORD_MAX];
            settings = take_word(settings, "==", key);
            settings = take_word(settings, "  ", value);
            int error = gw_algo_set(algo, cfg, key, value);
            GW_ASSERT(error == GW_OK);
        }
        return GW_OK;
    }
    return GW_ERR_UNKNOWN;
}
