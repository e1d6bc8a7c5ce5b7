/*
 * What a member of a training job does: computes layer by layer, hands pieces of gradients to the
 * mover, waits for parameters, and begins the next iteration.
 *
 * Rules. Forward from the first layer to the last: a layer begins when the one before has ended and
 * the scheduler says that its parameters are back. Backward from the last to the first: a layer's
 * tensors are ready when it ends. An iteration is over when all its sums are back, which is before
 * the next backward pass begins, since that comes after a forward pass through all layers. What
 * takes no time happens at once, so that a plan without computation sums tensors one after the
 * other without an event in between.
 *
 * Whoever changes what a member may do calls gw_sim_train_advance(), which does all that can be
 * done at that time; calls from inside it return at once, and it looks again.
 */
#include <stdlib.h>

#include "sim/calendar.h"
#include "sim/mover.h"
#include "sim/timeline.h"
#include "topo/memory.h"

enum {
    COMPUTE_STREAM = 0x7a1, /* of random numbers: jitter of computation */
};

static void end(struct gw_sim_part *part, struct gw_sim_member *member,
                enum gw_flow_outcome outcome, gw_time now)
{
    if (member->outcome != GW_FLOW_PENDING)
        return;
    member->outcome = outcome;
    if (!member->is_leaving) /* the farewell is not counted */
        member->end = now;
    gw_sim_timeline_end(member, now);
    member->layer_end = GW_TIME_NEVER;
    gw_sim_member_wake(part->sim, member, GW_TIME_NEVER);
    part->flows_ended++;
}

/* Pieces under way. */
static uint32_t moving(const struct gw_sim_job *job, const struct gw_sim_member *member)
{
    return job->room - member->free_count;
}

static gw_time scaled(gw_time time, gw_q16 factor)
{
    return (gw_time)(((unsigned __int128)time * (uint64_t)factor) >> 16);
}

static gw_time time_of(const struct gw_sim_job *job, const struct gw_sim_member *member)
{
    const struct gw_plan_layer *layer = &job->plan->layers[member->layer];
    gw_time time = member->phase == GW_SIM_FORWARD ? layer->forward : layer->backward;
    return member->pace == GW_Q16_ONE ? time : scaled(time, member->pace);
}

/* How much longer an iteration's computation takes on this worker. */
static gw_q16 draw_pace(const struct gw_train_spec *train, struct gw_sim_member *member)
{
    gw_q16 pace = GW_Q16_ONE;
    if (train->jitter)
        pace += gw_prng_below(&member->prng, (uint32_t)train->jitter + 1);
    if (train->slowdown > GW_Q16_ONE && member->rank == train->straggler)
        pace = (gw_q16)scaled((gw_time)pace, train->slowdown);
    return pace;
}

/* Sums up to now what the clock measures. */
static void clock_read(struct gw_sim_clock *clock, gw_time now)
{
    struct gw_sim_reading *sum = &clock->sum;
    if (clock->is_waiting)
        sum->waited += now - sum->at;
    if (clock->is_moving)
        sum->moved += now - sum->at;
    sum->at = now;
}

/* A piece leaves. One that follows another at the same instant continues its burst. */
static void clock_move(struct gw_sim_clock *clock, gw_time now)
{
    clock_read(clock, now);
    if (!clock->is_moving && (clock->sum.bursts == 0 || now > clock->burst_end))
        clock->sum.bursts++;
    clock->is_moving = true;
}

/* A piece is back, and others are under way or none is. */
static void clock_moved(struct gw_sim_clock *clock, bool is_moving, gw_time now)
{
    clock_read(clock, now);
    clock->is_moving = is_moving;
    clock->burst_end = now;
}

/* An iteration can start, or could if there were another one. */
static void clock_boundary(const struct gw_train_spec *train, struct gw_sim_member *member,
                           gw_time now)
{
    struct gw_sim_clock *clock = &member->clock;
    clock_read(clock, now);
    clock->last = clock->sum;
    clock->last.iterations = member->begun;
    if (member->begun == 0)
        clock->first = clock->last;
    if (member->begun == train->warmup)
        clock->warm = clock->last;
}

/* Begins to compute the layer whose turn it is. */
static void begin_layer(const struct gw_sim_job *job, struct gw_sim_member *member, gw_time now)
{
    clock_read(&member->clock, now);
    member->clock.is_waiting = false;
    member->layer_end = now + time_of(job, member);
    gw_sim_timeline_compute(member, now);
}

static void begin_backward(struct gw_sim *sim, const struct gw_sim_job *job,
                           struct gw_sim_member *member, gw_time now)
{
    member->phase = GW_SIM_BACKWARD;
    member->layer = job->plan->layer_count - 1;
    gw_scheduler_begin(member->scheduler, now);
    member->backward++;
    if (member->in)
        gw_sim_payload_fill(sim, member);
}

