/* The registry made from loss.def. */
#include "core/loss/loss.h"

#define GW_REGISTER(name) extern const struct gw_loss_ops gw_loss_##name;
#include "core/loss/loss.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_loss_##name.algo,
#include "core/loss/loss.def"
#undef GW_REGISTER
};

const struct gw_registry gw_loss_registry = {
    .kind = "loss",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
