/* The all-reduce model; see allreduce_model.h. */
#include "allreduce_model.h"

#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "core/switch.h"
#include "net/mem.h"

enum {
    SWITCHES_MAX = GW_MODEL_RACKS_MAX + 1,
    HOSTS_MAX = GW_MODEL_WORKERS_MAX + 1,
    PORTS_MAX = HOSTS_MAX + GW_MODEL_RACKS_MAX,
    PKTS = 4096,
    HDR = 44,
    JOB = 7,
    EPOCH = 3,
    LEVELS_WITH_RACKS = 2,
    LEVEL_NONE = GW_LEVELS_MAX - 1, /* of no packet */
    STEPS_MAX = 20000000,
};

#define LATENCY (2 * GW_US)
#define LEAK    (2 * GW_MS)

struct model_switch {
    struct gw_switch *sw;
    struct gw_aggregate *aggregate;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    uint16_t leaf[HOSTS_MAX]; /* port per destination */
    uint16_t block[1];
    uint16_t ports;
    uint32_t node; /* in the datapath */
};

struct model {
    const struct gw_model_cfg *cfg;
    struct gw_mem *mem;
    struct gw_prng prng;
    uint32_t world;
    uint32_t server_host;
    uint32_t rack_of[GW_MODEL_WORKERS_MAX]; /* or UINT32_MAX */
    uint32_t place[GW_MODEL_WORKERS_MAX];   /* within the rack, or among the root's workers */
    struct gw_test_host hosts[HOSTS_MAX];
    uint32_t host_node[HOSTS_MAX];
    struct model_switch switches[SWITCHES_MAX]; /* racks, then the root */
    struct gw_worker *workers[GW_MODEL_WORKERS_MAX];
    struct gw_server *server;
};

static void *take(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, size);
    return memory;
}

/* A mask with about `of_64` of 64 bits set. */
static uint64_t random_mask(struct gw_prng *prng, uint32_t of_64)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 64; i++)
        mask |= (uint64_t)(gw_prng_below(prng, 64) < of_64) << i;
    return mask;
}

static void connect(struct model *m, uint32_t from, uint16_t from_port, uint32_t to,
                    uint16_t to_port)
{
    struct gw_mem_link link = {
        .latency = LATENCY + gw_prng_below(&m->prng, LATENCY),
        .rate_bps = 10000000000,
        .lose = random_mask(&m->prng, m->cfg->lose_of_64),
        .duplicate = random_mask(&m->prng, m->cfg->double_of_64),
        .delay = random_mask(&m->prng, m->cfg->delay_of_64),
        .delay_by = 5 * LATENCY,
    };
    gw_mem_connect(m->mem, from, from_port, to, to_port, &link);
}

static struct model_switch *root_of(struct model *m)
{
    return &m->switches[m->cfg->racks];
}

static void open_hosts(struct model *m)
{
    m->world = m->cfg->root_workers;
    for (uint32_t rack = 0; rack < m->cfg->racks; rack++)
        m->world += m->cfg->rack_workers[rack];
    assert_in_range(m->world, 1, GW_MODEL_WORKERS_MAX);
    uint32_t rank = 0;
    for (uint32_t rack = 0; rack < m->cfg->racks; rack++)
        for (uint32_t i = 0; i < m->cfg->rack_workers[rack]; i++, rank++) {
            m->rack_of[rank] = rack;
            m->place[rank] = i;
        }
    for (uint32_t i = 0; i < m->cfg->root_workers; i++, rank++) {
        m->rack_of[rank] = UINT32_MAX;
        m->place[rank] = i;
    }
    m->server_host = m->world;
    for (uint32_t i = 0; i <= m->world; i++) {
        struct gw_endpoint_cfg cfg = gw_test_host_cfg(i, 4 * m->cfg->values);
        cfg.hdr = HDR;
        cfg.apps_max = 2;
        cfg.app_events_max = 16;
        cfg.seed = gw_prng_next(&m->prng);
        gw_test_host_open(&m->hosts[i], &cfg, PKTS);
        m->host_node[i] =
            gw_mem_add(m->mem, gw_endpoint_node(m->hosts[i].endpoint), &m->hosts[i].pool);
    }
}

