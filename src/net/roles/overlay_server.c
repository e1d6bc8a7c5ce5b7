/* A parameter server on the overlay; see overlay_server.h. */
#include "net/roles/overlay_server.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "wire/wire.h"
#include "core/aggregation/patience.h"
#include "core/quant/scale.h"
#include "net/roles/past_ranks.h"

enum {
    FLOWS_MAX = 64,
    APPS_EACH = 2, /* of a shard: coordinator and server */
    CONTROL_MAX = 4096,
    RAW_ROWS = 16, /* fragments whose floats are collected at the same time, of each job */
};

/* The sums of a job that go by switches, and those that do not. */
enum twin {
    TWIN_SWITCHES,
    TWIN_DIRECT,
    TWINS,
};

struct shard {
    struct gw_server *server;
    struct gw_coordinator *coordinator;
};

struct served {
    const struct gw_overlay_server *own;
    struct gw_overlay_job job; /* world 0: free */
    struct shard shards[TWINS];
    struct gw_registrar *registrar; /* NULL: the job has another home */
};

struct gw_overlay_server {
    struct gw_overlay_server_cfg cfg;
    struct gw_endpoint *endpoint;
    uint16_t node;
    struct gw_overlay_totals past; /* of jobs that are forgotten */
    uint32_t count;                /* jobs served since the beginning: makes incarnations differ */
    struct gw_transport transport; /* of registrars */
    struct gw_past_ranks past_ranks;
    uint64_t refused[GW_TENANTS_MAX + 1]; /* jobs of each tenant, each time that a rank asks */
    struct served served[GW_OVERLAY_JOBS_MAX];
};

static int open_endpoint(struct gw_overlay_server *server)
{
    const struct gw_overlay_server_cfg *cfg = &server->cfg;
    uint32_t world = cfg->ranks_max < GW_WORLD_MAX ? cfg->ranks_max : GW_WORLD_MAX;
    uint32_t awaits = cfg->jobs_max * gw_registrar_awaits(world); /* of whoever may have come */
    struct gw_endpoint_cfg endpoint = {
        .address = cfg->address,
        /* Of each job, so that ranks that take no message keep no other job waiting. */
        .tx_flows_max = FLOWS_MAX + cfg->jobs_max * gw_registrar_flows(cfg->ranks_max),
        .rx_flows_max = FLOWS_MAX + 2 * gw_registrar_awaits(cfg->ranks_max),
        .control_max = CONTROL_MAX,
        .expect_max = FLOWS_MAX + awaits,
        .apps_max = APPS_EACH * TWINS * cfg->jobs_max,
        .stall = cfg->stall,
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
    char error[GW_NET_ERROR_MAX];
    /* By one path, as if there were no others: messages of registrars are short. */
    int code =
        gw_overlay_transport("smartt", "reps", cfg->has_switches, 1, &server->transport, error);
    if (!code)
        code = open_endpoint(server);
    if (code) {
        free(server);
        return code;
    }
    server->node = gw_loop_add(cfg->loop, gw_endpoint_node(server->endpoint));
    *result = server;
    return GW_OK;
}

/* Frees the memory of a job, whose endpoint has none of it or goes, too. */
static void give_back(struct served *served)
{
    for (int i = 0; i < TWINS; i++) {
        gw_node_memory_give(served->shards[i].coordinator);
        gw_node_memory_give(served->shards[i].server);
    }
    gw_node_memory_give(served->registrar);
    *served = (struct served){.registrar = NULL};
}

void gw_overlay_server_close(struct gw_overlay_server *server)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++)
        give_back(&server->served[i]);
    gw_node_memory_give(server->endpoint);
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

static uint32_t number_of(const struct gw_overlay_job *job, enum twin twin)
{
    return twin == TWIN_DIRECT ? gw_job_shard_direct(job->job) : job->job;
}

static uint8_t levels_of(enum twin twin)
{
    return twin == TWIN_DIRECT ? 0 : GW_LEVELS_MAX;
}

