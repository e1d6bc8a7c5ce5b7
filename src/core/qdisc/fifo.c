/*
 * First in, first out with tail drop and no marking; control packets have their own queue, served
 * first.
 *
 * Invariant: see lanes.h.
 */
#include "core/qdisc/lanes.h"

struct fifo_cfg {
    gw_q16 control;
};

static void fifo_init(void *state, const void *config, uint32_t capacity)
{
    static const struct gw_red_cfg off = {.mark = GW_RED_OFF};
    const struct fifo_cfg *cfg = config;
    gw_lanes_init(state, &off, cfg->control, capacity);
}

static const struct gw_param params[] = {
    GW_CONTROL_PARAM(struct fifo_cfg),
};

const struct gw_qdisc_ops gw_qdisc_fifo = {
    .algo =
        {
            .name = "fifo",
            .summary = "tail drop, no marking",
            .source = "own",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct fifo_cfg),
            .state_size = sizeof(struct gw_lanes),
        },
    .init = fifo_init,
    .enqueue = gw_lanes_enqueue,
    .dequeue = gw_lanes_dequeue,
};
