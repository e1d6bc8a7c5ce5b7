/*
 * The training jobs of a run: opens them with their movers, brings starts, timers and events to
 * those whom they concern, and makes the stages of switches that add up. See jobs_impl.h.
 */
#include "sim/jobs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/layers.h"
#include "sim/calendar.h"
#include "sim/mover.h"
#include "topo/memory.h"

enum {
    /* Of flows and jobs, where there are communicators: what these say to each other has others
     * (core/ranks/mesh_wire.h). */
    TAGS_APART = 0xa0000000,
    TAGS_APART_END = 0xffffff00,
    IDLE_SILENCES = 8, /* of workers, after which a switch that hears nothing forgets a job */
};

#define GW_REGISTER(via, mover) extern const struct gw_sim_mover_ops gw_sim_mover_##mover;
#include "sim/mover.def"
#undef GW_REGISTER

const struct gw_sim_mover_ops *gw_sim_mover_of(enum gw_job_via via)
{
    static const struct gw_sim_mover_ops *const movers[] = {
#define GW_REGISTER(via, mover) [GW_JOB_VIA_##via] = &gw_sim_mover_##mover,
#include "sim/mover.def"
#undef GW_REGISTER
    };
    return via < sizeof(movers) / sizeof(movers[0]) ? movers[via] : NULL;
}

int gw_sim_homes_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    for (uint32_t i = 0; i < spec->worker_count + spec->server_count; i++) {
        uint32_t host = i < spec->worker_count
                            ? gw_sim_workers_of(sim, spec)[i]
                            : gw_sim_servers_of(sim, spec)[i - spec->worker_count];
        if (topo->nodes[host].port_count == 1 && gw_sim_home_of(sim, host) >= topo->host_count)
            continue;
        snprintf(why, GW_WHY_MAX,
                 "workload: via: %s has several ways into the network (or no switch), so no point "
                 "of aggregation is fixed",
                 topo->nodes[host].name);
        return GW_ERR_INVALID;
    }
    return GW_OK;
}

uint8_t gw_sim_class_of(const struct gw_sim_job *job, uint32_t layer)
{
    const struct gw_job_worth *worth = &job->spec->worth;
    return worth->priority == GW_JOB_PRIORITY_LAYER
               ? gw_layers_class(layer, job->plan->layer_count, worth->classes)
               : (uint8_t)GW_CLASS_BEST_EFFORT;
}

uint64_t gw_sim_piece_first(const struct gw_sim_job *job, const struct gw_piece *piece)
{
    return (job->offsets[piece->first_tensor] + piece->first) / sizeof(float);
}

/* The server of a piece that is not divided. */
static uint32_t owner_of(const struct gw_job_spec *spec, uint32_t piece)
{
    uint64_t number = spec->draw ? gw_mix64(spec->draw + piece) : piece;
    return (uint32_t)(number % spec->server_count);
}

uint64_t gw_sim_piece_part(const struct gw_job_spec *spec, const struct gw_piece *piece,
                           uint32_t server, uint64_t *first)
{
    uint64_t elements = piece->bytes / sizeof(float);
    uint64_t share = elements / spec->server_count, rest = elements % spec->server_count;
    *first = 0;
    if (piece->bytes <= spec->whole)
        return owner_of(spec, piece->id) == server ? elements : 0;
    *first = server * share + (server < rest ? server : rest);
    return share + (server < rest);
}

uint64_t gw_sim_piece_max(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    const struct gw_plan *plan = &sim->scenario->workload.plans[spec->train.plan].plan;
    uint64_t most = spec->train.fusion;
    for (uint32_t i = 0; i < plan->tensor_count; i++)
        if (plan->tensors[i].bytes > most)
            most = plan->tensors[i].bytes;
    return most < plan->bytes ? most : plan->bytes;
}

/* What all jobs need of hosts; fixes how many pieces a member may have under way. */
void gw_sim_jobs_demand(const struct gw_sim *sim, struct gw_sim_demand *demands)
{
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++) {
        const struct gw_sim_job *job = &sim->jobs[i];
        job->ops->demand(sim, job->spec, job->room, demands);
    }
}

