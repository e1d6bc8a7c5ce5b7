/*
 * gw_bench_quant: bandwidth of the aggregation arithmetic, beside memcpy in the same run.
 *
 * Every kernel of every implementation that this processor has, on one fragment that stays in the
 * cache, and fragment by fragment through arrays of 64 MB. Bytes are those read plus those written,
 * for memcpy too. Measurements take turns, and the median counts: a disturbance of the machine
 * then hits few of them.
 *
 * Not a test: nothing depends on what it finds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/cpu.h"
#include "base/prng.h"
#include "core/quant/kernels.h"

enum {
    FRAGMENT = 352,                              /* values: the default fragment */
    FRAGMENTS = 64 * 1024 * 1024 / 4 / FRAGMENT, /* of 32-bit values in 64 MiB */
    VALUES = FRAGMENTS * FRAGMENT,
    REPETITIONS = 9,
    CACHED_CALLS = 20000, /* some milliseconds */
    ROWS_MAX = 128,
    ALIGNMENT = 4096,
};

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gw_bench_quant: %s:%d: %s does not hold\n", file, line, condition);
    abort();
}

/* What kernels work on; all arrays have VALUES elements. */
struct arrays {
    unsigned char *x;    /* the user's values, floats of about 1 */
    unsigned char *wire; /* integers */
    unsigned char *sum;  /* integers */
    uint64_t *wide;      /* zeros: integers or reals of 64 bits */
    struct gw_scale scale;
};

/* What a kernel found out goes here, so that the compiler cannot leave it out. */
static volatile uint32_t sink;

/* Works on `count` values of the arrays from `first` on. */
typedef void run_fn(const struct gw_kernels *k, const struct arrays *a, size_t first,
                    uint32_t count);

static void run_memcpy(const struct gw_kernels *k, const struct arrays *a, size_t first,
                       uint32_t count)
{
    (void)k;
    memcpy(a->wire + 4 * first, a->x + 4 * first, 4 * (size_t)count);
}

static void quantise(const struct gw_kernels *k, const struct arrays *a, size_t first,
                     uint32_t count, enum gw_dtype type)
{
    const unsigned char *x = a->x + gw_dtype_size(type) * first;
    sink += k->quantise[type](a->wire + 4 * first, x, count, &a->scale);
}

static void run_quantise_f32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                             uint32_t count)
{
    quantise(k, a, first, count, GW_DTYPE_F32);
}

static void run_quantise_f16(const struct gw_kernels *k, const struct arrays *a, size_t first,
                             uint32_t count)
{
    quantise(k, a, first, count, GW_DTYPE_F16);
}

static void run_quantise_bf16(const struct gw_kernels *k, const struct arrays *a, size_t first,
                              uint32_t count)
{
    quantise(k, a, first, count, GW_DTYPE_BF16);
}

static void run_quantise_i32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                             uint32_t count)
{
    quantise(k, a, first, count, GW_DTYPE_I32);
}

static void dequantise(const struct gw_kernels *k, const struct arrays *a, size_t first,
                       uint32_t count, enum gw_dtype type)
{
    unsigned char *x = a->x + gw_dtype_size(type) * first;
    k->dequantise[type](x, a->wire + 4 * first, count, &a->scale);
}

static void run_dequantise_f32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                               uint32_t count)
{
    dequantise(k, a, first, count, GW_DTYPE_F32);
}

static void run_average_f32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                            uint32_t count)
{
    struct gw_scale average = gw_scale_power(GW_SCALE_EXPONENT, 3);
    k->dequantise[GW_DTYPE_F32](a->x + 4 * first, a->wire + 4 * first, count, &average);
}

static void run_dequantise_f16(const struct gw_kernels *k, const struct arrays *a, size_t first,
                               uint32_t count)
{
    dequantise(k, a, first, count, GW_DTYPE_F16);
}

static void run_dequantise_bf16(const struct gw_kernels *k, const struct arrays *a, size_t first,
                                uint32_t count)
{
    dequantise(k, a, first, count, GW_DTYPE_BF16);
}

static void run_dequantise_i32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                               uint32_t count)
{
    struct gw_scale one = gw_scale_integer(1, 1);
    k->dequantise[GW_DTYPE_I32](a->x + 4 * first, a->wire + 4 * first, count, &one);
}

static void run_add(const struct gw_kernels *k, const struct arrays *a, size_t first,
                    uint32_t count)
{
    k->add(a->sum + 4 * first, a->wire + 4 * first, count);
}

static void run_is_saturated(const struct gw_kernels *k, const struct arrays *a, size_t first,
                             uint32_t count)
{
    sink += k->is_saturated(a->wire + 4 * first, count);
}

static void run_add_wide(const struct gw_kernels *k, const struct arrays *a, size_t first,
                         uint32_t count)
{
    k->add_wide((int64_t *)a->wide + first, a->wire + 4 * first, count);
}

static void run_narrow(const struct gw_kernels *k, const struct arrays *a, size_t first,
                       uint32_t count)
{
    sink += k->narrow(a->sum + 4 * first, (int64_t *)a->wide + first, count);
}

static void run_add_real_f32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                             uint32_t count)
{
    k->add_real[GW_DTYPE_F32]((gw_real *)(void *)a->wide + first, a->x + 4 * first, count);
}

static void run_narrow_real_f32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                                uint32_t count)
{
    const gw_real *sum = (const gw_real *)(const void *)a->wide + first;
    k->narrow_real[GW_DTYPE_F32](a->x + 4 * first, sum, count, 1);
}

