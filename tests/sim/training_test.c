/*
 * Training jobs: what an iteration takes under each schedule, what it moves, and that all workers
 * agree. The properties are those that follow from how an iteration is defined:
 *
 *   with a network of no cost, an iteration takes the time of its computation
 *   whatever a schedule hides, it hides more than one that hides less
 *   without computation, the links of servers and workers bound an iteration
 *   a schedule changes when bytes move, and never how many
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "core/job.h"
#include "sim/sim_impl.h"

#define TRAINING "scenarios/training.yaml"
#define SMALL    "model=../tests/sim/small.csv; "

enum {
    WORKERS = 8,
    BATCH = 32,
    HEADER = 64,
    MTU = 1408,
    JOBS_MAX = 4,
    /* Parameters of small.csv, and bytes of its gradients. */
    PARAMETERS = 3040 + 50100 + 128 + 801000 + 100100,
    GRADIENTS = 4 * PARAMETERS,
};

static const char *const schedules[] = {"seq", "wfbp", "p3", "bytescheduler"};
static const char *const ways[] = {"ina", "rss", "ps", "server", "switchml", "ring", "hd"};

/* A run of one job, all of whose workers have ended all their iterations. */
struct run {
    struct gw_job_result job;
    struct gw_sim_totals totals;
    uint64_t payload; /* bytes that hosts received, without headers */
};

/* What all hosts received; headers are all of one size. */
static uint64_t payload_of(const struct gw_test_sim *run)
{
    const struct gw_sim *sim = run->sim;
    const struct gw_topo *topo = &run->scenario.topo;
    uint64_t payload = 0;
    for (uint32_t host = 0; host < topo->host_count; host++) {
        const struct gw_topo_port *link = &topo->ports[topo->nodes[host].first_port];
        struct gw_port_stats port =
            gw_switch_port_stats(sim->nodes[sim->place[link->peer]].sw, link->peer_port);
        payload += port.out_bytes - HEADER * port.out_packets;
    }
    return payload;
}

static struct run train(const char *set, uint32_t threads)
{
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    options.threads = threads;
    struct gw_test_sim sim;
    gw_test_sim_run(&sim, &options, TRAINING, "%s", set);
    struct run run = {.totals = sim.totals, .payload = payload_of(&sim)};
    assert_int_equal(gw_sim_jobs(sim.sim, &run.job, 1), 1);
    if (run.job.completed != run.job.workers)
        fail_msg("%s: %u of %u workers are done", set, run.job.completed, run.job.workers);
    assert_int_equal(run.job.iterations, sim.scenario.workload.jobs[0].iterations);
    assert_true(run.job.is_steady);
    gw_test_sim_close(&sim);
    return run;
}

__attribute__((format(printf, 1, 2))) static struct run train_with(const char *format, ...)
{
    char set[512];
    va_list args;
    va_start(args, format);
    assert_true(vsnprintf(set, sizeof(set), format, args) < (int)sizeof(set));
    va_end(args);
    return train(set, 1);
}

/* Picoseconds of computation in an iteration. */
static double compute_ps(double images_per_s)
{
    return BATCH / images_per_s * 1e12;
}

static void expect_near(double value, double expected, double part, const char *what)
{
    if (value < expected * (1 - part) || value > expected * (1 + part))
        fail_msg("%s: %f instead of %f", what, value, expected);
}

/* Without collisions in switches, drops and marks. */
#define CALM                                                                                       \
    "workload.window=64; workload.window_initial=32; queue.lossless=yes; queue.kmin=0.99; "        \
    "queue.kmax=0.99; cc=fixed; loss.rto=1000; "                                                   \
    "queue.capacity=100MB"

/* Links and windows that gradients do not notice. */
#define IDEAL                                                                                      \
    "topology.rate=100Tbps; topology.uplink_rate=100Tbps; topology.latency=10ns; "                 \
    "topology.switch_latency=0; workload.window=4096; workload.window_initial=4096; "              \
    "workload.aggregators=65536; workload.images_per_s=20000; host.jitter=0; queue.capacity=1GB"

