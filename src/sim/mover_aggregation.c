/*
 * The mover of aggregation in the network: the core's worker and server (ATP), with job control.
 *
 * A job of the scenario is split over its servers: each has a job number of its own in the core (a
 * "shard"), a server and a coordinator on its host. A member has one worker and membership per
 * shard ("stake"). A piece is done when all shards that have a part of it have summed theirs.
 *
 * A worker that dies fails its job, as it would a training run; a server that comes back is found
 * again by its workers.
 */
#include <stdlib.h>

#include "base/error.h"
#include "core/control/member.h"
#include "sim/notices.h"
#include "sim/shard.h"
#include "sim/tensor_tags.h"
#include "topo/memory.h"

/* A job's servers, and what its workers counted that died. */
struct crew {
    struct gw_sim_shard *shards;
    struct gw_worker_stats past;
};

/* A member's part in one shard. */
struct stake {
    struct gw_member *member;
    struct gw_worker *worker; /* NULL before it has joined */
    void *memory[2];
};

/* What a member has on its host. */
struct hold {
    struct stake *stakes; /* one per shard of the job */
    uint32_t joined;      /* shards */
    uint32_t *parts;      /* of each piece under way, not yet summed; by berth */
};

static void add_demand(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                       struct gw_sim_demand *demands)
{
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_demand *demand = &demands[gw_sim_workers_of(sim, spec)[rank]];
        demand->apps += GW_SIM_SHARD_APPS * spec->server_count + 1;
        demand->events += (room - 1) * spec->server_count;
    }
    for (uint32_t i = 0; i < spec->server_count; i++) {
        struct gw_sim_demand *demand = &demands[gw_sim_servers_of(sim, spec)[i]];
        demand->apps += GW_SIM_SHARD_APPS;
        demand->servers++;
    }
}

static void hold_close(struct gw_sim *sim, struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct crew *crew = sim->jobs[member->job].mover;
    struct hold *hold = member->mover;
    for (uint32_t i = 0; hold && i < spec->server_count; i++) {
        struct stake *stake = &hold->stakes[i];
        if (stake->worker)
            gw_sim_add_stats(&crew->past, gw_worker_stats(stake->worker), sizeof(crew->past));
        free(stake->memory[0]);
        free(stake->memory[1]);
    }
    if (hold) {
        free(hold->stakes);
        free(hold->parts);
    }
    free(hold);
    member->mover = NULL;
}

static int hold_open(struct gw_sim *sim, struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct hold *hold = gw_memory_zeroed(1, sizeof(*hold));
    member->mover = hold;
    hold->stakes = gw_memory_zeroed(spec->server_count, sizeof(*hold->stakes));
    hold->parts = gw_memory_zeroed(sim->jobs[member->job].room, sizeof(*hold->parts));
    for (uint32_t i = 0; i < spec->server_count; i++) {
        struct stake *stake = &hold->stakes[i];
        uint32_t shard = spec->first_server + i;
        struct gw_member_cfg cfg = {
            .job = gw_sim_shard_number(spec, i),
            .server = gw_sim_servers_of(sim, spec)[i],
            .rank = (uint16_t)member->rank,
            .incarnation = gw_sim_incarnation(sim, shard << 10 | member->rank, UINT16_MAX),
            .retry = spec->timeout,
            .beat = spec->beat,
            .stall = sim->scenario->host.stall,
            .notice = gw_sim_notices_option(sim, spec),
        };
        stake->memory[0] = gw_memory_aligned(gw_member_size());
        int error = gw_member_init(&stake->member, stake->memory[0], &cfg,
                                   sim->nodes[member->place].endpoint);
        if (error)
            return error;
    }
    return GW_OK;
}

static int open_job(struct gw_sim *sim, uint32_t job, char *why)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    int error = gw_sim_shards_check(sim, spec, why);
    if (!error)
        error = gw_sim_payload_check(sim, spec, why);
    if (error)
        return error;
    struct crew *crew = gw_memory_zeroed(1, sizeof(*crew));
    sim->jobs[job].mover = crew;
    crew->shards = gw_memory_zeroed(spec->server_count, sizeof(*crew->shards));
    for (uint32_t i = 0; i < spec->server_count && !error; i++) {
        crew->shards[i] = (struct gw_sim_shard){
            .host = gw_sim_servers_of(sim, spec)[i],
            .number = gw_sim_shard_number(spec, i),
            .levels = spec->levels,
        };
        error = gw_sim_shard_open(sim, spec, &crew->shards[i]);
    }
    for (uint32_t rank = 0; rank < spec->worker_count && !error; rank++)
        error = hold_open(sim, gw_sim_member_of(sim, spec, rank));
    return error;
}

static void close_job(struct gw_sim *sim, uint32_t job)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    struct crew *crew = sim->jobs[job].mover;
    if (!crew)
        return;
    for (uint32_t rank = 0; rank < spec->worker_count; rank++)
        hold_close(sim, gw_sim_member_of(sim, spec, rank));
    for (uint32_t i = 0; i < spec->server_count; i++)
        gw_sim_shard_close(&crew->shards[i]);
    free(crew->shards);
    free(crew);
}

static bool join(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(part->sim, member->job);
    const struct hold *hold = member->mover;
    for (uint32_t i = 0; i < spec->server_count; i++)
        if (gw_member_state(hold->stakes[i].member) == GW_MEMBER_OUT &&
            gw_member_join(hold->stakes[i].member, now) != GW_OK)
            return false;
    return true;
}

