/* Registries and options, with an algorithm of the test's own that has a parameter of each type. */
#include "support.h"

#include "base/error.h"
#include "base/fixed.h"
#include "base/time.h"
#include "core/algo.h"

enum colour { RED, GREEN, BLUE };

struct sample_cfg {
    bool enabled;
    uint32_t count;
    uint32_t limit;
    gw_q16 gain;
    gw_time delay;
    uint64_t window;
    uint64_t rate_bps;
    uint32_t colour; /* enum colour */
    char file[GW_PARAM_TEXT_MAX];
    struct gw_size_list steps;
};

#define FIELD(name) offsetof(struct sample_cfg, name)

static const struct gw_param params[] = {
    {.name = "enabled", .type = GW_PARAM_BOOL, .offset = FIELD(enabled), .initial = "yes"},
    {.name = "count", .type = GW_PARAM_COUNT, .offset = FIELD(count), .initial = "7"},
    {.name = "limit", .type = GW_PARAM_COUNT, .offset = FIELD(limit), .least = 2},
    {.name = "gain",
     .type = GW_PARAM_Q16,
     .offset = FIELD(gain),
     .initial = "0.25",
     .least = -2 * GW_Q16_ONE,
     .most = GW_Q16_ONE},
    {.name = "delay", .type = GW_PARAM_TIME, .offset = FIELD(delay), .initial = "10us"},
    {.name = "window", .type = GW_PARAM_BYTES, .offset = FIELD(window), .initial = "64KiB"},
    {.name = "rate", .type = GW_PARAM_RATE, .offset = FIELD(rate_bps), .initial = "100Gbps"},
    {.name = "colour",
     .type = GW_PARAM_ENUM,
     .offset = FIELD(colour),
     .initial = "green",
     .choices = "red|green|blue"},
    {.name = "file", .type = GW_PARAM_TEXT, .offset = FIELD(file), .initial = ""},
    {.name = "steps", .type = GW_PARAM_SIZES, .offset = FIELD(steps), .initial = "1KB, 2KB,3KB"},
};

static const struct gw_preset presets[] = {
    {.name = "slow", .settings = "delay=1ms gain=10% colour=blue"},
    {.name = "none", .settings = ""},
};

static const struct gw_algo sample = {
    .name = "sample",
    .params = params,
    .presets = presets,
    .param_count = GW_COUNT_OF(params),
    .preset_count = GW_COUNT_OF(presets),
    .cfg_size = sizeof(struct sample_cfg),
};
static const struct gw_algo other = {.name = "other"};
static const struct gw_algo *const algos[] = {&sample, &other};
static const struct gw_registry registry = {
    .kind = "test", .algos = algos, .count = GW_COUNT_OF(algos)};

static struct sample_cfg defaults(void)
{
    struct sample_cfg cfg;
    memset(&cfg, 0xa5, sizeof(cfg));
    gw_algo_defaults(&sample, &cfg);
    return cfg;
}

static void registry_find__knows_whole_names_only(void **state)
{
    (void)state;
    assert_ptr_equal(gw_registry_find(&registry, "sample"), &sample);
    assert_ptr_equal(gw_registry_find(&registry, "other"), &other);
    assert_null(gw_registry_find(&registry, "sampl"));
    assert_null(gw_registry_find(&registry, ""));
}

static void algo_defaults__fills_every_type(void **state)
{
    (void)state;
    struct sample_cfg cfg = defaults();
    assert_true(cfg.enabled);
    assert_int_equal(cfg.count, 7);
    assert_int_equal(cfg.limit, 0);
    assert_int_equal(cfg.gain, GW_Q16_ONE / 4);
    assert_int_equal(cfg.delay, 10 * GW_US);
    assert_int_equal(cfg.window, 65536);
    assert_int_equal(cfg.rate_bps, UINT64_C(100000000000));
    assert_int_equal(cfg.colour, GREEN);
    assert_string_equal(cfg.file, "");
    assert_int_equal(cfg.steps.count, 3);
    assert_int_equal(cfg.steps.bytes[0], 1000);
    assert_int_equal(cfg.steps.bytes[1], 2000);
    assert_int_equal(cfg.steps.bytes[2], 3000);
    assert_int_equal(cfg.steps.bytes[3], 0);
}

static void algo_set__changes_one_field(void **state)
{
    static const struct {
        const char *name, *text;
    } settings[] = {{"enabled", "off"}, {"count", "4294967295"}, {"gain", "-1.5"},
                    {"delay", "2ns"},   {"window", "1MiB"},      {"rate", "1Mbps"},
                    {"colour", "red"},  {"file", "sizes.csv"},   {"steps", "9B"}};
    (void)state;
    struct sample_cfg expected = defaults(), cfg = defaults();
    expected.enabled = false;
    expected.count = UINT32_MAX;
    expected.gain = -GW_Q16_ONE * 3 / 2;
    expected.delay = 2 * GW_NS;
    expected.window = 1048576;
    expected.rate_bps = 1000000;
    expected.colour = RED;
    memcpy(expected.file, "sizes.csv", sizeof("sizes.csv"));
    expected.steps = (struct gw_size_list){.bytes = {9}, .count = 1};
    for (size_t i = 0; i < GW_COUNT_OF(settings); i++)
        assert_int_equal(gw_algo_set(&sample, &cfg, settings[i].name, settings[i].text), GW_OK);
    assert_memory_equal(&cfg, &expected, sizeof(cfg));
}

