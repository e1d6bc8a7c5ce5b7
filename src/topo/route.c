/*
 * Shortest-path routes: for every switch, the equal-cost next hops towards every host.
 *
 * Hosts never forward. All hosts that hang on one switch and no other share one breadth-first
 * search; a host with several switches has its own. Sets of next hops that are equal are stored
 * once per switch, so a switch holds two bytes per host and a handful of sets.
 *
 * Invariant: a port is in the set for a host exactly if its link is up and its peer is the host or
 * one hop nearer to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/prng.h"
#include "topo/memory.h"
#include "topo/topo.h"

/* A switch's way to another switch over a link that is up. */
struct hop {
    uint32_t peer; /* node - host_count */
    uint16_t port;
};

/* What is needed while routes are built, besides the routes. */
struct builder {
    struct gw_topo *topo;
    uint32_t switch_count;
    struct hop *hops;    /* of all switches, grouped by switch, ports ascending */
    uint32_t *first_hop; /* switch_count + 1 indices into `hops` */
    uint32_t *home;      /* per host: its only switch, HOME_NONE or HOME_SEVERAL */
    uint32_t *distance;  /* per switch: links to the target host; DISTANCE_NONE: not reached */
    uint32_t *reached;   /* switches in the order in which the search reached them */
    uint32_t reached_count;
    uint16_t *members; /* the set that is being made */
    uint32_t *hosts;   /* hosts that share the search */
    struct growing {   /* room of a switch's tables, and the hash of each of its sets */
        uint64_t *hashes;
        uint32_t hash_room, set_room, member_room;
    } * growing;
};

#define HOME_NONE     UINT32_MAX
#define HOME_SEVERAL  (UINT32_MAX - 1)
#define DISTANCE_NONE UINT32_MAX

enum {
    SETS_MAX = GW_PORT_NONE, /* a set's index must differ from GW_PORT_NONE */
};

static bool port_is_up(const struct gw_topo *topo, const struct gw_topo_port *port)
{
    return !topo->links[port->link].down;
}

static void list_hops(struct builder *builder)
{
    const struct gw_topo *topo = builder->topo;
    uint32_t count = 0;
    for (uint32_t s = 0; s < builder->switch_count; s++) {
        const struct gw_topo_node *node = &topo->nodes[topo->host_count + s];
        builder->first_hop[s] = count;
        for (uint32_t p = 0; p < node->port_count; p++) {
            const struct gw_topo_port *port = &topo->ports[node->first_port + p];
            if (port->peer >= topo->host_count && port_is_up(topo, port))
                builder->hops[count++] =
                    (struct hop){.peer = port->peer - topo->host_count, .port = (uint16_t)p};
        }
    }
    builder->first_hop[builder->switch_count] = count;
}

static void find_homes(struct builder *builder)
{
    const struct gw_topo *topo = builder->topo;
    for (uint32_t h = 0; h < topo->host_count; h++) {
        const struct gw_topo_node *host = &topo->nodes[h];
        uint32_t home = HOME_NONE;
        for (uint32_t p = 0; p < host->port_count; p++) {
            const struct gw_topo_port *port = &topo->ports[host->first_port + p];
            if (port->peer < topo->host_count || !port_is_up(topo, port))
                continue;
            uint32_t peer = port->peer - topo->host_count;
            home = home == HOME_NONE || home == peer ? peer : HOME_SEVERAL;
        }
        builder->home[h] = home;
    }
}

static void reach(struct builder *builder, uint32_t s, uint32_t distance)
{
    if (builder->distance[s] != DISTANCE_NONE)
        return;
    builder->distance[s] = distance;
    builder->reached[builder->reached_count++] = s;
}

/* Finishes a search whose first switches have been reached. */
static void search(struct builder *builder)
{
    for (uint32_t i = 0; i < builder->reached_count; i++) {
        uint32_t s = builder->reached[i];
        for (uint32_t h = builder->first_hop[s]; h < builder->first_hop[s + 1]; h++)
            reach(builder, builder->hops[h].peer, builder->distance[s] + 1);
    }
}

static void search_reset(struct builder *builder)
{
    memset(builder->distance, 0xff, builder->switch_count * sizeof(builder->distance[0]));
    builder->reached_count = 0;
}

/*
 * Index of the set that equals builder->members[0..count) in the tables of switch `s`; it is added
 * if need be. SETS_MAX when there is no room.
 */
static uint32_t intern(struct builder *builder, uint32_t s, uint32_t count)
{
    struct gw_topo_routes *routes = &builder->topo->routes[s];
    struct growing *growing = &builder->growing[s];
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = gw_mix64(hash ^ builder->members[i]);
    size_t size = count * sizeof(routes->members[0]);
    for (uint32_t i = routes->set_count; i-- > 0;)
        if (growing->hashes[i] == hash && routes->sets[i].count == count &&
            memcmp(routes->members + routes->sets[i].first, builder->members, size) == 0)
            return i;
    if (routes->set_count == SETS_MAX)
        return SETS_MAX;
    routes->sets = gw_memory_grow(routes->sets, &growing->set_room, routes->set_count + 1,
                                  sizeof(routes->sets[0]));
    growing->hashes = gw_memory_grow(growing->hashes, &growing->hash_room, routes->set_count + 1,
                                     sizeof(growing->hashes[0]));
    routes->members = gw_memory_grow(routes->members, &growing->member_room,
                                     routes->member_count + count, sizeof(routes->members[0]));
    routes->sets[routes->set_count] =
        (struct gw_topo_set){.first = routes->member_count, .count = count};
    growing->hashes[routes->set_count] = hash;
    memcpy(routes->members + routes->member_count, builder->members, size);
    routes->member_count += count;
    return routes->set_count++;
}

