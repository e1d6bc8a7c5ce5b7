/*
 * The coordinator and the member as others see them: who gets a seat, who is refused and why, and
 * what happens when words are lost, doubled or late. The model test has the whole.
 */
#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "core/switch/aggregate.h"
#include "core/control/coordinator.h"
#include "core/control/member.h"

enum {
    JOB = 3,
    WORLD = 2,
    SERVER = 9,
    ROOT = 100, /* switch */
    PKTS = 256,
    VALUES = 8,
    WINDOW = 8,
    FIRST_SEQ = 70,
};

#define RETRY GW_MS
#define BEAT  (5 * GW_MS)
#define LOST  (20 * GW_MS)

/* The paper's: by the formula 37 packets, which are 8 units. */
static const struct gw_notice_path narrow = {
    .rtt = 13300 * GW_US, .rate_bps = 100000000, .packet = 1500};
/* Half as long: 19 packets, 4 units; twice as long: 74, 15 units; four times: too many. */
static const struct gw_notice_path near = {
    .rtt = 6650 * GW_US, .rate_bps = 100000000, .packet = 1500};
static const struct gw_notice_path far = {
    .rtt = 26600 * GW_US, .rate_bps = 100000000, .packet = 1500};
static const struct gw_notice_path too_far = {
    .rtt = 53200 * GW_US, .rate_bps = 100000000, .packet = 1500};

struct bench {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_server *server;
    struct gw_coordinator *coordinator;
    void *memory[2];
    uint32_t barred; /* address that may have no seat */
};

static bool admits(const void *context, uint32_t address)
{
    const struct bench *b = context;
    return address != b->barred;
}

static void bench_open(struct bench *b)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(SERVER, 4 * VALUES);
    b->barred = 0;
    host.apps_max = 2;
    host.control_max = 64;
    gw_test_host_open(&b->host, &host, PKTS);
    b->node = gw_endpoint_node(b->host.endpoint);
    struct gw_server_cfg server = {.job = JOB,
                                   .world = WORLD,
                                   .levels = GW_LEVELS_MAX,
                                   .values = VALUES,
                                   .window_max = WINDOW,
                                   .aggregators = 16,
                                   .raw_max = 2,
                                   .retry = GW_US,
                                   .kernels = gw_kernels_best(gw_cpu_features())};
    b->memory[0] = gw_test_take(gw_server_size(&server));
    assert_int_equal(gw_server_init(&b->server, b->memory[0], &server, b->host.endpoint), 0);
    struct gw_coordinator_cfg cfg = {.job = JOB,
                                     .world = WORLD,
                                     .levels = 2,
                                     .window_max = 8,
                                     .values = VALUES,
                                     .aggregators = 16,
                                     .incarnation = 77,
                                     .first_seq = FIRST_SEQ,
                                     .retry = RETRY,
                                     .beat = BEAT,
                                     .silence = LOST,
                                     .admits = admits,
                                     .context = b,
                                     .notice_path = narrow,
                                     .server = b->server};
    b->memory[1] = gw_test_take(gw_coordinator_size(&cfg));
    assert_int_equal(gw_coordinator_init(&b->coordinator, b->memory[1], &cfg, b->host.endpoint), 0);
}

static void bench_close(struct bench *b)
{
    gw_coordinator_fini(b->coordinator);
    gw_server_fini(b->server);
    free(b->memory[0]);
    free(b->memory[1]);
    gw_test_host_close(&b->host);
}

/* Takes all that leaves; the last packet of kind `op` to `dst` goes to *found. Returns how many. */
static uint32_t collect(struct bench *b, uint32_t dst, enum gw_job_op op, struct gw_pkt *found,
                        gw_time now)
{
    uint32_t count = 0, result;
    b->node->ready_count = 0;
    do {
        struct gw_pkt *pkt;
        result = gw_node_output(b->node, 0, &pkt, 1, now);
        if (result & ~GW_OUTPUT_MORE) {
            assert_int_equal(pkt->q.kind, GW_PKT_JOB);
            if (pkt->dst == dst && pkt->agg_flags == op) {
                count++;
                *found = *pkt;
            }
            gw_pkt_release(&b->host.pool, pkt);
        }
    } while (result & GW_OUTPUT_MORE);
    return count;
}

