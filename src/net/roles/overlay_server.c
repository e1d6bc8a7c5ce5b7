/* A parameter server on the overlay; see overlay_server.h. */
#include "net/roles/overlay_server.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "wire/wire.h"
#include "core/quant/scale.h"

enum {
    FLOWS_MAX = 64,
    CONTROL_MAX = 4096,
    RAW_ROWS = 16, /* fragments whose floats are collected at the same time, of each job */
};

struct served {
    struct gw_overlay_job job;
    struct gw_server *server; /* NULL: free */
    struct gw_coordinator *coordinator;
};

struct gw_overlay_server {
    struct gw_overlay_server_cfg cfg;
    struct gw_endpoint *endpoint;
    uint16_t node;
    struct gw_overlay_totals past; /* of jobs that are forgotten */
    uint32_t count;                /* jobs served since the beginning: makes incarnations differ */
    struct served served[GW_OVERLAY_JOBS_MAX];
};

static int open_endpoint(struct gw_overlay_server *server)
{
    const struct gw_overlay_server_cfg *cfg = &server->cfg;
    struct gw_endpoint_cfg endpoint = {
        .address = cfg->address,
        .tx_flows_max = FLOWS_MAX,
        .rx_flows_max = FLOWS_MAX,
        .control_max = CONTROL_MAX,
        .expect_max = FLOWS_MAX,
        .apps_max = 2 * cfg->jobs_max,
        .mtu = cfg->mtu,
        .hdr = cfg->hdr,
        .seed = cfg->seed,
        .pool = cfg->pool,
    };
    return gw_overlay_endpoint_open(&endpoint, &server->endpoint);
}

int gw_overlay_server_open(const struct gw_overlay_server_cfg *cfg,
                           struct gw_overlay_server **result)
{
    GW_ASSERT(cfg->jobs_max >= 1 && cfg->jobs_max <= GW_OVERLAY_JOBS_MAX);
    struct gw_overlay_server *server = calloc(1, sizeof(*server));
    if (!server)
        return GW_ERR_NO_MEMORY;
    server->cfg = *cfg;
    int code = open_endpoint(server);
    if (code) {
        free(server);
        return code;
    }
    server->node = gw_loop_add(cfg->loop, gw_endpoint_node(server->endpoint));
    *result = server;
    return GW_OK;
}

void gw_overlay_server_close(struct gw_overlay_server *server)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        free(server->served[i].coordinator);
        free(server->served[i].server);
    }
    free(server->endpoint);
    free(server);
}

uint16_t gw_overlay_server_node(const struct gw_overlay_server *server)
{
    return server->node;
}

struct gw_endpoint *gw_overlay_server_endpoint(struct gw_overlay_server *server)
{
    return server->endpoint;
}

static int make_server(struct gw_overlay_server *own, struct served *served)
{
    const struct gw_overlay_job *job = &served->job;
    struct gw_server_cfg cfg = {
        .job = job->job,
        .world = job->world,
        .levels = job->levels,
        .values = job->values,
        .window_max = job->window,
        .aggregators = job->aggregators,
        .indexing = GW_AGG_INDEX_HASH,
        .raw_max = RAW_ROWS,
        .retry = GW_OVERLAY_RETRY,
        .quiet = GW_OVERLAY_QUIET,
        .scale_exponent = GW_SCALE_EXPONENT,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    void *memory = gw_node_memory_take(gw_server_size(&cfg));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    return gw_server_init(&served->server, memory, &cfg, own->endpoint);
}

static int make_coordinator(struct gw_overlay_server *own, struct served *served)
{
    const struct gw_overlay_job *job = &served->job;
    struct gw_coordinator_cfg cfg = {
        .job = job->job,
        .world = job->world,
        .levels = job->levels,
        .window_max = job->window,
        .values = job->values,
        .aggregators = job->aggregators,
        .indexing = GW_AGG_INDEX_HASH,
        .scale_exponent = GW_SCALE_EXPONENT,
        .incarnation = own->cfg.incarnation + own->count,
        .retry = GW_OVERLAY_RETRY,
        .beat = GW_STATION_BEAT,
        .silence = GW_STATION_SILENCE,
        .notice_path = {.rtt = gw_overlay_brtt(0),
                        .rate_bps = GW_OVERLAY_RATE_BPS,
                        .packet = own->cfg.hdr + GW_WIRE_VALUE_SIZE * job->values},
        .server = served->server,
    };
    cfg.incarnation += cfg.incarnation == 0;
    void *memory = gw_node_memory_take(gw_coordinator_size(&cfg));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    return gw_coordinator_init(&served->coordinator, memory, &cfg, own->endpoint);
}

static void add_totals(struct gw_overlay_totals *totals, const struct served *served)
{
    const struct gw_server_stats *stats = gw_server_stats(served->server);
    totals->received += stats->received;
    totals->results += stats->results;
    totals->complete += stats->complete;
    totals->bytes += stats->bytes;
}

struct gw_overlay_totals gw_overlay_server_totals(const struct gw_overlay_server *server)
{
    struct gw_overlay_totals totals = server->past;
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++)
        if (server->served[i].server)
            add_totals(&totals, &server->served[i]);
    return totals;
}

static void forget(struct gw_overlay_server *server, struct served *served)
{
    if (served->server)
        add_totals(&server->past, served);
    if (served->coordinator)
        gw_coordinator_fini(served->coordinator);
    if (served->server)
        gw_server_fini(served->server);
    free(served->coordinator);
    free(served->server);
    *served = (struct served){0};
}

int gw_overlay_server_add(struct gw_overlay_server *server, const struct gw_overlay_job *job)
{
    struct served *free_slot = NULL;
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        struct served *served = &server->served[i];
        if (served->server && served->job.job == job->job)
            return served->job.world == job->world ? GW_OK : GW_ERR_INVALID;
        if (!served->server && !free_slot)
            free_slot = served;
    }
    if (!free_slot)
        return GW_ERR_NO_ROOM;
    server->count++;
    free_slot->job = *job;
    int code = make_server(server, free_slot);
    if (!code)
        code = make_coordinator(server, free_slot);
    if (code)
        forget(server, free_slot);
    return code;
}

void gw_overlay_server_hear(struct gw_overlay_server *server, uint32_t job, uint32_t address,
                            gw_time at)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++)
        if (server->served[i].server && server->served[i].job.job == job)
            gw_coordinator_hear(server->served[i].coordinator, address, at);
}

void gw_overlay_server_set_path(struct gw_overlay_server *server, uint32_t job,
                                const struct gw_notice_path *path)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++)
        if (server->served[i].server && server->served[i].job.job == job)
            gw_coordinator_set_notice_path(server->served[i].coordinator, path);
}

void gw_overlay_server_forget(struct gw_overlay_server *server, uint32_t job)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        struct served *served = &server->served[i];
        if (served->server && served->job.job == job &&
            gw_coordinator_phase(served->coordinator) == GW_COORDINATOR_GATHERING)
            forget(server, served);
    }
}

bool gw_overlay_server_view(const struct gw_overlay_server *server, uint32_t index,
                            struct gw_overlay_job_view *view)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        const struct served *served = &server->served[i];
        if (!served->server || index-- > 0)
            continue;
        *view = (struct gw_overlay_job_view){
            .job = served->job,
            .phase = gw_coordinator_phase(served->coordinator),
            .epoch = gw_coordinator_epoch(served->coordinator),
            .server = gw_server_stats(served->server),
            .coordinator = gw_coordinator_stats(served->coordinator),
        };
        return true;
    }
    return false;
}
