/*
 * A few ranks with a communicator each, and servers, around one switch that does not add up, on a
 * clock that is turned by hand. Nothing is lost; ranks reach each other without asking.
 */
#ifndef GW_TESTS_CALLS_FIXTURE_H
#define GW_TESTS_CALLS_FIXTURE_H

#include "host.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/error.h"
#include "core/aggregation/server.h"
#include "core/calls/communicator.h"
#include "core/control/coordinator.h"
#include "core/ranks/registrar.h"
#include "net/mem.h"

enum {
    RANKS_MAX = 4,
    SERVERS_MAX = 3,
    HOSTS_MAX = RANKS_MAX + SERVERS_MAX,
    FIRST_ADDRESS = 5, /* so that ranks are no addresses */
    SHARDS = 2,        /* of a server */
    MTU = 1408,
    VALUES = 352,
    HDR = 44,
    WINDOW = 64,
    PKTS = 2048,
    EVENTS_MAX = 256,
    BLOCKS_MAX = 64,
    STEPS_MAX = 1000000, /* guards against hanging only */
};

#define JOB      UINT32_C(77)
#define LATENCY  (2 * GW_US)
#define RATE_BPS UINT64_C(10000000000)
#define RETRY    (100 * GW_US)
#define BEAT     GW_MS
#define STALL    (20 * GW_MS)

struct rank {
    struct gw_test_host host;
    struct gw_communicator_cfg cfg;
    struct gw_communicator *comm; /* NULL: it is dead */
    void *memory;
    struct gw_communicator_event events[EVENTS_MAX];
    uint32_t event_count;
    void *blocks[BLOCKS_MAX]; /* that its allocator has given out; NULL: none */
    bool is_poor;             /* its allocator has nothing left */
};

struct shard {
    struct gw_server *server;
    struct gw_coordinator *coordinator;
    void *memory[2];
};

struct home {
    struct gw_test_host host;
    struct shard shards[SHARDS]; /* via ina, via ps */
};

/* Before open: how the job is. */
struct plan {
    uint32_t world, servers;
    enum gw_via via;
    uint64_t whole;
    uint16_t values; /* in the terms; 0: VALUES */
    bool is_bare;
    bool takes_parts; /* of calls */
};

struct net {
    struct plan plan;
    struct gw_mem *mem;
    struct gw_transport transport, parts_transport;
    struct gw_path path;
    struct rank ranks[RANKS_MAX];
    struct home homes[SERVERS_MAX];
    struct gw_registrar *registrar;
    struct gw_switch *sw;
    struct gw_pkt_pool sw_pool;
    struct gw_buf_pool sw_bufs;
};

static inline void *take_block(void *context, size_t size)
{
    struct rank *rank = context;
    for (uint32_t i = 0; i < BLOCKS_MAX && !rank->is_poor; i++)
        if (!rank->blocks[i]) {
            rank->blocks[i] = gw_test_take(size);
            return memset(rank->blocks[i], 0, size);
        }
    return NULL;
}

static inline void give_block(void *context, void *memory)
{
    struct rank *rank = context;
    for (uint32_t i = 0; memory && i < BLOCKS_MAX; i++)
        if (rank->blocks[i] == memory)
            rank->blocks[i] = NULL;
    free(memory);
}

static inline uint32_t block_count(const struct rank *rank)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < BLOCKS_MAX; i++)
        count += rank->blocks[i] != NULL;
    return count;
}

static inline uint32_t rank_address(uint32_t rank)
{
    return FIRST_ADDRESS + rank;
}

static inline uint32_t home_address(const struct net *net, uint32_t server)
{
    return FIRST_ADDRESS + net->plan.world + server;
}

