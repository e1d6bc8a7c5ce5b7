/*
 * The mesh's memory, ways, paths, flows and events. How ranks meet is in mesh_meet.c, how they fail
 * and leave in mesh_end.c; see mesh.h.
 */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/ranks/mesh_impl.h"

uint32_t gw_mesh_flows(uint32_t world)
{
    return world + 2 < GW_OUTBOX_MAX ? world + 2 : GW_OUTBOX_MAX; /* FAILURE to all, and BYE */
}

uint32_t gw_mesh_awaits(uint32_t world)
{
    return world + 2; /* FAILURE of all others and of the registrar, its TABLE and BYE */
}

/* Carves the tables out of the arena. The same code measures and builds. */
static void mesh_carve(struct gw_mesh *mesh, uint16_t world, struct gw_arena *arena)
{
    mesh->table = gw_arena_take(arena, gw_ranks_table_size(world));
    mesh->places = gw_arena_take(arena, world * sizeof(*mesh->places));
    mesh->others = gw_arena_take(arena, world * sizeof(*mesh->others));
    mesh->addresses = gw_arena_take(arena, world * sizeof(*mesh->addresses));
    mesh->ranks = gw_arena_take(arena, world * sizeof(*mesh->ranks));
    mesh->wants = gw_arena_take(arena, world * sizeof(*mesh->wants));
    void *map = gw_arena_take(arena, gw_map_size(world));
    if (arena->base)
        gw_map_init(&mesh->map, map, world);
}

size_t gw_mesh_size(uint16_t world)
{
    struct gw_mesh mesh;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(mesh));
    mesh_carve(&mesh, world, &arena);
    return arena.used;
}

struct gw_mesh *gw_mesh_init(void *memory, const struct gw_mesh_cfg *cfg, gw_time now)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->world <= GW_WORLD_MAX && cfg->rank < cfg->world && cfg->address != 0);
    struct gw_arena arena = {.base = memory};
    struct gw_mesh *mesh = gw_arena_take(&arena, sizeof(*mesh));
    *mesh = (struct gw_mesh){
        .cfg = *cfg,
        .began_at = now,
        .leave_by = GW_TIME_NEVER,
        .bye_at = GW_TIME_NEVER,
        .tell_until = GW_TIME_NEVER,
        .retry_at = GW_TIME_NEVER,
    };
    mesh_carve(mesh, cfg->world, &arena);
    memset(mesh->addresses, 0, cfg->world * sizeof(*mesh->addresses));
    memset(mesh->ranks, 0, cfg->world * sizeof(*mesh->ranks));
    gw_index_queue_init(&mesh->wants_queue, cfg->world);
    return mesh;
}

void gw_mesh_fini(struct gw_mesh *mesh)
{
    gw_endpoint_forget(mesh->cfg.endpoint, mesh, gw_mesh_size(mesh->cfg.world));
}

enum gw_mesh_state gw_mesh_state(const struct gw_mesh *mesh)
{
    return mesh->state;
}

uint32_t gw_mesh_rank_of(const struct gw_mesh *mesh, uint32_t address)
{
    uint32_t rank = mesh->has_met ? gw_map_get(&mesh->map, address) : GW_MAP_NONE;
    return rank == GW_MAP_NONE ? mesh->cfg.world : rank;
}

const struct gw_rank_place *gw_mesh_place(const struct gw_mesh *mesh, uint32_t rank)
{
    return mesh->has_met ? &mesh->places[rank] : NULL;
}

uint32_t gw_mesh_table(const struct gw_mesh *mesh)
{
    return mesh->table_sum;
}

const uint32_t *gw_mesh_addresses(const struct gw_mesh *mesh)
{
    return mesh->addresses;
}

/* Whether a way that comes before the table may lead to the rank. */
static bool is_credible(const struct gw_mesh *mesh, uint32_t rank, uint32_t address)
{
    if (address == 0 || address == mesh->cfg.address)
        return false;
    for (uint32_t i = 0; i < mesh->cfg.world; i++)
        if (i != rank && mesh->ranks[i].is_up && mesh->ranks[i].believed == address)
            return false;
    return true;
}

bool gw_mesh_way_up(struct gw_mesh *mesh, uint32_t rank, uint32_t address, gw_time now)
{
    if (rank >= mesh->cfg.world || rank == mesh->cfg.rank)
        return false;
    if (mesh->has_met ? mesh->addresses[rank] != address : !is_credible(mesh, rank, address))
        return false;
    struct gw_mesh_rank *other = &mesh->ranks[rank];
    other->believed = address;
    other->is_up = true;
    mesh->has_talked = true; /* whoever sees the session end would think that we are lost */
    other->is_wanted = false;
    gw_mesh_tell_all(mesh, now);
    return true;
}

