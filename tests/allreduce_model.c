/* The all-reduce model; see allreduce_model.h. */
#include "allreduce_model.h"

#include "host.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/cpu.h"
#include "net/mem.h"

enum {
    SWITCHES_MAX = 2 * GW_MODEL_RACKS_MAX + 1,
    HOSTS_MAX = GW_MODEL_WORKERS_MAX + 2,
    PORTS_MAX = HOSTS_MAX + GW_MODEL_RACKS_MAX + 1,
    PKTS = 4096,
    HDR = 44,
    JOB = 7,
    SWITCH_ADDRESS = 1000, /* and on */
    RAW_MAX = 8,
    TENSORS_MAX = 8,
    STEPS_MAX = 20000000,
    AMPLE = 1 << 20, /* bytes of a queue */
    NO_SWITCH = UINT32_MAX,
};

#define LATENCY  (2 * GW_US)
#define LEAK     (2 * GW_MS)
#define TIMEOUT  (200 * GW_US)
#define RETRY    (100 * GW_US)
#define BEAT     GW_MS
#define LOST     (30 * GW_MS)
#define PATIENCE (200 * GW_MS)

/* As if others shared the links: by the formula 39 packets. */
static const struct gw_notice_path notice_path = {
    .rtt = 16 * GW_US, .rate_bps = UINT64_C(10000000000), .packet = 172};

struct model_switch {
    struct gw_switch *sw;
    struct gw_aggregate *aggregate;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    uint16_t leaf[HOSTS_MAX]; /* port per destination */
    bool is_edge[PORTS_MAX];
    uint16_t ports;
    uint32_t parent; /* or NO_SWITCH; port 0 leads there */
    uint32_t node;   /* in the datapath */
    bool is_dead;
};

/* A process with an endpoint. */
struct model_host {
    struct gw_test_host host;
    uint32_t home; /* switch */
    uint32_t node;
    bool is_up;
};

/* A worker's life. */
struct actor {
    struct gw_member *member;
    struct gw_worker *worker;
    void *member_memory, *worker_memory;
    uint32_t host;
    uint32_t rank;
    uint32_t pending; /* tensors in work */
    uint32_t round;
    bool is_finished;
    bool is_dead;
};

struct model {
    const struct gw_model_cfg *cfg;
    struct gw_model_result *result;
    struct gw_mem *mem;
    struct gw_prng prng;
    gw_time begin;
    uint32_t world, host_count, switch_count;
    uint32_t spare; /* host */
    struct model_host hosts[HOSTS_MAX];
    struct model_switch switches[SWITCHES_MAX]; /* racks, pods, the root */
    struct actor actors[GW_MODEL_WORKERS_MAX];
    struct gw_coordinator *coordinator;
    struct gw_server *server;
    void *coordinator_memory, *server_memory;
    uint32_t lives; /* of processes, for their random numbers */
    uint32_t faults_done[GW_MODEL_FAULTS_MAX];
    uint32_t epochs; /* of coordinators that have died */
};

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
    bool is_down = from == m->switches[m->hosts[0].home].node && to == m->hosts[0].node;
    if (m->cfg->loses_copies && is_down)
        link.lose = UINT64_C(1) << m->cfg->seed % 64;
    gw_mem_connect(m->mem, from, from_port, to, to_port, &link);
}

static uint32_t server_host(const struct model *m)
{
    return m->world;
}

/* Where everybody hangs. */
static void lay_out(struct model *m)
{
    const struct gw_model_cfg *cfg = m->cfg;
    uint32_t root = cfg->racks + cfg->pods;
    m->switch_count = root + 1;
    m->switches[root].parent = NO_SWITCH;
    for (uint32_t i = 0; i < root; i++)
        m->switches[i].parent = i < cfg->racks && cfg->pods ? cfg->racks + i % cfg->pods : root;
    for (uint32_t rack = 0; rack < cfg->racks; rack++)
        for (uint32_t i = 0; i < cfg->rack_workers[rack]; i++)
            m->hosts[m->world++].home = rack;
    for (uint32_t i = 0; i < cfg->root_workers; i++)
        m->hosts[m->world++].home = root;
    assert_in_range(m->world, 1, GW_MODEL_WORKERS_MAX);
    m->hosts[m->world].home = root; /* the server */
    m->spare = m->world + 1;
    m->hosts[m->spare].home = cfg->racks ? cfg->racks - 1 : root;
    m->host_count = m->world + 2;
}

