/*
 * The queues of a switch: thresholds and classes that belong to a port, and trains through a switch
 * that others hold back.
 */
#include "support.h"

#include "pool_fixture.h"
#include "switch_fixture.h"

#include "base/prng.h"
#include "core/pause.h"

enum {
    PORTS = 4, /* destination d is behind port d */
    PKTS = 4096,
    SIZE = 1000,
    CONTROL = 64,
    CAPACITY = 100 * SIZE,
    TRAIN = 4,
    STEPS = 20000,
};

static const uint16_t leaves[] = {0, 1, 2, 3};

struct fixture {
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_pkt_pool pool;
};

static struct gw_switch_cfg cfg_of(struct fixture *f, const char *qdisc)
{
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, qdisc, &f->pool);
    cfg.capacity = gw_test_capacity(CAPACITY);
    cfg.routes = gw_test_routes(leaves, PORTS);
    return cfg;
}

static void fixture_open(struct fixture *f, const struct gw_switch_cfg *cfg)
{
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->sw = gw_test_switch_open(cfg);
    f->node = gw_switch_node(f->sw);
}

static void fixture_close(struct fixture *f)
{
    gw_test_switch_close(f->sw, PORTS, &f->pool);
}

static struct gw_pkt packet(uint32_t dst, uint8_t class)
{
    bool is_control = class == GW_CLASS_CONTROL;
    return (struct gw_pkt){
        .q = {.size = is_control ? CONTROL : SIZE,
              .class = class,
              .ecn = GW_ECN_ECT0,
              .flags = is_control ? 0 : GW_PKT_TRIMMABLE,
              .kind = is_control ? GW_PKT_ACK : GW_PKT_DATA},
        .dst = dst,
        .buf = GW_BUF_NONE,
    };
}

static void feed(struct fixture *f, uint16_t in, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(f->node, in, &pkt, 1, 0);
    f->node->ready_count = 0;
}

static void feed_data(struct fixture *f, uint32_t dst, uint32_t count)
{
    struct gw_pkt pkt = packet(dst, GW_CLASS_BEST_EFFORT);
    while (count-- > 0)
        feed(f, 3, &pkt);
}

/* Empties a port; returns how many packets carried CE. */
static uint32_t drain_marked(struct fixture *f, uint16_t port)
{
    uint32_t marked = 0;
    for (uint32_t answer = GW_OUTPUT_MORE; answer & GW_OUTPUT_MORE;) {
        struct gw_pkt *pkt;
        answer = gw_node_output(f->node, port, &pkt, 1, 0);
        if (answer & ~GW_OUTPUT_MORE) {
            marked += pkt->q.ecn == GW_ECN_CE;
            gw_pkt_release(&f->pool, pkt);
        }
    }
    return marked;
}

/* Thresholds of 20 % and 80 % of the capacity; each packet of a queue that is emptied sees those
 * behind it. */
static void switch_queue__marks_above_the_threshold_of_a_port(void **state)
{
    static const char *const disciplines[] = {"red", "trim", "prio"};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(disciplines); i++) {
        struct fixture f;
        struct gw_switch_cfg cfg = cfg_of(&f, disciplines[i]);
        fixture_open(&f, &cfg);
        feed_data(&f, 1, 21);
        assert_int_equal(drain_marked(&f, 1), 0);
        assert_true(gw_switch_mark_at(f.sw, 1, 10 * SIZE));
        for (uint32_t dst = 0; dst < 3; dst++)
            feed_data(&f, dst, 21);
        assert_int_equal(drain_marked(&f, 0), 0); /* other ports are as they were */
        assert_int_equal(drain_marked(&f, 1), 10);
        assert_int_equal(drain_marked(&f, 2), 0);
        feed_data(&f, 1, 100);
        assert_int_equal(drain_marked(&f, 1), 89);
        assert_true(gw_switch_mark_at(f.sw, 1, UINT32_MAX));
        feed_data(&f, 1, 21);
        assert_int_equal(drain_marked(&f, 1), 0);
        feed_data(&f, 1, 100);
        uint32_t marked = drain_marked(&f, 1); /* all above 80, none below 20 */
        assert_true(marked >= 19 && marked < 79);
        fixture_close(&f);
    }
}

/* A threshold that is moved up to where it is configured does not rise further. */
static void switch_queue__never_marks_later_than_configured(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "red");
    fixture_open(&f, &cfg);
    assert_true(gw_switch_mark_at(f.sw, 1, 95 * SIZE));
    feed_data(&f, 1, 100);
    assert_true(drain_marked(&f, 1) >= 19);
    fixture_close(&f);
}

