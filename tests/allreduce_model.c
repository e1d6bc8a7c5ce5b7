/* The all-reduce model; see allreduce_model.h. */
#include "allreduce_model.h"

#include "support.h"
#include "tree_net.h"

#include "base/cpu.h"

enum {
    PKTS = 4096,
    JOB = 7,
    RAW_MAX = 8,
    TENSORS_MAX = 8,
    STEPS_MAX = 20000000,
};

#define TIMEOUT  (200 * GW_US)
#define RETRY    (100 * GW_US)
#define BEAT     GW_MS
#define LOST     (30 * GW_MS)
#define PATIENCE (200 * GW_MS)

/* As if others shared the links: by the formula 39 packets. */
static const struct gw_notice_path notice_path = {
    .rtt = 16 * GW_US, .rate_bps = UINT64_C(10000000000), .packet = 172};

/* A worker's life. */
struct actor {
    struct gw_member *member;
    struct gw_worker *worker;
    void *member_memory, *worker_memory;
    uint32_t host;
    uint32_t rank;
    gw_time begins_at; /* GW_TIME_NEVER: it has, or is not in the job */
    uint32_t pending;  /* tensors in work */
    uint32_t round;
    bool is_finished;
    bool is_dead;
};

struct model {
    const struct gw_model_cfg *cfg;
    struct gw_model_result *result;
    struct gw_tree_net net;
    gw_time begin;
    uint32_t world;
    uint32_t spare; /* host */
    struct actor actors[GW_MODEL_WORKERS_MAX];
    struct gw_coordinator *coordinator;
    struct gw_server *server;
    void *coordinator_memory, *server_memory;
    uint32_t lives; /* of processes, for their random numbers */
    uint32_t faults_done[GW_MODEL_FAULTS_MAX];
    uint32_t epochs; /* of coordinators that have died */
    bool is_pause;   /* the straggler's link stands still */
};

static uint32_t server_host(const struct model *m)
{
    return m->world;
}

static struct gw_endpoint *endpoint_of(const struct model *m, uint32_t host)
{
    return m->net.hosts[host].host.endpoint;
}

/* Where everybody hangs. */
static void lay_out(struct model *m)
{
    const struct gw_model_cfg *cfg = m->cfg;
    struct gw_tree_net *net = &m->net;
    m->world = cfg->root_workers;
    for (uint32_t rack = 0; rack < cfg->racks; rack++)
        m->world += cfg->rack_workers[rack];
    assert_in_range(m->world, 1, GW_MODEL_WORKERS_MAX);
    m->spare = m->world + 1;
    gw_tree_net_init(net, &(struct gw_tree_net_cfg){
                              .seed = cfg->seed,
                              .racks = cfg->racks,
                              .pods = cfg->pods,
                              .host_count = m->world + 2,
                              .mtu = 4 * cfg->values,
                              .frames_max = 1 << 16,
                              .pkts = PKTS,
                              .queue_bytes = cfg->queue_bytes,
                              .aggregators = cfg->aggregators,
                              .reclaim = cfg->rules.reclaim,
                              .job_idle = LOST,
                              .lose_of_64 = cfg->lose_of_64,
                              .double_of_64 = cfg->double_of_64,
                              .delay_of_64 = cfg->delay_of_64,
                          });
    uint32_t host = 0;
    for (uint32_t rack = 0; rack < cfg->racks; rack++)
        for (uint32_t i = 0; i < cfg->rack_workers[rack]; i++)
            net->hosts[host++].home = rack;
    if (cfg->racks)
        net->hosts[m->spare].home = cfg->racks - 1;
    for (host = 0; host < net->cfg.host_count; host++) {
        net->hosts[host].cfg.apps_max = 2;
        net->hosts[host].cfg.announcers_max = 2;
        net->hosts[host].cfg.app_events_max = 16;
    }
}

static void open_network(struct model *m)
{
    lay_out(m);
    gw_tree_net_open(&m->net);
    if (m->cfg->loses_copies) {
        struct gw_mem_link link = {.latency = GW_TREE_NET_LATENCY,
                                   .rate_bps = GW_TREE_NET_RATE,
                                   .lose = UINT64_C(1) << m->cfg->seed % 64};
        gw_mem_change(m->net.mem, m->net.hosts[0].to, &link);
    }
}

static uint32_t random_number(struct model *m)
{
    return (uint32_t)gw_prng_derive(m->cfg->seed, 1000 + m->lives++).state | 1;
}

