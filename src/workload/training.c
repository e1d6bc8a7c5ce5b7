/*
 * Training: jobs whose workers compute a neural network, layer by layer, and sum its gradients.
 *
 * A model and a device say how long each layer computes and what it has to sum (model/), a schedule
 * in which order gradients leave (schedule/), and `via` how they are moved. Jobs of different
 * models are several entries of a workload's list.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "topo/memory.h"
#include "workload/generate.h"
#include "workload/job_arrivals.h"
#include "workload/job_options.h"
#include "workload/model/compute.h"

struct training {
    struct gw_job_options job;
    char model[GW_PARAM_TEXT_MAX];
    char device[GW_PARAM_TEXT_MAX];
    char schedule[GW_PARAM_TEXT_MAX];
    char partition[GW_PARAM_TEXT_MAX];
    char credit[GW_PARAM_TEXT_MAX];
    gw_q16 images_per_s;
    gw_q16 compression;
    gw_q16 jitter;
    gw_q16 slowdown;
    uint64_t fusion;
    uint64_t split;
    uint32_t owner; /* enum owner */
    gw_time cycle;
    gw_time end;
    uint32_t batch;
    uint32_t iterations;
    uint32_t warmup;
    uint32_t straggler;
    uint32_t calls;
    uint32_t flows;
    uint64_t segment;
    bool synchronous;
    gw_time interval;
    uint32_t arrivals; /* enum arrivals */
    char file[GW_PARAM_TEXT_MAX];
};

enum {
    ITERATIONS_MAX = 1000000,
    SLOWDOWN_MAX = 1000,
    CALLS_MAX = 64,
    FLOWS_MAX = 64,
    SEGMENT_MAX = 1 << 30,
    WHY_MAX = 512,
};

/* How the starts of jobs are apart, in the order of the parameter's words. */
enum arrivals {
    ARRIVALS_FIXED,
    ARRIVALS_EXPONENTIAL,
};

/* Which server a piece has that is not divided, in the order of the parameter's words. */
enum owner {
    OWNER_TURN,
    OWNER_RANDOM,
};

/* The jobs of an entry while they are made. */
struct entry {
    struct gw_train_spec train;
    struct gw_job_draft draft;
    struct gw_job_site site;
};

/* What `via` is called here. Push and pull are what a parameter server is to most. */
static const struct {
    const char *name;
    enum gw_job_via via;
} ways[] = {
    {"ina", GW_JOB_VIA_INA}, {"rss", GW_JOB_VIA_RSS},   {"switchml", GW_JOB_VIA_SWITCHML},
    {"ps", GW_JOB_VIA_PUSH}, {"server", GW_JOB_VIA_PS},
};

static int find_via(const struct gw_job_options *options, struct gw_workload_ctx *ctx,
                    struct gw_job_draft *draft)
{
    const char *via = strcmp(options->via, "hd") == 0 ? "halving-doubling" : options->via;
    const uint32_t workers = options->workers;
    for (uint32_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(via, ways[i].name) == 0) {
            draft->via = ways[i].via;
            draft->way = ways[i].name;
            return GW_OK;
        }
    draft->via = GW_JOB_VIA_COLL;
    draft->coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, via);
    if (!draft->coll)
        return gw_workload_refuse(ctx, GW_ERR_UNKNOWN,
                                  "via: unknown: %s; expected ina, rss, switchml, ps, server, hd, "
                                  "or a schedule of --list coll",
                                  via);
    draft->way = draft->coll->algo.name;
    if (workers >= 2 && !draft->coll->allows(workers))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers: %s does not allow %u", via, workers);
    return GW_OK;
}

