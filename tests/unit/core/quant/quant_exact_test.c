/*
 * Every kernel of every implementation against slow integer arithmetic: exhaustively for 16-bit
 * floats, at every exponent, tie and limit for float32, and on random bits.
 */
#include "quant_reference.h"

enum {
    BATCH = 1024,
    RANDOM_BATCHES = 64,
    SCALES = 10,
};

static const uint64_t seed = 31;

static const struct gw_kernels *here[KERNELS_MAX];
static size_t here_count;

static struct gw_prng draw;

static int start(void **state)
{
    (void)state;
    here_count = kernels_here(here, KERNELS_MAX);
    draw = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t k = 0; k < here_count; k++)
        print_message("kernels: %s\n", here[k]->name);
    return 0;
}

static struct gw_scale scale_number(size_t i)
{
    const struct gw_scale scales[SCALES] = {
        gw_scale_power(GW_SCALE_EXPONENT, 1),
        gw_scale_integer(100000000, 1),
        gw_scale_power(0, 1),
        gw_scale_integer(GW_SCALE_INTEGER_MAX - 1, 1),
        gw_scale_power(GW_SCALE_EXPONENT_MIN, 1),
        gw_scale_power(GW_SCALE_EXPONENT_MAX, 1),
        gw_scale_power(-98, 1),
        gw_scale_power(43, 1),
        gw_scale_power(24, 1), /* the least that leaves no float16 a fraction */
        gw_scale_power(23, 1),
    };
    assert_true(i < SCALES);
    return scales[i];
}

/*
 * Quantises each number alone, then those that have an integer at once, then all of them: what is
 * written is specified only when none is lost.
 */
static void check_quantise(enum gw_dtype type, const void *x, uint32_t count, struct gw_scale scale)
{
    uint32_t size = gw_dtype_size(type), kept = 0;
    int32_t wire[BATCH], expected[BATCH];
    bool is_value[BATCH];
    unsigned char values[BATCH * sizeof(uint32_t)];
    for (uint32_t i = 0; i < count; i++) {
        struct exact exact = exact_of_bits(element(x, i, size), formats[type]);
        is_value[i] = reference_quantise(exact, scale.up, &expected[kept]);
        if (is_value[i])
            memcpy(values + size * kept++, (const unsigned char *)x + size * i, size);
    }
    for (size_t k = 0; k < here_count; k++) {
        for (uint32_t i = 0; i < count; i++) {
            const unsigned char *alone = (const unsigned char *)x + size * i;
            assert_int_equal(here[k]->quantise[type](wire, alone, 1, &scale), is_value[i]);
        }
        assert_true(here[k]->quantise[type](wire, values, kept, &scale));
        assert_memory_equal(wire, expected, sizeof(*wire) * kept);
        assert_int_equal(here[k]->quantise[type](wire, x, count, &scale), kept == count);
    }
}

static void kernels_quantise__is_exact_for_all_16_bit_floats(void **state)
{
    (void)state;
    uint16_t x[BATCH];
    for (uint32_t first = 0; first <= UINT16_MAX; first += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++)
            x[i] = (uint16_t)(first + i);
        for (size_t s = 0; s < SCALES; s++) {
            check_quantise(GW_DTYPE_F16, x, BATCH, scale_number(s));
            check_quantise(GW_DTYPE_BF16, x, BATCH, scale_number(s));
        }
    }
}

