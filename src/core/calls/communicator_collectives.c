/*
 * Collectives by flows: what waits for a run and for a way to the next rank, and without payload
 * what comes before its time. See communicator.h, and ranks/coll_run.h for what a run does.
 *
 * Two overlap, so that one has something to send while the other waits, and two of those with
 * parts. They begin in the order of the calls, and the low bits of it are in the tags of their
 * messages. Nothing begins so long after a collective that still runs that these could be equal.
 *
 * Ranks that make different calls at the same turn must not combine what they bring. A message of
 * another length is refused; what lengths do not tell, is in the tags: where they begin depends on
 * kind, type, operation, root, number of segments and whether ranks agree on what is missing. Who
 * gets a message of its call's number that has none of its tags knows that the calls differ; and so
 * does who makes a sum by servers then, since sums have numbers too. Of other vias of these ranks
 * ask (communicator_ask.c).
 */
#include <string.h>

#include "base/error.h"
#include "base/prng.h"
#include "core/calls/communicator_impl.h"

enum {
    KEPT_MIN = 64,
    KEPT_MAX = 1 << 20, /* events: more than ranks that keep to the protocol can be ahead */
    /* Calls that may begin after a collective while it runs: half of the numbers in tags, since
     * where it has ended as many more may have begun. */
    AHEAD_MAX = (GW_MESH_CALL_MASK + 1) / 2,
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

/* Segments are whole packets. */
struct gw_coll_run_cfg gw_communicator_parts_cfg(const struct gw_communicator_cfg *cfg)
{
    struct gw_coll_run_cfg parts = gw_communicator_run_cfg(cfg);
    if (!cfg->parts_transport || cfg->mtu == 0)
        return parts;
    uint32_t segment = cfg->parts_segment ? cfg->parts_segment : cfg->segment;
    segment = segment > cfg->mtu ? segment : cfg->mtu;
    parts.parts_transport = cfg->parts_transport;
    parts.mtu = cfg->mtu;
    parts.segment = (segment + 3) & ~UINT32_C(3);
    if (cfg->world > 1 && cfg->world <= GW_COMMUNICATOR_DIRECT_MAX)
        parts.lanes_max = gw_coll_run_lanes(&gw_coll_direct, cfg->rank, cfg->world);
    return parts;
}

uint32_t gw_communicator_run_count(const struct gw_communicator_cfg *cfg)
{
    return (cfg->parts_transport ? 2 : 1) * GW_COMMUNICATOR_RUNS;
}

struct gw_coll_run_cfg gw_communicator_cfg_of(const struct gw_communicator_cfg *cfg, uint32_t run)
{
    return run < GW_COMMUNICATOR_RUNS ? gw_communicator_run_cfg(cfg)
                                      : gw_communicator_parts_cfg(cfg);
}

void gw_communicator_meet(struct gw_communicator *comm, gw_time now)
{
    for (uint32_t i = 0; i < comm->run_count; i++) {
        struct gw_coll_run_cfg cfg = gw_communicator_cfg_of(&comm->cfg, i);
        cfg.addresses = gw_mesh_addresses(comm->mesh);
        comm->runs[i].run = gw_coll_run_init(comm->runs[i].memory, &cfg, comm->cfg.endpoint);
    }
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

/* The schedule of a call. Two ranks exchange what is one message, in one step instead of two; of
 * more each adds up a half, which is less work. */
static const struct gw_coll_ops *schedule_of(const struct gw_communicator *comm,
                                             const struct gw_call *call, enum gw_coll_kind kind)
{
    if (kind != GW_COLL_ALLREDUCE)
        return gw_coll_for(kind);
    if (call->parts)
        return gw_communicator_parts_coll(call);
    bool is_short = call->count <= comm->cfg.segment / gw_dtype_size(call->type);
    return comm->cfg.world == 2 && is_short ? &gw_coll_doubling : gw_coll_for(kind);
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
        .coll = schedule_of(comm, call, kinds[call->kind]),
        .tensor = {.in = call->in,
                   .out = call->out,
                   .count = call->count,
                   .type = call->type,
                   .op = call->op},
        .root = has_root ? call->peer : 0,
        .stride = call->stride,
    };
    struct gw_tensor *tensor = &collective.tensor;
    if (call->parts) {
        collective.parts = call->parts;
        collective.fragment = gw_communicator_fragment(comm, call);
    }
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

static uint64_t tags_of(const struct gw_communicator *comm, const struct gw_coll_call *call)
{
    const struct gw_coll_run_cfg run =
        gw_communicator_cfg_of(&comm->cfg, call->parts ? GW_COMMUNICATOR_RUNS : 0);
    return gw_coll_call_tags(call, run.world, run.segment, run.flows);
}

bool gw_communicator_takes_collective(struct gw_communicator *comm, uint32_t number)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    const struct gw_coll_call call = collective_of(comm, number);
    const struct gw_coll_seat seat = {.rank = cfg->rank, .world = cfg->world};
    return gw_coll_call_is_valid(&call, seat, gw_communicator_has_payload(comm)) &&
           tags_of(comm, &call) <= UINT64_C(1) << GW_MESH_SEGMENT_BITS;
}

/* Whether a message, of the tags of collectives, is of the call of this order. */
static bool is_of_order(const struct gw_event *event, uint64_t order)
{
    return event->tag >> GW_MESH_SEGMENT_BITS == gw_call_number(order);
}

/*
 * The first tag of a collective. Calls that use about as many tags begin apart by a power of two
 * that is no less, so that either all their tags differ or none; a thousand segments that way have
 * 4096 places.
 */
static uint32_t first_tag(const struct gw_communicator *comm, const struct gw_call_slot *slot,
                          const struct gw_coll_call *collective)
{
    const struct gw_tensor *tensor = &collective->tensor;
    uint64_t tags = tags_of(comm, collective);
    uint32_t room = 0;
    while (UINT64_C(1) << room < tags)
        room++;
    bool is_direct = collective->coll == &gw_coll_direct;
    uint64_t kind = (uint64_t)(collective->parts != NULL) << 63 | (uint64_t)is_direct << 62 |
                    (uint64_t)collective->root << 24 | (uint64_t)slot->call.kind << 16 |
                    (uint64_t)tensor->type << 8 | tensor->op;
    uint32_t places = UINT32_C(1) << (GW_MESH_SEGMENT_BITS - room);
    uint32_t place = (uint32_t)(gw_mix64(gw_mix64(tags) + kind) % places);
    return gw_call_number(slot->order) << GW_MESH_SEGMENT_BITS | place << room;
}

/* Hands over what has come for a collective before it began, and forgets it. */
static void hand_over(struct gw_communicator *comm, const struct gw_communicator_run *run,
                      gw_time now)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < comm->kept_count; i++) {
        const struct gw_event *event = &comm->kept[i];
        if (is_of_order(event, run->order))
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
    run->order = comm->slots[run->slot].order;
    run->is_running = true;
    struct gw_coll_call call = collective_of(comm, run->slot);
    call.tensor.tag = first_tag(comm, &comm->slots[run->slot], &call);
    gw_coll_run_set_path(run->run, &path);
    gw_coll_run_set_notice(run->run, &notice);
    run->tag = call.tensor.tag;
    run->tags = tags_of(comm, &call);
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
    bool is_running = status.state == GW_COLL_RUN_RUNNING, was_trailing = run->is_trailing;
    if (is_running && (was_trailing || !gw_coll_run_trails(run->run)))
        return;
    run->is_running = run->is_trailing = is_running;
    if (status.state == GW_COLL_RUN_DONE && was_trailing)
        return;
    if (status.state != GW_COLL_RUN_FAILED)
        gw_communicator_end(comm, run->slot,
                            &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_DONE,
                                                            .missing = status.missing});
    else
        gw_communicator_fail_ranks(comm, status.reason, status.about, now);
}