static void feed(struct bench *b, const struct gw_pkt *what, gw_time now)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->host.pool);
    *pkt = *what;
    pkt->q.kind = GW_PKT_JOB;
    pkt->dst = SERVER;
    pkt->flow = JOB;
    pkt->buf = GW_BUF_NONE;
    gw_node_input(b->node, 0, &pkt, 1, now);
}

/* A JOIN of a worker at the root's switch. */
static struct gw_pkt join_of(uint32_t address, uint32_t incarnation, uint16_t rank)
{
    return (struct gw_pkt){.src = address,
                           .key = incarnation,
                           .index = rank,
                           .scale = GW_JOB_PATH_FRESH | 1,
                           .agg_flags = GW_JOB_JOIN,
                           .job.word = {ROOT}};
}

static struct gw_pkt join_with(uint32_t address, uint16_t rank, uint8_t option)
{
    struct gw_pkt join = join_of(address, 11 * address, rank);
    join.q.flags = (uint8_t)(option << GW_JOB_OPTION_SHIFT);
    return join;
}

/* The switch answers for all members. */
static void confirm(struct bench *b, const struct gw_pkt *install, uint32_t members,
                    enum gw_job_reason reason, gw_time now)
{
    struct gw_pkt answer = {.src = install->job.word[2],
                            .key = install->key,
                            .epoch = install->epoch,
                            .seq = members,
                            .index = (uint16_t)reason,
                            .agg_flags = GW_JOB_INSTALLED,
                            .job.word = {0, 0, install->job.word[2]}};
    feed(b, &answer, now);
}

/* Both workers join and the switch confirms. */
static uint16_t form(struct bench *b, gw_time now)
{
    struct gw_pkt join = join_of(1, 11, GW_RANK_NONE), other = join_of(2, 22, GW_RANK_NONE), found;
    feed(b, &join, now);
    feed(b, &other, now);
    assert_int_equal(gw_coordinator_phase(b->coordinator), GW_COORDINATOR_INSTALLING);
    assert_int_equal(collect(b, 1, GW_JOB_INSTALL, &found, now), 2);
    assert_int_equal(found.job.word[2], ROOT);
    assert_int_equal(found.seq, 2);
    confirm(b, &found, 2, GW_JOB_OK, now);
    assert_int_equal(gw_coordinator_phase(b->coordinator), GW_COORDINATOR_RUNNING);
    return gw_coordinator_epoch(b->coordinator);
}

static void coordinator__welcomes_when_all_switches_know(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt welcome;
    bench_open(&b);
    uint16_t epoch = form(&b, 0);
    assert_int_not_equal(epoch, 0);
    assert_int_equal(collect(&b, 2, GW_JOB_WELCOME, &welcome, 0), 1);
    struct gw_job_terms terms = gw_job_terms_unpack(welcome.job.word);
    assert_int_equal(welcome.epoch, epoch);
    assert_int_equal(welcome.key, 22);
    assert_int_equal(welcome.seq, FIRST_SEQ);
    assert_int_equal(terms.rank, 1);
    assert_int_equal(terms.world, WORLD);
    assert_int_equal(terms.values, VALUES);
    assert_int_equal(terms.aggregators, 15);
    /* Until a worker says that it is ready, it is welcomed again; so is one that asks again. */
    gw_node_expire(b.node, RETRY);
    assert_int_equal(collect(&b, 2, GW_JOB_WELCOME, &welcome, RETRY), 1);
    struct gw_pkt join = join_of(2, 22, GW_RANK_NONE);
    feed(&b, &join, RETRY);
    assert_int_equal(collect(&b, 2, GW_JOB_WELCOME, &welcome, RETRY), 1);
    struct gw_pkt ready = {
        .src = 2, .key = 22, .epoch = epoch, .index = 1, .agg_flags = GW_JOB_READY};
    feed(&b, &ready, RETRY);
    gw_node_expire(b.node, 2 * RETRY);
    assert_int_equal(collect(&b, 2, GW_JOB_WELCOME, &welcome, 2 * RETRY), 0);
    assert_int_equal(gw_coordinator_stats(b.coordinator)->epochs, 1);
    bench_close(&b);
}

