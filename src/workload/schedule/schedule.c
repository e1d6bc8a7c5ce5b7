/* The registry made from schedule.def. */
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
