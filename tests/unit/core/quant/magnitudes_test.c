/*
 * Sums of magnitudes: each implementation against 16 lanes added one number at a time, bit by bit.
 */
#include "quant_reference.h"

/* As on processors that are not x86-64, without an instruction of theirs. */
#define GW_LOOP_VECTOR 16
#include "core/quant/magnitudes.h"

enum {
    COUNT_MAX = 100,
    LARGE = 2250, /* a fragment of 9000 bytes */
    ROUNDS = 12,
    ADDRESSES = 64,
    RIGHT_LANES = 16, /* whatever the implementation says */
};

static const uint64_t seed = 61;

static struct gw_prng draw;
static gw_sum_abs *const plain_sums[] = GW_LOOP_SUMS;
static const struct gw_kernels plain = {.name = "plain", .sum_abs = plain_sums};
static const struct gw_kernels *here[KERNELS_MAX + 1];
static size_t here_count;

static const enum gw_dtype types[] = {GW_DTYPE_F32, GW_DTYPE_F16, GW_DTYPE_BF16, GW_DTYPE_I32,
                                      GW_DTYPE_F64};

static double double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Of a float16 without its sign. */
static double double_of_f16(uint32_t bits)
{
    uint32_t exponent = bits >> 10, fraction = bits & 0x3ff;
    if (exponent == 31)
        return double_of_bits(UINT64_C(0x7ff0000000000000) | fraction);
    double x = exponent ? fraction + 1024 : fraction;
    for (uint32_t e = exponent ? exponent : 1; e < 25; e++)
        x /= 2;
    for (uint32_t e = 25; e < exponent; e++)
        x *= 2;
    return x;
}

static double double_of_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* The magnitude of element `i`, rounded to a float32 unless it is a float64. */
static double magnitude_at(const unsigned char *x, size_t i, enum gw_dtype type)
{
    uint64_t bits = 0;
    uint32_t size = gw_dtype_size(type);
    memcpy(&bits, x + i * size, size);
    switch (type) {
    case GW_DTYPE_F32:
        return double_of_f32((uint32_t)bits & INT32_MAX);
    case GW_DTYPE_F16:
        return double_of_f16((uint32_t)bits & INT16_MAX);
    case GW_DTYPE_BF16:
        return double_of_f32(((uint32_t)bits & INT16_MAX) << 16);
    case GW_DTYPE_I32:
        return (float)((int32_t)bits < 0 ? -(double)(int32_t)bits : (double)(int32_t)bits);
    default:
        return double_of_bits(bits & INT64_MAX);
    }
}

/* The sum of two float32 is rounded the same by way of a double. */
static double reference(const unsigned char *x, uint32_t count, enum gw_dtype type)
{
    volatile double lanes[RIGHT_LANES] = {0};
    bool is_f64 = type == GW_DTYPE_F64, is_paired = gw_dtype_size(type) == 2;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lane = is_paired ? i / 2 % RIGHT_LANES : i % RIGHT_LANES;
        double sum = lanes[lane] + magnitude_at(x, i, type);
        lanes[lane] = is_f64 ? sum : (double)(float)sum;
    }
    for (uint32_t half = RIGHT_LANES / 2; half; half /= 2)
        for (uint32_t i = 0; i < half; i++) {
            double sum = lanes[i] + lanes[half + i];
            lanes[i] = is_f64 ? sum : (double)(float)sum;
        }
    return lanes[0] == lanes[0] ? lanes[0] : double_of_bits(UINT64_C(0x7ff0000000000000));
}

static double sum_of(const struct gw_kernels *kernels, const void *x, uint32_t count,
                     enum gw_dtype type)
{
    gw_real sum;
    kernels->sum_abs[type](&sum, &x, NULL, 1, count);
    return sum;
}

