/*
 * SMaRTT: sender-based congestion control from ECN, delay and trimming (SMaRTT-REPS, section 3,
 * Algorithms 1 to 3).
 *
 * Every ACK moves the window by one of four rules: fair or multiplicative decrease when it is
 * marked, fair or multiplicative increase when not. QuickAdapt sets the window to what arrived
 * within one target RTT when packets were lost; FastIncrease reclaims bandwidth when the path is
 * empty; Wait-To-Decrease leaves rare marks to load balancing.
 *
 * Where the printed algorithm is ambiguous:
 *   - a trimmed packet credits its header to `acked`, a timed out one nothing; else QuickAdapt
 * would measure what was offered instead of what arrived;
 *   - a loss inside the phase that QuickAdapt ignores changes nothing, so that one burst of losses
 *     causes one QuickAdapt (the option strict_alg1 restores the printed text in both points);
 *   - the window is clamped on every path through the algorithm.
 *
 * Invariant: mtu <= cwnd <= cwnd_max, and between a QuickAdapt and the end of its ignore phase cwnd
 * is constant.
 *
 * State per flow: 40 bytes that change, of which 2 serve reports only, against the paper's 19; and
 * 48 bytes of constants that all flows of equal path length share in principle, against the paper's
 * 28 bytes globally. The window has 8 bytes here (16 fractional bits) and time has 8 (picoseconds).
 */
#include "core/cc/smartt.h"

#include "base/assert.h"
#include "core/cc/window.h"

enum smartt_signals {
    SIGNALS_BOTH,
    SIGNALS_ECN, /* ablation: no delay, no QuickAdapt, no FastIncrease, no Wait-To-Decrease */
    SIGNALS_RTT, /* ablation: no ECN, likewise */
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
    gw_q16 qa_scaling;
    gw_q16 wtd_threshold;
    gw_q16 wtd_alpha;
    gw_q16 trtt;
    gw_q16 cwnd_max;
    gw_q16 cwnd_initial;
    gw_q16 fi_slack;
    uint32_t react_every;
    uint32_t signals; /* enum smartt_signals */
    bool gain_scaling;
    bool trtt_fabric;
    bool fast_increase;
    bool quick_adapt;
    bool wait_to_decrease;
    bool strict_alg1;
    bool qa_normalise;
};

static void smartt_init(void *state, const void *config, const struct gw_path *path,
                        struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;
    (void)now;
    GW_ASSERT(path->mtu > 0 && path->rate_bps >= GW_RATE_BPS_MIN);
    uint64_t bdp = path->bdp ? path->bdp : 1;
    uint64_t gamma = cfg->gain_scaling ? (bdp << 16) / GW_REFERENCE_BDP : (uint64_t)GW_Q16_ONE;
    gw_time target = cfg->trtt_fabric ? path->brtt_max : path->brtt;

    *s = (struct gw_smartt){
        .gains =
            {
                .trtt = gw_mul_shift(target, gw_gain(cfg->trtt), 16),
                .near = path->brtt +
                        gw_mul_shift(gw_path_packet_time(path), gw_gain(cfg->fi_slack), 16),
                .cwnd_max = gw_cwnd_of_bdp(cfg->cwnd_max, path),
                .fd = (gw_gain(cfg->fd) << 32) / bdp,
                .fi = gw_gain((gw_q16)gw_mul_shift(gw_gain(cfg->fi), gamma, 16)) * path->mtu,
                .mi = gw_gain((gw_q16)gw_mul_shift(gw_gain(cfg->mi), gamma, 16)) * path->mtu,
            },
    };
    s->cwnd = gw_min_u64(gw_cwnd_of_bdp(cfg->cwnd_initial, path), s->gains.cwnd_max);
    if (path->window) /* a flow before this one has found out what the path bears */
        s->cwnd = gw_cwnd_clamp(gw_min_u64(path->window, UINT32_MAX) << 16,
                                (uint64_t)path->mtu << 16, s->cwnd);
    *window = (struct gw_cc_window){.cwnd = s->cwnd >> 16};
}