/* Around each power of two: the mantissas at which something happens, ties among them. */
static void kernels_quantise__is_exact_at_every_float32_exponent(void **state)
{
    static const uint32_t fractions[] = {0,        1,        2,        3,        0x3fffff,
                                         0x400000, 0x400001, 0x200000, 0x600000, 0x555555,
                                         0x7ffffe, 0x7fffff, 0x100,    0x7fff00, 0x080000};
    enum { COUNT = 2 * GW_COUNT_OF(fractions) + 34 };
    (void)state;
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        uint32_t x[COUNT];
        uint32_t count = 0;
        for (size_t f = 0; f < GW_COUNT_OF(fractions); f++)
            for (uint32_t sign = 0; sign < 2; sign++)
                x[count++] = sign << 31 | exponent << 23 | fractions[f];
        for (uint32_t bit = 0; bit < 17; bit++)
            for (uint32_t sign = 0; sign < 2; sign++)
                x[count++] = sign << 31 | exponent << 23 | UINT32_C(0x2aaaaa) >> bit;
        for (size_t s = 0; s < SCALES; s++)
            check_quantise(GW_DTYPE_F32, x, count, scale_number(s));
    }
}

static void kernels_quantise__is_exact_for_random_bits(void **state)
{
    (void)state;
    for (uint32_t batch = 0; batch < RANDOM_BATCHES; batch++) {
        uint32_t any[BATCH], fitting[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) {
            any[i] = (uint32_t)gw_prng_next(&draw);
            /* Exponents that make values from a tiny fraction of a unit to too large. */
            uint32_t exponent = 127 - 32 + gw_prng_below(&draw, 40);
            fitting[i] = (any[i] & UINT32_C(0x807fffff)) | exponent << 23;
        }
        check_quantise(GW_DTYPE_F32, any, BATCH, scale_number(batch % SCALES));
        check_quantise(GW_DTYPE_F32, fitting, BATCH, scale_number(batch % 2));
    }
}

/* Halves of a unit, quarters, and one bit to either side. */
static void kernels_quantise__rounds_ties_to_even(void **state)
{
    static const struct {
        float x;
        int32_t q;
    } cases[] = {{0.5f, 0},
                 {1.5f, 2},
                 {2.5f, 2},
                 {3.5f, 4},
                 {-0.5f, 0},
                 {-1.5f, -2},
                 {-2.5f, -2},
                 {0.50000006f, 1},
                 {0.49999997f, 0},
                 {-0.50000006f, -1},
                 {1.4999999f, 1},
                 {2.5000002f, 3},
                 {8388607.5f, 8388608},
                 {4194304.5f, 4194304}};
    (void)state;
    struct gw_scale one = gw_scale_power(0, 1);
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
            int32_t q;
            assert_true(here[k]->quantise[GW_DTYPE_F32](&q, &cases[i].x, 1, &one));
            assert_int_equal(q, cases[i].q);
        }
}

/* Products x * scale around the limits, each exact: 2^31 less a little, of either sign. */
static void kernels_quantise__ends_where_marks_begin(void **state)
{
    static const struct {
        float x;
        uint32_t scale;
        bool fits, negative_fits;
    } cases[] = {
        {464773 / 2.f, 9241, true, true},       /* less 1.5: a tie, to 2^31 - 2 */
        {30429 / 128.f, 9033419, true, true},   /* less 1.5078125 */
        {5396535 / 16.f, 6367, false, true},    /* less 1.4375: to 2^31 - 1 */
        {6946975 / 8.f, 2473, false, true},     /* less 1.125 */
        {42149 / 16.f, 815197, false, true},    /* less 0.9375 */
        {3511 / 128.f, 78290489, false, true},  /* less 0.5078125 */
        {16711935 / 2.f, 257, false, false},    /* less 0.5: a tie, to 2^31 */
        {4937 / 128.f, 55677113, false, false}, /* less 0.4921875 */
        {0x1p31f, 1, false, false},
        {0x1.fffffep30f, 1, true, true}, /* the last float below */
        {0x1p127f, 1, false, false},
        {__builtin_inff(), 1, false, false},
    };
    (void)state;
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
            struct gw_scale scale = gw_scale_integer(cases[i].scale, 1);
            float x = cases[i].x, negative = -x;
            int32_t q;
            assert_int_equal(here[k]->quantise[GW_DTYPE_F32](&q, &x, 1, &scale), cases[i].fits);
            assert_int_equal(here[k]->quantise[GW_DTYPE_F32](&q, &negative, 1, &scale),
                             cases[i].negative_fits);
        }
}

