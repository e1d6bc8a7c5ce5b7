/*
 * BBR: sends at the rate that the bottleneck was seen to deliver (Cardwell et al., BBR:
 * Congestion-Based Congestion Control, ACM Queue 2016), in the form in which the authors of
 * SMaRTT-REPS compare with it (section 4).
 *
 * The base RTT is known, so there is no minimum filter and no PROBE_RTT; the window is constant and
 * the pacer alone limits the flow. STARTUP raises the rate until three base RTTs in a row bring
 * less than a quarter more, DRAIN empties the queue that this left, PROBE_BW cycles through eight
 * gains whose mean is one. Losses and marks change nothing.
 *
 * A rate sample is what was delivered between two points in time, the earlier one before the
 * acknowledged packet was sent. Where BBR keeps the first point in every packet, a flow here keeps
 * the last few, a fraction of an RTT apart; both ends of a sample are exact.
 *
 * Invariant: the pace is the best rate of the last ROUNDS base RTTs, at least rate_min, times the
 * gain of the mode. STARTUP never slows down, since it ends long before the filter forgets.
 */
#include "base/assert.h"
#include "core/cc/cc.h"
#include "core/cc/window.h"

enum {
    ROUNDS = 10,       /* base RTTs that the maximum filter remembers */
    MARKS = 5,         /* points in time that samples may start from */
    MARKS_PER_RTT = 3, /* fewer than there are, so that one lies more than an RTT back */
    STALE_ROUNDS = 3,  /* rounds without growth: the pipe is full */
    CYCLE = 8,         /* rounds of PROBE_BW's cycle */
};

struct bbr_cfg {
    gw_q16 startup_gain;
    gw_q16 drain_gain;
    gw_q16 growth;
    gw_q16 rate_initial;
    uint64_t rate_min;
    gw_q16 cwnd;
};

/* PROBE_BW, in eighths: probe, drain what that left, cruise. */
static const uint8_t cycle_gains[CYCLE] = {10, 6, 8, 8, 8, 8, 8, 8};

enum bbr_mode {
    BBR_STARTUP,  /* a full pipe moves it on */
    BBR_DRAIN,    /* no more in flight than the bottleneck needs moves it on */
    BBR_PROBE_BW, /* lasts */
};

struct bbr {
    uint32_t rates[ROUNDS]; /* kbit/s of payload: best sample of each of the last rounds */
    uint32_t marked[MARKS]; /* `delivered` at each mark */
    uint32_t delivered;     /* payload bytes, may wrap */
    gw_time marked_at[MARKS];
    gw_time round_end;  /* a round lasts a base RTT */
    uint32_t full_rate; /* kbit/s of payload: the best rate when it last grew */
    uint8_t round;      /* index in `rates` */
    uint8_t mark;       /* index of the newest mark */
    uint8_t mode;       /* enum bbr_mode; only goes up */
    uint8_t stale;      /* rounds of STARTUP without growth */
    uint8_t cycle;      /* index in cycle_gains */
};

_Static_assert(sizeof(struct bbr) <= GW_CC_STATE_MAX, "state fits");

static uint64_t clamp_kbps(uint64_t kbps)
{
    return gw_min_u64(kbps, UINT32_MAX);
}

/* Time per wire byte at a rate of payload times a gain in 1/65536. */
static gw_byte_time bbr_pace(const struct gw_path *path, uint64_t kbps, uint64_t gain)
{
    uint64_t wire_bps = kbps * 1000 * (path->mtu + path->hdr) / path->mtu;
    uint64_t bps = gw_mul_shift(wire_bps, gain, 16);
    return gw_byte_time_from_bps(bps > GW_RATE_BPS_MIN ? bps : GW_RATE_BPS_MIN);
}

static void bbr_init(void *state, const void *config, const struct gw_path *path,
                     struct gw_cc_window *window, gw_time now)
{
    struct bbr *b = state;
    const struct bbr_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0 && path->rate_bps >= GW_RATE_BPS_MIN);
    b->round_end = now + path->brtt;
    for (uint32_t i = 0; i < MARKS; i++)
        b->marked_at[i] = now;
    *window = (struct gw_cc_window){
        .cwnd = gw_cwnd_of_bdp(cfg->cwnd, path) >> 16,
        /* Without the gain of STARTUP, which is for what was measured. */
        .pace = bbr_pace(path, clamp_kbps(path->rate_bps / 1000), gw_gain(cfg->rate_initial)),
    };
}

/* kbit/s since the newest mark that is older than `rtt`, or since the oldest. */
static uint32_t bbr_sample(const struct bbr *b, gw_time rtt, gw_time now)
{
    uint32_t at = b->mark;
    for (uint32_t i = 1; i < MARKS && now - b->marked_at[at] < rtt; i++)
        at = (at + MARKS - 1) % MARKS;
    /* 8e9 / 64 = 125000000 */
    uint64_t elapsed = (now - b->marked_at[at]) >> 6;
    return (uint32_t)clamp_kbps((b->delivered - b->marked[at]) * UINT64_C(125000000) /
                                (elapsed ? elapsed : 1));
}

