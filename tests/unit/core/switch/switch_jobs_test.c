/*
 * Job control in switches: three in a row, workers at each, the server at the last. Packets are
 * carried from node to node by hand, so that each can be lost, doubled or held back.
 */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/cpu.h"
#include "base/prng.h"
#include "core/control/job_tree.h"

enum {
    /* Hosts: 0 and 1 at the first switch, 2 at the second, the others at the third. */
    OTHER_SERVER = 3,
    SERVER = 4,
    HOSTS = 5,
    NOBODY = UINT16_MAX,
    SWITCHES = 3,
    ADDRESS = 100, /* of the first switch; the others follow */
    /* Ports: two parallel links onward, one back, then hosts. */
    ONWARD = 0,
    BACK = 2,
    FIRST_HOST = 3,
    PORTS = 5,
    PKTS = 64,
    HDR = 52,
    JOB = 9,
    EPOCH = 4,
    LIFE = 77, /* incarnation of the server */
    JOBS_MAX = 3,
    MEMBERS_MAX = 40,
};

#define LEAK GW_MS
#define IDLE (10 * GW_MS)

static const uint64_t seed = 12;

struct chain {
    struct gw_pkt_pool pool;
    struct gw_switch *sw[SWITCHES];
    struct gw_aggregate *stages[SWITCHES]; /* or NULL */
    uint16_t leaves[SWITCHES][HOSTS];
    gw_time now;
};

struct shape {
    bool has_no_stage[SWITCHES];
    bool spreads[SWITCHES]; /* has two ways on */
    gw_time idle;
    struct gw_tenants tenants; /* with two of them there is a place for each, and two more */
};

static uint32_t home_of(uint32_t host)
{
    return host < 2 ? 0 : host == 2 ? 1 : 2;
}

static uint16_t port_of(uint32_t host)
{
    return (uint16_t)(FIRST_HOST + (host == 1 || host == SERVER));
}

static void open_switch(struct chain *c, const struct shape *shape, uint32_t k)
{
    static const uint16_t both[] = {ONWARD, ONWARD + 1};
    static const struct gw_switch_set sets[] = {{.first = 0, .count = 2}};
    static const bool is_edge[PORTS] = {[FIRST_HOST] = true, [FIRST_HOST + 1] = true};
    for (uint32_t host = 0; host < HOSTS; host++)
        c->leaves[k][host] = home_of(host) == k  ? port_of(host)
                             : home_of(host) < k ? BACK
                             : shape->spreads[k] ? GW_ROUTE_SET
                                                 : ONWARD;
    struct gw_aggregate_cfg aggregate = {.aggregators = 4,
                                         .jobs_max = shape->tenants.count ? 4 : JOBS_MAX,
                                         .tenants = shape->tenants,
                                         .members_max = MEMBERS_MAX,
                                         .leak = LEAK,
                                         .job_idle = shape->idle,
                                         .kernels = gw_kernels_best(gw_cpu_features()),
                                         .pool = &c->pool};
    if (!shape->has_no_stage[k])
        c->stages[k] = gw_aggregate_init(gw_test_take(gw_aggregate_size(&aggregate)), &aggregate);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "fifo", &c->pool);
    cfg.trim_size = HDR;
    cfg.aggregate = c->stages[k];
    cfg.address = ADDRESS + k;
    cfg.is_edge = is_edge;
    cfg.routes = gw_test_routes(c->leaves[k], HOSTS);
    cfg.routes.sets = sets;
    cfg.routes.members = both;
    c->sw[k] = gw_test_switch_open(&cfg);
}

static void chain_open(struct chain *c, const struct shape *shape)
{
    *c = (struct chain){.now = (gw_time)0 - GW_MS}; /* wraps soon */
    gw_test_pool_open(&c->pool, NULL, PKTS, 0);
    for (uint32_t k = 0; k < SWITCHES; k++)
        open_switch(c, shape, k);
}

static void chain_close(struct chain *c)
{
    gw_test_pool_close(&c->pool);
    for (uint32_t k = 0; k < SWITCHES; k++) {
        free(c->sw[k]);
        free(c->stages[k]);
    }
}

