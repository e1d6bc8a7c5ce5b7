/*
 * The communicator's frame: memory, calls and where they go, events, and the way from opening to
 * the end. See communicator.h; how a module of it works is in the other files, see
 * communicator_impl.h.
 */
#include "base/arena.h"
#include "base/error.h"
#include "core/calls/communicator_impl.h"

enum {
    APPS_EACH = 2, /* of a stake: member and worker */
    /* Messages that are complete and still answer, since the last ACK may have been lost: those of
     * other calls, and of other ranks, do not wait until it is sent again. */
    ANSWERED = 1024,
};

static bool cfg_is_valid(const struct gw_communicator_cfg *cfg)
{
    const struct gw_coll_run_cfg run = gw_communicator_run_cfg(cfg);
    const struct gw_coll_run_cfg parts = gw_communicator_parts_cfg(cfg);
    return cfg->world >= 1 && cfg->world <= GW_WORLD_MAX && cfg->rank < cfg->world &&
           cfg->via < GW_VIAS && cfg->server_count >= 1 &&
           cfg->server_count <= GW_COMMUNICATOR_SERVERS_MAX && cfg->notice < GW_NOTICE_OPTIONS &&
           cfg->incarnation != 0 && cfg->retry != 0 && cfg->beat != 0 && cfg->worker.timeout != 0 &&
           cfg->segment >= sizeof(uint64_t) && gw_coll_run_size(&run) != 0 &&
           (!cfg->parts_transport || gw_coll_run_size(&parts) != 0);
}

/* Carves the modules' memory out of the arena, behind the communicator itself. */
static void communicator_carve(struct gw_communicator *comm, const struct gw_communicator_cfg *cfg,
                               struct gw_arena *arena)
{
    comm->mesh = gw_arena_take(arena, gw_mesh_size(cfg->world));
    comm->messages = gw_arena_take(arena, gw_messages_size(GW_COMMUNICATOR_CALLS_MAX));
    comm->store = gw_arena_take(arena, gw_store_size(cfg->world, GW_COMMUNICATOR_CALLS_MAX));
    comm->run_count = gw_communicator_run_count(cfg);
    for (uint32_t i = 0; i < comm->run_count; i++) {
        const struct gw_coll_run_cfg run = gw_communicator_cfg_of(cfg, i);
        comm->runs[i].memory = gw_arena_take(arena, gw_coll_run_size(&run));
    }
    for (uint32_t i = 0; i < 2 * cfg->server_count; i++)
        comm->stakes[i].memory = gw_arena_take(arena, gw_member_size());
}

size_t gw_communicator_size(const struct gw_communicator_cfg *cfg)
{
    if (!cfg_is_valid(cfg))
        return 0;
    struct gw_communicator comm;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(comm));
    communicator_carve(&comm, cfg, &arena);
    return arena.used;
}

void gw_communicator_demand(const struct gw_communicator_cfg *cfg, struct gw_endpoint_cfg *endpoint)
{
    uint32_t limit = GW_COMMUNICATOR_CALLS_MAX, stakes = 2 * cfg->server_count;
    uint32_t awaits = gw_mesh_awaits(cfg->world) + gw_store_awaits(cfg->world, limit) + limit;
    uint32_t flows = gw_mesh_flows(cfg->world) + gw_store_flows(cfg->world, limit) + limit + 1;
    for (uint32_t i = 0; i < gw_communicator_run_count(cfg); i++) {
        const struct gw_coll_run_cfg run = gw_communicator_cfg_of(cfg, i);
        awaits += gw_coll_run_awaits(&run);
        flows += gw_coll_run_sends(&run);
    }
    if (cfg->parts_transport) {
        uint32_t packets = gw_communicator_packets_max(cfg);
        endpoint->blasts_max += awaits > flows ? awaits : flows;
        if (endpoint->blast_packets_max < packets)
            endpoint->blast_packets_max = packets;
    }
    endpoint->tx_flows_max += flows;
    endpoint->rx_flows_max += 2 * awaits + ANSWERED;
    endpoint->expect_max += awaits;
    endpoint->tells_unexpected = true;
    endpoint->apps_max += APPS_EACH * stakes;
    /* A call has a part in each shard of one via; a member has one event at a time. */
    endpoint->app_events_max += limit * cfg->server_count + stakes;
    if (cfg->notice)
        endpoint->announcers_max += stakes + cfg->world;
}

