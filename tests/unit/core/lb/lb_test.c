/* Load balancers that ignore feedback: one path per flow, one per packet, explicit paths in turn.
 */
#include "support.h"

#include "core/lb/lb.h"

static const struct gw_path PATH = {.bdp = 150000, .mtu = 4096, .hdr = 64, .hops = 6};

struct balancer {
    const struct gw_lb_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LB_STATE_MAX / 8];
};

static struct balancer balancer_make(const char *name, const char *entropies, uint64_t seed)
{
    struct balancer b = {.ops = (const void *)gw_registry_find(&gw_lb_registry, name)};
    gw_algo_defaults(&b.ops->algo, &b.cfg);
    if (entropies)
        assert_int_equal(gw_algo_set(&b.ops->algo, &b.cfg, "entropies", entropies), 0);
    b.ops->init(b.state, &b.cfg, &PATH, gw_prng_derive(seed, 1));
    return b;
}

static uint16_t pick(struct balancer *b)
{
    const struct gw_lb_next next = {.bytes = 4096};
    return b->ops->pick(b->state, &b->cfg, &next, 0);
}

/* Feedback of every kind about `entropy`. */
static void disturb(struct balancer *b, uint16_t entropy)
{
    struct gw_lb_echo echo = {.entropy = entropy};
    b->ops->on_ack(b->state, &b->cfg, &echo, 0);
    b->ops->on_trim(b->state, &b->cfg, &echo, 0);
    echo.ce = true;
    b->ops->on_ack(b->state, &b->cfg, &echo, 0);
    b->ops->on_timeout(b->state, &b->cfg, 0, 0);
}

static void ecmp_pick__never_changes_within_a_flow(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct balancer b = balancer_make("ecmp", NULL, seed);
        uint16_t entropy = pick(&b);
        for (int i = 0; i < 100; i++) {
            disturb(&b, (uint16_t)i);
            assert_int_equal(pick(&b), entropy);
        }
    }
}

/*
 * Chi-square over 64 bins and 2^16 flows: 63 degrees of freedom, so the statistic has mean 63 and
 * deviation 11.2; 108 is four deviations above.
 */
static void ecmp_pick__is_uniform_over_flows(void **state)
{
    enum { BINS = 64, FLOWS = 1 << 16 };
    (void)state;
    uint32_t bins[BINS] = {0};
    for (uint64_t flow = 0; flow < FLOWS; flow++) {
        struct balancer b = balancer_make("ecmp", NULL, flow);
        bins[pick(&b) % BINS]++;
    }
    double chi = 0, expected = (double)FLOWS / BINS;
    for (int i = 0; i < BINS; i++)
        chi += ((double)bins[i] - expected) * ((double)bins[i] - expected) / expected;
    assert_true(chi < 108);
    assert_true(chi > 30); /* too even would not be random either */
}

static void spray_pick__ignores_feedback(void **state)
{
    (void)state;
    struct balancer calm = balancer_make("spray", NULL, 5), disturbed = calm;
    for (int i = 0; i < 1000; i++) {
        disturb(&disturbed, (uint16_t)i);
        assert_int_equal(pick(&calm), pick(&disturbed));
    }
}

/* Each of n paths gets 1/n within three binomial deviations, also when n divides nothing. */
static void spray_pick__loads_paths_evenly(void **state)
{
    static const struct {
        const char *entropies;
        uint32_t paths;
    } cases[] = {{"65536", 8}, {"256", 8}, {"1000", 10}, {"77", 7}};
    enum { PICKS = 100000 };
    (void)state;
    for (size_t c = 0; c < GW_COUNT_OF(cases); c++) {
        struct balancer b = balancer_make("spray", cases[c].entropies, 3);
        uint32_t load[16] = {0};
        for (int i = 0; i < PICKS; i++)
            load[pick(&b) % cases[c].paths]++;
        double share = 1.0 / cases[c].paths;
        double variance = PICKS * share * (1 - share);
        for (uint32_t path = 0; path < cases[c].paths; path++) {
            double off = load[path] - PICKS * share;
            assert_true(off * off <= 9 * variance);
        }
    }
}

