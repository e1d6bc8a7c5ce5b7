/*
 * Bursts in a run: what is measured of them, and that announcing them makes room.
 */
#include "sim_support.h"
#include "support.h"

#include <stdio.h>

#include "sim/sim_impl.h"

enum {
    PACKET = 1500,
    BURSTS = 6,
    SEEDS = 3 / GW_TEST_EVERY(3), /* of means */
};

static const char file[] = "scenarios/pcn.yaml";

/* Bursts of the file's scenario. */
static void run_file(struct gw_test_sim *run, const struct gw_sim_options *options, const char *set,
                     struct gw_burst_result bursts[BURSTS])
{
    gw_test_sim_run(run, options, file, "%s", set);
    assert_int_equal(run->totals.completed, run->totals.flows);
    assert_int_equal(run->scenario.workload.burst_count, BURSTS);
    for (uint32_t i = 0; i < BURSTS; i++)
        assert_true(gw_sim_burst(run->sim, i, &bursts[i]));
}

/* Of all bursts with a few seeds, on average, times 16. */
static uint32_t mean_start(const char *pcn, const char *cc, uint32_t *most)
{
    char set[64];
    snprintf(set, sizeof(set), "pcn=%s; cc=%s", pcn, cc);
    uint32_t sum = 0;
    *most = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_test_sim run;
        struct gw_burst_result bursts[BURSTS];
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(seed);
        run_file(&run, &options, set, bursts);
        for (uint32_t i = 0; i < BURSTS; i++) {
            sum += bursts[i].queue_at_start;
            *most = bursts[i].queue_at_start > *most ? bursts[i].queue_at_start : *most;
            assert_in_range(bursts[i].queue_max, bursts[i].queue_at_start, 60);
        }
        struct gw_notice_totals notices = gw_sim_notices(run.sim);
        if (run.scenario.pcn.enable)
            assert_int_equal(notices.announced, run.totals.flows);
        assert_int_equal(
            notices.unannounced + notices.at_switches.recoveries + notices.at_switches.refused, 0);
        gw_test_sim_close(&run);
    }
    return 16 * sum / (SEEDS * BURSTS);
}

static void bursts__find_room_when_they_are_announced(void **state)
{
    static const char *const ccs[] = {"newreno", "cubic", "dctcp"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(ccs); i += GW_TEST_EVERY(3)) {
        uint32_t most_off, most_on;
        uint32_t off = mean_start("no", ccs[i], &most_off);
        uint32_t on = mean_start("yes", ccs[i], &most_on);
        assert_in_range(off, 16 * 26, 16 * 48);
        assert_true(most_on < most_off);
        /* One mark makes DCTCP a little slower only, the others by half. */
        assert_true(strcmp(ccs[i], "dctcp") == 0 ? 4 * on < 3 * off : 2 * on < off);
    }
}

static void bursts__do_not_depend_on_threads(void **state)
{
    static const char set[] = "pcn=yes; size=1MB; idle=1s; workload.1.start=3s";
    struct gw_test_sim runs[2];
    struct gw_burst_result bursts[2][BURSTS];
    struct gw_port_result ports[2];
    (void)state;
    memset(bursts, 0, sizeof(bursts));
    for (uint32_t i = 0; i < 2; i++) {
        const struct gw_sim_options options = {.seed = 5, .threads = i + 1};
        run_file(&runs[i], &options, set, bursts[i]);
        assert_true(gw_sim_port(runs[i].sim, &ports[i]));
    }
    assert_int_equal(runs[0].totals.trace_hash, runs[1].totals.trace_hash);
    for (uint32_t i = 0; i < BURSTS; i++) {
        assert_int_equal(bursts[0][i].start, bursts[1][i].start);
        assert_int_equal(bursts[0][i].end, bursts[1][i].end);
        assert_int_equal(bursts[0][i].queue_at_start, bursts[1][i].queue_at_start);
        assert_int_equal(bursts[0][i].queue_max, bursts[1][i].queue_max);
        assert_int_equal(bursts[0][i].sorts[0].waited, bursts[1][i].sorts[0].waited);
        assert_int_equal(bursts[0][i].sorts[1].waited, bursts[1][i].sorts[1].waited);
    }
    assert_int_equal(ports[0].inside_time, ports[1].inside_time);
    assert_int_equal(ports[0].inside[1].bytes, ports[1].inside[1].bytes);
    for (uint32_t per_mille = 1; per_mille <= 1000; per_mille += 37)
        assert_int_equal(gw_sim_port_delay(runs[0].sim, GW_PORT_OTHERS, per_mille),
                         gw_sim_port_delay(runs[1].sim, GW_PORT_OTHERS, per_mille));
    gw_test_sim_close(&runs[0]);
    gw_test_sim_close(&runs[1]);
}

