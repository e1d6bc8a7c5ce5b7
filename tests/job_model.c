/* The world of the job model: its clock, sessions, ways and deaths; see job_model.h. */
#include "job_model_impl.h"

enum {
    PKTS = 4096,
    FRAMES_MAX = 16384,
    FIRST_ADDRESS = 3, /* of rank 0, so that ranks are no addresses */
    ALIAS = 24,
    STEPS_MAX = 20000000,
    LOCATOR = 0x5a, /* how locators begin */
};

#define BRTT        (40 * GW_US)
#define REDIAL      GW_MS
#define BEAT        GW_MS
#define WORK        (100 * GW_US) /* between parts of the work on values */
#define SWITCH_IDLE (30 * GW_MS)

/* In which whatever has happened must have come to an end everywhere: nobody notices a death, he
 * who waits for another gives up, and the news spreads. */
#define PATIENCE (6 * GW_JOB_MODEL_STALL)

gw_time gw_job_model_some(struct gw_job_model *m, gw_time most)
{
    return 1 + (most ? gw_prng_next(&m->prng) % most : 0);
}

void gw_job_model_at(struct gw_job_model *m, gw_time delay, enum gw_job_model_timer_kind kind,
                     uint32_t a, uint32_t b)
{
    bool is_of_rank = kind <= GW_JOB_MODEL_LEAVE && kind != GW_JOB_MODEL_LOSE;
    assert_true(m->timer_count < GW_JOB_MODEL_TIMERS_MAX);
    m->timers[m->timer_count++] = (struct gw_job_model_timer){
        .at = gw_time_add(gw_job_model_now(m), delay),
        .kind = kind,
        .a = a,
        .b = b,
        .life = is_of_rank ? m->actors[a].life : 0,
    };
}

uint32_t gw_job_model_address(const struct gw_job_model *m, uint32_t rank)
{
    return gw_tree_net_address(&m->net, rank) + (m->actors[rank].has_returned ? ALIAS : 0);
}

struct gw_path gw_job_model_path(const struct gw_job_model *m)
{
    return gw_test_path(&m->net.hosts[0].cfg, GW_TREE_NET_RATE, BRTT);
}

static struct gw_mesh *mesh_of(struct gw_job_model *m, uint32_t rank)
{
    return gw_communicator_mesh(m->actors[rank].comm);
}

static struct gw_rank_place place_of(const struct gw_job_model *m, uint32_t rank)
{
    return (struct gw_rank_place){.address = gw_job_model_address(m, rank),
                                  .locator = {LOCATOR, (uint8_t)rank}};
}

/* A session between a rank and the home begins. */
static void come(struct gw_job_model *m, uint32_t rank)
{
    const struct gw_path path = gw_job_model_path(m);
    struct gw_job_model_actor *actor = &m->actors[rank];
    const struct gw_registrar_rank who = {
        .place = place_of(m, rank),
        .rank = (uint16_t)rank,
        .notice = m->cfg->notice,
        .was_seated = actor->was_seated,
        .table = gw_mesh_table(mesh_of(m, rank)),
        .path = path,
    };
    gw_time now = gw_job_model_now(m);
    enum gw_job_reason reason = GW_JOB_SILENT;
    if (m->homes[0].is_up)
        reason = gw_registrar_come(m->homes[0].registrar, &who, now);
    if (reason == GW_JOB_LOST)
        gw_communicator_abort(actor->comm, now);
    else if (reason != GW_JOB_OK)
        gw_job_model_at(m, REDIAL, GW_JOB_MODEL_COME, rank, 0);
    if (reason != GW_JOB_OK)
        return;
    actor->has_met = actor->was_seated = true;
    gw_communicator_set_server(actor->comm, 0, gw_tree_net_address(&m->net, m->cfg->world), &path,
                               now);
}

static void know(struct gw_job_model *m, uint32_t rank, uint32_t server)
{
    const struct gw_path path = gw_job_model_path(m);
    if (m->homes[server].is_up)
        gw_communicator_set_server(m->actors[rank].comm, server,
                                   gw_tree_net_address(&m->net, m->cfg->world + server), &path,
                                   gw_job_model_now(m));
    else
        gw_job_model_at(m, REDIAL, GW_JOB_MODEL_KNOW, rank, server);
}

