/*
 * Incast: `degree` hosts send one message each to the same receiver.
 *
 * Invariant: senders are distinct. They are random, and come from other groups than the receiver's
 * as long as these have hosts left; or they are the first hosts.
 */
#include <stdlib.h>

#include "base/error.h"
#include "topo/memory.h"
#include "workload/generate.h"

enum senders {
    SENDERS_RANDOM,
    SENDERS_FIRST,
};

struct incast {
    uint64_t size;
    gw_time start;
    gw_time start_spread;
    uint32_t degree;
    uint32_t receiver;
    uint32_t senders; /* enum senders */
    struct gw_message_worth worth;
};

/* Moves a random choice of `want` hosts to the front of the list. */
static void choose(uint32_t *hosts, uint32_t count, uint32_t want, struct gw_prng *prng)
{
    for (uint32_t i = 0; i < want && i + 1 < count; i++) {
        uint32_t other = i + gw_prng_below(prng, count - i);
        uint32_t kept = hosts[i];
        hosts[i] = hosts[other];
        hosts[other] = kept;
    }
}

/* Lists all hosts but the receiver, those of other groups first; returns how many these are. */
static uint32_t list_hosts(const struct gw_topo *topo, uint32_t receiver, uint32_t *hosts)
{
    uint32_t group = topo->nodes[receiver].group;
    uint32_t far = 0, near = topo->host_count - 1;
    for (uint32_t h = 0; h < topo->host_count; h++) {
        if (h == receiver)
            continue;
        if (topo->nodes[h].group != group || group == GW_GROUP_ANY)
            hosts[far++] = h;
        else
            hosts[--near] = h;
    }
    return far;
}

/* Lists all hosts but the receiver, the senders first. */
static void choose_senders(const struct incast *cfg, const struct gw_topo *topo, uint32_t *hosts,
                           struct gw_prng *prng)
{
    uint32_t count = topo->host_count - 1;
    if (cfg->senders == SENDERS_FIRST) {
        for (uint32_t i = 0; i < count; i++)
            hosts[i] = i < cfg->receiver ? i : i + 1;
        return;
    }
    uint32_t far = list_hosts(topo, cfg->receiver, hosts);
    if (cfg->degree <= far)
        choose(hosts, far, cfg->degree, prng);
    else
        choose(hosts + far, count - far, cfg->degree - far, prng);
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct incast *cfg = options;
    uint32_t other_count = ctx->topo->host_count - 1;
    if (cfg->receiver > other_count)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "receiver must be one of the %u hosts, 0 to %u, not %u",
                                  other_count + 1, other_count, cfg->receiver);
    if (cfg->degree == 0 || cfg->degree > other_count)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "degree must be from 1 to %u, the hosts but one, not %u",
                                  other_count, cfg->degree);
    uint32_t first_flow = workload->flow_count;
    uint32_t *hosts = gw_memory_zeroed(other_count, sizeof(*hosts));
    choose_senders(cfg, ctx->topo, hosts, &ctx->prng);
    for (uint32_t i = 0; i < cfg->degree; i++)
        gw_workload_add_plain(workload, hosts[i], cfg->receiver, cfg->size,
                              gw_workload_start(ctx, cfg->start, cfg->start_spread));
    free(hosts);
    return gw_workload_value(workload, first_flow, &cfg->worth, ctx);
}

static const struct gw_param params[] = {
    {.name = "degree",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct incast, degree),
     .initial = "8",
     .help = "senders"},
    {.name = "size",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct incast, size),
     .initial = "8MiB",
     .help = "bytes of each message"},
    {.name = "receiver",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct incast, receiver),
     .initial = "0",
     .help = "number of the receiving host"},
    {.name = "senders",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct incast, senders),
     .initial = "random",
     .choices = "random|first",
     .help = "random hosts, of other groups than the receiver's if there are enough, or the first "
             "hosts by number (the authors' simulator: first)"},
    {.name = "start",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct incast, start),
     .initial = "0",
     .help = "when the first flow may start"},
    {.name = "start_spread",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct incast, start_spread),
     .initial = "0",
     .help = "each flow starts up to this much later, at random"},
    GW_MESSAGE_WORTH_PARAMS(struct incast),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of the paper: the defaults"},
    {.name = "drafts",
     .settings = "senders=first receiver=512",
     .help = "as the authors of SMaRTT-REPS ran it, with 1024 hosts"},
};

const struct gw_workload_kind gw_workload_incast = {
    .algo = {.name = "incast",
             .summary = "many hosts send to one",
             .source = "SMaRTT section 4",
             .params = params,
             .presets = presets,
             .param_count = sizeof(params) / sizeof(params[0]),
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct incast)},
    .generate = generate,
};
