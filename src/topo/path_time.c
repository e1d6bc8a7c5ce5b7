/*
 * Times of a shortest path in an empty network, to the picosecond as the simulator runs it.
 *
 * Each link costs its propagation, the serialisation of the whole packet (store and forward) and
 * the receiving node's delay. With equal links and switches the round trip is H * (2 * latency +
 * ser(full) + ser(ack)) + 2 * (H - 1) * switch latency for H links one way.
 */
#include <stdlib.h>

#include "topo/memory.h"
#include "topo/topo.h"

/* A one-way walk. */
struct walk {
    uint32_t hops; /* 0: unreachable */
    gw_time time;
    uint64_t rate_bps_min;
};

static void walk_link(const struct gw_topo *topo, const struct gw_topo_port *port, uint32_t bytes,
                      struct walk *walk)
{
    const struct gw_link *link = &topo->links[port->link];
    uint64_t rate_bps = link->side[port->side].rate_bps;
    walk->hops++;
    walk->time += link->latency + topo->nodes[port->peer].delay +
                  gw_serialisation(gw_byte_time_from_bps(rate_bps), bytes);
    if (rate_bps < walk->rate_bps_min)
        walk->rate_bps_min = rate_bps;
}

/* Leaves `src` through `port` and takes the first next hop everywhere. */
static struct walk walk_from(const struct gw_topo *topo, const struct gw_topo_port *port,
                             uint32_t dst, uint32_t bytes)
{
    struct walk walk = {.rate_bps_min = UINT64_MAX};
    /* Every hop leads nearer, so that the walk ends. */
    for (;;) {
        walk_link(topo, port, bytes, &walk);
        if (port->peer == dst)
            return walk;
        if (port->peer < topo->host_count)
            return (struct walk){0}; /* another host, which does not forward */
        const struct gw_topo_routes *routes = &topo->routes[port->peer - topo->host_count];
        if (routes->route[dst] == GW_PORT_NONE)
            return (struct walk){0};
        uint16_t next = routes->members[routes->sets[routes->route[dst]].first];
        port = &topo->ports[topo->nodes[port->peer].first_port + next];
    }
}

/* The walk over the source's port that needs the fewest links. */
static struct walk walk_shortest(const struct gw_topo *topo, uint32_t src, uint32_t dst,
                                 uint32_t bytes)
{
    struct walk shortest = {0};
    const struct gw_topo_node *node = &topo->nodes[src];
    for (uint32_t p = 0; p < node->port_count; p++) {
        const struct gw_topo_port *port = &topo->ports[node->first_port + p];
        if (topo->links[port->link].down)
            continue;
        struct walk walk = walk_from(topo, port, dst, bytes);
        if (walk.hops && (!shortest.hops || walk.hops < shortest.hops))
            shortest = walk;
    }
    return shortest;
}

struct gw_topo_path gw_topo_path(const struct gw_topo *topo, uint32_t src, uint32_t dst,
                                 uint32_t full, uint32_t ack)
{
    if (src == dst)
        return (struct gw_topo_path){0};
    struct walk out = walk_shortest(topo, src, dst, full);
    struct walk back = walk_shortest(topo, dst, src, ack);
    if (!out.hops || !back.hops)
        return (struct gw_topo_path){0};
    return (struct gw_topo_path){
        .hops = (uint16_t)out.hops,
        .one_way_full = out.time,
        .one_way_ack = back.time,
        .rate_bps_min = out.rate_bps_min,
    };
}

/* True when no path can tell the two hosts apart: one link each, alike, to the same switch. */
static bool hosts_are_alike(const struct gw_topo *topo, uint32_t a, uint32_t b)
{
    const struct gw_topo_node *na = &topo->nodes[a], *nb = &topo->nodes[b];
    if (na->port_count != 1 || nb->port_count != 1 || na->delay != nb->delay)
        return false;
    const struct gw_topo_port *pa = &topo->ports[na->first_port];
    const struct gw_topo_port *pb = &topo->ports[nb->first_port];
    const struct gw_link *la = &topo->links[pa->link], *lb = &topo->links[pb->link];
    return pa->peer == pb->peer && la->latency == lb->latency && la->down == lb->down &&
           la->side[pa->side].rate_bps == lb->side[pb->side].rate_bps &&
           la->side[!pa->side].rate_bps == lb->side[!pb->side].rate_bps;
}

gw_time gw_topo_brtt_max(const struct gw_topo *topo, uint32_t full, uint32_t ack)
{
    /* Of a row of hosts that are alike, two stand for all: one as either end, the other for the
     * path between two of them. */
    uint32_t *ends = gw_memory_zeroed(topo->host_count, sizeof(*ends));
    uint32_t end_count = 0;
    for (uint32_t h = 0; h < topo->host_count; h++) {
        bool third = end_count >= 2 && hosts_are_alike(topo, h, ends[end_count - 1]) &&
                     hosts_are_alike(topo, h, ends[end_count - 2]);
        if (!third)
            ends[end_count++] = h;
    }
    gw_time brtt_max = 0;
    for (uint32_t i = 0; i < end_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            struct gw_topo_path path = gw_topo_path(topo, ends[i], ends[j], full, ack);
            gw_time brtt = path.one_way_full + path.one_way_ack;
            brtt_max = brtt > brtt_max ? brtt : brtt_max;
        }
    free(ends);
    return brtt_max;
}