/* Checks one job, whose number of workers may come from a trace. */
static int check(const struct training *cfg, const struct gw_job_options *options,
                 const struct gw_job_draft *draft, struct gw_workload_ctx *ctx)
{
    bool has_rate = cfg->images_per_s > 0;
    if (cfg->iterations == 0 || cfg->iterations > ITERATIONS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "iterations must be from 1 to %d, not %u",
                                  ITERATIONS_MAX, cfg->iterations);
    if (cfg->batch == 0 && (has_rate || strcmp(cfg->device, "none") != 0))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "batch must not be 0");
    if (cfg->cycle > GW_WORKLOAD_DELAY_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "cycle must be at most 5 days");
    if (cfg->jitter > GW_Q16_ONE)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "jitter must be from 0 to 100%%");
    if (cfg->slowdown < GW_Q16_ONE || cfg->slowdown > SLOWDOWN_MAX * GW_Q16_ONE)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "slowdown must be from 1 to %d", SLOWDOWN_MAX);
    if (cfg->slowdown > GW_Q16_ONE && cfg->straggler >= options->workers)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "straggler must be a rank, below %u",
                                  options->workers);
    if (cfg->calls > CALLS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "calls must be at most %d, not %u", CALLS_MAX,
                                  cfg->calls);
    if (cfg->flows > FLOWS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "flows must be at most %d, not %u", FLOWS_MAX,
                                  cfg->flows);
    if (cfg->segment < sizeof(float) || cfg->segment % sizeof(float) || cfg->segment > SEGMENT_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "segment must be a multiple of 4 bytes, up to 1 GiB");
    if (cfg->end && cfg->end <= draft->start)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "end must be after the start of all jobs");
    if (!cfg->synchronous && draft->via != GW_JOB_VIA_PUSH)
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "synchronous: only servers (via: ps) can answer each worker by "
                                  "itself");
    if (draft->coll && draft->coll->exchanges && gw_job_worth_loses(&options->worth))
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "bound: via %s each pair makes a result of its own, of which "
                                  "nothing may be missing",
                                  draft->coll->algo.name);
    if (cfg->fusion && draft->via == GW_JOB_VIA_PUSH && gw_job_worth_loses(&options->worth))
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "fusion: with a bound, a server (via: ps) knows the size of a "
                                  "piece by its number alone");
    return gw_job_options_check(options, draft->via, UINT32_MAX, ctx);
}

/* Finds the schedule and sets what the entry says of it. */
static int find_schedule(const struct training *cfg, struct gw_workload_ctx *ctx,
                         struct gw_train_spec *train)
{
    const struct gw_algo *algo = gw_registry_find(&gw_schedule_registry, cfg->schedule);
    const struct {
        const char *name, *text;
    } settings[] = {{"partition", cfg->partition}, {"credit", cfg->credit}};
    if (!algo) {
        char names[GW_PARAM_TEXT_MAX] = "";
        for (uint32_t i = 0; i < gw_schedule_registry.count; i++)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
                     gw_schedule_registry.algos[i]->name);
        return gw_workload_refuse(ctx, GW_ERR_UNKNOWN, "schedule: unknown: %s; expected one of %s",
                                  cfg->schedule, names);
    }
    GW_ASSERT(algo->cfg_size <= sizeof(train->schedule_cfg));
    train->schedule = (const struct gw_schedule_ops *)algo;
    gw_algo_defaults(algo, train->schedule_cfg);
    for (uint32_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (settings[i].text[0] == '\0')
            continue;
        int error = gw_algo_set(algo, train->schedule_cfg, settings[i].name, settings[i].text);
        if (error == GW_ERR_UNKNOWN)
            return gw_workload_refuse(ctx, error, "%s: schedule %s has none", settings[i].name,
                                      algo->name);
        if (error)
            return gw_workload_refuse(ctx, error, "%s: expected bytes, such as 4MB, not %s",
                                      settings[i].name, settings[i].text);
    }
    return GW_OK;
}

