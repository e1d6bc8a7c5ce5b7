/*
 * gw_bench_worth: what it costs to know which fragments are important while a tensor is copied, or
 * quantised, fragment by fragment.
 *
 * Tensors of 100 MB, beyond the caches. Each measurement with importance takes its sample anew, and
 * has its turn right after the one without; the medians are compared, so that a disturbance of the
 * machine hits all alike or few. For copies also with a mask of all fragments that is made before.
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
#include "core/quant/importance.h"

enum {
    FRAGMENT = 1408, /* bytes of values: the default fragment of float32 */
    FRAGMENTS = 100 * 1000 * 1000 / FRAGMENT,
    REPETITIONS = 15,
    ALIGNMENT = 4096,
};

#define SIZE ((size_t)FRAGMENTS * FRAGMENT)

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gw_bench_worth: %s:%d: %s does not hold\n", file, line, condition);
    abort();
}

struct measured {
    const struct gw_kernels *kernels;
    enum gw_dtype type;
    enum gw_importance_rule rule;
    bool quantises;  /* else copies */
    uint32_t values; /* in a fragment */
    unsigned char *from, *to;
    uint64_t *mask; /* a bit per fragment */
};

/* What was found out goes here, so that the compiler cannot leave it out. */
static volatile uint32_t sink;

/* Not known to the compiler, which would write out another memcpy than the library's. */
static volatile uint32_t fragment_size = FRAGMENT;

static void pass_without(const struct measured *m)
{
    const struct gw_scale scale = gw_scale_power(GW_SCALE_EXPONENT, 1);
    const uint32_t size = fragment_size;
    for (size_t i = 0; i < FRAGMENTS; i++)
        if (m->quantises)
            sink += m->kernels->quantise[m->type](m->to + 4 * i * m->values, m->from + i * size,
                                                  m->values, &scale);
        else
            memcpy(m->to + i * size, m->from + i * size, size);
}

static struct gw_importance importance_of(const struct measured *m)
{
    struct gw_importance importance;
    const struct gw_importance_tensor tensor = {.kernels = m->kernels,
                                                .values = m->from,
                                                .size = SIZE,
                                                .fragment_size = fragment_size,
                                                .type = m->type};
    gw_importance_init(&importance, &tensor, m->rule, 1);
    return importance;
}

static void pass_with(const struct measured *m)
{
    const struct gw_scale scale = gw_scale_power(GW_SCALE_EXPONENT, 1);
    const uint32_t size = fragment_size;
    const struct gw_importance importance = importance_of(m);
    for (size_t i = 0; i < FRAGMENTS; i++)
        if (m->quantises) {
            gw_real sum = m->kernels->sum_abs[m->type](m->from + i * size, m->values);
            sink += gw_importance_of_sum(&importance, sum, m->values);
            sink += m->kernels->quantise[m->type](m->to + 4 * i * m->values, m->from + i * size,
                                                  m->values, &scale);
        } else {
            sink += gw_importance_copy(&importance, m->to + i * size, m->from + i * size, i * size,
                                       size);
        }
}

static void pass_with_mask(const struct measured *m)
{
    const uint32_t size = fragment_size;
    struct gw_importance importance = importance_of(m);
    sink += gw_importance_fill(&importance, m->from, SIZE, m->mask);
    gw_importance_init_mask(&importance, m->mask, size);
    for (size_t i = 0; i < FRAGMENTS; i++)
        sink +=
            gw_importance_copy(&importance, m->to + i * size, m->from + i * size, i * size, size);
}

static double seconds_of(void (*pass)(const struct measured *), const struct measured *m)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pass(m);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static double median(double *seconds)
{
    qsort(seconds, REPETITIONS, sizeof(*seconds), compare_doubles);
    return seconds[REPETITIONS / 2];
}

static void measure(const struct measured *m, const char *type)
{
    double without[REPETITIONS], with[REPETITIONS], masked[REPETITIONS];
    for (uint32_t r = 0; r < REPETITIONS; r++) {
        without[r] = seconds_of(pass_without, m);
        with[r] = seconds_of(pass_with, m);
        masked[r] = m->quantises ? 0 : seconds_of(pass_with_mask, m);
    }
    double time = median(without);
    printf("%-8s %-8s %-16s %-8s %9.1f %9.2f", m->quantises ? "quantise" : "copy", type,
           gw_importance_rule_names[m->rule], m->kernels->name, time / FRAGMENTS * 1e9,
           median(with) / time);
    if (!m->quantises)
        printf(" %9.2f", median(masked) / time);
    printf("\n");
}

static void *take(size_t size)
{
    void *memory = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        fprintf(stderr, "gw_bench_worth: out of memory (%zu bytes)\n", size);
        exit(EXIT_FAILURE);
    }
    return memset(memory, 0, size);
}

/* Of about 1: 0x3c is the upper byte of such a float16, float32 and bfloat16, and near that of a
 * float64. */
static void fill(unsigned char *to)
{
    const uint32_t exponents = UINT32_C(0x3c003c00), fractions = UINT32_C(0x00ff00ff);
    struct gw_prng prng = gw_prng_derive(1, 0);
    for (size_t i = 0; i < SIZE / 4; i++) {
        uint32_t x = exponents | ((uint32_t)gw_prng_next(&prng) & fractions);
        memcpy(to + 4 * i, &x, sizeof(x));
    }
}

int main(void)
{
    static const struct {
        const char *name;
        enum gw_dtype type;
    } types[] = {{"float32", GW_DTYPE_F32},
                 {"float16", GW_DTYPE_F16},
                 {"bfloat16", GW_DTYPE_BF16},
                 {"float64", GW_DTYPE_F64}};
    uint32_t features = gw_cpu_features();
    struct measured m = {
        .from = take(SIZE), .to = take(2 * SIZE), .mask = take(FRAGMENTS / 8 + sizeof(uint64_t))};
    fill(m.from);
    printf("%-43s %9s %9s %9s\n", "fragments of 1408 bytes, of 100 MB", "ns", "with", "mask");
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
        for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++) {
            if ((*k)->needs & ~features)
                continue;
            m.kernels = *k;
            m.type = types[t].type;
            m.values = FRAGMENT / gw_dtype_size(m.type);
            for (uint32_t rule = 0; rule <= GW_IMPORTANCE_MEDIAN_OF_VALUES; rule++)
                for (uint32_t quantises = 0; quantises <= (m.type < GW_DTYPE_SUMMABLE);
                     quantises++) {
                    m.rule = (enum gw_importance_rule)rule;
                    m.quantises = quantises;
                    measure(&m, types[t].name);
                }
        }
    return 0;
}
