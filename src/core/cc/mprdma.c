/*
 * MP-RDMA's window: DCTCP without a memory (Lu et al., Multi-Path Transport for RDMA in
 * Datacenters, NSDI 2018, section 3).
 *
 * An unmarked ACK adds a packet per window, a marked one takes half of its packet away. One window
 * for all paths; which path a packet takes is load balancing's matter here, where the paper sends
 * on the path that the ACK came from. A lost packet takes a packet away, since the paper has no
 * trimming (the authors of SMaRTT-REPS do so in their simulator).
 *
 * With marks on a share p of the packets the window settles where p / 2 = (1 - p) / W, at
 * W = 2 (1 - p) / p packets. QuickAdapt (quick_adapt.h) can come first.
 *
 * Invariant: mtu <= cwnd <= cwnd_max.
 */
#include "base/assert.h"
#include "core/cc/quick_adapt.h"
#include "core/cc/window.h"

struct mprdma_cfg {
    gw_q16 cwnd_max;
    gw_q16 cwnd_initial;
    gw_q16 loss_cut;
    struct gw_quick_adapt_cfg qa;
};

struct mprdma {
    uint64_t cwnd;     /* 1/65536 byte */
    uint64_t cwnd_max; /* 1/65536 byte */
    struct gw_quick_adapt qa;
};

_Static_assert(sizeof(struct mprdma) <= GW_CC_STATE_MAX, "state fits");

static void mprdma_init(void *state, const void *config, const struct gw_path *path,
                        struct gw_cc_window *window, gw_time now)
{
    struct mprdma *m = state;
    const struct mprdma_cfg *cfg = config;
    (void)now;
    GW_ASSERT(path->mtu > 0);
    m->cwnd_max = gw_cwnd_of_bdp(cfg->cwnd_max, path);
    m->cwnd = gw_min_u64(gw_cwnd_of_bdp(cfg->cwnd_initial, path), m->cwnd_max);
    gw_quick_adapt_init(&m->qa, &cfg->qa, path->brtt, path->brtt);
    *window = (struct gw_cc_window){.cwnd = m->cwnd >> 16};
}

/* Does what QuickAdapt advises, and changes the window besides unless that is all. */
static void mprdma_move(struct mprdma *m, const struct gw_path *path,
                        struct gw_quick_adapt_advice advice, int64_t change,
                        struct gw_cc_window *window)
{
    if (advice.cwnd)
        m->cwnd = advice.cwnd;
    if (advice.is_done)
        change = 0;
    m->cwnd = gw_cwnd_move(m->cwnd, change, path, m->cwnd_max);
    window->cwnd = m->cwnd >> 16;
}

static void mprdma_on_ack(void *state, const void *config, const struct gw_path *path,
                          const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct mprdma *m = state;
    const struct mprdma_cfg *cfg = config;
    struct gw_quick_adapt_advice advice = gw_quick_adapt_on_ack(&m->qa, &cfg->qa, path, ack, now);
    int64_t change = (int64_t)gw_mul_shift(gw_cwnd_share(ack->bytes, m->cwnd), path->mtu, 16);
    if (ack->ce)
        change = -((int64_t)ack->bytes << 15);
    mprdma_move(m, path, advice, change, window);
}

static void mprdma_on_loss(void *state, const void *config, const struct gw_path *path,
                           const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct mprdma *m = state;
    const struct mprdma_cfg *cfg = config;
    struct gw_quick_adapt_advice advice = gw_quick_adapt_on_loss(&m->qa, &cfg->qa, path, loss, now);
    uint64_t cut = gw_mul_shift(loss->bytes, gw_gain(cfg->loss_cut), 0);
    mprdma_move(m, path, advice, -(int64_t)gw_min_u64(cut, m->cwnd_max), window);
}

static const struct gw_param params[] = {
    GW_PARAM(struct mprdma_cfg, Q16, cwnd_max, "1",
             "largest window, multiple of the bdp (the simulator of SMaRTT-REPS)"),
    GW_PARAM(struct mprdma_cfg, Q16, cwnd_initial, "1",
             "first window, multiple of the bdp, at most cwnd_max (the simulator of SMaRTT-REPS)"),
    GW_PARAM(struct mprdma_cfg, Q16, loss_cut, "1",
             "share of a lost packet that is taken off the window (the simulator of SMaRTT-REPS)"),
    GW_QUICK_ADAPT_PARAMS(struct mprdma_cfg, qa, "no", "1.5"),
};

static const struct gw_preset presets[] = {
    {.name = "smartt", .settings = "", .help = "as SMaRTT is compared with it: the defaults"},
};

const struct gw_cc_ops gw_cc_mprdma = {
    .algo =
        {
            .name = "mprdma",
            .summary = "per-packet window from ECN: half a packet down, a packet per window up",
            .source = "MP-RDMA, section 3",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct mprdma_cfg),
            .state_size = sizeof(struct mprdma),
        },
    .init = mprdma_init,
    .on_ack = mprdma_on_ack,
    .on_loss = mprdma_on_loss,
};
