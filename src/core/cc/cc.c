/* The registry made from cc.def. */
#include "core/cc/cc.h"

#define GW_REGISTER(name) extern const struct gw_cc_ops gw_cc_##name;
#include "core/cc/cc.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_cc_##name.algo,
#include "core/cc/cc.def"
#undef GW_REGISTER
};

const struct gw_registry gw_cc_registry = {
    .kind = "cc",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