static void ideal_network__an_iteration_takes_its_computation(void **state)
{
    (void)state;
    static const char *const movers[] = {"ina", "rss", "server", "switchml"};
    for (uint32_t v = 0; v < GW_COUNT_OF(movers); v++)
        for (uint32_t s = v % GW_TEST_EVERY(4); s < GW_COUNT_OF(schedules); s += GW_TEST_EVERY(4)) {
            struct run run =
                train_with(SMALL IDEAL "; via=%s; schedule=%s", movers[v], schedules[s]);
            double least = compute_ps(20000);
            assert_true(run.job.iteration_ps >= least);
            expect_near(run.job.iteration_ps, least, 0.005, schedules[s]);
            /* What is not computation is waiting, to the picosecond. */
            expect_near(run.job.iteration_ps - run.job.stall_ps, least, 1e-9, "computation");
        }
}

static void schedules__hide_more_and_more(void **state)
{
    (void)state;
    static const char *const movers[] = {"ina", "switchml",
                                         "ps; servers=8; workload.split=0; workload.colocated=yes"};
    for (uint32_t v = 0; v < GW_COUNT_OF(movers); v++) {
        double iteration[GW_COUNT_OF(schedules)], stall[GW_COUNT_OF(schedules)];
        for (uint32_t s = 0; s < GW_COUNT_OF(schedules); s++) {
            struct run run = train_with(SMALL "workload.images_per_s=20000; via=%s; schedule=%s; "
                                              "topology.rate=25Gbps; iterations=4; " CALM,
                                        movers[v], schedules[s]);
            iteration[s] = run.job.iteration_ps;
            stall[s] = run.job.stall_ps;
            assert_true(run.job.overlap >= 0 && run.job.overlap <= 1);
            if (s == 0)
                expect_near(run.job.overlap, 0, 0, "seq hides nothing");
            else
                assert_true(run.job.overlap > 0.2);
        }
        for (uint32_t s = 1; s < GW_COUNT_OF(schedules); s++)
            if (iteration[s] > iteration[s > 1 && v < 2] * 1.005)
                fail_msg("%s: %s takes longer than its predecessor", movers[v], schedules[s]);
        assert_true(iteration[1] < 0.95 * iteration[0]);
        assert_true(stall[2] < stall[0]);
    }
}

/* Picoseconds that the gradients take over a link, headers included. */
static double gradients_ps(double rate_bps)
{
    double packets = (double)GRADIENTS / MTU;
    return (GRADIENTS + packets * HEADER) * 8 / rate_bps * 1e12;
}

static void no_computation__the_links_bound_an_iteration(void **state)
{
    (void)state;
    const double alone = gradients_ps(100e9);
    for (uint32_t s = 0; s < GW_COUNT_OF(schedules); s++) {
        struct run one =
            train_with(SMALL "device=none; via=ps; schedule=%s; iterations=4; " CALM, schedules[s]);
        assert_true(one.job.iteration_ps >= WORKERS * alone);
        assert_true(one.job.iteration_ps <= 2 * WORKERS * alone);
        struct run ring =
            train_with(SMALL "device=none; via=ring; schedule=%s; iterations=4", schedules[s]);
        assert_true(ring.job.iteration_ps >= 2.0 * (WORKERS - 1) / WORKERS * alone);
        struct run ina =
            train_with(SMALL "device=none; via=ina; schedule=%s; iterations=4", schedules[s]);
        assert_true(ina.job.iteration_ps >= alone && ina.job.iteration_ps < 2 * alone);
        expect_near(ina.job.stall_ps, ina.job.iteration_ps, 1e-9, "stall");
    }
}

static void schedule__does_not_change_how_many_bytes_move(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < GW_COUNT_OF(ways); v += GW_TEST_EVERY(4)) {
        uint64_t payload = 0;
        for (uint32_t s = 0; s < GW_COUNT_OF(schedules); s++) {
            struct run run =
                train_with(SMALL "workload.images_per_s=20000; via=%s; schedule=%s; " CALM, ways[v],
                           schedules[s]);
            assert_int_equal(run.job.resent, 0);
            assert_int_equal(run.totals.retransmits, 0);
            if (s > 0 && run.payload != payload)
                fail_msg("%s: %s moves %llu bytes, not %llu", ways[v], schedules[s],
                         (unsigned long long)run.payload, (unsigned long long)payload);
            payload = run.payload;
        }
        if (strcmp(ways[v], "ina") == 0) /* 3 iterations, at the workers and the server */
            assert_int_equal(payload, UINT64_C(3) * GRADIENTS * (WORKERS + 1));
        if (strcmp(ways[v], "switchml") == 0)
            assert_int_equal(payload, UINT64_C(3) * GRADIENTS * WORKERS);
    }
}

