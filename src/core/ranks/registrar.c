/*
 * The registrar: who has a seat in the job; see registrar.h. What each of them is told is sent by
 * registrar_tell.c.
 *
 * When a job has ended and another is collected, those of the old one keep their seats, as old
 * ones, until somebody comes for the seat or they go: what they are owed still reaches them, and
 * nothing that they say counts.
 *
 * Invariants: while the job runs every seat is taken. `present` counts those who are here and not
 * old, `owing` the seats that are owed something.
 */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/ranks/registrar_impl.h"

uint32_t gw_registrar_flows(uint32_t world)
{
    return 3 * world < GW_OUTBOX_MAX ? 3 * world : GW_OUTBOX_MAX;
}

uint32_t gw_registrar_awaits(uint32_t world)
{
    return 2 * world; /* FAILURE and BYE of each */
}

/* Carves the tables out of the arena. The same code measures and builds. */
static void registrar_carve(struct gw_registrar *registrar, uint16_t world, struct gw_arena *arena)
{
    registrar->places = gw_arena_take(arena, world * sizeof(*registrar->places));
    registrar->seats = gw_arena_take(arena, world * sizeof(*registrar->seats));
    registrar->table = gw_arena_take(arena, gw_ranks_table_size(world));
}

size_t gw_registrar_size(uint16_t world)
{
    struct gw_registrar registrar;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(registrar));
    registrar_carve(&registrar, world, &arena);
    return arena.used;
}

struct gw_registrar *gw_registrar_init(void *memory, const struct gw_registrar_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->world >= 1 && cfg->world <= GW_WORLD_MAX);
    struct gw_arena arena = {.base = memory};
    struct gw_registrar *registrar = gw_arena_take(&arena, sizeof(*registrar));
    *registrar = (struct gw_registrar){.cfg = *cfg};
    registrar_carve(registrar, cfg->world, &arena);
    memset(registrar->places, 0, cfg->world * sizeof(*registrar->places));
    memset(registrar->seats, 0, cfg->world * sizeof(*registrar->seats));
    return registrar;
}

void gw_registrar_fini(struct gw_registrar *registrar)
{
    gw_endpoint_forget(registrar->cfg.endpoint, registrar, gw_registrar_size(registrar->cfg.world));
}

static void forget(const struct gw_registrar *registrar, const void *memory, size_t size)
{
    gw_endpoint_forget(registrar->cfg.endpoint, memory, size);
}

/* The seat of the address; `world`: nobody's. */
static uint32_t seat_of(const struct gw_registrar *registrar, uint32_t address)
{
    uint32_t rank = 0;
    while (rank < registrar->cfg.world && registrar->places[rank].address != address)
        rank++;
    return rank;
}

/* Posts memory for what the rank may say, where there is none. */
static void await(struct gw_registrar *registrar, uint32_t rank)
{
    struct gw_endpoint *ep = registrar->cfg.endpoint;
    struct gw_seat *seat = &registrar->seats[rank];
    uint32_t address = registrar->places[rank].address;
    int code = GW_OK;
    if (!registrar->cfg.is_bare && !seat->awaits_failure)
        code = gw_endpoint_expect(ep, address, GW_MESH_TAG_FAILURE, seat->failure,
                                  sizeof(seat->failure));
    if (!code && !registrar->cfg.is_bare && !seat->awaits_bye)
        code = gw_endpoint_expect(ep, address, GW_MESH_TAG_BYE, &seat->bye, sizeof(seat->bye));
    GW_ASSERT(code == GW_OK); /* by gw_registrar_awaits() */
    seat->awaits_failure = seat->awaits_bye = true;
}

