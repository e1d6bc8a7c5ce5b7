/* Marking: its chance against the queue length, and when it is decided. */
#include "support.h"

#include "core/qdisc/red.h"

enum {
    PACKETS = 256,
    SIZE = 1000,
    CAPACITY = 100 * SIZE,
};

static struct gw_pkt packets[PACKETS];

struct port {
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t memory[GW_QDISC_STATE_MAX / 8];
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port outside;
};

/* Opens `port` with "name=value" pairs after the discipline's name, ended by NULL. */
static void port_open(struct port *port, const char *qdisc, const char *const *options)
{
    *port = (struct port){.ops = (const void *)gw_registry_find(&gw_qdisc_registry, qdisc),
                          .prng = gw_prng_derive(11, 0)};
    gw_algo_defaults(&port->ops->algo, &port->cfg);
    for (; options && options[0]; options += 2)
        assert_int_equal(gw_algo_set(&port->ops->algo, &port->cfg, options[0], options[1]), 0);
    gw_pkt_pool_init(&port->pool, packets, 0, PACKETS, NULL);
    port->outside =
        (struct gw_qdisc_port){.pool = &port->pool, .prng = &port->prng, .trim_size = 64};
    port->ops->init(port->memory, &port->cfg, CAPACITY);
}

static void enqueue(struct port *port, enum gw_ecn ecn)
{
    struct gw_pkt *victim;
    struct gw_pkt *pkt = gw_pkt_claim(&port->pool);
    assert_non_null(pkt);
    pkt->q = (struct gw_qpkt){.size = SIZE, .ecn = (uint8_t)ecn, .flags = GW_PKT_TRIMMABLE};
    assert_int_equal(
        port->ops->enqueue(port->memory, &port->cfg, &port->outside, pkt, UINT64_MAX, &victim),
        GW_QDISC_QUEUED);
}

/* The codepoint with which the next packet leaves. */
static enum gw_ecn dequeue(struct port *port)
{
    struct gw_pkt *pkt = port->ops->dequeue(port->memory, &port->cfg, &port->outside);
    assert_non_null(pkt);
    enum gw_ecn ecn = pkt->q.ecn;
    gw_pkt_release(&port->pool, pkt);
    return ecn;
}

static uint64_t marks(const struct port *port)
{
    return ((const struct gw_qdisc_state *)(const void *)port->memory)->marks;
}

/*
 * P1: in a queue that holds `queued` packets after each departure, the share of marks is
 * (queued - 20) / 60 within four binomial deviations, and exactly 0 and 1 outside of [20, 80].
 */
static void red_mark__rises_linearly(void **state)
{
    static const char *const qdiscs[] = {"red", "trim", "prio"};
    enum { TRIALS = 20000 };
    (void)state;
    for (size_t d = 0; d < GW_COUNT_OF(qdiscs); d++)
        for (uint32_t queued = 0; queued <= 95; queued += 5) {
            struct port port;
            port_open(&port, qdiscs[d], NULL);
            for (uint32_t i = 0; i < queued; i++)
                enqueue(&port, GW_ECN_NOT_ECT);
            double marked = 0;
            for (int i = 0; i < TRIALS; i++) {
                enqueue(&port, GW_ECN_ECT0);
                marked += dequeue(&port) == GW_ECN_CE;
            }
            /* The first `queued` departures were not capable of ECN. */
            double trials = TRIALS - queued;
            double share = queued <= 20 ? 0 : queued >= 80 ? 1 : (queued - 20) / 60.0;
            double off = marked - trials * share;
            assert_true(off * off <= 16 * trials * share * (1 - share));
            assert_int_equal(marks(&port), (uint64_t)marked);
        }
}

/*
 * P2: a step at 50 packets, and 60 packets in a burst. At enqueue the last ten are marked; at
 * dequeue the first ten are, which the sender hears of one queueing delay earlier.
 */
static void red_mark__depends_on_when_it_is_decided(void **state)
{
    static const char *const modes[] = {"enqueue", "dequeue", "off"};
    (void)state;
    for (size_t mode = 0; mode < GW_COUNT_OF(modes); mode++) {
        const char *options[] = {"mark", modes[mode], "kmin", "50%", "kmax", "50%", NULL};
        struct port port;
        port_open(&port, "red", options);
        for (int i = 1; i <= 60; i++)
            enqueue(&port, i % 2 ? GW_ECN_ECT0 : GW_ECN_ECT1);
        for (int i = 1; i <= 60; i++) {
            /* The i-th to leave found i packets with itself, and leaves 60 - i behind. */
            bool expected = mode == 0 ? i > 50 : mode == 1 ? 60 - i > 50 : false;
            assert_int_equal(dequeue(&port) == GW_ECN_CE, expected);
        }
        assert_int_equal(marks(&port), mode == 0 ? 10 : mode == 1 ? 9 : 0);
    }
}

/* Packets that cannot carry CE are left alone, and CE that is there already is not counted. */
static void red_mark__respects_the_codepoint(void **state)
{
    (void)state;
    const char *options[] = {"kmin", "0%", "kmax", "0%", NULL};
    struct port port;
    port_open(&port, "red", options);
    static const enum gw_ecn in[] = {GW_ECN_NOT_ECT, GW_ECN_CE, GW_ECN_ECT0, GW_ECN_ECT1,
                                     GW_ECN_CE};
    static const enum gw_ecn out[] = {GW_ECN_NOT_ECT, GW_ECN_CE, GW_ECN_CE, GW_ECN_CE, GW_ECN_CE};
    for (size_t i = 0; i < GW_COUNT_OF(in); i++)
        enqueue(&port, in[i]);
    for (size_t i = 0; i < GW_COUNT_OF(in); i++)
        assert_int_equal(dequeue(&port), out[i]);
    assert_int_equal(marks(&port), 2);
}

/* Random numbers are drawn between the thresholds only: the stream is shared by all ports. */
static void red_mark__draws_only_between_the_thresholds(void **state)
{
    (void)state;
    struct port port;
    port_open(&port, "red", NULL);
    for (int i = 0; i < 100; i++)
        enqueue(&port, GW_ECN_ECT0);
    for (int left = 99; left >= 0; left--) {
        uint64_t before = port.prng.state;
        dequeue(&port);
        assert_int_equal(port.prng.state != before, left > 20 && left <= 80);
    }
}

/* Absurd thresholds are clamped, not trusted. */
static void red_init__clamps_thresholds(void **state)
{
    (void)state;
    struct gw_red red;
    gw_red_init(&red, &(struct gw_red_cfg){.kmin = GW_Q16_ONE / 2, .kmax = GW_Q16_ONE / 4},
                CAPACITY, UINT32_MAX);
    assert_int_equal(red.kmin, CAPACITY / 2);
    assert_int_equal(red.kmax, CAPACITY / 2);
    gw_red_init(&red, &(struct gw_red_cfg){.kmin = -GW_Q16_ONE, .kmax = INT64_MAX}, UINT32_MAX,
                UINT32_MAX);
    assert_int_equal(red.kmin, 0);
    assert_int_equal(red.kmax, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(red_mark__rises_linearly),
        cmocka_unit_test(red_mark__depends_on_when_it_is_decided),
        cmocka_unit_test(red_mark__respects_the_codepoint),
        cmocka_unit_test(red_mark__draws_only_between_the_thresholds),
        cmocka_unit_test(red_init__clamps_thresholds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
