/* Parsers of quantities; see units.h for the grammar. */
#include "base/units.h"

#include "base/error.h"

/* One accepted unit: a value of 1 in this unit is `scale` base units. */
struct unit {
    const char *name;
    uint64_t scale;
};

enum {
    FRACTION_DIGITS_MAX = 9,
};
static const uint64_t FRACTION_ONE = 1000000000; /* 10^FRACTION_DIGITS_MAX */

/* A decimal number before its unit: whole + fraction / FRACTION_ONE. */
struct decimal {
    uint64_t whole;
    uint64_t fraction;
    bool negative;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a decimal number and moves *text behind it. */
static int parse_decimal(const char **text, struct decimal *decimal)
{
    const char *p = *text;
    *decimal = (struct decimal){.negative = *p == '-'};
    p += decimal->negative;
    if (!is_digit(*p))
        return GW_ERR_INVALID;
    for (; is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (decimal->whole > (UINT64_MAX - digit) / 10)
            return GW_ERR_RANGE;
        decimal->whole = decimal->whole * 10 + digit;
    }
    if (*p == '.') {
        uint64_t place = FRACTION_ONE / 10;
        if (!is_digit(*++p))
            return GW_ERR_INVALID;
        for (; is_digit(*p); p++, place /= 10) {
            if (place == 0 && *p != '0')
                return GW_ERR_RANGE;
            decimal->fraction += place * (uint64_t)(*p - '0');
        }
    }
    *text = p;
    return GW_OK;
}

/* decimal * scale, rounded to nearest. */
static int decimal_scale(const struct decimal *decimal, uint64_t scale, uint64_t *value)
{
    if (decimal->negative || (scale != 0 && decimal->whole > UINT64_MAX / scale))
        return GW_ERR_RANGE;
    /* fraction * scale / FRACTION_ONE without a 128-bit division. */
    uint64_t high = scale / FRACTION_ONE * decimal->fraction;
    uint64_t low = (scale % FRACTION_ONE * decimal->fraction + FRACTION_ONE / 2) / FRACTION_ONE;
    uint64_t whole = decimal->whole * scale;
    if (high + low > UINT64_MAX - whole)
        return GW_ERR_RANGE;
    *value = whole + high + low;
    return GW_OK;
}

static int parse_with_unit(const char *text, const struct unit *units, uint64_t *value)
{
    struct decimal decimal;
    int error = parse_decimal(&text, &decimal);
    if (error)
        return error;
    while (*text == ' ')
        text++;
    for (const struct unit *unit = units; unit->name; unit++)
        if (gw_text_equal(text, unit->name))
            return decimal_scale(&decimal, unit->scale, value);
    if (*text == '\0' && decimal.whole == 0 && decimal.fraction == 0 && !decimal.negative) {
        *value = 0;
        return GW_OK;
    }
    return GW_ERR_UNIT;
}

int gw_parse_time(const char *text, gw_time *time)
{
    static const struct unit units[] = {{"ps", 1},     {"ns", GW_NS}, {"us", GW_US},
                                        {"ms", GW_MS}, {"s", GW_S},   {0}};
    uint64_t value;
    int error = parse_with_unit(text, units, &value);
    if (error)
        return error;
    /* Half the range keeps signed comparison of any two times valid. */
    if (value > INT64_MAX)
        return GW_ERR_RANGE;
    *time = value;
    return GW_OK;
}

int gw_parse_bytes(const char *text, uint64_t *bytes)
{
    static const struct unit units[] = {{"", 1},
                                        {"B", 1},
                                        {"KB", 1000},
                                        {"MB", 1000000},
                                        {"GB", 1000000000},
                                        {"TB", 1000000000000},
                                        {"KiB", UINT64_C(1) << 10},
                                        {"MiB", UINT64_C(1) << 20},
                                        {"GiB", UINT64_C(1) << 30},
                                        {"TiB", UINT64_C(1) << 40},
                                        {0}};
    return parse_with_unit(text, units, bytes);
}

int gw_parse_rate(const char *text, uint64_t *rate_bps)
{
    static const struct unit units[] = {
        {"bps", 1},           {"Kbps", 1000},          {"Mbps", 1000000},
        {"Gbps", 1000000000}, {"Tbps", 1000000000000}, {0}};
    uint64_t value;
    int error = parse_with_unit(text, units, &value);
    if (error)
        return error;
    if (value < GW_RATE_BPS_MIN)
        return GW_ERR_RANGE;
    *rate_bps = value;
    return GW_OK;
}

/* A plain number or a percentage, in units of 1 / `one`, at least one if it is not 0; `one` is at
 * most 2^32. */
static int parse_ratio(const char *text, uint64_t one, uint64_t *value, bool *negative)
{
    struct decimal decimal;
    int error = parse_decimal(&text, &decimal);
    if (error)
        return error;
    bool percent = text[0] == '%' && text[1] == '\0';
    if (!percent && *text != '\0')
        return GW_ERR_UNIT;
    /* Half the range of a signed result leaves room for the rounding. */
    if (decimal.whole > INT64_MAX / 2 / one)
        return GW_ERR_RANGE;
    /* Whole and fraction are divided by `parts` together, so that only the result is rounded. */
    uint64_t parts = percent ? 100 : 1;
    uint64_t divisor = parts * FRACTION_ONE;
    uint64_t rest = decimal.whole * one % parts * FRACTION_ONE + decimal.fraction * one;
    uint64_t units = decimal.whole * one / parts;
    if (units == 0 && rest > 0 && rest < divisor)
        return GW_ERR_RANGE;
    *value = units + (rest + divisor / 2) / divisor;
    *negative = decimal.negative;
    return GW_OK;
}

int gw_parse_q16(const char *text, gw_q16 *value)
{
    uint64_t size;
    bool negative;
    int error = parse_ratio(text, (uint64_t)GW_Q16_ONE, &size, &negative);
    if (error)
        return error;
    *value = negative ? -(gw_q16)size : (gw_q16)size;
    return GW_OK;
}

int gw_parse_chance(const char *text, uint64_t *chance_q32)
{
    static const uint64_t certain = UINT64_C(1) << 32;
    uint64_t chance;
    bool negative;
    int error = parse_ratio(text, certain, &chance, &negative);
    if (error)
        return error;
    if (chance > certain || (negative && chance > 0))
        return GW_ERR_RANGE;
    *chance_q32 = chance;
    return GW_OK;
}

int gw_parse_count(const char *text, uint64_t *count)
{
    struct decimal decimal;
    int error = parse_decimal(&text, &decimal);
    if (error)
        return error;
    if (*text != '\0')
        return GW_ERR_UNIT;
    if (decimal.negative || decimal.fraction)
        return GW_ERR_RANGE;
    *count = decimal.whole;
    return GW_OK;
}

int gw_parse_bool(const char *text, bool *value)
{
    static const struct {
        const char *name;
        bool value;
    } words[] = {{"yes", true}, {"true", true},   {"on", true},
                 {"no", false}, {"false", false}, {"off", false}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (gw_text_equal(text, words[i].name)) {
            *value = words[i].value;
            return GW_OK;
        }
    return GW_ERR_INVALID;
}

bool gw_text_equal(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (*a == '\0')
            return true;
    return false;
}
