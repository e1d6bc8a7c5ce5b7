/*
 * The loops of the kernels in plain C, compiled once for each kind of processor.
 *
 * A file that includes this may define GW_LOOP as the target attribute of its functions; it gets
 * every loop as a static function, and GW_LOOP_TABLE, the kernels made of them. The loops are
 * written so that compilers vectorise them: no early exit, no branches, and conditions gathered in
 * a word that is looked at once. So no implementation needs instructions written by hand, but for
 * float16 numbers, see halves.h and magnitudes.h.
 */
#ifndef GW_CORE_LOOPS_H
#define GW_CORE_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/quant/halves.h"
#include "core/quant/kernels.h"
#include "core/quant/number.h"

/* Marks are the two patterns that a step up takes to the two lowest. */
GW_LOOP_INLINE int32_t step_up(int32_t q)
{
    return (int32_t)((uint32_t)q + 1);
}

enum { MARKS_END = INT32_MIN + 2 };

GW_LOOP_INLINE bool is_mark(int32_t q)
{
    return step_up(q) < MARKS_END;
}

/* Has a nonzero upper half unless q is a value: 32 bits and no mark. */
GW_LOOP_INLINE uint64_t no_value(int64_t q)
{
    uint64_t above_mark = (uint64_t)q + INT32_MAX; /* 0 for the least value */
    return above_mark | (above_mark + 2);
}

/* As gw_f32_to_integer(): by an instruction of SSE 4.1 where there is F16C, which is younger. */
GW_LOOP_INLINE int32_t nearest(float x)
{
#if defined(GW_LOOP_F16C)
    return (int32_t)__builtin_rintf(x);
#else
    return gw_f32_to_integer(x);
#endif
}

/* For any scale. */
GW_LOOP_INLINE bool quantise(unsigned char *restrict wire, const unsigned char *restrict x,
                             uint32_t count, double up, float (*load)(const unsigned char *),
                             size_t size)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t q = gw_f64_to_integer(load(x + size * i) * up);
        bad |= no_value(q);
        gw_wire_store(wire + sizeof(int32_t) * i, (uint32_t)q);
    }
    return bad >> 32 == 0;
}

/*
 * For a power of two, which leaves the product a float32, unless it is so small that it counts as
 * zero. False when a product is `end` or more in magnitude, or NaN; at 2^31 the marks begin, and
 * the float32 before it is far from them. Magnitudes are in the order of their bits.
 */
GW_LOOP_INLINE bool quantise_power(unsigned char *restrict wire, const unsigned char *restrict x,
                                   uint32_t count, float up, float end,
                                   float (*load)(const unsigned char *),
                                   int32_t (*to_integer)(float), size_t size)
{
    uint32_t below_end = UINT32_MAX; /* in its highest bit */
    for (size_t i = 0; i < count; i++) {
        float product = load(x + size * i) * up;
        below_end &= (gw_f32_bits(product) & INT32_MAX) - gw_f32_bits(end);
        gw_wire_store(wire + sizeof(int32_t) * i, (uint32_t)to_integer(product));
    }
    return below_end >> 31;
}

GW_LOOP static bool quantise_f32(void *wire, const void *x, uint32_t count,
                                 const struct gw_scale *scale)
{
    if (!gw_f64_is_power(scale->up))
        return quantise(wire, x, count, scale->up, gw_f32_load, 4);
    return quantise_power(wire, x, count, (float)scale->up, 0x1p31f, gw_f32_load, nearest, 4);
}

GW_LOOP_INLINE bool quantise_halves(unsigned char *restrict wire, const unsigned char *restrict x,
                                    uint32_t count, float up, int32_t (*to_integer)(float))
{
    /* Finite numbers are below 2^16, and what is made of the others is not. */
    float end = up * 0x1p16f < 0x1p31f ? up * 0x1p16f : 0x1p31f;
#if defined(GW_LOOP_F16C)
    float floats[HALVES];
    bool fits = true;
    for (size_t first = 0; first < count; first += HALVES) {
        uint32_t step = halves_from(first, count);
        floats_of_halves(floats, x + 2 * first, step);
        fits &= quantise_power(wire + 4 * first, (const unsigned char *)floats, step, up, end,
                               gw_f32_load, to_integer, 4);
    }
    return fits;
#else
    return quantise_power(wire, x, count, up, end, gw_f16_load_finite, to_integer, 2);
#endif
}

