/* Sections of a file, read and written by table; see schema.h. */
#include "config/schema.h"

#include <string.h>

#include "base/error.h"
#include "base/units.h"

enum {
    WORD_MAX = 64,   /* longer keys are compared by their beginning */
    NEAREST_MAX = 3, /* valid keys that an error about an unknown one offers */
    LIST_MAX = 256,  /* bytes of a list of names in an error */
};

/* Number of single-character edits that turn one word into the other. */
static uint32_t edit_distance(const char *a, const char *b)
{
    uint32_t row[WORD_MAX + 1];
    uint32_t b_length = (uint32_t)strnlen(b, WORD_MAX);
    for (uint32_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (uint32_t i = 0; a[i] && i < WORD_MAX; i++) {
        uint32_t diagonal = row[0];
        row[0] = i + 1;
        for (uint32_t j = 1; j <= b_length; j++) {
            uint32_t least = diagonal + (a[i] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < least)
                least = row[j] + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    return row[b_length];
}

/* The valid keys that are nearest to an unknown one, the nearest first. */
struct nearest {
    const char *names[NEAREST_MAX];
    uint32_t distances[NEAREST_MAX];
    uint32_t count;
};

static void nearest_offer(struct nearest *nearest, const char *key, const char *name)
{
    uint32_t distance = edit_distance(key, name);
    uint32_t at = nearest->count;
    while (at > 0 && nearest->distances[at - 1] > distance)
        at--;
    if (at == NEAREST_MAX)
        return;
    if (nearest->count < NEAREST_MAX)
        nearest->count++;
    for (uint32_t i = nearest->count - 1; i > at; i--) {
        nearest->names[i] = nearest->names[i - 1];
        nearest->distances[i] = nearest->distances[i - 1];
    }
    nearest->names[at] = name;
    nearest->distances[at] = distance;
}

/* What --set knows besides at the top: short keys and variants. */
static void offer_words(struct nearest *nearest, const struct gw_document *document,
                        const struct gw_doc_value *item)
{
    static const char *const sections[] = {"aliases", "variants"};
    if (!item->override || item->parent != document->root)
        return;
    for (uint32_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
        const struct gw_doc_value *section = gw_doc_value_get(document->root, sections[s]);
        for (uint32_t i = 0; section && i < section->count; i++)
            if (section->items[i]->key)
                nearest_offer(nearest, item->key, section->items[i]->key);
    }
}

static int unknown_key(const struct gw_document *document, const struct gw_doc_value *item,
                       const struct gw_schema *schema)
{
    struct nearest nearest = {.count = 0};
    for (uint32_t p = 0; p < schema->part_count; p++)
        for (uint32_t i = 0; i < schema->parts[p].algo->param_count; i++)
            nearest_offer(&nearest, item->key, schema->parts[p].algo->params[i].name);
    for (const char *const *other = schema->others; other && *other; other++)
        nearest_offer(&nearest, item->key, *other);
    for (uint32_t p = 0; p < schema->part_count; p++)
        if (schema->parts[p].preset)
            nearest_offer(&nearest, item->key, schema->parts[p].preset);
    offer_words(&nearest, document, item);
    char list[LIST_MAX] = "no key is known here";
    size_t used = 0;
    for (uint32_t i = 0; i < nearest.count && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 i ? ", " : "the nearest known are: ", nearest.names[i]);
    return gw_document_error(document, item, GW_ERR_UNKNOWN, "unknown key \"%s\"; %s", item->key,
                             list);
}

/* What a parameter's type takes, in words. */
static const char *type_text(const struct gw_param *param, char list[LIST_MAX])
{
    switch (param->type) {
    case GW_PARAM_BOOL:
        return "yes or no";
    case GW_PARAM_COUNT:
        return "a whole number";
    case GW_PARAM_Q16:
        return "a number such as 0.25, or 25%";
    case GW_PARAM_TIME:
        return "a time such as 600ns";
    case GW_PARAM_BYTES:
        return "a size such as 2MiB";
    case GW_PARAM_SIZES:
        snprintf(list, LIST_MAX, "at most %d sizes such as [32KB, 48KB]", GW_SIZES_MAX);
        return list;
    case GW_PARAM_RATE:
        return "a rate such as 800Gbps";
    case GW_PARAM_TEXT:
        return "a shorter text";
    case GW_PARAM_ENUM:
        break;
    }
    snprintf(list, LIST_MAX, "one of %s", param->choices);
    return list;
}

/* The same with its limits. Of types without sign 0 is none; between 0 and a unit is no Q16. */
static const char *expected_text(const struct gw_param *param, char list[LIST_MAX])
{
    bool is_q16 = param->type == GW_PARAM_Q16;
    const char *text = type_text(param, list);
    double unit = is_q16 ? GW_Q16_ONE : 1;
    char least[LIST_MAX / 2];
    if (!is_q16 && !param->least && !param->most)
        return text;
    const char *from = param->most ? "from" : "at least";
    if (is_q16 && param->least == 0)
        snprintf(least, sizeof(least), "0, or %s 1/%lld", from, (long long)GW_Q16_ONE);
    else
        snprintf(least, sizeof(least), "%s %.9g", from, (double)param->least / unit);
    if (text != list)
        snprintf(list, LIST_MAX, "%s", text);
    size_t used = strlen(list);
    used += (size_t)snprintf(list + used, LIST_MAX - used, ": %s", least);
    if (param->most)
        snprintf(list + used, LIST_MAX - used, " to %.9g", (double)param->most / unit);
    return list;
}

const char *gw_schema_text(const struct gw_document *document, const struct gw_doc_value *value)
{
    if (value->kind == GW_DOC_VALUE_SCALAR)
        return value->text;
    gw_document_error(document, value, GW_ERR_INVALID, "expected a single value, not a %s",
                      value->kind == GW_DOC_VALUE_MAP ? "map" : "list");
    return NULL;
}

/* A list of single values as one text, with commas; a single value as it is. NULL: neither, and the
 * document says why. */
static const char *list_text(const struct gw_document *document, const struct gw_doc_value *value,
                             char list[LIST_MAX])
{
    if (value->kind != GW_DOC_VALUE_LIST)
        return gw_schema_text(document, value);
    size_t used = 0;
    list[0] = '\0';
    for (uint32_t i = 0; i < value->count; i++) {
        const char *text = gw_schema_text(document, value->items[i]);
        if (!text)
            return NULL;
        used += (size_t)snprintf(list + used, LIST_MAX - used, "%s%s", i ? ", " : "", text);
        if (used >= LIST_MAX) {
            gw_document_error(document, value, GW_ERR_RANGE, "the list is too long");
            return NULL;
        }
    }
    return list;
}

static int refuse(const struct gw_document *document, const struct gw_doc_value *value, int error,
                  const char *text, const char *expected)
{
    return gw_document_error(document, value, error, "%s: %s; expected %s",
                             error == GW_ERR_INVALID ? "not understood" : gw_error_message(error),
                             text[0] ? text : "(nothing)", expected);
}

int gw_schema_refuse(const struct gw_document *document, const struct gw_doc_value *value,
                     int error, const char *expected)
{
    return refuse(document, value, error, value->text, expected);
}

/* True when `key` is no parameter of a table, but the reader's own or that of a preset. */
static bool has_other(const struct gw_schema *schema, const char *key)
{
    for (uint32_t p = 0; p < schema->part_count; p++)
        if (schema->parts[p].preset && strcmp(schema->parts[p].preset, key) == 0)
            return true;
    for (const char *const *other = schema->others; other && *other; other++)
        if (strcmp(*other, key) == 0)
            return true;
    return false;
}

static int read_item(const struct gw_document *document, const struct gw_doc_value *item,
                     const struct gw_schema *schema)
{
    if (has_other(schema, item->key))
        return GW_OK;
    for (uint32_t p = 0; p < schema->part_count; p++) {
        const struct gw_algo *algo = schema->parts[p].algo;
        for (uint32_t i = 0; i < algo->param_count; i++) {
            const struct gw_param *param = &algo->params[i];
            if (strcmp(param->name, item->key) != 0)
                continue;
            char list[LIST_MAX], expected[LIST_MAX];
            const char *text = param->type == GW_PARAM_SIZES ? list_text(document, item, list)
                                                             : gw_schema_text(document, item);
            if (!text)
                return GW_ERR_INVALID;
            int error = gw_algo_set(algo, schema->parts[p].cfg, param->name, text);
            return error ? refuse(document, item, error, text, expected_text(param, expected))
                         : GW_OK;
        }
    }
    return unknown_key(document, item, schema);
}

/* The list beside which a parameter says nothing, if that is set; else NULL. */
static const char *replaced_by(const struct gw_schema_part *part, const struct gw_param *param)
{
    for (uint32_t i = 0; param->unless && i < part->algo->param_count; i++) {
        const struct gw_param *list = &part->algo->params[i];
        const char *field = (const char *)part->cfg + list->offset;
        if (strcmp(list->name, param->unless) == 0)
            return ((const struct gw_size_list *)(const void *)field)->count ? list->name : NULL;
    }
    return NULL;
}

/* What no single value tells: keys and options that do not go together. */
static int check_part(const struct gw_document *document, const struct gw_doc_value *value,
                      const struct gw_schema_part *part)
{
    for (uint32_t i = 0; i < part->algo->param_count; i++) {
        const struct gw_param *param = &part->algo->params[i];
        const struct gw_doc_value *item = gw_doc_value_get(value, param->name);
        const char *list = item ? replaced_by(part, param) : NULL;
        if (list)
            return gw_document_error(document, item, GW_ERR_INVALID,
                                     "says nothing beside %s; one of the two", list);
    }
    const char *why = part->algo->check ? part->algo->check(part->cfg) : NULL;
    return why ? gw_schema_blame(document, value, GW_ERR_RANGE, why) : GW_OK;
}

static int read_preset(const struct gw_document *document, const struct gw_doc_value *value,
                       const struct gw_schema_part *part)
{
    const struct gw_doc_value *preset = part->preset ? gw_doc_value_get(value, part->preset) : NULL;
    if (!preset)
        return GW_OK;
    const char *name = gw_schema_text(document, preset);
    if (!name)
        return GW_ERR_INVALID;
    if (gw_algo_preset(part->algo, part->cfg, name) == GW_OK)
        return GW_OK;
    char list[LIST_MAX] = "none";
    size_t used = 0;
    for (uint32_t i = 0; i < part->algo->preset_count && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 part->algo->presets[i].name);
    return gw_document_error(document, preset, GW_ERR_UNKNOWN,
                             "unknown %s: %s; the presets of %s are: %s", part->preset, name,
                             part->algo->name, list);
}

int gw_schema_read(const struct gw_document *document, const struct gw_doc_value *value,
                   const struct gw_schema *schema)
{
    for (uint32_t p = 0; p < schema->part_count; p++)
        gw_algo_defaults(schema->parts[p].algo, schema->parts[p].cfg);
    if (!value || value->kind == GW_DOC_VALUE_SCALAR)
        return GW_OK;
    if (value->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(document, value, GW_ERR_INVALID, "expected a map, not a list");
    int error = GW_OK;
    for (uint32_t p = 0; p < schema->part_count && !error; p++)
        error = read_preset(document, value, &schema->parts[p]);
    for (uint32_t i = 0; i < value->count && !error; i++)
        error = read_item(document, value->items[i], schema);
    for (uint32_t p = 0; p < schema->part_count && !error; p++)
        error = check_part(document, value, &schema->parts[p]);
    return error;
}

static const struct gw_doc_value *kind_value(const struct gw_doc_value *value)
{
    return value && value->kind == GW_DOC_VALUE_MAP ? gw_doc_value_get(value, "kind") : value;
}

const char *gw_schema_name(const struct gw_document *document, const struct gw_doc_value *value,
                           const char *section, const char *initial)
{
    const struct gw_doc_value *kind = kind_value(value);
    if (kind)
        return gw_schema_text(document, kind);
    if (!initial)
        gw_document_error(document, value, GW_ERR_INVALID, "%s%s is missing", section,
                          value ? ".kind" : "");
    return initial;
}

int gw_schema_unknown(const struct gw_document *document, const struct gw_doc_value *value,
                      const char *name, const struct gw_registry *first,
                      const struct gw_registry *last)
{
    const struct gw_registry *const registries[] = {first, last};
    char list[LIST_MAX] = "";
    size_t used = 0;
    for (uint32_t r = 0; r < 2 && registries[r]; r++)
        for (uint32_t i = 0; i < registries[r]->count && used < sizeof(list); i++)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
                                     registries[r]->algos[i]->name);
    return gw_document_error(document, kind_value(value), GW_ERR_UNKNOWN,
                             "unknown kind: %s; expected one of: %s", name, list);
}

const struct gw_algo *gw_schema_kind(const struct gw_document *document,
                                     const struct gw_doc_value *value, const char *section,
                                     const struct gw_registry *registry, const char *initial)
{
    const char *name = gw_schema_name(document, value, section, initial);
    const struct gw_algo *algo = name ? gw_registry_find(registry, name) : NULL;
    if (name && !algo)
        gw_schema_unknown(document, value, name, registry, NULL);
    return algo;
}

int gw_schema_blame(const struct gw_document *document, const struct gw_doc_value *section,
                    int error, const char *sentence)
{
    size_t length = strcspn(sentence, " :");
    size_t rest = length + strspn(sentence + length, " :");
    if (section && section->kind == GW_DOC_VALUE_MAP)
        for (uint32_t i = 0; i < section->count; i++) {
            const struct gw_doc_value *item = section->items[i];
            if (strlen(item->key) == length && strncmp(item->key, sentence, length) == 0)
                return gw_document_error(document, item, error, "%s", sentence + rest);
        }
    return gw_document_error(document, section, error, "%s", sentence);
}

/* A quantity as the largest unit that divides it. */
static void write_quantity(uint64_t value, const char *const *units, const uint64_t *scales,
                           FILE *out)
{
    uint32_t i = 0;
    while (scales[i] > 1 && value % scales[i] != 0)
        i++;
    if (value == 0)
        fputc('0', out);
    else
        fprintf(out, "%llu%s", (unsigned long long)(value / scales[i]), units[i]);
}

static void write_time(gw_time time, FILE *out)
{
    static const char *const units[] = {"s", "ms", "us", "ns", "ps"};
    static const uint64_t scales[] = {GW_S, GW_MS, GW_US, GW_NS, 1};
    write_quantity(time, units, scales, out);
}

static void write_bytes(uint64_t bytes, FILE *out)
{
    static const char *const units[] = {"TiB", "GiB", "MiB", "KiB", "B"};
    static const uint64_t scales[] = {UINT64_C(1) << 40, 1 << 30, 1 << 20, 1 << 10, 1};
    write_quantity(bytes, units, scales, out);
}

static void write_sizes(const struct gw_size_list *sizes, FILE *out)
{
    fputc('[', out);
    for (uint32_t i = 0; i < sizes->count; i++) {
        fputs(i ? ", " : "", out);
        write_bytes(sizes->bytes[i], out);
    }
    fputc(']', out);
}

static void write_rate(uint64_t rate_bps, FILE *out)
{
    static const char *const units[] = {"Tbps", "Gbps", "Mbps", "Kbps", "bps"};
    static const uint64_t scales[] = {1000000000000, 1000000000, 1000000, 1000, 1};
    write_quantity(rate_bps, units, scales, out);
}

/* The shortest decimal that gw_parse_q16() reads back to the same value. */
static void write_q16(gw_q16 value, FILE *out)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint64_t fraction = magnitude & 0xffff;
    uint64_t decimal = 0, one = 1; /* the fraction is decimal / one, one is 10 to the `digits` */
    int digits = 0;
    while (((decimal << 16) + one / 2) / one != fraction) {
        one *= 10;
        digits++;
        decimal = (fraction * one + 0x8000) >> 16;
    }
    fprintf(out, "%s%llu", value < 0 ? "-" : "", (unsigned long long)(magnitude >> 16));
    if (digits)
        fprintf(out, ".%0*llu", digits, (unsigned long long)decimal);
}

static void write_choice(const char *choices, uint32_t index, FILE *out)
{
    while (index-- > 0)
        choices = strchr(choices, '|') + 1;
    fwrite(choices, 1, strcspn(choices, "|"), out);
}

static void write_param(const struct gw_param *param, const void *field, FILE *out)
{
    switch (param->type) {
    case GW_PARAM_BOOL:
        fputs(*(const bool *)field ? "yes" : "no", out);
        break;
    case GW_PARAM_COUNT:
        fprintf(out, "%u", *(const uint32_t *)field);
        break;
    case GW_PARAM_Q16:
        write_q16(*(const gw_q16 *)field, out);
        break;
    case GW_PARAM_TIME:
        write_time(*(const gw_time *)field, out);
        break;
    case GW_PARAM_BYTES:
        write_bytes(*(const uint64_t *)field, out);
        break;
    case GW_PARAM_SIZES:
        write_sizes(field, out);
        break;
    case GW_PARAM_RATE:
        write_rate(*(const uint64_t *)field, out);
        break;
    case GW_PARAM_ENUM:
        write_choice(param->choices, *(const uint32_t *)field, out);
        break;
    case GW_PARAM_TEXT:
        gw_doc_text_write(field, out);
        break;
    }
}

void gw_schema_write(const struct gw_schema *schema, const char *indent, FILE *out)
{
    for (uint32_t p = 0; p < schema->part_count; p++) {
        const struct gw_schema_part *part = &schema->parts[p];
        for (uint32_t i = 0; i < part->algo->param_count; i++) {
            const struct gw_param *param = &part->algo->params[i];
            const char *field = (const char *)part->cfg + param->offset;
            /* A rate without default that was not set cannot be written: 0 is no rate. */
            if (!param->initial && param->type == GW_PARAM_RATE &&
                *(const uint64_t *)(const void *)field == 0)
                continue;
            if (replaced_by(part, param))
                continue;
            fprintf(out, "%s%s: ", indent, param->name);
            write_param(param, field, out);
            fputc('\n', out);
        }
    }
}