static void assert_sums(const unsigned char *x, uint32_t count, enum gw_dtype type)
{
    double expected = reference(x, count, type);
    for (size_t k = 0; k < here_count; k++) {
        double sum = sum_of(here[k], x, count, type);
        if (bits_of_double(sum) != bits_of_double(expected))
            fail_msg("%s: %u values of type %u: %a, not %a", here[k]->name, count, type, sum,
                     expected);
    }
}

/*
 * Any bits (of which some are infinite or NaN), numbers within a few powers of two, whose sums are
 * rounded, and denormal ones: bytes of an exponent near or at zero.
 */
static void fill(unsigned char *bytes, uint32_t count, enum gw_dtype type, uint32_t kind)
{
    static const uint64_t middle[] = {0x3f800000, 0x3c00, 0x3f80, 0x10000,
                                      UINT64_C(0x3ff0000000000000)};
    static const uint64_t keep[] = {0x83ffffff, 0x8fff, 0x83ff, 0xffffffff,
                                    UINT64_C(0x803fffffffffffff)};
    static const uint64_t low[] = {0x80ffffff, 0x87ff, 0x80ff, 0xff, UINT64_C(0x801fffffffffffff)};
    uint32_t size = gw_dtype_size(type);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = gw_prng_next(&draw);
        if (kind == 1)
            bits = (bits & keep[type]) | middle[type];
        else if (kind == 2)
            bits &= low[type];
        memcpy(bytes + (size_t)i * size, &bits, size);
    }
}

static void sum_abs__equals_sixteen_lanes_at_every_count_and_address(void **state)
{
    (void)state;
    static unsigned char room[LARGE * sizeof(double) + ADDRESSES];
    draw = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t t = 0; t < GW_COUNT_OF(types); t++)
        for (uint32_t round = 0; round < ROUNDS; round++)
            for (uint32_t count = 0; count <= COUNT_MAX + 1; count++) {
                uint32_t values = count <= COUNT_MAX ? count : LARGE;
                unsigned char *x = room + gw_prng_below(&draw, ADDRESSES);
                fill(x, values, types[t], round % 3);
                assert_sums(x, values, types[t]);
            }
}

/* Small integers, so that every order gives the same; written at each place of a long row. */
static void sum_abs__of_a_single_value_anywhere_is_its_magnitude(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_MAX; i++) {
        float x[COUNT_MAX] = {0};
        double y[COUNT_MAX] = {0};
        int32_t z[COUNT_MAX] = {0};
        x[i] = -3;
        y[i] = -5;
        z[i] = INT32_MIN;
        assert_sums((const unsigned char *)x, COUNT_MAX, GW_DTYPE_F32);
        assert_true(sum_of(gw_kernels_best(0), x, COUNT_MAX, GW_DTYPE_F32) == 3);
        assert_sums((const unsigned char *)y, COUNT_MAX, GW_DTYPE_F64);
        assert_true(sum_of(gw_kernels_best(0), y, COUNT_MAX, GW_DTYPE_F64) == 5);
        assert_sums((const unsigned char *)z, COUNT_MAX, GW_DTYPE_I32);
        assert_true(sum_of(gw_kernels_best(0), z, COUNT_MAX, GW_DTYPE_I32) == 2147483648.0);
    }
}

