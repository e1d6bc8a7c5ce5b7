/*
 * The mover of calls: each rank of a job has a communicator, as each process would, and each piece
 * is a call of the job's list. The servers' hosts have the shards of sums, and the first of them is
 * the job's home, with its registrar.
 *
 * Every rank can reach every other, by the network's routes. What sessions tell a process, the
 * simulator does: see calls_server.c. calls_books.c checks what calls bring. It counts over all
 * ranks, and buffers of packets are counted too, so a run with calls has one partition.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "sim/calls_impl.h"
#include "sim/notices.h"
#include "topo/memory.h"

static uint32_t room_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t pieces)
{
    (void)sim;
    return pieces < spec->calls ? pieces : spec->calls;
}

/* Its events are known by their hosts. */
static uint64_t tags_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room)
{
    (void)sim;
    (void)spec;
    (void)room;
    return 0;
}

static struct gw_communicator_cfg cfg_of(const struct gw_sim *sim, const struct gw_job_spec *spec,
                                         uint32_t rank)
{
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    const struct gw_scenario *scenario = sim->scenario;
    const uint32_t host = gw_sim_workers_of(sim, spec)[rank];
    return (struct gw_communicator_cfg){
        .endpoint = sim->nodes[sim->place[host]].endpoint,
        .address = host,
        .job = gw_sim_shard_number(spec, 0),
        .rank = (uint16_t)rank,
        .world = (uint16_t)spec->worker_count,
        .via = spec->calls_via,
        .server_count = spec->server_count,
        .whole = spec->whole,
        .has_ways = true,
        .notice = gw_sim_notices_option(sim, spec),
        .transport = &scenario->transport,
        .mtu = scenario->host.mtu,
        .segment = (uint32_t)spec->segment,
        .flows = spec->flows,
        .incarnation = gw_sim_incarnation(sim, spec->first_server << 10 | rank, UINT16_MAX),
        .worker = gw_sim_worker_cfg(sim, spec),
        .retry = spec->timeout,
        .beat = spec->beat,
        .stall = GW_SIM_CALLS_PATIENCE * scenario->host.stall,
        .kernels = kernels,
    };
}

static void add_demand(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                       struct gw_sim_demand *demands)
{
    (void)room;
    const struct gw_communicator_cfg cfg = cfg_of(sim, spec, 0);
    struct gw_endpoint_cfg need = {0};
    gw_communicator_demand(&cfg, &need);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_demand *demand = &demands[gw_sim_workers_of(sim, spec)[rank]];
        demand->sends += need.tx_flows_max;
        demand->timed += need.tx_flows_max;
        demand->receives += need.rx_flows_max;
        demand->expects += need.expect_max;
        demand->apps += need.apps_max;
        demand->events += need.app_events_max;
        demand->announcers += need.announcers_max;
    }
    gw_sim_calls_add_servers(sim, spec, demands);
}

/* A host has one communicator, or is a server of one job. */
static int claim(struct gw_sim *sim, uint32_t job, char *why)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    for (uint32_t i = 0; i < spec->worker_count + spec->server_count; i++) {
        uint32_t host = i < spec->worker_count
                            ? gw_sim_workers_of(sim, spec)[i]
                            : gw_sim_servers_of(sim, spec)[i - spec->worker_count];
        struct gw_sim_app *app = &sim->nodes[sim->place[host]].app;
        if (app->claimant != UINT32_MAX) {
            snprintf(why, GW_WHY_MAX, "workload: hosts: %s is in two jobs of kind calls",
                     sim->scenario->topo.nodes[host].name);
            return GW_ERR_INVALID;
        }
        app->claimant = job;
    }
    return GW_OK;
}

static int open_job(struct gw_sim *sim, uint32_t index, char *why)
{
    struct gw_sim_job *job = &sim->jobs[index];
    const struct gw_job_spec *spec = job->spec;
    struct gw_sim_crew *crew = gw_memory_zeroed(1, sizeof(*crew));
    job->mover = crew;
    gw_sim_calls_open_books(sim, job, crew);
    int error = gw_sim_shards_check(sim, spec, why);
    if (!error)
        error = claim(sim, index, why);
    if (!error)
        error = gw_sim_calls_open_servers(sim, spec, crew);
    for (uint32_t i = 0; i < spec->worker_count && !error; i++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, spec, i);
        struct gw_sim_rank *rank = gw_memory_zeroed(1, sizeof(*rank));
        rank->works = gw_memory_zeroed(job->room, sizeof(*rank->works));
        rank->look_at = GW_TIME_NEVER;
        member->mover = rank;
        gw_sim_calls_greet(sim, member, spec->start);
    }
    return error;
}

