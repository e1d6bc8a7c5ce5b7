/*
 * How a job ends for a rank: it fails, and others are told; or all leave. See mesh.h.
 *
 * A failure goes to the registrar, who tells all, and straight to those to whom there is a way: a
 * rank passes on what another rank has told it, and where ways are sessions, what the registrar
 * has. Who cannot be told within the time of a stall finds out by one.
 *
 * Who leaves waits for the others as long as they take, but not for a registrar that cannot be
 * reached: it says BYE again from stall to stall.
 */
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/ranks/mesh_impl.h"

#define RETRY GW_MS /* between attempts when the endpoint has no flow free */

static uint32_t failure_tag(const struct gw_mesh *mesh)
{
    return mesh->cfg.is_bare ? gw_mesh_failure_tag(&mesh->failure) : GW_MESH_TAG_FAILURE;
}

static void post_last(struct gw_mesh *mesh, const struct gw_mesh_event *event)
{
    mesh->state = GW_MESH_OVER;
    mesh->last = *event;
    mesh->has_last_event = true;
}

static void leave_now(struct gw_mesh *mesh)
{
    mesh->owes_bye = false;
    post_last(mesh, &(struct gw_mesh_event){.kind = GW_MESH_EVENT_LEFT});
}

/* Nobody will say that all have left, but what was sent to us shall be acknowledged. */
static void leave_soon(struct gw_mesh *mesh, gw_time now)
{
    if (mesh->has_talked && mesh->cfg.stall)
        mesh->leave_by = gw_stall_at(now, mesh->cfg.stall);
    else
        leave_now(mesh);
}

void gw_mesh_leave(struct gw_mesh *mesh, gw_time now)
{
    if (mesh->state == GW_MESH_OVER || mesh->state == GW_MESH_LEAVING)
        return;
    mesh->state = GW_MESH_LEAVING;
    if (!mesh->has_registrar) {
        leave_soon(mesh, now);
        return;
    }
    if (!mesh->has_talked)
        mesh->leave_by = gw_stall_at(now, mesh->cfg.stall);
    mesh->owes_bye = true;
    gw_mesh_tell_all(mesh, now);
}

void gw_mesh_registrar_down(struct gw_mesh *mesh, gw_time now)
{
    if (!mesh->has_registrar)
        return;
    mesh->has_registrar = false;
    mesh->owes_failure = mesh->owes_bye = false;
    gw_outbox_disown(&mesh->outbox, mesh->cfg.world);
    gw_mesh_await_table_again(mesh);
    if (mesh->state == GW_MESH_LEAVING)
        leave_soon(mesh, now);
}

void gw_mesh_tell_again(struct gw_mesh *mesh, gw_time now)
{
    uint32_t registrar = mesh->cfg.world;
    bool has_failed = mesh->state == GW_MESH_OVER && mesh->last.kind == GW_MESH_EVENT_FAILED;
    if (mesh->state == GW_MESH_LEAVING) {
        mesh->owes_bye = !gw_outbox_has(&mesh->outbox, registrar, GW_MESH_TAG_BYE);
        mesh->leave_by = gw_stall_at(now, mesh->cfg.stall); /* unless it knows all: its table */
    } else if (has_failed && !mesh->knows_failure && gw_deadline_before(now, mesh->tell_until)) {
        mesh->owes_failure = !gw_outbox_has(&mesh->outbox, registrar, failure_tag(mesh));
    }
    gw_mesh_tell_all(mesh, now);
}

void gw_mesh_take_bye(struct gw_mesh *mesh)
{
    if (mesh->state == GW_MESH_LEAVING)
        leave_now(mesh);
}

/*
 * Whom a failure is told straight. Also what the registrar has told us, where ways are sessions: if
 * ours ended before the others have heard of it, they would think that we are lost; those with whom
 * we have one although we have no table yet, too.
 */
static bool is_told(const struct gw_mesh *mesh, uint32_t rank, uint32_t teller)
{
    bool is_lost = mesh->failure.reason == GW_JOB_LOST && rank == mesh->failure.about;
    bool is_due = teller != mesh->cfg.world || !mesh->cfg.has_ways;
    bool is_known = mesh->ranks[rank].is_up && gw_mesh_path_of(mesh, rank)->rate_bps;
    bool is_reached = is_known || gw_mesh_is_reached(mesh, rank);
    return is_due && is_reached && rank != mesh->cfg.rank && rank != teller && !is_lost;
}

void gw_mesh_end(struct gw_mesh *mesh, const struct gw_mesh_failure *failure, uint32_t teller,
                 gw_time now)
{
    if (mesh->state == GW_MESH_OVER)
        return;
    bool by_registrar = teller == mesh->cfg.world;
    mesh->failure = *failure;
    mesh->owes_bye = false;
    mesh->knows_failure = by_registrar;
    mesh->owes_failure = mesh->has_registrar && !by_registrar;
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++) {
        mesh->ranks[rank].is_owed = is_told(mesh, rank, teller);
        mesh->owed += mesh->ranks[rank].is_owed;
    }
    mesh->tell_until = gw_stall_at(now, mesh->cfg.stall);
    gw_mesh_failure_write(failure, mesh->told);
    post_last(mesh, &(struct gw_mesh_event){.kind = GW_MESH_EVENT_FAILED,
                                            .reason = (enum gw_job_reason)failure->reason,
                                            .about = failure->about,
                                            .found_by = failure->found_by});
    gw_mesh_tell_all(mesh, now);
}

void gw_mesh_fail(struct gw_mesh *mesh, enum gw_job_reason reason, uint32_t about, gw_time now)
{
    const struct gw_mesh_failure failure = {
        .reason = reason, .about = about, .found_by = mesh->cfg.rank};
    gw_mesh_end(mesh, &failure, GW_OUTBOX_NOBODY, now);
}

