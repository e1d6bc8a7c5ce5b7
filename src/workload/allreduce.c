/*
 * All-reduce: jobs whose workers sum a tensor over and over, through the switches, at a server, or
 * around a ring.
 *
 * Through switches or a server a job is a struct gw_job_spec that the simulator runs. A ring is
 * flows and triggers: 2 (n - 1) steps of 1/n of the tensor to the right neighbour, each started by
 * the arrival of the one before.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "workload/collective.h"
#include "workload/generate.h"
#include "workload/job_options.h"
#include "workload/model/plan.h"

struct allreduce {
    struct gw_job_options job;
    uint64_t size;
    uint32_t iterations;
};

enum {
    ELEMENT_SIZE = 4, /* bytes of a float32 */
    ITERATIONS_MAX = 1000000,
};

/* Reads `via`: a kind of job, or a schedule of the registry that flows and triggers follow. */
static int find_via(const struct allreduce *cfg, struct gw_workload_ctx *ctx,
                    struct gw_job_draft *draft)
{
    static const char *const jobs[] = {
        [GW_JOB_VIA_INA] = "ina",
        [GW_JOB_VIA_RSS] = "rss",
        [GW_JOB_VIA_PS] = "ps",
        [GW_JOB_VIA_SWITCHML] = "switchml",
    };
    const char *via = cfg->job.via;
    const uint32_t workers = cfg->job.workers;
    draft->via = GW_JOB_VIA_COLL;
    draft->coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, via);
    if (draft->coll && workers >= 2 && !draft->coll->allows(workers))
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers: %s does not allow %u", via, workers);
    if (draft->coll)
        return GW_OK;
    for (uint32_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (strcmp(via, jobs[i]) == 0) {
            draft->via = (enum gw_job_via)i;
            draft->way = jobs[i];
            return GW_OK;
        }
    char names[GW_PARAM_TEXT_MAX] = "";
    for (uint32_t i = 0; i < gw_coll_registry.count; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), ", %s",
                 gw_coll_registry.algos[i]->name);
    return gw_workload_refuse(ctx, GW_ERR_UNKNOWN,
                              "via: unknown: %s; expected ina, rss, ps, switchml%s", via, names);
}

static int check(const struct allreduce *cfg, const struct gw_job_draft *draft,
                 struct gw_workload_ctx *ctx)
{
    if (cfg->size < ELEMENT_SIZE || cfg->size % ELEMENT_SIZE)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "size must be a multiple of 4 bytes");
    if (cfg->iterations == 0 || cfg->iterations > ITERATIONS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "iterations must be from 1 to %d, not %u",
                                  ITERATIONS_MAX, cfg->iterations);
    int error = gw_job_options_count(&cfg->job, draft->via, ctx);
    if (!error)
        error = gw_job_options_check(&cfg->job, draft->via, cfg->size / ELEMENT_SIZE, ctx);
    if (error || !draft->coll)
        return error;
    if (gw_job_worth_loses(&cfg->job.worth))
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "bound: here a schedule is plain flows and triggers; use kind: "
                                  "training, with device: none");
    uint32_t workers = cfg->job.workers;
    return gw_workload_check_count(
        ctx, "workers", (uint64_t)draft->coll->steps(workers) * workers * cfg->iterations);
}

static void add_job(struct gw_workload *workload, const struct allreduce *cfg,
                    const struct gw_job_draft *draft, const struct gw_job_site *site)
{
    struct gw_job_spec job = gw_job_options_spec(draft);
    job.bytes = cfg->size;
    job.iterations = cfg->iterations;
    job.train = (struct gw_train_spec){
        .plan = workload->plan_count - 1,
        .schedule = (const struct gw_schedule_ops *)gw_registry_find(&gw_schedule_registry, "wfbp"),
        .warmup = 1,
    };
    gw_job_options_add(workload, draft, &job, site);
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct allreduce *cfg = options;
    struct gw_job_draft draft = {.options = &cfg->job};
    int error = find_via(cfg, ctx, &draft);
    if (!error)
        error = check(cfg, &draft, ctx);
    if (error)
        return error;
    struct gw_job_site site;
    error = gw_job_site_open(&site, &cfg->job, workload, ctx);
    struct gw_plan plan;
    gw_plan_single(&plan, cfg->size);
    gw_workload_add_plan(workload, &plan, "allreduce");
    if (!error)
        error = gw_job_options_check_sums(&draft, &plan, 0, "size", ctx);
    for (; draft.number < cfg->job.jobs && !error; draft.number++) {
        draft.start = gw_workload_start(ctx, cfg->job.start, cfg->job.start_spread);
        error = gw_job_site_place(&site, &draft, ctx);
        struct gw_collective collective = {.coll = draft.coll,
                                           .n = cfg->job.workers,
                                           .hosts = site.hosts,
                                           .elements = cfg->size / ELEMENT_SIZE,
                                           .element_size = ELEMENT_SIZE,
                                           .iterations = cfg->iterations,
                                           .start = draft.start};
        if (!error && draft.coll) {
            collective.tenant =
                gw_workload_add_tenant(workload, gw_job_options_spec(&draft).announce);
            gw_collective_add(workload, &collective);
        }
        if (!error && !draft.coll)
            add_job(workload, cfg, &draft, &site);
    }
    gw_job_site_close(&site);
    return error;
}

static const struct gw_param params[] = {
    {.name = "via",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct allreduce, job.via),
     .initial = "ina",
     .help =
         "who adds up: all switches of the job's tree (ina), those of its racks only (rss), the "
         "server (ps), one switch in slots (switchml), or the workers by a schedule (see --list "
         "coll)"},
    GW_PARAM(struct allreduce, BYTES, size, "100MB", "of each worker's tensor of float32"),
    GW_PARAM(struct allreduce, COUNT, iterations, "1", "sums, one after the other"),
    GW_JOB_PARAMS(struct allreduce),
};

static const struct gw_preset presets[] = {GW_JOB_PRESETS};

const struct gw_workload_kind gw_workload_allreduce = {
    .algo = {.name = "allreduce",
             .summary = "jobs that sum tensors through switches, at a server, or in a ring",
             .source = "ATP (NSDI 2021) sections 3 and 5",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .presets = presets,
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct allreduce)},
    .generate = generate,
};
