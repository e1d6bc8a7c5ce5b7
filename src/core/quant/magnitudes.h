/*
 * Sums of magnitudes in a fixed order, 16 at a time.
 *
 * As loops.h it is compiled for several kinds of processors, and a file that includes it gets
 * GW_LOOP_SUMS, the sums of all types. Not for AVX-512: blasts do no other arithmetic, and Intel's
 * processors lower their frequency for a while after registers of 512 bits, for the kernel, too.
 *
 * Additions of floats depend on their order, so compilers keep the one that is written; here it is
 * that of a vector of 16 lanes, which they cut into as many registers as the processor needs. A
 * lane has every sixteenth value; of float16 and bfloat16, which are half as wide, every sixteenth
 * pair of neighbours. A lane is never negative, so the zeros that fill up the last vector change no
 * bit of it. An addition waits for the one before it, so several rows are summed at a time; all the
 * same where registers are too few for their sums, since rows are fetched sooner, too, from several
 * places at a time. They may lie beyond the caches, anywhere: while some are summed the next ones
 * are fetched, and half of what comes later: line by line, since processors forget what they are
 * asked to fetch when it is much at once (AMD's), or let everything wait behind it (Intel's).
 */
#ifndef GW_CORE_MAGNITUDES_H
#define GW_CORE_MAGNITUDES_H

#include <stdbool.h>
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
#if defined(__SSE2__)
#define GW_LOOP_PMADDWD __builtin_ia32_pmaddwd128
#endif
#endif

/* So that all lanes stay in registers; compilers unroll less by themselves. */
#define GW_LOOP_UNROLLED _Pragma("GCC unroll 8")

enum {
    LANES = 16,
    PARTS_F32 = LANES * 4 / GW_LOOP_VECTOR, /* registers for all lanes */
    PARTS_F64 = LANES * 8 / GW_LOOP_VECTOR,
    ROWS = 4,                     /* at a time */
    STEP = 2 * GW_CACHE_LINE,     /* bytes of each */
    BOTH_MAGNITUDES = 0x7fff7fff, /* of two numbers of 16 bits */
    UPPER_MAGNITUDE = 0x7fff0000,
    F16_WIDER = GW_F32_MANTISSA_BITS - GW_F16_MANTISSA_BITS,
    LOW_IS_FIRST = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
};

_Static_assert(PARTS_F32 >= 2, "lanes are folded by halves");

typedef float lanes_f32 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef int32_t lanes_i32 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef uint32_t lanes_u32 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef int16_t lanes_i16 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef double lanes_f64 __attribute__((vector_size(GW_LOOP_VECTOR)));
typedef int64_t lanes_i64 __attribute__((vector_size(GW_LOOP_VECTOR)));