static void server_start(struct model *m)
{
    struct gw_endpoint *ep = endpoint_of(m, server_host(m));
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
        .patience = m->cfg->patience,
        .patience_max = m->cfg->patience_max ? m->cfg->patience_max : m->cfg->patience,
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
    gw_tree_net_kill_host(&m->net, server_host(m));
    free(m->server_memory);
    free(m->coordinator_memory);
    m->server = NULL;
}

static gw_time now_of(const struct model *m)
{
    return gw_tree_net_now(&m->net);
}

static void actor_start(struct model *m, struct actor *actor, uint32_t rank, uint32_t host)
{
    *actor = (struct actor){.rank = rank,
                            .host = host,
                            .begins_at = GW_TIME_NEVER,
                            .member_memory = gw_test_take(gw_member_size())};
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
        gw_member_init(&actor->member, actor->member_memory, &cfg, endpoint_of(m, host)), 0);
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
    uint32_t fragment = 0;
    for (uint32_t i = 0; i < t; i++) {
        at += (size_t)cfg->counts[i] * gw_dtype_size(cfg->type);
        fragment += (cfg->counts[i] - 1) / cfg->values + 1;
    }
    struct gw_tensor tensor = {.in = m->result->in[actor->rank] + at,
                               .out = m->result->out[actor->rank] + at,
                               .count = cfg->counts[t],
                               .type = cfg->type,
                               .op = cfg->average ? GW_OP_AVERAGE : GW_OP_SUM,
                               .tag = t,
                               .bound = cfg->bound,
                               .counts = m->result->counts[actor->rank] + fragment};
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

struct gw_model_rules gw_model_rules_of(uint32_t bits)
{
    return (struct gw_model_rules){
        .halving = (enum gw_agg_halving)(bits & 1),
        .overtaking = (enum gw_agg_overtaking)(bits >> 1 & 1),
        .hashing = (enum gw_agg_hashing)(bits >> 2 & 1),
        .remap = (enum gw_agg_remap)(bits >> 3 & 1),
        .partials = (enum gw_agg_partials)(bits >> 4 & 1),
        .reclaim = (enum gw_agg_reclaim)(bits >> 5 & 1),
        .is_decimal = bits >> 6 & 1,
    };
}

static void joined(struct model *m, struct actor *actor)
{
    assert_int_equal(gw_member_rank(actor->member), actor->rank);
    if (!actor->worker) {
        struct gw_worker_cfg cfg = {
            .window_initial = m->cfg->window_initial ? m->cfg->window_initial : m->cfg->window,
            .halving = m->cfg->rules.halving,
            .overtaking = m->cfg->rules.overtaking,
            .tensors_max = TENSORS_MAX,
            .timeout = TIMEOUT,
            .probe = m->cfg->rules.overtaking ? 0 : TIMEOUT / 5,
            .resend_gap = m->cfg->resend_gap,
            .stall = m->cfg->stall,
            .congestion_control = true,
            .keeps_results = true,
            .takes_bounds = m->cfg->bound > 0,
            .offers_exponents = m->cfg->dynamic,
            .proactive = m->cfg->proactive,
            .kernels = gw_kernels_best(gw_cpu_features()),
        };
        gw_member_worker_cfg(actor->member, &cfg);
        assert_int_equal(cfg.notice.units, units_of(m->cfg->notice));
        actor->worker_memory = gw_test_take(gw_worker_size(&cfg));
        assert_int_equal(
            gw_worker_init(&actor->worker, actor->worker_memory, &cfg, endpoint_of(m, actor->host)),
            0);
        gw_member_bind(actor->member, actor->worker);
    }
    if (m->cfg->apart)
        actor->begins_at = gw_time_add(now_of(m), actor->rank * m->cfg->apart);
    else
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
    gw_tree_net_kill_host(&m->net, actor->host);
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
        gw_tree_net_kill_switch(&m->net, fault->which);
        break;
    case GW_MODEL_WORKER:
        gw_tree_net_kill_host(&m->net, actor->host);
        actor_free(actor);
        *actor = (struct actor){.is_finished = true, .is_dead = true};
        break;
    }
}

static void fault_end(struct model *m, const struct gw_model_fault *fault)
{
    switch (fault->victim) {
    case GW_MODEL_SERVER:
        gw_tree_net_restart_host(&m->net, server_host(m));
        server_start(m);
        break;
    case GW_MODEL_SWITCH:
        gw_tree_net_restart_switch(&m->net, fault->which);
        break;
    case GW_MODEL_WORKER:
        actor_start(m, &m->actors[fault->which], fault->which, m->spare);
        break;
    }
}

