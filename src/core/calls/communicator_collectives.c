/*
 * Collectives by flows: what waits for a run and for a way to the next rank, and without payload
 * what comes before its time. See communicator.h, and ranks/coll_run.h for what a run does.
 *
 * Two overlap, so that one has something to send while the other waits. They begin in the order of
 * the calls, and the number of each is in the tags of its messages.
 *
 * Ranks that make different calls at the same turn must not combine what they bring. A message of
 * another length is refused; what lengths do not tell, is in the tags: where they begin depends on
 * kind, type, operation, root and number of segments. Such calls wait for each other in vain, until
 * they have stalled.
 */
#include <string.h>

#include "base/error.h"
#include "base/prng.h"
#include "core/calls/communicator_impl.h"
#include "core/ranks/mesh_wire.h"

enum {
    KEPT_MIN = 64,
    KEPT_MAX = 1 << 20, /* events: more than ranks that keep to the protocol can be ahead */
};

struct gw_coll_run_cfg gw_communicator_run_cfg(const struct gw_communicator_cfg *cfg)
{
    return (struct gw_coll_run_cfg){
        .rank = cfg->rank,
        .world = cfg->world,
        .transport = cfg->transport,
        .path = {.rate_bps = 1}, /* any: the mesh says it before a call begins */
        .class = cfg->class,
        .segment = cfg->segment,
        .flows = cfg->flows,
        .stall = cfg->stall,
        .kernels = cfg->kernels,
    };
}

void gw_communicator_meet(struct gw_communicator *comm, gw_time now)
{
    struct gw_coll_run_cfg cfg = gw_communicator_run_cfg(&comm->cfg);
    cfg.addresses = gw_mesh_addresses(comm->mesh);
    for (uint32_t i = 0; i < GW_COMMUNICATOR_RUNS; i++)
        comm->runs[i].run = gw_coll_run_init(comm->run_memory[i], &cfg, comm->cfg.endpoint);
    uint32_t left = 0;
    for (uint32_t i = 0; i < comm->kept_count; i++) {
        const struct gw_event *event = &comm->kept[i];
        bool is_ours = gw_mesh_rank_of(comm->mesh, event->peer) < comm->cfg.world;
        if (event->tag >= GW_MESH_TAG_MESSAGE)
            gw_messages_event(comm->messages, event, now);
        else if (is_ours)
            comm->kept[left++] = *event;
    }
    comm->kept_count = left;
}

/* What a call is to a run, but for its tag. */
static struct gw_coll_call collective_of(struct gw_communicator *comm, uint32_t number)
{
    static const enum gw_coll_kind kinds[] = {
        [GW_CALL_ALLREDUCE] = GW_COLL_ALLREDUCE,           [GW_CALL_REDUCE] = GW_COLL_REDUCE,
        [GW_CALL_BROADCAST] = GW_COLL_BROADCAST,           [GW_CALL_ALLGATHER] = GW_COLL_ALLGATHER,
        [GW_CALL_REDUCE_SCATTER] = GW_COLL_REDUCE_SCATTER, [GW_CALL_BARRIER] = GW_COLL_ALLREDUCE,
    };
    struct gw_call_slot *slot = &comm->slots[number];
    const struct gw_call *call = &slot->call;
    bool has_root = call->kind == GW_CALL_REDUCE || call->kind == GW_CALL_BROADCAST;
    struct gw_coll_call collective = {
        .coll = gw_coll_for(kinds[call->kind]),
        .tensor = {.in = call->in,
                   .out = call->out,
                   .count = call->count,
                   .type = call->type,
                   .op = call->op},
        .root = has_root ? call->peer : 0,
    };
    struct gw_tensor *tensor = &collective.tensor;
    if (call->kind == GW_CALL_BROADCAST)
        tensor->in = call->out;
    if (call->kind == GW_CALL_BROADCAST || call->kind == GW_CALL_ALLGATHER)
        tensor->op = GW_OP_SUM; /* nothing is combined */
    if (call->kind == GW_CALL_BARRIER) {
        tensor->in = tensor->out = gw_communicator_has_payload(comm) ? &slot->token : NULL;
        tensor->count = 1;
        tensor->type = GW_DTYPE_I32;
        tensor->op = GW_OP_SUM;
    }
    return collective;
}

