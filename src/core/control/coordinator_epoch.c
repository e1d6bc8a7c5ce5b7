/*
 * The epochs of a job: gathering the workers, the tree and its switches, the beginning and the end.
 * The phases and what moves them on are in coordinator.h.
 */
#include "core/control/coordinator_impl.h"

#include <string.h>

#include "base/error.h"

void gw_coordinator_enter(struct gw_coordinator *co, enum gw_coordinator_phase phase, gw_time now)
{
    co->phase = phase;
    co->tries = 0;
    gw_app_arm(&co->app, gw_time_add(now, co->cfg.retry));
}

void gw_coordinator_gather(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct gw_seat *seat = &co->seats[rank];
        if (seat->state != GW_SEAT_IN)
            continue;
        seat->state = GW_SEAT_ASKED;
        gw_coordinator_tell(co, seat->address, GW_JOB_REPORT, seat->incarnation, seat->epoch,
                            GW_JOB_OK, 0);
    }
    gw_coordinator_enter(co, GW_COORDINATOR_GATHERING, now);
}

void gw_coordinator_dissolve(struct gw_coordinator *co, bool refused, enum gw_job_reason reason,
                             uint32_t about, gw_time now)
{
    co->failed_epoch = co->epoch;
    co->failed_reason = reason;
    co->failed_about = about;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct gw_seat *seat = &co->seats[rank];
        bool is_fresh = seat->state == GW_SEAT_JOINED && seat->is_fresh;
        if (is_fresh && refused)
            gw_coordinator_tell(co, seat->address, GW_JOB_REFUSED, seat->incarnation, 0, reason,
                                about);
        else if (!gw_seat_is_vacant(seat) && !is_fresh)
            gw_coordinator_tell_failed(co, seat->address, seat->incarnation, seat->epoch);
        *seat = (struct gw_seat){0};
    }
    gw_server_stop(co->cfg.server);
    gw_coordinator_enter(co, GW_COORDINATOR_GATHERING, now);
}

/* The tree stands: the epoch begins. */
static void run(struct gw_coordinator *co, gw_time now)
{
    uint32_t first_seq = co->cfg.first_seq;
    bool has_history = false;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct gw_seat *seat = &co->seats[rank];
        if (!seat->is_fresh && (!has_history || (int32_t)(seat->expected - first_seq) < 0))
            first_seq = seat->expected;
        has_history |= !seat->is_fresh;
    }
    if (!has_history)
        gw_server_stop(co->cfg.server); /* nothing of earlier epochs is meant */
    struct gw_server_epoch epoch = {
        .epoch = co->epoch,
        .levels = (uint8_t)co->tree.levels,
        .first_seq = first_seq,
        .is_fresh = !has_history,
        .places = co->tree.places,
    };
    gw_server_begin(co->cfg.server, &epoch);
    co->has_notice_units = true;
    co->stats.epochs++;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct gw_seat *seat = &co->seats[rank];
        if (!seat->is_fresh)
            seat->expected = first_seq;
        else
            seat->expected = has_history && seat->resumes ? co->resume_seq : first_seq;
        seat->state = GW_SEAT_IN;
        seat->is_fresh = seat->resumes = seat->is_ready = false;
        seat->heard = now;
        gw_coordinator_welcome(co, rank);
        seat->epoch = co->epoch;
    }
    gw_coordinator_enter(co, GW_COORDINATOR_RUNNING, now);
}

static void run_when_installed(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t i = 0; i < co->tree.node_count; i++)
        if (co->confirmed[i] != co->tree.nodes[i].member_count)
            return;
    run(co, now);
}

/*
 * The threshold of the job's bursts, if none has begun with one yet; false: there is none. Workers
 * that are in the middle of something have one, so a server that restarts gives the largest then.
 */
static bool settle_notice(struct gw_coordinator *co)
{
    bool has_history = false;
    if (co->has_notice_units)
        return true;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        has_history |= !co->seats[rank].is_fresh;
    return gw_notice_units(co->notice, &co->cfg.notice_path, &co->notice_units) == GW_OK ||
           has_history;
}

/* Everybody has joined: makes the tree and tells the switches. */
static void install_tree(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct gw_seat *seat = &co->seats[rank];
        co->ways[rank] = (struct gw_job_way){.worker = seat->address, .count = seat->path_count};
        memcpy(co->ways[rank].switches, seat->path, sizeof(seat->path));
        bool has_epoch = seat->epoch != 0; /* none is not a newer one, whatever ours is */
        if (has_epoch && (int16_t)(seat->epoch - co->epoch) > 0)
            co->epoch = seat->epoch;
    }
    if (++co->epoch == 0)
        co->epoch++;
    enum gw_job_reason reason =
        gw_job_tree_make(&co->tree, co->tree_memory, co->ways, co->cfg.world, co->cfg.levels);
    if (reason != GW_JOB_OK) {
        gw_coordinator_dissolve(co, true, reason, co->tree.about, now);
        return;
    }
    if (!settle_notice(co)) {
        gw_coordinator_dissolve(co, true, GW_JOB_NOTICE, GW_RANK_NONE, now);
        return;
    }
    gw_coordinator_enter(co, GW_COORDINATOR_INSTALLING, now);
    memset(co->confirmed, 0, co->tree.node_count * sizeof(*co->confirmed));
    for (uint32_t i = 0; i < co->tree.node_count; i++)
        gw_coordinator_install(co, i);
    run_when_installed(co, now);
}

void gw_coordinator_form(struct gw_coordinator *co, gw_time now)
{
    bool has_results = false;
    uint32_t misfit = GW_RANK_NONE;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct gw_seat *seat = &co->seats[rank];
        if (seat->state != GW_SEAT_JOINED)
            return;
        has_results |= !seat->is_fresh && !seat->is_untouched;
        if (seat->is_fresh && (!seat->resumes || co->cfg.agrees_exponents))
            misfit = rank;
    }
    if (has_results && misfit != GW_RANK_NONE)
        gw_coordinator_dissolve(co, false, GW_JOB_LOST, misfit, now);
    else
        install_tree(co, now);
}

void gw_coordinator_installed(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    uint32_t i = 0;
    while (i < co->tree.node_count && co->tree.nodes[i].address != pkt->job.word[2])
        i++;
    if (i == co->tree.node_count || pkt->key != co->cfg.incarnation || pkt->epoch != co->epoch ||
        pkt->seq > co->tree.nodes[i].member_count) {
        co->stats.stray++;
        return;
    }
    if (pkt->index != GW_JOB_OK && co->phase == GW_COORDINATOR_INSTALLING) {
        gw_coordinator_dissolve(co, true, (enum gw_job_reason)pkt->index, pkt->job.word[2], now);
        return;
    }
    co->confirmed[i] = (uint16_t)pkt->seq;
    if (co->phase == GW_COORDINATOR_INSTALLING)
        run_when_installed(co, now);
    else if (co->phase == GW_COORDINATOR_RUNNING && pkt->seq < co->tree.nodes[i].member_count)
        gw_app_arm_by(&co->app, gw_time_add(now, co->cfg.retry));
}

void gw_coordinator_close(struct gw_coordinator *co, gw_time now)
{
    gw_server_stop(co->cfg.server);
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        co->seats[rank] = (struct gw_seat){0};
    gw_coordinator_enter(co, GW_COORDINATOR_CLOSING, now);
    for (uint32_t i = 0; i < co->tree.node_count; i++)
        gw_coordinator_remove(co, i);
}
