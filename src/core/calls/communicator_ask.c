/*
 * Sums by servers that some ranks make by another via. Each via has shards of its own, so whoever
 * makes it waits for the others in its shard, and no server sees both. Hence who has waited long
 * asks the next rank whether it makes the same call: by a message of the call's number that nobody
 * has memory for, and a tag that says the via. Who makes that call otherwise knows then that they
 * differ, as by messages of collectives (communicator_collectives.c). All others drop it.
 *
 * Ranks may be late for good reasons, so questions are few and short: one at a time, about the
 * first sum that waits. Without payload (simulation) every message arrives, and none is asked.
 */
#include "base/error.h"
#include "core/calls/communicator_impl.h"

enum {
    PATIENCE_SHIFT = 3, /* of the stall, before and between questions, but at most a second */
    ASKING_SHIFT = 6,   /* of the patience, that a question is repeated for: several round trips */
};

static gw_time patience(const struct gw_communicator *comm)
{
    gw_time part = comm->cfg.stall >> PATIENCE_SHIFT;
    return part < GW_S ? part : GW_S;
}

void gw_communicator_note_sum(struct gw_communicator *comm, struct gw_call_slot *slot, gw_time now)
{
    slot->since = now;
    bool can_ask = comm->cfg.stall && comm->cfg.world > 1 && gw_communicator_has_payload(comm);
    if (can_ask && comm->ask_at == GW_TIME_NEVER)
        comm->ask_at = gw_time_add(now, patience(comm));
}

/* The first sum by servers that has no result, or NULL. */
static const struct gw_call_slot *first_waiting(const struct gw_communicator *comm)
{
    const struct gw_call_slot *first = NULL;
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++) {
        const struct gw_call_slot *slot = &comm->slots[i];
        bool has_result = slot->parts == 0 && slot->next == comm->cfg.server_count;
        if (slot->is_busy && slot->is_by_servers && !has_result &&
            (!first || slot->order < first->order))
            first = slot;
    }
    return first;
}

void gw_communicator_stop_asking(struct gw_communicator *comm)
{
    if (comm->is_asking)
        gw_mesh_forget(comm->mesh, &comm->question, sizeof(comm->question));
    comm->is_asking = false;
}

void gw_communicator_ask(struct gw_communicator *comm, gw_time now)
{
    if (comm->ask_at == GW_TIME_NEVER || gw_time_before(now, comm->ask_at))
        return;
    bool was_asking = comm->is_asking;
    uint32_t flow;
    gw_communicator_stop_asking(comm);
    const struct gw_call_slot *slot = first_waiting(comm);
    comm->ask_at = slot ? gw_time_add(now, patience(comm)) : GW_TIME_NEVER;
    if (!slot || was_asking || !comm->has_met)
        return;
    gw_time due = gw_time_add(slot->since, patience(comm));
    if (gw_time_before(now, due)) {
        comm->ask_at = due;
        return;
    }
    comm->is_asking = gw_mesh_send(comm->mesh, gw_communicator_next(comm), gw_call_question(slot),
                                   &comm->question, sizeof(comm->question), &flow, now) == GW_OK;
    if (comm->is_asking)
        comm->ask_at = gw_time_add(now, patience(comm) >> ASKING_SHIFT);
}