static void host_start(struct model *m, uint32_t id)
{
    struct model_host *host = &m->hosts[id];
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(id, 4 * m->cfg->values);
    cfg.hdr = HDR;
    cfg.apps_max = 2;
    cfg.announcers_max = 2;
    cfg.app_events_max = 16;
    cfg.seed = gw_prng_next(&m->prng);
    gw_test_host_open(&host->host, &cfg, PKTS);
    host->is_up = true;
}

/* Dies with all that it has in hand. */
static void host_kill(struct model *m, uint32_t id)
{
    struct model_host *host = &m->hosts[id];
    gw_mem_replace(m->mem, host->node, NULL, NULL);
    gw_test_host_abandon(&host->host);
    host->is_up = false;
}

static void host_restart(struct model *m, uint32_t id)
{
    struct model_host *host = &m->hosts[id];
    host_start(m, id);
    gw_mem_replace(m->mem, host->node, gw_endpoint_node(host->host.endpoint), &host->host.pool);
}

/* Ports: 0 up (if there is an up), then switches below, then hosts. */
static void switch_ports(struct model *m, uint32_t index)
{
    struct model_switch *s = &m->switches[index];
    s->ports = s->parent != NO_SWITCH;
    for (uint32_t id = 0; id < m->host_count; id++)
        s->leaf[id] = 0;
    for (uint32_t below = 0; below < m->switch_count; below++) {
        if (m->switches[below].parent != index)
            continue;
        for (uint32_t id = 0; id < m->host_count; id++) {
            uint32_t at = m->hosts[id].home;
            while (at != NO_SWITCH && at != below)
                at = m->switches[at].parent;
            if (at == below)
                s->leaf[id] = s->ports;
        }
        s->ports++;
    }
    for (uint32_t id = 0; id < m->host_count; id++)
        if (m->hosts[id].home == index) {
            s->is_edge[s->ports] = true;
            s->leaf[id] = s->ports++;
        }
}

static void switch_start(struct model *m, uint32_t index)
{
    struct model_switch *s = &m->switches[index];
    gw_test_pool_open(&s->pool, &s->bufs, PKTS, 4 * m->cfg->values);
    struct gw_aggregate_cfg aggregate = {
        .aggregators = m->cfg->aggregators,
        .jobs_max = 4,
        .members_max = 64,
        .leak = LEAK,
        .reclaim = m->cfg->rules.reclaim,
        .job_idle = LOST,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &s->pool,
    };
    s->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&aggregate)), &aggregate);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(s->ports, "red", &s->pool);
    cfg.trim_size = HDR;
    cfg.capacity = gw_test_capacity(m->cfg->queue_bytes ? m->cfg->queue_bytes : AMPLE);
    cfg.aggregate = s->aggregate;
    cfg.address = SWITCH_ADDRESS + index;
    cfg.is_edge = s->is_edge;
    cfg.routes = gw_test_routes(s->leaf, m->host_count);
    cfg.seed = gw_prng_next(&m->prng);
    s->sw = gw_test_switch_open(&cfg);
    s->is_dead = false;
}

static void switch_kill(struct model *m, uint32_t index)
{
    struct model_switch *s = &m->switches[index];
    gw_mem_replace(m->mem, s->node, NULL, NULL);
    gw_test_pool_abandon(&s->pool);
    free(s->sw);
    free(s->aggregate);
    s->is_dead = true;
}

static void switch_restart(struct model *m, uint32_t index)
{
    struct model_switch *s = &m->switches[index];
    switch_start(m, index);
    gw_mem_replace(m->mem, s->node, gw_switch_node(s->sw), &s->pool);
}

static void open_network(struct model *m)
{
    lay_out(m);
    for (uint32_t i = 0; i < m->switch_count; i++) {
        switch_ports(m, i);
        switch_start(m, i);
        m->switches[i].node =
            gw_mem_add(m->mem, gw_switch_node(m->switches[i].sw), &m->switches[i].pool);
    }
    for (uint32_t id = 0; id < m->host_count; id++) {
        struct model_host *host = &m->hosts[id];
        const struct model_switch *home = &m->switches[host->home];
        host_start(m, id);
        host->node = gw_mem_add(m->mem, gw_endpoint_node(host->host.endpoint), &host->host.pool);
        connect(m, host->node, 0, home->node, home->leaf[id]);
        connect(m, home->node, home->leaf[id], host->node, 0);
    }
    for (uint32_t i = 0; i < m->switch_count; i++) {
        uint32_t up = m->switches[i].parent;
        uint16_t port = up != NO_SWITCH && m->switches[up].parent != NO_SWITCH;
        for (uint32_t other = 0; up != NO_SWITCH && other < i; other++)
            port += m->switches[other].parent == up;
        if (up != NO_SWITCH) {
            connect(m, m->switches[i].node, 0, m->switches[up].node, port);
            connect(m, m->switches[up].node, port, m->switches[i].node, 0);
        }
    }
}

