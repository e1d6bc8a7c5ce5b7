/*
 * Training jobs on simulated hosts: places each job in a tree of switches, attaches its workers and
 * its server, and starts the next sum when one is done.
 *
 * The tree follows the network: the switch of the server is the root, the switches of the other
 * workers are below it. Between them packets may take any path, since nothing is added up on the
 * way.
 *
 * A job's worker is a "member": the run waits for members as it does for flows, and starts with
 * numbers behind those of the flows name them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "sim/engine.h"

enum {
    RAW_MAX = 8,
    TENSORS_MAX = 2,
    EPOCH = 1,
    LEVEL_NONE = GW_LEVELS_MAX - 1, /* matches no packet: the switch only multiplies results */
};

/* The switch that a host hangs on. */
static uint32_t home_of(const struct gw_sim *sim, uint32_t host)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    return topo->ports[topo->nodes[host].first_port].peer;
}

static const uint32_t *workers_of(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    return sim->scenario->workload.job_hosts + spec->first_worker;
}

/* Hosts must hang on one switch each: what is added up there must come through there. */
static int hosts_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    for (uint32_t i = 0; i <= spec->worker_count; i++) {
        uint32_t host = i < spec->worker_count ? workers_of(sim, spec)[i] : spec->server;
        if (topo->nodes[host].port_count == 1 && home_of(sim, host) >= topo->host_count)
            continue;
        snprintf(why, GW_WHY_MAX,
                 "workload: via: %s has several ways into the network (or no switch), so no point "
                 "of aggregation is fixed",
                 topo->nodes[host].name);
        return GW_ERR_INVALID;
    }
    return GW_OK;
}

/* A job's tree while it is made. */
struct tree {
    uint32_t root;
    uint32_t *racks; /* switches below the root */
    uint32_t rack_count;
    uint32_t *rack_sizes; /* workers of each */
    uint32_t *members;    /* of the root: one worker per rack, and its own */
    uint32_t member_count;
    uint32_t own_count; /* workers right at the root */
};

static uint32_t rack_index(const struct tree *tree, uint32_t home)
{
    uint32_t i = 0;
    while (i < tree->rack_count && tree->racks[i] != home)
        i++;
    return i;
}

/* Fills the tree and every worker's place in it. */
static void tree_make(const struct gw_sim *sim, const struct gw_job_spec *spec, struct tree *tree,
                      struct gw_place *places)
{
    const uint32_t *workers = workers_of(sim, spec);
    uint32_t n = spec->worker_count;
    *tree = (struct tree){
        .root = home_of(sim, spec->server),
        .racks = gw_sim_alloc(n * sizeof(uint32_t)),
        .rack_sizes = gw_sim_alloc(n * sizeof(uint32_t)),
        .members = gw_sim_alloc(n * sizeof(uint32_t)),
    };
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t home = home_of(sim, workers[rank]);
        places[rank] = (struct gw_place){.address = workers[rank]};
        if (home == tree->root) {
            tree->members[tree->member_count++] = workers[rank];
            tree->own_count++;
            continue;
        }
        uint32_t rack = rack_index(tree, home);
        if (rack == tree->rack_count) {
            tree->racks[tree->rack_count++] = home;
            tree->members[tree->member_count++] = workers[rank];
        }
        places[rank].bitmap = UINT32_C(1) << (tree->rack_sizes[rack]++ % 32);
        places[rank].above[0] = (uint8_t)rack;
    }
    /* Workers at the root are positions of the root, or with racks on their own, another rack. */
    bool is_rack = tree->rack_count == 0 || spec->via == GW_JOB_VIA_RSS;
    uint32_t own = 0;
    for (uint32_t rank = 0; rank < n; rank++)
        if (home_of(sim, workers[rank]) == tree->root) {
            places[rank].level = !is_rack;
            places[rank].bitmap = UINT32_C(1) << (own % 32);
            places[rank].above[0] = (uint8_t)(tree->rack_count + (is_rack ? 0 : own));
            own++;
        }
}

static void tree_free(struct tree *tree)
{
    free(tree->racks);
    free(tree->rack_sizes);
    free(tree->members);
}

