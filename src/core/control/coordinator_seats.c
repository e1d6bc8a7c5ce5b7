/*
 * The seats of a job: which worker has which rank, and what is known of it.
 *
 * Invariant: no two seats that are not free have the same address and incarnation, so a worker's
 * packets find its seat. A number alone finds none: whoever has heard it sends in his own name.
 */
#include "core/control/coordinator_impl.h"

#include <string.h>

static struct gw_seat *seat_of(const struct gw_coordinator *co, const struct gw_pkt *pkt)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct gw_seat *seat = &co->seats[rank];
        if (seat->state != GW_SEAT_FREE && seat->address == pkt->src &&
            seat->incarnation == pkt->key)
            return seat;
    }
    return NULL;
}

/*
 * A seat for a worker that has none, or NULL and a reason; GW_JOB_OK: it is too early to tell,
 * because whoever has the seat may be dead.
 */
static struct gw_seat *seat_for(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now,
                                enum gw_job_reason *reason)
{
    uint16_t wanted = pkt->index;
    *reason = GW_JOB_FULL;
    if (wanted == GW_RANK_NONE) {
        for (uint32_t rank = 0; rank < co->cfg.world; rank++)
            if (gw_seat_is_vacant(&co->seats[rank]))
                return &co->seats[rank];
        return NULL;
    }
    *reason = GW_JOB_RANK;
    if (wanted >= co->cfg.world)
        return NULL;
    struct gw_seat *seat = &co->seats[wanted];
    if (gw_seat_is_vacant(seat))
        return seat;
    if (seat->address == pkt->src && (int32_t)(pkt->key - seat->incarnation) > 0) {
        gw_coordinator_dissolve(co, false, GW_JOB_LOST, wanted,
                                now); /* another life on the same host */
        return seat;
    }
    if (!seat->is_claimed) {
        seat->is_claimed = true;
        seat->claimed_at = now;
    }
    if (!gw_time_before(seat->claimed_at, seat->heard))
        *reason = GW_JOB_OK;
    return NULL;
}

static void take_seat(struct gw_seat *seat, const struct gw_pkt *pkt, gw_time now)
{
    uint32_t count = pkt->scale & GW_JOB_PATH_COUNT; /* at most GW_LEVELS_MAX */
    *seat = (struct gw_seat){
        .address = pkt->src,
        .incarnation = pkt->key,
        .expected = pkt->seq,
        .path_count = (uint8_t)count,
        .state = GW_SEAT_JOINED,
        .epoch = pkt->epoch,
        .is_fresh = pkt->scale & GW_JOB_PATH_FRESH,
        .is_untouched = pkt->scale & GW_JOB_PATH_UNTOUCHED,
        .resumes = seat->state == GW_SEAT_LEFT || seat->resumes,
        .heard = now,
    };
    memcpy(seat->path, pkt->job.word, sizeof(seat->path));
}

/*
 * Whether a worker that gets a seat announces bursts as the others do; the first one says how. An
 * option that was the job's before has the threshold that it had.
 */
static bool agrees(struct gw_coordinator *co, const struct gw_pkt *pkt)
{
    uint8_t option = pkt->q.flags >> GW_JOB_OPTION_SHIFT;
    if (option == co->notice)
        return true;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        if (co->seats[rank].state != GW_SEAT_FREE)
            return false;
    co->notice = option;
    co->has_notice_units = false;
    return true;
}

/* A worker without a seat. */
static void join_new(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    enum gw_job_reason reason;
    uint32_t about = pkt->index;
    if (co->cfg.admits && !co->cfg.admits(co->cfg.context, pkt->src))
        return;
    struct gw_seat *seat = seat_for(co, pkt, now, &reason);
    if (seat && !agrees(co, pkt)) {
        reason = GW_JOB_NOTICE;
        about = (uint32_t)(seat - co->seats);
        seat = NULL;
    }
    if (!seat) {
        co->stats.refused += reason != GW_JOB_OK;
        if (reason != GW_JOB_OK)
            gw_coordinator_tell(co, pkt->src, GW_JOB_REFUSED, pkt->key, pkt->epoch, reason, about);
        return;
    }
    take_seat(seat, pkt, now);
    if (co->phase == GW_COORDINATOR_CLOSING)
        gw_coordinator_enter(co, GW_COORDINATOR_GATHERING, now);
    else if (co->phase == GW_COORDINATOR_GATHERING)
        gw_app_arm_by(&co->app, gw_time_add(now, co->cfg.retry));
    else
        gw_coordinator_gather(co, now); /* it replaces one that left */
    gw_coordinator_form(co, now);
}

void gw_coordinator_join(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    bool is_fresh = pkt->scale & GW_JOB_PATH_FRESH;
    struct gw_seat *seat = seat_of(co, pkt);
    if (seat && seat->state == GW_SEAT_LEFT)
        return; /* late */
    if (!seat && !is_fresh && pkt->epoch == co->failed_epoch) {
        gw_coordinator_tell_failed(co, pkt->src, pkt->key, pkt->epoch);
    } else if (!seat) {
        join_new(co, pkt, now);
    } else if (seat->state == GW_SEAT_IN && pkt->epoch == co->epoch) {
        gw_coordinator_gather(co, now); /* it has left the epoch, however that came about */
        take_seat(seat, pkt, now);
        gw_coordinator_form(co, now);
    } else if (seat->state == GW_SEAT_IN) {
        seat->heard = now;
        gw_coordinator_welcome(co, (uint32_t)(seat - co->seats)); /* the first one was lost */
    } else if (seat->state == GW_SEAT_ASKED || co->phase == GW_COORDINATOR_GATHERING) {
        take_seat(seat, pkt, now);
        gw_coordinator_form(co, now);
    } else {
        seat->heard = now;
    }
}

void gw_coordinator_ready(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_seat *seat = seat_of(co, pkt);
    if (!seat && pkt->epoch == co->failed_epoch) {
        gw_coordinator_tell_failed(co, pkt->src, pkt->key, pkt->epoch);
    } else if (!seat) {
        gw_coordinator_tell(co, pkt->src, GW_JOB_REPORT, pkt->key, pkt->epoch, GW_JOB_OK, 0);
    } else {
        seat->heard = now;
        if (seat->state == GW_SEAT_IN && pkt->epoch == co->epoch)
            seat->is_ready = true;
    }
}

void gw_coordinator_leave(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_seat *seat = seat_of(co, pkt);
    gw_coordinator_tell(co, pkt->src, GW_JOB_LEFT, pkt->key, pkt->epoch, GW_JOB_OK, 0);
    if (!seat || seat->state == GW_SEAT_LEFT)
        return;
    seat->state = GW_SEAT_LEFT;
    co->resume_seq = pkt->seq;
    uint32_t here = 0;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        here += !gw_seat_is_vacant(&co->seats[rank]);
    if (here == 0)
        gw_coordinator_close(co, now);
}