static int make_server(struct gw_overlay_server *own, struct served *served, enum twin twin)
{
    const struct gw_overlay_job *job = &served->job;
    struct gw_server_cfg cfg = {
        .job = number_of(job, twin),
        .world = job->world,
        .levels = levels_of(twin),
        .values = job->values,
        .window_max = job->window,
        .aggregators = job->aggregators,
        .indexing = GW_AGG_INDEX_HASH,
        .raw_max = RAW_ROWS,
        .retry = GW_OVERLAY_RETRY,
        .quiet = GW_OVERLAY_QUIET,
        .patience = gw_patience_least(GW_OVERLAY_TIMEOUT),
        .patience_max = gw_patience_most(GW_OVERLAY_TIMEOUT),
        .scale_exponent = GW_SCALE_EXPONENT,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    void *memory = gw_node_memory_take(gw_server_size(&cfg));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    return gw_server_init(&served->shards[twin].server, memory, &cfg, own->endpoint);
}

/* Who was not taken in must not be taken for one of the job by what comes by way of switches. */
static bool admits(const void *context, uint32_t address)
{
    const struct served *served = context;
    const struct gw_overlay_server_cfg *cfg = &served->own->cfg;
    return !cfg->has_come || cfg->has_come(cfg->context, served->job.job, address);
}

static int make_coordinator(struct gw_overlay_server *own, struct served *served, enum twin twin)
{
    const struct gw_overlay_job *job = &served->job;
    struct gw_coordinator_cfg cfg = {
        .job = number_of(job, twin),
        .world = job->world,
        .levels = levels_of(twin),
        .window_max = job->window,
        .values = job->values,
        .aggregators = job->aggregators,
        .indexing = GW_AGG_INDEX_HASH,
        .scale_exponent = GW_SCALE_EXPONENT,
        .incarnation = own->cfg.incarnation + own->count++,
        .retry = GW_OVERLAY_RETRY,
        .beat = GW_STATION_BEAT,
        .silence = GW_STATION_SILENCE,
        .notice_path = {.rtt = gw_overlay_brtt(0),
                        .rate_bps = GW_OVERLAY_RATE_BPS,
                        .packet = own->cfg.hdr + GW_WIRE_VALUE_SIZE * job->values},
        .server = served->shards[twin].server,
        .admits = admits,
        .context = served,
    };
    cfg.incarnation += cfg.incarnation == 0;
    void *memory = gw_node_memory_take(gw_coordinator_size(&cfg));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    return gw_coordinator_init(&served->shards[twin].coordinator, memory, &cfg, own->endpoint);
}

static int make_registrar(struct gw_overlay_server *own, struct served *served)
{
    struct gw_registrar_cfg cfg = {
        .endpoint = own->endpoint,
        .job = served->job.job,
        .world = served->job.world,
        .doubt = GW_STATION_SILENCE / 2,
        .transport = &own->transport,
    };
    void *memory = gw_node_memory_take(gw_registrar_size(cfg.world));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    served->registrar = gw_registrar_init(memory, &cfg);
    return GW_OK;
}

static void add_totals(struct gw_overlay_totals *totals, const struct served *served)
{
    for (int i = 0; i < TWINS; i++) {
        if (!served->shards[i].server)
            continue;
        const struct gw_server_stats *stats = gw_server_stats(served->shards[i].server);
        totals->received += stats->received;
        totals->results += stats->results;
        totals->complete += stats->complete;
        totals->bytes += stats->bytes;
    }
}

struct gw_overlay_totals gw_overlay_server_totals(const struct gw_overlay_server *server)
{
    struct gw_overlay_totals totals = server->past;
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++)
        add_totals(&totals, &server->served[i]);
    return totals;
}

static void forget(struct gw_overlay_server *server, struct served *served)
{
    add_totals(&server->past, served);
    for (int i = 0; i < TWINS; i++) {
        if (served->shards[i].coordinator)
            gw_coordinator_fini(served->shards[i].coordinator);
        if (served->shards[i].server)
            gw_server_fini(served->shards[i].server);
    }
    if (served->registrar)
        gw_registrar_fini(served->registrar);
    give_back(served);
}

/* The job of that number, or NULL; 0: a free place. */
static struct served *find(struct gw_overlay_server *server, uint32_t job)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        struct served *served = &server->served[i];
        if (job ? served->job.world && served->job.job == job : served->job.world == 0)
            return served;
    }
    return NULL;
}

/* A free place, for a job of that number; NULL: there is none, or what is free is for others. */
static struct served *find_place(struct gw_overlay_server *server, uint32_t job)
{
    const struct gw_tenants *tenants = &server->cfg.tenants;
    uint32_t held[GW_TENANTS_MAX + 1] = {0}, left = 0;
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        const struct gw_overlay_job *other = &server->served[i].job;
        if (other->world)
            held[gw_tenants_of(tenants, other->job)]++;
        left += other->world == 0;
    }
    uint32_t who = gw_tenants_of(tenants, job);
    if (gw_tenants_have_place(held, tenants->count, who, server->cfg.jobs_max, left))
        return find(server, 0);
    server->refused[who]++;
    return NULL;
}

void gw_overlay_server_use(const struct gw_overlay_server *server, uint32_t who,
                           struct gw_tenant_use *use)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        const struct gw_overlay_job *job = &server->served[i].job;
        use->jobs += job->world && gw_tenants_of(&server->cfg.tenants, job->job) == who;
    }
    use->jobs_refused += server->refused[who];
}

static int serve(struct gw_overlay_server *server, struct served *served)
{
    int code = GW_OK;
    for (enum twin twin = 0; twin < TWINS && !code; twin++) {
        code = make_server(server, served, twin);
        if (!code)
            code = make_coordinator(server, served, twin);
    }
    return code;
}

int gw_overlay_server_add(struct gw_overlay_server *server, const struct gw_overlay_job *job)
{
    struct served *served = find(server, job->job);
    int code = GW_OK;
    if (served && served->job.world != job->world)
        return GW_ERR_INVALID;
    if (!served) {
        served = find_place(server, job->job);
        if (!served)
            return GW_ERR_NO_ROOM;
        served->own = server;
        served->job = *job;
        code = serve(server, served);
    }
    if (!code && job->is_home && !served->registrar)
        code = make_registrar(server, served);
    if (code)
        forget(server, served);
    return code;
}

