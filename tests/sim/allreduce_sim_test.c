/* scenarios/allreduce.yaml: what each way costs, and that every worker gets through what fails. */
#include "sim_support.h"
#include "support.h"

enum {
    JOBS_MAX = 3,
};

static void run_checked(const char *set, bool wire, uint32_t threads, struct gw_test_sim *run,
                        struct gw_job_result results[JOBS_MAX])
{
    const struct gw_sim_options options = {.seed = 1, .threads = threads, .wire = wire};
    gw_test_sim_run(run, &options, "scenarios/allreduce.yaml", "size=1MB; %s", set);
    uint32_t jobs = gw_sim_jobs(run->sim, results, JOBS_MAX);
    for (uint32_t i = 0; i < jobs; i++)
        assert_int_equal(results[i].completed, results[i].workers);
    assert_int_equal(run->totals.members_completed, run->totals.members);
    assert_int_equal(run->totals.completed, run->totals.flows);
}

/* ATP figure 9: six workers in three racks. */
static void allreduce__packets_per_fragment_into_the_server(void **state)
{
    static const struct {
        const char *set;
        uint64_t packets;
    } ways[] = {
        {"via=ina; workers=6; racks=3; workload.window_initial=64; workload.window=64", 1},
        {"via=rss; workers=6; racks=3; workload.window_initial=16; workload.window=16", 3},
        {"via=ps; workers=6; racks=3; workload.window_initial=16; workload.window=16", 6},
    };
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(ways); i++) {
        struct gw_test_sim run;
        struct gw_job_result results[JOBS_MAX];
        run_checked(ways[i].set, true, 1, &run, results);
        uint64_t expected = ways[i].packets * results[0].fragments;
        assert_true(results[0].server_packets >= expected);
        assert_true(results[0].server_packets * 50 <= expected * 51);
        gw_test_sim_close(&run);
    }
}

static void allreduce__threads_change_nothing(void **state)
{
    (void)state;
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_test_sim run;
        struct gw_job_result results[JOBS_MAX];
        run_checked("loss=0.01", false, 1 + i, &run, results);
        hashes[i] = run.totals.trace_hash;
        gw_test_sim_close(&run);
    }
    assert_true(hashes[0] == hashes[1]);
}

static void allreduce__all_get_through_what_fails(void **state)
{
    static const char *const sets[] = {
        "loss=0.01",
        "jobs=3; aggregators=60",
        "via=ps; loss=0.01",
        "via=rss; loss=0.01; racks=4",
        "faults=[{at: 20us, until: 300us, link: [host0, leaf0], down: yes}]",
        "faults=[{at: 20us, until: 300us, link: [leaf0, spine0], down: yes}]; convergence=50us",
    };
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        struct gw_test_sim run;
        struct gw_job_result results[JOBS_MAX];
        run_checked(sets[i], true, 1, &run, results);
        gw_test_sim_close(&run);
    }
}

/* The longest packet decides how far ahead the simulator must be able to look. */
static void allreduce__fragments_may_be_longer_than_packets_of_messages(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_job_result results[JOBS_MAX];
    run_checked("host.mtu=64; workload.values=16000; topology.rate=1Gbps; workload.timeout=100ms",
                true, 1, &run, results);
    assert_true(run.totals.drops == 0);
    gw_test_sim_close(&run);
}

/* 352 of 1472 bytes of a packet are values: 95.6 % of the line is the most. */
static void allreduce__through_switches_fills_the_line(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_job_result results[JOBS_MAX];
    run_checked("size=20MB", false, 1, &run, results);
    gw_time took = results[0].end - results[0].start;
    gw_time line = 20000000 * gw_test_exact_time(1, 100000000000);
    assert_true(took > line && took * 9 < line * 10);
    gw_test_sim_close(&run);
}