static void install_job(struct model *m, struct model_switch *s, uint8_t level, uint32_t fan_in,
                        uint32_t rack, const uint32_t *members, uint32_t member_count)
{
    struct gw_aggregate_job job = {
        .job = JOB,
        .epoch = EPOCH,
        .level = level,
        .fan_in = (uint8_t)fan_in,
        .above = {(uint8_t)rack},
        .member_count = (uint16_t)member_count,
        .members = members,
    };
    if (m->cfg->aggregates)
        assert_int_equal(gw_aggregate_install(s->aggregate, &job), 0);
}

static void open_switch(struct model *m, struct model_switch *s, uint16_t ports)
{
    static union gw_algo_cfg qdisc_cfg;
    static uint32_t capacity[PORTS_MAX];
    const struct gw_algo *algo = gw_registry_find(&gw_qdisc_registry, "red");
    gw_algo_defaults(algo, qdisc_cfg.bytes);
    for (uint32_t i = 0; i < PORTS_MAX; i++)
        capacity[i] = 1 << 20;
    uint32_t mtu = 4 * m->cfg->values;
    gw_buf_pool_init(&s->bufs, take(gw_buf_pool_size(PKTS, mtu)), PKTS, mtu);
    gw_pkt_pool_init(&s->pool, take(PKTS * sizeof(struct gw_pkt)), 0, PKTS, &s->bufs);
    struct gw_aggregate_cfg aggregate = {
        .aggregators = m->cfg->aggregators,
        .jobs_max = 4,
        .members_max = 64,
        .leak = LEAK,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &s->pool,
    };
    s->aggregate = gw_aggregate_init(take(gw_aggregate_size(&aggregate)), &aggregate);
    struct gw_switch_cfg cfg = {
        .port_count = ports,
        .qdisc = (const struct gw_qdisc_ops *)algo,
        .qdisc_cfg = qdisc_cfg.bytes,
        .capacity = capacity,
        .trim_size = HDR,
        .aggregate = s->aggregate,
        .routes = {.blocks = s->block,
                   .leaves = s->leaf,
                   .destination_count = m->world + 1,
                   .block_shift = 31},
        .seed = gw_prng_next(&m->prng),
        .pool = &s->pool,
    };
    s->ports = ports;
    s->sw = gw_switch_init(take(gw_switch_size(&cfg)), &cfg);
    s->node = gw_mem_add(m->mem, gw_switch_node(s->sw), &s->pool);
}

/* Rack switches: port 0 up, then workers. The root: racks, its own workers, the server. */
static void open_switches(struct model *m)
{
    uint32_t racks = m->cfg->racks, first = 0;
    struct model_switch *root = root_of(m);
    uint32_t members[GW_MODEL_WORKERS_MAX];
    for (uint32_t rack = 0; rack < racks; rack++) {
        struct model_switch *s = &m->switches[rack];
        uint32_t count = m->cfg->rack_workers[rack];
        for (uint32_t i = 0; i < count; i++) {
            s->leaf[first + i] = (uint16_t)(1 + i);
            root->leaf[first + i] = (uint16_t)rack;
            members[i] = first + i;
        }
        open_switch(m, s, (uint16_t)(count + 1));
        install_job(m, s, 0, count, rack, members, count);
        first += count;
    }
    for (uint32_t i = 0; i <= m->cfg->root_workers; i++) /* the last one is the server */
        root->leaf[first + i] = (uint16_t)(racks + i);
    open_switch(m, root, (uint16_t)(racks + m->cfg->root_workers + 1));
    uint32_t member_count = 0;
    for (uint32_t rank = 0; rank < m->world; rank++)
        if (m->rack_of[rank] == UINT32_MAX || m->place[rank] == 0)
            members[member_count++] = rank;
    uint32_t own = m->cfg->root_workers;
    if (racks && m->cfg->rack_scale)
        install_job(m, root, own ? 0 : LEVEL_NONE, own ? own : 1, racks, members, member_count);
    else
        install_job(m, root, racks ? 1 : 0, member_count, 0, members, member_count);
}

