/*
 * Forwarding against the verbs of the node: two switches are given the same packets by the same
 * link, one of them by each, and must send the same and have the same books.
 */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/prng.h"
#include "core/switch/switch_forward.h"

enum {
    PORTS = 2,
    IN = 0,
    OUT = 1,
    PKTS = 1024,
    CAPACITY = 10000,
    SIZE_MAX_DATA = 1500,
    SIZE_CONTROL = 64,
    STEPS = 20000,
    FREE_IN_8 = 5, /* of 8 steps those in which the link is free: queues fill up and run empty */
};

struct variant {
    const char *qdisc;
    const char *name; /* a parameter and its value, or NULL */
    const char *value;
    uint64_t shared; /* bytes of a shared buffer; 0: none */
    bool has_classes;
    bool passes; /* some packets are never queued */
};

/* One of the two switches. */
struct side {
    struct gw_pkt_pool pool;
    struct gw_switch *sw;
};

static void side_open(struct side *side, const struct variant *variant, const void *qdisc_cfg)
{
    static const uint16_t leaves[] = {OUT};
    gw_test_pool_open(&side->pool, NULL, PKTS, 0);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, variant->qdisc, &side->pool);
    cfg.qdisc_cfg = qdisc_cfg;
    cfg.capacity = gw_test_capacity(CAPACITY);
    cfg.routes = gw_test_routes(leaves, GW_COUNT_OF(leaves));
    cfg.shared = (struct gw_shared_buffer){.bytes = variant->shared, .alpha = GW_Q16_ONE};
    side->sw = gw_test_switch_open(&cfg);
    if (variant->has_classes)
        gw_switch_set_classes(side->sw, OUT, (const uint8_t[GW_CLASSES]){3, 2, 1, 0, 4, 5, 6, 7});
}

static struct gw_pkt *pull(struct side *side)
{
    struct gw_node *node = gw_switch_node(side->sw);
    struct gw_pkt *pkt = NULL;
    node->ready_count = 0;
    if (gw_switch_backlog(side->sw, OUT))
        gw_node_output(node, OUT, &pkt, 1, 0);
    return pkt;
}

static struct gw_pkt *claim(struct side *side, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&side->pool);
    assert_non_null(pkt);
    return *pkt = *copy, pkt;
}

static struct gw_pkt *arrive_by_verbs(struct side *side, const struct gw_pkt *copy, bool is_free)
{
    struct gw_pkt *pkt = claim(side, copy);
    gw_node_input(gw_switch_node(side->sw), IN, &pkt, 1, 0);
    return is_free ? pull(side) : NULL;
}

/* `passed` counts packets that leave without being queued. */
static struct gw_pkt *arrive_by_forwarding(struct side *side, const struct gw_pkt *copy,
                                           bool is_free, uint32_t *passed)
{
    struct gw_pkt *pkt = claim(side, copy);
    uint16_t out = gw_switch_way(side->sw, pkt);
    assert_int_equal(out, OUT);
    if (is_free && gw_switch_pass(side->sw, out, pkt)) {
        ++*passed;
        return pkt;
    }
    bool was_empty = gw_switch_backlog(side->sw, OUT) == 0;
    bool becomes_ready = gw_switch_wait(side->sw, IN, out, pkt, 0);
    assert_int_equal(becomes_ready, was_empty && gw_switch_backlog(side->sw, OUT) > 0);
    assert_int_equal(gw_switch_node(side->sw)->ready_count, 0);
    return is_free ? pull(side) : NULL;
}

static void check_same(struct side sides[2], struct gw_pkt *const pkts[2])
{
    assert_int_equal(pkts[0] == NULL, pkts[1] == NULL);
    if (!pkts[0])
        return;
    assert_int_equal(pkts[0]->seq, pkts[1]->seq);
    assert_int_equal(pkts[0]->q.size, pkts[1]->q.size);
    assert_int_equal(pkts[0]->q.flags, pkts[1]->q.flags);
    assert_int_equal(pkts[0]->q.class, pkts[1]->q.class);
    assert_int_equal(pkts[0]->q.ecn, pkts[1]->q.ecn);
    for (uint32_t i = 0; i < 2; i++)
        gw_pkt_release(&sides[i].pool, pkts[i]);
}

static struct gw_pkt random_pkt(struct gw_prng *prng, uint32_t seq)
{
    bool is_control = gw_prng_below(prng, 3) == 0;
    uint32_t size = SIZE_CONTROL + gw_prng_below(prng, SIZE_MAX_DATA - SIZE_CONTROL);
    return (struct gw_pkt){
        .q = {.size = is_control ? SIZE_CONTROL : size,
              .class = is_control ? GW_CLASS_CONTROL : gw_prng_below(prng, 3),
              .ecn = is_control ? GW_ECN_NOT_ECT : GW_ECN_ECT0,
              .rank = gw_prng_below(prng, 100),
              .key = gw_prng_below(prng, 4),
              .flags = is_control ? 0 : GW_PKT_TRIMMABLE,
              .kind = is_control ? GW_PKT_ACK : GW_PKT_DATA},
        .seq = seq,
        .buf = GW_BUF_NONE,
    };
}

