/*
 * Swift: additive increase below a target delay, multiplicative decrease above it (Kumar et al.,
 * Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020,
 * section 3).
 *
 * The target is the base RTT, an allowance per link, and one for the number of flows that share the
 * path, which a small window betrays: fs_alpha / sqrt(cwnd) + fs_beta. A window falls at most once
 * per RTT. Below one packet it is kept by pacing, one packet per rtt * mtu / cwnd.
 *
 * Only the delay of the fabric is controlled; the paper's second window, for the delay inside
 * hosts, has no counterpart without host delay. A packet that loss detection gave up is a timeout,
 * and those of one RTT are one.
 *
 * Swift knows nothing of trimming, and SMaRTT-REPS, which compares itself with Swift over switches
 * that trim, does not say what a NACK costs. As in its authors' simulator it costs a packet, each
 * time, but never more than a timeout does; with nack_cut=0 it is a fast retransmission, which
 * halves the window once per RTT. QuickAdapt (quick_adapt.h) can come before either.
 *
 * Invariant: cwnd_min <= cwnd <= cwnd_max; for delay and timeouts cwnd falls no more than once per
 * smoothed RTT, except when timeouts in a row reset it.
 */
#include "base/assert.h"
#include "core/cc/quick_adapt.h"
#include "core/cc/window.h"

struct swift_cfg {
    gw_q16 ai;
    gw_q16 beta;
    gw_q16 max_mdf;
    gw_q16 hop;
    uint32_t hops;
    gw_q16 fs_range;
    gw_q16 fs_cwnd_min;
    gw_q16 fs_cwnd_max;
    gw_q16 cwnd_min;
    gw_q16 cwnd_max;
    gw_q16 cwnd_initial;
    gw_q16 nack_cut;
    uint32_t reset_after;
    bool qa_is_cut;
    struct gw_quick_adapt_cfg qa;
};

struct swift {
    uint64_t cwnd;          /* 1/65536 byte */
    uint64_t cwnd_min;      /* 1/65536 byte */
    uint64_t cwnd_max;      /* 1/65536 byte */
    gw_time rtt;            /* smoothed; the base RTT before the first sample */
    gw_time decreased_at;   /* when the window last fell; a base RTT before the start at first */
    gw_time timeout_at;     /* when a timeout was last counted */
    gw_time base_target;    /* target delay of a window that no other flow shares */
    gw_time fs_range;       /* most that flow scaling adds */
    gw_time fs_alpha;       /* flow scaling of a window of one packet, with fs_beta */
    gw_time fs_beta;        /* subtracted */
    uint32_t timeout_count; /* in a row; at most reset_after */
    struct gw_quick_adapt qa;
};

_Static_assert(sizeof(struct swift) <= GW_CC_STATE_MAX, "state fits");

enum {
    WINDOW_PACKETS_MAX = 1 << 20, /* options in packets; keeps their square roots within 1/2^24 */
};

/* 1 / sqrt(packets), in 1/2^24; `packets` is in 1/65536. */
static uint64_t inverse_root(uint64_t packets)
{
    return gw_sqrt(UINT64_MAX / (packets ? packets : 1));
}

/* A time times a factor in 1/2^24; all ones when that does not fit. */
static gw_time scale(gw_time time, uint64_t factor)
{
    return gw_mul_shift(time, factor, 24);
}

static void swift_init_target(struct swift *s, const struct swift_cfg *cfg,
                              const struct gw_path *path)
{
    uint32_t hops = cfg->hops ? cfg->hops : path->hops;
    gw_time hop = gw_mul_shift(path->brtt, gw_gain(cfg->hop), 16);
    s->base_target = path->brtt + gw_mul_shift(hop, hops, 0);
    s->fs_range = gw_mul_shift(path->brtt, gw_gain(cfg->fs_range), 16);

    uint64_t most = gw_gain(cfg->fs_cwnd_max);
    if (most == 0)
        most = ((uint64_t)path->bdp << 16) / path->mtu;
    uint64_t slowest = inverse_root(gw_gain(cfg->fs_cwnd_min));
    uint64_t fastest = inverse_root(gw_min_u64(most, (uint64_t)WINDOW_PACKETS_MAX << 16));
    uint64_t span = slowest > fastest ? slowest - fastest : 1;
    s->fs_alpha = (gw_min_u64(s->fs_range, UINT64_MAX >> 24) << 24) / span;
    s->fs_beta = scale(s->fs_alpha, fastest);
}

