/*
 * The mover of calls: each rank of a job has a communicator, as each process would, and each piece
 * is a call of the job's list. The servers' hosts have the shards of sums, and the first of them is
 * the job's home, with its registrar.
 *
 * What sessions tell a process, the simulator does: that a rank is there, a round trip after it
 * started; that its host has died, when it has been silent for job.silence; and that the home is
 * back, after a round trip. Every rank can reach every other, by the network's routes.
 *
 * Contents are checked by call_values.h. A pull has seen as many pushes as had ended when it began,
 * and no more than had begun when it ended; those are counted over all ranks, which is why a run
 * with calls has one partition.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/ranks/registrar.h"
#include "sim/call_values.h"
#include "sim/mover.h"
#include "sim/notices.h"
#include "sim/rank_memory.h"
#include "sim/shard.h"
#include "topo/memory.h"

enum {
    VIAS = 2,     /* of sums that servers make: a server has so many shards */
    PATIENCE = 2, /* times host.stall: so that those who send to a dead rank name it */
};

/* What has become of pushes of a key, over all ranks. */
struct pushes {
    uint64_t begun, done;
};

/* What a job has. */
struct crew {
    struct gw_sim_shard *shards;    /* those with switches, then those without, by server */
    struct gw_registrar *registrar; /* NULL: its host is down */
    void *memory;                   /* of the registrar */
    struct gw_call_result *results; /* by call of the list */
    struct pushes *pushes;          /* of the key of a call of the list, at the first such call */
    uint32_t *first_of_key;         /* call of the list, by call */
    uint64_t resent;                /* by ranks whose communicator is gone */
};

/* A call in work. */
struct work {
    struct gw_sim_duty duty;
    gw_time begun;
    uint64_t pushes; /* of its key that had ended then */
};

/* What a member has on its host. */
struct hold {
    struct gw_communicator *comm; /* NULL: it has not started */
    void *memory;
    struct gw_sim_rank_memory lent; /* to the communicator */
    struct work *works;             /* by berth */
    gw_time home_at;                /* when it learns that its home is back */
    bool is_driven;                 /* calls from inside return at once */
};

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

static uint32_t home_host(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    return gw_sim_servers_of(sim, spec)[0];
}

/* A round trip between two hosts: what a session needs to begin. */
static gw_time round_trip(const struct gw_sim *sim, uint32_t a, uint32_t b)
{
    return gw_sim_app_path(sim, a, b).brtt;
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
        .job = spec->first_server,
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
        .worker =
            {
                .window_initial = spec->window_initial,
                .timeout = spec->timeout,
                .stall = scenario->host.stall,
                .congestion_control = spec->congestion_control,
                .resend_gap = spec->resend_gap,
                .limit = (enum gw_agg_limit)spec->rules.limit,
                .halving = (enum gw_agg_halving)spec->rules.halving,
                .overtaking = (enum gw_agg_overtaking)spec->rules.overtaking,
                .hdr = (uint32_t)spec->rules.header,
                .offers_exponents = spec->dynamic_scaling,
                .proactive = spec->proactive,
                .keeps_results = true,
                .notice = gw_sim_notices_of_job(sim, spec),
                .kernels = kernels,
            },
        .retry = spec->timeout,
        .beat = spec->beat,
        .stall = PATIENCE * scenario->host.stall,
        .kernels = kernels,
    };
}

static struct gw_registrar_cfg registrar_cfg(const struct gw_sim *sim,
                                             const struct gw_job_spec *spec)
{
    return (struct gw_registrar_cfg){
        .endpoint = sim->nodes[sim->place[home_host(sim, spec)]].endpoint,
        .job = spec->first_server,
        .world = (uint16_t)spec->worker_count,
        .transport = &sim->scenario->transport,
        .stall = PATIENCE * sim->scenario->host.stall,
    };
}