static void compression__is_what_travels(void **state)
{
    (void)state;
    struct run run =
        train_with(SMALL "workload.images_per_s=20000; workload.compression=0.25; " CALM);
    /* Each tensor is rounded up to whole parameters, and who asks for a late sum is answered. */
    uint64_t all = UINT64_C(3) * (WORKERS + 1) * GRADIENTS;
    uint64_t most = all / 4 + 3 * 9 * 10 * sizeof(float) + 2 * run.job.resent * MTU;
    assert_true(run.payload >= all / 4 && run.payload < most);
    assert_true(run.job.resent <= WORKERS);
}

/* With contents: the run fails if a sum is wrong, which it is when workers disagree on an order. */
static void every_schedule__sums_are_right(void **state)
{
    (void)state;
    static const char *const movers[] = {"ina", "rss", "server", "switchml"};
    static const char *const fusions[] = {"0", "100KB"};
    static const char *const orders[] = {
        "seq", "wfbp", "p3; workload.partition=4KB; workload.credit=16KB",
        "bytescheduler; workload.partition=20KB; workload.credit=30KB"};
    for (uint32_t v = 0; v < GW_COUNT_OF(movers); v++)
        for (uint32_t s = v % GW_TEST_EVERY(4); s < GW_COUNT_OF(orders); s += GW_TEST_EVERY(4))
            for (uint32_t f = 0; f < GW_COUNT_OF(fusions); f++)
                train_with(SMALL "workload.compression=0.1; workload.images_per_s=20000; via=%s; "
                                 "schedule=%s; workload.fusion=%s; host.payload=yes; "
                                 "workload.jitter=0.5; workers=4; workload.values=64; "
                                 "workload.split=10KB; servers=2",
                           movers[v], orders[s], fusions[f]);
}

static void run_is_the_same__on_any_number_of_threads(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < GW_COUNT_OF(ways); v++)
        for (uint32_t s = v % GW_TEST_EVERY(4); s < GW_COUNT_OF(schedules); s += GW_TEST_EVERY(4)) {
            char set[512];
            snprintf(set, sizeof(set),
                     SMALL "workload.images_per_s=50000; via=%s; schedule=%s; workload.jitter=0.3; "
                           "workload.fusion=%s; workload.compression=0.2",
                     ways[v], schedules[s], v % 2 ? "50KB" : "0");
            struct run first = train(set, 1), second = train(set, 3);
            if (first.totals.trace_hash != second.totals.trace_hash)
                fail_msg("%s: threads differ", set);
            assert_true(first.job.iteration_ps == second.job.iteration_ps &&
                        first.job.stall_ps == second.job.stall_ps);
        }
}

static void straggler__sets_the_pace_of_all(void **state)
{
    (void)state;
    struct run even = train_with(SMALL "workload.images_per_s=2000");
    struct run slow = train_with(SMALL "workload.images_per_s=2000; workload.straggler=3; "
                                       "workload.slowdown=1.5");
    expect_near(even.job.iteration_ps, compute_ps(2000), 0.01, "even");
    expect_near(slow.job.iteration_ps, 1.5 * compute_ps(2000), 0.01, "slow");
    /* Seven of eight workers wait a third of the time. */
    expect_near(slow.job.stall_ps, 0.5 * compute_ps(2000) * 7 / 8, 0.02, "stall");
}

static void jitter__makes_iterations_longer_within_its_bound(void **state)
{
    (void)state;
    struct run run = train_with(SMALL "workload.images_per_s=2000; workload.jitter=0.2; "
                                      "iterations=20");
    assert_true(run.job.iteration_ps > 1.1 * compute_ps(2000));
    assert_true(run.job.iteration_ps < 1.21 * compute_ps(2000));
    assert_true(run.job.iteration_ps - run.job.stall_ps > compute_ps(2000));
    assert_true(run.job.iteration_ps - run.job.stall_ps < 1.2 * compute_ps(2000));
}