/* A rank that a collective sends to and that cannot be reached; `world`: none. With parts these are
 * all ranks, if their number allows it: for results, or to agree on them. */
static uint32_t unreached(struct gw_communicator *comm, bool has_parts, bool wants)
{
    uint32_t world = comm->cfg.world, missing = world;
    uint32_t count = has_parts && world <= GW_COMMUNICATOR_DIRECT_MAX ? world : 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = (gw_communicator_next(comm) + i) % world;
        if (!gw_mesh_reaches(comm->mesh, rank, wants) && missing == world)
            missing = rank;
    }
    return missing;
}

/* The next collective; there is one. */
static const struct gw_call_slot *next_of(const struct gw_communicator *comm)
{
    return &comm->slots[comm->collectives.slots[comm->collectives.queue.head]];
}

/* Whether the next collective has parts. */
static bool has_parts(const struct gw_communicator *comm)
{
    return next_of(comm)->call.parts != NULL;
}

bool gw_communicator_is_ahead(const struct gw_communicator *comm, uint64_t order)
{
    bool is_ahead = false;
    for (uint32_t i = 0; i < comm->run_count; i++)
        is_ahead |= comm->runs[i].is_running && order > comm->runs[i].order + AHEAD_MAX;
    return is_ahead;
}

uint32_t gw_communicator_unreached(struct gw_communicator *comm)
{
    return comm->collectives.queue.count ? unreached(comm, has_parts(comm), false)
                                         : comm->cfg.world;
}

