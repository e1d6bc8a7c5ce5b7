/*
 * Fat tree of k-port switches (Al-Fares et al., SIGCOMM 2008) with two or three tiers.
 *
 * Three tiers: k pods of k/2 ToRs and k/2 aggregation switches; every ToR of a pod has one link to
 * each of the pod's aggregation switches; aggregation switch j of every pod has one link to each of
 * the k/2 core switches of plane j, so that a core switch reaches each pod once. Two tiers: k ToRs
 * and k/2 aggregation switches, all linked.
 *
 * Oversubscription takes switches away: `oversubscription` r leaves (k/2)/r core switches to a
 * plane (k * k / 4 / r in all), `tor_oversubscription` r leaves (k/2)/r aggregation switches to a
 * pod.
 */
#include <stdio.h>

#include "base/error.h"
#include "topo/kinds.h"

enum {
    K_MAX = 64, /* 65536 hosts */
};

struct fat_tree {
    struct gw_topo_fabric fabric;
    uint64_t host_rate_bps; /* 0: fabric.rate_bps */
    uint32_t tiers;
    uint32_t k;
    uint32_t hosts_per_tor; /* 0: k / 2 */
    uint32_t oversubscription;
    uint32_t tor_oversubscription;
};

/* Counts that follow from the parameters. */
struct shape {
    uint32_t pods; /* one in a tree of two tiers */
    uint32_t tors_per_pod, aggs_per_pod;
    uint32_t hosts_per_tor;
    uint32_t cores_per_agg; /* 0 in a tree of two tiers */
};

static int shape_of(const struct fat_tree *cfg, struct shape *shape, char *why, size_t why_size)
{
    int error = gw_topo_check_range("tiers", cfg->tiers, 2, 3, why, why_size);
    if (!error)
        error = gw_topo_check_range("k", cfg->k, 2, K_MAX, why, why_size);
    if (!error && cfg->k % 2 != 0) {
        snprintf(why, why_size, "k must be even, not %u", cfg->k);
        error = GW_ERR_INVALID;
    }
    if (error)
        return error;
    uint32_t half = cfg->k / 2;
    error = gw_topo_check_divides("tor_oversubscription", cfg->tor_oversubscription, half,
                                  "uplinks of a ToR (k/2)", why, why_size);
    if (!error && cfg->tiers == 3)
        error = gw_topo_check_divides("oversubscription", cfg->oversubscription, half,
                                      "uplinks of an aggregation switch (k/2)", why, why_size);
    if (!error && cfg->tiers == 2 && cfg->oversubscription != 1) {
        snprintf(why, why_size,
                 "oversubscription must be 1 with two tiers, which have no core; "
                 "tor_oversubscription is what you want");
        error = GW_ERR_INVALID;
    }
    if (error)
        return error;
    *shape = (struct shape){
        .pods = cfg->tiers == 3 ? cfg->k : 1,
        .tors_per_pod = cfg->tiers == 3 ? half : cfg->k,
        .aggs_per_pod = half / cfg->tor_oversubscription,
        .hosts_per_tor = cfg->hosts_per_tor ? cfg->hosts_per_tor : half,
        .cores_per_agg = cfg->tiers == 3 ? half / cfg->oversubscription : 0,
    };
    uint32_t tor_count = shape->pods * shape->tors_per_pod;
    return gw_topo_check_range("hosts_per_tor", shape->hosts_per_tor, 1,
                               GW_TOPO_HOSTS_MAX / tor_count, why, why_size);
}

