/*
 * Background: long-lived flows that the run does not wait for, between given or random pairs.
 */
#include <string.h>

#include "base/error.h"
#include "workload/generate.h"

struct background {
    uint64_t size;
    gw_time start;
    uint32_t count;
    char pairs[GW_PARAM_TEXT_MAX]; /* "0->13 4->9"; empty: `count` random pairs */
};

static int add(struct gw_workload *workload, const struct background *cfg, uint32_t src,
               uint32_t dst, struct gw_workload_ctx *ctx)
{
    if (src >= ctx->topo->host_count || dst >= ctx->topo->host_count || src == dst)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "pairs: %u->%u is not a pair of two of the %u hosts", src, dst,
                                  ctx->topo->host_count);
    gw_workload_add_plain(workload, src, dst, cfg->size, cfg->start);
    workload->flows[workload->flow_count - 1].background = true;
    return GW_OK;
}

static int add_given(struct gw_workload *workload, const struct background *cfg,
                     struct gw_workload_ctx *ctx)
{
    const char *text = cfg->pairs;
    while (*(text += strspn(text, " ,")) != '\0') {
        unsigned src, dst;
        int used = 0;
        if (sscanf(text, "%9u->%9u%n", &src, &dst, &used) != 2 || !strchr(" ,", text[used]))
            return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                      "pairs must be like 0->13 4->9, and this is not: %s", text);
        int error = add(workload, cfg, src, dst, ctx);
        if (error)
            return error;
        text += used;
    }
    return GW_OK;
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct background *cfg = options;
    if (cfg->pairs[0] != '\0')
        return add_given(workload, cfg, ctx);
    uint32_t host_count = ctx->topo->host_count;
    if (host_count < 2)
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "a background flow needs two hosts");
    int error = gw_workload_check_count(ctx, "count", cfg->count);
    for (uint32_t i = 0; i < cfg->count && !error; i++) {
        uint32_t src = gw_prng_below(&ctx->prng, host_count);
        uint32_t dst = gw_prng_below(&ctx->prng, host_count - 1);
        error = add(workload, cfg, src, dst + (dst >= src), ctx);
    }
    return error;
}

static const struct gw_param params[] = {
    {.name = "size",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct background, size),
     .initial = "1TiB",
     .help = "bytes of each message; more than the run can move"},
    {.name = "count",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct background, count),
     .initial = "1",
     .help = "flows between random pairs; without effect when pairs are given"},
    {.name = "pairs",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct background, pairs),
     .initial = "",
     .help = "pairs of host numbers, as in \"0->13 4->9\""},
    {.name = "start",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct background, start),
     .initial = "0",
     .help = "when the flows start"},
};

const struct gw_workload_kind gw_workload_background = {
    .algo = {.name = "background",
             .summary = "long-lived flows that the run does not wait for",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct background)},
    .generate = generate,
};