static void init_ranks(struct gw_communicator *comm, gw_time now)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    const struct gw_mesh_cfg mesh = {
        .endpoint = cfg->endpoint,
        .address = cfg->address,
        .job = cfg->job,
        .rank = cfg->rank,
        .world = cfg->world,
        .has_ways = cfg->has_ways,
        .is_bare = !gw_communicator_has_payload(comm),
        .class = cfg->class,
        .transport = cfg->transport,
        .stall = cfg->stall,
    };
    gw_mesh_init(comm->mesh, &mesh, now);
    const struct gw_store_cfg store = {
        .mesh = comm->mesh,
        .rank = cfg->rank,
        .world = cfg->world,
        .limit = GW_COMMUNICATOR_CALLS_MAX,
        .parts_transport = cfg->parts_transport,
        .mtu = cfg->mtu,
        .largest = cfg->largest,
        .kernels = cfg->kernels,
        .allocator = cfg->allocator,
    };
    gw_messages_init(comm->messages, GW_COMMUNICATOR_CALLS_MAX, comm->mesh, cfg->stall);
    gw_messages_set_parts(comm->messages, cfg->parts_transport, cfg->mtu);
    gw_store_init(comm->store, &store);
}

int gw_communicator_init(struct gw_communicator **result, void *memory,
                         const struct gw_communicator_cfg *cfg, gw_time now)
{
    GW_ASSERT(cfg_is_valid(cfg));
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    struct gw_arena arena = {.base = memory};
    struct gw_communicator *comm = gw_arena_take(&arena, sizeof(*comm));
    *comm = (struct gw_communicator){.cfg = *cfg, .progress_at = now, .ask_at = GW_TIME_NEVER};
    communicator_carve(comm, cfg, &arena);
    gw_index_queue_init(&comm->waiting, GW_COMMUNICATOR_EVENTS_MAX);
    gw_index_queue_init(&comm->collectives.queue, GW_COMMUNICATOR_CALLS_MAX);
    for (uint32_t via = 0; via < GW_VIA_RING; via++)
        gw_index_queue_init(&comm->sums[via].queue, GW_COMMUNICATOR_CALLS_MAX);
    int error = gw_communicator_attach_stakes(comm);
    if (error)
        return error;
    init_ranks(comm, now);
    gw_communicator_want_stakes(comm, cfg->via, now);
    *result = comm;
    return GW_OK;
}

void gw_communicator_fini(struct gw_communicator *comm)
{
    gw_communicator_drop_all(comm);
    gw_communicator_free_stakes(comm);
    gw_store_fini(comm->store);
    gw_mesh_fini(comm->mesh);
}

struct gw_mesh *gw_communicator_mesh(struct gw_communicator *comm)
{
    comm->is_touched = true; /* the driver is about to tell it something */
    return comm->mesh;
}

void gw_communicator_set_server(struct gw_communicator *comm, uint32_t server, uint32_t address,
                                const struct gw_path *path, gw_time now)
{
    GW_ASSERT(server < comm->cfg.server_count && address != 0);
    comm->is_touched = true;
    if (comm->state < GW_COMMUNICATOR_LEAVING && comm->addresses[server] != address) {
        comm->addresses[server] = address;
        gw_communicator_move_stakes(comm, server, now);
    }
    comm->is_down[server] = false;
    if (server == 0)
        gw_mesh_set_registrar(comm->mesh, address, path, now);
}

void gw_communicator_server_down(struct gw_communicator *comm, uint32_t server, gw_time now)
{
    GW_ASSERT(server < comm->cfg.server_count);
    comm->is_touched = comm->is_down[server] = true;
    if (server == 0)
        gw_mesh_registrar_down(comm->mesh, now);
}

