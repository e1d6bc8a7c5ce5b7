/*
 * A lossless switch: when it pauses which link, what it does when it is paused, and that its books
 * are right whatever the queue discipline does with packets.
 */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/error.h"
#include "base/prng.h"

enum {
    PORTS = 4, /* destination d is behind port d */
    PKTS = 4096,
    SIZE = 1000,
    CONTROL = 64,
    XOFF = 10 * SIZE,
    XON = 6 * SIZE,
    CAPACITY = 100 * SIZE,
};

static const gw_time pause_time = 40 * GW_US;

static const uint16_t leaves[] = {0, 1, 2, 3};

struct fixture {
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_pkt_pool pool;
    union gw_algo_cfg qdisc_cfg; /* its own, so that a test can change a parameter */
    gw_time now;
    bool ready[PORTS];   /* reported, or being pulled */
    gw_time told[PORTS]; /* time of the latest PAUSE that left by a port; 0: may go on */
    uint32_t pauses_sent;
};

static void fixture_open(struct fixture *f, const char *qdisc, uint32_t capacity_each)
{
    static const struct gw_pause_cfg pause = {.xoff = XOFF, .xon = XON, .time = 40 * GW_US};
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, qdisc, &f->pool);
    cfg.capacity = gw_test_capacity(capacity_each);
    cfg.trim_size = CONTROL;
    cfg.routes = gw_test_routes(leaves, PORTS);
    cfg.lossless = &pause;
    *f = (struct fixture){.now = GW_S};
    gw_algo_defaults(&cfg.qdisc->algo, f->qdisc_cfg.bytes);
    cfg.qdisc_cfg = f->qdisc_cfg.bytes;
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->sw = gw_test_switch_open(&cfg);
    f->node = gw_switch_node(f->sw);
}

static void take_ready(struct fixture *f)
{
    for (uint32_t i = 0; i < f->node->ready_count; i++) {
        assert_false(f->ready[f->node->ready[i]]);
        f->ready[f->node->ready[i]] = true;
    }
    f->node->ready_count = 0;
}

/* Fires what is due now. */
static void expire(struct fixture *f)
{
    gw_time deadline = gw_node_deadline(f->node);
    if (deadline != GW_TIME_NEVER && !gw_time_before(f->now, deadline)) {
        gw_node_expire(f->node, f->now);
        deadline = gw_node_deadline(f->node);
        assert_true(deadline == GW_TIME_NEVER || gw_time_before(f->now, deadline));
    }
    take_ready(f);
}

/* The next packet that leaves by a port that is ready, as a copy; false: nothing does. */
static bool pull(struct fixture *f, uint16_t port, struct gw_pkt *copy)
{
    struct gw_pkt *pkt;
    if (!f->ready[port])
        return false;
    uint32_t result = gw_node_output(f->node, port, &pkt, 1, f->now);
    assert_int_equal(f->node->ready_count, 0); /* output itself reports nothing */
    f->ready[port] = (result & GW_OUTPUT_MORE) != 0;
    expire(f);
    if ((result & ~GW_OUTPUT_MORE) == 0)
        return false;
    *copy = *pkt;
    assert_int_equal(pkt->q.rank, 0);
    gw_pkt_release(&f->pool, pkt);
    if (copy->q.kind == GW_PKT_PAUSE) {
        f->told[port] = copy->pause;
        f->pauses_sent++;
    }
    return true;
}

/* Data packets that leave by a port when it is pulled up to `max` times. */
static uint32_t pull_data(struct fixture *f, uint16_t port, uint32_t max)
{
    struct gw_pkt pkt;
    uint32_t count = 0;
    while (max-- > 0 && pull(f, port, &pkt))
        count += pkt.q.kind == GW_PKT_DATA;
    return count;
}

static void feed(struct fixture *f, uint16_t in, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(f->node, in, &pkt, 1, f->now);
    take_ready(f);
    expire(f);
}

static struct gw_pkt packet(uint32_t dst, uint8_t class, uint32_t size)
{
    return (struct gw_pkt){
        .q = {.size = size,
              .class = class,
              .ecn = GW_ECN_ECT0,
              .flags = class == GW_CLASS_CONTROL ? 0 : GW_PKT_TRIMMABLE,
              .kind = class == GW_CLASS_CONTROL ? GW_PKT_ACK : GW_PKT_DATA},
        .dst = dst,
        .buf = GW_BUF_NONE,
    };
}