/* A layer may end so much later than it began as points in time can be apart. */
static int check_pace(const struct training *cfg, struct gw_plan *plan, char why[WHY_MAX])
{
    gw_q16 jitter = GW_Q16_ONE + cfg->jitter;
    unsigned __int128 most = plan->forward + plan->backward;
    most = (most * (uint64_t)jitter >> 16) * (uint64_t)cfg->slowdown >> 16;
    if (most <= GW_WORKLOAD_DELAY_MAX)
        return GW_OK;
    gw_plan_free(plan);
    snprintf(why, WHY_MAX,
             "slowdown: an iteration of the slowest worker would compute for more than 5 days");
    return GW_ERR_RANGE;
}

/* Adds the plan of one worker of a model. */
static int add_plan(struct gw_workload *workload, const struct training *cfg, const char *name,
                    struct gw_workload_ctx *ctx)
{
    char why[WHY_MAX];
    struct gw_model model;
    int error = gw_workload_model(&model, name, ctx);
    if (error)
        return error;
    const struct gw_plan_cfg plan_cfg = {
        .device = cfg->device,
        .images_per_s = cfg->images_per_s,
        .batch = cfg->batch,
        .compression = cfg->compression,
    };
    struct gw_plan plan;
    error = gw_plan_make(&plan, &model, &plan_cfg, why, sizeof(why));
    if (!error)
        error = check_pace(cfg, &plan, why);
    if (error)
        gw_workload_refuse(ctx, error, "%s", why);
    else
        gw_workload_add_plan(workload, &plan, model.name);
    gw_model_free(&model);
    return error;
}

/* What the keys of the entry say of its jobs, in the form of a trace. */
static void draw_arrivals(const struct training *cfg, struct gw_workload_ctx *ctx,
                          struct gw_job_trace *trace)
{
    struct gw_job_arrivals arrivals = {
        .next = cfg->job.start,
        .interval = cfg->interval,
        .is_exponential = cfg->arrivals == ARRIVALS_EXPONENTIAL,
    };
    *trace = (struct gw_job_trace){
        .arrivals = gw_memory_zeroed(cfg->job.jobs, sizeof(*trace->arrivals)),
        .count = cfg->job.jobs,
    };
    for (uint32_t i = 0; i < trace->count; i++) {
        struct gw_job_arrival *arrival = &trace->arrivals[i];
        arrival->start = gw_workload_start(ctx, gw_job_arrivals_next(&arrivals, &ctx->prng),
                                           cfg->job.start_spread);
        memcpy(arrival->model, cfg->model, sizeof(arrival->model));
        arrival->workers = cfg->job.workers;
        arrival->iterations = cfg->iterations;
    }
}

/* The plan of a job: that of an earlier one with the same model, or a new one. */
static int plan_of(struct gw_workload *workload, const struct training *cfg,
                   const struct gw_job_trace *trace, uint32_t number, struct gw_workload_ctx *ctx)
{
    for (uint32_t i = 0; i < number; i++)
        if (strcmp(trace->arrivals[i].model, trace->arrivals[number].model) == 0)
            return (int)workload->jobs[workload->job_count - number + i].train.plan;
    int error = add_plan(workload, cfg, trace->arrivals[number].model, ctx);
    return error ? error : (int)workload->plan_count - 1;
}