/* All of them one after the other, from a place that differs by flow. */
static void spray_pick__takes_turns(void **state)
{
    (void)state;
    uint32_t first = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct balancer b = balancer_make("spray", NULL, seed);
        assert_int_equal(gw_algo_preset(&b.ops->algo, &b.cfg, "drafts"), 0);
        b.ops->init(b.state, &b.cfg, &PATH, gw_prng_derive(seed, 1));
        uint16_t last = pick(&b);
        first += last == 1;
        for (int i = 0; i < 600; i++) {
            disturb(&b, (uint16_t)i);
            uint16_t entropy = pick(&b);
            assert_int_equal(entropy, (last + 1) % 256);
            last = entropy;
        }
    }
    assert_true(first < 4);
}

/* Source routing among the paths that a controller lists. */
static struct balancer routed_make(const struct gw_path_labels *labels, uint64_t seed)
{
    struct balancer b = balancer_make("source-routed", NULL, seed);
    struct gw_path path = PATH;
    path.labels = labels;
    memset(b.state, 0, sizeof(b.state));
    b.ops->init(b.state, &b.cfg, &path, gw_prng_derive(seed, 1));
    return b;
}

/* Every cycle uses each entry once, in order; flows start at different entries. */
static void source_routed_pick__follows_the_list(void **state)
{
    enum { COUNT = 5 };
    static const uint16_t labels[COUNT] = {7, 1, 9, 1, 3};
    const struct gw_path_labels list = {.labels = labels, .count = COUNT};
    (void)state;
    bool started[COUNT] = {false};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct balancer b = routed_make(&list, seed);
        uint32_t load[10] = {0};
        for (int i = 0; i < 100 * COUNT; i++) {
            disturb(&b, (uint16_t)i);
            load[pick(&b)]++;
        }
        assert_int_equal(load[7], 100);
        assert_int_equal(load[1], 200);
        assert_int_equal(load[9], 100);
        assert_int_equal(load[3], 100);
        uint32_t at = 0, first = pick(&b), second = pick(&b);
        while (at < COUNT && (labels[at] != first || labels[(at + 1) % COUNT] != second))
            at++;
        assert_true(at < COUNT);
        started[at] = true;
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(started[i]);
}

/* Flows do not keep in step: each cycle has each entry once, and starts at any of them. */
static void source_routed_pick__starts_each_cycle_anew(void **state)
{
    enum { COUNT = 8, CYCLES = 400 };
    static const uint16_t labels[COUNT] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct gw_path_labels list = {.labels = labels, .count = COUNT};
    uint32_t starts[COUNT] = {0};
    (void)state;
    struct balancer b = routed_make(&list, 1);
    for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
        uint32_t first = pick(&b);
        starts[first]++;
        for (uint32_t i = 1; i < COUNT; i++)
            assert_int_equal(pick(&b), (first + i) % COUNT);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        assert_in_range(starts[i], CYCLES / COUNT / 2, CYCLES / COUNT * 2);
}

/* A path that is withdrawn is not used by the very next packet; without any, labels are walked. */
static void source_routed_pick__leaves_withdrawn_paths_at_once(void **state)
{
    static const uint16_t before[] = {4, 5, 6, 7}, after[] = {4, 7};
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct gw_path_labels list = {.labels = before, .count = 4};
        struct balancer b = routed_make(&list, seed);
        for (uint64_t i = 0; i < seed; i++)
            pick(&b);
        list = (struct gw_path_labels){.labels = after, .count = 2};
        for (int i = 0; i < 20; i++) {
            uint16_t label = pick(&b);
            assert_true(label == 4 || label == 7);
        }
        list.count = 0;
        uint16_t last = pick(&b);
        for (int i = 0; i < 20; i++)
            assert_int_equal(pick(&b), ++last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ecmp_pick__never_changes_within_a_flow),
        cmocka_unit_test(ecmp_pick__is_uniform_over_flows),
        cmocka_unit_test(spray_pick__ignores_feedback),
        cmocka_unit_test(spray_pick__loads_paths_evenly),
        cmocka_unit_test(spray_pick__takes_turns),
        cmocka_unit_test(source_routed_pick__follows_the_list),
        cmocka_unit_test(source_routed_pick__starts_each_cycle_anew),
        cmocka_unit_test(source_routed_pick__leaves_withdrawn_paths_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
