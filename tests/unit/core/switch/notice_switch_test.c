/*
 * A switch that makes room: notices and heads among other packets, real queues that mark by the
 * threshold, gradients that are added up on their way, and everything that may be beside.
 */
#include "support.h"

#include "pool_fixture.h"
#include "switch_fixture.h"

#include "base/cpu.h"
#include "core/pause.h"

enum {
    PORTS = 4, /* destination d is behind port d */
    PKTS = 512,
    SIZE = 1500,
    CAPACITY = 60 * SIZE,
    OWN = 30, /* packets: threshold of the ports */
    JOB = 9,
    UNITS = 2,
    OUT = 3,
};

#define RTT  (100 * GW_US)
#define HOLD (4 * RTT)

static const uint16_t leaves[] = {0, 1, 2, 3};
static const struct gw_switch_notice_cfg notice_cfg = {
    .packet = SIZE,
    .floor = 5,
    .hold = HOLD,
    .share = GW_Q16_ONE / 4,
    .save = 4 * HOLD,
    .jobs_max = 8,
    .announcements_max = 64,
};

struct fixture {
    struct gw_pkt_pool pool;
    union gw_algo_cfg qdisc_cfg;
    struct gw_aggregate *aggregate;
    struct gw_slots *slots;
    struct gw_switch *sw;
    struct gw_node *node;
    gw_time now;
    uint32_t heads; /* that left, and what else */
    uint32_t marks;
    uint32_t left;
};

/* A discipline that marks at dequeue, above half of the capacity. */
static struct gw_switch_cfg cfg_of(struct fixture *f, const char *qdisc)
{
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, qdisc, &f->pool);
    gw_algo_defaults(&cfg.qdisc->algo, &f->qdisc_cfg);
    if (cfg.qdisc->mark_at) {
        assert_int_equal(gw_algo_set(&cfg.qdisc->algo, &f->qdisc_cfg, "kmin", "50%"), 0);
        assert_int_equal(gw_algo_set(&cfg.qdisc->algo, &f->qdisc_cfg, "kmax", "50%"), 0);
    }
    cfg.qdisc_cfg = &f->qdisc_cfg;
    cfg.capacity = gw_test_capacity(CAPACITY);
    cfg.routes = gw_test_routes(leaves, PORTS);
    cfg.notice = &notice_cfg;
    return cfg;
}

static void fixture_open(struct fixture *f, struct gw_switch_cfg *cfg)
{
    static const uint32_t members[] = {0, 1};
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    const struct gw_aggregate_cfg aggregate = {.aggregators = 4,
                                               .jobs_max = 2,
                                               .members_max = 8,
                                               .leak = GW_MS,
                                               .kernels = kernels,
                                               .pool = &f->pool};
    const struct gw_slots_cfg slots = {
        .slots = 4, .jobs_max = 2, .kernels = kernels, .pool = &f->pool};
    const struct gw_slots_job slots_job = {
        .job = JOB + 1, .epoch = 1, .world = 2, .count = 4, .members = members};
    f->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&aggregate)), &aggregate);
    f->slots = gw_slots_init(gw_test_take(gw_slots_size(&slots)), &slots);
    assert_int_equal(gw_slots_install(f->slots, &slots_job), 0);
    cfg->aggregate = f->aggregate;
    cfg->slots = f->slots;
    f->sw = gw_test_switch_open(cfg);
    f->node = gw_switch_node(f->sw);
    f->now = GW_S;
}

static void fixture_close(struct fixture *f)
{
    if (gw_switch_notices(f->sw))
        gw_switch_notice_check(gw_switch_notices(f->sw));
    gw_test_switch_check(f->sw, PORTS);
    gw_switch_fini(f->sw);
    gw_aggregate_fini(f->aggregate);
    gw_slots_remove(f->slots, JOB + 1);
    gw_test_pool_close(&f->pool);
    free(f->sw);
    free(f->aggregate);
    free(f->slots);
}

static void feed(struct fixture *f, uint16_t in, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(f->node, in, &pkt, 1, f->now);
    f->node->ready_count = 0;
    if (gw_switch_notices(f->sw))
        gw_switch_notice_check(gw_switch_notices(f->sw));
}

static struct gw_pkt packet(enum gw_pkt_kind kind, uint32_t src, uint32_t dst)
{
    return (struct gw_pkt){
        .q = {.size = kind == GW_PKT_NOTICE ? 60 : SIZE, .kind = kind & 15, .class = 1},
        .src = src,
        .dst = dst,
        .flow = JOB,
        .buf = GW_BUF_NONE,
    };
}

