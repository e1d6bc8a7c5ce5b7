/* What all kinds of workload with jobs share; see job_options.h. */
#include "workload/job_options.h"

#include <stdlib.h>

#include "base/error.h"
#include "core/aggregation/agg_index.h"
#include "core/aggregation/patience.h"
#include "core/aggregation/tensor_row.h"
#include "core/layers.h"
#include "core/quant/importance.h"
#include "topo/memory.h"
#include "workload/generate.h"

enum {
    WORLD_MAX = 1024,
    LEVELS_MAX = 3,
    MAGNITUDE_MAX = 64,
    SLOTS_WORLD_MAX = 32,
    VALUES_MAX = 16000,
    PPM = 1000000,
    KEY_MAX = (1 << GW_JOB_KEY_BITS) - 1,
    STACK_MAX = 64, /* jobs on the same hosts: more than anybody shares a GPU between */
    AGGREGATORS_MAX = 65536,
    PIECES_MAX = 1 << 24, /* of an iteration: a job keeps two of them in memory */
    SPREAD_MAX = 4, /* e^4 is 55: a packet in six is so many times larger than another in six */
    WINDOW_GROWTH =
        4, /* times that a window may grow, unless it says how far; the paper does not */
};

/* Of the protocol's times. A run of shorter ones does nothing but expire timers; with longer ones,
 * points in time need not stay comparable (GW_WORKLOAD_DELAY_MAX). */
static const gw_time delay_min = GW_NS, delay_max = 3600 * GW_S;

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

/* Hosts that a job takes for servers. */
static uint32_t servers_apart(const struct gw_job_options *options, enum gw_job_via via)
{
    return has_servers(via) && !options->colocated ? options->servers : 0;
}

int gw_job_options_count(const struct gw_job_options *options, enum gw_job_via via,
                         struct gw_workload_ctx *ctx)
{
    uint64_t apart = servers_apart(options, via);
    uint64_t hosts = (options->stacked ? 1 : options->jobs) * (options->workers + apart);
    if (options->jobs > 0 && hosts <= ctx->topo->host_count)
        return GW_OK;
    return gw_workload_refuse(
        ctx, GW_ERR_RANGE, "jobs: %u of %u workers (and servers) need %llu hosts of %u",
        options->jobs, options->workers, (unsigned long long)hosts, ctx->topo->host_count);
}

/* How many workers there may be. */
static int check_workers(const struct gw_job_options *options, enum gw_job_via via,
                         struct gw_workload_ctx *ctx)
{
    bool is_coll = via == GW_JOB_VIA_COLL || via == GW_JOB_VIA_CALLS; /* at least two ranks */
    if (options->workers == 0 || options->workers > WORLD_MAX || (is_coll && options->workers < 2))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be from %u to %d, not %u",
                                  is_coll ? 2u : 1u, WORLD_MAX, options->workers);
    if (options->stacked && options->jobs > STACK_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "jobs must be at most %d when stacked, not %u",
                                  STACK_MAX, options->jobs);
    if (via == GW_JOB_VIA_SWITCHML && options->workers > SLOTS_WORLD_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be at most %d via switchml",
                                  SLOTS_WORLD_MAX);
    return GW_OK;
}

/* What may be lost, and what packets say of their worth. Fragments of the protocol of ina are left
 * out by the server alone, and have one class; with slots, and with calls, there is no bound. */
static int check_worth(const struct gw_job_worth *worth, enum gw_job_via via,
                       struct gw_workload_ctx *ctx)
{
    const struct {
        const char *name;
        gw_q16 bound;
    } bounds[] = {{"bound", worth->bound}, {"bound_pull", worth->bound_pull}};
    bool has_messages = via == GW_JOB_VIA_PUSH || via == GW_JOB_VIA_COLL;
    for (uint32_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        if (bounds[i].bound >= GW_Q16_ONE)
            return gw_workload_refuse(ctx, GW_ERR_RANGE, "%s must be at least 0 and below 100%%",
                                      bounds[i].name);
        if (bounds[i].bound && !has_messages && (i > 0 || via != GW_JOB_VIA_INA))
            return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                      "%s: needs gradients that travel as messages (training via "
                                      "ps, or a schedule of --list coll)%s",
                                      bounds[i].name, i > 0 ? "" : ", or via ina");
    }
    if (worth->classes < 1 || worth->classes > GW_LAYERS_CLASSES_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "classes must be from 1 to %d, not %u",
                                  GW_LAYERS_CLASSES_MAX, worth->classes);
    if (worth->spread > SPREAD_MAX * GW_Q16_ONE)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "spread must be from 0 to %d", SPREAD_MAX);
    bool says = worth->priority != GW_JOB_PRIORITY_NONE || worth->importance != GW_IMPORTANCE_ALL ||
                worth->important_first;
    if (says && !has_messages)
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "%s: needs gradients that travel as messages (training via ps, "
                                  "or a schedule of --list coll)",
                                  worth->priority != GW_JOB_PRIORITY_NONE ? "priority"
                                                                          : "importance");
    bool tells_apart =
        worth->importance != GW_IMPORTANCE_ALL && worth->importance != GW_IMPORTANCE_NONE;
    if (worth->important_first && !tells_apart)
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "important_first: needs an importance by which packets differ");
    return GW_OK;
}