bool gw_communicator_takes_collective(struct gw_communicator *comm, uint32_t number)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    const struct gw_coll_call call = collective_of(comm, number);
    const struct gw_coll_seat seat = {.rank = cfg->rank, .world = cfg->world};
    return gw_coll_call_is_valid(&call, seat, gw_communicator_has_payload(comm)) &&
           gw_coll_call_tags(&call, cfg->world, cfg->segment, cfg->flows) <=
               UINT64_C(1) << GW_MESH_SEGMENT_BITS;
}

/*
 * The first tag of a collective. Calls that use about as many tags begin apart by a power of two
 * that is no less, so that either all their tags differ or none; a thousand segments that way have
 * 4096 places.
 */
static uint32_t first_tag(const struct gw_communicator *comm, const struct gw_call *call,
                          const struct gw_coll_call *collective, uint32_t number)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    const struct gw_tensor *tensor = &collective->tensor;
    uint64_t tags = gw_coll_call_tags(collective, cfg->world, cfg->segment, cfg->flows);
    uint32_t room = 0;
    while (UINT64_C(1) << room < tags)
        room++;
    uint64_t kind = (uint64_t)collective->root << 24 | (uint64_t)call->kind << 16 |
                    (uint64_t)tensor->type << 8 | tensor->op;
    uint32_t places = UINT32_C(1) << (GW_MESH_SEGMENT_BITS - room);
    uint32_t place = (uint32_t)(gw_mix64(gw_mix64(tags) + kind) % places);
    return number << GW_MESH_SEGMENT_BITS | place << room;
}

/* Hands over what has come for a collective before it began, and forgets it. */
static void hand_over(struct gw_communicator *comm, const struct gw_communicator_run *run,
                      gw_time now)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < comm->kept_count; i++) {
        const struct gw_event *event = &comm->kept[i];
        if (event->tag >> GW_MESH_SEGMENT_BITS == run->number)
            gw_coll_run_event(run->run, event, now);
        else
            comm->kept[left++] = *event;
    }
    comm->kept_count = left;
}

static void begin(struct gw_communicator *comm, struct gw_communicator_run *run, gw_time now)
{
    const struct gw_path path = gw_mesh_path_all(comm->mesh);
    const struct gw_notice_terms notice = gw_mesh_notice(comm->mesh);
    run->slot = comm->collectives.slots[gw_index_queue_pop(&comm->collectives.queue)];
    run->number = comm->collectives_begun++ & GW_MESH_CALL_MASK;
    run->is_running = true;
    struct gw_coll_call call = collective_of(comm, run->slot);
    call.tensor.tag = first_tag(comm, &comm->slots[run->slot].call, &call, run->number);
    gw_coll_run_set_path(run->run, &path);
    gw_coll_run_set_notice(run->run, &notice);
    if (comm->cfg.world > 1)
        gw_mesh_note_message(comm->mesh);
    int error = gw_coll_run_start(run->run, &call, now);
    GW_ASSERT(error == GW_OK); /* it is idle, and takes_collective() has looked at the call */
    hand_over(comm, run, now);
}

/* Takes note of what the run has come to. */
static void look_at(struct gw_communicator *comm, struct gw_communicator_run *run, gw_time now)
{
    struct gw_coll_run_status status = gw_coll_run_status(run->run);
    if (status.state == GW_COLL_RUN_RUNNING)
        return;
    run->is_running = false;
    if (status.state == GW_COLL_RUN_DONE)
        gw_communicator_end(comm, run->slot,
                            &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_DONE});
    else
        gw_communicator_fail_ranks(comm, status.reason, status.about, now);
}

/* Whether a collective can begin, as far as it is not for a run to be free. */
static bool can_begin(struct gw_communicator *comm)
{
    return comm->collectives.queue.count &&
           gw_mesh_reaches(comm->mesh, gw_communicator_next(comm), true);
}

