/*
 * Leaf-spine: every leaf has links to every spine; hosts hang on leaves. A leaf and its hosts are a
 * group.
 */
#include "base/error.h"
#include "topo/kinds.h"

enum {
    SWITCHES_MAX = 4096, /* leaves, and spines */
    PARALLEL_MAX = 256,  /* links between a leaf and a spine */
};

struct leaf_spine {
    struct gw_topo_fabric fabric;
    uint64_t uplink_rate_bps; /* 0: fabric.rate_bps */
    uint32_t leaves, spines;
    uint32_t hosts_per_leaf;
    uint32_t links_per_pair;
};

static int check(const struct leaf_spine *cfg, char *why, size_t why_size)
{
    int error = gw_topo_check_range("leaves", cfg->leaves, 1, SWITCHES_MAX, why, why_size);
    if (!error)
        error = gw_topo_check_range("spines", cfg->spines, 1, SWITCHES_MAX, why, why_size);
    if (!error)
        error = gw_topo_check_range("hosts_per_leaf", cfg->hosts_per_leaf, 1,
                                    GW_TOPO_HOSTS_MAX / cfg->leaves, why, why_size);
    if (!error)
        error = gw_topo_check_range("links_per_pair", cfg->links_per_pair, 1, PARALLEL_MAX, why,
                                    why_size);
    return error;
}

static int build(struct gw_topo *topo, const void *options, char *why, size_t why_size)
{
    const struct leaf_spine *cfg = options;
    int error = check(cfg, why, why_size);
    if (error)
        return error;
    uint64_t uplink_rate_bps = cfg->uplink_rate_bps ? cfg->uplink_rate_bps : cfg->fabric.rate_bps;
    uint32_t host_count = cfg->leaves * cfg->hosts_per_leaf;
    uint32_t first_spine = host_count + cfg->leaves;
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_node(topo, false, h / cfg->hosts_per_leaf, cfg->fabric.host_delay, "host%u", h);
    for (uint32_t l = 0; l < cfg->leaves; l++)
        gw_topo_add_node(topo, true, l, cfg->fabric.switch_latency, "leaf%u", l);
    for (uint32_t s = 0; s < cfg->spines; s++)
        gw_topo_add_node(topo, true, GW_GROUP_ANY, cfg->fabric.switch_latency, "spine%u", s);
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_link(topo, h, host_count + h / cfg->hosts_per_leaf, cfg->fabric.rate_bps,
                         cfg->fabric.latency);
    for (uint32_t leaf = host_count; leaf < first_spine; leaf++)
        for (uint32_t i = 0; i < cfg->spines * cfg->links_per_pair; i++)
            gw_topo_add_link(topo, leaf, first_spine + i / cfg->links_per_pair, uplink_rate_bps,
                             cfg->fabric.latency);
    return GW_OK;
}

static const struct gw_param params[] = {
    {.name = "leaves",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct leaf_spine, leaves),
     .initial = "4",
     .help = "leaf switches"},
    {.name = "spines",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct leaf_spine, spines),
     .initial = "4",
     .help = "spine switches"},
    {.name = "hosts_per_leaf",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct leaf_spine, hosts_per_leaf),
     .initial = "4",
     .help = "hosts of one leaf"},
    {.name = "links_per_pair",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct leaf_spine, links_per_pair),
     .initial = "1",
     .help = "parallel links between a leaf and a spine"},
    {.name = "uplink_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct leaf_spine, uplink_rate_bps),
     .help = "rate of the links between leaves and spines; absent: rate"},
    GW_TOPO_FABRIC_PARAMS(struct leaf_spine),
};

const struct gw_topo_kind gw_topo_leaf_spine = {
    .algo = {.name = "leaf-spine",
             .summary = "two tiers, every leaf linked to every spine",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct leaf_spine)},
    .build = build,
};