void gw_mesh_way_down(struct gw_mesh *mesh, uint32_t rank, bool is_lost, gw_time now)
{
    mesh->ranks[rank].is_up = false;
    if (is_lost)
        gw_mesh_owe_nothing(mesh, rank);
    if (is_lost && mesh->state == GW_MESH_MET)
        gw_mesh_fail(mesh, GW_JOB_LOST, rank, now);
}

bool gw_mesh_reaches(struct gw_mesh *mesh, uint32_t rank, bool wants)
{
    struct gw_mesh_rank *other = &mesh->ranks[rank];
    if (gw_mesh_is_reached(mesh, rank))
        return true;
    if (!wants || mesh->cfg.has_ways || other->is_up || other->is_wanted || rank == mesh->cfg.rank)
        return false;
    other->is_wanted = true;
    if (!other->is_queued)
        mesh->wants[gw_index_queue_push(&mesh->wants_queue)] = (uint16_t)rank;
    other->is_queued = true;
    return false;
}

void gw_mesh_set_path(struct gw_mesh *mesh, uint32_t rank, const struct gw_path *path)
{
    mesh->ranks[rank].path = *path;
}

struct gw_path gw_mesh_path_all(const struct gw_mesh *mesh)
{
    const struct gw_path *farthest = NULL;
    uint64_t rate = UINT64_MAX;
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++) {
        const struct gw_path *path = gw_mesh_path_of(mesh, rank);
        if (rank == mesh->cfg.rank || !gw_mesh_is_reached(mesh, rank))
            continue;
        if (!farthest || farthest->brtt < path->brtt)
            farthest = path;
        if (path->rate_bps < rate)
            rate = path->rate_bps;
    }
    if (!farthest)
        return mesh->registrar_path;
    struct gw_path all = *farthest;
    if (rate < all.rate_bps) /* in kb/s, so that the product fits 64 bits */
        all.bdp = (uint32_t)(all.bdp * (rate / 1000 + 1) / (all.rate_bps / 1000 + 1));
    all.rate_bps = rate;
    return all;
}

struct gw_notice_terms gw_mesh_notice(const struct gw_mesh *mesh)
{
    return (struct gw_notice_terms){.job = mesh->cfg.job, .units = mesh->notice_units};
}

int gw_mesh_send_part(struct gw_mesh *mesh, uint32_t rank, const struct gw_send *send,
                      uint32_t *flow, gw_time now)
{
    GW_ASSERT(rank != mesh->cfg.rank);
    if (!gw_mesh_reaches(mesh, rank, true))
        return GW_ERR_NO_ROOM;
    struct gw_send own = *send;
    own.peer = mesh->addresses[rank];
    own.path = *gw_mesh_path_of(mesh, rank);
    own.notice = gw_mesh_notice(mesh);
    int code = gw_endpoint_send(mesh->cfg.endpoint, &own, flow, now);
    GW_ASSERT(code == GW_OK || code == GW_ERR_NO_ROOM);
    mesh->has_talked |= code == GW_OK;
    return code;
}

int gw_mesh_send(struct gw_mesh *mesh, uint32_t rank, uint32_t tag, const void *data,
                 uint64_t bytes, uint32_t *flow, gw_time now)
{
    const struct gw_send send = {
        .bytes = bytes,
        .data = data,
        .tag = tag,
        .class = mesh->cfg.class,
        .transport = mesh->cfg.transport,
    };
    return gw_mesh_send_part(mesh, rank, &send, flow, now);
}

int gw_mesh_expect_part(struct gw_mesh *mesh, uint32_t rank, const struct gw_expect *expect)
{
    struct gw_expect own = *expect;
    own.peer = mesh->addresses[rank];
    return gw_endpoint_expect_part(mesh->cfg.endpoint, &own);
}

int gw_mesh_expect(struct gw_mesh *mesh, uint32_t rank, uint32_t tag, void *data, uint64_t bytes)
{
    return gw_endpoint_expect(mesh->cfg.endpoint, mesh->addresses[rank], tag, data, bytes);
}

void gw_mesh_forget(struct gw_mesh *mesh, const void *data, uint64_t bytes)
{
    gw_endpoint_forget(mesh->cfg.endpoint, data, bytes);
}

void gw_mesh_note_message(struct gw_mesh *mesh)
{
    mesh->has_talked = true;
}

