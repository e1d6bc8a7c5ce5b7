/* What a call works on; see coll_call.h. */
#include "core/ranks/coll_call.h"

#include <string.h>

#include "base/error.h"
#include "core/ranks/coll_row.h"

enum {
    /* Each worker of a chain waits while the first segments come in, which share the link with
     * those that the same flows carry. Of a vector so many times as large as what the flows of all
     * who wait carry, that is 1.6 % of the time; ... */
    FILLS = 64,
    /* ... unless segments were so short that each costs more than that. */
    SHORT_SEGMENT = 16 << 10, /* bytes */

};

/* Elements of a unit, and units of `count` elements. */
static uint32_t unit_of(const struct gw_coll_call *call)
{
    return call->parts ? call->fragment : 1;
}

static uint64_t units_of(const struct gw_coll_call *call)
{
    uint32_t unit = unit_of(call);
    return call->tensor.count / unit + (call->tensor.count % unit != 0);
}

/* Whether a worker has `count` elements for each rank. */
static bool is_of_parts(enum gw_coll_kind kind)
{
    return kind == GW_COLL_REDUCE_SCATTER || kind == GW_COLL_ALLGATHER;
}

/* Units of the vector. */
static uint64_t vector_of(const struct gw_coll_call *call, uint32_t world)
{
    return units_of(call) * (is_of_parts(call->coll->kind) ? world : 1);
}

uint64_t gw_coll_call_fragments(const struct gw_coll_call *call, uint32_t world)
{
    return units_of(call) * (call->coll->kind == GW_COLL_ALLGATHER ? world : 1);
}

uint64_t gw_coll_call_fragment(const struct gw_coll_call *call, uint32_t rank, uint64_t element)
{
    uint64_t count = call->tensor.count;
    if (call->coll->kind == GW_COLL_REDUCE_SCATTER)
        element -= rank * count;
    return element / count * units_of(call) + element % count / call->fragment;
}

static bool has_in(const struct gw_coll_call *call, uint32_t rank)
{
    return call->coll->kind != GW_COLL_BROADCAST || rank == call->root;
}

static bool has_out(const struct gw_coll_call *call, uint32_t rank)
{
    return call->coll->kind != GW_COLL_REDUCE || rank == call->root;
}

static uint64_t part_size(const struct gw_coll_call *call)
{
    return call->tensor.count * gw_dtype_size(call->tensor.type);
}

static uint64_t stride_of(const struct gw_coll_call *call)
{
    return call->stride ? call->stride : call->tensor.count;
}

/* From one part to the next, bytes. */
static uint64_t stride_size(const struct gw_coll_call *call)
{
    return stride_of(call) * gw_dtype_size(call->tensor.type);
}

/* Bytes from the first of so many parts to the end of the last. */
static uint64_t parts_size(const struct gw_coll_call *call, uint32_t parts)
{
    return (parts - 1) * stride_size(call) + part_size(call);
}

/* Where an element of all parts lies in the larger memory. */
static uint64_t place_of(const struct gw_coll_call *call, uint64_t element)
{
    const uint64_t count = call->tensor.count;
    return call->stride ? element / count * call->stride + element % count : element;
}

uint64_t gw_coll_call_in_size(const struct gw_coll_call *call, struct gw_coll_seat seat)
{
    uint32_t parts = call->coll->kind == GW_COLL_REDUCE_SCATTER ? seat.world : 1;
    return has_in(call, seat.rank) ? parts_size(call, parts) : 0;
}

uint64_t gw_coll_call_out_size(const struct gw_coll_call *call, struct gw_coll_seat seat)
{
    uint32_t parts = call->coll->kind == GW_COLL_ALLGATHER ? seat.world : 1;
    return has_out(call, seat.rank) ? parts_size(call, parts) : 0;
}

