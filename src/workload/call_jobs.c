/*
 * Calls: jobs whose ranks make the calls of a list, over and over, each through a communicator as a
 * process would: sums through switches, at servers and around a ring, the other collectives,
 * messages, and values that ranks keep for each other.
 *
 * A job is a plan without computation, with a tensor for each call of the list, so that up to
 * `ahead` calls are in work at a rank and an iteration begins when those of the one before have
 * ended there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "topo/memory.h"
#include "workload/generate.h"
#include "workload/job_options.h"
#include "workload/model/plan.h"

struct calls {
    struct gw_job_options job;
    uint64_t split;
    uint64_t segment;
    uint32_t ahead;
    uint32_t flows;
    uint32_t iterations;
};

/* A call as written. */
struct item {
    uint32_t what; /* place in `kinds` */
    uint32_t via;  /* 0: the job's */
    uint32_t type;
    uint32_t op;
    uint64_t bytes;
    uint32_t root;
    uint32_t from, to;
    uint32_t key;
    char rank[GW_PARAM_TEXT_MAX];
};

enum {
    ITERATIONS_MAX = 1000000,
    ITEMS_MAX = 4096,
    FLOWS_MAX = 64,
    SEGMENT_ALIGNMENT = 8, /* bytes: of the largest type */
    SEGMENT_MAX = 1 << 30,
    NOBODY = 0,        /* host: its address is 0, which is nobody's (core/ranks/ranks_table.h) */
    BARRIER_BYTES = 4, /* in the books: it is a sum of one number */
};

static const uint64_t bytes_max = (uint64_t)1 << 32; /* of a call at one rank, which has them */

/* In the order of the words below. */
static const enum gw_call_kind kinds[] = {
    GW_CALL_ALLREDUCE, GW_CALL_REDUCE, GW_CALL_BROADCAST, GW_CALL_ALLGATHER, GW_CALL_REDUCE_SCATTER,
    GW_CALL_BARRIER,   GW_CALL_SEND,   GW_CALL_PUSH,      GW_CALL_PULL,
};

static bool is_value(enum gw_call_kind kind)
{
    return kind == GW_CALL_PUSH || kind == GW_CALL_PULL;
}

static bool has_op(enum gw_call_kind kind)
{
    return kind == GW_CALL_ALLREDUCE || kind == GW_CALL_REDUCE || kind == GW_CALL_REDUCE_SCATTER;
}

/* Refuses item `index`; the sentence begins with its parameter. */
#define refuse_item(ctx, index, ...)                                                               \
    ((ctx)->item = (index), gw_workload_refuse((ctx), GW_ERR_RANGE, __VA_ARGS__))

/* Reads who pushes or pulls. */
static int read_rank(const struct item *item, uint32_t index, uint32_t workers, uint32_t *rank,
                     struct gw_workload_ctx *ctx)
{
    uint64_t number = 0;
    *rank = GW_CALL_RANKS_ALL;
    if (strcmp(item->rank, "all") == 0)
        return GW_OK;
    if (gw_parse_count(item->rank, &number) != GW_OK || number >= workers)
        return refuse_item(ctx, index, "rank: expected all, or a rank below %u, not %s", workers,
                           item->rank);
    *rank = (uint32_t)number;
    return GW_OK;
}

static int read_item(const struct calls *cfg, uint32_t index, struct gw_call_spec *call,
                     struct gw_workload_ctx *ctx)
{
    const struct item *item = (const struct item *)ctx->items + index;
    const uint32_t workers = cfg->job.workers;
    const uint32_t size = gw_dtype_size((enum gw_dtype)item->type);
    *call = (struct gw_call_spec){
        .kind = kinds[item->what],
        .via = item->via ? (enum gw_via)(item->via - 1) : GW_VIA_DEFAULT,
        .type = (enum gw_dtype)item->type,
        .op = has_op(kinds[item->what]) ? (enum gw_op)item->op : GW_OP_SUM,
        .count = kinds[item->what] == GW_CALL_SEND ? item->bytes : item->bytes / size,
        .root = item->root,
        .from = item->from,
        .to = item->to,
        .key = item->key,
    };
    if (call->kind == GW_CALL_BARRIER)
        call->count = 0;
    else if (item->bytes == 0 || item->bytes > bytes_max)
        return refuse_item(ctx, index, "bytes must be from 1 to 4 GiB");
    else if (call->kind != GW_CALL_SEND && item->bytes % size)
        return refuse_item(ctx, index, "bytes must be a multiple of %u, an element", size);
    if (has_op(call->kind) && !gw_op_exists(call->op, call->type))
        return refuse_item(ctx, index, "op: there is none such of this type");
    if (item->root >= workers)
        return refuse_item(ctx, index, "root must be a rank, below %u", workers);
    if (call->kind == GW_CALL_SEND && (item->from >= workers || item->from == item->to))
        return refuse_item(ctx, index, "from must be a rank, below %u, and not the one of `to`",
                           workers);
    if (call->kind == GW_CALL_SEND && item->to >= workers)
        return refuse_item(ctx, index, "to must be a rank, below %u", workers);
    if (is_value(call->kind) && call->type != GW_DTYPE_F32 && call->type != GW_DTYPE_I32)
        return refuse_item(ctx, index,
                           "type: what is pushed is float32 or int32 here, so that a sum of any "
                           "pushes is exact and can be checked");
    return read_rank(item, index, workers, &call->rank, ctx);
}