static void coordinator__refuses_whom_it_has_no_seat_for(void **state)
{
    (void)state;
    static const struct {
        uint16_t rank;
        enum gw_job_reason reason;
    } cases[] = {{GW_RANK_NONE, GW_JOB_FULL}, {WORLD, GW_JOB_RANK}, {500, GW_JOB_RANK}};
    struct bench b;
    bench_open(&b);
    form(&b, 0);
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_pkt join = join_of(5, 55, cases[i].rank), answer;
        collect(&b, 0, GW_JOB_JOIN, &answer, 0);
        feed(&b, &join, 0);
        assert_int_equal(collect(&b, 5, GW_JOB_REFUSED, &answer, 0), 1);
        assert_int_equal(answer.index, cases[i].reason);
        assert_int_equal(answer.key, 55);
    }
    assert_int_equal(gw_coordinator_stats(b.coordinator)->refused, GW_COUNT_OF(cases));
    bench_close(&b);
}

/* Whoever wants a taken rank waits until it is clear whether its worker lives. */
/* It has neither a seat nor a word that its job would end by, so it can ask again. */
static void coordinator__does_not_answer_whom_it_does_not_admit(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt found;
    bench_open(&b);
    b.barred = 1;
    struct gw_pkt join = join_of(1, 11, 0), beyond = join_of(1, 11, WORLD),
                  other = join_of(2, 22, 1);
    feed(&b, &join, 0);
    feed(&b, &beyond, 0);
    assert_int_equal(collect(&b, 1, GW_JOB_REFUSED, &found, 0), 0);
    feed(&b, &other, 0);
    assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_GATHERING);
    b.barred = 0;
    feed(&b, &join, 0);
    assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_INSTALLING);
    assert_int_equal(gw_coordinator_stats(b.coordinator)->refused, 0);
    collect(&b, 1, GW_JOB_INSTALL, &found, 0);
    bench_close(&b);
}

static void coordinator__keeps_a_rank_for_the_worker_that_lives(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt answer, claim = join_of(5, 55, 0);
    bench_open(&b);
    uint16_t epoch = form(&b, 0);
    collect(&b, 0, GW_JOB_JOIN, &answer, 0);
    feed(&b, &claim, GW_MS);
    assert_int_equal(collect(&b, 5, GW_JOB_REFUSED, &answer, GW_MS), 0);
    struct gw_pkt ready = {
        .src = 1, .key = 11, .epoch = epoch, .index = 0, .agg_flags = GW_JOB_READY};
    feed(&b, &ready, 2 * GW_MS);
    feed(&b, &claim, 3 * GW_MS);
    assert_int_equal(collect(&b, 5, GW_JOB_REFUSED, &answer, 3 * GW_MS), 1);
    assert_int_equal(answer.index, GW_JOB_RANK);
    bench_close(&b);
}

/* Whoever has heard the numbers of the workers' lives says them from an address of his own. */
static void coordinator__a_seat_is_of_one_address(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt found, taken = join_of(5, 11, 0), own = join_of(1, 11, 0);
    bench_open(&b);
    feed(&b, &own, 0);
    feed(&b, &taken, 0); /* before the epoch */
    uint16_t epoch = form(&b, 0);
    assert_int_equal(collect(&b, 5, GW_JOB_WELCOME, &found, 0), 0);
    for (uint32_t i = 0; i < 6; i++) {
        static const uint8_t ops[] = {GW_JOB_JOIN, GW_JOB_READY, GW_JOB_LEAVE};
        struct gw_pkt pkt = join_of(5, i < 3 ? 11 : 22, i < 3 ? 0 : 1);
        pkt.agg_flags = ops[i % 3];
        pkt.epoch = epoch;
        pkt.scale = 1;
        feed(&b, &pkt, LOST - GW_MS);
        assert_int_equal(collect(&b, 1, GW_JOB_REPORT, &found, LOST - GW_MS), 0);
        assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_RUNNING);
        assert_int_equal(gw_coordinator_epoch(b.coordinator), epoch);
    }
    gw_node_expire(b.node, LOST); /* nor has it kept them alive */
    assert_int_equal(collect(&b, 2, GW_JOB_FAILED, &found, LOST), 1);
    assert_int_equal(found.index, GW_JOB_LOST);
    bench_close(&b);
}

