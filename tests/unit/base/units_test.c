/* Good and bad text for each parser. A parser that refuses must leave its result alone. */
#include "support.h"

#include "base/error.h"
#include "base/units.h"

/* What results hold before a parser runs. */
static const uint64_t untouched = UINT64_C(0x5a5a5a5a5a5a5a5a);

struct number_case {
    const char *text;
    int error;
    uint64_t value; /* when error is GW_OK */
};

static void check_numbers(int (*parse)(const char *, uint64_t *), const struct number_case *cases,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = untouched;
        int error = parse(cases[i].text, &value);
        uint64_t expected = cases[i].error ? untouched : cases[i].value;
        if (error != cases[i].error || value != expected)
            fail_msg("\"%s\": error %d, value %llu", cases[i].text, error,
                     (unsigned long long)value);
    }
}

static void parse_time__table(void **state)
{
    static const struct number_case cases[] = {
        {"0", GW_OK, 0},
        {"0.0", GW_OK, 0},
        {"1ps", GW_OK, 1},
        {"600ns", GW_OK, 600 * GW_NS},
        {"600 ns", GW_OK, 600 * GW_NS},
        {"1.5us", GW_OK, 1500000},
        {"0.000000001s", GW_OK, GW_NS},
        {"2ms", GW_OK, 2 * GW_MS},
        {"100s", GW_OK, 100 * GW_S},
        {"1.1000000000us", GW_OK, 1100000},
        {"0.4ps", GW_OK, 0},
        {"0.5ps", GW_OK, 1},
        {"9223372036854775807ps", GW_OK, INT64_MAX},
        {"9223372036854775808ps", GW_ERR_RANGE, 0},
        {"10000000s", GW_ERR_RANGE, 0},
        {"18446744073709551616ps", GW_ERR_RANGE, 0},
        {"1.0000000001s", GW_ERR_RANGE, 0},
        {"-1ns", GW_ERR_RANGE, 0},
        {"5", GW_ERR_UNIT, 0},
        {"5min", GW_ERR_UNIT, 0},
        {"5NS", GW_ERR_UNIT, 0},
        {"5ns ", GW_ERR_UNIT, 0},
        {"5nsx", GW_ERR_UNIT, 0},
        {"1e3ns", GW_ERR_UNIT, 0},
        {"", GW_ERR_INVALID, 0},
        {"ns", GW_ERR_INVALID, 0},
        {" 5ns", GW_ERR_INVALID, 0},
        {".5us", GW_ERR_INVALID, 0},
        {"5.us", GW_ERR_INVALID, 0},
        {"+5us", GW_ERR_INVALID, 0},
        {"--5us", GW_ERR_INVALID, 0},
    };
    (void)state;
    check_numbers(gw_parse_time, cases, GW_COUNT_OF(cases));
}

static void parse_bytes__table(void **state)
{
    static const struct number_case cases[] = {
        {"0", GW_OK, 0},
        {"4096", GW_OK, 4096},
        {"64B", GW_OK, 64},
        {"2KB", GW_OK, 2000},
        {"2KiB", GW_OK, 2048},
        {"1.5KiB", GW_OK, 1536},
        {"2MiB", GW_OK, 2097152},
        {"2 MiB", GW_OK, 2097152},
        {"3MB", GW_OK, 3000000},
        {"1GB", GW_OK, 1000000000},
        {"1GiB", GW_OK, UINT64_C(1) << 30},
        {"0.5TiB", GW_OK, UINT64_C(1) << 39},
        {"0.999999999TB", GW_OK, UINT64_C(999999999000)},
        {"2TB", GW_OK, UINT64_C(2000000000000)},
        {"18446744073709551615", GW_OK, UINT64_MAX},
        {"18446744073709551615.5", GW_ERR_RANGE, 0},
        {"18446744073709551616", GW_ERR_RANGE, 0},
        {"16777216TiB", GW_ERR_RANGE, 0},
        {"-1", GW_ERR_RANGE, 0},
        {"2mib", GW_ERR_UNIT, 0},
        {"2Mib", GW_ERR_UNIT, 0},
        {"2Gbps", GW_ERR_UNIT, 0},
        {"2us", GW_ERR_UNIT, 0},
        {"many", GW_ERR_INVALID, 0},
    };
    (void)state;
    check_numbers(gw_parse_bytes, cases, GW_COUNT_OF(cases));
}

static void parse_rate__table(void **state)
{
    static const struct number_case cases[] = {
        {"800Gbps", GW_OK, UINT64_C(800000000000)},
        {"1.6Tbps", GW_OK, UINT64_C(1600000000000)},
        {"12.5Gbps", GW_OK, UINT64_C(12500000000)},
        {"10Mbps", GW_OK, 10000000},
        {"100Kbps", GW_OK, GW_RATE_BPS_MIN},
        {"100000bps", GW_OK, GW_RATE_BPS_MIN},
        {"99999bps", GW_ERR_RANGE, 0},
        {"0", GW_ERR_RANGE, 0},
        {"-800Gbps", GW_ERR_RANGE, 0},
        {"99999999999Tbps", GW_ERR_RANGE, 0},
        {"800", GW_ERR_UNIT, 0},
        {"800G", GW_ERR_UNIT, 0},
        {"800gbps", GW_ERR_UNIT, 0},
        {"800GB", GW_ERR_UNIT, 0},
        {"Gbps", GW_ERR_INVALID, 0},
    };
    (void)state;
    check_numbers(gw_parse_rate, cases, GW_COUNT_OF(cases));
}

