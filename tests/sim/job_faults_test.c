/*
 * Training jobs with payload in the simulator: every way of adding up is exact (the run's audit
 * compares every element), also when links and nodes fail; and what fails says why.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "core/job.h"

static struct gw_job_result run(const char *set, struct gw_test_sim *run)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_job_result result;
    gw_test_sim_run(run, &options, "scenarios/allreduce.yaml",
                    "size=400KB; host.payload=yes; workload.iterations=3; %s", set);
    assert_true(gw_sim_jobs(run->sim, &result, 1) >= 1);
    return result;
}

/* All workers of all jobs get through. */
static struct gw_job_result expect_all(const char *set)
{
    struct gw_test_sim sim;
    struct gw_job_result result = run(set, &sim);
    if (sim.totals.members_completed != sim.totals.members)
        fail_msg("%s: %u of %u workers completed: %s", set, sim.totals.members_completed,
                 sim.totals.members, gw_job_reason_text((enum gw_job_reason)result.reason));
    gw_test_sim_close(&sim);
    return result;
}

static void jobs__every_way_is_exact(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "via=ina",
        "via=rss",
        "via=ps",
        "via=ps; workload.servers=8; workload.colocated=yes",
        "via=switchml",
        "workload.servers=3",
        "jobs=3; aggregators=300",
        "jobs=3; aggregators=20; workload.indexing=linear",
        "jobs=3; aggregators=600; workload.indexing=static",
        "workload.magnitude=6", /* sums do not fit integers */
        "workload.magnitude=6; workload.proactive=yes",
        "workload.magnitude=6; workload.dynamic_scaling=yes",
        "via=ina; loss=0.01",
        "via=switchml; loss=0.01; racks=1",
        "via=ina; faults=[{at: 0, link: [host0, leaf0], duplicate: 5%},"
        " {at: 0, link: [host1, leaf0], reorder: 5%, delay: 20us}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i += GW_TEST_EVERY(2))
        expect_all(sets[i]);
}

/* The server is on host63, below leaf1. */
static void jobs__outlive_switches_and_servers(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "faults=[{at: 30us, until: 400us, node: leaf0, crash: yes}]",
        "faults=[{at: 60us, until: 400us, node: leaf1, crash: yes}]",
        "faults=[{at: 50us, until: 300us, node: leaf0, crash: yes},"
        " {at: 100us, until: 2ms, node: leaf1, crash: yes}]",
        "faults=[{at: 1us, until: 3ms, node: leaf0, crash: yes}]", /* while the job forms */
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++)
        expect_all(sets[i]);
    struct gw_test_sim sim;
    struct gw_job_result result = run("via=ina", &sim);
    uint32_t server = sim.scenario.workload.job_servers[0];
    gw_test_sim_close(&sim);
    assert_int_equal(result.completed, 8);
    for (uint32_t at = 10; at <= 100; at += 30) {
        char set[128];
        snprintf(set, sizeof(set), "faults=[{at: %uus, until: 3ms, node: host%u, crash: yes}]", at,
                 server);
        expect_all(set);
    }
}

static void jobs__a_dead_worker_is_named(void **state)
{
    (void)state;
    struct gw_test_sim sim;
    struct gw_job_result result = run("faults=[{at: 50us, node: host2, crash: yes}]", &sim);
    assert_int_equal(result.completed, 0);
    assert_int_equal(result.reason, GW_JOB_LOST);
    assert_int_equal(result.about, 2);
    gw_test_sim_close(&sim);
}

/* One packet per fragment reaches the server when all levels of a tree add up. */
static void jobs__three_levels_add_up(void **state)
{
    (void)state;
#define TREE                                                                                       \
    "topology={kind: tree, depth: 3, fanout: 3, hosts_per_leaf: 4, rate: 100Gbps}; faults=[]; "    \
    "workers=27; size=100KB; workload.window=64; workload.window_initial=64; "
    struct gw_job_result three = expect_all(TREE "workload.levels=3");
    assert_int_equal(three.server_packets, three.fragments);
    struct gw_job_result two = expect_all(TREE "workload.levels=2");
    assert_int_equal(two.server_packets, two.fragments);
    struct gw_job_result racks = expect_all(TREE "via=rss");
    assert_true(racks.server_packets >= 9 * racks.fragments);
}

/* Jobs that begin and end at different times share the switches. */
static void jobs__come_and_go(void **state)
{
    (void)state;
    expect_all("jobs=4; aggregators=200; workload.start_spread=2ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs__every_way_is_exact),
        cmocka_unit_test(jobs__outlive_switches_and_servers),
        cmocka_unit_test(jobs__a_dead_worker_is_named),
        cmocka_unit_test(jobs__three_levels_add_up),
        cmocka_unit_test(jobs__come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