/* What a job is, before hosts exist. */
static int prepare(struct gw_sim *sim, uint32_t index, uint64_t *tag, char *why)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    const struct gw_job_spec *spec = &workload->jobs[index];
    struct gw_sim_job *job = &sim->jobs[index];
    *job = (struct gw_sim_job){
        .spec = spec,
        .plan = &workload->plans[spec->train.plan].plan,
        .ops = gw_sim_mover_of(spec->via),
        .first_tag = (uint32_t)*tag,
    };
    if (!job->ops) {
        snprintf(why, GW_WHY_MAX, "workload: via: the simulator has no mover for it");
        return GW_ERR_UNKNOWN;
    }
    const struct gw_plan *plan = job->plan;
    job->pieces = gw_sim_pieces_of(spec, plan);
    job->room = job->ops->room(sim, spec, job->pieces ? job->pieces : 1);
    *tag += job->ops->tags(sim, spec, job->room);
    if (*tag > (sim->first_tag ? TAGS_APART_END : UINT32_MAX)) {
        snprintf(why, GW_WHY_MAX, "workload: jobs have too many workers and pieces of gradients");
        return GW_ERR_RANGE;
    }
    job->offsets = gw_memory_zeroed(plan->tensor_count, sizeof(*job->offsets));
    for (uint32_t t = 1; t < plan->tensor_count; t++)
        job->offsets[t] = job->offsets[t - 1] + plan->tensors[t - 1].bytes;
    gw_sim_order_open(job);
    return GW_OK;
}

static bool any_makes_calls(const struct gw_workload *workload)
{
    for (uint32_t i = 0; i < workload->job_count; i++)
        if (workload->jobs[i].via == GW_JOB_VIA_CALLS)
            return true;
    return false;
}

int gw_sim_jobs_prepare(struct gw_sim *sim, char *why)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    bool is_apart = any_makes_calls(workload);
    sim->first_tag = is_apart ? TAGS_APART : 0;
    uint64_t tag = (uint64_t)sim->first_tag + workload->flow_count;
    sim->jobs = gw_memory_zeroed(workload->job_count, sizeof(*sim->jobs));
    sim->members = gw_memory_aligned(workload->job_host_count * sizeof(*sim->members));
    int error = GW_OK;
    for (uint32_t i = 0; i < workload->job_count && !error; i++)
        error = prepare(sim, i, &tag, why);
    sim->end_tag = (uint32_t)tag;
    return error;
}

static void member_open(struct gw_sim *sim, uint32_t job, uint32_t rank)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    uint32_t index = spec->first_worker + rank;
    struct gw_sim_member *member = &sim->members[index];
    *member = (struct gw_sim_member){
        .job = job, .rank = rank, .place = sim->place[gw_sim_workers_of(sim, spec)[rank]]};
    struct gw_sim_app *app = &sim->nodes[member->place].app;
    member->next_here = app->first_member;
    app->first_member = index;
    gw_sim_train_open(sim, member);
    struct gw_sim_start start = {.at = spec->start,
                                 .flow = sim->scenario->workload.flow_count + index};
    gw_sim_app_add(app, start);
}

int gw_sim_jobs_open(struct gw_sim *sim, char *why)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    why[0] = '\0';
    int error = GW_OK;
    for (uint32_t i = 0; i < workload->job_count && !error; i++) {
        for (uint32_t rank = 0; rank < workload->jobs[i].worker_count; rank++)
            member_open(sim, i, rank);
        if (sim->jobs[i].ops->keeps_books)
            sim->jobs[i].books = gw_sim_books_open(sim->part_count);
        error = sim->jobs[i].ops->open(sim, i, why);
        if (error && !why[0])
            snprintf(why, GW_WHY_MAX, "workload: job %u: %s", i, gw_error_message(error));
    }
    sim->awaited += workload->job_host_count;
    return error;
}

void gw_sim_jobs_close(struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; sim->jobs && i < workload->job_count; i++) {
        struct gw_sim_job *job = &sim->jobs[i];
        if (job->ops)
            job->ops->close(sim, i);
        gw_sim_books_close(job->books, sim->part_count);
        free(job->offsets);
        gw_sim_order_close(job);
    }
    for (uint32_t i = 0; sim->members && i < workload->job_host_count; i++)
        gw_sim_train_close(&sim->members[i]);
    free(sim->members);
    free(sim->jobs);
}

bool gw_sim_member_start(struct gw_sim_part *part, uint32_t index, gw_time now)
{
    const uint32_t count = part->sim->scenario->workload.job_host_count;
    bool is_news = index >= count;
    struct gw_sim_member *member = &part->sim->members[is_news ? index - count : index];
    const struct gw_sim_mover_ops *ops = gw_sim_job_of(part->sim, member)->ops;
    if (is_news)
        ops->heard(part, member, now);
    if (is_news || !member->mover)
        return true;
    if (ops->join)
        return ops->join(part, member, now);
    gw_sim_member_joined(part, member, now);
    return true;
}

void gw_sim_member_wake(struct gw_sim *sim, struct gw_sim_member *member, gw_time at)
{
    struct gw_sim_app *app = &sim->nodes[member->place].app;
    bool was_first = member->wake == app->wake;
    member->wake = at;
    if (at <= app->wake) {
        app->wake = at;
    } else if (was_first) {
        app->wake = at;
        for (uint32_t i = app->first_member; i != UINT32_MAX; i = sim->members[i].next_here)
            if (sim->members[i].wake < app->wake)
                app->wake = sim->members[i].wake;
    }
}

