/*
 * pFabric's rate control: a window of one bdp from the first packet on, and slow start after a
 * timeout; queues do the rest (Alizadeh et al., pFabric, SIGCOMM 2013, section 4.2).
 *
 * Marks do nothing, nor do losses that are not timeouts, which its loss detection does not find
 * anyhow (loss_pfabric.c). A timeout leaves one packet, and half of the window as the end of slow
 * start; from there on the window grows as TCP's does. A message begins anew, whatever became of
 * the one before.
 *
 * Invariant: a packet <= cwnd <= `bdp` times the bdp, or a packet if that is more.
 */
#include "base/assert.h"
#include "core/cc/tcp.h"

struct pfabric_cfg {
    gw_q16 bdp;
    uint32_t initial;
};

/* One packet per ACK, as the authors' simulation; at least two after a cut. */
static const struct gw_tcp_cfg rules = {.slow_start = 1, .cwnd_min = 2};

static void pfabric_init(void *state, const void *config, const struct gw_path *path,
                         struct gw_cc_window *window, gw_time now)
{
    struct gw_tcp *tcp = state;
    const struct pfabric_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0);
    uint64_t most = gw_cwnd_of_bdp(cfg->bdp, path);
    uint64_t first = cfg->initial ? gw_tcp_packets(path, cfg->initial) : most;
    *tcp = (struct gw_tcp){
        .cwnd = gw_min_u64(first, most),
        .cwnd_max = most,
        .ssthresh = most,
        .cut_at = now,
        .timeout_at = now,
    };
    *window = (struct gw_cc_window){.cwnd = tcp->cwnd >> 16};
}

static void pfabric_on_ack(void *state, const void *config, const struct gw_path *path,
                           const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    struct gw_tcp *tcp = state;
    (void)config;
    if (gw_tcp_may_grow(tcp, ack, now - ack->rtt))
        gw_tcp_reno_grow(tcp, &rules, path, ack->bytes);
    window->cwnd = tcp->cwnd >> 16;
}

static void pfabric_on_loss(void *state, const void *config, const struct gw_path *path,
                            const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    struct gw_tcp *tcp = state;
    (void)config;
    if (loss->is_timeout && gw_tcp_judge(tcp, loss) == GW_TCP_LOSS_TIMEOUT)
        gw_tcp_time_out(tcp, &rules, path, tcp->cwnd / 2, now);
    window->cwnd = tcp->cwnd >> 16;
}

static const struct gw_param params[] = {
    GW_PARAM(struct pfabric_cfg, Q16, bdp, "1",
             "largest window, multiple of the bdp (section 4.2)"),
    GW_PARAM(struct pfabric_cfg, COUNT, initial, "0",
             "first window, packets; 0: the largest (section 4.2)"),
};

static const struct gw_preset presets[] = {
    {.name = "native", .settings = "", .help = "as its paper has it: the defaults"},
    {.name = "dlcp", .settings = "initial=10", .help = "as DLCP is compared with it"},
};

const struct gw_cc_ops gw_cc_pfabric = {
    .algo =
        {
            .name = "pfabric",
            .summary = "one bdp at once; slow start after timeouts",
            .source = "pFabric, SIGCOMM 2013, section 4.2",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct pfabric_cfg),
            .state_size = sizeof(struct gw_tcp),
        },
    .init = pfabric_init,
    .on_ack = pfabric_on_ack,
    .on_loss = pfabric_on_loss,
};
