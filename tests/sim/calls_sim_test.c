/*
 * Jobs whose ranks make calls through communicators, in the simulator: every call of every kind
 * brings what it must (the run's audit compares every element), also when links and nodes fail;
 * what fails says why; and collectives use the links as well as arithmetic allows.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "core/job.h"
#include "core/tensor.h"
#include "sim/calls_impl.h"

enum {
    WORKERS = 8,
    MTU = 1408,
    HEADER = 64,
    ITERATIONS = 2,
    SET_MAX = 1024,
};

static const char base[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 8, rate: 10Gbps,\n"
    "           uplink_rate: 40Gbps, latency: 2us}\n"
    "queue: {kind: red, capacity: 1MB, kmin: 10%, kmax: 10%}\n"
    "host: {mtu: 1408, header: 64, stall: 200ms}\n"
    "loss: {kind: timeout, rto: 20}\n"
    "workload:\n"
    "  kind: calls\n"
    "  workers: 8\n"
    "  iterations: 2\n"
    "time_limit: 100s\n";

#define EVERYTHING                                                                                 \
    "workload.calls=[{do: allreduce, bytes: 400KB}, {do: allreduce, type: float64, bytes: 80KB},"  \
    " {do: allreduce, via: ps, type: int32, bytes: 80KB}, {do: send, from: 0, to: 5, bytes: "      \
    "30KB},"                                                                                       \
    " {do: push, key: 7, bytes: 80KB}, {do: pull, key: 7, bytes: 80KB},"                           \
    " {do: broadcast, root: 3, bytes: 100KB}, {do: allgather, type: uint8, bytes: 5KB},"           \
    " {do: reduce_scatter, op: min, bytes: 4KB}, {do: reduce, root: 6, bytes: 40KB},"              \
    " {do: barrier}]; workload.servers=2; workload.split=100KB; workload.ahead=8"

static struct gw_job_result run_calls(struct gw_test_sim *run, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_job_result result;
    gw_test_sim_run(run, &options, base, "%s", set);
    assert_int_equal(gw_sim_jobs(run->sim, &result, 1), 1);
    return result;
}

/* Every rank has done all calls in which it has a part, and none was refused. */
static void expect_done(const struct gw_test_sim *run, const struct gw_job_result *result,
                        const char *set)
{
    struct gw_call_result call;
    uint32_t calls = 0;
    if (result->completed != result->workers)
        fail_msg("%s: %u of %u ranks completed: %s (%u)", set, result->completed, result->workers,
                 gw_job_reason_text((enum gw_job_reason)result->reason), result->about);
    for (; gw_sim_call(run->sim, 0, calls, &call); calls++)
        if (call.done == 0 || call.refused)
            fail_msg("%s: call %u was done %u times and refused %u times", set, calls,
                     (uint32_t)call.done, (uint32_t)call.refused);
    assert_true(calls > 0);
}

static void expect_all(const char *set)
{
    struct gw_test_sim run;
    struct gw_job_result result = run_calls(&run, set);
    expect_done(&run, &result, set);
    gw_test_sim_close(&run);
}

/* Those that switches cannot sum go by ring, whatever `via` says. */
static void calls__every_sum_is_right(void **state)
{
    (void)state;
    static const char *const types[] = {"float32", "float16", "bfloat16", "int32",
                                        "float64", "int64",   "uint8"};
    static const char *const ops[] = {"sum", "average", "min", "max", "product"};
    static const char *const vias[] = {"ina", "ps", "ring"};
    for (uint32_t t = 0; t < GW_COUNT_OF(types); t++)
        for (uint32_t v = 0; v < GW_COUNT_OF(vias); v++) {
            char set[SET_MAX];
            int length = snprintf(set, sizeof(set), "workload.iterations=1; workload.calls=[");
            for (uint32_t o = 0; o < GW_COUNT_OF(ops); o++) {
                bool exists = gw_op_exists((enum gw_op)o, (enum gw_dtype)t);
                length += snprintf(set + length, sizeof(set) - (size_t)length,
                                   "%s{do: %s, via: %s, type: %s, op: %s, bytes: %u}",
                                   o ? ", " : "", o % 2 ? "reduce" : "allreduce", vias[v], types[t],
                                   exists ? ops[o] : "max", 8 * (o + 1) * (o + 700));
            }
            snprintf(set + length, sizeof(set) - (size_t)length, "]");
            expect_all(set);
        }
}