static void feed_data(struct fixture *f, uint16_t in, uint32_t dst, uint32_t count)
{
    struct gw_pkt pkt = packet(dst, GW_CLASS_BEST_EFFORT, SIZE);
    while (count-- > 0)
        feed(f, in, &pkt);
}

static void feed_control(struct fixture *f, uint16_t in, uint32_t dst)
{
    struct gw_pkt pkt = packet(dst, GW_CLASS_CONTROL, CONTROL);
    feed(f, in, &pkt);
}

static void feed_pause(struct fixture *f, uint16_t in, gw_time time)
{
    struct gw_pkt pkt;
    gw_pause_fill(&pkt, CONTROL, time);
    feed(f, in, &pkt);
}

/* Empties all queues: then every port has been told to go on, and nothing is left to do. */
static void fixture_close(struct fixture *f)
{
    struct gw_pkt pkt;
    for (uint16_t port = 0; port < PORTS; port++)
        feed_pause(f, port, 0);
    for (bool again = true; again;) {
        again = false;
        for (uint16_t port = 0; port < PORTS; port++)
            again |= pull(f, port, &pkt);
    }
    for (uint16_t port = 0; port < PORTS; port++) {
        assert_int_equal(gw_switch_backlog(f->sw, port), 0);
        assert_true(f->told[port] == 0);
    }
    assert_true(gw_node_deadline(f->node) == GW_TIME_NEVER);
    gw_test_pool_close(&f->pool);
    free(f->sw);
}

static void lossless_switch__pauses_at_xoff_and_resumes_at_xon(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt pkt;
    fixture_open(&f, "fifo", CAPACITY);
    feed_data(&f, 1, 0, XOFF / SIZE);
    assert_false(f.ready[1]);
    feed_data(&f, 1, 0, 1);
    assert_true(f.ready[1]);
    assert_true(pull(&f, 1, &pkt));
    assert_int_equal(pkt.q.kind, GW_PKT_PAUSE);
    assert_int_equal(pkt.q.class, GW_CLASS_CONTROL);
    assert_int_equal(pkt.q.size, CONTROL);
    assert_true(pkt.pause == pause_time);
    assert_false(f.ready[1]);

    assert_int_equal(pull_data(&f, 0, 4), 4); /* 7 packets are left */
    assert_false(f.ready[1]);
    assert_int_equal(pull_data(&f, 0, 1), 1);
    assert_true(f.ready[1]);
    assert_true(pull(&f, 1, &pkt));
    assert_true(pkt.q.kind == GW_PKT_PAUSE && pkt.pause == 0);
    struct gw_port_stats stats = gw_switch_port_stats(f.sw, 1);
    assert_true(stats.pauses == 1 && stats.out_packets == 0 && stats.out_bytes == 0);
    fixture_close(&f);
}

/* Of three ports that fill one queue, only the one that brought too much is paused. */
static void lossless_switch__pauses_only_who_brought_too_much(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "fifo", CAPACITY);
    feed_data(&f, 1, 0, XOFF / SIZE);
    feed_data(&f, 2, 0, XOFF / SIZE + 1);
    feed_data(&f, 3, 0, XOFF / SIZE - 1);
    feed_data(&f, 3, 1, 1); /* what waits anywhere counts */
    for (int i = 0; i < 100; i++)
        feed_control(&f, 1, 0); /* and control does not */
    assert_true(!f.ready[3] && f.ready[2]);
    feed_data(&f, 3, 2, 1);
    assert_true(f.ready[3]);
    assert_int_equal(pull_data(&f, 1, 10), 1);
    assert_int_equal(f.pauses_sent, 0);
    fixture_close(&f);
}

/* Every quarter of its time, until it is over. */
static void lossless_switch__repeats_a_pause(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt pkt;
    fixture_open(&f, "fifo", CAPACITY);
    feed_data(&f, 1, 0, XOFF / SIZE + 1);
    for (int i = 0; i < 10; i++) {
        assert_true(pull(&f, 1, &pkt));
        assert_true(pkt.q.kind == GW_PKT_PAUSE && pkt.pause == pause_time);
        assert_false(pull(&f, 1, &pkt));
        assert_true(gw_node_deadline(f.node) == f.now + pause_time / 4);
        f.now += pause_time / 4;
        expire(&f);
    }
    assert_true(gw_switch_port_stats(f.sw, 1).pauses == 1);
    pull_data(&f, 0, 100);
    assert_true(pull(&f, 1, &pkt) && pkt.pause == 0);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_close(&f);
}

