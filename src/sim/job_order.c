/*
 * What the members of a job agree on: in which order pieces are summed, and which iteration is the
 * last.
 *
 * Where a schedule decides by what is ready and under way, workers may decide differently; those of
 * a sum must not. Then rank 0 decides for all, as the coordinators of Horovod and ByteScheduler do:
 * it says which pieces it hands out, and the others hand out the same ones in the same order, each
 * when its tensors are ready there. Likewise rank 0 finds that the time of the job is over.
 *
 * Rank 0 writes in its own partition; the serial phase publishes. As a trigger does, a decision
 * takes effect one window later, which is as soon as the fastest packet could have told of it.
 *
 * The ring has room for two iterations: rank 0 begins another one only when all sums are back, so
 * when all members have taken all pieces of the one before.
 */
#include <stdlib.h>

#include "sim/calendar.h"
#include "sim/mover.h"
#include "topo/memory.h"

enum {
    ITERATIONS_KEPT = 2,
};

uint32_t gw_sim_pieces_of(const struct gw_job_spec *spec, const struct gw_plan *plan)
{
    const struct gw_train_spec *train = &spec->train;
    struct gw_scheduler_cfg cfg = {
        .ops = train->schedule,
        .cfg = train->schedule_cfg,
        .plan = plan,
        .fusion = train->fusion,
        .cycle = train->cycle,
    };
    struct gw_scheduler *scheduler = gw_scheduler_open(&cfg);
    uint32_t pieces = gw_scheduler_pieces(scheduler);
    gw_scheduler_close(scheduler);
    return pieces;
}

struct gw_scheduler *gw_sim_scheduler_open(const struct gw_sim_job *job)
{
    const struct gw_train_spec *train = &job->spec->train;
    return gw_scheduler_open(&(struct gw_scheduler_cfg){
        .ops = train->schedule,
        .cfg = train->schedule_cfg,
        .plan = job->plan,
        .fusion = train->fusion,
        .credit_when_sent = job->ops->tells_sent,
        .cycle = train->cycle,
    });
}

/* Whether workers that look at their own tensors alone might choose different pieces. */
static bool needs_leader(const struct gw_sim_job *job)
{
    const struct gw_train_spec *train = &job->spec->train;
    if (train->is_asynchronous || job->spec->worker_count == 1)
        return false;
    bool is_fixed = !train->schedule->by_layer || train->schedule->after_backward;
    return train->fusion > 0 || (job->ops->same_order && !is_fixed);
}

void gw_sim_order_open(struct gw_sim_job *job)
{
    struct gw_sim_order *order = &job->order;
    order->limit = order->limit_seen = job->spec->iterations;
    if (!needs_leader(job))
        return;
    /* The workload has bounded the pieces, so that this is far from a wrap. */
    order->room = ITERATIONS_KEPT * job->pieces;
    order->said = gw_memory_zeroed(order->room, sizeof(*order->said));
}

void gw_sim_order_close(struct gw_sim_job *job)
{
    free(job->order.said);
}

void gw_sim_order_say(struct gw_sim_job *job, const struct gw_sim_member *member,
                      const struct gw_piece *piece, gw_time now)
{
    struct gw_sim_order *order = &job->order;
    order->said[order->count++ % order->room] =
        (struct gw_sim_said){.at = now, .backward = member->backward, .piece = *piece};
}

/* The next piece that was published and that the member has not taken; NULL: none. */
static const struct gw_sim_said *ahead_of(const struct gw_sim_order *order,
                                          const struct gw_sim_member *member)
{
    return member->followed < order->published ? &order->said[member->followed % order->room]
                                               : NULL;
}

bool gw_sim_order_next(const struct gw_sim *sim, struct gw_sim_member *member,
                       struct gw_piece *piece, gw_time now)
{
    const struct gw_sim_said *said = ahead_of(&gw_sim_job_of(sim, member)->order, member);
    /* Before its own pass, its scheduler still speaks of the last one's tensors. */
    if (!said || said->at + sim->window > now || said->backward != member->backward ||
        !gw_scheduler_has(member->scheduler, &said->piece))
        return false;
    *piece = said->piece;
    member->followed++;
    return true;
}

gw_time gw_sim_order_deadline(const struct gw_sim *sim, const struct gw_sim_member *member,
                              gw_time now)
{
    const struct gw_sim_said *said = ahead_of(&gw_sim_job_of(sim, member)->order, member);
    return said && said->at + sim->window > now ? said->at + sim->window : GW_TIME_NEVER;
}

bool gw_sim_order_goes_on(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    struct gw_sim_job *job = gw_sim_job_of(sim, member);
    const struct gw_train_spec *train = &job->spec->train;
    struct gw_sim_order *order = &job->order;
    bool is_late = train->end && now >= train->end;
    if (train->is_asynchronous)
        return member->begun < order->limit && !is_late;
    if (member->rank > 0)
        return member->begun < order->limit_seen;
    /* The others may have begun this iteration, and if its first layer awaits no gradients also
     * the next one; nobody can have begun a later one. */
    uint32_t last = member->begun + (job->plan->layers[0].tensor_count ? 1 : 2);
    if (is_late && last < order->limit)
        order->limit = last;
    return member->begun < order->limit;
}

static void publish(struct gw_sim *sim, struct gw_sim_job *job)
{
    struct gw_sim_order *order = &job->order;
    order->limit_seen = order->limit;
    if (order->count == order->published)
        return;
    uint64_t before = order->published;
    gw_time at = order->said[before % order->room].at + sim->window;
    order->published = order->count;
    for (uint32_t rank = 1; rank < job->spec->worker_count; rank++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, job->spec, rank);
        /* Who has earlier pieces to hand out waits for something else. */
        if (member->followed < before || member->outcome != GW_FLOW_PENDING || !member->mover)
            continue;
        if (at < member->wake)
            gw_sim_member_wake(sim, member, at);
        gw_sim_calendar_wake(gw_sim_part_of(sim, member->place), member->place, at);
    }
}

void gw_sim_jobs_agree(struct gw_sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++) {
        struct gw_sim_job *job = &sim->jobs[i];
        if (job->order.count != job->order.published || job->order.limit != job->order.limit_seen)
            publish(sim, job);
    }
}
