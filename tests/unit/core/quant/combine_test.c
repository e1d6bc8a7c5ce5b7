/*
 * Every operation on every type is compared with integer arithmetic, for all kernels, at any count
 * and address; swapping the operands changes nothing, and nothing but the output is written.
 */
#include "quant_reference.h"

#include "core/quant/combine.h"

enum {
    COUNT_MAX = 100,
    SLACK = 64, /* guard bytes on each side, and room for odd addresses */
    ROOM = COUNT_MAX * 8 + 2 * SLACK,
    GUARD = 0xa5,
    ROUNDS = 400,
};

static const uint64_t seed = 16;

static struct gw_prng draw;

static const struct gw_kernels *here[KERNELS_MAX];
static size_t here_count;

/* Numbers of which results are told apart: zeros, ends, infinities, NaNs, ones, their neighbours.
 */
static const uint64_t specials[GW_DTYPES][12] = {
    [GW_DTYPE_F32] = {0, 0x80000000, 1, 0x80000001, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
                      0x7f800000, 0xff800000, 0x7f800001, 0xffffffff},
    [GW_DTYPE_F16] = {0, 0x8000, 1, 0x8001, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01,
                      0xffff},
    [GW_DTYPE_BF16] = {0, 0x8000, 1, 0x8001, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81,
                       0xffff},
    [GW_DTYPE_I32] = {0, 1, 0xffffffff, 2, 0xfffffffe, 0x7fffffff, 0x80000000, 0x80000001,
                      0x40000000, 0xc0000000, 46340, 46341},
    [GW_DTYPE_F64] = {0, UINT64_C(1) << 63, 1, UINT64_C(1) << 63 | 1, UINT64_C(0x3ff) << 52,
                      UINT64_C(0xbff) << 52, UINT64_C(0x7fefffffffffffff),
                      UINT64_C(0xffefffffffffffff), UINT64_C(0x7ff) << 52, UINT64_C(0xfff) << 52,
                      (UINT64_C(0x7ff) << 52) + 1, UINT64_MAX},
    [GW_DTYPE_I64] = {0, 1, UINT64_MAX, 2, UINT64_MAX - 1, INT64_MAX, UINT64_C(1) << 63,
                      (UINT64_C(1) << 63) + 1, UINT64_C(1) << 62, UINT64_C(3) << 62,
                      UINT64_C(3037000499), UINT64_C(3037000500)},
    [GW_DTYPE_U8] = {0, 1, 2, 3, 15, 16, 17, 127, 128, 129, 254, 255},
};

static struct format format_of(enum gw_dtype type)
{
    return type == GW_DTYPE_F64 ? format_f64 : formats[type];
}

static int64_t integer_of(uint64_t bits, enum gw_dtype type)
{
    return type == GW_DTYPE_I32  ? (int32_t)bits
           : type == GW_DTYPE_U8 ? (uint8_t)bits
                                 : (int64_t)bits;
}

static double real_of(uint64_t bits, enum gw_dtype type)
{
    uint64_t wide = bits_of_exact(exact_of_bits(bits, format_of(type)), format_f64);
    double x;
    memcpy(&x, &wide, sizeof(x));
    return x;
}

/* Sums are added and divided in double, as is said; all else needs no floating point. */
static uint64_t combine_floats(uint64_t a, uint64_t b, const struct gw_combination *how)
{
    struct format format = format_of(how->type);
    struct exact x = exact_of_bits(a, format), y = exact_of_bits(b, format);
    bool is_x = x.negative != y.negative ? x.negative : (a < b) != x.negative;
    bool x_infinite = !x.finite && !x.significand, y_infinite = !y.finite && !y.significand;
    const struct exact nan = {.significand = 1};
    switch (how->op) {
    case GW_OP_PRODUCT:
        if ((x_infinite && (y_infinite || (y.finite && y.significand))) ||
            (y_infinite && x.finite && x.significand))
            return bits_of_exact((struct exact){.negative = x.negative != y.negative}, format);
        if (!x.finite || !y.finite)
            return bits_of_exact(nan, format);
        x.significand *= y.significand;
        x.exponent += y.exponent;
        x.negative ^= y.negative;
        return bits_of_exact(x, format);
    case GW_OP_MIN:
    case GW_OP_MAX:
        if ((!x.finite && x.significand) || (!y.finite && y.significand))
            return bits_of_exact(nan, format);
        return is_x == (how->op == GW_OP_MIN) ? a : b;
    default:
        return bits_of_exact(
            exact_of_double((real_of(a, how->type) + real_of(b, how->type)) / how->shares), format);
    }
}