static int tree_check(const struct gw_job_spec *spec, const struct tree *tree, uint32_t job,
                      char *why)
{
    uint32_t widest = tree->member_count;
    for (uint32_t i = 0; i < tree->rack_count; i++)
        if (tree->rack_sizes[i] > widest)
            widest = tree->rack_sizes[i];
    if (spec->via == GW_JOB_VIA_PS || widest <= GW_FAN_IN_MAX)
        return GW_OK;
    snprintf(why, GW_WHY_MAX,
             "workload: workers: job %u has %u workers or racks below one switch; at most %d", job,
             widest, GW_FAN_IN_MAX);
    return GW_ERR_RANGE;
}

static int install(struct gw_sim *sim, uint32_t id, const struct gw_aggregate_job *job, char *why)
{
    const struct gw_sim_node *node = &sim->nodes[sim->place[id]];
    int error = gw_aggregate_install(node->aggregate, job);
    if (error)
        snprintf(why, GW_WHY_MAX, "workload: %s has no room for job %u: %s",
                 sim->scenario->topo.nodes[id].name, job->job, gw_error_message(error));
    return error;
}

/* Tells the switches of the tree. */
static int tree_install(struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t job,
                        const struct tree *tree, char *why)
{
    const uint32_t *workers = workers_of(sim, spec);
    uint32_t *locals = gw_sim_alloc(spec->worker_count * sizeof(*locals));
    int error = GW_OK;
    for (uint32_t rack = 0; rack < tree->rack_count && !error; rack++) {
        uint32_t count = 0;
        for (uint32_t rank = 0; rank < spec->worker_count; rank++)
            if (home_of(sim, workers[rank]) == tree->racks[rack])
                locals[count++] = workers[rank];
        struct gw_aggregate_job entry = {
            .job = job,
            .epoch = EPOCH,
            .fan_in = (uint8_t)count,
            .above = {(uint8_t)rack},
            .member_count = (uint16_t)count,
            .members = locals,
        };
        error = install(sim, tree->racks[rack], &entry, why);
    }
    free(locals);
    bool is_rack = tree->rack_count == 0 || spec->via == GW_JOB_VIA_RSS;
    struct gw_aggregate_job root = {
        .job = job,
        .epoch = EPOCH,
        .level = !is_rack          ? 1
                 : tree->own_count ? 0
                                   : LEVEL_NONE,
        .fan_in = (uint8_t)(!is_rack          ? tree->member_count
                            : tree->own_count ? tree->own_count
                                              : 1),
        .above = {(uint8_t)(is_rack ? tree->rack_count : 0)},
        .member_count = (uint16_t)tree->member_count,
        .members = tree->members,
    };
    return error ? error : install(sim, tree->root, &root, why);
}

static int attach_workers(struct gw_sim *sim, uint32_t job, const struct gw_place *places)
{
    const struct gw_job_spec *spec = &sim->scenario->workload.jobs[job];
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_member *member = &sim->members[spec->first_worker + rank];
        struct gw_worker_cfg cfg = {
            .job = job,
            .epoch = EPOCH,
            .world = (uint16_t)spec->worker_count,
            .server = spec->server,
            .level = places[rank].level,
            .bitmap = places[rank].bitmap,
            .above = {places[rank].above[0], places[rank].above[1]},
            .values = spec->values,
            .window_max = spec->window,
            .window_initial = spec->window_initial,
            .aggregators = spec->aggregators,
            .indexing = (enum gw_agg_indexing)spec->indexing,
            .share = spec->share,
            .tensors_max = TENSORS_MAX,
            .timeout = spec->timeout,
            .stall = sim->scenario->host.stall,
            .congestion_control = spec->congestion_control,
            .resend_gap = spec->resend_gap,
            .scale_exponent = GW_SCALE_EXPONENT,
            .kernels = gw_kernels_best(gw_cpu_features()),
        };
        member->job = job;
        member->place = sim->place[places[rank].address];
        member->memory = gw_sim_alloc(gw_worker_size(&cfg));
        int error = gw_worker_init(&member->worker, member->memory, &cfg,
                                   sim->nodes[member->place].endpoint);
        if (error)
            return error;
    }
    return GW_OK;
}