enum gw_job_reason gw_overlay_server_come(struct gw_overlay_server *server, uint32_t job,
                                          const struct gw_registrar_rank *rank, gw_time now)
{
    struct served *served = find(server, job);
    GW_ASSERT(served && served->registrar); /* the job was added as one that has its home here */
    return gw_registrar_come(served->registrar, rank, now);
}

void gw_overlay_server_gone(struct gw_overlay_server *server, uint32_t job, uint32_t address,
                            gw_time now)
{
    struct served *served = find(server, job);
    if (served && served->registrar && gw_registrar_gone(served->registrar, address, now))
        gw_past_ranks_add(&server->past_ranks, job, address);
}

void gw_overlay_server_dismiss(struct gw_overlay_server *server, uint32_t job, uint32_t address)
{
    gw_past_ranks_add(&server->past_ranks, job, address);
}

bool gw_overlay_server_is_over(const struct gw_overlay_server *server, uint32_t job,
                               uint32_t address)
{
    return gw_past_ranks_has(&server->past_ranks, job, address);
}

void gw_overlay_server_poll(struct gw_overlay_server *server, gw_time now)
{
    struct gw_event event;
    while (gw_endpoint_poll(server->endpoint, &event, 1))
        for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
            struct gw_registrar *registrar = server->served[i].registrar;
            if (registrar && gw_registrar_event(registrar, &event, now))
                break;
        }
}

void gw_overlay_server_hear(struct gw_overlay_server *server, uint32_t job, uint16_t rank,
                            uint32_t address, gw_time at, gw_time now)
{
    struct served *served = find(server, job);
    for (int i = 0; i < TWINS && served; i++)
        gw_coordinator_hear(served->shards[i].coordinator, rank, address, at);
    if (served && served->registrar)
        gw_registrar_hear(served->registrar, rank, address, at, now);
}

void gw_overlay_server_set_path(struct gw_overlay_server *server, uint32_t job,
                                const struct gw_notice_path *path)
{
    struct served *served = find(server, job);
    for (int i = 0; i < TWINS && served; i++)
        gw_coordinator_set_notice_path(served->shards[i].coordinator, path);
    if (served && served->registrar)
        gw_registrar_set_notice_path(served->registrar, path);
}

/* Of the shard that has come further. */
static enum gw_coordinator_phase phase_of(const struct served *served)
{
    static const uint8_t ranking[] = {
        [GW_COORDINATOR_GATHERING] = 0,
        [GW_COORDINATOR_CLOSING] = 1,
        [GW_COORDINATOR_INSTALLING] = 2,
        [GW_COORDINATOR_RUNNING] = 3,
    };
    enum gw_coordinator_phase phase = GW_COORDINATOR_GATHERING;
    for (int i = 0; i < TWINS; i++) {
        enum gw_coordinator_phase other = gw_coordinator_phase(served->shards[i].coordinator);
        if (ranking[other] > ranking[phase])
            phase = other;
    }
    bool has_met =
        served->registrar && gw_registrar_phase(served->registrar) == GW_REGISTRAR_RUNNING;
    return phase == GW_COORDINATOR_GATHERING && has_met ? GW_COORDINATOR_RUNNING : phase;
}

bool gw_overlay_server_forget(struct gw_overlay_server *server, uint32_t job)
{
    struct served *served = find(server, job);
    bool is_owing = served && served->registrar && gw_registrar_is_busy(served->registrar);
    if (!served || is_owing || phase_of(served) != GW_COORDINATOR_GATHERING)
        return false;
    forget(server, served);
    return true;
}

static void view_shard(const struct shard *shard, struct gw_overlay_job_view *view)
{
    const struct gw_server_stats *server = gw_server_stats(shard->server);
    const struct gw_coordinator_stats *coordinator = gw_coordinator_stats(shard->coordinator);
    uint16_t epoch = gw_coordinator_epoch(shard->coordinator);
    if (view->epoch == 0 || (int16_t)(epoch - view->epoch) > 0)
        view->epoch = epoch;
    view->server.received += server->received;
    view->server.complete += server->complete;
    view->server.partial += server->partial;
    view->server.results += server->results;
    view->server.restored += server->restored;
    view->server.overflowed += server->overflowed;
    view->server.bytes += server->bytes;
    view->coordinator.epochs += coordinator->epochs;
    view->coordinator.silences += coordinator->silences;
}

bool gw_overlay_server_view(const struct gw_overlay_server *server, uint32_t index,
                            struct gw_overlay_job_view *view)
{
    for (uint32_t i = 0; i < server->cfg.jobs_max; i++) {
        const struct served *served = &server->served[i];
        if (served->job.world == 0 || index-- > 0)
            continue;
        *view = (struct gw_overlay_job_view){
            .job = served->job,
            .phase = phase_of(served),
            .is_owing = served->registrar && gw_registrar_is_busy(served->registrar),
        };
        for (int k = 0; k < TWINS; k++)
            view_shard(&served->shards[k], view);
        return true;
    }
    return false;
}
