/* Servers of the job model: all that a home has for one job; see job_model.h. */
#include "job_model_impl.h"

#include "base/cpu.h"

enum {
    RAW_MAX = 8,
    FLOWS_SPARE = 8, /* of whoever sends to a home besides the ranks */
};

#define RETRY (100 * GW_US)
#define BEAT  GW_MS

void gw_job_model_home_demand(const struct gw_job_model_cfg *cfg, struct gw_endpoint_cfg *endpoint)
{
    endpoint->apps_max = 2 * GW_JOB_MODEL_SHARDS;
    endpoint->tx_flows_max = gw_registrar_flows(cfg->world);
    endpoint->expect_max = gw_registrar_awaits(cfg->world);
    endpoint->rx_flows_max = 2 * endpoint->expect_max + FLOWS_SPARE;
    endpoint->control_max = 1024;
    endpoint->stall = GW_JOB_MODEL_STALL * 2 / 3;
}

/* Shard 0 of a server is via ina, 1 via ps. */
static uint32_t job_of(uint32_t server, uint32_t shard)
{
    uint32_t job = gw_job_shard(GW_JOB_MODEL_NUMBER, server);
    return shard ? gw_job_shard_direct(job) : job;
}

static struct gw_notice_path notice_path(const struct gw_job_model *m)
{
    const struct gw_path path = gw_job_model_path(m);
    return (struct gw_notice_path){
        .rtt = path.brtt, .rate_bps = path.rate_bps, .packet = path.mtu + path.hdr};
}

static void shard_start(struct gw_job_model *m, uint32_t number, uint32_t shard)
{
    const struct gw_job_model_cfg *cfg = m->cfg;
    struct gw_job_model_home *home = &m->homes[number];
    struct gw_endpoint *ep = gw_job_model_endpoint(m, cfg->world + number);
    struct gw_server_cfg server = {
        .job = job_of(number, shard),
        .world = (uint16_t)cfg->world,
        .levels = shard ? 0 : GW_LEVELS_MAX,
        .values = cfg->values,
        .window_max = cfg->window,
        .aggregators = cfg->aggregators,
        .raw_max = RAW_MAX,
        .retry = 50 * GW_US,
        .quiet = 40 * GW_US,
        .patience = cfg->patience,
        .patience_max = 2 * cfg->patience,
        .scale_exponent = GW_SCALE_EXPONENT,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    void *memory = home->memories[2 * shard] = gw_test_take(gw_server_size(&server));
    assert_int_equal(gw_server_init(&home->servers[shard], memory, &server, ep), 0);
    struct gw_coordinator_cfg coordinator = {
        .job = server.job,
        .world = server.world,
        .levels = server.levels,
        .window_max = server.window_max,
        .values = (uint16_t)server.values,
        .aggregators = server.aggregators,
        .scale_exponent = GW_SCALE_EXPONENT,
        .incarnation = (uint32_t)gw_prng_next(&m->prng) | 1,
        .retry = RETRY,
        .beat = BEAT,
        .silence = 2 * GW_JOB_MODEL_SILENCE,
        .notice_path = notice_path(m),
        .server = home->servers[shard],
    };
    memory = home->memories[2 * shard + 1] = gw_test_take(gw_coordinator_size(&coordinator));
    assert_int_equal(gw_coordinator_init(&home->coordinators[shard], memory, &coordinator, ep), 0);
}

void gw_job_model_home_start(struct gw_job_model *m, uint32_t number)
{
    struct gw_job_model_home *home = &m->homes[number];
    home->is_up = true;
    home->life++;
    for (uint32_t shard = 0; shard < GW_JOB_MODEL_SHARDS; shard++)
        shard_start(m, number, shard);
    if (number != 0)
        return;
    struct gw_registrar_cfg registrar = {
        .endpoint = gw_job_model_endpoint(m, m->cfg->world),
        .job = GW_JOB_MODEL_NUMBER,
        .world = (uint16_t)m->cfg->world,
        .transport = &m->transport,
    };
    const struct gw_notice_path path = notice_path(m);
    home->registrar_memory = gw_test_take(gw_registrar_size(registrar.world));
    home->registrar = gw_registrar_init(home->registrar_memory, &registrar);
    gw_registrar_set_notice_path(home->registrar, &path);
}

static void count(struct gw_job_model *m, uint32_t number)
{
    const struct gw_job_model_home *home = &m->homes[number];
    struct gw_job_model_server *result = &m->result->servers[number];
    for (uint32_t shard = 0; shard < GW_JOB_MODEL_SHARDS; shard++) {
        result->sums[shard] = *gw_server_stats(home->servers[shard]);
        result->epochs += gw_coordinator_stats(home->coordinators[shard])->epochs;
    }
}

static void forget(struct gw_job_model_home *home)
{
    for (uint32_t i = 0; i < GW_COUNT_OF(home->memories); i++)
        free(home->memories[i]);
    free(home->registrar_memory);
    *home = (struct gw_job_model_home){.life = home->life};
}

void gw_job_model_home_die(struct gw_job_model *m, uint32_t number)
{
    count(m, number);
    forget(&m->homes[number]);
}

void gw_job_model_home_close(struct gw_job_model *m, uint32_t number)
{
    struct gw_job_model_home *home = &m->homes[number];
    const struct gw_tree_host *host = &m->net.hosts[m->cfg->world + number];
    struct gw_job_model_server *result = &m->result->servers[number];
    result->from = *gw_mem_stats(m->net.mem, host->from);
    result->to = *gw_mem_stats(m->net.mem, host->to);
    if (!home->is_up)
        return;
    count(m, number);
    for (uint32_t shard = 0; shard < GW_JOB_MODEL_SHARDS; shard++) {
        gw_coordinator_fini(home->coordinators[shard]);
        gw_server_fini(home->servers[shard]);
    }
    if (home->registrar) {
        assert_false(gw_registrar_is_busy(home->registrar));
        gw_registrar_fini(home->registrar);
    }
    forget(home);
    gw_endpoint_fini(host->host.endpoint);
}

void gw_job_model_home_beat(struct gw_job_model *m, uint32_t number)
{
    const struct gw_job_model_home *home = &m->homes[number];
    for (uint32_t rank = 0; home->is_up && rank < m->cfg->world; rank++)
        for (uint32_t shard = 0; shard < GW_JOB_MODEL_SHARDS; shard++)
            if (gw_job_model_is_up(&m->actors[rank]))
                gw_coordinator_hear(home->coordinators[shard], rank, gw_job_model_address(m, rank),
                                    gw_job_model_now(m));
}
