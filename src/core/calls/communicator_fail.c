/*
 * How a job fails for a communicator: the first failure counts, everything is dropped, and the
 * others are told. And what has stalled without watching itself: messages, pushes and pulls,
 * collectives that wait for a way, and ranks and servers that are waited for at the beginning.
 *
 * Something stalls when the endpoint has received nothing for so long, neither data nor
 * acknowledgements, and there is nothing to do here.
 */
#include "base/stall.h"
#include "core/calls/communicator_impl.h"
#include "core/ranks/mesh_wire.h"

static bool reaches_next(struct gw_communicator *comm, bool wants)
{
    return gw_mesh_reaches(comm->mesh, gw_communicator_next(comm), wants);
}

bool gw_communicator_can_open(struct gw_communicator *comm)
{
    for (uint32_t server = 0; server < comm->cfg.server_count; server++)
        if (!comm->addresses[server])
            return false;
    return comm->has_met && gw_communicator_has_stakes(comm, comm->cfg.via) &&
           (comm->cfg.via != GW_VIA_RING || reaches_next(comm, true));
}

void gw_communicator_drop_all(struct gw_communicator *comm)
{
    gw_communicator_detach_stakes(comm);
    gw_communicator_stop_asking(comm);
    gw_communicator_drop_runs(comm);
    gw_messages_drop(comm->messages);
    gw_store_drop(comm->store);
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++) {
        gw_allocator_give(&comm->cfg.allocator, comm->slots[i].aside);
        comm->slots[i].aside = NULL;
        gw_communicator_end_parts(comm, &comm->slots[i]);
    }
}

void gw_communicator_fail(struct gw_communicator *comm,
                          const struct gw_communicator_failure *failure, gw_time now)
{
    if (comm->state == GW_COMMUNICATOR_OVER)
        return;
    comm->state = GW_COMMUNICATOR_OVER;
    gw_communicator_drop_all(comm);
    gw_mesh_fail(comm->mesh, failure->reason, failure->about, now);
    struct gw_communicator_event event = {
        .kind = GW_COMMUNICATOR_FAILED,
        .reason = failure->reason,
        .about = failure->about,
        .server = failure->server,
    };
    if (failure->message) {
        event.bytes = failure->message->bytes;
        event.room = failure->message->room;
        event.tag = failure->message->tag & GW_MESH_MESSAGE_TAG_MAX;
    }
    gw_communicator_post(comm, &event);
}

void gw_communicator_fail_ranks(struct gw_communicator *comm, enum gw_job_reason reason,
                                uint32_t about, gw_time now)
{
    gw_communicator_fail(comm,
                         &(struct gw_communicator_failure){
                             .reason = reason,
                             .about = about,
                             .server = comm->cfg.server_count,
                         },
                         now);
}

void gw_communicator_abort_as(struct gw_communicator *comm, enum gw_job_reason reason,
                              uint32_t about, gw_time now)
{
    comm->is_touched = true;
    gw_communicator_fail_ranks(comm, reason, about, now);
}

/* Whether others are to do something that nothing else watches. */
static bool waits(const struct gw_communicator *comm)
{
    return comm->state == GW_COMMUNICATOR_OPENING || comm->moves || comm->collectives.queue.count;
}

void gw_communicator_note_progress(struct gw_communicator *comm, gw_time now)
{
    uint64_t arrivals = gw_endpoint_stats(comm->cfg.endpoint)->progress;
    if (arrivals != comm->arrivals || !waits(comm) || gw_store_has_work(comm->store))
        comm->progress_at = now;
    comm->arrivals = arrivals;
}

/* What keeps the job from beginning. What else does, watches itself. */
static void fail_to_open(struct gw_communicator *comm, gw_time now)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    struct gw_communicator_failure failure = {.reason = GW_JOB_SILENT, .about = cfg->world};
    while (failure.server < cfg->server_count && comm->addresses[failure.server])
        failure.server++;
    if (failure.server < cfg->server_count)
        gw_communicator_fail(comm, &failure, now);
    else if (comm->has_met && cfg->via == GW_VIA_RING && !reaches_next(comm, false))
        gw_communicator_fail_ranks(comm, GW_JOB_LOST, gw_communicator_next(comm), now);
}

/* The rank that is waited for; `world`: none. */
static uint32_t awaited(struct gw_communicator *comm)
{
    uint32_t rank = gw_messages_awaited(comm->messages);
    if (rank == comm->cfg.world)
        rank = gw_store_awaited(comm->store);
    return rank < comm->cfg.world ? rank : gw_communicator_unreached(comm);
}

void gw_communicator_watch(struct gw_communicator *comm, gw_time now)
{
    uint32_t world = comm->cfg.world, rank = world;
    gw_communicator_note_progress(comm, now);
    bool has_stalled = gw_stall_is_over(comm->progress_at, comm->cfg.stall, now);
    if (has_stalled)
        comm->progress_at = now; /* what is not found here watches itself */
    if (comm->state == GW_COMMUNICATOR_OPENING && has_stalled)
        fail_to_open(comm, now);
    if (!comm->has_met || comm->state == GW_COMMUNICATOR_OVER)
        return;
    if (comm->moves)
        rank = gw_messages_overdue(comm->messages, now);
    if (rank == world && has_stalled)
        rank = awaited(comm);
    if (rank < world)
        gw_communicator_fail_ranks(comm, GW_JOB_STALLED, rank, now);
}

gw_time gw_communicator_watch_deadline(const struct gw_communicator *comm)
{
    gw_time at = waits(comm) ? gw_stall_at(comm->progress_at, comm->cfg.stall) : GW_TIME_NEVER;
    gw_time overdue = comm->moves ? gw_messages_deadline(comm->messages) : GW_TIME_NEVER;
    return gw_deadline_before(overdue, at) ? overdue : at;
}
