/* Star: hosts on one switch, all in one group. */
#include "base/error.h"
#include "topo/kinds.h"

enum {
    STAR_HOSTS_MAX = UINT16_MAX - 1, /* ports of the switch */
};

struct star {
    struct gw_topo_fabric fabric;
    uint32_t hosts;
};

static int build(struct gw_topo *topo, const void *options, char *why, size_t why_size)
{
    const struct star *cfg = options;
    int error = gw_topo_check_range("hosts", cfg->hosts, 1, STAR_HOSTS_MAX, why, why_size);
    if (error)
        return error;
    for (uint32_t h = 0; h < cfg->hosts; h++)
        gw_topo_add_node(topo, false, 0, cfg->fabric.host_delay, "host%u", h);
    uint32_t sw = gw_topo_add_node(topo, true, 0, cfg->fabric.switch_latency, "sw0");
    for (uint32_t h = 0; h < cfg->hosts; h++)
        gw_topo_add_link(topo, h, sw, cfg->fabric.rate_bps, cfg->fabric.latency);
    return GW_OK;
}

static const struct gw_param params[] = {
    {.name = "hosts",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct star, hosts),
     .initial = "8",
     .help = "hosts of the switch"},
    GW_TOPO_FABRIC_PARAMS(struct star),
};

const struct gw_topo_kind gw_topo_star = {
    .algo = {.name = "star",
             .summary = "hosts on one switch",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct star)},
    .build = build,
};
