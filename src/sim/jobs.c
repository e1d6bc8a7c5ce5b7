/*
 * Opens the training jobs of a run, and closes what they have on a host; makes the stages of
 * switches that add up. See jobs_impl.h.
 */
#include "sim/jobs_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "topo/memory.h"

enum {
    RAW_BUFS = 4096, /* buffers for raw contributions that a server may hold, about */
    INCARNATION_STREAM = 0x10b,
    IDLE_SILENCES = 8, /* of workers, after which a switch that hears nothing forgets a job */
};

/* Workers that hang on the same switch as worker `rank`. */
static uint32_t neighbours(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->worker_count; i++)
        count += gw_sim_home_of(sim, gw_sim_workers_of(sim, spec)[i]) ==
                 gw_sim_home_of(sim, gw_sim_workers_of(sim, spec)[rank]);
    return count;
}

/* What would be refused when the job forms anyway, said before the run. */
static int spec_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    const uint32_t *servers = sim->scenario->workload.job_servers + spec->first_server;
    for (uint32_t i = 0; i < spec->worker_count + spec->server_count; i++) {
        uint32_t host = i < spec->worker_count ? gw_sim_workers_of(sim, spec)[i]
                                               : servers[i - spec->worker_count];
        if (topo->nodes[host].port_count == 1 && gw_sim_home_of(sim, host) >= topo->host_count)
            continue;
        snprintf(why, GW_WHY_MAX,
                 "workload: via: %s has several ways into the network (or no switch), so no point "
                 "of aggregation is fixed",
                 topo->nodes[host].name);
        return GW_ERR_INVALID;
    }
    for (uint32_t rank = 0; spec->levels > 0 && rank < spec->worker_count; rank++) {
        if (neighbours(sim, spec, rank) <= GW_FAN_IN_MAX)
            continue;
        snprintf(why, GW_WHY_MAX,
                 "workload: workers: a job has %u workers below one switch; at most %d",
                 neighbours(sim, spec, rank), GW_FAN_IN_MAX);
        return GW_ERR_RANGE;
    }
    return spec->via == GW_JOB_VIA_SWITCHML ? gw_sim_slots_check(sim, spec, why) : GW_OK;
}

/* Random, not 0, and another one for every life. */
static uint32_t incarnation(const struct gw_sim *sim, uint32_t number, uint32_t lives)
{
    struct gw_prng prng = gw_prng_derive(sim->options.seed ^ (uint64_t)lives << 32,
                                         (uint64_t)INCARNATION_STREAM << 32 | number);
    return (uint32_t)gw_prng_next(&prng) | 1;
}

/* Fragments that can be collected raw at the same time. */
static uint32_t raw_max(const struct gw_job_spec *spec)
{
    uint32_t most = RAW_BUFS / spec->worker_count;
    return most < spec->window ? most : spec->window;
}

/* What names the scale of its floats, see core/quant/scale.h. */
static int scale_of(const struct gw_job_spec *spec)
{
    return spec->rules.scale ? GW_SCALE_DECIMAL : GW_SCALE_EXPONENT;
}

