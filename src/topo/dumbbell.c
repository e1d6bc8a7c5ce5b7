/*
 * Dumbbell: two switches with one link between them, and as many hosts on either. The hosts of sw0
 * come first. A switch and its hosts are a group.
 */
#include "base/error.h"
#include "topo/kinds.h"

struct dumbbell {
    struct gw_topo_fabric fabric;
    uint64_t bottleneck_rate_bps; /* 0: fabric.rate_bps */
    uint32_t hosts;               /* of one side */
};

static int build(struct gw_topo *topo, const void *options, char *why, size_t why_size)
{
    const struct dumbbell *cfg = options;
    int error =
        gw_topo_check_range("hosts", cfg->hosts, 1, GW_TOPO_HOSTS_MAX / 2 - 1, why, why_size);
    if (error)
        return error;
    uint64_t bottleneck_rate_bps =
        cfg->bottleneck_rate_bps ? cfg->bottleneck_rate_bps : cfg->fabric.rate_bps;
    uint32_t host_count = 2 * cfg->hosts;
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_node(topo, false, h / cfg->hosts, cfg->fabric.host_delay, "host%u", h);
    for (uint32_t s = 0; s < 2; s++)
        gw_topo_add_node(topo, true, s, cfg->fabric.switch_latency, "sw%u", s);
    for (uint32_t h = 0; h < host_count; h++)
        gw_topo_add_link(topo, h, host_count + h / cfg->hosts, cfg->fabric.rate_bps,
                         cfg->fabric.latency);
    gw_topo_add_link(topo, host_count, host_count + 1, bottleneck_rate_bps, cfg->fabric.latency);
    return GW_OK;
}

static const struct gw_param params[] = {
    {.name = "hosts",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct dumbbell, hosts),
     .initial = "4",
     .help = "hosts of one side"},
    {.name = "bottleneck_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct dumbbell, bottleneck_rate_bps),
     .help = "rate of the link between the switches; absent: rate"},
    GW_TOPO_FABRIC_PARAMS(struct dumbbell),
};

const struct gw_topo_kind gw_topo_dumbbell = {
    .algo = {.name = "dumbbell",
             .summary = "two switches with one link between them, hosts on both",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct dumbbell)},
    .build = build,
};
