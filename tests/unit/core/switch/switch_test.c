/* The switch as a node: routing, ECMP, the shared pool, trimming, and the books of its ports. */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/prng.h"
#include "core/job.h"

enum {
    PORTS = 8,
    UPLINKS = 4,      /* ports 4 to 7, towards destination FAR */
    FAR = 4,          /* behind all uplinks; 0 to 3 are behind the ports of their numbers */
    NOWHERE = 5,      /* known, but without a route */
    DESTINATIONS = 6, /* 6 and above are not known at all */
    PKTS = 4096,
    SIZE = 1000,
    TRIM_SIZE = 64,
    CAPACITY = 10 * SIZE,
    CHI_SQUARE_MAX = 17, /* 3 degrees of freedom: exceeded once in 1400 */
};

static const uint16_t leaves[] = {0, 1, 2, 3, GW_ROUTE_SET | 0, GW_PORT_NONE};
static const struct gw_switch_set sets[] = {{.first = 0, .count = UPLINKS}};
static const uint16_t members[] = {4, 5, 6, 7};

struct fixture {
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_pkt_pool pool;
};

static struct gw_switch_cfg cfg_of(struct fixture *f, const char *qdisc)
{
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, qdisc, &f->pool);
    cfg.capacity = gw_test_capacity(CAPACITY);
    cfg.trim_size = TRIM_SIZE;
    cfg.routes = gw_test_routes(leaves, DESTINATIONS);
    cfg.routes.sets = sets;
    cfg.routes.members = members;
    cfg.shared.alpha = GW_Q16_ONE;
    return cfg;
}

static void fixture_open(struct fixture *f, const struct gw_switch_cfg *cfg)
{
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->sw = gw_test_switch_open(cfg);
    f->node = gw_switch_node(f->sw);
}

static uint32_t backlog(const struct fixture *f)
{
    uint32_t sum = 0;
    for (uint16_t port = 0; port < PORTS; port++)
        sum += gw_switch_backlog(f->sw, port);
    return sum;
}

static void check_books(const struct fixture *f)
{
    gw_test_switch_check(f->sw, PORTS);
}

/* The next packet of a port as a copy; false: the port is empty. Checks the contract of output. */
static bool pull(struct fixture *f, uint16_t port, struct gw_pkt *copy)
{
    struct gw_pkt *pkt;
    uint32_t result = gw_node_output(f->node, port, &pkt, 1, 0);
    assert_int_equal((result & GW_OUTPUT_MORE) != 0, gw_switch_backlog(f->sw, port) != 0);
    if ((result & ~GW_OUTPUT_MORE) == 0) {
        assert_int_equal(result, 0);
        return false;
    }
    *copy = *pkt;
    gw_pkt_release(&f->pool, pkt);
    return true;
}

static void fixture_close(struct fixture *f)
{
    struct gw_pkt pkt;
    check_books(f);
    for (uint16_t port = 0; port < PORTS; port++)
        while (pull(f, port, &pkt))
            ;
    check_books(f);
    assert_int_equal(backlog(f), 0);
    gw_test_pool_close(&f->pool);
    free(f->sw);
}

static struct gw_pkt packet(uint32_t dst, uint32_t key, uint16_t entropy)
{
    return (struct gw_pkt){
        .q = {.size = SIZE,
              .key = key,
              .ecn = GW_ECN_ECT0,
              .flags = GW_PKT_TRIMMABLE,
              .kind = GW_PKT_DATA},
        .dst = dst,
        .entropy = entropy,
        .buf = GW_BUF_NONE,
    };
}

static void feed(struct fixture *f, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(f->node, 0, &pkt, 1, 0);
}

static void feed_many(struct fixture *f, uint32_t dst, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt pkt = packet(dst, i, 0);
        feed(f, &pkt);
    }
}

/* The uplink that a packet takes. */
static uint32_t uplink_taken(struct fixture *f, const struct gw_pkt *copy)
{
    struct gw_pkt pkt;
    feed(f, copy);
    assert_int_equal(f->node->ready_count, 1);
    uint16_t port = f->node->ready[0];
    f->node->ready_count = 0;
    assert_true(port >= UPLINKS && port < PORTS);
    assert_true(pull(f, port, &pkt));
    return port - UPLINKS;
}

static uint32_t uplink_of(struct fixture *f, uint32_t key, uint16_t entropy)
{
    struct gw_pkt pkt = packet(FAR, key, entropy);
    return uplink_taken(f, &pkt);
}