static void calls__every_kind_is_right(void **state)
{
    (void)state;
    static const char *const sets[] = {
        EVERYTHING,
        EVERYTHING "; workload.via=ring",
        EVERYTHING "; workload.via=ps; workload.ahead=1",
        EVERYTHING "; workload.workers=2; workload.calls.3.to=1; workload.calls.6.root=1; "
                   "workload.calls.9.root=0",
        EVERYTHING "; workload.workers=5; workload.calls.3.to=4; workload.calls.9.root=4",
        EVERYTHING
        "; workload.segment=8; workload.calls=[{do: broadcast, bytes: 1001, type: uint8},"
        " {do: allgather, bytes: 4}, {do: reduce_scatter, bytes: 4},"
        " {do: allreduce, via: ring, bytes: 4}, {do: allreduce, bytes: 4},"
        " {do: send, bytes: 1}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++)
        expect_all(sets[i]);
}

/* host15 and host7 are the servers, or the other way round; the home is the first of them. */
static void calls__get_through_what_fails(void **state)
{
    (void)state;
    static const char *const sets[] = {
        EVERYTHING "; faults=[{at: 0, link: [host1, leaf0], loss: 0.02}]",
        EVERYTHING "; faults=[{at: 0, link: [leaf0, spine0], corrupt: 0.01}]",
        EVERYTHING "; faults=[{at: 0, link: [host1, leaf0], duplicate: 5%},"
                   " {at: 0, link: [host2, leaf0], reorder: 5%, delay: 50us}]",
        EVERYTHING "; faults=[{at: 100us, until: 300us, node: leaf0, crash: yes}]",
        EVERYTHING "; faults=[{at: 1us, until: 300us, node: spine0, crash: yes}]",
        EVERYTHING "; faults=[{at: 200us, until: 2ms, link: [host2, leaf0], down: yes}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++)
        expect_all(sets[i]);
}

/* A server that comes back is found again, and so is the home, at any time. */
static void calls__outlive_servers(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_job_result result = run_calls(&run, EVERYTHING);
    uint32_t servers[2];
    memcpy(servers, run.scenario.workload.job_servers, sizeof(servers));
    gw_time end = result.end;
    gw_test_sim_close(&run);
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t part = 1; part <= 5; part++) {
            char set[SET_MAX];
            snprintf(set, sizeof(set),
                     EVERYTHING "; faults=[{at: %lluns, until: %lluns, node: host%u, crash: yes}]",
                     (unsigned long long)(end / GW_NS * part / 6),
                     (unsigned long long)(end / GW_NS * part / 6 + 500000), servers[s]);
            expect_all(set);
        }
}

/* All others say that it is lost, and the run ends. */
static void calls__a_dead_rank_is_named(void **state)
{
    (void)state;
    static const char *const sets[] = {
        EVERYTHING "; faults=[{at: 100us, node: host2, crash: yes}]",
        EVERYTHING "; faults=[{at: 100us, until: 200us, node: host2, crash: yes}]",
        EVERYTHING "; workload.via=ring; faults=[{at: 100us, node: host2, crash: yes}]",
        "workload.via=ring; faults=[{at: 200us, node: host2, crash: yes}];"
        "workload.calls=[{do: broadcast, bytes: 4MB}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        struct gw_test_sim run;
        struct gw_job_result result = run_calls(&run, sets[i]);
        if (result.completed || result.failed != WORKERS)
            fail_msg("%s: %u ranks completed, %u failed", sets[i], result.completed, result.failed);
        if (result.reason != GW_JOB_LOST)
            fail_msg("%s: %s", sets[i], gw_job_reason_text((enum gw_job_reason)result.reason));
        assert_true(run.totals.end < 10 * GW_S);
        gw_test_sim_close(&run);
    }
}

/* After `lost`, long before those who wait for it give up. */
static void calls__the_home_notices_who_is_silent(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_job_result result = run_calls(
        &run, "workload.via=ring; workload.lost=10ms; workload.iterations=1; workload.ahead=1; "
              "faults=[{at: 1ms, node: host8, crash: yes}]; workload.calls=[{do: send, "
              "bytes: 40MB}, {do: barrier}]");
    assert_int_equal(result.failed, WORKERS);
    assert_int_equal(result.reason, GW_JOB_LOST);
    assert_int_equal(result.about, 4);
    assert_true(run.totals.end < 12 * GW_MS);
    gw_test_sim_close(&run);
}

/* A value that nobody has pushed, and one of another shape. */
static void calls__refusals_change_nothing(void **state)
{
    (void)state;
    struct gw_test_sim run;
    struct gw_call_result call;
    struct gw_job_result result = run_calls(
        &run, "workload.via=ring; workload.ahead=1; workload.calls=[{do: pull, key: 3, bytes: 4KB},"
              " {do: barrier}, {do: push, key: 4, bytes: 4KB}, {do: barrier},"
              " {do: push, key: 4, bytes: 8KB}, {do: pull, key: 4, bytes: 4KB}]");
    assert_int_equal(result.completed, WORKERS);
    assert_true(gw_sim_call(run.sim, 0, 0, &call));
    assert_int_equal(call.refused, WORKERS * ITERATIONS);
    assert_int_equal(call.done, 0);
    assert_true(gw_sim_call(run.sim, 0, 4, &call));
    assert_int_equal(call.refused, WORKERS * ITERATIONS);
    assert_true(gw_sim_call(run.sim, 0, 5, &call));
    assert_int_equal(call.done, WORKERS * ITERATIONS);
    gw_test_sim_close(&run);
}

/* Flows with contents and another job beside it, on its hosts. */
static void calls__share_hosts_with_flows_and_jobs(void **state)
{
    (void)state;
    static const char both[] =
        "topology: {kind: star, hosts: 12, rate: 10Gbps, latency: 2us}\n"
        "queue: {kind: red, capacity: 1MB, kmin: 10%, kmax: 10%}\n"
        "host: {mtu: 1408, header: 64, stall: 200ms}\n"
        "loss: timeout\n"
        "workload:\n"
        "  - {kind: permutation, size: 300KB}\n"
        "  - {kind: allreduce, workers: 6, size: 400KB, iterations: 3}\n"
        "  - {kind: calls, workers: 6, exclusive: no, iterations: 3, calls: [{do: allreduce,\n"
        "     bytes: 400KB}, {do: allgather, bytes: 40KB}, {do: push, key: 1, bytes: 10KB}]}\n";
    const struct gw_sim_options options = {.seed = 1, .threads = 2, .wire = true};
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, both, "%s", "");
    assert_int_equal(run.totals.completed, 12);
    assert_int_equal(run.totals.members_completed, 12);
    gw_test_sim_close(&run);
}