void gw_communicator_post(struct gw_communicator *comm, const struct gw_communicator_event *event)
{
    GW_ASSERT(!gw_index_queue_is_full(&comm->waiting)); /* there is room for each call's */
    comm->events[gw_index_queue_push(&comm->waiting)] = *event;
}

/* The events of calls name the slot until they are polled. */
void gw_communicator_end(struct gw_communicator *comm, uint32_t number,
                         const struct gw_communicator_event *event)
{
    struct gw_call_slot *slot = &comm->slots[number];
    struct gw_communicator_event end = *event;
    end.call = number;
    gw_allocator_give(&comm->cfg.allocator, slot->aside);
    slot->aside = NULL;
    gw_communicator_end_parts(comm, slot);
    comm->in_work--;
    comm->moves -= gw_call_is_move(&slot->call);
    gw_communicator_post(comm, &end);
}

static int start_message(struct gw_communicator *comm, uint32_t number, gw_time now)
{
    const struct gw_call *call = &comm->slots[number].call;
    bool is_receive = call->kind == GW_CALL_RECEIVE;
    return gw_messages_start(comm->messages,
                             &(struct gw_message){
                                 .call = number,
                                 .rank = call->peer,
                                 .tag = call->tag,
                                 .data = is_receive ? call->out : (void *)(uintptr_t)call->in,
                                 .bytes = call->count,
                                 .is_receive = is_receive,
                                 .parts = call->parts,
                             },
                             now);
}

static int start_store_call(struct gw_communicator *comm, uint32_t number)
{
    const struct gw_call *call = &comm->slots[number].call;
    bool is_pull = call->kind == GW_CALL_PULL;
    return gw_store_start(comm->store,
                          &(struct gw_store_call){
                              .call = number,
                              .key = call->key,
                              .data = is_pull ? call->out : (void *)(uintptr_t)call->in,
                              .shape = {.count = call->count, .type = call->type},
                              .is_pull = is_pull,
                              .parts = call->parts,
                          });
}

static int start_collective(struct gw_communicator *comm, uint32_t number)
{
    if (!gw_communicator_takes_collective(comm, number))
        return GW_ERR_INVALID;
    gw_call_row_push(&comm->collectives, number);
    if (comm->has_met) /* a way takes a while */
        gw_mesh_reaches(comm->mesh, gw_communicator_next(comm), true);
    return GW_OK;
}

static int start_sum(struct gw_communicator *comm, uint32_t number, gw_time now)
{
    struct gw_call_slot *slot = &comm->slots[number];
    const struct gw_call *call = &slot->call;
    if (!gw_via_can(call->via, call)) {
        int error = start_collective(comm, number);
        comm->rerouted += error == GW_OK;
        return error;
    }
    if (call->kind == GW_CALL_REDUCE && call->peer != comm->cfg.rank &&
        gw_communicator_has_payload(comm)) {
        slot->aside =
            gw_allocator_take(&comm->cfg.allocator, call->count * gw_dtype_size(call->type));
        if (!slot->aside)
            return GW_ERR_NO_MEMORY;
    }
    slot->turn = comm->turns++;
    slot->is_by_servers = true;
    gw_communicator_note_sum(comm, slot, now);
    gw_call_row_push(&comm->sums[call->via], number);
    gw_communicator_want_stakes(comm, call->via, now);
    gw_communicator_begin_sums(comm, now);
    return GW_OK;
}

static int start(struct gw_communicator *comm, uint32_t number, gw_time now)
{
    const struct gw_call *call = &comm->slots[number].call;
    switch (call->kind) {
    case GW_CALL_SEND:
    case GW_CALL_RECEIVE:
        return start_message(comm, number, now);
    case GW_CALL_PUSH:
    case GW_CALL_PULL:
        return start_store_call(comm, number);
    default:
        return gw_call_is_sum(call) && call->via != GW_VIA_RING &&
                       !gw_communicator_is_by_parts(call)
                   ? start_sum(comm, number, now)
                   : start_collective(comm, number);
    }
}

