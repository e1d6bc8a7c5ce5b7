/* A worker of one job on the overlay; see overlay_worker.h. */
#include "net/roles/overlay_worker.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"

enum {
    FLOWS_MAX = 64,
    CONTROL_MAX = 1024,
    APPS_MAX = 2, /* member and worker */
    /* Fragments, 90 KB: with 1 in 100 packets lost an all-reduce is 20 times as fast as with one.
     */
    WINDOW_MIN = 64,
};

struct gw_overlay_worker {
    struct gw_overlay_worker_cfg cfg;
    struct gw_endpoint *endpoint;
    struct gw_member *member;
    struct gw_worker *worker; /* NULL before it has joined */
    void *worker_memory;
    uint16_t node;
};

static int open_endpoint(struct gw_overlay_worker *worker)
{
    const struct gw_overlay_worker_cfg *cfg = &worker->cfg;
    struct gw_endpoint_cfg endpoint = {
        .address = cfg->address,
        .tx_flows_max = FLOWS_MAX,
        .rx_flows_max = FLOWS_MAX,
        .control_max = CONTROL_MAX,
        .expect_max = FLOWS_MAX,
        .apps_max = APPS_MAX,
        .app_events_max = cfg->tensors_max + APPS_MAX,
        .announcers_max = cfg->notice ? APPS_MAX : 0,
        .mtu = cfg->mtu,
        .hdr = cfg->hdr,
        .stall = cfg->stall,
        .seed = cfg->seed,
        .pool = cfg->pool,
    };
    return gw_overlay_endpoint_open(&endpoint, &worker->endpoint);
}

static int open_member(struct gw_overlay_worker *worker)
{
    const struct gw_overlay_worker_cfg *cfg = &worker->cfg;
    struct gw_member_cfg member = {
        .job = cfg->job,
        .server = cfg->server,
        .rank = cfg->rank,
        .notice = cfg->notice,
        .incarnation = cfg->incarnation,
        .retry = GW_OVERLAY_RETRY,
        .beat = GW_STATION_BEAT,
        .stall = cfg->stall,
    };
    void *memory = gw_node_memory_take(gw_member_size());
    if (!memory)
        return GW_ERR_NO_MEMORY;
    return gw_member_init(&worker->member, memory, &member, worker->endpoint);
}

int gw_overlay_worker_open(const struct gw_overlay_worker_cfg *cfg,
                           struct gw_overlay_worker **result)
{
    struct gw_overlay_worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return GW_ERR_NO_MEMORY;
    worker->cfg = *cfg;
    int code = open_endpoint(worker);
    if (!code)
        code = open_member(worker);
    if (code) {
        gw_overlay_worker_close(worker);
        return code;
    }
    worker->node = gw_loop_add(cfg->loop, gw_endpoint_node(worker->endpoint));
    *result = worker;
    return GW_OK;
}

void gw_overlay_worker_close(struct gw_overlay_worker *worker)
{
    free(worker->worker_memory);
    free(worker->member);
    free(worker->endpoint);
    free(worker);
}

uint16_t gw_overlay_worker_node(const struct gw_overlay_worker *worker)
{
    return worker->node;
}

struct gw_endpoint *gw_overlay_worker_endpoint(struct gw_overlay_worker *worker)
{
    return worker->endpoint;
}

void gw_overlay_worker_set_server(struct gw_overlay_worker *worker, uint32_t server)
{
    gw_member_set_server(worker->member, server);
}

int gw_overlay_worker_join(struct gw_overlay_worker *worker, gw_time now)
{
    return gw_member_join(worker->member, now);
}

int gw_overlay_worker_leave(struct gw_overlay_worker *worker, gw_time now)
{
    return gw_member_leave(worker->member, now);
}

void gw_overlay_worker_fail(struct gw_overlay_worker *worker, gw_time now)
{
    if (worker->worker && !gw_worker_is_out(worker->worker))
        gw_worker_fail(worker->worker, GW_JOB_LOST, worker->cfg.rank, now);
}

int gw_overlay_worker_reduce(struct gw_overlay_worker *worker, const struct gw_tensor *tensor,
                             gw_time now)
{
    return worker->worker ? gw_worker_reduce(worker->worker, tensor, now) : GW_ERR_OUT;
}

/* The first epoch has begun: makes the worker by the job's terms. It fails calls that have stalled.
 */
static int make_worker(struct gw_overlay_worker *worker)
{
    struct gw_worker_cfg cfg = {
        .tensors_max = worker->cfg.tensors_max,
        .timeout = GW_OVERLAY_TIMEOUT,
        .stall = worker->cfg.stall,
        .congestion_control = worker->cfg.congestion_control,
        .keeps_results = true,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    gw_member_worker_cfg(worker->member, &cfg);
    cfg.window_initial = cfg.window_max;
    cfg.window_min = cfg.window_max < WINDOW_MIN ? cfg.window_max : WINDOW_MIN;
    if (4 * cfg.values > worker->cfg.mtu)
        return GW_ERR_INVALID;
    worker->worker_memory = gw_node_memory_take(gw_worker_size(&cfg));
    if (!worker->worker_memory)
        return GW_ERR_NO_MEMORY;
    int code = gw_worker_init(&worker->worker, worker->worker_memory, &cfg, worker->endpoint);
    if (!code)
        gw_member_bind(worker->member, worker->worker);
    return code;
}

bool gw_overlay_worker_poll(struct gw_overlay_worker *worker, struct gw_event *event)
{
    if (gw_endpoint_poll(worker->endpoint, event, 1) == 0)
        return false;
    if (event->kind == GW_EVENT_JOINED && !worker->worker && make_worker(worker) != GW_OK) {
        event->kind = GW_EVENT_REFUSED;
        event->reason = GW_JOB_LIMIT;
    }
    return true;
}

const struct gw_worker_stats *gw_overlay_worker_stats(const struct gw_overlay_worker *worker)
{
    return worker->worker ? gw_worker_stats(worker->worker) : NULL;
}

const struct gw_member *gw_overlay_worker_member(const struct gw_overlay_worker *worker)
{
    return worker->member;
}