static void add_demand(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                       struct gw_sim_demand *demands)
{
    (void)room;
    const struct gw_communicator_cfg cfg = cfg_of(sim, spec, 0);
    const uint32_t world = spec->worker_count;
    struct gw_endpoint_cfg need = {0};
    gw_communicator_demand(&cfg, &need);
    for (uint32_t rank = 0; rank < world; rank++) {
        struct gw_sim_demand *demand = &demands[gw_sim_workers_of(sim, spec)[rank]];
        demand->sends += need.tx_flows_max;
        demand->timed += need.tx_flows_max;
        demand->receives += need.rx_flows_max;
        demand->expects += need.expect_max;
        demand->apps += need.apps_max;
        demand->events += need.app_events_max;
        demand->announcers += need.announcers_max;
    }
    for (uint32_t i = 0; i < spec->server_count; i++) {
        struct gw_sim_demand *demand = &demands[gw_sim_servers_of(sim, spec)[i]];
        demand->apps += VIAS * GW_SIM_SHARD_APPS;
        demand->servers++;
    }
    struct gw_sim_demand *home = &demands[home_host(sim, spec)];
    home->sends += gw_registrar_flows(world);
    home->timed += gw_registrar_flows(world);
    home->receives += 2 * gw_registrar_awaits(world); /* those complete still answer */
    home->expects += gw_registrar_awaits(world);
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

static void home_open(struct gw_sim *sim, const struct gw_job_spec *spec, struct crew *crew)
{
    const struct gw_registrar_cfg cfg = registrar_cfg(sim, spec);
    crew->memory = gw_memory_aligned(gw_registrar_size(cfg.world));
    crew->registrar = gw_registrar_init(crew->memory, &cfg);
    if (spec->notice_path.rtt)
        gw_registrar_set_notice_path(crew->registrar, &spec->notice_path);
}

/* Its endpoint still exists. */
static void home_close(struct crew *crew)
{
    if (crew->registrar)
        gw_registrar_fini(crew->registrar);
    free(crew->memory);
    crew->registrar = NULL;
    crew->memory = NULL;
}

/* Which calls of the list have the same key. */
static void find_keys(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t count,
                      uint32_t *first_of_key)
{
    const struct gw_call_spec *calls = sim->scenario->workload.calls + spec->first_call;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = 0;
        while (first < i &&
               ((calls[first].kind != GW_CALL_PUSH && calls[first].kind != GW_CALL_PULL) ||
                calls[first].key != calls[i].key))
            first++;
        first_of_key[i] = first;
    }
}

static int open_job(struct gw_sim *sim, uint32_t index, char *why)
{
    struct gw_sim_job *job = &sim->jobs[index];
    const struct gw_job_spec *spec = job->spec;
    const uint32_t calls = job->plan->tensor_count, servers = spec->server_count;
    struct crew *crew = gw_memory_zeroed(1, sizeof(*crew));
    job->mover = crew;
    *crew = (struct crew){
        .shards = gw_memory_zeroed((size_t)VIAS * servers, sizeof(*crew->shards)),
        .results = gw_memory_zeroed(calls, sizeof(*crew->results)),
        .pushes = gw_memory_zeroed(calls, sizeof(*crew->pushes)),
        .first_of_key = gw_memory_zeroed(calls, sizeof(*crew->first_of_key)),
    };
    find_keys(sim, spec, calls, crew->first_of_key);
    int error = gw_sim_shards_check(sim, spec, why);
    if (!error)
        error = claim(sim, index, why);
    for (uint32_t i = 0; i < VIAS * servers && !error; i++) {
        uint32_t number = gw_sim_shard_number(sim, spec, i % servers);
        crew->shards[i] = (struct gw_sim_shard){
            .host = gw_sim_servers_of(sim, spec)[i % servers],
            .number = i < servers ? number : gw_job_shard_direct(number),
            .levels = i < servers ? spec->levels : 0,
        };
        error = gw_sim_shard_open(sim, spec, &crew->shards[i]);
    }
    if (error)
        return error;
    home_open(sim, spec, crew);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, spec, rank);
        struct hold *hold = gw_memory_zeroed(1, sizeof(*hold));
        hold->works = gw_memory_zeroed(job->room, sizeof(*hold->works));
        hold->home_at = GW_TIME_NEVER;
        member->mover = hold;
        gw_sim_member_news(sim, member,
                           spec->start + round_trip(sim, gw_sim_workers_of(sim, spec)[rank],
                                                    home_host(sim, spec)));
    }
    return GW_OK;
}

/* The endpoint still exists. Nothing that was lent may be left. */
static void hold_close(struct gw_sim *sim, struct gw_sim_member *member)
{
    struct hold *hold = member->mover;
    struct gw_sim_job *job = gw_sim_job_of(sim, member);
    struct crew *crew = job->mover;
    if (!hold)
        return;
    if (hold->comm) {
        crew->resent += gw_communicator_stats(hold->comm).sums.resent;
        gw_communicator_fini(hold->comm);
    }
    gw_sim_rank_memory_check(&hold->lent);
    for (uint32_t i = 0; i < job->room; i++)
        gw_sim_duty_free(&hold->works[i].duty);
    free(hold->works);
    free(hold->memory);
    free(hold);
    member->mover = NULL;
}