/* One value out of the ordinary, at each place, among values of about 1. */
static void sum_abs__is_infinite_with_infinity_and_nan_and_when_too_large(void **state)
{
    (void)state;
    static const struct {
        enum gw_dtype type;
        uint64_t bits;
    } rows[] = {
        {GW_DTYPE_F32, 0x7f800000},
        {GW_DTYPE_F32, 0xff800000},
        {GW_DTYPE_F32, 0x7f800001}, /* signalling */
        {GW_DTYPE_F32, 0xffc00001},
        {GW_DTYPE_F16, 0x7c00},
        {GW_DTYPE_F16, 0xfc00},
        {GW_DTYPE_F16, 0x7c01},
        {GW_DTYPE_F16, 0xfe01},
        {GW_DTYPE_BF16, 0x7f80},
        {GW_DTYPE_BF16, 0xff81},
        {GW_DTYPE_F64, UINT64_C(0x7ff0000000000000)},
        {GW_DTYPE_F64, UINT64_C(0xfff0000000000001)},
    };
    unsigned char x[COUNT_MAX * sizeof(double)];
    draw = gw_prng_derive(seed, 1);
    for (size_t r = 0; r < GW_COUNT_OF(rows); r++)
        for (uint32_t i = 0; i < COUNT_MAX; i++) {
            uint32_t size = gw_dtype_size(rows[r].type);
            fill(x, COUNT_MAX, rows[r].type, 1);
            memcpy(x + (size_t)i * size, &rows[r].bits, size);
            assert_sums(x, COUNT_MAX, rows[r].type);
            assert_true(sum_of(gw_kernels_best(0), x, COUNT_MAX, rows[r].type) > 0x1p1023);
        }
    float large[RIGHT_LANES + 1];
    for (uint32_t i = 0; i <= RIGHT_LANES; i++)
        large[i] = i % RIGHT_LANES ? 0 : 0x1.8p127f;
    assert_sums((const unsigned char *)large, RIGHT_LANES, GW_DTYPE_F32);
    assert_true(sum_of(gw_kernels_best(0), large, RIGHT_LANES, GW_DTYPE_F32) == 0x1.8p127);
    assert_sums((const unsigned char *)large, RIGHT_LANES + 1, GW_DTYPE_F32);
    assert_true(sum_of(gw_kernels_best(0), large, RIGHT_LANES + 1, GW_DTYPE_F32) > 0x1p1023);
}

/* Every number of the 16-bit types alone. */
static void sum_abs__of_one_value_is_its_magnitude(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        uint16_t half = (uint16_t)bits;
        assert_sums((const unsigned char *)&half, 1, GW_DTYPE_F16);
        assert_sums((const unsigned char *)&half, 1, GW_DTYPE_BF16);
    }
}

/* However many there are, at unlike addresses, and whether the last vector is full or not. */
static void sum_abs__of_several_rows_are_those_of_each(void **state)
{
    (void)state;
    enum { ROWS_MAX = 11 };
    static unsigned char rooms[ROWS_MAX][COUNT_MAX * sizeof(double) + ADDRESSES];
    draw = gw_prng_derive(seed, 2);
    for (size_t t = 0; t < GW_COUNT_OF(types); t++)
        for (uint32_t rows = 0; rows <= ROWS_MAX; rows++)
            for (uint32_t round = 0; round < ROUNDS; round++) {
                const void *x[ROWS_MAX];
                gw_real sums[ROWS_MAX + 1];
                uint32_t count = gw_prng_below(&draw, COUNT_MAX + 1);
                for (uint32_t row = 0; row < rows; row++) {
                    unsigned char *at = rooms[row] + gw_prng_below(&draw, ADDRESSES);
                    fill(at, count, types[t], (round + row) % 3);
                    x[row] = at;
                }
                for (size_t k = 0; k < here_count; k++) {
                    sums[rows] = -1;
                    here[k]->sum_abs[types[t]](sums, x, round % 2 ? x : NULL, rows, count);
                    assert_true(sums[rows] == -1);
                    for (uint32_t row = 0; row < rows; row++)
                        assert_true(bits_of_double(sums[row]) ==
                                    bits_of_double(reference(x[row], count, types[t])));
                }
            }
}

int main(void)
{
    here_count = kernels_here(here, KERNELS_MAX);
    here[here_count++] = &plain;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_abs__equals_sixteen_lanes_at_every_count_and_address),
        cmocka_unit_test(sum_abs__of_a_single_value_anywhere_is_its_magnitude),
        cmocka_unit_test(sum_abs__is_infinite_with_infinity_and_nan_and_when_too_large),
        cmocka_unit_test(sum_abs__of_one_value_is_its_magnitude),
        cmocka_unit_test(sum_abs__of_several_rows_are_those_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
