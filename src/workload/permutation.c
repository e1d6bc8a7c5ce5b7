/*
 * Permutation: every host sends one message and receives one, `count` times over; the first few
 * messages may be longer than the others.
 *
 * Invariant: no host sends to itself. Every flow crosses the core, that is, source and destination
 * are in different groups, unless one group holds more than half of the hosts; or every flow goes
 * from one half of the hosts to the other.
 */
#include <stdlib.h>

#include "base/error.h"
#include "topo/memory.h"
#include "workload/generate.h"

enum across {
    ACROSS_GROUPS,
    ACROSS_HALVES,
};

struct permutation {
    uint64_t size;
    uint64_t long_size;
    gw_time start;
    gw_time start_spread;
    uint32_t count;
    uint32_t hosts;  /* 0: all */
    uint32_t across; /* enum across */
    uint32_t long_count;
    struct gw_message_worth worth;
};

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

/*
 * Draws a permutation in which group[to[i]] != group[i]. Each host of a random shuffle that
 * violates this swaps its destination with a host for which that repairs the one without spoiling
 * the other; it exists because no group holds more than half of the hosts.
 */
static void draw(const uint32_t *group, uint32_t *to, uint32_t count, struct gw_prng *prng)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = i;
    gw_workload_shuffle(to, count, prng);
    for (uint32_t i = 0; i < count; i++) {
        if (group[to[i]] != group[i])
            continue;
        uint32_t other = gw_prng_below(prng, count);
        while (group[to[other]] == group[i] || group[other] == group[i])
            other = other + 1 == count ? 0 : other + 1;
        swap(&to[i], &to[other]);
    }
}

/* Draws one in which each half of the hosts sends to the other. */
static void draw_halves(uint32_t *to, uint32_t count, struct gw_prng *prng)
{
    uint32_t half = count / 2;
    for (uint32_t i = 0; i < count; i++)
        to[i] = i < half ? half + i : i - half;
    gw_workload_shuffle(to, half, prng);
    gw_workload_shuffle(to + half, half, prng);
}

/* How many hosts take part. Returns 0, or a negative error with ctx->why set. */
static int count_hosts(const struct permutation *cfg, struct gw_workload_ctx *ctx, uint32_t *count)
{
    *count = cfg->hosts ? cfg->hosts : ctx->topo->host_count;
    if (ctx->topo->host_count < 2)
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "a permutation needs two hosts");
    if (*count < 2 || *count > ctx->topo->host_count)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "hosts must be from 2 to %u, the size of the topology, not %u",
                                  ctx->topo->host_count, *count);
    if (cfg->across == ACROSS_HALVES && *count % 2 != 0)
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "across: halves needs an even number of hosts, not %u", *count);
    return gw_workload_check_count(ctx, "count", (uint64_t)cfg->count * *count);
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct permutation *cfg = options;
    uint32_t host_count;
    int error = count_hosts(cfg, ctx, &host_count);
    if (error)
        return error;
    uint32_t first_flow = workload->flow_count;
    uint32_t *group = gw_workload_groups(ctx->topo, host_count);
    uint32_t *to = gw_memory_zeroed(host_count, sizeof(*to));
    for (uint32_t n = 0; n < cfg->count; n++) {
        if (cfg->across == ACROSS_HALVES)
            draw_halves(to, host_count, &ctx->prng);
        else
            draw(group, to, host_count, &ctx->prng);
        for (uint32_t h = 0; h < host_count; h++) {
            bool is_long = (uint64_t)n * host_count + h < cfg->long_count;
            gw_workload_add_plain(workload, h, to[h], is_long ? cfg->long_size : cfg->size,
                                  gw_workload_start(ctx, cfg->start, cfg->start_spread));
        }
    }
    free(to);
    free(group);
    return gw_workload_value(workload, first_flow, &cfg->worth, ctx);
}

static const struct gw_param params[] = {
    {.name = "size",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct permutation, size),
     .initial = "2MiB",
     .help = "bytes of each message"},
    {.name = "count",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct permutation, count),
     .initial = "1",
     .help = "permutations at once"},
    {.name = "hosts",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct permutation, hosts),
     .initial = "0",
     .help = "the first so many hosts take part; 0: all"},
    {.name = "across",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct permutation, across),
     .initial = "groups",
     .choices = "groups|halves",
     .help = "every flow leaves its pod or rack, or the half of the hosts, by number, that it "
             "starts in (the authors' simulator: halves)"},
    {.name = "long_count",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct permutation, long_count),
     .initial = "0",
     .help = "the first so many messages have long_size instead"},
    {.name = "long_size",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct permutation, long_size),
     .initial = "4MiB",
     .help = "bytes of each of these"},
    {.name = "start",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct permutation, start),
     .initial = "0",
     .help = "when the first flow may start"},
    {.name = "start_spread",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct permutation, start_spread),
     .initial = "0",
     .help = "each flow starts up to this much later, at random"},
    GW_MESSAGE_WORTH_PARAMS(struct permutation),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of the paper: the defaults"},
    {.name = "drafts", .settings = "across=halves", .help = "as the authors of SMaRTT-REPS ran it"},
};

const struct gw_workload_kind gw_workload_permutation = {
    .algo = {.name = "permutation",
             .summary = "every host sends to one other across the core",
             .source = "SMaRTT section 4",
             .params = params,
             .presets = presets,
             .param_count = sizeof(params) / sizeof(params[0]),
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct permutation)},
    .generate = generate,
};
