/* The registry made from qdisc.def. */
#include "core/qdisc/qdisc.h"

#define GW_REGISTER(name) extern const struct gw_qdisc_ops gw_qdisc_##name;
#include "core/qdisc/qdisc.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_qdisc_##name.algo,
#include "core/qdisc/qdisc.def"
#undef GW_REGISTER
};

const struct gw_registry gw_qdisc_registry = {
    .kind = "qdisc",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
