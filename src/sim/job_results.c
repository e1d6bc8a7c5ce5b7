/* What became of training jobs; see gw_sim_jobs(). */
#include "sim/mover.h"
#include "sim/sample.h"

void gw_sim_add_stats(void *sum, const void *stats, size_t size)
{
    uint64_t *to = sum;
    const uint64_t *from = stats;
    for (size_t i = 0; i < size / sizeof(*to); i++)
        to[i] += from[i];
}

/* The part of an iteration's measures that a member has, in the steady state. */
struct steady {
    double iteration; /* ps */
    double stall;     /* ps of each */
    double moved;     /* ps of each with a piece under way */
    double bursts;    /* of each: such times */
    uint32_t iterations;
};

/*
 * From when the first iteration behind the warm-up could start to when the one behind the last
 * could. A member that did not get so far, or has no warm-up, is measured from its first start to
 * when its last sums were back: its first iteration waits for no parameters, so where another one
 * could start is not where this one did.
 */
static struct steady steady_of(const struct gw_train_spec *train, const struct gw_sim_clock *clock)
{
    bool is_warm = train->warmup > 0 && clock->last.iterations > train->warmup;
    const struct gw_sim_reading *from = is_warm ? &clock->warm : &clock->first;
    const struct gw_sim_reading *to = is_warm ? &clock->last : &clock->over;
    struct steady steady = {0};
    if (to->iterations <= from->iterations)
        return steady;
    steady.iterations = to->iterations - from->iterations;
    steady.iteration = (double)(to->at - from->at) / steady.iterations;
    steady.stall = (double)(to->waited - from->waited) / steady.iterations;
    steady.moved = (double)(to->moved - from->moved) / steady.iterations;
    steady.bursts = (double)(to->bursts - from->bursts) / steady.iterations;
    return steady;
}

/*
 * Means over members: of rates, so that workers / iteration_ps is the rate of the job also when
 * members go on at different speeds, and of the parts of their time that they stall.
 */
static void add_steady(const struct gw_sim *sim, const struct gw_job_spec *spec,
                       struct gw_job_result *result)
{
    double rate = 0, stall = 0, moved = 0, bursts = 0;
    uint32_t members = 0;
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        const struct gw_sim_member *member = gw_sim_member_of(sim, spec, rank);
        struct steady steady = steady_of(&spec->train, &member->clock);
        if (steady.iteration <= 0)
            continue;
        members++;
        rate += 1 / steady.iteration;
        stall += steady.stall / steady.iteration;
        moved += steady.moved / steady.iteration;
        bursts += steady.bursts;
    }
    if (members == 0)
        return;
    result->iteration_ps = members / rate;
    result->stall_ps = stall / members * result->iteration_ps;
    result->moving_ps = moved / members * result->iteration_ps;
    result->bursts = bursts / members;
    result->overlap = moved > stall ? 1 - stall / moved : moved > 0 ? 0 : 1;
    result->is_steady = true;
}

static void add_member(const struct gw_sim_member *member, struct gw_job_result *result)
{
    result->completed += member->outcome == GW_FLOW_DONE;
    result->failed += member->outcome == GW_FLOW_FAILED;
    result->iterations += member->iterations;
    if (member->is_started && member->start < result->start)
        result->start = member->start;
    if (member->end > result->end)
        result->end = member->end;
    if (member->outcome == GW_FLOW_FAILED && !result->reason) {
        result->reason = member->reason;
        result->about = member->about;
    }
}

uint32_t gw_sim_members_done(const struct gw_sim *sim)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < sim->scenario->workload.job_host_count; i++)
        done += sim->members[i].outcome == GW_FLOW_DONE;
    return done;
}

/* An iteration of a job that had the network to itself, and its gradients hidden as far as can be.
 */
static double least_ps(const struct gw_sim *sim, uint32_t job)
{
    const struct gw_plan *plan = sim->jobs[job].plan;
    double compute = (double)(plan->forward + plan->backward);
    double bits = 8 * (double)plan->bytes;
    double move = bits * (double)GW_S / (double)sim->scenario->host_rate_bps;
    return compute > move ? compute : move;
}

double gw_sim_fairness(const struct gw_sim *sim, const struct gw_job_result *results)
{
    double sum = 0, squares = 0;
    uint32_t jobs = 0;
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++) {
        if (!results[i].is_steady)
            continue;
        double rate = least_ps(sim, i) / results[i].iteration_ps;
        jobs++;
        sum += rate;
        squares += rate * rate;
    }
    return jobs ? sum * sum / (jobs * squares) : 1;
}