static void announce(struct fixture *f, uint32_t src, uint8_t units)
{
    struct gw_pkt pkt = packet(GW_PKT_NOTICE, src, OUT);
    pkt.notice.job = JOB;
    pkt.notice.units = units;
    feed(f, (uint16_t)src, &pkt);
}

/* A gradient of worker `src`, whose bit is its number. */
static struct gw_pkt gradient(uint32_t src, uint32_t seq)
{
    struct gw_pkt pkt = packet(GW_PKT_GRAD, src, OUT);
    pkt.epoch = 1;
    pkt.seq = seq;
    pkt.index = (uint16_t)seq;
    pkt.agg.bitmap = 1u << src;
    pkt.agg.values = 16;
    return pkt;
}

static uint32_t open_count(const struct fixture *f)
{
    return gw_switch_notice_open(gw_switch_notices(f->sw), OUT);
}

/* Lets everything leave by a port. */
static void drain(struct fixture *f, uint16_t port)
{
    for (uint32_t answer = GW_OUTPUT_MORE; answer & GW_OUTPUT_MORE;) {
        struct gw_pkt *pkt;
        answer = gw_node_output(f->node, port, &pkt, 1, f->now);
        if ((answer & ~GW_OUTPUT_MORE) == 0)
            continue;
        f->heads += (pkt->q.flags & GW_PKT_HEAD) != 0;
        f->marks += pkt->q.ecn == GW_ECN_CE;
        f->left++;
        gw_pkt_release(&f->pool, pkt);
    }
}

/* Queues `count` packets of other flows and lets them leave; returns how many were marked. */
static uint32_t marks_of(struct fixture *f, uint32_t count)
{
    struct gw_pkt pkt = packet(GW_PKT_DATA, 2, OUT);
    pkt.q.ecn = GW_ECN_ECT0;
    f->marks = 0;
    while (count-- > 0)
        feed(f, 2, &pkt);
    drain(f, OUT);
    return f->marks;
}

/* At dequeue what stays behind counts: of n packets those are marked that leave more than the
 * threshold. */
static void assert_threshold(struct fixture *f, uint32_t packets)
{
    const uint32_t count = 40;
    assert_int_equal(marks_of(f, count), packets < count ? count - 1 - packets : 0);
}

static void notice_switch__marks_until_the_head(void **state)
{
    static const char *const names[] = {"red", "trim", "prio"};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(names); i++) {
        struct fixture f = {0};
        struct gw_switch_cfg cfg = cfg_of(&f, names[i]);
        fixture_open(&f, &cfg);
        assert_threshold(&f, OWN);
        announce(&f, 0, UNITS);
        drain(&f, OUT);
        assert_threshold(&f, UNITS * 5);
        struct gw_pkt head = packet(GW_PKT_DATA, 0, OUT);
        head.q.flags = GW_PKT_HEAD;
        feed(&f, 0, &head);
        drain(&f, OUT);
        assert_threshold(&f, OWN);
        fixture_close(&f);
    }
}

/* A threshold above the port's own changes nothing. */
static void notice_switch__never_raises(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    fixture_open(&f, &cfg);
    announce(&f, 0, GW_NOTICE_UNITS_MAX);
    drain(&f, OUT);
    assert_threshold(&f, OWN);
    fixture_close(&f);
}

static void notice_switch__does_without_marks(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    (void)state;
    fixture_open(&f, &cfg);
    announce(&f, 0, UNITS);
    drain(&f, OUT);
    assert_int_equal(marks_of(&f, 40), 0);
    fixture_close(&f);
}

/* The timer of the switch gives the threshold back. */
static void notice_switch__recovers(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    fixture_open(&f, &cfg);
    assert_int_equal(gw_node_deadline(f.node), GW_TIME_NEVER);
    announce(&f, 0, UNITS);
    f.now += RTT;
    announce(&f, 1, UNITS);
    assert_int_equal(gw_node_deadline(f.node), GW_S + HOLD);
    f.now = GW_S + HOLD;
    gw_node_expire(f.node, f.now);
    assert_int_equal(gw_node_deadline(f.node), f.now + RTT);
    drain(&f, OUT);
    assert_threshold(&f, UNITS * 5);
    f.now += RTT;
    gw_node_expire(f.node, f.now);
    assert_int_equal(gw_node_deadline(f.node), GW_TIME_NEVER);
    assert_threshold(&f, OWN);
    struct gw_switch_notice_stats total = gw_switch_notice_total(gw_switch_notices(f.sw), f.now);
    assert_int_equal(total.recoveries, 2);
    assert_int_equal(total.lowered, HOLD + RTT);
    fixture_close(&f);
}

