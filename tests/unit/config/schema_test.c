/* Sections by table: every parameter type is read, refused and written back. */
#include "unit/config/scenario_file.h"

#include "config/schema.h"

struct options {
    bool flag;
    uint32_t count;
    gw_q16 ratio;
    gw_time time;
    uint64_t bytes;
    uint64_t rate;
    uint32_t choice;
    char text[GW_PARAM_TEXT_MAX];
    uint64_t other_rate;
    struct gw_size_list sizes;
    struct gw_size_list list; /* instead of bytes */
};

static const struct gw_param params[] = {
    GW_PARAM(struct options, BOOL, flag, "no", ""),
    GW_PARAM(struct options, COUNT, count, "3", "", .most = 100),
    GW_PARAM(struct options, Q16, ratio, "0.8", "", .least = -GW_Q16_ONE),
    GW_PARAM(struct options, TIME, time, "1500ns", ""),
    {.name = "bytes",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct options, bytes),
     .initial = "3MiB",
     .help = "",
     .unless = "list"},
    GW_PARAM(struct options, RATE, rate, "800Gbps", ""),
    {.name = "choice",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct options, choice),
     .initial = "two",
     .choices = "one|two|three",
     .help = ""},
    GW_PARAM(struct options, TEXT, text, "", ""),
    GW_PARAM(struct options, RATE, other_rate, NULL, ""),
    GW_PARAM(struct options, SIZES, sizes, "1KiB, 1025", ""),
    GW_PARAM(struct options, SIZES, list, NULL, ""),
};

static const struct gw_preset presets[] = {{"big", "count=99 choice=three", ""}};

/* A flag needs a count. */
static const char *check_options(const void *cfg)
{
    const struct options *options = cfg;
    return options->flag && options->count == 0 ? "count: a flag needs one" : NULL;
}

static const struct gw_algo table = {
    .name = "thing",
    .check = check_options,
    .params = params,
    .presets = presets,
    .param_count = GW_COUNT_OF(params),
    .preset_count = GW_COUNT_OF(presets),
    .cfg_size = sizeof(struct options),
};

static const char *const others[] = {"special", NULL};

static int read_text(struct options *options, const char *text, char why[GW_WHY_MAX], FILE *out)
{
    char name[SCENARIO_NAME_MAX];
    struct gw_document document;
    const struct gw_schema schema = {
        .parts = {{&table, options, "preset"}}, .part_count = 1, .others = others};
    scenario_file(name, text);
    int error = gw_document_load(&document, name, NULL, 0, why);
    if (!error)
        error = gw_schema_read(&document, document.root, &schema);
    if (!error && out)
        gw_schema_write(&schema, "", out);
    gw_document_free(&document);
    unlink(name);
    return error;
}

static void schema_read__sets_defaults_then_preset_then_keys(void **state)
{
    (void)state;
    struct options options;
    char why[GW_WHY_MAX];
    assert_int_equal(read_text(&options, "special: [1, 2]\n", why, NULL), GW_OK);
    assert_int_equal(options.count, 3);
    assert_int_equal(options.choice, 1);
    assert_int_equal(read_text(&options, "count: 5\npreset: big\n", why, NULL), GW_OK);
    assert_int_equal(options.count, 5);
    assert_int_equal(options.choice, 2);
    assert_int_equal(options.other_rate, 0);
}