static void add_links(struct gw_topo *topo, const struct fat_tree *cfg, const struct shape *shape,
                      uint32_t first_tor, uint32_t first_agg, uint32_t first_core)
{
    uint64_t host_rate_bps = cfg->host_rate_bps ? cfg->host_rate_bps : cfg->fabric.rate_bps;
    for (uint32_t h = 0; h < topo->host_count; h++)
        gw_topo_add_link(topo, h, first_tor + h / shape->hosts_per_tor, host_rate_bps,
                         cfg->fabric.latency);
    for (uint32_t tor = first_tor; tor < first_agg; tor++) {
        uint32_t pod = (tor - first_tor) / shape->tors_per_pod;
        for (uint32_t a = 0; a < shape->aggs_per_pod; a++)
            gw_topo_add_link(topo, tor, first_agg + pod * shape->aggs_per_pod + a,
                             cfg->fabric.rate_bps, cfg->fabric.latency);
    }
    for (uint32_t agg = first_agg; agg < first_core; agg++) {
        uint32_t plane = (agg - first_agg) % shape->aggs_per_pod;
        for (uint32_t c = 0; c < shape->cores_per_agg; c++)
            gw_topo_add_link(topo, agg, first_core + plane * shape->cores_per_agg + c,
                             cfg->fabric.rate_bps, cfg->fabric.latency);
    }
}

static int build(struct gw_topo *topo, const void *options, char *why, size_t why_size)
{
    const struct fat_tree *cfg = options;
    struct shape shape;
    int error = shape_of(cfg, &shape, why, why_size);
    if (error)
        return error;
    bool has_core = cfg->tiers == 3;
    uint32_t tor_count = shape.pods * shape.tors_per_pod;
    uint32_t agg_count = shape.pods * shape.aggs_per_pod;
    uint32_t host_count = tor_count * shape.hosts_per_tor;
    /* A group is a pod, or a rack where there are no pods. */
    uint32_t tors_per_group = has_core ? shape.tors_per_pod : 1;
    gw_time delay = cfg->fabric.switch_latency;
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_node(topo, false, h / shape.hosts_per_tor / tors_per_group,
                         cfg->fabric.host_delay, "host%u", h);
    for (uint32_t t = 0; t < tor_count; t++)
        gw_topo_add_node(topo, true, t / tors_per_group, delay, "tor%u", t);
    for (uint32_t a = 0; a < agg_count; a++)
        gw_topo_add_node(topo, true, has_core ? a / shape.aggs_per_pod : GW_GROUP_ANY, delay,
                         "agg%u", a);
    for (uint32_t c = 0; c < shape.aggs_per_pod * shape.cores_per_agg; c++)
        gw_topo_add_node(topo, true, GW_GROUP_ANY, delay, "core%u", c);
    add_links(topo, cfg, &shape, host_count, host_count + tor_count,
              host_count + tor_count + agg_count);
    return GW_OK;
}

static const struct gw_param params[] = {
    {.name = "tiers",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct fat_tree, tiers),
     .initial = "3",
     .help = "2: ToR and aggregation; 3: and core"},
    {.name = "k",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct fat_tree, k),
     .initial = "16",
     .help = "ports of a switch, even; 16 gives 1024 hosts in three tiers"},
    {.name = "hosts_per_tor",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct fat_tree, hosts_per_tor),
     .initial = "0",
     .help = "hosts of one ToR; 0: k/2"},
    {.name = "oversubscription",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct fat_tree, oversubscription),
     .initial = "1",
     .help = "r:1 between aggregation and core, by dividing the number of cores; divides k/2"},
    {.name = "tor_oversubscription",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct fat_tree, tor_oversubscription),
     .initial = "1",
     .help = "r:1 between ToR and aggregation, by dividing the aggregation switches; divides k/2"},
    {.name = "host_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct fat_tree, host_rate_bps),
     .help = "rate of the hosts' links; absent: rate"},
    GW_TOPO_FABRIC_PARAMS(struct fat_tree),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of SMaRTT-REPS: the defaults"},
    {
        .name = "drafts",
        .settings = "latency=700ns switch_latency=0",
        .help = "as the authors of SMaRTT-REPS ran it; their ratio of 2 in a tree with k = 16 is "
                "oversubscription 4 here, and 4 is 8",
    },
};

const struct gw_topo_kind gw_topo_fat_tree = {
    .algo = {.name = "fat-tree",
             .summary = "fat tree of k-port switches with two or three tiers",
             .source = "Al-Fares et al., SIGCOMM 2008; SMaRTT section 4",
             .params = params,
             .presets = presets,
             .param_count = sizeof(params) / sizeof(params[0]),
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct fat_tree)},
    .build = build,
};
