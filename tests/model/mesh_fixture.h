/*
 * Up to 5 ranks and their registrar, joined by a switch: a mesh, messages and a store on each
 * rank's endpoint. What a driver does is done by the fixture: it brings ranks to the registrar, and
 * makes the ways that meshes want.
 */
#ifndef GW_TESTS_MESH_FIXTURE_H
#define GW_TESTS_MESH_FIXTURE_H

#include "host.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/error.h"
#include "core/ranks/mesh.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/messages.h"
#include "core/ranks/registrar.h"
#include "core/ranks/store.h"
#include "net/mem.h"

enum {
    WORLD_MAX = 5,
    HOME = WORLD_MAX, /* the registrar, at the switch's last port */
    HOSTS = WORLD_MAX + 1,
    FIRST_ADDRESS = 3, /* of rank 0, so that ranks are no addresses */
    ADDRESSES = FIRST_ADDRESS + HOSTS,
    MTU = 1000,
    HDR = 44,
    PKTS = 4096,
    LIMIT = 8, /* messages under way, and calls of a store in work */
    EVENTS_MAX = 32,
    STEPS_MAX = 1000000, /* guards against hanging only */
};

#define LATENCY  (2 * GW_US)
#define RATE_BPS UINT64_C(10000000000)
#define BRTT     (4 * LATENCY + 2 * GW_US)
#define STALL    (20 * GW_MS) /* of flows, and of meshes */

struct setup {
    uint32_t world;
    bool has_ways;
    bool is_bare;
    bool keeps_ways; /* nobody makes ways but the test */
    uint8_t notice;
    bool may_lose_parts;    /* values of stores */
    uint32_t parts_mtu;     /* and of which fragments these are, */
    uint64_t parts_largest; /* in how many bytes at most */
};

struct rank {
    struct gw_test_host host;
    struct gw_mesh *mesh;
    struct gw_messages *messages;
    struct gw_store *store;
    uint64_t memory_left; /* bytes that its allocator gives out */
    uint32_t pieces;      /* that it has given out */
    struct gw_mesh_event events[EVENTS_MAX];
    uint32_t event_count;
    struct gw_message_done done[EVENTS_MAX];
    uint32_t done_count;
    struct gw_store_done stored[EVENTS_MAX];
    uint32_t stored_count;
    bool is_dead;
};

struct model {
    struct setup setup;
    struct gw_mem *mem;
    struct gw_transport transport;
    struct gw_path path;
    struct gw_rank_place places[WORLD_MAX];
    struct rank ranks[WORLD_MAX];
    struct gw_test_host home;
    struct gw_registrar *registrar;
    uint32_t lives;   /* of hosts: peers remember the flows of earlier ones */
    bool is_restless; /* who has been looked at may have something to do again */
    bool is_home_dead;
    struct gw_switch *sw;
    struct gw_pkt_pool sw_pool;
    struct gw_buf_pool sw_bufs;
    uint32_t links[2 * HOSTS];
};

static inline uint32_t address_of(uint32_t host)
{
    return FIRST_ADDRESS + host;
}

/* Port i of the switch leads to host i. */
static inline void switch_open(struct model *m)
{
    static uint16_t leaves[ADDRESSES]; /* outlives the switch */
    for (uint16_t i = 0; i < HOSTS; i++)
        leaves[FIRST_ADDRESS + i] = i;
    struct gw_switch_cfg cfg = gw_test_switch_cfg(HOSTS, "red", &m->sw_pool);
    cfg.capacity = gw_test_capacity(1 << 22);
    cfg.trim_size = HDR;
    cfg.routes = gw_test_routes(leaves, ADDRESSES);
    gw_test_pool_open(&m->sw_pool, &m->sw_bufs, PKTS, MTU);
    m->sw = gw_test_switch_open(&cfg);
}

static inline struct gw_endpoint_cfg endpoint_cfg(struct model *m, uint32_t host)
{
    uint32_t world = m->setup.world;
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(address_of(host), MTU);
    cfg.hdr = HDR;
    cfg.stall = STALL;
    cfg.generation = (uint16_t)(100 * m->lives++);
    cfg.tx_flows_max = host == HOME ? gw_registrar_flows(world)
                                    : gw_mesh_flows(world) + LIMIT + gw_store_flows(world, LIMIT);
    cfg.rx_flows_max = 64;
    cfg.expect_max = host == HOME ? gw_registrar_awaits(world)
                                  : gw_mesh_awaits(world) + LIMIT + gw_store_awaits(world, LIMIT);
    return cfg;
}