static void swift_report(struct swift *s, const struct gw_path *path, struct gw_cc_window *window)
{
    s->cwnd = gw_cwnd_clamp(s->cwnd, s->cwnd_min, s->cwnd_max);
    window->cwnd = s->cwnd >> 16 ? s->cwnd >> 16 : 1;
    bool fits = window->cwnd >= path->mtu;
    window->pace = fits ? 0 : gw_window_pace(path, s->rtt, window->cwnd);
}

static void swift_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_cc_window *window, gw_time now)
{
    struct swift *s = state;
    const struct swift_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0);
    s->cwnd_max = gw_cwnd_of_bdp(cfg->cwnd_max, path);
    s->cwnd_min = gw_min_u64(gw_gain(cfg->cwnd_min) * path->mtu, s->cwnd_max);
    s->cwnd = gw_cwnd_of_bdp(cfg->cwnd_initial, path);
    s->rtt = path->brtt;
    s->decreased_at = now - path->brtt;
    gw_quick_adapt_init(&s->qa, &cfg->qa, path->brtt, path->brtt);
    swift_init_target(s, cfg, path);
    swift_report(s, path, window);
}

/* The delay that the window may have. */
static gw_time swift_target(const struct swift *s, const struct gw_path *path)
{
    gw_time scaled = scale(s->fs_alpha, inverse_root(s->cwnd / path->mtu));
    gw_time share = scaled > s->fs_beta ? scaled - s->fs_beta : 0;
    return s->base_target + gw_min_u64(share, s->fs_range);
}

static void swift_increase(struct swift *s, const struct swift_cfg *cfg, const struct gw_path *path,
                           uint32_t bytes)
{
    uint64_t step = gw_mul_shift(gw_gain(cfg->ai), bytes, 0);
    if (s->cwnd >= (uint64_t)path->mtu << 16)
        step = gw_mul_shift(gw_gain(cfg->ai) * path->mtu, gw_cwnd_share(bytes, s->cwnd), 32);
    s->cwnd += gw_min_u64(step, s->cwnd_max);
}

static bool swift_may_decrease(const struct swift *s, gw_time now)
{
    return now - s->decreased_at >= s->rtt;
}

/* The largest share of the window that may be taken at once, in 1/2^24. */
static uint64_t largest_share(const struct swift_cfg *cfg)
{
    return gw_min_u64(gw_gain(cfg->max_mdf), (uint64_t)GW_Q16_ONE) << 8;
}

/* Takes a share of the window, in 1/2^24, but no more than max_mdf. */
static void swift_decrease(struct swift *s, const struct swift_cfg *cfg, uint64_t share,
                           gw_time now)
{
    uint64_t cut = gw_mul_shift(s->cwnd, gw_min_u64(share, largest_share(cfg)), 24);
    if (cut == 0)
        return;
    s->cwnd -= cut;
    s->decreased_at = now;
}

/* A NACK takes a packet, but no more than max_mdf of the window. */
static void swift_lose_packet(struct swift *s, const struct swift_cfg *cfg, uint32_t bytes)
{
    uint64_t cut = gw_mul_shift(bytes, gw_gain(cfg->nack_cut), 0);
    s->cwnd -= gw_min_u64(cut, gw_mul_shift(s->cwnd, largest_share(cfg), 24));
}

/* Takes QuickAdapt's advice. */
static void swift_adapt(struct swift *s, const struct swift_cfg *cfg, uint64_t cwnd, gw_time now)
{
    if (cwnd == 0)
        return;
    s->cwnd = cwnd;
    if (cfg->qa_is_cut)
        s->decreased_at = now;
}

static void swift_on_ack(void *state, const void *config, const struct gw_path *path,
                         const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct swift *s = state;
    const struct swift_cfg *cfg = config;
    gw_time target = swift_target(s, path);
    s->rtt = s->rtt - s->rtt / 8 + ack->rtt / 8;
    s->timeout_count = 0;
    struct gw_quick_adapt_advice advice = gw_quick_adapt_on_ack(&s->qa, &cfg->qa, path, ack, now);
    swift_adapt(s, cfg, advice.cwnd, now);
    if (ack->rtt < target && !advice.is_done) {
        swift_increase(s, cfg, path, ack->bytes);
    } else if (ack->rtt >= target && !advice.is_done && swift_may_decrease(s, now)) {
        uint64_t excess = gw_time_ratio(ack->rtt - target, ack->rtt);
        swift_decrease(s, cfg, gw_mul_shift(gw_gain(cfg->beta), excess, 16), now);
    }
    swift_report(s, path, window);
}

/* Counts a timeout unless one was counted within an RTT; true when there were too many in a row. */
static bool swift_timed_out(struct swift *s, const struct swift_cfg *cfg, gw_time now)
{
    if (s->timeout_count == 0 || now - s->timeout_at >= s->rtt) {
        s->timeout_count += s->timeout_count < cfg->reset_after;
        s->timeout_at = now;
    }
    return s->timeout_count >= cfg->reset_after;
}

