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

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The x87 unit computes with more bits than the types have; 16 is about narrower types only. */
_Static_assert(__FLT_EVAL_METHOD__ == 0 || __FLT_EVAL_METHOD__ == 16, "needs IEEE arithmetic");

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

#define GW_F64_INFINITY INT64_C(0x7ff0000000000000)
#define GW_F64_NAN      INT64_C(0x7ff8000000000000)

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

static inline uint64_t gw_u64_load(const unsigned char *from)
{
    uint64_t bits;
    memcpy(&bits, from, sizeof(bits));
    return bits;
}

static inline void gw_u64_store(unsigned char *to, uint64_t bits)
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

/* All ones or none, for the same reason as gw_select(). */
static inline uint32_t gw_mask(bool condition)
{
    return -(uint32_t)condition;
}

/* yes or no, in a form that compilers do not turn into a branch around what computes them. */
static inline uint32_t gw_select(bool condition, uint32_t yes, uint32_t no)
{
    return no ^ ((no ^ yes) & -(uint32_t)condition);
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

/*
 * The integer nearest to x, when |x| < 2^31; else, and for NaN, some integer. Adding 2^23 with the
 * sign of x pushes the fraction out of the mantissa; from there on a float32 has none.
 */
static inline int32_t gw_f32_to_integer(float x)
{
    const int32_t whole = (GW_F32_BIAS + GW_F32_MANTISSA_BITS) << GW_F32_MANTISSA_BITS; /* 2^23 */
    uint32_t bits = gw_f32_bits(x), sign = bits & ~(uint32_t)INT32_MAX;
    uint32_t is_whole = gw_mask((int32_t)(bits & INT32_MAX) > whole - 1);
    float shifter = gw_f32_of_bits((sign | (uint32_t)whole) & ~is_whole);
    return (int32_t)((x + shifter) - shifter);
}

/*
 * The same when x has at most 12 significant bits, as the 16-bit types have: from 2^22 on it is a
 * multiple of 2^11, the sum is below 2^32, and so it is exact.
 */
static inline int32_t gw_f32_short_to_integer(float x)
{
    const float shifter = 0x1.8p23f;
    return (int32_t)((x + shifter) - shifter);
}

/* The same when x is an integer. */
static inline int32_t gw_f32_whole_to_integer(float x)
{
    return (int32_t)x;
}

/* Is x, a positive number, a power of two? */
static inline bool gw_f64_is_power(double x)
{
    return gw_f64_bits(x) << (64 - GW_F64_MANTISSA_BITS) == 0;
}

static inline void gw_i32_store(unsigned char *to, double x)
{
    gw_u32_store(to, (uint32_t)gw_f64_to_integer(x));
}

static inline float gw_f32_load(const unsigned char *from)
{
    return gw_f32_of_bits(gw_u32_load(from));
}

static inline float gw_bf16_load(const unsigned char *from)
{
    return gw_f32_of_bits((uint32_t)gw_u16_load(from) << 16);
}

static inline float gw_f16_load(const unsigned char *from)
{
    const int widen = GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS;
    const int32_t rebias = (GW_F32_BIAS - GW_F16_BIAS) << GW_F32_MANTISSA_BITS;
    const int32_t normal_min = 1 << GW_F16_MANTISSA_BITS;
    int32_t bits = gw_u16_load(from);
    int32_t magnitude = bits & 0x7fff;
    /* Infinity and NaN have an exponent of all ones in the wider format too. */
    int32_t beyond = -(magnitude >= GW_F16_INFINITY) & rebias;
    uint32_t normal = (uint32_t)((magnitude << widen) + rebias + beyond);
    uint32_t denormal = gw_f32_bits((float)magnitude * 0x1p-24f);
    uint32_t wide = gw_select(magnitude < normal_min, denormal, normal);
    return gw_f32_of_bits(wide | (uint32_t)(bits & 0x8000) << 16);
}

/*
 * The same for finite numbers, faster where denormal operands are: a float16's bits in the places
 * that they have in a float32 are the number times 2^-112, be it denormal or not. Of infinity and
 * NaN it makes some number of at least 2^16 in magnitude.
 */
static inline float gw_f16_load_finite(const unsigned char *from)
{
    const int widen = GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS;
    const uint32_t places = UINT32_C(0x8fffe000);
    int32_t bits = (int16_t)gw_u16_load(from);
    return gw_f32_of_bits((uint32_t)bits << widen & places) * 0x1p112f;
}

static inline void gw_f32_store(unsigned char *to, double x)
{
    uint32_t bits = gw_f32_bits((float)x);
    gw_u32_store(to, gw_select((int32_t)(bits & INT32_MAX) > GW_F32_INFINITY, GW_F32_NAN, bits));
}

static inline double gw_f64_load(const unsigned char *from)
{
    return gw_f64_of_bits(gw_u64_load(from));
}

static inline void gw_f64_store(unsigned char *to, double x)
{
    uint64_t bits = gw_f64_bits(x);
    uint64_t is_nan = -(uint64_t)((int64_t)(bits & INT64_MAX) > GW_F64_INFINITY);
    gw_u64_store(to, bits ^ ((bits ^ GW_F64_NAN) & is_nan));
}

/*
 * x with 24 significant bits, the last one set if any of the bits cut off was (rounded "to odd").
 * To round that again to less than 23 bits is to round x.
 */
static inline double gw_f64_to_odd(double x)
{
    const uint64_t last = UINT64_C(1) << (GW_F64_MANTISSA_BITS - GW_F32_MANTISSA_BITS);
    uint64_t bits = gw_f64_bits(x);
    uint64_t any = ((bits & (last - 1)) + (last - 1)) & last;
    return gw_f64_of_bits((bits & ~(last - 1)) | any);
}

/*
 * The same of v, only that more is cut off where 24 bits do not suffice: 7 bits. A number of less
 * than 16 bits that lies between two neighbours, or a tie, is no multiple of 2^7 either.
 */
static inline float gw_i32_to_odd(int32_t v)
{
    const int32_t end = 1 << 24;
    int32_t cut =
        gw_mask((int32_t)((uint32_t)v + end + INT32_MIN) > INT32_MIN + 2 * end - 1) & 0x7f;
    int32_t any = (v & cut) + cut; /* bit 7 is set if any of the bits cut off is */
    return (float)((v | any) & ~cut);
}

/* Cuts off the low bits, to nearest with ties to even. */
static inline uint32_t gw_round_off(uint32_t bits, int count)
{
    uint32_t even = (bits >> count) & 1;
    return (bits + (UINT32_C(1) << count >> 1) - 1 + even) >> count;
}

/*
 * 16 bits without sign and the sign of a float32. They join in the upper half: of an "or" in the
 * lower half compilers narrow both operands instead of the result.
 */
static inline uint32_t gw_half_with_sign(uint32_t magnitude, uint32_t f32_bits)
{
    return (magnitude << 16 | (f32_bits & ~(uint32_t)INT32_MAX)) >> 16;
}

/* The float16 nearest to a positive number that was rounded to odd, given as the bits of a float32.
 */
static inline uint32_t gw_f16_round(uint32_t magnitude)
{
    const int32_t overflow = (GW_F32_BIAS + GW_F16_BIAS + 1) << GW_F32_MANTISSA_BITS;
    const int32_t rebias = (GW_F32_BIAS - GW_F16_BIAS) << GW_F32_MANTISSA_BITS;
    const int32_t least = rebias + (1 << GW_F32_MANTISSA_BITS);
    const float shifter = 0x1p-1f; /* its last bit is the last bit of a denormal float16 */
    /* Infinity has the bits that the number 2^16 would have. Comparisons are of signed numbers,
     * which vectors have. */
    int32_t bits = (int32_t)gw_select((int32_t)magnitude < overflow, magnitude, overflow);
    uint32_t normal =
        gw_round_off((uint32_t)(bits - rebias), GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS);
    uint32_t denormal = gw_f32_bits(gw_f32_of_bits(magnitude) + shifter) - gw_f32_bits(shifter);
    return gw_select(bits < least, denormal, normal);
}

/* The same of either sign; not for NaN. */
static inline void gw_f16_store_odd(unsigned char *to, float odd)
{
    uint32_t bits = gw_f32_bits(odd);
    gw_u16_store(to, gw_half_with_sign(gw_f16_round(bits & INT32_MAX), bits));
}

/*
 * Rounds a number that is a float32 already, as gw_bf16_store_f32() does. That gives the same as
 * rounding the exact number when it was rounded to odd, and when it is the float32 sum of two
 * numbers of the narrower type: 24 bits are twice as many as those have, and two more (Figueroa,
 * SIGNUM Newsletter 30(3), 1995).
 */
static inline void gw_f16_store_f32(unsigned char *to, double x)
{
    uint32_t bits = gw_f32_bits((float)x), magnitude = bits & INT32_MAX;
    uint32_t result = gw_half_with_sign(gw_f16_round(magnitude), bits);
    gw_u16_store(to, gw_select((int32_t)magnitude > GW_F32_INFINITY, GW_F16_NAN, result));
}

static inline void gw_f16_store(unsigned char *to, double x)
{
    gw_f16_store_f32(to, gw_f64_to_odd(x));
}

static inline void gw_bf16_store_f32(unsigned char *to, double x)
{
    uint32_t bits = gw_f32_bits((float)x);
    uint32_t result = gw_round_off(bits, GW_F32_MANTISSA_BITS - GW_BF16_MANTISSA_BITS);
    gw_u16_store(to, gw_select((int32_t)(bits & INT32_MAX) > GW_F32_INFINITY, GW_BF16_NAN, result));
}

static inline void gw_bf16_store(unsigned char *to, double x)
{
    const double lift = 0x1p100;    /* so that a denormal number is normal in a float32 */
    const float shifter = 0x1p-10f; /* its last bit is that of a denormal bfloat16, lifted */
    const int32_t least = 1 << GW_F32_MANTISSA_BITS;
    double odd = gw_f64_to_odd(x);
    uint32_t bits = gw_f32_bits((float)odd);
    uint32_t lifted = gw_f32_bits((float)(odd * lift)) & INT32_MAX;
    uint32_t magnitude = bits & INT32_MAX;
    uint32_t denormal = gw_f32_bits(gw_f32_of_bits(lifted) + shifter) - gw_f32_bits(shifter);
    uint32_t normal = gw_round_off(magnitude, GW_F32_MANTISSA_BITS - GW_BF16_MANTISSA_BITS);
    uint32_t result = gw_select((int32_t)magnitude < least, denormal, normal);
    result = gw_half_with_sign(result, bits);
    gw_u16_store(to, gw_select((int32_t)magnitude > GW_F32_INFINITY, GW_BF16_NAN, result));
}

/*
 * As the functions above do with x = v * unit, where unit is a power of two as 1 / down of a scale
 * may be, 2^-134 to 2^110. Faster, because a float32 is wide enough on the way: a product that is
 * denormal comes from |v| < 2^8 and is exact.
 */
static inline void gw_f32_store_units(unsigned char *to, int32_t v, float unit)
{
    gw_u32_store(to, gw_f32_bits((float)v * unit));
}

static inline void gw_bf16_store_units(unsigned char *to, int32_t v, float unit)
{
    uint32_t bits = gw_f32_bits(gw_i32_to_odd(v) * unit);
    gw_u16_store(to, gw_round_off(bits, GW_F32_MANTISSA_BITS - GW_BF16_MANTISSA_BITS));
}

/* A float32 rounded to odd on the way to a float16. */
static inline void gw_f32_store_odd(unsigned char *to, double x)
{
    gw_u32_store(to, gw_f32_bits((float)gw_f64_to_odd(x)));
}

static inline void gw_f32_store_odd_units(unsigned char *to, int32_t v, float unit)
{
    gw_u32_store(to, gw_f32_bits(gw_i32_to_odd(v) * unit));
}

#endif