/* Later, when there is a packet again. */
static void lossless_switch__pauses_though_the_pool_was_empty(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt pkt, *hoard = NULL;
    fixture_open(&f, "fifo", CAPACITY);
    feed_data(&f, 1, 0, XOFF / SIZE + 1);
    uint32_t chain = GW_PKT_NONE;
    while ((hoard = gw_pkt_claim(&f.pool)) != NULL) {
        hoard->q.next = chain;
        chain = gw_pkt_index(&f.pool, hoard);
    }
    assert_false(pull(&f, 1, &pkt));
    while (chain != GW_PKT_NONE) {
        hoard = gw_pkt_at(&f.pool, chain);
        chain = hoard->q.next;
        gw_pkt_release(&f.pool, hoard);
    }
    f.now = gw_node_deadline(f.node);
    expire(&f);
    assert_true(pull(&f, 1, &pkt));
    assert_true(pkt.q.kind == GW_PKT_PAUSE && pkt.pause == pause_time);
    fixture_close(&f);
}

static void lossless_switch__lets_control_pass_a_paused_port(void **state)
{
    (void)state;
    static const char *const qdiscs[] = {"fifo", "red", "trim", "prio"};
    for (size_t q = 0; q < GW_COUNT_OF(qdiscs); q++) {
        struct fixture f;
        struct gw_pkt pkt;
        fixture_open(&f, qdiscs[q], CAPACITY);
        feed_data(&f, 1, 0, 3);
        assert_int_equal(pull_data(&f, 0, 1), 1);
        feed_pause(&f, 0, pause_time);
        assert_int_equal(pull_data(&f, 0, 1), 0);
        assert_false(f.ready[0]);
        feed_data(&f, 2, 0, 1);
        feed_control(&f, 2, 0);
        feed_control(&f, 3, 0);
        feed_data(&f, 1, 3, 1); /* to a port that is not paused */
        assert_true(pull(&f, 0, &pkt) && pkt.q.kind == GW_PKT_ACK);
        assert_true(pull(&f, 0, &pkt) && pkt.q.kind == GW_PKT_ACK);
        assert_false(pull(&f, 0, &pkt));
        assert_int_equal(pull_data(&f, 3, 2), 1);
        f.now += 7 * GW_US;
        feed_pause(&f, 0, 0);
        assert_true(f.ready[0]);
        assert_int_equal(pull_data(&f, 0, 9), 3);
        assert_true(gw_switch_port_stats(f.sw, 0).paused == 7 * GW_US);
        fixture_close(&f);
    }
}

static void lossless_switch__goes_on_when_a_resume_is_lost(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "fifo", CAPACITY);
    gw_time start = f.now;
    feed_data(&f, 1, 0, 2);
    feed_pause(&f, 0, pause_time);
    f.now = start + pause_time / 2;
    feed_pause(&f, 0, pause_time);
    f.now = start + 3 * pause_time / 2 - 1;
    expire(&f);
    assert_int_equal(pull_data(&f, 0, 9), 0);
    f.now++;
    expire(&f);
    assert_int_equal(pull_data(&f, 0, 9), 2);
    assert_true(gw_switch_port_stats(f.sw, 0).paused == 3 * pause_time / 2);
    fixture_close(&f);
}

/* A PAUSE goes out by a port that is itself paused, and before control. */
static void lossless_switch__sends_a_pause_first(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt pkt;
    fixture_open(&f, "fifo", CAPACITY);
    feed_data(&f, 0, 1, 1);
    feed_control(&f, 0, 1);
    feed_pause(&f, 1, pause_time);
    feed_data(&f, 1, 0, XOFF / SIZE + 1);
    assert_true(pull(&f, 1, &pkt) && pkt.q.kind == GW_PKT_PAUSE);
    assert_true(pull(&f, 1, &pkt) && pkt.q.kind == GW_PKT_ACK);
    assert_false(pull(&f, 1, &pkt));
    fixture_close(&f);
}

/* Pulls a port once; `held` is what each port brought that still waits. */
static void pull_counted(struct fixture *f, uint16_t port, uint32_t held[PORTS])
{
    struct gw_pkt pkt;
    if (pull(f, port, &pkt) && pkt.q.class != GW_CLASS_CONTROL)
        held[pkt.src] -= pkt.q.size;
}

