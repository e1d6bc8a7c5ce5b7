/*
 * What members of training jobs do in a run: join, reduce the tensor again and again, leave; and
 * what becomes of them when hosts die. A worker that dies fails its job, as it would a training
 * run; a server that comes back is found again by its workers.
 */
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "sim/jobs_impl.h"
#include "topo/memory.h"

enum {
    TENSORS_MAX = 2,
};

static void end(struct gw_sim_part *part, struct gw_sim_member *member,
                enum gw_flow_outcome outcome, gw_time now)
{
    if (member->outcome != GW_FLOW_PENDING)
        return;
    member->outcome = outcome;
    member->end = now;
    part->flows_ended++;
}

static void iterate(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    if (member->in)
        gw_sim_payload_fill(sim, member);
    struct gw_tensor tensor = {
        .in = member->in,
        .out = member->out,
        .count = spec->bytes / sizeof(float),
        .type = GW_DTYPE_F32,
        .tag = sim->scenario->workload.flow_count + (uint32_t)(member - sim->members),
    };
    if (spec->server_count == 0) {
        int error = gw_slot_worker_reduce(member->stakes[0].slot_worker, &tensor, now);
        GW_ASSERT(error == GW_OK);
        member->pending++;
    }
    for (uint32_t i = 0; i < spec->server_count; i++) {
        const struct gw_sim_shard *shard = &sim->shards[spec->first_server + i];
        tensor.in = member->in ? member->in + shard->first : NULL;
        tensor.out = member->out ? member->out + shard->first : NULL;
        tensor.count = shard->count;
        int error = gw_worker_reduce(member->stakes[i].worker, &tensor, now);
        /* The event that was just polled has made room. */
        GW_ASSERT(error == GW_OK || error == GW_ERR_OUT);
        if (error) {
            member->reason = gw_member_reason(member->stakes[i].member);
            end(gw_sim_part_of(sim, member->place), member, GW_FLOW_FAILED, now);
            return; /* calls in work end by themselves */
        }
        member->pending++;
    }
    if (!member->is_started)
        member->start = now;
    member->is_started = true;
}

bool gw_sim_member_start(struct gw_sim *sim, uint32_t index, gw_time now)
{
    struct gw_sim_member *member = &sim->members[index];
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    if (spec->server_count == 0 && member->stakes)
        iterate(sim, member, now);
    for (uint32_t i = 0; member->stakes && i < spec->server_count; i++)
        if (gw_member_state(member->stakes[i].member) == GW_MEMBER_OUT &&
            gw_member_join(member->stakes[i].member, now) != GW_OK)
            return false;
    return true;
}

static void joined(struct gw_sim *sim, struct gw_sim_member *member, uint32_t shard, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct gw_sim_stake *stake = &member->stakes[shard - spec->first_server];
    struct gw_worker_cfg cfg = {
        .window_initial = spec->window_initial,
        .tensors_max = TENSORS_MAX,
        .timeout = spec->timeout,
        .stall = sim->scenario->host.stall,
        .congestion_control = spec->congestion_control,
        .resend_gap = spec->resend_gap,
        .limit = (enum gw_agg_limit)spec->rules.limit,
        .halving = (enum gw_agg_halving)spec->rules.halving,
        .overtaking = (enum gw_agg_overtaking)spec->rules.overtaking,
        .hdr = (uint32_t)spec->rules.header,
        .offers_exponents = spec->dynamic_scaling,
        .proactive = spec->proactive,
        .keeps_results = true,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    gw_member_worker_cfg(stake->member, &cfg);
    stake->memory[1] = gw_memory_aligned(gw_worker_size(&cfg));
    int error =
        gw_worker_init(&stake->worker, stake->memory[1], &cfg, sim->nodes[member->place].endpoint);
    GW_ASSERT(error == GW_OK); /* room for it was counted at the beginning */
    gw_member_bind(stake->member, stake->worker);
    if (++member->joined == spec->server_count)
        iterate(sim, member, now);
}

static void failed(struct gw_sim_part *part, struct gw_sim_member *member,
                   const struct gw_event *event, gw_time now)
{
    if (member->outcome == GW_FLOW_PENDING) {
        member->reason = (enum gw_job_reason)event->reason;
        member->about = event->about;
    }
    end(part, member, GW_FLOW_FAILED, now);
}

static void reduced(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    if (--member->pending)
        return;
    if (member->outcome != GW_FLOW_PENDING)
        return; /* another part has failed */
    member->end = now;
    if (member->out && !gw_sim_payload_is_right(sim, member))
        part->wrong_payloads++;
    if (++member->iterations < spec->iterations) {
        iterate(sim, member, now);
        return;
    }
    end(part, member, GW_FLOW_DONE, now);
    for (uint32_t i = 0; i < spec->server_count; i++)
        gw_member_leave(member->stakes[i].member, now);
}

bool gw_sim_member_event(struct gw_sim_part *part, const struct gw_event *event, gw_time now)
{
    struct gw_sim *sim = part->sim;
    uint32_t flows = sim->scenario->workload.flow_count;
    switch (event->kind) {
    case GW_EVENT_JOINED:
    case GW_EVENT_REFUSED: {
        const struct gw_sim_shard *shard = &sim->shards[event->flow];
        uint32_t rank = event->rank;
        struct gw_sim_member *member =
            &sim->members[gw_sim_job_spec(sim, shard->job)->first_worker + rank];
        if (event->kind == GW_EVENT_JOINED)
            joined(sim, member, event->flow, now);
        else
            failed(part, member, event, now);
        return true;
    }
    case GW_EVENT_LEFT:
        return true;
    case GW_EVENT_REDUCED:
        reduced(part, &sim->members[event->tag - flows], now);
        return true;
    case GW_EVENT_FAILED:
        if (event->tag < flows)
            return false;
        sim->members[event->tag - flows].pending--;
        failed(part, &sim->members[event->tag - flows], event, now);
        return true;
    default:
        return false;
    }
}

void gw_sim_jobs_crashed(struct gw_sim *sim, uint32_t place, gw_time now)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->job_host_count; i++) {
        struct gw_sim_member *member = &sim->members[i];
        if (member->place != place || !member->stakes)
            continue;
        member->reason = GW_JOB_LOST;
        member->about = member->rank;
        gw_sim_member_close(sim, member, true);
        end(gw_sim_part_of(sim, place), member, GW_FLOW_FAILED, now);
    }
    for (uint32_t i = 0; i < workload->job_server_count; i++)
        if (sim->place[sim->shards[i].host] == place)
            gw_sim_shard_close(sim, i, true);
}

void gw_sim_jobs_restarted(struct gw_sim *sim, uint32_t place)
{
    for (uint32_t i = 0; i < sim->scenario->workload.job_server_count; i++)
        if (sim->place[sim->shards[i].host] == place) {
            int error = gw_sim_shard_open(sim, i);
            GW_ASSERT(error == GW_OK); /* there was room before */
        }
}
