/* Arrays of bits in words of 64: bit i is bit i % 64 of word i / 64. */
#ifndef GW_BASE_BITS_H
#define GW_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Words of an array of `bits`. */
static inline uint64_t gw_bit_words(uint64_t bits)
{
    return bits / 64 + (bits % 64 != 0);
}

static inline bool gw_bit_is_set(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static inline void gw_bit_set(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* Sets the first so many, and clears the rest of the last word. */
static inline void gw_bits_fill(uint64_t *bits, uint64_t count)
{
    for (uint64_t i = 0; i < count / 64; i++)
        bits[i] = UINT64_MAX;
    if (count % 64)
        bits[count / 64] = (UINT64_C(1) << count % 64) - 1;
}

/* Sets the bit if `value` holds, without a branch. */
static inline void gw_bit_or(uint64_t *bits, uint64_t i, bool value)
{
    bits[i / 64] |= (uint64_t)value << i % 64;
}

#endif