static void switch_route__follows_the_table(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    fixture_open(&f, &cfg);
    for (uint32_t dst = 0; dst < UPLINKS; dst++) {
        struct gw_pkt pkt = packet(dst, 99, 7);
        feed(&f, &pkt);
        assert_int_equal(f.node->ready_count, 1);
        assert_int_equal(f.node->ready[0], dst);
        f.node->ready_count = 0;
        assert_true(pull(&f, (uint16_t)dst, &pkt));
        assert_int_equal(pkt.dst, dst);
    }
    fixture_close(&f);
}

static void switch_route__counts_what_has_none(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    fixture_open(&f, &cfg);
    static const uint32_t destinations[] = {NOWHERE, DESTINATIONS, UINT32_MAX};
    for (uint32_t i = 0; i < GW_COUNT_OF(destinations); i++) {
        struct gw_pkt pkt = packet(destinations[i], 1, 1);
        feed(&f, &pkt);
        assert_true(gw_switch_stats(f.sw)->unroutable == i + 1);
    }
    assert_int_equal(f.node->ready_count, 0);
    fixture_close(&f);
}

/* From the next packet on; what is queued stays where it is. */
static void switch_route__can_be_replaced(void **state)
{
    (void)state;
    static const uint16_t other[] = {3, 2, 1, 0};
    struct fixture f;
    struct gw_pkt pkt;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    fixture_open(&f, &cfg);
    feed_many(&f, 0, 1);
    struct gw_switch_routes routes = cfg.routes;
    routes.leaves = other;
    routes.destination_count = GW_COUNT_OF(other);
    gw_switch_set_routes(f.sw, &routes);
    feed_many(&f, 0, 2);
    assert_true(pull(&f, 0, &pkt) && !pull(&f, 0, &pkt));
    assert_true(pull(&f, 3, &pkt) && pull(&f, 3, &pkt) && !pull(&f, 3, &pkt));
    feed_many(&f, FAR, 1);
    assert_true(gw_switch_stats(f.sw)->unroutable == 1);
    f.node->ready_count = 0;
    fixture_close(&f);
}

/* All packets of one flow and entropy take one port, whatever else they carry. */
static void switch_ecmp__keeps_flow_and_entropy_together(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    struct gw_prng prng = {.state = 3};
    fixture_open(&f, &cfg);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t key = (uint32_t)gw_prng_next(&prng);
        uint16_t entropy = (uint16_t)gw_prng_next(&prng);
        uint32_t first = uplink_of(&f, key, entropy);
        struct gw_pkt pkt = packet(FAR, key, entropy);
        pkt.q.size = 64;
        pkt.q.class = GW_CLASS_CONTROL;
        pkt.q.kind = GW_PKT_ACK;
        pkt.seq = i;
        pkt.src = i;
        feed(&f, &pkt);
        assert_int_equal(f.node->ready[0], UPLINKS + first);
        f.node->ready_count = 0;
        assert_true(pull(&f, (uint16_t)(UPLINKS + first), &pkt));
    }
    fixture_close(&f);
}

/* Whatever flows and entropies: every round of packets uses every uplink once, from any start. */
static void switch_turns__differ_by_one_packet_at_most(void **state)
{
    (void)state;
    for (uint16_t start = 0; start < UPLINKS; start++) {
        struct fixture f;
        struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
        struct gw_prng prng = {.state = start};
        uint16_t turns[] = {start};
        uint32_t loads[UPLINKS] = {0};
        cfg.routes.turns = turns;
        fixture_open(&f, &cfg);
        for (uint32_t i = 0; i < 100; i++) {
            uint32_t uplink = uplink_of(&f, (uint32_t)gw_prng_next(&prng) % 3, (uint16_t)(i % 2));
            assert_int_equal(uplink, (start + i) % UPLINKS);
            loads[uplink]++;
        }
        for (uint32_t i = 0; i < UPLINKS; i++)
            assert_int_equal(loads[i], 100 / UPLINKS);
        fixture_close(&f);
    }
}