/* False: it does not fit. */
static bool combine_integers(uint64_t a, uint64_t b, const struct gw_combination *how,
                             uint64_t *result)
{
    static const int64_t least[] = {
        [GW_DTYPE_I32] = INT32_MIN, [GW_DTYPE_I64] = INT64_MIN, [GW_DTYPE_U8] = 0};
    static const int64_t most[] = {
        [GW_DTYPE_I32] = INT32_MAX, [GW_DTYPE_I64] = INT64_MAX, [GW_DTYPE_U8] = UINT8_MAX};
    __int128 x = integer_of(a, how->type), y = integer_of(b, how->type), r;
    switch (how->op) {
    case GW_OP_PRODUCT:
        r = x * y;
        break;
    case GW_OP_MIN:
        r = x < y ? x : y;
        break;
    case GW_OP_MAX:
        r = x < y ? y : x;
        break;
    default:
        r = x + y;
    }
    bool fits = r >= least[how->type] && r <= most[how->type];
    if (how->op == GW_OP_AVERAGE && fits) { /* to the nearest, ties to even */
        __int128 n = how->shares, twice = 2 * r, down = (twice + n) / (2 * n);
        down -= (twice + n) % (2 * n) < 0;
        r = down - ((twice + n) % (2 * n) == 0 && down % 2 != 0);
    }
    *result = (uint64_t)r;
    return fits;
}

static uint64_t number_at(const unsigned char *at, uint32_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, at, size); /* of the lower bytes: tests run on little-endian machines */
    return bits;
}

static bool reference(const struct gw_combination *how, unsigned char *x, const unsigned char *y,
                      uint32_t count)
{
    uint32_t size = gw_dtype_size(how->type);
    bool fits = true;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t a = number_at(x + size * i, size), b = number_at(y + size * i, size), r;
        if (gw_dtype_is_float(how->type))
            r = combine_floats(a, b, how);
        else
            fits &= combine_integers(a, b, how, &r);
        memcpy(x + size * i, &r, size);
    }
    return fits;
}

/* Compares all kernels with the reference, and with swapped operands. */
static void check(const struct gw_combination *how, const unsigned char *x, const unsigned char *y,
                  uint32_t count)
{
    unsigned char wanted[ROOM], found[ROOM], other[ROOM];
    uint32_t bytes = count * gw_dtype_size(how->type), shift = count % 8;
    memcpy(wanted, x, bytes);
    bool fits = reference(how, wanted, y, count);
    for (size_t k = 0; k < here_count; k++)
        for (uint32_t is_swapped = 0; is_swapped < 2; is_swapped++) {
            memset(found, GUARD, sizeof(found));
            memcpy(found + SLACK + shift, is_swapped ? y : x, bytes);
            memcpy(other + 1, is_swapped ? x : y, bytes);
            if (gw_combine(here[k], how, found + SLACK + shift, other + 1, count) != fits)
                fail_msg("op %d, type %d: %s says %d", how->op, how->type, here[k]->name, !fits);
            for (uint32_t i = 0; i < SLACK + shift; i++)
                assert_int_equal(found[i], GUARD);
            for (uint32_t i = SLACK + shift + bytes; i < sizeof(found); i++)
                assert_int_equal(found[i], GUARD);
            if (fits)
                assert_memory_equal(found + SLACK + shift, wanted, bytes);
        }
}

