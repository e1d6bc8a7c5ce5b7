/*
 * What became of the calls of a job, and whether what they brought is right.
 *
 * Contents are those of call_values.h. A pull has seen as many pushes as had ended when it began,
 * and no more than had begun when it ended. A request takes longer than a window, so it does not
 * matter in which order hosts run within one.
 */
#include <stdlib.h>

#include "sim/calls_impl.h"
#include "topo/memory.h"

static bool is_of_value(const struct gw_call_spec *call)
{
    return call->kind == GW_CALL_PUSH || call->kind == GW_CALL_PULL;
}

void gw_sim_calls_open_books(const struct gw_sim *sim, const struct gw_sim_job *job,
                             struct gw_sim_crew *crew)
{
    const struct gw_call_spec *calls = sim->scenario->workload.calls + job->spec->first_call;
    const uint32_t count = job->plan->tensor_count;
    crew->results = gw_memory_zeroed(count, sizeof(*crew->results));
    crew->pushes = gw_memory_zeroed(count, sizeof(*crew->pushes));
    crew->first_of_key = gw_memory_zeroed(count, sizeof(*crew->first_of_key));
    crew->sums = gw_memory_zeroed(count, sizeof(*crew->sums));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = 0;
        while (first < i && (!is_of_value(&calls[first]) || calls[first].key != calls[i].key))
            first++;
        crew->first_of_key[i] = first;
    }
}

void gw_sim_calls_close_books(const struct gw_sim_job *job, struct gw_sim_crew *crew)
{
    for (uint32_t i = 0; i < job->plan->tensor_count; i++)
        free(crew->sums[i].numbers);
    free(crew->sums);
    free(crew->results);
    free(crew->pushes);
    free(crew->first_of_key);
}

/* What a rank does in a call of the list; GW_CALL_KINDS: nothing. */
static enum gw_call_kind duty_of(const struct gw_call_spec *spec, uint32_t rank)
{
    bool has_part = spec->rank == GW_CALL_RANKS_ALL || spec->rank == rank;
    if (is_of_value(spec))
        return has_part ? spec->kind : GW_CALL_KINDS;
    if (spec->kind != GW_CALL_SEND || rank == spec->from)
        return spec->kind;
    return rank == spec->to ? GW_CALL_RECEIVE : GW_CALL_KINDS;
}

static struct gw_sim_pushes *pushes_of(const struct gw_sim *sim, const struct gw_sim_duty *duty)
{
    const struct gw_sim_crew *crew = sim->jobs[duty->job].mover;
    return &crew->pushes[crew->first_of_key[duty->call]];
}

void gw_sim_calls_begin(const struct gw_sim *sim, const struct gw_sim_member *member,
                        uint32_t index, struct gw_sim_work *work, gw_time now)
{
    const struct gw_job_spec *job = gw_sim_job_spec(sim, member->job);
    const struct gw_call_spec *spec = &sim->scenario->workload.calls[job->first_call + index];
    *work = (struct gw_sim_work){
        .duty = {.spec = spec,
                 .kind = duty_of(spec, member->rank),
                 .job = member->job,
                 .rank = member->rank,
                 .world = job->worker_count,
                 .call = index,
                 .iteration = member->iterations,
                 .seed = sim->options.seed},
        .begun = now,
    };
    if (work->duty.kind == GW_CALL_KINDS)
        return;
    struct gw_sim_pushes *pushes = pushes_of(sim, &work->duty);
    work->pushes = pushes->done;
    pushes->begun += work->duty.kind == GW_CALL_PUSH;
    gw_sim_duty_fill(&work->duty);
}

/* Whether a refusal has a reason: the key was unknown, or the list disagrees about its value. */
static bool may_refuse(const struct gw_sim *sim, const struct gw_sim_work *work,
                       const struct gw_refusal *refusal)
{
    const struct gw_sim_job *job = &sim->jobs[work->duty.job];
    const struct gw_call_spec *own = work->duty.spec;
    const struct gw_call_spec *calls = sim->scenario->workload.calls + job->spec->first_call;
    if (refusal->key != own->key || !is_of_value(own))
        return false;
    if (refusal->why == GW_REFUSED_UNKNOWN_KEY)
        return own->kind == GW_CALL_PULL && work->pushes == 0;
    for (uint32_t i = 0; i < job->plan->tensor_count; i++)
        if (calls[i].kind == GW_CALL_PUSH && calls[i].key == own->key &&
            (calls[i].count != own->count || calls[i].type != own->type))
            return refusal->why == GW_REFUSED_OTHER_SHAPE;
    return false;
}

/* Ranks are in the same iteration of a sum, or nearly so. */
static const void *sums_of(const struct gw_sim *sim, const struct gw_sim_duty *duty)
{
    const struct gw_sim_crew *crew = sim->jobs[duty->job].mover;
    struct gw_sim_sums *sums = &crew->sums[duty->call];
    if (!sums->numbers || sums->iteration != duty->iteration) {
        free(sums->numbers);
        *sums = (struct gw_sim_sums){gw_sim_duty_sums(duty), duty->iteration};
    }
    return sums->numbers;
}

static bool is_right(const struct gw_sim *sim, const struct gw_sim_work *work,
                     const struct gw_communicator_event *event)
{
    const struct gw_sim_duty *duty = &work->duty;
    uint64_t seen;
    if (event->kind == GW_COMMUNICATOR_REFUSED)
        return may_refuse(sim, work, &event->refusal);
    if (duty->kind == GW_CALL_RECEIVE && event->bytes != duty->spec->count)
        return false;
    if (duty->kind != GW_CALL_PULL)
        return gw_sim_duty_is_right(duty, sums_of(sim, duty));
    return gw_sim_duty_pushes(duty, &seen) && seen >= work->pushes &&
           seen <= pushes_of(sim, duty)->begun;
}

bool gw_sim_calls_end(const struct gw_sim *sim, struct gw_sim_work *work,
                      const struct gw_communicator_event *event, gw_time now)
{
    const struct gw_sim_crew *crew = sim->jobs[work->duty.job].mover;
    struct gw_call_result *result = &crew->results[work->duty.call];
    struct gw_sim_pushes *pushes = pushes_of(sim, &work->duty);
    const bool right = is_right(sim, work, event);
    const bool is_refused = event->kind == GW_COMMUNICATOR_REFUSED;
    const gw_time took = now - work->begun;
    if (work->duty.kind == GW_CALL_PUSH && is_refused)
        pushes->begun--;
    else if (work->duty.kind == GW_CALL_PUSH)
        pushes->done++;
    result->refused += is_refused;
    result->done += !is_refused;
    result->total += is_refused ? 0 : took;
    if (!is_refused && took > result->longest)
        result->longest = took;
    gw_sim_duty_free(&work->duty);
    return right;
}
