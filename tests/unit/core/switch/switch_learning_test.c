/* A switch that learns addresses and sends trains: where packets go, and who is not let through. */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/error.h"
#include "core/pause.h"
#include "base/prng.h"

enum {
    PORTS = 4,
    UPLINK = 0,
    PKTS = 4096,
    SIZE = 1000,
    CAPACITY = 64 * SIZE,
    LEARNED_EACH = 4,
};

struct fixture {
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_pkt_pool pool;
    uint32_t serial; /* of packets */
};

static void open(struct fixture *f, const char *qdisc, uint32_t train)
{
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, qdisc, &f->pool);
    cfg.capacity = gw_test_capacity(CAPACITY);
    cfg.learned_max = LEARNED_EACH * PORTS;
    cfg.learned_idle = GW_S;
    cfg.uplink = UPLINK;
    cfg.train = train;
    *f = (struct fixture){.serial = 0};
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->sw = gw_test_switch_open(&cfg);
    f->node = gw_switch_node(f->sw);
}

static void close(struct fixture *f)
{
    gw_test_switch_close(f->sw, PORTS, &f->pool);
}

/* A data packet as it arrives; its number is in seq. */
static void arrive(struct fixture *f, uint16_t port, uint32_t src, uint32_t dst, uint32_t size,
                   uint16_t entropy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.size = size, .key = gw_flow_key(src, dst, 1), .class = 3, .ecn = GW_ECN_ECT0},
        .src = src,
        .dst = dst,
        .flow = 1,
        .seq = f->serial++,
        .entropy = entropy,
        .buf = GW_BUF_NONE,
    };
    gw_node_input(f->node, port, &pkt, 1, 0);
    f->node->ready_count = 0;
}

/* Packets that a port holds; all leave. */
static uint32_t count_out(struct fixture *f, uint16_t port)
{
    struct gw_pkt *pkts[64];
    uint32_t count = 0, result;
    do {
        result = gw_node_output(f->node, port, pkts, 64, 0);
        for (uint32_t i = 0; i < (result & ~GW_OUTPUT_MORE); i++)
            gw_pkt_release(&f->pool, pkts[i]);
        count += result & ~GW_OUTPUT_MORE;
    } while (result & GW_OUTPUT_MORE);
    return count;
}

static void switch__learns_where_addresses_are(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 1);
    arrive(&f, 1, 0xaaaaaaaa, 0xbbbbbbbb, SIZE, 0); /* not known: up */
    assert_int_equal(count_out(&f, UPLINK), 1);
    arrive(&f, 2, 0xbbbbbbbb, 0xaaaaaaaa, SIZE, 0);
    assert_int_equal(count_out(&f, 1), 1);
    arrive(&f, UPLINK, 0xcccccccc, 0xbbbbbbbb, SIZE, 0); /* from above */
    assert_int_equal(count_out(&f, 2), 1);
    arrive(&f, 1, 0xaaaaaaaa, 0xcccccccc, SIZE, 0);
    assert_int_equal(count_out(&f, UPLINK), 1);
    assert_int_equal(gw_switch_stats(f.sw)->unroutable, 0);
    assert_int_equal(gw_switch_stats(f.sw)->spoofed, 0);
    close(&f);
}

static void switch__sends_nothing_back_where_it_came_from(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 1);
    arrive(&f, UPLINK, 1, 2, SIZE, 0); /* unknown here, too: two switches must not play ball */
    arrive(&f, 1, 3, 4, SIZE, 0);
    assert_int_equal(count_out(&f, UPLINK), 1);
    arrive(&f, 1, 3, 3, SIZE, 0);
    assert_int_equal(count_out(&f, 1), 0);
    assert_int_equal(gw_switch_stats(f.sw)->unroutable, 2);
    close(&f);
}

