/*
 * SMaRTT: sender-based congestion control from ECN, delay and trimming (SMaRTT-REPS, section 3,
 * Algorithms 1 to 3).
 *
 * Every ACK moves the window by one of four rules: fair or multiplicative decrease when it is
 * marked, fair or multiplicative increase when not. QuickAdapt (quick_adapt.h) sets the window to
 * what arrived within one target RTT when packets were lost; FastIncrease reclaims bandwidth when
 * the path is empty; Wait-To-Decrease leaves rare marks to load balancing.
 *
 * Where the printed algorithm is ambiguous, or its authors' simulator differs, there is a
 * parameter. The defaults are the text, but for two points that the preset `alg1` restores
 * (quick_adapt.h), and one without effect on any other: the window is bounded on every path through
 * the algorithm. The ACK that QuickAdapt takes is one that FastIncrease measures (Algorithm 1, line
 * 14), but adds nothing by it.
 *
 * A window below a packet is not in the algorithm. With cwnd_min below 1 the flow is paced then,
 * one packet per trtt * mtu / cwnd (section 3.5; Swift, section 3); no decrease below a packet
 * takes more than half of the window, and no increase is larger than that of a window of one
 * packet.
 *
 * Invariant: cwnd_min <= cwnd <= cwnd_max; with the defaults, between a QuickAdapt and the end of
 * the phase that it ignores cwnd is constant.
 *
 * State per flow: 56 bytes that change, of which 2 serve reports only, against the paper's 19; and
 * 64 bytes of constants that all flows of equal path length share in principle, against the paper's
 * 28 bytes globally. The window has 8 bytes here (16 fractional bits) and time has 8 (picoseconds);
 * 12 bytes serve rules of its authors' simulator.
 */
#include "core/cc/smartt.h"

#include "base/assert.h"
#include "core/cc/window.h"

enum smartt_signals {
    SIGNALS_BOTH,
    SIGNALS_ECN, /* ablation: no delay, no QuickAdapt, no FastIncrease, no Wait-To-Decrease */
    SIGNALS_RTT, /* ablation: no ECN, likewise */
};

/* How many calm bytes make FastIncrease active. */
enum smartt_fast_after {
    FAST_AFTER_WINDOW,    /* more than the window holds now */
    FAST_AFTER_CONGESTED, /* more than it held at the last ACK that was not calm */
};

enum {
    REACT_EVERY_MAX = 4096, /* keeps n times a window change within 64 bits */
};

struct smartt_cfg {
    gw_q16 fi;
    gw_q16 mi;
    gw_q16 fd;
    gw_q16 md;
    gw_q16 md_timeout;
    gw_q16 k;
    gw_q16 wtd_threshold;
    gw_q16 wtd_alpha;
    gw_q16 trtt;
    gw_q16 cwnd_max;
    gw_q16 cwnd_initial;
    gw_q16 cwnd_min;
    gw_q16 fi_slack;
    gw_q16 fi_cap;
    gw_q16 loss_cut;
    uint32_t fast_after; /* enum smartt_fast_after */
    uint32_t react_every;
    uint32_t signals; /* enum smartt_signals */
    struct gw_quick_adapt_cfg qa;
    bool gain_scaling;
    bool fast_increase;
    bool wait_to_decrease;
    bool measure_all;
    bool react_all;
};

/* Bounds the window and reports it. */
static void smartt_report(struct gw_smartt *s, const struct gw_path *path,
                          struct gw_cc_window *window)
{
    s->cwnd = gw_cwnd_clamp(s->cwnd, s->gains.cwnd_min, s->gains.cwnd_max);
    window->cwnd = s->cwnd >> 16 ? s->cwnd >> 16 : 1;
    bool fits = window->cwnd >= path->mtu;
    window->pace = fits ? 0 : gw_window_pace(path, s->gains.trtt, window->cwnd);
}

/* fi or mi times gamma and the packet, in 1/65536 byte. */
static uint64_t scaled_gain(const struct smartt_cfg *cfg, const struct gw_path *path, gw_q16 gain)
{
    uint64_t bdp = path->bdp ? path->bdp : 1;
    uint64_t gamma = cfg->gain_scaling ? (bdp << 16) / GW_REFERENCE_BDP : (uint64_t)GW_Q16_ONE;
    return gw_gain((gw_q16)gw_mul_shift(gw_gain(gain), gamma, 16)) * path->mtu;
}

