/* The registry made from coll.def, and the schedule of each kind. */
#include "core/coll/coll.h"

#include "base/assert.h"

#define GW_REGISTER(name) extern const struct gw_coll_ops gw_coll_##name;
#include "core/coll/coll.def"
#undef GW_REGISTER

extern const struct gw_coll_ops gw_coll_ring_scatter, gw_coll_ring_gather;
extern const struct gw_coll_ops gw_coll_chain_broadcast, gw_coll_chain_reduce;

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

const struct gw_coll_ops *gw_coll_for(enum gw_coll_kind kind)
{
    static const struct gw_coll_ops *const kinds[GW_COLL_KINDS] = {
        [GW_COLL_ALLREDUCE] = &gw_coll_ring,
        [GW_COLL_REDUCE_SCATTER] = &gw_coll_ring_scatter,
        [GW_COLL_ALLGATHER] = &gw_coll_ring_gather,
        [GW_COLL_BROADCAST] = &gw_coll_chain_broadcast,
        [GW_COLL_REDUCE] = &gw_coll_chain_reduce,
    };
    GW_ASSERT(kind < GW_COLL_KINDS);
    return kinds[kind];
}
