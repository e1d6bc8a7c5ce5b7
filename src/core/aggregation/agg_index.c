/* Aggregator indices of a job; see agg_index.h. */
#include "core/aggregation/agg_index.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/prng.h"

enum {
    SEARCH_STREAM = 0x5eed,    /* keeps the search apart from the initial hashes */
    REHASH_STREAM = INT32_MAX, /* in the place of a job: the next index depends on the last only */
};

static size_t used_words(uint32_t aggregators)
{
    return gw_bit_words(aggregators);
}

static bool is_used(const struct gw_agg_index *index, uint32_t at)
{
    return gw_bit_is_set(index->used, at);
}

static void set_used(struct gw_agg_index *index, uint32_t at, bool used)
{
    uint64_t bit = UINT64_C(1) << (at % 64);
    index->used[at / 64] = used ? index->used[at / 64] | bit : index->used[at / 64] & ~bit;
}

/* The first index at or behind `at` that the job does not use; UINT32_MAX when it uses all. */
static uint32_t next_unused(const struct gw_agg_index *index, uint32_t at)
{
    for (uint32_t i = 0; i < index->cfg.aggregators; i++, at++) {
        if (at == index->cfg.aggregators)
            at = 0;
        if (!is_used(index, at))
            return at;
    }
    return UINT32_MAX;
}

static uint32_t hash_index(uint32_t aggregators, uint32_t job, uint32_t place)
{
    return (uint32_t)((gw_mix64((uint64_t)job << 32 | place) >> 32) * aggregators >> 32);
}

static bool is_swept(const struct gw_agg_index_cfg *cfg)
{
    return cfg->hashing == GW_AGG_HASH_SEQUENCE && cfg->indexing != GW_AGG_INDEX_STATIC;
}

static uint32_t places_of(const struct gw_agg_index_cfg *cfg)
{
    return is_swept(cfg) ? cfg->aggregators : gw_agg_span(cfg->window, cfg->indexing);
}

/* Carves the tables out of `memory`, or with NULL only measures them. */
static size_t agg_index_carve(struct gw_agg_index *index, void *memory,
                              const struct gw_agg_index_cfg *cfg)
{
    struct gw_arena arena = {.base = memory};
    index->used = gw_arena_take(&arena, used_words(cfg->aggregators) * sizeof(*index->used));
    index->map = gw_arena_take(&arena, places_of(cfg) * sizeof(*index->map));
    return arena.used;
}

size_t gw_agg_index_size(const struct gw_agg_index_cfg *cfg)
{
    struct gw_agg_index index;
    return agg_index_carve(&index, NULL, cfg);
}

/* The aggregator that a place begins with. */
static uint32_t first_index(const struct gw_agg_index *index, uint32_t place)
{
    const struct gw_agg_index_cfg *cfg = &index->cfg;
    if (cfg->indexing == GW_AGG_INDEX_STATIC)
        return (uint32_t)(((uint64_t)cfg->share * cfg->window + place) % cfg->aggregators);
    if (cfg->indexing == GW_AGG_INDEX_LINEAR || is_swept(cfg))
        return place % cfg->aggregators;
    uint32_t hashed = hash_index(cfg->aggregators, cfg->job, place);
    uint32_t free = next_unused(index, hashed);
    return free == UINT32_MAX ? hashed : free;
}

void gw_agg_index_init(struct gw_agg_index *index, void *memory, const struct gw_agg_index_cfg *cfg)
{
    GW_ASSERT(cfg->window >= 1 && cfg->window <= GW_AGG_WINDOW_MAX && cfg->aggregators > 0);
    uint32_t places = places_of(cfg);
    bool is_hashed = is_swept(cfg) && cfg->indexing == GW_AGG_INDEX_HASH;
    *index = (struct gw_agg_index){
        .cfg = *cfg,
        .places = places,
        .mask = is_hashed || (places & (places - 1)) ? 0 : places - 1,
        .salt = cfg->job,
    };
    agg_index_carve(index, memory, cfg);
    memset(index->used, 0, used_words(cfg->aggregators) * sizeof(*index->used));
    for (uint32_t place = 0; place < places; place++) {
        uint32_t at = first_index(index, place);
        set_used(index, at, true);
        index->map[place] = (uint16_t)at;
    }
}

/* Numbers wrap: a job in a range that is no power of two meets itself then, once in 2^32. */
uint32_t gw_agg_index_place(const struct gw_agg_index *index, uint32_t seq)
{
    if (is_swept(&index->cfg) && index->cfg.indexing == GW_AGG_INDEX_HASH)
        return hash_index(index->places, index->cfg.job, seq);
    return seq % index->places;
}

uint16_t gw_agg_index_next(struct gw_agg_index *index, uint32_t seq)
{
    const struct gw_agg_index_cfg *cfg = &index->cfg;
    uint16_t present = gw_agg_index_of(index, seq);
    if (cfg->indexing != GW_AGG_INDEX_HASH)
        return present;
    if (cfg->remap == GW_AGG_REMAP_REHASH)
        return (uint16_t)hash_index(cfg->aggregators, REHASH_STREAM, present);
    struct gw_prng prng = gw_prng_derive(index->salt++, SEARCH_STREAM);
    uint32_t at = next_unused(index, gw_prng_below(&prng, cfg->aggregators));
    return at == UINT32_MAX ? present : (uint16_t)at;
}

bool gw_agg_index_move(struct gw_agg_index *index, uint32_t seq, uint16_t to)
{
    const struct gw_agg_index_cfg *cfg = &index->cfg;
    uint32_t place = index->mask ? seq & index->mask : gw_agg_index_place(index, seq);
    uint16_t *at = &index->map[place];
    if (cfg->indexing != GW_AGG_INDEX_HASH || to >= cfg->aggregators || to == *at)
        return false;
    set_used(index, *at, false);
    set_used(index, to, true);
    *at = to;
    return true;
}
