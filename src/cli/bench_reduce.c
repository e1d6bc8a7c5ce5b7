/* All-reduces of random tensors, checked and timed; see bench_reduce.h. */
#include "cli/bench_reduce.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "cli/stopwatch.h"

enum {
    SAMPLE_STEP = 1021, /* of the elements that are checked each time */
    ROUND_MAX = 1024,   /* iterations whose times are exchanged at once */
    CALLS_MAX = 64,     /* in work at once: as many as a job takes */
};

#define ERROR_MAX 1e6

/* A run, as one rank sees it. */
struct run {
    gradwire *job;
    uint32_t rank, world;
    const uint64_t *tensors;
    uint32_t count;
    double pause_s;
    bool checks_all;
    uint64_t elements;
    uint64_t first; /* element of this iteration: with the same values an old sum would do */
    float *data;
    struct gw_bench_parts *parts;
    double max_abs_error, cpu_s;
};

float gw_bench_element(uint32_t rank, uint64_t i)
{
    uint64_t bits = gw_mix64(i * 2654435761u + rank * UINT64_C(0x9e3779b97f4a7c15));
    return (float)((int32_t)(bits >> 43) - (1 << 20)) * 0x1.6a09e6p-21f;
}

static void fill(struct run *run)
{
    for (uint64_t i = 0; i < run->elements; i++)
        run->data[i] = gw_bench_element(run->rank, run->first + i);
}

static void note_error(struct run *run, double error)
{
    if (!(error <= run->max_abs_error))
        run->max_abs_error = error < ERROR_MAX ? error : ERROR_MAX;
}

/* Where each tensor lies, the last one first in time. */
static void check_parts(struct run *run, bool is_sample)
{
    const float *sums = run->data;
    for (uint32_t i = 0; i < run->count; i++) {
        uint64_t first = run->first + (uint64_t)(sums - run->data);
        note_error(run, gw_bench_parts_check(run->parts, i, sums, first, is_sample));
        sums += run->tensors[i];
    }
}

/* Compares every `step`th sum with the exact one. */
static void check_all(struct run *run, uint64_t step)
{
    for (uint64_t i = 0; i < run->elements; i += step) {
        double sum = 0;
        for (uint32_t rank = 0; rank < run->world; rank++)
            sum += gw_bench_element(rank, run->first + i);
        note_error(run, fabs(sum - run->data[i]));
    }
}

/* The sums of an iteration; what may lose a part is compared over all ranks, too. Exact ones when
 * all ranks have them: those who share a core with others would delay them. */
static int check(struct run *run, bool is_sample)
{
    bool are_equal = true;
    int code;
    if (!gw_bench_parts_options(run->parts, 0)) {
        code = gradwire_barrier(run->job);
        check_all(run, is_sample ? SAMPLE_STEP : 1);
        return code;
    }
    check_parts(run, is_sample);
    code =
        gw_bench_parts_compare(run->job, run->data, run->elements * sizeof(*run->data), &are_equal);
    if (!are_equal)
        note_error(run, ERROR_MAX);
    return code;
}

/* One all-reduce of all tensors, in place. On return none is in work, also after an error. */
static int reduce_once(const struct run *run, gradwire_call *calls)
{
    uint64_t end = run->elements;
    uint32_t started = 0, ended = 0;
    int code = GRADWIRE_OK;
    if (run->count == 1)
        return gradwire_allreduce_with(run->job, run->data, run->data, end, GRADWIRE_FLOAT32,
                                       GRADWIRE_SUM, gw_bench_parts_options(run->parts, 0), NULL);
    while (ended < started || (started < run->count && !code)) {
        int error;
        if (started < run->count && started - ended < CALLS_MAX && !code) {
            uint64_t size = run->tensors[run->count - 1 - started];
            end -= size;
            error = gradwire_allreduce_with(
                run->job, run->data + end, run->data + end, size, GRADWIRE_FLOAT32, GRADWIRE_SUM,
                gw_bench_parts_options(run->parts, run->count - 1 - started), &calls[started]);
            started += !error;
        } else {
            error = gradwire_wait(run->job, calls[ended++]);
        }
        code = code ? code : error;
    }
    return code;
}