static void smartt_init(void *state, const void *config, const struct gw_path *path,
                        struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0 && path->rate_bps >= GW_RATE_BPS_MIN);
    uint64_t bdp = path->bdp ? path->bdp : 1;
    uint64_t most = gw_cwnd_of_bdp(cfg->cwnd_max, path);

    *s = (struct gw_smartt){
        .gains =
            {
                .trtt = gw_mul_shift(path->brtt, gw_gain(cfg->trtt), 16),
                .near = path->brtt +
                        gw_mul_shift(gw_path_packet_time(path), gw_gain(cfg->fi_slack), 16),
                .cwnd_min = gw_cwnd_clamp(gw_gain(cfg->cwnd_min) * path->mtu, 1 << 16, most),
                .cwnd_max = most,
                .fd = (gw_gain(cfg->fd) << 32) / bdp,
                .fi = scaled_gain(cfg, path, cfg->fi),
                .mi = scaled_gain(cfg, path, cfg->mi),
            },
    };
    gw_quick_adapt_init(&s->qa, &cfg->qa, path->brtt, s->gains.trtt);
    if (cfg->qa.qa_silence)
        gw_quick_adapt_start(&s->qa, now);
    s->cwnd = gw_cwnd_of_bdp(cfg->cwnd_initial, path);
    if (path->window) /* a flow before this one has found out what the path bears */
        s->cwnd = gw_min_u64(s->cwnd, gw_min_u64(path->window, UINT32_MAX) << 16);
    smartt_report(s, path, window);
    s->calm_goal = (uint32_t)(s->cwnd >> 16);
}

/* Counts calm bytes, and so finds out whether FastIncrease is active (Algorithm 3). */
static void measure_calm(struct gw_smartt *s, const struct smartt_cfg *cfg,
                         const struct gw_cc_ack *ack)
{
    uint32_t cwnd = (uint32_t)(s->cwnd >> 16);
    if (ack->rtt > s->gains.near || ack->ce) {
        s->calm = 0;
        s->calm_goal = cwnd;
        s->fast = false;
    } else if (!s->fast) {
        s->calm = gw_add_u32(s->calm, ack->bytes);
        s->fast = s->calm > (cfg->fast_after == FAST_AFTER_CONGESTED ? s->calm_goal : cwnd);
    }
}

/* Averages marks, for Wait-To-Decrease (section 3.6.1). */
static void measure_marks(struct gw_smartt *s, const struct smartt_cfg *cfg, bool ce)
{
    uint64_t alpha = gw_min_u64(gw_gain(cfg->wtd_alpha), (uint64_t)GW_Q16_ONE);
    uint64_t kept = ((uint64_t)GW_Q16_ONE - alpha) * s->marked;
    s->marked = (uint32_t)((kept + (ce ? alpha << 16 : 0)) >> 16);
}

/* By how much fair increase raises the window for an ACK whose share of it is `share`. */
static int64_t fair_increase(const struct gw_smartt *s, uint64_t share)
{
    return (int64_t)gw_min_u64(gw_mul_shift(s->gains.fi, share, 32), s->gains.cwnd_max);
}

static int64_t increase(const struct gw_smartt *s, const struct gw_cc_ack *ack, uint64_t share)
{
    int64_t change = fair_increase(s, share);
    if (ack->rtt <= s->gains.trtt) {
        uint64_t headroom = gw_time_ratio(s->gains.trtt - ack->rtt, ack->rtt);
        uint64_t step = gw_mul_shift(gw_mul_shift(s->gains.mi, share, 32), headroom, 24);
        change += (int64_t)gw_min_u64(step, (uint64_t)ack->bytes << 16);
    }
    return change;
}

/* How far the RTT lies beyond the target, times the gain and the packet. */
static uint64_t delay_excess(const struct gw_smartt *s, const struct gw_cc_ack *ack, uint64_t md)
{
    return gw_mul_shift(gw_time_ratio(ack->rtt - s->gains.trtt, ack->rtt) * md, ack->bytes, 24);
}

static int64_t decrease(const struct gw_smartt *s, const struct gw_cc_ack *ack, uint64_t md)
{
    uint64_t share = gw_mul_shift(s->cwnd, s->gains.fd, 32);
    uint64_t cut = gw_min_u64(gw_mul_shift(share, ack->bytes, 16), s->gains.cwnd_max);
    if (ack->rtt > s->gains.trtt)
        cut = gw_min_u64(cut + gw_min_u64(delay_excess(s, ack, md), s->gains.cwnd_max),
                         (uint64_t)ack->bytes << 16);
    return -(int64_t)cut;
}

