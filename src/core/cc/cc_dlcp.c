/*
 * DLCP's minimal rate control (DLCP, section 3.2.1 and Figure 7), for blasts: it reacts to nothing
 * but a receiver that gets less than the `delta`-th part of what is sent.
 *
 * A round begins at line rate. From the first report of such a loss on, the rate is halved with
 * each such report, and otherwise grows by a fixed part of the line rate. The printed rule for the
 * second phase halves when the sending rate is *smaller* than delta times the receiving rate, which
 * contradicts the figure and the rule of the first phase; here it is "larger" in both. What was
 * sent is measured, not the rate that was allowed: who has little to send is not slowed down.
 *
 * Invariant: a packet per period <= rate <= line rate.
 */
#include "base/assert.h"
#include "core/cc/blast_rate.h"

struct dlcp_cfg {
    gw_q16 delta;
    gw_q16 increase;
};

struct dlcp {
    uint64_t rate_bps;
    bool is_avoiding; /* congestion avoidance; else line-rate start */
};

_Static_assert(sizeof(struct dlcp) <= GW_CC_STATE_MAX, "state fits");

static void set_rate(struct dlcp *dlcp, const struct gw_path *path, uint64_t rate_bps,
                     struct gw_cc_window *window)
{
    if (rate_bps < GW_RATE_BPS_MIN)
        rate_bps = GW_RATE_BPS_MIN;
    dlcp->rate_bps = rate_bps;
    *window = gw_blast_rate_window(path, rate_bps);
}

static void dlcp_on_round(void *state, const void *config, const struct gw_path *path,
                          struct gw_cc_window *window, gw_time now)
{
    struct dlcp *dlcp = state;
    (void)config;
    (void)now;
    dlcp->is_avoiding = false;
    set_rate(dlcp, path, path->rate_bps, window);
}

static void dlcp_init(void *state, const void *config, const struct gw_path *path,
                      struct gw_cc_window *window, gw_time now)
{
    GW_ASSERT(path->mtu > 0);
    dlcp_on_round(state, config, path, window, now);
}

static void dlcp_on_report(void *state, const void *config, const struct gw_path *path,
                           const struct gw_cc_report *report, struct gw_cc_window *window,
                           gw_time now)
{
    struct dlcp *dlcp = state;
    const struct dlcp_cfg *cfg = config;
    (void)now;
    uint64_t rate = dlcp->rate_bps, least = gw_blast_rate_least(path, report->period);
    bool is_congested = report->sent > gw_mul_shift(gw_gain(cfg->delta), report->received, 16);
    if (is_congested)
        rate = rate / 2 > least ? rate / 2 : least;
    else if (dlcp->is_avoiding)
        rate += gw_mul_shift(gw_gain(cfg->increase), path->rate_bps, 16);
    dlcp->is_avoiding |= is_congested;
    set_rate(dlcp, path, gw_min_u64(rate, path->rate_bps), window);
}

static const struct gw_param params[] = {
    GW_PARAM(struct dlcp_cfg, Q16, delta, "2",
             "sent over received above which the rate is halved (DLCP, section 3.2.1)"),
    GW_PARAM(struct dlcp_cfg, Q16, increase, "0.05",
             "growth of the rate per report, part of the line rate (DLCP, Figure 7)"),
};

const struct gw_cc_ops gw_cc_dlcp = {
    .algo =
        {
            .name = "dlcp",
            .summary = "blasts at line rate, halved when less than half arrives",
            .source = "DLCP, section 3.2.1",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct dlcp_cfg),
            .state_size = sizeof(struct dlcp),
        },
    .init = dlcp_init,
    /* Nothing of a blast is acknowledged, and its losses are its receiver's matter. */
    .on_ack = gw_cc_ignore_ack,
    .on_loss = gw_cc_ignore_loss,
    .on_round = dlcp_on_round,
    .on_report = dlcp_on_report,
};