static void switch__drops_what_is_sent_in_the_name_of_others(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 1);
    assert_int_equal(gw_switch_open_port(f.sw, 1, 7, true, 0), 0);
    assert_int_equal(count_out(&f, UPLINK), 1); /* announced */
    arrive(&f, 2, 7, 8, SIZE, 0);
    arrive(&f, UPLINK, 7, 8, SIZE, 0);
    assert_int_equal(count_out(&f, UPLINK), 0);
    assert_int_equal(gw_switch_stats(f.sw)->spoofed, 2);
    assert_int_equal(gw_switch_open_port(f.sw, 2, 7, true, 0), GW_ERR_INVALID);
    arrive(&f, 1, 7, 8, SIZE, 0);
    arrive(&f, 1, 7, 8, SIZE, 0);
    gw_switch_close_port(f.sw, 1, 0);
    assert_int_equal(gw_switch_open_port(f.sw, 2, 7, true, 0), 0); /* it has moved */
    arrive(&f, 3, 9, 7, SIZE, 0);
    assert_int_equal(count_out(&f, 2), 1);
    close(&f);
}

/* A host has the address that it has attached with; what it invents is nobody's. */
static void switch__a_host_has_one_address(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 1);
    assert_int_equal(gw_switch_open_port(f.sw, 1, 7, true, 0), 0);
    assert_int_equal(gw_switch_open_port(f.sw, 2, 8, true, 0), 0);
    assert_int_equal(count_out(&f, UPLINK), 2); /* announced */
    for (uint32_t i = 0; i < 100; i++)
        arrive(&f, 1, 100 + i, 8, SIZE, 0);
    assert_int_equal(gw_switch_stats(f.sw)->spoofed, 100);
    assert_int_equal(count_out(&f, 2), 0);
    assert_int_equal(gw_switch_open_port(f.sw, 3, 100, true, 0), 0); /* it is free */
    arrive(&f, 1, 7, 100, SIZE, 0);
    assert_int_equal(count_out(&f, 3), 1);
    gw_switch_close_port(f.sw, 1, 0);
    arrive(&f, 1, 100, 8, SIZE, 0); /* from nobody's port: still not what hangs elsewhere */
    assert_int_equal(gw_switch_stats(f.sw)->spoofed, 101);
    close(&f);
}

/* A switch below that sends in ever new names leaves room for hosts, and for what is below others.
 */
static void switch__a_neighbour_fills_no_table(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 1);
    assert_int_equal(gw_switch_open_port(f.sw, 1, 7, false, 0), 0);
    for (uint32_t i = 0; i < 1000; i++)
        arrive(&f, 1, 100 + i, 7, SIZE, 0);
    assert_int_equal(gw_switch_stats(f.sw)->unlearned, 1000 - (LEARNED_EACH * PORTS - 1));
    assert_int_equal(gw_switch_open_port(f.sw, 2, 8, true, 0), 0);
    assert_int_equal(gw_switch_open_port(f.sw, 3, 9, false, 0), 0);
    arrive(&f, 3, 10, 8, SIZE, 0);
    arrive(&f, 2, 8, 10, SIZE, 0);
    assert_int_equal(count_out(&f, 2), 1);
    assert_int_equal(count_out(&f, 3), 1);
    close(&f);
}

/* What the switch below announces, the one above learns; nobody else hears of it. */
static void hear(struct fixture *above, struct fixture *below, uint16_t port)
{
    struct gw_pkt *pkt;
    uint32_t result;
    do {
        result = gw_node_output(below->node, UPLINK, &pkt, 1, 0);
        if ((result & ~GW_OUTPUT_MORE) == 0)
            break;
        assert_int_equal(pkt->q.class, GW_CLASS_CONTROL);
        arrive(above, port, pkt->src, pkt->dst, pkt->q.size, 0);
        gw_pkt_release(&below->pool, pkt);
    } while (result & GW_OUTPUT_MORE);
}

/* Nobody sends as nobody: else what is announced would go his way. A PAUSE is of one link. */
static void switch__drops_what_nobody_can_have_sent(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 1);
    arrive(&f, 1, GW_ADDRESS_NONE, 8, SIZE, 0);
    assert_int_equal(count_out(&f, UPLINK), 0);
    assert_int_equal(gw_switch_open_port(f.sw, 2, 7, true, 0), 0);
    assert_int_equal(count_out(&f, 1), 0);
    assert_int_equal(count_out(&f, UPLINK), 1);
    struct gw_pkt *pause = gw_pkt_claim(&f.pool);
    gw_pause_fill(pause, 64, 200 * GW_S);
    pause->src = 9;
    pause->dst = 7;
    gw_node_input(f.node, 1, &pause, 1, 0);
    assert_int_equal(count_out(&f, 2), 0);
    assert_int_equal(gw_switch_stats(f.sw)->spoofed, 2);
    close(&f);
}