static void close_job(struct gw_sim *sim, uint32_t index)
{
    struct gw_sim_job *job = &sim->jobs[index];
    struct crew *crew = job->mover;
    if (!crew)
        return;
    for (uint32_t rank = 0; rank < job->spec->worker_count; rank++)
        hold_close(sim, gw_sim_member_of(sim, job->spec, rank));
    home_close(crew);
    for (uint32_t i = 0; i < VIAS * job->spec->server_count; i++)
        gw_sim_shard_close(&crew->shards[i]);
    free(crew->shards);
    free(crew->results);
    free(crew->pushes);
    free(crew->first_of_key);
    free(crew);
}

/* Whether a refusal has a reason: the key was unknown, or lists disagree about its value. */
static bool may_refuse(const struct gw_sim *sim, const struct gw_job_spec *spec,
                       const struct work *work, const struct gw_refusal *refusal)
{
    const struct crew *crew = sim->jobs[work->duty.job].mover;
    const struct gw_call_spec *calls = sim->scenario->workload.calls + spec->first_call;
    const struct gw_call_spec *own = work->duty.spec;
    uint32_t count = sim->jobs[work->duty.job].plan->tensor_count;
    if (refusal->why == GW_REFUSED_UNKNOWN_KEY)
        return work->duty.kind == GW_CALL_PULL && work->pushes == 0;
    for (uint32_t i = 0; i < count; i++)
        if (crew->first_of_key[i] == crew->first_of_key[work->duty.call] &&
            calls[i].kind == GW_CALL_PUSH &&
            (calls[i].count != own->count || calls[i].type != own->type))
            return refusal->why == GW_REFUSED_OTHER_SHAPE;
    return false;
}

/* Whether what a call has brought is right. */
static bool is_right(const struct gw_sim *sim, const struct gw_job_spec *spec,
                     const struct work *work, const struct gw_communicator_event *event)
{
    const struct crew *crew = sim->jobs[work->duty.job].mover;
    if (event->kind == GW_COMMUNICATOR_REFUSED)
        return may_refuse(sim, spec, work, &event->refusal);
    if (work->duty.kind == GW_CALL_RECEIVE && event->bytes != work->duty.spec->count)
        return false;
    if (work->duty.kind != GW_CALL_PULL)
        return gw_sim_duty_is_right(&work->duty);
    uint64_t seen;
    return gw_sim_duty_pushes(&work->duty, &seen) && seen >= work->pushes &&
           seen <= crew->pushes[crew->first_of_key[work->duty.call]].begun;
}

/* A call has ended. */
static void ended(struct gw_sim_part *part, struct gw_sim_member *member,
                  const struct gw_communicator_event *event, gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    struct crew *crew = job->mover;
    struct hold *hold = member->mover;
    const uint32_t berth = (uint32_t)event->call - 1;
    struct work *work = &hold->works[berth];
    struct gw_call_result *result = &crew->results[work->duty.call];
    struct pushes *pushes = &crew->pushes[crew->first_of_key[work->duty.call]];
    bool is_refused = event->kind == GW_COMMUNICATOR_REFUSED;
    if (!is_right(part->sim, job->spec, work, event))
        part->wrong_payloads++;
    if (work->duty.kind == GW_CALL_PUSH && is_refused)
        pushes->begun--;
    else if (work->duty.kind == GW_CALL_PUSH)
        pushes->done++;
    gw_time took = now - work->begun;
    result->refused += is_refused;
    result->done += !is_refused;
    result->total += is_refused ? 0 : took;
    if (!is_refused && took > result->longest)
        result->longest = took;
    gw_sim_duty_free(&work->duty);
    gw_sim_piece_done(part, member, berth, now); /* which may start others */
}

static void take(struct gw_sim_part *part, struct gw_sim_member *member,
                 const struct gw_communicator_event *event, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(part->sim, member->job);
    struct hold *hold = member->mover;
    switch (event->kind) {
    case GW_COMMUNICATOR_OPEN:
        gw_sim_member_joined(part, member, now);
        break;
    case GW_COMMUNICATOR_WANTS:
        gw_mesh_way_up(gw_communicator_mesh(hold->comm), event->rank,
                       gw_sim_workers_of(part->sim, spec)[event->rank], now);
        break;
    case GW_COMMUNICATOR_DONE:
    case GW_COMMUNICATOR_REFUSED:
        ended(part, member, event, now);
        break;
    case GW_COMMUNICATOR_FAILED:
        gw_sim_member_failed(part, member, event->reason, event->about, now);
        break;
    case GW_COMMUNICATOR_LEFT:
        gw_sim_member_left(part, member, now);
        break;
    }
}