/* The endpoint still exists. */
static void rank_close(struct gw_sim *sim, struct gw_sim_member *member)
{
    struct gw_sim_rank *rank = member->mover;
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    struct gw_sim_crew *crew = job->mover;
    if (!rank)
        return;
    if (rank->comm) {
        crew->resent += gw_communicator_stats(rank->comm).sums.resent;
        gw_communicator_fini(rank->comm);
    }
    gw_sim_rank_memory_check(&rank->lent);
    for (uint32_t i = 0; i < job->room; i++)
        gw_sim_duty_free(&rank->works[i].duty);
    free(rank->works);
    free(rank->memory);
    free(rank);
    member->mover = NULL;
}

static void close_job(struct gw_sim *sim, uint32_t index)
{
    const struct gw_sim_job *job = &sim->jobs[index];
    struct gw_sim_crew *crew = job->mover;
    if (!crew)
        return;
    for (uint32_t i = 0; i < job->spec->worker_count; i++)
        rank_close(sim, gw_sim_member_of(sim, job->spec, i));
    gw_sim_calls_close_servers(job->spec, crew);
    gw_sim_calls_close_books(job, crew);
    free(crew);
}

static void call_ended(struct gw_sim_part *part, struct gw_sim_member *member,
                       const struct gw_communicator_event *event, gw_time now)
{
    const struct gw_sim_rank *rank = member->mover;
    const uint32_t berth = (uint32_t)event->call - 1;
    if (!gw_sim_calls_end(part->sim, &rank->works[berth], event, now))
        part->wrong_payloads++;
    gw_sim_piece_done(part, member, berth, now); /* which may start others */
}

static void take(struct gw_sim_part *part, struct gw_sim_member *member,
                 const struct gw_communicator_event *event, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(part->sim, member->job);
    struct gw_sim_rank *rank = member->mover;
    switch (event->kind) {
    case GW_COMMUNICATOR_OPEN:
        gw_sim_member_joined(part, member, now);
        break;
    case GW_COMMUNICATOR_WANTS:
        gw_mesh_way_up(gw_communicator_mesh(rank->comm), event->rank,
                       gw_sim_workers_of(part->sim, spec)[event->rank], now);
        break;
    case GW_COMMUNICATOR_DONE:
    case GW_COMMUNICATOR_REFUSED:
        call_ended(part, member, event, now);
        break;
    case GW_COMMUNICATOR_FAILED:
        gw_sim_member_failed(part, member, event->reason, event->about, now);
        gw_sim_calls_silence(part->sim, member, now);
        break;
    case GW_COMMUNICATOR_LEFT:
        gw_sim_member_left(part, member, now);
        gw_sim_calls_silence(part->sim, member, now);
        break;
    }
}

/* Lets the communicator do what it can, and takes what comes of it. */
static void drive(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct gw_sim_rank *rank = member->mover;
    struct gw_communicator_event event;
    if (!rank->comm || rank->is_driven)
        return;
    rank->is_driven = true;
    do
        while (gw_communicator_poll(rank->comm, &event, now))
            take(part, member, &event, now);
    while (gw_communicator_has_work(rank->comm));
    rank->is_driven = false;
}

static bool join(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    const uint32_t *workers = gw_sim_workers_of(sim, spec);
    struct gw_sim_rank *rank = member->mover;
    struct gw_communicator_cfg cfg = cfg_of(sim, spec, member->rank);
    cfg.allocator = gw_sim_rank_memory_allocator(&rank->lent);
    rank->memory = gw_memory_aligned(gw_communicator_size(&cfg));
    int error = gw_communicator_init(&rank->comm, rank->memory, &cfg, now);
    GW_ASSERT(error == GW_OK); /* room for it was counted at the beginning */
    for (uint32_t i = 0; i < spec->worker_count; i++) {
        struct gw_path path = gw_sim_app_path(sim, workers[member->rank], workers[i]);
        if (i != member->rank)
            gw_mesh_set_path(gw_communicator_mesh(rank->comm), i, &path);
    }
    for (uint32_t i = 0; i < spec->server_count; i++) {
        uint32_t server = gw_sim_servers_of(sim, spec)[i];
        struct gw_path path = gw_sim_app_path(sim, workers[member->rank], server);
        gw_communicator_set_server(rank->comm, i, server, &path, now);
    }
    rank->home_life = ((const struct gw_sim_crew *)sim->jobs[member->job].mover)->home_lives;
    drive(part, member, now);
    gw_sim_train_advance(part, member, now);
    return true;
}

