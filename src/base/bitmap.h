/*
 * Bitmaps of which the first bit that is set is found at once: 64 words share a bit of a summary,
 * which is set when one of them is not zero.
 *
 * The owner gives memory for the most bits that it will ever need, and says with each fill how many
 * there are; that costs in proportion to them, all else next to nothing.
 *
 * Invariant: `count` bits are set, none of them in a word of the summary before `from`.
 */
#ifndef GW_BASE_BITMAP_H
#define GW_BASE_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"

struct gw_bitmap {
    uint64_t *words;
    uint64_t *summary; /* bit w % 64 of word w / 64: word w is not zero */
    uint32_t count;    /* bits that are set */
    uint32_t from;     /* words of the summary before it are zero */
};

/* Bytes of memory for `bits`. */
static inline size_t gw_bitmap_size(uint32_t bits)
{
    uint64_t words = gw_bit_words(bits);
    return (words + gw_bit_words(words)) * sizeof(uint64_t);
}

/* Takes memory, aligned to 8, for `bits`; to be filled. */
static inline void gw_bitmap_init(struct gw_bitmap *map, void *memory, uint32_t bits)
{
    *map = (struct gw_bitmap){.words = memory};
    map->summary = map->words + gw_bit_words(bits);
}

/* The bits of word number `word` among the first `bits`. */
static inline uint64_t gw_bitmap_mask(uint32_t word, uint32_t bits)
{
    uint32_t rest = bits - word * 64;
    return rest >= 64 ? UINT64_MAX : (UINT64_C(1) << rest) - 1;
}

/* Sets the first `bits`, or clears them. */
static inline void gw_bitmap_fill(struct gw_bitmap *map, uint32_t bits, bool value)
{
    uint32_t words = (uint32_t)gw_bit_words(bits);
    uint32_t summary = (uint32_t)gw_bit_words(words);
    memset(map->words, value ? 0xff : 0, words * sizeof(uint64_t));
    memset(map->summary, value ? 0xff : 0, summary * sizeof(uint64_t));
    if (value && bits) {
        map->words[words - 1] = gw_bitmap_mask(words - 1, bits);
        map->summary[summary - 1] = gw_bitmap_mask(summary - 1, words);
    }
    map->count = value ? bits : 0;
    map->from = 0;
}

static inline bool gw_bitmap_test(const struct gw_bitmap *map, uint32_t bit)
{
    return gw_bit_is_set(map->words, bit);
}

/* Sets a bit that is not set. */
static inline void gw_bitmap_set(struct gw_bitmap *map, uint32_t bit)
{
    uint32_t word = bit / 64;
    gw_bit_set(map->words, bit);
    gw_bit_set(map->summary, word);
    map->count++;
    if (word / 64 < map->from)
        map->from = word / 64;
}

/* Clears a bit that is set. */
static inline void gw_bitmap_clear(struct gw_bitmap *map, uint32_t bit)
{
    uint32_t word = bit / 64;
    map->words[word] &= ~(UINT64_C(1) << (bit % 64));
    if (!map->words[word])
        map->summary[word / 64] &= ~(UINT64_C(1) << (word % 64));
    map->count--;
}

/* The first bit that is set; one is. */
static inline uint32_t gw_bitmap_first(struct gw_bitmap *map)
{
    while (!map->summary[map->from])
        map->from++;
    uint32_t word = map->from * 64 + (uint32_t)__builtin_ctzll(map->summary[map->from]);
    return word * 64 + (uint32_t)__builtin_ctzll(map->words[word]);
}

#endif