/* Port i of the switch leads to host i: ranks, then servers. */
static inline void open_switch(struct net *net)
{
    static uint16_t leaves[FIRST_ADDRESS + HOSTS_MAX]; /* outlives the switch */
    uint16_t hosts = (uint16_t)(net->plan.world + net->plan.servers);
    for (uint16_t i = 0; i < HOSTS_MAX; i++)
        leaves[FIRST_ADDRESS + i] = i < hosts ? i : 0;
    struct gw_switch_cfg cfg = gw_test_switch_cfg(hosts, "red", &net->sw_pool);
    cfg.capacity = gw_test_capacity(1 << 22);
    cfg.trim_size = HDR;
    cfg.routes = gw_test_routes(leaves, FIRST_ADDRESS + HOSTS_MAX);
    gw_test_pool_open(&net->sw_pool, &net->sw_bufs, 2 * PKTS, MTU);
    net->sw = gw_test_switch_open(&cfg);
    uint32_t sw = gw_mem_add(net->mem, gw_switch_node(net->sw), &net->sw_pool);
    struct gw_mem_link link = {.latency = LATENCY, .rate_bps = RATE_BPS};
    for (uint16_t i = 0; i < hosts; i++) {
        gw_mem_connect(net->mem, i, 0, sw, i, &link);
        gw_mem_connect(net->mem, sw, i, i, 0, &link);
    }
}

/* Limits that the test host has besides are taken away: only what is asked for is there. */
static inline struct gw_endpoint_cfg host_cfg(const struct net *net, uint32_t address)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(address, MTU);
    cfg.hdr = HDR;
    cfg.stall = STALL / 2;
    cfg.control_max = 1024;
    cfg.report_every = 20 * GW_US;
    cfg.tx_flows_max = cfg.rx_flows_max = cfg.expect_max = 0;
    (void)net;
    return cfg;
}

static inline void open_rank(struct net *net, uint32_t number)
{
    struct rank *rank = &net->ranks[number];
    rank->cfg = (struct gw_communicator_cfg){
        .address = rank_address(number),
        .job = JOB,
        .rank = (uint16_t)number,
        .world = (uint16_t)net->plan.world,
        .via = net->plan.via,
        .server_count = net->plan.servers,
        .whole = net->plan.whole,
        .has_ways = true,
        .transport = &net->transport,
        .parts_transport = net->plan.takes_parts ? &net->parts_transport : NULL,
        .largest = 1 << 16,
        .mtu = MTU,
        .segment = 4096,
        .flows = 4,
        .incarnation = 1000 + number,
        .worker = {.timeout = GW_MS, .stall = STALL, .keeps_results = true},
        .retry = RETRY,
        .beat = BEAT,
        .stall = STALL,
        .kernels = net->plan.is_bare ? NULL : gw_kernels_best(0),
        .allocator = {.take = take_block, .give = give_block, .context = rank},
    };
    struct gw_endpoint_cfg cfg = host_cfg(net, rank_address(number));
    gw_communicator_demand(&rank->cfg, &cfg);
    gw_test_host_open(&rank->host, &cfg, PKTS);
    if (net->plan.is_bare)
        rank->host.pool.bufs = NULL;
    rank->cfg.endpoint = rank->host.endpoint;
    gw_mem_add(net->mem, gw_endpoint_node(rank->host.endpoint), &rank->host.pool);
    rank->memory = gw_test_take(gw_communicator_size(&rank->cfg));
    assert_int_equal(
        gw_communicator_init(&rank->comm, rank->memory, &rank->cfg, gw_mem_now(net->mem)), GW_OK);
}

static inline void open_shard(struct net *net, uint32_t number, uint32_t i)
{
    struct shard *shard = &net->homes[number].shards[i];
    struct gw_endpoint *endpoint = net->homes[number].host.endpoint;
    uint32_t job = gw_job_shard(JOB, number);
    uint16_t values = net->plan.values ? net->plan.values : VALUES;
    struct gw_server_cfg server = {
        .job = i == 0 ? job : gw_job_shard_direct(job),
        .world = (uint16_t)net->plan.world,
        .values = values,
        .window_max = WINDOW,
        .aggregators = 256,
        .raw_max = 4,
        .retry = 100 * GW_US,
        .scale_exponent = GW_SCALE_EXPONENT,
        .kernels = gw_kernels_best(0),
    };
    shard->memory[0] = gw_test_take(gw_server_size(&server));
    assert_int_equal(gw_server_init(&shard->server, shard->memory[0], &server, endpoint), GW_OK);
    struct gw_coordinator_cfg cfg = {
        .job = server.job,
        .world = server.world,
        .window_max = WINDOW,
        .values = values,
        .aggregators = server.aggregators,
        .scale_exponent = GW_SCALE_EXPONENT,
        .incarnation = 9,
        .retry = RETRY,
        .beat = BEAT,
        .silence = 10 * BEAT,
        .server = shard->server,
    };
    shard->memory[1] = gw_test_take(gw_coordinator_size(&cfg));
    assert_int_equal(gw_coordinator_init(&shard->coordinator, shard->memory[1], &cfg, endpoint),
                     GW_OK);
}

