/*
 * SEQ: computation and communication take turns (PCN, figure 3a).
 *
 * The tensors leave once the backward pass has ended, whole, in the order in which they became
 * ready, and the next forward pass begins when all of them are back. Invariant: no gradient is
 * under way while the worker computes, so an iteration takes the sum of both times.
 */
#include "workload/schedule/schedule.h"

const struct gw_schedule_ops gw_schedule_seq = {
    .algo =
        {
            .name = "seq",
            .summary = "all gradients after the backward pass, all parameters before the next",
            .source = "PCN, figure 3a",
        },
    .partition = gw_schedule_whole,
    .credit = gw_schedule_unlimited,
    .after_backward = true,
    .forward_waits_all = true,
};