/* Feeds a random packet; false: it, or in its place another, was dropped or trimmed. */
static bool feed_counted(struct fixture *f, struct gw_prng *prng, uint32_t held[PORTS])
{
    uint16_t in = (uint16_t)gw_prng_below(prng, PORTS);
    uint16_t out = (uint16_t)gw_prng_below(prng, PORTS);
    struct gw_pkt pkt = packet(out, (uint8_t)gw_prng_below(prng, GW_CLASSES),
                               CONTROL + gw_prng_below(prng, 2 * SIZE));
    struct gw_port_stats before = gw_switch_port_stats(f->sw, out);
    pkt.src = in;
    feed(f, in, &pkt);
    struct gw_port_stats after = gw_switch_port_stats(f->sw, out);
    bool is_kept = after.drops == before.drops && after.trims == before.trims;
    bool is_control = pkt.q.class == GW_CLASS_CONTROL;
    assert_true(after.control_drops - before.control_drops ==
                (is_control ? after.drops - before.drops : 0));
    if (!is_control && is_kept)
        held[in] += pkt.q.size;
    return is_kept;
}

/*
 * Under any load, with packets dropped and trimmed on the way: each link is paused or not as a
 * count of what it brought says. The victim is always the arrival here.
 */
static void lossless_switch__keeps_books_whatever_is_lost(void **state)
{
    (void)state;
    static const char *const qdiscs[] = {"fifo", "red", "trim", "prio"};
    struct gw_prng prng = {.state = 5};
    for (size_t q = 0; q < GW_COUNT_OF(qdiscs); q++) {
        struct fixture f;
        uint32_t held[PORTS] = {0}, paused = 0, lost = 0;
        fixture_open(&f, qdiscs[q], 25 * SIZE);
        for (uint32_t i = 0; i < 20000; i++) {
            bool is_busy = i / 500 % 2; /* the load swings */
            if (gw_prng_below(&prng, 10) < (is_busy ? 6u : 3u))
                lost += !feed_counted(&f, &prng, held);
            else
                pull_counted(&f, (uint16_t)gw_prng_below(&prng, PORTS), held);
            for (uint16_t port = 0; port < PORTS; port++) {
                paused += f.told[port] != 0;
                if (!f.ready[port] && f.told[port])
                    assert_true(held[port] > XON);
                if (!f.ready[port] && !f.told[port])
                    assert_true(held[port] <= XOFF);
            }
            f.now += gw_prng_below(&prng, (uint32_t)(pause_time / 16));
            expire(&f);
        }
        assert_true(paused > 1000 && lost > 100);
        fixture_close(&f);
    }
}

/* The packet at the tail changes places with the arrival, which another port brought. */
static void lossless_switch__keeps_books_of_exchanged_packets(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "trim", 15 * SIZE);
    assert_int_equal(gw_algo_set(gw_registry_find(&gw_qdisc_registry, "trim"), f.qdisc_cfg.bytes,
                                 "victim", "random_tail"),
                     GW_OK);
    for (uint32_t round = 0; round < 100; round++) {
        feed_data(&f, 1, 0, 8);
        feed_data(&f, 2, 0, 8);
        feed_data(&f, 3, 0, 8);
        pull_data(&f, 0, 100);
        for (uint16_t port = 1; port < PORTS; port++)
            pull_data(&f, port, 2);
    }
    assert_true(gw_switch_port_stats(f.sw, 0).trims == 900);
    assert_true(gw_switch_port_stats(f.sw, 0).drops == 0);
    /* All is gone, so no port is near xoff. */
    feed_data(&f, 1, 0, XOFF / SIZE);
    assert_false(f.ready[1]);
    feed_data(&f, 1, 0, 1);
    assert_true(f.ready[1]);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless_switch__pauses_at_xoff_and_resumes_at_xon),
        cmocka_unit_test(lossless_switch__pauses_only_who_brought_too_much),
        cmocka_unit_test(lossless_switch__repeats_a_pause),
        cmocka_unit_test(lossless_switch__pauses_though_the_pool_was_empty),
        cmocka_unit_test(lossless_switch__lets_control_pass_a_paused_port),
        cmocka_unit_test(lossless_switch__goes_on_when_a_resume_is_lost),
        cmocka_unit_test(lossless_switch__sends_a_pause_first),
        cmocka_unit_test(lossless_switch__keeps_books_whatever_is_lost),
        cmocka_unit_test(lossless_switch__keeps_books_of_exchanged_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
