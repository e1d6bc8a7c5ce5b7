/*
 * The keys of `host:` that say what packets cost a host, beside those of the endpoint.
 */
#include "config/loader.h"

static const struct gw_param params[] = {
    GW_PARAM(struct gw_host_cost_cfg, TIME, rx_cost, "0", "time that a received packet takes"),
    {.name = "rx_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct gw_host_cost_cfg, rx_rate_bps),
     .help = "bytes received, headers included, are worked off at this rate; not set: at once"},
    GW_PARAM(struct gw_host_cost_cfg, TIME, tx_cost, "0",
             "least time between two packets that a port sends"),
    GW_PARAM(struct gw_host_cost_cfg, BYTES, rx_queue, "0",
             "bytes of data received that wait to be worked off; more are dropped or, with "
             "lossless queues, held back; 0: no limit"),
    {.name = "cost_hosts",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct gw_host_cost_cfg, hosts),
     .initial = "all",
     .choices = "all|servers",
     .help = "which hosts this applies to: all, or those that run the server of a job"},
};

const struct gw_algo gw_loader_packet_cost = {
    .name = "host",
    .params = params,
    .param_count = sizeof(params) / sizeof(params[0]),
    .cfg_size = sizeof(struct gw_host_cost_cfg),
};