const unsigned char *gw_coll_call_in(const struct gw_coll_call *call, uint64_t element)
{
    if (call->coll->kind == GW_COLL_REDUCE_SCATTER)
        element = place_of(call, element);
    return (const unsigned char *)call->tensor.in + element * gw_dtype_size(call->tensor.type);
}

unsigned char *gw_coll_call_out(const struct gw_coll_call *call, uint32_t rank, uint64_t element)
{
    if (call->coll->kind == GW_COLL_REDUCE_SCATTER)
        element -= rank * call->tensor.count;
    else if (call->coll->kind == GW_COLL_ALLGATHER)
        element = place_of(call, element);
    return (unsigned char *)call->tensor.out + element * gw_dtype_size(call->tensor.type);
}

/* Where `in` begins if it is a part of `out` or contains it, as addresses. */
static uintptr_t shared_in(const struct gw_coll_call *call, uint32_t rank)
{
    uintptr_t out = (uintptr_t)call->tensor.out;
    if (call->coll->kind == GW_COLL_ALLGATHER)
        return out + rank * stride_size(call);
    return call->coll->kind == GW_COLL_REDUCE_SCATTER ? out - rank * stride_size(call) : out;
}

static bool memory_is_valid(const struct gw_coll_call *call, struct gw_coll_seat seat)
{
    uint64_t in_size = gw_coll_call_in_size(call, seat);
    uint64_t out_size = gw_coll_call_out_size(call, seat);
    uintptr_t in = (uintptr_t)call->tensor.in, out = (uintptr_t)call->tensor.out;
    if ((in_size && !in) || (out_size && !out))
        return false;
    bool is_apart = in + in_size <= out || out + out_size <= in;
    return is_apart || !in_size || !out_size || in == shared_in(call, seat.rank);
}

bool gw_coll_call_is_valid(const struct gw_coll_call *call, struct gw_coll_seat seat,
                           bool has_payload)
{
    const struct gw_tensor *tensor = &call->tensor;
    bool combines = call->coll->kind != GW_COLL_ALLGATHER && call->coll->kind != GW_COLL_BROADCAST;
    if (call->parts && call->fragment == 0)
        return false;
    if (call->stride &&
        (call->parts || !is_of_parts(call->coll->kind) || call->stride < tensor->count))
        return false;
    if (call->root >= seat.world || (seat.world > 1 && !call->coll->allows(seat.world)))
        return false;
    bool is_and = tensor->op == GW_OP_AND && tensor->type == GW_DTYPE_U8;
    if (tensor->type >= GW_DTYPES ||
        (combines && !is_and && !gw_op_exists(tensor->op, tensor->type)) ||
        stride_of(call) > UINT64_MAX / seat.world / gw_dtype_size(tensor->type))
        return false;
    return has_payload ? memory_is_valid(call, seat) : !tensor->in && !tensor->out;
}

/* Bytes of a segment at the most. */
static uint32_t segment_of(const struct gw_coll_call *call, uint32_t world, uint32_t segment,
                           uint32_t flows)
{
    uint32_t relays = world > 1 && call->coll->relays ? call->coll->relays(world) : 0;
    if (relays == 0 || call->parts) /* short ones have no part that may be missing */
        return segment;
    uint64_t share = part_size(call) / FILLS / flows / relays;
    share = share > SHORT_SEGMENT ? share : SHORT_SEGMENT;
    return share < segment ? (uint32_t)share : segment;
}

/* Elements of a segment, in whole units. */
static uint32_t values_of(const struct gw_coll_call *call, uint32_t world, uint32_t segment,
                          uint32_t flows)
{
    uint32_t values = segment_of(call, world, segment, flows) / gw_dtype_size(call->tensor.type);
    return values - values % unit_of(call);
}

/* Segments of `values` elements in the largest step: equal on all workers, whatever part of it is
 * theirs. */
static uint64_t segments_of(const struct gw_coll_call *call, uint32_t world, uint32_t values)
{
    uint64_t largest = world > 1 ? call->coll->largest(world, vector_of(call, world)) : 0;
    uint32_t units = values / unit_of(call);
    return largest / units + (largest % units != 0);
}