static void connect_all(struct model *m)
{
    struct model_switch *root = root_of(m);
    for (uint32_t rack = 0; rack < m->cfg->racks; rack++) {
        connect(m, m->switches[rack].node, 0, root->node, (uint16_t)rack);
        connect(m, root->node, (uint16_t)rack, m->switches[rack].node, 0);
    }
    for (uint32_t i = 0; i <= m->world; i++) {
        struct model_switch *s = root;
        if (i < m->world && m->rack_of[i] != UINT32_MAX)
            s = &m->switches[m->rack_of[i]];
        connect(m, m->host_node[i], 0, s->node, s->leaf[i]);
        connect(m, s->node, s->leaf[i], m->host_node[i], 0);
    }
}

/* Where a worker sits in the tree, for itself and for the server. */
static struct gw_place place_of(const struct model *m, uint32_t rank)
{
    struct gw_place place = {.address = rank};
    if (!m->cfg->aggregates)
        place.bitmap = 1u << rank; /* no tree: workers are told apart by rank */
    else if (m->rack_of[rank] != UINT32_MAX) {
        place.bitmap = 1u << m->place[rank];
        place.above[0] = (uint8_t)m->rack_of[rank];
    } else if (m->cfg->racks == 0 || m->cfg->rack_scale) {
        place.bitmap = 1u << m->place[rank];
        place.above[0] = (uint8_t)m->cfg->racks;
    } else {
        place.level = 1;
        place.above[0] = (uint8_t)(m->cfg->racks + m->place[rank]);
    }
    return place;
}

static void open_job(struct model *m)
{
    struct gw_place places[GW_MODEL_WORKERS_MAX];
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    for (uint32_t rank = 0; rank < m->world; rank++) {
        places[rank] = place_of(m, rank);
        struct gw_worker_cfg cfg = {
            .job = JOB,
            .epoch = EPOCH,
            .world = (uint16_t)m->world,
            .server = m->server_host,
            .level = places[rank].level,
            .bitmap = places[rank].bitmap,
            .above = {places[rank].above[0], places[rank].above[1]},
            .values = m->cfg->values,
            .window_max = m->cfg->window,
            .window_initial = m->cfg->window,
            .aggregators = m->cfg->aggregators,
            .tensors_max = 8,
            .timeout = 200 * GW_US,
            .stall = m->cfg->stall,
            .congestion_control = true,
            .scale_exponent = GW_SCALE_EXPONENT,
            .offers_exponents = m->cfg->dynamic,
            .proactive = m->cfg->proactive,
            .first_seq = m->cfg->first_seq,
            .kernels = kernels,
        };
        assert_int_equal(gw_worker_init(&m->workers[rank], take(gw_worker_size(&cfg)), &cfg,
                                        m->hosts[rank].endpoint),
                         0);
    }
    struct gw_server_cfg cfg = {
        .job = JOB,
        .world = (uint16_t)m->world,
        .levels = LEVELS_WITH_RACKS,
        .values = m->cfg->values,
        .window = 2 * m->cfg->window,
        .positions = m->cfg->window,
        .aggregators = m->cfg->aggregators,
        .raw_max = 8,
        .retry = 50 * GW_US,
        .scale_exponent = GW_SCALE_EXPONENT,
        .agrees_exponents = m->cfg->dynamic,
        .proactive = m->cfg->proactive,
        .kernels = kernels,
    };
    assert_int_equal(gw_server_init(&m->server, take(gw_server_size(&cfg)), &cfg,
                                    m->hosts[m->server_host].endpoint),
                     0);
    struct gw_server_epoch epoch = {
        .epoch = EPOCH,
        .levels = !m->cfg->aggregates ? 0
                  : m->cfg->racks     ? LEVELS_WITH_RACKS
                                      : 1,
        .first_seq = m->cfg->first_seq,
        .places = places,
    };
    gw_server_begin(m->server, &epoch);
}

