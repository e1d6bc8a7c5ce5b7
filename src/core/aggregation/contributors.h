/*
 * Whose values a gradient packet carries: from its place in the job's tree to a set of ranks.
 *
 * A tree has up to GW_LEVELS_MAX levels of switches. The root is of level `levels - 1`, switches
 * below it are of the levels below; level 0 is as far from the root as any. A worker hangs on a
 * switch of any level. A packet of level l carries the sum of some workers below one switch of
 * level l - 1, or of level 0 those of its bitmap.
 */
#ifndef GW_CORE_CONTRIBUTORS_H
#define GW_CORE_CONTRIBUTORS_H

#include "base/map.h"
#include "core/aggregation/rank_set.h"
#include "core/pkt.h"

/* Where a worker sits in the job's tree. */
struct gw_place {
    uint32_t address;
    uint8_t level;    /* of the switch that it hangs on */
    uint32_t bitmap;  /* its position there, if level is 0: one bit */
    uint8_t above[2]; /* position of its switch, or if level is 1 of itself, and so on up */
};

/* Its position below that switch, as one bit. */
static inline uint32_t gw_place_bit(const struct gw_place *place)
{
    return place->level == 0 ? place->bitmap : UINT32_C(1) << place->above[place->level - 1];
}

/* The first switch that a worker's packets reach. */
struct gw_origin {
    uint16_t number; /* of the switch, as the tree counts them */
    uint8_t position;
};

struct gw_contributors {
    struct gw_rank_set everybody;
    struct gw_map map;       /* (level, above) to group, and of switches to their number */
    struct gw_group *groups; /* one per worker and level, at most */
    uint32_t count;
    uint32_t levels;
    struct gw_origin *origins; /* by rank */
    uint32_t world;            /* workers entered, by the highest rank */
    uint32_t switch_count;     /* that workers hang on */
};

/* Bytes of memory for gw_contributors_init(). */
size_t gw_contributors_size(uint32_t world, uint32_t levels);

/* An empty tree in `memory`, aligned to 64. Without levels workers are told apart by rank alone. */
void gw_contributors_init(struct gw_contributors *tree, void *memory, uint32_t world,
                          uint32_t levels);

/* Adds a worker; at most `world` of them. */
void gw_contributors_enter(struct gw_contributors *tree, uint32_t rank,
                           const struct gw_place *place);

/* Whose values a packet carries: the tree's own set of everybody, or `set`, which is filled. NULL:
 * it names a place that is not in the tree. */
const struct gw_rank_set *gw_contributors_of(const struct gw_contributors *tree,
                                             const struct gw_pkt *pkt, struct gw_rank_set *set);

/*
 * Whom to ask for what `set` lacks: positions at first switches, such that of every switch's
 * workers that are missing the first is among them. (One is enough to bring what its switch holds.)
 * Adds these firsts to `chosen`, if it is not NULL.
 */
uint32_t gw_contributors_missing(const struct gw_contributors *tree, const struct gw_rank_set *set,
                                 struct gw_rank_set *chosen);

/* A worker's position at its first switch, as one bit. */
static inline uint32_t gw_contributors_position(const struct gw_contributors *tree, uint32_t rank)
{
    return UINT32_C(1) << tree->origins[rank].position;
}

#endif
