/*
 * SwitchML in the simulator: jobs whose sums the one switch of their rack makes in slots of their
 * own. There is no server and nothing to join: a controller has installed all before the run, and
 * does so again when the switch comes back.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "sim/jobs_impl.h"
#include "topo/memory.h"

enum {
    EPOCH = 1,
    TENSORS_MAX = 2,
};

/* Jobs of slots have numbers behind those of shards. */
static uint32_t number_of(const struct gw_sim *sim, uint32_t job)
{
    return sim->scenario->workload.job_server_count + job;
}

int gw_sim_slots_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    const uint32_t *workers = gw_sim_workers_of(sim, spec);
    for (uint32_t rank = 1; rank < spec->worker_count; rank++)
        if (gw_sim_home_of(sim, workers[rank]) != gw_sim_home_of(sim, workers[0])) {
            snprintf(why, GW_WHY_MAX,
                     "workload: via: switchml adds up at one switch, but the workers of a job hang "
                     "on several");
            return GW_ERR_INVALID;
        }
    return GW_OK;
}

struct gw_slots *gw_sim_slots(const struct gw_sim *sim, struct gw_pkt_pool *pool, uint32_t id)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    struct gw_slots_cfg cfg = {.kernels = gw_kernels_best(gw_cpu_features()), .pool = pool};
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        if (spec->via != GW_JOB_VIA_SWITCHML ||
            gw_sim_home_of(sim, gw_sim_workers_of(sim, spec)[0]) != id)
            continue;
        cfg.jobs_max++;
        cfg.slots += spec->slots;
    }
    if (cfg.jobs_max == 0)
        return NULL;
    struct gw_slots *slots = gw_slots_init(gw_memory_aligned(gw_slots_size(&cfg)), &cfg);
    gw_sim_slots_install(sim, slots, id);
    return slots;
}

void gw_sim_slots_install(const struct gw_sim *sim, struct gw_slots *slots, uint32_t id)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint32_t first = 0;
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        struct gw_slots_job job = {
            .job = number_of(sim, i),
            .epoch = EPOCH,
            .world = (uint16_t)spec->worker_count,
            .first = first,
            .count = spec->slots,
            .members = gw_sim_workers_of(sim, spec),
        };
        if (spec->via != GW_JOB_VIA_SWITCHML || gw_sim_home_of(sim, job.members[0]) != id)
            continue;
        int error = gw_slots_install(slots, &job);
        GW_ASSERT(error == GW_OK); /* the pool is as large as all of them */
        first += spec->slots;
    }
}

int gw_sim_slot_worker_open(struct gw_sim *sim, struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct gw_sim_stake *stake = &member->stakes[0];
    struct gw_slot_worker_cfg cfg = {
        .job = number_of(sim, member->job),
        .epoch = EPOCH,
        .rank = (uint16_t)member->rank,
        .world = (uint16_t)spec->worker_count,
        .peer = gw_sim_workers_of(sim, spec)[0],
        .slots = spec->slots,
        .values = spec->values,
        .tensors_max = TENSORS_MAX,
        .timeout = spec->timeout,
        .stall = sim->scenario->host.stall,
        .scale_exponent = GW_SCALE_EXPONENT,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    stake->memory[1] = gw_memory_aligned(gw_slot_worker_size(&cfg));
    return gw_slot_worker_init(&stake->slot_worker, stake->memory[1], &cfg,
                               sim->nodes[member->place].endpoint);
}