/* A JOIN, of which the switch notes whether there were other ways, takes one turn like the rest. */
static void switch_turns__find_the_way_of_a_packet_once(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    uint16_t turns[] = {0};
    cfg.routes.turns = turns;
    fixture_open(&f, &cfg);
    for (uint32_t i = 0; i < 3 * UPLINKS; i++) {
        struct gw_pkt pkt = packet(FAR, i, 0);
        pkt.q.kind = i % 3 ? GW_PKT_DATA : GW_PKT_JOB;
        pkt.agg_flags = GW_JOB_JOIN;
        assert_int_equal(uplink_taken(&f, &pkt), i % UPLINKS);
    }
    fixture_close(&f);
}

/* The switch reads its digit of the label, and nothing else matters. */
static void switch_labels__take_their_digit(void **state)
{
    static const uint32_t divisors[] = {1, 4, 10, 1000, 65536};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(divisors); i++) {
        struct fixture f;
        struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
        struct gw_prng prng = {.state = i};
        cfg.routes.label_divisor = divisors[i];
        fixture_open(&f, &cfg);
        for (uint32_t label = 0; label < 65536; label += 77) {
            uint32_t uplink = uplink_of(&f, (uint32_t)gw_prng_next(&prng), (uint16_t)label);
            assert_int_equal(uplink, label / divisors[i] % UPLINKS);
        }
        fixture_close(&f);
    }
}

static double chi_square(const uint32_t *counts, uint32_t cells, uint32_t total)
{
    double sum = 0, expected = (double)total / cells;
    for (uint32_t i = 0; i < cells; i++)
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    return sum;
}

/* Flows of consecutive numbers, entropies in a row, and both at random: each spreads evenly. */
static void switch_ecmp__spreads_evenly(void **state)
{
    (void)state;
    enum {
        FLOWS = 20000,
    };
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    struct gw_prng prng = {.state = 4};
    fixture_open(&f, &cfg);
    uint32_t by_flow[UPLINKS] = {0}, by_entropy[UPLINKS] = {0}, by_both[UPLINKS] = {0};
    for (uint32_t i = 0; i < FLOWS; i++) {
        by_flow[uplink_of(&f, gw_flow_key(i % 100, 1000, i / 100), 0)]++;
        by_entropy[uplink_of(&f, 12345, (uint16_t)i)]++;
        uint32_t key = (uint32_t)gw_prng_next(&prng);
        by_both[uplink_of(&f, key, (uint16_t)gw_prng_next(&prng))]++;
    }
    assert_true(chi_square(by_flow, UPLINKS, FLOWS) < CHI_SQUARE_MAX);
    assert_true(chi_square(by_entropy, UPLINKS, FLOWS) < CHI_SQUARE_MAX);
    assert_true(chi_square(by_both, UPLINKS, FLOWS) < CHI_SQUARE_MAX);
    fixture_close(&f);
}

/* Switches with other salts choose independently, or a tree would use few of its paths. */
static void switch_ecmp__depends_on_the_salt(void **state)
{
    (void)state;
    enum {
        FLOWS = 10000,
    };
    struct fixture a, b;
    struct gw_switch_cfg cfg_a = cfg_of(&a, "fifo"), cfg_b = cfg_of(&b, "fifo");
    cfg_b.seed = 2;
    fixture_open(&a, &cfg_a);
    fixture_open(&b, &cfg_b);
    uint32_t pairs[UPLINKS * UPLINKS] = {0};
    for (uint32_t i = 0; i < FLOWS; i++)
        pairs[uplink_of(&a, i, 5) * UPLINKS + uplink_of(&b, i, 5)]++;
    assert_true(chi_square(pairs, UPLINKS * UPLINKS, FLOWS) < 38); /* 15 degrees: 1 in 1000 */
    fixture_close(&a);
    fixture_close(&b);
}

/* The 256 entropies of a flow reach every port, whatever the flow. */
static void switch_ecmp__reaches_all_ports_by_entropy(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    fixture_open(&f, &cfg);
    for (uint32_t key = 0; key < 100; key++) {
        uint32_t seen = 0;
        for (uint16_t entropy = 0; entropy < 256; entropy++)
            seen |= 1u << uplink_of(&f, key, entropy);
        assert_int_equal(seen, (1 << UPLINKS) - 1);
    }
    fixture_close(&f);
}

/* One busy port with alpha 1 gets half of the pool. */
static void switch_pool__gives_one_port_half(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    cfg.shared.bytes = 12 * SIZE;
    fixture_open(&f, &cfg);
    feed_many(&f, 0, 20);
    assert_int_equal(gw_switch_backlog(f.sw, 0), 6 * SIZE);
    assert_true(gw_switch_port_stats(f.sw, 0).drops == 14);
    f.node->ready_count = 0;
    fixture_close(&f);
}

