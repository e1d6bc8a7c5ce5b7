/* Dropping by worth: thresholds and limits of queues, and the four properties that follow. */
#include "unit/core/qdisc/qdisc_port.h"

enum {
    ROOM = 200 * SIZE,  /* more than any threshold here */
    SHARED = 20 * SIZE, /* by random traffic, which fills it now and then */
    STEPS = 20000,
    FRONT = GW_CLASS_DATA_MAX, /* the class of the front-most layers */
};

/* Opens a port with "name", "value" pairs, ended by NULL. */
static void open_with(struct port *port, const char *const *settings, uint32_t capacity)
{
    port_open(port, "dlcp", NULL, NULL, capacity);
    for (; settings[0]; settings += 2)
        assert_int_equal(gw_algo_set(&port->ops->algo, &port->cfg, settings[0], settings[1]), 0);
    memset(port->memory, 0, sizeof(port->memory));
    port->ops->init(port->memory, &port->cfg, capacity);
}

static const struct gw_qdisc_state *base(const struct port *port)
{
    return (const void *)port->memory;
}

static enum gw_qdisc_verdict put_worth(struct port *port, uint32_t class, enum gw_ecn ecn,
                                       uint32_t seq)
{
    return put(port, (struct gw_qpkt){.size = SIZE, .class = class & 7, .ecn = ecn & 3}, seq);
}

static struct gw_pkt *take(struct port *port)
{
    return port->ops->dequeue(port->memory, &port->cfg, &port->outside);
}

/* Unimportant packets of a class that an empty queue takes before it sheds one. */
static uint32_t taken(struct port *port, uint32_t class, enum gw_ecn ecn)
{
    uint32_t count = 0;
    while (put_worth(port, class, ecn, count) == GW_QDISC_QUEUED)
        count++;
    for (struct gw_pkt *pkt; (pkt = take(port)) != NULL;)
        gw_pkt_release(&port->pool, pkt);
    return count;
}

/* Packets that are taken while the queue holds no more than `bytes`. */
static uint32_t up_to(uint32_t bytes)
{
    return bytes / SIZE + 1;
}

/* T (1 + (j - 1) d): by default 32 KB in class 6, 16 KB more in each behind it. */
static void dlcp_init__makes_an_arithmetic_sequence(void **state)
{
    (void)state;
    struct port port;
    open_with(&port, (const char *const[]){NULL}, ROOM);
    for (uint32_t j = 1; j <= 7; j++)
        assert_int_equal(taken(&port, 7 - j, GW_ECN_NOT_ECT), up_to(32000 + (j - 1) * 16000));
    open_with(&port, (const char *const[]){"threshold", "4500", "step", "2", NULL}, ROOM);
    for (uint32_t j = 1; j <= 7; j++)
        assert_int_equal(taken(&port, 7 - j, GW_ECN_NOT_ECT), up_to(4500 + (j - 1) * 9000));
    /* Steps that lead below nothing, or beyond everything. */
    open_with(&port, (const char *const[]){"step", "-1", NULL}, ROOM);
    assert_int_equal(taken(&port, FRONT, GW_ECN_NOT_ECT), up_to(32000));
    assert_int_equal(taken(&port, 5, GW_ECN_NOT_ECT), 1);
    assert_int_equal(taken(&port, 0, GW_ECN_NOT_ECT), 1);
    open_with(&port, (const char *const[]){"threshold", "16000TB", "step", "100000000000", NULL},
              ROOM);
    assert_int_equal(taken(&port, FRONT, GW_ECN_NOT_ECT), ROOM / SIZE);
    assert_int_equal(taken(&port, 0, GW_ECN_NOT_ECT), ROOM / SIZE);
}

/* Lists are in the order of service, and the last value holds for the queues behind it. */
static void dlcp_init__takes_lists(void **state)
{
    static const char all[] = "1KB, 3KB, 5KB, 7KB, 9KB, 11KB, 13KB";
    (void)state;
    struct port port;
    open_with(&port, (const char *const[]){"thresholds", all, NULL}, ROOM);
    for (uint32_t j = 1; j <= 7; j++)
        assert_int_equal(taken(&port, 7 - j, GW_ECN_NOT_ECT), up_to((2 * j - 1) * 1000));
    open_with(&port, (const char *const[]){"thresholds", "9KB,2KB", NULL}, ROOM);
    for (uint32_t j = 1; j <= 7; j++)
        assert_int_equal(taken(&port, 7 - j, GW_ECN_NOT_ECT), up_to(j == 1 ? 9000 : 2000));
    open_with(&port, (const char *const[]){"limits", "50KB, 9KB", "thresholds", "1KB", NULL}, ROOM);
    for (uint32_t j = 1; j <= 7; j++) {
        assert_int_equal(taken(&port, 7 - j, GW_ECN_ECT0), up_to(j == 1 ? 50000 : 9000));
        assert_int_equal(taken(&port, 7 - j, GW_ECN_NOT_ECT), 2);
    }
}