GW_LOOP static bool quantise_f16(void *wire, const void *x, uint32_t count,
                                 const struct gw_scale *scale)
{
    float up = (float)scale->up;
    if (!gw_f64_is_power(scale->up))
        return quantise(wire, x, count, scale->up, gw_f16_load, 2);
    if (up >= 0x1p24f) /* all products are integers: finite numbers are multiples of 2^-24 */
        return quantise_halves(wire, x, count, up, gw_f32_whole_to_integer);
    return quantise_halves(wire, x, count, up, gw_f32_short_to_integer);
}

GW_LOOP static bool quantise_bf16(void *wire, const void *x, uint32_t count,
                                  const struct gw_scale *scale)
{
    if (!gw_f64_is_power(scale->up))
        return quantise(wire, x, count, scale->up, gw_bf16_load, 2);
    return quantise_power(wire, x, count, (float)scale->up, 0x1p31f, gw_bf16_load,
                          gw_f32_short_to_integer, 2);
}

GW_LOOP static bool is_saturated(const void *wire, uint32_t count)
{
    const unsigned char *from = wire;
    int32_t least = MARKS_END;
    for (size_t i = 0; i < count; i++) {
        int32_t above = step_up(gw_wire_load(from + sizeof(int32_t) * i));
        least = above < least ? above : least;
    }
    return least < MARKS_END;
}

GW_LOOP static bool quantise_i32(void *restrict wire, const void *restrict x, uint32_t count,
                                 const struct gw_scale *scale)
{
    (void)scale;
    unsigned char *to = wire;
    const unsigned char *from = x;
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t q = (int32_t)gw_u32_load(from + sizeof(int32_t) * i);
        found |= is_mark(q);
        gw_wire_store(to + sizeof(int32_t) * i, (uint32_t)q);
    }
    return !found;
}

/* Division is slow, and by a power of two not needed. */
GW_LOOP_INLINE void dequantise(unsigned char *restrict x, const unsigned char *restrict wire,
                               uint32_t count, double down, void (*store)(unsigned char *, double),
                               void (*store_units)(unsigned char *, int32_t, float), size_t size)
{
    if (gw_f64_is_power(down)) {
        float unit = (float)(1 / down);
        for (size_t i = 0; i < count; i++)
            store_units(x + size * i, gw_wire_load(wire + sizeof(int32_t) * i), unit);
    } else {
        for (size_t i = 0; i < count; i++)
            store(x + size * i, gw_wire_load(wire + sizeof(int32_t) * i) / down);
    }
}

GW_LOOP static void dequantise_f32(void *x, const void *wire, uint32_t count,
                                   const struct gw_scale *scale)
{
    dequantise(x, wire, count, scale->down, gw_f32_store, gw_f32_store_units, 4);
}

GW_LOOP static void dequantise_f16(void *x, const void *wire, uint32_t count,
                                   const struct gw_scale *scale)
{
    float odd[HALVES];
    for (size_t first = 0; first < count; first += HALVES) {
        uint32_t step = halves_from(first, count);
        dequantise((unsigned char *)odd, (const unsigned char *)wire + 4 * first, step, scale->down,
                   gw_f32_store_odd, gw_f32_store_odd_units, 4);
        halves_of_floats((unsigned char *)x + 2 * first, odd, step);
    }
}

GW_LOOP static void dequantise_bf16(void *x, const void *wire, uint32_t count,
                                    const struct gw_scale *scale)
{
    dequantise(x, wire, count, scale->down, gw_bf16_store, gw_bf16_store_units, 2);
}

GW_LOOP static void dequantise_i32(void *restrict x, const void *restrict wire, uint32_t count,
                                   const struct gw_scale *scale)
{
    unsigned char *to = x;
    const unsigned char *from = wire;
    double down = scale->down;
    if (gw_f64_is_power(down)) {
        double unit = 1 / down;
        for (size_t i = 0; i < count; i++)
            gw_i32_store(to + sizeof(int32_t) * i, gw_wire_load(from + sizeof(int32_t) * i) * unit);
    } else {
        for (size_t i = 0; i < count; i++)
            gw_i32_store(to + sizeof(int32_t) * i, gw_wire_load(from + sizeof(int32_t) * i) / down);
    }
}

