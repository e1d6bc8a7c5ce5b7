/*
 * Loss detection by timeouts alone, for switches that drop (SMaRTT-REPS, section 3.3 "QuickAdapt
 * without trimming"). A NACK is not believed: what was trimmed counts as dropped.
 *
 * The default period is 2.2 base RTTs of the longest path: a queue of one bdp adds one base RTT, so
 * an RTT over one full queue is 2. Paths with several full queues expire spuriously; that costs
 * duplicates, not correctness.
 */
#include "core/loss/rto.h"

struct timeout_cfg {
    gw_q16 rto;
    bool back_off;
};

static void timeout_init(void *state, const void *config, const struct gw_path *path)
{
    const struct timeout_cfg *cfg = config;
    gw_rto_init(state, gw_rto_multiple(path, cfg->rto));
}

static bool timeout_on_nack(void *state, const void *config)
{
    (void)state;
    (void)config;
    return false;
}

static void timeout_on_ack(void *state, const void *config, gw_time sent_at, gw_time rtt)
{
    (void)config;
    (void)rtt;
    gw_rto_on_ack(state, sent_at);
}

static gw_time timeout_period(const void *state, const void *config)
{
    (void)config;
    return gw_rto_period(state);
}

static enum gw_loss_verdict timeout_on_timeout(void *state, const void *config, gw_time sent_at,
                                               gw_time now)
{
    const struct timeout_cfg *cfg = config;
    if (cfg->back_off)
        gw_rto_on_timeout(state, sent_at, now);
    return GW_LOSS_OLDEST;
}

static const struct gw_param params[] = {
    GW_PARAM(
        struct timeout_cfg, Q16, rto, "2.2",
        "timeout, multiple of the longest base RTT (not in the paper; the authors' simulator)"),
    GW_PARAM(struct timeout_cfg, BOOL, back_off, "yes",
             "the period doubles while what was sent after a timeout times out too (own choice; "
             "the authors' simulator: no)"),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the defaults"},
    {.name = "drafts", .settings = "rto=2.1 back_off=no", .help = "as the authors ran it"},
};

const struct gw_loss_ops gw_loss_timeout = {
    .algo =
        {
            .name = "timeout",
            .summary = "an aggressive timer; NACKs are ignored",
            .source = "SMaRTT-REPS, section 3.3",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct timeout_cfg),
            .state_size = sizeof(struct gw_rto),
        },
    .init = timeout_init,
    .on_nack = timeout_on_nack,
    .on_ack = timeout_on_ack,
    .period = timeout_period,
    .on_timeout = timeout_on_timeout,
};