/* What an important packet means: ECN-capable of either codepoint, or marked on its way. */
static void dlcp_enqueue__sheds_the_unimportant_and_marks_the_others(void **state)
{
    static const enum gw_ecn worth[] = {GW_ECN_ECT0, GW_ECN_ECT1, GW_ECN_CE};
    (void)state;
    struct port port;
    open_with(&port, (const char *const[]){"threshold", "2KB", NULL}, ROOM);
    for (uint32_t seq = 0; seq < 3; seq++)
        assert_int_equal(put_worth(&port, FRONT, GW_ECN_ECT0, seq), GW_QDISC_QUEUED);
    assert_int_equal(base(&port)->marks, 0);
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_NOT_ECT, 3), GW_QDISC_SHED);
    assert_int_equal(base(&port)->backlog, 3 * SIZE);
    for (uint32_t i = 0; i < GW_COUNT_OF(worth); i++)
        assert_int_equal(put_worth(&port, FRONT, worth[i], 3 + i), GW_QDISC_QUEUED);
    assert_int_equal(base(&port)->marks, 2); /* one had its mark already */
    for (uint32_t seq = 0; seq < 6; seq++) {
        struct gw_pkt *pkt = take(&port);
        assert_int_equal(pkt->seq, seq);
        assert_int_equal(pkt->q.ecn, seq < 3 ? GW_ECN_ECT0 : GW_ECN_CE);
        gw_pkt_release(&port.pool, pkt);
    }
    /* Other queues do not count, and control has no threshold. */
    for (uint32_t seq = 0; seq < 9; seq++)
        assert_int_equal(put_worth(&port, 0, GW_ECN_ECT0, seq), GW_QDISC_QUEUED);
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_NOT_ECT, 9), GW_QDISC_QUEUED);
    for (uint32_t seq = 0; seq < 9; seq++)
        assert_int_equal(put_worth(&port, GW_CLASS_CONTROL, GW_ECN_NOT_ECT, seq), GW_QDISC_QUEUED);
}

/* Where there is no room for anybody, nothing is said to be shed. */
static void dlcp_enqueue__tells_a_full_port_from_worth(void **state)
{
    (void)state;
    struct port port;
    open_with(&port, (const char *const[]){"threshold", "2KB", "limits", "4KB", NULL}, 8 * SIZE);
    for (uint32_t seq = 0; seq < 3; seq++)
        put_worth(&port, FRONT, GW_ECN_ECT0, seq);
    port.pool_free = SIZE - 1;
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_NOT_ECT, 3), GW_QDISC_DROPPED);
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_ECT0, 3), GW_QDISC_DROPPED);
    port.pool_free = UINT64_MAX;
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_NOT_ECT, 3), GW_QDISC_SHED);
    put_worth(&port, FRONT, GW_ECN_ECT0, 3);
    put_worth(&port, FRONT, GW_ECN_ECT0, 4);
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_NOT_ECT, 5), GW_QDISC_DROPPED); /* the limit */
    assert_int_equal(put_worth(&port, FRONT, GW_ECN_ECT0, 5), GW_QDISC_DROPPED);
    for (uint32_t seq = 5; seq < 8; seq++)
        assert_int_equal(put_worth(&port, 0, GW_ECN_ECT0, seq), GW_QDISC_QUEUED);
    assert_int_equal(put_worth(&port, 0, GW_ECN_ECT0, 8), GW_QDISC_DROPPED); /* the capacity */
    assert_int_equal(put_worth(&port, 0, GW_ECN_NOT_ECT, 8), GW_QDISC_DROPPED);
    assert_int_equal(base(&port)->backlog, 8 * SIZE);
}

/* What queues hold, as the test has it. */
struct model {
    uint32_t bytes[GW_CLASSES];
    uint32_t data;
};