/* A member is in a shard's job: it gets its worker. */
static void joined(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t i, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct hold *hold = member->mover;
    struct stake *stake = &hold->stakes[i];
    struct gw_worker_cfg cfg = gw_sim_worker_cfg(sim, spec);
    cfg.tensors_max = gw_sim_tensor_count_max(sim->jobs[member->job].room);
    gw_member_worker_cfg(stake->member, &cfg);
    stake->memory[1] = gw_memory_aligned(gw_worker_size(&cfg));
    int error =
        gw_worker_init(&stake->worker, stake->memory[1], &cfg, sim->nodes[member->place].endpoint);
    GW_ASSERT(error == GW_OK); /* room for it was counted at the beginning */
    gw_member_bind(stake->member, stake->worker);
    if (++hold->joined == spec->server_count)
        gw_sim_member_joined(part, member, now);
}

static void move(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                 gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    const struct gw_piece *piece = &member->pieces[berth];
    struct hold *hold = member->mover;
    struct gw_tensor tensor = {
        .type = GW_DTYPE_F32,
        .bound = job->spec->worth.bound,
        .tag = gw_sim_tensor_tag(job, member, berth),
    };
    hold->parts[berth] = 0;
    for (uint32_t i = 0; i < job->spec->server_count; i++) {
        uint64_t first;
        tensor.count = gw_sim_piece_part(job->spec, piece, i, &first);
        if (tensor.count == 0)
            continue;
        first += gw_sim_piece_first(job, piece);
        tensor.in = member->in ? member->in + first : NULL;
        tensor.out = member->out ? member->out + first : NULL;
        int error = gw_worker_reduce(hold->stakes[i].worker, &tensor, now);
        /* The event that was just polled has made room. */
        GW_ASSERT(error == GW_OK || error == GW_ERR_OUT);
        if (error) {
            gw_sim_member_failed(part, member, gw_member_reason(hold->stakes[i].member), 0, now);
            return; /* calls in work end by themselves */
        }
        hold->parts[berth]++;
    }
}

static void leave(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(part->sim, member->job);
    const struct hold *hold = member->mover;
    for (uint32_t i = 0; i < spec->server_count; i++)
        gw_member_leave(hold->stakes[i].member, now);
}

/* A part of a piece is summed, or will not be. */
static void part_over(struct gw_sim_part *part, uint32_t job, const struct gw_event *event,
                      gw_time now)
{
    const struct gw_sim_job *of = &part->sim->jobs[job];
    uint32_t berth;
    struct gw_sim_member *member = gw_sim_tensor_owner(part->sim, of, event->tag, &berth);
    struct hold *hold = member->mover;
    hold->parts[berth]--;
    if (event->kind == GW_EVENT_FAILED)
        gw_sim_member_failed(part, member, (enum gw_job_reason)event->reason, event->about, now);
    else if (hold->parts[berth] == 0)
        gw_sim_piece_done(part, member, berth, now);
}

static void take_event(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t job,
                       const struct gw_event *event, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(part->sim, job);
    (void)node;
    switch (event->kind) {
    case GW_EVENT_JOINED:
        joined(part, gw_sim_member_of(part->sim, spec, event->rank),
               event->flow - gw_sim_shard_number(spec, 0), now);
        break;
    case GW_EVENT_REFUSED:
        gw_sim_member_failed(part, gw_sim_member_of(part->sim, spec, event->rank),
                             (enum gw_job_reason)event->reason, event->about, now);
        break;
    case GW_EVENT_REDUCED:
    case GW_EVENT_FAILED:
        part_over(part, job, event, now);
        break;
    default:
        break; /* it has left */
    }
}

static void member_crashed(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    (void)now;
    hold_close(sim, member);
}

static void servers_crashed(struct gw_sim *sim, uint32_t job, uint32_t place, gw_time now)
{
    (void)now;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    struct crew *crew = sim->jobs[job].mover;
    for (uint32_t i = 0; i < spec->server_count; i++)
        if (sim->place[crew->shards[i].host] == place)
            gw_sim_shard_close(&crew->shards[i]);
}

static void servers_restarted(struct gw_sim *sim, uint32_t job, uint32_t place)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    struct crew *crew = sim->jobs[job].mover;
    for (uint32_t i = 0; i < spec->server_count; i++)
        if (sim->place[crew->shards[i].host] == place) {
            int error = gw_sim_shard_open(sim, spec, &crew->shards[i]);
            GW_ASSERT(error == GW_OK); /* there was room before */
        }
}

static uint64_t bytes_back(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    const struct hold *hold = member->mover;
    uint64_t fragments = 0;
    for (uint32_t i = 0; hold && i < spec->server_count; i++)
        if (hold->stakes[i].worker)
            fragments += gw_worker_stats(hold->stakes[i].worker)->results;
    return fragments * spec->values * sizeof(float);
}

static void add_results(const struct gw_sim *sim, uint32_t job, struct gw_job_result *result)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    const struct crew *crew = sim->jobs[job].mover;
    for (uint32_t i = 0; i < spec->server_count; i++)
        gw_sim_shard_results(&crew->shards[i], result);
    result->resent += crew->past.resent;
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        const struct hold *hold = gw_sim_member_of(sim, spec, rank)->mover;
        for (uint32_t i = 0; hold && i < spec->server_count; i++)
            if (hold->stakes[i].worker)
                result->resent += gw_worker_stats(hold->stakes[i].worker)->resent;
    }
}

const struct gw_sim_mover_ops gw_sim_mover_aggregation = {
    .name = "aggregation",
    .same_order = true,
    .room = gw_sim_tensor_room,
    .tags = gw_sim_tensor_tags,
    .demand = add_demand,
    .open = open_job,
    .close = close_job,
    .join = join,
    .move = move,
    .leave = leave,
    .event = take_event,
    .member_crashed = member_crashed,
    .servers_crashed = servers_crashed,
    .servers_restarted = servers_restarted,
    .back = bytes_back,
    .results = add_results,
};
