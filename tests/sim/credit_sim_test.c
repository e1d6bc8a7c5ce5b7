/*
 * Credit on a whole fabric: what EQDS and its comparison with SMaRTT claim of incasts (receivers
 * are full and fair) and of cores that are too narrow (receivers cannot know).
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

static const char scenario[] = "topology: {kind: fat-tree, tiers: 3, k: 8}\n"
                               "workload: {kind: incast, degree: 8, size: 2MiB}\n"
                               "time_limit: 100ms\n";

struct outcome {
    gw_time fastest, slowest, mean, bound;
    struct gw_sim_totals totals;
};

static struct outcome outcome_of(uint64_t seed, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(seed);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, scenario, "%s", set);
    struct outcome o = {.fastest = GW_TIME_NEVER, .totals = run.totals};
    if (run.totals.completed != run.totals.flows)
        fail_msg("%s: %u of %u flows completed", set, run.totals.completed, run.totals.flows);
    for (uint32_t i = 0; i < run.totals.flows; i++) {
        gw_time time = run.flows[i].end - run.flows[i].start;
        o.fastest = time < o.fastest ? time : o.fastest;
        o.slowest = time > o.slowest ? time : o.slowest;
        o.mean += time / run.totals.flows;
    }
    o.bound = gw_sim_bound(&run.scenario);
    gw_test_sim_close(&run);
    return o;
}

/* The link is full from the first window on: within 2 % of what its rate allows. */
static void eqds__fills_the_receivers_link(void **state)
{
    static const char *const incasts[] = {
        "cc=eqds; workload.degree=1",
        "cc=eqds; workload.degree=2",
        "cc=eqds; workload.degree=8",
        "cc=eqds; workload.degree=32; workload.size=512KiB",
        "cc=eqds; workload.degree=100; workload.size=1MiB",
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(incasts); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct outcome o = outcome_of(seed, incasts[i]);
            if (o.totals.completion > o.bound + o.bound / 50)
                fail_msg("%s: %llu ps, ideal %llu", incasts[i],
                         (unsigned long long)o.totals.completion, (unsigned long long)o.bound);
        }
}

/* Long messages that started together end together, since credit goes in turn. */
static void eqds__is_fair_to_all_senders(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct outcome o = outcome_of(seed, "cc=eqds; workload.degree=8; workload.size=8MiB");
        assert_in_range(o.slowest - o.fastest, 0, o.fastest / 50);
        o = outcome_of(seed, "cc=eqds; workload.degree=100; workload.size=1MiB");
        assert_in_range(o.slowest - o.fastest, 0, o.fastest / 20);
    }
}

/* Only the first windows overflow the queue, and each trimmed packet is sent again once. */
static void eqds__trims_the_first_windows_alone(void **state)
{
    enum {
        DEGREE = 8,
    };
    (void)state;
    struct outcome o = outcome_of(1, "cc=eqds; workload.degree=8; workload.size=8MiB");
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_open(&run, &options, scenario, "%s", "");
    uint64_t window = run.scenario.bdp / (run.scenario.host.mtu + run.scenario.host.header);
    gw_test_sim_close(&run);
    assert_in_range(o.totals.trims, window, DEGREE * window);
    assert_int_equal(o.totals.retransmits, o.totals.trims);
    assert_int_equal(o.totals.drops, 0);
}

/*
 * A window beside credit costs nothing where the receiver is the bottleneck. (MP-RDMA's window is
 * not fair, and makes the slowest flow slower than credit alone; the mean shows that no capacity is
 * lost.)
 */
static void eqds__with_a_window_is_as_good_in_an_incast(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct outcome alone = outcome_of(seed, "cc=eqds; workload.size=8MiB");
        struct outcome smartt = outcome_of(seed, "cc=eqds+smartt; workload.size=8MiB");
        struct outcome mprdma = outcome_of(seed, "cc=eqds+mprdma; workload.size=8MiB");
        assert_in_range(smartt.slowest, alone.slowest * 95 / 100, alone.slowest * 105 / 100);
        assert_in_range(smartt.mean, alone.mean * 95 / 100, alone.mean * 105 / 100);
        assert_in_range(mprdma.mean, alone.mean * 95 / 100, alone.mean * 105 / 100);
    }
}

