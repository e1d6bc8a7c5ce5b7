/* The registry made from lb.def. */
#include "core/lb/lb.h"

#define GW_REGISTER(name) extern const struct gw_lb_ops gw_lb_##name;
#include "core/lb/lb.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_lb_##name.algo,
#include "core/lb/lb.def"
#undef GW_REGISTER
};

const struct gw_registry gw_lb_registry = {
    .kind = "lb",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