/* Nobody sits here any more. Flows of the table go on, since others read it too. */
static void clear(struct gw_registrar *registrar, uint32_t rank)
{
    struct gw_seat *seat = &registrar->seats[rank];
    gw_registrar_owe(registrar, rank, 0);
    if (!registrar->cfg.is_bare) {
        forget(registrar, seat, sizeof(*seat));
        gw_outbox_forget(&registrar->outbox, rank, GW_MESH_TAG_FAILURE);
        gw_outbox_forget(&registrar->outbox, rank, GW_MESH_TAG_BYE);
    }
    gw_outbox_disown(&registrar->outbox, rank);
    registrar->present -= seat->is_here && !seat->is_old;
    *seat = (struct gw_seat){.is_here = false};
    registrar->places[rank].address = 0;
}

/* The job is over: all that are here are told, in place of what they are owed. */
static void end(struct gw_registrar *registrar, enum gw_owed word, uint32_t except)
{
    registrar->phase = GW_REGISTRAR_ENDED;
    registrar->is_newer = true;
    for (uint32_t rank = 0; rank < registrar->cfg.world; rank++) {
        const struct gw_seat *seat = &registrar->seats[rank];
        if (seat->is_here && !seat->is_old)
            gw_registrar_owe(registrar, rank, rank == except ? 0 : (uint8_t)word);
    }
}

/* The job has failed. Who has told us, or is lost, is not told; `world`: all are. */
static void fail(struct gw_registrar *registrar, const struct gw_mesh_failure *failure,
                 uint32_t except)
{
    if (registrar->phase == GW_REGISTRAR_ENDED)
        return;
    registrar->failure = *failure;
    end(registrar, GW_OWED_FAILURE, except);
}

/* What the registrar itself has found. */
static struct gw_mesh_failure found(const struct gw_registrar *registrar, enum gw_job_reason reason,
                                    uint32_t about)
{
    return (struct gw_mesh_failure){
        .reason = reason, .about = about, .found_by = registrar->cfg.world};
}

/* The registrar has found that a rank is lost, or does not keep to the protocol. */
static void fail_for(struct gw_registrar *registrar, enum gw_job_reason reason, uint32_t rank)
{
    const struct gw_mesh_failure failure = found(registrar, reason, rank);
    fail(registrar, &failure, reason == GW_JOB_LOST ? rank : registrar->cfg.world);
}

static void end_if_all_leave(struct gw_registrar *registrar)
{
    if (registrar->phase != GW_REGISTRAR_RUNNING || registrar->byes != registrar->cfg.world)
        return;
    registrar->failure = (struct gw_mesh_failure){.reason = GW_JOB_OK};
    end(registrar, GW_OWED_BYE, registrar->cfg.world);
}

/* What is known of the paths between ranks. */
static struct gw_notice_path notice_path_of(const struct gw_registrar *registrar)
{
    struct gw_notice_path least = registrar->notice_path;
    for (uint32_t rank = 0; registrar->notice_path.rate_bps == 0 && rank < registrar->cfg.world;
         rank++) {
        const struct gw_path *path = &registrar->seats[rank].path;
        if (least.rtt < path->brtt)
            least.rtt = path->brtt;
        if (least.rate_bps == 0 || least.rate_bps > path->rate_bps)
            least.rate_bps = path->rate_bps;
        least.packet = path->mtu + path->hdr;
    }
    return least;
}

static bool all_live(const struct gw_registrar *registrar, gw_time now)
{
    for (uint32_t rank = 0; rank < registrar->cfg.world; rank++)
        if (gw_stall_is_over(registrar->seats[rank].heard, registrar->cfg.doubt, now))
            return false;
    return true;
}

/* Whether somebody of the present job has the seat. */
static bool is_taken(const struct gw_registrar *registrar, uint32_t rank)
{
    return rank < registrar->cfg.world && registrar->places[rank].address != 0 &&
           !registrar->seats[rank].is_old;
}

/* Whoever has the seat is of a job that has ended. */
static void make_old(struct gw_registrar *registrar, uint32_t rank)
{
    struct gw_seat *seat = &registrar->seats[rank];
    if (!seat->is_here) {
        clear(registrar, rank);
        return;
    }
    registrar->present -= !seat->is_old;
    seat->is_old = true;
}

