/*
 * CUBIC: TCP whose window grows as the cube of the time since its last cut, not with the number of
 * round trips (RFC 9438; the congestion control of Linux and of DLCP's testbed).
 *
 * After a cut to beta of the window W_max the target is W_cubic(t) = C (t - K)^3 + W_max packets,
 * with K such that W_cubic(0) is the window after the cut: steep, flat around W_max, steep again.
 * Where that is less than TCP's own window would be, the estimate of the latter rules: in
 * datacenters, whose round trips are short, nearly always. A window that is cut before it has
 * reached the last W_max leaves more room to others (fast convergence).
 *
 * Slow start, episodes, timeouts and marks are as in NewReno (tcp.h), with beta in place of a half.
 * HyStart, which leaves slow start early, is not modelled.
 *
 * Time is counted in units of 953674 ps, about 2^-20 s, and the cube is formed in 128 bits.
 *
 * Invariant: one cut per episode; between two cuts the window does not fall.
 */
#include "base/assert.h"
#include "core/cc/tcp.h"

enum {
    UNIT_SHIFT = 20, /* units per second, in bits */
};

#define UNIT (GW_S >> UNIT_SHIFT)

/* Longest time from K that is told apart, in units: 128 s. */
#define TIME_MAX (INT64_C(1) << 27)

/* Most that the cube adds or takes, 1/65536 packet: more than any window. */
#define CUBE_MAX (INT64_C(1) << 44)

struct cubic_cfg {
    struct gw_tcp_cfg tcp;
    gw_q16 c;
    gw_q16 beta;
    bool fast_convergence;
};

struct cubic {
    struct gw_tcp tcp;
    uint64_t w_max;   /* 1/65536 byte: before the last cut; 0: unknown */
    uint64_t w_prior; /* 1/65536 byte: the same, whatever fast convergence says */
    uint64_t w_est;   /* 1/65536 byte: what TCP's own window would be */
    uint64_t origin;  /* 1/65536 byte: where the curve is flat */
    gw_time epoch_at; /* when the curve began */
    int64_t k;        /* units from there until it is flat */
    bool is_running;  /* there is a curve: not in slow start, nor right after a cut */
};

_Static_assert(sizeof(struct cubic) <= GW_CC_STATE_MAX, "state fits");

static uint64_t beta_of(const struct cubic_cfg *cfg)
{
    return gw_min_u64(gw_gain(cfg->beta), (uint64_t)GW_Q16_ONE);
}

static int64_t units_of(gw_time time)
{
    return (int64_t)gw_min_u64(time / UNIT, (uint64_t)TIME_MAX);
}

static void cubic_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_cc_window *window, gw_time now)
{
    struct cubic *c = state;
    const struct cubic_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0);
    *c = (struct cubic){0};
    gw_tcp_init(&c->tcp, &cfg->tcp, path, now);
    if (path->window)
        c->w_max = c->w_prior = (uint64_t)gw_tcp_memory(path) << 16;
    *window = (struct gw_cc_window){.cwnd = c->tcp.cwnd >> 16};
}

/* Congestion avoidance begins (RFC 9438, section 4.2). */
static void cubic_start(struct cubic *c, const struct cubic_cfg *cfg, const struct gw_path *path,
                        gw_time now)
{
    c->is_running = true;
    c->epoch_at = now;
    c->w_est = c->tcp.cwnd;
    c->k = 0;
    c->origin = c->tcp.cwnd;
    if (c->w_max <= c->tcp.cwnd)
        return;
    uint64_t gain = gw_gain(cfg->c);
    /* In 1/65536 packet; then packets over C in 1/65536, and K^3 in units. */
    uint64_t gap = (c->w_max - c->tcp.cwnd) / path->mtu;
    uint64_t ratio = (gw_min_u64(gap, UINT64_MAX >> 16) << 16) / (gain ? gain : 1);
    unsigned __int128 cube = (unsigned __int128)ratio << (3 * UNIT_SHIFT - 16);
    c->k = (int64_t)gw_min_u64(gw_cbrt(cube), (uint64_t)TIME_MAX);
    c->origin = c->w_max;
}

/* The curve `time` units after it began, in 1/65536 byte. */
static uint64_t cubic_curve(const struct cubic *c, const struct cubic_cfg *cfg,
                            const struct gw_path *path, int64_t time)
{
    int64_t from = time - c->k;
    from = from > TIME_MAX ? TIME_MAX : from;
    __int128 cube = (__int128)from * from * from * (int64_t)gw_gain(cfg->c);
    cube >>= 3 * UNIT_SHIFT;
    int64_t packets = cube > CUBE_MAX ? CUBE_MAX : cube < -CUBE_MAX ? -CUBE_MAX : (int64_t)cube;
    int64_t window = (int64_t)c->origin + packets * (int64_t)path->mtu;
    return window < 0 ? 0 : (uint64_t)window;
}

/* 3 (1 - beta) / (1 + beta) packets per round trip as long as the window has not been this large,
 * then one: TCP's share (RFC 9438, section 4.3). */
static uint64_t cubic_tcp_gain(const struct cubic *c, const struct cubic_cfg *cfg)
{
    uint64_t one = (uint64_t)GW_Q16_ONE, beta = beta_of(cfg);
    return c->w_est >= c->w_prior ? one : (3 * (one - beta) << 16) / (one + beta);
}

