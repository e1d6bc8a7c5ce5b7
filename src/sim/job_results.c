/* What became of training jobs; see gw_sim_jobs(). */
#include "sim/jobs_impl.h"

void gw_sim_add_stats(void *sum, const void *stats, size_t size)
{
    uint64_t *to = sum;
    const uint64_t *from = stats;
    for (size_t i = 0; i < size / sizeof(*to); i++)
        to[i] += from[i];
}

/* Sums in slots have no server to count them. */
static void add_slots(const struct gw_sim_member *member, struct gw_job_result *result)
{
    const struct gw_slot_worker_stats *stats = gw_slot_worker_stats(member->stakes[0].slot_worker);
    result->resent += stats->resent;
    if (member->rank == 0)
        result->fragments = result->aggregated = stats->results;
}

static void add_member(const struct gw_sim *sim, const struct gw_sim_member *member,
                       struct gw_job_result *result)
{
    struct gw_worker_stats stats = member->past;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    for (uint32_t i = 0; member->stakes && i < spec->server_count; i++)
        if (member->stakes[i].worker)
            gw_sim_add_stats(&stats, gw_worker_stats(member->stakes[i].worker), sizeof(stats));
    if (member->stakes && member->stakes[0].slot_worker)
        add_slots(member, result);
    result->completed += member->outcome == GW_FLOW_DONE;
    result->failed += member->outcome == GW_FLOW_FAILED;
    result->resent += stats.resent;
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

uint32_t gw_sim_jobs(const struct gw_sim *sim, struct gw_job_result *results, uint32_t max)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->job_count && i < max; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        struct gw_job_result result = {.workers = spec->worker_count, .start = GW_TIME_NEVER};
        for (uint32_t s = 0; s < spec->server_count; s++) {
            const struct gw_sim_shard *shard = &sim->shards[spec->first_server + s];
            struct gw_server_stats stats = shard->past;
            if (shard->server)
                gw_sim_add_stats(&stats, gw_server_stats(shard->server), sizeof(stats));
            result.server_bytes += stats.bytes;
            result.server_packets += stats.received;
            result.fragments += stats.results;
            result.aggregated += stats.complete;
        }
        for (uint32_t w = 0; w < spec->worker_count; w++)
            add_member(sim, &sim->members[spec->first_worker + w], &result);
        result.iterations /= spec->worker_count;
        results[i] = result;
    }
    return workload->job_count;
}
