/*
 * DCTCP: TCP that cuts its window by how much of it was marked (RFC 8257; Alizadeh et al., Data
 * Center TCP, SIGCOMM 2010).
 *
 * alpha is an average of the share of bytes that met a mark, taken once per window of data. The
 * first mark of a window takes alpha / 2 of it away, with alpha as the windows before it have left
 * it (section 3.3; as Linux and ns-3 do). All else is NewReno, losses included (section 3.5).
 *
 * A window of data is what is sent from one update of alpha to the next: it ends with the
 * acknowledgement of something that was sent after it began.
 *
 * QuickAdapt (quick_adapt.h) can come first; its window begins an episode, and is the threshold.
 *
 * Invariant: 0 <= alpha <= 1; one cut per episode (tcp.h).
 */
#include "base/assert.h"
#include "core/cc/quick_adapt.h"
#include "core/cc/tcp.h"

/* alpha of 1. Finer than gains are, so that small shares do not vanish in rounding. */
#define ALPHA_ONE (UINT32_C(1) << 30)

struct dctcp_cfg {
    struct gw_tcp_cfg tcp;
    gw_q16 g;
    gw_q16 alpha_initial;
    struct gw_quick_adapt_cfg qa;
};

struct dctcp {
    struct gw_tcp tcp;
    gw_time window_at; /* when the window of data began */
    uint32_t alpha;    /* of ALPHA_ONE */
    uint32_t acked;    /* bytes of this window of data */
    uint32_t marked;   /* of these, bytes whose ACK told of a mark */
    struct gw_quick_adapt qa;
};

_Static_assert(sizeof(struct dctcp) <= GW_CC_STATE_MAX, "state fits");

/* A share from 0 to 1 of the options, in 1/65536. */
static uint64_t share_of(gw_q16 value)
{
    return gw_min_u64(gw_gain(value), (uint64_t)GW_Q16_ONE);
}

static void dctcp_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_cc_window *window, gw_time now)
{
    struct dctcp *d = state;
    const struct dctcp_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0);
    gw_tcp_init(&d->tcp, &cfg->tcp, path, now);
    d->window_at = now;
    d->alpha = (uint32_t)(share_of(cfg->alpha_initial) << 14);
    if (path->window && gw_tcp_memory(path)) /* one more, since 0 is nothing */
        d->alpha = (uint32_t)gw_min_u64(gw_tcp_memory(path) - 1, ALPHA_ONE);
    d->acked = d->marked = 0;
    gw_quick_adapt_init(&d->qa, &cfg->qa, path->brtt, path->brtt);
    *window = (struct gw_cc_window){.cwnd = d->tcp.cwnd >> 16};
}

/* RFC 8257, section 3.3, steps 1 to 8. */
static void dctcp_count(struct dctcp *d, const struct dctcp_cfg *cfg, const struct gw_cc_ack *ack,
                        gw_time sent_at, gw_time now)
{
    d->acked = gw_add_u32(d->acked, ack->bytes);
    if (ack->ce)
        d->marked = gw_add_u32(d->marked, ack->bytes);
    if (gw_time_before(sent_at, d->window_at))
        return;
    uint64_t share = (uint64_t)d->marked * ALPHA_ONE / (d->acked ? d->acked : 1);
    uint64_t g = share_of(cfg->g);
    d->alpha = (uint32_t)((((uint64_t)GW_Q16_ONE - g) * d->alpha + g * share) >> 16);
    d->acked = d->marked = 0;
    d->window_at = now;
}

/* Takes QuickAdapt's advice: a cut at once, without a limit below but a packet. */
static void dctcp_adapt(struct dctcp *d, const struct gw_path *path, uint64_t cwnd, gw_time now)
{
    struct gw_tcp *tcp = &d->tcp;
    if (cwnd == 0)
        return;
    tcp->cwnd = gw_cwnd_clamp(cwnd, (uint64_t)path->mtu << 16, tcp->cwnd_max);
    tcp->ssthresh = tcp->cwnd;
    tcp->cut_at = now;
    tcp->is_reducing = false;
}

static void dctcp_on_ack(void *state, const void *config, const struct gw_path *path,
                         const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct dctcp *d = state;
    const struct dctcp_cfg *cfg = config;
    struct gw_tcp *tcp = &d->tcp;
    gw_time sent_at = now - ack->rtt;
    dctcp_count(d, cfg, ack, sent_at, now);
    struct gw_quick_adapt_advice advice = gw_quick_adapt_on_ack(&d->qa, &cfg->qa, path, ack, now);
    dctcp_adapt(d, path, advice.cwnd, now);
    bool grows = gw_tcp_may_grow(tcp, ack, sent_at) && !advice.is_done;
    if (ack->ce && !advice.is_done && gw_tcp_is_new(tcp, sent_at))
        gw_tcp_cut(tcp, &cfg->tcp, path, tcp->cwnd - gw_mul_shift(tcp->cwnd, d->alpha, 31), now);
    else if (grows)
        gw_tcp_reno_grow(tcp, &cfg->tcp, path, ack->bytes);
    gw_tcp_report_ack(tcp, path, ack, window);
}

static void dctcp_on_loss(void *state, const void *config, const struct gw_path *path,
                          const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct dctcp *d = state;
    const struct dctcp_cfg *cfg = config;
    struct gw_quick_adapt_advice advice = gw_quick_adapt_on_loss(&d->qa, &cfg->qa, path, loss, now);
    dctcp_adapt(d, path, advice.cwnd, now);
    if (!advice.is_done)
        gw_tcp_reno_lose(&d->tcp, &cfg->tcp, path, loss, now);
    gw_tcp_report_loss(&d->tcp, path, loss, window);
}

static uint64_t dctcp_remember(const void *state, const void *config)
{
    const struct dctcp *d = state;
    (void)config;
    return gw_tcp_remember(&d->tcp, d->alpha + 1);
}

static const struct gw_param params[] = {
    GW_TCP_PARAMS(struct dctcp_cfg, tcp),
    GW_PARAM(struct dctcp_cfg, Q16, g, "0.0625",
             "weight of the latest window of data in alpha (RFC 8257, section 4.2)",
             .most = GW_Q16_ONE),
    GW_PARAM(struct dctcp_cfg, Q16, alpha_initial, "1",
             "alpha before the first window of data has ended (RFC 8257, section 3.3)",
             .most = GW_Q16_ONE),
    GW_QUICK_ADAPT_PARAMS(struct dctcp_cfg, qa, "no", "1.5"),
};

static const struct gw_preset presets[] = {
    {.name = "dlcp", .settings = "", .help = "as DLCP is compared with it: the defaults"},
    {.name = "pias",
     .settings = "initial=70",
     .help = "as PIAS simulates it: a bdp of 10 Gb/s and 85.2 us at once"},
};

const struct gw_cc_ops gw_cc_dctcp = {
    .algo =
        {
            .name = "dctcp",
            .summary = "TCP that cuts its window by the share of it that was marked",
            .source = "RFC 8257",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct dctcp_cfg),
            .state_size = sizeof(struct dctcp),
        },
    .init = dctcp_init,
    .on_ack = dctcp_on_ack,
    .on_loss = dctcp_on_loss,
    .remember = dctcp_remember,
    .exceeds_bdp = true,
};