/* Only a server that answers each by itself lets the others go on. */
static void asynchronous__nobody_waits_for_the_straggler(void **state)
{
    (void)state;
    static const char set[] =
        SMALL "workload.images_per_s=2000; via=ps; workload.straggler=3; workload.slowdown=3; "
              "iterations=6; workload.synchronous=%s; " CALM;
    struct run together = train_with(set, "yes"), apart = train_with(set, "no");
    expect_near(together.job.iteration_ps, 3 * compute_ps(2000), 0.05, "together");
    /* The rate of the job is the sum of its workers' rates. */
    expect_near(apart.job.iteration_ps, compute_ps(2000) * 8 / (7 + 1 / 3.0), 0.05, "apart");
    expect_near((double)apart.payload, (double)together.payload, 0.01, "bytes");
}

static void warmup__is_left_out_when_there_is_more(void **state)
{
    (void)state;
    /* Iterations take different times, drawn alike in all runs. */
    static const char set[] = SMALL "schedule=seq; iterations=%u; workload.jitter=0.5; "
                                    "workload.warmup=%u";
    struct run all = train_with(set, 3, 0), two = train_with(set, 3, 1);
    struct run one = train_with(set, 1, 1);
    assert_true(two.job.iteration_ps != all.job.iteration_ps);
    expect_near(one.job.iteration_ps + 2 * two.job.iteration_ps, 3 * all.job.iteration_ps, 1e-9,
                "sum");
}

static void end__stops_all_workers_after_the_same_iteration(void **state)
{
    (void)state;
    static const char *const rates[] = {"2000", "50000"};
    static const gw_time ends[] = {50 * GW_MS, 5 * GW_MS};
    for (uint32_t s = 0; s < GW_COUNT_OF(schedules); s++)
        for (uint32_t r = 0; r < GW_COUNT_OF(rates); r++) {
            struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
            struct gw_test_sim sim;
            struct gw_job_result job;
            gw_test_sim_run(&sim, &options, TRAINING,
                            SMALL "workload.images_per_s=%s; iterations=100000; workload.end=%ums; "
                                  "schedule=%s; workload.jitter=0.5; workload.compression=0.1; "
                                  "host.payload=%s",
                            rates[r], (uint32_t)(ends[r] / GW_MS), schedules[s], r ? "no" : "yes");
            gw_sim_jobs(sim.sim, &job, 1);
            assert_int_equal(job.completed, WORKERS);
            assert_true(job.iterations >= 2 && job.iterations < 1000);
            assert_true(job.end >= ends[r]);
            assert_true(job.end < ends[r] + 3 * (gw_time)job.iteration_ps);
            gw_test_sim_close(&sim);
        }
}

static const char mixed[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 16, rate: 100Gbps,"
    " latency: 1us}\n"
    "queue: {kind: red, capacity: 1MB, mark: enqueue, kmin: 9.75%, kmax: 9.75%}\n"
    "workload:\n"
    "  - {kind: training, model: resnet18, compression: 0.0625, workers: 4, iterations: 2,"
    " images_per_s: 20000, schedule: p3, start: 1ms}\n"
    "  - {kind: training, model: alexnet, compression: 0.0625, workers: 4, jobs: 2, iterations: 2,"
    " images_per_s: 20000, via: ps, interval: 3ms}\n"
    "  - {kind: allreduce, workers: 4, size: 1MB, iterations: 3}\n"
    "  - {kind: background, pairs: \"0->20 1->21\"}\n"
    "host: {mtu: 1408, header: 64}\n"
    "loss: timeout\n"
    "time_limit: 10s\n";

static void entries__run_beside_each_other(void **state)
{
    (void)state;
    static const char *const models[] = {"resnet18", "alexnet", "alexnet", "allreduce"};
    static const gw_time starts[] = {GW_MS, 0, 3 * GW_MS, 0};
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim sim;
    struct gw_job_result jobs[JOBS_MAX];
    gw_test_sim_run(&sim, &options, mixed, "%s", "");
    const struct gw_workload *workload = &sim.scenario.workload;
    assert_int_equal(gw_sim_jobs(sim.sim, jobs, JOBS_MAX), GW_COUNT_OF(models));
    bool is_taken[32] = {false};
    for (uint32_t i = 0; i < GW_COUNT_OF(models); i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        assert_string_equal(workload->plans[spec->train.plan].name, models[i]);
        assert_int_equal(jobs[i].completed, 4);
        assert_true(jobs[i].start >= starts[i] && jobs[i].start < starts[i] + GW_MS / 2);
        for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
            uint32_t host = workload->job_hosts[spec->first_worker + rank];
            assert_false(is_taken[host]);
            is_taken[host] = true;
        }
    }
    double fairness = gw_sim_fairness(sim.sim, jobs);
    assert_true(fairness > 0.25 && fairness <= 1);
    assert_true(sim.totals.data_packets > 10000);
    gw_test_sim_close(&sim);
}