void gw_sim_member_wake_by(struct gw_sim *sim, struct gw_sim_member *member, gw_time at)
{
    if (at < member->wake)
        gw_sim_member_wake(sim, member, at);
    gw_sim_calendar_wake(gw_sim_part_of(sim, member->place), member->place, at);
}

void gw_sim_job_mourn(struct gw_sim *sim, const struct gw_sim_job *job, enum gw_job_reason reason,
                      uint32_t about, gw_time now)
{
    struct gw_sim_loss loss = {.at = now + job->spec->silence, .reason = reason, .about = about};
    for (uint32_t rank = 0; rank < job->spec->worker_count; rank++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, job->spec, rank);
        if (!member->mover || member->outcome != GW_FLOW_PENDING ||
            member->loss.at != GW_TIME_NEVER)
            continue;
        member->loss = loss;
        gw_sim_member_wake_by(sim, member, loss.at);
    }
}

struct gw_sim_member *gw_sim_member_at(const struct gw_sim *sim, const struct gw_sim_node *node,
                                       uint32_t job)
{
    for (uint32_t i = node->app.first_member; i != UINT32_MAX; i = sim->members[i].next_here)
        if (sim->members[i].job == job)
            return &sim->members[i];
    return NULL;
}

void gw_sim_members_expire(struct gw_sim_part *part, const struct gw_sim_app *app, gw_time now)
{
    struct gw_sim *sim = part->sim;
    for (uint32_t i = app->first_member; i != UINT32_MAX; i = sim->members[i].next_here)
        if (sim->members[i].wake <= now)
            gw_sim_train_expire(part, &sim->members[i], now);
}

void gw_sim_member_news(struct gw_sim *sim, struct gw_sim_member *member, gw_time at)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint32_t place = sim->place[gw_sim_servers_of(sim, gw_sim_job_spec(sim, member->job))[0]];
    struct gw_sim_app *app = &sim->nodes[place].app;
    uint32_t index = workload->job_host_count + (uint32_t)(member - sim->members);
    gw_sim_app_add(app, (struct gw_sim_start){.at = at, .flow = workload->flow_count + index});
    gw_sim_calendar_wake(gw_sim_part_of(sim, place), place, gw_sim_app_next(app));
}

uint32_t gw_sim_shard_number(const struct gw_job_spec *spec, uint32_t server)
{
    uint32_t first = spec->key << GW_JOB_NAME_BITS | spec->first_server;
    return spec->via == GW_JOB_VIA_CALLS ? gw_job_shard(first, server) : first + server;
}

/* A number without its key. */
static uint32_t index_of(uint32_t number)
{
    return number & ((UINT32_C(1) << GW_JOB_NAME_BITS) - 1);
}

/* The last job that does not begin behind a tag, or a shard. */
static const struct gw_sim_job *find_job(const struct gw_sim *sim, uint32_t number, bool is_shard)
{
    uint32_t low = 0, high = sim->scenario->workload.job_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        const struct gw_sim_job *job = &sim->jobs[middle];
        if (number < (is_shard ? job->spec->first_server : job->first_tag))
            high = middle;
        else
            low = middle;
    }
    return &sim->jobs[low];
}

/* The job that makes calls, one of whose shards has this number; UINT32_MAX: none. */
static uint32_t caller_of_shard(const struct gw_sim *sim, uint32_t number)
{
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++) {
        const struct gw_job_spec *spec = sim->jobs[i].spec;
        for (uint32_t s = 0; spec->via == GW_JOB_VIA_CALLS && s < spec->server_count; s++) {
            uint32_t shard = gw_sim_shard_number(spec, s);
            if (number == shard || number == gw_job_shard_direct(shard))
                return i;
        }
    }
    return UINT32_MAX;
}

gw_q16 gw_sim_job_bound(const struct gw_sim *sim, uint32_t tag)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    if (tag - sim->first_tag >= sim->end_tag - sim->first_tag || workload->job_count == 0)
        return 0;
    const struct gw_sim_job *job = find_job(sim, tag, false);
    return job->ops->bound ? job->ops->bound(job, tag) : 0;
}

static bool is_control(const struct gw_event *event)
{
    return event->kind == GW_EVENT_JOINED || event->kind == GW_EVENT_REFUSED ||
           event->kind == GW_EVENT_LEFT;
}

