/*
 * All-reduce: jobs whose workers sum a tensor over and over, through the switches, at a server, or
 * around a ring.
 *
 * Workers are spread evenly over the racks (groups of the topology), or for SwitchML are in one; a
 * job's servers are in the last rack, or on the hosts of workers. Through switches or a server a
 * job is a struct gw_job_spec that the simulator runs with the core's worker and server (ATP). A
 * ring is flows and triggers: 2 (n - 1) steps of 1/n of the tensor to the right neighbour, each
 * started by the arrival of the one before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/aggregation/agg_index.h"
#include "topo/memory.h"
#include "workload/collective.h"
#include "workload/generate.h"

struct allreduce {
    uint64_t size;
    gw_time start;
    gw_time start_spread;
    gw_time timeout;
    gw_time leak;
    char via[GW_PARAM_TEXT_MAX];
    uint32_t workers;
    uint32_t jobs;
    uint32_t iterations;
    uint32_t values;
    uint32_t window;
    uint32_t window_initial;
    uint32_t aggregators;
    uint32_t indexing;
    uint32_t servers;
    uint32_t levels;
    gw_time beat;
    gw_time lost;
    bool colocated;
    bool interleaved;
    bool congestion_control;
    bool resend_gap;
    bool proactive;
    bool dynamic_scaling;
    uint32_t magnitude;
};

enum {
    ELEMENT_SIZE = 4, /* bytes of a float32 */
    WORLD_MAX = 1024,
    LEVELS_MAX = 3,
    MAGNITUDE_MAX = 64,
    SLOTS_WORLD_MAX = 32,
    VALUES_MAX = 16000,
    WINDOW_MAX = 65536,
    ITERATIONS_MAX = 1000000,
};

/* Who adds up: a kind of job, or with `coll` the workers by that schedule. */
struct via {
    const struct gw_coll_ops *coll;
    enum gw_job_via job;
};

/* Which hosts are taken, by rack. */
struct racks {
    uint32_t *group; /* of each host */
    uint32_t *names; /* distinct groups in the order of their hosts */
    bool *is_taken;
    uint32_t count;
    uint32_t host_count;
};

static void racks_init(struct racks *racks, const struct gw_topo *topo)
{
    *racks = (struct racks){
        .group = gw_workload_groups(topo),
        .names = gw_memory_zeroed(topo->host_count, sizeof(uint32_t)),
        .is_taken = gw_memory_zeroed(topo->host_count, sizeof(bool)),
        .host_count = topo->host_count,
    };
    for (uint32_t h = 0; h < topo->host_count; h++) {
        uint32_t i = 0;
        while (i < racks->count && racks->names[i] != racks->group[h])
            i++;
        if (i == racks->count)
            racks->names[racks->count++] = racks->group[h];
    }
}

static void racks_fini(struct racks *racks)
{
    free(racks->group);
    free(racks->names);
    free(racks->is_taken);
}

/* Takes a free host of rack `rack` or of the next ones; UINT32_MAX when none is left. */
static uint32_t racks_take(struct racks *racks, uint32_t rack)
{
    for (uint32_t i = 0; i < racks->count; i++) {
        uint32_t name = racks->names[(rack + i) % racks->count];
        for (uint32_t h = 0; h < racks->host_count; h++)
            if (!racks->is_taken[h] && racks->group[h] == name) {
                racks->is_taken[h] = true;
                return h;
            }
    }
    return UINT32_MAX;
}

/* SwitchML divides the memory between the jobs; a slot has two sums. */
static uint32_t slots_of(const struct allreduce *cfg)
{
    uint32_t share = cfg->aggregators / cfg->jobs / 2;
    return share < cfg->window ? share : cfg->window;
}

