/* The disciplines one by one: who waits, who is served first, and who is trimmed or dropped. */
#include "unit/core/qdisc/qdisc_port.h"

static void qdisc_enqueue__drops_at_the_tail(void **state)
{
    static const char *const names[] = {"fifo", "red", "prio", "dlcp"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(names); i++) {
        struct port port;
        port_open(&port, names[i], NULL, NULL, CAPACITY);
        for (uint32_t seq = 0; seq < SLOTS; seq++)
            assert_int_equal(put_data(&port, seq), GW_QDISC_QUEUED);
        assert_int_equal(put_data(&port, SLOTS), GW_QDISC_DROPPED);
        for (uint32_t seq = 0; seq < SLOTS; seq++)
            expect(&port, seq, SIZE);
        expect_empty(&port);
    }
}

/* A packet that is larger than the whole queue never fits, not even into an empty one. */
static void qdisc_enqueue__refuses_what_exceeds_the_capacity(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++) {
        struct port port;
        port_open(&port, gw_qdisc_registry.algos[i]->name, NULL, NULL, SIZE);
        assert_int_equal(put(&port, (struct gw_qpkt){.size = SIZE + 1}, 1), GW_QDISC_DROPPED);
        assert_int_equal(put(&port, (struct gw_qpkt){.size = SIZE}, 2), GW_QDISC_QUEUED);
        expect(&port, 2, SIZE);
        expect_empty(&port);
    }
}

static void qdisc_enqueue__stays_within_the_shared_pool(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++) {
        struct port port;
        port_open(&port, gw_qdisc_registry.algos[i]->name, NULL, NULL, CAPACITY);
        port.pool_free = SIZE - 1;
        assert_int_not_equal(put_data(&port, 1), GW_QDISC_QUEUED);
        port.pool_free = TRIM_SIZE - 1;
        assert_int_equal(put_data(&port, 2), GW_QDISC_DROPPED);
        assert_int_equal(put_class(&port, GW_CLASS_CONTROL, 3), GW_QDISC_DROPPED);
        port.pool_free = TRIM_SIZE;
        assert_int_equal(put_class(&port, GW_CLASS_CONTROL, 4), GW_QDISC_QUEUED);
    }
}

/* Control passes all data that waits, in every discipline, and a port without room for data too. */
static void qdisc_dequeue__serves_control_first(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++) {
        struct port port;
        port_open(&port, gw_qdisc_registry.algos[i]->name, NULL, NULL, CAPACITY);
        put_data(&port, 1);
        put_data(&port, 2);
        put_class(&port, GW_CLASS_CONTROL, 3);
        put_class(&port, GW_CLASS_CONTROL, 4);
        expect(&port, 3, TRIM_SIZE);
        expect(&port, 4, TRIM_SIZE);
        expect(&port, 1, SIZE);
        put_class(&port, GW_CLASS_CONTROL, 5);
        expect(&port, 5, TRIM_SIZE);
        expect(&port, 2, SIZE);
        expect_empty(&port);

        port_open(&port, gw_qdisc_registry.algos[i]->name, NULL, NULL, 0);
        assert_int_equal(put_class(&port, GW_CLASS_CONTROL, 6), GW_QDISC_QUEUED);
        expect(&port, 6, TRIM_SIZE);
    }
}

static const char *const two_lanes[] = {"fifo", "red", "trim"};

/* Three of control for one of data while both wait; who waits alone does not use up its turns. */
static void lanes_dequeue__gives_data_its_turns(void **state)
{
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(two_lanes); i++) {
        struct port port;
        port_open(&port, two_lanes[i], "control_weight", "3", CAPACITY);
        for (uint32_t seq = 10; seq < 30; seq++)
            put_class(&port, GW_CLASS_CONTROL, seq);
        for (uint32_t seq = 10; seq < 20; seq++)
            expect(&port, seq, TRIM_SIZE);
        for (uint32_t seq = 0; seq < 4; seq++)
            put_data(&port, seq);
        for (uint32_t round = 0; round < 3; round++) {
            for (uint32_t n = 0; n < 3; n++)
                expect(&port, 20 + 3 * round + n, TRIM_SIZE);
            expect(&port, round, SIZE);
        }
        expect(&port, 29, TRIM_SIZE); /* the last of control: one of three turns */
        expect(&port, 3, SIZE);
        for (uint32_t seq = 4; seq < 6; seq++)
            put_data(&port, seq);
        for (uint32_t seq = 30; seq < 34; seq++)
            put_class(&port, GW_CLASS_CONTROL, seq);
        expect(&port, 30, TRIM_SIZE);
        expect(&port, 31, TRIM_SIZE);
        expect(&port, 4, SIZE);
        expect(&port, 32, TRIM_SIZE);
        expect(&port, 33, TRIM_SIZE);
        expect(&port, 5, SIZE);
        expect_empty(&port);
    }
}

