/*
 * Loss detection where switches trim: a NACK tells of every packet that found a full queue
 * (SMaRTT-REPS, section 3.3). A timer remains for what no switch reports: failed links, corruption,
 * lost control packets.
 *
 * Invariant: the timer never expires for a packet that is only queued. With queues of one bdp, each
 * adds at most one base RTT of the longest path, and a path of H links has H - 1 switch queues, so
 * an RTT is at most 1 + (H - 1) base RTTs; the default period is 1.2 + (H - 1). ACKs and trimmed
 * headers do not wait behind data. Deeper queues need a larger `rto_queue`.
 */
#include "core/loss/rto.h"

struct trim_cfg {
    gw_q16 rto;
    gw_q16 rto_queue;
};

static void trim_init(void *state, const void *config, const struct gw_path *path)
{
    const struct trim_cfg *cfg = config;
    uint64_t queues = path->hops > 1 ? path->hops - 1 : 0;
    gw_rto_init(state,
                gw_rto_multiple(path, cfg->rto) + queues * gw_rto_multiple(path, cfg->rto_queue));
}

static bool trim_on_nack(void *state, const void *config)
{
    (void)state;
    (void)config;
    return true;
}

static void trim_on_ack(void *state, const void *config, gw_time sent_at, gw_time rtt)
{
    (void)config;
    (void)rtt;
    gw_rto_on_ack(state, sent_at);
}

static gw_time trim_period(const void *state, const void *config)
{
    (void)config;
    return gw_rto_period(state);
}

static enum gw_loss_verdict trim_on_timeout(void *state, const void *config, gw_time sent_at,
                                            gw_time now)
{
    (void)config;
    gw_rto_on_timeout(state, sent_at, now);
    return GW_LOSS_OLDEST;
}

static const struct gw_param params[] = {
    GW_PARAM(struct trim_cfg, Q16, rto, "1.2",
             "timeout with empty queues, multiple of the longest base RTT (own choice)"),
    GW_PARAM(struct trim_cfg, Q16, rto_queue, "1",
             "what each switch queue of the path adds, multiple of the longest base RTT (queues of "
             "one bdp: SMaRTT-REPS, section 3)"),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the defaults"},
    {
        .name = "drafts",
        .settings = "rto=90000 rto_queue=0",
        .help = "as the authors ran it: a timer that never expires in a run",
    },
};

const struct gw_loss_ops gw_loss_trim = {
    .algo =
        {
            .name = "trim",
            .summary = "believe NACKs; a late timer for what switches cannot report",
            .source = "SMaRTT-REPS, section 3.3",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct trim_cfg),
            .state_size = sizeof(struct gw_rto),
        },
    .init = trim_init,
    .on_nack = trim_on_nack,
    .on_ack = trim_on_ack,
    .period = trim_period,
    .on_timeout = trim_on_timeout,
};
