/* The registry made from schedule.def, and the sizes that several schedules have alike. */
#include "workload/schedule/schedule.h"

#define GW_REGISTER(name) extern const struct gw_schedule_ops gw_schedule_##name;
#include "workload/schedule/schedule.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_schedule_##name.algo,
#include "workload/schedule/schedule.def"
#undef GW_REGISTER
};

const struct gw_registry gw_schedule_registry = {
    .kind = "schedule",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};

uint64_t gw_schedule_whole(const void *cfg)
{
    (void)cfg;
    return 0;
}

uint64_t gw_schedule_unlimited(const void *cfg)
{
    (void)cfg;
    return UINT64_MAX;
}

uint64_t gw_schedule_partition(const void *sizes)
{
    uint64_t bytes = ((const struct gw_schedule_sizes *)sizes)->partition;
    if (bytes == 0)
        return 0;
    return bytes < GW_SCHEDULE_PIECE_MIN ? GW_SCHEDULE_PIECE_MIN : (bytes + 3) / 4 * 4;
}

uint64_t gw_schedule_credit(const void *sizes)
{
    return ((const struct gw_schedule_sizes *)sizes)->credit;
}