/* Under any load the ports together never hold more than the pool, and what leaves is given back.
 */
static void switch_pool__is_never_exceeded(void **state)
{
    (void)state;
    static const char *const qdiscs[] = {"fifo", "red", "trim", "prio", "dlcp"};
    static const gw_q16 alphas[] = {GW_Q16_ONE / 2, GW_Q16_ONE, 8 * GW_Q16_ONE};
    struct gw_prng prng = {.state = 6};
    for (uint32_t q = 0; q < GW_COUNT_OF(qdiscs) * GW_COUNT_OF(alphas); q++) {
        struct fixture f;
        struct gw_pkt pkt;
        struct gw_switch_cfg cfg = cfg_of(&f, qdiscs[q % GW_COUNT_OF(qdiscs)]);
        cfg.shared.bytes = 20 * SIZE + 123;
        cfg.shared.alpha = alphas[q / GW_COUNT_OF(qdiscs)];
        fixture_open(&f, &cfg);
        uint32_t largest = 0;
        for (uint32_t i = 0; i < 2000; i++) {
            struct gw_pkt new_pkt = packet(gw_prng_below(&prng, FAR + 1), i, (uint16_t)i);
            new_pkt.q.size = TRIM_SIZE + gw_prng_below(&prng, SIZE);
            new_pkt.q.class = (uint8_t)gw_prng_below(&prng, GW_CLASSES);
            feed(&f, &new_pkt);
            assert_true(backlog(&f) <= cfg.shared.bytes);
            largest = backlog(&f) > largest ? backlog(&f) : largest;
            if (gw_prng_below(&prng, 10) < 3)
                pull(&f, (uint16_t)gw_prng_below(&prng, PORTS), &pkt);
            f.node->ready_count = 0;
        }
        assert_true(largest > cfg.shared.bytes / 3);
        for (uint16_t port = 0; port < PORTS; port++)
            while (pull(&f, port, &pkt))
                ;
        assert_int_equal(backlog(&f), 0);
        feed_many(&f, 0, 20); /* all of it is free again: as in the test above */
        assert_true(backlog(&f) > cfg.shared.bytes / 4);
        fixture_close(&f);
    }
}

/*
 * A packet that one switch trimmed goes through the control queue of the next, in front of the data
 * that waits there, and is not trimmed again.
 */
static void switch_trimmed__passes_a_second_congested_switch(void **state)
{
    (void)state;
    struct fixture first, second;
    struct gw_switch_cfg cfg_a = cfg_of(&first, "trim"), cfg_b = cfg_of(&second, "trim");
    struct gw_pkt pkt, trimmed;
    fixture_open(&first, &cfg_a);
    fixture_open(&second, &cfg_b);
    feed_many(&first, 0, 11);
    feed_many(&second, 0, 12);
    assert_true(gw_switch_port_stats(first.sw, 0).trims == 1);
    assert_true(gw_switch_port_stats(first.sw, 0).trimmed_bytes == SIZE - TRIM_SIZE);
    assert_true(gw_switch_port_stats(second.sw, 0).trims == 2);
    assert_true(pull(&first, 0, &trimmed));
    assert_int_equal(trimmed.q.flags, GW_PKT_TRIMMABLE | GW_PKT_TRIMMED);
    assert_int_equal(trimmed.q.size, TRIM_SIZE);
    assert_int_equal(trimmed.q.class, GW_CLASS_CONTROL);
    trimmed.src = 77;
    feed(&second, &trimmed);
    assert_true(gw_switch_port_stats(second.sw, 0).trims == 2);
    assert_true(gw_switch_port_stats(second.sw, 0).drops == 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(pull(&second, 0, &pkt));
        assert_int_equal(pkt.q.size, TRIM_SIZE);
    }
    assert_int_equal(pkt.src, 77);
    assert_true(pull(&second, 0, &pkt));
    assert_int_equal(pkt.q.size, SIZE);
    first.node->ready_count = second.node->ready_count = 0;
    fixture_close(&first);
    fixture_close(&second);
}

