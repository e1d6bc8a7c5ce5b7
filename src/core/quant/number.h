/*
 * Single numbers: loads and stores at any address, the formats' bits, and rounding to them.
 *
 * All is branch-free, so that loops over it vectorise, and exact or correctly rounded (to nearest,
 * ties to even) as long as the processor rounds so, which is its default, and keeps denormals.
 * Nothing here depends on what a compiler may do differently, so every build gives the same bits:
 * a NaN that is stored is always the positive quiet one without a payload.
 *
 * Floats are in the byte order of the machine, integers of a fragment in little-endian order.
 */
#ifndef GW_CORE_NUMBER_H
#define GW_CORE_NUMBER_H

#include <stdint.h>
#include <string.h>

enum {
    GW_F32_MANTISSA_BITS = 23,
    GW_F32_BIAS = 127,
    GW_F64_MANTISSA_BITS = 52,
    GW_F64_BIAS = 1023,
    GW_F16_MANTISSA_BITS = 10,
    GW_BF16_MANTISSA_BITS = 7,
    GW_F16_BIAS = 15,
    GW_F16_INFINITY = 0x7c00,
    GW_BF16_INFINITY = 0x7f80,
    GW_F32_INFINITY = 0x7f800000,
    GW_F16_NAN = 0x7e00,
    GW_BF16_NAN = 0x7fc0,
    GW_F32_NAN = 0x7fc00000,
};

static inline float gw_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint32_t gw_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline double gw_f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint64_t gw_f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline uint16_t gw_u16_load(const unsigned char *from)
{
    uint16_t bits;
    memcpy(&bits, from, sizeof(bits));
    return bits;
}

static inline void gw_u16_store(unsigned char *to, uint32_t low)
{
    uint16_t bits = (uint16_t)low;
    memcpy(to, &bits, sizeof(bits));
}

static inline uint32_t gw_u32_load(const unsigned char *from)
{
    uint32_t bits;
    memcpy(&bits, from, sizeof(bits));
    return bits;
}

static inline void gw_u32_store(unsigned char *to, uint32_t bits)
{
    memcpy(to, &bits, sizeof(bits));
}

/* An integer of a fragment. */
static inline int32_t gw_wire_load(const unsigned char *from)
{
    uint32_t bits = gw_u32_load(from);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap32(bits);
#endif
    return (int32_t)bits;
}

static inline void gw_wire_store(unsigned char *to, uint32_t bits)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap32(bits);
#endif
    gw_u32_store(to, bits);
}

/*
 * The integer nearest to x, when |x| < 2^51; else, and for NaN, some number of at least 2^33 in
 * magnitude. Adding 1.5 * 2^52 pushes the fraction out of the mantissa, which is then the integer.
 */
static inline int64_t gw_f64_to_integer(double x)
{
    const double shifter = 0x1.8p52;
    return (int64_t)(gw_f64_bits(x + shifter) - gw_f64_bits(shifter));
}

static inline double gw_f32_load(const unsigned char *from)
{
    return gw_f32_of_bits(gw_u32_load(from));
}

static inline double gw_bf16_load(const unsigned char *from)
{
    return gw_f32_of_bits((uint32_t)gw_u16_load(from) << 16);
}

static inline double gw_f16_load(const unsigned char *from)
{
    const int widen = GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS;
    const int32_t rebias = (GW_F32_BIAS - GW_F16_BIAS) << GW_F32_MANTISSA_BITS;
    const int32_t normal_min = 1 << GW_F16_MANTISSA_BITS;
    int32_t bits = gw_u16_load(from);
    int32_t magnitude = bits & 0x7fff;
    int32_t exact = (magnitude << widen) + rebias;
    /* Infinity and NaN: the exponent becomes all ones in the wider format too. */
    exact += magnitude >= GW_F16_INFINITY ? rebias : 0;
    int32_t denormal = (int32_t)gw_f32_bits((float)magnitude * 0x1p-24f);
    uint32_t wide = (uint32_t)(magnitude < normal_min ? denormal : exact);
    return gw_f32_of_bits(wide | (uint32_t)(bits & 0x8000) << 16);
}

/*
 * Rounds a magnitude to a format with `precision` significant bits whose least normal number is
 * `least`. Added to a power of two that is so much larger, the bits below the format's drop out;
 * below `least` the position of the last bit stays. Infinity, NaN and magnitudes near the end of
 * double give NaN.
 */
static inline double gw_f64_round(double magnitude, double least, int precision)
{
    const uint64_t exponent = UINT64_C(0x7ff) << GW_F64_MANTISSA_BITS;
    const int bits = GW_F64_MANTISSA_BITS + 1 - precision;
    double large = magnitude > least ? magnitude : least;
    double shifter =
        gw_f64_of_bits(gw_f64_bits(large) & exponent) * (double)(UINT64_C(1) << bits);
    return (magnitude + shifter) - shifter;
}

static inline void gw_f32_store(unsigned char *to, double x)
{
    uint32_t bits = gw_f32_bits((float)x);
    gw_u32_store(to, x == x ? bits : GW_F32_NAN);
}

static inline void gw_bf16_store(unsigned char *to, double x)
{
    const double overflow = 0x1.ffp127; /* half way from the largest number to the next */
    uint64_t sign = gw_f64_bits(x) >> 63;
    double magnitude = gw_f64_of_bits(gw_f64_bits(x) << 1 >> 1);
    float rounded = (float)gw_f64_round(magnitude, 0x1p-126, GW_BF16_MANTISSA_BITS + 1);
    uint32_t bits = gw_f32_bits(rounded) >> 16;
    bits = magnitude < overflow ? bits : GW_BF16_INFINITY;
    bits |= (uint32_t)sign << 15;
    gw_u16_store(to, x == x ? bits : GW_BF16_NAN);
}

static inline void gw_f16_store(unsigned char *to, double x)
{
    const double overflow = 65520; /* half way from the largest number to the next */
    const double least = 0x1p-14;
    const int narrow = GW_F64_MANTISSA_BITS - GW_F16_MANTISSA_BITS;
    const uint32_t rebias = (GW_F64_BIAS - GW_F16_BIAS) << GW_F16_MANTISSA_BITS;
    uint64_t sign = gw_f64_bits(x) >> 63;
    double magnitude = gw_f64_of_bits(gw_f64_bits(x) << 1 >> 1);
    double rounded = gw_f64_round(magnitude, least, GW_F16_MANTISSA_BITS + 1);
    uint32_t normal = (uint32_t)(gw_f64_bits(rounded) >> narrow) - rebias;
    /* With the least normal number added, a denormal's mantissa is in place: one exponent less. */
    uint32_t denormal = (uint32_t)(gw_f64_bits(rounded + least) >> narrow) - rebias -
                        (UINT32_C(1) << GW_F16_MANTISSA_BITS);
    uint32_t bits = rounded < least ? denormal : normal;
    bits = magnitude < overflow ? bits : GW_F16_INFINITY;
    bits |= (uint32_t)sign << 15;
    gw_u16_store(to, x == x ? bits : GW_F16_NAN);
}

#endif
