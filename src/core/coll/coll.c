/* The registry made from coll.def. */
#include "core/coll/coll.h"

#define GW_REGISTER(name) extern const struct gw_coll_ops gw_coll_##name;
#include "core/coll/coll.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_coll_##name.algo,
#include "core/coll/coll.def"
#undef GW_REGISTER
};

const struct gw_registry gw_coll_registry = {
    .kind = "coll",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
