/*
 * The mover of SwitchML: jobs whose sums the one switch of their rack makes in slots of their
 * own. There is no server and nothing to join: a controller has installed all before the run, and
 * does so again when the switch comes back.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/aggregation/slot_worker.h"
#include "sim/notices.h"
#include "sim/tensor_tags.h"
#include "topo/memory.h"

enum {
    EPOCH = 1,
};

/* What a member has on its host. */
struct hold {
    struct gw_slot_worker *worker;
    void *memory;
};

static void add_demand(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                       struct gw_sim_demand *demands)
{
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_demand *demand = &demands[gw_sim_workers_of(sim, spec)[rank]];
        demand->apps++;
        demand->events += room - 1;
    }
}

/* Jobs of slots have numbers behind those of shards. */
static uint32_t number_of(const struct gw_sim *sim, uint32_t job)
{
    return sim->scenario->workload.job_server_count + job;
}

static int check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    const uint32_t *workers = gw_sim_workers_of(sim, spec);
    int error = gw_sim_homes_check(sim, spec, why);
    if (error)
        return error;
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
    struct gw_slots_cfg cfg = {.pool = pool};
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
    cfg.kernels = gw_kernels_best(gw_cpu_features());
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

static int hold_open(struct gw_sim *sim, struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct hold *hold = gw_memory_zeroed(1, sizeof(*hold));
    member->mover = hold;
    struct gw_slot_worker_cfg cfg = {
        .job = number_of(sim, member->job),
        .epoch = EPOCH,
        .rank = (uint16_t)member->rank,
        .world = (uint16_t)spec->worker_count,
        .peer = gw_sim_workers_of(sim, spec)[0],
        .slots = spec->slots,
        .values = spec->values,
        .tensors_max = gw_sim_tensor_count_max(sim->jobs[member->job].room),
        .timeout = spec->timeout,
        .stall = sim->scenario->host.stall,
        .scale_exponent = GW_SCALE_EXPONENT,
        .notice = gw_sim_notices_of_job(sim, spec),
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    hold->memory = gw_memory_aligned(gw_slot_worker_size(&cfg));
    return gw_slot_worker_init(&hold->worker, hold->memory, &cfg,
                               sim->nodes[member->place].endpoint);
}

static int open_job(struct gw_sim *sim, uint32_t job, char *why)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    int error = check(sim, spec, why);
    for (uint32_t rank = 0; rank < spec->worker_count && !error; rank++)
        error = hold_open(sim, gw_sim_member_of(sim, spec, rank));
    return error;
}

static void hold_close(struct gw_sim *sim, struct gw_sim_member *member)
{
    struct hold *hold = member->mover;
    (void)sim;
    if (hold)
        free(hold->memory);
    free(hold);
    member->mover = NULL;
}

static void close_job(struct gw_sim *sim, uint32_t job)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++)
        hold_close(sim, gw_sim_member_of(sim, spec, rank));
}

static void move(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                 gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    const struct gw_piece *piece = &member->pieces[berth];
    const struct hold *hold = member->mover;
    uint64_t first = gw_sim_piece_first(job, piece);
    struct gw_tensor tensor = {
        .in = member->in ? member->in + first : NULL,
        .out = member->out ? member->out + first : NULL,
        .count = piece->bytes / sizeof(float),
        .type = GW_DTYPE_F32,
        .tag = gw_sim_tensor_tag(job, member, berth),
    };
    int error = gw_slot_worker_reduce(hold->worker, &tensor, now);
    GW_ASSERT(error == GW_OK);
}

static void take_event(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t job,
                       const struct gw_event *event, gw_time now)
{
    uint32_t berth;
    struct gw_sim_member *member =
        gw_sim_tensor_owner(part->sim, &part->sim->jobs[job], event->tag, &berth);
    (void)node;
    if (event->kind == GW_EVENT_FAILED)
        gw_sim_member_failed(part, member, (enum gw_job_reason)event->reason, event->about, now);
    else
        gw_sim_piece_done(part, member, berth, now);
}

/* There is no server to count sums, so the first rank does. */
static uint64_t bytes_back(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct hold *hold = member->mover;
    uint64_t fragments = hold ? gw_slot_worker_stats(hold->worker)->results : 0;
    return fragments * gw_sim_job_spec(sim, member->job)->values * sizeof(float);
}

static void add_results(const struct gw_sim *sim, uint32_t job, struct gw_job_result *result)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        const struct hold *hold = gw_sim_member_of(sim, spec, rank)->mover;
        if (!hold)
            continue;
        const struct gw_slot_worker_stats *stats = gw_slot_worker_stats(hold->worker);
        result->resent += stats->resent;
        if (rank == 0)
            result->fragments = result->aggregated = stats->results;
    }
}

static void member_crashed(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    (void)now;
    hold_close(sim, member);
}

const struct gw_sim_mover_ops gw_sim_mover_slots = {
    .name = "slots",
    .same_order = true,
    .room = gw_sim_tensor_room,
    .tags = gw_sim_tensor_tags,
    .demand = add_demand,
    .open = open_job,
    .close = close_job,
    .move = move,
    .event = take_event,
    .member_crashed = member_crashed,
    .back = bytes_back,
    .results = add_results,
};
