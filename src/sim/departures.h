/*
 * The departures that a node has pending: of each port that has more to send, when its link is
 * free. They are the leaves of a tournament tree, whose inner entries are the earlier of the two
 * below. Which port is next cannot be guessed, and no branch depends on it here.
 */
#ifndef GW_SIM_DEPARTURES_H
#define GW_SIM_DEPARTURES_H

#include "sim/sim_impl.h"

/* The key of a port without a departure, and the first one where there is none. */
#define GW_SIM_DEPARTURE_NONE UINT64_MAX

static inline uint64_t gw_sim_departure_key(const struct gw_sim *sim, uint16_t port, gw_time at)
{
    return at << sim->port_bits | port;
}

/* The earliest; of several at a time, that of the lowest port. */
static inline uint64_t gw_sim_departure_first(const struct gw_sim_node *node)
{
    return node->departures[1];
}

static inline gw_time gw_sim_departure_time(const struct gw_sim *sim, uint64_t key)
{
    return key == GW_SIM_DEPARTURE_NONE ? GW_TIME_NEVER : key >> sim->port_bits;
}

static inline uint16_t gw_sim_departure_port(const struct gw_sim *sim, uint64_t key)
{
    return (uint16_t)(key & ((UINT64_C(1) << sim->port_bits) - 1));
}

/* The departure of a port becomes another one, or none. */
static inline void gw_sim_departure_set(struct gw_sim_node *node, uint16_t port, uint64_t key)
{
    uint64_t *tree = node->departures;
    uint32_t i = node->departure_room + port;
    tree[i] = key;
    for (; i > 1; i >>= 1) {
        uint64_t other = tree[i ^ 1];
        key = other < key ? other : key;
        tree[i >> 1] = key;
    }
}

#endif
