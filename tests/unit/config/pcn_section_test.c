/* The section `pcn:`, and the thresholds that follow from it, the topology and the workload. */
#include "unit/config/scenario_file.h"

/* A base RTT of 13.32 ms at 100 Mb/s, and so 37 packets of 1500 bytes for each of three flows. */
static const char scenario[] = "topology: {kind: tree, fanout: 2, hosts_per_leaf: 2, root_hosts: 1,"
                               " rate: 100Mbps, latency: 2158400ns, switch_latency: 0}\n"
                               "host: {mtu: 1460, header: 40}\n"
                               "queue: {kind: red, capacity: 90000B}\n"
                               "loss: sack\n"
                               "pcn: {enable: yes}\n"
                               "workload:\n"
                               "  - {kind: bursts, workers: 2}\n";

static uint8_t units_of(const char *set)
{
    struct gw_scenario loaded;
    scenario_load(&loaded, scenario, set);
    uint8_t units = loaded.workload.tenants[0].units;
    gw_scenario_free(&loaded);
    return units;
}

static void pcn__thresholds_follow_from_the_longest_way(void **state)
{
    (void)state;
    assert_int_equal(units_of(NULL), 2);
    assert_int_equal(units_of("workload.0.announce=1/1"), 8);
    assert_int_equal(units_of("workload.0.announce=1/8"), 1);
    assert_int_equal(units_of("workload.0.announce=75"), 15);
    assert_int_equal(units_of("workload.0.announce=no"), 0);
    /* The other worker is nearer: three links instead of four. */
    assert_int_equal(units_of("workload.0.server=2"), 3);
}

/* Nobody announces, whatever the workload says, and nothing is refused that would be with it. */
static void pcn__is_off_by_default(void **state)
{
    (void)state;
    assert_int_equal(units_of("pcn.enable=no"), 0);
    assert_int_equal(units_of("pcn={}"), 0);
    struct gw_scenario loaded;
    scenario_load(&loaded,
                  "topology: {kind: star, hosts: 4, latency: 10ms}\n"
                  "workload: {kind: bursts, announce: 1/1}\nqueue: fifo\n",
                  NULL);
    assert_false(loaded.pcn.enable);
    gw_scenario_free(&loaded);
}

static void pcn__times_follow_from_the_base_rtt(void **state)
{
    (void)state;
    struct gw_scenario loaded;
    scenario_load(&loaded, scenario, NULL);
    assert_int_equal(loaded.pcn.hold, 4 * loaded.brtt_max);
    assert_int_equal(loaded.pcn.save, 16 * loaded.brtt_max);
    assert_int_equal(loaded.pcn.floor, 5);
    assert_int_equal(loaded.pcn.share, GW_Q16_ONE / 4);
    gw_scenario_free(&loaded);
    scenario_load(&loaded, scenario, "pcn.hold=3ms");
    gw_scenario_free(&loaded);
}

static void pcn__jobs_have_thresholds_too(void **state)
{
    static const char jobs[] =
        "topology: {kind: star, hosts: 5, rate: 100Gbps, latency: 2us}\n"
        "queue: red\npcn: {enable: yes}\n"
        "workload:\n"
        "  - {kind: allreduce, via: ps, size: 1MB, workers: 2, announce: 1/1}\n"
        "  - {kind: allreduce, via: ring, size: 1MB, workers: 2, announce: 15}\n"
        "  - {kind: training, via: server, workers: 2, announce: no, exclusive: no}\n";
    (void)state;
    struct gw_scenario loaded;
    scenario_load(&loaded, jobs, NULL);
    const struct gw_workload *workload = &loaded.workload;
    assert_int_equal(workload->job_count, 2);
    assert_int_equal(workload->jobs[0].announce, GW_NOTICE_FORMULA);
    assert_true(workload->jobs[0].notice_path.rtt > 8 * GW_US);
    assert_int_equal(workload->jobs[0].notice_path.rate_bps, UINT64_C(100000000000));
    assert_in_range(workload->jobs[0].units, 1, 15);
    assert_int_equal(workload->tenants[0].units, 3);
    assert_int_equal(workload->flows[0].tenant, 1);
    assert_int_equal(workload->jobs[1].units, 0);
    gw_scenario_free(&loaded);
}

static void pcn__refuses_what_cannot_be(void **state)
{
    (void)state;
    scenario_refused(scenario, "pcn.floor=0", "floor must be from 1 to 75, not 0");
    scenario_refused(scenario, "pcn.share=101%", "share must be from 0 to 100%");
    scenario_refused(scenario, "pcn.jobs=0", "jobs must be from 1");
    scenario_refused(scenario, "pcn.announcements=2000000", "announcements must be from 1");
    scenario_refused(scenario, "pcn.hold=432001s", "hold must be at most 5 days");
    scenario_refused(scenario, "pcn.save=432001s", "save must be at most 5 days");
    scenario_refused(scenario, "pcn=yes", "pcn=yes: expected a map");
    scenario_refused(scenario, "pcn.floors=5", "unknown key \"floors\"");
    scenario_refused(scenario, "queue.mark=off", "needs queues that mark");
    scenario_refused(scenario, "queue={kind: fifo}", "needs queues that mark");
    scenario_refused(scenario, "workload.0.announce=11",
                     "announce=11: must be no, a multiple of 5 packets");
    scenario_refused("topology: {kind: star, hosts: 4, latency: 10ms}\nqueue: red\n"
                     "pcn: {enable: yes}\nworkload:\n  kind: bursts\n  announce: 1/1\n",
                     NULL, ":6: workload.announce: the formula gives a threshold of ");
}

static void metrics_port__names_a_switch_port(void **state)
{
    (void)state;
    struct gw_scenario loaded;
    scenario_load(&loaded, scenario, "metrics.port=[sw0, host4]");
    const struct gw_topo *topo = &loaded.topo;
    uint32_t index = loaded.metrics.port;
    assert_int_equal(topo->ports[index].peer, 4);
    assert_true(index >= topo->nodes[gw_topo_find(topo, "sw0")].first_port);
    gw_scenario_free(&loaded);
    scenario_load(&loaded, scenario, NULL);
    assert_int_equal(loaded.metrics.port, UINT32_MAX);
    gw_scenario_free(&loaded);
    scenario_refused(scenario, "metrics.port=[host4, sw0]", "host4 is a host; the port must be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pcn__thresholds_follow_from_the_longest_way),
        cmocka_unit_test(pcn__is_off_by_default),
        cmocka_unit_test(pcn__times_follow_from_the_base_rtt),
        cmocka_unit_test(pcn__jobs_have_thresholds_too),
        cmocka_unit_test(pcn__refuses_what_cannot_be),
        cmocka_unit_test(metrics_port__names_a_switch_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