/* True when the window was set anew; call once per feedback that is not ignored (Algorithm 2). */
static bool smartt_quick_adapt(struct gw_smartt *s, const struct smartt_cfg *cfg,
                               const struct gw_path *path, uint32_t in_flight, gw_time now)
{
    if (s->started && gw_time_before(now, s->end))
        return false;
    bool adapt = s->started && s->lossy;
    if (adapt) {
        uint64_t acked = s->acked;
        gw_time elapsed = now - (s->end - s->gains.trtt);
        if (cfg->qa_normalise && elapsed > s->gains.trtt)
            acked = gw_mul_shift(acked, gw_time_ratio(s->gains.trtt, elapsed), 24);
        acked = acked > path->mtu ? acked : path->mtu;
        s->cwnd = gw_min_u64(gw_mul_shift(acked, gw_gain(cfg->qa_scaling), 0), s->gains.cwnd_max);
        s->ignore = in_flight;
        s->lossy = false;
        s->quick_adapts += s->quick_adapts < UINT16_MAX;
    }
    s->started = true;
    s->end = now + s->gains.trtt;
    s->acked = 0;
    return adapt;
}

/* Counts calm bytes; true while FastIncrease is active (Algorithm 3). */
static bool smartt_is_fast(struct gw_smartt *s, const struct gw_cc_ack *ack)
{
    if (ack->rtt > s->gains.near || ack->ce) {
        s->calm = 0;
        s->fast = false;
    } else if (!s->fast) {
        s->calm = gw_add_u32(s->calm, ack->bytes);
        s->fast = s->calm > s->cwnd >> 16;
    }
    return s->fast;
}

/* True when the average of marks allows to decrease (section 3.6.1). */
static bool smartt_may_decrease(struct gw_smartt *s, const struct smartt_cfg *cfg, bool ce)
{
    if (!cfg->wait_to_decrease)
        return true;
    uint64_t alpha = gw_min_u64(gw_gain(cfg->wtd_alpha), (uint64_t)GW_Q16_ONE);
    uint64_t kept = ((uint64_t)GW_Q16_ONE - alpha) * s->marked;
    s->marked = (uint32_t)((kept + (ce ? alpha << 16 : 0)) >> 16);
    return s->marked >= cfg->wtd_threshold;
}

/* By how much fair increase raises the window for an ACK whose share of it is `share`. */
static int64_t fair_increase(const struct gw_smartt *s, uint64_t share)
{
    return (int64_t)gw_min_u64(gw_mul_shift(s->gains.fi, share, 32), s->gains.cwnd_max);
}

static int64_t increase(const struct gw_smartt *s, const struct gw_cc_ack *ack)
{
    uint64_t share = gw_cwnd_share(ack->bytes, s->cwnd);
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
                             const struct gw_cc_ack *ack, uint64_t md)
{
    int64_t half = (int64_t)ack->bytes << 15;
    if (cfg->signals == SIGNALS_ECN)
        return ack->ce ? -half : fair_increase(s, gw_cwnd_share(ack->bytes, s->cwnd));
    if (ack->rtt < s->gains.trtt)
        return increase(s, ack);
    return -(int64_t)gw_min_u64(delay_excess(s, ack, md), (uint64_t)half);
}

/* The change that one ACK asks for, in 1/65536 byte. */
static int64_t smartt_change(struct gw_smartt *s, const struct smartt_cfg *cfg,
                             const struct gw_path *path, const struct gw_cc_ack *ack, bool fast,
                             bool may_decrease)
{
    uint64_t md = gw_gain(path->trims ? cfg->md : cfg->md_timeout);
    if (cfg->signals != SIGNALS_BOTH)
        return single_signal(s, cfg, ack, md);
    if (fast) {
        /* k packets per ACK; an ACK that covers several packets counts for all of them. */
        uint32_t bytes = ack->bytes > path->mtu ? ack->bytes : path->mtu;
        return (int64_t)gw_min_u64(gw_mul_shift(gw_gain(cfg->k), bytes, 0), s->gains.cwnd_max);
    }
    if (!ack->ce)
        return increase(s, ack);
    return may_decrease ? decrease(s, ack, md) : 0;
}

/* Applies a change, bounds the window and reports it. */
static void smartt_move(struct gw_smartt *s, const struct gw_path *path, int64_t change,
                        struct gw_cc_window *window)
{
    s->cwnd = gw_cwnd_move(s->cwnd, change, path, s->gains.cwnd_max);
    window->cwnd = s->cwnd >> 16;
}

/* Takes `bytes` of feedback off the ignore phase; true while that lasts. */
static bool smartt_ignores(struct gw_smartt *s, uint32_t bytes)
{
    s->ignore -= bytes < s->ignore ? bytes : s->ignore;
    return s->ignore > 0;
}