/* The bytes of the tensors before tensor `t`. */
static size_t offset_of(const struct gw_model_cfg *cfg, uint32_t t)
{
    size_t offset = 0;
    while (t-- > 0)
        offset += (size_t)cfg->counts[t] * gw_dtype_size(cfg->type);
    return offset;
}

static void reduce(struct model *m, const struct gw_model_result *result, uint32_t rank, uint32_t t)
{
    struct gw_tensor tensor = {.in = result->in[rank] + offset_of(m->cfg, t),
                               .out = result->out[rank] + offset_of(m->cfg, t),
                               .count = m->cfg->counts[t],
                               .type = m->cfg->type,
                               .average = m->cfg->average,
                               .tag = t};
    assert_int_equal(gw_worker_reduce(m->workers[rank], &tensor, gw_mem_now(m->mem)), 0);
}

static void start(struct model *m, struct gw_model_result *result)
{
    const struct gw_model_cfg *cfg = m->cfg;
    uint32_t size = gw_dtype_size(cfg->type);
    result->bytes = offset_of(cfg, cfg->tensors);
    for (uint32_t rank = 0; rank < m->world; rank++) {
        unsigned char *in = result->in[rank] = malloc(result->bytes);
        result->out[rank] = calloc(1, result->bytes);
        assert_non_null(in);
        assert_non_null(result->out[rank]);
        for (uint32_t t = 0; t < cfg->tensors; t++) {
            for (uint32_t i = 0; i < cfg->counts[t]; i++) {
                uint32_t bits = cfg->element(cfg, rank, t, i);
                memcpy(in, &bits, size);
                in += size;
            }
            if (t == 0 || !cfg->one_by_one)
                reduce(m, result, rank, t);
        }
    }
}

static void run(struct model *m, struct gw_model_result *result)
{
    struct gw_event event;
    for (uint32_t steps = 0; gw_mem_step(m->mem, GW_TIME_NEVER); steps++) {
        assert_true(steps < STEPS_MAX);
        for (uint32_t rank = 0; rank < m->world; rank++)
            while (gw_endpoint_poll(m->hosts[rank].endpoint, &event, 1)) {
                assert_int_equal(event.flow, JOB);
                if (event.kind != GW_EVENT_REDUCED) {
                    result->failed[rank]++;
                    continue;
                }
                assert_int_equal(event.tag, result->reduced[rank]++);
                if (m->cfg->one_by_one && event.tag + 1 < m->cfg->tensors)
                    reduce(m, result, rank, event.tag + 1);
            }
    }
    result->time = gw_mem_now(m->mem);
}

static void add_stats(uint64_t *sum, const uint64_t *stats, size_t size)
{
    for (size_t i = 0; i < size / sizeof(*sum); i++)
        sum[i] += stats[i];
}