static void notice_switch__passes_notices_unchanged(void **state)
{
    (void)state;
    for (uint32_t with = 0; with < 2; with++) {
        struct fixture f = {0};
        struct gw_switch_cfg cfg = cfg_of(&f, "red");
        cfg.notice = with ? &notice_cfg : NULL;
        fixture_open(&f, &cfg);
        assert_int_equal(gw_switch_notices(f.sw) != NULL, with);
        struct gw_pkt sent = packet(GW_PKT_NOTICE, 0, OUT), *pkt;
        sent.notice.job = JOB;
        for (sent.notice.units = 0; sent.notice.units < 3; sent.notice.units++) {
            feed(&f, 0, &sent);
            assert_int_equal(gw_node_output(f.node, OUT, &pkt, 1, f.now) & ~GW_OUTPUT_MORE, 1);
            pkt->q.next = sent.q.next;
            assert_memory_equal(pkt, &sent, sizeof(sent));
            gw_pkt_release(&f.pool, pkt);
        }
        fixture_close(&f);
    }
}

/* Nothing leaves by a port any more: whoever comes there next finds it as configured. */
static void notice_switch__forgets_with_the_port(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    cfg.learned_max = 8;
    cfg.learned_idle = GW_S;
    cfg.uplink = 2;
    fixture_open(&f, &cfg);
    for (uint16_t port = 0; port < PORTS; port++)
        assert_int_equal(gw_switch_open_port(f.sw, port, port + 10u, true, f.now), 0);
    struct gw_pkt notice = packet(GW_PKT_NOTICE, 10, OUT + 10);
    notice.notice.job = JOB;
    notice.notice.units = UNITS;
    feed(&f, 0, &notice);
    assert_int_equal(open_count(&f), 1);
    /* In the name of another: it is dropped before it can say anything. */
    notice.src = 11;
    feed(&f, 0, &notice);
    assert_int_equal(open_count(&f), 1);
    gw_switch_close_port(f.sw, OUT, f.now);
    assert_int_equal(open_count(&f), 0);
    assert_int_equal(gw_node_deadline(f.node), GW_TIME_NEVER);
    drain(&f, 2);
    fixture_close(&f);
}

static void install(struct fixture *f, uint8_t level, uint8_t fan_in, const uint16_t *workers)
{
    static const uint32_t members[] = {0, 1, 2};
    const struct gw_aggregate_job job = {.job = JOB,
                                         .epoch = 1,
                                         .level = level,
                                         .fan_in = fan_in,
                                         .member_count = fan_in,
                                         .members = members,
                                         .workers = workers};
    assert_int_equal(gw_aggregate_install(f->aggregate, &job), 0);
}

/* Heads that are added up begin their bursts one by one; the sum is a head if one of them was, and
 * closes nothing of those that share the job's number and sent no head. */
static void notice_switch__begins_the_bursts_of_a_sum(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    fixture_open(&f, &cfg);
    install(&f, 0, 2, NULL);
    announce(&f, 2, UNITS + 1);
    for (uint32_t src = 0; src < 2; src++)
        announce(&f, src, UNITS);
    for (uint32_t src = 0; src < 2; src++) {
        struct gw_pkt pkt = gradient(src, 0);
        pkt.q.flags = GW_PKT_HEAD;
        assert_int_equal(open_count(&f), 3 - src);
        feed(&f, (uint16_t)src, &pkt);
    }
    assert_int_equal(open_count(&f), 1);
    assert_int_equal(gw_switch_notice_threshold(gw_switch_notices(f.sw), OUT),
                     (UNITS + 1) * 5 * SIZE);
    /* The next fragment's is none. */
    for (uint32_t src = 0; src < 2; src++) {
        struct gw_pkt pkt = gradient(src, 1);
        feed(&f, (uint16_t)src, &pkt);
    }
    drain(&f, OUT);
    assert_int_equal(f.heads, 1);
    assert_int_equal(f.left, 3 + 2);
    assert_int_equal(gw_switch_stats(f.sw)->heads, 1);
    fixture_close(&f);
}