int gw_communicator_call(struct gw_communicator *comm, const struct gw_call *call, gw_time now)
{
    if (comm->state >= GW_COMMUNICATOR_LEAVING)
        return GW_ERR_OUT;
    if (comm->busy == GW_COMMUNICATOR_CALLS_MAX)
        return GW_ERR_NO_ROOM;
    uint32_t number = 0;
    while (comm->slots[number].is_busy)
        number++;
    struct gw_call_slot *slot = &comm->slots[number];
    *slot = (struct gw_call_slot){.call = *call, .order = comm->ordered};
    if (call->via == GW_VIA_DEFAULT)
        slot->call.via = comm->cfg.via;
    if (!gw_communicator_takes(comm, &slot->call))
        return GW_ERR_INVALID;
    gw_communicator_note_progress(comm, now);
    int error = call->parts ? gw_communicator_begin_parts(comm, number) : GW_OK;
    error = error ? error : start(comm, number, now);
    if (error) {
        gw_communicator_end_parts(comm, slot);
        return error;
    }
    slot->is_busy = comm->is_touched = true;
    comm->busy++;
    comm->in_work++;
    comm->moves += gw_call_is_move(&slot->call);
    comm->ordered += !gw_call_is_move(&slot->call);
    return GW_OK;
}

bool gw_communicator_event(struct gw_communicator *comm, const struct gw_event *event, gw_time now)
{
    comm->is_touched = true;
    if (event->kind == GW_EVENT_UNEXPECTED) {
        gw_communicator_unexpected(comm, event, now);
        return true;
    }
    if (gw_communicator_stakes_event(comm, event, now))
        return true;
    bool is_known = false;
    if (comm->state != GW_COMMUNICATOR_OVER)
        is_known = gw_communicator_runs_event(comm, event, now) ||
                   gw_messages_event(comm->messages, event, now) ||
                   gw_store_event(comm->store, event, now);
    bool is_failure = event->kind == GW_EVENT_FAILED;
    if (!is_known || is_failure)
        is_known |= gw_mesh_event(comm->mesh, event, now);
    return is_known;
}

/* Takes what messages, pushes and pulls have come to. */
static void poll_moves(struct gw_communicator *comm)
{
    struct gw_message_done message;
    struct gw_store_done value;
    while (gw_messages_poll(comm->messages, &message))
        gw_communicator_end(comm, (uint32_t)message.call,
                            &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_DONE,
                                                            .bytes = message.bytes,
                                                            .missing = message.missing});
    while (gw_store_poll(comm->store, &value)) {
        bool is_done = value.refusal.why == GW_REFUSED_NOT;
        gw_communicator_end(comm, (uint32_t)value.call,
                            &(struct gw_communicator_event){
                                .kind = is_done ? GW_COMMUNICATOR_DONE : GW_COMMUNICATOR_REFUSED,
                                .missing = value.missing,
                                .refusal = value.refusal});
    }
}

/* Goes on from one state to the next. */
static void step(struct gw_communicator *comm)
{
    if (comm->state == GW_COMMUNICATOR_OPENING && gw_communicator_can_open(comm)) {
        comm->state = GW_COMMUNICATOR_RUNNING;
        gw_communicator_post(comm, &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_OPEN});
    } else if (comm->state == GW_COMMUNICATOR_LEAVING && comm->has_left &&
               gw_communicator_are_stakes_gone(comm)) {
        comm->state = GW_COMMUNICATOR_OVER;
        gw_communicator_post(comm, &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_LEFT});
    }
}

/* Starts what waits, ends what has run. */
static void advance(struct gw_communicator *comm, gw_time now)
{
    if (comm->state == GW_COMMUNICATOR_OVER)
        return;
    gw_communicator_tend_stakes(comm, now);
    if (comm->state == GW_COMMUNICATOR_OVER)
        return;
    gw_communicator_begin_sums(comm, now);
    gw_communicator_advance_runs(comm, now);
    if (comm->state == GW_COMMUNICATOR_OVER)
        return;
    if (comm->has_met) {
        if (comm->moves)
            gw_messages_advance(comm->messages, now);
        if (gw_communicator_has_payload(comm))
            gw_store_advance(comm->store, now);
        poll_moves(comm);
    }
    gw_communicator_note_progress(comm, now);
    step(comm);
}

