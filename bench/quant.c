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
#include "core/quant/combine.h"

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
};

/* What a kernel found out goes here, so that the compiler cannot leave it out. */
static volatile uint32_t sink;

/* Not known to the compiler, which would write out another memcpy than the library's, a slower one.
 */
static volatile uint32_t fragment_values = FRAGMENT;

enum kind {
    COPY, /* by memcpy, no kernel */
    QUANTISE,
    ADD,
    ADD_MARKS, /* to sums that are lost */
    IS_SATURATED,
    DEQUANTISE,
    ADD_WIDE,
    NARROW,
    ADD_REAL,
    NARROW_REAL,
    REDUCE,
    MINIMUM, /* the same for all kernels, as is the next */
    PRODUCT,
    MAX_ABS,
};

static const struct operation {
    const char *name;
    enum kind kind;
    enum gw_dtype type; /* of the user's values, where there are some */
    uint32_t shares;    /* dequantising: the number of workers, 1 for a sum */
    uint32_t bytes;     /* read and written per value */
} operations[] = {
    {"quantise f32", QUANTISE, GW_DTYPE_F32, .bytes = 4 + 4},
    {"quantise f16", QUANTISE, GW_DTYPE_F16, .bytes = 2 + 4},
    {"quantise bf16", QUANTISE, GW_DTYPE_BF16, .bytes = 2 + 4},
    {"quantise i32", QUANTISE, GW_DTYPE_I32, .bytes = 4 + 4},
    {"add", ADD, .bytes = 4 + 4 + 4},
    {"add to marks", ADD_MARKS, .bytes = 4 + 4 + 4},
    {"is_saturated", IS_SATURATED, .bytes = 4},
    {"dequantise f32", DEQUANTISE, GW_DTYPE_F32, 1, 4 + 4},
    {"dequantise f32, average of 3", DEQUANTISE, GW_DTYPE_F32, 3, 4 + 4},
    {"dequantise f16", DEQUANTISE, GW_DTYPE_F16, 1, 4 + 2},
    {"dequantise bf16", DEQUANTISE, GW_DTYPE_BF16, 1, 4 + 2},
    {"dequantise i32", DEQUANTISE, GW_DTYPE_I32, 1, 4 + 4},
    {"add_wide", ADD_WIDE, .bytes = 4 + 8 + 8},
    {"narrow", NARROW, .bytes = 8 + 4},
    {"add_real f32", ADD_REAL, GW_DTYPE_F32, .bytes = 4 + 8 + 8},
    {"narrow_real f32", NARROW_REAL, GW_DTYPE_F32, .bytes = 8 + 4},
    {"reduce f32", REDUCE, GW_DTYPE_F32, .bytes = 4 + 4 + 4},
    {"reduce f16", REDUCE, GW_DTYPE_F16, .bytes = 2 + 2 + 2},
    {"reduce bf16", REDUCE, GW_DTYPE_BF16, .bytes = 2 + 2 + 2},
    {"reduce i32", REDUCE, GW_DTYPE_I32, .bytes = 4 + 4 + 4},
    {"minimum f32", MINIMUM, GW_DTYPE_F32, .bytes = 4 + 4 + 4},
    {"minimum f16", MINIMUM, GW_DTYPE_F16, .bytes = 2 + 2 + 2},
    {"product f32", PRODUCT, GW_DTYPE_F32, .bytes = 4 + 4 + 4},
    {"product bf16", PRODUCT, GW_DTYPE_BF16, .bytes = 2 + 2 + 2},
    {"max_abs f32", MAX_ABS, GW_DTYPE_F32, .bytes = 4},
};

static const struct operation copy = {"memcpy", COPY, .bytes = 4 + 4};

/* One line of the result: an operation of an implementation. */
struct row {
    const struct operation *operation;
    const struct gw_kernels *kernels; /* NULL: memcpy */
    struct gw_scale scale;
    double cached_ns[REPETITIONS]; /* per fragment */
    double beyond_ns[REPETITIONS]; /* per fragment */
};

