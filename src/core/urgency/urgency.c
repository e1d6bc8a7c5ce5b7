/* The registry made from urgency.def. */
#include "core/urgency/urgency.h"

#define GW_REGISTER(name) extern const struct gw_urgency_ops gw_urgency_##name;
#include "core/urgency/urgency.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_urgency_##name.algo,
#include "core/urgency/urgency.def"
#undef GW_REGISTER
};

const struct gw_registry gw_urgency_registry = {
    .kind = "urgency",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
