/*
 * A host that tries to change the sums of a job at the switch on which both hang. What it may say
 * at all has been looked at before (core/permit.h); here are packets of the job itself, of a rank
 * that takes another's place and of a server that is another job's.
 */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/cpu.h"

enum {
    RANKS = 3, /* rank r has address RANK + r and hangs on port 1 + r */
    HOSTILE = 1 + RANKS,
    UPLINK = 0,
    PORTS = HOSTILE + 1,
    PKTS = 64,
    SIZE = 100,
    RANK = 100,
    OUTSIDER = 200,
    SERVER = 7, /* above */
    OTHER_SERVER = 57,
    JOB = 9,
    OTHER_JOB = 10,
    EPOCH = 1,
    TRAIN = 8,
    TRAINS = 5000,
};

struct fixture {
    struct gw_switch *sw;
    struct gw_aggregate *aggregate;
    struct gw_pkt_pool pool;
};

static struct gw_pkt job_pkt(enum gw_job_op op, uint32_t src, uint32_t dst)
{
    return (struct gw_pkt){
        .q = {.size = SIZE, .class = GW_CLASS_CONTROL, .kind = GW_PKT_JOB},
        .src = src,
        .dst = dst,
        .flow = JOB,
        .key = 1,
        .epoch = EPOCH,
        .agg_flags = op,
        .buf = GW_BUF_NONE,
    };
}

static struct gw_pkt gradient(uint32_t src, uint32_t position)
{
    return (struct gw_pkt){
        .q = {.size = SIZE, .kind = GW_PKT_GRAD},
        .src = src,
        .dst = SERVER,
        .flow = JOB,
        .epoch = EPOCH,
        .agg = {.values = 1, .bitmap = UINT32_C(1) << position},
        .buf = GW_BUF_NONE,
    };
}

/* Feeds packets as one train; returns how many leave. */
static uint32_t feed_train(struct fixture *f, uint16_t port, const struct gw_pkt *copies,
                           uint32_t train)
{
    struct gw_node *node = gw_switch_node(f->sw);
    struct gw_pkt *pkts[TRAIN], *pkt;
    uint32_t count = 0;
    for (uint32_t i = 0; i < train; i++) {
        pkts[i] = gw_pkt_claim(&f->pool);
        *pkts[i] = copies[i];
    }
    gw_node_input(node, port, pkts, train, 0);
    for (uint16_t i = 0; i < node->ready_count; i++) {
        uint32_t result;
        do {
            result = gw_node_output(node, node->ready[i], &pkt, 1, 0);
            for (uint32_t left = result & ~GW_OUTPUT_MORE; left; left--, count++)
                gw_pkt_release(&f->pool, pkt);
        } while (result & GW_OUTPUT_MORE);
    }
    node->ready_count = 0;
    return count;
}

static uint32_t feed(struct fixture *f, uint16_t port, const struct gw_pkt *copy)
{
    return feed_train(f, port, copy, 1);
}

