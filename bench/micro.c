/*
 * gw_bench_micro: nanoseconds per operation of the core's hot paths, one at a time.
 *
 * The operations take turns, each several times, and the median counts: a disturbance of the
 * machine then hits a few measurements of many operations and not all of one. All data fits the
 * cache, so these are costs of instructions; what memory adds is seen in whole simulations
 * (bench/sim).
 *
 * The only file here that reads a clock. Not a test: nothing depends on what it finds.
 */
#include "micro.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"

enum {
    BENCHES_MAX = 128,
    NAME_SIZE = 64,
    REPETITIONS = 15,
    ALIGNMENT = 64,
};

/* Long enough for the clock, short enough for many turns. */
static const double MEASURE_NS = 10e6;

const struct gw_path gw_bench_path = {
    .brtt = 11453 * GW_NS,
    .brtt_max = 11453 * GW_NS,
    .rate_bps = UINT64_C(800000000000),
    .bdp = GW_BENCH_BDP,
    .mtu = GW_BENCH_MTU,
    .hdr = GW_BENCH_HDR,
    .hops = 6,
    .trims = true,
};

volatile uint64_t gw_bench_sink;

struct bench {
    char name[NAME_SIZE];
    gw_bench_run *run;
    void *state;
    uint64_t count;         /* operations of one measurement */
    double ns[REPETITIONS]; /* per operation, in the order of measuring; sorted at the end */
};

struct gw_bench_suite {
    struct bench benches[BENCHES_MAX];
    uint32_t count;
};

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gw_bench_micro: %s:%d: %s does not hold\n", file, line, condition);
    abort();
}

void *gw_bench_take(size_t size)
{
    size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, whole);
    if (!memory) {
        fprintf(stderr, "gw_bench_micro: out of memory (%zu bytes)\n", size);
        exit(EXIT_FAILURE);
    }
    return memset(memory, 0, whole);
}

void gw_bench_add(struct gw_bench_suite *suite, const char *name, gw_bench_run *run, void *state)
{
    GW_ASSERT(suite->count < BENCHES_MAX);
    struct bench *bench = &suite->benches[suite->count++];
    snprintf(bench->name, sizeof(bench->name), "%s", name);
    bench->run = run;
    bench->state = state;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds of one operation, out of `count`. */
static double measure(const struct bench *bench, uint64_t count)
{
    double begin = now_ns();
    bench->run(bench->state, count);
    return (now_ns() - begin) / (double)count;
}

/* Chooses how many operations make a measurement; warms up on the way. */
static void calibrate(struct bench *bench)
{
    uint64_t count = GW_BENCH_BATCH;
    while (measure(bench, count) * (double)count < MEASURE_NS / 2)
        count *= 2;
    bench->count = count;
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void run_suite(struct gw_bench_suite *suite)
{
    for (uint32_t i = 0; i < suite->count; i++)
        calibrate(&suite->benches[i]);
    for (uint32_t r = 0; r < REPETITIONS; r++)
        for (uint32_t i = 0; i < suite->count; i++) {
            struct bench *bench = &suite->benches[i];
            bench->ns[r] = measure(bench, bench->count);
        }
    for (uint32_t i = 0; i < suite->count; i++)
        qsort(suite->benches[i].ns, REPETITIONS, sizeof(double), compare_doubles);
}

static void print_suite(const struct gw_bench_suite *suite, bool json)
{
    const char *row = json ? "  {\"operation\": \"%s\", \"ns_median\": %.2f, \"ns_min\": %.2f}%s\n"
                           : "%-40s %8.2f %8.2f%s\n";
    if (json)
        puts("[");
    else
        printf("%-40s %8s %8s\n", "operation, nanoseconds", "median", "least");
    for (uint32_t i = 0; i < suite->count; i++) {
        const struct bench *bench = &suite->benches[i];
        printf(row, bench->name, bench->ns[REPETITIONS / 2], bench->ns[0],
               json && i + 1 < suite->count ? "," : "");
    }
    if (json)
        puts("]");
}

struct options {
    bool json;
    bool once;
    const char *word; /* only rows with this in their name; NULL: all */
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    if (key == 'j')
        options->json = true;
    else if (key == 'o')
        options->once = true;
    else if (key == ARGP_KEY_ARG && !options->word)
        options->word = text;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

/* Leaves only the rows that were asked for. */
static void select_rows(struct gw_bench_suite *suite, const char *word)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < suite->count; i++)
        if (strstr(suite->benches[i].name, word))
            suite->benches[kept++] = suite->benches[i];
    suite->count = kept;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", 'j', 0, 0, "print one JSON value", 0},
        {"once", 'o', 0, 0, "do all operations once and measure nothing: do they work?", 0},
        {0},
    };
    static const struct argp argp = {options,
                                     parse_option,
                                     "[WORD]",
                                     "Measures the hot paths of the core, in nanoseconds; with "
                                     "WORD, those with it in their name.",
                                     0,
                                     0,
                                     0};
    static struct gw_bench_suite suite;
    struct options chosen = {.json = false};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &chosen);
    gw_bench_add_algos(&suite);
    gw_bench_add_nodes(&suite);
    gw_bench_add_data(&suite);
    gw_bench_add_aggregate(&suite);
    gw_bench_add_reduce(&suite);
    gw_bench_add_net(&suite);
    if (chosen.word)
        select_rows(&suite, chosen.word);
    if (chosen.once) {
        for (uint32_t i = 0; i < suite.count; i++)
            suite.benches[i].run(suite.benches[i].state, GW_BENCH_BATCH);
        return 0;
    }
    run_suite(&suite);
    print_suite(&suite, chosen.json);
    return 0;
}