/* All sums of an iteration are back. */
static void iteration_over(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    member->end = now;
    clock_read(&member->clock, now);
    member->clock.over = member->clock.sum;
    member->clock.over.iterations = member->iterations + 1;
    if (member->out && !gw_sim_payload_is_right(part->sim, member))
        part->wrong_payloads++;
    member->iterations++;
}

static void end_layer(struct gw_sim_part *part, const struct gw_sim_job *job,
                      struct gw_sim_member *member, gw_time now)
{
    const struct gw_plan_layer *layer = &job->plan->layers[member->layer];
    member->layer_end = GW_TIME_NEVER;
    clock_read(&member->clock, now);
    member->clock.is_waiting = true;
    if (member->phase == GW_SIM_FORWARD) {
        if (++member->layer == job->plan->layer_count)
            begin_backward(part->sim, job, member, now);
        return;
    }
    for (uint32_t i = layer->tensor_count; i-- > 0;)
        gw_scheduler_ready(member->scheduler, layer->first_tensor + i, now);
    if (member->layer-- > 0)
        return;
    gw_scheduler_backward_over(member->scheduler, now);
    member->phase = GW_SIM_FORWARD;
    member->layer = 0;
    if (job->plan->tensor_count == 0)
        iteration_over(part, member, now);
}

/* Begins the next iteration, or finds that there is none. */
static void begin_iteration(struct gw_sim *sim, const struct gw_sim_job *job,
                            struct gw_sim_member *member, gw_time now)
{
    const struct gw_train_spec *train = &job->spec->train;
    clock_boundary(train, member, now);
    if (!member->is_started)
        member->start = now;
    member->is_started = true;
    if (!gw_sim_order_goes_on(sim, member, now)) {
        member->phase = GW_SIM_COMPUTED;
        return;
    }
    member->begun++;
    member->pace = draw_pace(train, member);
    begin_layer(job, member, now);
}

/* A step of the computation; false: none is possible now. */
static bool compute(struct gw_sim_part *part, const struct gw_sim_job *job,
                    struct gw_sim_member *member, gw_time now)
{
    if (member->phase == GW_SIM_OUTSIDE || member->phase == GW_SIM_COMPUTED)
        return false;
    if (member->layer_end != GW_TIME_NEVER) {
        if (member->layer_end > now)
            return false;
        end_layer(part, job, member, now);
        return true;
    }
    if (member->phase == GW_SIM_FORWARD && member->begun > 0 &&
        !gw_scheduler_may_compute(member->scheduler, member->layer))
        return false;
    if (member->phase == GW_SIM_FORWARD && member->layer == 0)
        begin_iteration(part->sim, job, member, now);
    else
        begin_layer(job, member, now);
    return true;
}

static bool next_piece(const struct gw_sim *sim, struct gw_sim_job *job,
                       struct gw_sim_member *member, struct gw_piece *piece, gw_time now)
{
    if (job->order.said && member->rank > 0)
        return gw_sim_order_next(sim, member, piece, now);
    if (!gw_scheduler_next(member->scheduler, piece, now))
        return false;
    if (job->order.said)
        gw_sim_order_say(job, member, piece, now);
    return true;
}

/* Hands a piece to the mover; false: there is none, or no room. */
static bool hand_out(struct gw_sim_part *part, struct gw_sim_job *job, struct gw_sim_member *member,
                     gw_time now)
{
    struct gw_piece piece;
    if (member->free_count == 0 || member->begun == 0 ||
        !next_piece(part->sim, job, member, &piece, now))
        return false;
    clock_move(&member->clock, now);
    uint32_t berth = member->free_berths[--member->free_count];
    member->pieces[berth] = piece;
    gw_sim_timeline_moves(member, berth, moving(job, member), now);
    job->ops->move(part, member, berth, now);
    return true;
}

static gw_time earlier(gw_time a, gw_time b)
{
    return a < b ? a : b;
}

/* Nothing is computed or under way, so no mover would notice that others are gone. */
static gw_time stall_at(const struct gw_sim *sim, const struct gw_sim_job *job,
                        struct gw_sim_member *member, gw_time now)
{
    bool is_quiet = member->phase != GW_SIM_OUTSIDE && !member->is_leaving &&
                    member->layer_end == GW_TIME_NEVER && moving(job, member) == 0;
    if (!is_quiet || sim->scenario->host.stall == 0) {
        member->quiet_since = GW_TIME_NEVER;
        return GW_TIME_NEVER;
    }
    if (member->quiet_since == GW_TIME_NEVER)
        member->quiet_since = now;
    return member->quiet_since + sim->scenario->host.stall;
}

