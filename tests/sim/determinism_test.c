/*
 * A run is a function of the scenario and its seed alone: the same trace, totals, flows and samples
 * for every number of threads, with and without --wire; and another seed is another run.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

enum {
    THREADS_MAX = 4,
    SET_MAX = 512,
};

/* Sixteen hosts in four pods: four partitions are possible. */
static const char scenario[] = "topology: {kind: fat-tree, tiers: 3, k: 4}\n"
                               "workload: {kind: permutation, size: 256KiB}\n"
                               "time_limit: 2ms\n";

/* What a run must have met, so that the case shows what it is meant to show. */
enum must {
    MUST_TRIM = 1,
    MUST_DROP = 2,
    MUST_LOSE = 4, /* on links */
    MUST_MARK = 8,
    MUST_FINISH = 16,
    MUST_SAMPLE = 32,
    MUST_PAUSE = 64,
};

static const struct {
    const char *set;
    uint32_t must;
} cases[] = {
    {"workload.kind=permutation; topology.oversubscription=2", MUST_MARK | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; workload.degree=8",
     MUST_TRIM | MUST_MARK | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; host.ack_every=8", MUST_TRIM | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; host.train=8", MUST_TRIM | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; host.train=4; host.ack_every=4; host.jitter=0",
     MUST_TRIM | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; queue=red; loss=timeout; lb=spray",
     MUST_DROP | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; queue.shared=2MiB; queue.victim=random_tail",
     MUST_TRIM | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; queue=prio; loss=timeout", MUST_DROP | MUST_FINISH},
    {"workload.kind=all-to-all; workload.size=16KiB", MUST_FINISH},
    {"faults=[{at: 5us, link: [tor0, agg0], down: yes}]; convergence=30us",
     MUST_LOSE | MUST_FINISH},
    {"faults=[{at: 0, link: [agg0, core0], loss: 0.05}]", MUST_LOSE | MUST_FINISH},
    {"faults=[{at: 5us, until: 50us, node: core1, down: yes}]", MUST_LOSE | MUST_FINISH},
    {"workload.size=1MiB; faults=[{at: 5us, link: [tor0, agg0], rate: 0.1}]",
     MUST_MARK | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; queue.lossless=yes; cc=fixed",
     MUST_PAUSE | MUST_FINISH},
    {"workload.kind=incast; workload.size=1MiB; queue.lossless=yes; cc=fixed; "
     "host.rx_rate=300Gbps; "
     "host.rx_queue=1MiB; host.tx_cost=50ns",
     MUST_PAUSE | MUST_FINISH},
    {"faults=[{at: 3us, until: 20us, node: agg1, crash: yes}]; convergence=10us",
     MUST_LOSE | MUST_FINISH},
    {"faults=[{at: 0, link: [tor0, agg0], duplicate: 5%},"
     " {at: 0, link: [tor1, agg0], reorder: 5%, delay: 4us}]",
     MUST_FINISH},
    {"host.payload=yes; workload.kind=incast; workload.size=1MiB", MUST_TRIM | MUST_FINISH},
    {"lb=round-robin; faults=[{at: 5us, link: [tor0, agg0], down: yes}]; convergence=10us",
     MUST_LOSE | MUST_FINISH},
    {"lb=source-routed; faults=[{at: 5us, link: [tor0, agg0], down: yes}]; convergence=10us",
     MUST_LOSE | MUST_FINISH},
    {"metrics.sample=3us", MUST_FINISH | MUST_SAMPLE},
};

struct outcome {
    struct gw_sim_totals totals;
    struct gw_flow_result *flows;
    uint32_t flow_count;
    uint64_t samples; /* hash of all */
    uint64_t sample_count;
};

static struct outcome outcome_of(const char *text, const struct gw_sim_options *options,
                                 const char *set)
{
    struct gw_test_sim run;
    gw_test_sim_run(&run, options, text, "%s", set);
    struct outcome outcome = {
        .totals = run.totals,
        .flow_count = run.scenario.workload.flow_count,
    };
    size_t size = outcome.flow_count * sizeof(*outcome.flows);
    outcome.flows = malloc(size);
    assert_non_null(outcome.flows);
    memcpy(outcome.flows, run.flows, size);
    const struct gw_sample *samples = gw_sim_samples(run.sim, &outcome.sample_count);
    for (uint64_t i = 0; i < outcome.sample_count; i++)
        outcome.samples =
            gw_mix64(outcome.samples ^ samples[i].at ^ samples[i].value << 20 ^ samples[i].subject);
    gw_test_sim_close(&run);
    return outcome;
}

static void expect_same(const struct outcome *a, const struct outcome *b)
{
    assert_true(a->totals.trace_hash == b->totals.trace_hash);
    assert_memory_equal(&a->totals, &b->totals, sizeof(a->totals));
    assert_int_equal(a->flow_count, b->flow_count);
    assert_memory_equal(a->flows, b->flows, a->flow_count * sizeof(*a->flows));
    assert_true(a->sample_count == b->sample_count && a->samples == b->samples);
}

/* Runs with 1 to 4 threads, the odd ones through the wire format. */
static struct outcome expect_same_on_threads(const char *text, const char *set)
{
    struct gw_sim_options options = {.seed = 42, .threads = 1, .wire = true};
    struct outcome first = outcome_of(text, &options, set);
    for (options.threads = 2; options.threads <= THREADS_MAX; options.threads++) {
        options.wire = options.threads % 2;
        struct outcome other = outcome_of(text, &options, set);
        expect_same(&first, &other);
        free(other.flows);
    }
    return first;
}

static void run_is_the_same__on_any_number_of_threads(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct outcome outcome = expect_same_on_threads(scenario, cases[i].set);
        const struct gw_sim_totals *totals = &outcome.totals;
        uint32_t met = (totals->trims ? MUST_TRIM : 0) | (totals->drops ? MUST_DROP : 0) |
                       (totals->link_losses ? MUST_LOSE : 0) | (totals->marks ? MUST_MARK : 0) |
                       (totals->completed == totals->flows ? MUST_FINISH : 0) |
                       (outcome.sample_count ? MUST_SAMPLE : 0) | (totals->pauses ? MUST_PAUSE : 0);
        if ((met & cases[i].must) != cases[i].must)
            fail_msg("%s: met only %u of %u", cases[i].set, met, cases[i].must);
        free(outcome.flows);
    }
}

