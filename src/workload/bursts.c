/*
 * Bursts: the traffic generator of PCN (section 4). Workers send their gradients to a server at the
 * same time, pause once all have arrived, and do it again.
 *
 * Invariant: a burst starts `idle` after the last flow of the one before ended.
 */
#include <stdlib.h>

#include "base/error.h"
#include "topo/memory.h"
#include "workload/generate.h"
#include "workload/placement.h"

enum {
    ITERATIONS_MAX = 1 << 20,
};

/* What a worker's next burst starts with, in the order of the words of the option. */
enum carry {
    CARRY_NOTHING,
    CARRY_THRESHOLD,
    CARRY_WINDOW,
};

struct bursts {
    uint64_t size;
    gw_time start;
    gw_time idle;
    uint32_t workers;
    uint32_t iterations;
    uint32_t carry; /* enum carry */
    bool silent;
    char server[GW_PARAM_TEXT_MAX];
    char hosts[GW_PARAM_TEXT_MAX];
    char announce[GW_PARAM_TEXT_MAX];
};

/* The hosts of a burst. */
struct places {
    uint32_t server;
    struct gw_host_list given; /* empty: one rack after the other */
    struct gw_racks racks;
};

static int find_server(const struct bursts *cfg, struct places *places, struct gw_workload_ctx *ctx)
{
    struct gw_host_list list;
    places->server = ctx->topo->host_count - 1;
    if (cfg->server[0] == '\0')
        return GW_OK;
    int error = gw_host_list_parse(&list, cfg->server, ctx);
    if (!error && list.count == 1)
        places->server = list.hosts[0];
    bool is_one = !error && list.count == 1;
    gw_host_list_free(&list);
    return is_one
               ? GW_OK
               : gw_workload_refuse(ctx, GW_ERR_RANGE,
                                    "server must be one of the %u hosts, 0 to %u, not %s",
                                    ctx->topo->host_count, ctx->topo->host_count - 1, cfg->server);
}

/* The next worker; UINT32_MAX: there are no more hosts. */
static uint32_t take_host(struct places *places, uint32_t worker)
{
    if (places->given.count == 0)
        return gw_racks_take(&places->racks, worker % places->racks.count);
    return worker < places->given.count ? places->given.hosts[worker] : UINT32_MAX;
}

/* Chooses the workers' hosts. */
static int find_workers(const struct bursts *cfg, struct places *places, uint32_t *workers,
                        struct gw_workload_ctx *ctx)
{
    gw_racks_occupy(&places->racks, places->server);
    for (uint32_t i = 0; i < places->given.count; i++)
        if (places->given.hosts[i] == places->server)
            return gw_workload_refuse(ctx, GW_ERR_INVALID, "hosts: %u is the server",
                                      places->server);
    for (uint32_t i = 0; i < cfg->workers; i++) {
        workers[i] = take_host(places, i);
        if (workers[i] == UINT32_MAX)
            return gw_workload_refuse(
                ctx, GW_ERR_RANGE, "workers: %u are more than %s", cfg->workers,
                places->given.count ? "the hosts that are given" : "the hosts beside the server");
    }
    return GW_OK;
}

/* The flows of one burst, and the trigger that they fire and that starts the next one. */
static void add_burst(struct gw_workload *workload, const struct bursts *cfg,
                      const struct places *places, const uint32_t *workers, uint32_t iteration)
{
    bool is_last = iteration + 1 == cfg->iterations;
    uint32_t first = workload->flow_count, trigger = GW_TRIGGER_NONE;
    uint32_t follows = iteration && cfg->carry != CARRY_NOTHING ? first - cfg->workers + 1 : 0;
    if (!is_last) {
        trigger = gw_workload_add_trigger(workload, cfg->workers, false);
        workload->triggers[trigger].delay = cfg->idle;
    }
    for (uint32_t i = 0; i < cfg->workers; i++) {
        gw_workload_add_flow(workload, &(struct gw_flow_spec){
                                           .src = workers[i],
                                           .dst = places->server,
                                           .bytes = cfg->size,
                                           .start = iteration ? GW_TIME_NEVER : cfg->start,
                                           .id = workload->flow_count,
                                           .fires_sent = trigger,
                                           .fires_received = GW_TRIGGER_NONE,
                                           .tenant = workload->tenant_count,
                                           .background = cfg->silent,
                                           .silent = cfg->silent,
                                           .follows = follows ? follows + i : 0,
                                           .goes_on = cfg->carry == CARRY_WINDOW,
                                       });
        if (!is_last)
            gw_workload_add_start(workload, first + cfg->workers + i);
    }
    gw_workload_add_burst(workload, first);
}