/* The core is the bottleneck: receivers grant what it must trim, unless a window says otherwise. */
static void eqds__needs_a_window_where_the_core_is_narrow(void **state)
{
    static const char permutation[] =
        "workload={kind: permutation, size: 2MiB}; topology.oversubscription=4";
    char set[256];
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        snprintf(set, sizeof(set), "cc=eqds; %s", permutation);
        struct outcome alone = outcome_of(seed, set);
        snprintf(set, sizeof(set), "cc=eqds+smartt; %s", permutation);
        struct outcome both = outcome_of(seed, set);
        assert_true(alone.totals.trims > 2 * both.totals.trims);
        assert_true(alone.totals.completion > both.totals.completion);
        assert_int_equal(alone.totals.drops, 0);
    }
}

/* Whatever is lost, credit included, all is delivered: in time of the order of the timeouts. */
static void survive_all(const char *transport, gw_time most)
{
    static const char *const networks[] = {
        /* The link of the receiver, in both directions. */
        "faults=[{at: 0, link: [host0, tor0], loss: 0.1}]",
        "faults=[{at: 0, link: [host0, tor0], loss: 0.5}]; workload.size=128KiB",
        "faults=[{at: 5us, until: 200us, link: [host0, tor0], down: yes}]",
        "faults=[{at: 0, link: [host0, tor0], duplicate: 0.1}]",
        "faults=[{at: 0, link: [host0, tor0], reorder: 0.1, delay: 3us}]",
        "queue=red; loss=timeout",
        "host.ack_every=16; host.train=8",
        "cc.credit_first=0; cc.credit_ahead=0",
    };
    for (size_t i = 0; i < GW_COUNT_OF(networks); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            char set[256];
            snprintf(set, sizeof(set), "cc=%s; %s", transport, networks[i]);
            struct outcome o = outcome_of(seed, set);
            if (o.totals.completion > most)
                fail_msg("%s: %llu ps", set, (unsigned long long)o.totals.completion);
        }
}

static void eqds__survives_the_loss_of_anything(void **state)
{
    (void)state;
    survive_all("eqds", 50 * GW_MS);
    survive_all("eqds+dlcp", 99 * GW_MS); /* hails that are lost half of the time take long */
}

/* Of a blast, too, only the first packets overflow the queue; what is lost of these comes again on
 * credit. */
static void eqds__gives_blasts_what_the_link_takes(void **state)
{
    static const char *const incasts[] = {
        "workload.degree=8; workload.size=8MiB",
        "workload.degree=32; workload.size=1MiB",
        "workload.degree=100; workload.size=1MiB",
    };
    char set[256];
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(incasts); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            snprintf(set, sizeof(set), "cc=dlcp; queue=dlcp; %s", incasts[i]);
            struct outcome alone = outcome_of(seed, set);
            snprintf(set, sizeof(set), "cc=eqds+dlcp; queue=dlcp; %s", incasts[i]);
            struct outcome both = outcome_of(seed, set);
            assert_true(3 * both.totals.retransmits < alone.totals.retransmits);
            assert_true(both.totals.completion < alone.totals.completion * 19 / 20);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eqds__fills_the_receivers_link),
        cmocka_unit_test(eqds__is_fair_to_all_senders),
        cmocka_unit_test(eqds__trims_the_first_windows_alone),
        cmocka_unit_test(eqds__with_a_window_is_as_good_in_an_incast),
        cmocka_unit_test(eqds__needs_a_window_where_the_core_is_narrow),
        cmocka_unit_test(eqds__survives_the_loss_of_anything),
        cmocka_unit_test(eqds__gives_blasts_what_the_link_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