static void install(struct fixture *f, uint16_t port, uint32_t server, uint32_t life)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        const struct gw_job_spot spot = {.fan_in = RANKS};
        struct gw_pkt pkt = job_pkt(GW_JOB_INSTALL, server, RANK);
        pkt.key = life;
        pkt.index = (uint16_t)i;
        pkt.seq = RANKS;
        pkt.job.word[0] = RANK + i;
        pkt.job.word[1] = gw_job_spot_pack(&spot, 1);
        pkt.job.word[2] = SERVER + 1;
        feed(f, port, &pkt);
    }
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    struct gw_aggregate_cfg aggregate = {
        .aggregators = 8,
        .jobs_max = 2,
        .members_max = 64,
        .leak = GW_S,
        .job_idle = GW_S,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &f->pool,
    };
    f->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&aggregate)), &aggregate);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "fifo", &f->pool);
    cfg.learned_max = 16;
    cfg.learned_idle = GW_S;
    cfg.uplink = UPLINK;
    cfg.train = 8;
    cfg.aggregate = f->aggregate;
    cfg.address = SERVER + 1;
    f->sw = gw_test_switch_open(&cfg);
    for (uint16_t i = 0; i < RANKS; i++)
        assert_int_equal(gw_switch_open_port(f->sw, 1 + i, RANK + i, true, 0), 0);
    assert_int_equal(gw_switch_open_port(f->sw, HOSTILE, OUTSIDER, true, 0), 0);
    for (uint16_t i = 0; i < RANKS; i++) {
        struct gw_pkt ask = job_pkt(GW_JOB_JOIN, RANK + i, SERVER);
        feed(f, 1 + i, &ask);
    }
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    gw_aggregate_remove(f->aggregate, JOB);
    gw_aggregate_remove(f->aggregate, OTHER_JOB);
    assert_int_equal(gw_aggregate_taken(f->aggregate), 0);
    gw_test_pool_close(&f->pool);
    free(f->aggregate);
    free(f->sw);
    free(f);
    return 0;
}

/* The sum of the ranks' gradients leaves once, whatever was tried in between. */
static void expect_sum(struct fixture *f, void (*attack)(struct fixture *f, uint32_t step))
{
    for (uint32_t i = 0; i < RANKS; i++) {
        attack(f, i);
        struct gw_pkt pkt = gradient(RANK + i, i);
        assert_int_equal(feed(f, (uint16_t)(1 + i), &pkt), i + 1 == RANKS);
    }
    assert_int_equal(gw_aggregate_stats(f->aggregate)->completed, 1);
    assert_int_equal(gw_aggregate_stats(f->aggregate)->duplicates, 0);
}

static void take_anothers_place(struct fixture *f, uint32_t step)
{
    uint32_t rank = (step + 1) % RANKS;
    uint64_t before = gw_switch_stats(f->sw)->spoofed;
    for (uint32_t position = 0; position < 32; position++) {
        struct gw_pkt pkt = gradient(RANK + rank, position);
        for (uint32_t level = 0; level < GW_LEVELS_MAX; level++) {
            pkt.agg.level = (uint8_t)level;
            if (position != rank || level != 0)
                assert_int_equal(feed(f, (uint16_t)(1 + rank), &pkt), 0);
        }
    }
    struct gw_pkt all = gradient(RANK + rank, 0);
    all.agg.bitmap = (1u << RANKS) - 1;
    all.agg_flags = GW_AGG_RESEND;
    assert_int_equal(feed(f, (uint16_t)(1 + rank), &all), 0);
    all.agg.bitmap = 0;
    assert_int_equal(feed(f, (uint16_t)(1 + rank), &all), 0);
    assert_true(gw_switch_stats(f->sw)->spoofed == before + 32 * GW_LEVELS_MAX - 1 + 2);
}

static void hostile__rank_keeps_to_its_place(void **state)
{
    struct fixture *f = *state;
    install(f, UPLINK, SERVER, 1);
    expect_sum(f, take_anothers_place);
}

static void send_results(struct fixture *f, uint32_t step)
{
    struct gw_pkt pkt = gradient(OUTSIDER, 0);
    pkt.q.kind = GW_PKT_PARAM;
    pkt.dst = RANK;
    pkt.agg.bitmap = 0;
    pkt.agg_flags = step == 1 ? GW_AGG_COLLISION : 0;
    assert_int_equal(feed(f, HOSTILE, &pkt), 0);
    assert_true(gw_aggregate_stats(f->aggregate)->freed == 0);
}

static void hostile__results_are_the_servers(void **state)
{
    struct fixture *f = *state;
    install(f, UPLINK, SERVER, 1);
    expect_sum(f, send_results);
    struct gw_pkt pkt = gradient(SERVER, 0);
    pkt.q.kind = GW_PKT_PARAM;
    pkt.dst = RANK;
    assert_int_equal(feed(f, UPLINK, &pkt), RANKS); /* as it should be */
    pkt.src = SERVER + 5; /* from above, but not from the job's: it reaches whom it names */
    assert_int_equal(feed(f, UPLINK, &pkt), 1);
}

