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

static int param_parse(const struct gw_param *param, const char *text, void *field)
{
    switch (param->type) {
    case GW_PARAM_BOOL:
        return gw_parse_bool(text, field);
    case GW_PARAM_COUNT: {
        uint64_t count;
        int error = gw_parse_count(text, &count);
        if (error)
            return error;
        if (count > UINT32_MAX)
            return GW_ERR_RANGE;
        *(uint32_t *)field = (uint32_t)count;
        return GW_OK;
    }
    case GW_PARAM_Q16:
        return gw_parse_q16(text, field);
    case GW_PARAM_TIME:
        return gw_parse_time(text, field);
    case GW_PARAM_BYTES:
        return gw_parse_bytes(text, field);
    case GW_PARAM_SIZES:
        return parse_sizes(text, field);
    case GW_PARAM_RATE:
        return gw_parse_rate(text, field);
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