static void equal_jobs__are_treated_alike(void **state)
{
    (void)state;
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim sim;
    struct gw_job_result jobs[JOBS_MAX];
    gw_test_sim_run(&sim, &options, TRAINING,
                    SMALL "workload.images_per_s=20000; jobs=4; workers=4; iterations=5");
    assert_int_equal(gw_sim_jobs(sim.sim, jobs, JOBS_MAX), 4);
    assert_true(gw_sim_fairness(sim.sim, jobs) > 0.99);
    /* One that goes at half the speed makes of four jobs 3.5^2 / (4 x 3.25). */
    for (uint32_t i = 0; i < 4; i++)
        jobs[i].iteration_ps = (i ? 1 : 2) * compute_ps(20000);
    expect_near(gw_sim_fairness(sim.sim, jobs), 3.5 * 3.5 / 13, 1e-9, "fairness");
    gw_test_sim_close(&sim);
}

/* Who follows a dead worker's order has nothing under way that would notice. */
static void dead_worker__fails_all_members(void **state)
{
    (void)state;
    static const char *const movers[] = {"ina", "switchml", "ps", "ring"};
    for (uint32_t v = 0; v < GW_COUNT_OF(movers); v++)
        for (uint32_t rank = 0; rank < 2; rank++) {
            struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
            struct gw_test_sim sim;
            struct gw_job_result job;
            gw_test_sim_run(&sim, &options, TRAINING,
                            SMALL "workload.images_per_s=20000; iterations=50; schedule=p3; "
                                  "via=%s; host.stall=20ms; time_limit=1s; "
                                  "faults=[{at: 10ms, node: host%u, crash: yes}]",
                            movers[v], rank);
            gw_sim_jobs(sim.sim, &job, 1);
            assert_int_equal(job.completed, 0);
            if (job.failed != WORKERS)
                fail_msg("%s: %u of %u members have failed", movers[v], job.failed, WORKERS);
            assert_true(job.reason != GW_JOB_OK && job.iterations > 1 && job.iterations < 50);
            assert_true(job.end < 200 * GW_MS);
            gw_test_sim_close(&sim);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ideal_network__an_iteration_takes_its_computation),
        cmocka_unit_test(schedules__hide_more_and_more),
        cmocka_unit_test(no_computation__the_links_bound_an_iteration),
        cmocka_unit_test(schedule__does_not_change_how_many_bytes_move),
        cmocka_unit_test(compression__is_what_travels),
        cmocka_unit_test(every_schedule__sums_are_right),
        cmocka_unit_test(run_is_the_same__on_any_number_of_threads),
        cmocka_unit_test(straggler__sets_the_pace_of_all),
        cmocka_unit_test(jitter__makes_iterations_longer_within_its_bound),
        cmocka_unit_test(asynchronous__nobody_waits_for_the_straggler),
        cmocka_unit_test(warmup__is_left_out_when_there_is_more),
        cmocka_unit_test(end__stops_all_workers_after_the_same_iteration),
        cmocka_unit_test(entries__run_beside_each_other),
        cmocka_unit_test(equal_jobs__are_treated_alike),
        cmocka_unit_test(dead_worker__fails_all_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
