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
        uint64_t ahead = in_flight + (cfg->qa_silence ? cwnd >> 16 : 0);
        uint64_t ignore = gw_mul_shift(ahead, gw_gain(cfg->qa_ignore_length), 16);
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

/* With silence, intervals follow one another, whatever is heard; the one at whose end the window is
 * to be set stays until then. */
static void catch_up(struct gw_quick_adapt *qa, gw_time now)
{
    if (qa->lossy || gw_time_before(now, qa->end))
        return;
    gw_time length = qa->interval ? qa->interval : 1;
    qa->end += ((now - qa->end) / length + 1) * length;
    qa->acked = 0;
}

/* Whether the phase is about this ACK. */
static bool is_ignorable(const struct gw_quick_adapt_cfg *cfg, const struct gw_cc_ack *ack)
{
    return cfg->qa_ignores == GW_QUICK_ADAPT_IGNORES_MARKED
               ? ack->ce
               : cfg->qa_ignores != GW_QUICK_ADAPT_IGNORES_LOSSES;
}

struct gw_quick_adapt_advice gw_quick_adapt_count(struct gw_quick_adapt *qa,
                                                  const struct gw_quick_adapt_cfg *cfg,
                                                  const struct gw_cc_ack *ack, gw_time now)
{
    struct gw_quick_adapt_advice advice = {.cwnd = 0};
    if (!cfg->quick_adapt)
        return advice;
    if (cfg->qa_silence)
        catch_up(qa, now);
    qa->acked = gw_add_u32(qa->acked, ack->bytes);
    advice.is_done = phase_lasts(qa, ack->bytes) && is_ignorable(cfg, ack);
    return advice;
}

struct gw_quick_adapt_advice gw_quick_adapt_on_ack(struct gw_quick_adapt *qa,
                                                   const struct gw_quick_adapt_cfg *cfg,
                                                   const struct gw_path *path,
                                                   const struct gw_cc_ack *ack, gw_time now)
{
    struct gw_quick_adapt_advice advice = gw_quick_adapt_count(qa, cfg, ack, now);
    if (!cfg->quick_adapt || cfg->qa_on != GW_QUICK_ADAPT_ON_FEEDBACK || cfg->qa_silence)
        return advice;
    uint32_t late = cfg->qa_late ? ack->bytes : 0;
    qa->acked -= late;
    advice.cwnd = adapt(qa, cfg, path, ack->in_flight, now);
    qa->acked += late;
    advice.is_done = advice.is_done || (advice.cwnd > 0 && is_ignorable(cfg, ack));
    return advice;
}

/* Whether a loss may ask for a QuickAdapt. */
static bool may_ask(const struct gw_quick_adapt *qa, const struct gw_quick_adapt_cfg *cfg,
                    gw_time now)
{
    return qa->count == 0 || cfg->qa_gap <= 0 || !gw_time_before(now, qa->rest_end);
}

struct gw_quick_adapt_advice gw_quick_adapt_on_loss(struct gw_quick_adapt *qa,
                                                    const struct gw_quick_adapt_cfg *cfg,
                                                    const struct gw_path *path,
                                                    const struct gw_cc_loss *loss, gw_time now)
{
    struct gw_quick_adapt_advice advice = {.cwnd = 0};
    if (!cfg->quick_adapt)
        return advice;
    if (cfg->qa_silence)
        catch_up(qa, now);
    if (cfg->qa_credit == GW_QUICK_ADAPT_CREDITS_PACKET)
        qa->acked = gw_add_u32(qa->acked, loss->bytes);
    else if (cfg->qa_credit == GW_QUICK_ADAPT_CREDITS_HEADER && loss->trimmed)
        qa->acked = gw_add_u32(qa->acked, path->hdr);
    if (phase_lasts(qa, loss->bytes) && cfg->qa_ignores != GW_QUICK_ADAPT_IGNORES_ACKS) {
        advice.is_done = true;
        return advice;
    }
    if (cfg->qa_silence) {
        qa->lossy = qa->lossy || (!loss->is_again && may_ask(qa, cfg, now));
        advice.is_done = true;
        return advice;
    }
    qa->lossy = qa->lossy || may_ask(qa, cfg, now);
    advice.cwnd = adapt(qa, cfg, path, loss->in_flight, now);
    advice.is_done = advice.cwnd > 0;
    return advice;
}

void gw_quick_adapt_start(struct gw_quick_adapt *qa, gw_time now)
{
    qa->started = true;
    qa->end = now + qa->interval;
}

void gw_quick_adapt_say_silence(const struct gw_quick_adapt *qa,
                                const struct gw_quick_adapt_cfg *cfg, struct gw_cc_window *window)
{
    window->is_silent = cfg->qa_silence && qa->lossy;
    window->silent_until = qa->end;
}

uint64_t gw_quick_adapt_on_silence_end(struct gw_quick_adapt *qa,
                                       const struct gw_quick_adapt_cfg *cfg,
                                       const struct gw_path *path, uint32_t in_flight, gw_time now)
{
    qa->ignore = 0; /* while nothing is sent nothing may come that would end the phase */
    return adapt(qa, cfg, path, in_flight, now);
}