/* P1 and P2 of one arrival: the verdict follows from what is queued and nothing else. */
static enum gw_qdisc_verdict arrive(struct port *port, struct model *model, struct gw_prng *prng,
                                    uint32_t limit)
{
    struct gw_qpkt q = {.size = 64 + gw_prng_below(prng, 1400),
                        .class = gw_prng_below(prng, GW_CLASSES) & 7,
                        .ecn = gw_prng_below(prng, 4) & 3};
    bool is_data = q.class != GW_CLASS_CONTROL;
    uint32_t held = model->bytes[q.class];
    uint32_t threshold = 1000 + 500 * (uint32_t)(GW_CLASS_DATA_MAX - q.class);
    bool fits = q.size <= port->pool_free &&
                (is_data ? model->data + q.size <= SHARED : held + q.size <= 2 * SHARED);
    enum gw_qdisc_verdict expected = GW_QDISC_QUEUED;
    if (!fits || (is_data && held > limit))
        expected = GW_QDISC_DROPPED;
    else if (is_data && held > threshold && q.ecn == GW_ECN_NOT_ECT)
        expected = GW_QDISC_SHED;
    assert_int_equal(put(port, q, 0), expected);
    if (expected == GW_QDISC_QUEUED) {
        model->bytes[q.class] += q.size;
        model->data += is_data ? q.size : 0;
    }
    return expected;
}

/* P3: what leaves is of the highest class that waits. */
static void leave(struct port *port, struct model *model)
{
    uint32_t highest = GW_CLASSES;
    while (highest > 0 && model->bytes[highest - 1] == 0)
        highest--;
    struct gw_pkt *pkt = take(port);
    assert_int_equal(pkt == NULL, highest == 0);
    if (!pkt)
        return;
    assert_int_equal(pkt->q.class, highest - 1);
    model->bytes[pkt->q.class] -= pkt->q.size;
    model->data -= pkt->q.class == GW_CLASS_CONTROL ? 0 : pkt->q.size;
    gw_pkt_release(&port->pool, pkt);
}

static void dlcp_enqueue__keeps_its_promises_under_random_traffic(void **state)
{
    static const struct {
        const char *limits;
        uint32_t bytes;
    } cases[] = {{"", UINT32_MAX}, {"4KB", 4000}};
    (void)state;
    for (size_t c = 0; c < GW_COUNT_OF(cases); c++) {
        struct port port;
        struct model model = {.data = 0};
        struct gw_prng prng = gw_prng_derive(17, c);
        uint32_t count[4] = {0};
        open_with(&port, (const char *const[]){"threshold", "1KB", "limits", cases[c].limits, NULL},
                  SHARED);
        for (uint32_t step = 0; step < STEPS; step++) {
            /* Alternately more comes and more goes. */
            if (gw_prng_below(&prng, 8) < (step / 100 % 2 ? 3u : 6u)) {
                port.pool_free = gw_prng_below(&prng, 16) ? UINT64_MAX : 700;
                count[arrive(&port, &model, &prng, cases[c].bytes)]++;
            } else {
                leave(&port, &model);
            }
        }
        assert_true(count[GW_QDISC_DROPPED] > 100 && count[GW_QDISC_SHED] > 100);
    }
}

/* P4: without thresholds it is prio that does not mark, packet by packet. */
static void dlcp__is_prio_without_thresholds(void **state)
{
    (void)state;
    struct port dlcp, prio;
    open_with(&dlcp, (const char *const[]){"threshold", "1TB", "step", "0", NULL}, CAPACITY);
    port_open(&prio, "prio", "mark", "off", CAPACITY);
    struct gw_prng prng = gw_prng_derive(23, 0);
    uint32_t dropped = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        if (gw_prng_below(&prng, 8) < (step / 100 % 2 ? 3u : 6u)) {
            struct gw_qpkt q = {.size = 64 + gw_prng_below(&prng, 1400),
                                .class = gw_prng_below(&prng, GW_CLASSES) & 7,
                                .ecn = gw_prng_below(&prng, 4) & 3};
            enum gw_qdisc_verdict verdict = put(&dlcp, q, step);
            assert_int_equal(verdict, put(&prio, q, step));
            dropped += verdict == GW_QDISC_DROPPED;
            continue;
        }
        struct gw_pkt *a = take(&dlcp), *b = take(&prio);
        assert_int_equal(a == NULL, b == NULL);
        if (!a)
            continue;
        assert_int_equal(a->seq, b->seq);
        assert_memory_equal(&a->q.size, &b->q.size, sizeof(a->q) - sizeof(a->q.next));
        gw_pkt_release(&dlcp.pool, a);
        gw_pkt_release(&prio.pool, b);
    }
    assert_true(dropped > 100);
    assert_int_equal(base(&dlcp)->backlog, base(&prio)->backlog);
    assert_int_equal(base(&dlcp)->marks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dlcp_init__makes_an_arithmetic_sequence),
        cmocka_unit_test(dlcp_init__takes_lists),
        cmocka_unit_test(dlcp_enqueue__sheds_the_unimportant_and_marks_the_others),
        cmocka_unit_test(dlcp_enqueue__tells_a_full_port_from_worth),
        cmocka_unit_test(dlcp_enqueue__keeps_its_promises_under_random_traffic),
        cmocka_unit_test(dlcp__is_prio_without_thresholds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
