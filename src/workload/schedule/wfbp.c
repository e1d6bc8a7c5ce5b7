/*
 * WFBP, wait-free backpropagation: a tensor leaves, whole, as soon as it is ready (Poseidon,
 * USENIX ATC 2017, section 3.1); so do TensorFlow and MXNet without a scheduler.
 *
 * Invariant: tensors leave in the order in which they became ready, so those of the front layers,
 * which the next forward pass needs first, leave last; each layer of it waits for its own.
 */
#include "workload/schedule/schedule.h"

const struct gw_schedule_ops gw_schedule_wfbp = {
    .algo =
        {
            .name = "wfbp",
            .summary = "a tensor leaves when it is ready, first come, first served",
            .source = "Poseidon (ATC 2017), section 3.1; PCN, figure 3b",
        },
    .partition = gw_schedule_whole,
    .credit = gw_schedule_unlimited,
};