/* Lets the communicator do what it can, and takes what comes of it. */
static void drive(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct hold *hold = member->mover;
    struct gw_communicator_event event;
    if (!hold->comm || hold->is_driven)
        return;
    hold->is_driven = true;
    do
        while (gw_communicator_poll(hold->comm, &event, now))
            take(part, member, &event, now);
    while (gw_communicator_has_work(hold->comm));
    hold->is_driven = false;
}

static bool join(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    const uint32_t *workers = gw_sim_workers_of(sim, spec);
    struct hold *hold = member->mover;
    struct gw_communicator_cfg cfg = cfg_of(sim, spec, member->rank);
    cfg.allocator = gw_sim_rank_memory_allocator(&hold->lent);
    hold->memory = gw_memory_aligned(gw_communicator_size(&cfg));
    int error = gw_communicator_init(&hold->comm, hold->memory, &cfg, now);
    GW_ASSERT(error == GW_OK); /* room for it was counted at the beginning */
    for (uint32_t i = 0; i < spec->worker_count; i++) {
        struct gw_path path = gw_sim_app_path(sim, workers[member->rank], workers[i]);
        if (i != member->rank)
            gw_mesh_set_path(gw_communicator_mesh(hold->comm), i, &path);
    }
    for (uint32_t i = 0; i < spec->server_count; i++) {
        uint32_t server = gw_sim_servers_of(sim, spec)[i];
        struct gw_path path = gw_sim_app_path(sim, workers[member->rank], server);
        gw_communicator_set_server(hold->comm, i, server, &path, now);
    }
    drive(part, member, now);
    gw_sim_train_advance(part, member, now);
    return true;
}

/* What a rank does in a call of the list; GW_CALL_KINDS: nothing. */
static enum gw_call_kind duty_of(const struct gw_call_spec *spec, uint32_t rank)
{
    switch (spec->kind) {
    case GW_CALL_SEND:
        return rank == spec->from ? GW_CALL_SEND
               : rank == spec->to ? GW_CALL_RECEIVE
                                  : GW_CALL_KINDS;
    case GW_CALL_PUSH:
    case GW_CALL_PULL:
        return spec->rank == GW_CALL_RANKS_ALL || spec->rank == rank ? spec->kind : GW_CALL_KINDS;
    default:
        return spec->kind;
    }
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
    const struct gw_sim *sim = part->sim;
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    struct crew *crew = job->mover;
    struct hold *hold = member->mover;
    const uint32_t index = member->pieces[berth].first_tensor;
    const struct gw_call_spec *spec = &sim->scenario->workload.calls[job->spec->first_call + index];
    struct pushes *pushes = &crew->pushes[crew->first_of_key[index]];
    struct work *work = &hold->works[berth];
    *work = (struct work){
        .duty = {.spec = spec,
                 .kind = duty_of(spec, member->rank),
                 .job = member->job,
                 .rank = member->rank,
                 .world = job->spec->worker_count,
                 .call = index,
                 .iteration = member->iterations,
                 .seed = sim->options.seed},
        .begun = now,
        .pushes = pushes->done,
    };
    if (work->duty.kind == GW_CALL_KINDS) {
        gw_sim_piece_done(part, member, berth, now);
        return;
    }
    gw_sim_duty_fill(&work->duty);
    pushes->begun += work->duty.kind == GW_CALL_PUSH;
    const struct gw_call call = call_of(&work->duty, job->plan->tensor_count, berth);
    int error = gw_communicator_call(hold->comm, &call, now);
    GW_ASSERT(error != GW_ERR_NO_ROOM); /* there are no more berths */
    if (error == GW_ERR_INVALID)
        gw_sim_member_failed(part, member, GW_JOB_LIMIT, member->rank, now);
    else /* if it is over, it says so */
        drive(part, member, now);
}

static void leave(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct hold *hold = member->mover;
    gw_communicator_leave(hold->comm, now);
    drive(part, member, now);
}

static bool offer(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t index,
                  const struct gw_event *event, gw_time now)
{
    const struct gw_sim_job *job = &part->sim->jobs[index];
    const struct crew *crew = job->mover;
    struct gw_sim_member *member = gw_sim_member_at(part->sim, node, index);
    if (!member)
        return node->id == home_host(part->sim, job->spec) && crew->registrar &&
               gw_registrar_event(crew->registrar, event, now);
    struct hold *hold = member->mover;
    if (!hold || !hold->comm || !gw_communicator_event(hold->comm, event, now))
        return false;
    drive(part, member, now);
    gw_sim_train_advance(part, member, now);
    return true;
}

