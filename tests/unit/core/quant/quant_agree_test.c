/*
 * All implementations of the kernels give the same bits, at any count and address, and write
 * nothing but their output: each is compared with the portable one on random bits.
 */
#include "quant_reference.h"

enum {
    COUNT_MAX = 100,
    SLACK = 64, /* guard bytes on each side, and room for odd addresses */
    ROOM = COUNT_MAX * 8 + 2 * SLACK,
    ROUNDS = 24,
    GUARD = 0xa5,
};

static const uint64_t seed = 47;

static struct gw_prng draw;

typedef uint32_t run_fn(const struct gw_kernels *k, void *out, const void *in, uint32_t count,
                        const struct gw_scale *scale);

#define QUANTISE(type)                                                                             \
    static uint32_t run_quantise_##type(const struct gw_kernels *k, void *out, const void *in,     \
                                        uint32_t count, const struct gw_scale *scale)              \
    {                                                                                              \
        return k->quantise[GW_DTYPE_##type](out, in, count, scale);                                \
    }

#define DEQUANTISE(type)                                                                           \
    static uint32_t run_dequantise_##type(const struct gw_kernels *k, void *out, const void *in,   \
                                          uint32_t count, const struct gw_scale *scale)            \
    {                                                                                              \
        k->dequantise[GW_DTYPE_##type](out, in, count, scale);                                     \
        return true;                                                                               \
    }

#define REAL(type)                                                                                 \
    static uint32_t run_add_real_##type(const struct gw_kernels *k, void *out, const void *in,     \
                                        uint32_t count, const struct gw_scale *scale)              \
    {                                                                                              \
        (void)scale;                                                                               \
        k->add_real[GW_DTYPE_##type](out, in, count);                                              \
        return true;                                                                               \
    }                                                                                              \
    static uint32_t run_narrow_real_##type(const struct gw_kernels *k, void *out, const void *in,  \
                                           uint32_t count, const struct gw_scale *scale)           \
    {                                                                                              \
        (void)scale;                                                                               \
        k->narrow_real[GW_DTYPE_##type](out, in, count, 1 + count % 5);                            \
        return true;                                                                               \
    }                                                                                              \
    static uint32_t run_max_abs_##type(const struct gw_kernels *k, void *out, const void *in,      \
                                       uint32_t count, const struct gw_scale *scale)               \
    {                                                                                              \
        (void)out, (void)scale;                                                                    \
        return k->max_abs[GW_DTYPE_##type](in, count);                                             \
    }

#define REDUCE(type)                                                                               \
    static uint32_t run_reduce_##type(const struct gw_kernels *k, void *out, const void *in,       \
                                      uint32_t count, const struct gw_scale *scale)                \
    {                                                                                              \
        (void)scale;                                                                               \
        return k->reduce[GW_DTYPE_##type](out, in, count, 1 + count % 3);                          \
    }

QUANTISE(F32)
QUANTISE(F16)
QUANTISE(BF16)
QUANTISE(I32)
DEQUANTISE(F32)
DEQUANTISE(F16)
DEQUANTISE(BF16)
DEQUANTISE(I32)
REAL(F32)
REAL(F16)
REAL(BF16)
REDUCE(F32)
REDUCE(F16)
REDUCE(BF16)
REDUCE(I32)

static uint32_t run_add(const struct gw_kernels *k, void *out, const void *in, uint32_t count,
                        const struct gw_scale *scale)
{
    (void)scale;
    return k->add(out, in, count);
}

static uint32_t run_is_saturated(const struct gw_kernels *k, void *out, const void *in,
                                 uint32_t count, const struct gw_scale *scale)
{
    (void)out, (void)scale;
    return k->is_saturated(in, count);
}

static uint32_t run_add_wide(const struct gw_kernels *k, void *out, const void *in, uint32_t count,
                             const struct gw_scale *scale)
{
    (void)scale;
    k->add_wide(out, in, count);
    return true;
}

static uint32_t run_narrow(const struct gw_kernels *k, void *out, const void *in, uint32_t count,
                           const struct gw_scale *scale)
{
    (void)scale;
    return k->narrow(out, in, count);
}

static const struct operation {
    const char *name;
    run_fn *run;
    uint32_t in_size;  /* of an element; also the alignment, when 8 */
    uint32_t out_size; /* 0: no output */
    bool verdict;      /* false leaves the output unspecified */
} operations[] = {
    {"quantise f32", run_quantise_F32, 4, 4, true},
    {"quantise f16", run_quantise_F16, 2, 4, true},
    {"quantise bf16", run_quantise_BF16, 2, 4, true},
    {"quantise i32", run_quantise_I32, 4, 4, true},
    {"dequantise f32", run_dequantise_F32, 4, 4, false},
    {"dequantise f16", run_dequantise_F16, 4, 2, false},
    {"dequantise bf16", run_dequantise_BF16, 4, 2, false},
    {"dequantise i32", run_dequantise_I32, 4, 4, false},
    {"add", run_add, 4, 4, false},
    {"is_saturated", run_is_saturated, 4, 0, true},
    {"add_wide", run_add_wide, 4, 8, false},
    {"narrow", run_narrow, 8, 4, true},
    {"add_real f32", run_add_real_F32, 4, 8, false},
    {"add_real f16", run_add_real_F16, 2, 8, false},
    {"add_real bf16", run_add_real_BF16, 2, 8, false},
    {"narrow_real f32", run_narrow_real_F32, 8, 4, false},
    {"narrow_real f16", run_narrow_real_F16, 8, 2, false},
    {"narrow_real bf16", run_narrow_real_BF16, 8, 2, false},
    {"reduce f32", run_reduce_F32, 4, 4, false},
    {"reduce f16", run_reduce_F16, 2, 2, false},
    {"reduce bf16", run_reduce_BF16, 2, 2, false},
    {"reduce i32", run_reduce_I32, 4, 4, true},
    {"max_abs f32", run_max_abs_F32, 4, 0, true},
    {"max_abs f16", run_max_abs_F16, 2, 0, true},
    {"max_abs bf16", run_max_abs_BF16, 2, 0, true},
};

/*
 * Random elements of one of four kinds: any bits, marks and zeros among small integers, floats of
 * about 1 (so that verdicts are true too), special floats.
 */
static void fill(unsigned char *bytes, size_t length, uint32_t size)
{
    static const uint64_t specials[] = {
        UINT64_C(0x7f8000007f800000), UINT64_C(0xffc00001ffc00001), UINT64_C(0x7c007c007c007c00),
        UINT64_C(0x7ff0000000000000), UINT64_C(0xfff8000000000001), UINT64_C(0x8000000080000000),
        UINT64_C(0x0000000100000001), UINT64_C(0x7fffffff7fffffff), 0};
    uint32_t kind = gw_prng_below(&draw, 4);
    for (size_t i = 0; i + size <= length; i += size) {
        uint64_t random = gw_prng_next(&draw), bits = random;
        bool special = random >> 56 < 16;
        if (kind == 1)
            bits =
                special ? UINT64_C(0x7fffffff) + (random & 1) : (uint64_t)((int64_t)random >> 40);
        else if (kind == 2)
            bits = (random & UINT64_C(0x80ff80ff80ff80ff)) | UINT64_C(0x3c003c003c003c00);
        else if (kind == 3 && special)
            bits = specials[random % GW_COUNT_OF(specials)];
        memcpy(bytes + i, &bits, size);
    }
}

/* An array of `count` elements at an odd address within its room, between guards. */
struct array {
    _Alignas(64) unsigned char bytes[ROOM];
    size_t first, length;
};

static void array_init(struct array *array, uint32_t size, uint32_t count)
{
    memset(array->bytes, GUARD, sizeof(array->bytes));
    array->first = SLACK - gw_prng_below(&draw, SLACK);
    if (size == 8)
        array->first &= ~(size_t)7;
    array->length = (size_t)size * count;
    fill(array->bytes + array->first, array->length, size ? size : 1);
}

static void assert_guarded(const struct array *array)
{
    for (size_t i = 0; i < sizeof(array->bytes); i++)
        if (i < array->first || i >= array->first + array->length)
            assert_int_equal(array->bytes[i], GUARD);
}

/* Which NaN an addition of two gives is up to the processor. */
static void forget_nans(struct array *array)
{
    for (size_t i = array->first; i < array->first + array->length; i += sizeof(double)) {
        double x;
        memcpy(&x, array->bytes + i, sizeof(x));
        if (x != x)
            memset(array->bytes + i, 0xff, sizeof(x));
    }
}

static void compare(const struct operation *op, const struct gw_kernels *tested, uint32_t count,
                    const struct gw_scale *scale)
{
    static struct array in, before, out, expected;
    array_init(&in, op->in_size, count);
    array_init(&before, op->out_size, count);
    out = expected = before;
    struct array in_before = in;
    const struct gw_kernels *portable = gw_kernels_best(0);
    uint32_t verdict =
        op->run(portable, expected.bytes + expected.first, in.bytes + in.first, count, scale);
    uint32_t found = op->run(tested, out.bytes + out.first, in.bytes + in.first, count, scale);
    if (found != verdict)
        fail_msg("%s of %s: %u elements: verdict %u, not %u", op->name, tested->name, count, found,
                 verdict);
    assert_guarded(&out);
    assert_guarded(&expected);
    assert_memory_equal(in.bytes, in_before.bytes, sizeof(in.bytes));
    if (op->out_size == 8) {
        forget_nans(&out);
        forget_nans(&expected);
    }
    if ((verdict || !op->verdict) && memcmp(out.bytes, expected.bytes, sizeof(out.bytes)) != 0)
        fail_msg("%s of %s: %u elements differ from the portable ones'", op->name, tested->name,
                 count);
}

static void kernels__agree_at_every_count_and_address(void **state)
{
    (void)state;
    const struct gw_kernels *here[KERNELS_MAX];
    size_t here_count = kernels_here(here, KERNELS_MAX);
    const struct gw_scale scales[] = {
        gw_scale_power(GW_SCALE_EXPONENT, 1),
        gw_scale_power(0, 3),
        gw_scale_power(20, 16),
        gw_scale_integer(100000000, 1),
        gw_scale_power(110, GW_SCALE_SHARES_MAX),
    };
    draw = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t k = 0; k < here_count; k++) {
        print_message("kernels: %s\n", here[k]->name);
        for (size_t o = 0; o < GW_COUNT_OF(operations); o++)
            for (uint32_t round = 0; round < ROUNDS; round++)
                for (uint32_t count = 0; count <= COUNT_MAX; count++)
                    compare(&operations[o], here[k], count, &scales[round % GW_COUNT_OF(scales)]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels__agree_at_every_count_and_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