static void check_all(enum gw_dtype type, const unsigned char *x, const unsigned char *y,
                      uint32_t count)
{
    for (uint32_t op = 0; op < GW_OPS; op++) {
        struct gw_combination how = {(enum gw_op)op, type, op == GW_OP_AVERAGE ? 1 + count % 5 : 1};
        if (gw_op_exists(how.op, type))
            check(&how, x, y, count);
    }
}

static void combine__is_exact_for_special_numbers(void **state)
{
    (void)state;
    enum { SPECIALS = GW_COUNT_OF(specials[0]) };
    for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPES; type++)
        for (uint32_t i = 0; i < SPECIALS; i++)
            for (uint32_t j = 0; j < SPECIALS; j++)
                check_all(type, (const unsigned char *)&specials[type][i],
                          (const unsigned char *)&specials[type][j], 1);
}

/* Random bits, and numbers of about the same magnitude, of which more integers fit and more floats
 * round. */
static void combine__is_exact_for_random_numbers(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPES; type++) {
            uint64_t x[COUNT_MAX], y[COUNT_MAX];
            for (uint32_t i = 0; i < COUNT_MAX; i++) {
                x[i] = gw_prng_next(&draw);
                y[i] = gw_prng_next(&draw);
            }
            uint32_t size = gw_dtype_size(type);
            for (uint32_t i = 0; round % 4 && i < COUNT_MAX; i++) {
                unsigned char *a = (unsigned char *)x + i * size,
                              *b = (unsigned char *)y + i * size;
                uint64_t one = number_at(a, size), other = number_at(b, size);
                uint32_t lower = 8 * size - 6;
                if (gw_dtype_is_float(type))
                    other ^= (other ^ one) >> lower << lower;
                for (uint32_t k = 0; !gw_dtype_is_float(type) && k < round % 4; k++) {
                    one = (uint64_t)(integer_of(one, type) / (1 << 2 * size));
                    other = (uint64_t)(integer_of(other, type) / (1 << 2 * size));
                }
                memcpy(a, &one, size);
                memcpy(b, &other, size);
            }
            check_all(type, (const unsigned char *)x, (const unsigned char *)y,
                      round % (COUNT_MAX + 1));
        }
}

/* Each 16-bit float with others: with any, and with some whose product is about the least bfloat16.
 */
static void combine__is_exact_for_all_16_bit_floats(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 13; round++)
        for (uint32_t first = 0; first <= UINT16_MAX; first += COUNT_MAX) {
            uint16_t x[COUNT_MAX], y[COUNT_MAX];
            for (uint32_t i = 0; i < COUNT_MAX; i++) {
                uint32_t exponent = 118 + round % 4 - ((first + i) >> 7 & 0xff);
                x[i] = (uint16_t)(first + i);
                y[i] = (uint16_t)gw_prng_next(&draw);
                if (round && exponent < 0xff)
                    y[i] = (uint16_t)((y[i] & 0x807f) | exponent << 7);
            }
            const struct gw_combination how = {GW_OP_PRODUCT, GW_DTYPE_BF16, 1};
            check(&how, (const unsigned char *)x, (const unsigned char *)y, COUNT_MAX);
            if (round)
                continue;
            check_all(GW_DTYPE_F16, (const unsigned char *)x, (const unsigned char *)y, COUNT_MAX);
            check_all(GW_DTYPE_BF16, (const unsigned char *)x, (const unsigned char *)y, COUNT_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combine__is_exact_for_special_numbers),
        cmocka_unit_test(combine__is_exact_for_random_numbers),
        cmocka_unit_test(combine__is_exact_for_all_16_bit_floats),
    };
    here_count = kernels_here(here, GW_COUNT_OF(here));
    draw = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