static void kernels_quantise__copies_int32_but_for_marks(void **state)
{
    static const int32_t cases[] = {0, 1, -1, INT32_MAX - 1, INT32_MIN + 1, INT32_MAX, INT32_MIN};
    (void)state;
    struct gw_scale one = gw_scale_integer(1, 1);
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
            int32_t q;
            bool is_mark = cases[i] == INT32_MAX || cases[i] == INT32_MIN;
            assert_int_equal(here[k]->quantise[GW_DTYPE_I32](&q, &cases[i], 1, &one), !is_mark);
            assert_int_equal(q, cases[i]);
        }
}

static void check_dequantise(const int32_t *wire, uint32_t count, struct gw_scale scale, bool once)
{
    for (size_t k = 0; k < here_count; k++)
        for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPE_FLOATS; type++) {
            uint32_t x[BATCH];
            here[k]->dequantise[type](x, wire, count, &scale);
            for (uint32_t i = 0; i < count; i++)
                assert_int_equal(element(x, i, gw_dtype_size(type)),
                                 reference_dequantise(wire[i], scale.down, formats[type], once));
        }
}

/* Integers with one run of ones or zeros in the middle, and neighbours: all ties are among them. */
static uint32_t fill_edges(int32_t *wire, int from, int to)
{
    uint32_t count = 0;
    for (int32_t near = -2; near <= 2; near++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            uint32_t v = (UINT32_C(1) << from) - (UINT32_C(1) << to);
            uint32_t w = (UINT32_C(1) << from) + (UINT32_C(1) << to);
            wire[count++] = (int32_t)((sign ? -v : v) + (uint32_t)near);
            wire[count++] = (int32_t)((sign ? -w : w) + (uint32_t)near);
        }
    return count;
}

static void kernels_dequantise__is_exact_around_powers_and_ties(void **state)
{
    (void)state;
    for (int from = 0; from < 32; from++)
        for (int to = 0; to <= from; to++) {
            int32_t wire[BATCH];
            uint32_t count = fill_edges(wire, from, to);
            for (size_t s = 0; s < SCALES; s++)
                check_dequantise(wire, count, scale_number(s), true);
            /* Results around the least float16 and its ties, and denormal float32. */
            check_dequantise(wire, count, gw_scale_power(24 + from - 2, 1), true);
            check_dequantise(wire, count, gw_scale_power(110, 1 << 16), true);
            check_dequantise(wire, count, gw_scale_power(110, GW_SCALE_SHARES_MAX), true);
        }
}

/* A power-of-two scale with any number of workers, and 10^8 with up to 687: see kernels.h. */
static void kernels_dequantise__is_correctly_rounded_for_random_averages(void **state)
{
    (void)state;
    for (uint32_t batch = 0; batch < RANDOM_BATCHES; batch++) {
        int32_t wire[BATCH];
        for (uint32_t i = 0; i < BATCH; i++)
            wire[i] = (int32_t)gw_prng_next(&draw) >> gw_prng_below(&draw, 31);
        uint32_t workers = 1 + gw_prng_below(&draw, 687);
        check_dequantise(wire, BATCH, gw_scale_integer(100000000, workers), true);
        check_dequantise(wire, BATCH, gw_scale_power(GW_SCALE_EXPONENT, workers), true);
        check_dequantise(wire, BATCH, gw_scale_power(10, workers * 1000 + 1), true);
        uint32_t many = 1 + gw_prng_below(&draw, GW_SCALE_SHARES_MAX);
        check_dequantise(wire, BATCH, gw_scale_integer(GW_SCALE_INTEGER_MAX - 3, many), false);
    }
}