static void algo_set__leaves_the_options_alone_on_error(void **state)
{
    static char long_name[GW_PARAM_TEXT_MAX + 1];
    static const struct {
        const char *name, *text;
        int error;
    } cases[] = {
        {"speed", "1", GW_ERR_UNKNOWN},
        {"", "1", GW_ERR_UNKNOWN},
        {"enabled", "maybe", GW_ERR_INVALID},
        {"count", "4294967296", GW_ERR_RANGE},
        {"count", "-1", GW_ERR_RANGE},
        {"count", "7us", GW_ERR_UNIT},
        {"limit", "1", GW_ERR_RANGE},
        {"gain", "-2.1", GW_ERR_RANGE},
        {"gain", "101%", GW_ERR_RANGE},
        {"gain", "lots", GW_ERR_INVALID},
        {"delay", "5", GW_ERR_UNIT},
        {"delay", "5KiB", GW_ERR_UNIT},
        {"window", "5us", GW_ERR_UNIT},
        {"rate", "0", GW_ERR_RANGE},
        {"colour", "pink", GW_ERR_INVALID},
        {"colour", "", GW_ERR_INVALID},
        {"colour", "red|green", GW_ERR_INVALID},
        {"file", long_name, GW_ERR_RANGE},
        {"steps", "1,2,3,4,5,6,7,8", GW_ERR_RANGE},
        {"steps", "1,", GW_ERR_INVALID},
        {"steps", ",1", GW_ERR_INVALID},
        {"steps", " ", GW_ERR_INVALID},
        {"steps", "1 2", GW_ERR_UNIT},
        {"steps", "1,2us", GW_ERR_UNIT},
        {"steps", long_name, GW_ERR_INVALID},
    };
    (void)state;
    memset(long_name, 'x', GW_PARAM_TEXT_MAX);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct sample_cfg expected = defaults(), cfg = defaults();
        assert_int_equal(gw_algo_set(&sample, &cfg, cases[i].name, cases[i].text), cases[i].error);
        assert_memory_equal(&cfg, &expected, sizeof(cfg));
    }
}

static void algo_set__takes_the_longest_text(void **state)
{
    (void)state;
    char text[GW_PARAM_TEXT_MAX];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct sample_cfg cfg = defaults();
    assert_int_equal(gw_algo_set(&sample, &cfg, "file", text), GW_OK);
    assert_string_equal(cfg.file, text);
}

static void algo_set__takes_lists_of_all_lengths(void **state)
{
    static const char text[] = "1, 2, 3, 4, 5, 6, 7";
    (void)state;
    struct sample_cfg cfg = defaults();
    assert_int_equal(gw_algo_set(&sample, &cfg, "steps", ""), GW_OK);
    assert_int_equal(cfg.steps.count, 0);
    assert_int_equal(gw_algo_set(&sample, &cfg, "steps", text), GW_OK);
    assert_int_equal(cfg.steps.count, GW_SIZES_MAX);
    for (uint32_t i = 0; i < GW_SIZES_MAX; i++)
        assert_int_equal(cfg.steps.bytes[i], i + 1);
}

static void algo_preset__changes_what_it_names(void **state)
{
    (void)state;
    struct sample_cfg expected = defaults(), cfg = defaults();
    assert_int_equal(gw_algo_preset(&sample, &cfg, "none"), GW_OK);
    assert_memory_equal(&cfg, &expected, sizeof(cfg));

    expected.delay = GW_MS;
    expected.gain = (GW_Q16_ONE + 5) / 10;
    expected.colour = BLUE;
    assert_int_equal(gw_algo_preset(&sample, &cfg, "slow"), GW_OK);
    assert_memory_equal(&cfg, &expected, sizeof(cfg));

    assert_int_equal(gw_algo_preset(&sample, &cfg, "fast"), GW_ERR_UNKNOWN);
    assert_memory_equal(&cfg, &expected, sizeof(cfg));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_find__knows_whole_names_only),
        cmocka_unit_test(algo_defaults__fills_every_type),
        cmocka_unit_test(algo_set__changes_one_field),
        cmocka_unit_test(algo_set__leaves_the_options_alone_on_error),
        cmocka_unit_test(algo_set__takes_the_longest_text),
        cmocka_unit_test(algo_set__takes_lists_of_all_lengths),
        cmocka_unit_test(algo_preset__changes_what_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