/* Those who have met, in another table than `table`, are of a job that is over: another process is
 * in place of `lost`. Returns whether there are any. */
static bool dismiss_older(struct gw_registrar *registrar, uint32_t table, uint32_t lost)
{
    bool has_any = false;
    for (uint32_t rank = 0; rank < registrar->cfg.world; rank++) {
        struct gw_seat *seat = &registrar->seats[rank];
        if (!is_taken(registrar, rank) || seat->table == 0 || seat->table == table)
            continue;
        has_any = registrar->is_newer = true;
        registrar->failure = found(registrar, GW_JOB_LOST, lost);
        registrar->byes -= seat->has_said_bye;
        if (seat->is_here)
            gw_registrar_owe(registrar, rank, GW_OWED_FAILURE);
        make_old(registrar, rank);
    }
    return has_any;
}

/* The first rank here that came without a table; `world`: there is none. */
static uint32_t without_table(const struct gw_registrar *registrar)
{
    uint32_t rank = 0;
    while (rank < registrar->cfg.world &&
           (!is_taken(registrar, rank) || registrar->seats[rank].table))
        rank++;
    return rank;
}

/* Begins when all have come: not with one that was killed, and whose successor is on its way. */
static void begin_if_complete(struct gw_registrar *registrar, gw_time now)
{
    const struct gw_registrar_cfg *cfg = &registrar->cfg;
    if (registrar->phase != GW_REGISTRAR_COLLECTING || registrar->present != cfg->world ||
        !all_live(registrar, now))
        return;
    if (dismiss_older(registrar, gw_ranks_table_sum(registrar->places, cfg->world),
                      without_table(registrar)))
        return;
    const struct gw_notice_path path = notice_path_of(registrar);
    uint8_t units;
    if (gw_notice_units(registrar->notice, &path, &units) != GW_OK) {
        fail_for(registrar, GW_JOB_NOTICE, cfg->world);
        return;
    }
    gw_ranks_table_write(registrar->places, cfg->world, units, registrar->table);
    registrar->phase = GW_REGISTRAR_RUNNING;
    registrar->is_newer = true;
    for (uint32_t rank = 0; rank < cfg->world; rank++)
        gw_registrar_owe(registrar, rank, GW_OWED_TABLE);
    end_if_all_leave(registrar);
}

/* The ended job makes room for another. */
static void collect_again(struct gw_registrar *registrar)
{
    for (uint32_t rank = 0; rank < registrar->cfg.world; rank++) {
        if (!registrar->cfg.is_bare)
            gw_outbox_forget(&registrar->outbox, rank, GW_MESH_TAG_TABLE);
        make_old(registrar, rank);
    }
    if (!registrar->cfg.is_bare) {
        gw_outbox_forget(&registrar->outbox, GW_OUTBOX_NOBODY, GW_MESH_TAG_TABLE);
        forget(registrar, registrar->table, gw_ranks_table_size(registrar->cfg.world));
    }
    registrar->phase = GW_REGISTRAR_COLLECTING;
    registrar->byes = 0;
}

/* The same process again: what it has missed, flows repeat; but a table may have gone under with a
 * session, and tells a rank that we know the job. */
static void come_again(struct gw_registrar *registrar, uint32_t rank)
{
    struct gw_seat *seat = &registrar->seats[rank];
    registrar->present += !seat->is_here;
    seat->is_here = true;
    if (registrar->phase == GW_REGISTRAR_RUNNING)
        gw_registrar_owe(registrar, rank, seat->owed | GW_OWED_TABLE);
}

/* Whether it is the process that has the seat. */
static bool is_known(const struct gw_registrar *registrar, const struct gw_registrar_rank *rank)
{
    return is_taken(registrar, rank->rank) &&
           (registrar->seats[rank->rank].is_here || registrar->phase != GW_REGISTRAR_ENDED) &&
           registrar->places[rank->rank].address == rank->place.address;
}