static inline void home_open(struct model *m)
{
    struct gw_endpoint_cfg cfg = endpoint_cfg(m, HOME);
    gw_test_host_open(&m->home, &cfg, PKTS);
    if (m->setup.is_bare)
        m->home.pool.bufs = NULL;
    m->registrar = gw_registrar_init(gw_test_take(gw_registrar_size((uint16_t)m->setup.world)),
                                     &(struct gw_registrar_cfg){
                                         .endpoint = m->home.endpoint,
                                         .job = 9,
                                         .world = (uint16_t)m->setup.world,
                                         .is_bare = m->setup.is_bare,
                                         .transport = &m->transport,
                                     });
}

static inline void *take_memory(void *context, size_t size)
{
    struct rank *rank = context;
    if (size > rank->memory_left)
        return NULL;
    void *memory = aligned_alloc(GW_CACHE_LINE, gw_aligned(size));
    assert_non_null(memory);
    memset(memory, 0, gw_aligned(size));
    rank->pieces++;
    return memory;
}

static inline void give_memory(void *context, void *memory)
{
    struct rank *rank = context;
    rank->pieces -= memory != NULL;
    free(memory);
}

static inline void rank_open(struct model *m, uint32_t rank)
{
    struct rank *own = &m->ranks[rank];
    struct gw_endpoint_cfg cfg = endpoint_cfg(m, rank);
    gw_test_host_open(&own->host, &cfg, PKTS);
    if (m->setup.is_bare)
        own->host.pool.bufs = NULL;
    m->path = gw_test_path(&cfg, RATE_BPS, BRTT);
    m->path.hops = 2;
    own->mesh = gw_mesh_init(gw_test_take(gw_mesh_size((uint16_t)m->setup.world)),
                             &(struct gw_mesh_cfg){
                                 .endpoint = own->host.endpoint,
                                 .address = address_of(rank),
                                 .job = 9,
                                 .rank = (uint16_t)rank,
                                 .world = (uint16_t)m->setup.world,
                                 .has_ways = m->setup.has_ways,
                                 .is_bare = m->setup.is_bare,
                                 .transport = &m->transport,
                                 .stall = STALL,
                             },
                             gw_mem_now(m->mem));
    own->messages =
        gw_messages_init(gw_test_take(gw_messages_size(LIMIT)), LIMIT, own->mesh, STALL);
    own->memory_left = UINT64_C(1) << 30;
    own->pieces = 0;
    own->store =
        gw_store_init(gw_test_take(gw_store_size(m->setup.world, LIMIT)),
                      &(struct gw_store_cfg){
                          .mesh = own->mesh,
                          .rank = rank,
                          .world = m->setup.world,
                          .limit = LIMIT,
                          .parts_transport = m->setup.may_lose_parts ? &m->transport : NULL,
                          .mtu = m->setup.parts_mtu,
                          .largest = m->setup.parts_largest,
                          .kernels = gw_kernels_best(0),
                          .allocator = {.take = take_memory, .give = give_memory, .context = own},
                      });
    own->event_count = own->done_count = own->stored_count = 0;
    own->is_dead = false;
}