static void bbr_measure(struct bbr *b, const struct gw_cc_ack *ack, gw_time now)
{
    b->delivered += ack->bytes;
    uint32_t rate = bbr_sample(b, ack->rtt, now);
    if (b->rates[b->round] < rate)
        b->rates[b->round] = rate;
    if (now - b->marked_at[b->mark] >= ack->rtt / MARKS_PER_RTT) {
        b->mark = (b->mark + 1) % MARKS;
        b->marked[b->mark] = b->delivered;
        b->marked_at[b->mark] = now;
    }
}

static uint32_t bbr_best(const struct bbr *b)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < ROUNDS; i++)
        best = b->rates[i] > best ? b->rates[i] : best;
    return best;
}

static void bbr_begin_round(struct bbr *b, const struct gw_path *path, gw_time now)
{
    b->round = (b->round + 1) % ROUNDS;
    b->rates[b->round] = 0;
    b->round_end = now + path->brtt;
}

/* Has STARTUP filled the pipe? Once per round. */
static void bbr_check_full(struct bbr *b, const struct bbr_cfg *cfg, uint32_t best)
{
    if (best >= gw_mul_shift(b->full_rate, gw_gain(cfg->growth), 16)) {
        b->full_rate = best;
        b->stale = 0;
    } else if (++b->stale >= STALE_ROUNDS) {
        b->mode = BBR_DRAIN;
    }
}

/* Has DRAIN emptied the queue? On every ACK. */
static void bbr_check_drained(struct bbr *b, const struct gw_path *path, uint32_t best,
                              uint32_t in_flight, gw_time now)
{
    uint64_t needed = gw_mul_shift(best, path->brtt, 0) / UINT64_C(8000000000) + path->mtu;
    if (in_flight > needed)
        return;
    b->mode = BBR_PROBE_BW;
    b->round_end = now + path->brtt;
}

static uint64_t bbr_gain(const struct bbr *b, const struct bbr_cfg *cfg)
{
    if (b->mode == BBR_STARTUP)
        return gw_gain(cfg->startup_gain);
    if (b->mode == BBR_DRAIN)
        return gw_gain(cfg->drain_gain);
    return (uint64_t)cycle_gains[b->cycle] << 13;
}

static void bbr_on_ack(void *state, const void *config, const struct gw_path *path,
                       const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct bbr *b = state;
    const struct bbr_cfg *cfg = config;
    bbr_measure(b, ack, now);
    uint32_t best = bbr_best(b);
    if (!gw_time_before(now, b->round_end)) {
        bbr_begin_round(b, path, now);
        if (b->mode == BBR_STARTUP)
            bbr_check_full(b, cfg, best);
        else if (b->mode == BBR_PROBE_BW)
            b->cycle = (b->cycle + 1) % CYCLE;
    }
    if (b->mode == BBR_DRAIN)
        bbr_check_drained(b, path, best, ack->in_flight, now);

    uint64_t least = gw_min_u64(cfg->rate_min, path->rate_bps) / 1000;
    if (best < least)
        best = (uint32_t)least;
    window->pace = bbr_pace(path, best, bbr_gain(b, cfg));
}

static const struct gw_param params[] = {
    GW_PARAM(struct bbr_cfg, Q16, startup_gain, "2.89", "gain of STARTUP (BBR: 2 / ln 2)"),
    GW_PARAM(struct bbr_cfg, Q16, drain_gain, "0.35", "gain of DRAIN (BBR: ln 2 / 2)"),
    GW_PARAM(struct bbr_cfg, Q16, growth, "1.25",
             "STARTUP lasts while a round raises the rate by this factor (BBR)"),
    GW_PARAM(struct bbr_cfg, Q16, rate_initial, "0.125",
             "pace until the first ACK, multiple of the line rate (the simulator of SMaRTT-REPS: "
             "100 of 800 Gb/s)"),
    GW_PARAM(struct bbr_cfg, RATE, rate_min, "3Gbps",
             "the estimate is at least this, or the line rate (the simulator of SMaRTT-REPS)"),
    GW_PARAM(struct bbr_cfg, Q16, cwnd, "1",
             "window, multiple of the bdp; constant (the simulator of SMaRTT-REPS)"),
};

static const struct gw_preset presets[] = {
    {.name = "smartt", .settings = "", .help = "as SMaRTT is compared with it: the defaults"},
};

const struct gw_cc_ops gw_cc_bbr = {
    .algo =
        {
            .name = "bbr",
            .summary = "paces at the largest delivery rate of the last ten base RTTs",
            .source = "BBR, version 1, as SMaRTT-REPS is compared with it",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct bbr_cfg),
            .state_size = sizeof(struct bbr),
        },
    .init = bbr_init,
    .on_ack = bbr_on_ack,
    .on_loss = gw_cc_ignore_loss,
};
