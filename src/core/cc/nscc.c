/*
 * NSCC: the window of Ultra Ethernet's sender, driven by marks and queueing delay (Ultra Ethernet
 * Specification 1.0, network signal-based congestion control, in the form of the consortium's
 * public simulator).
 *
 * The queueing delay is the RTT beyond the base RTT. An unmarked ACK asks for an increase, fair
 * above the target delay and proportional to the distance below it; requests are summed and granted
 * together, after eight packets or a base RTT, with a small constant on top. A marked ACK beyond
 * the target cuts the window once per RTT, by the average delay; a marked one below it is left to
 * load balancing. QuickAdapt sets the window to what arrived within base RTT and target when there
 * were losses and that was little. A path without delay for a whole window is reclaimed at once.
 *
 * Gains are given for 100 Gb/s and 12 us, and scaled with the bdp. The window's limit is a multiple
 * of the flow's own bandwidth-delay product, the target belongs to the longest path.
 *
 * Invariant: mtu <= cwnd <= cwnd_max; the window falls on an ACK only beyond the target delay, or
 * by QuickAdapt.
 */
#include "base/assert.h"
#include "core/cc/cc.h"
#include "core/cc/window.h"

struct nscc_cfg {
    gw_q16 target;
    gw_q16 target_dropping;
    gw_q16 alpha;
    gw_q16 fi;
    gw_q16 eta;
    gw_q16 fi_scale;
    gw_q16 gamma;
    gw_q16 max_md;
    gw_q16 delay_gain;
    gw_q16 calm_delay;
    gw_time near;
    gw_q16 qa_threshold;
    uint32_t qa_gate;
    uint32_t adjust_packets;
    gw_q16 cwnd_max;
    gw_q16 cwnd_initial;
    bool quick_adapt;
};

/* For alpha: b / target is then the same on every path. */
#define REFERENCE_RTT (12 * GW_US)

enum {
    GATE_MAX = 63, /* qa_gate is a shift */
};

struct nscc {
    uint64_t cwnd;        /* 1/65536 byte */
    uint64_t asked;       /* sum of increases, to be divided by cwnd; 1/65536 byte^2 */
    gw_time delay;        /* average queueing delay */
    gw_time qa_end;       /* of the QuickAdapt interval; meaningless until `started` */
    gw_time decreased_at; /* when a mark last cut the window */
    gw_time adjusted_at;  /* when eta was last added */
    uint32_t achieved;    /* bytes acknowledged in the QuickAdapt interval */
    uint32_t received;    /* bytes acknowledged since the last adjustment */
    uint32_t ignore;      /* bytes of feedback that belong to the time before a QuickAdapt */
    uint32_t calm;        /* consecutive bytes without delay */
    bool started;         /* the first QuickAdapt interval has begun */
    bool lossy;           /* a loss waits for the end of the interval */
    bool fast;            /* the path is being reclaimed */
    /* What the path makes of the options. */
    gw_time target;    /* queueing delay */
    uint64_t cwnd_max; /* 1/65536 byte */
    uint64_t unit;     /* mtu times bdp over the reference bdp, 1/65536 byte */
};

_Static_assert(sizeof(struct nscc) <= GW_CC_STATE_MAX, "state fits");

static void nscc_init(void *state, const void *config, const struct gw_path *path,
                      struct gw_cc_window *window, gw_time now)
{
    struct nscc *n = state;
    const struct nscc_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0 && path->brtt_max > 0);
    /* The flow's own bdp, as a share of the fabric's. */
    uint64_t own = gw_min_u64(gw_time_ratio(path->brtt, path->brtt_max), 1 << 24);
    uint64_t floor = (uint64_t)path->mtu << 16;
    uint64_t most = gw_mul_shift(gw_cwnd_of_bdp(cfg->cwnd_max, path), own, 24);
    uint64_t first = gw_mul_shift(gw_cwnd_of_bdp(cfg->cwnd_initial, path), own, 24);
    gw_q16 target = path->trims ? cfg->target : cfg->target_dropping;

    n->cwnd_max = most > floor ? most : floor;
    n->cwnd = gw_cwnd_clamp(first, floor, n->cwnd_max);
    n->target = gw_mul_shift(path->brtt_max, gw_gain(target), 16);
    n->unit = ((uint64_t)path->bdp << 16) / GW_REFERENCE_BDP * path->mtu;
    n->decreased_at = n->adjusted_at = now;
    *window = (struct gw_cc_window){.cwnd = n->cwnd >> 16};
}

/* Averages the delay. A late packet without a mark tells of a queue that has shrunk since. */
static void nscc_average(struct nscc *n, const struct nscc_cfg *cfg, const struct gw_path *path,
                         gw_time delay, bool ce)
{
    if (!ce && delay > n->target)
        delay = gw_mul_shift(path->brtt, gw_gain(cfg->calm_delay), 16);
    uint64_t weight = gw_min_u64(gw_gain(cfg->delay_gain), (uint64_t)GW_Q16_ONE);
    n->delay =
        gw_mul_shift(delay, weight, 16) + gw_mul_shift(n->delay, (uint64_t)GW_Q16_ONE - weight, 16);
}

