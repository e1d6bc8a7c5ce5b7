/* Labels of paths, and the order in which to use them; see label.h. */
#include "topo/label.h"

#include <stdlib.h>

#include "base/prng.h"
#include "topo/memory.h"

enum {
    LABELS_MAX = 1 << 16,
    WEIGHT_MAX = 64, /* of one path, when rates must be rounded */
};

#define LEVEL_NONE UINT32_MAX

/* Sets the level of every switch; returns the number of levels. */
static uint32_t find_levels(const struct gw_topo *topo, uint32_t *levels)
{
    uint32_t switch_count = topo->node_count - topo->host_count, level_count = 0;
    for (uint32_t s = 0; s < switch_count; s++)
        levels[s] = LEVEL_NONE;
    for (bool found = true; found; level_count += found) {
        found = false;
        for (uint32_t s = 0; s < switch_count; s++) {
            const struct gw_topo_node *node = &topo->nodes[topo->host_count + s];
            for (uint32_t p = 0; p < node->port_count && levels[s] == LEVEL_NONE; p++) {
                uint32_t peer = topo->ports[node->first_port + p].peer;
                bool is_next =
                    peer < topo->host_count
                        ? level_count == 0
                        : level_count > 0 && levels[peer - topo->host_count] == level_count - 1;
                if (is_next)
                    levels[s] = level_count;
            }
            found |= levels[s] == level_count;
        }
    }
    return level_count;
}

void gw_topo_labels_init(struct gw_topo_labels *labels, const struct gw_topo *topo)
{
    uint32_t switch_count = topo->node_count - topo->host_count;
    uint32_t *levels = gw_memory_zeroed(switch_count, sizeof(*levels));
    uint32_t level_count = find_levels(topo, levels);
    *labels = (struct gw_topo_labels){
        .divisors = gw_memory_zeroed(switch_count, sizeof(labels->divisors[0])), .count = 1};
    for (uint32_t level = 0; level < level_count; level++) {
        uint32_t base = 1;
        for (uint32_t s = 0; s < switch_count; s++) {
            const struct gw_topo_routes *routes = &topo->routes[s];
            for (uint32_t i = 0; levels[s] == level && i < routes->set_count; i++)
                if (routes->sets[i].count > base)
                    base = routes->sets[i].count;
        }
        bool fits = base <= LABELS_MAX / labels->count;
        for (uint32_t s = 0; s < switch_count; s++)
            if (levels[s] == level)
                labels->divisors[s] = fits ? labels->count : LABELS_MAX;
        labels->count *= fits ? base : 1;
    }
    for (uint32_t s = 0; s < switch_count; s++)
        if (levels[s] == LEVEL_NONE)
            labels->divisors[s] = LABELS_MAX;
    free(levels);
}

void gw_topo_labels_fini(struct gw_topo_labels *labels)
{
    free(labels->divisors);
    *labels = (struct gw_topo_labels){0};
}

/* A path that some label takes. */
struct path {
    uint64_t hash; /* of its ports; 0: it leads nowhere */
    uint64_t rate_bps;
    uint32_t weight;
    uint32_t used; /* times, in the schedule so far */
    uint16_t label;
};

static struct path path_of(const struct gw_topo *topo, const struct gw_topo_labels *labels,
                           const struct gw_topo_port *port, uint32_t dst, uint32_t label)
{
    struct path path = {.hash = 1, .rate_bps = UINT64_MAX, .label = (uint16_t)label};
    /* Every hop leads nearer, so that the walk ends. */
    for (;;) {
        uint64_t rate_bps = topo->links[port->link].side[port->side].rate_bps;
        if (rate_bps < path.rate_bps)
            path.rate_bps = rate_bps;
        path.hash = gw_mix64(path.hash ^ (2 * (uint64_t)port->link + port->side + 1));
        if (port->peer == dst)
            return path;
        if (port->peer < topo->host_count)
            return (struct path){0}; /* another host, which does not forward */
        uint32_t s = port->peer - topo->host_count;
        const struct gw_topo_routes *routes = &topo->routes[s];
        if (routes->route[dst] == GW_PORT_NONE)
            return (struct path){0};
        struct gw_topo_set set = routes->sets[routes->route[dst]];
        uint16_t next = routes->members[set.first + label / labels->divisors[s] % set.count];
        port = &topo->ports[topo->nodes[port->peer].first_port + next];
    }
}

/* Fills `paths` with all that differ; returns how many. */
static uint32_t find_paths(const struct gw_topo *topo, const struct gw_topo_labels *labels,
                           uint32_t src, uint32_t dst, struct path *paths)
{
    const struct gw_topo_node *node = &topo->nodes[src];
    const struct gw_topo_port *port = &topo->ports[node->first_port];
    const struct gw_topo_port *end = port + node->port_count;
    uint32_t count = 0;
    while (port < end && topo->links[port->link].down)
        port++;
    for (uint32_t label = 0; port < end && label < labels->count; label++) {
        struct path path = path_of(topo, labels, port, dst, label);
        uint32_t i = 0;
        while (i < count && paths[i].hash != path.hash)
            i++;
        if (path.hash && i == count)
            paths[count++] = path;
    }
    return count;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Sets the weights; returns their sum. */
static uint32_t weigh(struct path *paths, uint32_t count)
{
    uint64_t divisor = 0, highest = 0;
    for (uint32_t i = 0; i < count; i++) {
        divisor = common_divisor(divisor, paths[i].rate_bps);
        if (paths[i].rate_bps > highest)
            highest = paths[i].rate_bps;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t weight = paths[i].rate_bps / divisor;
        if (highest / divisor > WEIGHT_MAX)
            weight = paths[i].rate_bps / (highest / WEIGHT_MAX + 1);
        paths[i].weight = weight ? (uint32_t)weight : 1;
        sum += paths[i].weight;
    }
    return sum;
}

/*
 * Which path is next after `at` packets: of those that are not ahead of their share, the one that
 * must be used soonest not to fall behind it by a packet (earliest deadline first).
 */
static struct path *next_path(struct path *paths, uint32_t count, uint32_t sum, uint32_t at)
{
    struct path *next = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct path *path = &paths[i];
        if ((uint64_t)path->used * sum >= (uint64_t)(at + 1) * path->weight)
            continue;
        if (!next ||
            (uint64_t)(path->used + 1) * next->weight < (uint64_t)(next->used + 1) * path->weight)
            next = path;
    }
    return next;
}

uint32_t gw_topo_schedule(const struct gw_topo *topo, const struct gw_topo_labels *labels,
                          uint32_t src, uint32_t dst, uint16_t **schedule)
{
    struct path *paths = gw_memory_zeroed(labels->count, sizeof(*paths));
    uint32_t count = find_paths(topo, labels, src, dst, paths);
    uint32_t sum = count ? weigh(paths, count) : 0;
    *schedule = gw_memory_zeroed(sum, sizeof(**schedule));
    for (uint32_t at = 0; at < sum; at++) {
        struct path *path = next_path(paths, count, sum, at);
        path->used++;
        (*schedule)[at] = path->label;
    }
    free(paths);
    return sum;
}
