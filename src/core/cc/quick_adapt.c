/* Intervals, the phase that is ignored, and the new window; see quick_adapt.h. */
#include "core/cc/quick_adapt.h"

#include "core/cc/window.h"

void gw_quick_adapt_init(struct gw_quick_adapt *qa, const struct gw_quick_adapt_cfg *cfg,
                         gw_time base, gw_time target)
{
    uint64_t multiple = gw_gain(cfg->qa_interval);
    *qa = (struct gw_quick_adapt){.interval = multiple ? gw_mul_shift(base, multiple, 16) : target};
}

/* Takes `bytes` of feedback off the phase; true while that lasts. */
static bool phase_lasts(struct gw_quick_adapt *qa, uint32_t bytes)
{
    qa->ignore -= bytes < qa->ignore ? bytes : qa->ignore;
    return qa->ignore > 0;
}

/* What arrived in the interval that ends now, at least a packet. */
static uint64_t measured(const struct gw_quick_adapt *qa, const struct gw_quick_adapt_cfg *cfg,
                         const struct gw_path *path, gw_time now)
{
    uint64_t acked = qa->acked;
    gw_time elapsed = now - (qa->end - qa->interval);
    if (cfg->qa_normalise && elapsed > qa->interval)
        acked = gw_mul_shift(acked, gw_time_ratio(qa->interval, elapsed), 24);
    return acked > path->mtu ? acked : path->mtu;
}

/* Feedback that is not ignored came: the new window if it ended an interval with losses, or 0. */
static uint64_t adapt(struct gw_quick_adapt *qa, const struct gw_quick_adapt_cfg *cfg,
                      const struct gw_path *path, uint32_t in_flight, gw_time now)
{
    if (qa->ignore > 0 || (qa->started && gw_time_before(now, qa->end)))
        return 0;
    uint64_t cwnd = 0;
    if (qa->started && qa->lossy) {
        cwnd = gw_mul_shift(measured(qa, cfg, path, now), gw_gain(cfg->qa_scaling), 0);
        cwnd = gw_cwnd_clamp(cwnd, 1, (uint64_t)UINT32_MAX << 16);
        uint64_t ignore = gw_mul_shift(in_flight, gw_gain(cfg->qa_ignore_length), 16);
        qa->ignore = (uint32_t)gw_min_u64(ignore, UINT32_MAX);
        qa->rest_end = now + gw_mul_shift(qa->interval, gw_gain(cfg->qa_gap), 16);
        qa->lossy = false;
        qa->count += qa->count < UINT16_MAX;
    }
    qa->started = true;
    qa->end = now + qa->interval;
    qa->acked = 0;
    return cwnd;
}

struct gw_quick_adapt_advice gw_quick_adapt_on_ack(struct gw_quick_adapt *qa,
                                                   const struct gw_quick_adapt_cfg *cfg,
                                                   const struct gw_path *path,
                                                   const struct gw_cc_ack *ack, gw_time now)
{
    struct gw_quick_adapt_advice advice = {.cwnd = 0};
    if (!cfg->quick_adapt)
        return advice;
    bool is_ignorable = cfg->qa_ignores == GW_QUICK_ADAPT_IGNORES_MARKED
                            ? ack->ce
                            : cfg->qa_ignores != GW_QUICK_ADAPT_IGNORES_LOSSES;
    qa->acked = gw_add_u32(qa->acked, ack->bytes);
    if (phase_lasts(qa, ack->bytes)) {
        advice.is_done = is_ignorable;
    } else if (cfg->qa_on == GW_QUICK_ADAPT_ON_FEEDBACK) {
        advice.cwnd = adapt(qa, cfg, path, ack->in_flight, now);
        advice.is_done = advice.cwnd > 0 && is_ignorable;
    }
    return advice;
}

/* Whether a loss may ask for a QuickAdapt. */
static bool may_ask(const struct gw_quick_adapt *qa, const struct gw_quick_adapt_cfg *cfg,
                    gw_time now)
{
    if (qa->count == 0)
        return true;
    return !cfg->qa_once && (cfg->qa_gap <= 0 || !gw_time_before(now, qa->rest_end));
}

struct gw_quick_adapt_advice gw_quick_adapt_on_loss(struct gw_quick_adapt *qa,
                                                    const struct gw_quick_adapt_cfg *cfg,
                                                    const struct gw_path *path,
                                                    const struct gw_cc_loss *loss, gw_time now)
{
    struct gw_quick_adapt_advice advice = {.cwnd = 0};
    if (!cfg->quick_adapt)
        return advice;
    if (cfg->qa_credit == GW_QUICK_ADAPT_CREDITS_PACKET)
        qa->acked = gw_add_u32(qa->acked, loss->bytes);
    else if (cfg->qa_credit == GW_QUICK_ADAPT_CREDITS_HEADER && loss->trimmed)
        qa->acked = gw_add_u32(qa->acked, path->hdr);
    if (phase_lasts(qa, loss->bytes) && cfg->qa_ignores != GW_QUICK_ADAPT_IGNORES_ACKS) {
        advice.is_done = true;
        return advice;
    }
    qa->lossy = qa->lossy || may_ask(qa, cfg, now);
    advice.cwnd = adapt(qa, cfg, path, loss->in_flight, now);
    advice.is_done = advice.cwnd > 0;
    return advice;
}