/* The home's side of a session with a rank's process has ended. */
static void lose(struct gw_job_model *m, uint32_t address, uint32_t life)
{
    const struct gw_job_model_home *home = &m->homes[0];
    if (home->is_up && home->life == life)
        gw_registrar_gone(home->registrar, address, gw_job_model_now(m));
}

/* The rank's side has: it dials again. */
static void desert(struct gw_job_model *m, uint32_t rank)
{
    gw_mesh_registrar_down(mesh_of(m, rank), gw_job_model_now(m));
    gw_job_model_at(m, REDIAL, GW_JOB_MODEL_COME, rank, 0);
}

/* One side of a session. False: it does not want it. */
static bool way_up(struct gw_job_model *m, uint32_t rank, uint32_t other)
{
    const struct gw_path path = gw_job_model_path(m);
    struct gw_mesh *mesh = mesh_of(m, rank);
    if (!gw_mesh_way_up(mesh, other, gw_job_model_address(m, other), gw_job_model_now(m)))
        return false;
    gw_mesh_set_path(mesh, other, &path);
    return m->actors[rank].ways[other] = true;
}

/* Two ranks have a session, or the one that wants it tries again. */
static void meet(struct gw_job_model *m, uint32_t rank, uint32_t other)
{
    struct gw_job_model_actor *a = &m->actors[rank], *b = &m->actors[other];
    const struct gw_rank_place *place = gw_mesh_place(mesh_of(m, rank), other);
    const struct gw_rank_place now_there = place_of(m, other);
    assert_non_null(place); /* else it could not know where to go */
    if (a->state == GW_JOB_MODEL_OVER || a->ways[other])
        return;
    bool is_there = gw_job_model_is_up(b) && memcmp(place, &now_there, sizeof(now_there)) == 0;
    if (is_there && way_up(m, other, rank))
        assert_true(way_up(m, rank, other));
    else
        gw_job_model_at(m, REDIAL, GW_JOB_MODEL_MEET, rank, other);
}

static void way_down(struct gw_job_model *m, uint32_t rank, uint32_t other, bool is_lost)
{
    if (m->actors[rank].ways[other])
        gw_mesh_way_down(mesh_of(m, rank), other, is_lost, gw_job_model_now(m));
    m->actors[rank].ways[other] = false;
}

static void break_ways(struct gw_job_model *m, uint32_t rank)
{
    for (uint32_t other = 0; other < m->cfg->world; other++)
        if (m->actors[rank].ways[other] && gw_job_model_is_up(&m->actors[other])) {
            way_down(m, rank, other, false);
            way_down(m, other, rank, false);
        }
}

static void server_dies(struct gw_job_model *m, uint32_t server)
{
    gw_job_model_home_die(m, server);
    gw_tree_net_kill_host(&m->net, m->cfg->world + server);
    for (uint32_t rank = 0; server == 0 && rank < m->cfg->world; rank++)
        if (m->actors[rank].has_met && gw_job_model_is_up(&m->actors[rank])) {
            m->actors[rank].has_met = false;
            gw_job_model_at(m, GW_JOB_MODEL_SILENCE, GW_JOB_MODEL_DESERT, rank, 0);
        }
}

static void fault_begin(struct gw_job_model *m, const struct gw_job_model_fault *fault)
{
    struct gw_job_model_actor *actor = &m->actors[fault->which];
    switch (fault->victim) {
    case GW_JOB_MODEL_RANK:
        if (gw_job_model_is_up(actor))
            gw_job_model_rank_die(m, fault->which);
        break;
    case GW_JOB_MODEL_SERVER:
        server_dies(m, fault->which);
        break;
    case GW_JOB_MODEL_SWITCH:
        gw_tree_net_kill_switch(&m->net, fault->which);
        break;
    case GW_JOB_MODEL_ABORT:
        if (gw_job_model_is_up(actor))
            gw_communicator_abort(actor->comm, gw_job_model_now(m));
        break;
    case GW_JOB_MODEL_WAY:
        if (gw_job_model_is_up(actor))
            break_ways(m, fault->which);
        break;
    }
}

/* Another process takes the place of a rank that died. */
static void rank_returns(struct gw_job_model *m, uint32_t rank)
{
    if (!m->actors[rank].is_dead)
        return;
    if (m->cfg->world == 1) { /* a job of its own, which knows no values */
        memset(m->pushes_begun, 0, sizeof(m->pushes_begun));
        memset(m->pushes_ended, 0, sizeof(m->pushes_ended));
    }
    m->net.hosts[rank].cfg.address += ALIAS;
    gw_tree_net_restart_host(&m->net, rank);
    gw_job_model_rank_start(m, rank);
}