static void swift_on_loss(void *state, const void *config, const struct gw_path *path,
                          const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct swift *s = state;
    const struct swift_cfg *cfg = config;
    struct gw_quick_adapt_advice advice = gw_quick_adapt_on_loss(&s->qa, &cfg->qa, path, loss, now);
    swift_adapt(s, cfg, advice.cwnd, now);
    if (!loss->trimmed && swift_timed_out(s, cfg, now)) {
        s->cwnd = s->cwnd_min;
        s->decreased_at = now;
    } else if (loss->trimmed && cfg->nack_cut > 0 && !advice.is_done) {
        swift_lose_packet(s, cfg, loss->bytes);
    } else if (!advice.is_done && swift_may_decrease(s, now)) {
        swift_decrease(s, cfg, UINT64_MAX, now);
    }
    swift_report(s, path, window);
}

#define SWIFT_PARAM(kind, field, initial_text, ...)                                                \
    GW_PARAM(struct swift_cfg, kind, field, initial_text, __VA_ARGS__)

static const struct gw_param params[] = {
    SWIFT_PARAM(Q16, ai, "1", "additive increase, packets per window of ACKs (htsim)"),
    SWIFT_PARAM(Q16, beta, "0.8",
                "multiplicative decrease: share of the excess delay that is taken away (htsim)"),
    SWIFT_PARAM(Q16, max_mdf, "0.5", "largest share that one decrease takes away (htsim)",
                .most = GW_Q16_ONE),
    SWIFT_PARAM(Q16, hop, "0.1527",
                "target delay per link, multiple of the base RTT (htsim: 3.05 us for 20 us)"),
    SWIFT_PARAM(COUNT, hops, "0",
                "links that count for that; 0: those of the path (Swift, section 3)"),
    SWIFT_PARAM(Q16, fs_range, "5",
                "most that flow scaling adds to the target, multiple of the base RTT (htsim)"),
    SWIFT_PARAM(Q16, fs_cwnd_min, "0.1", "packets up to which flow scaling adds all of it (htsim)"),
    SWIFT_PARAM(Q16, fs_cwnd_max, "100",
                "packets from which flow scaling adds nothing; 0: the bdp (htsim)"),
    SWIFT_PARAM(Q16, cwnd_min, "0.01", "smallest window, packets (own choice)"),
    SWIFT_PARAM(Q16, cwnd_max, "1",
                "largest window, multiple of the bdp (the simulator of SMaRTT-REPS)"),
    SWIFT_PARAM(Q16, cwnd_initial, "1",
                "first window, multiple of the bdp, at most cwnd_max (the simulator of "
                "SMaRTT-REPS)"),
    SWIFT_PARAM(Q16, nack_cut, "1",
                "packets that a NACK takes off the window, but no more than max_mdf of it; 0: as a "
                "fast retransmission, max_mdf once per RTT (the simulator of SMaRTT-REPS)"),
    SWIFT_PARAM(COUNT, reset_after, "5",
                "timeouts in a row after which the window is cwnd_min (htsim)"),
    SWIFT_PARAM(BOOL, qa_is_cut, "yes",
                "QuickAdapt is a decrease, so none for delay follows within an RTT (own choice; "
                "the simulator of SMaRTT-REPS: no)"),
    GW_QUICK_ADAPT_PARAMS(struct swift_cfg, qa, "no", "1.5"),
};

static const struct gw_preset presets[] = {
    {.name = "htsim", .settings = "", .help = "gains of the public htsim model: the defaults"},
    {
        .name = "smartt",
        .settings = "ai=2 beta=1 hop=0.02545 hops=1 fs_cwnd_max=0 cwnd_min=1",
        .help = "as the authors of SMaRTT-REPS ran it in all-to-alls",
    },
    {
        .name = "drafts",
        .settings = "ai=2 beta=1 hop=0.02545 hops=1 fs_cwnd_max=0 cwnd_min=1 quick_adapt=yes "
                    "qa_interval=1.51 qa_normalise=yes qa_ignore_length=1.25 qa_ignores=losses "
                    "qa_on=losses qa_is_cut=no",
        .help = "as they ran it in incasts and permutations, with QuickAdapt",
    },
};

const struct gw_cc_ops gw_cc_swift = {
    .algo =
        {
            .name = "swift",
            .summary = "window from delay against a target that grows as windows shrink",
            .source = "Swift, section 3",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct swift_cfg),
            .state_size = sizeof(struct swift),
        },
    .init = swift_init,
    .on_ack = swift_on_ack,
    .on_loss = swift_on_loss,
};
