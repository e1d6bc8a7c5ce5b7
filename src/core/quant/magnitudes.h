/*
 * Sums of magnitudes in a fixed order, 16 at a time.
 *
 * As loops.h it is compiled for several kinds of processors, and a file that includes it gets
 * GW_LOOP_SUMS, the sums of all types. Not for AVX-512: blasts do no other arithmetic, and Intel's
 * processors lower their frequency for a while after registers of 512 bits, for the kernel, too.
 *
 * Additions of floats depend on their order, so compilers keep the one that is written; here it is
 * that of a vector of 16 lanes, which they cut into as many registers as the processor needs. A
 * lane has every sixteenth value; of bfloat16, which is half as wide, every sixteenth pair of
 * neighbours. A lane is never negative, so the zeros that fill up the last vector change no bit of
 * it. An addition waits for the one before it, so where registers are wide several rows are summed
 * at a time. Rows may lie beyond the caches, anywhere: while some are summed the next ones are
 * fetched, line by line, since processors forget what they are asked to fetch when it is much at
 * once (AMD's), or let everything wait behind it (Intel's).
 */
#ifndef GW_CORE_MAGNITUDES_H
#define GW_CORE_MAGNITUDES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/align.h"
#include "core/quant/halves.h"
#include "core/quant/kernels.h"
#include "core/quant/number.h"
#include "core/quant/scale.h"

#ifndef GW_LOOP_VECTOR
#define GW_LOOP_VECTOR 16 /* bytes of a register */
#endif

/* So that all lanes stay in registers; compilers unroll less by themselves. */
#define GW_LOOP_UNROLLED _Pragma("GCC unroll 8")

enum {
    LANES = 16,
    PARTS_F32 = LANES * 4 / GW_LOOP_VECTOR, /* registers for all lanes */
    PARTS_F64 = LANES * 8 / GW_LOOP_VECTOR,
    PARTS_F16 = (LANES * 2 + GW_LOOP_VECTOR - 1) / GW_LOOP_VECTOR,
    ROWS = 8 / PARTS_F32,         /* at a time */
    BF16_MAGNITUDES = 0x7fff7fff, /* of two neighbours */
    BF16_UPPER = 0x7fff0000,
    LOW_IS_FIRST = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
};

_Static_assert((int)ROWS <= GW_SUM_ABS_AHEAD, "rows are fetched before they are summed");

typedef float lanes_f32 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef int32_t lanes_i32 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef uint32_t lanes_u32 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef uint16_t lanes_u16 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef double lanes_f64 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef int64_t lanes_i64 __attribute__((vector_size(GW_LOOP_VECTOR)));

/* Of a row, as its type needs them. */
struct sums {
    lanes_f32 f32[PARTS_F32];
    lanes_f64 f64[PARTS_F64];
    lanes_u16 infinite[PARTS_F16]; /* float16, the upper bit: something in this lane was */
};

/* ---- Additions of LANES values, or twice as many, from any address. ---- */

GW_LOOP_INLINE void add_f32(struct sums *sums, const unsigned char *x)
{
    GW_LOOP_UNROLLED
    for (size_t part = 0; part < PARTS_F32; part++) {
        lanes_i32 bits;
        lanes_f32 magnitudes;
        memcpy(&bits, x + part * sizeof(bits), sizeof(bits));
        bits &= INT32_MAX;
        memcpy(&magnitudes, &bits, sizeof(magnitudes));
        sums->f32[part] += magnitudes;
    }
}

/* Adds two values to each lane, neighbours: so none has to move from one lane to another. */
GW_LOOP_INLINE void add_bf16_pairs(struct sums *sums, const unsigned char *x)
{
    GW_LOOP_UNROLLED
    for (size_t part = 0; part < PARTS_F32; part++) {
        lanes_u32 pairs, first, second;
        lanes_f32 magnitudes;
        memcpy(&pairs, x + part * sizeof(pairs), sizeof(pairs));
        pairs &= BF16_MAGNITUDES;
        first = LOW_IS_FIRST ? pairs << 16 : pairs & BF16_UPPER;
        second = LOW_IS_FIRST ? pairs & BF16_UPPER : pairs << 16;
        memcpy(&magnitudes, &first, sizeof(magnitudes));
        sums->f32[part] += magnitudes;
        memcpy(&magnitudes, &second, sizeof(magnitudes));
        sums->f32[part] += magnitudes;
    }
}

