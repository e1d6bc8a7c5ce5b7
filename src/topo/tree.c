/*
 * Tree: one root, `depth` levels of switches with `fanout` children each, hosts on the lowest
 * level, and some on the root if wanted, which have the last numbers. Switches are numbered level
 * by level from the root, sw0. A lowest switch and its hosts are a group, and so are the root's.
 */
#include <stdio.h>

#include "base/error.h"
#include "topo/kinds.h"

enum {
    DEPTH_MAX = 16,
};

struct tree {
    struct gw_topo_fabric fabric;
    uint64_t uplink_rate_bps; /* 0: fabric.rate_bps */
    uint32_t depth;
    uint32_t fanout;
    uint32_t hosts_per_leaf;
    uint32_t root_hosts;
};

/* Counts the lowest switches, and all above them. */
static int count_switches(const struct tree *cfg, uint32_t *leaves, uint32_t *inner, char *why,
                          size_t why_size)
{
    int error = gw_topo_check_range("depth", cfg->depth, 1, DEPTH_MAX, why, why_size);
    if (!error)
        error = gw_topo_check_range("fanout", cfg->fanout, 1, GW_TOPO_HOSTS_MAX, why, why_size);
    if (error)
        return error;
    uint64_t level = 1;
    *inner = 0;
    for (uint32_t depth = 1; depth < cfg->depth; depth++) {
        *inner += (uint32_t)level;
        level *= cfg->fanout;
        if (level > GW_TOPO_HOSTS_MAX) {
            snprintf(why, why_size, "depth %u with fanout %u gives more than %u switches",
                     cfg->depth, cfg->fanout, GW_TOPO_HOSTS_MAX);
            return GW_ERR_INVALID;
        }
    }
    *leaves = (uint32_t)level;
    error = gw_topo_check_range("hosts_per_leaf", cfg->hosts_per_leaf, 1,
                                GW_TOPO_HOSTS_MAX / *leaves, why, why_size);
    return error ? error
                 : gw_topo_check_range("root_hosts", cfg->root_hosts, 0,
                                       GW_TOPO_HOSTS_MAX - *leaves * cfg->hosts_per_leaf, why,
                                       why_size);
}

static int build(struct gw_topo *topo, const void *options, char *why, size_t why_size)
{
    const struct tree *cfg = options;
    uint32_t leaves, inner;
    int error = count_switches(cfg, &leaves, &inner, why, why_size);
    if (error)
        return error;
    uint64_t uplink_rate_bps = cfg->uplink_rate_bps ? cfg->uplink_rate_bps : cfg->fabric.rate_bps;
    uint32_t below = leaves * cfg->hosts_per_leaf, host_count = below + cfg->root_hosts;
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_node(topo, false, h < below ? h / cfg->hosts_per_leaf : leaves,
                         cfg->fabric.host_delay, "host%u", h);
    for (uint32_t s = 0; s < inner + leaves; s++)
        gw_topo_add_node(topo, true, s < inner ? GW_GROUP_ANY : s - inner,
                         cfg->fabric.switch_latency, "sw%u", s);
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_link(topo, h, host_count + (h < below ? inner + h / cfg->hosts_per_leaf : 0),
                         cfg->fabric.rate_bps, cfg->fabric.latency);
    for (uint32_t s = 1; s < inner + leaves; s++)
        gw_topo_add_link(topo, host_count + s, host_count + (s - 1) / cfg->fanout, uplink_rate_bps,
                         cfg->fabric.latency);
    return GW_OK;
}

static const struct gw_param params[] = {
    {.name = "depth",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct tree, depth),
     .initial = "2",
     .help = "levels of switches; 1 is a star"},
    {.name = "fanout",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct tree, fanout),
     .initial = "2",
     .help = "switches below a switch that is not on the lowest level"},
    {.name = "hosts_per_leaf",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct tree, hosts_per_leaf),
     .initial = "4",
     .help = "hosts of a switch on the lowest level"},
    {.name = "root_hosts",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct tree, root_hosts),
     .initial = "0",
     .help = "hosts of the root itself"},
    {.name = "uplink_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct tree, uplink_rate_bps),
     .help = "rate of the links between switches; absent: rate"},
    GW_TOPO_FABRIC_PARAMS(struct tree),
};

const struct gw_topo_kind gw_topo_tree = {
    .algo = {.name = "tree",
             .summary = "tree of switches with hosts on the lowest level",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct tree)},
    .build = build,
};