/* The next burst starts when the last flow of the one before has ended, and the pause is over. */
static void bursts__start_after_the_pause(void **state)
{
    struct gw_test_sim run;
    struct gw_burst_result bursts[BURSTS];
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    (void)state;
    run_file(&run, &options, "pcn=yes; size=100KB; idle=300ms; workload.1.start=1s", bursts);
    assert_int_equal(bursts[0].start, GW_S);
    for (uint32_t i = 1; i < BURSTS; i++)
        assert_int_equal(bursts[i].start, bursts[i - 1].end + 300 * GW_MS);
    for (uint32_t i = 0; i < BURSTS; i++) {
        assert_true(bursts[i].is_complete);
        assert_int_equal(bursts[i].bytes, 200000);
        assert_in_range(bursts[i].first_at, bursts[i].start + 2 * 2200 * GW_US,
                        bursts[i].start + 4 * 7200 * GW_US);
        assert_in_range(bursts[i].last_at, bursts[i].first_at, bursts[i].end);
        assert_in_range(bursts[i].sorts[GW_PORT_BURSTS].packets, 138, 300);
    }
    gw_test_sim_close(&run);
}

/*
 * Two workers send n packets each at the rate of the links, and every packet of both arrives at the
 * same time. So the k-th of all waits for k - k / 2 packet times, n n together, and when the last
 * pair arrives n packets are queued, less the one that is leaving.
 */
static void port__measures_what_arithmetic_says(void **state)
{
    enum {
        N = 8,
    };
    static const char scenario[] = "topology: {kind: star, hosts: 3, rate: 100Gbps, latency: 1us,"
                                   " switch_latency: 0}\n"
                                   "workload: {kind: bursts, workers: 2, iterations: 2, idle: 1ms,"
                                   " size: 11520B, start: 1ms}\n"
                                   "host: {mtu: 1440, header: 60, jitter: 0}\n"
                                   "queue: {kind: red, capacity: 90000B}\n"
                                   "cc: fixed\nlb: ecmp\nloss: timeout\n";
    const gw_time one = gw_test_exact_time(PACKET, UINT64_C(100000000000));
    struct gw_test_sim run;
    struct gw_burst_result burst;
    struct gw_port_result port;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    (void)state;
    gw_test_sim_run(&run, &options, scenario, "%s", "");
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(gw_sim_burst(run.sim, i, &burst));
        assert_int_equal(burst.queue_at_start, 0);
        assert_int_equal(burst.queue_max, N);
        assert_int_equal(burst.drops, 0);
        assert_int_equal(burst.last_at - burst.first_at, (2 * N - 1) * one);
        assert_int_equal(burst.end - burst.first_at,
                         2 * N * one + 3 * GW_US + 2 * gw_test_exact_time(60, 100000000000));
    }
    assert_int_equal(burst.first_at - burst.start, one + GW_US);
    assert_true(gw_sim_port(run.sim, &port));
    assert_int_equal(port.sorts[GW_PORT_BURSTS].packets, 2 * 2 * N);
    assert_int_equal(port.sorts[GW_PORT_BURSTS].waited, 2 * N * N * one);
    assert_int_equal(port.sorts[GW_PORT_OTHERS].packets, 0);
    assert_int_equal(port.inside_time, 2 * (2 * N - 1) * one);
    assert_int_equal(gw_sim_port_delay(run.sim, GW_PORT_BURSTS, 1000), N * one);
    assert_in_range(gw_sim_port_delay(run.sim, GW_PORT_BURSTS, 500), N / 2 * one,
                    N / 2 * one + one / 16);
    gw_test_sim_close(&run);
}

