/* Which calls a communicator takes; see communicator.h. */
#include "core/calls/communicator_impl.h"
#include "core/ranks/mesh_wire.h"

bool gw_via_can(enum gw_via via, const struct gw_call *call)
{
    if (!gw_call_is_sum(call))
        return false;
    return via == GW_VIA_RING || call->kind == GW_CALL_BARRIER ||
           gw_op_by_switch(call->op, call->type);
}

/* Whether the call's memory is there, as far as it needs some; or without payload is not. */
static bool has_memory(const struct gw_communicator *comm, const struct gw_call *call)
{
    bool needs_in = true, needs_out = true;
    switch (call->kind) {
    case GW_CALL_REDUCE:
        needs_out = call->peer == comm->cfg.rank;
        break;
    case GW_CALL_BROADCAST:
    case GW_CALL_RECEIVE:
    case GW_CALL_PULL:
        needs_in = false;
        break;
    case GW_CALL_SEND:
    case GW_CALL_PUSH:
        needs_out = false;
        break;
    case GW_CALL_BARRIER:
        needs_in = needs_out = false;
        break;
    default:
        break;
    }
    if (!gw_communicator_has_payload(comm))
        return !call->in && !call->out;
    return (call->in || !needs_in) && (call->out || !needs_out);
}

static bool takes_move(const struct gw_communicator *comm, const struct gw_call *call)
{
    if (call->kind == GW_CALL_SEND || call->kind == GW_CALL_RECEIVE)
        return call->count <= GW_MESH_BYTES_MAX && call->tag <= GW_MESH_MESSAGE_TAG_MAX &&
               call->peer < comm->cfg.world && call->peer != comm->cfg.rank;
    return gw_communicator_has_payload(comm) && call->type < GW_DTYPES &&
           call->count <= GW_MESH_BYTES_MAX / gw_dtype_size(call->type);
}

bool gw_communicator_takes(const struct gw_communicator *comm, const struct gw_call *call)
{
    if (call->kind >= GW_CALL_KINDS || call->via >= GW_VIAS || !has_memory(comm, call))
        return false;
    if (call->parts && !gw_communicator_takes_parts(comm, call))
        return false;
    if (call->kind == GW_CALL_BARRIER)
        return true;
    if (call->count == 0 || call->count > GW_COMMUNICATOR_COUNT_MAX)
        return false;
    const bool is_of_parts =
        call->kind == GW_CALL_ALLGATHER || call->kind == GW_CALL_REDUCE_SCATTER;
    if (call->stride && (call->parts || !is_of_parts || call->stride < call->count ||
                         call->stride > GW_COMMUNICATOR_COUNT_MAX))
        return false;
    if (gw_call_is_move(call))
        return takes_move(comm, call);
    bool has_root = call->kind == GW_CALL_REDUCE || call->kind == GW_CALL_BROADCAST;
    bool has_op = gw_call_is_sum(call) || call->kind == GW_CALL_REDUCE_SCATTER;
    return call->type < GW_DTYPES && (!has_root || call->peer < comm->cfg.world) &&
           (!has_op || gw_op_exists(call->op, call->type));
}
