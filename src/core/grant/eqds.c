/*
 * EQDS: receivers grant what their link can take (Olteanu et al., An edge-queued datagram service
 * for all datacenter traffic, NSDI 2022, section 4).
 *
 * A sender begins with one bdp without asking, so that a lone flow loses no round trip; from then
 * on each packet needs a credit. A receiver hands credits out in turn, at the rate of its link, so
 * that any number of senders fill it and no more. What the first packets of too many senders
 * overflow is trimmed, and credit brings it again.
 *
 * The paper's sender tells in each packet how much credit it wants. Here the receiver reckons it:
 * every packet says how long its message is, and what has neither arrived nor been trimmed is under
 * way. So `ahead` takes the place of the paper's limit, one bdp of credit that a sender has and
 * does not use; that one counts nothing in flight, and no flow that was tried reaches two bdp of
 * both. NDP, whose receiver answers each arrival by one credit, has one bdp of both.
 *
 * Credit goes out in turn, whatever it is for. The paper's receiver serves flows with trimmed
 * packets first; the sender sends these before new ones in either case.
 */
#include "core/grant/grant.h"

#include "base/assert.h"
#include "base/fixed.h"

struct eqds_cfg {
    gw_q16 first;
    gw_q16 ahead;
    gw_q16 pace;
};

/* A multiple of the bdp as packets with their headers, at least one. */
static uint32_t packets_of(gw_q16 factor, const struct gw_path *path)
{
    const gw_q16 largest = 1024 * GW_Q16_ONE;
    gw_q16 bytes = gw_q16_mul(factor < 0 ? 0 : factor < largest ? factor : largest, path->bdp);
    uint64_t packets = (uint64_t)bytes / (path->mtu + path->hdr);
    return packets == 0 ? 1 : packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX;
}

static void eqds_plan(const void *config, const struct gw_path *path, struct gw_grant_plan *plan)
{
    const struct eqds_cfg *cfg = config;
    GW_ASSERT(path->mtu > 0 && path->rate_bps > 0);
    const gw_q16 slowest = GW_Q16_ONE / 1024;
    gw_q16 share = cfg->pace > slowest ? cfg->pace : slowest;
    uint64_t rate_bps = (uint64_t)gw_q16_mul((gw_q16)path->rate_bps, share);
    plan->first = packets_of(cfg->first, path);
    plan->ahead = packets_of(cfg->ahead, path);
    plan->pace = gw_byte_time_from_bps(rate_bps > GW_RATE_BPS_MIN ? rate_bps : GW_RATE_BPS_MIN);
}

static const struct gw_param params[] = {
    {.name = "credit_first",
     .type = GW_PARAM_Q16,
     .offset = offsetof(struct eqds_cfg, first),
     .initial = "1",
     .help = "what a flow sends before any credit, multiple of the bdp (EQDS, section 4)"},
    {.name = "credit_ahead",
     .type = GW_PARAM_Q16,
     .offset = offsetof(struct eqds_cfg, ahead),
     .initial = "2",
     .help = "most that a flow has under way or granted and not sent, multiple of the bdp; NDP: 1 "
             "(own choice: one in flight, and one unused as in htsim's implementation)"},
    {.name = "credit_pace",
     .type = GW_PARAM_Q16,
     .offset = offsetof(struct eqds_cfg, pace),
     .initial = "1",
     .help = "rate of granting, share of the receiver's link (htsim's implementation)"},
};

static const struct gw_preset presets[] = {
    {
        .name = "drafts",
        .settings = "credit_ahead=1 credit_pace=0.99",
        .help = "as the authors of SMaRTT-REPS ran it in 2023: NDP's rules",
    },
};

const struct gw_grant_ops gw_grant_eqds = {
    .algo =
        {
            .name = "eqds",
            .summary = "credit from the receiver at the rate of its link; eqds+smartt and the like "
                       "keep a window besides",
            .source = "EQDS, section 4",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct eqds_cfg),
        },
    .plan = eqds_plan,
};