/* Of a row, as its type needs them. */
struct sums {
    lanes_f32 f32[PARTS_F32];
    lanes_f64 f64[PARTS_F64];
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

/* The magnitudes of the upper or the lower ones of pairs, as float32. */
typedef lanes_u32 half_of_pairs(lanes_u32 pairs, bool upper);

/* Adds two values to each lane, neighbours: so none has to move from one lane to another. */
GW_LOOP_INLINE void add_pairs(struct sums *sums, const unsigned char *x, half_of_pairs *half)
{
    GW_LOOP_UNROLLED
    for (size_t part = 0; part < PARTS_F32; part++) {
        lanes_u32 pairs;
        memcpy(&pairs, x + part * sizeof(pairs), sizeof(pairs));
        const lanes_u32 first = half(pairs, !LOW_IS_FIRST), second = half(pairs, LOW_IS_FIRST);
        sums->f32[part] += (lanes_f32)first;
        sums->f32[part] += (lanes_f32)second;
    }
}

GW_LOOP_INLINE lanes_u32 half_bf16(lanes_u32 pairs, bool upper)
{
    return upper ? pairs & UPPER_MAGNITUDE : (pairs & BOTH_MAGNITUDES) << 16;
}

/*
 * A float16's bits in the places that they have in a float32 are the number times 2^-112, be it
 * denormal or not. The sums of such numbers have the bits of the others' but for the exponent:
 * those of denormal ones are exact both ways. So they are scaled once, in the end.
 */
GW_LOOP_INLINE lanes_u32 half_f16(lanes_u32 pairs, bool upper)
{
#if defined(GW_LOOP_PMADDWD) /* one instruction adds the products of both: one of them is zero */
    const lanes_u32 shift = (lanes_u32){0} + (UINT32_C(1) << F16_WIDER << (upper ? 16 : 0));
    pairs &= BOTH_MAGNITUDES;
    return (lanes_u32)GW_LOOP_PMADDWD((lanes_i16)pairs, (lanes_i16)shift);
#else
    const uint32_t magnitudes = INT16_MAX << F16_WIDER;
    return (upper ? pairs >> (16 - F16_WIDER) : pairs << F16_WIDER) & magnitudes;
#endif
}

GW_LOOP_INLINE void add_f16(struct sums *sums, const unsigned char *x)
{
    add_pairs(sums, x, half_f16);
}

GW_LOOP_INLINE void add_bf16(struct sums *sums, const unsigned char *x)
{
    add_pairs(sums, x, half_bf16);
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
#define GW_LOOP_FOLD(name, scalar, parts)                                                          \
    typedef scalar name##_lanes_4 __attribute__((vector_size(4 * sizeof(scalar))));                \
                                                                                                   \
    GW_LOOP_INLINE scalar name(const lanes_##parts *lanes)                                         \
    {                                                                                              \
        enum { PARTS = LANES * sizeof(scalar) / GW_LOOP_VECTOR };                                  \
        lanes_##parts halves[PARTS / 2];                                                           \
        name##_lanes_4 fours[2];                                                                   \
        GW_LOOP_UNROLLED                                                                           \
        for (size_t part = 0; part < PARTS / 2; part++)                                            \
            halves[part] = lanes[part] + lanes[part + PARTS / 2];                                  \
        memcpy(fours, halves, sizeof(fours));                                                      \
        fours[0] += fours[1];                                                                      \
        return (fours[0][0] + fours[0][2]) + (fours[0][1] + fours[0][3]);                          \
    }

GW_LOOP_FOLD(fold_f32, float, f32)
GW_LOOP_FOLD(fold_f64, double, f64)

GW_LOOP_INLINE gw_real total_f32(const struct sums *sums, const unsigned char *x, uint32_t count)
{
    (void)x, (void)count;
    uint32_t bits = gw_f32_bits(fold_f32(sums->f32)) & INT32_MAX;
    return gw_f32_of_bits(bits < GW_F32_INFINITY ? bits : GW_F32_INFINITY);
}

/* What is infinite or NaN was added as 2^16 or more; so this is looked for in large sums alone,
 * which take twice the time. */
GW_LOOP_INLINE gw_real total_f16(const struct sums *sums, const unsigned char *x, uint32_t count)
{
    const gw_real total = total_f32(sums, x, count) * 0x1p112;
    uint32_t infinite = 0;
    for (uint32_t i = 0; total >= 0x1p16 && i < count; i++)
        infinite |= (gw_u16_load(x + sizeof(uint16_t) * i) & INT16_MAX) >= GW_F16_INFINITY;
    return infinite ? gw_f32_of_bits(GW_F32_INFINITY) : total;
}

GW_LOOP_INLINE gw_real total_f64(const struct sums *sums, const unsigned char *x, uint32_t count)
{
    (void)x, (void)count;
    int64_t bits = (int64_t)(gw_f64_bits(fold_f64(sums->f64)) & INT64_MAX);
    return gw_f64_of_bits((uint64_t)(bits < GW_F64_INFINITY ? bits : GW_F64_INFINITY));
}

/* ---- Rows. ---- */

/* How values are summed: `add` takes so many bytes, of which STEP is a multiple. `total` may look
 * at the `count` values again. */
struct adder {
    uint32_t size; /* of a value */
    uint32_t taken;
    void (*add)(struct sums *, const unsigned char *);
    gw_real (*total)(const struct sums *, const unsigned char *, uint32_t count);
};

GW_LOOP_INLINE void add_step(struct sums *sums, const unsigned char *x, struct adder by)
{
    GW_LOOP_UNROLLED
    for (size_t at = 0; at < STEP; at += by.taken)
        by.add(sums, x + at);
}

/* Fetches the rows `next`, and half as much as they have from each of `later`, if these are not
 * NULL. */
GW_LOOP_INLINE void sum_rows(gw_real *to, const void *const *x, const void *const *next,
                             const void *const *later, size_t rows, uint32_t count, struct adder by)
{
    struct sums sums[ROWS] = {0};
    unsigned char last[STEP] = {0};
    const size_t bytes = (size_t)by.size * count;
    size_t at = 0;
    for (; at + STEP <= bytes; at += STEP)
        GW_LOOP_UNROLLED
    for (size_t row = 0; row < rows; row++) {
        for (size_t line = 0; next && line < STEP; line += GW_CACHE_LINE)
            __builtin_prefetch((const unsigned char *)next[row] + at + line);
        if (later)
            __builtin_prefetch((const unsigned char *)later[row] + at / 2, 0, 2);
        add_step(&sums[row], (const unsigned char *)x[row] + at, by);
    }
    GW_LOOP_UNROLLED
    for (size_t row = 0; row < rows; row++) {
        if (at < bytes) {
            memcpy(last, (const unsigned char *)x[row] + at, bytes - at);
            add_step(&sums[row], last, by);
        }
        to[row] = by.total(&sums[row], x[row], count);
    }
}

GW_LOOP_INLINE void sum_abs(gw_real *to, const void *const *x, const void *const *later,
                            uint32_t rows, uint32_t count, struct adder by)
{
    uint32_t row = 0;
    for (; later && row + ROWS <= rows; row += ROWS) {
        uint32_t next = row + 2 * ROWS <= rows ? row + ROWS : row;
        sum_rows(to + row, x + row, x + next, later + row, ROWS, count, by);
    }
    for (; row + ROWS <= rows; row += ROWS)
        sum_rows(to + row, x + row, NULL, NULL, ROWS, count, by);
    for (; row < rows; row++)
        sum_rows(to + row, x + row, NULL, NULL, 1, count, by);
}

#define GW_LOOP_SUM(name, size, taken, add, total)                                                 \
    GW_LOOP static void name(gw_real *to, const void *const *x, const void *const *later,          \
                             uint32_t rows, uint32_t count)                                        \
    {                                                                                              \
        sum_abs(to, x, later, rows, count, (struct adder){size, taken, add, total});               \
    }

GW_LOOP_SUM(sum_abs_f32, 4, 4 * LANES, add_f32, total_f32)
GW_LOOP_SUM(sum_abs_f16, 2, 4 * LANES, add_f16, total_f16)
GW_LOOP_SUM(sum_abs_bf16, 2, 4 * LANES, add_bf16, total_f32)
GW_LOOP_SUM(sum_abs_i32, 4, 4 * LANES, add_i32, total_f32)
GW_LOOP_SUM(sum_abs_f64, 8, 8 * LANES, add_f64, total_f64)

#define GW_LOOP_SUMS                                                                               \
    {                                                                                              \
        sum_abs_f32, sum_abs_f16, sum_abs_bf16, sum_abs_i32, sum_abs_f64                           \
    }

#endif