/* Every iteration; `times` are this rank's. */
static int reduce_all(struct run *run, uint64_t iters, double *times)
{
    gradwire_call *calls = calloc(run->count, sizeof(*calls));
    int code = calls ? GRADWIRE_OK : GRADWIRE_ERR_NO_MEMORY;
    for (uint64_t i = 0; i <= iters && !code; i++) {
        run->first = i * run->elements;
        fill(run);
        code = gw_bench_parts_meet(run->job, run->parts);
        gw_pause(run->pause_s);
        double cpu = gw_cpu_seconds(), begin = gw_seconds();
        if (!code)
            code = reduce_once(run, calls);
        if (i > 0) {
            times[i - 1] = gw_seconds() - begin;
            run->cpu_s += gw_cpu_seconds() - cpu;
            gw_bench_parts_count(run->parts);
        }
        if (!code)
            code = check(run, i < iters && !run->checks_all);
    }
    free(calls);
    return code;
}

/*
 * Gives every rank the `count` numbers of all: `table` has a row for each rank, of which the own
 * one is filled. A sum with zeros gathers.
 */
static int gather(struct run *run, float *table, uint64_t count)
{
    return gradwire_allreduce(run->job, table, table, count * run->world, GRADWIRE_FLOAT32,
                              GRADWIRE_SUM);
}

/* Turns the times of this rank into those of the slowest. */
static int gather_times(struct run *run, double *times, uint64_t iters, float *table)
{
    int code = GRADWIRE_OK;
    for (uint64_t first = 0; first < iters && !code; first += ROUND_MAX) {
        uint64_t count = iters - first < ROUND_MAX ? iters - first : ROUND_MAX;
        memset(table, 0, count * run->world * sizeof(*table));
        for (uint64_t i = 0; i < count; i++)
            table[run->rank * count + i] = (float)times[first + i];
        code = gather(run, table, count);
        for (uint64_t i = 0; i < count * run->world; i++)
            times[first + i % count] = fmax(times[first + i % count], table[i]);
    }
    return code;
}

/* The largest and the sum of one number of every rank. Each kind is gathered on its own: numbers of
 * one size keep their digits in fixed point. */
static int gather_number(struct run *run, double number, double *largest, double *sum, float *table)
{
    memset(table, 0, run->world * sizeof(*table));
    table[run->rank] = (float)number;
    int code = gather(run, table, 1);
    if (code)
        return code;
    *largest = *sum = 0;
    for (uint32_t rank = 0; rank < run->world; rank++) {
        *largest = fmax(*largest, table[rank]);
        *sum += table[rank];
    }
    return GRADWIRE_OK;
}

static int gather_totals(struct run *run, struct gw_bench_reduce *result, float *table)
{
    double unused;
    int code = gather_number(run, run->max_abs_error, &result->max_abs_error, &unused, table);
    if (!code)
        code = gather_number(run, run->cpu_s, &unused, &result->cpu_s, table);
    return code;
}

int gw_bench_reduce(gradwire *job, const struct gw_bench_reduce_cfg *cfg,
                    struct gw_bench_reduce *result, double *times)
{
    uint64_t iters = cfg->iters;
    uint32_t count = cfg->count;
    struct run run = {
        .job = job,
        .rank = (uint32_t)gradwire_rank(job),
        .world = (uint32_t)gradwire_world(job),
        .tensors = cfg->tensors,
        .count = count,
        .pause_s = cfg->pause_s,
        .checks_all = cfg->checks_all,
    };
    for (uint32_t i = 0; i < count; i++)
        run.elements += cfg->tensors[i];
    run.data = malloc(run.elements * sizeof(*run.data));
    run.parts = gw_bench_parts_open(job, cfg->parts, cfg->tensors, count);
    float *table = malloc((size_t)ROUND_MAX * run.world * sizeof(*table));
    int code = run.data && run.parts && table ? GRADWIRE_OK : GRADWIRE_ERR_NO_MEMORY;
    if (!code)
        code = reduce_all(&run, iters, times);
    *result = (struct gw_bench_reduce){.max_abs_error = run.max_abs_error,
                                       .stats = {.size = sizeof(result->stats)}};
    if (!code)
        code = gradwire_get_stats(job, &result->stats);
    if (!code)
        code = gather_totals(&run, result, table);
    if (!code)
        code = gather_times(&run, times, iters, table);
    if (!code)
        result->missing = gw_bench_parts_missing(run.parts);
    gw_bench_parts_close(run.parts);
    free(table);
    free(run.data);
    return code;
}