static int attach_server(struct gw_sim *sim, uint32_t job, const struct gw_place *places,
                         uint32_t levels)
{
    const struct gw_job_spec *spec = &sim->scenario->workload.jobs[job];
    struct gw_server_cfg cfg = {
        .job = job,
        .epoch = EPOCH,
        .world = (uint16_t)spec->worker_count,
        .workers = places,
        .levels = (uint8_t)levels,
        .values = spec->values,
        .window = 2 * spec->window,
        .positions = spec->window,
        .aggregators = spec->aggregators,
        .indexing = (enum gw_agg_indexing)spec->indexing,
        .share = spec->share,
        .raw_max = RAW_MAX,
        .retry = spec->timeout / 8 + 1,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    struct gw_sim_job *run = &sim->jobs[job];
    run->memory = gw_sim_alloc(gw_server_size(&cfg));
    return gw_server_init(&run->server, run->memory, &cfg,
                          sim->nodes[sim->place[spec->server]].endpoint);
}

static int job_open(struct gw_sim *sim, uint32_t job, char *why)
{
    const struct gw_job_spec *spec = &sim->scenario->workload.jobs[job];
    int error = hosts_check(sim, spec, why);
    if (error)
        return error;
    struct gw_place *places = gw_sim_alloc(spec->worker_count * sizeof(*places));
    struct tree tree;
    tree_make(sim, spec, &tree, places);
    error = tree_check(spec, &tree, job, why);
    if (!error && spec->via != GW_JOB_VIA_PS)
        error = tree_install(sim, spec, job, &tree, why);
    uint32_t levels = spec->via == GW_JOB_VIA_PS ? 0 : tree.rack_count ? 2 : 1;
    if (!error && levels == 0)
        /* Nobody adds up, and the server tells workers apart by rank alone. */
        for (uint32_t rank = 0; rank < spec->worker_count; rank++)
            places[rank] = (struct gw_place){.address = places[rank].address,
                                                     .bitmap = UINT32_C(1) << (rank % 32),
                                                     .above = {(uint8_t)(rank / 32)}};
    if (!error)
        error = attach_workers(sim, job, places);
    if (!error)
        error = attach_server(sim, job, places, levels);
    if (error && !why[0])
        snprintf(why, GW_WHY_MAX, "workload: job %u: %s", job, gw_error_message(error));
    tree_free(&tree);
    free(places);
    return error;
}

int gw_sim_jobs_open(struct gw_sim *sim, char *why)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    sim->members = gw_sim_alloc(workload->job_host_count * sizeof(*sim->members));
    sim->jobs = gw_sim_alloc(workload->job_count * sizeof(*sim->jobs));
    why[0] = '\0';
    int error = GW_OK;
    for (uint32_t job = 0; job < workload->job_count && !error; job++) {
        error = job_open(sim, job, why);
        const struct gw_job_spec *spec = &workload->jobs[job];
        for (uint32_t i = 0; i < spec->worker_count && !error; i++) {
            struct gw_sim_start start = {.at = spec->start,
                                         .flow = workload->flow_count + spec->first_worker + i};
            gw_sim_app_add(&sim->nodes[sim->members[spec->first_worker + i].place].app, start);
        }
    }
    sim->awaited += workload->job_host_count;
    return error;
}

void gw_sim_jobs_close(struct gw_sim *sim)
{
    for (uint32_t i = 0; sim->members && i < sim->scenario->workload.job_host_count; i++)
        free(sim->members[i].memory);
    for (uint32_t i = 0; sim->jobs && i < sim->scenario->workload.job_count; i++)
        free(sim->jobs[i].memory);
    free(sim->members);
    free(sim->jobs);
}

