/*
 * Fixed-point numbers: Q16, a signed 64-bit integer in units of 1/65536.
 *
 * The core uses no floating point, so that every machine computes the same windows.
 */
#ifndef GW_BASE_FIXED_H
#define GW_BASE_FIXED_H

#include <stdint.h>

typedef int64_t gw_q16;

#define GW_Q16_ONE ((gw_q16)65536)

/* (a * b) / 65536, rounded down; the product must fit in 128 bits, the result in 64. */
static inline gw_q16 gw_q16_mul(gw_q16 a, gw_q16 b)
{
    return (gw_q16)(((__int128)a * b) >> 16);
}

/* The square root, rounded down. */
static inline uint32_t gw_sqrt(uint64_t value)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    return (uint32_t)root;
}

/* The cube root, rounded down, of a value below 2^126. */
static inline uint64_t gw_cbrt(unsigned __int128 value)
{
    unsigned __int128 root = 0;
    for (unsigned __int128 bit = (unsigned __int128)1 << 41; bit; bit >>= 1)
        if ((root + bit) * (root + bit) * (root + bit) <= value)
            root += bit;
    return (uint64_t)root;
}

#endif
