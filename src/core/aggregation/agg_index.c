/* Aggregator indices of a job; see agg_index.h. */
#include "core/aggregation/agg_index.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/prng.h"

enum {
    SEARCH_STREAM = 0x5eed, /* keeps the search apart from the initial hashes */
};

static size_t used_words(uint32_t aggregators)
{
    return (aggregators + 63) / 64;
}

static bool is_used(const struct gw_agg_index *index, uint32_t at)
{
    return index->used[at / 64] >> (at % 64) & 1;
}

static void set_used(struct gw_agg_index *index, uint32_t at, bool used)
{
    uint64_t bit = UINT64_C(1) << (at % 64);
    index->used[at / 64] = used ? index->used[at / 64] | bit : index->used[at / 64] & ~bit;
}

/* The first index at or behind `at` that the job does not use; UINT32_MAX when it uses all. */
static uint32_t next_unused(const struct gw_agg_index *index, uint32_t at)
{
    for (uint32_t i = 0; i < index->aggregators; i++, at++) {
        if (at == index->aggregators)
            at = 0;
        if (!is_used(index, at))
            return at;
    }
    return UINT32_MAX;
}

static uint32_t hash_index(uint32_t aggregators, uint32_t job, uint32_t position)
{
    return (uint32_t)((gw_mix64((uint64_t)job << 32 | position) >> 32) * aggregators >> 32);
}

/* Carves the tables out of `memory`, or with NULL only measures them. */
static size_t agg_index_carve(struct gw_agg_index *index, void *memory, uint32_t positions,
                              uint32_t aggregators)
{
    struct gw_arena arena = {.base = memory};
    index->used = gw_arena_take(&arena, used_words(aggregators) * sizeof(*index->used));
    index->map = gw_arena_take(&arena, positions * sizeof(*index->map));
    return arena.used;
}

size_t gw_agg_index_size(uint32_t positions, uint32_t aggregators)
{
    struct gw_agg_index index;
    return agg_index_carve(&index, NULL, positions, aggregators);
}

void gw_agg_index_init(struct gw_agg_index *index, void *memory, uint32_t positions,
                       uint32_t aggregators, enum gw_agg_indexing indexing, uint32_t job,
                       uint32_t share)
{
    GW_ASSERT(positions > 0 && (positions & (positions - 1)) == 0 && aggregators > 0);
    *index = (struct gw_agg_index){
        .positions = positions,
        .aggregators = aggregators,
        .salt = job,
        .is_fixed = indexing != GW_AGG_INDEX_HASH,
    };
    agg_index_carve(index, memory, positions, aggregators);
    memset(index->used, 0, used_words(aggregators) * sizeof(*index->used));
    for (uint32_t position = 0; position < positions; position++) {
        uint32_t at = position % aggregators;
        if (indexing == GW_AGG_INDEX_STATIC) {
            at = (uint32_t)(((uint64_t)share * positions + position) % aggregators);
        } else if (indexing == GW_AGG_INDEX_HASH) {
            uint32_t hashed = hash_index(aggregators, job, position);
            uint32_t free = next_unused(index, hashed);
            at = free == UINT32_MAX ? hashed : free;
        }
        set_used(index, at, true);
        index->map[position] = (uint16_t)at;
    }
}

uint16_t gw_agg_index_unused(struct gw_agg_index *index, uint32_t seq)
{
    if (index->is_fixed)
        return gw_agg_index_of(index, seq);
    struct gw_prng prng = gw_prng_derive(index->salt++, SEARCH_STREAM);
    uint32_t at = next_unused(index, gw_prng_below(&prng, index->aggregators));
    return at == UINT32_MAX ? gw_agg_index_of(index, seq) : (uint16_t)at;
}

bool gw_agg_index_move(struct gw_agg_index *index, uint32_t seq, uint16_t to)
{
    uint16_t *at = &index->map[seq & (index->positions - 1)];
    if (index->is_fixed || to >= index->aggregators || to == *at)
        return false;
    set_used(index, *at, false);
    set_used(index, to, true);
    *at = to;
    return true;
}