bool gw_sim_member_start(struct gw_sim *sim, uint32_t index, gw_time now)
{
    struct gw_sim_member *member = &sim->members[index];
    struct gw_tensor tensor = {
        .count = sim->scenario->workload.jobs[member->job].bytes / sizeof(float),
        .type = GW_DTYPE_F32,
        .tag = sim->scenario->workload.flow_count + index,
    };
    if (gw_worker_reduce(member->worker, &tensor, now) != GW_OK)
        return false;
    if (member->outcome == GW_FLOW_PENDING && !member->is_started) {
        member->is_started = true;
        member->start = now;
    }
    return true;
}

void gw_sim_member_event(struct gw_sim_part *part, const struct gw_event *event, gw_time now)
{
    struct gw_sim *sim = part->sim;
    uint32_t index = event->tag - sim->scenario->workload.flow_count;
    struct gw_sim_member *member = &sim->members[index];
    const struct gw_job_spec *spec = &sim->scenario->workload.jobs[member->job];
    bool failed = event->kind == GW_EVENT_FAILED;
    member->end = now;
    if (!failed && ++member->iterations < spec->iterations) {
        bool started = gw_sim_member_start(sim, index, now);
        GW_ASSERT(started); /* the event that was just polled has made room */
        return;
    }
    member->outcome = failed ? GW_FLOW_FAILED : GW_FLOW_DONE;
    part->flows_ended++;
}

/* Options of every aggregation stage; no aggregators when no job adds up anything. */
static struct gw_aggregate_cfg aggregate_cfg(const struct gw_sim *sim, struct gw_pkt_pool *pool)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    struct gw_aggregate_cfg cfg = {
        .jobs_max = workload->job_count,
        .members_max = workload->job_host_count,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = pool,
    };
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        if (spec->via != GW_JOB_VIA_PS && spec->aggregators > cfg.aggregators)
            cfg.aggregators = spec->aggregators;
        if (spec->leak > cfg.leak)
            cfg.leak = spec->leak;
    }
    return cfg;
}

struct gw_aggregate *gw_sim_aggregate(const struct gw_sim *sim, struct gw_pkt_pool *pool,
                                      uint32_t id)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    bool is_home = false;
    for (uint32_t i = 0; i < workload->job_count && !is_home; i++) {
        is_home = home_of(sim, workload->jobs[i].server) == id;
        for (uint32_t w = 0; w < workload->jobs[i].worker_count && !is_home; w++)
            is_home = home_of(sim, workers_of(sim, &workload->jobs[i])[w]) == id;
    }
    struct gw_aggregate_cfg cfg = aggregate_cfg(sim, pool);
    if (!is_home || cfg.aggregators == 0)
        return NULL;
    return gw_aggregate_init(gw_sim_alloc(gw_aggregate_size(&cfg)), &cfg);
}

uint32_t gw_sim_jobs(const struct gw_sim *sim, struct gw_job_result *results, uint32_t max)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->job_count && i < max; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        const struct gw_server_stats *server = gw_server_stats(sim->jobs[i].server);
        struct gw_job_result result = {
            .workers = spec->worker_count,
            .server_bytes = server->bytes,
            .server_packets = server->received,
            .fragments = server->results,
            .aggregated = server->complete,
            .start = GW_TIME_NEVER,
        };
        for (uint32_t w = 0; w < spec->worker_count; w++) {
            const struct gw_sim_member *member = &sim->members[spec->first_worker + w];
            const struct gw_worker_stats *worker = gw_worker_stats(member->worker);
            result.completed += member->outcome == GW_FLOW_DONE;
            result.resent += worker->resent;
            result.iterations += member->iterations;
            if (member->is_started && member->start < result.start)
                result.start = member->start;
            if (member->end > result.end)
                result.end = member->end;
        }
        result.iterations /= spec->worker_count;
        results[i] = result;
    }
    return workload->job_count;
}

/*
 * What becomes of jobs when a node crashes; see engine.h. A worker or server that was on it stays
 * silent from then on, and a switch no longer adds up.
 */
void gw_sim_jobs_crashed(struct gw_sim *sim, uint32_t place, gw_time now)
{
    (void)sim;
    (void)place;
    (void)now;
}

void gw_sim_jobs_restarted(struct gw_sim *sim, uint32_t place, gw_time now)
{
    (void)sim;
    (void)place;
    (void)now;
}
