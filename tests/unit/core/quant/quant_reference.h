/*
 * The arithmetic of src/core/quant once more, slowly: numbers as integers times powers of two, one
 * at a time, without a floating-point operation. What kernels give is compared with this.
 */
#ifndef GW_TESTS_QUANT_REFERENCE_H
#define GW_TESTS_QUANT_REFERENCE_H

#include "support.h"

#include <stdbool.h>

#include "base/cpu.h"
#include "base/prng.h"
#include "core/quant/kernels.h"

typedef unsigned __int128 uint128;

struct format {
    int mantissa; /* bits */
    int exponent; /* bits */
};

static const struct format format_f64 = {52, 11};

/* Of the types enum gw_dtype, floats only. */
static const struct format formats[GW_DTYPE_FLOATS] = {{23, 8}, {10, 5}, {7, 8}};

/* A number: (-1)^negative * (significand + a bit more if `more`) * 2^exponent. */
struct exact {
    uint128 significand;
    int exponent;
    bool negative;
    bool more;   /* more than 0 and less than 1 */
    bool finite; /* else infinity, or NaN if the significand is not 0 */
};

static inline int bias_of(struct format format)
{
    return (1 << (format.exponent - 1)) - 1;
}

static inline struct exact exact_of_bits(uint64_t bits, struct format format)
{
    uint64_t fraction = bits & ((UINT64_C(1) << format.mantissa) - 1);
    int exponent = (int)(bits >> format.mantissa) & ((1 << format.exponent) - 1);
    bool normal = exponent != 0, finite = exponent != (1 << format.exponent) - 1;
    if (normal && finite)
        fraction |= UINT64_C(1) << format.mantissa;
    return (struct exact){
        .significand = fraction,
        .exponent = (normal ? exponent : 1) - bias_of(format) - format.mantissa,
        .negative = bits >> (format.mantissa + format.exponent) & 1,
        .finite = finite,
    };
}

static inline struct exact exact_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return exact_of_bits(bits, format_f64);
}

static inline struct exact exact_of_integer(int64_t v)
{
    return (struct exact){
        .significand = v < 0 ? -(uint128)v : (uint128)v, .negative = v < 0, .finite = true};
}

static inline int length_of(uint128 x)
{
    int length = 0;
    for (; x; x >>= 1)
        length++;
    return length;
}

/* significand * 2^-drop to the nearest integer, ties to even. What is shifted to the left fits. */
static inline uint128 round_shift(struct exact x, int drop)
{
    if (drop <= 0)
        return x.significand << -drop;
    if (drop > 127)
        return 0;
    uint128 kept = x.significand >> drop, half = (uint128)1 << (drop - 1);
    uint128 rest = x.significand & (2 * half - 1);
    bool up = rest > half || (rest == half && (x.more || (kept & 1)));
    return kept + up;
}

/* The bits of the nearest number of a format; every NaN is the positive quiet one. */
static inline uint64_t bits_of_exact(struct exact x, struct format format)
{
    uint64_t infinity = ((UINT64_C(1) << format.exponent) - 1) << format.mantissa;
    uint64_t sign = (uint64_t)x.negative << (format.mantissa + format.exponent), bits = 0;
    if (!x.finite)
        return x.significand ? infinity | (UINT64_C(1) << (format.mantissa - 1)) : infinity | sign;
    if (x.significand) {
        int lead = x.exponent + length_of(x.significand) - 1, least = 1 - bias_of(format);
        if (lead > bias_of(format))
            return infinity | sign;
        lead = lead > least ? lead : least;
        uint128 kept = round_shift(x, lead - format.mantissa - x.exponent);
        /* The leading bit adds the one that the exponent lacks; a carry out of it is right too. */
        bits = (uint64_t)kept + ((uint64_t)(lead - least) << format.mantissa);
    }
    return (bits < infinity ? bits : infinity) | sign;
}

/* x / divisor, to at least 60 bits and `more`; the divisor's significand has at most 64. */
static inline struct exact exact_divide(struct exact x, struct exact divisor)
{
    const int widen = 127 - length_of(x.significand);
    while (divisor.significand % 2 == 0) {
        divisor.significand /= 2;
        divisor.exponent++;
    }
    uint128 numerator = x.significand << widen;
    x.more = numerator % divisor.significand != 0;
    x.significand = numerator / divisor.significand;
    x.exponent -= widen + divisor.exponent;
    return x;
}

/* The integer nearest to x * up as a fragment has it. False: it is no value. */
static inline bool reference_quantise(struct exact x, double up, int32_t *q)
{
    struct exact scale = exact_of_double(up);
    x.significand *= scale.significand;
    x.exponent += scale.exponent;
    *q = 0;
    if (x.finite && !x.significand)
        return true;
    if (!x.finite || length_of(x.significand) + x.exponent > 33)
        return false;
    int64_t magnitude = (int64_t)round_shift(x, -x.exponent);
    int64_t rounded = x.negative ? -magnitude : magnitude;
    *q = (int32_t)rounded;
    return rounded > INT32_MIN && rounded < INT32_MAX;
}

/* v / down rounded once, or first to a double as the kernels do. */
static inline uint64_t reference_dequantise(int32_t v, double down, struct format format, bool once)
{
    struct exact quotient = exact_divide(exact_of_integer(v), exact_of_double(down));
    if (!once)
        quotient = exact_of_bits(bits_of_exact(quotient, format_f64), format_f64);
    return bits_of_exact(quotient, format);
}

/* Element `i` of an array of 16-bit or 32-bit elements. */
static inline uint32_t element(const void *array, size_t i, size_t size)
{
    uint16_t half;
    uint32_t word;
    const unsigned char *at = (const unsigned char *)array + i * size;
    if (size == sizeof(half)) {
        memcpy(&half, at, sizeof(half));
        return half;
    }
    memcpy(&word, at, sizeof(word));
    return word;
}

/* Those that this processor can run; the portable one last. */
static inline size_t kernels_here(const struct gw_kernels *here[], size_t max)
{
    size_t count = 0;
    for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++)
        if (!((*k)->needs & ~gw_cpu_features())) {
            assert_true(count < max);
            here[count++] = *k;
        }
    return count;
}

enum { KERNELS_MAX = 8 };

#endif