/* Reads `via`: a kind of job or a schedule of the registry. */
static int find_via(const struct allreduce *cfg, struct gw_workload_ctx *ctx, struct via *via)
{
    static const char *const jobs[] = {
        [GW_JOB_VIA_INA] = "ina",
        [GW_JOB_VIA_RSS] = "rss",
        [GW_JOB_VIA_PS] = "ps",
        [GW_JOB_VIA_SWITCHML] = "switchml",
    };
    *via = (struct via){
        .coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, cfg->via)};
    if (via->coll && cfg->workers >= 2 && !via->coll->allows(cfg->workers))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers: %s does not allow %u", cfg->via,
                                  cfg->workers);
    if (via->coll)
        return GW_OK;
    for (uint32_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (strcmp(cfg->via, jobs[i]) == 0) {
            via->job = (enum gw_job_via)i;
            return GW_OK;
        }
    char names[GW_PARAM_TEXT_MAX] = "";
    for (uint32_t i = 0; i < gw_coll_registry.count; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), ", %s",
                 gw_coll_registry.algos[i]->name);
    return gw_workload_refuse(ctx, GW_ERR_UNKNOWN,
                              "via: unknown: %s; expected ina, rss, ps, switchml%s", cfg->via,
                              names);
}

static int check(const struct allreduce *cfg, const struct via *via, struct gw_workload_ctx *ctx)
{
    bool has_servers = !via->coll && via->job != GW_JOB_VIA_SWITCHML;
    uint64_t hosts =
        (uint64_t)cfg->jobs * (cfg->workers + (has_servers && !cfg->colocated ? cfg->servers : 0));
    if (cfg->workers == 0 || cfg->workers > WORLD_MAX || (via->coll && cfg->workers < 2))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be from %u to %d, not %u",
                                  via->coll ? 2u : 1u, WORLD_MAX, cfg->workers);
    if (cfg->jobs == 0 || hosts > ctx->topo->host_count)
        return gw_workload_refuse(
            ctx, GW_ERR_RANGE, "jobs: %u of %u workers (and servers) need %llu hosts of %u",
            cfg->jobs, cfg->workers, (unsigned long long)hosts, ctx->topo->host_count);
    if (cfg->size < 4 || cfg->size % 4)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "size must be a multiple of 4 bytes");
    if (cfg->iterations == 0 || cfg->iterations > ITERATIONS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "iterations must be from 1 to %d, not %u",
                                  ITERATIONS_MAX, cfg->iterations);
    if (cfg->values == 0 || cfg->values > VALUES_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "values must be from 1 to %d, not %u",
                                  VALUES_MAX, cfg->values);
    if (cfg->window == 0 || cfg->window > WINDOW_MAX || (cfg->window & (cfg->window - 1)))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "window must be a power of two up to %d",
                                  WINDOW_MAX);
    if (cfg->window_initial == 0 || cfg->window_initial > cfg->window)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "window_initial must be from 1 to window");
    if (cfg->aggregators == 0 || cfg->aggregators > 65536)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "aggregators must be from 1 to 65536, not %u",
                                  cfg->aggregators);
    if (cfg->timeout == 0 || cfg->leak == 0 || cfg->beat == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "timeout, leak and beat must not be 0");
    if (cfg->magnitude > MAGNITUDE_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "magnitude must be at most %d, not %u",
                                  MAGNITUDE_MAX, cfg->magnitude);
    if (cfg->lost <= cfg->beat)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "lost must be longer than beat");
    if (cfg->levels < 1 || cfg->levels > LEVELS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "levels must be from 1 to %d, not %u",
                                  LEVELS_MAX, cfg->levels);
    if (cfg->servers == 0 || cfg->servers > cfg->size / 4 || cfg->servers > WORLD_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "servers must be from 1 to %d, and not more than elements, not "
                                  "%u",
                                  WORLD_MAX, cfg->servers);
    if (via->job == GW_JOB_VIA_SWITCHML && cfg->workers > SLOTS_WORLD_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be at most %d via switchml",
                                  SLOTS_WORLD_MAX);
    if (via->job == GW_JOB_VIA_SWITCHML && slots_of(cfg) == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "aggregators must be at least 2 per job via switchml");
    if (cfg->colocated && (via->job != GW_JOB_VIA_PS || cfg->servers > cfg->workers))
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "colocated: needs via: ps (what a worker sends to its own host "
                                  "passes no switch) and no more servers than workers");
    return GW_OK;
}

