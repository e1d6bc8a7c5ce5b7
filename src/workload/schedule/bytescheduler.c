/*
 * ByteScheduler: tensors are cut into partitions, the frontmost layer's goes first, and a credit
 * bounds how much is under way (Peng et al., SOSP 2019, section 4).
 *
 * Invariant: at most the credit and one partition less a byte are under way; a partition leaves
 * when any credit is left, and its bytes return when its sum is back.
 *
 * Where the defaults come from: those of the published program, before its tuner changes them:
 * 1,000,000 parameters in a partition, and 4,000,000 of credit.
 */
#include "workload/schedule/schedule.h"

static const struct gw_param params[] = {
    GW_PARAM(struct gw_schedule_sizes, BYTES, partition, "4MB",
             "bytes of a partition, at least 1 KiB; 0: tensors stay whole (ByteScheduler's "
             "program: 1,000,000 parameters)"),
    GW_PARAM(struct gw_schedule_sizes, BYTES, credit, "16MB",
             "another partition leaves while fewer bytes are under way (ByteScheduler's program: "
             "4 partitions)"),
};

const struct gw_schedule_ops gw_schedule_bytescheduler = {
    .algo =
        {
            .name = "bytescheduler",
            .summary = "partitions, frontmost layer first, within a credit",
            .source = "ByteScheduler (SOSP 2019), section 4",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct gw_schedule_sizes),
        },
    .partition = gw_schedule_partition,
    .credit = gw_schedule_credit,
    .by_layer = true,
};
