/* What all kinds of workload with jobs share; see job_options.h. */
#include "workload/job_options.h"

#include "base/error.h"
#include "core/aggregation/agg_index.h"
#include "workload/generate.h"

enum {
    WORLD_MAX = 1024,
    LEVELS_MAX = 3,
    MAGNITUDE_MAX = 64,
    SLOTS_WORLD_MAX = 32,
    VALUES_MAX = 16000,
    STACK_MAX = 64, /* jobs on the same hosts: more than anybody shares a GPU between */
    AGGREGATORS_MAX = 65536,
    WINDOW_GROWTH =
        4, /* times that a window may grow, unless it says how far; the paper does not */
};

/* Fragments that may be out at once, as far as the job itself is concerned. */
static uint32_t window_most(const struct gw_job_options *options)
{
    uint64_t most =
        options->window ? options->window : (uint64_t)WINDOW_GROWTH * options->window_initial;
    return most < GW_AGG_WINDOW_MAX ? (uint32_t)most : GW_AGG_WINDOW_MAX;
}

/* SwitchML divides the memory between the jobs; a slot has two sums. */
static uint32_t slots_of(const struct gw_job_options *options)
{
    uint32_t share = options->aggregators / options->jobs / 2;
    return share < window_most(options) ? share : window_most(options);
}

static bool has_servers(enum gw_job_via via)
{
    return via != GW_JOB_VIA_SWITCHML && via != GW_JOB_VIA_COLL;
}

/* How many workers and jobs there may be. */
static int check_hosts(const struct gw_job_options *options, enum gw_job_via via,
                       struct gw_workload_ctx *ctx)
{
    bool is_coll = via == GW_JOB_VIA_COLL;
    uint64_t apart = has_servers(via) && !options->colocated ? options->servers : 0;
    uint64_t hosts = (options->stacked ? 1 : options->jobs) * (options->workers + apart);
    if (options->workers == 0 || options->workers > WORLD_MAX || (is_coll && options->workers < 2))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be from %u to %d, not %u",
                                  is_coll ? 2u : 1u, WORLD_MAX, options->workers);
    if (options->stacked && options->jobs > STACK_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "jobs must be at most %d when stacked, not %u",
                                  STACK_MAX, options->jobs);
    if (options->jobs == 0 || hosts > ctx->topo->host_count)
        return gw_workload_refuse(
            ctx, GW_ERR_RANGE, "jobs: %u of %u workers (and servers) need %llu hosts of %u",
            options->jobs, options->workers, (unsigned long long)hosts, ctx->topo->host_count);
    if (via == GW_JOB_VIA_SWITCHML && options->workers > SLOTS_WORLD_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be at most %d via switchml",
                                  SLOTS_WORLD_MAX);
    return GW_OK;
}

/* Servers, and what a switch has for a job. */
static int check_memory(const struct gw_job_options *options, enum gw_job_via via,
                        uint64_t elements, struct gw_workload_ctx *ctx)
{
    bool may_share = via == GW_JOB_VIA_PS || via == GW_JOB_VIA_PUSH;
    if (options->aggregators == 0 || options->aggregators > AGGREGATORS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "aggregators must be from 1 to %d, not %u",
                                  AGGREGATORS_MAX, options->aggregators);
    if (options->levels < 1 || options->levels > LEVELS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "levels must be from 1 to %d, not %u",
                                  LEVELS_MAX, options->levels);
    if (options->servers == 0 || options->servers > elements || options->servers > WORLD_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "servers must be from 1 to %d, and not more than elements, not "
                                  "%u",
                                  WORLD_MAX, options->servers);
    if (via == GW_JOB_VIA_SWITCHML && slots_of(options) == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "aggregators must be at least 2 per job via switchml");
    if (options->colocated && (!may_share || options->servers > options->workers))
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "colocated: needs via: ps (what a worker sends to its own host "
                                  "passes no switch) and no more servers than workers");
    return GW_OK;
}