static bool is_over(const struct model *m)
{
    for (uint32_t rank = 0; rank < m->world; rank++)
        if (!m->actors[rank].is_finished)
            return false;
    return true;
}

/* Lets the straggler's link stand still, or go on. Returns when to look again. */
static gw_time pauses(struct model *m)
{
    const struct gw_model_pauses *cfg = &m->cfg->pauses;
    gw_time since = now_of(m) - m->begin - cfg->first;
    if (cfg->first == 0 || is_over(m))
        return GW_TIME_NEVER;
    if (gw_time_before(now_of(m), m->begin + cfg->first))
        return m->begin + cfg->first;
    gw_time into = since % cfg->every;
    bool is_pause = into < cfg->length;
    struct gw_mem_link link = {.latency = GW_TREE_NET_LATENCY, .rate_bps = GW_TREE_NET_RATE};
    if (is_pause && cfg->loses)
        link.lose = UINT64_MAX;
    else if (is_pause)
        link.latency += cfg->length - into;
    if (is_pause != m->is_pause) {
        gw_mem_change(m->net.mem, m->net.hosts[cfg->rank].to, &link);
        gw_mem_change(m->net.mem, m->net.hosts[cfg->rank].from, &link);
    }
    m->is_pause = is_pause;
    return now_of(m) + (is_pause ? cfg->length : cfg->every) - into;
}

/* Begins what is due; returns when the next one begins. */
static gw_time begins(struct model *m)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t rank = 0; m->cfg->apart && rank < m->world; rank++) {
        struct actor *actor = &m->actors[rank];
        if (!gw_deadline_before(now_of(m), actor->begins_at)) {
            actor->begins_at = GW_TIME_NEVER;
            round_start(m, actor);
        } else if (gw_deadline_before(actor->begins_at, next)) {
            next = actor->begins_at;
        }
    }
    return next;
}

/* The next time at which the script does something, and does what is due. */
static gw_time script(struct model *m)
{
    gw_time next = pauses(m), begin = begins(m);
    if (gw_deadline_before(begin, next))
        next = begin;
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

static void poll_all(struct model *m)
{
    for (uint32_t rank = 0; rank < m->world; rank++) {
        struct actor *actor = &m->actors[rank];
        struct gw_event event;
        while (!actor->is_dead && gw_endpoint_poll(endpoint_of(m, actor->host), &event, 1))
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
        assert_true(gw_mem_step(m->net.mem, next) || next != GW_TIME_NEVER);
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
    while (gw_mem_step(m->net.mem, GW_TIME_NEVER)) {
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
        result->bursts += gw_endpoint_stats(endpoint_of(m, actor->host))->bursts_announced;
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
    for (uint32_t i = 0; i < m->net.switch_count; i++) {
        struct gw_tree_switch *s = &m->net.switches[i];
        if (s->is_dead)
            continue;
        add_stats((uint64_t *)&result->switches, (const uint64_t *)gw_aggregate_stats(s->aggregate),
                  sizeof(result->switches));
        /* What results alone reclaim may be left. */
        if (m->cfg->rules.reclaim == GW_AGG_RECLAIM_SWEEP)
            result->taken += gw_aggregate_taken(s->aggregate);
        result->jobs_left += gw_aggregate_job(s->aggregate, JOB) != NULL;
        gw_aggregate_remove(s->aggregate, JOB);
    }
    gw_tree_net_close(&m->net);
}

static void fill_inputs(struct model *m)
{
    const struct gw_model_cfg *cfg = m->cfg;
    struct gw_model_result *result = m->result;
    uint32_t size = gw_dtype_size(cfg->type);
    for (uint32_t t = 0; t < cfg->tensors; t++)
        result->bytes += (size_t)cfg->counts[t] * size;
    for (uint32_t t = 0; t < cfg->tensors; t++)
        result->fragments += (cfg->counts[t] - 1) / cfg->values + 1;
    for (uint32_t rank = 0; rank < m->world; rank++) {
        unsigned char *in = result->in[rank] = malloc(result->bytes);
        result->out[rank] = calloc(1, result->bytes);
        result->counts[rank] = calloc(result->fragments, sizeof(*result->counts[rank]));
        assert_non_null(result->counts[rank]);
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
    gw_window_watch_init(&result->watch, cfg->first_seq);
    open_network(m);
    m->begin = now_of(m);
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
        free(result->counts[rank]);
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