/* Bytes that a rank has of a call. */
static uint64_t bytes_of(const struct gw_call_spec *call)
{
    if (call->kind == GW_CALL_BARRIER)
        return BARRIER_BYTES;
    return call->kind == GW_CALL_SEND ? call->count : call->count * gw_dtype_size(call->type);
}

static int find_via(const struct calls *cfg, struct gw_workload_ctx *ctx, enum gw_via *via,
                    struct gw_job_draft *draft)
{
    static const char *const ways[] = {
        [GW_VIA_INA] = "ina", [GW_VIA_PS] = "ps", [GW_VIA_RING] = "ring"};
    draft->via = GW_JOB_VIA_CALLS;
    for (uint32_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(cfg->job.via, ways[i]) == 0) {
            draft->way = ways[i];
            *via = (enum gw_via)i;
            return GW_OK;
        }
    return gw_workload_refuse(ctx, GW_ERR_UNKNOWN, "via: unknown: %s; expected ina, ps, ring",
                              cfg->job.via);
}

static int check(const struct calls *cfg, struct gw_workload_ctx *ctx)
{
    if (ctx->item_count == 0 || ctx->item_count > ITEMS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "calls: from 1 to %d are possible, not %u",
                                  ITEMS_MAX, ctx->item_count);
    if (cfg->iterations == 0 || cfg->iterations > ITERATIONS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "iterations must be from 1 to %d, not %u",
                                  ITERATIONS_MAX, cfg->iterations);
    if (cfg->ahead == 0 || cfg->ahead > GW_COMMUNICATOR_CALLS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "ahead must be from 1 to %d, not %u",
                                  GW_COMMUNICATOR_CALLS_MAX, cfg->ahead);
    if (cfg->flows == 0 || cfg->flows > FLOWS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "flows must be from 1 to %d, not %u",
                                  FLOWS_MAX, cfg->flows);
    if (cfg->segment == 0 || cfg->segment % SEGMENT_ALIGNMENT || cfg->segment > SEGMENT_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE,
                                  "segment must be a multiple of %d bytes, up to 1 GiB",
                                  SEGMENT_ALIGNMENT);
    if (cfg->job.stacked)
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "stacked: a host has one communicator at most");
    return GW_OK;
}

/* Adds the calls of the list, and the plan that they are to the simulator. */
static int add_calls(struct gw_workload *workload, const struct calls *cfg,
                     struct gw_workload_ctx *ctx)
{
    uint64_t *bytes = gw_memory_zeroed(ctx->item_count, sizeof(*bytes));
    struct gw_call_spec call;
    int error = GW_OK;
    for (uint32_t i = 0; i < ctx->item_count && !error; i++) {
        error = read_item(cfg, i, &call, ctx);
        bytes[i] = bytes_of(&call);
        if (!error)
            gw_workload_add_call(workload, &call);
    }
    struct gw_plan plan;
    if (!error) {
        gw_plan_row(&plan, bytes, ctx->item_count);
        gw_workload_add_plan(workload, &plan, "calls");
    }
    free(bytes);
    return error;
}

