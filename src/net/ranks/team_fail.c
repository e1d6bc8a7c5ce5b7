/*
 * How a team fails: what has stalled, the words for it, and telling the other ranks. See
 * team.h.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/error.h"
#include "base/stall.h"
#include "net/ranks/team_impl.h"

/* The words for a failure of the whole job. */
static void describe(struct gw_team *comm, enum gw_job_reason reason, uint32_t about)
{
    double seconds = (double)comm->cfg.stall / GW_S;
    char *text = comm->text;
    if (reason == GW_JOB_STALLED && about == comm->cfg.rank && gw_team_is_cut_off(comm))
        snprintf(text, GW_TEAM_TEXT_MAX, "the switch at %s does not answer", comm->cfg.switch_);
    else if (reason == GW_JOB_LOST)
        snprintf(text, GW_TEAM_TEXT_MAX, "rank %u is lost", about);
    else if (reason == GW_JOB_SILENT && about == 0)
        snprintf(text, GW_TEAM_TEXT_MAX, "no answer from rank 0 at %s for %g s", comm->cfg.join,
                 seconds);
    else if (reason == GW_JOB_SILENT && about == comm->cfg.world)
        snprintf(text, GW_TEAM_TEXT_MAX,
                 "the job did not begin within %g s: not all of its %u ranks have come to %s",
                 seconds, about, comm->cfg.join);
    else if (reason == GW_JOB_SILENT)
        snprintf(text, GW_TEAM_TEXT_MAX,
                 "the job did not begin within %g s: rank %u and perhaps others have not come",
                 seconds, about);
    else if (reason == GW_JOB_STALLED)
        snprintf(text, GW_TEAM_TEXT_MAX, "nothing came from rank %u for %g s", about, seconds);
    else if (reason == GW_JOB_OVERFLOW)
        snprintf(text, GW_TEAM_TEXT_MAX, "a sum of int32 does not fit an int32 (rank %u found it)",
                 about);
    else if (reason == GW_JOB_NOTICE && about == comm->cfg.world)
        snprintf(text, GW_TEAM_TEXT_MAX,
                 "no threshold of at most %u packets follows from the path of the job's bursts",
                 GW_NOTICE_PACKETS_MAX);
    else if (reason == GW_JOB_MISMATCH)
        snprintf(text, GW_TEAM_TEXT_MAX, "rank %u reduces a tensor of another size", about);
    else
        snprintf(text, GW_TEAM_TEXT_MAX, "rank %u: %s", about, gw_job_reason_text(reason));
}

/* Whether we have failed because nothing came, and not because a session has ended. */
static bool is_silence(const struct gw_team *comm, enum gw_job_reason reason, uint32_t about)
{
    return reason == GW_JOB_SILENT || reason == GW_JOB_STALLED ||
           (reason == GW_JOB_LOST && about < comm->cfg.world && comm->ranks[about].is_up);
}

void gw_team_fail(struct gw_team *comm, enum gw_job_reason reason, uint32_t about, gw_time now)
{
    uint32_t flow;
    if (comm->state == GW_TEAM_OVER)
        return;
    comm->state = GW_TEAM_OVER;
    gw_team_drop_calls(comm);
    if (gw_team_is_cut_off(comm) && is_silence(comm, reason, about)) {
        reason = GW_JOB_STALLED; /* whoever was awaited, it is our switch that does not answer */
        about = comm->cfg.rank;
    }
    describe(comm, reason, about);
    gw_team_go_direct(comm);
    comm->failure = (struct gw_team_failure){htonl(reason), htonl(about)};
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++)
        if (comm->ranks[rank].is_up && !(reason == GW_JOB_LOST && rank == about))
            comm->failures_left += gw_team_send(comm, rank, GW_TEAM_TAG_FAILURE, &comm->failure,
                                                sizeof(comm->failure), &flow, now) == GW_OK;
    gw_team_post(comm, &(struct gw_team_event){.kind = GW_TEAM_FAILED, .reason = reason});
}

void gw_team_abort(struct gw_team *comm, gw_time now)
{
    gw_team_fail(comm, GW_JOB_LOST, comm->cfg.rank, now);
}

void gw_team_blame(struct gw_team *comm, uint32_t rank, const char *text, gw_time now)
{
    gw_team_fail(comm, GW_JOB_LOST, rank, now);
    snprintf(comm->text, sizeof(comm->text), "rank %u %s", rank, text);
}

void gw_team_take_failure(struct gw_team *comm, uint32_t rank, gw_time now)
{
    const struct gw_team_failure *said = &comm->ranks[rank].failure;
    uint32_t reason = ntohl(said->reason), about = ntohl(said->about);
    if (reason == GW_JOB_OK || reason >= GW_JOB_REASONS || about > comm->cfg.world)
        gw_team_fail(comm, GW_JOB_LOST, rank, now);
    else
        gw_team_fail(comm, (enum gw_job_reason)reason, about, now);
}

static uint32_t first_missing(const struct gw_team *comm)
{
    uint32_t rank = 0;
    while (rank + 1 < comm->cfg.world && (comm->ranks[rank].is_up || rank == comm->cfg.rank))
        rank++;
    return rank;
}

/* The rank that a message, a push or a pull waits for; `world`: there are none. */
static uint32_t awaited(const struct gw_team *comm)
{
    uint32_t i = 0;
    while (i < GW_TEAM_CALLS_MAX && comm->moves[i].state == GW_TEAM_MOVE_FREE)
        i++;
    return i < GW_TEAM_CALLS_MAX ? comm->moves[i].message.rank : gw_team_store_awaited(comm->store);
}

/* Not all have come, or found ways to each other, in time. */
static void fail_to_begin(struct gw_team *comm, gw_time now)
{
    if (comm->state == GW_TEAM_CONNECTING)
        gw_team_fail(comm, GW_JOB_LOST, first_missing(comm), now);
    else if (comm->cfg.rank != 0 && comm->ranks[0].is_up)
        gw_team_fail(comm, GW_JOB_SILENT, comm->cfg.world, now);
    else
        gw_team_fail(comm, GW_JOB_SILENT, first_missing(comm), now);
}

void gw_team_watch(struct gw_team *comm, gw_time now)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(comm->ep);
    uint64_t arrivals = stats->data_received + stats->acks_received;
    bool has_begun = gw_team_takes_calls(comm);
    if (has_begun && (arrivals != comm->arrivals || !gw_team_has_calls(comm) ||
                      gw_team_store_has_work(comm->store)))
        comm->progress_at = now;
    comm->arrivals = arrivals;
    bool has_stalled = gw_stall_is_over(comm->progress_at, comm->cfg.stall, now);
    if (!has_begun) {
        if (has_stalled)
            fail_to_begin(comm, now);
        return;
    }
    uint32_t rank = gw_team_overdue(comm, now);
    if (rank == comm->cfg.world && has_stalled)
        rank = awaited(comm);
    if (rank < comm->cfg.world && comm->state != GW_TEAM_LEAVING)
        gw_team_fail(comm, GW_JOB_STALLED, rank, now);
}