/* Default room for control: twice the capacity, here 20000 bytes and so 312 headers of 64. */
static void qdisc_enqueue__limits_control(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++) {
        struct port port;
        port_open(&port, gw_qdisc_registry.algos[i]->name, NULL, NULL, CAPACITY / 4);
        uint32_t queued = 0;
        while (put_class(&port, GW_CLASS_CONTROL, queued) == GW_QDISC_QUEUED)
            queued++;
        assert_int_equal(queued, CAPACITY / 2 / TRIM_SIZE);
    }
}

static void trim_enqueue__cuts_the_arrival(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, "trim", NULL, NULL, CAPACITY);
    for (uint32_t seq = 0; seq < SLOTS; seq++)
        put_data(&port, seq);
    for (uint32_t seq = SLOTS; seq < SLOTS + 3; seq++) {
        assert_int_equal(put_data(&port, seq), GW_QDISC_TRIMMED);
        assert_int_equal(port.victim->seq, seq);
        assert_int_equal(port.victim->q.flags, GW_PKT_TRIMMABLE | GW_PKT_TRIMMED);
        assert_int_equal(port.victim->q.class, GW_CLASS_CONTROL);
    }
    for (uint32_t seq = SLOTS; seq < SLOTS + 3; seq++)
        expect(&port, seq, TRIM_SIZE);
    for (uint32_t seq = 0; seq < SLOTS; seq++)
        expect(&port, seq, SIZE);
    expect_empty(&port);
}

/* Half of the time the tail loses its payload and its place: the arrival follows the others. */
static void trim_enqueue__cuts_the_tail_at_random(void **state)
{
    enum { TRIALS = 1000 };
    (void)state;
    uint32_t tails = 0;
    struct port port;
    port_open(&port, "trim", "victim", "random_tail", CAPACITY);
    for (int trial = 0; trial < TRIALS; trial++) {
        for (uint32_t seq = 0; seq < SLOTS; seq++)
            put_data(&port, seq);
        assert_int_equal(put_data(&port, SLOTS), GW_QDISC_TRIMMED);
        uint32_t cut = port.victim->seq;
        assert_in_range(cut, SLOTS - 1, SLOTS);
        tails += cut == SLOTS - 1;
        expect(&port, cut, TRIM_SIZE);
        for (uint32_t seq = 0; seq <= SLOTS; seq++)
            if (seq != cut)
                expect(&port, seq, SIZE);
        expect_empty(&port);
    }
    /* Four deviations of 15.8. */
    assert_in_range(tails, TRIALS / 2 - 64, TRIALS / 2 + 64);
}

/* A small tail cannot make room for a large arrival, and one that must not be cut is not. */
static void trim_enqueue__spares_a_tail_that_does_not_help(void **state)
{
    (void)state;
    for (int trimmable = 0; trimmable <= 1; trimmable++) {
        struct port port;
        port_open(&port, "trim", "victim", "random_tail", 3 * SIZE);
        for (int i = 0; i < 64; i++) {
            struct gw_qpkt tail = {.size = trimmable ? 100 : SIZE,
                                   .flags = trimmable ? GW_PKT_TRIMMABLE : 0};
            put(&port, (struct gw_qpkt){.size = 3 * SIZE - tail.size}, 0);
            put(&port, tail, 1);
            assert_int_equal(put_data(&port, 2), GW_QDISC_TRIMMED);
            assert_int_equal(port.victim->seq, 2);
            expect(&port, 2, TRIM_SIZE);
            expect(&port, 0, 3 * SIZE - tail.size);
            expect(&port, 1, tail.size);
        }
    }
}

