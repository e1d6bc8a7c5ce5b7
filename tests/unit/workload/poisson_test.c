/* Poisson flows: load, gaps and sizes follow their distributions, and files are checked. */
#include "unit/workload/workload_fixture.h"

enum {
    FLOWS = 20000,
};

/* Half of the flows have exactly 1000 bytes, the others 1000 to 3000: 1500 on average. */
static const char distribution[] = "# bytes cumulative_probability\n"
                                   "1000 0.5\n"
                                   "3000 1\n";

static void make(struct generated *made, const struct gw_topo *topo, const char *text,
                 const char *settings, uint64_t seed)
{
    char name[32], all[128];
    generate_file(name, text);
    snprintf(all, sizeof(all), "file=%s %s", name, settings);
    generate(made, topo, "poisson", all, seed);
    unlink(name);
}

static void poisson__offers_the_load(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    char settings[64];
    build(&topo, "star", "hosts=4 rate=8Gbps"); /* 1 byte a nanosecond and host */
    snprintf(settings, sizeof(settings), "count=%d load=0.25 start=1us", FLOWS);
    make(&made, &topo, distribution, settings, 1);
    assert_int_equal(made.error, GW_OK);
    assert_int_equal(made.workload.flow_count, FLOWS);
    uint64_t bytes = 0, small = 0, long_gaps = 0;
    gw_time last = GW_US;
    const gw_time gap = 1500 * GW_NS; /* 1500 bytes at 4 hosts * 1 byte/ns * 0.25 */
    for (uint32_t f = 0; f < FLOWS; f++) {
        const struct gw_flow_spec *flow = &made.workload.flows[f];
        assert_in_range(flow->bytes, 1000, 3000);
        assert_true(flow->src < 4 && flow->dst < 4 && flow->src != flow->dst);
        assert_true(flow->start >= last);
        long_gaps += flow->start - last > gap;
        last = flow->start;
        bytes += flow->bytes;
        small += flow->bytes == 1000;
    }
    /* Two per cent, four standard errors of a sum of 20000 exponential gaps. */
    assert_in_range(bytes / FLOWS, 1500 - 30, 1500 + 30);
    assert_in_range(small, FLOWS / 2 - 400, FLOWS / 2 + 400);
    assert_in_range((last - GW_US) / FLOWS, gap - gap / 33, gap + gap / 33);
    /* An exponential gap exceeds its mean with probability 1/e. */
    assert_in_range(long_gaps, FLOWS * 0.3679 - 300, FLOWS * 0.3679 + 300);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

/* The figures pin the integer arithmetic: they may not change with machine or compiler. */
static void poisson__gives_the_same_flows_everywhere(void **state)
{
    static const struct {
        gw_time start;
        uint64_t bytes;
    } expected[] = {{448488, 1000}, {5352551, 2202}, {6971069, 1000}};
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=4 rate=8Gbps");
    make(&made, &topo, distribution, "count=3 load=0.25", 42);
    for (uint32_t f = 0; f < GW_COUNT_OF(expected); f++) {
        assert_int_equal(made.workload.flows[f].start, expected[f].start);
        assert_int_equal(made.workload.flows[f].bytes, expected[f].bytes);
    }
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void poisson__stops_at_the_duration(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=4 rate=8Gbps");
    make(&made, &topo, distribution, "duration=1ms load=0.25 start=3us", 1);
    assert_in_range(made.workload.flow_count, 560, 780); /* 667 on average, deviation 26 */
    const struct gw_flow_spec *last = &made.workload.flows[made.workload.flow_count - 1];
    assert_true(last->start < GW_MS + 3 * GW_US);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void poisson__names_the_line_at_fault(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", ": the file is empty; the last cumulative_probability must be 1"},
        {"1000 0.5\n", ":1: the last cumulative_probability must be 1"},
        {"1000 0.5\n\n500 1\n", ":3: bytes and cumulative_probability must not fall"},
        {"1000 0.5\n2000 0.4\n", ":2: bytes and cumulative_probability must not fall"},
        {"1000\n", ":1: a line must be"},
        {"1000 0.5 7\n", ":1: a line must be"},
        {"1000 1.5\n", ":1: cumulative_probability: value out of range: 1.5"},
        {"x 1\n", ":1: bytes: invalid argument: x"},
        {"2TiB 1\n", ":1: bytes: value out of range: 2TiB"},
    };
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=4");
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct generated made;
        make(&made, &topo, cases[i].text, "count=3", 1);
        assert_true(made.error < 0);
        assert_int_equal(strncmp(made.why, "file /tmp/gradwire_test_", 24), 0);
        if (!strstr(made.why, cases[i].why))
            fail_msg("case %zu: said \"%s\"", i, made.why);
        gw_workload_fini(&made.workload);
    }
    gw_topo_fini(&topo);
}

static void poisson__refuses_what_it_cannot_do(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=4");
    generate_refused(&topo, "poisson", "count=1", "file is missing");
    generate_refused(&topo, "poisson", "count=1 file=/no/such", "file /no/such: No such file");
    generate_refused(&topo, "poisson", "file=x", "count or duration must be given");
    generate_refused(&topo, "poisson", "file=x count=1 load=0", "load must be above 0");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poisson__offers_the_load),
        cmocka_unit_test(poisson__gives_the_same_flows_everywhere),
        cmocka_unit_test(poisson__stops_at_the_duration),
        cmocka_unit_test(poisson__names_the_line_at_fault),
        cmocka_unit_test(poisson__refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
