/*
 * Poisson flows: messages between random pairs of hosts, with exponential gaps and with sizes from
 * a distribution (sizes.h).
 *
 * Gaps are such that all hosts together send at `load` times the sum of their rates. All
 * arithmetic is on integers, so that the flows are the same on every machine.
 */
#include <stdlib.h>

#include "base/error.h"
#include "workload/sizes.h"

struct poisson {
    gw_q16 load;
    gw_time start;
    gw_time duration; /* 0: limited by count only */
    uint32_t count;   /* 0: limited by duration only */
    uint32_t sizes;   /* which of GW_SIZES_CHOICES */
    char file[GW_PARAM_TEXT_MAX];
    struct gw_message_worth worth;
};

/* Mean gap between two flows, in 1/2^16 ps; 0 when it is out of range. */
static uint64_t gap_mean(const struct poisson *cfg, const struct gw_sizes *sizes,
                         const struct gw_topo *topo)
{
    const uint64_t bit_ps = 8 * GW_S; /* turns bytes at 1 bit/s into picoseconds */
    uint64_t rate_bps = 0;
    for (uint32_t h = 0; h < topo->host_count; h++) {
        const struct gw_topo_port *port = &topo->ports[topo->nodes[h].first_port];
        rate_bps += topo->links[port->link].side[port->side].rate_bps;
    }
    unsigned __int128 offered = (unsigned __int128)rate_bps * (uint64_t)cfg->load;
    unsigned __int128 gap = gw_sizes_mean(sizes) * bit_ps / offered;
    return gap >> 62 ? 0 : (uint64_t)gap;
}

static int draw_flows(struct gw_workload *workload, const struct poisson *cfg,
                      const struct gw_sizes *sizes, struct gw_workload_ctx *ctx)
{
    uint32_t host_count = ctx->topo->host_count;
    uint64_t gap = gap_mean(cfg, sizes, ctx->topo);
    if (gap == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "load gives gaps between flows that are out of range");
    gw_time offset = 0;
    for (uint64_t n = 0; cfg->count == 0 || n < cfg->count; n++) {
        uint64_t draw = gw_workload_exponential(&ctx->prng);
        offset += (gw_time)(((unsigned __int128)gap * draw) >> 48);
        if (cfg->duration && offset >= cfg->duration)
            break;
        int error = gw_workload_check_count(ctx, cfg->count ? "count" : "duration", n + 1);
        if (error)
            return error;
        uint32_t src = gw_prng_below(&ctx->prng, host_count);
        uint32_t dst = gw_prng_below(&ctx->prng, host_count - 1);
        gw_workload_add_plain(workload, src, dst + (dst >= src),
                              gw_sizes_at(sizes, gw_prng_next(&ctx->prng) >> 32),
                              cfg->start + offset);
    }
    return GW_OK;
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct poisson *cfg = options;
    if (ctx->topo->host_count < 2)
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "Poisson flows need two hosts");
    if (cfg->load <= 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "load must be above 0");
    if (cfg->count == 0 && cfg->duration == 0)
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "count or duration must be given");
    struct gw_sizes sizes;
    uint32_t first_flow = workload->flow_count;
    int error = gw_sizes_make(&sizes, cfg->sizes, cfg->file, ctx);
    if (!error)
        error = draw_flows(workload, cfg, &sizes, ctx);
    free(sizes.points);
    return error ? error : gw_workload_value(workload, first_flow, &cfg->worth, ctx);
}

static const struct gw_param params[] = {
    {.name = "file",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct poisson, file),
     .initial = "",
     .help = "size distribution: lines of bytes and cumulative probability"},
    {.name = "sizes",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct poisson, sizes),
     .choices = GW_SIZES_CHOICES,
     .help = "which size distribution: a file's, or that of DCTCP's and pFabric's web-search"},
    {.name = "load",
     .type = GW_PARAM_Q16,
     .offset = offsetof(struct poisson, load),
     .initial = "0.5",
     .help = "bytes offered, as a part of the sum of all hosts' rates"},
    {.name = "count",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct poisson, count),
     .initial = "0",
     .help = "number of flows; 0: as many as start within the duration"},
    {.name = "duration",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct poisson, duration),
     .initial = "0",
     .help = "time in which flows start; 0: as long as it takes to start count flows"},
    {.name = "start",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct poisson, start),
     .initial = "0",
     .help = "when the first flow may start"},
    GW_MESSAGE_WORTH_PARAMS(struct poisson),
};

const struct gw_workload_kind gw_workload_poisson = {
    .algo = {.name = "poisson",
             .summary = "random pairs, exponential gaps, sizes from a distribution",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct poisson)},
    .generate = generate,
};
