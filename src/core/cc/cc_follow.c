/*
 * A rate that follows what arrives, for blasts (own; compare DLCP's rule, cc_dlcp.c).
 *
 * Who knows nothing sends at line rate, as DLCP does. When more than the tolerated part of what was
 * sent in a period is missing, the rate becomes that at which the receiver received: of n senders
 * through one link each falls to its share of the link by a single report, and a report that comes
 * late does not make it fall again. Else the rate grows, by a step more with each report, so that
 * senders that share a link try for little more, and who is alone is back at line rate after
 * few periods.
 *
 * All blasts to one peer have one rate, and a round of repair goes on with it: most messages are
 * over before they are reported of, so what is learned must outlive them.
 *
 * Invariant: a packet per period <= rate <= line rate; a report leaves at least `least` of the
 * rate. The constants are our own choice, from figures 11 and 14 of DLCP.
 */
#include "base/assert.h"
#include "core/cc/blast_rate.h"

struct follow_cfg {
    gw_q16 tolerance;
    gw_q16 least;
    gw_q16 step;
};

struct follow {
    uint64_t rate_bps;
    uint64_t step_bps; /* by which the next report without much loss raises the rate */
};

_Static_assert(sizeof(struct follow) <= GW_CC_STATE_MAX, "state fits");

static void set_rate(struct follow *follow, const struct gw_path *path, uint64_t rate_bps,
                     struct gw_cc_window *window)
{
    if (rate_bps < GW_RATE_BPS_MIN)
        rate_bps = GW_RATE_BPS_MIN;
    follow->rate_bps = gw_min_u64(rate_bps, path->rate_bps);
    *window = gw_blast_rate_window(path, follow->rate_bps);
}

static void follow_init(void *state, const void *config, const struct gw_path *path,
                        struct gw_cc_window *window, gw_time now)
{
    struct follow *follow = state;
    (void)config;
    (void)now;
    GW_ASSERT(path->mtu > 0);
    follow->step_bps = 0;
    set_rate(follow, path, path->rate_bps, window);
}

static void follow_on_round(void *state, const void *config, const struct gw_path *path,
                            struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)config;
    (void)path;
    (void)window;
    (void)now;
}

/* What the receiver received per second, in bits; periods are whole microseconds, or nearly. */
static uint64_t received_bps(const struct gw_cc_report *report)
{
    const uint64_t us = report->period / GW_US;
    return report->received * 8 * (GW_S / GW_US) / (us ? us : 1);
}

/* The rate after a report of much loss. */
static uint64_t fall(const struct follow_cfg *cfg, uint64_t rate, const struct gw_path *path,
                     const struct gw_cc_report *report)
{
    uint64_t to = received_bps(report);
    const uint64_t part = gw_mul_shift(gw_gain(cfg->least), rate, 16);
    const uint64_t packet = gw_blast_rate_least(path, report->period);
    to = to > part ? to : part;
    to = to > packet ? to : packet;
    return gw_min_u64(to, rate);
}

static void follow_on_report(void *state, const void *config, const struct gw_path *path,
                             const struct gw_cc_report *report, struct gw_cc_window *window,
                             gw_time now)
{
    struct follow *follow = state;
    const struct follow_cfg *cfg = config;
    (void)now;
    const uint64_t step = gw_mul_shift(gw_gain(cfg->step), path->rate_bps, 16);
    const uint64_t tolerated = gw_mul_shift(gw_gain(cfg->tolerance), report->sent, 16);
    uint64_t rate = follow->rate_bps;
    if (report->sent > report->received && report->sent - report->received > tolerated) {
        rate = fall(cfg, rate, path, report);
        follow->step_bps = 0;
    } else {
        follow->step_bps = gw_min_u64(follow->step_bps + step, path->rate_bps);
        rate += follow->step_bps;
    }
    set_rate(follow, path, rate, window);
}

static const struct gw_param params[] = {
    GW_PARAM(struct follow_cfg, Q16, tolerance, "0.05",
             "part of what is sent in a period that may be missing (own choice)"),
    GW_PARAM(struct follow_cfg, Q16, least, "0.25",
             "part of its rate that one report leaves at least (own choice)"),
    GW_PARAM(struct follow_cfg, Q16, step, "0.004",
             "by which each report without much loss raises the growth, part of the line rate (own "
             "choice)"),
};

const struct gw_cc_ops gw_cc_follow = {
    .algo =
        {
            .name = "follow",
            .summary = "blasts to one peer at the rate at which it receives",
            .source = "own; compare DLCP, section 3.2.1",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct follow_cfg),
            .state_size = sizeof(struct follow),
        },
    .init = follow_init,
    /* Nothing of a blast is acknowledged, and its losses are its receiver's matter. */
    .on_ack = gw_cc_ignore_ack,
    .on_loss = gw_cc_ignore_loss,
    .on_round = follow_on_round,
    .on_report = follow_on_report,
    .shares_lane = true,
};