static void kernels_dequantise__averages_int32_with_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 300; workers++) {
        int32_t wire[BATCH], x[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) {
            int32_t random = (int32_t)gw_prng_next(&draw) >> gw_prng_below(&draw, 31);
            /* Every other one is half way between two averages, if there is a half. */
            wire[i] = i % 2 ? random : (random >> 10) * (int32_t)workers + (int32_t)workers / 2;
        }
        struct gw_scale scale = gw_scale_integer(1, workers);
        for (size_t k = 0; k < here_count; k++) {
            here[k]->dequantise[GW_DTYPE_I32](x, wire, BATCH, &scale);
            for (uint32_t i = 0; i < BATCH; i++) {
                struct exact mean =
                    exact_divide(exact_of_integer(wire[i]), exact_of_integer(workers));
                int64_t magnitude = (int64_t)round_shift(mean, -mean.exponent);
                assert_int_equal(x[i], wire[i] < 0 ? -magnitude : magnitude);
            }
        }
    }
}

static void kernels_dequantise__returns_int32_sums_as_they_are(void **state)
{
    static const int32_t wire[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT32_MAX - 1, INT32_MIN + 1};
    (void)state;
    struct gw_scale one = gw_scale_integer(1, 1);
    for (size_t k = 0; k < here_count; k++) {
        int32_t x[GW_COUNT_OF(wire)];
        here[k]->dequantise[GW_DTYPE_I32](x, wire, GW_COUNT_OF(wire), &one);
        assert_memory_equal(x, wire, sizeof(wire));
    }
}

/* Doubles at every exponent: what the formats round, flush, and cannot hold. */
static void kernels_narrow_real__is_exact_for_doubles(void **state)
{
    (void)state;
    for (uint64_t exponent = 0; exponent < 2048; exponent++) {
        enum { COUNT = 64 };
        double sum[COUNT];
        for (uint32_t i = 0; i < COUNT; i++) {
            uint64_t random = gw_prng_next(&draw), sign = random & UINT64_C(1) << 63;
            /* All but a few leading bits are cut off, or are ones, so that ties are frequent. */
            uint64_t keep = UINT64_MAX << (52 - i % 26) & (UINT64_MAX >> 12);
            uint64_t fraction = (random & keep) + (i % 3 == 2) - (i % 3 == 1);
            uint64_t bits = sign | exponent << 52 | (fraction & UINT64_MAX >> 12);
            memcpy(&sum[i], &bits, sizeof(bits));
        }
        for (size_t k = 0; k < here_count; k++)
            for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPE_FLOATS; type++)
                for (uint32_t shares = 1; shares <= 3; shares++) {
                    uint32_t x[COUNT];
                    here[k]->narrow_real[type](x, sum, COUNT, shares);
                    for (uint32_t i = 0; i < COUNT; i++) {
                        struct exact mean = exact_of_double(sum[i]);
                        if (mean.finite)
                            mean = exact_divide(mean, exact_of_integer(shares));
                        mean = exact_of_bits(bits_of_exact(mean, format_f64), format_f64);
                        assert_int_equal(element(x, i, gw_dtype_size(type)),
                                         bits_of_exact(mean, formats[type]));
                    }
                }
    }
}

/* Added to zero, a number is what it was; 0x1p-1074 more shows that it is added. */
static void kernels_add_real__is_exact_for_all_16_bit_floats(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++)
        for (size_t k = 0; k < here_count; k++)
            for (enum gw_dtype type = GW_DTYPE_F16; type <= GW_DTYPE_BF16; type++) {
                uint16_t x = (uint16_t)bits;
                double sum = 0;
                here[k]->add_real[type](&sum, &x, 1);
                here[k]->add_real[type](&sum, &x, 1);
                struct exact twice = exact_of_bits(bits, formats[type]);
                twice.exponent++;
                if (twice.finite && !twice.significand)
                    twice.negative = false;
                uint64_t found;
                memcpy(&found, &sum, sizeof(found));
                if (twice.finite || !twice.significand)
                    assert_int_equal(found, bits_of_exact(twice, format_f64));
                else
                    assert_true(sum != sum);
            }
}

