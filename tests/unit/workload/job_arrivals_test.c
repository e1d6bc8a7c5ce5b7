/* When jobs start: fixed and random intervals, and trace files. */
#include "unit/workload/workload_fixture.h"

#include "workload/job_arrivals.h"

enum {
    SEED = 20261122,
    DRAWS = 20000,
};

static void job_arrivals_next__keeps_fixed_intervals(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(SEED, 0), same = prng;
    struct gw_job_arrivals arrivals = {.next = 5 * GW_US, .interval = GW_MS};
    assert_int_equal(gw_job_arrivals_next(&arrivals, &prng), 5 * GW_US);
    assert_int_equal(gw_job_arrivals_next(&arrivals, &prng), 5 * GW_US + GW_MS);
    assert_int_equal(gw_job_arrivals_next(&arrivals, &prng), 5 * GW_US + 2 * GW_MS);
    assert_int_equal(prng.state, same.state);
}

/* Exponential gaps: their mean, and 1/e of them are above it. */
static void job_arrivals_next__draws_exponential_intervals(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(SEED, 0);
    struct gw_job_arrivals arrivals = {.next = 7, .interval = GW_MS, .is_exponential = true};
    print_message("seed %d\n", SEED);
    gw_time before = gw_job_arrivals_next(&arrivals, &prng);
    assert_int_equal(before, 7);
    uint32_t above = 0;
    for (int i = 0; i < DRAWS; i++) {
        gw_time start = gw_job_arrivals_next(&arrivals, &prng);
        above += start - before > GW_MS;
        before = start;
    }
    assert_in_range(before / DRAWS, GW_MS * 97 / 100, GW_MS * 103 / 100);
    assert_in_range(above, DRAWS * 36 / 100, DRAWS * 38 / 100);
}

static int read_text(struct gw_job_trace *trace, char name[32], const char *text, char *why)
{
    struct gw_workload_ctx ctx = {.directory = ".", .why = why, .why_size = 512};
    generate_file(name, text);
    int error = gw_job_trace_read(trace, name, &ctx);
    unlink(name);
    return error;
}

static void job_trace_read__has_the_jobs_in_order(void **state)
{
    (void)state;
    struct gw_job_trace trace;
    char name[32], why[512] = "";
    int error = read_text(&trace, name,
                          "# two jobs\nstart,model,workers,iterations\n\n"
                          "0, resnet50, 8, 100\n250ms,vgg16,4,50\n250ms,resnet50,2,1\r\n",
                          why);
    assert_string_equal(why, "");
    assert_int_equal(error, GW_OK);
    assert_int_equal(trace.count, 3);
    assert_int_equal(trace.arrivals[0].start, 0);
    assert_string_equal(trace.arrivals[0].model, "resnet50");
    assert_int_equal(trace.arrivals[0].workers, 8);
    assert_int_equal(trace.arrivals[0].iterations, 100);
    assert_int_equal(trace.arrivals[1].start, 250 * GW_MS);
    assert_string_equal(trace.arrivals[1].model, "vgg16");
    assert_int_equal(trace.arrivals[2].iterations, 1);
    gw_job_trace_free(&trace);
}

static void job_trace_read__names_file_and_line_of_an_error(void **state)
{
    (void)state;
#define HEADER "start,model,workers,iterations\n"
    static const struct {
        const char *text;
        const char *why; /* after "file NAME:" */
    } broken[] = {
        {"", " the file is empty; the first line must be start,model"},
        {"\n", "1: the first line must be start,model"},
        {HEADER "0,,8,1\n", "2: model: missing: its name"},
        {"start;model\n", "1: the first line must be start,model"},
        {HEADER, "1: there is no job"},
        {HEADER "0,resnet50,8\n", "2: has 3 columns instead of 4"},
        {HEADER "0,resnet50,8,1,1\n", "2: has 5 columns instead of 4"},
        {HEADER "soon,resnet50,8,1\n", "2: start must be a time of up to 20 days, not 'soon'"},
        {HEADER "5,resnet50,8,1\n", "2: start must be a time of up to 20 days, not '5'"},
        {HEADER "1728001s,resnet50,8,1\n", "2: start must be a time of up to 20 days"},
        {HEADER "1s,resnet50,8,1\n\n10ms,resnet50,8,1\n", "4: start must not be before"},
        {HEADER "0,resnet51,8,1\n", "2: model: unknown model: resnet51; expected"},
        {HEADER "0,none.csv,8,1\n", "2: model: none.csv: No such file"},
        {HEADER "0,resnet50,0,1\n", "2: workers must be a whole number from 1 to 1000000, not '0'"},
        {HEADER "0,resnet50,8,x\n", "2: iterations must be a whole number"},
        {HEADER "0,resnet50,8,\n", "2: iterations must be a whole number"},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct gw_job_trace trace;
        char name[32], why[512] = "", expected[160];
        assert_true(read_text(&trace, name, broken[i].text, why) < 0);
        snprintf(expected, sizeof(expected), "file %s:%s", name, broken[i].why);
        if (strncmp(why, expected, strlen(expected)) != 0)
            fail_msg("said \"%s\", expected \"%s\"", why, expected);
        gw_job_trace_free(&trace);
    }
}

/* What stands behind a NUL byte must not be lost without a word. */
static void job_trace_read__refuses_what_is_no_text(void **state)
{
    (void)state;
    static const char text[] = HEADER "0,resnet50,8,1\n1ms,vgg16,4,50\0,9";
    struct gw_job_trace trace;
    char name[32], why[512] = "", expected[128];
    generate_file(name, "");
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, sizeof(text) - 1, file), sizeof(text) - 1);
    fclose(file);
    struct gw_workload_ctx ctx = {.directory = ".", .why = why, .why_size = sizeof(why)};
    assert_int_equal(gw_job_trace_read(&trace, name, &ctx), GW_ERR_INVALID);
    snprintf(expected, sizeof(expected), "file %s:3: no text: there is a NUL byte", name);
    assert_string_equal(why, expected);
    gw_job_trace_free(&trace);
    unlink(name);
}

/* A trace may name a user's model, beside the scenario or anywhere. */
static void job_trace_read__finds_models_beside_the_scenario(void **state)
{
    (void)state;
    struct gw_job_trace trace;
    char folder[] = "/tmp/gradwire_test_XXXXXX", model[64], why[512] = "", name[32];
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof(model), "%s/own.csv", folder);
    FILE *file = fopen(model, "w");
    assert_non_null(file);
    fputs("layer,kind,weights,biases,macs\nfc,fc,10,0,10\n", file);
    fclose(file);
    generate_file(name, HEADER "0,own.csv,2,1\n");
    struct gw_workload_ctx ctx = {.directory = folder, .why = why, .why_size = sizeof(why)};
    assert_int_equal(gw_job_trace_read(&trace, name, &ctx), GW_OK);
    assert_string_equal(trace.arrivals[0].model, "own.csv");
    gw_job_trace_free(&trace);
    ctx.directory = "/";
    assert_true(gw_job_trace_read(&trace, name, &ctx) < 0);
    gw_job_trace_free(&trace);
    unlink(name);
    unlink(model);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_arrivals_next__keeps_fixed_intervals),
        cmocka_unit_test(job_arrivals_next__draws_exponential_intervals),
        cmocka_unit_test(job_trace_read__has_the_jobs_in_order),
        cmocka_unit_test(job_trace_read__names_file_and_line_of_an_error),
        cmocka_unit_test(job_trace_read__refuses_what_is_no_text),
        cmocka_unit_test(job_trace_read__finds_models_beside_the_scenario),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