static int check(const struct bursts *cfg, struct gw_workload_ctx *ctx)
{
    if (cfg->size == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "size must be at least 1 byte");
    if (cfg->workers == 0)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "workers must be at least 1");
    if (cfg->idle > GW_WORKLOAD_DELAY_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "idle must be at most 5 days (432000s)");
    if (cfg->iterations == 0 || cfg->iterations > ITERATIONS_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "iterations must be from 1 to %d, not %u",
                                  ITERATIONS_MAX, cfg->iterations);
    return gw_workload_check_count(ctx, "iterations", (uint64_t)cfg->workers * cfg->iterations);
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct bursts *cfg = options;
    uint8_t announce;
    int error = check(cfg, ctx);
    if (!error)
        error = gw_workload_announce(cfg->announce, &announce, ctx);
    struct places places;
    if (!error)
        error = find_server(cfg, &places, ctx);
    if (error)
        return error;
    gw_racks_init(&places.racks, ctx->topo);
    error = gw_host_list_parse(&places.given, cfg->hosts, ctx);
    uint32_t *workers = gw_memory_zeroed(cfg->workers, sizeof(*workers));
    if (!error)
        error = find_workers(cfg, &places, workers, ctx);
    if (!error)
        gw_workload_add_tenant(workload, announce);
    for (uint32_t i = 0; i < cfg->iterations && !error; i++)
        add_burst(workload, cfg, &places, workers, i);
    free(workers);
    gw_host_list_free(&places.given);
    gw_racks_fini(&places.racks);
    return error;
}

static const struct gw_param params[] = {
    GW_PARAM(struct bursts, BYTES, size, "10MB", "that each worker sends in a burst"),
    GW_PARAM(struct bursts, COUNT, workers, "2", "that send at the same time"),
    GW_PARAM(struct bursts, COUNT, iterations, "6", "bursts (PCN section 4)"),
    GW_PARAM(struct bursts, TIME, idle, "7s",
             "from the end of a burst to the next one's start (PCN section 4)"),
    GW_PARAM(struct bursts, TIME, start, "0", "of the first burst"),
    GW_PARAM(struct bursts, TEXT, server, "",
             "number of the host that receives; the last one unless it is given"),
    GW_PARAM(struct bursts, TEXT, hosts, "",
             "that workers have, in this order, as in 3,0-2,7; else they go from rack to rack"),
    {.name = "carry",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct bursts, carry),
     .initial = "nothing",
     .choices = "nothing|threshold|window",
     .help =
         "what a worker's burst leaves to its next one: nothing, as a connection that is closed; "
         "the threshold of slow start, as one that was idle (RFC 5681 section 4.1); or its "
         "window as well"},
    GW_PARAM(struct bursts, BOOL, silent, "no",
             "announces with a single notice, sends nothing, and its next burst follows after "
             "`idle`, as a stranger may who shares a switch; the run does not wait for it"),
    GW_ANNOUNCE_PARAM(struct bursts, announce),
};

const struct gw_workload_kind gw_workload_bursts = {
    .algo = {.name = "bursts",
             .summary = "workers that send to a server at the same time, and pause",
             .source = "PCN (Sensors 2021) section 4",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct bursts)},
    .generate = generate,
};
