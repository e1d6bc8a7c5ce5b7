/*
 * TCP on whole networks: what a single loss costs, what a lost tail costs with and without a probe,
 * and the queue that DCTCP keeps.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

enum {
    MTU = 1460,
    WINDOW = 30, /* packets; less than what the path holds, so that only ACKs let packets go */
};

/* 1500 bytes take 12 us, and a round trip 428. */
static const char lone[] =
    "topology: {kind: star, hosts: 2, rate: 1Gbps, latency: 200us,\n"
    "  switch_latency: 0, override: [{between: [host1, sw0], latency: 1us}]}\n"
    "workload: {kind: incast, degree: 1, size: 1460000}\n"
    "cc: {kind: newreno, cwnd_max: 43800}\n"
    "lb: ecmp\n"
    "loss: sack\n"
    "queue: {kind: fifo, capacity: 1MB}\n"
    "host: {mtu: 1460, header: 40, jitter: 0}\n"
    "metrics: {sample: 20us, series: [cwnd]}\n"
    "convergence: never\n"
    "time_limit: 1s\n";

struct outcome {
    struct gw_sim_totals totals;
    uint64_t most, least; /* of the window while the fault lasts and up to 2.5 round trips later */
};

static struct outcome lone_run(const char *set, gw_time from, gw_time until)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, lone,
                    "%s; faults=[{at: %llups, until: %llups, "
                    "link: [host1, sw0], down: yes}]",
                    set, (unsigned long long)from, (unsigned long long)until);
    struct outcome o = {.totals = run.totals, .least = UINT64_MAX};
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(run.sim, &count);
    for (uint64_t i = 0; i < count; i++)
        if (samples[i].at >= from && samples[i].at < until + 1100 * GW_US) {
            o.most = samples[i].value > o.most ? samples[i].value : o.most;
            o.least = samples[i].value < o.least ? samples[i].value : o.least;
        }
    assert_int_equal(run.totals.completed, 1);
    gw_test_sim_close(&run);
    return o;
}

/* P1 of NewReno: after one loss in a window of W the window is W/2, and no timer was needed. */
static void newreno__halves_for_one_loss(void **state)
{
    (void)state;
    const gw_time from = 8 * GW_MS + 15 * GW_US;
    struct outcome o = lone_run("cc.prr=no", from, from + 10 * GW_US);
    assert_true(o.totals.link_losses == 1 && o.totals.retransmits == 1);
    assert_true(o.totals.overtaken == 1 && o.totals.timeouts == 0 && o.totals.probes == 0);
    assert_int_equal(o.most, WINDOW * MTU);
    assert_in_range(o.least / MTU, WINDOW / 2 - 1, WINDOW / 2 + 1);
    struct outcome whole = lone_run("cc.prr=no", 900 * GW_MS, 900 * GW_MS + 1);
    gw_time cost = o.totals.completion - whole.totals.completion;
    assert_true(cost > 0 && cost < 10 * GW_MS);
}

/* CUBIC loses less; in proportion, the window passes through what is in between. */
static void cubic__leaves_seven_tenths(void **state)
{
    (void)state;
    const gw_time from = 8 * GW_MS + 15 * GW_US;
    struct outcome o = lone_run("cc.kind=cubic; cc.prr=no", from, from + 10 * GW_US);
    assert_int_equal(o.totals.link_losses, 1);
    assert_in_range(o.least / MTU, WINDOW * 7 / 10 - 1, WINDOW * 7 / 10 + 1);
    o = lone_run("cc.kind=cubic", from, from + 10 * GW_US);
    assert_int_equal(o.totals.link_losses, 1);
    assert_in_range(o.least / MTU, WINDOW * 7 / 10 - 2, WINDOW * 7 / 10 + 1);
}

/* When the last packets are lost a probe brings it to light after two round trips; without, the
 * smallest timeout has to pass (P2). */