static void kernels_add_real__adds_float32_in_double(void **state)
{
    static const float x[] = {0x1p-149f, 1, 0x1.fffffep127f, -3};
    static const double before[] = {1, 0x1p-52, 0x1p127, 3};
    static const double after[] = {1, 1 + 0x1p-52, 0x1.7fffffp128, 0};
    (void)state;
    for (size_t k = 0; k < here_count; k++) {
        double sum[GW_COUNT_OF(before)];
        memcpy(sum, before, sizeof(sum));
        here[k]->add_real[GW_DTYPE_F32](sum, x, GW_COUNT_OF(x));
        for (size_t i = 0; i < GW_COUNT_OF(x); i++)
            assert_true(sum[i] == after[i]);
    }
}

static void kernels_narrow__fits_32_bits_and_no_more(void **state)
{
    static const struct {
        int64_t sum;
        bool fits;
    } cases[] = {
        {0, true},
        {INT32_MAX, true},
        {INT32_MIN, true},
        {INT64_C(1) + INT32_MAX, false},
        {INT64_C(-1) + INT32_MIN, false},
        {INT64_MAX, false},
        {INT64_MIN, false},
        {INT64_C(1) << 32, false},
        {-(INT64_C(1) << 32), false},
    };
    (void)state;
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
            int32_t wire;
            assert_int_equal(here[k]->narrow(&wire, &cases[i].sum, 1), cases[i].fits);
            if (cases[i].fits)
                assert_int_equal(wire, cases[i].sum);
        }
}

static void kernels_max_abs__orders_all_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < here_count; k++) {
        assert_int_equal(here[k]->max_abs[GW_DTYPE_F32](NULL, 0), 0);
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            uint16_t x[] = {0, (uint16_t)bits};
            uint32_t wide[] = {0, bits << 16 | bits};
            struct exact half = exact_of_bits(bits & INT16_MAX, formats[GW_DTYPE_F16]);
            uint32_t found = here[k]->max_abs[GW_DTYPE_F16](x, 2);
            if (half.finite || !half.significand)
                assert_int_equal(found, bits_of_exact(half, formats[GW_DTYPE_F32]));
            else
                assert_true(found > UINT32_C(0x7f800000));
            assert_int_equal(here[k]->max_abs[GW_DTYPE_BF16](x, 2), (bits & INT16_MAX) << 16);
            assert_int_equal(here[k]->max_abs[GW_DTYPE_F32](wide, 2), wide[1] & INT32_MAX);
        }
    }
}

/* x + y in double, which is exact for float16, then divided in double. */
static uint64_t reference_reduce(uint32_t x, uint32_t y, uint32_t shares, struct format format)
{
    uint64_t wide[] = {bits_of_exact(exact_of_bits(x, format), format_f64),
                       bits_of_exact(exact_of_bits(y, format), format_f64)};
    double addends[2];
    memcpy(addends, wide, sizeof(addends));
    return bits_of_exact(exact_of_double((addends[0] + addends[1]) / shares), format);
}

static void check_reduce(enum gw_dtype type, const void *x, const void *y, uint32_t count,
                         uint32_t shares)
{
    uint32_t size = gw_dtype_size(type);
    for (size_t k = 0; k < here_count; k++) {
        uint32_t sum[BATCH];
        memcpy(sum, x, (size_t)size * count);
        assert_true(here[k]->reduce[type](sum, y, count, shares));
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(
                element(sum, i, size),
                reference_reduce(element(x, i, size), element(y, i, size), shares, formats[type]));
    }
}

