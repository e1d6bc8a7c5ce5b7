/* Scales: powers of two, integers, and the greatest one that is safe for given values. */
#include "core/quant/scale.h"

#include "base/assert.h"
#include "core/quant/number.h"

/* 2^exponent for an exponent that a double has. */
static double power_of_two(int exponent)
{
    return gw_f64_of_bits((uint64_t)(exponent + GW_F64_BIAS) << GW_F64_MANTISSA_BITS);
}

static struct gw_scale scale_of(double up, uint32_t shares)
{
    GW_ASSERT(shares >= 1 && shares <= GW_SCALE_SHARES_MAX);
    return (struct gw_scale){.up = up, .down = up * shares};
}

struct gw_scale gw_scale_power(int exponent, uint32_t shares)
{
    GW_ASSERT(exponent >= GW_SCALE_EXPONENT_MIN && exponent <= GW_SCALE_EXPONENT_MAX);
    return scale_of(power_of_two(exponent), shares);
}

struct gw_scale gw_scale_integer(uint32_t units, uint32_t shares)
{
    GW_ASSERT(units >= 1 && units <= GW_SCALE_INTEGER_MAX);
    return scale_of(units, shares);
}

struct gw_scale gw_scale_named(int exponent, uint32_t shares)
{
    return exponent == GW_SCALE_DECIMAL ? gw_scale_integer(GW_SCALE_DECIMAL_UNITS, shares)
                                        : gw_scale_power(exponent, shares);
}

/* The greatest t with product * 2^t <= limit; both are positive and below 2^57. */
static int greatest_shift(uint64_t product, uint64_t limit)
{
    int shift = __builtin_clzll(product) - __builtin_clzll(limit);
    uint64_t left = shift > 0 ? product << shift : product;
    uint64_t right = shift < 0 ? limit << -shift : limit;
    return left <= right ? shift : shift - 1;
}

int gw_scale_exponent_max(uint32_t abs_bits, uint32_t workers)
{
    const uint32_t sum_end = UINT32_C(1) << 31;
    const uint32_t least_normal = UINT32_C(1) << GW_F32_MANTISSA_BITS;
    GW_ASSERT(workers >= 1 && workers <= GW_SCALE_SHARES_MAX);
    /* Zero and denormal numbers: GW_SCALE_SHARES_MAX of them are below 2^-102, safe at any scale.
     */
    if (abs_bits < least_normal || abs_bits >= GW_F32_INFINITY)
        return GW_SCALE_EXPONENT_MAX;
    /* |x| is the significand times 2^(exponent - bits of the mantissa). */
    uint64_t significand = (abs_bits & (least_normal - 1)) | least_normal;
    int exponent = (int)(abs_bits >> GW_F32_MANTISSA_BITS) - GW_F32_BIAS;
    int shift = greatest_shift(significand * workers, sum_end - workers);
    int greatest = shift - exponent + GW_F32_MANTISSA_BITS;
    if (greatest > GW_SCALE_EXPONENT_MAX)
        return GW_SCALE_EXPONENT_MAX;
    return greatest < GW_SCALE_EXPONENT_MIN ? GW_SCALE_EXPONENT_MIN : greatest;
}

/* The product of a float32 and 10^8 is exact in double. The quotient is rounded, by far less than
 * the half unit per worker that the bound has to spare. */
bool gw_scale_decimal_is_safe(uint32_t abs_bits, uint32_t workers)
{
    const double sum_end = 2147483648.0;
    GW_ASSERT(workers >= 1 && workers <= GW_SCALE_SHARES_MAX);
    if (abs_bits >= GW_F32_INFINITY)
        return true;
    double x = (double)gw_f32_of_bits(abs_bits);
    return x * GW_SCALE_DECIMAL_UNITS <= (sum_end - workers) / workers;
}