static void smartt_on_ack(void *state, const void *config, const struct gw_path *path,
                          const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;
    bool complete = cfg->signals == SIGNALS_BOTH;

    s->acked = gw_add_u32(s->acked, ack->bytes);
    if (smartt_ignores(s, ack->bytes))
        return;
    bool may_decrease = smartt_may_decrease(s, cfg, ack->ce);
    if (complete && cfg->quick_adapt && smartt_quick_adapt(s, cfg, path, ack->in_flight, now)) {
        smartt_move(s, path, 0, window);
        return;
    }
    bool fast = complete && cfg->fast_increase && smartt_is_fast(s, ack);
    uint32_t every = cfg->react_every < REACT_EVERY_MAX ? cfg->react_every : REACT_EVERY_MAX;
    if (++s->waited < every)
        return;
    int64_t change = smartt_change(s, cfg, path, ack, fast, may_decrease);
    smartt_move(s, path, change * s->waited, window);
    s->waited = 0;
}

static void smartt_on_loss(void *state, const void *config, const struct gw_path *path,
                           const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct gw_smartt *s = state;
    const struct smartt_cfg *cfg = config;

    uint32_t arrived = loss->trimmed ? path->hdr : 0;
    s->acked = gw_add_u32(s->acked, cfg->strict_alg1 ? loss->bytes : arrived);
    bool ignores = smartt_ignores(s, loss->bytes);
    if (ignores && !cfg->strict_alg1)
        return;
    /* Bounded first: QuickAdapt then replaces the result or leaves it. */
    smartt_move(s, path, -((int64_t)loss->bytes << 16), window);
    s->lossy = true;
    if (!ignores && cfg->signals == SIGNALS_BOTH && cfg->quick_adapt &&
        smartt_quick_adapt(s, cfg, path, loss->in_flight, now))
        smartt_move(s, path, 0, window);
}

#define SMARTT_PARAM(kind, field, initial_text, help_text)                                         \
    GW_PARAM(struct smartt_cfg, kind, field, initial_text, help_text)

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
    SMARTT_PARAM(Q16, qa_scaling, "0.8",
                 "share of the measured bytes that QuickAdapt takes as window (section 3.5)"),
    SMARTT_PARAM(Q16, wtd_threshold, "0.25",
                 "average share of marked ACKs from which the window may decrease "
                 "(section 3.6.1)"),
    SMARTT_PARAM(Q16, wtd_alpha, "0.125",
                 "weight of a new ACK in that average (not in the paper; the authors' simulator)"),
    SMARTT_PARAM(Q16, trtt, "1.5", "target RTT, multiple of the base RTT (section 3.5)"),
    SMARTT_PARAM(BOOL, trtt_fabric, "no",
                 "target RTT from the longest path of the fabric, not from the flow's own "
                 "(the authors' simulator: yes)"),
    SMARTT_PARAM(Q16, cwnd_max, "1.25",
                 "largest window, multiple of the bdp (section 3.5; Algorithm 1 line 36 has 1)"),
    SMARTT_PARAM(Q16, cwnd_initial, "1.25",
                 "first window, multiple of the bdp, at most cwnd_max (Figure 2)"),
    SMARTT_PARAM(Q16, fi_slack, "5",
                 "packet times above the base RTT that still count as uncongested (not in the "
                 "paper; the authors' simulator)"),
    SMARTT_PARAM(COUNT, react_every, "1",
                 "ACKs per reaction, each then multiplied by this; at most 4096 (section 3.1, "
                 "Figure 3b)"),
    SMARTT_PARAM(BOOL, fast_increase, "yes", "FastIncrease (section 3.4)"),
    SMARTT_PARAM(BOOL, quick_adapt, "yes", "QuickAdapt (section 3.3)"),
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
    SMARTT_PARAM(BOOL, strict_alg1, "no",
                 "credit losses in full and react to them in the ignore phase, as printed "
                 "(Algorithm 1, lines 4 and 29)"),
    SMARTT_PARAM(BOOL, qa_normalise, "no",
                 "scale QuickAdapt's bytes down to one target RTT after a silence (not in the "
                 "paper; the Ultra Ethernet simulator)"),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of the paper: the defaults"},
    {
        .name = "author800",
        .settings = "fi=1.25 mi=5 gain_scaling=no cwnd_max=1 cwnd_initial=1 trtt=1.51 "
                    "trtt_fabric=yes",
        .help = "what the authors' scripts set at 800 Gb/s",
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
};

_Static_assert(sizeof(struct smartt_cfg) <= GW_ALGO_CFG_MAX, "options fit");
