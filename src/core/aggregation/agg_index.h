/*
 * Which aggregator a fragment uses: a job's map from window position to aggregator index.
 *
 * A job of window M uses M positions, sequence number modulo M, and so a fixed working set of
 * indices; collisions move single positions elsewhere until the sets of the jobs that share a
 * switch are disjoint (ATP, section 3.6). Workers and server start from the same map. The server
 * alone decides on a move, and a position's next fragment leaves no worker before the news that
 * came with its last one. So they agree on every fragment, in whatever order results arrive.
 */
#ifndef GW_CORE_AGG_INDEX_H
#define GW_CORE_AGG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gw_agg_indexing {
    GW_AGG_INDEX_HASH,   /* hashed and distinct; collisions are remapped */
    GW_AGG_INDEX_LINEAR, /* position modulo the number of aggregators; never remapped */
    GW_AGG_INDEX_STATIC, /* the job's own range: [job's share number * M, ...) */
};

struct gw_agg_index {
    uint16_t *map;      /* per position */
    uint64_t *used;     /* bit i: this job uses aggregator i */
    uint32_t positions; /* a power of two */
    uint32_t aggregators;
    uint32_t salt; /* of the search for unused indices */
    bool is_fixed; /* not hashed: positions never move */
};

/* Bytes of memory for gw_agg_index_init(). */
size_t gw_agg_index_size(uint32_t positions, uint32_t aggregators);

/*
 * Makes the initial map of `job` in `memory`, aligned to 8. Indices are distinct as long as there
 * are enough aggregators. `share` is the number of the job's range when `indexing` is STATIC.
 */
void gw_agg_index_init(struct gw_agg_index *index, void *memory, uint32_t positions,
                       uint32_t aggregators, enum gw_agg_indexing indexing, uint32_t job,
                       uint32_t share);

static inline uint16_t gw_agg_index_of(const struct gw_agg_index *index, uint32_t seq)
{
    return index->map[seq & (index->positions - 1)];
}

/* For the server: an index that the job does not use, or the present one if there is none. */
uint16_t gw_agg_index_unused(struct gw_agg_index *index, uint32_t seq);

/* Moves the position of `seq` to aggregator `to`. False: it is there, or must not or cannot be. */
bool gw_agg_index_move(struct gw_agg_index *index, uint32_t seq, uint16_t to);

#endif