int gw_sim_shard_open(struct gw_sim *sim, uint32_t index)
{
    struct gw_sim_shard *shard = &sim->shards[index];
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, shard->job);
    struct gw_endpoint *endpoint = sim->nodes[sim->place[shard->host]].endpoint;
    struct gw_server_cfg server = {
        .job = index,
        .world = (uint16_t)spec->worker_count,
        .levels = GW_LEVELS_MAX,
        .values = spec->values,
        .window_max = spec->window,
        .aggregators = spec->aggregators,
        .indexing = (enum gw_agg_indexing)spec->indexing,
        .hashing = (enum gw_agg_hashing)spec->rules.hashing,
        .remap = (enum gw_agg_remap)spec->rules.remap,
        .share = spec->share,
        .raw_max = raw_max(spec),
        .agrees_exponents = spec->dynamic_scaling,
        .proactive = spec->proactive,
        .scale_exponent = scale_of(spec),
        .retry = spec->timeout / 8 + 1,
        .quiet = spec->rules.collisions ? 0 : spec->timeout / 16 + 1,
        .hdr = (uint32_t)spec->rules.header,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    shard->memory[0] = gw_memory_aligned(gw_server_size(&server));
    int error = gw_server_init(&shard->server, shard->memory[0], &server, endpoint);
    if (error)
        return error;
    struct gw_coordinator_cfg cfg = {
        .job = index,
        .world = (uint16_t)spec->worker_count,
        .levels = spec->levels,
        .window_max = spec->window,
        .values = (uint16_t)spec->values,
        .share = (uint16_t)spec->share,
        .aggregators = spec->aggregators,
        .indexing = (enum gw_agg_indexing)spec->indexing,
        .hashing = (enum gw_agg_hashing)spec->rules.hashing,
        .partials = (enum gw_agg_partials)spec->rules.partials,
        .scale_exponent = (int8_t)scale_of(spec),
        .incarnation = incarnation(sim, index, shard->lives++),
        .retry = spec->timeout,
        .beat = spec->beat,
        .silence = spec->silence,
        .agrees_exponents = spec->dynamic_scaling,
        .server = shard->server,
    };
    shard->memory[1] = gw_memory_aligned(gw_coordinator_size(&cfg));
    return gw_coordinator_init(&shard->coordinator, shard->memory[1], &cfg, endpoint);
}

void gw_sim_shard_close(struct gw_sim *sim, uint32_t index, bool dead)
{
    struct gw_sim_shard *shard = &sim->shards[index];
    if (shard->server) {
        gw_sim_add_stats(&shard->past, gw_server_stats(shard->server), sizeof(shard->past));
        if (!dead) {
            gw_coordinator_fini(shard->coordinator);
            gw_server_fini(shard->server);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        free(shard->memory[i]);
        shard->memory[i] = NULL;
    }
    shard->server = NULL;
    shard->coordinator = NULL;
}

void gw_sim_member_close(struct gw_sim *sim, struct gw_sim_member *member, bool dead)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    for (uint32_t i = 0; member->stakes && i < gw_sim_stakes(spec); i++) {
        struct gw_sim_stake *stake = &member->stakes[i];
        if (stake->slot_worker && !dead)
            gw_slot_worker_fini(stake->slot_worker);
        if (stake->worker) {
            gw_sim_add_stats(&member->past, gw_worker_stats(stake->worker), sizeof(member->past));
            if (!dead)
                gw_worker_fini(stake->worker);
        }
        if (stake->member && !dead)
            gw_member_fini(stake->member);
        free(stake->memory[0]);
        free(stake->memory[1]);
    }
    free(member->stakes);
    member->stakes = NULL;
}

static int member_open(struct gw_sim *sim, uint32_t job, uint32_t rank)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    uint32_t index = spec->first_worker + rank, host = gw_sim_workers_of(sim, spec)[rank];
    struct gw_sim_member *member = &sim->members[index];
    *member = (struct gw_sim_member){.job = job, .rank = rank, .place = sim->place[host]};
    member->stakes = gw_memory_aligned(gw_sim_stakes(spec) * sizeof(*member->stakes));
    if (sim->scenario->host.payload) {
        member->in = gw_memory_aligned(spec->bytes);
        member->out = gw_memory_aligned(spec->bytes);
    }
    int error = GW_OK;
    for (uint32_t i = 0; i < spec->server_count && !error; i++) {
        struct gw_sim_stake *stake = &member->stakes[i];
        uint32_t shard = spec->first_server + i;
        struct gw_member_cfg cfg = {
            .job = shard,
            .server = sim->shards[shard].host,
            .rank = (uint16_t)rank,
            .incarnation = incarnation(sim, shard << 10 | rank, UINT16_MAX),
            .retry = spec->timeout,
            .beat = spec->beat,
            .stall = sim->scenario->host.stall,
        };
        stake->memory[0] = gw_memory_aligned(gw_member_size());
        error = gw_member_init(&stake->member, stake->memory[0], &cfg,
                               sim->nodes[member->place].endpoint);
    }
    if (!error && spec->server_count == 0)
        error = gw_sim_slot_worker_open(sim, member);
    if (error)
        return error;
    struct gw_sim_start start = {.at = spec->start,
                                 .flow = sim->scenario->workload.flow_count + index};
    gw_sim_app_add(&sim->nodes[member->place].app, start);
    return GW_OK;
}

