/*
 * Packs the topology's routes into the tables of core/switch/switch.h: per switch one piece of
 * memory, small enough to be fetched whole before the switch runs.
 */
#include "sim/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/labels.h"
#include "topo/memory.h"

enum {
    BLOCK_SHIFT_MIN = 2,
    BLOCK_SHIFT_MAX = 8,
};

#define TURNS_STREAM UINT64_MAX /* of a node's seed, beyond those of its lives */

/* Blocks as large as the number of hosts on the first host's switch, which mostly route alike. */
static uint32_t block_shift_of(const struct gw_topo *topo)
{
    uint32_t home = topo->ports[topo->nodes[0].first_port].peer;
    uint32_t together = 0;
    while (together < topo->host_count &&
           topo->ports[topo->nodes[together].first_port].peer == home)
        together++;
    uint32_t shift = BLOCK_SHIFT_MIN;
    while (shift < BLOCK_SHIFT_MAX && 2u << shift <= together)
        shift++;
    return shift;
}

static uint16_t entry_of(const struct gw_topo_routes *routes, uint32_t host)
{
    uint16_t set = routes->route[host];
    if (set == GW_PORT_NONE)
        return GW_PORT_NONE;
    return routes->sets[set].count == 1 ? routes->members[routes->sets[set].first]
                                        : (uint16_t)(GW_ROUTE_SET | set);
}

/* Room for one switch's tables while they are made. */
struct scratch {
    uint32_t shift;
    uint32_t block_count;
    uint16_t *blocks;
    uint16_t *leaves; /* room for every block to be different */
};

/* Fills scratch; returns the number of distinct leaves. */
static uint32_t pack(const struct scratch *scratch, const struct gw_topo *topo,
                     const struct gw_topo_routes *routes)
{
    uint32_t size = 1u << scratch->shift, leaf_count = 0;
    for (uint32_t block = 0; block < scratch->block_count; block++) {
        uint16_t *fresh = scratch->leaves + ((size_t)leaf_count << scratch->shift);
        for (uint32_t i = 0; i < size; i++) {
            uint32_t host = (block << scratch->shift) + i;
            fresh[i] = host < topo->host_count ? entry_of(routes, host) : GW_PORT_NONE;
        }
        uint32_t leaf = 0;
        while (leaf < leaf_count && memcmp(scratch->leaves + ((size_t)leaf << scratch->shift),
                                           fresh, size * sizeof(*fresh)) != 0)
            leaf++;
        leaf_count += leaf == leaf_count;
        scratch->blocks[block] = (uint16_t)leaf;
    }
    return leaf_count;
}

/* Fills the turns of a switch's sets: each starts at a random member. */
static void start_turns(const struct gw_sim *sim, const struct gw_sim_node *node,
                        const struct gw_topo_routes *routes, uint16_t *turns)
{
    uint64_t own = gw_prng_derive(sim->options.seed, 2 * (uint64_t)node->id).state;
    struct gw_prng prng = gw_prng_derive(own, TURNS_STREAM);
    for (uint32_t i = 0; i < routes->set_count; i++)
        turns[i] = (uint16_t)gw_prng_below(&prng, routes->sets[i].count);
}

/* The tables of one switch, as they lie in its piece of memory. */
struct tables {
    uint16_t *blocks, *leaves, *members, *turns;
    struct gw_switch_set *sets;
};

/* Room for the tables; `turns` are NULL where the spread needs none. */
static struct tables carve(struct gw_arena *arena, const struct gw_topo_routes *routes,
                           const struct scratch *scratch, uint32_t leaf_count, bool takes_turns)
{
    size_t leaf_size = sizeof(uint16_t) << scratch->shift;
    return (struct tables){
        .blocks = gw_arena_take(arena, scratch->block_count * sizeof(uint16_t)),
        .leaves = gw_arena_take(arena, leaf_count * leaf_size),
        .members = gw_arena_take(arena, routes->member_count * sizeof(uint16_t)),
        .sets = gw_arena_take(arena, routes->set_count * sizeof(struct gw_switch_set)),
        .turns = takes_turns ? gw_arena_take(arena, routes->set_count * sizeof(uint16_t)) : NULL,
    };
}

static void copy(void *to, const void *from, size_t size)
{
    if (size) /* a switch that reaches nobody has no sets */
        memcpy(to, from, size);
}

static void install(struct gw_sim *sim, struct gw_sim_node *node,
                    const struct gw_topo_routes *routes, const struct scratch *scratch)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    uint32_t leaf_count = pack(scratch, topo, routes);
    enum gw_spread spread = sim->scenario->transport.lb->spread;
    bool takes_turns = spread == GW_SPREAD_TURNS;
    struct gw_arena measure = {.base = NULL};
    carve(&measure, routes, scratch, leaf_count, takes_turns);
    void *old = node->routes;
    node->routes = gw_memory_aligned(measure.used);
    node->routes_size = measure.used;
    struct gw_arena arena = {.base = node->routes};
    struct tables tables = carve(&arena, routes, scratch, leaf_count, takes_turns);
    _Static_assert(sizeof(struct gw_switch_set) == sizeof(struct gw_topo_set), "same layout");
    copy(tables.blocks, scratch->blocks, scratch->block_count * sizeof(uint16_t));
    copy(tables.leaves, scratch->leaves, ((size_t)leaf_count << scratch->shift) * sizeof(uint16_t));
    copy(tables.members, routes->members, routes->member_count * sizeof(uint16_t));
    copy(tables.sets, routes->sets, routes->set_count * sizeof(struct gw_switch_set));
    if (takes_turns)
        start_turns(sim, node, routes, tables.turns);
    const struct gw_switch_routes installed = {
        .destination_count = topo->host_count,
        .block_shift = scratch->shift,
        .blocks = tables.blocks,
        .leaves = tables.leaves,
        .sets = tables.sets,
        .members = tables.members,
        .turns = tables.turns,
        .label_divisor =
            spread == GW_SPREAD_LABELS ? sim->labels.divisors[node->id - topo->host_count] : 0,
    };
    gw_switch_set_routes(node->sw, &installed);
    free(old);
}

void gw_sim_install_routes(struct gw_sim *sim)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    struct scratch scratch = {.shift = block_shift_of(topo)};
    gw_sim_labels_renew(sim);
    scratch.block_count = (topo->host_count >> scratch.shift) + 1;
    scratch.blocks = gw_memory_aligned(scratch.block_count * sizeof(uint16_t));
    scratch.leaves =
        gw_memory_aligned(((size_t)scratch.block_count << scratch.shift) * sizeof(uint16_t));
    for (uint32_t i = topo->host_count; i < topo->node_count; i++)
        install(sim, &sim->nodes[sim->place[i]], &topo->routes[i - topo->host_count], &scratch);
    free(scratch.blocks);
    free(scratch.leaves);
}