static void close_all(struct model *m, struct gw_model_result *result)
{
    uint64_t window = gw_worker_window(m->workers[0]);
    result->windows_equal = true;
    for (uint32_t rank = 0; rank < m->world; rank++) {
        add_stats((uint64_t *)&result->workers, (const uint64_t *)gw_worker_stats(m->workers[rank]),
                  sizeof(result->workers));
        result->windows_equal &= gw_worker_window(m->workers[rank]) == window;
        gw_worker_fini(m->workers[rank]);
        free(m->workers[rank]);
    }
    result->server = *gw_server_stats(m->server);
    gw_server_fini(m->server);
    free(m->server);
    for (uint32_t i = 0; i <= m->cfg->racks; i++) {
        struct model_switch *s = &m->switches[i];
        add_stats((uint64_t *)&result->switches, (const uint64_t *)gw_aggregate_stats(s->aggregate),
                  sizeof(result->switches));
        result->taken += gw_aggregate_taken(s->aggregate);
        gw_aggregate_remove(s->aggregate, JOB);
        assert_int_equal(gw_aggregate_taken(s->aggregate), 0);
        /* Nothing may be missing: all packets and buffers are back. */
        assert_int_equal(s->pool.free_count + (s->pool.end - s->pool.fresh), PKTS);
        for (uint32_t j = 0; j < PKTS; j++)
            assert_int_not_equal(gw_buf_claim(&s->bufs), GW_BUF_NONE);
        free(s->sw);
        free(s->aggregate);
        free(s->pool.pkts);
        free(s->bufs.refs);
    }
    for (uint32_t i = 0; i <= m->world; i++)
        gw_test_host_close(&m->hosts[i]);
    gw_mem_close(m->mem);
}

void gw_model_run(const struct gw_model_cfg *cfg, struct gw_model_result *result)
{
    struct model *m = take(sizeof(*m));
    *result = (struct gw_model_result){0};
    m->cfg = cfg;
    m->prng = gw_prng_derive(cfg->seed, 1);
    m->mem = gw_mem_open(&(struct gw_mem_cfg){.cookie = 3,
                                              .mtu = 4 * cfg->values,
                                              .frames_max = 1 << 16,
                                              .batch = 1,
                                              .start = (gw_time)0 - GW_MS}); /* wraps soon */
    assert_non_null(m->mem);
    open_hosts(m);
    result->world = m->world;
    open_switches(m);
    connect_all(m);
    open_job(m);
    start(m, result);
    run(m, result);
    close_all(m, result);
    free(m);
}

void gw_model_free(struct gw_model_result *result)
{
    for (uint32_t rank = 0; rank < result->world; rank++) {
        free(result->in[rank]);
        free(result->out[rank]);
    }
}

bool gw_model_integer_sum(const struct gw_model_cfg *cfg, int exponent, uint32_t world,
                          const unsigned char *const *in, uint32_t count, unsigned char *out)
{
    const struct gw_kernels *kernels = gw_kernels_best(0);
    uint32_t shares = cfg->average ? world : 1;
    const struct gw_scale scale =
        cfg->type == GW_DTYPE_I32 ? gw_scale_integer(1, shares) : gw_scale_power(exponent, shares);
    int32_t wire[GW_MODEL_VALUES_MAX];
    int64_t sum[GW_MODEL_VALUES_MAX] = {0};
    assert_in_range(count, 1, GW_MODEL_VALUES_MAX);
    for (uint32_t rank = 0; rank < world; rank++) {
        if (!kernels->quantise[cfg->type](wire, in[rank], count, &scale))
            return false;
        kernels->add_wide(sum, wire, count);
    }
    if (!kernels->narrow(wire, sum, count) || kernels->is_saturated(wire, count))
        return false;
    kernels->dequantise[cfg->type](out, wire, count, &scale);
    return true;
}

void gw_model_raw_sum(const struct gw_model_cfg *cfg, uint32_t world,
                      const unsigned char *const *in, uint32_t count, unsigned char *out)
{
    const struct gw_kernels *kernels = gw_kernels_best(0);
    gw_real real[GW_MODEL_VALUES_MAX] = {0};
    assert_in_range(count, 1, GW_MODEL_VALUES_MAX);
    assert_int_not_equal(cfg->type, GW_DTYPE_I32);
    for (uint32_t rank = 0; rank < world; rank++)
        kernels->add_real[cfg->type](real, in[rank], count);
    kernels->narrow_real[cfg->type](out, real, count, cfg->average ? world : 1);
}