static void install_it(struct fixture *f, uint32_t step)
{
    install(f, HOSTILE, OUTSIDER, 2 + step);
    struct gw_pkt pkt = job_pkt(GW_JOB_REMOVE, OUTSIDER, RANK);
    pkt.job.word[2] = SERVER + 1;
    feed(f, HOSTILE, &pkt);
    const struct gw_aggregate_job *job = gw_aggregate_job(f->aggregate, JOB);
    assert_true(job && job->server == SERVER && job->epoch == EPOCH);
}

static void hostile__server_installs_no_other_job(void **state)
{
    struct fixture *f = *state;
    install(f, HOSTILE, OUTSIDER, 2); /* before the job's own */
    assert_null(gw_aggregate_job(f->aggregate, JOB));
    install(f, UPLINK, SERVER, 1);
    expect_sum(f, install_it);
}

/*
 * A tenant has a job and a server of its own, and installs it with ranks of others as members, or
 * with one of its own several times. Each result would be sent to all of them.
 */
static void hostile__results_are_multiplied_to_who_asks_alone(void **state)
{
    struct fixture *f = *state;
    const struct gw_job_spot spot = {.fan_in = 1};
    struct gw_pkt ask = job_pkt(GW_JOB_JOIN, OUTSIDER, OTHER_SERVER);
    ask.flow = OTHER_JOB;
    feed(f, HOSTILE, &ask);
    for (uint32_t own = 0; own < 2; own++)
        for (uint32_t i = 0; i < GW_FAN_IN_MAX; i++) {
            struct gw_pkt pkt = job_pkt(GW_JOB_INSTALL, OTHER_SERVER, OUTSIDER);
            pkt.flow = OTHER_JOB;
            pkt.epoch = (uint16_t)(EPOCH + own);
            pkt.index = (uint16_t)i;
            pkt.seq = GW_FAN_IN_MAX;
            pkt.job.word[0] = own ? OUTSIDER : RANK;
            pkt.job.word[1] = gw_job_spot_pack(&spot, i == 0);
            pkt.job.word[2] = SERVER + 1;
            assert_int_equal(feed(f, UPLINK, &pkt), own && i == 0); /* an answer */
        }
    assert_null(gw_aggregate_job(f->aggregate, OTHER_JOB));
    struct gw_pkt result = gradient(OTHER_SERVER, 0);
    result.q.kind = GW_PKT_PARAM;
    result.flow = OTHER_JOB;
    result.dst = RANK;
    assert_int_equal(feed(f, UPLINK, &result), 1);
}

/* Changes something that decides whether a packet may come from where it does. */
static void forge(struct gw_prng *prng, struct gw_pkt *pkt)
{
    uint32_t other = gw_prng_below(prng, RANKS);
    switch (gw_prng_below(prng, 16)) {
    case 0:
        pkt->src = RANK + other;
        break;
    case 1:
        pkt->agg.bitmap = UINT32_C(1) << other;
        break;
    case 2:
        pkt->agg.level = (uint8_t)gw_prng_below(prng, 2);
        break;
    case 3:
        pkt->epoch = (uint16_t)(EPOCH + gw_prng_below(prng, 2));
        break;
    case 4:
        pkt->flow = gw_prng_below(prng, 2) ? JOB : OTHER_JOB;
        break;
    case 5:
        pkt->q.kind = gw_prng_below(prng, 2) ? GW_PKT_GRAD : GW_PKT_PARAM;
        break;
    case 6:
        pkt->agg_flags = gw_prng_below(prng, 2) ? GW_AGG_SLOT : GW_AGG_RESEND;
        break;
    case 7:
        *pkt = job_pkt(GW_JOB_READY, RANK + other, SERVER);
        break;
    default:
        break;
    }
}