/* Nobody is owed the failure any more. */
static void stop_telling(struct gw_mesh *mesh)
{
    for (uint32_t rank = 0; rank < mesh->cfg.world && mesh->owed; rank++)
        mesh->ranks[rank].is_owed = false;
    mesh->owed = 0;
}

void gw_mesh_owe_nothing(struct gw_mesh *mesh, uint32_t rank)
{
    mesh->owed -= mesh->ranks[rank].is_owed;
    mesh->ranks[rank].is_owed = false;
    gw_outbox_disown(&mesh->outbox, rank);
}

void gw_mesh_take_failure(struct gw_mesh *mesh, uint32_t teller, const struct gw_event *event,
                          gw_time now)
{
    const struct gw_mesh_cfg *cfg = &mesh->cfg;
    struct gw_mesh_failure failure;
    bool by_registrar = teller == cfg->world;
    const uint8_t *heard = by_registrar ? mesh->heard : mesh->ranks[teller].heard;
    bool is_sound = cfg->is_bare ? gw_mesh_failure_of_tag(event->tag, cfg->world, &failure)
                                 : gw_mesh_failure_read(heard, event->bytes, cfg->world, &failure);
    if (by_registrar && cfg->has_ways)
        stop_telling(mesh); /* it does */
    if (is_sound)
        gw_mesh_end(mesh, &failure, teller, now);
    else
        gw_mesh_fail(mesh, GW_JOB_BROKEN, teller, now);
}

void gw_mesh_take_outcome(struct gw_mesh *mesh, const struct gw_outbox_message *message,
                          bool is_there, gw_time now)
{
    if (message->to != mesh->cfg.world)
        return;
    if (!is_there)
        gw_mesh_registrar_down(mesh, now);
    else if (message->tag != GW_MESH_TAG_BYE)
        mesh->knows_failure = true;
    else if (mesh->state == GW_MESH_LEAVING && !mesh->has_talked)
        leave_now(mesh);
    else if (mesh->state == GW_MESH_LEAVING)
        mesh->bye_at = gw_stall_at(now, mesh->cfg.stall);
}

static uint32_t address_of(const struct gw_mesh *mesh, uint32_t rank)
{
    return mesh->has_met ? mesh->addresses[rank] : mesh->ranks[rank].believed;
}

/* Sends FAILURE, or BYE, to a rank or the registrar. False: there is no room. */
static bool tell(struct gw_mesh *mesh, uint32_t to, bool is_bye, gw_time now)
{
    const struct gw_mesh_cfg *cfg = &mesh->cfg;
    bool is_rank = to < cfg->world;
    struct gw_send send = {
        .peer = is_rank ? address_of(mesh, to) : mesh->registrar,
        .bytes = is_bye ? sizeof(mesh->told_bye) : sizeof(mesh->told),
        .data = is_bye ? &mesh->told_bye : mesh->told,
        .tag = is_bye ? GW_MESH_TAG_BYE : failure_tag(mesh),
        .class = GW_CLASS_DATA_MAX, /* everybody waits for it */
        .transport = cfg->transport,
        .path = is_rank ? *gw_mesh_path_of(mesh, to) : mesh->registrar_path,
    };
    if (cfg->is_bare)
        send.data = NULL;
    struct gw_outbox_message message = {.tag = send.tag, .to = to};
    int code = gw_outbox_is_full(&mesh->outbox)
                   ? GW_ERR_NO_ROOM
                   : gw_endpoint_send(cfg->endpoint, &send, &message.flow, now);
    GW_ASSERT(code == GW_OK || code == GW_ERR_NO_ROOM);
    if (code == GW_OK)
        gw_outbox_add(&mesh->outbox, &message);
    return code == GW_OK;
}

void gw_mesh_tell_all(struct gw_mesh *mesh, gw_time now)
{
    uint32_t registrar = mesh->cfg.world;
    if (mesh->owes_bye)
        mesh->owes_bye = !tell(mesh, registrar, true, now);
    if (mesh->owes_failure)
        mesh->owes_failure = !tell(mesh, registrar, false, now);
    bool has_room = !mesh->owes_failure;
    for (uint32_t rank = 0; rank < mesh->cfg.world && mesh->owed && has_room; rank++) {
        struct gw_mesh_rank *other = &mesh->ranks[rank];
        if (!other->is_owed)
            continue;
        has_room = tell(mesh, rank, false, now);
        other->is_owed = !has_room;
        mesh->owed -= has_room;
    }
    bool is_behind = mesh->owes_bye || mesh->owes_failure || mesh->owed;
    mesh->retry_at = is_behind ? gw_time_add(now, RETRY) : GW_TIME_NEVER;
}

void gw_mesh_expire(struct gw_mesh *mesh, gw_time now)
{
    const struct gw_mesh_cfg *cfg = &mesh->cfg;
    if (mesh->state == GW_MESH_MEETING && gw_stall_is_over(mesh->began_at, cfg->stall, now))
        gw_mesh_fail(mesh, GW_JOB_SILENT, cfg->world, now);
    if (mesh->state == GW_MESH_LEAVING && !gw_deadline_before(now, mesh->leave_by))
        leave_now(mesh);
    if (mesh->state == GW_MESH_LEAVING && !gw_deadline_before(now, mesh->bye_at)) {
        mesh->owes_bye = mesh->has_registrar;
        mesh->bye_at = GW_TIME_NEVER;
    }
    if (mesh->state == GW_MESH_OVER && !gw_deadline_before(now, mesh->tell_until)) {
        mesh->owes_failure = false;
        stop_telling(mesh);
    }
    gw_mesh_tell_all(mesh, now);
}