/* What is wrong with a job of a file is reported at its line, unless a key of the entry is. */
static int blame_line(const struct training *cfg, const struct gw_job_arrival *arrival, int error,
                      struct gw_workload_ctx *ctx)
{
    static const char *const columns[] = {"model", "workers", "iterations", "straggler", "jobs"};
    char why[WHY_MAX];
    bool is_lines = false;
    for (uint32_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        is_lines = is_lines || strncmp(ctx->why, columns[i], strlen(columns[i])) == 0;
    if (arrival->line == 0 || !is_lines)
        return error;
    snprintf(why, sizeof(why), "%s", ctx->why);
    return gw_workload_refuse(ctx, error, "file %s:%u: %s", cfg->file, arrival->line, why);
}

/* Adds job `number` of the trace. */
static int add_job(struct gw_workload *workload, const struct training *cfg,
                   const struct gw_job_trace *trace, struct entry *entry,
                   struct gw_workload_ctx *ctx)
{
    uint32_t number = entry->draft.number;
    const struct gw_job_arrival *arrival = &trace->arrivals[number];
    struct gw_job_options options = cfg->job;
    options.workers = arrival->workers;
    entry->draft.options = &options;
    entry->draft.start = arrival->start;
    int error = find_via(&options, ctx, &entry->draft);
    if (!error)
        error = check(cfg, &options, &entry->draft, ctx);
    if (!error && cfg->file[0] == '\0')
        error = gw_job_options_count(&options, entry->draft.via, ctx);
    if (!error)
        error = gw_job_site_place(&entry->site, &entry->draft, ctx);
    int plan = error ? error : plan_of(workload, cfg, trace, number, ctx);
    if (plan < 0)
        return plan;
    error = gw_job_options_check_sums(&entry->draft, &workload->plans[plan].plan,
                                      entry->train.schedule->partition(entry->train.schedule_cfg),
                                      "model", ctx);
    if (error)
        return error;
    struct gw_job_spec job = gw_job_options_spec(&entry->draft);
    job.train = entry->train;
    job.train.plan = (uint32_t)plan;
    job.bytes = workload->plans[plan].plan.bytes;
    job.whole = cfg->split;
    if (cfg->owner == OWNER_RANDOM)
        job.draw = gw_prng_next(&ctx->prng) | 1;
    job.calls = cfg->calls;
    job.flows = cfg->flows;
    job.segment = cfg->segment;
    job.iterations = arrival->iterations;
    gw_job_options_add(workload, &entry->draft, &job, &entry->site);
    return GW_OK;
}

static int add_jobs(struct gw_workload *workload, const struct training *cfg,
                    const struct gw_job_trace *trace, struct entry *entry,
                    struct gw_workload_ctx *ctx)
{
    int error = gw_job_site_open(&entry->site, &cfg->job, workload, ctx);
    while (entry->draft.number < trace->count && !error) {
        error = add_job(workload, cfg, trace, entry, ctx);
        if (error)
            error = blame_line(cfg, &trace->arrivals[entry->draft.number], error, ctx);
        entry->draft.number++;
    }
    gw_job_site_close(&entry->site);
    return error;
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    struct training cfg = *(const struct training *)options;
    struct entry entry = {.train = {
                              .batch = cfg.batch,
                              .fusion = cfg.fusion,
                              .cycle = cfg.cycle,
                              .warmup = cfg.warmup,
                              .jitter = cfg.jitter,
                              .slowdown = cfg.slowdown,
                              .straggler = cfg.straggler,
                              .is_asynchronous = !cfg.synchronous,
                              .end = cfg.end,
                          }};
    struct gw_job_trace trace = {0};
    int error = find_schedule(&cfg, ctx, &entry.train);
    if (!error && cfg.job.jobs == 0)
        error = gw_workload_refuse(ctx, GW_ERR_RANGE, "jobs must not be 0");
    if (!error && cfg.file[0] == '\0') {
        error = gw_workload_check_count(ctx, "jobs", cfg.job.jobs);
        if (!error)
            draw_arrivals(&cfg, ctx, &trace);
    } else if (!error) {
        error = gw_job_trace_read(&trace, cfg.file, ctx);
        cfg.job.jobs = trace.count;
    }
    if (!error)
        error = add_jobs(workload, &cfg, &trace, &entry, ctx);
    gw_job_trace_free(&trace);
    return error;
}

#define TRAINING_PARAM(kind, field, initial_text, help_text)                                       \
    GW_PARAM(struct training, kind, field, initial_text, help_text)

static const struct gw_param params[] = {
    TRAINING_PARAM(TEXT, model, "resnet50",
                   "neural network: one of `gradwire model`, or a file that ends in .csv"),
    TRAINING_PARAM(TEXT, device, "2080Ti",
                   "what computes it, see `gradwire model`; none: computing takes no time"),
    TRAINING_PARAM(Q16, images_per_s, "0", "of one worker; 0: as the device has it"),
    TRAINING_PARAM(COUNT, batch, "32", "samples of one worker in an iteration"),
    {.name = "via",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct training, job.via),
     .initial = "ina",
     .help = "how gradients move: summed by all switches of the job's tree (ina), those of its "
             "racks only (rss), one switch in slots (switchml), pushed to servers and pulled back "
             "(ps), at servers of the protocol of ina (server), or among the workers by a "
             "schedule (ring, hd: see --list coll)"},
    TRAINING_PARAM(TEXT, schedule, "wfbp", "order in which gradients leave: see --list schedule"),
    TRAINING_PARAM(TEXT, partition, "", "bytes of its largest piece; empty: the schedule's own"),
    TRAINING_PARAM(TEXT, credit, "", "bytes that it lets be under way; empty: the schedule's own"),
    TRAINING_PARAM(Q16, compression, "1",
                   "gradients travel as this part of their bytes, from 1/16 to 1"),
    TRAINING_PARAM(BYTES, fusion, "0",
                   "of a buffer into which tensors that are ready are fused; 0: none (Horovod: "
                   "64 MB)"),
    TRAINING_PARAM(TIME, cycle, "0", "buffers leave at its multiples (Horovod: 1 to 5 ms)"),
    TRAINING_PARAM(BYTES, split, "4MB",
                   "larger pieces are divided among all servers, others have one each"),
    {.name = "owner",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct training, owner),
     .initial = "turn",
     .choices = "turn|random",
     .help = "which server that is: in turn by their numbers, or any (DLCP section 5.2.1)"},
    TRAINING_PARAM(COUNT, calls, "0",
                   "pieces that a worker sums at the same time via a schedule of --list coll; 0: "
                   "as many as the credit of p3 and bytescheduler has, else one (Horovod: one "
                   "after the other)"),
    TRAINING_PARAM(BYTES, segment, "64KiB", "of a message into which such a sum is cut"),
    TRAINING_PARAM(
        COUNT, flows, "0",
        "messages at the same time, of such a sum or from a worker to a server and back; "
        "0: 4"),
    TRAINING_PARAM(COUNT, iterations, "5", "of each job"),
    TRAINING_PARAM(COUNT, warmup, "1", "iterations that measures leave out, if there are more"),
    TRAINING_PARAM(Q16, jitter, "0",
                   "a worker's computation of an iteration takes up to this part longer, at "
                   "random"),
    TRAINING_PARAM(COUNT, straggler, "0", "rank of the worker that is slow"),
    TRAINING_PARAM(Q16, slowdown, "1", "its computation takes so many times longer"),
    TRAINING_PARAM(BOOL, synchronous, "yes",
                   "every iteration waits for the gradients of all workers; without (via: ps), a "
                   "server answers each by itself"),
    TRAINING_PARAM(
        TIME, end, "0",
        "time of the run, not of the job: it ends with the iteration that begins next, or "
        "with `iterations`, whichever comes first; 0: with these alone"),
    TRAINING_PARAM(TIME, interval, "0", "between the starts of two jobs; the mean if it is random"),
    {.name = "arrivals",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct training, arrivals),
     .initial = "fixed",
     .choices = "fixed|exponential",
     .help = "whether intervals are all the same, or random as of jobs that know nothing of each "
             "other"},
    TRAINING_PARAM(TEXT, file, "",
                   "CSV file with a job per line: start,model,workers,iterations; says these "
                   "instead of the keys"),
    GW_JOB_PARAMS(struct training),
};

static const struct gw_preset presets[] = {GW_JOB_PRESETS};

const struct gw_workload_kind gw_workload_training = {
    .algo = {.name = "training",
             .summary = "jobs that compute a neural network and sum its gradients",
             .source = "ATP (NSDI 2021) section 5; DLCP, figure 3; PCN, figure 3",
             .params = params,
             .presets = presets,
             .param_count = sizeof(params) / sizeof(params[0]),
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct training)},
    .generate = generate,
};