/* The ports of switch `s` that lead straight to `host`; returns how many. */
static uint32_t direct_ports(struct builder *builder, uint32_t s, uint32_t host)
{
    const struct gw_topo *topo = builder->topo;
    const struct gw_topo_node *node = &topo->nodes[host];
    uint32_t count = 0;
    for (uint32_t p = 0; p < node->port_count; p++) {
        const struct gw_topo_port *port = &topo->ports[node->first_port + p];
        if (port->peer == topo->host_count + s && port_is_up(topo, port))
            builder->members[count++] = port->peer_port;
    }
    return count;
}

/* Stores the routes towards builder->hosts[0..host_count), which share the search just made. */
static int store(struct builder *builder, uint32_t host_count)
{
    struct gw_topo *topo = builder->topo;
    for (uint32_t i = 0; i < builder->reached_count; i++) {
        uint32_t s = builder->reached[i];
        uint16_t *route = topo->routes[s].route;
        uint32_t count = 0;
        if (builder->distance[s] > 1)
            for (uint32_t h = builder->first_hop[s]; h < builder->first_hop[s + 1]; h++)
                if (builder->distance[builder->hops[h].peer] + 1 == builder->distance[s])
                    builder->members[count++] = builder->hops[h].port;
        uint32_t set = count ? intern(builder, s, count) : 0;
        for (uint32_t h = 0; h < host_count; h++) {
            if (builder->distance[s] == 1)
                set = intern(builder, s, direct_ports(builder, s, builder->hosts[h]));
            if (set == SETS_MAX)
                return GW_ERR_NO_ROOM;
            route[builder->hosts[h]] = (uint16_t)set;
        }
    }
    return GW_OK;
}

/* Routes towards the hosts whose only switch is `s`. */
static int route_home(struct builder *builder, uint32_t s)
{
    const struct gw_topo *topo = builder->topo;
    const struct gw_topo_node *node = &topo->nodes[topo->host_count + s];
    uint32_t host_count = 0;
    for (uint32_t p = 0; p < node->port_count; p++) {
        uint32_t peer = topo->ports[node->first_port + p].peer;
        bool listed = host_count && builder->hosts[host_count - 1] == peer; /* parallel links */
        if (peer < topo->host_count && builder->home[peer] == s && !listed)
            builder->hosts[host_count++] = peer;
    }
    if (host_count == 0)
        return GW_OK;
    search_reset(builder);
    reach(builder, s, 1);
    search(builder);
    return store(builder, host_count);
}

/* Routes towards a host with several switches. */
static int route_host(struct builder *builder, uint32_t h)
{
    const struct gw_topo *topo = builder->topo;
    const struct gw_topo_node *host = &topo->nodes[h];
    search_reset(builder);
    for (uint32_t p = 0; p < host->port_count; p++) {
        const struct gw_topo_port *port = &topo->ports[host->first_port + p];
        if (port->peer >= topo->host_count && port_is_up(topo, port))
            reach(builder, port->peer - topo->host_count, 1);
    }
    search(builder);
    builder->hosts[0] = h;
    return store(builder, 1);
}

static void builder_init(struct builder *builder, struct gw_topo *topo)
{
    uint32_t switch_count = topo->node_count - topo->host_count;
    *builder = (struct builder){
        .topo = topo,
        .switch_count = switch_count,
        .hops = gw_memory_zeroed(2 * (size_t)topo->link_count, sizeof(struct hop)),
        .first_hop = gw_memory_zeroed(switch_count + 1, sizeof(uint32_t)),
        .home = gw_memory_zeroed(topo->host_count, sizeof(uint32_t)),
        .distance = gw_memory_zeroed(switch_count, sizeof(uint32_t)),
        .reached = gw_memory_zeroed(switch_count, sizeof(uint32_t)),
        .members = gw_memory_zeroed(UINT16_MAX, sizeof(uint16_t)),
        .hosts = gw_memory_zeroed(topo->host_count, sizeof(uint32_t)),
        .growing = gw_memory_zeroed(switch_count, sizeof(struct growing)),
    };
    list_hops(builder);
    find_homes(builder);
}

static void builder_fini(struct builder *builder)
{
    for (uint32_t s = 0; s < builder->switch_count; s++)
        free(builder->growing[s].hashes);
    free(builder->growing);
    free(builder->hosts);
    free(builder->members);
    free(builder->reached);
    free(builder->distance);
    free(builder->home);
    free(builder->first_hop);
    free(builder->hops);
}

int gw_topo_route(struct gw_topo *topo)
{
    gw_topo_routes_free(topo);
    struct builder builder;
    builder_init(&builder, topo);
    topo->routes = gw_memory_zeroed(builder.switch_count, sizeof(topo->routes[0]));
    size_t route_size = topo->host_count * sizeof(topo->routes[0].route[0]);
    for (uint32_t s = 0; s < builder.switch_count; s++) {
        topo->routes[s].route = gw_memory_zeroed(1, route_size);
        memset(topo->routes[s].route, 0xff, route_size); /* GW_PORT_NONE everywhere */
    }
    int error = GW_OK;
    for (uint32_t s = 0; s < builder.switch_count && !error; s++)
        error = route_home(&builder, s);
    for (uint32_t h = 0; h < topo->host_count && !error; h++)
        if (builder.home[h] == HOME_SEVERAL)
            error = route_host(&builder, h);
    builder_fini(&builder);
    return error;
}

void gw_topo_routes_free(struct gw_topo *topo)
{
    if (!topo->routes)
        return;
    for (uint32_t s = 0; s < topo->node_count - topo->host_count; s++) {
        free(topo->routes[s].members);
        free(topo->routes[s].sets);
        free(topo->routes[s].route);
    }
    free(topo->routes);
    topo->routes = NULL;
}