/* Times of the protocol. */
static int check_times(const struct gw_job_options *options, struct gw_workload_ctx *ctx)
{
    const struct {
        const char *name;
        gw_time time;
    } times[] = {{"timeout", options->timeout},
                 {"leak", options->leak},
                 {"beat", options->beat},
                 {"lost", options->lost}};
    for (uint32_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i].time < delay_min || times[i].time > delay_max)
            return gw_workload_refuse(ctx, GW_ERR_RANGE, "%s must be from 1 ns to 1 hour",
                                      times[i].name);
    if (options->lost <= options->beat)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "lost must be longer than beat");
    if (options->patience > delay_max)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "patience must be at most 1 hour");
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
    uint32_t servers_max =
        via == GW_JOB_VIA_CALLS ? (uint32_t)GW_COMMUNICATOR_SERVERS_MAX : (uint32_t)WORLD_MAX;
    if (options->servers == 0 || options->servers > elements || options->servers > servers_max)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "servers must be from 1 to %u, and not more than elements, not "
                                  "%u",
                                  servers_max, options->servers);
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
    int error = check_workers(options, via, ctx);
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
    if (options->key > KEY_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "key must be at most %d, not %u", KEY_MAX,
                                  options->key);
    if (options->overflow_ppm > PPM)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "overflow_ppm must be at most %d, not %u", PPM,
                                  options->overflow_ppm);
    if (options->magnitude > MAGNITUDE_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "magnitude must be at most %d, not %u",
                                  MAGNITUDE_MAX, options->magnitude);
    error = check_times(options, ctx);
    if (!error)
        error = check_worth(&options->worth, via, ctx);
    uint8_t announce;
    if (!error)
        error = gw_workload_announce(options->announce, &announce, ctx);
    return error ? error : check_memory(options, via, elements, ctx);
}

int gw_job_options_check_sums(const struct gw_job_draft *draft, const struct gw_plan *plan,
                              uint64_t partition, const char *key, struct gw_workload_ctx *ctx)
{
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < plan->tensor_count; i++)
        pieces += partition ? (plan->tensors[i].bytes - 1) / partition + 1 : 1;
    if (pieces > PIECES_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "partition: %llu bytes cut the gradients into %llu pieces; the "
                                  "limit is %d",
                                  (unsigned long long)partition, (unsigned long long)pieces,
                                  PIECES_MAX);
    if (draft->via == GW_JOB_VIA_PUSH || draft->via == GW_JOB_VIA_COLL)
        return GW_OK;
    /* All of them may be in work, and each piece may end with a fragment that is not full. */
    const uint32_t values = draft->options->values;
    uint64_t fragments = plan->bytes / sizeof(float) / values + pieces;
    if (fragments > GW_ROW_FRAGMENTS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "%s: %llu bytes of gradients in fragments of %u values are more "
                                  "than %d fragments",
                                  key, (unsigned long long)plan->bytes, values,
                                  GW_ROW_FRAGMENTS_MAX);
    return GW_OK;
}

int gw_job_site_open(struct gw_job_site *site, const struct gw_job_options *options,
                     const struct gw_workload *workload, struct gw_workload_ctx *ctx)
{
    *site = (struct gw_job_site){
        .place = {.how = (enum gw_placement)options->placement,
                  .interleaved = options->interleaved,
                  .prng = &ctx->prng,
                  .given = &site->given},
        .hosts = gw_memory_zeroed(WORLD_MAX + WORLD_MAX, sizeof(*site->hosts)),
    };
    gw_racks_init(&site->racks, ctx->topo);
    if (options->placement == GW_PLACEMENT_GIVEN)
        return gw_host_list_parse(&site->given, options->hosts, ctx);
    if (options->hosts[0] != '\0')
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "hosts: needs placement: given");
    for (uint32_t i = 0; options->exclusive && i < workload->job_host_count; i++)
        gw_racks_occupy(&site->racks, workload->job_hosts[i]);
    for (uint32_t i = 0; options->exclusive && i < workload->job_server_count; i++)
        gw_racks_occupy(&site->racks, workload->job_servers[i]);
    return GW_OK;
}