/* True when the window was set to what arrived: call once per feedback that is not ignored. */
static bool nscc_adapt(struct nscc *n, const struct nscc_cfg *cfg, const struct gw_path *path,
                       bool congested, uint32_t in_flight, gw_time now)
{
    if (n->started && !gw_time_before(n->qa_end, now))
        return false;
    uint64_t achieved = (uint64_t)n->achieved << 16;
    uint32_t gate = cfg->qa_gate < GATE_MAX ? cfg->qa_gate : GATE_MAX;
    bool adapt = n->started && (n->lossy || congested) && achieved < n->cwnd_max >> gate;
    if (adapt) {
        n->cwnd = gw_cwnd_clamp(achieved, (uint64_t)path->mtu << 16, n->cwnd_max);
        n->ignore = in_flight;
        n->lossy = false;
    }
    n->started = true;
    n->achieved = 0;
    n->qa_end = now + path->brtt + n->target;
    return adapt;
}

/* Handles what precedes every reaction; true when the feedback is thereby done with. */
static bool nscc_is_settled(struct nscc *n, const struct nscc_cfg *cfg, const struct gw_path *path,
                            bool congested, bool marked, uint32_t in_flight, gw_time now)
{
    if (!cfg->quick_adapt)
        return false;
    bool settled = (n->ignore > 0 && marked) || nscc_adapt(n, cfg, path, congested, in_flight, now);
    if (settled) {
        n->asked = 0;
        n->received = 0;
    }
    return settled;
}

static void nscc_ask(struct nscc *n, uint64_t gain, uint32_t bytes)
{
    uint64_t request = gw_mul_shift(gw_mul_shift(gain, n->unit, 16), bytes, 0);
    n->asked = request > UINT64_MAX - n->asked ? UINT64_MAX : n->asked + request;
}

/* Below the target: reclaim an empty path, or ask in proportion to the distance. */
static void nscc_increase(struct nscc *n, const struct nscc_cfg *cfg, const struct gw_path *path,
                          uint32_t bytes, gw_time delay)
{
    bool is_near = delay < cfg->near;
    n->calm = is_near ? gw_add_u32(n->calm, bytes) : 0;
    n->fast = is_near && (n->fast || n->calm > n->cwnd >> 16);
    if (n->fast) {
        uint64_t per_byte = gw_mul_shift(gw_gain(cfg->fi_scale), n->unit / path->mtu, 16);
        n->cwnd += gw_min_u64(gw_mul_shift(per_byte, bytes, 0), n->cwnd_max);
    } else {
        uint64_t distance = gw_time_ratio(n->target - delay, REFERENCE_RTT);
        nscc_ask(n, gw_mul_shift(gw_gain(cfg->alpha), distance, 24), bytes);
    }
}

/* A mark beyond the target: by the average delay, once per RTT. */
static void nscc_decrease(struct nscc *n, const struct nscc_cfg *cfg, const struct gw_path *path,
                          gw_time now)
{
    n->fast = false;
    n->calm = 0;
    if (n->delay <= n->target || now - n->decreased_at <= path->brtt)
        return;
    uint64_t excess = gw_time_ratio(n->delay - n->target, n->delay);
    uint64_t most = gw_min_u64(gw_gain(cfg->max_md), (uint64_t)GW_Q16_ONE) << 8;
    uint64_t share = gw_min_u64(gw_mul_shift(gw_gain(cfg->gamma), excess, 16), most);
    n->cwnd -= gw_mul_shift(n->cwnd, share, 24);
    n->decreased_at = now;
}

/* Grants what was asked for since the last time. */
static void nscc_adjust(struct nscc *n, const struct nscc_cfg *cfg, const struct gw_path *path,
                        gw_time now)
{
    uint64_t most = (uint64_t)cfg->adjust_packets * (path->mtu + path->hdr);
    gw_time elapsed = now - n->adjusted_at;
    if (n->received <= most && elapsed <= path->brtt_max)
        return;
    n->cwnd += gw_min_u64(n->asked / (n->cwnd >> 16), n->cwnd_max);
    if (elapsed >= path->brtt_max) {
        n->cwnd += gw_min_u64(gw_mul_shift(gw_gain(cfg->eta), n->unit, 16), n->cwnd_max);
        n->adjusted_at = now;
    }
    n->asked = 0;
    n->received = 0;
}

static void nscc_report(struct nscc *n, const struct gw_path *path, struct gw_cc_window *window)
{
    n->cwnd = gw_cwnd_clamp(n->cwnd, (uint64_t)path->mtu << 16, n->cwnd_max);
    window->cwnd = n->cwnd >> 16;
}