static void fault_end(struct gw_job_model *m, const struct gw_job_model_fault *fault)
{
    struct gw_tree_host *host;
    switch (fault->victim) {
    case GW_JOB_MODEL_RANK:
        rank_returns(m, fault->which);
        break;
    case GW_JOB_MODEL_SERVER:
        host = &m->net.hosts[m->cfg->world + fault->which];
        host->cfg.generation += 1000;
        gw_tree_net_restart_host(&m->net, m->cfg->world + fault->which);
        gw_job_model_home_start(m, fault->which);
        break;
    case GW_JOB_MODEL_SWITCH:
        gw_tree_net_restart_switch(&m->net, fault->which);
        break;
    default:
        break;
    }
}

static void fault(struct gw_job_model *m, const struct gw_job_model_timer *timer)
{
    const struct gw_job_model_fault *what = &m->cfg->faults[timer->a];
    m->faults--;
    m->guard = gw_time_add(gw_job_model_now(m), PATIENCE);
    if (timer->kind == GW_JOB_MODEL_DIE)
        fault_begin(m, what);
    else
        fault_end(m, what);
}

static void leave(struct gw_job_model *m, struct gw_job_model_actor *actor)
{
    if (actor->state != GW_JOB_MODEL_OPEN)
        return;
    actor->state = GW_JOB_MODEL_LEAVING;
    gw_communicator_leave(actor->comm, gw_job_model_now(m));
}

static void beat(struct gw_job_model *m)
{
    for (uint32_t server = 0; server < m->cfg->servers; server++)
        gw_job_model_home_beat(m, server);
    gw_job_model_at(m, BEAT, GW_JOB_MODEL_BEAT, 0, 0);
}

static void fire(struct gw_job_model *m, const struct gw_job_model_timer *timer)
{
    switch (timer->kind) {
    case GW_JOB_MODEL_COME:
        come(m, timer->a);
        break;
    case GW_JOB_MODEL_KNOW:
        know(m, timer->a, timer->b);
        break;
    case GW_JOB_MODEL_LOSE:
        lose(m, timer->a, timer->b);
        break;
    case GW_JOB_MODEL_DESERT:
        desert(m, timer->a);
        break;
    case GW_JOB_MODEL_MEET:
        meet(m, timer->a, timer->b);
        break;
    case GW_JOB_MODEL_MISS:
        way_down(m, timer->a, timer->b, true);
        break;
    case GW_JOB_MODEL_START:
        gw_job_model_start_calls(m, &m->actors[timer->a]);
        break;
    case GW_JOB_MODEL_LEAVE:
        leave(m, &m->actors[timer->a]);
        break;
    case GW_JOB_MODEL_BEAT:
        beat(m);
        break;
    case GW_JOB_MODEL_DIE:
    case GW_JOB_MODEL_RETURN:
        fault(m, timer);
        break;
    }
}

/* Fires what is due; returns when something is again. */
static gw_time fire_due(struct gw_job_model *m, bool *has_fired)
{
    gw_time next = GW_TIME_NEVER;
    *has_fired = false;
    for (uint32_t i = 0; i < m->timer_count;) {
        const struct gw_job_model_timer timer = m->timers[i];
        if (gw_time_before(gw_job_model_now(m), timer.at)) {
            next = gw_deadline_before(timer.at, next) ? timer.at : next;
            i++;
            continue;
        }
        m->timers[i] = m->timers[--m->timer_count];
        bool is_of_rank = timer.kind <= GW_JOB_MODEL_LEAVE && timer.kind != GW_JOB_MODEL_LOSE;
        if (!is_of_rank || timer.life == m->actors[timer.a].life)
            fire(m, &timer);
        *has_fired = true;
        i = 0; /* the list has changed, and what was passed over may be due at once */
        next = GW_TIME_NEVER;
    }
    return next;
}

/* Whether the rank has something to do. */
static bool is_due(const struct gw_job_model *m, uint32_t rank)
{
    const struct gw_job_model_actor *actor = &m->actors[rank];
    bool is_late =
        actor->turn_at != GW_TIME_NEVER && !gw_time_before(gw_job_model_now(m), actor->turn_at);
    return is_late || gw_endpoint_node(gw_job_model_endpoint(m, rank))->event_count;
}

