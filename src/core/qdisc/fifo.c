/*
 * First in, first out with tail drop and no marking; control packets have their own queue, which
 * goes before.
 *
 * Invariant: see lanes.h.
 */
#include "core/qdisc/lanes.h"

struct fifo_cfg {
    struct gw_lanes_cfg lanes; /* without marks */
};

static void fifo_init(void *state, const void *config, uint32_t capacity)
{
    struct gw_lanes_cfg cfg = ((const struct fifo_cfg *)config)->lanes;
    cfg.red.mark = GW_RED_OFF;
    gw_lanes_init(state, &cfg, capacity);
}

static const struct gw_param params[] = {
    GW_LANES_PARAMS(struct fifo_cfg, lanes),
};

const struct gw_qdisc_ops gw_qdisc_fifo = {
    .algo =
        {
            .name = "fifo",
            .summary = "tail drop, no marking",
            .source = "own",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .check = gw_lanes_check,
            .cfg_size = sizeof(struct fifo_cfg),
            .state_size = sizeof(struct gw_lanes),
        },
    .init = fifo_init,
    .enqueue = gw_lanes_enqueue,
    .dequeue = gw_lanes_dequeue,
    .foresee = gw_lanes_foresee,
    .delays_control = gw_lanes_delay_control,
};