static inline void open_home(struct net *net, uint32_t number)
{
    struct home *home = &net->homes[number];
    struct gw_endpoint_cfg cfg = host_cfg(net, home_address(net, number));
    cfg.tx_flows_max = gw_registrar_flows(net->plan.world);
    cfg.expect_max = gw_registrar_awaits(net->plan.world);
    cfg.rx_flows_max = 2 * cfg.expect_max;
    cfg.apps_max = 2 * SHARDS;
    cfg.app_events_max = 1;
    gw_test_host_open(&home->host, &cfg, PKTS);
    if (net->plan.is_bare)
        home->host.pool.bufs = NULL;
    gw_mem_add(net->mem, gw_endpoint_node(home->host.endpoint), &home->host.pool);
    for (uint32_t i = 0; i < SHARDS; i++)
        open_shard(net, number, i);
    if (number != 0)
        return;
    struct gw_registrar_cfg registrar = {
        .endpoint = home->host.endpoint,
        .job = JOB,
        .world = (uint16_t)net->plan.world,
        .is_bare = net->plan.is_bare,
        .transport = &net->transport,
    };
    void *memory = gw_test_take(gw_registrar_size(registrar.world));
    net->registrar = gw_registrar_init(memory, &registrar);
}

/* Makes all nodes; nobody knows of the servers yet. */
static inline void net_open(struct net *net, const struct plan *plan)
{
    *net = (struct net){.plan = *plan};
    net->mem = gw_mem_open(&(struct gw_mem_cfg){
        .cookie = 3, .mtu = MTU, .frames_max = 4 * PKTS, .batch = 8, .start = (gw_time)0 - GW_MS});
    net->transport = gw_test_transport("smartt", "spray", "timeout");
    net->parts_transport = gw_test_transport("dlcp", "spray", "timeout");
    struct gw_endpoint_cfg cfg = host_cfg(net, 0);
    net->path = gw_test_path(&cfg, RATE_BPS, 4 * LATENCY + 4 * GW_US);
    net->path.hops = 2;
    for (uint32_t rank = 0; rank < plan->world; rank++)
        open_rank(net, rank);
    for (uint32_t server = 0; server < plan->servers; server++)
        open_home(net, server);
    open_switch(net);
}

/* The rank's driver has found a server; at the home the rank comes. */
static inline void find_server(struct net *net, uint32_t rank, uint32_t server)
{
    gw_time now = gw_mem_now(net->mem);
    const struct gw_registrar_rank who = {
        .place = {.address = rank_address(rank)},
        .rank = (uint16_t)rank,
        .notice = net->ranks[rank].cfg.notice,
        .path = net->path,
    };
    if (server == 0)
        assert_int_equal(gw_registrar_come(net->registrar, &who, now), GW_JOB_OK);
    if (server == 0 && net->plan.is_bare) {
        struct gw_rank_place places[RANKS_MAX] = {{0}};
        for (uint32_t i = 0; i < net->plan.world; i++)
            places[i].address = rank_address(i);
        gw_mesh_know(gw_communicator_mesh(net->ranks[rank].comm), places, 0, now);
    }
    gw_communicator_set_server(net->ranks[rank].comm, server, home_address(net, server), &net->path,
                               now);
}

static inline void find_servers(struct net *net)
{
    for (uint32_t rank = 0; rank < net->plan.world; rank++)
        for (uint32_t server = 0; server < net->plan.servers; server++)
            find_server(net, rank, server);
}

static inline void turn_rank(struct net *net, struct rank *rank)
{
    struct gw_event event;
    gw_time now = gw_mem_now(net->mem);
    while (gw_endpoint_poll(rank->host.endpoint, &event, 1))
        gw_communicator_event(rank->comm, &event, now);
    if (!gw_deadline_before(now, gw_communicator_deadline(rank->comm)))
        gw_communicator_expire(rank->comm, now);
    while (rank->event_count < EVENTS_MAX &&
           gw_communicator_poll(rank->comm, &rank->events[rank->event_count], now))
        rank->event_count++;
    assert_true(rank->event_count < EVENTS_MAX);
}