/* A train of gradients of a rank, of which some are forged, and those behind them in the same way.
 */
static void draw(struct gw_prng *prng, uint32_t rank, uint32_t seq, struct gw_pkt *pkts)
{
    for (uint32_t k = 0; k < TRAIN; k++) {
        pkts[k] = k && gw_prng_below(prng, 2) ? pkts[k - 1] : gradient(RANK + rank, rank);
        pkts[k].seq = seq + k;
        pkts[k].index = (uint16_t)(pkts[k].seq % 8);
        forge(prng, &pkts[k]);
    }
}

/* The server's results of a train. */
static void finish_train(struct fixture *f, uint32_t seq)
{
    for (uint32_t k = 0; k < TRAIN; k++) {
        struct gw_pkt pkt = gradient(SERVER, 0);
        pkt.q.kind = GW_PKT_PARAM;
        pkt.dst = RANK;
        pkt.seq = seq + k;
        pkt.index = (uint16_t)(pkt.seq % 8);
        feed(f, UPLINK, &pkt);
    }
}

/* The job of the outsider alone, at the same switch. */
static void install_another(struct fixture *f)
{
    const struct gw_job_spot spot = {.fan_in = 1};
    struct gw_pkt pkt = job_pkt(GW_JOB_JOIN, OUTSIDER, OTHER_SERVER);
    pkt.flow = OTHER_JOB;
    feed(f, HOSTILE, &pkt);
    pkt = job_pkt(GW_JOB_INSTALL, OTHER_SERVER, OUTSIDER);
    pkt.flow = OTHER_JOB;
    pkt.seq = 1;
    pkt.job.word[0] = OUTSIDER;
    pkt.job.word[1] = gw_job_spot_pack(&spot, 1);
    pkt.job.word[2] = SERVER + 1;
    feed(f, UPLINK, &pkt);
    assert_non_null(gw_aggregate_job(f->aggregate, OTHER_JOB));
}

/* Of a train each packet is judged by what it says itself, whatever the one before it was. */
static void hostile__hides_in_no_train(void **state)
{
    struct fixture *f = *state, *g;
    struct gw_prng prng = gw_prng_derive(19, 0);
    open_fixture((void **)&g);
    install(f, UPLINK, SERVER, 1);
    install(g, UPLINK, SERVER, 1);
    install_another(f);
    install_another(g);
    for (uint32_t i = 0; i < TRAINS; i++) {
        struct gw_pkt pkts[TRAIN];
        uint32_t rank = i % RANKS, one_by_one = 0, seq = i / RANKS * TRAIN;
        draw(&prng, rank, seq, pkts);
        for (uint32_t k = 0; k < TRAIN; k++)
            one_by_one += feed(f, (uint16_t)(1 + rank), &pkts[k]);
        assert_int_equal(feed_train(g, (uint16_t)(1 + rank), pkts, TRAIN), one_by_one);
        assert_memory_equal(gw_switch_stats(f->sw), gw_switch_stats(g->sw),
                            sizeof(struct gw_switch_stats));
        assert_memory_equal(gw_aggregate_stats(f->aggregate), gw_aggregate_stats(g->aggregate),
                            sizeof(struct gw_aggregate_stats));
        if (rank + 1 == RANKS) {
            finish_train(f, seq);
            finish_train(g, seq);
        }
    }
    assert_true(gw_switch_stats(f->sw)->spoofed > TRAINS);
    assert_true(gw_aggregate_stats(f->aggregate)->held > TRAINS);
    assert_true(gw_aggregate_stats(f->aggregate)->completed > TRAINS / 10);
    close_fixture((void **)&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile__rank_keeps_to_its_place, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(hostile__hides_in_no_train, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(hostile__results_are_the_servers, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(hostile__results_are_multiplied_to_who_asks_alone,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(hostile__server_installs_no_other_job, open_fixture,
                                        close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