/* A worker that is silent ends the epoch; the others are told who. Then its rank is free. */
static void coordinator__a_silent_worker_ends_the_epoch(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt failed;
    bench_open(&b);
    uint16_t epoch = form(&b, 0);
    struct gw_pkt ready = {
        .src = 2, .key = 22, .epoch = epoch, .index = 1, .agg_flags = GW_JOB_READY};
    feed(&b, &ready, LOST - GW_MS);
    gw_node_expire(b.node, LOST);
    assert_int_equal(collect(&b, 2, GW_JOB_FAILED, &failed, LOST), 1);
    assert_int_equal(failed.index, GW_JOB_LOST);
    assert_int_equal(failed.job.word[0], 0);
    assert_int_equal(failed.epoch, epoch);
    assert_int_equal(gw_coordinator_stats(b.coordinator)->silences, 1);
    /* One that did not hear it, and reports, is told again. */
    feed(&b, &ready, LOST + GW_MS);
    assert_int_equal(collect(&b, 2, GW_JOB_FAILED, &failed, LOST + GW_MS), 1);
    bench_close(&b);
}

/* No two jobs share an identity: a switch that knows another job of the number says so. */
static void coordinator__a_switch_that_refuses_ends_the_job(void **state)
{
    (void)state;
    static const enum gw_job_reason reasons[] = {GW_JOB_TAKEN, GW_JOB_ROOM};
    for (uint32_t i = 0; i < GW_COUNT_OF(reasons); i++) {
        struct bench b;
        struct gw_pkt join = join_of(1, 11, 0), other = join_of(2, 22, 1), found;
        bench_open(&b);
        feed(&b, &join, 0);
        feed(&b, &other, 0);
        assert_int_equal(collect(&b, 1, GW_JOB_INSTALL, &found, 0), 2);
        confirm(&b, &found, 0, reasons[i], 0);
        assert_int_equal(collect(&b, 2, GW_JOB_REFUSED, &found, 0), 1);
        assert_int_equal(found.index, reasons[i]);
        assert_int_equal(found.job.word[0], ROOT);
        assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_GATHERING);
        bench_close(&b);
    }
}

/* Ways that end at different switches have no root. */
static void coordinator__refuses_ways_without_a_common_end(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt join = join_of(1, 11, 0), other = join_of(2, 22, 1), found;
    bench_open(&b);
    other.job.word[0] = ROOT + 1;
    feed(&b, &join, 0);
    feed(&b, &other, 0);
    assert_int_equal(collect(&b, 2, GW_JOB_REFUSED, &found, 0), 1);
    assert_int_equal(found.index, GW_JOB_PATH);
    bench_close(&b);
}

/* A server that restarts hears from a worker that it does not know. */
static void coordinator__asks_unknown_workers_to_report(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt ready = {
        .src = 1, .key = 11, .epoch = 500, .index = 1, .agg_flags = GW_JOB_READY};
    struct gw_pkt join = join_of(1, 11, 1), other = join_of(2, 22, 0), found;
    bench_open(&b);
    feed(&b, &ready, 0);
    assert_int_equal(collect(&b, 1, GW_JOB_REPORT, &found, 0), 1);
    assert_int_equal(found.epoch, 500);
    join.scale = other.scale = 1; /* not fresh */
    join.epoch = other.epoch = 500;
    join.seq = 1000;
    other.seq = 990;
    feed(&b, &join, 0);
    feed(&b, &other, 0);
    assert_int_equal(collect(&b, 2, GW_JOB_INSTALL, &found, 0), 2);
    assert_int_equal(found.epoch, 501);
    confirm(&b, &found, 2, GW_JOB_OK, 0);
    /* The epoch begins with the smallest, and ranks stay. */
    assert_int_equal(collect(&b, 1, GW_JOB_WELCOME, &found, 0), 1);
    assert_int_equal(found.seq, 990);
    assert_int_equal(gw_job_terms_unpack(found.job.word).rank, 1);
    bench_close(&b);
}

