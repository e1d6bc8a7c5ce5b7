/* Random numbers as the writers of random scenarios want them. */
#ifndef GW_TESTS_DRAW_H
#define GW_TESTS_DRAW_H

#include <stdbool.h>
#include <string.h>

#include "base/prng.h"

/* Uniform in [low, high]. */
static inline uint64_t gw_draw_between(struct gw_prng *prng, uint64_t low, uint64_t high)
{
    return high <= low ? low : low + gw_prng_next(prng) % (high - low + 1);
}

/* Small values as often as large ones: uniform in the number of bits. */
static inline uint64_t gw_draw_log(struct gw_prng *prng, uint64_t low, uint64_t high)
{
    uint32_t bits = (uint32_t)gw_draw_between(prng, 0, 63 - (uint32_t)__builtin_clzll(high | 1));
    uint64_t value = gw_draw_between(prng, UINT64_C(1) << bits, (UINT64_C(2) << bits) - 1);
    return value < low ? low : value > high ? high : value;
}

/* `value` times a factor from 1/4 to 4. */
static inline uint64_t gw_draw_around(struct gw_prng *prng, uint64_t value)
{
    return value / 4 + gw_draw_between(prng, 0, value / 4 * 15);
}

/* True once in `of` times. */
static inline bool gw_draw_once_in(struct gw_prng *prng, uint32_t of)
{
    return gw_prng_below(prng, of) == 0;
}

/* One of the words of "a|b|c": where it begins. */
static inline const char *gw_draw_word(struct gw_prng *prng, const char *words)
{
    uint32_t count = 1;
    for (const char *c = words; *c; c++)
        count += *c == '|';
    for (uint32_t skip = gw_prng_below(prng, count); skip > 0; skip--)
        words = strchr(words, '|') + 1;
    return words;
}

#endif
