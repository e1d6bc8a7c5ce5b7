/* The registry made from finish.def. */
#include "core/finish/finish.h"

#define GW_REGISTER(name) extern const struct gw_finish_ops gw_finish_##name;
#include "core/finish/finish.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_finish_##name.algo,
#include "core/finish/finish.def"
#undef GW_REGISTER
};

const struct gw_registry gw_finish_registry = {
    .kind = "finish",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
