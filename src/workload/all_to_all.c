/*
 * Windowed all-to-all: host i sends one message to each of i+1, i+2, ... in this order, at most
 * `window` at a time; as soon as one is delivered the next starts.
 */
#include "base/error.h"
#include "workload/generate.h"

struct all_to_all {
    uint64_t size;
    gw_time start;
    gw_time start_spread;
    uint32_t hosts; /* 0: all */
    uint32_t window;
    struct gw_message_worth worth;
};

/* Adds the flows of one host, and the trigger that each of them fires for the next to start. */
static void add_host(struct gw_workload *workload, const struct all_to_all *cfg, uint32_t src,
                     uint32_t host_count, gw_time start)
{
    bool windowed = cfg->window < host_count - 1;
    uint32_t trigger = windowed ? gw_workload_add_trigger(workload, 1, true) : GW_TRIGGER_NONE;
    for (uint32_t i = 1; i < host_count; i++) {
        bool waits = i > cfg->window;
        uint32_t flow = gw_workload_add_flow(
            workload, &(struct gw_flow_spec){.src = src,
                                             .dst = (src + i) % host_count,
                                             .bytes = cfg->size,
                                             .start = waits ? GW_TIME_NEVER : start,
                                             .id = workload->flow_count,
                                             .fires_sent = trigger,
                                             .fires_received = GW_TRIGGER_NONE});
        if (waits)
            gw_workload_add_start(workload, flow);
    }
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct all_to_all *cfg = options;
    uint32_t host_count = cfg->hosts ? cfg->hosts : ctx->topo->host_count;
    if (host_count < 2 || host_count > ctx->topo->host_count)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "hosts must be from 2 to %u, the size of the topology, not %u",
                                  ctx->topo->host_count, host_count);
    if (cfg->window == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "window must be at least 1");
    int error = gw_workload_check_count(ctx, "hosts", (uint64_t)host_count * (host_count - 1));
    if (error)
        return error;
    uint32_t first_flow = workload->flow_count;
    for (uint32_t h = 0; h < host_count; h++)
        add_host(workload, cfg, h, host_count,
                 gw_workload_start(ctx, cfg->start, cfg->start_spread));
    gw_workload_add_collective(workload, "all-to-all", first_flow);
    return gw_workload_value(workload, first_flow, &cfg->worth, ctx);
}

static const struct gw_param params[] = {
    {.name = "size",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct all_to_all, size),
     .initial = "1MiB",
     .help = "bytes of each message"},
    {.name = "window",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct all_to_all, window),
     .initial = "4",
     .help = "messages that a host sends at the same time"},
    {.name = "hosts",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct all_to_all, hosts),
     .initial = "0",
     .help = "the first so many hosts take part; 0: all"},
    {.name = "start",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct all_to_all, start),
     .initial = "0",
     .help = "when the first host may start"},
    {.name = "start_spread",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct all_to_all, start_spread),
     .initial = "0",
     .help = "each host starts up to this much later, at random"},
    GW_MESSAGE_WORTH_PARAMS(struct all_to_all),
};

const struct gw_workload_kind gw_workload_all_to_all = {
    .algo = {.name = "all-to-all",
             .summary = "every host sends to every other, a window of messages at a time",
             .source = "SMaRTT figure 12",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct all_to_all)},
    .generate = generate,
};
