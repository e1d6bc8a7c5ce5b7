/*
 * PLB: a flow stays on one path and moves to a random other one when it has been congested for
 * several round trips (Qureshi et al., SIGCOMM 2022).
 *
 * The signal `ecn` is Linux (tcp_plb.c): after `rounds` congested rounds in a row the flow moves;
 * after `idle_rounds` of them it moves when nothing of it is in flight, so that nothing is
 * reordered. After a timeout congestion moves it only after a random time, so that it does not come
 * back to a path that is broken.
 *
 * The signal `delay` is the simpler rule of the htsim simulator (swift.cpp), which SMaRTT-REPS is
 * compared with (section 4.1): the flow moves when no packet has met Swift's target delay for a
 * random time of `interval` to interval + 2 smoothed RTTs; before the first such packet, which can
 * be long in coming where all flows start at once, for `first`. Beyond that simulator: a trim looks
 * at the clock too, since there may be no ACK that does.
 *
 * With either, a timeout moves the flow at once; a window that is lost times out packet by packet,
 * and is one reason to move.
 *
 * Invariant: but for timeouts, two moves are at least `interval` RTTs, or `first` (delay), or
 * `rounds` RTTs (ecn) apart.
 */
#include "core/lb/lb.h"

#include "core/lb/entropy.h"
#include "core/lb/round.h"

enum plb_signal {
    SIGNAL_DELAY,
    SIGNAL_ECN,
};

struct plb_cfg {
    uint32_t entropies;
    uint32_t signal; /* enum plb_signal */
    gw_q16 target;
    uint32_t interval;
    gw_time first;
    gw_q16 threshold;
    uint32_t rounds;
    uint32_t idle_rounds;
    uint32_t suspend;
};

struct plb {
    struct gw_prng prng;
    gw_time brtt;
    gw_time moved_at; /* time of the last move, or of the start */
    union {
        struct {
            struct gw_lb_round round;
            gw_time resume_at; /* while suspended */
        } ecn;
        struct {
            gw_time rtt;      /* smoothed; 0: no ACK yet */
            gw_time good_at;  /* time of the last good packet, but not before moved_at */
            gw_time patience; /* without good packets */
        } delay;
    };
    uint32_t congested; /* ecn: rounds in a row that were */
    uint16_t entropy;
    bool is_suspended; /* ecn */
    bool has_begun;    /* the times are set */
};

_Static_assert(sizeof(struct plb) <= GW_LB_STATE_MAX, "state fits");

static void plb_init(void *state, const void *config, const struct gw_path *path,
                     struct gw_prng prng)
{
    struct plb *plb = state;
    const struct plb_cfg *cfg = config;
    *plb = (struct plb){.prng = prng, .brtt = path->brtt};
    plb->entropy = gw_entropy_random(&plb->prng, cfg->entropies);
    if (cfg->signal == SIGNAL_DELAY)
        plb->delay.patience = cfg->first;
}

/* The flow is on a path from now on. */
static void plb_settle(struct plb *plb, const struct plb_cfg *cfg, gw_time now)
{
    plb->moved_at = now;
    if (cfg->signal == SIGNAL_DELAY)
        plb->delay.good_at = now;
    else
        plb->congested = 0;
}

static uint16_t plb_pick(void *state, const void *config, const struct gw_lb_next *next,
                         gw_time now)
{
    struct plb *plb = state;
    const struct plb_cfg *cfg = config;
    (void)next;
    if (!plb->has_begun)
        plb_settle(plb, cfg, now);
    plb->has_begun = true;
    return plb->entropy;
}

static void plb_move(struct plb *plb, const struct plb_cfg *cfg, gw_time now)
{
    plb->entropy = gw_entropy_random(&plb->prng, cfg->entropies);
    plb_settle(plb, cfg, now);
}

/* ---- Delay. ---- */

/* Moves when there was nothing good for too long. */
static void delay_check(struct plb *plb, const struct plb_cfg *cfg, gw_time now)
{
    if (gw_time_before(gw_time_add(plb->delay.good_at, plb->delay.patience), now))
        plb_move(plb, cfg, now);
}

static void delay_on_ack(struct plb *plb, const struct plb_cfg *cfg, gw_time rtt, gw_time now)
{
    gw_time *smoothed = &plb->delay.rtt;
    *smoothed = *smoothed ? *smoothed - *smoothed / 8 + rtt / 8 : rtt;
    if ((gw_q16)rtt <= gw_q16_mul(cfg->target, (gw_q16)plb->brtt)) {
        gw_q16 rtts = cfg->interval * GW_Q16_ONE + gw_prng_below(&plb->prng, 2 * GW_Q16_ONE);
        plb->delay.good_at = now;
        plb->delay.patience = (gw_time)gw_q16_mul(rtts, (gw_q16)*smoothed);
    }
    delay_check(plb, cfg, now);
}

/* ---- ECN. ---- */

