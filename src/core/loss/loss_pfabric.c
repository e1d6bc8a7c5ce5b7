/*
 * pFabric's loss detection: a short timeout that never grows, and nothing else (Alizadeh et al.,
 * pFabric, SIGCOMM 2013, section 4.2). Packets of a flow take many paths, so later arrivals say
 * nothing of earlier packets.
 *
 * When the oldest packet times out all in flight is lost, as with TCP; it waits since it was sent.
 * After several timeouts in a row a flow probes: instead of its data one header leaves per
 * timeout, before all data in queues, and data only when the receiver has answered; until then
 * others have what it could not use. An ACK ends that.
 *
 * Invariant: the period is the same from start to end of the flow.
 */
#include "core/loss/rto.h"

struct pfabric_cfg {
    gw_q16 rto;
    gw_time rto_min;
    uint32_t probe_after;
};

struct pfabric {
    gw_time rto;
    uint32_t timeouts; /* since something was acknowledged */
};

_Static_assert(sizeof(struct pfabric) <= GW_LOSS_STATE_MAX, "state fits");

static void pfabric_init(void *state, const void *config, const struct gw_path *path)
{
    struct pfabric *p = state;
    const struct pfabric_cfg *cfg = config;
    gw_time rto = gw_rto_multiple(path, cfg->rto);
    gw_time least = cfg->rto_min < GW_RTO_BASE_MAX ? cfg->rto_min : GW_RTO_BASE_MAX;
    rto = rto < least ? least : rto;
    *p = (struct pfabric){.rto = rto ? rto : 1};
}

static bool is_probing(const struct pfabric *p, const struct pfabric_cfg *cfg)
{
    return cfg->probe_after && p->timeouts >= cfg->probe_after;
}

/* The answer to a probe; otherwise trimmed packets are not expected. */
static bool pfabric_on_nack(void *state, const void *config)
{
    return is_probing(state, config);
}

static void pfabric_on_ack(void *state, const void *config, gw_time sent_at, gw_time rtt)
{
    struct pfabric *p = state;
    (void)config;
    (void)sent_at;
    (void)rtt;
    p->timeouts = 0;
}

static gw_time pfabric_period(const void *state, const void *config)
{
    const struct pfabric *p = state;
    (void)config;
    return p->rto;
}

static enum gw_loss_verdict pfabric_on_timeout(void *state, const void *config, gw_time sent_at,
                                               gw_time now)
{
    struct pfabric *p = state;
    (void)sent_at;
    (void)now;
    p->timeouts += p->timeouts < UINT32_MAX;
    return is_probing(p, config) ? GW_LOSS_ASK : GW_LOSS_ALL;
}

/* An rto that no answer can meet would never end, since it does not back off. */
static const struct gw_param params[] = {
    GW_PARAM(struct pfabric_cfg, Q16, rto, "3",
             "timeout, multiple of the longest base RTT, at least 1 (section 4.2: about 3)",
             .least = GW_Q16_ONE),
    GW_PARAM(struct pfabric_cfg, TIME, rto_min, "0",
             "smallest timeout; 0: none (DLCP, section 5.2, gives it TCP's)"),
    GW_PARAM(struct pfabric_cfg, COUNT, probe_after, "5",
             "timeouts in a row after which only headers leave; 0: never (section 4.2; the "
             "authors' simulation)"),
};

static const struct gw_preset presets[] = {
    {.name = "native", .settings = "", .help = "as its paper has it: the defaults"},
    {.name = "dlcp", .settings = "rto_min=10ms", .help = "as DLCP is compared with it"},
};

const struct gw_loss_ops gw_loss_pfabric = {
    .algo =
        {
            .name = "pfabric",
            .summary = "a short timeout that never grows, then probes",
            .source = "pFabric, SIGCOMM 2013, section 4.2",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct pfabric_cfg),
            .state_size = sizeof(struct pfabric),
        },
    .init = pfabric_init,
    .on_nack = pfabric_on_nack,
    .on_ack = pfabric_on_ack,
    .period = pfabric_period,
    .on_timeout = pfabric_on_timeout,
};