/* What the registrar says, or has broken off. */
static bool take_word_of_registrar(struct gw_mesh *mesh, const struct gw_event *event, gw_time now)
{
    bool is_whole = event->kind == GW_EVENT_RECEIVED;
    if (event->tag == GW_MESH_TAG_TABLE) {
        mesh->posted.table = false;
        if (is_whole)
            gw_mesh_take_table(mesh, event->bytes, now);
    } else if (event->tag == GW_MESH_TAG_BYE) {
        mesh->posted.bye = false;
        if (is_whole)
            gw_mesh_take_bye(mesh);
    } else if (event->tag == GW_MESH_TAG_FAILURE || gw_mesh_is_failure_tag(event->tag)) {
        mesh->posted.failure = false;
        if (is_whole)
            gw_mesh_take_failure(mesh, mesh->cfg.world, event, now);
    } else {
        return false;
    }
    if (mesh->state != GW_MESH_OVER)
        gw_mesh_await_registrar(mesh);
    return true;
}

/* An event about a rank, from which or to which something went. */
static bool take_event_of_rank(struct gw_mesh *mesh, uint32_t rank, const struct gw_event *event,
                               gw_time now)
{
    bool is_failure =
        mesh->cfg.is_bare ? gw_mesh_is_failure_tag(event->tag) : event->tag == GW_MESH_TAG_FAILURE;
    if (event->kind == GW_EVENT_FAILED && event->is_refused)
        gw_mesh_fail(mesh, GW_JOB_MISMATCH, mesh->cfg.rank, now);
    else if (event->kind == GW_EVENT_FAILED)
        gw_mesh_fail(mesh, GW_JOB_LOST, rank, now);
    else if (is_failure && event->kind == GW_EVENT_RECEIVED)
        gw_mesh_take_failure(mesh, rank, event, now);
    return event->kind == GW_EVENT_FAILED || is_failure;
}

bool gw_mesh_event(struct gw_mesh *mesh, const struct gw_event *event, gw_time now)
{
    struct gw_outbox_message message;
    uint32_t rank = gw_mesh_rank_of(mesh, event->peer);
    bool is_flow = event->kind <= GW_EVENT_RECEIVED || event->kind == GW_EVENT_FAILED;
    bool is_ours = true;
    if (!is_flow || (event->kind == GW_EVENT_FAILED && event->reason))
        is_ours = false; /* of an application */
    else if (gw_outbox_take(&mesh->outbox, event, &message))
        gw_mesh_take_outcome(mesh, &message, event->kind == GW_EVENT_SENT, now);
    else if (event->peer == mesh->registrar && event->kind != GW_EVENT_SENT &&
             take_word_of_registrar(mesh, event, now))
        is_ours = true;
    else
        is_ours = rank < mesh->cfg.world && take_event_of_rank(mesh, rank, event, now);
    gw_mesh_tell_all(mesh, now);
    return is_ours;
}

bool gw_mesh_poll(struct gw_mesh *mesh, struct gw_mesh_event *event)
{
    if (mesh->has_met_event) {
        mesh->has_met_event = false;
        *event = (struct gw_mesh_event){.kind = GW_MESH_EVENT_MET};
        return true;
    }
    while (mesh->has_met && mesh->state != GW_MESH_OVER && mesh->wants_queue.count) {
        uint32_t rank = mesh->wants[gw_index_queue_pop(&mesh->wants_queue)];
        struct gw_mesh_rank *other = &mesh->ranks[rank];
        other->is_queued = false;
        if (!other->is_wanted)
            continue; /* it has come */
        *event = (struct gw_mesh_event){.kind = GW_MESH_EVENT_WANTS, .rank = rank};
        return true;
    }
    if (!mesh->has_last_event)
        return false;
    mesh->has_last_event = false;
    *event = mesh->last;
    return true;
}

bool gw_mesh_is_busy(const struct gw_mesh *mesh)
{
    return mesh->owes_failure || mesh->owes_bye || mesh->owed || gw_outbox_is_busy(&mesh->outbox);
}

gw_time gw_mesh_deadline(const struct gw_mesh *mesh)
{
    gw_time next = mesh->retry_at;
    gw_time limit = GW_TIME_NEVER;
    if (mesh->state == GW_MESH_MEETING)
        limit = gw_stall_at(mesh->began_at, mesh->cfg.stall);
    else if (mesh->state == GW_MESH_LEAVING)
        limit = gw_deadline_before(mesh->bye_at, mesh->leave_by) ? mesh->bye_at : mesh->leave_by;
    return gw_deadline_before(limit, next) ? limit : next;
}