static uint32_t random_number(struct model *m)
{
    return (uint32_t)gw_prng_derive(m->cfg->seed, 1000 + m->lives++).state | 1;
}

static void server_start(struct model *m)
{
    struct gw_endpoint *ep = m->hosts[server_host(m)].host.endpoint;
    struct gw_server_cfg server = {
        .job = JOB,
        .world = (uint16_t)m->world,
        .levels = GW_LEVELS_MAX,
        .values = m->cfg->values,
        .window_max = m->cfg->window,
        .aggregators = m->cfg->aggregators,
        .raw_max = RAW_MAX,
        .retry = 50 * GW_US,
        .quiet = m->cfg->quiet,
        .hashing = m->cfg->rules.hashing,
        .remap = m->cfg->rules.remap,
        .scale_exponent = gw_model_scale(m->cfg),
        .agrees_exponents = m->cfg->dynamic,
        .proactive = m->cfg->proactive,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    m->server_memory = gw_test_take(gw_server_size(&server));
    assert_int_equal(gw_server_init(&m->server, m->server_memory, &server, ep), 0);
    struct gw_coordinator_cfg cfg = {
        .job = JOB,
        .world = (uint16_t)m->world,
        .levels = !m->cfg->aggregates  ? 0
                  : m->cfg->rack_scale ? 1
                                       : GW_LEVELS_MAX,
        .window_max = m->cfg->window,
        .values = (uint16_t)m->cfg->values,
        .aggregators = m->cfg->aggregators,
        .hashing = m->cfg->rules.hashing,
        .partials = m->cfg->rules.partials,
        .scale_exponent = (int8_t)gw_model_scale(m->cfg),
        .incarnation = random_number(m),
        .first_seq = m->cfg->first_seq,
        .retry = RETRY,
        .beat = BEAT,
        .silence = LOST,
        .notice_path = notice_path,
        .server = m->server,
    };
    m->coordinator_memory = gw_test_take(gw_coordinator_size(&cfg));
    assert_int_equal(gw_coordinator_init(&m->coordinator, m->coordinator_memory, &cfg, ep), 0);
}

static void server_kill(struct model *m)
{
    m->epochs += (uint32_t)gw_coordinator_stats(m->coordinator)->epochs;
    host_kill(m, server_host(m));
    free(m->server_memory);
    free(m->coordinator_memory);
    m->server = NULL;
}

static gw_time now_of(const struct model *m)
{
    return gw_mem_now(m->mem);
}

static void actor_start(struct model *m, struct actor *actor, uint32_t rank, uint32_t host)
{
    *actor =
        (struct actor){.rank = rank, .host = host, .member_memory = gw_test_take(gw_member_size())};
    struct gw_member_cfg cfg = {
        .job = JOB,
        .server = server_host(m),
        .rank = (uint16_t)rank,
        .incarnation = random_number(m),
        .retry = RETRY,
        .beat = BEAT,
        .stall = PATIENCE,
        .notice = m->cfg->notice,
    };
    assert_int_equal(
        gw_member_init(&actor->member, actor->member_memory, &cfg, m->hosts[host].host.endpoint),
        0);
    assert_int_equal(gw_member_join(actor->member, now_of(m)), 0);
}

static void actor_free(struct actor *actor)
{
    free(actor->worker_memory);
    free(actor->member_memory);
}

static void reduce(struct model *m, struct actor *actor, uint32_t t)
{
    const struct gw_model_cfg *cfg = m->cfg;
    size_t at = 0;
    for (uint32_t i = 0; i < t; i++)
        at += (size_t)cfg->counts[i] * gw_dtype_size(cfg->type);
    struct gw_tensor tensor = {.in = m->result->in[actor->rank] + at,
                               .out = m->result->out[actor->rank] + at,
                               .count = cfg->counts[t],
                               .type = cfg->type,
                               .op = cfg->average ? GW_OP_AVERAGE : GW_OP_SUM,
                               .tag = t};
    assert_int_equal(gw_worker_reduce(actor->worker, &tensor, now_of(m)), 0);
    actor->pending++;
}

/* Queues all tensors, or the first one. */
static void round_start(struct model *m, struct actor *actor)
{
    memset(m->result->out[actor->rank], 0, m->result->bytes);
    m->result->reduced[actor->rank] = actor->round * m->cfg->tensors;
    for (uint32_t t = 0; t < (m->cfg->one_by_one ? 1 : m->cfg->tensors); t++)
        reduce(m, actor, t);
}

/* Whoever has died in between: a server that restarts, too, comes to the same. */
static uint8_t units_of(uint8_t option)
{
    uint8_t units;
    assert_int_equal(gw_notice_units(option, &notice_path, &units), 0);
    return units;
}

static void joined(struct model *m, struct actor *actor)
{
    assert_int_equal(gw_member_rank(actor->member), actor->rank);
    if (!actor->worker) {
        struct gw_worker_cfg cfg = {
            .window_initial = m->cfg->window_initial ? m->cfg->window_initial : m->cfg->window,
            .limit = m->cfg->rules.limit,
            .halving = m->cfg->rules.halving,
            .overtaking = m->cfg->rules.overtaking,
            .tensors_max = TENSORS_MAX,
            .timeout = TIMEOUT,
            .stall = m->cfg->stall,
            .congestion_control = true,
            .keeps_results = true,
            .offers_exponents = m->cfg->dynamic,
            .proactive = m->cfg->proactive,
            .kernels = gw_kernels_best(gw_cpu_features()),
        };
        gw_member_worker_cfg(actor->member, &cfg);
        assert_int_equal(cfg.notice.units, units_of(m->cfg->notice));
        actor->worker_memory = gw_test_take(gw_worker_size(&cfg));
        assert_int_equal(gw_worker_init(&actor->worker, actor->worker_memory, &cfg,
                                        m->hosts[actor->host].host.endpoint),
                         0);
        gw_member_bind(actor->member, actor->worker);
    }
    round_start(m, actor);
}

static void round_ended(struct model *m, struct actor *actor)
{
    uint32_t rounds = m->cfg->rounds ? m->cfg->rounds : 1;
    actor->round++;
    if (actor->round == rounds)
        actor->is_finished = true;
    else if (m->cfg->mover == actor->rank + 1 && actor->host != m->spare)
        assert_int_equal(gw_member_leave(actor->member, now_of(m)), 0);
    else
        round_start(m, actor);
}

/* Its worker failed: joins again, or is done. */
static void out_of_job(struct model *m, struct actor *actor, const struct gw_event *event)
{
    m->result->reason[actor->rank] = event->reason;
    m->result->about[actor->rank] = event->about;
    if (actor->pending)
        return;
    /* The same numbers would overflow again. */
    bool is_hopeless = event->reason == GW_JOB_OVERFLOW;
    if (m->cfg->rejoins && event->kind == GW_EVENT_FAILED && !is_hopeless) {
        actor->round = 0;
        assert_int_equal(gw_member_join(actor->member, now_of(m)), 0);
    } else {
        actor->is_finished = true;
    }
}

/* The mover has left: another process takes its rank, elsewhere. */
static void move(struct model *m, struct actor *actor)
{
    uint32_t round = actor->round;
    host_kill(m, actor->host);
    actor_free(actor);
    actor_start(m, actor, actor->rank, m->spare);
    actor->round = round;
}

static void handle(struct model *m, struct actor *actor, const struct gw_event *event)
{
    assert_int_equal(event->flow, JOB);
    switch (event->kind) {
    case GW_EVENT_JOINED:
        joined(m, actor);
        break;
    case GW_EVENT_REDUCED:
        assert_int_equal(event->tag, m->result->reduced[actor->rank]++ % m->cfg->tensors);
        actor->pending--;
        if (m->cfg->one_by_one && event->tag + 1 < m->cfg->tensors)
            reduce(m, actor, event->tag + 1);
        else if (actor->pending == 0)
            round_ended(m, actor);
        break;
    case GW_EVENT_FAILED:
        m->result->failed[actor->rank]++;
        actor->pending--;
        out_of_job(m, actor, event);
        break;
    case GW_EVENT_REFUSED:
        out_of_job(m, actor, event);
        break;
    case GW_EVENT_LEFT:
        if (!actor->is_finished)
            move(m, actor);
        break;
    default:
        fail();
    }
}

static void fault_begin(struct model *m, const struct gw_model_fault *fault)
{
    struct actor *actor = &m->actors[fault->which];
    switch (fault->victim) {
    case GW_MODEL_SERVER:
        server_kill(m);
        break;
    case GW_MODEL_SWITCH:
        switch_kill(m, fault->which);
        break;
    case GW_MODEL_WORKER:
        host_kill(m, actor->host);
        actor_free(actor);
        *actor = (struct actor){.is_finished = true, .is_dead = true};
        break;
    }
}

static void fault_end(struct model *m, const struct gw_model_fault *fault)
{
    switch (fault->victim) {
    case GW_MODEL_SERVER:
        host_restart(m, server_host(m));
        server_start(m);
        break;
    case GW_MODEL_SWITCH:
        switch_restart(m, fault->which);
        break;
    case GW_MODEL_WORKER:
        actor_start(m, &m->actors[fault->which], fault->which, m->spare);
        break;
    }
}

/* The next time at which the script does something, and does what is due. */
static gw_time script(struct model *m)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; i < GW_MODEL_FAULTS_MAX; i++) {
        const struct gw_model_fault *fault = &m->cfg->faults[i];
        gw_time times[2] = {fault->at, fault->back};
        while (m->faults_done[i] < 2 && times[m->faults_done[i]]) {
            gw_time at = m->begin + times[m->faults_done[i]];
            if (gw_time_before(now_of(m), at)) {
                next = gw_deadline_before(at, next) ? at : next;
                break;
            }
            if (m->faults_done[i]++ == 0)
                fault_begin(m, fault);
            else
                fault_end(m, fault);
        }
    }
    return next;
}