/* Jobs of an entry, each with hosts of its own, share switches and their memory. */
static void calls__of_several_jobs_share_switches(void **state)
{
    (void)state;
    struct gw_test_sim run;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_run(&run, &options, base, "%s",
                    "workload.jobs=3; workload.workers=4; workload.aggregators=40; "
                    "workload.iterations=3; workload.calls=[{do: allreduce, bytes: 400KB},"
                    " {do: allgather, bytes: 40KB}, {do: push, key: 1, bytes: 10KB}]");
    assert_int_equal(run.totals.members_completed, 12);
    gw_test_sim_close(&run);
}

/* Each of m servers has 1/m of the fragments of a divided tensor, and in a network that loses
 * nothing gets each once: with the results that it sends, 2/m of the tensor pass its link. */
static void servers__have_equal_parts(void **state)
{
    (void)state;
    enum {
        SERVERS = 3,
        VALUES = 352,
        TENSOR = 8000000,
    };
    struct gw_test_sim run;
    struct gw_job_result result =
        run_calls(&run, "workload.servers=3; workload.split=1MB; workload.iterations=1; "
                        "workload.window=64; workload.window_initial=64; "
                        "workload.calls=[{do: allreduce, bytes: 8MB}]");
    expect_done(&run, &result, "servers");
    const struct gw_sim_crew *crew = run.sim->jobs[0].mover;
    const uint64_t fragments = TENSOR / sizeof(float) / VALUES;
    for (uint32_t i = 0; i < SERVERS; i++) {
        const struct gw_server_stats *stats = gw_server_stats(crew->shards[i].server);
        assert_in_range(stats->results, fragments / SERVERS, fragments / SERVERS + 1);
        uint64_t least = stats->results * (MTU + HEADER);
        assert_in_range(stats->bytes, least - MTU, least + least / 50); /* few collide */
        assert_int_equal(gw_server_stats(crew->shards[SERVERS + i].server)->results, 0);
    }
    gw_test_sim_close(&run);
}

