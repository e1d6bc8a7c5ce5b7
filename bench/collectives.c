/*
 * Times collectives that go from rank to rank, as a rank of a job that the environment describes:
 * gw_bench_collectives BYTES REPEATS [RATE_BPS]. The time of one is that of its slowest rank. Rank
 * 0 prints a JSON object; every rank checks every byte of the last repeat. bench/collectives runs
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gradwire.h"

enum {
    REPEATS_MAX = 100,
};

enum kind { BROADCAST, ALLGATHER, REDUCE_SCATTER, KINDS };

static const char *const names[KINDS] = {"broadcast", "allgather", "reduce_scatter"};

struct bench {
    gradwire *job;
    int rank, world;
    size_t count;        /* int32 elements of the whole tensor, a multiple of world */
    int32_t *all, *part; /* the whole, and a rank's part */
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int32_t element(int rank, size_t i)
{
    return (int32_t)(i % 1000) + rank;
}

static void fill(const struct bench *b, enum kind kind)
{
    size_t each = b->count / (size_t)b->world;
    for (size_t i = 0; i < b->count; i++)
        b->all[i] =
            kind == REDUCE_SCATTER || (kind == BROADCAST && b->rank == 0) ? element(b->rank, i) : 0;
    for (size_t i = 0; i < each; i++)
        b->part[i] = kind == ALLGATHER ? element(b->rank, i) : 0;
}

static int call_once(const struct bench *b, enum kind kind)
{
    size_t each = b->count / (size_t)b->world;
    switch (kind) {
    case BROADCAST:
        return gradwire_broadcast(b->job, b->all, b->count, GRADWIRE_INT32, 0);
    case ALLGATHER:
        return gradwire_allgather(b->job, b->part, b->all, each, GRADWIRE_INT32);
    default:
        return gradwire_reduce_scatter(b->job, b->all, b->part, each, GRADWIRE_INT32, GRADWIRE_SUM);
    }
}

static int is_right(const struct bench *b, enum kind kind)
{
    size_t each = b->count / (size_t)b->world;
    int right = 1;
    for (size_t i = 0; i < b->count && kind == BROADCAST; i++)
        right &= b->all[i] == element(0, i);
    for (size_t i = 0; i < b->count && kind == ALLGATHER; i++)
        right &= b->all[i] == element((int)(i / each), i % each);
    for (size_t i = 0; i < each && kind == REDUCE_SCATTER; i++) {
        int32_t sum = 0;
        for (int rank = 0; rank < b->world; rank++)
            sum += element(rank, (size_t)b->rank * each + i);
        right &= b->part[i] == sum;
    }
    return right;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Fills `times` with those of the slowest ranks. */
static int measure(const struct bench *b, enum kind kind, int repeats, double *times)
{
    int code = GRADWIRE_OK;
    for (int i = 0; i < repeats && !code; i++) {
        fill(b, kind);
        code = gradwire_barrier(b->job);
        double begin = seconds();
        if (!code)
            code = call_once(b, kind);
        times[i] = seconds() - begin;
    }
    if (!code && !is_right(b, kind)) {
        fprintf(stderr, "rank %d: %s is wrong\n", b->rank, names[kind]);
        return GRADWIRE_ERR_SYSTEM;
    }
    if (!code)
        code = gradwire_allreduce(b->job, times, times, (size_t)repeats, GRADWIRE_FLOAT64,
                                  GRADWIRE_MAX);
    qsort(times, (size_t)repeats, sizeof(times[0]), by_size);
    return code;
}

static int run(struct bench *b, int repeats)
{
    double times[REPEATS_MAX];
    int code = GRADWIRE_OK;
    b->rank = gradwire_rank(b->job);
    b->world = gradwire_world(b->job);
    b->count -= b->count % (size_t)b->world;
    b->all = malloc(b->count * sizeof(*b->all));
    b->part = malloc(b->count / (size_t)b->world * sizeof(*b->part));
    if (!b->all || !b->part)
        return GRADWIRE_ERR_NO_MEMORY;
    for (enum kind kind = 0; kind < KINDS && !code; kind++) {
        code = measure(b, kind, repeats, times);
        if (b->rank == 0)
            printf("%s\"%s\": {\"min_s\": %.6f, \"p50_s\": %.6f}%s", kind ? " " : "{", names[kind],
                   times[0], times[repeats / 2], kind + 1 < KINDS ? "," : "}\n");
    }
    return code;
}

int main(int argc, char **argv)
{
    struct gradwire_options options;
    struct bench bench = {.count = argc > 1 ? strtoull(argv[1], NULL, 10) / sizeof(int32_t) : 0};
    int repeats = argc > 2 ? atoi(argv[2]) : 0;
    if (bench.count < GRADWIRE_CALLS_MAX || repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "usage: gw_bench_collectives BYTES REPEATS(1 to 100) [RATE_BPS]\n");
        return 2;
    }
    gradwire_options_init(&options, sizeof(options));
    options.rate_bps = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    int code = gradwire_open(&options, &bench.job);
    if (!code)
        code = run(&bench, repeats);
    if (code)
        fprintf(stderr, "rank %d: %s\n", options.rank, gradwire_last_error());
    gradwire_close(bench.job);
    return code ? 1 : 0;
}