/* All that waits at a port of one switch arrives at a port of another. */
static void carry(struct fixture *from, uint16_t out, struct fixture *to, uint16_t in)
{
    struct gw_pkt *pkt;
    while (gw_node_output(from->node, out, &pkt, 1, 0) & ~GW_OUTPUT_MORE) {
        arrive(to, in, pkt->src, pkt->dst, pkt->q.size, pkt->entropy);
        gw_pkt_release(&from->pool, pkt);
    }
}

/*
 * Two racks: a rank in the first is heard in the second, and from then on nobody takes its address
 * there, whether he attaches with it or hangs below a switch below; and what he sends in its name
 * before that does not pass the switch above, which has heard where the rank is.
 */
static void switch__what_is_above_cannot_be_claimed_below(void **state)
{
    (void)state;
    struct fixture top, rack, other;
    open(&top, "fifo", 1);
    open(&rack, "fifo", 1);
    open(&other, "fifo", 1);
    assert_int_equal(gw_switch_open_port(rack.sw, 1, 7, true, 0), 0);
    carry(&rack, UPLINK, &top, 1);
    assert_int_equal(gw_switch_open_port(other.sw, 1, 9, true, 0), 0);
    carry(&other, UPLINK, &top, 2);
    arrive(&other, 3, 7, 9, SIZE, 0); /* below a switch there, before it has heard of 7 */
    arrive(&other, 3, 7, 8, SIZE, 0);
    carry(&other, UPLINK, &top, 2);
    assert_int_equal(gw_switch_stats(top.sw)->spoofed, 1);
    gw_switch_close_port(other.sw, 3, 0);
    assert_int_equal(count_out(&other, 1), 1);

    arrive(&rack, 1, 7, 9, SIZE, 0);
    carry(&rack, UPLINK, &top, 1);
    carry(&top, 2, &other, UPLINK);
    assert_int_equal(count_out(&other, 1), 1);
    assert_int_equal(gw_switch_open_port(other.sw, 2, 7, true, 0), GW_ERR_INVALID);
    assert_int_equal(gw_switch_open_port(other.sw, 2, 7, false, 0), GW_ERR_INVALID);
    arrive(&other, 3, 7, 9, SIZE, 0);
    assert_int_equal(gw_switch_stats(other.sw)->spoofed, 1);
    arrive(&other, 1, 9, 7, SIZE, 0); /* what is for it goes up, and arrives */
    carry(&other, UPLINK, &top, 2);
    carry(&top, 1, &rack, UPLINK);
    assert_int_equal(count_out(&rack, 1), 1);

    gw_switch_close_port(other.sw, UPLINK, 0); /* another uplink may have others above it */
    assert_int_equal(gw_switch_open_port(other.sw, 2, 7, true, 0), 0);
    close(&other);
    close(&rack);
    close(&top);
}

static void switch__announces_who_is_below(void **state)
{
    (void)state;
    struct fixture top, leaf;
    open(&leaf, "fifo", 1);
    open(&top, "fifo", 1);
    assert_int_equal(gw_switch_open_port(leaf.sw, 1, 7, true, 0), 0);
    hear(&top, &leaf, 3);
    arrive(&top, 2, 9, 7, SIZE, 0); /* 7 has never sent anything */
    assert_int_equal(count_out(&top, 3), 1);
    arrive(&leaf, 2, 5, 7, SIZE, 0); /* below a switch below */
    close(&top);
    open(&top, "fifo", 1); /* it has restarted, and the leaf attaches again */
    assert_int_equal(gw_switch_open_port(leaf.sw, UPLINK, 77, false, 0), 0);
    hear(&top, &leaf, 3);
    arrive(&top, 2, 9, 7, SIZE, 0);
    arrive(&top, 2, 9, 5, SIZE, 0);
    assert_int_equal(count_out(&top, 3), 2);
    assert_int_equal(gw_switch_stats(leaf.sw)->unroutable + gw_switch_stats(top.sw)->unroutable, 0);
    close(&top);
    close(&leaf);
}