static void allreduce__ring_needs_two_tensors_less_a_share(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_job_result results[JOBS_MAX];
    run_checked("via=ring; workers=4; size=20MB", false, 1, &run, results);
    assert_int_equal(run.totals.flows, 2 * 3 * 4);
    gw_time least = 30000000 * gw_test_exact_time(1, 100000000000); /* 2 (n - 1) / n tensors */
    assert_true(run.totals.completion > least);
    assert_true(run.totals.completion < least + least / 4);
    gw_test_sim_close(&run);
}

/*
 * Three jobs that want 768 aggregators, 256 each. With 60 the servers add up most of it, and all of
 * it would be 8 tensors through each server's link. Measured: 1 to 2 times as long as that. When
 * collisions are left to timeouts it is up to 160 times.
 */
static void allreduce__contended_jobs_keep_going(void **state)
{
    (void)state;
    gw_time alone = 8 * 1000000 * gw_test_exact_time(1, 100000000000);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct gw_test_sim run;
        struct gw_job_result results[JOBS_MAX];
        const struct gw_sim_options options = {.seed = seed, .threads = 1};
        gw_test_sim_run(&run, &options, "scenarios/allreduce.yaml",
                        "size=1MB; jobs=3; aggregators=60; workload.window=256; "
                        "workload.start_spread=200us");
        assert_int_equal(gw_sim_jobs(run.sim, results, JOBS_MAX), JOBS_MAX);
        for (uint32_t i = 0; i < JOBS_MAX; i++) {
            assert_int_equal(results[i].completed, results[i].workers);
            assert_true(results[i].end - results[i].start < 3 * alone);
        }
        gw_test_sim_close(&run);
    }
}

/* With all 768 their indices part: measured 98 % added up in switches, 100 % in the end. */
static void allreduce__jobs_find_aggregators_of_their_own(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_job_result results[JOBS_MAX];
    run_checked("workload.iterations=80; jobs=3; aggregators=768; workload.window=256", false, 1,
                &run, results);
    for (uint32_t i = 0; i < JOBS_MAX; i++)
        assert_true(results[i].aggregated * 100 > results[i].fragments * 95);
    gw_test_sim_close(&run);
}

/* With an alias `wrong` to a key that does not exist. */
static void expect_refused(const char *key, const char *value, const char *named)
{
    char why[GW_WHY_MAX] = "";
    struct gw_scenario scenario;
    const struct gw_override overrides[] = {{.key = "aliases.wrong", .value = "workload.sizes"},
                                            {.key = key, .value = value}};
    assert_int_not_equal(gw_scenario_load(&scenario, GW_SOURCE_DIR "/scenarios/allreduce.yaml",
                                          overrides, GW_COUNT_OF(overrides), why),
                         0);
    if (!strstr(why, named))
        fail_msg("%s=%s: '%s' does not name %s", key, value, why, named);
}

static void allreduce__bad_values_are_named(void **state)
{
    (void)state;
    expect_refused("workers", "64", "workers");
    expect_refused("workers", "0", "workers");
    expect_refused("jobs", "8", "jobs");
    expect_refused("workload.window", "65537", "window");
    expect_refused("workload.window", "100", "window_initial"); /* which is 200 */
    expect_refused("workload.header", "1001", "header");
    expect_refused("workload.preset", "papers", "paper");
    expect_refused("workload.halving", "never", "together");
    expect_refused("aggregators", "65537", "aggregators");
    expect_refused("size", "2", "size");
    expect_refused("via", "magic", "via");
    expect_refused("wrong", "1MB", "sizes");
    expect_refused("workload.sizes", "1MB", "sizes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce__packets_per_fragment_into_the_server),
        cmocka_unit_test(allreduce__threads_change_nothing),
        cmocka_unit_test(allreduce__all_get_through_what_fails),
        cmocka_unit_test(allreduce__fragments_may_be_longer_than_packets_of_messages),
        cmocka_unit_test(allreduce__through_switches_fills_the_line),
        cmocka_unit_test(allreduce__ring_needs_two_tensors_less_a_share),
        cmocka_unit_test(allreduce__contended_jobs_keep_going),
        cmocka_unit_test(allreduce__jobs_find_aggregators_of_their_own),
        cmocka_unit_test(allreduce__bad_values_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
