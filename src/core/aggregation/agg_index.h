/*
 * Which aggregator a fragment uses: a job's map from places to aggregator indices.
 *
 * A job of window M uses M positions, or as many as the next power of two, and so a fixed working
 * set of indices; collisions move single positions elsewhere until the sets of the jobs that share
 * a switch are disjoint (ATP, section 3.6, in the authors' code). A fragment's position is its
 * number modulo M. Workers and server start from the same map. The server alone decides on a move,
 * and a position's next fragment leaves no worker before the news that came with its last one. So
 * they agree on every fragment, in whatever order results arrive.
 *
 * With GW_AGG_HASH_SEQUENCE, as published, the place of a fragment is its own hash over all
 * aggregators, and what moves is such a place. Two fragments that are out may have the same one,
 * and workers that hear of moves in different orders may disagree for a while: the server sees that
 * by packets of one fragment with different indices, and says where the place is now.
 */
#ifndef GW_CORE_AGG_INDEX_H
#define GW_CORE_AGG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/agg_rules.h"

enum gw_agg_indexing {
    GW_AGG_INDEX_HASH,   /* hashed and distinct; collisions are remapped */
    GW_AGG_INDEX_LINEAR, /* modulo the number of aggregators; never remapped */
    GW_AGG_INDEX_STATIC, /* the job's own range: [share * window, (share + 1) * window) */
};

enum {
    GW_AGG_WINDOW_MAX = 65536, /* fragments: as many as a packet can name aggregators */
};

struct gw_agg_index_cfg {
    uint32_t job;
    uint32_t window;      /* the largest one: 1 to GW_AGG_WINDOW_MAX fragments */
    uint32_t aggregators; /* of every switch */
    enum gw_agg_indexing indexing;
    enum gw_agg_hashing hashing;
    enum gw_agg_remap remap;
    uint32_t share; /* number of the job's range when indexing is static */
};

struct gw_agg_index {
    struct gw_agg_index_cfg cfg;
    uint16_t *map;   /* per place */
    uint64_t *used;  /* bit i: this job uses aggregator i */
    uint32_t places; /* in the map */
    uint32_t mask;   /* places - 1 if the place is the number modulo a power of two, else 0 */
    uint32_t salt;   /* of the search for unused indices */
};

/* Positions for a window of up to `window` fragments: the least power of two that has room. */
static inline uint32_t gw_agg_positions(uint32_t window)
{
    return window <= 1 ? 1 : UINT32_C(1) << (32 - __builtin_clz(window - 1));
}

/* How many consecutive fragments have a position each. */
static inline uint32_t gw_agg_span(uint32_t window, enum gw_agg_indexing indexing)
{
    return indexing == GW_AGG_INDEX_STATIC ? window : gw_agg_positions(window);
}

/* Bytes of memory for gw_agg_index_init(). */
size_t gw_agg_index_size(const struct gw_agg_index_cfg *cfg);

/*
 * Makes the initial map in `memory`, aligned to 8. Indices of positions are distinct as long as
 * there are enough aggregators.
 */
void gw_agg_index_init(struct gw_agg_index *index, void *memory,
                       const struct gw_agg_index_cfg *cfg);

/* The place of a fragment where a mask does not say it. */
uint32_t gw_agg_index_place(const struct gw_agg_index *index, uint32_t seq);

static inline uint16_t gw_agg_index_of(const struct gw_agg_index *index, uint32_t seq)
{
    return index->map[index->mask ? seq & index->mask : gw_agg_index_place(index, seq)];
}

/* For the server: where the fragment's place is to move, or where it is if it cannot. */
uint16_t gw_agg_index_next(struct gw_agg_index *index, uint32_t seq);

/* Moves the place of `seq` to aggregator `to`. False: it is there, or must not or cannot be. */
bool gw_agg_index_move(struct gw_agg_index *index, uint32_t seq, uint16_t to);

#endif
