/*
 * Job control on the server's side; see coordinator.h: what comes in, and what time brings. Who has
 * joined is in coordinator_seats.c, how an epoch begins and ends in coordinator_epoch.c.
 */
#include "core/control/coordinator_impl.h"

#include <string.h>

#include "base/arena.h"
#include "base/stall.h"

enum {
    CLOSING_TRIES = 5, /* switches that hear none of them forget the job when it is idle */
    FAST_TRIES = 5,    /* of anything; then each pause is twice the one before, up to */
    PAUSES_MAX = 4,    /* so many times: who does not answer may not exist */
};

/* The one place where what a packet says is looked at before it is used: whether it can come from
 * anybody who keeps to the protocol. What depends on the job is looked at where it is used. */
static bool is_possible(const struct gw_pkt *pkt)
{
    bool is_fresh = pkt->scale & GW_JOB_PATH_FRESH;
    switch ((enum gw_job_op)pkt->agg_flags) {
    case GW_JOB_JOIN:
        return pkt->key != 0 && !(pkt->scale & ~GW_JOB_PATH_FLAGS) &&
               (is_fresh || pkt->epoch != 0) &&
               (pkt->index < GW_WORLD_MAX || pkt->index == GW_RANK_NONE);
    case GW_JOB_READY:
    case GW_JOB_LEAVE:
        return pkt->key != 0 && pkt->epoch != 0;
    case GW_JOB_INSTALLED: /* a switch speaks for itself */
        return pkt->src == pkt->job.word[2] && pkt->seq <= GW_FAN_IN_MAX &&
               pkt->index < GW_JOB_REASONS;
    default:
        return false; /* meant for others */
    }
}

static void take(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    switch (is_possible(pkt) ? (enum gw_job_op)pkt->agg_flags : GW_JOB_OPS) {
    case GW_JOB_JOIN:
        gw_coordinator_join(co, pkt, now);
        break;
    case GW_JOB_READY:
        gw_coordinator_ready(co, pkt, now);
        break;
    case GW_JOB_LEAVE:
        gw_coordinator_leave(co, pkt, now);
        break;
    case GW_JOB_INSTALLED:
        gw_coordinator_installed(co, pkt, now);
        break;
    default:
        co->stats.stray++;
    }
}

static void coordinator_input(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    for (uint32_t i = 0; i < count; i++) {
        take((struct gw_coordinator *)app, pkts[i], now);
        gw_pkt_release(app->pool, pkts[i]);
    }
}

/* Looks for a worker that is silent for too long; true when that ended the epoch. */
static bool find_silent(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct gw_seat *seat = &co->seats[rank];
        if (gw_seat_is_vacant(seat) || !gw_stall_is_over(seat->heard, co->cfg.silence, now))
            continue;
        if (seat->state == GW_SEAT_JOINED && seat->is_fresh) {
            *seat = (struct gw_seat){0}; /* nobody counts on it yet */
            if (co->phase == GW_COORDINATOR_INSTALLING)
                gw_coordinator_gather(co, now);
            continue;
        }
        co->stats.silences++;
        gw_coordinator_dissolve(co, false, GW_JOB_LOST, rank, now);
        return true;
    }
    return false;
}

/* The time until what was not answered is said again. */
static gw_time pause(struct gw_coordinator *co)
{
    uint32_t doublings = co->tries > FAST_TRIES ? co->tries - FAST_TRIES : 0;
    co->tries++;
    return co->cfg.retry << (doublings < PAUSES_MAX ? doublings : PAUSES_MAX);
}