/* Takes an event of the mesh. True: it is one for the driver. */
static bool take_mesh(struct gw_communicator *comm, const struct gw_mesh_event *said,
                      struct gw_communicator_event *event, gw_time now)
{
    if (comm->state == GW_COMMUNICATOR_OVER)
        return false;
    switch (said->kind) {
    case GW_MESH_EVENT_MET:
        comm->has_met = true;
        gw_communicator_meet(comm, now);
        if (gw_communicator_has_payload(comm))
            gw_store_serve(comm->store);
        break;
    case GW_MESH_EVENT_WANTS:
        *event = (struct gw_communicator_event){.kind = GW_COMMUNICATOR_WANTS, .rank = said->rank};
        return true;
    case GW_MESH_EVENT_FAILED:
        gw_communicator_fail_ranks(comm, said->reason, said->about, now);
        break;
    case GW_MESH_EVENT_LEFT:
        comm->has_left = true;
        break;
    }
    return false;
}

/* The next of our own events. */
static bool poll_own(struct gw_communicator *comm, struct gw_communicator_event *event)
{
    if (comm->waiting.count == 0)
        return false;
    *event = comm->events[gw_index_queue_pop(&comm->waiting)];
    if (event->kind != GW_COMMUNICATOR_DONE && event->kind != GW_COMMUNICATOR_REFUSED)
        return true;
    struct gw_call_slot *slot = &comm->slots[event->call];
    slot->is_busy = false;
    comm->busy--;
    event->call = slot->call.number;
    return true;
}

bool gw_communicator_poll(struct gw_communicator *comm, struct gw_communicator_event *event,
                          gw_time now)
{
    struct gw_mesh_event said;
    for (advance(comm, now); gw_mesh_poll(comm->mesh, &said); advance(comm, now))
        if (take_mesh(comm, &said, event, now))
            return true;
    return poll_own(comm, event) || (comm->is_touched = false);
}

bool gw_communicator_has_work(const struct gw_communicator *comm)
{
    return comm->is_touched ||
           (comm->state != GW_COMMUNICATOR_OVER && gw_store_has_work(comm->store));
}

bool gw_communicator_keeps_values(const struct gw_communicator *comm)
{
    return gw_store_keeps_values(comm->store);
}

void gw_communicator_leave(struct gw_communicator *comm, gw_time now)
{
    if (comm->state >= GW_COMMUNICATOR_LEAVING)
        return;
    GW_ASSERT(comm->in_work == 0);
    comm->state = GW_COMMUNICATOR_LEAVING;
    comm->is_touched = true;
    gw_mesh_leave(comm->mesh, now);
}

void gw_communicator_abort(struct gw_communicator *comm, gw_time now)
{
    gw_communicator_abort_as(comm, GW_JOB_LOST, comm->cfg.rank, now);
}

bool gw_communicator_is_busy(const struct gw_communicator *comm)
{
    return gw_mesh_is_busy(comm->mesh);
}

static gw_time earlier(gw_time a, gw_time b)
{
    return gw_deadline_before(a, b) ? a : b;
}

gw_time gw_communicator_deadline(const struct gw_communicator *comm)
{
    gw_time at = gw_mesh_deadline(comm->mesh);
    if (comm->state == GW_COMMUNICATOR_OVER)
        return at;
    at = earlier(at, comm->ask_at);
    return earlier(
        at, earlier(gw_communicator_runs_deadline(comm), gw_communicator_watch_deadline(comm)));
}

void gw_communicator_expire(struct gw_communicator *comm, gw_time now)
{
    comm->is_touched = true;
    gw_mesh_expire(comm->mesh, now);
    if (comm->state == GW_COMMUNICATOR_OVER)
        return;
    gw_communicator_expire_runs(comm, now);
    gw_communicator_ask(comm, now);
    gw_communicator_watch(comm, now);
}

struct gw_communicator_stats gw_communicator_stats(const struct gw_communicator *comm)
{
    struct gw_communicator_stats stats = {.rerouted = comm->rerouted};
    gw_communicator_count_stakes(comm, &stats.sums);
    return stats;
}