static int job_open(struct gw_sim *sim, uint32_t job, char *why)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    const struct gw_job_spec *spec = &workload->jobs[job];
    int error = spec_check(sim, spec, why);
    uint64_t elements = spec->bytes / sizeof(float), first = 0;
    for (uint32_t i = 0; i < spec->server_count && !error; i++) {
        uint32_t index = spec->first_server + i;
        struct gw_sim_shard *shard = &sim->shards[index];
        uint64_t count = elements / spec->server_count + (i < elements % spec->server_count);
        *shard = (struct gw_sim_shard){
            .job = job, .host = workload->job_servers[index], .first = first, .count = count};
        first += count;
        error = gw_sim_shard_open(sim, index);
    }
    for (uint32_t rank = 0; rank < spec->worker_count && !error; rank++)
        error = member_open(sim, job, rank);
    if (error && !why[0])
        snprintf(why, GW_WHY_MAX, "workload: job %u: %s", job, gw_error_message(error));
    return error;
}

int gw_sim_jobs_open(struct gw_sim *sim, char *why)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    sim->members = gw_memory_aligned(workload->job_host_count * sizeof(*sim->members));
    sim->shards = gw_memory_aligned(workload->job_server_count * sizeof(*sim->shards));
    why[0] = '\0';
    int error = GW_OK;
    for (uint32_t job = 0; job < workload->job_count && !error; job++)
        error = job_open(sim, job, why);
    sim->awaited += workload->job_host_count;
    return error;
}

void gw_sim_jobs_close(struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; sim->members && i < workload->job_host_count; i++) {
        gw_sim_member_close(sim, &sim->members[i], true);
        free(sim->members[i].in);
        free(sim->members[i].out);
    }
    for (uint32_t i = 0; sim->shards && i < workload->job_server_count; i++)
        gw_sim_shard_close(sim, i, true);
    free(sim->members);
    free(sim->shards);
}

/* Options of every aggregation stage; no aggregators when no job adds up anything. */
static struct gw_aggregate_cfg aggregate_cfg(const struct gw_sim *sim, struct gw_pkt_pool *pool)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    struct gw_aggregate_cfg cfg = {
        .jobs_max = workload->job_server_count,
        .members_max = workload->job_server_count * GW_FAN_IN_MAX,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = pool,
    };
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        if (spec->levels > 0 && spec->aggregators > cfg.aggregators)
            cfg.aggregators = spec->aggregators;
        if (spec->rules.reclaim == GW_AGG_RECLAIM_RESULTS)
            cfg.reclaim = GW_AGG_RECLAIM_RESULTS;
        if (spec->leak > cfg.leak)
            cfg.leak = spec->leak;
        if (IDLE_SILENCES * spec->silence > cfg.job_idle)
            cfg.job_idle = IDLE_SILENCES * spec->silence;
    }
    return cfg;
}

/* Whether switch `id` can be the first or the last on a worker's way, or with three levels any. */
static bool can_add_up(const struct gw_sim *sim, uint32_t id)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->job_count; i++)
        if (workload->jobs[i].levels == GW_LEVELS_MAX)
            return true;
    for (uint32_t i = 0; i < workload->job_server_count; i++)
        if (gw_sim_home_of(sim, workload->job_servers[i]) == id)
            return true;
    for (uint32_t i = 0; i < workload->job_host_count; i++)
        if (gw_sim_home_of(sim, workload->job_hosts[i]) == id)
            return true;
    return false;
}

struct gw_aggregate *gw_sim_aggregate(const struct gw_sim *sim, struct gw_pkt_pool *pool,
                                      uint32_t id)
{
    struct gw_aggregate_cfg cfg = aggregate_cfg(sim, pool);
    if (cfg.aggregators == 0 || !can_add_up(sim, id))
        return NULL;
    return gw_aggregate_init(gw_memory_aligned(gw_aggregate_size(&cfg)), &cfg);
}