/* The next epoch: worker 1 has left the last one, and worker 2, which is asked, comes with what it
 * knows of epochs; 0: nothing. */
static uint16_t form_again(struct bench *b, uint16_t known)
{
    struct gw_pkt join = join_of(1, 11, 0), other = join_of(2, 22, 1), found;
    join.scale = GW_JOB_PATH_UNTOUCHED | 1; /* so that who knows nothing may come */
    join.epoch = gw_coordinator_epoch(b->coordinator);
    other.scale = known ? join.scale : other.scale;
    other.epoch = known;
    feed(b, &join, 0);
    feed(b, &other, 0);
    assert_int_equal(collect(b, 1, GW_JOB_INSTALL, &found, 0), 2);
    confirm(b, &found, 2, GW_JOB_OK, 0);
    assert_int_equal(gw_coordinator_phase(b->coordinator), GW_COORDINATOR_RUNNING);
    assert_int_equal(found.epoch, gw_coordinator_epoch(b->coordinator));
    assert_int_equal(collect(b, 2, GW_JOB_WELCOME, &found, 0), 1);
    return found.epoch;
}

/* Epochs go on past the middle and around: one that comes after another is newer for the switches,
 * whoever comes without any. */
static void coordinator__epochs_go_around(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    form(&b, 0);
    for (uint32_t quarter = 0; quarter < 12; quarter++) {
        uint16_t epoch = (uint16_t)(0x4000 * (quarter + 1) - 1);
        assert_int_equal(form_again(&b, epoch - 1), epoch); /* a jump stands for many epochs */
        for (uint32_t i = 0; i < 3; i++) {
            uint16_t next = form_again(&b, 0);
            assert_true((int16_t)(next - epoch) > 0);
            assert_int_equal(next, epoch == UINT16_MAX ? 1 : epoch + 1);
            epoch = next;
        }
    }
    bench_close(&b);
}

/* Switches that do not exist, or never answer, are not asked as often for ever. */
static void coordinator__asks_the_silent_less_and_less(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt found;
    uint32_t early = 0, late = 0;
    bench_open(&b);
    struct gw_pkt join = join_of(1, 11, GW_RANK_NONE), other = join_of(2, 22, GW_RANK_NONE);
    feed(&b, &join, 0);
    feed(&b, &other, 0);
    for (uint32_t i = 0; i < 400; i++) {
        const gw_time now = i * RETRY;
        gw_coordinator_hear(b.coordinator, 0, 1, now);
        gw_coordinator_hear(b.coordinator, 1, 2, now);
        if (!gw_time_before(now, gw_node_deadline(b.node)))
            gw_node_expire(b.node, now);
        *(i < 5 ? &early : &late) += collect(&b, 1, GW_JOB_INSTALL, &found, now);
    }
    assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_INSTALLING);
    assert_int_equal(early, 5 * 2); /* two members each time */
    assert_in_range(late, 2 * 2, 40 * 2);
    bench_close(&b);
}

/* Who is known to live is not lost, however long its packets find no way; later it is. */
static void coordinator_hear__keeps_a_seat(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt found;
    bench_open(&b);
    form(&b, 0);
    for (gw_time now = 0; now < 5 * LOST; now += LOST / 2) {
        gw_coordinator_hear(b.coordinator, 0, 1, now);
        gw_coordinator_hear(b.coordinator, 1, 2, now);
        gw_node_expire(b.node, now);
        assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_RUNNING);
    }
    gw_coordinator_hear(b.coordinator, 0, 1, 5 * LOST);
    gw_coordinator_hear(b.coordinator, 1, 2, 0); /* old news take nothing back */
    collect(&b, 1, GW_JOB_FAILED, &found, 5 * LOST);
    gw_node_expire(b.node, 5 * LOST + LOST / 2);
    assert_int_equal(collect(&b, 1, GW_JOB_FAILED, &found, 5 * LOST + LOST / 2), 1);
    assert_int_equal(found.index, GW_JOB_LOST);
    assert_int_equal(found.job.word[0], 1); /* rank of the second */
    bench_close(&b);
}