/*
 * Adds what wraps around as it does. Whether that is all there is to do: no operand is a mark, no
 * sum is one, and none wraps around, as it does when its sign differs from that of both operands.
 */
GW_LOOP_INLINE bool add_values(unsigned char *restrict to, const unsigned char *restrict from,
                               uint32_t count)
{
    uint32_t wrapped = 0; /* in its highest bit */
    int32_t least = MARKS_END;
    for (size_t i = 0; i < count; i++) {
        int32_t a = gw_wire_load(to + sizeof(int32_t) * i);
        int32_t b = gw_wire_load(from + sizeof(int32_t) * i);
        int32_t r = (int32_t)((uint32_t)a + (uint32_t)b);
        wrapped |= (uint32_t)((a ^ r) & (b ^ r));
        least = step_up(a) < least ? step_up(a) : least;
        least = step_up(b) < least ? step_up(b) : least;
        least = step_up(r) < least ? step_up(r) : least;
        gw_wire_store(to + sizeof(int32_t) * i, (uint32_t)r);
    }
    return wrapped >> 31 == 0 && least >= MARKS_END;
}

/* Nearly always values are all there is; else each sum is looked at, and what was added to is what
 * add_values() has left without what it has added. */
GW_LOOP static bool add(void *restrict sum, const void *restrict wire, uint32_t count)
{
    unsigned char *to = sum;
    const unsigned char *from = wire;
    int32_t least = MARKS_END;
    if (add_values(to, from, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        int32_t r = gw_wire_load(to + sizeof(int32_t) * i);
        int32_t b = gw_wire_load(from + sizeof(int32_t) * i);
        int32_t a = (int32_t)((uint32_t)r - (uint32_t)b);
        int32_t mark = ((a | b) >> 31) ^ INT32_MAX;
        uint32_t lost = ((a ^ r) & (b ^ r)) < 0;
        lost |= is_mark(a);
        lost |= is_mark(b);
        int32_t result = lost ? mark : r, above = step_up(result);
        least = above < least ? above : least;
        gw_wire_store(to + sizeof(int32_t) * i, (uint32_t)result);
    }
    return least < MARKS_END;
}

GW_LOOP static void add_wide(int64_t *restrict sum, const void *restrict wire, uint32_t count)
{
    const unsigned char *from = wire;
    for (size_t i = 0; i < count; i++)
        sum[i] += gw_wire_load(from + sizeof(int32_t) * i);
}

GW_LOOP static bool narrow(void *restrict wire, const int64_t *restrict sum, uint32_t count)
{
    unsigned char *to = wire;
    uint64_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        bad |= (uint64_t)sum[i] + (UINT64_C(1) << 31);
        gw_wire_store(to + sizeof(int32_t) * i, (uint32_t)sum[i]);
    }
    return bad >> 32 == 0;
}

GW_LOOP_INLINE void add_real(double *restrict sum, const unsigned char *restrict x, uint32_t count,
                             float (*load)(const unsigned char *), size_t size)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += load(x + size * i);
}

GW_LOOP static void add_real_f32(gw_real *sum, const void *x, uint32_t count)
{
    add_real(sum, x, count, gw_f32_load, 4);
}

GW_LOOP static void add_real_f16(gw_real *sum, const void *x, uint32_t count)
{
    add_real(sum, x, count, gw_f16_load, 2);
}

GW_LOOP static void add_real_bf16(gw_real *sum, const void *x, uint32_t count)
{
    add_real(sum, x, count, gw_bf16_load, 2);
}

GW_LOOP_INLINE void narrow_real(unsigned char *restrict x, const double *restrict sum,
                                uint32_t count, double shares,
                                void (*store)(unsigned char *, double), size_t size)
{
    for (size_t i = 0; i < count; i++)
        store(x + size * i, sum[i] / shares);
}

GW_LOOP static void narrow_real_f32(void *x, const gw_real *sum, uint32_t count, uint32_t shares)
{
    narrow_real(x, sum, count, shares, gw_f32_store, 4);
}

GW_LOOP static void narrow_real_f16(void *x, const gw_real *sum, uint32_t count, uint32_t shares)
{
    narrow_real(x, sum, count, shares, gw_f16_store, 2);
}

GW_LOOP static void narrow_real_bf16(void *x, const gw_real *sum, uint32_t count, uint32_t shares)
{
    narrow_real(x, sum, count, shares, gw_bf16_store, 2);
}