/* Whether it will not be collected with those who have met others elsewhere. */
static bool is_new(const struct gw_registrar_rank *rank)
{
    return !rank->was_seated && rank->table == 0;
}

/* Why a process that we do not know has no seat, or GW_JOB_OK. */
static enum gw_job_reason why_not(const struct gw_registrar *registrar,
                                  const struct gw_registrar_rank *rank)
{
    if (is_taken(registrar, rank->rank) ||
        is_taken(registrar, seat_of(registrar, rank->place.address)))
        return GW_JOB_RANK;
    bool differs = registrar->present && rank->notice != registrar->notice;
    return differs && (!is_new(rank) || without_table(registrar) < registrar->cfg.world)
               ? GW_JOB_NOTICE
               : GW_JOB_OK;
}

/* Takes in a process that we do not know; returns why not, or GW_JOB_OK. */
static enum gw_job_reason take_in(struct gw_registrar *registrar,
                                  const struct gw_registrar_rank *rank)
{
    if (rank->table && registrar->is_newer)
        return GW_JOB_LOST;
    if (registrar->phase == GW_REGISTRAR_ENDED)
        collect_again(registrar);
    enum gw_job_reason reason = why_not(registrar, rank);
    if (reason != GW_JOB_OK)
        return reason;
    if (is_new(rank)) {
        registrar->is_newer = true;
        dismiss_older(registrar, 0, rank->rank);
    }
    uint32_t other = seat_of(registrar, rank->place.address);
    if (other < registrar->cfg.world)
        clear(registrar, other);
    clear(registrar, rank->rank);
    registrar->seats[rank->rank].table = rank->table;
    return GW_JOB_OK;
}

enum gw_job_reason gw_registrar_come(struct gw_registrar *registrar,
                                     const struct gw_registrar_rank *rank, gw_time now)
{
    if (rank->rank >= registrar->cfg.world || rank->place.address == 0)
        return GW_JOB_RANK;
    enum gw_job_reason reason = GW_JOB_OK;
    if (!is_known(registrar, rank))
        reason = take_in(registrar, rank);
    else if (rank->notice != registrar->notice)
        reason = GW_JOB_NOTICE;
    if (reason != GW_JOB_OK)
        return reason;
    struct gw_seat *seat = &registrar->seats[rank->rank];
    registrar->notice = rank->notice;
    registrar->places[rank->rank] = rank->place;
    seat->path = rank->path;
    seat->heard = now;
    come_again(registrar, rank->rank);
    await(registrar, rank->rank);
    begin_if_complete(registrar, now);
    gw_registrar_tell_all(registrar, now);
    return GW_JOB_OK;
}

void gw_registrar_hear(struct gw_registrar *registrar, uint32_t rank, uint32_t address, gw_time at,
                       gw_time now)
{
    if (address == 0 || rank >= registrar->cfg.world || registrar->places[rank].address != address)
        return;
    struct gw_seat *seat = &registrar->seats[rank];
    if (gw_time_before(seat->heard, at))
        seat->heard = at;
    begin_if_complete(registrar, now);
    gw_registrar_tell_all(registrar, now);
}

bool gw_registrar_gone(struct gw_registrar *registrar, uint32_t address, gw_time now)
{
    uint32_t rank = seat_of(registrar, address);
    if (address == 0 || rank == registrar->cfg.world || !registrar->seats[rank].is_here)
        return false;
    struct gw_seat *seat = &registrar->seats[rank];
    bool is_running = registrar->phase == GW_REGISTRAR_RUNNING && !seat->is_old;
    bool is_over = seat->is_old || registrar->phase != GW_REGISTRAR_COLLECTING;
    if (is_running && seat->has_said_bye) {
        gw_registrar_owe(registrar, rank, 0);
        gw_outbox_disown(&registrar->outbox, rank);
        seat->is_here = false;
        registrar->present--;
        return false;
    }
    if (is_running)
        fail_for(registrar, GW_JOB_LOST, rank);
    registrar->byes -= seat->has_said_bye && !seat->is_old;
    clear(registrar, rank);
    gw_registrar_tell_all(registrar, now);
    return is_over;
}