/* When the last one has left, the switches are told to forget the job. */
static void coordinator__the_last_one_to_leave_closes_the_job(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt found;
    bench_open(&b);
    form(&b, 0);
    for (uint32_t worker = 1; worker <= 2; worker++) {
        struct gw_pkt leave = {.src = worker,
                               .key = 11 * worker,
                               .epoch = gw_coordinator_epoch(b.coordinator),
                               .agg_flags = GW_JOB_LEAVE};
        collect(&b, 0, GW_JOB_JOIN, &found, 0);
        feed(&b, &leave, 0);
        assert_int_equal(gw_coordinator_phase(b.coordinator),
                         worker == 1 ? GW_COORDINATOR_RUNNING : GW_COORDINATOR_CLOSING);
    }
    assert_int_equal(collect(&b, 1, GW_JOB_REMOVE, &found, 0), 1);
    confirm(&b, &found, 0, GW_JOB_OK, 0);
    for (uint32_t i = 1; i < 20; i++)
        gw_node_expire(b.node, i * RETRY);
    assert_int_equal(collect(&b, 1, GW_JOB_REMOVE, &found, 20 * RETRY), 0);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER); /* it rests */
    assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_GATHERING);
    bench_close(&b);
}

/* Workers 1 and 2 join with this option; returns the threshold in the WELCOME of the second. */
static uint8_t form_with(struct bench *b, uint8_t option, gw_time now)
{
    struct gw_pkt join = join_with(1, 0, option), other = join_with(2, 1, option), found;
    feed(b, &join, now);
    feed(b, &other, now);
    assert_int_equal(collect(b, 1, GW_JOB_INSTALL, &found, now), 2);
    confirm(b, &found, 2, GW_JOB_OK, now);
    assert_int_equal(collect(b, 2, GW_JOB_WELCOME, &found, now), 1);
    return gw_job_terms_unpack(found.job.word).notice;
}

static void expect_refused(struct bench *b, const struct gw_pkt *join, uint32_t about, gw_time now)
{
    struct gw_pkt answer;
    collect(b, 0, GW_JOB_JOIN, &answer, now);
    feed(b, join, now);
    assert_int_equal(collect(b, join->src, GW_JOB_REFUSED, &answer, now), 1);
    assert_int_equal(answer.index, GW_JOB_NOTICE);
    assert_int_equal(answer.job.word[0], about);
    assert_int_equal(answer.key, join->key);
}

static void coordinator__says_the_threshold_of_the_option(void **state)
{
    (void)state;
    static const struct {
        uint8_t option, units;
    } cases[] = {{GW_NOTICE_OFF, 0},         {1, 1},
                 {GW_NOTICE_UNITS_MAX, 15},  {GW_NOTICE_FORMULA, 8},
                 {GW_NOTICE_FORMULA + 1, 4}, {GW_NOTICE_FORMULA + 15, 1}};
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct bench b;
        bench_open(&b);
        assert_int_equal(form_with(&b, cases[i].option, 0), cases[i].units);
        bench_close(&b);
    }
}

/* The first worker's option is the job's. */
static void coordinator__refuses_whoever_announces_differently(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt join = join_with(1, 0, GW_NOTICE_FORMULA), other = join_with(2, 1, 8), found;
    bench_open(&b);
    feed(&b, &join, 0);
    expect_refused(&b, &other, 1, 0); /* though the threshold would be the same */
    other.index = GW_RANK_NONE;
    expect_refused(&b, &other, 1, 0);
    assert_int_equal(gw_coordinator_stats(b.coordinator)->refused, 2);
    other = join_with(2, 1, GW_NOTICE_FORMULA);
    feed(&b, &other, 0);
    assert_int_equal(collect(&b, 1, GW_JOB_INSTALL, &found, 0), 2);
    bench_close(&b);
}

/* One that died before there was a job does not bind the others. */
static void coordinator__forgets_the_option_of_workers_that_are_gone(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt join = join_with(1, 0, 3);
    bench_open(&b);
    feed(&b, &join, 0);
    gw_node_expire(b.node, LOST);
    assert_int_equal(form_with(&b, 5, LOST), 5);
    bench_close(&b);
}

