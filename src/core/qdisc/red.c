/*
 * Tail drop with random early detection: marks CE by the length of the data queue (red.h).
 *
 * Invariant: see lanes.h.
 */
#include "core/qdisc/lanes.h"

struct red_cfg {
    struct gw_red_cfg red;
    gw_q16 control;
};

static void red_init(void *state, const void *config, uint32_t capacity)
{
    const struct red_cfg *cfg = config;
    gw_lanes_init(state, &cfg->red, cfg->control, capacity);
}

static bool red_mark_at(void *state, const void *config, uint32_t bytes)
{
    struct gw_lanes *lanes = state;
    const struct red_cfg *cfg = config;
    gw_red_init(&lanes->red, &cfg->red, lanes->capacity, bytes);
    return cfg->red.mark != GW_RED_OFF;
}

static const struct gw_param params[] = {
    GW_RED_PARAMS(struct red_cfg, red),
    GW_CONTROL_PARAM(struct red_cfg),
};

const struct gw_qdisc_ops gw_qdisc_red = {
    .algo =
        {
            .name = "red",
            .summary = "tail drop, marks with CE between two thresholds",
            .source = "SMaRTT-REPS, section 3.5; Floyd and Jacobson, 1993",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct red_cfg),
            .state_size = sizeof(struct gw_lanes),
        },
    .init = red_init,
    .enqueue = gw_lanes_enqueue,
    .dequeue = gw_lanes_dequeue,
    .mark_at = red_mark_at,
};