static void parse_count__table(void **state)
{
    static const struct number_case cases[] = {
        {"0", GW_OK, 0},
        {"1024", GW_OK, 1024},
        {"007", GW_OK, 7},
        {"3.0", GW_OK, 3},
        {"18446744073709551615", GW_OK, UINT64_MAX},
        {"18446744073709551616", GW_ERR_RANGE, 0},
        {"1.5", GW_ERR_RANGE, 0},
        {"-1", GW_ERR_RANGE, 0},
        {"5x", GW_ERR_UNIT, 0},
        {"5 ", GW_ERR_UNIT, 0},
        {"0x10", GW_ERR_UNIT, 0},
        {"", GW_ERR_INVALID, 0},
        {"five", GW_ERR_INVALID, 0},
    };
    (void)state;
    check_numbers(gw_parse_count, cases, GW_COUNT_OF(cases));
}

static void parse_q16__table(void **state)
{
    static const struct {
        const char *text;
        int error;
        gw_q16 value; /* when error is GW_OK */
    } cases[] = {
        {"0", GW_OK, 0},
        {"1", GW_OK, GW_Q16_ONE},
        {"0.25", GW_OK, GW_Q16_ONE / 4},
        {"-0.25", GW_OK, -GW_Q16_ONE / 4},
        {"-0", GW_OK, 0},
        {"1.25", GW_OK, GW_Q16_ONE * 5 / 4},
        {"25%", GW_OK, GW_Q16_ONE / 4},
        {"150%", GW_OK, GW_Q16_ONE * 3 / 2},
        {"-50%", GW_OK, -GW_Q16_ONE / 2},
        {"0.8", GW_OK, 52429},
        {"80%", GW_OK, 52429},
        /* 1.496 units: to round twice would give 2. */
        {"0.0022827%", GW_OK, 1},
        {"0.0022889%", GW_OK, 2},
        {"0.000015259", GW_OK, 1},
        {"0.000015258", GW_ERR_RANGE, 0},
        {"-0.000015258", GW_ERR_RANGE, 0},
        {"0.0015258%", GW_ERR_RANGE, 0},
        {"70368744177663", GW_OK, INT64_C(70368744177663) * GW_Q16_ONE},
        {"70368744177664", GW_ERR_RANGE, 0},
        {"0.1234567891", GW_ERR_RANGE, 0},
        {"25%%", GW_ERR_UNIT, 0},
        {"25 %", GW_ERR_UNIT, 0},
        {"0.5us", GW_ERR_UNIT, 0},
        {"%", GW_ERR_INVALID, 0},
        {"", GW_ERR_INVALID, 0},
        {"half", GW_ERR_INVALID, 0},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        gw_q16 value = (gw_q16)untouched;
        int error = gw_parse_q16(cases[i].text, &value);
        gw_q16 expected = cases[i].error ? (gw_q16)untouched : cases[i].value;
        if (error != cases[i].error || value != expected)
            fail_msg("\"%s\": error %d, value %lld", cases[i].text, error, (long long)value);
    }
}

static void parse_chance__table(void **state)
{
    static const struct number_case cases[] = {
        {"0", GW_OK, 0},
        {"1", GW_OK, UINT64_C(1) << 32},
        {"100%", GW_OK, UINT64_C(1) << 32},
        {"0.5", GW_OK, UINT64_C(1) << 31},
        {"0.1%", GW_OK, 4294967},
        {"0.000000001", GW_OK, 4},
        {"0.999999999", GW_OK, 4294967292},
        {"0.000000024%", GW_OK, 1},
        {"0.000000023%", GW_ERR_RANGE, 0},
        {"-0", GW_OK, 0},
        {"1.000000001", GW_ERR_RANGE, 0},
        {"101%", GW_ERR_RANGE, 0},
        {"-0.5", GW_ERR_RANGE, 0},
        {"18446744073709551615", GW_ERR_RANGE, 0},
        {"0.5us", GW_ERR_UNIT, 0},
        {"often", GW_ERR_INVALID, 0},
    };
    (void)state;
    check_numbers(gw_parse_chance, cases, GW_COUNT_OF(cases));
}

static void parse_bool__table(void **state)
{
    static const char *const good[][2] = {{"no", "yes"}, {"false", "true"}, {"off", "on"}};
    static const char *const bad[] = {"", "1", "0", "Yes", "y", "yes ", "true!"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(good); i++)
        for (int expected = 0; expected < 2; expected++) {
            bool value = !expected;
            assert_int_equal(gw_parse_bool(good[i][expected], &value), GW_OK);
            assert_int_equal(value, expected);
        }
    for (size_t i = 0; i < GW_COUNT_OF(bad); i++) {
        bool value = true;
        assert_int_equal(gw_parse_bool(bad[i], &value), GW_ERR_INVALID);
        assert_true(value);
    }
}

static void text_equal__compares_whole_strings(void **state)
{
    (void)state;
    assert_true(gw_text_equal("", ""));
    assert_true(gw_text_equal("reps", "reps"));
    assert_false(gw_text_equal("reps", "rep"));
    assert_false(gw_text_equal("rep", "reps"));
    assert_false(gw_text_equal("", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_time__table), cmocka_unit_test(parse_bytes__table),
        cmocka_unit_test(parse_rate__table), cmocka_unit_test(parse_count__table),
        cmocka_unit_test(parse_q16__table),  cmocka_unit_test(parse_chance__table),
        cmocka_unit_test(parse_bool__table), cmocka_unit_test(text_equal__compares_whole_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