/* Moves if there have been enough congested rounds for the state the flow is in. */
static void ecn_check(struct plb *plb, const struct plb_cfg *cfg, bool is_idle, gw_time now)
{
    if (plb->is_suspended && !gw_time_before(now, plb->ecn.resume_at))
        plb->is_suspended = false;
    bool is_forced = plb->congested >= cfg->rounds;
    bool is_chance = is_idle && cfg->idle_rounds && plb->congested >= cfg->idle_rounds;
    if (!plb->is_suspended && (is_forced || is_chance))
        plb_move(plb, cfg, now);
}

static void ecn_hear(struct plb *plb, const struct plb_cfg *cfg, const struct gw_lb_echo *echo,
                     bool marked, gw_time now)
{
    gw_q16 share;
    bool is_idle = echo->in_flight == 0;
    bool ends = gw_lb_round_ends(&plb->ecn.round, echo, marked, now, &share);
    if (ends && share < cfg->threshold)
        plb->congested = 0;
    else if (ends && plb->congested < cfg->rounds)
        plb->congested++;
    if (ends || is_idle)
        ecn_check(plb, cfg, is_idle, now);
}

static void ecn_suspend(struct plb *plb, const struct plb_cfg *cfg, gw_time now)
{
    uint64_t rtts = (uint64_t)cfg->suspend + gw_prng_below(&plb->prng, cfg->suspend);
    plb->ecn.resume_at = gw_time_add(now, rtts * plb->brtt);
    plb->is_suspended = true;
}

/* ---- Either. ---- */

static void plb_on_ack(void *state, const void *config, const struct gw_lb_echo *echo, gw_time now)
{
    const struct plb_cfg *cfg = config;
    if (cfg->signal == SIGNAL_DELAY)
        delay_on_ack(state, cfg, echo->rtt, now);
    else
        ecn_hear(state, cfg, echo, echo->ce, now);
}

static void plb_on_trim(void *state, const void *config, const struct gw_lb_echo *echo, gw_time now)
{
    const struct plb_cfg *cfg = config;
    if (cfg->signal == SIGNAL_DELAY)
        delay_check(state, cfg, now);
    else
        ecn_hear(state, cfg, echo, true, now);
}

static void plb_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    struct plb *plb = state;
    const struct plb_cfg *cfg = config;
    if (gw_time_before(sent_at, plb->moved_at))
        return;
    plb_move(plb, cfg, now);
    if (cfg->signal == SIGNAL_ECN)
        ecn_suspend(plb, cfg, now);
}

static const struct gw_param params[] = {
    GW_PARAM(struct plb_cfg, COUNT, entropies, "65536",
             "entropies to draw from, 1 to 65536; at least 4 per path (the header field's range)",
             .least = 1, .most = GW_ENTROPIES_MAX),
    {
        .name = "signal",
        .type = GW_PARAM_ENUM,
        .offset = offsetof(struct plb_cfg, signal),
        .initial = "delay",
        .choices = "delay|ecn",
        .help = "what says that a path is congested (SMaRTT-REPS, section 4)",
    },
    GW_PARAM(struct plb_cfg, Q16, target, "1.025",
             "delay: an RTT up to this multiple of the base RTT is good (Swift's target without "
             "its window term, as in the authors' simulator of SMaRTT)"),
    GW_PARAM(struct plb_cfg, COUNT, interval, "5",
             "delay: RTTs without a good packet before a move; up to two more at random (htsim)"),
    GW_PARAM(struct plb_cfg, TIME, first, "1s",
             "delay: time without a good packet before a move as long as there has been none "
             "(htsim: no moves before there is traffic)"),
    GW_PARAM(struct plb_cfg, Q16, threshold, "50%",
             "ecn: a round is congested when at least this share was marked (Linux)",
             .most = GW_Q16_ONE),
    GW_PARAM(struct plb_cfg, COUNT, rounds, "12",
             "ecn: congested rounds in a row before a move (Linux)"),
    GW_PARAM(struct plb_cfg, COUNT, idle_rounds, "3",
             "ecn: the same while nothing is in flight; 0: no such moves (Linux)"),
    GW_PARAM(struct plb_cfg, COUNT, suspend, "60",
             "ecn: base RTTs after a timeout without further moves; up to twice that at random "
             "(Linux, where it is seconds)"),
};

static const struct gw_preset presets[] = {
    {.name = "smartt", .settings = "", .help = "as SMaRTT was compared with: the defaults"},
    {.name = "linux", .settings = "signal=ecn", .help = "as in the Linux kernel"},
};

const struct gw_lb_ops gw_lb_plb = {
    .algo =
        {
            .name = "plb",
            .summary = "one path per flow, a random other one after several congested RTTs",
            .source = "Qureshi et al., SIGCOMM 2022",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct plb_cfg),
            .state_size = sizeof(struct plb),
        },
    .init = plb_init,
    .pick = plb_pick,
    .on_ack = plb_on_ack,
    .on_trim = plb_on_trim,
    .on_timeout = plb_on_timeout,
};