/* A call as the communicator takes it. */
static struct gw_call call_of(const struct gw_sim_duty *duty, uint32_t calls, uint32_t berth)
{
    const struct gw_call_spec *spec = duty->spec;
    return (struct gw_call){
        .kind = duty->kind,
        .via = spec->via,
        .type = spec->type,
        .op = spec->op,
        .number = berth + 1,
        .in = duty->in,
        .out = duty->out,
        .count = spec->count,
        .peer = duty->kind == GW_CALL_SEND      ? spec->to
                : duty->kind == GW_CALL_RECEIVE ? spec->from
                                                : spec->root,
        .tag = (duty->iteration * calls + duty->call) & GW_MESH_MESSAGE_TAG_MAX,
        .key = spec->key,
    };
}

static void move(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                 gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    struct gw_sim_rank *rank = member->mover;
    struct gw_sim_work *work = &rank->works[berth];
    gw_sim_calls_begin(part->sim, member, member->pieces[berth].first_tensor, work, now);
    if (work->duty.kind == GW_CALL_KINDS) {
        gw_sim_piece_done(part, member, berth, now);
        return;
    }
    const struct gw_call call = call_of(&work->duty, job->plan->tensor_count, berth);
    int error = gw_communicator_call(rank->comm, &call, now);
    GW_ASSERT(error != GW_ERR_NO_ROOM); /* there are no more berths */
    if (error == GW_ERR_INVALID || error == GW_ERR_NO_MEMORY) {
        gw_sim_member_failed(part, member, GW_JOB_LIMIT, member->rank, now);
        gw_communicator_abort(rank->comm, now);
    }
    drive(part, member, now);
}

static void leave(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct gw_sim_rank *rank = member->mover;
    gw_communicator_leave(rank->comm, now);
    drive(part, member, now);
}

static void event(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t index,
                  const struct gw_event *event, gw_time now)
{
    const struct gw_sim_crew *crew = part->sim->jobs[index].mover;
    struct gw_sim_member *member = gw_sim_member_at(part->sim, node, index);
    const struct gw_sim_rank *rank = member ? member->mover : NULL;
    if (!member && crew->registrar) {
        gw_registrar_event(crew->registrar, event, now);
        if (event->kind == GW_EVENT_FAILED)
            gw_sim_calls_cut(part->sim, index, event->peer, now);
    }
    if (!rank || !rank->comm)
        return; /* it came from an earlier life of the host */
    gw_communicator_event(rank->comm, event, now);
    drive(part, member, now);
    gw_sim_train_advance(part, member, now);
}

static gw_time deadline(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct gw_sim_rank *rank = member->mover;
    (void)sim;
    gw_time at = rank->comm ? gw_communicator_deadline(rank->comm) : GW_TIME_NEVER;
    return at < rank->look_at ? at : rank->look_at;
}

static void expire(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim_rank *rank = member->mover;
    if (rank->look_at <= now)
        gw_sim_calls_look(part->sim, member, now);
    if (rank->comm)
        gw_communicator_expire(rank->comm, now);
    drive(part, member, now);
}

static void member_crashed(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    rank_close(sim, member);
    gw_sim_calls_silence(sim, member, now);
}

static void add_results(const struct gw_sim *sim, uint32_t index, struct gw_job_result *result)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    const struct gw_sim_crew *crew = sim->jobs[index].mover;
    for (uint32_t i = 0; i < GW_SIM_CALLS_VIAS * spec->server_count; i++)
        gw_sim_shard_results(&crew->shards[i], result);
    result->resent += crew->resent;
    for (uint32_t i = 0; i < spec->worker_count; i++) {
        const struct gw_sim_rank *rank = gw_sim_member_of(sim, spec, i)->mover;
        if (rank && rank->comm)
            result->resent += gw_communicator_stats(rank->comm).sums.resent;
    }
}

static void call_result(const struct gw_sim *sim, uint32_t index, uint32_t call,
                        struct gw_call_result *result)
{
    const struct gw_sim_crew *crew = sim->jobs[index].mover;
    *result = crew->results[call];
}

const struct gw_sim_mover_ops gw_sim_mover_calls = {
    .name = "calls",
    .same_order = true,
    .sends_messages = true,
    .has_contents = true,
    .says_left = true,
    .room = room_of,
    .tags = tags_of,
    .demand = add_demand,
    .open = open_job,
    .close = close_job,
    .join = join,
    .move = move,
    .leave = leave,
    .event = event,
    .heard = gw_sim_calls_heard,
    .deadline = deadline,
    .expire = expire,
    .member_crashed = member_crashed,
    .servers_crashed = gw_sim_calls_servers_crashed,
    .servers_restarted = gw_sim_calls_servers_restarted,
    .results = add_results,
    .call = call_result,
};
