/* The registry made from grant.def. */
#include "core/grant/grant.h"

#define GW_REGISTER(name) extern const struct gw_grant_ops gw_grant_##name;
#include "core/grant/grant.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_grant_##name.algo,
#include "core/grant/grant.def"
#undef GW_REGISTER
};

const struct gw_registry gw_grant_registry = {
    .kind = "grant",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