/* Of what the path is when the first epoch begins, and not of what it becomes. */
static void coordinator__keeps_the_threshold_of_the_first_epoch(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    gw_coordinator_set_notice_path(b.coordinator, &near);
    assert_int_equal(form_with(&b, GW_NOTICE_FORMULA, 0), 4);
    gw_coordinator_set_notice_path(b.coordinator, &far);
    gw_node_expire(b.node, LOST); /* nobody is left: the next ones are of the same job */
    assert_int_equal(form_with(&b, GW_NOTICE_FORMULA, LOST), 4);
    gw_node_expire(b.node, 2 * LOST);
    assert_int_equal(form_with(&b, 2, 2 * LOST), 2); /* unless they want another thing */
    gw_node_expire(b.node, 3 * LOST);
    assert_int_equal(form_with(&b, GW_NOTICE_FORMULA, 3 * LOST), 15);
    bench_close(&b);
}

/* What no notice can say, or what follows from nothing. */
static void coordinator__refuses_all_when_there_is_no_threshold(void **state)
{
    (void)state;
    static const struct gw_notice_path unknown = {.rtt = GW_MS};
    const struct gw_notice_path *const paths[] = {&too_far, &unknown};
    for (size_t i = 0; i < GW_COUNT_OF(paths); i++) {
        struct bench b;
        struct gw_pkt join = join_with(1, 0, GW_NOTICE_FORMULA);
        struct gw_pkt other = join_with(2, 1, GW_NOTICE_FORMULA);
        bench_open(&b);
        gw_coordinator_set_notice_path(b.coordinator, paths[i]);
        feed(&b, &join, 0);
        expect_refused(&b, &other, GW_RANK_NONE, 0);
        assert_int_equal(gw_coordinator_phase(b.coordinator), GW_COORDINATOR_GATHERING);
        gw_coordinator_set_notice_path(b.coordinator, &far);
        assert_int_equal(form_with(&b, GW_NOTICE_FORMULA, 0), 15);
        bench_close(&b);
    }
}

/* A server that has restarted finds workers that have calls in work, and a longer path. */
static void coordinator__a_restart_keeps_announced_jobs(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt join = join_with(1, 0, GW_NOTICE_FORMULA), found;
    struct gw_pkt other = join_with(2, 1, GW_NOTICE_FORMULA);
    join.scale = other.scale = 1; /* not fresh */
    join.epoch = other.epoch = 5;
    bench_open(&b);
    gw_coordinator_set_notice_path(b.coordinator, &too_far);
    feed(&b, &join, 0);
    feed(&b, &other, 0);
    assert_int_equal(collect(&b, 1, GW_JOB_INSTALL, &found, 0), 2);
    confirm(&b, &found, 2, GW_JOB_OK, 0);
    assert_int_equal(collect(&b, 2, GW_JOB_WELCOME, &found, 0), 1);
    assert_int_equal(gw_job_terms_unpack(found.job.word).notice, GW_NOTICE_UNITS_MAX);
    bench_close(&b);
}

/* INSTALL says who is behind each position: here, a worker each. */
static void coordinator__tells_switches_the_workers(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt join = join_of(1, 11, 0), other = join_of(2, 22, 1), found;
    uint32_t workers;
    bench_open(&b);
    join.job.word[0] = ROOT + 1; /* in a rack of its own */
    join.job.word[1] = ROOT;
    join.scale = GW_JOB_PATH_FRESH | 2;
    feed(&b, &join, 0);
    feed(&b, &other, 0);
    /* To the first worker go the packets for both switches; the last is of the rack. */
    assert_int_equal(collect(&b, 1, GW_JOB_INSTALL, &found, 0), 3);
    assert_int_equal(found.job.word[2], ROOT + 1);
    gw_job_spot_unpack(found.job.word[1], &workers);
    assert_int_equal(workers, 1);
    bench_close(&b);
}