static void schema_read__says_what_was_expected(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"flag: 3\n", ":1: flag: not understood: 3; expected yes or no"},
        {"time: 1s\ncount: 3us\n", ":2: count: wrong or missing unit: 3us; expected a whole"},
        {"count: 5000000000\n", ":1: count: value out of range: 5000000000; expected a whole"},
        {"ratio: 1x\n", ":1: ratio: wrong or missing unit: 1x; expected a number such as"},
        {"ratio: -1.1\n", ":1: ratio: value out of range: -1.1; expected a number such as 0.25, "
                          "or 25%: at least -1"},
        {"count: 101\n", ":1: count: value out of range: 101; expected a whole number: from 0 to "
                         "100"},
        {"time: 600\n", ":1: time: wrong or missing unit: 600; expected a time such as 600ns"},
        {"bytes: 2MX\n", ":1: bytes: wrong or missing unit: 2MX; expected a size such as 2MiB"},
        {"rate: 10bps\n", ":1: rate: value out of range: 10bps; expected a rate such as"},
        {"choice: four\n", ":1: choice: not understood: four; expected one of one|two|three"},
        {"count:\n", ":1: count: not understood: (nothing); expected a whole number"},
        {"sizes: [1KB, {a: 1}]\n", ": sizes.1: expected a single value, not a map"},
        {"sizes: {a: 1}\n", ":1: sizes: expected a single value, not a map"},
        {"sizes: [1KB, 2us]\n", ":1: sizes: wrong or missing unit: 1KB, 2us; expected at most 7 "
                                "sizes such as [32KB, 48KB]"},
        {"sizes: [1, 2, 3, 4, 5, 6, 7, 8]\n",
         ":1: sizes: value out of range: 1, 2, 3, 4, 5, 6, 7, 8;"},
        {"count: [1]\n", ":1: count: expected a single value, not a list"},
        {"count: {a: 1}\n", ":1: count: expected a single value, not a map"},
        {"cuont: 1\n", ":1: cuont: unknown key \"cuont\"; the nearest known are: count, "},
        {"count: 0\nflag: yes\n", ":1: count: a flag needs one"},
        {"list: [1KB]\nbytes: 3MiB\n", ":2: bytes: says nothing beside list"},
        {"preset: small\n", ":1: preset: unknown preset: small; the presets of thing are: big"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct options options;
        char why[GW_WHY_MAX];
        assert_true(read_text(&options, cases[i].text, why, NULL) < 0);
        if (!strstr(why, cases[i].why))
            fail_msg("case %zu: said \"%s\"", i, why);
    }
}

static void schema_write__gives_what_reads_back(void **state)
{
    static const char *const ratios[] = {"0",           "1",        "0.8",
                                         "0.199996948", "-0.25",    "12345.6",
                                         "0.00002",     "0.999984", "1099511627775.5"};
    static const char *const lists[] = {"[]", "[32KB]", "\"1, 2KiB\"", "[0, 1, 2, 3, 4, 5, 6MB]"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(ratios); i++) {
        struct options first, second;
        char text[512], written[1024], why[GW_WHY_MAX];
        snprintf(text, sizeof(text),
                 "ratio: %s\ntime: %zups\nbytes: %zu\nrate: %zuKbps\ntext: \"a: b # %zu\"\n"
                 "sizes: %s\n",
                 ratios[i], i * 999, i * 1024 + i, i + 100, i, lists[i % GW_COUNT_OF(lists)]);
        FILE *out = fmemopen(written, sizeof(written), "w");
        assert_int_equal(read_text(&first, text, why, out), GW_OK);
        fclose(out);
        if (read_text(&second, written, why, NULL) != GW_OK)
            fail_msg("%s", why);
        assert_memory_equal(&first, &second, sizeof(first));
    }
}

static void schema_write__leaves_out_what_says_nothing(void **state)
{
    (void)state;
    struct options options;
    char written[1024] = "", why[GW_WHY_MAX];
    FILE *out = fmemopen(written, sizeof(written), "w");
    assert_int_equal(read_text(&options, "list: [1KB]\n", why, out), GW_OK);
    fclose(out);
    assert_non_null(strstr(written, "list: [1000B]\n"));
    assert_null(strstr(written, "bytes:"));
}

static void schema_write__is_easy_to_read(void **state)
{
    (void)state;
    struct options options;
    char written[1024] = "", why[GW_WHY_MAX];
    FILE *out = fmemopen(written, sizeof(written), "w");
    assert_int_equal(read_text(&options, "special: 1\n", why, out), GW_OK);
    fclose(out);
    assert_string_equal(written, "flag: no\ncount: 3\nratio: 0.8\ntime: 1500ns\nbytes: 3MiB\n"
                                 "rate: 800Gbps\nchoice: two\ntext: \"\"\n"
                                 "sizes: [1KiB, 1025B]\nlist: []\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_read__sets_defaults_then_preset_then_keys),
        cmocka_unit_test(schema_read__says_what_was_expected),
        cmocka_unit_test(schema_write__gives_what_reads_back),
        cmocka_unit_test(schema_write__leaves_out_what_says_nothing),
        cmocka_unit_test(schema_write__is_easy_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