void gw_registrar_set_notice_path(struct gw_registrar *registrar, const struct gw_notice_path *path)
{
    registrar->notice_path = *path;
}

/* A rank of this job has said BYE; it repeats that from time to time. */
static void take_bye(struct gw_registrar *registrar, uint32_t rank)
{
    struct gw_seat *seat = &registrar->seats[rank];
    if (seat->has_said_bye && registrar->phase == GW_REGISTRAR_ENDED)
        gw_registrar_tell_again(registrar, rank);
    registrar->byes += !seat->has_said_bye;
    seat->has_said_bye = true;
    end_if_all_leave(registrar);
}

static void take_failure(struct gw_registrar *registrar, uint32_t rank,
                         const struct gw_event *event)
{
    struct gw_mesh_failure failure;
    const struct gw_registrar_cfg *cfg = &registrar->cfg;
    bool is_sound = cfg->is_bare ? gw_mesh_failure_of_tag(event->tag, cfg->world, &failure)
                                 : gw_mesh_failure_read(registrar->seats[rank].failure,
                                                        event->bytes, cfg->world, &failure);
    if (is_sound)
        fail(registrar, &failure, rank);
    else
        fail_for(registrar, GW_JOB_BROKEN, rank);
}

/* A rank says something, or broke off while it did. It may say it again, by another flow, when its
 * session has ended meanwhile. */
static void take_word(struct gw_registrar *registrar, uint32_t rank, const struct gw_event *event)
{
    struct gw_seat *seat = &registrar->seats[rank];
    bool is_bye = event->tag == GW_MESH_TAG_BYE;
    if (is_bye)
        seat->awaits_bye = false;
    else
        seat->awaits_failure = false;
    if (!seat->is_old && event->kind == GW_EVENT_FAILED)
        fail_for(registrar, GW_JOB_LOST, rank);
    else if (!seat->is_old && is_bye)
        take_bye(registrar, rank);
    else if (!seat->is_old)
        take_failure(registrar, rank, event);
    await(registrar, rank);
}

bool gw_registrar_event(struct gw_registrar *registrar, const struct gw_event *event, gw_time now)
{
    struct gw_outbox_message message;
    bool is_word = event->tag == GW_MESH_TAG_BYE ||
                   (registrar->cfg.is_bare ? gw_mesh_is_failure_tag(event->tag)
                                           : event->tag == GW_MESH_TAG_FAILURE);
    if (event->kind > GW_EVENT_RECEIVED && event->kind != GW_EVENT_FAILED)
        return false;
    uint32_t rank = seat_of(registrar, event->peer);
    bool is_end = gw_outbox_take(&registrar->outbox, event, &message);
    bool is_heard =
        !is_end && is_word && event->kind != GW_EVENT_SENT && rank < registrar->cfg.world;
    if (is_end && event->kind == GW_EVENT_FAILED && message.to != GW_OUTBOX_NOBODY &&
        !registrar->seats[message.to].is_old)
        fail_for(registrar, GW_JOB_LOST, message.to);
    if (is_heard)
        take_word(registrar, rank, event);
    gw_registrar_tell_all(registrar,
                          now); /* there may be room since somebody else's flow has ended */
    return is_end || is_heard;
}

enum gw_registrar_phase gw_registrar_phase(const struct gw_registrar *registrar)
{
    return registrar->phase;
}

uint32_t gw_registrar_present(const struct gw_registrar *registrar)
{
    return registrar->present;
}

bool gw_registrar_is_busy(const struct gw_registrar *registrar)
{
    return registrar->owing || gw_outbox_is_busy(&registrar->outbox);
}