static void switch_queue__says_when_a_discipline_does_not_mark(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    fixture_open(&f, &cfg);
    assert_false(gw_switch_mark_at(f.sw, 1, SIZE));
    feed_data(&f, 1, 21);
    assert_int_equal(drain_marked(&f, 1), 0);
    fixture_close(&f);
    union gw_algo_cfg off;
    struct gw_switch_cfg red = cfg_of(&f, "red");
    gw_algo_defaults(&red.qdisc->algo, off.bytes);
    assert_int_equal(gw_algo_set(&red.qdisc->algo, off.bytes, "mark", "off"), 0);
    red.qdisc_cfg = off.bytes;
    fixture_open(&f, &red);
    assert_false(gw_switch_mark_at(f.sw, 1, SIZE));
    fixture_close(&f);
}

/* Classes of the next packets of a port, in the order in which they leave. */
static void expect_classes(struct fixture *f, uint16_t port, const uint8_t *classes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *pkt;
        assert_int_equal(gw_node_output(f->node, port, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
        assert_int_equal(pkt->q.class, classes[i]);
        gw_pkt_release(&f->pool, pkt);
    }
    assert_int_equal(gw_switch_backlog(f->sw, port), 0);
}

static void feed_classes(struct fixture *f, uint32_t dst)
{
    static const uint8_t classes[] = {1, 6, GW_CLASS_CONTROL, 3, 0};
    for (uint32_t i = 0; i < GW_COUNT_OF(classes); i++) {
        struct gw_pkt pkt = packet(dst, classes[i]);
        feed(f, 3, &pkt);
    }
}

/* A port serves class 6 as class 0, and class 1 as class 5; another port as they came. */
static void switch_queue__serves_the_classes_of_a_port(void **state)
{
    static const uint8_t map[GW_CLASSES] = {0, 5, 2, 3, 4, 5, 0, 7};
    static const uint8_t same[GW_CLASSES] = {0, 1, 2, 3, 4, 5, 6, 7};
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "prio");
    fixture_open(&f, &cfg);
    gw_switch_set_classes(f.sw, 1, map);
    for (uint32_t dst = 0; dst < 2; dst++)
        feed_classes(&f, dst);
    expect_classes(&f, 0, (const uint8_t[]){7, 6, 3, 1, 0}, 5);
    expect_classes(&f, 1, (const uint8_t[]){7, 5, 3, 0, 0}, 5);
    gw_switch_set_classes(f.sw, 1, same);
    feed_classes(&f, 1);
    expect_classes(&f, 1, (const uint8_t[]){7, 6, 3, 1, 0}, 5);
    fixture_close(&f);
}

/* What a neighbour at one port of a lossless switch has been told, and has told it. */
struct neighbour {
    gw_time shut_until; /* it holds the port back; 0: it does not */
    bool is_told;       /* to hold its data back */
    bool is_ready;
};

struct lossless {
    struct fixture f;
    struct gw_prng prng;
    struct neighbour neighbours[PORTS];
    uint32_t trains; /* of more than one packet */
    gw_time now;
};

static const struct gw_pause_cfg pause = {.xoff = 10 * SIZE, .xon = 6 * SIZE, .time = 40 * GW_US};

static void collect(struct lossless *l)
{
    struct gw_node *node = l->f.node;
    if (gw_node_deadline(node) != GW_TIME_NEVER && !gw_time_before(l->now, gw_node_deadline(node)))
        gw_node_expire(node, l->now);
    assert_true(node->deadline == GW_TIME_NEVER || gw_time_before(l->now, node->deadline));
    for (uint16_t i = 0; i < node->ready_count; i++)
        l->neighbours[node->ready[i]].is_ready = true;
    node->ready_count = 0;
}

/* Everything in a train is alike, was let go by the neighbour, and has left no trace of the switch.
 */
static void check_train(struct lossless *l, uint16_t port, struct gw_pkt **pkts, uint32_t count)
{
    const struct neighbour *neighbour = &l->neighbours[port];
    bool is_shut = neighbour->shut_until && gw_time_before(l->now, neighbour->shut_until);
    l->trains += count > 1;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pkts[i]->dst, port);
        assert_int_equal(pkts[i]->q.in, 0);
        assert_int_equal(pkts[i]->q.rank, pkts[i]->seq); /* as it came */
        assert_true(pkts[i]->q.class == GW_CLASS_CONTROL || !is_shut);
        assert_true(pkts[i]->q.class == pkts[0]->q.class && pkts[i]->entropy == pkts[0]->entropy);
    }
}