static void trim_enqueue__drops_what_must_not_be_cut(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, "trim", NULL, NULL, SIZE);
    put_data(&port, 0);
    assert_int_equal(put(&port, (struct gw_qpkt){.size = SIZE}, 1), GW_QDISC_DROPPED);
    expect(&port, 0, SIZE);
    expect_empty(&port);
}

/* 64 headers of 64 bytes fit the least control queue; then even trimming cannot help. */
static void trim_enqueue__drops_when_control_is_full(void **state)
{
    static const char *const victims[] = {"arrival", "random_tail"};
    (void)state;
    for (size_t v = 0; v < GW_COUNT_OF(victims); v++) {
        struct port port;
        port_open(&port, "trim", "victim", victims[v], 2 * SIZE);
        put_data(&port, 0);
        put_data(&port, 1);
        for (uint32_t seq = 2; seq < 2 + 64; seq++)
            assert_int_equal(put_data(&port, seq), GW_QDISC_TRIMMED);
        for (uint32_t seq = 66; seq < 166; seq++)
            assert_int_equal(put_data(&port, seq), GW_QDISC_DROPPED);
        assert_int_equal(((struct gw_qdisc_state *)port.memory)->backlog,
                         2 * SIZE + 64 * TRIM_SIZE);
    }
}

/* P2: as long as the control queue has room, no data packet that may be cut is dropped. */
static void trim_enqueue__never_drops_trimmable_data(void **state)
{
    static const char *const victims[] = {"arrival", "random_tail"};
    (void)state;
    for (size_t v = 0; v < GW_COUNT_OF(victims); v++) {
        struct port port;
        port_open(&port, "trim", "victim", victims[v], CAPACITY);
        struct gw_prng prng = gw_prng_derive(3, v);
        uint32_t trims = 0;
        for (uint32_t seq = 0; seq < 20000; seq++) {
            struct gw_qpkt q = {.size = TRIM_SIZE + gw_prng_below(&prng, SIZE),
                                .flags = GW_PKT_TRIMMABLE};
            enum gw_qdisc_verdict verdict = put(&port, q, seq);
            assert_int_not_equal(verdict, GW_QDISC_DROPPED);
            trims += verdict == GW_QDISC_TRIMMED;
            /* Bursts of eight arrivals; then 8.5 packets leave on average, between none and 17. */
            for (uint32_t i = seq % 8 == 7 ? gw_prng_below(&prng, 18) : 0; i > 0; i--) {
                struct gw_pkt *pkt = port.ops->dequeue(port.memory, &port.cfg, &port.outside);
                if (pkt)
                    gw_pkt_release(&port.pool, pkt);
            }
        }
        assert_true(trims > 500);
    }
}

static const char *const strict[] = {"prio", "dlcp"};

static void strict_dequeue__serves_higher_classes_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(strict); i++) {
        struct port port;
        port_open(&port, strict[i], NULL, NULL, 2 * GW_CLASSES * SIZE);
        for (uint32_t round = 0; round < 2; round++)
            for (uint8_t level = 0; level < GW_CLASSES; level++)
                assert_int_equal(put_class(&port, level, level * 10 + round), GW_QDISC_QUEUED);
        for (uint32_t class = GW_CLASSES; class -- > 0;)
            for (uint32_t round = 0; round < 2; round++)
                expect(&port, class * 10 + round, class == GW_CLASS_CONTROL ? TRIM_SIZE : SIZE);
        expect_empty(&port);
    }
}