GW_LOOP_INLINE bool reduce(unsigned char *restrict x, const unsigned char *restrict y,
                           uint32_t count, uint32_t shares, float (*load)(const unsigned char *),
                           void (*store)(unsigned char *, double),
                           void (*store_f32)(unsigned char *, double), size_t size)
{
    if (shares == 1) {
        for (size_t i = 0; i < count; i++)
            store_f32(x + size * i, load(x + size * i) + load(y + size * i));
    } else {
        for (size_t i = 0; i < count; i++)
            store(x + size * i, ((double)load(x + size * i) + load(y + size * i)) / shares);
    }
    return true;
}

GW_LOOP static bool reduce_f32(void *x, const void *y, uint32_t count, uint32_t shares)
{
    return reduce(x, y, count, shares, gw_f32_load, gw_f32_store, gw_f32_store, 4);
}

GW_LOOP static bool reduce_f16(void *x, const void *y, uint32_t count, uint32_t shares)
{
    return reduce(x, y, count, shares, gw_f16_load, gw_f16_store, gw_f16_store_f32, 2);
}

GW_LOOP static bool reduce_bf16(void *x, const void *y, uint32_t count, uint32_t shares)
{
    return reduce(x, y, count, shares, gw_bf16_load, gw_bf16_store, gw_bf16_store_f32, 2);
}

/* The sum wraps around when its sign differs from that of both operands. */
GW_LOOP static bool reduce_i32(void *restrict x, const void *restrict y, uint32_t count,
                               uint32_t shares)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    uint32_t wrapped = 0; /* in its highest bit */
    for (size_t i = 0; i < count; i++) {
        uint32_t a = gw_u32_load(to + sizeof(int32_t) * i);
        uint32_t b = gw_u32_load(from + sizeof(int32_t) * i);
        uint32_t sum = a + b;
        wrapped |= (a ^ sum) & (b ^ sum);
        gw_u32_store(to + sizeof(int32_t) * i, sum);
    }
    for (size_t i = 0; shares > 1 && i < count; i++)
        gw_i32_store(to + sizeof(int32_t) * i,
                     (int32_t)gw_u32_load(to + sizeof(int32_t) * i) / (double)shares);
    return wrapped >> 31 == 0;
}

GW_LOOP static uint32_t max_abs_f32(const void *x, uint32_t count)
{
    const unsigned char *from = x;
    int32_t most = 0; /* the bits without sign are in the order of the magnitudes */
    for (size_t i = 0; i < count; i++) {
        int32_t magnitude = gw_u32_load(from + sizeof(float) * i) & INT32_MAX;
        most = magnitude > most ? magnitude : most;
    }
    return (uint32_t)most;
}

GW_LOOP_INLINE uint16_t max_abs_u16(const unsigned char *x, uint32_t count)
{
    int16_t most = 0;
    for (size_t i = 0; i < count; i++) {
        int16_t magnitude = gw_u16_load(x + sizeof(int16_t) * i) & INT16_MAX;
        most = magnitude > most ? magnitude : most;
    }
    return (uint16_t)most;
}

GW_LOOP static uint32_t max_abs_f16(const void *x, uint32_t count)
{
    uint16_t most = max_abs_u16(x, count);
    unsigned char bytes[sizeof(most)];
    gw_u16_store(bytes, most);
    return gw_f32_bits((float)gw_f16_load(bytes));
}

GW_LOOP static uint32_t max_abs_bf16(const void *x, uint32_t count)
{
    return (uint32_t)max_abs_u16(x, count) << 16;
}

/* The members of a struct gw_kernels that are functions. */
#define GW_LOOP_TABLE                                                                              \
    .quantise = {quantise_f32, quantise_f16, quantise_bf16, quantise_i32},                         \
    .dequantise = {dequantise_f32, dequantise_f16, dequantise_bf16, dequantise_i32}, .add = add,   \
    .is_saturated = is_saturated, .add_wide = add_wide, .narrow = narrow,                          \
    .add_real = {add_real_f32, add_real_f16, add_real_bf16},                                       \
    .narrow_real = {narrow_real_f32, narrow_real_f16, narrow_real_bf16},                           \
    .reduce = {reduce_f32, reduce_f16, reduce_bf16, reduce_i32},                                   \
    .max_abs = {max_abs_f32, max_abs_f16, max_abs_bf16}

#endif