static bool is_over(const struct model *m)
{
    for (uint32_t rank = 0; rank < m->world; rank++)
        if (!m->actors[rank].is_finished)
            return false;
    return true;
}

static void poll_all(struct model *m)
{
    for (uint32_t rank = 0; rank < m->world; rank++) {
        struct actor *actor = &m->actors[rank];
        struct gw_event event;
        while (!actor->is_dead && gw_endpoint_poll(m->hosts[actor->host].host.endpoint, &event, 1))
            handle(m, actor, &event);
    }
}

/* In runs in which nobody dies all workers are in one epoch, which began at first_seq for all. */
static void watch_windows(struct model *m)
{
    if (m->cfg->faults[0].at || m->cfg->faults[1].at || m->cfg->mover)
        return;
    for (uint32_t rank = 0; rank < m->world; rank++)
        if (m->actors[rank].worker && !gw_worker_is_out(m->actors[rank].worker))
            gw_window_watch_note(&m->result->watch, m->actors[rank].worker);
    gw_window_watch_end(&m->result->watch, now_of(m));
}

static void run(struct model *m)
{
    uint32_t steps = 0;
    gw_time next = script(m);
    while (!is_over(m) || next != GW_TIME_NEVER) {
        assert_true(gw_mem_step(m->mem, next) || next != GW_TIME_NEVER);
        assert_true(steps++ < STEPS_MAX);
        poll_all(m);
        watch_windows(m);
        next = script(m);
    }
    m->result->time = now_of(m) - m->begin;
    for (uint32_t rank = 0; rank < m->world; rank++) {
        struct actor *actor = &m->actors[rank];
        if (!actor->is_dead)
            gw_member_leave(actor->member, now_of(m)); /* refused if it is not in */
    }
    while (gw_mem_step(m->mem, GW_TIME_NEVER)) {
        assert_true(steps++ < STEPS_MAX);
        poll_all(m);
    }
}