static void switch__a_closed_port_drops_what_waits(void **state)
{
    (void)state;
    struct fixture f;
    open(&f, "fifo", 4);
    assert_int_equal(gw_switch_open_port(f.sw, 1, 7, true, 0), 0);
    for (uint16_t i = 0; i < 5; i++)
        arrive(&f, 2, 8, 7, SIZE, i); /* five trains */
    struct gw_pkt *pkt;
    assert_int_equal(gw_node_output(f.node, 1, &pkt, 1, 0), 1 | GW_OUTPUT_MORE);
    gw_pkt_release(&f.pool, pkt);
    assert_int_equal(gw_switch_backlog(f.sw, 1), 4 * SIZE);
    gw_switch_close_port(f.sw, 1, 0);
    assert_int_equal(gw_switch_backlog(f.sw, 1), 0);
    assert_int_equal(gw_switch_port_stats(f.sw, 1).drops, 4);
    for (uint32_t i = 0; i < LEARNED_EACH * PORTS; i++)
        arrive(&f, 3, 100 + i, 8, SIZE, 0);
    assert_int_equal(gw_switch_stats(f.sw)->unlearned, 1); /* 8 has a place as well */
    close(&f);
}

/* Random packets leave in trains as they would leave alone: the same ones, each flow in order. */
static void trains_of(const char *qdisc, uint64_t seed)
{
    struct fixture f;
    struct gw_prng prng = gw_prng_derive(seed, 0);
    uint32_t next[3] = {0}, sent = 0, left = 0, trains = 0;
    open(&f, qdisc, 8);
    assert_int_equal(gw_switch_open_port(f.sw, 1, 7, true, 0), 0);
    assert_int_equal(gw_switch_open_port(f.sw, 2, 8, true, 0), 0);
    for (uint32_t round = 0; round < 400; round++) {
        for (uint32_t i = gw_prng_below(&prng, 12); i > 0; i--, sent++)
            arrive(&f, 2, 8, 7, gw_prng_below(&prng, 5) ? SIZE : SIZE / 2,
                   (uint16_t)gw_prng_below(&prng, 3));
        struct gw_pkt *pkts[16];
        uint32_t max = 1 + gw_prng_below(&prng, 16);
        uint32_t count = gw_node_output(f.node, 1, pkts, max, 0) & ~GW_OUTPUT_MORE;
        assert_true(count <= max && count <= 8);
        trains += count > 1;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(pkts[i]->entropy, pkts[0]->entropy);
            assert_true(i + 1 == count || pkts[i]->q.size == pkts[0]->q.size);
            assert_true(pkts[i]->q.size <= pkts[0]->q.size);
            assert_true(pkts[i]->seq >= next[pkts[i]->entropy]);
            next[pkts[i]->entropy] = pkts[i]->seq + 1;
            gw_pkt_release(&f.pool, pkts[i]);
        }
        left += count;
    }
    left += count_out(&f, 1);
    struct gw_port_stats stats = gw_switch_port_stats(f.sw, 1);
    assert_int_equal(left + stats.drops, sent);
    assert_int_equal(stats.out_packets, left);
    assert_true(trains > 10);
    close(&f);
}

static void switch__trains_keep_every_packet_and_its_order(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++)
        for (uint64_t seed = 1; seed <= 5; seed++)
            trains_of(gw_qdisc_registry.algos[i]->name, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch__learns_where_addresses_are),
        cmocka_unit_test(switch__sends_nothing_back_where_it_came_from),
        cmocka_unit_test(switch__drops_what_is_sent_in_the_name_of_others),
        cmocka_unit_test(switch__drops_what_nobody_can_have_sent),
        cmocka_unit_test(switch__a_host_has_one_address),
        cmocka_unit_test(switch__a_neighbour_fills_no_table),
        cmocka_unit_test(switch__what_is_above_cannot_be_claimed_below),
        cmocka_unit_test(switch__announces_who_is_below),
        cmocka_unit_test(switch__a_closed_port_drops_what_waits),
        cmocka_unit_test(switch__trains_keep_every_packet_and_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