/* The ablations of Figure 2: one signal alone, and at most half of the packet per decrease. */
static int64_t single_signal(const struct gw_smartt *s, const struct smartt_cfg *cfg,
                             const struct gw_cc_ack *ack, uint64_t share, uint64_t md)
{
    int64_t half = (int64_t)ack->bytes << 15;
    if (cfg->signals == SIGNALS_ECN)
        return ack->ce ? -half : fair_increase(s, share);
    if (ack->rtt < s->gains.trtt)
        return increase(s, ack, share);
    return -(int64_t)gw_min_u64(delay_excess(s, ack, md), (uint64_t)half);
}

/* FastIncrease: k packets per ACK; an ACK that covers several packets counts for all of them. */
static int64_t fast_increase(const struct gw_smartt *s, const struct smartt_cfg *cfg,
                             const struct gw_path *path, const struct gw_cc_ack *ack)
{
    if (s->qa.ignore > 0)
        return 0;
    uint32_t bytes = ack->bytes > path->mtu ? ack->bytes : path->mtu;
    return (int64_t)gw_min_u64(gw_mul_shift(gw_gain(cfg->k), bytes, 0), s->gains.cwnd_max);
}

/* The change that one ACK asks for, in 1/65536 byte. */
static int64_t smartt_change(const struct gw_smartt *s, const struct smartt_cfg *cfg,
                             const struct gw_path *path, const struct gw_cc_ack *ack)
{
    uint64_t packet = (uint64_t)path->mtu << 16;
    uint64_t share = gw_cwnd_share(ack->bytes, s->cwnd > packet ? s->cwnd : packet);
    uint64_t md = gw_gain(path->trims ? cfg->md : cfg->md_timeout);
    if (cfg->signals != SIGNALS_BOTH)
        return single_signal(s, cfg, ack, share, md);
    if (cfg->fast_increase && s->fast)
        return fast_increase(s, cfg, path, ack);
    if (!ack->ce)
        return increase(s, ack, share);
    bool may_decrease = !cfg->wait_to_decrease || s->marked >= cfg->wtd_threshold;
    return may_decrease ? decrease(s, ack, md) : 0;
}

/* Applies a change; below a packet the window falls by no more than half. */
static void smartt_move(struct gw_smartt *s, const struct gw_path *path, int64_t change)
{
    const uint64_t packet = (uint64_t)path->mtu << 16;
    int64_t moved = (int64_t)s->cwnd + change;
    uint64_t cwnd = moved < 0 ? 0 : (uint64_t)moved;
    if (s->gains.cwnd_min < packet && cwnd < packet && cwnd < s->cwnd / 2)
        cwnd = s->cwnd / 2;
    s->cwnd = cwnd;
}

/* Takes QuickAdapt's advice. */
static void smartt_adapt(struct gw_smartt *s, const struct smartt_cfg *cfg,
                         const struct gw_path *path, uint64_t cwnd)
{
    if (cwnd == 0)
        return;
    s->cwnd = gw_cwnd_clamp(cwnd, s->gains.cwnd_min, s->gains.cwnd_max);
    uint64_t cap = gw_mul_shift(s->cwnd, gw_gain(cfg->fi_cap), 16);
    if (cap)
        s->gains.fi = gw_min_u64(scaled_gain(cfg, path, cfg->fi), cap);
}

/* Counts an ACK; whether it is one to react to. */
static bool takes_turn(struct gw_smartt *s, const struct smartt_cfg *cfg)
{
    uint32_t every = cfg->react_every < REACT_EVERY_MAX ? cfg->react_every : REACT_EVERY_MAX;
    return ++s->waited >= every;
}

static void smartt_on_ack(void *state, const void *config, const struct gw_path *path,
                          const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;
    struct gw_quick_adapt_advice advice = {.cwnd = 0};
    bool waits = cfg->react_all && !takes_turn(s, cfg);
    if (cfg->signals == SIGNALS_BOTH)
        advice = waits ? gw_quick_adapt_count(&s->qa, &cfg->qa, ack, now)
                       : gw_quick_adapt_on_ack(&s->qa, &cfg->qa, path, ack, now);
    smartt_adapt(s, cfg, path, advice.cwnd);
    if (advice.cwnd || !advice.is_done || cfg->measure_all) {
        measure_marks(s, cfg, ack->ce);
        measure_calm(s, cfg, ack);
    }
    if (!cfg->react_all)
        waits = advice.is_done || !takes_turn(s, cfg);
    if (!waits) {
        if (!advice.is_done)
            smartt_move(s, path, smartt_change(s, cfg, path, ack) * s->waited);
        s->waited = 0;
    }
    smartt_report(s, path, window);
}