/* A trimmed packet gives up its payload, a dropped one itself. */
static void switch_losses__release_memory(void **state)
{
    (void)state;
    static const char *const qdiscs[] = {"trim", "fifo"};
    for (uint32_t q = 0; q < GW_COUNT_OF(qdiscs); q++) {
        enum {
            BUFS = 32,
        };
        struct fixture f;
        struct gw_buf_pool bufs; /* goes with the pool */
        struct gw_switch_cfg cfg = cfg_of(&f, qdiscs[q]);
        gw_buf_pool_init(&bufs, gw_test_take(gw_buf_pool_size(BUFS, SIZE)), BUFS, SIZE);
        fixture_open(&f, &cfg);
        f.pool.bufs = &bufs;
        for (uint32_t i = 0; i < BUFS; i++) {
            struct gw_pkt pkt = packet(0, i, 0);
            pkt.buf = gw_buf_claim(&bufs);
            feed(&f, &pkt);
        }
        uint32_t unused = 0, claimed[BUFS];
        while ((claimed[unused] = gw_buf_claim(&bufs)) != GW_BUF_NONE)
            unused++;
        assert_int_equal(unused, BUFS - CAPACITY / SIZE);
        while (unused > 0)
            gw_buf_release(&bufs, claimed[--unused]);
        fixture_close(&f);
    }
}

/* Of all ports, in every discipline. */
static void switch_fini__releases_what_is_queued(void **state)
{
    (void)state;
    for (uint32_t q = 0; q < gw_qdisc_registry.count; q++) {
        struct fixture f;
        struct gw_switch_cfg cfg = cfg_of(&f, gw_qdisc_registry.algos[q]->name);
        fixture_open(&f, &cfg);
        feed_many(&f, 0, 2 * CAPACITY / SIZE);
        feed_many(&f, 1, 3);
        uint32_t queued = PKTS - gw_test_pool_free(&f.pool);
        assert_true(queued > CAPACITY / SIZE);
        assert_int_equal(gw_switch_fini(f.sw), queued);
        assert_int_equal(gw_test_pool_free(&f.pool), PKTS);
        assert_int_equal(backlog(&f), 0);
        free(f.pool.pkts);
        free(f.sw);
    }
}

/* A port is listed when it gets its first packet, once, and again only after it went quiet. */
static void switch_ready__is_reported_once(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt pkt;
    struct gw_switch_cfg cfg = cfg_of(&f, "trim");
    fixture_open(&f, &cfg);
    feed_many(&f, 2, 3);
    feed_many(&f, 1, 1);
    assert_int_equal(f.node->ready_count, 2);
    f.node->ready_count = 0;
    assert_true(pull(&f, 2, &pkt));
    feed_many(&f, 2, 1); /* being pulled */
    assert_int_equal(f.node->ready_count, 0);
    while (pull(&f, 2, &pkt))
        ;
    feed_many(&f, 2, 1);
    assert_int_equal(f.node->ready_count, 1);
    struct gw_pkt *none = NULL;
    assert_int_equal(gw_node_output(f.node, 2, &none, 0, 0), GW_OUTPUT_MORE);
    assert_int_equal(gw_node_output(f.node, 3, &none, 0, 0), 0);
    assert_null(none);
    f.node->ready_count = 0;
    fixture_close(&f);
}

/* Takes the only packet of a port. */
static struct gw_pkt pull_one(struct fixture *f, uint16_t port)
{
    struct gw_pkt pkt, none;
    assert_true(pull(f, port, &pkt));
    assert_false(pull(f, port, &none));
    return pkt;
}

/* The stage of slots answers gradients: all workers when a sum is complete, one that repeats. Other
 * packets pass. */
