/* The tree of a job; see job_tree.h. */
#include "core/control/job_tree.h"

#include "base/arena.h"
#include "base/assert.h"

enum {
    RACKS = 1,                      /* wanted levels of a tree where racks add up for themselves */
    LEVEL_NONE = GW_LEVELS_MAX - 1, /* without the levels below: matches no packet */
};

/* Besides the root a worker adds at most the other switches of its way. */
static uint32_t nodes_max(uint32_t world)
{
    return (GW_LEVELS_MAX - 1) * world + 1;
}

/* Every worker is a member once, and so is every node but the root. */
static uint32_t members_max(uint32_t world)
{
    return world + nodes_max(world) - 1;
}

/* Carves the tables out of `memory`, or with NULL only measures them. */
static size_t tree_carve(struct gw_job_tree *tree, void *memory, uint32_t world)
{
    struct gw_arena arena = {.base = memory};
    tree->places = gw_arena_take(&arena, world * sizeof(*tree->places));
    tree->nodes = gw_arena_take(&arena, nodes_max(world) * sizeof(*tree->nodes));
    tree->leaves = gw_arena_take(&arena, world * sizeof(*tree->leaves));
    tree->members = gw_arena_take(&arena, members_max(world) * sizeof(*tree->members));
    tree->workers = gw_arena_take(&arena, members_max(world) * sizeof(*tree->workers));
    return arena.used;
}

size_t gw_job_tree_size(uint32_t world)
{
    struct gw_job_tree tree;
    return tree_carve(&tree, NULL, world);
}

static void places_by_rank(struct gw_job_tree *tree, const struct gw_job_way *ways, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++)
        tree->places[rank] = (struct gw_place){
            .address = ways[rank].worker,
            .bitmap = UINT32_C(1) << (rank % GW_FAN_IN_MAX),
            .above = {(uint8_t)(rank / GW_FAN_IN_MAX)},
        };
}

static bool is_without_switches(const struct gw_job_way *ways, uint32_t world)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < world; rank++)
        count += ways[rank].count;
    return count == 0;
}

/* Whether a switch is the second of three on some way. */
static bool is_middle(const struct gw_job_way *ways, uint32_t world, uint32_t address)
{
    for (uint32_t rank = 0; rank < world; rank++)
        if (ways[rank].count == 3 && ways[rank].switches[1] == address)
            return true;
    return false;
}

/* The way without the switches that are too many; its last one stays. */
static struct gw_job_way shorten(const struct gw_job_way *ways, uint32_t world,
                                 const struct gw_job_way *way)
{
    struct gw_job_way result = {.worker = way->worker};
    for (uint32_t i = 0; i < way->count; i++)
        if (i + 1u == way->count || !is_middle(ways, world, way->switches[i]))
            result.switches[result.count++] = way->switches[i];
    return result;
}

static uint32_t node_find(const struct gw_job_tree *tree, uint32_t address)
{
    for (uint32_t i = 0; i < tree->node_count; i++)
        if (tree->nodes[i].address == address)
            return i;
    return GW_JOB_NODE_NONE;
}

static uint32_t node_add(struct gw_job_tree *tree, uint32_t address, uint32_t next, uint32_t rank,
                         uint32_t via)
{
    struct gw_job_node *node = &tree->nodes[tree->node_count];
    *node = (struct gw_job_node){
        .address = address, .via = via, .next = next, .first_rank = (uint16_t)rank};
    if (next != GW_JOB_NODE_NONE) {
        node->depth = tree->nodes[next].depth + 1;
        node->position = (uint8_t)tree->nodes[next].switch_count++;
    }
    if (node->depth >= tree->levels)
        tree->levels = node->depth + 1u;
    return tree->node_count++;
}

/* Enters a way from the root down. False: it contradicts the ones before. */
static bool way_enter(struct gw_job_tree *tree, const struct gw_job_way *way, uint32_t rank)
{
    uint32_t next = GW_JOB_NODE_NONE;
    for (uint32_t i = way->count; i-- > 0;) {
        uint32_t node = node_find(tree, way->switches[i]);
        if (node == GW_JOB_NODE_NONE && (next != GW_JOB_NODE_NONE || tree->node_count == 0))
            node = node_add(tree, way->switches[i], next, rank, way->worker);
        else if (node == GW_JOB_NODE_NONE || tree->nodes[node].next != next)
            return false;
        next = node;
    }
    if (next == GW_JOB_NODE_NONE)
        return false;
    tree->leaves[rank] = (struct gw_job_leaf){
        .node = (uint16_t)next,
        .index = tree->nodes[next].worker_count++,
    };
    return true;
}

static uint32_t level_of(const struct gw_job_tree *tree, const struct gw_job_node *node)
{
    return tree->levels - 1 - node->depth;
}

