/*
 * Sums by servers: what waits for stakes, and how a tensor is divided over them (ATP, sections 2.1
 * and A.5). See communicator.h.
 *
 * All ranks divide alike: by the number of the call among the sums by servers, its size, and the
 * elements per fragment, which are the shard's.
 */
#include "base/error.h"
#include "core/calls/communicator_impl.h"
#include "core/calls/shares.h"

/* What the workers are to sum, as a whole. */
static struct gw_tensor tensor_of(struct gw_communicator *comm, uint32_t number)
{
    struct gw_call_slot *slot = &comm->slots[number];
    const struct gw_call *call = &slot->call;
    struct gw_tensor tensor = {
        .in = call->in,
        .out = slot->aside ? slot->aside : call->out,
        .count = call->count,
        .type = call->type,
        .op = call->op,
        .tag = number,
    };
    if (call->parts) {
        tensor.bound = call->parts->bound;
        tensor.counts = call->parts->counts;
    }
    if (call->kind != GW_CALL_BARRIER)
        return tensor;
    tensor.in = tensor.out = gw_communicator_has_payload(comm) ? &slot->token : NULL;
    tensor.count = 1;
    tensor.type = GW_DTYPE_I32;
    tensor.op = GW_OP_SUM;
    return tensor;
}

/*
 * The share of a stake's server in a sum, in units of so many elements. Shares of one tensor may
 * differ by a unit, so the servers take turns at the larger ones.
 */
static struct gw_share share_of(const struct gw_communicator *comm, const struct gw_call_slot *slot,
                                const struct gw_tensor *tensor, uint32_t index, uint32_t unit)
{
    uint32_t servers = comm->cfg.server_count;
    if (tensor->count > comm->cfg.whole / gw_dtype_size(tensor->type))
        return gw_share_of(tensor->count, unit, (uint32_t)((index + slot->turn) % servers),
                           servers);
    bool is_its = slot->turn % servers == index;
    return (struct gw_share){.count = is_its ? tensor->count : 0};
}

static void *at(const void *memory, uint64_t offset)
{
    return memory ? (unsigned char *)(uintptr_t)memory + offset : NULL;
}

/* Begins the slot's next part, by one of the stakes from `first` on. Returns as gw_worker_reduce().
 */
static int begin_part(struct gw_communicator *comm, const struct gw_stake *first,
                      struct gw_call_slot *slot, gw_time now)
{
    struct gw_tensor tensor = tensor_of(comm, (uint32_t)(slot - comm->slots));
    struct gw_share share = share_of(comm, slot, &tensor, slot->next, first->values);
    uint64_t offset = share.first * gw_dtype_size(tensor.type);
    if (share.count == 0)
        return GW_OK;
    tensor.in = at(tensor.in, offset);
    tensor.out = at(tensor.out, offset);
    tensor.count = share.count;
    if (slot->call.parts && first->values != gw_communicator_fragment(comm, &slot->call)) {
        tensor.bound = 0; /* the job's fragments are not those that the caller knows */
        tensor.counts = NULL;
    } else if (tensor.counts) {
        tensor.counts += share.first / first->values;
    }
    int error = gw_worker_reduce(first[slot->next].worker, &tensor, now);
    slot->parts += error == GW_OK;
    if (comm->cfg.world > 1) /* what we have of its result a server that restarts may want back */
        gw_mesh_note_message(comm->mesh);
    return error;
}

/* Begins the parts of a sum, from the first that has not begun. */
static int begin(struct gw_communicator *comm, enum gw_via via, struct gw_call_slot *slot,
                 gw_time now)
{
    const struct gw_stake *first = &comm->stakes[via == GW_VIA_PS ? comm->cfg.server_count : 0];
    int error = GW_OK;
    for (; slot->next < comm->cfg.server_count && !error; slot->next += !error)
        error = begin_part(comm, first, slot, now);
    if (error == GW_ERR_INVALID)
        gw_communicator_fail(comm,
                             &(struct gw_communicator_failure){
                                 .reason = GW_JOB_LIMIT,
                                 .about = comm->cfg.rank,
                                 .server = slot->next,
                             },
                             now);
    return error;
}

static void begin_row(struct gw_communicator *comm, enum gw_via via, gw_time now)
{
    struct gw_call_row *row = &comm->sums[via];
    if (row->queue.count == 0 || !gw_communicator_has_stakes(comm, via))
        return;
    /* A worker without room for so many fragments is asked again, one that is out says why. */
    while (row->queue.count) {
        struct gw_call_slot *slot = &comm->slots[row->slots[row->queue.head]];
        if (gw_communicator_is_ahead(comm, slot->order) || begin(comm, via, slot, now) != GW_OK)
            break;
        gw_index_queue_pop(&row->queue);
    }
}

void gw_communicator_begin_sums(struct gw_communicator *comm, gw_time now)
{
    begin_row(comm, GW_VIA_INA, now);
    begin_row(comm, GW_VIA_PS, now);
}

void gw_communicator_part_done(struct gw_communicator *comm, uint32_t number)
{
    struct gw_call_slot *slot = &comm->slots[number];
    GW_ASSERT(slot->parts > 0);
    slot->parts--;
    if (slot->parts != 0 || slot->next != comm->cfg.server_count)
        return;
    gw_communicator_note_sums(comm, slot);
    gw_communicator_end(comm, number,
                        &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_DONE});
}
