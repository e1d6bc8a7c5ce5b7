/*
 * Tail drop with random early detection: marks CE by the length of the data queue (red.h).
 *
 * Invariant: see lanes.h.
 */
#include "core/qdisc/lanes.h"

struct red_cfg {
    struct gw_lanes_cfg lanes;
};

static void red_init(void *state, const void *config, uint32_t capacity)
{
    const struct red_cfg *cfg = config;
    gw_lanes_init(state, &cfg->lanes, capacity);
}

static bool red_mark_at(void *state, const void *config, uint32_t bytes)
{
    struct gw_lanes *lanes = state;
    const struct red_cfg *cfg = config;
    gw_red_init(&lanes->red, &cfg->lanes.red, lanes->capacity[GW_LANE_DATA], bytes);
    return cfg->lanes.red.mark != GW_RED_OFF;
}

static const struct gw_param params[] = {
    GW_RED_PARAMS(struct red_cfg, lanes.red),
    GW_LANES_PARAMS(struct red_cfg, lanes),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of SMaRTT-REPS: the defaults"},
    {.name = "drafts", .settings = GW_LANES_DRAFTS, .help = "as the authors of SMaRTT-REPS ran it"},
};

const struct gw_qdisc_ops gw_qdisc_red = {
    .algo =
        {
            .name = "red",
            .summary = "tail drop, marks with CE between two thresholds",
            .source = "SMaRTT-REPS, section 3.5; Floyd and Jacobson, 1993",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .check = gw_lanes_check,
            .cfg_size = sizeof(struct red_cfg),
            .state_size = sizeof(struct gw_lanes),
        },
    .init = red_init,
    .enqueue = gw_lanes_enqueue,
    .dequeue = gw_lanes_dequeue,
    .foresee = gw_lanes_foresee,
    .delays_control = gw_lanes_delay_control,
    .mark_at = red_mark_at,
};