static void spot_set(const struct gw_job_tree *tree, struct gw_job_node *node, bool is_racks)
{
    struct gw_job_spot *spot = &node->spot;
    for (const struct gw_job_node *at = node; at->next != GW_JOB_NODE_NONE;
         at = &tree->nodes[at->next])
        spot->above[level_of(tree, at)] = at->position;
    uint32_t level = level_of(tree, node);
    if (!is_racks) {
        spot->level = (uint8_t)level;
        spot->fan_in = (uint8_t)(node->switch_count + node->worker_count);
        return;
    }
    spot->level = node->worker_count ? 0 : LEVEL_NONE;
    spot->fan_in = (uint8_t)(node->worker_count ? node->worker_count : 1);
    if (node->worker_count && level > 0)
        spot->above[level - 1] = (uint8_t)node->switch_count; /* they are one more rack */
}

static void place_set(struct gw_job_tree *tree, uint32_t rank, uint32_t address, bool is_racks)
{
    const struct gw_job_leaf *leaf = &tree->leaves[rank];
    const struct gw_job_node *node = &tree->nodes[leaf->node];
    struct gw_place *place = &tree->places[rank];
    uint32_t level = is_racks ? 0 : level_of(tree, node);
    *place = (struct gw_place){
        .address = address,
        .level = (uint8_t)level,
        .above = {node->spot.above[0], node->spot.above[1]},
    };
    if (level == 0)
        place->bitmap = UINT32_C(1) << leaf->index;
    else
        place->above[level - 1] = (uint8_t)(node->switch_count + leaf->index);
}

/*
 * Members have the order of positions, so that a switch knows who is where: those without one come
 * behind. A worker stands for every switch below which it is the first.
 */
static void members_set(struct gw_job_tree *tree, const struct gw_job_way *ways, uint32_t world,
                        bool is_racks)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < tree->node_count; i++) {
        struct gw_job_node *node = &tree->nodes[i];
        node->first_member = first;
        node->member_count = (uint16_t)(node->switch_count + node->worker_count);
        first += node->member_count;
    }
    for (uint32_t rank = 0; rank < world; rank++) {
        const struct gw_job_leaf *leaf = &tree->leaves[rank];
        const struct gw_job_node *node = &tree->nodes[leaf->node];
        uint32_t before = is_racks ? 0 : node->switch_count;
        tree->members[node->first_member + before + leaf->index] = ways[rank].worker;
    }
    for (uint32_t i = 1; i < tree->node_count; i++) {
        const struct gw_job_node *node = &tree->nodes[i], *next = &tree->nodes[node->next];
        uint32_t before = is_racks ? next->worker_count : 0;
        tree->members[next->first_member + before + node->position] = node->via;
    }
}

/* Counts the workers behind each position. */
static void workers_set(struct gw_job_tree *tree, uint32_t world, bool is_racks)
{
    for (uint32_t i = 0; i < tree->node_count; i++) {
        const struct gw_job_node *node = &tree->nodes[i];
        for (uint32_t position = 0; position < node->member_count; position++) {
            bool is_worker =
                is_racks ? position < node->spot.fan_in : position >= node->switch_count;
            tree->workers[node->first_member + position] = is_worker;
        }
    }
    for (uint32_t rank = 0; rank < world && !is_racks; rank++) {
        const struct gw_job_node *node = &tree->nodes[tree->leaves[rank].node];
        for (; node->next != GW_JOB_NODE_NONE; node = &tree->nodes[node->next])
            tree->workers[tree->nodes[node->next].first_member + node->position]++;
    }
}

enum gw_job_reason gw_job_tree_make(struct gw_job_tree *tree, void *memory,
                                    const struct gw_job_way *ways, uint32_t world, uint32_t levels)
{
    GW_ASSERT(world >= 1 && world <= GW_WORLD_MAX && levels <= GW_LEVELS_MAX);
    *tree = (struct gw_job_tree){0};
    tree_carve(tree, memory, world);
    if (levels == 0 || is_without_switches(ways, world)) {
        places_by_rank(tree, ways, world);
        return GW_JOB_OK;
    }
    for (uint32_t rank = 0; rank < world; rank++) {
        struct gw_job_way way = ways[rank];
        GW_ASSERT(way.count <= GW_LEVELS_MAX);
        if (levels == 2)
            way = shorten(ways, world, &way);
        if (!way_enter(tree, &way, rank)) {
            tree->about = rank;
            return GW_JOB_PATH;
        }
    }
    for (uint32_t i = 0; i < tree->node_count; i++) {
        struct gw_job_node *node = &tree->nodes[i];
        if (node->switch_count + node->worker_count > GW_FAN_IN_MAX) {
            tree->about = node->address;
            return GW_JOB_TREE;
        }
        spot_set(tree, node, levels == RACKS);
    }
    for (uint32_t rank = 0; rank < world; rank++)
        place_set(tree, rank, ways[rank].worker, levels == RACKS);
    members_set(tree, ways, world, levels == RACKS);
    workers_set(tree, world, levels == RACKS);
    return GW_JOB_OK;
}