/* Without bursts a port is watched where the key says so, and every packet is one of others. */
static void port__is_that_of_the_key(void **state)
{
    static const char scenario[] = "topology: {kind: star, hosts: 3, rate: 100Gbps, latency: 1us}\n"
                                   "workload: {kind: incast, degree: 2, size: 150KB}\n"
                                   "host: {mtu: 1440, header: 60}\nqueue: {kind: red, capacity: "
                                   "1MB}\nloss: {kind: timeout, rto: 1000}\n";
    struct gw_test_sim run;
    struct gw_port_result port;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    (void)state;
    gw_test_sim_run(&run, &options, scenario, "%s", "metrics.port=[sw0, host0]");
    assert_true(gw_sim_port(run.sim, &port));
    assert_int_equal(port.sorts[GW_PORT_OTHERS].packets, run.totals.data_packets);
    assert_int_equal(port.sorts[GW_PORT_BURSTS].packets, 0);
    assert_int_equal(port.inside_time, 0);
    gw_test_sim_close(&run);
    gw_test_sim_run(&run, &options, scenario, "%s", "");
    assert_false(gw_sim_port(run.sim, &port));
    gw_test_sim_close(&run);
}

/* Workers that send their gradients behind the backward pass: a burst for each iteration. */
static void port__finds_the_bursts_of_jobs(void **state)
{
    static const char *const ways[] = {"ps", "server"};
    static const char scenario[] =
        "topology: {kind: star, hosts: 3, rate: 100Gbps, latency: 1us}\n"
        "workload: {kind: training, model: resnet50, device: 2080Ti, workers: 2, iterations: 3,"
        " schedule: seq, compression: 6.25%, placement: given, hosts: '0-2'}\n"
        "host: {mtu: 1408, header: 64}\nqueue: {kind: red, capacity: 1MB}\nloss: timeout\n"
        "metrics: {port: [sw0, host2]}\ntime_limit: 10s\n";
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(ways); i++) {
        struct gw_test_sim run;
        struct gw_burst_result bursts[3];
        struct gw_port_result port;
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        gw_test_sim_run(&run, &options, scenario, "workload.via=%s", ways[i]);
        assert_int_equal(gw_sim_bursts(run.sim), 3);
        assert_true(gw_sim_port(run.sim, &port));
        uint64_t bytes = 0;
        for (uint32_t b = 0; b < 3; b++) {
            assert_true(gw_sim_burst(run.sim, b, &bursts[b]));
            assert_int_equal(bursts[b].job, 0);
            assert_int_equal(bursts[b].queue_at_start, 0);
            assert_true(bursts[b].queue_max > 0);
            assert_true(bursts[b].start > (b ? bursts[b - 1].end : 0));
            bytes += bursts[b].bytes;
        }
        assert_int_equal(bytes, port.sorts[GW_PORT_BURSTS].bytes);
        assert_int_equal(port.sorts[GW_PORT_OTHERS].packets, 0);
        assert_int_equal(port.inside_time, bursts[0].last_at - bursts[0].first_at +
                                               bursts[1].last_at - bursts[1].first_at +
                                               bursts[2].last_at - bursts[2].first_at);
        gw_test_sim_close(&run);
    }
}

/* Every way to sum gradients announces, and all of its packets fit the wire. */
static void notices__are_sent_by_every_mover(void **state)
{
    static const char *const ways[] = {"ina", "rss", "ps", "server", "switchml", "ring", "hd"};
    static const char scenario[] =
        "topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 4, rate: 100Gbps,"
        " latency: 1us}\n"
        "workload: {kind: training, model: resnet50, device: 2080Ti, workers: 4, iterations: 1,"
        " compression: 6.25%}\n"
        "host: {mtu: 1408, header: 64}\nqueue: {kind: red, capacity: 1MB}\nloss: timeout\n"
        "pcn: {enable: yes}\ntime_limit: 10s\n";
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(ways); i += GW_TEST_EVERY(3)) {
        struct gw_test_sim run;
        const struct gw_sim_options options = {.seed = 1, .threads = 1, .wire = true};
        gw_test_sim_run(&run, &options, scenario, "workload.via=%s", ways[i]);
        assert_int_equal(run.totals.members_completed, 4);
        struct gw_notice_totals notices = gw_sim_notices(run.sim);
        assert_true(notices.announced >= 4);
        assert_int_equal(notices.unannounced, 0);
        assert_true(notices.at_switches.heads > 0);
        gw_test_sim_close(&run);
    }
}