void gw_communicator_advance_runs(struct gw_communicator *comm, gw_time now)
{
    for (uint32_t i = 0; comm->has_met && i < GW_COMMUNICATOR_RUNS; i++) {
        struct gw_communicator_run *run = &comm->runs[i];
        if (run->is_running)
            look_at(comm, run, now);
        while (comm->state != GW_COMMUNICATOR_OVER && !run->is_running && can_begin(comm)) {
            begin(comm, run, now);
            look_at(comm, run, now);
        }
        if (run->is_running) /* if a way has broken, another one is wanted */
            gw_mesh_reaches(comm->mesh, gw_communicator_next(comm), true);
    }
}

/* Makes room for another event, and doubles it. False: there is none. */
static bool grow_kept(struct gw_communicator *comm)
{
    const struct gw_allocator *allocator = &comm->cfg.allocator;
    uint32_t room = comm->kept_room ? 2 * comm->kept_room : KEPT_MIN;
    if (comm->kept_count < comm->kept_room)
        return true;
    struct gw_event *kept =
        room > KEPT_MAX ? NULL : gw_allocator_take(allocator, room * sizeof(*kept));
    if (!kept)
        return false;
    if (comm->kept_count)
        memcpy(kept, comm->kept, comm->kept_count * sizeof(*kept));
    gw_allocator_give(allocator, comm->kept);
    comm->kept = kept;
    comm->kept_room = room;
    return true;
}

/* Nobody sends again what carries no payload: keeps it for a collective that has not begun, or
 * until it is known who sends messages. */
static void keep(struct gw_communicator *comm, const struct gw_event *event, gw_time now)
{
    if (grow_kept(comm))
        comm->kept[comm->kept_count++] = *event;
    else
        gw_communicator_fail_ranks(comm, GW_JOB_LIMIT, comm->cfg.rank, now);
}

bool gw_communicator_runs_event(struct gw_communicator *comm, const struct gw_event *event,
                                gw_time now)
{
    bool is_known = false;
    for (uint32_t i = 0; i < GW_COMMUNICATOR_RUNS; i++)
        if (comm->runs[i].is_running)
            is_known |= gw_coll_run_event(comm->runs[i].run, event, now);
    bool is_collective = event->tag < GW_MESH_TAG_MESSAGE;
    bool is_ours = comm->has_met
                       ? is_collective && gw_mesh_rank_of(comm->mesh, event->peer) < comm->cfg.world
                       : event->tag < GW_MESH_TAG_STORE;
    if (is_known || !is_ours)
        return is_known;
    if (event->kind == GW_EVENT_RECEIVED && !gw_communicator_has_payload(comm))
        keep(comm, event, now);
    return true;
}

gw_time gw_communicator_runs_deadline(const struct gw_communicator *comm)
{
    gw_time at = GW_TIME_NEVER;
    for (uint32_t i = 0; i < GW_COMMUNICATOR_RUNS; i++) {
        const struct gw_communicator_run *run = &comm->runs[i];
        gw_time own = run->is_running ? gw_coll_run_deadline(run->run) : GW_TIME_NEVER;
        at = gw_deadline_before(own, at) ? own : at;
    }
    return at;
}

void gw_communicator_expire_runs(struct gw_communicator *comm, gw_time now)
{
    for (uint32_t i = 0; i < GW_COMMUNICATOR_RUNS; i++)
        if (comm->runs[i].is_running)
            gw_coll_run_expire(comm->runs[i].run, now);
}

void gw_communicator_drop_runs(struct gw_communicator *comm)
{
    for (uint32_t i = 0; i < GW_COMMUNICATOR_RUNS; i++)
        if (comm->runs[i].is_running) {
            gw_coll_run_fini(comm->runs[i].run);
            comm->runs[i].is_running = false;
        }
    gw_allocator_give(&comm->cfg.allocator, comm->kept);
    comm->kept = NULL;
    comm->kept_count = comm->kept_room = 0;
}