#if defined(GW_LOOP_F16C)

GW_LOOP_INLINE void add_f16(struct sums *sums, const unsigned char *x)
{
    float floats[LANES];
    for (size_t i = 0; i < LANES; i += F16C_LANES)
        f16c_to_floats(floats + i, x + sizeof(uint16_t) * i, F16C_LANES);
    add_f32(sums, (const unsigned char *)&floats);
}

#else

/*
 * A float16's bits in the places that they have in a float32 are the number times 2^-112, be it
 * denormal or not. The sums of such numbers have the bits of the others' but for the exponent:
 * those of denormal ones are exact both ways. So they are scaled once, in the end. What was
 * infinite or NaN is remembered apart: adding this to a magnitude sets the upper bit of those
 * alone.
 */
#define F16_TO_SIGN (UINT16_C(0x8000) - GW_F16_INFINITY)

GW_LOOP_INLINE void add_f16(struct sums *sums, const unsigned char *x)
{
    uint32_t wide[LANES];
    GW_LOOP_UNROLLED
    for (size_t part = 0; part < PARTS_F16; part++) {
        lanes_u16 halves;
        memcpy(&halves, x + part * sizeof(halves), sizeof(halves));
        sums->infinite[part] |= (halves & INT16_MAX) + F16_TO_SIGN;
    }
    for (size_t i = 0; i < LANES; i++) {
        uint32_t half = gw_u16_load(x + sizeof(uint16_t) * i) & INT16_MAX;
        wide[i] = half << (GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS);
    }
    add_f32(sums, (const unsigned char *)wide);
}

#endif

/* A cache line, so that each is fetched once. */
GW_LOOP_INLINE void add_f16_line(struct sums *sums, const unsigned char *x)
{
    add_f16(sums, x);
    add_f16(sums, x + LANES * sizeof(uint16_t));
}

GW_LOOP_INLINE void add_i32(struct sums *sums, const unsigned char *x)
{
    float floats[LANES];
    for (size_t i = 0; i < LANES; i++)
        floats[i] = (float)(int32_t)gw_u32_load(x + sizeof(int32_t) * i);
    add_f32(sums, (const unsigned char *)floats);
}

GW_LOOP_INLINE void add_f64(struct sums *sums, const unsigned char *x)
{
    GW_LOOP_UNROLLED
    for (size_t part = 0; part < PARTS_F64; part++) {
        lanes_i64 bits;
        lanes_f64 magnitudes;
        memcpy(&bits, x + part * sizeof(bits), sizeof(bits));
        bits &= INT64_MAX;
        memcpy(&magnitudes, &bits, sizeof(magnitudes));
        sums->f64[part] += magnitudes;
    }
}

/* ---- Totals, of lanes that are NaN or not negative. ---- */

/* The upper half of all lanes is added to the lower one until one is left; in whole registers while
 * there are any, which compilers would take apart. */
#define GW_LOOP_FOLD(name, scalar)                                                                 \
    typedef scalar name##_lanes_8 __attribute__((vector_size(8 * sizeof(scalar))));                \
    typedef scalar name##_lanes_4 __attribute__((vector_size(4 * sizeof(scalar))));                \
                                                                                                   \
    GW_LOOP_INLINE scalar name(const void *lanes)                                                  \
    {                                                                                              \
        name##_lanes_8 eights[LANES / 8];                                                          \
        name##_lanes_4 fours[2];                                                                   \
        memcpy(eights, lanes, sizeof(eights));                                                     \
        eights[0] += eights[1];                                                                    \
        memcpy(fours, eights, sizeof(fours));                                                      \
        fours[0] += fours[1];                                                                      \
        return (fours[0][0] + fours[0][2]) + (fours[0][1] + fours[0][3]);                          \
    }

GW_LOOP_FOLD(fold_f32, float)
GW_LOOP_FOLD(fold_f64, double)

GW_LOOP_INLINE gw_real total_f32(const struct sums *sums)
{
    uint32_t bits = gw_f32_bits(fold_f32(sums->f32)) & INT32_MAX;
    return gw_f32_of_bits(bits < GW_F32_INFINITY ? bits : GW_F32_INFINITY);
}

#if defined(GW_LOOP_F16C)