/* Runs the variant; returns how many packets passed. */
static uint32_t compare(const struct variant *variant)
{
    const struct gw_algo *algo = gw_registry_find(&gw_qdisc_registry, variant->qdisc);
    union gw_algo_cfg qdisc_cfg;
    gw_algo_defaults(algo, &qdisc_cfg);
    if (variant->name)
        assert_int_equal(gw_algo_set(algo, &qdisc_cfg, variant->name, variant->value), 0);
    struct side sides[2];
    for (uint32_t i = 0; i < 2; i++)
        side_open(&sides[i], variant, qdisc_cfg.bytes);
    struct gw_prng prng = {.state = 7};
    uint32_t passed = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        bool is_free = gw_prng_below(&prng, 8) < FREE_IN_8;
        bool waits = gw_switch_backlog(sides[0].sw, OUT) > 0;
        if (is_free && waits) /* a departure goes before an arrival of the same time */
            check_same(sides, (struct gw_pkt *[2]){pull(&sides[0]), pull(&sides[1])});
        struct gw_pkt pkt = random_pkt(&prng, step);
        is_free = is_free && !waits;
        check_same(sides,
                   (struct gw_pkt *[2]){arrive_by_verbs(&sides[0], &pkt, is_free),
                                        arrive_by_forwarding(&sides[1], &pkt, is_free, &passed)});
    }
    struct gw_port_stats books[2];
    for (uint32_t i = 0; i < 2; i++)
        books[i] = gw_switch_port_stats(sides[i].sw, OUT);
    assert_memory_equal(&books[0], &books[1], sizeof(books[0]));
    assert_true(books[0].drops + books[0].trims > 0);
    for (uint32_t i = 0; i < 2; i++) {
        for (struct gw_pkt *left; (left = pull(&sides[i])) != NULL;)
            gw_pkt_release(&sides[i].pool, left);
        gw_test_switch_close(sides[i].sw, PORTS, &sides[i].pool);
    }
    return passed;
}

static void switch_forward__is_input_and_output(void **state)
{
    static const struct variant variants[] = {
        {.qdisc = "fifo", .passes = true},
        {.qdisc = "red", .passes = true},
        {.qdisc = "red", .name = "kmin", .value = "0", .passes = true},
        {.qdisc = "red", .name = "mark", .value = "enqueue"},
        {.qdisc = "trim", .passes = true},
        {.qdisc = "trim", .name = "victim", .value = "random_tail", .passes = true},
        {.qdisc = "trim", .name = "control_weight", .value = "2", .passes = true},
        {.qdisc = "trim", .name = "mark", .value = "enqueue"},
        {.qdisc = "trim", .shared = CAPACITY},
        {.qdisc = "trim", .has_classes = true},
    };
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(variants); i++)
        assert_int_equal(compare(&variants[i]) > 0, variants[i].passes);
}

/* Whether they let packets pass or not. */
static void switch_forward__serves_every_discipline(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++)
        compare(&(struct variant){.qdisc = gw_qdisc_registry.algos[i]->name});
}

/* One that no queue of its lane could hold is dropped, whether the link is free or not; and none
 * overtakes those that wait. */
static void switch_pass__refuses_the_large_and_the_late(void **state)
{
    (void)state;
    union gw_algo_cfg qdisc_cfg;
    const struct variant variant = {.qdisc = "fifo"};
    gw_algo_defaults(gw_registry_find(&gw_qdisc_registry, variant.qdisc), &qdisc_cfg);
    struct side side;
    side_open(&side, &variant, qdisc_cfg.bytes);
    struct gw_pkt pkt = {.q = {.size = CAPACITY, .kind = GW_PKT_DATA}, .buf = GW_BUF_NONE};
    assert_true(gw_switch_pass(side.sw, OUT, &pkt));
    pkt.q.size++;
    assert_false(gw_switch_pass(side.sw, OUT, &pkt));
    pkt.q.size = 1;
    assert_true(gw_switch_wait(side.sw, IN, OUT, claim(&side, &pkt), 0));
    assert_false(gw_switch_pass(side.sw, OUT, &pkt));
    gw_pkt_release(&side.pool, pull(&side));
    assert_true(gw_switch_pass(side.sw, OUT, &pkt));
    gw_test_switch_close(side.sw, PORTS, &side.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch_forward__is_input_and_output),
        cmocka_unit_test(switch_forward__serves_every_discipline),
        cmocka_unit_test(switch_pass__refuses_the_large_and_the_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
