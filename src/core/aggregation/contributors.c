/* Contributors of packets; see contributors.h. */
#include "core/aggregation/contributors.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"

enum {
    POSITIONS = 32, /* below a switch */
};

/* The workers below one place of the tree, for packets of one level. */
struct gw_group {
    struct gw_rank_set all;    /* packets that carry everybody below */
    uint16_t ranks[POSITIONS]; /* level 0: by position; GW_RANK_NONE: nobody */
};

static uint32_t groups_max(uint32_t world, uint32_t levels)
{
    return world * (levels ? levels : 1);
}

/* Carves the tables out of `memory`, or with NULL only measures them. */
static size_t contributors_carve(struct gw_contributors *tree, void *memory, uint32_t world,
                                 uint32_t levels)
{
    uint32_t max = groups_max(world, levels);
    struct gw_arena arena = {.base = memory};
    tree->groups = gw_arena_take(&arena, max * sizeof(*tree->groups));
    tree->origins = gw_arena_take(&arena, world * sizeof(*tree->origins));
    void *map = gw_arena_take(&arena, gw_map_size(max + world));
    if (memory)
        gw_map_init(&tree->map, map, max + world);
    return arena.used;
}

size_t gw_contributors_size(uint32_t world, uint32_t levels)
{
    struct gw_contributors tree;
    return contributors_carve(&tree, NULL, world, levels);
}

void gw_contributors_init(struct gw_contributors *tree, void *memory, uint32_t world,
                          uint32_t levels)
{
    *tree = (struct gw_contributors){.levels = levels};
    contributors_carve(tree, memory, world, levels);
}

/* A place of the tree: packets of `level` that come from below it. */
static uint64_t group_key(uint32_t level, const uint8_t above[2])
{
    uint32_t low = level <= 1 ? above[0] : 0;
    return (uint64_t)level << 16 | (uint64_t)above[1] << 8 | low;
}

static struct gw_group *group_make(struct gw_contributors *tree, uint32_t level,
                                   const uint8_t above[2])
{
    uint64_t key = group_key(level, above);
    uint32_t at = gw_map_get(&tree->map, key);
    if (at == GW_MAP_NONE) {
        at = tree->count++;
        int error = gw_map_put(&tree->map, key, at);
        GW_ASSERT(error == GW_OK);
        memset(&tree->groups[at], 0, sizeof(tree->groups[at]));
        memset(tree->groups[at].ranks, 0xff, sizeof(tree->groups[at].ranks));
    }
    return &tree->groups[at];
}

/* Notes the first switch of `rank`, which may be known from others. */
static void origin_enter(struct gw_contributors *tree, uint32_t rank, const struct gw_place *worker)
{
    uint8_t above[2] = {worker->above[0], worker->above[1]};
    if (worker->level > 0)
        above[worker->level - 1] = 0;
    uint64_t key = UINT64_C(1) << 32 | group_key(worker->level, above);
    uint32_t number = gw_map_get(&tree->map, key);
    if (number == GW_MAP_NONE) {
        number = tree->switch_count++;
        int error = gw_map_put(&tree->map, key, number);
        GW_ASSERT(error == GW_OK);
    }
    tree->origins[rank] = (struct gw_origin){
        .number = (uint16_t)number,
        .position = (uint8_t)__builtin_ctz(gw_place_bit(worker)),
    };
    if (rank >= tree->world)
        tree->world = rank + 1;
}

void gw_contributors_enter(struct gw_contributors *tree, uint32_t rank,
                           const struct gw_place *worker)
{
    gw_rank_set_add(&tree->everybody, rank);
    origin_enter(tree, rank, worker);
    if (worker->level == 0) {
        struct gw_group *group = group_make(tree, 0, worker->above);
        group->ranks[__builtin_ctz(worker->bitmap)] = (uint16_t)rank;
    }
    for (uint32_t level = 1; level < tree->levels; level++)
        if (level >= worker->level)
            gw_rank_set_add(&group_make(tree, level, worker->above)->all, rank);
}

const struct gw_rank_set *gw_contributors_of(const struct gw_contributors *tree,
                                             const struct gw_pkt *pkt, struct gw_rank_set *set)
{
    if (pkt->agg.level >= tree->levels && pkt->agg.level > 0)
        return pkt->agg.level == tree->levels ? &tree->everybody : NULL;
    gw_rank_set_clear(set);
    uint8_t above[2] = {pkt->agg.above[0], pkt->agg.above[1]};
    for (uint32_t bits = pkt->agg.bitmap; bits; bits &= bits - 1) {
        uint32_t position = (uint32_t)__builtin_ctz(bits);
        if (pkt->agg.level > 0)
            above[pkt->agg.level - 1] = (uint8_t)position;
        uint32_t at = gw_map_get(&tree->map, group_key(pkt->agg.level, above));
        if (at == GW_MAP_NONE)
            return NULL;
        const struct gw_group *group = &tree->groups[at];
        if (pkt->agg.level > 0)
            gw_rank_set_join(set, &group->all);
        else if (group->ranks[position] == GW_RANK_NONE)
            return NULL;
        else
            gw_rank_set_add(set, group->ranks[position]);
    }
    return pkt->agg.bitmap ? set : NULL;
}

uint32_t gw_contributors_missing(const struct gw_contributors *tree, const struct gw_rank_set *set,
                                 struct gw_rank_set *chosen)
{
    struct gw_rank_set asked = {0}; /* switches */
    uint32_t positions = 0;
    for (uint32_t rank = 0; rank < tree->world; rank++) {
        const struct gw_origin *origin = &tree->origins[rank];
        if (gw_rank_set_has(set, rank) || gw_rank_set_has(&asked, origin->number))
            continue;
        gw_rank_set_add(&asked, origin->number);
        positions |= UINT32_C(1) << origin->position;
        if (chosen)
            gw_rank_set_add(chosen, rank);
    }
    return positions;
}
