/*
 * Calls that may lose a part (core/parts.h): which there are, how they travel, and memory for what
 * their caller does not want to know. See communicator.h, and ranks/coll_parts.h for collectives.
 *
 * All of them are blasts between ranks but for sums in switches, whose server leaves stragglers
 * out. Via ps the ranks are the servers, each of its part of the tensor (coll/direct.c): a bound is
 * spent on one hop, not on one for each rank.
 */
#include "base/bits.h"
#include "base/error.h"
#include "core/calls/communicator_impl.h"

static bool is_message(const struct gw_call *call)
{
    return call->kind == GW_CALL_SEND || call->kind == GW_CALL_RECEIVE;
}

static uint32_t element_size(const struct gw_call *call)
{
    return is_message(call) ? 1 : gw_dtype_size(call->type);
}

/* A sum in switches. */
static bool is_by_switch(const struct gw_call *call)
{
    return call->kind == GW_CALL_ALLREDUCE && call->via == GW_VIA_INA &&
           gw_via_can(GW_VIA_INA, call);
}

bool gw_communicator_is_by_parts(const struct gw_call *call)
{
    return call->parts && !is_by_switch(call);
}

const struct gw_coll_ops *gw_communicator_parts_coll(const struct gw_call *call)
{
    return call->via == GW_VIA_PS ? &gw_coll_direct : gw_coll_for(GW_COLL_ALLREDUCE);
}

uint32_t gw_communicator_packets_max(const struct gw_communicator_cfg *cfg)
{
    uint64_t segment = gw_communicator_parts_cfg(cfg).segment;
    uint64_t bytes = cfg->largest > segment ? cfg->largest : segment;
    uint64_t packets = (bytes + cfg->mtu - 1) / cfg->mtu;
    return packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX;
}

uint32_t gw_communicator_fragment(const struct gw_communicator *comm, const struct gw_call *call)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    struct gw_call own = *call;
    if (own.via == GW_VIA_DEFAULT)
        own.via = cfg->via;
    bool is_far = own.kind == GW_CALL_ALLREDUCE && own.via == GW_VIA_PS &&
                  cfg->world > GW_COMMUNICATOR_DIRECT_MAX;
    if (!cfg->parts_transport || is_far || own.kind == GW_CALL_BARRIER ||
        (!is_message(&own) && own.type >= GW_DTYPES))
        return 0;
    if (gw_call_is_move(&own) && own.count > cfg->largest / element_size(&own))
        return 0;
    if (is_by_switch(&own))
        return cfg->mtu / (uint32_t)sizeof(int32_t);
    return cfg->mtu % element_size(&own) ? 0 : cfg->mtu / element_size(&own);
}

bool gw_communicator_takes_parts(const struct gw_communicator *comm, const struct gw_call *call)
{
    const struct gw_parts *parts = call->parts;
    return gw_communicator_fragment(comm, call) != 0 && parts->bound >= 0 &&
           parts->bound < GW_Q16_ONE && parts->bound_pull >= 0 && parts->bound_pull < GW_Q16_ONE &&
           parts->class <= GW_CLASS_DATA_MAX;
}

/* Fragments that this rank gets. */
static uint64_t fragments_of(const struct gw_communicator *comm, const struct gw_call *call)
{
    uint32_t fragment = gw_communicator_fragment(comm, call);
    uint64_t parts = call->kind == GW_CALL_ALLGATHER ? comm->cfg.world : 1;
    return parts * (call->count / fragment + (call->count % fragment != 0));
}

int gw_communicator_begin_parts(struct gw_communicator *comm, uint32_t number)
{
    struct gw_call_slot *slot = &comm->slots[number];
    struct gw_parts *parts = &slot->terms;
    uint64_t fragments = fragments_of(comm, &slot->call);
    *parts = *slot->call.parts;
    slot->call.parts = parts;
    if (!gw_communicator_has_payload(comm) || slot->call.kind == GW_CALL_SEND ||
        slot->call.kind == GW_CALL_PUSH)
        return GW_OK;
    size_t bits = parts->arrived ? 0 : gw_bit_words(fragments) * sizeof(uint64_t);
    size_t counts = parts->counts ? 0 : fragments * sizeof(uint16_t);
    if (bits + counts == 0)
        return GW_OK;
    slot->notes = gw_allocator_take(&comm->cfg.allocator, bits + counts);
    if (!slot->notes)
        return GW_ERR_NO_MEMORY;
    if (!parts->arrived)
        parts->arrived = slot->notes;
    if (!parts->counts)
        parts->counts = (uint16_t *)(void *)((unsigned char *)slot->notes + bits);
    return GW_OK;
}

void gw_communicator_end_parts(struct gw_communicator *comm, struct gw_call_slot *slot)
{
    gw_allocator_give(&comm->cfg.allocator, slot->notes);
    slot->notes = NULL;
}

void gw_communicator_note_sums(const struct gw_communicator *comm, struct gw_call_slot *slot)
{
    const struct gw_parts *parts = slot->call.parts;
    uint64_t fragments = parts && parts->arrived ? fragments_of(comm, &slot->call) : 0;
    if (fragments)
        gw_bits_fill(parts->arrived, fragments);
    bool is_counted = comm->stakes[0].values == gw_communicator_fragment(comm, &slot->call);
    for (uint64_t i = 0; i < fragments && !is_counted; i++)
        parts->counts[i] = comm->cfg.world;
}
