/*
 * P3, priority-based parameter propagation: tensors are cut into small slices, and of those that
 * are ready the frontmost layer's goes first (Jayarajan et al., MLSys 2019, section 4).
 *
 * Invariant: a slice of a front layer waits for no more than the slices that were under way when it
 * became ready, however large the tensors behind it are.
 *
 * Where the defaults come from:
 *   - partition: 50,000 parameters of 4 bytes, the paper's choice;
 *   - credit: the paper has none, since its slices queue by priority in front of a blocking send,
 * which has some of them under way. Pushed to a server, a slice counts until it has arrived there;
 * otherwise until its sum is back, so that the credit has to cover its way there and back: 4 slices
 * are 64 us at 100 Gb/s, twice the 32 us of a slice that goes and comes, which leaves 32 us for the
 * network. Less would idle the link; more lets front layers wait behind more.
 */
#include "workload/schedule/schedule.h"

static const struct gw_param params[] = {
    GW_PARAM(struct gw_schedule_sizes, BYTES, partition, "200KB",
             "bytes of a slice, at least 1 KiB; 0: tensors stay whole (P3: 50,000 parameters)"),
    GW_PARAM(struct gw_schedule_sizes, BYTES, credit, "800KB",
             "another slice leaves while fewer bytes are under way (own choice)"),
};

const struct gw_schedule_ops gw_schedule_p3 = {
    .algo =
        {
            .name = "p3",
            .summary = "small slices, frontmost layer first",
            .source = "P3 (MLSys 2019), section 4",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct gw_schedule_sizes),
        },
    .partition = gw_schedule_partition,
    .credit = gw_schedule_credit,
    .by_layer = true,
};
