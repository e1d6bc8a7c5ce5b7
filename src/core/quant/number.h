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
    /* Infinity and NaN have an exponent of all ones in the wider format too. */
    int32_t beyond = -(magnitude >= GW_F16_INFINITY) & rebias;
    uint32_t normal = (uint32_t)((magnitude << widen) + rebias + beyond);
    uint32_t denormal = gw_f32_bits((float)magnitude * 0x1p-24f);
    uint32_t wide = gw_select(magnitude < normal_min, denormal, normal);
    return gw_f32_of_bits(wide | (uint32_t)(bits & 0x8000) << 16);
}

static inline void gw_f32_store(unsigned char *to, double x)
{
    uint32_t bits = gw_f32_bits((float)x);
    gw_u32_store(to, gw_select((int32_t)(bits & INT32_MAX) > GW_F32_INFINITY, GW_F32_NAN, bits));
}

/*
 * x with 24 significant bits, the last one set if any of the bits cut off was (rounded "to odd"). To
 * round that again to less than 23 bits is to round x.
 */
static inline double gw_f64_to_odd(double x)
{
    const uint64_t last = UINT64_C(1) << (GW_F64_MANTISSA_BITS - GW_F32_MANTISSA_BITS);
    uint64_t bits = gw_f64_bits(x);
    uint64_t any = ((bits & (last - 1)) + (last - 1)) & last;
    return gw_f64_of_bits((bits & ~(last - 1)) | any);
}

/* The same of an integer. One of less than 24 bits stays; of a longer one 7 bits may be cut off. */
static inline float gw_i32_to_odd(int32_t v)
{
    const uint32_t last = 1 << 7;
    uint32_t sign = v < 0 ? UINT32_MAX : 0;
    uint32_t magnitude = ((uint32_t)v ^ sign) - sign;
    uint32_t any = ((magnitude & (last - 1)) + (last - 1)) & last;
    uint32_t cut = (magnitude & ~(last - 1)) | any;
    uint32_t odd = gw_select(magnitude < UINT32_C(1) << 24, magnitude, cut);
    return (float)(int32_t)((odd ^ sign) - sign);
}

/* A floating-point format of 16 bits, and how to round to it. */
struct gw_format16 {
    int shift;         /* bits of a float32's mantissa that it lacks */
    uint32_t rebias;   /* difference of the exponents' biases, in place in a float32 */
    uint32_t overflow; /* least float32, as bits, that is infinite without looking further */
    float lift;        /* makes denormal numbers normal in a float32 */
    float shifter;     /* a float32 whose last bit is that of a denormal number, lifted */
    uint32_t infinity;
    uint32_t nan;
};

#define GW_FORMAT16_F16                                                                            \
    ((struct gw_format16){                                                                         \
        .shift = GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS,                                      \
        .rebias = (GW_F32_BIAS - GW_F16_BIAS) << GW_F32_MANTISSA_BITS,                             \
        .overflow = (GW_F32_BIAS + GW_F16_BIAS + 1) << GW_F32_MANTISSA_BITS,                       \
        .lift = 1,                                                                                 \
        .shifter = 0x1p-1f,                                                                        \
        .infinity = GW_F16_INFINITY,                                                               \
        .nan = GW_F16_NAN,                                                                         \
    })

#define GW_FORMAT16_BF16                                                                           \
    ((struct gw_format16){                                                                         \
        .shift = GW_F32_MANTISSA_BITS - GW_BF16_MANTISSA_BITS,                                     \
        .rebias = 0,                                                                               \
        .overflow = GW_F32_INFINITY,                                                               \
        .lift = 0x1p100f,                                                                          \
        .shifter = 0x1p-10f,                                                                       \
        .infinity = GW_BF16_INFINITY,                                                              \
        .nan = GW_BF16_NAN,                                                                        \
    })

/* Rounds a number that was rounded to odd; `lifted` is that times format.lift. */
static inline void gw_format16_store(unsigned char *to, float odd, float lifted,
                                     struct gw_format16 format)
{
    uint32_t bits = gw_f32_bits(odd);
    uint32_t magnitude = bits & INT32_MAX;
    float raised = gw_f32_of_bits(gw_f32_bits(lifted) & INT32_MAX) + format.shifter;
    uint32_t denormal = gw_f32_bits(raised) - gw_f32_bits(format.shifter);
    uint32_t even = (magnitude >> format.shift) & 1;
    uint32_t half = (UINT32_C(1) << format.shift >> 1) - 1;
    uint32_t normal = (magnitude - format.rebias + half + even) >> format.shift;
    uint32_t least = format.rebias + (UINT32_C(1) << GW_F32_MANTISSA_BITS);
    /* Signed comparisons are the cheap ones in vectors. */
    uint32_t result = gw_select((int32_t)magnitude < (int32_t)least, denormal, normal);
    result = gw_select((int32_t)magnitude >= (int32_t)format.overflow, format.infinity, result);
    result |= bits >> 31 << 15;
    result = gw_select((int32_t)magnitude > GW_F32_INFINITY, format.nan, result);
    gw_u16_store(to, result);
}

static inline void gw_f16_store(unsigned char *to, double x)
{
    float odd = (float)gw_f64_to_odd(x);
    gw_format16_store(to, odd, odd, GW_FORMAT16_F16);
}

static inline void gw_bf16_store(unsigned char *to, double x)
{
    double odd = gw_f64_to_odd(x);
    gw_format16_store(to, (float)odd, (float)(odd * GW_FORMAT16_BF16.lift), GW_FORMAT16_BF16);
}

/*
 * As the functions above do with x = v * unit, where unit is a power of two from 2^-126 to 2^126:
 * faster, because a float32 is wide enough on the way.
 */
static inline void gw_f32_store_units(unsigned char *to, int32_t v, float unit)
{
    gw_u32_store(to, gw_f32_bits((float)v * unit));
}

static inline void gw_f16_store_units(unsigned char *to, int32_t v, float unit)
{
    float odd = gw_i32_to_odd(v) * unit;
    gw_format16_store(to, odd, odd, GW_FORMAT16_F16);
}

static inline void gw_bf16_store_units(unsigned char *to, int32_t v, float unit)
{
    float odd = gw_i32_to_odd(v) * unit;
    gw_format16_store(to, odd, odd, GW_FORMAT16_BF16);
}

#endif