static void switch_slots__results_go_to_the_workers(void **state)
{
    (void)state;
    static const uint32_t workers[] = {0, 1, 3};
    struct fixture f;
    struct gw_slots_cfg stage = {
        .slots = 1, .jobs_max = 1, .kernels = gw_kernels_best(0), .pool = &f.pool};
    struct gw_slots_job job = {.job = 5, .world = 3, .count = 1, .members = workers};
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    cfg.slots = gw_slots_init(gw_test_take(gw_slots_size(&stage)), &stage);
    assert_int_equal(gw_slots_install(cfg.slots, &job), 0);
    fixture_open(&f, &cfg);
    struct gw_pkt pkt = packet(2, 0, 0);
    pkt.q.kind = GW_PKT_GRAD;
    pkt.flow = 5;
    pkt.agg_flags = GW_AGG_SLOT;
    pkt.agg.values = 1;
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(backlog(&f), 0);
        pkt.src = workers[rank];
        pkt.agg.bitmap = 1u << rank;
        feed(&f, &pkt);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct gw_pkt result = pull_one(&f, (uint16_t)workers[rank]);
        assert_int_equal(result.q.kind, GW_PKT_PARAM);
        assert_int_equal(result.dst, workers[rank]);
        assert_int_equal(result.src, 2);
        assert_int_equal(result.q.key, gw_flow_key(2, workers[rank], 5));
    }
    feed(&f, &pkt);
    assert_int_equal(pull_one(&f, 3).dst, 3);
    assert_int_equal(backlog(&f), 0);
    pkt.q.kind = GW_PKT_PARAM; /* another switch's result */
    feed(&f, &pkt);
    assert_int_equal(pull_one(&f, 2).dst, 2);
    pkt.q.kind = GW_PKT_GRAD; /* not for slots */
    pkt.agg_flags = 0;
    feed(&f, &pkt);
    assert_int_equal(pull_one(&f, 2).q.kind, GW_PKT_GRAD);
    free(cfg.slots);
    fixture_close(&f);
}

/* Without the stage they are packets like others, and no matter of the other stage. */
static void switch_slots__gradients_pass_without_the_stage(void **state)
{
    (void)state;
    static const uint32_t worker = 0;
    struct fixture f;
    struct gw_aggregate_cfg stage = {.aggregators = 1,
                                     .jobs_max = 1,
                                     .members_max = 1,
                                     .leak = GW_MS,
                                     .kernels = gw_kernels_best(0),
                                     .pool = &f.pool};
    struct gw_aggregate_job job = {.job = 5, .fan_in = 2, .member_count = 1, .members = &worker};
    struct gw_switch_cfg cfg = cfg_of(&f, "fifo");
    cfg.aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&stage)), &stage);
    assert_int_equal(gw_aggregate_install(cfg.aggregate, &job), 0);
    fixture_open(&f, &cfg);
    struct gw_pkt pkt = packet(2, 0, 0);
    pkt.q.kind = GW_PKT_GRAD;
    pkt.flow = 5;
    pkt.agg_flags = GW_AGG_SLOT;
    pkt.agg.bitmap = 1;
    pkt.agg.values = 1;
    feed(&f, &pkt);
    assert_int_equal(pull_one(&f, 2).q.kind, GW_PKT_GRAD);
    assert_int_equal(gw_aggregate_stats(cfg.aggregate)->gradients, 0);
    assert_int_equal(gw_aggregate_taken(cfg.aggregate), 0);
    free(cfg.aggregate);
    fixture_close(&f);
}

/* A switch has no timers of its own; expire at any time does nothing. */
static void switch_expire__is_harmless(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_switch_cfg cfg = cfg_of(&f, "trim");
    fixture_open(&f, &cfg);
    feed_many(&f, 0, 3);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    gw_node_expire(f.node, 0);
    gw_node_expire(f.node, GW_TIME_NEVER - 1);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    assert_int_equal(backlog(&f), 3 * SIZE);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch_route__follows_the_table),
        cmocka_unit_test(switch_route__counts_what_has_none),
        cmocka_unit_test(switch_route__can_be_replaced),
        cmocka_unit_test(switch_ecmp__keeps_flow_and_entropy_together),
        cmocka_unit_test(switch_turns__differ_by_one_packet_at_most),
        cmocka_unit_test(switch_turns__find_the_way_of_a_packet_once),
        cmocka_unit_test(switch_labels__take_their_digit),
        cmocka_unit_test(switch_ecmp__spreads_evenly),
        cmocka_unit_test(switch_ecmp__depends_on_the_salt),
        cmocka_unit_test(switch_ecmp__reaches_all_ports_by_entropy),
        cmocka_unit_test(switch_pool__gives_one_port_half),
        cmocka_unit_test(switch_pool__is_never_exceeded),
        cmocka_unit_test(switch_trimmed__passes_a_second_congested_switch),
        cmocka_unit_test(switch_losses__release_memory),
        cmocka_unit_test(switch_fini__releases_what_is_queued),
        cmocka_unit_test(switch_ready__is_reported_once),
        cmocka_unit_test(switch_slots__results_go_to_the_workers),
        cmocka_unit_test(switch_slots__gradients_pass_without_the_stage),
        cmocka_unit_test(switch_expire__is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