GW_LOOP_INLINE gw_real total_f16(const struct sums *sums)
{
    return total_f32(sums);
}

#else

GW_LOOP_INLINE gw_real total_f16(const struct sums *sums)
{
    uint16_t lanes[LANES], infinite = 0;
    memcpy(lanes, sums->infinite, sizeof(lanes));
    for (size_t i = 0; i < LANES; i++)
        infinite |= lanes[i];
    return infinite > INT16_MAX ? gw_f32_of_bits(GW_F32_INFINITY) : total_f32(sums) * 0x1p112;
}

#endif

GW_LOOP_INLINE gw_real total_f64(const struct sums *sums)
{
    int64_t bits = (int64_t)(gw_f64_bits(fold_f64(sums->f64)) & INT64_MAX);
    return gw_f64_of_bits((uint64_t)(bits < GW_F64_INFINITY ? bits : GW_F64_INFINITY));
}

/* ---- Rows. ---- */

/* How values of `size` bytes are summed: `add` takes so many, of half a cache line to two. */
struct adder {
    size_t size;
    size_t taken;
    void (*add)(struct sums *, const unsigned char *);
    gw_real (*total)(const struct sums *);
};

/* Fetches as many rows from `next` on, if it is not NULL. */
GW_LOOP_INLINE void sum_rows(gw_real *to, const void *const *x, const void *const *next,
                             size_t rows, uint32_t count, struct adder by)
{
    struct sums sums[ROWS] = {0};
    unsigned char last[LANES * sizeof(double)] = {0};
    size_t first = 0, left;
    for (; first + by.taken <= count; first += by.taken)
        GW_LOOP_UNROLLED
    for (size_t row = 0; row < rows; row++) {
        for (size_t line = 0; next && line < by.size * by.taken; line += GW_CACHE_LINE)
            __builtin_prefetch((const unsigned char *)next[row] + by.size * first + line);
        by.add(&sums[row], (const unsigned char *)x[row] + by.size * first);
    }
    left = by.size * (count - first);
    GW_LOOP_UNROLLED
    for (size_t row = 0; row < rows; row++) {
        if (left) {
            memcpy(last, (const unsigned char *)x[row] + by.size * first, left);
            by.add(&sums[row], last);
        }
        to[row] = by.total(&sums[row]);
    }
}

GW_LOOP_INLINE void sum_abs(gw_real *to, const void *const *x, uint32_t rows, uint32_t count,
                            struct adder by)
{
    uint32_t row = 0;
    for (; row + GW_SUM_ABS_AHEAD + ROWS <= rows; row += ROWS)
        sum_rows(to + row, x + row, x + row + GW_SUM_ABS_AHEAD, ROWS, count, by);
    for (; row + ROWS <= rows; row += ROWS)
        sum_rows(to + row, x + row, NULL, ROWS, count, by);
    for (; row < rows; row++)
        sum_rows(to + row, x + row, NULL, 1, count, by);
}

GW_LOOP static void sum_abs_f32(gw_real *to, const void *const *x, uint32_t rows, uint32_t count)
{
    sum_abs(to, x, rows, count, (struct adder){4, LANES, add_f32, total_f32});
}

GW_LOOP static void sum_abs_f16(gw_real *to, const void *const *x, uint32_t rows, uint32_t count)
{
    sum_abs(to, x, rows, count, (struct adder){2, 2 * LANES, add_f16_line, total_f16});
}

GW_LOOP static void sum_abs_bf16(gw_real *to, const void *const *x, uint32_t rows, uint32_t count)
{
    sum_abs(to, x, rows, count, (struct adder){2, 2 * LANES, add_bf16_pairs, total_f32});
}

GW_LOOP static void sum_abs_i32(gw_real *to, const void *const *x, uint32_t rows, uint32_t count)
{
    sum_abs(to, x, rows, count, (struct adder){4, LANES, add_i32, total_f32});
}

GW_LOOP static void sum_abs_f64(gw_real *to, const void *const *x, uint32_t rows, uint32_t count)
{
    sum_abs(to, x, rows, count, (struct adder){8, LANES, add_f64, total_f64});
}

#define GW_LOOP_SUMS                                                                               \
    {                                                                                              \
        sum_abs_f32, sum_abs_f16, sum_abs_bf16, sum_abs_i32, sum_abs_f64                           \
    }

#endif