static inline void model_open(struct model *m, const struct setup *setup)
{
    *m = (struct model){.setup = *setup};
    m->mem = gw_mem_open(&(struct gw_mem_cfg){
        .cookie = 3, .mtu = MTU, .frames_max = 2 * PKTS, .batch = 1, .start = (gw_time)0 - GW_MS});
    assert_non_null(m->mem);
    m->transport = gw_test_transport("smartt", "spray", "timeout");
    for (uint32_t i = 0; i < WORLD_MAX; i++) {
        m->places[i].address = address_of(i);
        memset(m->places[i].locator, (int)(i + 1), GW_LOCATOR_SIZE);
    }
    for (uint32_t rank = 0; rank < setup->world; rank++) {
        rank_open(m, rank);
        gw_mem_add(m->mem, gw_endpoint_node(m->ranks[rank].host.endpoint),
                   &m->ranks[rank].host.pool);
    }
    home_open(m);
    gw_mem_add(m->mem, gw_endpoint_node(m->home.endpoint), &m->home.pool);
    switch_open(m);
    uint32_t sw = gw_mem_add(m->mem, gw_switch_node(m->sw), &m->sw_pool);
    struct gw_mem_link link = {.latency = LATENCY, .rate_bps = RATE_BPS};
    for (uint32_t i = 0; i <= setup->world; i++) {
        uint16_t port = i == setup->world ? HOME : (uint16_t)i;
        m->links[2 * i] = gw_mem_connect(m->mem, i, 0, sw, port, &link);
        m->links[2 * i + 1] = gw_mem_connect(m->mem, sw, port, i, 0, &link);
    }
}

/* From now on each link loses, doubles and delays packets, others at each. */
static inline void model_worsen(struct model *m)
{
    for (uint32_t link = 0; link < 2 * (m->setup.world + 1); link++) {
        struct gw_mem_link bad = {.latency = LATENCY,
                                  .rate_bps = RATE_BPS,
                                  .lose = UINT64_C(0x1111111111111111) << link % 4,
                                  .duplicate = UINT64_C(0x2121212121212121) << link % 3,
                                  .delay = UINT64_C(0x0808080808080808) << link % 5,
                                  .delay_by = 30 * GW_US};
        gw_mem_change(m->mem, m->links[link], &bad);
    }
}

static inline void way_up(struct model *m, uint32_t from, uint32_t to)
{
    if (m->ranks[to].is_dead || m->ranks[from].is_dead)
        return;
    assert_true(gw_mesh_way_up(m->ranks[from].mesh, to, address_of(to), gw_mem_now(m->mem)));
    assert_true(gw_mesh_way_up(m->ranks[to].mesh, from, address_of(from), gw_mem_now(m->mem)));
}

static inline void take_events(struct model *m, uint32_t rank)
{
    struct rank *own = &m->ranks[rank];
    gw_time now = gw_mem_now(m->mem);
    struct gw_event event;
    while (gw_endpoint_poll(own->host.endpoint, &event, 1))
        if (!gw_messages_event(own->messages, &event, now) &&
            !gw_store_event(own->store, &event, now))
            gw_mesh_event(own->mesh, &event, now);
    if (!gw_deadline_before(now, gw_mesh_deadline(own->mesh)))
        gw_mesh_expire(own->mesh, now);
    gw_messages_advance(own->messages, now);
    while (gw_messages_poll(own->messages, &own->done[own->done_count]))
        assert_true(++own->done_count < EVENTS_MAX);
    do {
        gw_store_advance(own->store, now);
        while (gw_store_poll(own->store, &own->stored[own->stored_count]))
            assert_true(++own->stored_count < EVENTS_MAX);
    } while (gw_store_has_work(own->store));
    struct gw_mesh_event *said = &own->events[own->event_count];
    while (gw_mesh_poll(own->mesh, said)) {
        m->is_restless = true;
        if (said->kind == GW_MESH_EVENT_WANTS && !m->setup.keeps_ways)
            way_up(m, rank, said->rank);
        if (said->kind == GW_MESH_EVENT_MET)
            gw_store_serve(own->store);
        if (said->kind == GW_MESH_EVENT_FAILED) {
            gw_messages_drop(own->messages);
            gw_store_drop(own->store);
        }
        assert_true(++own->event_count < EVENTS_MAX);
        said = &own->events[own->event_count];
    }
}

static inline void take_events_of_home(struct model *m)
{
    struct gw_event event;
    while (gw_endpoint_poll(m->home.endpoint, &event, 1))
        gw_registrar_event(m->registrar, &event, gw_mem_now(m->mem));
}