/* P3 under random traffic: nothing leaves while something of a higher class waits. */
static void strict_dequeue__never_inverts(void **state)
{
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(strict); i++) {
        struct port port;
        port_open(&port, strict[i], NULL, NULL, 100 * SIZE);
        struct gw_prng prng = gw_prng_derive(4, i);
        uint32_t waiting[GW_CLASSES] = {0};
        for (uint32_t step = 0; step < 20000; step++) {
            if (gw_prng_below(&prng, 2)) {
                uint8_t class = (uint8_t)gw_prng_below(&prng, GW_CLASSES);
                waiting[class] += put_class(&port, class, step) == GW_QDISC_QUEUED;
                continue;
            }
            struct gw_pkt *pkt = port.ops->dequeue(port.memory, &port.cfg, &port.outside);
            uint32_t highest = GW_CLASSES;
            while (highest > 0 && waiting[highest - 1] == 0)
                highest--;
            assert_int_equal(pkt == NULL, highest == 0);
            if (pkt) {
                assert_int_equal(pkt->q.class, highest - 1);
                waiting[pkt->q.class]--;
                gw_pkt_release(&port.pool, pkt);
            }
        }
    }
}

/* The classes share the capacity: one class may take all of it. */
static void strict_enqueue__shares_the_capacity(void **state)
{
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(strict); i++) {
        struct port port;
        port_open(&port, strict[i], NULL, NULL, CAPACITY);
        for (uint32_t seq = 0; seq < SLOTS; seq++)
            assert_int_equal(put_class(&port, GW_CLASS_BEST_EFFORT, seq), GW_QDISC_QUEUED);
        assert_int_equal(put_class(&port, GW_CLASS_DATA_MAX, SLOTS), GW_QDISC_DROPPED);
        expect(&port, 0, SIZE);
        assert_int_equal(put_class(&port, GW_CLASS_DATA_MAX, SLOTS + 1), GW_QDISC_QUEUED);
        expect(&port, SLOTS + 1, SIZE);
    }
}

/* PIAS needs it: marks tell of the whole port, whichever class waits there. */
static void prio_enqueue__marks_by_the_total(void **state)
{
    (void)state;
    struct port port;
    struct gw_qpkt first = {.size = SIZE, .class = GW_CLASS_DATA_MAX, .ecn = GW_ECN_ECT0};
    port_open(&port, "prio", "mark", "enqueue", CAPACITY);
    assert_int_equal(gw_algo_set(&port.ops->algo, &port.cfg, "kmin", "50%"), 0);
    assert_int_equal(gw_algo_set(&port.ops->algo, &port.cfg, "kmax", "50%"), 0);
    port.ops->init(port.memory, &port.cfg, CAPACITY);
    const struct gw_qdisc_state *base = (const void *)port.memory;
    for (uint32_t seq = 0; seq < SLOTS / 2; seq++)
        put_class(&port, (uint8_t)(seq % 3), seq);
    put_class(&port, GW_CLASS_CONTROL, SLOTS); /* does not count */
    assert_int_equal(base->marks, 0);
    put(&port, first, SLOTS / 2);
    assert_int_equal(base->marks, 1);
    expect(&port, SLOTS, TRIM_SIZE);
    expect(&port, SLOTS / 2, SIZE);
    expect(&port, 2, SIZE);
    put(&port, first, SLOTS / 2 + 1);
    assert_int_equal(base->marks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qdisc_enqueue__drops_at_the_tail),
        cmocka_unit_test(qdisc_enqueue__refuses_what_exceeds_the_capacity),
        cmocka_unit_test(qdisc_enqueue__stays_within_the_shared_pool),
        cmocka_unit_test(qdisc_dequeue__serves_control_first),
        cmocka_unit_test(lanes_dequeue__gives_data_its_turns),
        cmocka_unit_test(qdisc_enqueue__limits_control),
        cmocka_unit_test(trim_enqueue__cuts_the_arrival),
        cmocka_unit_test(trim_enqueue__cuts_the_tail_at_random),
        cmocka_unit_test(trim_enqueue__spares_a_tail_that_does_not_help),
        cmocka_unit_test(trim_enqueue__drops_what_must_not_be_cut),
        cmocka_unit_test(trim_enqueue__drops_when_control_is_full),
        cmocka_unit_test(trim_enqueue__never_drops_trimmable_data),
        cmocka_unit_test(strict_dequeue__serves_higher_classes_first),
        cmocka_unit_test(strict_dequeue__never_inverts),
        cmocka_unit_test(strict_enqueue__shares_the_capacity),
        cmocka_unit_test(prio_enqueue__marks_by_the_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