/*
 * A stranger announces every 2 ms from two hosts and sends nothing, and nobody waits for it: each
 * of its announcements grows old, and its port is low for its share of the time and no longer. An
 * honest tenant comes after it.
 */
static void notices__of_silent_bursts_cost_a_share(void **state)
{
    static const char scenario[] =
        "topology: {kind: star, hosts: 5, rate: 1Gbps, latency: 1us, switch_latency: 0}\n"
        "workload:\n"
        "- {kind: bursts, workers: 2, server: 4, hosts: '2,3', iterations: 2, idle: 50ms,"
        " size: 15000B, start: 100ms, announce: 10}\n"
        "- {kind: bursts, workers: 2, server: 4, hosts: '0,1', iterations: 100000, idle: 2ms,"
        " silent: yes, announce: 5}\n"
        "host: {mtu: 1440, header: 60}\n"
        "queue: {kind: red, capacity: 90000B, kmin: 50%, kmax: 50%}\n"
        "pcn: {enable: yes, hold: 1ms, share: 10%, save: 1ms}\n"
        "cc: newreno\nlb: ecmp\nloss: sack\n";
    struct gw_test_sim run;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    (void)state;
    gw_test_sim_run(&run, &options, scenario, "%s", "");
    assert_int_equal(run.totals.completed, run.totals.flows);
    assert_int_equal(run.totals.flows, 4); /* of those that the run waits for */
    gw_time end = run.totals.end;
    assert_in_range(end, 150 * GW_MS, 160 * GW_MS);
    struct gw_notice_totals notices = gw_sim_notices(run.sim);
    assert_in_range(notices.at_switches.notices - notices.at_switches.repeated,
                    2 * (end / (2 * GW_MS)) + 2, 2 * (end / (2 * GW_MS)) + 8);
    assert_int_equal(notices.at_switches.heads, 4);
    assert_int_equal(notices.announced, 4);
    assert_true(notices.at_switches.refused > notices.at_switches.recoveries &&
                notices.at_switches.recoveries > 0);
    /* A tenth of the time, and what is saved up: of the stranger half a tenth while it shares. */
    assert_in_range(notices.lowered_most, end / 25, end / 10 + 2 * GW_MS);
    gw_test_sim_close(&run);
}

/* The root forgets in its crash what was announced; later bursts are as before. */
static void notices__survive_a_crash_of_the_switch(void **state)
{
    static const char crash[] = "pcn=yes; size=1MB; idle=1s; workload.1.start=3s; pcn.hold=20s;"
                                " faults=[{at: 3010ms, until: 3100ms, node: sw0, crash: yes}]";
    struct gw_test_sim run;
    struct gw_burst_result bursts[BURSTS];
    const struct gw_sim_options options = {.seed = 1, .threads = 1, .wire = true};
    (void)state;
    run_file(&run, &options, crash, bursts);
    const struct gw_sim_node *root =
        &run.sim->nodes[run.sim->place[gw_topo_find(&run.scenario.topo, "sw0")]];
    const struct gw_switch_notice *stage = gw_switch_notices(root->sw);
    for (uint16_t port = 0; port < 3; port++) {
        assert_int_equal(gw_switch_notice_open(stage, port), 0);
        assert_int_equal(gw_switch_notice_threshold(stage, port), UINT32_MAX);
    }
    assert_true(gw_sim_notices(run.sim).at_switches.heads > 3 * (BURSTS - 1));
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bursts__find_room_when_they_are_announced),
        cmocka_unit_test(bursts__do_not_depend_on_threads),
        cmocka_unit_test(bursts__start_after_the_pause),
        cmocka_unit_test(port__measures_what_arithmetic_says),
        cmocka_unit_test(port__is_that_of_the_key),
        cmocka_unit_test(port__finds_the_bursts_of_jobs),
        cmocka_unit_test(notices__are_sent_by_every_mover),
        cmocka_unit_test(notices__of_silent_bursts_cost_a_share),
        cmocka_unit_test(notices__survive_a_crash_of_the_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