/* Until nothing moves, or `until`. */
static inline void model_run_until(struct model *m, gw_time until)
{
    for (uint32_t steps = 0;; steps++) {
        gw_time next = until;
        if (!m->is_home_dead)
            take_events_of_home(m);
        for (uint32_t rank = 0; rank < m->setup.world; rank++)
            if (!m->ranks[rank].is_dead)
                take_events(m, rank);
        for (uint32_t rank = 0; rank < m->setup.world; rank++) {
            if (m->ranks[rank].is_dead)
                continue;
            if (until == GW_TIME_NEVER && gw_mesh_state(m->ranks[rank].mesh) == GW_MESH_LEAVING)
                continue;
            gw_time deadline = gw_mesh_deadline(m->ranks[rank].mesh);
            if (gw_deadline_before(deadline, next))
                next = deadline;
        }
        bool is_settled = !m->is_restless;
        m->is_restless = false;
        if (is_settled && !gw_mem_step(m->mem, next) && next == until)
            break;
        assert_true(steps < STEPS_MAX);
    }
}

/* Until nothing moves but those who leave, and say so from stall to stall. */
static inline void model_run(struct model *m)
{
    model_run_until(m, GW_TIME_NEVER);
}

static inline void model_run_for(struct model *m, gw_time time)
{
    model_run_until(m, gw_time_add(gw_mem_now(m->mem), time));
}

/* What a process says of its past. */
enum past {
    IS_NEW,
    WAS_SEATED,
    HAS_MET, /* the model's ranks */
};

/* A process that announces bursts as the others do comes to the registrar. */
static inline enum gw_job_reason come_at(struct model *m, uint32_t rank,
                                         const struct gw_rank_place *place, enum past past)
{
    const struct gw_registrar_rank who = {
        .place = *place,
        .rank = (uint16_t)rank,
        .notice = m->setup.notice,
        .was_seated = past != IS_NEW,
        .table = past == HAS_MET ? gw_ranks_table_sum(m->places, (uint16_t)m->setup.world) : 0,
        .path = m->path,
    };
    return gw_registrar_come(m->registrar, &who, gw_mem_now(m->mem));
}

/* The rank's process comes to the registrar's. */
static inline void come(struct model *m, uint32_t rank)
{
    gw_time now = gw_mem_now(m->mem);
    bool has_met = gw_mesh_place(m->ranks[rank].mesh, rank);
    assert_int_equal(come_at(m, rank, &m->places[rank], has_met ? HAS_MET : IS_NEW), GW_JOB_OK);
    gw_mesh_set_registrar(m->ranks[rank].mesh, address_of(HOME), &m->path, now);
    if (m->setup.is_bare && gw_mesh_state(m->ranks[rank].mesh) == GW_MESH_MEETING)
        gw_mesh_know(m->ranks[rank].mesh, m->places, 0, now);
}

static inline void come_all(struct model *m)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        come(m, rank);
}

/* The session of rank and registrar ends. */
static inline void part(struct model *m, uint32_t rank)
{
    gw_time now = gw_mem_now(m->mem);
    if (!m->ranks[rank].is_dead)
        gw_mesh_registrar_down(m->ranks[rank].mesh, now);
    if (!m->is_home_dead)
        gw_registrar_gone(m->registrar, address_of(rank), now);
}

/* The rank's process is gone with all that it has in hand; nobody is told. */
static inline void die(struct model *m, uint32_t rank)
{
    struct rank *own = &m->ranks[rank];
    gw_mem_replace(m->mem, rank, NULL, NULL);
    own->is_dead = true;
    gw_store_fini(own->store);
    assert_int_equal(own->pieces, 0);
    gw_mesh_fini(own->mesh);
    own->host.pool.bufs = &own->host.bufs;
    gw_test_host_abandon(&own->host);
    free(own->mesh);
    free(own->messages);
    free(own->store);
    own->mesh = NULL;
}

static inline void home_die(struct model *m)
{
    gw_mem_replace(m->mem, m->setup.world, NULL, NULL);
    gw_registrar_fini(m->registrar);
    m->home.pool.bufs = &m->home.bufs;
    gw_test_host_abandon(&m->home);
    free(m->registrar);
    m->is_home_dead = true;
}

static inline void home_return(struct model *m)
{
    home_open(m);
    gw_mem_replace(m->mem, m->setup.world, gw_endpoint_node(m->home.endpoint), &m->home.pool);
    m->is_home_dead = false;
}