/* Pulls a port once. */
static void pull(struct lossless *l, uint16_t port)
{
    struct gw_pkt *pkts[TRAIN + 1];
    struct neighbour *neighbour = &l->neighbours[port];
    if (!neighbour->is_ready)
        return;
    uint32_t answer = gw_node_output(l->f.node, port, pkts, TRAIN + 1, l->now);
    uint32_t count = answer & ~GW_OUTPUT_MORE;
    neighbour->is_ready = (answer & GW_OUTPUT_MORE) != 0;
    assert_true(count <= TRAIN);
    if (count && pkts[0]->q.kind == GW_PKT_PAUSE) {
        assert_int_equal(count, 1);
        neighbour->is_told = pkts[0]->pause != 0;
    } else {
        check_train(l, port, pkts, count);
    }
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(&l->f.pool, pkts[i]);
    collect(l);
}

/* A burst from a neighbour that may send, of up to two flows. */
static void arrive(struct lossless *l, uint16_t in)
{
    uint32_t dst = gw_prng_below(&l->prng, PORTS);
    uint32_t count = 1 + gw_prng_below(&l->prng, 6);
    for (uint32_t i = 0; i < count; i++) {
        bool is_control = gw_prng_below(&l->prng, 4) == 0;
        struct gw_pkt copy = packet(dst, is_control ? GW_CLASS_CONTROL : GW_CLASS_BEST_EFFORT);
        copy.entropy = (uint16_t)(gw_prng_below(&l->prng, 8) == 0);
        copy.seq = copy.q.rank = (uint32_t)gw_prng_next(&l->prng);
        if (!is_control && l->neighbours[in].is_told)
            continue;
        struct gw_pkt *pkt = gw_pkt_claim(&l->f.pool);
        assert_non_null(pkt);
        *pkt = copy;
        gw_node_input(l->f.node, in, &pkt, 1, l->now);
        collect(l);
    }
}

/* A neighbour holds a port back for a while, or lets it go. */
static void hold_back(struct lossless *l, uint16_t port, gw_time time)
{
    struct gw_pkt *pkt = gw_pkt_claim(&l->f.pool);
    assert_non_null(pkt);
    gw_pause_fill(pkt, CONTROL, time);
    gw_node_input(l->f.node, port, &pkt, 1, l->now);
    l->neighbours[port].shut_until = time ? gw_time_add(l->now, time) : 0;
    collect(l);
}

static void step(struct lossless *l)
{
    uint16_t port = (uint16_t)gw_prng_below(&l->prng, PORTS);
    uint32_t what = gw_prng_below(&l->prng, 16);
    l->now += gw_prng_below(&l->prng, 4) * GW_US;
    collect(l);
    if (what < 6)
        arrive(l, port);
    else if (what == 6)
        hold_back(l, port, gw_prng_below(&l->prng, 3) * 10 * GW_US);
    else
        pull(l, port);
}

/*
 * Random bursts, PAUSEs and pulls: nothing is dropped, data never leaves by a port that is held
 * back, trains do form, and when all has left everybody has been told to go on.
 */
static void switch_queue__makes_trains_of_what_may_leave(void **state)
{
    static const char *const disciplines[] = {"fifo", "red", "trim", "prio"};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(disciplines); i++) {
        struct lossless l = {.prng = gw_prng_derive(71, i), .now = GW_S};
        struct gw_switch_cfg cfg = cfg_of(&l.f, disciplines[i]);
        cfg.train = TRAIN;
        cfg.lossless = &pause;
        fixture_open(&l.f, &cfg);
        for (uint32_t s = 0; s < STEPS; s++)
            step(&l);
        assert_true(l.trains > STEPS / 100);
        for (uint16_t port = 0; port < PORTS; port++)
            hold_back(&l, port, 0);
        for (uint32_t s = 0; s < PKTS; s++)
            pull(&l, (uint16_t)(s % PORTS));
        for (uint16_t port = 0; port < PORTS; port++) {
            assert_int_equal(gw_switch_backlog(l.f.sw, port), 0);
            assert_false(l.neighbours[port].is_told);
            assert_true(gw_switch_port_stats(l.f.sw, port).pauses > 0);
            assert_true(gw_switch_port_stats(l.f.sw, port).paused > 0);
            assert_int_equal(gw_switch_port_stats(l.f.sw, port).drops, 0);
        }
        assert_true(gw_node_deadline(l.f.node) == GW_TIME_NEVER);
        fixture_close(&l.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch_queue__marks_above_the_threshold_of_a_port),
        cmocka_unit_test(switch_queue__never_marks_later_than_configured),
        cmocka_unit_test(switch_queue__says_when_a_discipline_does_not_mark),
        cmocka_unit_test(switch_queue__serves_the_classes_of_a_port),
        cmocka_unit_test(switch_queue__makes_trains_of_what_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