/* Adds what a job's mover counted to a result. */
static void add_counts(const struct gw_sim *sim, uint32_t index, struct gw_job_result *result)
{
    if (sim->jobs[index].ops->results)
        sim->jobs[index].ops->results(sim, index, result);
}

static struct gw_sim_progress progress_of(const struct gw_sim *sim, uint32_t index)
{
    const struct gw_sim_job *job = &sim->jobs[index];
    struct gw_job_result result = {0};
    struct gw_sim_progress progress = {0};
    add_counts(sim, index, &result);
    progress.switch_sums = result.aggregated;
    progress.server_sums = result.fragments - result.aggregated;
    for (uint32_t rank = 0; rank < job->spec->worker_count; rank++) {
        const struct gw_sim_member *member = gw_sim_member_of(sim, job->spec, rank);
        progress.back += job->ops->back ? job->ops->back(sim, member) : member->back;
    }
    return progress;
}

/* Bytes of all workers in an interval as bit/s of one. */
static uint64_t goodput_bps(const struct gw_sim_job *job, uint64_t bytes, gw_time interval)
{
    unsigned __int128 bits = (unsigned __int128)bytes * 8 * GW_S;
    return (uint64_t)(bits / interval / job->spec->worker_count);
}

/* What a worker had may be gone with its host. */
static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* What has changed between the last two samples. */
static uint64_t sample_of(const struct gw_sim *sim, const struct gw_sim_job *job,
                          enum gw_series series)
{
    const struct gw_sim_progress *now = &job->progress, *before = &job->before;
    switch (series) {
    case GW_SERIES_GOODPUT:
        return goodput_bps(job, since(now->back, before->back), sim->scenario->metrics.sample);
    case GW_SERIES_SWITCH_SUMS:
        return since(now->switch_sums, before->switch_sums);
    default:
        return since(now->server_sums, before->server_sums);
    }
}

static void sample_jobs(struct gw_sim *sim, gw_time at, enum gw_series series)
{
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++)
        gw_sim_sample_add(sim, (struct gw_sample){.at = at,
                                                  .series = series,
                                                  .subject = i,
                                                  .value = sample_of(sim, &sim->jobs[i], series)});
}

void gw_sim_jobs_sample(struct gw_sim *sim, gw_time at)
{
    const struct gw_metrics_cfg *metrics = &sim->scenario->metrics;
    if (!metrics->goodput && !metrics->switch_sums && !metrics->server_sums)
        return;
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++) {
        sim->jobs[i].before = sim->jobs[i].progress;
        sim->jobs[i].progress = progress_of(sim, i);
    }
    if (metrics->goodput)
        sample_jobs(sim, at, GW_SERIES_GOODPUT);
    if (metrics->switch_sums)
        sample_jobs(sim, at, GW_SERIES_SWITCH_SUMS);
    if (metrics->server_sums)
        sample_jobs(sim, at, GW_SERIES_SERVER_SUMS);
}

uint32_t gw_sim_jobs(const struct gw_sim *sim, struct gw_job_result *results, uint32_t max)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->job_count && i < max; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        struct gw_job_result result = {.workers = spec->worker_count, .start = GW_TIME_NEVER};
        add_counts(sim, i, &result);
        for (uint32_t rank = 0; rank < spec->worker_count; rank++)
            add_member(gw_sim_member_of(sim, spec, rank), &result);
        result.iterations /= spec->worker_count;
        add_steady(sim, spec, &result);
        results[i] = result;
    }
    return workload->job_count;
}

bool gw_sim_messages(const struct gw_sim *sim, uint32_t job,
                     struct gw_message_result results[GW_MESSAGE_WAYS + 1])
{
    if (!sim->jobs[job].books)
        return false;
    gw_sim_books_results(sim->jobs[job].books, sim->part_count, results);
    return true;
}

bool gw_sim_call(const struct gw_sim *sim, uint32_t job, uint32_t index,
                 struct gw_call_result *result)
{
    const struct gw_sim_job *of = &sim->jobs[job];
    if (!of->ops->call || index >= of->plan->tensor_count)
        return false;
    *result = (struct gw_call_result){0};
    of->ops->call(sim, job, index, result);
    return true;
}
