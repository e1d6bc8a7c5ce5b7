/*
 * A set of the workers of a job, by rank. Loops over words of a fixed number: the compiler makes
 * vectors of them.
 */
#ifndef GW_CORE_RANK_SET_H
#define GW_CORE_RANK_SET_H

#include <string.h>

#include "base/bits.h"
#include "core/job.h"

enum {
    GW_RANK_WORDS = GW_WORLD_MAX / 64,
};

struct gw_rank_set {
    uint64_t words[GW_RANK_WORDS];
};

/* A loop, since GCC makes a slow string instruction of a memset() of this size. */
static inline void gw_rank_set_clear(struct gw_rank_set *set)
{
    for (uint32_t i = 0; i < GW_RANK_WORDS; i++)
        set->words[i] = 0;
}

static inline bool gw_rank_set_overlaps(const struct gw_rank_set *a, const struct gw_rank_set *b)
{
    uint64_t both = 0;
    for (uint32_t i = 0; i < GW_RANK_WORDS; i++)
        both |= a->words[i] & b->words[i];
    return both != 0;
}

static inline void gw_rank_set_join(struct gw_rank_set *a, const struct gw_rank_set *b)
{
    for (uint32_t i = 0; i < GW_RANK_WORDS; i++)
        a->words[i] |= b->words[i];
}

static inline void gw_rank_set_remove(struct gw_rank_set *a, const struct gw_rank_set *b)
{
    for (uint32_t i = 0; i < GW_RANK_WORDS; i++)
        a->words[i] &= ~b->words[i];
}

static inline bool gw_rank_set_is_empty(const struct gw_rank_set *set)
{
    return !gw_rank_set_overlaps(set, set);
}

/* Whether all of `a` are in `b`. */
static inline bool gw_rank_set_is_within(const struct gw_rank_set *a, const struct gw_rank_set *b)
{
    uint64_t others = 0;
    for (uint32_t i = 0; i < GW_RANK_WORDS; i++)
        others |= a->words[i] & ~b->words[i];
    return others == 0;
}

static inline uint32_t gw_rank_set_count(const struct gw_rank_set *set)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < GW_RANK_WORDS; i++)
        for (uint64_t rest = set->words[i]; rest; rest &= rest - 1)
            count++;
    return count;
}

/* The smallest rank of the set at or behind `rank`; GW_RANK_NONE: there is none. */
static inline uint32_t gw_rank_set_next(const struct gw_rank_set *set, uint32_t rank)
{
    for (uint32_t i = rank / 64; i < GW_RANK_WORDS; i++) {
        uint64_t word = set->words[i] & (i == rank / 64 ? UINT64_MAX << rank % 64 : UINT64_MAX);
        if (word)
            return i * 64 + (uint32_t)__builtin_ctzll(word);
    }
    return GW_RANK_NONE;
}

static inline bool gw_rank_set_equals(const struct gw_rank_set *a, const struct gw_rank_set *b)
{
    return a == b || memcmp(a, b, sizeof(*a)) == 0;
}

static inline void gw_rank_set_add(struct gw_rank_set *set, uint32_t rank)
{
    gw_bit_set(set->words, rank);
}

static inline bool gw_rank_set_has(const struct gw_rank_set *set, uint32_t rank)
{
    return gw_bit_is_set(set->words, rank);
}

#endif