/* Above the first level positions are switches, with as many workers as INSTALL says. */
static void notice_switch__counts_the_workers_of_switches(void **state)
{
    static const uint16_t workers[] = {5, 2};
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    fixture_open(&f, &cfg);
    install(&f, 1, 2, workers);
    for (uint32_t i = 0; i < 8; i++) {
        struct gw_pkt notice = packet(GW_PKT_NOTICE, i, OUT);
        notice.notice.job = JOB;
        notice.notice.units = UNITS;
        feed(&f, i % 2, &notice);
    }
    struct gw_pkt one = gradient(0, 0), raw = gradient(0, 1), other = gradient(1, 0);
    /* Not added up: the workers behind its link and position. */
    raw.agg_flags = GW_AGG_RAW;
    raw.agg.level = one.agg.level = other.agg.level = 1;
    raw.q.flags = one.q.flags = other.q.flags = GW_PKT_HEAD;
    raw.agg.bitmap = 2;
    raw.src = 1000;
    feed(&f, 1, &raw);
    assert_int_equal(open_count(&f), 6);
    feed(&f, 0, &one); /* all four behind its link, of five that there are */
    assert_int_equal(open_count(&f), 2);
    feed(&f, 1, &other);
    assert_int_equal(open_count(&f), 0);
    drain(&f, OUT);
    fixture_close(&f);
}

/* A switch outside the job's tree cannot know for whom a sum stands: for all of its link. */
static void notice_switch__does_not_know_the_tree(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    fixture_open(&f, &cfg);
    for (uint32_t i = 0; i < 8; i++) {
        struct gw_pkt notice = packet(GW_PKT_NOTICE, i, OUT);
        notice.notice.job = JOB;
        notice.notice.units = UNITS;
        feed(&f, i % 2, &notice);
    }
    struct gw_pkt sum = gradient(0, 0), single = gradient(3, 0);
    single.q.flags = sum.q.flags = GW_PKT_HEAD;
    single.src = 1;
    feed(&f, 1, &single);
    assert_int_equal(open_count(&f), 7);
    sum.agg.level = 1;
    feed(&f, 0, &sum);
    assert_int_equal(open_count(&f), 3);
    drain(&f, OUT);
    fixture_close(&f);
}

/* A burst that ends in slots is over here, whoever is waited for; its result is no head. */
static void notice_switch__ends_bursts_in_slots(void **state)
{
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    fixture_open(&f, &cfg);
    for (uint32_t src = 0; src < 2; src++) {
        struct gw_pkt notice = packet(GW_PKT_NOTICE, src, OUT);
        notice.flow = notice.notice.job = JOB + 1;
        notice.notice.units = UNITS;
        feed(&f, (uint16_t)src, &notice);
    }
    for (uint32_t src = 0; src < 2; src++) {
        struct gw_pkt pkt = gradient(src, 0);
        pkt.flow = JOB + 1;
        pkt.agg_flags = GW_AGG_SLOT;
        pkt.q.flags = GW_PKT_HEAD;
        assert_int_equal(open_count(&f), 2 - src);
        feed(&f, (uint16_t)src, &pkt);
    }
    assert_int_equal(open_count(&f), 0);
    for (uint16_t port = 0; port < PORTS; port++)
        drain(&f, port);
    assert_int_equal(f.heads, 0);
    assert_int_equal(f.left, 4);
    fixture_close(&f);
}

/* Beside a switch that holds senders back. */
static void notice_switch__is_lossless_too(void **state)
{
    static const struct gw_pause_cfg pause = {.xoff = 8 * SIZE, .xon = SIZE, .time = 40 * GW_US};
    struct fixture f = {0};
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    (void)state;
    cfg.lossless = &pause;
    fixture_open(&f, &cfg);
    announce(&f, 0, UNITS);
    assert_int_equal(open_count(&f), 1);
    drain(&f, OUT);
    assert_threshold(&f, UNITS * 5);
    f.now += HOLD;
    gw_node_expire(f.node, f.now);
    assert_int_equal(open_count(&f), 0);
    for (uint16_t port = 0; port < PORTS; port++)
        drain(&f, port);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notice_switch__marks_until_the_head),
        cmocka_unit_test(notice_switch__never_raises),
        cmocka_unit_test(notice_switch__does_without_marks),
        cmocka_unit_test(notice_switch__recovers),
        cmocka_unit_test(notice_switch__passes_notices_unchanged),
        cmocka_unit_test(notice_switch__forgets_with_the_port),
        cmocka_unit_test(notice_switch__begins_the_bursts_of_a_sum),
        cmocka_unit_test(notice_switch__counts_the_workers_of_switches),
        cmocka_unit_test(notice_switch__does_not_know_the_tree),
        cmocka_unit_test(notice_switch__ends_bursts_in_slots),
        cmocka_unit_test(notice_switch__is_lossless_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