/* Works on `count` values of the arrays from `first` on. */
static void run(const struct row *row, const struct arrays *a, size_t first, uint32_t count)
{
    const struct operation *op = row->operation;
    const struct gw_kernels *k = row->kernels;
    unsigned char *x = a->x + gw_dtype_size(op->type) * first;
    unsigned char *wire = a->wire + 4 * first, *sum = a->sum + 4 * first;
    int64_t *wide = (int64_t *)a->wide + first;
    gw_real *real = (gw_real *)(void *)a->wide + first;
    struct gw_combination how = {.type = op->type, .shares = 1};
    switch (op->kind) {
    case COPY:
        memcpy(wire, x, 4 * (size_t)count);
        break;
    case QUANTISE:
        sink += k->quantise[op->type](wire, x, count, &row->scale);
        break;
    case ADD:
    case ADD_MARKS:
        k->add(sum, wire, count);
        break;
    case IS_SATURATED:
        sink += k->is_saturated(wire, count);
        break;
    case DEQUANTISE:
        k->dequantise[op->type](x, wire, count, &row->scale);
        break;
    case ADD_WIDE:
        k->add_wide(wide, wire, count);
        break;
    case NARROW:
        sink += k->narrow(sum, wide, count);
        break;
    case ADD_REAL:
        k->add_real[op->type](real, x, count);
        break;
    case NARROW_REAL:
        k->narrow_real[op->type](x, real, count, 1);
        break;
    case REDUCE:
        sink += k->reduce[op->type](sum, x, count, 1);
        break;
    case MINIMUM:
    case PRODUCT:
        how.op = op->kind == MINIMUM ? GW_OP_MIN : GW_OP_PRODUCT;
        sink += gw_combine(k, &how, sum, x, count);
        break;
    case MAX_ABS:
        sink += k->max_abs[op->type](x, count);
        break;
    }
}

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

/* What is added so often is small, so that sums stay values unless they are marks. */
static void fill_sums(const struct row *row, const struct arrays *a)
{
    enum kind kind = row->operation->kind;
    if (kind != ADD && kind != ADD_MARKS)
        return;
    int32_t sum = kind == ADD ? 0 : INT32_MAX;
    for (size_t i = 0; i < VALUES; i++) {
        int32_t q = (int32_t)(i % 127) - 63;
        memcpy(a->wire + 4 * i, &q, sizeof(q));
        memcpy(a->sum + 4 * i, &sum, sizeof(sum));
    }
}

/* memcpy gets 64 MB in one call, the better for it. */
static void measure(struct row *row, const struct arrays *a, uint32_t repetition)
{
    const uint32_t fragment = fragment_values;
    fill_sums(row, a);
    double begin = now_ns();
    for (uint32_t call = 0; call < CACHED_CALLS; call++)
        run(row, a, 0, fragment);
    row->cached_ns[repetition] = (now_ns() - begin) / CACHED_CALLS;
    uint32_t step = row->kernels ? fragment : VALUES;
    begin = now_ns();
    for (size_t first = 0; first < VALUES; first += step)
        run(row, a, first, step);
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

/* Int32 values are not scaled. */
static struct gw_scale scale_of(const struct operation *op)
{
    uint32_t shares = op->shares ? op->shares : 1;
    return op->type == GW_DTYPE_I32 ? gw_scale_integer(1, shares)
                                    : gw_scale_power(GW_SCALE_EXPONENT, shares);
}

static void print_row(struct row *row, const struct row *reference)
{
    double cached = median(row->cached_ns), beyond = median(row->beyond_ns);
    double bytes = (double)row->operation->bytes * FRAGMENT;
    double copy_bytes = (double)reference->operation->bytes * FRAGMENT;
    printf("%-30s %-9s %8.1f %8.1f %8.2f %10.1f %8.2f\n", row->operation->name,
           row->kernels ? row->kernels->name : "-", cached, bytes / cached,
           bytes / cached / (copy_bytes / reference->cached_ns[REPETITIONS / 2]), bytes / beyond,
           bytes / beyond / (copy_bytes / reference->beyond_ns[REPETITIONS / 2]));
}

int main(void)
{
    static struct row rows[ROWS_MAX];
    const uint32_t operation_count = sizeof(operations) / sizeof(operations[0]);
    uint32_t features = gw_cpu_features(), count = 0;
    struct arrays a = {
        .x = take(4 * (size_t)VALUES),
        .wire = take(4 * (size_t)VALUES),
        .sum = take(4 * (size_t)VALUES),
        .wide = take(8 * (size_t)VALUES),
    };
    rows[count++].operation = &copy;
    for (uint32_t o = 0; o < operation_count; o++)
        for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++)
            if (!((*k)->needs & ~features)) {
                GW_ASSERT(count < ROWS_MAX);
                rows[count++] = (struct row){
                    .operation = &operations[o], .kernels = *k, .scale = scale_of(&operations[o])};
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
