/*
 * The second stage of a switch: by which port a packet leaves.
 *
 * Packets of one flow and entropy take one path: port = mix(flow key, entropy, salt) over the
 * equal-cost set of the destination (RFC 2992); or the set's members take turns, or a label says
 * which (core/lb/lb.h). A switch that learns knows one port for each address, and the uplink for
 * all others.
 */
#ifndef GW_CORE_SWITCH_ROUTE_H
#define GW_CORE_SWITCH_ROUTE_H

#include "core/pkt.h"
#include "core/switch/learned.h"
#include "core/switch/switch_stage.h"

/*
 * Next hops, in a form that stays in a cache near the core while a switch runs. Destinations come
 * in blocks of 2^block_shift, and blocks with the same routes share a leaf:
 *
 *   entry = leaves[blocks[d >> block_shift] << block_shift | low bits of d]
 *
 * An entry is a port, or GW_ROUTE_SET plus the index of a set of equal-cost ports, or
 * GW_PORT_NONE. With block_shift 31, one block and one leaf make a flat table.
 */
struct gw_switch_routes {
    const uint16_t *blocks;
    const uint16_t *leaves;
    const struct gw_switch_set {
        uint32_t first; /* index into `members` */
        uint32_t count; /* at least 1 */
    } * sets;
    const uint16_t *members; /* ports */
    uint16_t *turns;         /* per set, its member that is next; NULL: no turns (core/lb/lb.h) */
    uint32_t label_divisor;  /* without turns: digit of the label, label / divisor; 0: no labels */
    uint32_t destination_count;
    uint32_t block_shift;
};

#define GW_ROUTE_SET 0x8000u

struct gw_switch_route {
    struct gw_switch_routes table;
    struct gw_learned *learned; /* instead of the table, or NULL */
    uint16_t uplink;            /* learning: port of all else, or GW_PORT_NONE */
    uint32_t salt;
};

/*
 * ECMP: 96 bits to an index below `count`. Two rounds of multiply and fold, as in a finaliser; only
 * the high half of the last product is used, where all input bits meet.
 */
static inline uint32_t gw_switch_route_mix(uint32_t key, uint16_t entropy, uint32_t salt,
                                           uint32_t count)
{
    uint64_t x = ((uint64_t)key << 16 | entropy) ^ (uint64_t)salt << 32;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(((x >> 32) * count) >> 32);
}

/* Which of `members` a packet takes for its destination's set. */
static inline uint32_t gw_switch_route_spread(const struct gw_switch_route *route,
                                              const struct gw_pkt *pkt, uint32_t index)
{
    const struct gw_switch_routes *table = &route->table;
    struct gw_switch_set set = table->sets[index];
    if (table->turns) {
        uint16_t turn = table->turns[index];
        table->turns[index] = turn + 1u < set.count ? turn + 1 : 0;
        return set.first + turn;
    }
    if (table->label_divisor)
        return set.first + pkt->entropy / table->label_divisor % set.count;
    return set.first + gw_switch_route_mix(pkt->q.key, pkt->entropy, route->salt, set.count);
}

/* Finds the way of a packet in the table, and writes it to `hop`. */
static inline void gw_switch_route_look_up(const struct gw_switch_route *route,
                                           const struct gw_pkt *pkt, struct gw_switch_hop *hop)
{
    const struct gw_switch_routes *table = &route->table;
    hop->spreads = false;
    hop->out = GW_PORT_NONE;
    if (pkt->dst >= table->destination_count)
        return;
    uint32_t low = pkt->dst & ((1u << table->block_shift) - 1);
    uint32_t leaf = table->blocks[pkt->dst >> table->block_shift];
    uint16_t entry = table->leaves[leaf << table->block_shift | low];
    hop->out = entry;
    if (!(entry & GW_ROUTE_SET) || entry == GW_PORT_NONE)
        return;
    hop->set = (uint16_t)(entry & ~GW_ROUTE_SET);
    hop->spreads = table->sets[hop->set].count > 1;
    hop->out = table->members[gw_switch_route_spread(route, pkt, hop->set)];
}

/* Finds the way of a packet, and writes it to `hop`. */
static inline void gw_switch_route_find(const struct gw_switch_route *route,
                                        const struct gw_pkt *pkt, struct gw_switch_hop *hop)
{
    if (!route->learned) {
        gw_switch_route_look_up(route, pkt, hop);
        return;
    }
    uint16_t port = gw_learned_port(route->learned, pkt->dst);
    hop->spreads = false;
    hop->out = port == GW_PORT_NONE ? route->uplink : port;
}

/* The packet whose way was found last does not go it: whose turn it was has its turn again. */
static inline void gw_switch_route_return(const struct gw_switch_route *route,
                                          const struct gw_switch_hop *hop)
{
    const struct gw_switch_routes *table = &route->table;
    if (!hop->spreads || !table->turns)
        return;
    uint16_t turn = table->turns[hop->set];
    table->turns[hop->set] = (uint16_t)((turn ? turn : table->sets[hop->set].count) - 1);
}

/* Whether a packet may leave that way: none that is passed on leaves a learning switch by the port
 * that it came by. */
static inline bool gw_switch_route_allows(const struct gw_switch_route *route,
                                          const struct gw_switch_hop *hop)
{
    return hop->out != GW_PORT_NONE && !(route->learned && hop->out == hop->in && !hop->is_own);
}

#endif