/*
 * Carries a packet, and whatever comes of it, to the end, beginning at switch `k`. Returns the host
 * that got it and sets *arrived, or NOBODY.
 */
static uint32_t travel(struct chain *c, const struct gw_pkt *copy, uint32_t k,
                       struct gw_pkt *arrived)
{
    struct gw_pkt *pkt = gw_pkt_claim(&c->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    for (;;) {
        struct gw_node *node = gw_switch_node(c->sw[k]);
        gw_node_input(node, 0, &pkt, 1, c->now);
        if (node->ready_count == 0)
            return NOBODY;
        assert_int_equal(node->ready_count, 1);
        uint16_t port = node->ready[0];
        node->ready_count = 0;
        assert_int_equal(gw_node_output(node, port, &pkt, 1, c->now), 1);
        if (port >= FIRST_HOST)
            break;
        k = port == BACK ? k - 1 : k + 1;
    }
    *arrived = *pkt;
    gw_pkt_release(&c->pool, pkt);
    return arrived->dst;
}

static struct gw_pkt job_pkt(enum gw_job_op op, uint32_t src, uint32_t dst)
{
    return (struct gw_pkt){
        .q = {.size = HDR, .class = GW_CLASS_CONTROL, .kind = GW_PKT_JOB},
        .src = src,
        .dst = dst,
        .flow = JOB,
        .key = LIFE,
        .epoch = EPOCH,
        .agg_flags = op,
        .buf = GW_BUF_NONE,
    };
}

/* What arrives at the server of the way of a worker. */
static struct gw_pkt join(struct chain *c, uint32_t worker)
{
    struct gw_pkt pkt = job_pkt(GW_JOB_JOIN, worker, SERVER), arrived;
    assert_int_equal(travel(c, &pkt, home_of(worker), &arrived), SERVER);
    return arrived;
}

static void expect_way(struct chain *c, uint32_t worker, uint8_t path, uint32_t a, uint32_t b,
                       uint32_t d)
{
    struct gw_pkt pkt = join(c, worker);
    assert_int_equal(pkt.scale, path);
    assert_int_equal(pkt.job.word[0], a);
    assert_int_equal(pkt.job.word[1], b);
    assert_int_equal(pkt.job.word[2], d);
}

static void join__collects_the_switches_on_the_way(void **state)
{
    (void)state;
    struct chain c;
    chain_open(&c, &(struct shape){0});
    expect_way(&c, 0, 3, ADDRESS, ADDRESS + 1, ADDRESS + 2);
    expect_way(&c, 2, 2, ADDRESS + 1, ADDRESS + 2, 0);
    expect_way(&c, OTHER_SERVER, 1, ADDRESS + 2, 0, 0);
    chain_close(&c);
    chain_open(&c, &(struct shape){.has_no_stage = {false, true, false}});
    expect_way(&c, 0, 2, ADDRESS, ADDRESS + 2, 0);
    expect_way(&c, 2, 1, ADDRESS + 2, 0, 0);
    chain_close(&c);
}

/* Where packets spread over several ways, only the server's switch is sure to see all again. */
static void join__leaves_out_what_does_not_see_all(void **state)
{
    (void)state;
    struct chain c;
    chain_open(&c, &(struct shape){.spreads = {true}});
    expect_way(&c, 0, GW_JOB_PATH_SPREAD | 2, ADDRESS, ADDRESS + 2, 0);
    expect_way(&c, 2, 2, ADDRESS + 1, ADDRESS + 2, 0);
    chain_close(&c);
    chain_open(&c, &(struct shape){.spreads = {false, true}});
    expect_way(&c, 0, GW_JOB_PATH_SPREAD | 3, ADDRESS, ADDRESS + 1, ADDRESS + 2);
    chain_close(&c);
    chain_open(&c, &(struct shape){.spreads = {true}, .has_no_stage = {true, false, true}});
    expect_way(&c, 0, GW_JOB_PATH_SPREAD, 0, 0, 0); /* a switch that adds up nothing says it too */
    chain_close(&c);
}

static void join__keeps_the_last_of_too_many(void **state)
{
    (void)state;
    struct chain c;
    struct gw_pkt pkt = job_pkt(GW_JOB_JOIN, 2, SERVER), arrived;
    pkt.scale = GW_JOB_PATH_FRESH | 2;
    pkt.job.word[0] = 7;
    pkt.job.word[1] = 8;
    chain_open(&c, &(struct shape){0});
    assert_int_equal(travel(&c, &pkt, 1, &arrived), SERVER);
    assert_int_equal(arrived.scale, GW_JOB_PATH_FRESH | 3);
    assert_int_equal(arrived.job.word[0], 7);
    assert_int_equal(arrived.job.word[1], 8);
    assert_int_equal(arrived.job.word[2], ADDRESS + 2); /* and not ADDRESS + 1 */
    pkt.scale = 32;
    assert_int_equal(travel(&c, &pkt, 1, &arrived), NOBODY);
    assert_true(gw_switch_stats(c.sw[1])->malformed == 1);
    chain_close(&c);
}

/* A job as the server knows it, for one switch. */
struct wanted {
    uint32_t k; /* switch */
    uint32_t server;
    uint32_t via;
    uint32_t life;
    uint32_t job;
    uint16_t epoch;
    struct gw_job_spot spot;
    uint32_t count;
    uint32_t members[GW_FAN_IN_MAX];
    uint16_t workers[GW_FAN_IN_MAX]; /* by position */
};

static struct wanted wanted_at(uint32_t k)
{
    struct wanted w = {.k = k,
                       .server = SERVER,
                       .via = 0,
                       .life = LIFE,
                       .job = JOB,
                       .epoch = EPOCH,
                       .spot = {.level = 1, .fan_in = 2, .above = {0, 5}},
                       .count = 3,
                       .workers = {1, GW_WORLD_MAX}};
    for (uint32_t i = 0; i < GW_FAN_IN_MAX; i++)
        w.members[i] = i;
    return w;
}

static struct gw_pkt install_pkt(const struct wanted *w, uint32_t index)
{
    struct gw_pkt pkt = job_pkt(GW_JOB_INSTALL, w->server, w->via);
    pkt.flow = w->job;
    pkt.key = w->life;
    pkt.epoch = w->epoch;
    pkt.index = (uint16_t)index;
    pkt.seq = w->count;
    pkt.job.word[0] = w->members[index % GW_FAN_IN_MAX];
    pkt.job.word[1] = gw_job_spot_pack(&w->spot, w->workers[index % GW_FAN_IN_MAX]);
    pkt.job.word[2] = ADDRESS + w->k;
    return pkt;
}

/* Sends it from the server's switch; the answer must say this. */
static void expect_answer(struct chain *c, const struct gw_pkt *pkt, enum gw_job_reason reason,
                          uint32_t known)
{
    struct gw_pkt arrived;
    assert_int_equal(travel(c, pkt, 2, &arrived), pkt->src);
    assert_int_equal(arrived.q.kind, GW_PKT_JOB);
    assert_int_equal(arrived.agg_flags, GW_JOB_INSTALLED);
    assert_int_equal(arrived.index, reason);
    assert_int_equal(arrived.seq, known);
    assert_int_equal(arrived.src, pkt->job.word[2]);
    assert_int_equal(arrived.job.word[2], pkt->job.word[2]);
    assert_true(arrived.flow == pkt->flow && arrived.key == pkt->key);
    assert_int_equal(arrived.epoch, pkt->epoch);
    assert_int_equal(arrived.q.key, gw_flow_key(arrived.src, arrived.dst, arrived.flow));
}

static void expect_dropped(struct chain *c, const struct gw_pkt *pkt, uint32_t k)
{
    struct gw_pkt arrived;
    uint64_t before = gw_switch_stats(c->sw[k])->malformed;
    assert_int_equal(travel(c, pkt, 2, &arrived), NOBODY);
    assert_true(gw_switch_stats(c->sw[k])->malformed == before + 1);
}

/* A worker says whom it asks, on a way by all switches. */
static void ask_as(struct chain *c, uint32_t worker, uint32_t job, uint32_t server)
{
    struct gw_pkt pkt = job_pkt(GW_JOB_READY, worker, server), arrived;
    pkt.flow = job;
    assert_int_equal(travel(c, &pkt, home_of(0), &arrived), server);
    assert_memory_equal(&arrived.job, &pkt.job, sizeof(pkt.job));
}

static void ask(struct chain *c, uint32_t job, uint32_t server)
{
    ask_as(c, 0, job, server);
}

static void install(struct chain *c, const struct wanted *w, uint32_t index,
                    enum gw_job_reason reason, uint32_t known)
{
    struct gw_pkt pkt = install_pkt(w, index);
    ask_as(c, w->members[index], w->job, w->server);
    expect_answer(c, &pkt, reason, known);
}

static void install_all(struct chain *c, const struct wanted *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        install(c, w, i, GW_JOB_OK, i + 1);
}

static void remove_job(struct chain *c, const struct wanted *w)
{
    struct gw_pkt pkt = install_pkt(w, 0);
    pkt.agg_flags = GW_JOB_REMOVE;
    expect_answer(c, &pkt, GW_JOB_OK, 0);
}

static const struct gw_aggregate_job *active(const struct chain *c, const struct wanted *w)
{
    return gw_aggregate_job(c->stages[w->k], w->job);
}

static void expect_active(const struct chain *c, const struct wanted *w)
{
    const struct gw_aggregate_job *job = active(c, w);
    assert_non_null(job);
    assert_int_equal(job->epoch, w->epoch);
    assert_int_equal(job->level, w->spot.level);
    assert_int_equal(job->fan_in, w->spot.fan_in);
    assert_memory_equal(job->above, w->spot.above, sizeof(job->above));
    assert_int_equal(job->member_count, w->count);
    assert_memory_equal(job->members, w->members, w->count * sizeof(*w->members));
    assert_memory_equal(job->workers, w->workers, w->spot.fan_in * sizeof(*w->workers));
}

static void install__collects_members_in_any_order(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(1);
    chain_open(&c, &(struct shape){0});
    install(&c, &w, 2, GW_JOB_OK, 1);
    install(&c, &w, 0, GW_JOB_OK, 2);
    install(&c, &w, 2, GW_JOB_OK, 2);
    assert_null(active(&c, &w));
    install(&c, &w, 1, GW_JOB_OK, 3);
    expect_active(&c, &w);
    for (uint32_t i = 0; i < w.count; i++)
        install(&c, &w, i, GW_JOB_OK, 3);
    expect_active(&c, &w);
    for (uint32_t k = 0; k < SWITCHES; k += 2) /* the other switches on the way know nothing */
        assert_null(gw_aggregate_job(c.stages[k], JOB));
    chain_close(&c);
}

/* Without a stage, or with another address, it is a packet like others. */
static void install__for_others_goes_on(void **state)
{
    (void)state;
    struct chain c;
    struct gw_pkt pkt, arrived;
    struct wanted w = wanted_at(1);
    chain_open(&c, &(struct shape){.has_no_stage = {false, true, false}});
    pkt = install_pkt(&w, 0);
    assert_int_equal(travel(&c, &pkt, 2, &arrived), w.via);
    assert_memory_equal(&arrived, &pkt, sizeof(pkt));
    for (uint8_t op = 0; op < GW_JOB_OPS; op++) {
        pkt.job.word[2] = ADDRESS + 2;
        pkt.agg_flags = op;
        if (op == GW_JOB_JOIN || op == GW_JOB_INSTALL || op == GW_JOB_REMOVE)
            continue; /* only these concern switches */
        assert_int_equal(travel(&c, &pkt, 2, &arrived), w.via);
        assert_memory_equal(&arrived, &pkt, sizeof(pkt));
    }
    chain_close(&c);
}

static void install__of_another_server_finds_it_taken(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(1), other = w;
    chain_open(&c, &(struct shape){0});
    other.server = OTHER_SERVER;
    other.epoch++;
    install(&c, &w, 0, GW_JOB_OK, 1);
    install(&c, &other, 0, GW_JOB_TAKEN, 0); /* even while it is incomplete */
    install(&c, &w, 1, GW_JOB_OK, 2);
    install(&c, &w, 2, GW_JOB_OK, 3);
    install(&c, &other, 1, GW_JOB_TAKEN, 0);
    remove_job(&c, &other); /* not the other's to remove */
    expect_active(&c, &w);
    remove_job(&c, &w);
    assert_null(active(&c, &w));
    install_all(&c, &other);
    expect_active(&c, &other);
    chain_close(&c);
}

static void install__counts_from_whom_workers_ask_alone(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(1), other = w;
    chain_open(&c, &(struct shape){.idle = IDLE});
    other.server = OTHER_SERVER;
    struct gw_pkt early = install_pkt(&other, 0);
    expect_dropped(&c, &early, 1);
    ask(&c, JOB, SERVER);
    ask(&c, JOB, OTHER_SERVER); /* too late: the other one is asked already */
    expect_dropped(&c, &early, 1);
    install_all(&c, &w);
    expect_active(&c, &w);
    c.now += IDLE;
    ask(&c, JOB, OTHER_SERVER);
    expect_answer(&c, &early, GW_JOB_TAKEN,
                  0); /* until what is installed has been silent as well */
    chain_close(&c);
}

static void install__leaves_alone_what_it_did_not_install(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(0);
    const struct gw_aggregate_job by_hand = {
        .job = JOB, .epoch = 1, .fan_in = 1, .member_count = 1, .members = w.members};
    chain_open(&c, &(struct shape){.idle = IDLE});
    assert_int_equal(gw_aggregate_install(c.stages[0], &by_hand), 0);
    install(&c, &w, 0, GW_JOB_TAKEN, 0);
    remove_job(&c, &w);
    assert_int_equal(active(&c, &w)->epoch, 1);
    chain_close(&c);
}

static void install__has_room_for_so_many(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w[JOBS_MAX + 1], large = wanted_at(2);
    chain_open(&c, &(struct shape){0});
    for (uint32_t i = 0; i <= JOBS_MAX; i++) {
        w[i] = wanted_at(2);
        w[i].job = JOB + i;
    }
    for (uint32_t i = 0; i < JOBS_MAX; i++)
        install_all(&c, &w[i]);
    install(&c, &w[JOBS_MAX], 0, GW_JOB_ROOM, 0);
    remove_job(&c, &w[0]);
    install_all(&c, &w[JOBS_MAX]);
    for (uint32_t i = 1; i <= JOBS_MAX; i++)
        expect_active(&c, &w[i]);
    remove_job(&c, &w[1]);
    /* Now members are short: 6 are there. It is forgotten whole, so that it can come again. */
    large.count = GW_FAN_IN_MAX;
    install_all(&c, &large);
    struct wanted second = w[1];
    remove_job(&c, &w[2]);
    second.count = 6;
    for (uint32_t i = 0; i + 1 < second.count; i++)
        install(&c, &second, i, GW_JOB_OK, i + 1);
    install(&c, &second, 5, GW_JOB_ROOM, 0);
    assert_null(active(&c, &second));
    remove_job(&c, &w[3]);
    install_all(&c, &second);
    expect_active(&c, &second);
    expect_active(&c, &large);
    chain_close(&c);
}

/* A worker's fragment that the stage holds. */
static void hold_gradient(struct chain *c, const struct wanted *w)
{
    struct gw_pkt pkt = {.q = {.kind = GW_PKT_GRAD, .size = HDR},
                         .src = 2,
                         .dst = SERVER,
                         .flow = w->job,
                         .epoch = w->epoch,
                         .buf = GW_BUF_NONE,
                         .agg = {.bitmap = 1, .values = 1, .level = 1, .above = {0, 5}}};
    struct gw_pkt arrived;
    assert_int_equal(travel(c, &pkt, w->k, &arrived), NOBODY);
    assert_int_equal(gw_aggregate_taken(c->stages[w->k]), 1);
}

/* Of four places a tenant can have three, whatever jobs he opens; a stranger the two that are
 * nobody's. */
static void install__leaves_a_place_to_every_tenant(void **state)
{
    enum { GREEDY, POLITE, STRANGER };
    (void)state;
    for (uint32_t who = GREEDY; who <= STRANGER; who += STRANGER) {
        struct chain c;
        struct wanted w = wanted_at(2);
        const uint32_t places = who == GREEDY ? 3 : 2;
        chain_open(&c, &(struct shape){.tenants = {.keys = {GREEDY, POLITE}, .count = 2}});
        for (uint32_t i = 0; i <= places; i++) {
            w.job = gw_job_number(who, 1 + i);
            if (i < places)
                install_all(&c, &w);
            else
                install(&c, &w, 0, GW_JOB_ROOM, 0);
        }
        w.job = gw_job_number(POLITE, 1);
        install_all(&c, &w);
        expect_active(&c, &w);
        struct gw_tenant_use use = {.jobs = 0};
        gw_switch_use(c.sw[2], who, &use);
        assert_int_equal(use.jobs, places);
        assert_int_equal(use.jobs_refused, 1);
        chain_close(&c);
    }
}

/* A tenant whose workers ask for jobs without end makes a switch forget his own alone. */
static void install__whatever_others_ask_for(void **state)
{
    enum { GREEDY, POLITE, MANY = 100 };
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(2);
    chain_open(&c, &(struct shape){.tenants = {.keys = {GREEDY, POLITE}, .count = 2}});
    w.job = gw_job_number(POLITE, 1);
    for (uint32_t i = 0; i < w.count; i++)
        ask_as(&c, w.members[i], w.job, SERVER);
    for (uint32_t i = 1; i <= MANY; i++) {
        c.now += GW_US;
        ask(&c, gw_job_number(GREEDY, i), SERVER);
    }
    for (uint32_t i = 0; i < w.count; i++) {
        struct gw_pkt pkt = install_pkt(&w, i);
        expect_answer(&c, &pkt, GW_JOB_OK, i + 1);
    }
    expect_active(&c, &w);
    chain_close(&c);
}

static void install__of_a_new_epoch_replaces_the_old_one(void **state)
{
    (void)state;
    struct chain c;
    struct wanted old = wanted_at(1), new = old, life = old;
    chain_open(&c, &(struct shape){0});
    new.epoch++;
    new.spot.level = 2;
    new.count = 2;
    new.members[0] = 2;
    install_all(&c, &old);
    hold_gradient(&c, &old);
    install(&c, &new, 1, GW_JOB_OK, 1);
    assert_int_equal(gw_aggregate_taken(c.stages[1]), 0);
    install(&c, &old, 0, GW_JOB_OK, 0); /* late: nothing is known of it any more */
    remove_job(&c, &old);               /* late as well */
    install(&c, &new, 0, GW_JOB_OK, 2);
    expect_active(&c, &new);
    remove_job(&c, &old);
    expect_active(&c, &new);
    /* The server begins another life, whose epochs have nothing to do with the earlier ones. */
    life.life++;
    life.epoch = 1;
    install_all(&c, &life);
    expect_active(&c, &life);
    /* Epochs are compared around their wrap. */
    life.epoch = 32000;
    install_all(&c, &life);
    life.epoch = 64000;
    install_all(&c, &life);
    life.epoch = 1;
    install_all(&c, &life);
    expect_active(&c, &life);
    remove_job(&c, &life);
    assert_null(active(&c, &life));
    chain_close(&c);
}

static void install__never_changes_an_epoch(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(1);
    chain_open(&c, &(struct shape){0});
    for (uint32_t complete = 0; complete < 2; complete++) {
        for (uint32_t i = 0; i < (complete ? w.count : 1); i++)
            install(&c, &w, i, GW_JOB_OK, complete && i == 0 ? 1 : i + 1);
        struct wanted changed[] = {w, w, w, w, w, w};
        changed[0].spot.level = 0;
        changed[1].spot.fan_in = 1;
        changed[2].spot.above[1] = 6;
        changed[3].count++;
        changed[4].members[0]++;
        changed[5].workers[0]++;
        for (size_t i = 0; i < GW_COUNT_OF(changed); i++) {
            struct gw_pkt pkt = install_pkt(&changed[i], 0);
            expect_dropped(&c, &pkt, 1);
        }
    }
    expect_active(&c, &w);
    chain_close(&c);
}

static void install__drops_what_cannot_be(void **state)
{
    (void)state;
    struct chain c;
    chain_open(&c, &(struct shape){0});
    for (uint32_t i = 0; i < 14; i++) {
        struct wanted w = wanted_at(1);
        uint32_t index = 0;
        w.spot.level = i == 0 ? GW_LEVELS_MAX : 0;
        w.spot.fan_in = i == 1 ? 0 : i == 2 ? GW_FAN_IN_MAX + 1 : i == 3 ? 4 : 2;
        w.workers[0] = i == 4 ? 0 : i == 5 ? GW_WORLD_MAX + 1 : i == 10 ? 2047 : 1;
        w.count = i == 2 || i == 6 ? GW_FAN_IN_MAX + 1 : i == 7 ? 0 : 3;
        index = i == 8 ? 3 : i == 11 ? 2 : 0;
        w.workers[2] = i == 11; /* there is no such position */
        w.epoch = i == 9 ? 0 : EPOCH;
        struct gw_pkt pkt = install_pkt(&w, index);
        pkt.job.word[1] |= i >= 12 ? UINT32_C(1) << (18 + i) : 0; /* bits that mean nothing */
        print_message("case %u\n", i);
        expect_dropped(&c, &pkt, 1);
    }
    /* And the largest that can be. */
    struct wanted w = wanted_at(1);
    w.count = GW_FAN_IN_MAX;
    w.spot = (struct gw_job_spot){
        .level = GW_LEVELS_MAX - 1, .fan_in = GW_FAN_IN_MAX, .above = {31, 31}};
    for (uint32_t i = 0; i < w.count; i++)
        w.workers[i] = GW_WORLD_MAX;
    install_all(&c, &w);
    expect_active(&c, &w);
    chain_close(&c);
}

/* Calls expire when it is due, and no earlier. */
static void pass_until(struct chain *c, uint32_t k, gw_time end)
{
    struct gw_node *node = gw_switch_node(c->sw[k]);
    while (node->deadline != GW_TIME_NEVER && !gw_time_before(end, node->deadline)) {
        c->now = node->deadline;
        gw_node_expire(node, c->now);
        assert_true(node->deadline == GW_TIME_NEVER || gw_time_before(c->now, node->deadline));
    }
    c->now = end;
}

static void expire__forgets_what_nobody_refreshes(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w[2] = {wanted_at(1), wanted_at(1)};
    chain_open(&c, &(struct shape){.idle = IDLE});
    const struct gw_node *node = gw_switch_node(c.sw[1]);
    gw_time start = c.now;
    w[1].job++;
    install_all(&c, &w[0]);
    install(&c, &w[1], 0, GW_JOB_OK, 1); /* incomplete */
    hold_gradient(&c, &w[0]);
    pass_until(&c, 1, start + IDLE - 1);
    assert_int_equal(gw_aggregate_taken(c.stages[1]), 0); /* the sweep goes on as ever */
    install(&c, &w[0], 2, GW_JOB_OK, 3);
    pass_until(&c, 1, start + IDLE);
    assert_true(gw_switch_stats(c.sw[1])->jobs_idle == 1);
    install(&c, &w[1], 1, GW_JOB_OK, 1); /* begins anew */
    expect_active(&c, &w[0]);
    pass_until(&c, 1, start + 2 * IDLE - 2);
    expect_active(&c, &w[0]);
    pass_until(&c, 1, start + 2 * IDLE - 1);
    assert_null(active(&c, &w[0]));
    assert_true(node->deadline == start + 2 * IDLE);
    pass_until(&c, 1, start + 2 * IDLE);
    assert_true(gw_switch_stats(c.sw[1])->jobs_idle == 3);
    assert_true(node->deadline == GW_TIME_NEVER);
    chain_close(&c);
}

static void expire__never_without_a_limit(void **state)
{
    (void)state;
    struct chain c;
    struct wanted w = wanted_at(1);
    chain_open(&c, &(struct shape){0});
    install_all(&c, &w);
    assert_true(gw_switch_node(c.sw[1])->deadline == GW_TIME_NEVER);
    hold_gradient(&c, &w);
    pass_until(&c, 1, c.now + GW_S);
    expect_active(&c, &w);
    assert_int_equal(gw_aggregate_taken(c.stages[1]), 0);
    chain_close(&c);
}

/*
 * A whole job: ways by JOIN, the tree, and INSTALLs and their answers that are lost, doubled and
 * late, until all switches have confirmed. What is then active is the tree.
 */
static void install__completes_over_bad_links(void **state)
{
    (void)state;
    enum {
        LATE_MAX = 16,
        ROUNDS = 200,
    };
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct chain c;
        struct gw_job_tree tree;
        struct gw_job_way ways[HOSTS - 1];
        struct gw_pkt late[LATE_MAX];
        uint32_t late_count = 0, confirmed = 0;
        chain_open(&c, &(struct shape){.spreads = {round & 1}});
        for (uint32_t worker = 0; worker < HOSTS - 1; worker++) {
            struct gw_pkt pkt = join(&c, worker);
            ways[worker] =
                (struct gw_job_way){.worker = worker, .count = pkt.scale & GW_JOB_PATH_COUNT};
            memcpy(ways[worker].switches, pkt.job.word, sizeof(pkt.job.word));
        }
        void *memory = gw_test_take(gw_job_tree_size(HOSTS - 1));
        assert_int_equal(gw_job_tree_make(&tree, memory, ways, HOSTS - 1, 3), GW_JOB_OK);
        while (confirmed != (1u << tree.node_count) - 1) {
            const struct gw_job_node *node = &tree.nodes[gw_prng_below(&prng, tree.node_count)];
            struct wanted w = {.k = node->address - ADDRESS,
                               .server = SERVER,
                               .via = node->via,
                               .life = LIFE,
                               .job = JOB,
                               .epoch = EPOCH,
                               .spot = node->spot,
                               .count = node->member_count};
            memcpy(w.members, tree.members + node->first_member, w.count * sizeof(*w.members));
            memcpy(w.workers, tree.workers + node->first_member, w.count * sizeof(*w.workers));
            struct gw_pkt pkt = install_pkt(&w, gw_prng_below(&prng, w.count)), arrived;
            uint32_t fate = gw_prng_below(&prng, 4);
            if (fate == 0)
                continue; /* lost */
            if (fate == 1)
                late[late_count++ % LATE_MAX] = pkt;
            if (fate == 2 && late_count)
                pkt = late[gw_prng_below(&prng, late_count < LATE_MAX ? late_count : LATE_MAX)];
            assert_int_equal(travel(&c, &pkt, 2, &arrived), SERVER);
            assert_int_equal(arrived.index, GW_JOB_OK);
            if (gw_prng_below(&prng, 4) == 0)
                continue; /* the answer is lost */
            for (uint32_t i = 0; i < tree.node_count; i++)
                if (tree.nodes[i].address == arrived.job.word[2] &&
                    tree.nodes[i].member_count == arrived.seq)
                    confirmed |= 1u << i;
        }
        for (uint32_t i = 0; i < tree.node_count; i++) {
            const struct gw_job_node *node = &tree.nodes[i];
            struct wanted w = {.k = node->address - ADDRESS,
                               .job = JOB,
                               .epoch = EPOCH,
                               .spot = node->spot,
                               .count = node->member_count};
            memcpy(w.members, tree.members + node->first_member, w.count * sizeof(*w.members));
            memcpy(w.workers, tree.workers + node->first_member, w.count * sizeof(*w.workers));
            expect_active(&c, &w);
        }
        free(memory);
        chain_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join__collects_the_switches_on_the_way),
        cmocka_unit_test(join__leaves_out_what_does_not_see_all),
        cmocka_unit_test(join__keeps_the_last_of_too_many),
        cmocka_unit_test(install__collects_members_in_any_order),
        cmocka_unit_test(install__for_others_goes_on),
        cmocka_unit_test(install__of_another_server_finds_it_taken),
        cmocka_unit_test(install__counts_from_whom_workers_ask_alone),
        cmocka_unit_test(install__leaves_alone_what_it_did_not_install),
        cmocka_unit_test(install__has_room_for_so_many),
        cmocka_unit_test(install__leaves_a_place_to_every_tenant),
        cmocka_unit_test(install__whatever_others_ask_for),
        cmocka_unit_test(install__of_a_new_epoch_replaces_the_old_one),
        cmocka_unit_test(install__never_changes_an_epoch),
        cmocka_unit_test(install__drops_what_cannot_be),
        cmocka_unit_test(expire__forgets_what_nobody_refreshes),
        cmocka_unit_test(expire__never_without_a_limit),
        cmocka_unit_test(install__completes_over_bad_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