/* Whether a job was given the host that cannot be part of one. */
static bool has_nobody(const struct calls *cfg, const struct gw_job_site *site)
{
    for (uint32_t i = 0; i < cfg->job.workers + cfg->job.servers; i++)
        if (site->hosts[i] == NOBODY)
            return true;
    return false;
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct calls *cfg = options;
    const uint32_t first_call = workload->call_count;
    struct gw_job_draft draft = {.options = &cfg->job};
    enum gw_via via = GW_VIA_INA;
    int error = find_via(cfg, ctx, &via, &draft);
    if (!error)
        error = check(cfg, ctx);
    if (!error)
        error = gw_job_options_count(&cfg->job, draft.via, ctx);
    if (!error)
        error = gw_job_options_check(&cfg->job, draft.via, UINT32_MAX, ctx);
    if (!error)
        error = add_calls(workload, cfg, ctx);
    if (error)
        return error;
    const uint32_t plan = workload->plan_count - 1;
    error = gw_job_options_check_sums(&draft, &workload->plans[plan].plan, 0, "calls", ctx);
    if (error)
        return error;
    struct gw_job_site site;
    error = gw_job_site_open(&site, &cfg->job, workload, ctx);
    if (cfg->job.placement != GW_PLACEMENT_GIVEN)
        gw_racks_occupy(&site.racks, NOBODY);
    for (; draft.number < cfg->job.jobs && !error; draft.number++) {
        draft.start = gw_workload_start(ctx, cfg->job.start, cfg->job.start_spread);
        error = gw_job_site_place(&site, &draft, ctx);
        if (!error && has_nobody(cfg, &site))
            error = gw_workload_refuse(ctx, GW_ERR_INVALID,
                                       "hosts: address 0 is nobody's to ranks, so host %d cannot "
                                       "be one, nor a server",
                                       NOBODY);
        if (error)
            break;
        struct gw_job_spec job = gw_job_options_spec(&draft);
        job.bytes = workload->plans[plan].plan.bytes;
        job.iterations = cfg->iterations;
        job.first_call = first_call;
        job.calls_via = via;
        job.calls = cfg->ahead;
        job.flows = cfg->flows;
        job.segment = cfg->segment;
        job.whole = cfg->split;
        job.train = (struct gw_train_spec){
            .plan = plan,
            .schedule =
                (const struct gw_schedule_ops *)gw_registry_find(&gw_schedule_registry, "wfbp"),
            .warmup = 1,
        };
        gw_job_options_add(workload, &draft, &job, &site);
    }
    gw_job_site_close(&site);
    return error;
}

#define CALLS_PARAM(kind, field, initial_text, help_text)                                          \
    GW_PARAM(struct calls, kind, field, initial_text, help_text)
#define ITEM_PARAM(kind, field, initial_text, help_text)                                           \
    GW_PARAM(struct item, kind, field, initial_text, help_text)
#define ITEM_CHOICE(key, field, words, help_text)                                                  \
    {                                                                                              \
        .name = key, .type = GW_PARAM_ENUM, .offset = offsetof(struct item, field),                \
        .choices = words, .help = help_text                                                        \
    }

static const struct gw_param item_params[] = {
    ITEM_CHOICE("do", what,
                "allreduce|reduce|broadcast|allgather|reduce_scatter|barrier|send|push|pull",
                "what all ranks do together or, of the last three, some of them"),
    ITEM_CHOICE("via", via, "default|ina|ps|ring",
                "of an all-reduce, reduce or barrier; default: the job's"),
    ITEM_CHOICE("type", type, "float32|float16|bfloat16|int32|float64|int64|uint8", "of elements"),
    ITEM_CHOICE("op", op, "sum|average|min|max|product", "of an all-reduce, reduce or scatter"),
    ITEM_PARAM(BYTES, bytes, "1MiB",
               "of a tensor or message; of what each rank gives to an all-gather, and gets from a "
               "reduce-scatter"),
    ITEM_PARAM(COUNT, root, "0", "rank that has what is broadcast, or gets what is reduced"),
    ITEM_PARAM(COUNT, from, "0", "rank that sends"),
    ITEM_PARAM(COUNT, to, "1", "rank that receives"),
    ITEM_PARAM(COUNT, key, "0", "of a value"),
    ITEM_PARAM(TEXT, rank, "all", "that pushes or pulls, or all"),
};

static const struct gw_algo item_table = {
    .name = "calls",
    .params = item_params,
    .param_count = sizeof(item_params) / sizeof(item_params[0]),
    .cfg_size = sizeof(struct item),
};

static const struct gw_param params[] = {
    {.name = "via",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct calls, job.via),
     .initial = "ina",
     .help = "of calls that say nothing else: added up by switches (ina), by servers (ps), or "
             "from rank to rank (ring)"},
    CALLS_PARAM(COUNT, iterations, "1", "times that the list is gone through"),
    CALLS_PARAM(COUNT, ahead, "4", "calls that a rank has in work at the same time"),
    CALLS_PARAM(BYTES, split, "4MB",
                "larger sums are divided among all servers, others have one each in turn"),
    CALLS_PARAM(BYTES, segment, "64KiB", "of a message into which a collective is cut"),
    CALLS_PARAM(COUNT, flows, "4", "messages of a collective at the same time"),
    GW_JOB_PARAMS(struct calls),
};

static const struct gw_preset presets[] = {GW_JOB_PRESETS};

const struct gw_workload_kind gw_workload_calls = {
    .algo = {.name = "calls",
             .summary = "jobs whose ranks make the calls of a list: sums, collectives, messages, "
                        "push and pull",
             .source = "the library's calls (docs/library.md), by core/calls",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .presets = presets,
             .preset_count = sizeof(presets) / sizeof(presets[0]),
             .cfg_size = sizeof(struct calls)},
    .generate = generate,
    .item = &item_table,
};
