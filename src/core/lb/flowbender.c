/*
 * FlowBender: a flow stays on one path and leaves it when too much of a round trip's packets was
 * marked, or after a timeout (Kabbani et al., CoNEXT 2014, section 3).
 *
 * The entropy is the paper's V, a small number that ECMP hashes along with the flow; leaving a path
 * adds one to it.
 *
 * Invariant: without timeouts the entropy changes at most once per RTT.
 */
#include "core/lb/lb.h"

#include "core/lb/entropy.h"
#include "core/lb/round.h"

struct flowbender_cfg {
    uint32_t entropies;
    gw_q16 threshold;
    uint32_t rounds;
};

struct flowbender {
    struct gw_lb_round round;
    gw_time left_at;    /* time of the last change, if there was one */
    uint32_t congested; /* rounds in a row that were */
    uint16_t entropy;
    bool has_left;
};

_Static_assert(sizeof(struct flowbender) <= GW_LB_STATE_MAX, "state fits");

static void flowbender_init(void *state, const void *config, const struct gw_path *path,
                            struct gw_prng prng)
{
    struct flowbender *flow = state;
    const struct flowbender_cfg *cfg = config;
    (void)path;
    *flow = (struct flowbender){.entropy = gw_entropy_random(&prng, cfg->entropies)};
}

static uint16_t flowbender_pick(void *state, const void *config, const struct gw_lb_next *next,
                                gw_time now)
{
    const struct flowbender *flow = state;
    (void)config;
    (void)next;
    (void)now;
    return flow->entropy;
}

static void flowbender_leave(struct flowbender *flow, const struct flowbender_cfg *cfg, gw_time now)
{
    flow->entropy = gw_entropy_next(flow->entropy, cfg->entropies);
    flow->congested = 0;
    flow->left_at = now;
    flow->has_left = true;
}

static void flowbender_hear(struct flowbender *flow, const struct flowbender_cfg *cfg,
                            const struct gw_lb_echo *echo, bool marked, gw_time now)
{
    gw_q16 share;
    if (!gw_lb_round_ends(&flow->round, echo, marked, now, &share))
        return;
    flow->congested = share > cfg->threshold ? flow->congested + 1 : 0;
    if (flow->congested > 0 && flow->congested >= cfg->rounds)
        flowbender_leave(flow, cfg, now);
}

static void flowbender_on_ack(void *state, const void *config, const struct gw_lb_echo *echo,
                              gw_time now)
{
    flowbender_hear(state, config, echo, echo->ce, now);
}

static void flowbender_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                               gw_time now)
{
    flowbender_hear(state, config, echo, true, now);
}

/* A window that is lost times out packet by packet, and is one reason to leave. */
static void flowbender_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    struct flowbender *flow = state;
    if (!flow->has_left || !gw_time_before(sent_at, flow->left_at))
        flowbender_leave(flow, config, now);
}

static const struct gw_param params[] = {
    GW_PARAM(struct flowbender_cfg, COUNT, entropies, "8",
             "values of V, 1 to 65536 (Kabbani et al., section 3)", .least = 1,
             .most = GW_ENTROPIES_MAX),
    GW_PARAM(struct flowbender_cfg, Q16, threshold, "5%",
             "T: a round is congested when more than this share was marked (Kabbani et al., "
             "section 3)",
             .most = GW_Q16_ONE),
    GW_PARAM(struct flowbender_cfg, COUNT, rounds, "1",
             "N: congested rounds in a row that make a flow leave its path (Kabbani et al., "
             "section 3)"),
};

const struct gw_lb_ops gw_lb_flowbender = {
    .algo =
        {
            .name = "flowbender",
            .summary = "one path per flow, another after an RTT with many marks",
            .source = "Kabbani et al., CoNEXT 2014",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct flowbender_cfg),
            .state_size = sizeof(struct flowbender),
        },
    .init = flowbender_init,
    .pick = flowbender_pick,
    .on_ack = flowbender_on_ack,
    .on_trim = flowbender_on_trim,
    .on_timeout = flowbender_on_timeout,
};