/* The member's session with the home has begun, or has been silent for too long. */
static void heard(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    const struct crew *crew = sim->jobs[member->job].mover;
    const uint32_t host = gw_sim_workers_of(sim, spec)[member->rank];
    if (!crew->registrar)
        return;
    if (!member->mover) {
        gw_registrar_gone(crew->registrar, host, now);
        return;
    }
    const struct gw_rank_place place = {.address = host};
    struct gw_path path = gw_sim_app_path(sim, home_host(sim, spec), host);
    enum gw_job_reason reason = gw_registrar_come(crew->registrar, (uint16_t)member->rank, &place,
                                                  gw_sim_notices_option(sim, spec), &path, now);
    GW_ASSERT(reason == GW_JOB_OK); /* ranks and addresses differ, and all announce alike */
}

static gw_time deadline(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct hold *hold = member->mover;
    (void)sim;
    gw_time at = hold->comm ? gw_communicator_deadline(hold->comm) : GW_TIME_NEVER;
    return at < hold->home_at ? at : hold->home_at;
}

static void expire(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    struct hold *hold = member->mover;
    if (hold->home_at <= now) {
        uint32_t home = home_host(sim, spec);
        struct gw_path path =
            gw_sim_app_path(sim, gw_sim_workers_of(sim, spec)[member->rank], home);
        hold->home_at = GW_TIME_NEVER;
        if (hold->comm)
            gw_communicator_set_server(hold->comm, 0, home, &path, now);
    }
    if (hold->comm)
        gw_communicator_expire(hold->comm, now);
    drive(part, member, now);
}

static void member_crashed(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    hold_close(sim, member);
    gw_sim_member_news(sim, member, now + spec->silence);
}

static void servers_crashed(struct gw_sim *sim, uint32_t index, uint32_t place, gw_time now)
{
    (void)now;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    struct crew *crew = sim->jobs[index].mover;
    for (uint32_t i = 0; i < VIAS * spec->server_count; i++)
        if (sim->place[crew->shards[i].host] == place)
            gw_sim_shard_close(&crew->shards[i]);
    if (sim->place[home_host(sim, spec)] == place)
        home_close(crew);
}

static void servers_restarted(struct gw_sim *sim, uint32_t index, uint32_t place)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    const uint32_t home = home_host(sim, spec);
    const gw_time now = sim->window_index * sim->window;
    struct crew *crew = sim->jobs[index].mover;
    for (uint32_t i = 0; i < VIAS * spec->server_count; i++)
        if (sim->place[crew->shards[i].host] == place) {
            int error = gw_sim_shard_open(sim, spec, &crew->shards[i]);
            GW_ASSERT(error == GW_OK); /* there was room before */
        }
    if (sim->place[home] != place)
        return;
    home_open(sim, spec, crew);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, spec, rank);
        struct hold *hold = member->mover;
        gw_time from = now > spec->start ? now : spec->start;
        gw_time at = from + round_trip(sim, gw_sim_workers_of(sim, spec)[rank], home);
        if (!hold || member->outcome != GW_FLOW_PENDING)
            continue;
        gw_sim_member_news(sim, member, at);
        hold->home_at = at;
        gw_sim_member_wake_by(sim, member, at);
    }
}

static void add_results(const struct gw_sim *sim, uint32_t index, struct gw_job_result *result)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    const struct crew *crew = sim->jobs[index].mover;
    for (uint32_t i = 0; i < VIAS * spec->server_count; i++)
        gw_sim_shard_results(&crew->shards[i], result);
    result->resent += crew->resent;
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        const struct hold *hold = gw_sim_member_of(sim, spec, rank)->mover;
        if (hold && hold->comm)
            result->resent += gw_communicator_stats(hold->comm).sums.resent;
    }
}

static void call_result(const struct gw_sim *sim, uint32_t index, uint32_t call,
                        struct gw_call_result *result)
{
    const struct crew *crew = sim->jobs[index].mover;
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
    .offer = offer,
    .heard = heard,
    .deadline = deadline,
    .expire = expire,
    .member_crashed = member_crashed,
    .servers_crashed = servers_crashed,
    .servers_restarted = servers_restarted,
    .results = add_results,
    .call = call_result,
};