int gw_job_options_check(const struct gw_job_options *options, enum gw_job_via via,
                         uint64_t elements, struct gw_workload_ctx *ctx)
{
    int error = check_hosts(options, via, ctx);
    if (error)
        return error;
    if (options->values == 0 || options->values > VALUES_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "values must be from 1 to %d, not %u",
                                  VALUES_MAX, options->values);
    if (options->window > GW_AGG_WINDOW_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "window must be at most %d, not %u",
                                  GW_AGG_WINDOW_MAX, options->window);
    if (options->window_initial == 0 || options->window_initial > window_most(options))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "window_initial must be from 1 to window");
    if (options->rules.header > GW_JOB_HEADER_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "header must be at most %d bytes",
                                  GW_JOB_HEADER_MAX);
    if (options->timeout == 0 || options->leak == 0 || options->beat == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "timeout, leak and beat must not be 0");
    if (options->magnitude > MAGNITUDE_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "magnitude must be at most %d, not %u",
                                  MAGNITUDE_MAX, options->magnitude);
    if (options->lost <= options->beat)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "lost must be longer than beat");
    return check_memory(options, via, elements, ctx);
}

void gw_job_options_place(const struct gw_job_options *options, enum gw_job_via via,
                          uint32_t number, struct gw_racks *racks, uint32_t *hosts)
{
    if (options->stacked)
        gw_racks_clear(racks);
    for (uint32_t rank = 0; rank < options->workers; rank++) {
        uint32_t rack = via == GW_JOB_VIA_SWITCHML ? number /* one switch adds up */
                        : options->interleaved
                            ? rank % racks->count
                            : (uint32_t)((uint64_t)rank * racks->count / options->workers);
        hosts[rank] = gw_racks_take(racks, rack);
    }
}

/* A static share of the memory bounds the window: a job then never leaves its own range. */
static uint32_t window_of(const struct gw_job_options *options)
{
    uint32_t window = window_most(options);
    uint32_t share = options->aggregators / options->jobs;
    if (options->indexing != GW_AGG_INDEX_STATIC || share >= window)
        return window;
    return share ? share : 1;
}

struct gw_job_spec gw_job_options_spec(const struct gw_job_draft *draft)
{
    const struct gw_job_options *options = draft->options;
    uint32_t window = window_of(options);
    return (struct gw_job_spec){
        .via = draft->via,
        .way = draft->way,
        .levels = (uint8_t)(draft->via == GW_JOB_VIA_INA   ? options->levels
                            : draft->via == GW_JOB_VIA_RSS ? 1
                                                           : 0),
        .coll = draft->coll,
        .slots = slots_of(options),
        .values = options->values,
        .window = window,
        .window_initial = options->window_initial < window ? options->window_initial : window,
        .aggregators = options->aggregators,
        .indexing = options->indexing,
        .rules = options->rules,
        .share = draft->number,
        .congestion_control = options->congestion_control,
        .resend_gap = options->resend_gap,
        .proactive = options->proactive,
        .dynamic_scaling = options->dynamic_scaling,
        .magnitude = options->magnitude,
        .timeout = options->timeout,
        .leak = options->leak,
        .beat = options->beat,
        .silence = options->lost,
        .start = draft->start,
    };
}

void gw_job_options_add(struct gw_workload *workload, const struct gw_job_draft *draft,
                        const struct gw_job_spec *spec, struct gw_racks *racks)
{
    const struct gw_job_options *options = draft->options;
    for (uint32_t rank = 0; rank < options->workers; rank++)
        gw_workload_add_worker(workload, draft->hosts[rank]);
    for (uint32_t i = 0; i < options->servers && has_servers(draft->via); i++)
        gw_workload_add_server(workload,
                               options->colocated
                                   ? draft->hosts[(uint64_t)i * options->workers / options->servers]
                                   : gw_racks_take(racks, racks->count - 1));
    gw_workload_add_job(workload, spec);
}