static inline void rank_return(struct model *m, uint32_t rank)
{
    rank_open(m, rank);
    gw_mem_replace(m->mem, rank, gw_endpoint_node(m->ranks[rank].host.endpoint),
                   &m->ranks[rank].host.pool);
}

static inline void model_close(struct model *m)
{
    model_run(m);
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        struct rank *own = &m->ranks[rank];
        if (own->is_dead)
            continue;
        assert_false(gw_mesh_is_busy(own->mesh));
        gw_store_fini(own->store);
        assert_int_equal(own->pieces, 0);
        gw_mesh_fini(own->mesh);
        gw_endpoint_fini(own->host.endpoint);
        own->host.pool.bufs = &own->host.bufs;
        gw_test_host_close(&own->host);
        free(own->mesh);
        free(own->messages);
        free(own->store);
    }
    if (!m->is_home_dead) {
        assert_false(gw_registrar_is_busy(m->registrar));
        gw_registrar_fini(m->registrar);
        gw_endpoint_fini(m->home.endpoint);
        m->home.pool.bufs = &m->home.bufs;
        gw_test_host_close(&m->home);
        free(m->registrar);
    }
    gw_test_pool_close(&m->sw_pool);
    free(m->sw);
    gw_mem_close(m->mem);
}

/* The rank's last event; its kind must be the one. */
static inline const struct gw_mesh_event *expect_last(const struct model *m, uint32_t rank,
                                                      enum gw_mesh_event_kind kind)
{
    const struct rank *own = &m->ranks[rank];
    assert_true(own->event_count > 0);
    const struct gw_mesh_event *last = &own->events[own->event_count - 1];
    assert_int_equal(last->kind, kind);
    return last;
}

static inline void expect_state(const struct model *m, enum gw_mesh_state state)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (!m->ranks[rank].is_dead)
            assert_int_equal(gw_mesh_state(m->ranks[rank].mesh), state);
}

static inline void expect_failure(const struct model *m, uint32_t rank,
                                  const struct gw_mesh_failure *failure)
{
    const struct gw_mesh_event *last = expect_last(m, rank, GW_MESH_EVENT_FAILED);
    assert_int_equal(last->reason, failure->reason);
    assert_int_equal(last->about, failure->about);
    assert_int_equal(last->found_by, failure->found_by);
}

static inline void leave(struct model *m, uint32_t rank)
{
    gw_mesh_leave(m->ranks[rank].mesh, gw_mem_now(m->mem));
}

/* All leave, and have left in the end. */
static inline void leave_all(struct model *m)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        leave(m, rank);
    model_run(m);
    expect_state(m, GW_MESH_OVER);
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (!m->ranks[rank].is_dead)
            expect_last(m, rank, GW_MESH_EVENT_LEFT);
}

/* A message of one rank to another, from start to end. */
static inline void talk(struct model *m, uint32_t from, uint32_t to, uint32_t tag)
{
    static unsigned char sent[10000], got[10000];
    gw_time now = gw_mem_now(m->mem);
    gw_test_fill(sent, sizeof(sent), tag);
    memset(got, 0, sizeof(got));
    uint32_t done_from = m->ranks[from].done_count, done_to = m->ranks[to].done_count;
    void *in = m->setup.is_bare ? NULL : got, *out = m->setup.is_bare ? NULL : sent;
    assert_int_equal(
        gw_messages_start(
            m->ranks[from].messages,
            &(struct gw_message){
                .call = tag, .rank = to, .tag = tag, .data = out, .bytes = sizeof(sent)},
            now),
        GW_OK);
    assert_int_equal(gw_messages_start(m->ranks[to].messages,
                                       &(struct gw_message){.call = tag,
                                                            .rank = from,
                                                            .tag = tag,
                                                            .data = in,
                                                            .bytes = sizeof(got),
                                                            .is_receive = true},
                                       now),
                     GW_OK);
    model_run(m);
    assert_int_equal(m->ranks[from].done_count, done_from + 1);
    assert_int_equal(m->ranks[to].done_count, done_to + 1);
    assert_int_equal(m->ranks[to].done[done_to].bytes, sizeof(sent));
    if (!m->setup.is_bare)
        assert_memory_equal(got, sent, sizeof(sent));
}

#endif