/* Every number, each with others of its magnitude and of any, and with one that it cancels. */
static void kernels_reduce__rounds_sums_of_16_bit_floats_once(void **state)
{
    (void)state;
    for (uint32_t first = 0; first <= UINT16_MAX; first += BATCH)
        for (uint32_t round = 0; round < 12; round++) {
            uint16_t x[BATCH], y[BATCH];
            for (uint32_t i = 0; i < BATCH; i++) {
                uint32_t random = (uint32_t)gw_prng_next(&draw);
                x[i] = (uint16_t)(first + i);
                y[i] = (uint16_t)(round < 4   ? random
                                  : round < 8 ? x[i] ^ (random & 0x8fff)
                                              : x[i] ^ 0x8000 ^ (random & 3));
            }
            uint32_t shares = round % 2 ? 1 : 1 + round;
            check_reduce(GW_DTYPE_F16, x, y, BATCH, shares);
            check_reduce(GW_DTYPE_BF16, x, y, BATCH, shares);
        }
}

static void kernels_reduce__rounds_sums_of_float32_once(void **state)
{
    (void)state;
    for (uint32_t batch = 0; batch < 4 * RANDOM_BATCHES; batch++) {
        uint32_t x[BATCH], y[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) {
            x[i] = (uint32_t)gw_prng_next(&draw);
            y[i] = (uint32_t)gw_prng_next(&draw);
            if (batch % 4) /* exponents not far apart, so that ties and carries are frequent */
                y[i] = (x[i] & UINT32_C(0x7c000000)) | (y[i] & UINT32_C(0x83fff000));
        }
        check_reduce(GW_DTYPE_F32, x, y, BATCH, 1 + batch % 3);
    }
}

static void kernels_reduce__adds_int32_that_fit(void **state)
{
    static const struct {
        int32_t x, y;
        uint32_t shares;
        bool fits;
        int32_t result;
    } cases[] = {
        {INT32_MAX, 0, 1, true, INT32_MAX},
        {INT32_MIN, 0, 1, true, INT32_MIN},
        {INT32_MAX, 1, 1, false, 0},
        {INT32_MIN, -1, 1, false, 0},
        {INT32_MIN, INT32_MIN, 1, false, 0},
        {INT32_MAX, INT32_MAX, 2, false, 0},
        {INT32_MAX, INT32_MIN, 1, true, -1},
        {-5, -2, 2, true, -4},
        {3, 2, 2, true, 2},
        {4, 3, 2, true, 4},
        {-1, 0, 3, true, 0},
        {1 << 30, (1 << 30) - 1, 3, true, 715827882},
    };
    (void)state;
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
            int32_t x = cases[i].x;
            assert_int_equal(here[k]->reduce[GW_DTYPE_I32](&x, &cases[i].y, 1, cases[i].shares),
                             cases[i].fits);
            if (cases[i].fits)
                assert_int_equal(x, cases[i].result);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_quantise__is_exact_for_all_16_bit_floats),
        cmocka_unit_test(kernels_quantise__is_exact_at_every_float32_exponent),
        cmocka_unit_test(kernels_quantise__is_exact_for_random_bits),
        cmocka_unit_test(kernels_quantise__rounds_ties_to_even),
        cmocka_unit_test(kernels_quantise__ends_where_marks_begin),
        cmocka_unit_test(kernels_quantise__copies_int32_but_for_marks),
        cmocka_unit_test(kernels_dequantise__is_exact_around_powers_and_ties),
        cmocka_unit_test(kernels_dequantise__is_correctly_rounded_for_random_averages),
        cmocka_unit_test(kernels_dequantise__averages_int32_with_ties_to_even),
        cmocka_unit_test(kernels_dequantise__returns_int32_sums_as_they_are),
        cmocka_unit_test(kernels_narrow_real__is_exact_for_doubles),
        cmocka_unit_test(kernels_add_real__is_exact_for_all_16_bit_floats),
        cmocka_unit_test(kernels_add_real__adds_float32_in_double),
        cmocka_unit_test(kernels_narrow__fits_32_bits_and_no_more),
        cmocka_unit_test(kernels_max_abs__orders_all_bits),
        cmocka_unit_test(kernels_reduce__rounds_sums_of_16_bit_floats_once),
        cmocka_unit_test(kernels_reduce__rounds_sums_of_float32_once),
        cmocka_unit_test(kernels_reduce__adds_int32_that_fit),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