/* A static share of the memory bounds the window: a job then never leaves its own range. */
static uint32_t window_of(const struct allreduce *cfg)
{
    uint32_t window = cfg->window;
    while (cfg->indexing == GW_AGG_INDEX_STATIC && window > 1 &&
           window > cfg->aggregators / cfg->jobs)
        window /= 2;
    return window;
}

static void add_job(struct gw_workload *workload, const struct allreduce *cfg,
                    const struct via *via, const uint32_t *hosts, struct racks *racks,
                    uint32_t share, gw_time start)
{
    uint32_t window = window_of(cfg);
    struct gw_job_spec job = {
        .via = via->job,
        .levels = (uint8_t)(via->job == GW_JOB_VIA_INA   ? cfg->levels
                            : via->job == GW_JOB_VIA_RSS ? 1
                                                         : 0),
        .slots = slots_of(cfg),
        .bytes = cfg->size,
        .iterations = cfg->iterations,
        .values = cfg->values,
        .window = window,
        .window_initial = cfg->window_initial < window ? cfg->window_initial : window,
        .aggregators = cfg->aggregators,
        .indexing = cfg->indexing,
        .share = share,
        .congestion_control = cfg->congestion_control,
        .resend_gap = cfg->resend_gap,
        .proactive = cfg->proactive,
        .dynamic_scaling = cfg->dynamic_scaling,
        .magnitude = cfg->magnitude,
        .timeout = cfg->timeout,
        .leak = cfg->leak,
        .beat = cfg->beat,
        .silence = cfg->lost,
        .start = start,
    };
    for (uint32_t rank = 0; rank < cfg->workers; rank++)
        gw_workload_add_worker(workload, hosts[rank]);
    for (uint32_t i = 0; i < cfg->servers && via->job != GW_JOB_VIA_SWITCHML; i++)
        gw_workload_add_server(workload, cfg->colocated
                                             ? hosts[(uint64_t)i * cfg->workers / cfg->servers]
                                             : racks_take(racks, racks->count - 1));
    gw_workload_add_job(workload, &job);
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct allreduce *cfg = options;
    struct via via;
    int error = find_via(cfg, ctx, &via);
    if (!error)
        error = check(cfg, &via, ctx);
    if (!error && via.coll)
        error = gw_workload_check_count(ctx, "workers",
                                        (uint64_t)via.coll->steps(cfg->workers) * cfg->workers *
                                            cfg->iterations);
    if (error)
        return error;
    struct racks racks;
    racks_init(&racks, ctx->topo);
    uint32_t *hosts = gw_memory_zeroed(cfg->workers, sizeof(*hosts));
    for (uint32_t j = 0; j < cfg->jobs; j++) {
        gw_time start = gw_workload_start(ctx, cfg->start, cfg->start_spread);
        for (uint32_t rank = 0; rank < cfg->workers; rank++) {
            uint32_t rack = !via.coll && via.job == GW_JOB_VIA_SWITCHML ? j /* one switch adds up */
                            : cfg->interleaved
                                ? rank % racks.count
                                : (uint32_t)((uint64_t)rank * racks.count / cfg->workers);
            hosts[rank] = racks_take(&racks, rack);
        }
        struct gw_collective collective = {.coll = via.coll,
                                           .n = cfg->workers,
                                           .hosts = hosts,
                                           .elements = cfg->size / ELEMENT_SIZE,
                                           .element_size = ELEMENT_SIZE,
                                           .iterations = cfg->iterations,
                                           .start = start};
        if (via.coll)
            gw_collective_add(workload, &collective);
        else
            add_job(workload, cfg, &via, hosts, &racks, j, start);
    }
    free(hosts);
    racks_fini(&racks);
    return GW_OK;
}

