/*
 * Nodes, links and ports of a topology; see topo.h.
 *
 * Routes are in route.c, path times in path_time.c, partitions in partition.c, the kinds in
 * kinds.c.
 */
#include "topo/topo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "topo/memory.h"

enum {
    PORTS_MAX = UINT16_MAX, /* ports of one node; GW_PORT_NONE is not a port */
};

void gw_topo_init(struct gw_topo *topo)
{
    *topo = (struct gw_topo){0};
}

void gw_topo_fini(struct gw_topo *topo)
{
    gw_topo_routes_free(topo);
    free(topo->ports);
    free(topo->links);
    free(topo->nodes);
    gw_topo_init(topo);
}

uint32_t gw_topo_add_node(struct gw_topo *topo, bool is_switch, uint32_t group, gw_time delay,
                          const char *name_format, ...)
{
    GW_ASSERT(is_switch || topo->host_count == topo->node_count);
    topo->nodes =
        gw_memory_grow(topo->nodes, &topo->node_room, topo->node_count + 1, sizeof(topo->nodes[0]));
    struct gw_topo_node *node = &topo->nodes[topo->node_count];
    *node = (struct gw_topo_node){.group = group, .delay = delay};
    va_list args;
    va_start(args, name_format);
    vsnprintf(node->name, sizeof(node->name), name_format, args);
    va_end(args);
    topo->host_count += !is_switch;
    return topo->node_count++;
}

uint32_t gw_topo_add_link(struct gw_topo *topo, uint32_t a, uint32_t b, uint64_t rate_bps,
                          gw_time latency)
{
    GW_ASSERT(a < topo->node_count && b < topo->node_count && a != b);
    topo->links =
        gw_memory_grow(topo->links, &topo->link_room, topo->link_count + 1, sizeof(topo->links[0]));
    topo->links[topo->link_count] = (struct gw_link){
        .side = {{.node = a, .rate_bps = rate_bps}, {.node = b, .rate_bps = rate_bps}},
        .latency = latency,
    };
    return topo->link_count++;
}

uint32_t gw_topo_find(const struct gw_topo *topo, const char *name)
{
    for (uint32_t i = 0; i < topo->node_count; i++)
        if (strcmp(topo->nodes[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

/* Counts every node's ports and gives it a range of the port array. */
static int place_ports(struct gw_topo *topo, char *why, size_t why_size)
{
    uint32_t *count = gw_memory_zeroed(topo->node_count, sizeof(*count));
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++)
            count[topo->links[i].side[side].node]++;
    int error = GW_OK;
    uint32_t first = 0;
    for (uint32_t i = 0; i < topo->node_count && !error; i++) {
        struct gw_topo_node *node = &topo->nodes[i];
        if (count[i] > PORTS_MAX) {
            snprintf(why, why_size, "node %s has %u links; the limit is %u", node->name, count[i],
                     PORTS_MAX);
            error = GW_ERR_INVALID;
        } else if (count[i] == 0 && i < topo->host_count) {
            snprintf(why, why_size, "host %s has no link", node->name);
            error = GW_ERR_INVALID;
        }
        node->first_port = first;
        node->port_count = 0; /* grows to count[i] as ports are numbered */
        first += count[i];
    }
    free(count);
    return error;
}

static void number_port(struct gw_topo *topo, uint32_t link, uint32_t side)
{
    struct gw_link_side *own = &topo->links[link].side[side];
    struct gw_topo_node *node = &topo->nodes[own->node];
    own->port = node->port_count++;
    topo->ports[node->first_port + own->port] = (struct gw_topo_port){
        .link = link, .side = (uint8_t)side, .peer = topo->links[link].side[!side].node};
}

/*
 * Numbers ports in the order of (peer, link): a first pass lists the links of each node, a second
 * goes through the peers in order and appends each of their links to the node at its other end.
 */
static void number_ports(struct gw_topo *topo)
{
    uint32_t end_count = 2 * topo->link_count;
    uint32_t *ends = gw_memory_zeroed(end_count, sizeof(*ends)); /* link * 2 + side, by node */
    uint32_t *next = gw_memory_zeroed(topo->node_count, sizeof(*next));
    for (uint32_t i = 0; i < topo->node_count; i++)
        next[i] = topo->nodes[i].first_port;
    for (uint32_t end = 0; end < end_count; end++)
        ends[next[topo->links[end / 2].side[end % 2].node]++] = end;
    for (uint32_t i = 0; i < end_count; i++)
        number_port(topo, ends[i] / 2, !(ends[i] % 2));
    for (uint32_t i = 0; i < end_count; i++) {
        struct gw_topo_port *port = &topo->ports[i];
        port->peer_port = topo->links[port->link].side[!port->side].port;
    }
    free(next);
    free(ends);
}

int gw_topo_finish(struct gw_topo *topo, char *why, size_t why_size)
{
    if (topo->host_count == 0) {
        snprintf(why, why_size, "the topology has no host");
        return GW_ERR_INVALID;
    }
    for (uint32_t i = 0; i < topo->node_count; i++)
        GW_ASSERT(topo->nodes[i].group == GW_GROUP_ANY || topo->nodes[i].group < topo->node_count);
    int error = place_ports(topo, why, why_size);
    if (error)
        return error;
    free(topo->ports);
    topo->ports = gw_memory_zeroed(2 * (size_t)topo->link_count, sizeof(topo->ports[0]));
    number_ports(topo);
    return GW_OK;
}

/* What crossing a link takes besides serialisation, in the direction that `side` sends. */
static gw_time link_latency(const struct gw_topo *topo, const struct gw_link *link, uint32_t side)
{
    return link->latency + topo->nodes[link->side[!side].node].delay;
}

gw_time gw_topo_latency_min(const struct gw_topo *topo)
{
    gw_time latency_min = GW_TIME_NEVER;
    for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
        gw_time latency = link_latency(topo, &topo->links[i / 2], i % 2);
        latency_min = latency < latency_min ? latency : latency_min;
    }
    return latency_min;
}

gw_time gw_topo_latency_max(const struct gw_topo *topo)
{
    gw_time latency_max = 0;
    for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
        gw_time latency = link_latency(topo, &topo->links[i / 2], i % 2);
        latency_max = latency > latency_max ? latency : latency_max;
    }
    return latency_max;
}