static void sack__probes_where_a_timeout_is_due(void **state)
{
    (void)state;
    struct outcome whole = lone_run("seed=1", 900 * GW_MS, 900 * GW_MS + 1);
    /* The last of the message passes the link about a round trip before the end. */
    const gw_time end = whole.totals.completion;
    const gw_time until = end, from = end - 460 * GW_US;
    struct outcome with = lone_run("seed=1", from, until);
    struct outcome without = lone_run("loss.probe=0", from, until);
    assert_true(with.totals.link_losses > 3 && without.totals.link_losses > 3);
    assert_true(with.totals.probes > 0 && with.totals.timeouts == 0);
    assert_true(without.totals.probes == 0 && without.totals.timeouts > 0);
    gw_time probed = with.totals.completion - whole.totals.completion;
    gw_time waited = without.totals.completion - whole.totals.completion;
    assert_true(probed < 3 * GW_MS);
    assert_true(waited >= 9 * GW_MS && waited < 15 * GW_MS);
    without = lone_run("loss.probe=0; loss.rto_min=200ms", from, until);
    waited = without.totals.completion - whole.totals.completion;
    assert_true(waited >= 199 * GW_MS && waited < 205 * GW_MS);
}

/* Four long flows through a queue that marks above K = 65 packets. */
static const char dumbbell[] =
    "topology: {kind: dumbbell, hosts: 4, rate: 10Gbps, latency: 15us, switch_latency: 0}\n"
    "lb: ecmp\n"
    "loss: sack\n"
    "queue: {kind: red, capacity: 390000B, mark: enqueue, kmin: 0.25, kmax: 0.25}\n"
    "host: {mtu: 1460, header: 40}\n"
    "metrics: {sample: 15us, series: [queue]}\n"
    "time_limit: 1s\n";

/*
 * DCTCP (SIGCOMM 2010, section 3.3): the queue's peak is K and a packet or two for each flow, and
 * its amplitude half of sqrt(2 N (C RTT + K)); NewReno's queue runs empty.
 */
static void dctcp__keeps_the_queue_around_its_threshold(void **state)
{
    enum {
        K = 65,
        FLOWS = 4,
    };
    static const char *const transports[] = {"dctcp", "newreno"};
    (void)state;
    char matrix[GW_TEST_PATH_MAX];
    gw_test_write_file(matrix, "Nodes 8\nConnections 4\n"
                               "0->4 id 1 start 0 size 10000000\n"
                               "1->5 id 2 start 7000000 size 10000000\n"
                               "2->6 id 3 start 31000000 size 10000000\n"
                               "3->7 id 4 start 52000000 size 10000000\n");
    for (int i = 0; i < 2; i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, dumbbell,
                        "workload.kind=matrix; workload.file=%s; cc=%s; cc.prr=no", matrix,
                        transports[i]);
        assert_true(run.totals.completed == FLOWS && run.totals.drops == 0);
        uint64_t count, most = 0, least = UINT64_MAX;
        const struct gw_sample *samples = gw_sim_samples(run.sim, &count);
        for (uint64_t s = 0; s < count; s++) {
            bool is_bottleneck = samples[s].subject == 2 * FLOWS && samples[s].port == FLOWS;
            if (!is_bottleneck || samples[s].at < 10 * GW_MS || samples[s].at > 30 * GW_MS)
                continue;
            most = samples[s].value > most ? samples[s].value : most;
            least = samples[s].value < least ? samples[s].value : least;
        }
        assert_in_range(most / 1500, K, K + 2 * FLOWS);
        if (i == 0) { /* C RTT is 78 packets: 16.9 of amplitude */
            assert_in_range(least / 1500, K + FLOWS - 26, K + FLOWS - 10);
            assert_true(run.totals.completion < gw_sim_bound(&run.scenario) * 103 / 100);
        } else {
            assert_true(least < 5 * 1500);
        }
        gw_test_sim_close(&run);
    }
    unlink(matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newreno__halves_for_one_loss),
        cmocka_unit_test(cubic__leaves_seven_tenths),
        cmocka_unit_test(sack__probes_where_a_timeout_is_due),
        cmocka_unit_test(dctcp__keeps_the_queue_around_its_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