#define ALLREDUCE_PARAM(kind, field, initial_text, help_text)                                      \
    GW_PARAM(struct allreduce, kind, field, initial_text, help_text)

static const struct gw_param params[] = {
    {.name = "via",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct allreduce, via),
     .initial = "ina",
     .help =
         "who adds up: all switches of the job's tree (ina), those of its racks only (rss), the "
         "server (ps), one switch in slots (switchml), or the workers by a schedule (see --list "
         "coll)"},
    ALLREDUCE_PARAM(COUNT, workers, "8", "of each job"),
    ALLREDUCE_PARAM(COUNT, jobs, "1", "that run at the same time"),
    ALLREDUCE_PARAM(BYTES, size, "100MB", "of each worker's tensor of float32"),
    ALLREDUCE_PARAM(COUNT, iterations, "1", "sums, one after the other"),
    ALLREDUCE_PARAM(COUNT, values, "352", "elements per fragment; the ATP paper's packet has 62"),
    ALLREDUCE_PARAM(COUNT, window, "256", "most fragments of a job that are out at once"),
    ALLREDUCE_PARAM(COUNT, window_initial, "200", "fragments at the start (ATP section 3.7)"),
    ALLREDUCE_PARAM(COUNT, aggregators, "4096", "of each switch"),
    {.name = "indexing",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct allreduce, indexing),
     .initial = "hash",
     .choices = "hash|linear|static",
     .help =
         "how a job finds its aggregators (ATP section 3.6 and figure 14); static: in its equal "
         "share of them, which bounds its window"},
    ALLREDUCE_PARAM(COUNT, servers, "1", "of each job; each has a part of the tensor"),
    ALLREDUCE_PARAM(BOOL, colocated, "no",
                    "servers share the hosts of workers (via: ps); with as many as workers this is "
                    "BytePS' N-to-N"),
    ALLREDUCE_PARAM(BOOL, interleaved, "no",
                    "ranks go from rack to rack, so that ring neighbours are in different ones"),
    ALLREDUCE_PARAM(COUNT, levels, "2", "of switches that add up, at most (via: ina)"),
    ALLREDUCE_PARAM(TIME, beat, "5ms", "between signs of life of a worker"),
    ALLREDUCE_PARAM(TIME, lost, "25ms", "a worker silent for so long ends the job"),
    ALLREDUCE_PARAM(BOOL, congestion_control, "yes", "AIMD on marks and losses (ATP section 3.7)"),
    ALLREDUCE_PARAM(BOOL, resend_gap, "no",
                    "send all overdue fragments again at a loss, not only the first (ATP section "
                    "3.6 has the first; the authors' code all)"),
    ALLREDUCE_PARAM(BOOL, proactive, "no",
                    "fragments whose sum might saturate travel raw from the start (ATP appendix "
                    "B.2); matters with host.payload"),
    ALLREDUCE_PARAM(BOOL, dynamic_scaling, "no",
                    "scale fragments as the workers agree one window before (ATP appendix B.3); "
                    "matters with host.payload"),
    ALLREDUCE_PARAM(COUNT, magnitude, "0",
                    "with host.payload: values are below 2 to the power of this; from 4 on, sums "
                    "saturate"),
    ALLREDUCE_PARAM(TIME, timeout, "1ms", "without progress: send again (ATP section 5.2.3)"),
    ALLREDUCE_PARAM(TIME, leak, "10ms", "after which an aggregator counts as forgotten"),
    ALLREDUCE_PARAM(TIME, start, "0", "when the first job may start"),
    ALLREDUCE_PARAM(TIME, start_spread, "0", "each job starts up to this much later, at random"),
};

const struct gw_workload_kind gw_workload_allreduce = {
    .algo = {.name = "allreduce",
             .summary = "jobs that sum tensors through switches, at a server, or in a ring",
             .source = "ATP (NSDI 2021) sections 3 and 5",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct allreduce)},
    .generate = generate,
};