/* Lets everything happen that happens within `time`. The ranks sleep until something arrives, or
 * until their deadline. */
static inline void run_for(struct net *net, gw_time time)
{
    gw_time end = gw_time_add(gw_mem_now(net->mem), time);
    for (uint32_t steps = 0;; steps++) {
        struct gw_event event;
        gw_time until = end;
        assert_true(steps < STEPS_MAX);
        for (uint32_t i = 0; i < net->plan.world; i++) {
            struct rank *rank = &net->ranks[i];
            if (!rank->comm)
                continue;
            turn_rank(net, rank);
            gw_time deadline = gw_communicator_deadline(rank->comm);
            if (gw_deadline_before(deadline, until))
                until = deadline;
        }
        for (uint32_t i = 0; i < net->plan.servers; i++)
            while (gw_endpoint_poll(net->homes[i].host.endpoint, &event, 1))
                if (i == 0)
                    gw_registrar_event(net->registrar, &event, gw_mem_now(net->mem));
        if (!gw_mem_step(net->mem, until) && until == end)
            return;
    }
}

static inline void start(struct net *net, uint32_t rank, const struct gw_call *call)
{
    assert_int_equal(gw_communicator_call(net->ranks[rank].comm, call, gw_mem_now(net->mem)),
                     GW_OK);
}

/* How many events of this kind a rank has had. */
static inline uint32_t events_of(const struct rank *rank, enum gw_communicator_event_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank->event_count; i++)
        count += rank->events[i].kind == kind;
    return count;
}

static inline const struct gw_communicator_event *last_event(const struct rank *rank)
{
    assert_true(rank->event_count > 0);
    return &rank->events[rank->event_count - 1];
}

/* A job that is open: nothing has happened yet. */
static inline void net_start(struct net *net, const struct plan *plan)
{
    net_open(net, plan);
    find_servers(net);
    run_for(net, 5 * GW_MS);
    for (uint32_t i = 0; i < plan->world; i++) {
        assert_int_equal(net->ranks[i].event_count, 1);
        assert_int_equal(net->ranks[i].events[0].kind, GW_COMMUNICATOR_OPEN);
        net->ranks[i].event_count = 0;
    }
}

/* All ranks leave, and have left. */
static inline void leave(struct net *net)
{
    for (uint32_t i = 0; i < net->plan.world; i++)
        gw_communicator_leave(net->ranks[i].comm, gw_mem_now(net->mem));
    run_for(net, 5 * GW_MS);
    for (uint32_t i = 0; i < net->plan.world; i++) {
        assert_int_equal(last_event(&net->ranks[i])->kind, GW_COMMUNICATOR_LEFT);
        assert_false(gw_communicator_is_busy(net->ranks[i].comm));
        assert_true(gw_communicator_deadline(net->ranks[i].comm) == GW_TIME_NEVER);
    }
}

static inline void close_host(struct gw_test_host *host)
{
    gw_endpoint_fini(host->endpoint);
    host->pool.bufs = &host->bufs;
    gw_test_host_close(host);
}

/* Frees everything; nothing may be missing. */
static inline void net_close(struct net *net)
{
    for (uint32_t i = 0; i < net->plan.world; i++) {
        struct rank *rank = &net->ranks[i];
        if (rank->comm)
            gw_communicator_fini(rank->comm);
        assert_int_equal(block_count(rank), 0);
        close_host(&rank->host);
        free(rank->memory);
    }
    for (uint32_t i = 0; i < net->plan.servers; i++) {
        for (uint32_t j = 0; j < SHARDS; j++) {
            struct shard *shard = &net->homes[i].shards[j];
            gw_coordinator_fini(shard->coordinator);
            gw_server_fini(shard->server);
            free(shard->memory[0]);
            free(shard->memory[1]);
        }
        if (i == 0)
            gw_registrar_fini(net->registrar);
        close_host(&net->homes[i].host);
    }
    free(net->registrar);
    gw_mem_close(net->mem);
    gw_test_pool_close(&net->sw_pool);
    free(net->sw);
}

/* Fragments that a server has summed. */
static inline uint64_t results_of(const struct net *net, uint32_t server, enum gw_via via)
{
    return gw_server_stats(net->homes[server].shards[via == GW_VIA_PS].server)->results;
}

#endif
