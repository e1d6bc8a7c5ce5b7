/* Documents: trees from YAML, --set by path, and errors that name their place. */
#include "unit/config/scenario_file.h"

#include "config/document.h"

enum {
    FLOW_MAX = 512, /* bytes of a tree as text */
};

/* Loads `text` with up to two overrides and writes the whole tree into `flow`. */
static int load(const char *text, const char *set1, const char *set2, char flow[FLOW_MAX],
                char why[GW_WHY_MAX])
{
    char name[SCENARIO_NAME_MAX], copies[2][256];
    struct gw_override overrides[2];
    uint32_t count = 0;
    if (set1)
        overrides[count++] = scenario_override(copies[0], set1);
    if (set2)
        overrides[count++] = scenario_override(copies[1], set2);
    struct gw_document document;
    scenario_file(name, text);
    why[0] = '\0';
    int error = gw_document_load(&document, name, overrides, count, why);
    unlink(name);
    if (!error) {
        FILE *out = fmemopen(flow, FLOW_MAX, "w");
        gw_doc_value_write(document.root, out);
        fclose(out);
    }
    gw_document_free(&document);
    return error;
}

static void document_load__applies_overrides(void **state)
{
    static const struct {
        const char *text, *set1, *set2, *expected;
    } cases[] = {
        {"a: 1\nb: [x, {c: 2}]\n", NULL, NULL, "{a: 1, b: [x, {c: 2}]}"},
        {"a: 1\n", "a=2", NULL, "{a: 2}"},
        {"a: 1\n", "b=2", NULL, "{a: 1, b: 2}"},
        {"a: 1\n", "b.c.d=2", "b.c.e=3", "{a: 1, b: {c: {d: 2, e: 3}}}"},
        {"cc: smartt\n", "cc.fd=0.5", NULL, "{cc: {kind: smartt, fd: 0.5}}"},
        {"cc: smartt\n", "cc.kind=fixed", NULL, "{cc: {kind: fixed}}"},
        {"cc: {kind: smartt, fd: 1}\n", "cc=fixed", NULL, "{cc: fixed}"},
        {"cc:\n", "cc.fd=0.5", NULL, "{cc: {fd: 0.5}}"},
        {"w: [{size: 1}, {size: 2}]\n", "w.1.size=3", NULL, "{w: [{size: 1}, {size: 3}]}"},
        {"a: 1\n", "a=[p, q]", "a.0=r", "{a: [r, q]}"},
        {"a: 1\n", "a={b: 2}", "a.b=3", "{a: {b: 3}}"},
        {"a: 1\n", "a=1=2", NULL, "{a: \"1=2\"}"},
        {"a: 1\n", "a=", NULL, "{a: \"\"}"},
        {"a: \"say \\\"hi\\\"\"\n", NULL, NULL, "{a: \"say \\\"hi\\\"\"}"},
        {"a: 'it''s'\n", NULL, NULL, "{a: \"it's\"}"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char flow[FLOW_MAX], why[GW_WHY_MAX];
        if (load(cases[i].text, cases[i].set1, cases[i].set2, flow, why) != GW_OK)
            fail_msg("case %zu: %s", i, why);
        assert_string_equal(flow, cases[i].expected);
    }
}

/* The value of `a` and `b` after variants: these come first, whatever the order. */
static void document_load__applies_variants(void **state)
{
    static const char text[] = "aliases: {short: b.c}\n"
                               "variants:\n"
                               "  size: {full: {}, small: {a: 2, short: [x, {y: z}]}}\n"
                               "  kind: {new: {a: 3}}\n"
                               "a: 1\n";
    static const struct {
        const char *set1, *set2, *a, *b;
    } cases[] = {
        {NULL, NULL, "1", NULL},
        {"size=full", NULL, "1", NULL},
        {"size=small", NULL, "2", "{c: [x, {y: z}]}"},
        {"size=small", "kind=new", "3", "{c: [x, {y: z}]}"},
        {"kind=new", "size=small", "2", "{c: [x, {y: z}]}"},
        {"a=4", "size=small", "4", "{c: [x, {y: z}]}"},
        {"size=small", "b.c.1.y=w", "2", "{c: [x, {y: w}]}"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char flow[FLOW_MAX], why[GW_WHY_MAX], expected[64];
        if (load(text, cases[i].set1, cases[i].set2, flow, why) != GW_OK)
            fail_msg("case %zu: %s", i, why);
        snprintf(expected, sizeof(expected), ", a: %s", cases[i].a);
        assert_non_null(strstr(flow, expected));
        snprintf(expected, sizeof(expected), ", b: %s}", cases[i].b ? cases[i].b : "");
        if (cases[i].b && !strstr(flow, expected))
            fail_msg("case %zu: %s", i, flow);
        assert_true(cases[i].b || !strstr(flow, ", b: "));
    }
}

static void document_load__names_the_place_of_an_error(void **state)
{
    static const struct {
        const char *text, *set, *why;
    } cases[] = {
        {"a: [1\nb: 2\n", NULL, ".yaml:2: "},
        {"a: 1\nb: 2\na: 3\n", NULL, ".yaml:3: duplicate key"},
        {"a: 1\n---\nb: 2\n", NULL, ".yaml:1: there must be one YAML document"},
        {"", NULL, ".yaml:1: expected a map"},
        {"# nothing\n", NULL, ".yaml:1: expected a map"},
        {"[1, 2]\n", NULL, ".yaml:1: expected a map"},
        {"a: 1\nb:\n  c: &x 2\n  d: *x\n", NULL, ".yaml:4: b.d: aliases and tags"},
        {"a: 1\nb: !t 2\n", NULL, ".yaml:2: b: aliases and tags"},
        {"a: 1\n{b: 2}: 3\n", NULL, ".yaml:2: "},
        {"a: [1, 2]\n", "a.2=3", "--set a.2=3: a is a list of 2"},
        {"a: [1, 2]\n", "a.x=3", "--set a.x=3: a is a list of 2"},
        {"a: 1\n", "b=[1", "--set b=[1: "},
        {"a: 1\n", ".b=1", "--set .b=1: the key must be words"},
        {"a: 1\n", "b.=1", "--set b.=1: the key must be words"},
        {"a: 1\n", "=1", "--set =1: the key must be words"},
        {"variants: {s: {x: 1, y: 2}}\n", "s=z", "--set s=z: unknown; expected one of: x, y"},
        {"variants:\n  s:\n    x: [1]\n", "s=x", ".yaml:3: variants.s.x: expected a map"},
        {"variants: {s: {x: {l.5: 1}}}\nl: [1]\n", "s=x", "--set s=x: l is a list of 1"},
        {"variants: {s: {x: {variants.s.x: 1}}}\n", "s=x", "a variant cannot change variants"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char flow[FLOW_MAX], why[GW_WHY_MAX];
        assert_true(load(cases[i].text, cases[i].set, NULL, flow, why) < 0);
        if (!strstr(why, cases[i].why))
            fail_msg("case %zu: said \"%s\"", i, why);
    }
}

static void document_load__names_a_file_that_cannot_be_read(void **state)
{
    (void)state;
    struct gw_document document;
    char why[GW_WHY_MAX];
    assert_int_equal(gw_document_load(&document, "/no/such.yaml", NULL, 0, why), GW_ERR_SYSTEM);
    assert_string_equal(why, "/no/such.yaml: No such file or directory");
    gw_document_free(&document);
    assert_int_equal(gw_document_load(&document, "/tmp", NULL, 0, why), GW_ERR_SYSTEM);
    assert_string_equal(why, "/tmp: Is a directory");
    gw_document_free(&document);
}

/* A NUL would end the text for whoever reads it as one: what is behind it is not lost in silence.
 */
static void document_load__takes_no_nul(void **state)
{
    (void)state;
    static const char in_file[] = "a: 1\n\0b: 2\n", in_value[] = "a: \"x\\0y\"\n";
    char name[SCENARIO_NAME_MAX], flow[FLOW_MAX], why[GW_WHY_MAX];
    struct gw_document document;
    scenario_file(name, "");
    FILE *file = fopen(name, "w");
    assert_int_equal(fwrite(in_file, 1, sizeof(in_file) - 1, file), sizeof(in_file) - 1);
    fclose(file);
    assert_int_equal(gw_document_load(&document, name, NULL, 0, why), GW_ERR_INVALID);
    assert_non_null(strstr(why, "there is a NUL byte"));
    unlink(name);
    gw_document_free(&document);
    assert_int_equal(load(in_value, NULL, NULL, flow, why), GW_ERR_INVALID);
    assert_non_null(strstr(why, ":1: a: there is a NUL in it"));
}

/* Nesting has a limit, and a text just below it is fine. */
static void document_load__limits_the_depth(void **state)
{
    (void)state;
    for (uint32_t depth = 40; depth <= 4000; depth *= 10) {
        char *text = calloc(1, 2 * depth + 8), flow[FLOW_MAX], why[GW_WHY_MAX];
        strcpy(text, "a: ");
        memset(text + 3, '[', depth);
        memset(text + 3 + depth, ']', depth);
        int error = load(text, NULL, NULL, flow, why);
        assert_int_equal(error == GW_OK, depth < 60);
        free(text);
    }
}

static void document_error__keeps_to_one_line(void **state)
{
    (void)state;
    char why[GW_WHY_MAX], long_text[2 * GW_WHY_MAX];
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    long_text[5] = '\n';
    const struct gw_document document = {.file = "f.yaml", .why = why};
    assert_int_equal(gw_document_error(&document, NULL, GW_ERR_INVALID, "bad: %s", long_text),
                     GW_ERR_INVALID);
    assert_int_equal(strncmp(why, "f.yaml:1: bad: xxxxx xxx", 24), 0);
    assert_int_equal(strlen(why), GW_WHY_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_load__applies_overrides),
        cmocka_unit_test(document_load__applies_variants),
        cmocka_unit_test(document_load__names_the_place_of_an_error),
        cmocka_unit_test(document_load__names_a_file_that_cannot_be_read),
        cmocka_unit_test(document_load__limits_the_depth),
        cmocka_unit_test(document_load__takes_no_nul),
        cmocka_unit_test(document_error__keeps_to_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