static void member__brings_its_option_and_takes_the_threshold(void **state)
{
    (void)state;
    struct bench b;
    struct gw_member *member;
    struct gw_worker_cfg worker = {.notice.rtt = GW_MS};
    struct gw_event event;
    struct gw_endpoint_cfg host = gw_test_host_cfg(1, 4 * VALUES);
    struct gw_member_cfg cfg = {.job = JOB,
                                .server = SERVER,
                                .rank = 0,
                                .incarnation = 11,
                                .retry = RETRY,
                                .beat = BEAT,
                                .notice = GW_NOTICE_FORMULA + 2};
    struct gw_job_terms terms = {.world = 1, .values = VALUES, .notice = 9};
    struct gw_pkt *pkt;
    host.apps_max = 1;
    gw_test_host_open(&b.host, &host, PKTS);
    b.node = gw_endpoint_node(b.host.endpoint);
    void *memory = gw_test_take(gw_member_size());
    assert_int_equal(gw_member_init(&member, memory, &cfg, b.host.endpoint), 0);
    assert_int_equal(gw_member_join(member, 0), 0);
    assert_int_equal(gw_node_output(b.node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
    assert_int_equal(pkt->agg_flags, GW_JOB_JOIN);
    assert_int_equal(pkt->q.flags, (GW_NOTICE_FORMULA + 2) << GW_JOB_OPTION_SHIFT);
    pkt->src = SERVER;
    pkt->dst = 1;
    pkt->epoch = 4;
    pkt->agg_flags = GW_JOB_WELCOME;
    pkt->q.flags = 0;
    pkt->scale = 20;
    gw_job_terms_pack(&terms, pkt->job.word);
    b.node->ready_count = 0;
    gw_node_input(b.node, 0, &pkt, 1, 0);
    assert_int_equal(gw_endpoint_poll(b.host.endpoint, &event, 1), 1);
    assert_int_equal(event.kind, GW_EVENT_JOINED);
    gw_member_worker_cfg(member, &worker);
    assert_int_equal(worker.notice.job, JOB);
    assert_int_equal(worker.notice.units, 9);
    assert_true(worker.notice.rtt == GW_MS); /* the caller's */
    /* No other word of it has an option. */
    assert_int_equal(gw_node_output(b.node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
    assert_int_equal(pkt->agg_flags, GW_JOB_READY);
    assert_int_equal(pkt->q.flags, 0);
    gw_pkt_release(&b.host.pool, pkt);
    gw_member_fini(member);
    free(memory);
    gw_test_host_close(&b.host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinator__welcomes_when_all_switches_know),
        cmocka_unit_test(coordinator__refuses_whom_it_has_no_seat_for),
        cmocka_unit_test(coordinator__does_not_answer_whom_it_does_not_admit),
        cmocka_unit_test(coordinator__keeps_a_rank_for_the_worker_that_lives),
        cmocka_unit_test(coordinator__a_seat_is_of_one_address),
        cmocka_unit_test(coordinator__a_silent_worker_ends_the_epoch),
        cmocka_unit_test(coordinator__a_switch_that_refuses_ends_the_job),
        cmocka_unit_test(coordinator__refuses_ways_without_a_common_end),
        cmocka_unit_test(coordinator__asks_unknown_workers_to_report),
        cmocka_unit_test(coordinator__asks_the_silent_less_and_less),
        cmocka_unit_test(coordinator_hear__keeps_a_seat),
        cmocka_unit_test(coordinator__the_last_one_to_leave_closes_the_job),
        cmocka_unit_test(coordinator__says_the_threshold_of_the_option),
        cmocka_unit_test(coordinator__refuses_whoever_announces_differently),
        cmocka_unit_test(coordinator__forgets_the_option_of_workers_that_are_gone),
        cmocka_unit_test(coordinator__epochs_go_around),
        cmocka_unit_test(coordinator__keeps_the_threshold_of_the_first_epoch),
        cmocka_unit_test(coordinator__refuses_all_when_there_is_no_threshold),
        cmocka_unit_test(coordinator__a_restart_keeps_announced_jobs),
        cmocka_unit_test(coordinator__tells_switches_the_workers),
        cmocka_unit_test(member__brings_its_option_and_takes_the_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