static void add_stats(uint64_t *sum, const uint64_t *stats, size_t size)
{
    for (size_t i = 0; i < size / sizeof(*sum); i++)
        sum[i] += stats[i];
}

static void close_actors(struct model *m)
{
    struct gw_model_result *result = m->result;
    const struct actor *first = NULL;
    result->windows_equal = true;
    for (uint32_t rank = 0; rank < m->world; rank++) {
        struct actor *actor = &m->actors[rank];
        result->died[rank] = actor->is_dead;
        if (actor->is_dead)
            continue;
        result->bursts += gw_endpoint_stats(m->hosts[actor->host].host.endpoint)->bursts_announced;
        if (actor->worker) {
            first = first ? first : actor;
            result->windows_equal &=
                gw_worker_window(actor->worker) == gw_worker_window(first->worker);
            add_stats((uint64_t *)&result->workers,
                      (const uint64_t *)gw_worker_stats(actor->worker), sizeof(result->workers));
        }
    }
    for (uint32_t rank = 0; rank < m->world; rank++) {
        struct actor *actor = &m->actors[rank];
        if (actor->worker)
            gw_worker_fini(actor->worker);
        if (!actor->is_dead)
            gw_member_fini(actor->member);
        actor_free(actor);
    }
}

static void close_all(struct model *m)
{
    struct gw_model_result *result = m->result;
    close_actors(m);
    result->epochs = m->epochs;
    if (m->server) {
        result->epochs += (uint32_t)gw_coordinator_stats(m->coordinator)->epochs;
        result->server = *gw_server_stats(m->server);
        gw_coordinator_fini(m->coordinator);
        gw_server_fini(m->server);
        free(m->server_memory);
        free(m->coordinator_memory);
    }
    for (uint32_t i = 0; i < m->switch_count; i++) {
        struct model_switch *s = &m->switches[i];
        if (s->is_dead)
            continue;
        add_stats((uint64_t *)&result->switches, (const uint64_t *)gw_aggregate_stats(s->aggregate),
                  sizeof(result->switches));
        /* What results alone reclaim may be left. */
        if (m->cfg->rules.reclaim == GW_AGG_RECLAIM_SWEEP)
            result->taken += gw_aggregate_taken(s->aggregate);
        result->jobs_left += gw_aggregate_job(s->aggregate, JOB) != NULL;
        gw_aggregate_remove(s->aggregate, JOB);
        gw_aggregate_fini(s->aggregate);
        gw_test_pool_close(&s->pool);
        free(s->sw);
        free(s->aggregate);
    }
    for (uint32_t i = 0; i < m->host_count; i++)
        if (m->hosts[i].is_up)
            gw_test_host_close(&m->hosts[i].host);
    gw_mem_close(m->mem);
}