static gw_time wake_at(const struct gw_sim *sim, const struct gw_sim_job *job,
                       struct gw_sim_member *member, gw_time now)
{
    gw_time at = earlier(member->layer_end, stall_at(sim, job, member, now));
    at = earlier(at, member->loss.at);
    if (member->free_count > 0 && member->begun > 0)
        at = earlier(at, job->order.said && member->rank > 0
                             ? gw_sim_order_deadline(sim, member, now)
                             : gw_scheduler_deadline(member->scheduler, now));
    if (job->ops->deadline && member->mover)
        at = earlier(at, job->ops->deadline(sim, member));
    return at;
}

void gw_sim_train_advance(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    if (member->is_busy)
        return;
    member->is_busy = true;
    while (member->outcome == GW_FLOW_PENDING && member->mover &&
           (compute(part, job, member, now) || hand_out(part, job, member, now)))
        ;
    member->is_busy = false;
    if (member->outcome != GW_FLOW_PENDING || !member->mover)
        return;
    bool is_over = member->phase == GW_SIM_COMPUTED && gw_scheduler_is_over(member->scheduler);
    if (is_over && !job->ops->says_left)
        end(part, member, GW_FLOW_DONE, now);
    if (is_over && !member->is_leaving && job->ops->leave) {
        member->is_leaving = job->ops->says_left;
        job->ops->leave(part, member, now);
    }
    if (member->outcome != GW_FLOW_PENDING)
        return;
    gw_sim_member_wake(part->sim, member, wake_at(part->sim, job, member, now));
}

void gw_sim_train_expire(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    if (member->mover && member->loss.at <= now)
        gw_sim_member_failed(part, member, member->loss.reason, member->loss.about, now);
    else if (job->ops->expire && member->mover && job->ops->deadline(part->sim, member) <= now)
        job->ops->expire(part, member, now);
    gw_sim_train_advance(part, member, now);
    if (member->quiet_since != GW_TIME_NEVER &&
        member->quiet_since + part->sim->scenario->host.stall <= now)
        gw_sim_member_failed(part, member, GW_JOB_STALLED, 0, now);
}

void gw_sim_member_joined(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    if (member->phase != GW_SIM_OUTSIDE)
        return;
    member->phase = GW_SIM_FORWARD;
    gw_sim_train_advance(part, member, now);
}

void gw_sim_piece_sent(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                       gw_time now)
{
    if (member->outcome != GW_FLOW_PENDING)
        return;
    gw_scheduler_sent(member->scheduler, &member->pieces[berth]);
    gw_sim_train_advance(part, member, now);
}

void gw_sim_piece_done(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                       gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    member->free_berths[member->free_count++] = berth;
    member->back += member->pieces[berth].bytes;
    if (member->outcome != GW_FLOW_PENDING)
        return;
    clock_moved(&member->clock, moving(job, member) > 0, now);
    gw_sim_timeline_moved(member, berth, moving(job, member), now);
    gw_scheduler_done(member->scheduler, &member->pieces[berth]);
    if (gw_scheduler_is_over(member->scheduler))
        iteration_over(part, member, now);
    gw_sim_train_advance(part, member, now);
}

void gw_sim_member_left(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    end(part, member, GW_FLOW_DONE, now);
}

void gw_sim_member_failed(struct gw_sim_part *part, struct gw_sim_member *member,
                          enum gw_job_reason reason, uint32_t about, gw_time now)
{
    if (member->outcome == GW_FLOW_PENDING) {
        member->reason = reason;
        member->about = about;
    }
    end(part, member, GW_FLOW_FAILED, now);
}

void gw_sim_train_open(struct gw_sim *sim, struct gw_sim_member *member)
{
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    uint32_t index = (uint32_t)(member - sim->members);
    member->scheduler = gw_sim_scheduler_open(job);
    member->pieces = gw_memory_zeroed(job->room, sizeof(*member->pieces));
    member->free_berths = gw_memory_zeroed(job->room, sizeof(*member->free_berths));
    while (member->free_count < job->room) {
        member->free_berths[member->free_count] = job->room - 1 - member->free_count;
        member->free_count++;
    }
    member->prng = gw_prng_derive(sim->options.seed, (uint64_t)COMPUTE_STREAM << 32 | index);
    member->layer_end = member->wake = member->quiet_since = GW_TIME_NEVER;
    member->loss.at = GW_TIME_NEVER;
    member->clock.is_waiting = true;
    member->timeline = gw_sim_timeline_open(sim, job);
    if (sim->scenario->host.payload && !job->ops->has_contents) {
        member->in = gw_memory_aligned(job->plan->bytes);
        member->out = gw_memory_aligned(job->plan->bytes);
    }
}

void gw_sim_train_close(struct gw_sim_member *member)
{
    gw_scheduler_close(member->scheduler);
    gw_sim_timeline_close(member->timeline);
    free(member->pieces);
    free(member->free_berths);
    free(member->in);
    free(member->out);
}