/* The longest time that the only call of a job took at a rank. */
static gw_time longest(const char *call)
{
    struct gw_test_sim run;
    struct gw_call_result result;
    char set[SET_MAX];
    snprintf(set, sizeof(set),
             "topology={kind: star, hosts: 10, rate: 1Gbps, latency: 2us}; workload.via=ring; "
             "workload.iterations=1; host.jitter=0; workload.calls=[%s]",
             call);
    struct gw_job_result job = run_calls(&run, set);
    expect_done(&run, &job, set);
    assert_true(gw_sim_call(run.sim, 0, 0, &result));
    gw_test_sim_close(&run);
    return result.longest;
}

/* So many bytes, in full packets, on a link of 1 Gb/s. */
static gw_time on_the_wire(uint64_t bytes)
{
    uint64_t packets = (bytes + MTU - 1) / MTU;
    return (bytes + packets * HEADER) * gw_test_exact_time(1, 1000000000);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LARGE      UINT64_C(10000000)
#define LARGE_TEXT "10MB"
/* What the demonstrations say is as true of a tenth of their bytes. */
#define MESH_SETS                                                                                  \
    "; workload.calls.4.bytes=800KB; workload.calls.5.bytes=1MB; workload.calls.6.bytes=100KB;"    \
    " workload.calls.7.bytes=100KB"
#define STORE_SETS "; workload.calls.0.bytes=400KB; workload.calls.8.bytes=400KB"
#else
#define LARGE      UINT64_C(100000000)
#define LARGE_TEXT "100MB"
#define MESH_SETS  ""
#define STORE_SETS ""
#endif

static void broadcast__takes_little_longer_than_one_link(void **state)
{
    (void)state;
    gw_time took = longest("{do: broadcast, type: uint8, bytes: " LARGE_TEXT "}");
    gw_time least = on_the_wire(LARGE);
    assert_true(took >= least);
    if (took * 10 > least * 11)
        fail_msg("%.3f times what the link needs", (double)took / (double)least);
}

static void gather_and_scatter__take_little_longer_than_an_ideal_ring(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "{do: allgather, bytes: 1MB}",
        "{do: reduce_scatter, bytes: 1MB}",
        "{do: allgather, bytes: 400KB}",
        "{do: reduce_scatter, type: float64, bytes: 400KB}",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(calls); i++) {
        gw_time took = longest(calls[i]);
        gw_time least = on_the_wire((WORKERS - 1) * (i < 2 ? UINT64_C(1000000) : UINT64_C(400000)));
        assert_true(took >= least);
        if (took * 10 > least * 12)
            fail_msg("%s: %.3f times what a ring needs", calls[i], (double)took / (double)least);
    }
}

/* The demonstrations, small. */
static void scenarios__run(void **state)
{
    (void)state;
    static const char *const files[] = {"scenarios/mesh.yaml", "scenarios/store.yaml",
                                        "scenarios/everything.yaml"};
    static const char *const sets[] = {"iterations=1" MESH_SETS, "iterations=1" STORE_SETS,
                                       "iterations=2"}; /* beyond the last fault */
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    for (uint32_t i = 0; i < GW_COUNT_OF(files); i++) {
        struct gw_test_sim run;
        struct gw_job_result result;
        gw_test_sim_run(&run, &options, files[i], "%s", sets[i]);
        gw_sim_jobs(run.sim, &result, 1);
        expect_done(&run, &result, files[i]);
        if (i == 2) /* it is about what is lost */
            assert_true(run.totals.link_losses && run.totals.crash_losses &&
                        run.totals.link_copies);
        gw_test_sim_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls__every_sum_is_right),
        cmocka_unit_test(calls__every_kind_is_right),
        cmocka_unit_test(calls__get_through_what_fails),
        cmocka_unit_test(calls__outlive_servers),
        cmocka_unit_test(calls__a_dead_rank_is_named),
        cmocka_unit_test(calls__the_home_notices_who_is_silent),
        cmocka_unit_test(calls__refusals_change_nothing),
        cmocka_unit_test(calls__share_hosts_with_flows_and_jobs),
        cmocka_unit_test(calls__of_several_jobs_share_switches),
        cmocka_unit_test(servers__have_equal_parts),
        cmocka_unit_test(broadcast__takes_little_longer_than_one_link),
        cmocka_unit_test(gather_and_scatter__take_little_longer_than_an_ideal_ring),
        cmocka_unit_test(scenarios__run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