bool gw_coll_call_agrees(const struct gw_coll_call *call, uint32_t world,
                         struct gw_coll_call *agreement)
{
    enum { WORD = 64 }; /* bits */
    const struct gw_parts *parts = call->parts;
    if (!parts || parts->bound_pull == 0 || parts->keeps_own || call->tensor.count == 0 ||
        world == 1 || gw_coll_keeps_own(call->coll->kind))
        return false;
    uint64_t words = (gw_coll_call_fragments(call, world) + WORD - 1) / WORD;
    *agreement = (struct gw_coll_call){
        .coll =
            world <= GW_COLL_AGREEMENT_DIRECT ? &gw_coll_direct : gw_coll_for(GW_COLL_ALLREDUCE),
        .tensor = {.count = words * sizeof(uint64_t), .type = GW_DTYPE_U8, .op = GW_OP_AND},
    };
    return true;
}

static uint64_t own_tags(const struct gw_coll_call *call, uint32_t world, uint32_t segment,
                         uint32_t flows)
{
    uint32_t values = values_of(call, world, segment, flows);
    uint64_t rounds = world > 1 ? call->coll->rounds(world) : 0;
    return values ? rounds * segments_of(call, world, values) : UINT64_MAX;
}

uint64_t gw_coll_call_tags(const struct gw_coll_call *call, uint32_t world, uint32_t segment,
                           uint32_t flows)
{
    struct gw_coll_call agreement;
    uint64_t tags = own_tags(call, world, segment, flows);
    if (tags == UINT64_MAX || !gw_coll_call_agrees(call, world, &agreement))
        return tags;
    return tags + own_tags(&agreement, world, GW_COLL_AGREEMENT_SEGMENT, flows);
}

int gw_coll_call_row(const struct gw_coll_call *call, struct gw_coll_seat seat, uint32_t segment,
                     uint32_t flows, struct gw_coll_row *row)
{
    uint32_t values = values_of(call, seat.world, segment, flows);
    if (gw_coll_call_tags(call, seat.world, segment, flows) > UINT32_MAX)
        return GW_ERR_INVALID;
    uint64_t segments = segments_of(call, seat.world, values);
    const struct gw_coll_ops *coll = call->coll;
    uint32_t steps = seat.world > 1 ? coll->steps(seat.world) : 0;
    *row = (struct gw_coll_row){
        .coll = coll,
        .rank = seat.rank,
        .world = seat.world,
        .root = call->root,
        .steps = steps,
        .units = vector_of(call, seat.world),
        .part_units = units_of(call),
        .part = call->tensor.count,
        .unit = unit_of(call),
        .element_size = gw_dtype_size(call->tensor.type),
        .segment_values = values,
        .segments = (uint32_t)segments,
        .lap = gw_coll_keeps_own(coll->kind) ? GW_COLL_LAP * flows : (uint32_t)segments,
        .stretch = steps,
        .stretches = segments && steps ? 1 : 0,
        .tag = call->tensor.tag,
    };
    if (coll->apart && row->stretches) {
        row->lap = 1;
        row->stretch = coll->apart(seat.world);
        row->stretches = steps / row->stretch;
    }
    return GW_OK;
}

void gw_coll_call_begin(const struct gw_coll_call *call, struct gw_coll_seat seat)
{
    bool is_whole = gw_coll_keeps_own(call->coll->kind);
    if (!has_in(call, seat.rank) || !has_out(call, seat.rank) || (is_whole && seat.world > 1))
        return;
    uint64_t part = call->coll->kind == GW_COLL_ALLGATHER ? seat.rank * call->tensor.count : 0;
    unsigned char *out = gw_coll_call_out(call, seat.rank, part);
    if (call->tensor.count && out != call->tensor.in)
        memcpy(out, call->tensor.in, part_size(call));
}