/* Congestion avoidance (RFC 9438, sections 4.2 to 4.5). */
static void cubic_avoid(struct cubic *c, const struct cubic_cfg *cfg, const struct gw_path *path,
                        const struct gw_cc_ack *ack, gw_time now)
{
    uint64_t cwnd = c->tcp.cwnd;
    if (!c->is_running)
        cubic_start(c, cfg, path, now);
    c->w_est += gw_tcp_step(cwnd, path, ack->bytes, cubic_tcp_gain(c, cfg));
    c->w_est = gw_min_u64(c->w_est, c->tcp.cwnd_max);
    int64_t time = units_of(now - c->epoch_at);
    uint64_t target = cubic_curve(c, cfg, path, time + units_of(ack->rtt));
    target = gw_cwnd_clamp(target, cwnd, cwnd + cwnd / 2);
    uint64_t grown = cwnd + gw_mul_shift(target - cwnd, gw_cwnd_share(ack->bytes, cwnd), 32);
    if (cubic_curve(c, cfg, path, time) < c->w_est && grown < c->w_est)
        grown = c->w_est;
    c->tcp.cwnd = gw_min_u64(grown, c->tcp.cwnd_max);
}

/* Remembers what the window was; returns what it falls to (RFC 9438, sections 4.6 and 4.7). */
static uint64_t cubic_fall(struct cubic *c, const struct cubic_cfg *cfg, uint64_t flight)
{
    uint64_t cwnd = c->tcp.cwnd, beta = beta_of(cfg);
    bool is_early = cfg->fast_convergence && cwnd < c->w_max;
    c->w_max = is_early ? gw_mul_shift(cwnd, (uint64_t)GW_Q16_ONE + beta, 17) : cwnd;
    c->w_prior = cwnd;
    c->is_running = false;
    return gw_mul_shift(flight, beta, 16);
}

static void cubic_on_ack(void *state, const void *config, const struct gw_path *path,
                         const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct cubic *c = state;
    const struct cubic_cfg *cfg = config;
    gw_time sent_at = now - ack->rtt;
    bool grows = gw_tcp_may_grow(&c->tcp, ack, sent_at);
    if (ack->ce && gw_tcp_is_new(&c->tcp, sent_at)) {
        uint64_t flight = gw_tcp_flight(&c->tcp, ack->in_flight, ack->bytes);
        gw_tcp_cut(&c->tcp, &cfg->tcp, path, cubic_fall(c, cfg, flight), now);
    } else if (grows && gw_tcp_is_slow_start(&c->tcp)) {
        gw_tcp_slow_start(&c->tcp, &cfg->tcp, path, ack->bytes);
    } else if (grows) {
        cubic_avoid(c, cfg, path, ack, now);
    }
    gw_tcp_report_ack(&c->tcp, path, ack, window);
}

static void cubic_on_loss(void *state, const void *config, const struct gw_path *path,
                          const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct cubic *c = state;
    const struct cubic_cfg *cfg = config;
    enum gw_tcp_loss verdict = gw_tcp_judge(&c->tcp, loss);
    uint64_t flight = gw_tcp_flight(&c->tcp, loss->in_flight, loss->bytes);
    if (verdict == GW_TCP_LOSS_CUT) {
        gw_tcp_cut(&c->tcp, &cfg->tcp, path, cubic_fall(c, cfg, flight), now);
    } else if (verdict == GW_TCP_LOSS_TIMEOUT) {
        gw_tcp_time_out(&c->tcp, &cfg->tcp, path, cubic_fall(c, cfg, flight), now);
        c->w_max = 0; /* the next curve begins flat (RFC 9438, section 4.8) */
    }
    gw_tcp_report_loss(&c->tcp, path, loss, window);
}

static uint64_t cubic_remember(const void *state, const void *config)
{
    const struct cubic *c = state;
    (void)config;
    return gw_tcp_remember(&c->tcp, (uint32_t)(c->w_max >> 16));
}

static const struct gw_param params[] = {
    GW_TCP_PARAMS(struct cubic_cfg, tcp),
    GW_PARAM(struct cubic_cfg, Q16, c, "0.4",
             "how steep the curve is, packets per cubed second (RFC 9438, section 5)"),
    GW_PARAM(struct cubic_cfg, Q16, beta, "0.7",
             "share of the window that a cut leaves (RFC 9438, section 4.6)", .most = GW_Q16_ONE),
    GW_PARAM(struct cubic_cfg, BOOL, fast_convergence, "yes",
             "a window that had not recovered yet aims lower (RFC 9438, section 4.7)"),
};

static const struct gw_preset presets[] = {
    {.name = "dlcp", .settings = "", .help = "as on DLCP's testbed: the kernel's, the defaults"},
};

const struct gw_cc_ops gw_cc_cubic = {
    .algo =
        {
            .name = "cubic",
            .summary = "TCP whose window is a cubic function of the time since the last cut",
            .source = "RFC 9438",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct cubic_cfg),
            .state_size = sizeof(struct cubic),
        },
    .init = cubic_init,
    .on_ack = cubic_on_ack,
    .on_loss = cubic_on_loss,
    .remember = cubic_remember,
    .exceeds_bdp = true,
};
