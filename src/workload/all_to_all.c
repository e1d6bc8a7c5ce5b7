/*
 * Windowed all-to-all: the hosts stand in a ring, and each sends one message to every other, at
 * most `window` at a time; as soon as one is delivered the next starts.
 *
 * With `chains: no` a host serves its neighbours in the order of the ring. With `chains: yes` the
 * others are divided into as many chains of neighbours as the window is wide, one behind the other
 * on the ring; each chain has one message under way, so a host sends to distant places at the same
 * time.
 *
 * Invariant: every ordered pair of hosts has one message.
 */
#include <stdlib.h>

#include "base/error.h"
#include "topo/memory.h"
#include "workload/generate.h"

struct all_to_all {
    uint64_t size;
    gw_time start;
    gw_time start_spread;
    uint32_t hosts; /* 0: all */
    uint32_t window;
    bool shuffle;
    bool chains;
    struct gw_message_worth worth;
};

/* The hosts in the order in which they stand. */
struct ring {
    uint32_t *hosts;
    uint32_t count;
};

/* Messages of one host, of which `at_once` are under way at the same time. */
struct chain {
    uint32_t place; /* of the host on the ring */
    uint32_t first; /* places from there to the first receiver; the others follow */
    uint32_t count;
    uint32_t last; /* places to one more receiver, which comes at last; 0: none */
    uint32_t at_once;
    gw_time start;
};

/* Adds a chain's flows, and the trigger that each of them fires for the next to start. */
static void add_chain(struct gw_workload *workload, const struct ring *ring,
                      const struct chain *chain, uint64_t bytes)
{
    uint32_t count = chain->count + (chain->last != 0);
    uint32_t trigger =
        chain->at_once < count ? gw_workload_add_trigger(workload, 1, true) : GW_TRIGGER_NONE;
    for (uint32_t i = 0; i < count; i++) {
        bool waits = i >= chain->at_once;
        uint32_t distance = i < chain->count ? chain->first + i : chain->last;
        uint32_t flow = gw_workload_add_flow(
            workload,
            &(struct gw_flow_spec){.src = ring->hosts[chain->place],
                                   .dst = ring->hosts[(chain->place + distance) % ring->count],
                                   .bytes = bytes,
                                   .start = waits ? GW_TIME_NEVER : chain->start,
                                   .id = workload->flow_count,
                                   .fires_sent = trigger,
                                   .fires_received = GW_TRIGGER_NONE});
        if (waits)
            gw_workload_add_start(workload, flow);
    }
}

/* Adds the flows of the host at `place`. What chains of equal length leave over goes to the ends of
 * the first ones. */
static void add_host(struct gw_workload *workload, const struct all_to_all *cfg,
                     const struct ring *ring, uint32_t place, gw_time start)
{
    uint32_t others = ring->count - 1;
    if (!cfg->chains) {
        add_chain(workload, ring,
                  &(struct chain){.place = place,
                                  .first = 1,
                                  .count = others,
                                  .at_once = cfg->window,
                                  .start = start},
                  cfg->size);
        return;
    }
    uint32_t chains = cfg->window < others ? cfg->window : others;
    uint32_t length = others / chains, rest = others % chains;
    for (uint32_t c = 0; c < chains; c++)
        add_chain(workload, ring,
                  &(struct chain){.place = place,
                                  .first = 1 + c * length,
                                  .count = length,
                                  .last = c < rest ? 1 + chains * length + c : 0,
                                  .at_once = 1,
                                  .start = start},
                  cfg->size);
}

static struct ring make_ring(const struct all_to_all *cfg, uint32_t count, struct gw_prng *prng)
{
    struct ring ring = {.hosts = gw_memory_zeroed(count, sizeof(*ring.hosts)), .count = count};
    for (uint32_t i = 0; i < count; i++)
        ring.hosts[i] = i;
    if (cfg->shuffle)
        gw_workload_shuffle(ring.hosts, count, prng);
    return ring;
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
    struct ring ring = make_ring(cfg, host_count, &ctx->prng);
    for (uint32_t place = 0; place < host_count; place++)
        add_host(workload, cfg, &ring, place,
                 gw_workload_start(ctx, cfg->start, cfg->start_spread));
    free(ring.hosts);
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
    {.name = "shuffle",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct all_to_all, shuffle),
     .initial = "no",
     .help = "hosts stand in the ring in an order that is drawn once, else by number (the authors' "
             "simulator: yes)"},
    {.name = "chains",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct all_to_all, chains),
     .initial = "no",
     .help = "a host sends along `window` chains of neighbours, spread evenly over the ring, one "
             "message of each at a time, else along one chain (the authors' simulator: yes)"},
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

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of the paper: the defaults"},
    {.name = "drafts",
     .settings = "shuffle=yes chains=yes",
     .help = "as the authors of SMaRTT-REPS ran it"},
};

const struct gw_workload_kind gw_workload_all_to_all = {
    .algo = {.name = "all-to-all",
             .summary = "every host sends to every other, a window of messages at a time",
             .source = "SMaRTT figure 12",
             .params = params,
             .presets = presets,
             .param_count = sizeof(params) / sizeof(params[0]),
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct all_to_all)},
    .generate = generate,
};