void gw_job_site_close(struct gw_job_site *site)
{
    gw_racks_fini(&site->racks);
    gw_host_list_free(&site->given);
    free(site->hosts);
}

int gw_job_site_place(struct gw_job_site *site, const struct gw_job_draft *draft,
                      struct gw_workload_ctx *ctx)
{
    const struct gw_job_options *options = draft->options;
    uint32_t apart = servers_apart(options, draft->via);
    bool fits = true;
    if (options->stacked)
        site->given.used = 0;
    if (options->stacked)
        gw_racks_clear(&site->racks);
    if (draft->via == GW_JOB_VIA_SWITCHML && options->placement == GW_PLACEMENT_SPREAD) {
        fits = site->racks.free_count >= options->workers;
        for (uint32_t rank = 0; rank < options->workers && fits; rank++) /* one switch adds up */
            site->hosts[rank] = gw_racks_take(&site->racks, draft->number);
    } else {
        fits = gw_racks_place(&site->racks, &site->place, site->hosts, options->workers, apart);
    }
    if (fits)
        return GW_OK;
    const char *key = options->placement == GW_PLACEMENT_GIVEN ? "hosts" : "jobs";
    return gw_workload_refuse(ctx, GW_ERR_RANGE,
                              "%s: none are left for job %u, which needs %u for workers and %u for "
                              "servers",
                              key, draft->number, options->workers, apart);
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

/* Of switches that add up. */
static uint8_t levels_of(const struct gw_job_draft *draft)
{
    switch (draft->via) {
    case GW_JOB_VIA_INA:
    case GW_JOB_VIA_CALLS:
        return (uint8_t)draft->options->levels;
    case GW_JOB_VIA_RSS:
        return 1;
    default:
        return 0;
    }
}

struct gw_job_spec gw_job_options_spec(const struct gw_job_draft *draft)
{
    const struct gw_job_options *options = draft->options;
    uint32_t window = window_of(options);
    uint8_t announce = GW_NOTICE_OFF;
    gw_notice_parse(options->announce, &announce); /* it has been checked */
    return (struct gw_job_spec){
        .announce = announce,
        .via = draft->via,
        .way = draft->way,
        .levels = levels_of(draft),
        .coll = draft->coll,
        .slots = slots_of(options),
        .values = options->values,
        .window = window,
        .window_initial = options->window_initial < window ? options->window_initial : window,
        .aggregators = options->aggregators,
        .indexing = options->indexing,
        .rules = options->rules,
        .worth = options->worth,
        .share = draft->number,
        .key = options->key,
        .congestion_control = options->congestion_control,
        .resend_gap = options->resend_gap,
        .proactive = options->proactive,
        .dynamic_scaling = options->dynamic_scaling,
        .magnitude = options->magnitude,
        .overflow_ppm = options->overflow_ppm,
        .timeout = options->timeout,
        .leak = options->leak,
        .patience = options->worth.bound == 0 ? 0
                    : options->patience       ? options->patience
                                              : gw_patience_least(options->timeout),
        .patience_max = options->patience ? options->patience : gw_patience_most(options->timeout),
        .beat = options->beat,
        .silence = options->lost,
        .start = draft->start,
    };
}

void gw_job_options_add(struct gw_workload *workload, const struct gw_job_draft *draft,
                        const struct gw_job_spec *spec, const struct gw_job_site *site)
{
    const struct gw_job_options *options = draft->options;
    const uint32_t workers = options->workers, servers = options->servers;
    for (uint32_t rank = 0; rank < workers; rank++)
        gw_workload_add_worker(workload, site->hosts[rank]);
    for (uint32_t i = 0; i < servers && has_servers(draft->via); i++)
        gw_workload_add_server(workload, options->colocated
                                             ? site->hosts[(uint64_t)i * workers / servers]
                                             : site->hosts[workers + i]);
    gw_workload_add_job(workload, spec);
}