static void fill_inputs(struct model *m)
{
    const struct gw_model_cfg *cfg = m->cfg;
    struct gw_model_result *result = m->result;
    uint32_t size = gw_dtype_size(cfg->type);
    for (uint32_t t = 0; t < cfg->tensors; t++)
        result->bytes += (size_t)cfg->counts[t] * size;
    for (uint32_t rank = 0; rank < m->world; rank++) {
        unsigned char *in = result->in[rank] = malloc(result->bytes);
        result->out[rank] = calloc(1, result->bytes);
        assert_non_null(in);
        assert_non_null(result->out[rank]);
        for (uint32_t t = 0; t < cfg->tensors; t++)
            for (uint32_t i = 0; i < cfg->counts[t]; i++, in += size) {
                uint32_t bits = cfg->element(cfg, rank, t, i);
                memcpy(in, &bits, size);
            }
    }
}

void gw_model_run(const struct gw_model_cfg *cfg, struct gw_model_result *result)
{
    struct model *m = gw_test_take(sizeof(*m));
    *m = (struct model){0};
    *result = (struct gw_model_result){0};
    m->cfg = cfg;
    m->result = result;
    m->prng = gw_prng_derive(cfg->seed, 1);
    m->mem = gw_mem_open(&(struct gw_mem_cfg){.cookie = 3,
                                              .mtu = 4 * cfg->values,
                                              .frames_max = 1 << 16,
                                              .batch = 1,
                                              .start = (gw_time)0 - GW_MS}); /* wraps soon */
    assert_non_null(m->mem);
    m->begin = now_of(m);
    gw_window_watch_init(&result->watch, cfg->first_seq);
    open_network(m);
    result->world = m->world;
    fill_inputs(m);
    server_start(m);
    for (uint32_t rank = 0; rank < m->world; rank++)
        actor_start(m, &m->actors[rank], rank, rank);
    run(m);
    close_all(m);
    free(m);
}

void gw_model_result_free(struct gw_model_result *result)
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
        cfg->type == GW_DTYPE_I32 ? gw_scale_integer(1, shares) : gw_scale_named(exponent, shares);
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