static void smartt_on_loss(void *state, const void *config, const struct gw_path *path,
                           const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;
    struct gw_quick_adapt_advice advice = {.cwnd = 0};
    if (cfg->signals == SIGNALS_BOTH)
        advice = gw_quick_adapt_on_loss(&s->qa, &cfg->qa, path, loss, now);
    smartt_adapt(s, cfg, path, advice.cwnd);
    if (!advice.is_done) {
        uint64_t cut = gw_mul_shift(loss->bytes, gw_gain(cfg->loss_cut), 0);
        smartt_move(s, path, -(int64_t)gw_min_u64(cut, s->gains.cwnd_max));
    }
    gw_quick_adapt_say_silence(&s->qa, &cfg->qa, window);
    smartt_report(s, path, window);
}

static void smartt_on_silence_end(void *state, const void *config, const struct gw_path *path,
                                  uint32_t in_flight, struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;
    uint64_t cwnd = gw_quick_adapt_on_silence_end(&s->qa, &cfg->qa, path, in_flight, now);
    smartt_adapt(s, cfg, path, cwnd);
    gw_quick_adapt_say_silence(&s->qa, &cfg->qa, window);
    smartt_report(s, path, window);
}

#define SMARTT_PARAM(kind, field, initial_text, ...)                                               \
    GW_PARAM(struct smartt_cfg, kind, field, initial_text, __VA_ARGS__)

static const struct gw_param params[] = {
    SMARTT_PARAM(Q16, fi, "0.25", "fair increase gain at 100 Gb/s and 12 us (section 3.5)"),
    SMARTT_PARAM(Q16, mi, "2",
                 "multiplicative increase gain at 100 Gb/s and 12 us: brtt / (trtt - brtt) "
                 "(section 3.2.4)"),
    SMARTT_PARAM(Q16, fd, "0.8", "fair decrease gain (section 3.5)"),
    SMARTT_PARAM(Q16, md, "2",
                 "multiplicative decrease gain: one packet per ACK at twice the target RTT "
                 "(section 3.2.2)"),
    SMARTT_PARAM(Q16, md_timeout, "4", "md where switches do not trim (section 3.3)"),
    SMARTT_PARAM(BOOL, gain_scaling, "yes",
                 "multiply fi and mi by bdp / 150000 bytes (section 3.5)"),
    SMARTT_PARAM(Q16, k, "2", "packets per ACK that FastIncrease adds (section 3.4)"),
    SMARTT_PARAM(Q16, wtd_threshold, "0.25",
                 "average share of marked ACKs from which the window may decrease "
                 "(section 3.6.1)",
                 .most = GW_Q16_ONE),
    SMARTT_PARAM(Q16, wtd_alpha, "0.125",
                 "weight of a new ACK in that average (not in the paper; the authors' simulator)",
                 .most = GW_Q16_ONE),
    SMARTT_PARAM(Q16, trtt, "1.5", "target RTT, multiple of the base RTT (section 3.5)"),
    SMARTT_PARAM(Q16, cwnd_max, "1.25",
                 "largest window, multiple of the bdp (section 3.5; Algorithm 1 line 36 has 1)"),
    SMARTT_PARAM(Q16, cwnd_initial, "1.25",
                 "first window, multiple of the bdp, at most cwnd_max (Figure 2)"),
    SMARTT_PARAM(
        Q16, cwnd_min, "1",
        "smallest window, packets; below one the flow is paced (section 3.5; Swift: 0.01)"),
    SMARTT_PARAM(Q16, loss_cut, "1",
                 "share of a lost packet that is taken off the window (Algorithm 1 line 29; the "
                 "authors' simulator of 2023: 0.5)"),
    SMARTT_PARAM(Q16, fi_slack, "5",
                 "packet times above the base RTT that still count as uncongested (not in the "
                 "paper; the authors' simulator: 3 in 2023, 5 in 2024)"),
    SMARTT_PARAM(
        Q16, fi_cap, "0",
        "most that a window of ACKs adds by fair increase after a QuickAdapt, share of the "
        "window that it left; 0: no limit (not in the paper; the authors' simulator of "
        "2023: 0.2, for all flows at once)"),
    {
        .name = "fast_after",
        .type = GW_PARAM_ENUM,
        .offset = offsetof(struct smartt_cfg, fast_after),
        .choices = "window|congested",
        .help = "FastIncrease begins after more calm bytes than the window has, or had at the last "
                "ACK that was not calm (Algorithm 3; the authors' simulator: congested)",
    },
    SMARTT_PARAM(BOOL, measure_all, "no",
                 "FastIncrease and Wait-To-Decrease measure also the ACKs that QuickAdapt ignores "
                 "(Algorithm 1 line 8: no; the authors' simulator: yes)"),
    SMARTT_PARAM(COUNT, react_every, "1",
                 "ACKs per reaction, each then multiplied by this; at most 4096 (section 3.1, "
                 "Figure 3b)",
                 .least = 1, .most = REACT_EVERY_MAX),
    SMARTT_PARAM(BOOL, react_all, "no",
                 "ACKs that QuickAdapt ignores count among these as well, and only the last of "
                 "them may end its interval (not in the paper; the authors' simulator: yes)"),
    SMARTT_PARAM(BOOL, fast_increase, "yes", "FastIncrease (section 3.4)"),
    SMARTT_PARAM(BOOL, wait_to_decrease, "yes", "Wait-To-Decrease (section 3.6.1)"),
    {
        .name = "signals",
        .type = GW_PARAM_ENUM,
        .offset = offsetof(struct smartt_cfg, signals),
        .initial = "both",
        .choices = "both|ecn|rtt",
        .help = "congestion signals; one alone is an ablation without QuickAdapt, FastIncrease and "
                "Wait-To-Decrease (Figure 2)",
    },
    GW_QUICK_ADAPT_PARAMS(struct smartt_cfg, qa, "yes", "0"),
    GW_QUICK_ADAPT_SILENCE_PARAM(struct smartt_cfg, qa),
};