/* Lets ranks act; returns when one must again. Whatever has happened to a rank by a timer may have
 * given it something to do. */
static gw_time turn_all(struct gw_job_model *m, bool has_fired)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t rank = 0; rank < m->cfg->world; rank++) {
        struct gw_job_model_actor *actor = &m->actors[rank];
        if (!gw_job_model_is_up(actor))
            continue;
        if (has_fired || is_due(m, rank)) {
            gw_job_model_rank_turn(m, rank);
            if (gw_job_model_rank_goes(m, rank))
                continue;
            actor->turn_at = gw_communicator_has_work(actor->comm)
                                 ? gw_time_add(gw_job_model_now(m), WORK)
                                 : gw_communicator_deadline(actor->comm);
        }
        next = gw_deadline_before(actor->turn_at, next) ? actor->turn_at : next;
    }
    return next;
}

static void turn_home(struct gw_job_model *m)
{
    struct gw_event event;
    for (uint32_t server = 0; server < m->cfg->servers; server++)
        while (m->homes[server].is_up &&
               gw_endpoint_poll(gw_job_model_endpoint(m, m->cfg->world + server), &event, 1))
            if (server == 0)
                gw_registrar_event(m->homes[0].registrar, &event, gw_job_model_now(m));
}

static bool is_over(const struct gw_job_model *m)
{
    for (uint32_t rank = 0; rank < m->cfg->world; rank++)
        if (gw_job_model_is_up(&m->actors[rank]))
            return false;
    return m->faults == 0;
}

static void check_guard(const struct gw_job_model *m)
{
    if (gw_time_before(gw_job_model_now(m), m->guard))
        return;
    for (uint32_t rank = 0; rank < m->cfg->world; rank++) {
        const struct gw_job_model_actor *actor = &m->actors[rank];
        print_message("rank %u: state %u, %u calls in work, of its %u + %u it has begun %u + %u\n",
                      rank, actor->state, actor->in_work, actor->count[0], actor->count[1],
                      actor->next[0], actor->next[1]);
        for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++)
            if (actor->works[i].index)
                print_message("  call %u, of kind %u\n", actor->works[i].index,
                              m->cfg->calls[actor->works[i].index - 1].kind);
    }
    fail_msg("the job does not come to an end");
}

static void run(struct gw_job_model *m)
{
    uint32_t steps = 0;
    while (!is_over(m)) {
        bool has_fired;
        gw_time next = fire_due(m, &has_fired), rank_next = turn_all(m, has_fired);
        turn_home(m);
        check_guard(m);
        next = gw_deadline_before(rank_next, next) ? rank_next : next;
        gw_mem_step(m->net.mem, next);
        assert_true(steps++ < STEPS_MAX);
    }
    m->result->time = gw_job_model_now(m) - m->begin;
}

/* Until nothing moves; then everything is where it was. */
static void drain(struct gw_job_model *m)
{
    uint32_t steps = 0;
    if (m->cfg->stranger)
        m->cfg->hush(m->cfg->stranger);
    for (uint32_t i = 0; i < m->timer_count; i++)
        if (m->timers[i].kind == GW_JOB_MODEL_LOSE)
            lose(m, m->timers[i].a, m->timers[i].b);
    do {
        turn_home(m);
        assert_true(steps++ < STEPS_MAX);
    } while (gw_mem_step(m->net.mem, GW_TIME_NEVER));
    turn_home(m);
}

static void forget_jobs(struct gw_job_model *m)
{
    for (uint32_t i = 0; i < m->net.switch_count; i++) {
        const struct gw_tree_switch *s = &m->net.switches[i];
        if (s->is_dead)
            continue;
        uint64_t *sum = (uint64_t *)&m->result->switches;
        const uint64_t *stats = (const uint64_t *)gw_aggregate_stats(s->aggregate);
        for (size_t j = 0; j < sizeof(m->result->switches) / sizeof(*sum); j++)
            sum[j] += stats[j];
        for (uint32_t server = 0; server < m->cfg->servers; server++) {
            uint32_t job = gw_job_shard(GW_JOB_MODEL_NUMBER, server);
            gw_aggregate_remove(s->aggregate, job);
            gw_aggregate_remove(s->aggregate, gw_job_shard_direct(job));
        }
        assert_int_equal(gw_aggregate_taken(s->aggregate), 0);
    }
}