/* Whether others may not have ended the last call, so that they would refuse what the next sends.
 */
static bool has_trailing(const struct gw_communicator *comm)
{
    bool is_one = false;
    for (uint32_t i = 0; i < comm->run_count; i++)
        is_one |= comm->runs[i].is_trailing;
    return is_one;
}

/* Whether the run, which is free, can begin the next collective. */
static bool can_begin(struct gw_communicator *comm, const struct gw_communicator_run *run)
{
    bool is_for_parts = run - comm->runs >= GW_COMMUNICATOR_RUNS;
    return comm->collectives.queue.count && has_parts(comm) == is_for_parts &&
           !has_trailing(comm) && !gw_communicator_is_ahead(comm, next_of(comm)->order) &&
           unreached(comm, is_for_parts, true) == comm->cfg.world;
}

void gw_communicator_advance_runs(struct gw_communicator *comm, gw_time now)
{
    bool has_begun = false;
    for (uint32_t i = 0; comm->has_met && i < comm->run_count; i++) {
        struct gw_communicator_run *run = &comm->runs[i];
        if (run->is_running)
            look_at(comm, run, now);
        while (comm->state != GW_COMMUNICATOR_OVER && !run->is_running && can_begin(comm, run)) {
            begin(comm, run, now);
            look_at(comm, run, now);
            has_begun = true;
        }
        if (run->is_running) /* if a way has broken, another one is wanted */
            unreached(comm, i >= GW_COMMUNICATOR_RUNS, true);
    }
    if (has_begun) /* the next one may be for a run that was passed over */
        gw_communicator_advance_runs(comm, now);
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
    for (uint32_t i = 0; i < comm->run_count; i++)
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

/* Whether a message, of the tags of collectives, is of a call that this rank makes otherwise. */
static bool is_of_another(const struct gw_communicator *comm, const struct gw_event *event)
{
    for (uint32_t i = 0; i < comm->run_count; i++) {
        const struct gw_communicator_run *run = &comm->runs[i];
        if (run->is_running && is_of_order(event, run->order))
            return event->room || event->tag - run->tag >= run->tags;
    }
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++) {
        const struct gw_call_slot *slot = &comm->slots[i];
        if (slot->is_busy && slot->is_by_servers && is_of_order(event, slot->order))
            return event->tag != gw_call_question(slot);
    }
    return false;
}

void gw_communicator_unexpected(struct gw_communicator *comm, const struct gw_event *event,
                                gw_time now)
{
    struct gw_communicator_failure failure = {
        .reason = GW_JOB_MISMATCH,
        .about = gw_mesh_rank_of(comm->mesh, event->peer),
        .server = comm->cfg.server_count,
    };
    bool is_message = event->tag - GW_MESH_TAG_MESSAGE <= GW_MESH_MESSAGE_TAG_MAX;
    if (comm->state == GW_COMMUNICATOR_OVER || failure.about == comm->cfg.world)
        return;
    if (is_message && event->room)
        failure.message = event;
    if (failure.message || (event->tag < GW_MESH_TAG_MESSAGE && is_of_another(comm, event)))
        gw_communicator_fail(comm, &failure, now);
}

gw_time gw_communicator_runs_deadline(const struct gw_communicator *comm)
{
    gw_time at = GW_TIME_NEVER;
    for (uint32_t i = 0; i < comm->run_count; i++) {
        const struct gw_communicator_run *run = &comm->runs[i];
        gw_time own = run->is_running ? gw_coll_run_deadline(run->run) : GW_TIME_NEVER;
        at = gw_deadline_before(own, at) ? own : at;
    }
    return at;
}

void gw_communicator_expire_runs(struct gw_communicator *comm, gw_time now)
{
    for (uint32_t i = 0; i < comm->run_count; i++)
        if (comm->runs[i].is_running)
            gw_coll_run_expire(comm->runs[i].run, now);
}

void gw_communicator_drop_runs(struct gw_communicator *comm)
{
    for (uint32_t i = 0; i < comm->run_count; i++)
        if (comm->runs[i].is_running) {
            gw_coll_run_fini(comm->runs[i].run);
            comm->runs[i].is_running = comm->runs[i].is_trailing = false;
        }
    gw_allocator_give(&comm->cfg.allocator, comm->kept);
    comm->kept = NULL;
    comm->kept_count = comm->kept_room = 0;
}