static void run_is_the_same__with_triggers(void **state)
{
    (void)state;
    static const char matrix[] =
        "Connections 6\nTriggers 3\n"
        "0->13 id 1 start 0 size 100000 recv_done_trigger 1\n"
        "4->9 id 2 start 700000 size 100000 recv_done_trigger 1 send_done_trigger 2\n"
        "13->4 id 3 trigger 1 size 50000 send_done_trigger 3\n"
        "8->0 id 4 trigger 2 size 50000 send_done_trigger 3\n"
        "1->15 id 5 trigger 3 size 1 send_done_trigger 3\n"
        "2->14 id 6 trigger 3 size 9000\n"
        "trigger id 1 barrier count 2\ntrigger id 2 oneshot\ntrigger id 3 multishot\n";
    char path[GW_TEST_PATH_MAX], set[SET_MAX];
    gw_test_write_file(path, matrix);
    snprintf(set, sizeof(set), "workload={kind: matrix, file: %s}", path);
    struct outcome outcome = expect_same_on_threads(scenario, set);
    unlink(path);
    assert_int_equal(outcome.totals.completed, 6);
    free(outcome.flows);
}

static void run_is_the_same__with_poisson_flows(void **state)
{
    (void)state;
    static const char sizes[] = "1000 0\n10000 0.5\n200000 1\n";
    char path[GW_TEST_PATH_MAX], set[SET_MAX];
    gw_test_write_file(path, sizes);
    snprintf(set, sizeof(set), "workload={kind: poisson, file: %s, load: 0.6, duration: 50us}",
             path);
    struct outcome outcome = expect_same_on_threads(scenario, set);
    unlink(path);
    assert_true(outcome.totals.flows > 20);
    assert_int_equal(outcome.totals.completed, outcome.totals.flows);
    free(outcome.flows);
}

/* It takes one thread, whatever it may use. */
static void run_is_the_same__with_calls(void **state)
{
    (void)state;
    struct outcome outcome = expect_same_on_threads(
        scenario, "workload={kind: calls, workers: 6, servers: 2, ahead: 3, calls: [{do: "
                  "allreduce, bytes: 40KB},"
                  " {do: allreduce, type: float64, bytes: 40KB}, {do: push, key: 1, bytes: 40KB},"
                  " {do: pull, key: 1, bytes: 40KB}, {do: send, from: 1, to: 4, bytes: 9KB}]};"
                  " faults=[{at: 0, link: [tor0, agg0], loss: 5%}]; host.stall=10ms");
    assert_true(outcome.totals.link_losses > 0);
    assert_int_equal(outcome.totals.members_completed, 6);
    free(outcome.flows);
}

static void run_is_another__with_another_seed(void **state)
{
    (void)state;
    struct gw_sim_options options = {.seed = 1, .threads = 1};
    struct outcome first = outcome_of(scenario, &options, cases[0].set);
    for (options.seed = 2; options.seed <= 4; options.seed++) {
        struct outcome other = outcome_of(scenario, &options, cases[0].set);
        assert_true(first.totals.trace_hash != other.totals.trace_hash);
        assert_true(memcmp(first.flows, other.flows, first.flow_count * sizeof(*first.flows)) != 0);
        free(other.flows);
    }
    free(first.flows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_is_the_same__on_any_number_of_threads),
        cmocka_unit_test(run_is_the_same__with_triggers),
        cmocka_unit_test(run_is_the_same__with_poisson_flows),
        cmocka_unit_test(run_is_the_same__with_calls),
        cmocka_unit_test(run_is_another__with_another_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