static void nscc_on_ack(void *state, const void *config, const struct gw_path *path,
                        const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct nscc *n = state;
    const struct nscc_cfg *cfg = config;
    gw_time delay = ack->rtt > path->brtt ? ack->rtt - path->brtt : 0;
    n->achieved = gw_add_u32(n->achieved, ack->bytes);
    n->received = gw_add_u32(n->received, ack->bytes);
    n->ignore -= ack->bytes < n->ignore ? ack->bytes : n->ignore;
    nscc_average(n, cfg, path, delay, ack->ce);

    bool congested = delay > gw_mul_shift(n->target, gw_gain(cfg->qa_threshold), 16);
    if (!nscc_is_settled(n, cfg, path, congested, ack->ce, ack->in_flight, now)) {
        if (!ack->ce && delay >= n->target)
            nscc_ask(n, gw_gain(cfg->fi), ack->bytes);
        else if (!ack->ce)
            nscc_increase(n, cfg, path, ack->bytes, delay);
        else if (delay >= n->target)
            nscc_decrease(n, cfg, path, now);
        nscc_report(n, path, window);
        nscc_adjust(n, cfg, path, now);
    }
    nscc_report(n, path, window);
}

static void nscc_on_loss(void *state, const void *config, const struct gw_path *path,
                         const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct nscc *n = state;
    const struct nscc_cfg *cfg = config;
    n->ignore -= loss->bytes < n->ignore ? loss->bytes : n->ignore;
    /* A full queue lies on the way: one bdp. */
    if (loss->trimmed)
        nscc_average(n, cfg, path, path->brtt_max, true);
    n->lossy = true;
    if (!nscc_is_settled(n, cfg, path, true, true, loss->in_flight, now))
        n->cwnd = gw_cwnd_move(n->cwnd, -((int64_t)loss->bytes << 16), path, n->cwnd_max);
    nscc_report(n, path, window);
}

#define NSCC_PARAM(kind, field, initial_text, ...)                                                 \
    GW_PARAM(struct nscc_cfg, kind, field, initial_text, __VA_ARGS__)

static const struct gw_param params[] = {
    NSCC_PARAM(Q16, target, "0.75",
               "target queueing delay, multiple of the longest base RTT (htsim)"),
    NSCC_PARAM(Q16, target_dropping, "1", "target where switches do not trim (htsim)"),
    NSCC_PARAM(Q16, alpha, "4",
               "proportional increase gain, packets at 100 Gb/s and 12 us of distance (htsim)"),
    NSCC_PARAM(Q16, fi, "5", "fair increase gain, packets at 100 Gb/s and 12 us (htsim)"),
    NSCC_PARAM(Q16, eta, "0.15", "packets that every base RTT adds, at 100 Gb/s and 12 us (htsim)"),
    NSCC_PARAM(Q16, fi_scale, "0.25",
               "bytes per acknowledged byte on an empty path, at 100 Gb/s and 12 us (htsim)"),
    NSCC_PARAM(Q16, gamma, "0.8", "multiplicative decrease gain (htsim)"),
    NSCC_PARAM(Q16, max_md, "0.5", "largest share that one decrease takes away (htsim)",
               .most = GW_Q16_ONE),
    NSCC_PARAM(Q16, delay_gain, "0.0125", "weight of a new sample in the average delay (htsim)",
               .most = GW_Q16_ONE),
    NSCC_PARAM(Q16, calm_delay, "0.25",
               "what an unmarked sample beyond the target counts as, multiple of the base RTT "
               "(htsim)"),
    NSCC_PARAM(TIME, near, "1us", "queueing delay below which the path counts as empty (htsim)"),
    NSCC_PARAM(Q16, qa_threshold, "4",
               "delay that triggers QuickAdapt without a loss, multiple of the target (htsim)"),
    NSCC_PARAM(COUNT, qa_gate, "3",
               "QuickAdapt needs less achieved than cwnd_max / 2^this (htsim)"),
    NSCC_PARAM(COUNT, adjust_packets, "8", "packets after which increases are granted (htsim)"),
    NSCC_PARAM(Q16, cwnd_max, "1.5", "largest window, multiple of the flow's own bdp (htsim)"),
    NSCC_PARAM(Q16, cwnd_initial, "1.5",
               "first window, multiple of the flow's own bdp, at most cwnd_max (htsim)"),
    NSCC_PARAM(BOOL, quick_adapt, "yes", "QuickAdapt (htsim)"),
};

const struct gw_cc_ops gw_cc_nscc = {
    .algo =
        {
            .name = "nscc",
            .summary = "Ultra Ethernet's window from marks and queueing delay, with QuickAdapt",
            .source = "Ultra Ethernet 1.0 and its consortium's htsim",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct nscc_cfg),
            .state_size = sizeof(struct nscc),
        },
    .init = nscc_init,
    .on_ack = nscc_on_ack,
    .on_loss = nscc_on_loss,
};
