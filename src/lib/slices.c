/* Slices of a call; see slices.h. */
#include "lib/slices.h"

_Static_assert((int)GW_CALL_ALLREDUCE == 0 && (int)GW_CALL_BARRIER == 5,
               "collectives of tensors first");

uint32_t gw_slices_of(const struct gw_call *call, uint32_t most)
{
    const struct gw_parts *parts = call->parts;
    const bool is_exact = !parts || (call->kind == GW_CALL_ALLREDUCE && parts->bound == 0 &&
                                     parts->bound_pull == 0 && !parts->important);
    const bool may = call->kind < GW_CALL_BARRIER && is_exact;
    const uint64_t full = call->count * gw_dtype_size(call->type) / GW_SLICE_MIN;
    return !may || full < 2 ? 1 : full < most ? (uint32_t)full : most;
}

struct gw_call gw_slice(const struct gw_call *call, uint16_t values, uint32_t slices,
                        uint32_t number)
{
    const uint64_t each = call->count / slices / values * values, first = number * each;
    const uint64_t offset = first * gw_dtype_size(call->type);
    struct gw_call slice = *call;
    if (slices == 1)
        return slice;
    slice.in = (const unsigned char *)call->in + offset;
    slice.out = call->out ? (unsigned char *)call->out + offset : NULL;
    slice.count = number + 1 < slices ? each : call->count - first;
    if (call->kind == GW_CALL_ALLGATHER || call->kind == GW_CALL_REDUCE_SCATTER)
        slice.stride = call->count;
    return slice;
}