/* Whether it is about what a communicator has on its host. */
static bool is_of_communicator(const struct gw_sim *sim, const struct gw_event *event)
{
    bool is_flow = event->kind == GW_EVENT_SENT || event->kind == GW_EVENT_RECEIVED ||
                   (event->kind == GW_EVENT_FAILED && !event->reason);
    return is_flow ? event->tag < sim->first_tag || event->tag >= sim->end_tag
                   : caller_of_shard(sim, event->flow) != UINT32_MAX;
}

/* The job that an event of an application or a message is about; NULL: it is about a flow. */
static const struct gw_sim_job *job_of_event(const struct gw_sim *sim, const struct gw_event *event)
{
    if (is_control(event))
        return find_job(sim, index_of(event->flow), true);
    return gw_sim_flow_of_tag(sim, event->tag) == UINT32_MAX ? find_job(sim, event->tag, false)
                                                             : NULL;
}

/* The job whose data a flow carries. */
static uint32_t job_of_flow(const struct gw_sim *sim, const struct gw_pkt *pkt)
{
    if (pkt->q.flags & GW_PKT_BLAST) /* which has no tag: it is known for whose calls its host is */
        return sim->nodes[sim->place[pkt->src]].app.claimant;
    if (gw_sim_flow_of_tag(sim, pkt->data.tag) != UINT32_MAX)
        return UINT32_MAX;
    if (pkt->data.tag < sim->first_tag || pkt->data.tag >= sim->end_tag)
        return sim->nodes[sim->place[pkt->src]].app.claimant;
    return (uint32_t)(find_job(sim, pkt->data.tag, false) - sim->jobs);
}

uint32_t gw_sim_job_of_packet(const struct gw_sim *sim, const struct gw_pkt *pkt)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    if (pkt->q.kind == GW_PKT_DATA)
        return job_of_flow(sim, pkt);
    if (pkt->q.kind != GW_PKT_GRAD)
        return UINT32_MAX;
    uint32_t caller = sim->first_tag ? caller_of_shard(sim, pkt->flow) : UINT32_MAX;
    if (caller != UINT32_MAX)
        return caller;
    /* Slots have numbers behind those of shards. */
    uint32_t index = index_of(pkt->flow);
    return index < workload->job_server_count ? (uint32_t)(find_job(sim, index, true) - sim->jobs)
                                              : index - workload->job_server_count;
}

bool gw_sim_job_event(struct gw_sim_part *part, struct gw_sim_node *node,
                      const struct gw_event *event, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    if (sim->first_tag && is_of_communicator(sim, event)) {
        uint32_t claimant = node->app.claimant;
        sim->jobs[claimant].ops->event(part, node, claimant, event, now);
        return true;
    }
    const struct gw_sim_job *job = job_of_event(sim, event);
    if (!job)
        return false;
    job->ops->event(part, node, (uint32_t)(job - sim->jobs), event, now);
    return true;
}

void gw_sim_jobs_crashed(struct gw_sim *sim, uint32_t place, gw_time now)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->job_host_count; i++) {
        struct gw_sim_member *member = &sim->members[i];
        if (member->place != place || !member->mover)
            continue;
        sim->jobs[member->job].ops->member_crashed(sim, member, now);
        gw_sim_member_failed(gw_sim_part_of(sim, place), member, GW_JOB_LOST, member->rank, now);
    }
    for (uint32_t i = 0; i < workload->job_count; i++)
        if (sim->jobs[i].ops->servers_crashed)
            sim->jobs[i].ops->servers_crashed(sim, i, place, now);
}

void gw_sim_jobs_restarted(struct gw_sim *sim, uint32_t place)
{
    for (uint32_t i = 0; i < sim->scenario->workload.job_count; i++)
        if (sim->jobs[i].ops->servers_restarted)
            sim->jobs[i].ops->servers_restarted(sim, i, place);
}

/* Options of every aggregation stage; no aggregators when no job adds up anything. */
static struct gw_aggregate_cfg aggregate_cfg(const struct gw_sim *sim, struct gw_pkt_pool *pool)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    struct gw_aggregate_cfg cfg = {
        .jobs_max = workload->job_server_count,
        .members_max = workload->job_server_count * GW_FAN_IN_MAX,
        .pool = pool,
    };
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        if (spec->levels > 0 && spec->aggregators > cfg.aggregators)
            cfg.aggregators = spec->aggregators;
        if (spec->rules.reclaim == GW_AGG_RECLAIM_RESULTS)
            cfg.reclaim = GW_AGG_RECLAIM_RESULTS;
        if (spec->rules.shares)
            cfg.share = GW_AGGREGATE_SHARE_EQUAL;
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
    cfg.kernels = gw_kernels_best(gw_cpu_features()); /* to ask the processor takes long */
    return gw_aggregate_init(gw_memory_aligned(gw_aggregate_size(&cfg)), &cfg);
}