uint32_t gw_job_model_stranger_address(const struct gw_job_model_cfg *cfg)
{
    return FIRST_ADDRESS + cfg->world + cfg->servers;
}

static void open_network(struct gw_job_model *m)
{
    const struct gw_job_model_cfg *cfg = m->cfg;
    struct gw_tree_net *net = &m->net;
    uint32_t hosts = cfg->world + cfg->servers + (cfg->stranger != NULL);
    gw_tree_net_init(net, &(struct gw_tree_net_cfg){
                              .seed = cfg->seed,
                              .racks = cfg->racks,
                              .pods = cfg->pods,
                              .host_count = hosts,
                              .first_address = FIRST_ADDRESS,
                              .alias = ALIAS,
                              .mtu = 4 * cfg->values,
                              .frames_max = FRAMES_MAX,
                              .pkts = PKTS,
                              .queue_bytes = cfg->queue_bytes,
                              .aggregators = cfg->aggregators,
                              .job_idle = SWITCH_IDLE,
                              .lose_of_64 = cfg->lose_of_64,
                              .double_of_64 = cfg->double_of_64,
                              .delay_of_64 = cfg->delay_of_64,
                          });
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        struct gw_endpoint_cfg *endpoint = &net->hosts[rank].cfg;
        net->hosts[rank].home = cfg->rank_home[rank];
        endpoint->tx_flows_max = endpoint->rx_flows_max = endpoint->expect_max = 0;
        endpoint->stall = GW_JOB_MODEL_STALL * 2 / 3;
        endpoint->report_every = 20 * GW_US;
        endpoint->early_packets = 5 * rank;
        const struct gw_communicator_cfg comm = gw_job_model_comm_cfg(m, rank);
        gw_communicator_demand(&comm, endpoint);
    }
    for (uint32_t server = 0; server < cfg->servers; server++) {
        net->hosts[cfg->world + server].home = cfg->server_home[server];
        gw_job_model_home_demand(cfg, &net->hosts[cfg->world + server].cfg);
    }
    if (cfg->stranger) {
        net->hosts[hosts - 1].home = cfg->stranger_home;
        net->hosts[hosts - 1].stranger = cfg->stranger;
        net->hosts[hosts - 1].stranger_pool = cfg->stranger_pool;
    }
    gw_tree_net_open(net);
    m->begin = gw_job_model_now(m);
}

static void start_all(struct gw_job_model *m)
{
    for (uint32_t server = 0; server < m->cfg->servers; server++)
        gw_job_model_home_start(m, server);
    for (uint32_t rank = 0; rank < m->cfg->world; rank++)
        gw_job_model_rank_start(m, rank);
    for (uint32_t i = 0; i < GW_JOB_MODEL_FAULTS_MAX; i++) {
        const struct gw_job_model_fault *what = &m->cfg->faults[i];
        if (what->at)
            gw_job_model_at(m, what->at, GW_JOB_MODEL_DIE, i, 0);
        if (what->at && what->back)
            gw_job_model_at(m, what->back, GW_JOB_MODEL_RETURN, i, 0);
        m->faults += (what->at != 0) + (what->at && what->back);
    }
    m->guard = gw_time_add(m->begin, PATIENCE);
    beat(m);
}

void gw_job_model_run(const struct gw_job_model_cfg *cfg, struct gw_job_model_result *result)
{
    struct gw_job_model *m = gw_test_take(sizeof(*m));
    assert_in_range(cfg->world, 1, GW_JOB_MODEL_RANKS_MAX);
    assert_in_range(cfg->servers, 1, GW_JOB_MODEL_SERVERS_MAX);
    assert_in_range(cfg->call_count, 0, GW_JOB_MODEL_CALLS_MAX);
    *m = (struct gw_job_model){.cfg = cfg, .result = result};
    *result = (struct gw_job_model_result){0};
    m->prng = gw_prng_derive(cfg->seed, 2);
    m->transport = gw_test_transport("smartt", "spray", "timeout");
    m->parts_transport = gw_test_transport("dlcp", "spray", "timeout");
    open_network(m);
    start_all(m);
    run(m);
    drain(m);
    for (uint32_t server = 0; server < cfg->servers; server++)
        gw_job_model_home_close(m, server);
    gw_job_model_check_graves(m);
    forget_jobs(m);
    gw_tree_net_close(&m->net);
    free(m);
}