#define DRAFTS                                                                                     \
    "fi=1.25 mi=5 md_timeout=2 gain_scaling=no k=32 fi_slack=3 fi_cap=0.2 fast_after=congested "   \
    "measure_all=yes cwnd_max=1 cwnd_initial=1 loss_cut=0.5 trtt=1.51 "                            \
    "react_all=yes wait_to_decrease=no qa_normalise=yes qa_late=yes qa_ignore_length=1.25"

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of the paper: the defaults"},
    {
        .name = "alg1",
        .settings = "qa_credit=packet qa_ignores=acks",
        .help = "Algorithm 1 as printed, where the default corrects it",
    },
    {
        .name = "drafts",
        .settings = DRAFTS " qa_ignores=marked",
        .help = "rules and gains of the authors' simulator of September 2023, at 800 Gb/s",
    },
    {
        .name = "drafts-drop",
        .settings = DRAFTS " qa_silence=yes",
        .help =
            "the same where switches drop: the timer's silence, and QuickAdapt ignores all ACKs",
    },
    {
        .name = "2024",
        .settings = "fi=2 mi=2.5 gain_scaling=no k=1.2 fast_after=congested measure_all=yes "
                    "cwnd_max=1 cwnd_initial=1 trtt=1.51 wait_to_decrease=no "
                    "wtd_threshold=0.3 react_all=yes qa_interval=1 qa_gap=3 qa_scaling=1 "
                    "qa_late=yes qa_ignores=marked",
        .help = "rules and gains of the authors' simulator of March 2024, at 800 Gb/s",
    },
    {.name = "ecn-only", .settings = "signals=ecn", .help = "ablation of Figure 2: ECN alone"},
    {.name = "rtt-only", .settings = "signals=rtt", .help = "ablation of Figure 2: delay alone"},
};

const struct gw_cc_ops gw_cc_smartt = {
    .algo =
        {
            .name = "smartt",
            .summary = "per-packet window from ECN, delay and trimming, with QuickAdapt",
            .source = "SMaRTT-REPS, section 3",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct smartt_cfg),
            .state_size = sizeof(struct gw_smartt),
        },
    .init = smartt_init,
    .on_ack = smartt_on_ack,
    .on_loss = smartt_on_loss,
    .on_silence_end = smartt_on_silence_end,
};

_Static_assert(sizeof(struct smartt_cfg) <= GW_ALGO_CFG_MAX, "options fit");
