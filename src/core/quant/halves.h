/*
 * float16 numbers to float32 and back, many at a time.
 *
 * A part of loops.h. With GW_LOOP_F16C it uses the two instructions of the F16C extension, which
 * compilers do not find in C. They round to nearest with ties to even, whatever the processor's
 * mode, and take denormal numbers as they are; number.h has the same in C.
 */
#ifndef GW_CORE_HALVES_H
#define GW_CORE_HALVES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/quant/number.h"

#ifndef GW_LOOP
#define GW_LOOP
#endif

#define GW_LOOP_INLINE static inline __attribute__((always_inline)) GW_LOOP

enum {
    HALVES = 512, /* converted at a time: 2 KiB of float32, more than a fragment of default size */
};

#if defined(GW_LOOP_F16C)

enum { F16C_LANES = 8 };

typedef int16_t f16c_halves __attribute__((vector_size(16)));
typedef float f16c_floats __attribute__((vector_size(32)));

GW_LOOP_INLINE void f16c_to_floats(float *to, const unsigned char *from, size_t count)
{
    f16c_halves halves = {0};
    memcpy(&halves, from, sizeof(uint16_t) * count);
    f16c_floats floats = __builtin_ia32_vcvtph2ps256(halves);
    memcpy(to, &floats, sizeof(float) * count);
}

GW_LOOP_INLINE void f16c_to_halves(unsigned char *to, const float *from, size_t count)
{
    f16c_floats floats = {0};
    memcpy(&floats, from, sizeof(float) * count);
    f16c_halves halves = __builtin_ia32_vcvtps2ph256(floats, 0);
    memcpy(to, &halves, sizeof(uint16_t) * count);
}

/* Infinity and NaN stay what they are. */
GW_LOOP_INLINE void floats_of_halves(float *restrict to, const unsigned char *restrict from,
                                     size_t count)
{
    size_t i = 0;
    for (; i + F16C_LANES <= count; i += F16C_LANES)
        f16c_to_floats(to + i, from + sizeof(uint16_t) * i, F16C_LANES);
    if (i < count)
        f16c_to_floats(to + i, from + sizeof(uint16_t) * i, count - i);
}

#endif

/* How many to convert next, when `count` is all and those before `first` are done. */
GW_LOOP_INLINE uint32_t halves_from(size_t first, uint32_t count)
{
    return count - first < HALVES ? count - (uint32_t)first : HALVES;
}

/* The floats are no NaN, and rounded to odd if at all. */
GW_LOOP_INLINE void halves_of_floats(unsigned char *restrict to, const float *restrict from,
                                     size_t count)
{
#if defined(GW_LOOP_F16C)
    size_t i = 0;
    for (; i + F16C_LANES <= count; i += F16C_LANES)
        f16c_to_halves(to + sizeof(uint16_t) * i, from + i, F16C_LANES);
    if (i < count)
        f16c_to_halves(to + sizeof(uint16_t) * i, from + i, count - i);
#else
    for (size_t i = 0; i < count; i++)
        gw_f16_store_odd(to + sizeof(uint16_t) * i, from[i]);
#endif
}

#endif
