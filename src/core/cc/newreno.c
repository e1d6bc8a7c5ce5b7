/*
 * TCP NewReno: slow start, a packet per round trip, half of what is in flight after a loss
 * (RFC 5681; RFC 6582 for one cut per episode), and the same for a mark (RFC 3168, section 6.1.2).
 *
 * Which packets are lost is loss detection's matter: with `loss: sack` this is the congestion
 * control of RFC 6675, where the window is the threshold from the first loss on, and what is in
 * flight is counted and not guessed from duplicate ACKs, so nothing is inflated or deflated.
 *
 * Invariant: one cut per episode (tcp.h); at least cwnd_min packets but after a timeout.
 */
#include "base/assert.h"
#include "core/cc/tcp.h"

struct newreno_cfg {
    struct gw_tcp_cfg tcp;
};

static void newreno_init(void *state, const void *config, const struct gw_path *path,
                         struct gw_cc_window *window, gw_time now)
{
    struct gw_tcp *tcp = state;
    const struct newreno_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0);
    gw_tcp_init(tcp, &cfg->tcp, path, now);
    *window = (struct gw_cc_window){.cwnd = tcp->cwnd >> 16};
}

static void newreno_on_ack(void *state, const void *config, const struct gw_path *path,
                           const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct gw_tcp *tcp = state;
    const struct newreno_cfg *cfg = config;
    gw_time sent_at = now - ack->rtt;
    bool grows = gw_tcp_may_grow(tcp, ack, sent_at);
    if (ack->ce && gw_tcp_is_new(tcp, sent_at))
        gw_tcp_cut(tcp, &cfg->tcp, path, gw_tcp_flight(tcp, ack->in_flight, ack->bytes) / 2, now);
    else if (grows)
        gw_tcp_reno_grow(tcp, &cfg->tcp, path, ack->bytes);
    gw_tcp_report_ack(tcp, path, ack, window);
}

static void newreno_on_loss(void *state, const void *config, const struct gw_path *path,
                            const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct gw_tcp *tcp = state;
    const struct newreno_cfg *cfg = config;
    gw_tcp_reno_lose(tcp, &cfg->tcp, path, loss, now);
    gw_tcp_report_loss(tcp, path, loss, window);
}

static uint64_t newreno_remember(const void *state, const void *config)
{
    (void)config;
    return gw_tcp_remember(state, 0);
}

static const struct gw_param params[] = {
    GW_TCP_PARAMS(struct newreno_cfg, tcp),
};

static const struct gw_preset presets[] = {
    {.name = "rfc5681", .settings = "slow_start=1", .help = "slow start counts ACKs, not packets"},
    {.name = "dlcp", .settings = "", .help = "as DLCP is compared with it: the defaults"},
};

const struct gw_cc_ops gw_cc_newreno = {
    .algo =
        {
            .name = "newreno",
            .summary = "TCP: a packet per round trip up, half down; marks count as losses",
            .source = "RFC 5681, RFC 6582, RFC 3168 section 6.1.2",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct newreno_cfg),
            .state_size = sizeof(struct gw_tcp),
        },
    .init = newreno_init,
    .on_ack = newreno_on_ack,
    .on_loss = newreno_on_loss,
    .remember = newreno_remember,
    .exceeds_bdp = true,
};
