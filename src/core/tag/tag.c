/* The registry made from tag.def. */
#include "core/tag/tag.h"

#define GW_REGISTER(name) extern const struct gw_tag_ops gw_tag_##name;
#include "core/tag/tag.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_tag_##name.algo,
#include "core/tag/tag.def"
#undef GW_REGISTER
};

const struct gw_registry gw_tag_registry = {
    .kind = "tag",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};
