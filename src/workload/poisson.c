/*
 * Poisson flows: messages between random pairs of hosts, with exponential gaps and with sizes from
 * a distribution file.
 *
 * The file has lines `bytes cumulative_probability`, both ascending, the last with probability 1;
 * between two lines the distribution is linear. Gaps are such that all hosts together send at
 * `load` times the sum of their rates. All arithmetic is on integers, so that the flows are the
 * same on every machine.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"
#include "topo/memory.h"
#include "workload/generate.h"

struct poisson {
    gw_q16 load;
    gw_time start;
    gw_time duration; /* 0: limited by count only */
    uint32_t count;   /* 0: limited by duration only */
    char file[GW_PARAM_TEXT_MAX];
    struct gw_message_worth worth;
};

#define CHANCE_ONE     (UINT64_C(1) << 32)
#define SIZE_MAX_BYTES (UINT64_C(1) << 40) /* keeps sums of sizes and probabilities in 128 bits */

struct point {
    uint64_t bytes;
    uint64_t chance; /* of a size up to `bytes`, in 1/2^32 */
};

struct distribution {
    struct point *points;
    uint32_t count, room;
};

/* Reads one line of the file. */
static int read_point(struct gw_workload_file *file, struct distribution *sizes,
                      struct gw_workload_ctx *ctx)
{
    char bytes_text[32], chance_text[32], rest;
    struct point point;
    if (sscanf(file->text, "%31s %31s %c", bytes_text, chance_text, &rest) != 2)
        return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                      "a line must be: bytes cumulative_probability");
    int error = gw_parse_bytes(bytes_text, &point.bytes);
    if (error || point.bytes > SIZE_MAX_BYTES)
        return gw_workload_file_error(file, ctx, error ? error : GW_ERR_RANGE, "bytes: %s: %s",
                                      gw_error_message(error ? error : GW_ERR_RANGE), bytes_text);
    error = gw_parse_chance(chance_text, &point.chance);
    if (error)
        return gw_workload_file_error(file, ctx, error, "cumulative_probability: %s: %s",
                                      gw_error_message(error), chance_text);
    const struct point *last = sizes->count ? &sizes->points[sizes->count - 1] : NULL;
    if (last && (point.bytes < last->bytes || point.chance < last->chance))
        return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                      "bytes and cumulative_probability must not fall");
    sizes->points = gw_memory_grow(sizes->points, &sizes->room, sizes->count + 1, sizeof(point));
    sizes->points[sizes->count++] = point;
    return GW_OK;
}

static int read_sizes(const struct poisson *cfg, struct distribution *sizes,
                      struct gw_workload_ctx *ctx)
{
    struct gw_workload_file file;
    int error = gw_workload_open(&file, cfg->file, ctx);
    if (error)
        return error;
    int more;
    while ((more = gw_workload_read(&file, ctx)) > 0 && !error)
        error = read_point(&file, sizes, ctx);
    if (!error)
        error = more;
    if (!error && (sizes->count == 0 || sizes->points[sizes->count - 1].chance != CHANCE_ONE))
        error = gw_workload_file_error(&file, ctx, GW_ERR_INVALID,
                                       "the last cumulative_probability must be 1");
    fclose(file.stream);
    return error;
}

/* Size at which the cumulative probability is `chance`, below 2^32. */
static uint64_t size_at(const struct distribution *sizes, uint64_t chance)
{
    uint32_t i = 0;
    while (sizes->points[i].chance <= chance)
        i++;
    struct point high = sizes->points[i];
    struct point low = i ? sizes->points[i - 1] : (struct point){.bytes = high.bytes};
    unsigned __int128 rise = (unsigned __int128)(high.bytes - low.bytes) * (chance - low.chance);
    uint64_t bytes = low.bytes + (uint64_t)(rise / (high.chance - low.chance));
    return bytes ? bytes : 1;
}

/* Mean size in 1/2^32 bytes. */
static unsigned __int128 size_mean(const struct distribution *sizes)
{
    unsigned __int128 sum = 0;
    struct point low = {.bytes = sizes->points[0].bytes};
    for (uint32_t i = 0; i < sizes->count; i++) {
        struct point high = sizes->points[i];
        sum += (unsigned __int128)(low.bytes + high.bytes) * (high.chance - low.chance) / 2;
        low = high;
    }
    return sum;
}

/* Mean gap between two flows, in 1/2^16 ps; 0 when it is out of range. */
static uint64_t gap_mean(const struct poisson *cfg, const struct distribution *sizes,
                         const struct gw_topo *topo)
{
    const uint64_t bit_ps = 8 * GW_S; /* turns bytes at 1 bit/s into picoseconds */
    uint64_t rate_bps = 0;
    for (uint32_t h = 0; h < topo->host_count; h++) {
        const struct gw_topo_port *port = &topo->ports[topo->nodes[h].first_port];
        rate_bps += topo->links[port->link].side[port->side].rate_bps;
    }
    unsigned __int128 offered = (unsigned __int128)rate_bps * (uint64_t)cfg->load;
    unsigned __int128 gap = size_mean(sizes) * bit_ps / offered;
    return gap >> 62 ? 0 : (uint64_t)gap;
}

static int draw_flows(struct gw_workload *workload, const struct poisson *cfg,
                      const struct distribution *sizes, struct gw_workload_ctx *ctx)
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
                              size_at(sizes, gw_prng_next(&ctx->prng) >> 32), cfg->start + offset);
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
    struct distribution sizes = {0};
    uint32_t first_flow = workload->flow_count;
    int error = read_sizes(cfg, &sizes, ctx);
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
             .summary = "random pairs, exponential gaps, sizes from a distribution file",
             .source = "common practice",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct poisson)},
    .generate = generate,
};