/* Repeats what was not answered; returns the time until the next look. */
static gw_time repeat(struct gw_coordinator *co)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct gw_seat *seat = &co->seats[rank];
        if (seat->state == GW_SEAT_ASKED)
            gw_coordinator_tell(co, seat->address, GW_JOB_REPORT, seat->incarnation, seat->epoch,
                                GW_JOB_OK, 0);
        else if (seat->state == GW_SEAT_IN && !seat->is_ready)
            gw_coordinator_welcome(co, rank);
        if (!gw_seat_is_vacant(seat))
            next = co->cfg.retry;
    }
    if (co->phase == GW_COORDINATOR_CLOSING && co->tries++ < CLOSING_TRIES) {
        for (uint32_t i = 0; i < co->tree.node_count; i++)
            if (co->confirmed[i])
                gw_coordinator_remove(co, i);
        return co->cfg.retry;
    }
    if (co->phase == GW_COORDINATOR_CLOSING)
        co->phase = GW_COORDINATOR_GATHERING;
    if (co->phase == GW_COORDINATOR_INSTALLING || co->phase == GW_COORDINATOR_RUNNING) {
        bool is_settled = co->phase == GW_COORDINATOR_RUNNING;
        for (uint32_t i = 0; i < co->tree.node_count; i++) {
            is_settled &= co->confirmed[i] == co->tree.nodes[i].member_count;
            gw_coordinator_install(co, i);
        }
        for (uint32_t rank = 0; rank < co->cfg.world; rank++)
            is_settled &= co->seats[rank].state != GW_SEAT_IN || co->seats[rank].is_ready;
        if (!is_settled)
            return pause(co);
        co->tries = 0;
        return co->cfg.beat;
    }
    return next;
}

static void coordinator_expire(struct gw_app *app, gw_time now)
{
    struct gw_coordinator *co = (struct gw_coordinator *)app;
    if (find_silent(co, now))
        return;
    gw_time next = repeat(co);
    gw_app_arm(app, next == GW_TIME_NEVER ? next : gw_time_add(now, next));
}

static const struct gw_app_ops coordinator_app_ops = {
    .role = GW_APP_COORDINATOR,
    .input = coordinator_input,
    .expire = coordinator_expire,
};

/* Carves the tables out of the arena, behind the coordinator itself. */
static void coordinator_carve(struct gw_coordinator *co, const struct gw_coordinator_cfg *cfg,
                              struct gw_arena *arena)
{
    size_t switches = (size_t)cfg->world * GW_LEVELS_MAX;
    co->seats = gw_arena_take(arena, cfg->world * sizeof(*co->seats));
    co->ways = gw_arena_take(arena, cfg->world * sizeof(*co->ways));
    co->confirmed = gw_arena_take(arena, switches * sizeof(*co->confirmed));
    co->tree_memory = gw_arena_take(arena, gw_job_tree_size(cfg->world));
}

size_t gw_coordinator_size(const struct gw_coordinator_cfg *cfg)
{
    struct gw_coordinator co;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(co));
    coordinator_carve(&co, cfg, &arena);
    return arena.used;
}

int gw_coordinator_init(struct gw_coordinator **result, void *memory,
                        const struct gw_coordinator_cfg *cfg, struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->world >= 1 && cfg->world <= GW_WORLD_MAX && cfg->incarnation != 0);
    GW_ASSERT(cfg->retry > 0 && cfg->beat > 0 && cfg->silence > cfg->beat);
    struct gw_arena arena = {.base = memory};
    struct gw_coordinator *co = gw_arena_take(&arena, sizeof(*co));
    *co = (struct gw_coordinator){
        .app = {.ops = &coordinator_app_ops,
                .job = cfg->job,
                .sender = {.class = GW_CLASS_CONTROL}},
        .cfg = *cfg,
        /* No packet of an earlier life is taken for one of this. */
        .epoch = (uint16_t)(cfg->incarnation & INT16_MAX),
    };
    coordinator_carve(co, cfg, &arena);
    memset(co->seats, 0, cfg->world * sizeof(*co->seats));
    *result = co;
    return gw_app_attach(&co->app, ep);
}

void gw_coordinator_fini(struct gw_coordinator *co)
{
    gw_app_detach(&co->app);
}

static bool sits(const struct gw_coordinator *co, uint32_t rank, uint32_t address)
{
    return !gw_seat_is_vacant(&co->seats[rank]) && co->seats[rank].address == address;
}

void gw_coordinator_hear(struct gw_coordinator *co, uint32_t rank, uint32_t address, gw_time at)
{
    if (rank < co->cfg.world && sits(co, rank, address) &&
        gw_time_before(co->seats[rank].heard, at))
        co->seats[rank].heard = at;
}

void gw_coordinator_set_notice_path(struct gw_coordinator *co, const struct gw_notice_path *path)
{
    co->cfg.notice_path = *path;
}

enum gw_coordinator_phase gw_coordinator_phase(const struct gw_coordinator *co)
{
    return co->phase;
}

uint16_t gw_coordinator_epoch(const struct gw_coordinator *co)
{
    return co->epoch;
}

const struct gw_coordinator_stats *gw_coordinator_stats(const struct gw_coordinator *co)
{
    return &co->stats;
}