static void run_max_abs_f32(const struct gw_kernels *k, const struct arrays *a, size_t first,
                            uint32_t count)
{
    sink += k->max_abs[GW_DTYPE_F32](a->x + 4 * first, count);
}

static const struct operation {
    const char *name;
    run_fn *run;
    uint32_t bytes; /* read and written per value */
} operations[] = {
    {"quantise f32", run_quantise_f32, 4 + 4},
    {"quantise f16", run_quantise_f16, 2 + 4},
    {"quantise bf16", run_quantise_bf16, 2 + 4},
    {"quantise i32", run_quantise_i32, 4 + 4},
    {"add", run_add, 4 + 4 + 4},
    {"is_saturated", run_is_saturated, 4},
    {"dequantise f32", run_dequantise_f32, 4 + 4},
    {"dequantise f32, average of 3", run_average_f32, 4 + 4},
    {"dequantise f16", run_dequantise_f16, 4 + 2},
    {"dequantise bf16", run_dequantise_bf16, 4 + 2},
    {"dequantise i32", run_dequantise_i32, 4 + 4},
    {"add_wide", run_add_wide, 4 + 8 + 8},
    {"narrow", run_narrow, 8 + 4},
    {"add_real f32", run_add_real_f32, 4 + 8 + 8},
    {"narrow_real f32", run_narrow_real_f32, 8 + 4},
    {"max_abs f32", run_max_abs_f32, 4},
};

/* One line of the result: an operation of an implementation. */
struct row {
    const struct operation *operation;
    const struct gw_kernels *kernels; /* NULL: memcpy */
    double cached_ns[REPETITIONS];    /* per fragment */
    double beyond_ns[REPETITIONS];    /* per fragment */
};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static double median(double *values)
{
    qsort(values, REPETITIONS, sizeof(*values), compare_doubles);
    return values[REPETITIONS / 2];
}

/* memcpy gets 64 MB in one call, the better for it. */
static void measure(struct row *row, const struct arrays *a, uint32_t repetition)
{
    run_fn *run = row->operation->run;
    double begin = now_ns();
    for (uint32_t call = 0; call < CACHED_CALLS; call++)
        run(row->kernels, a, 0, FRAGMENT);
    row->cached_ns[repetition] = (now_ns() - begin) / CACHED_CALLS;
    uint32_t step = row->kernels ? FRAGMENT : VALUES;
    begin = now_ns();
    for (size_t first = 0; first < VALUES; first += step)
        run(row->kernels, a, first, step);
    row->beyond_ns[repetition] = (now_ns() - begin) / FRAGMENTS;
}

static void *take(size_t size)
{
    void *memory = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        fprintf(stderr, "gw_bench_quant: out of memory (%zu bytes)\n", size);
        exit(EXIT_FAILURE);
    }
    return memset(memory, 0, size);
}

/* 16-bit halves of about 1 too: 0x3c is the upper byte of such a float16, float32 and bfloat16. */
static void fill(struct arrays *a)
{
    const uint32_t exponents = UINT32_C(0x3c003c00), fractions = UINT32_C(0x00ff00ff);
    struct gw_prng prng = gw_prng_derive(1, 0);
    for (size_t i = 0; i < VALUES; i++) {
        uint32_t random = (uint32_t)gw_prng_next(&prng);
        uint32_t x = exponents | (random & fractions);
        int32_t q = (int32_t)random >> 8;
        memcpy(a->x + 4 * i, &x, sizeof(x));
        memcpy(a->wire + 4 * i, &q, sizeof(q));
    }
}

static void print_row(struct row *row, const struct row *copy)
{
    double cached = median(row->cached_ns), beyond = median(row->beyond_ns);
    double bytes = (double)row->operation->bytes * FRAGMENT;
    double copy_bytes = (double)copy->operation->bytes * FRAGMENT;
    printf("%-30s %-9s %8.1f %8.1f %8.2f %10.1f %8.2f\n", row->operation->name,
           row->kernels ? row->kernels->name : "-", cached, bytes / cached,
           bytes / cached / (copy_bytes / copy->cached_ns[REPETITIONS / 2]), bytes / beyond,
           bytes / beyond / (copy_bytes / copy->beyond_ns[REPETITIONS / 2]));
}

int main(void)
{
    static const struct operation copy = {"memcpy", run_memcpy, 4 + 4};
    static struct row rows[ROWS_MAX];
    const uint32_t operation_count = sizeof(operations) / sizeof(operations[0]);
    uint32_t features = gw_cpu_features(), count = 0;
    struct arrays a = {
        .x = take(4 * (size_t)VALUES),
        .wire = take(4 * (size_t)VALUES),
        .sum = take(4 * (size_t)VALUES),
        .wide = take(8 * (size_t)VALUES),
        .scale = gw_scale_power(GW_SCALE_EXPONENT, 1),
    };
    rows[count++].operation = &copy;
    for (uint32_t o = 0; o < operation_count; o++)
        for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++)
            if (!((*k)->needs & ~features)) {
                GW_ASSERT(count < ROWS_MAX);
                rows[count++] = (struct row){.operation = &operations[o], .kernels = *k};
            }
    for (uint32_t r = 0; r < REPETITIONS; r++)
        for (uint32_t i = 0; i < count; i++) {
            if (i == 0)
                fill(&a);
            measure(&rows[i], &a, r);
        }
    printf("%-30s %-9s %8s %8s %8s %10s %8s\n", "a fragment of 352 values", "", "ns", "GB/s",
           "/memcpy", "64MB GB/s", "/memcpy");
    for (uint32_t i = 0; i < count; i++)
        print_row(&rows[i], &rows[0]);
    return 0;
}
