/*
 * Gradients that move as flows: by schedules among workers, and pushed to servers. What crosses
 * each host's link is what section 4.8 of the field's arithmetic says, to the packet; whatever
 * fails ends the job with a reason.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "core/job.h"
#include "sim/jobs_impl.h"

enum {
    WORKERS = 8,
    ITERATIONS = 2,
    MTU = 1024,
    PACKETS = 8 + 40 + 256, /* of |U| / WORKERS: each tensor is a multiple of WORKERS packets */
    COUNT_ALL = WORKERS * PACKETS,
    BYTE_TIME = 80,                 /* at 100 Gb/s */
    THREADS = 2 / GW_TEST_EVERY(2), /* all is the same with one or two */
};

/* Three tensors of 64, 320 and 2048 KiB, behind one another; a third of the work in each layer. */
static const char model[] = "layer,kind,weights,biases,macs\n"
                            "front,fc,16384,0,1000000\n"
                            "middle,fc,81920,0,1000000\n"
                            "back,fc,524288,0,1000000\n";

static const char base[] = "topology: {kind: star, hosts: 17, rate: 100Gbps, latency: 1us}\n"
                           "workload: {kind: training, workers: 8, device: none, iterations: 2}\n"
                           "host: {mtu: 1024, header: 64}\n"
                           "queue: {kind: red, capacity: 4MiB}\n"
                           "loss: timeout\n"
                           "time_limit: 60s\n";

/* Runs the model with these settings; the caller closes the run. */
static struct gw_job_result train(struct gw_test_sim *run, uint32_t threads, const char *set)
{
    const struct gw_sim_options options = {.seed = 3, .threads = threads};
    char path[GW_TEST_PATH_MAX], file[GW_TEST_PATH_MAX + 4];
    struct gw_job_result result;
    gw_test_write_file(path, model);
    snprintf(file, sizeof(file), "%s.csv", path);
    assert_int_equal(rename(path, file), 0);
    gw_test_sim_open(run, &options, base, "workload.model=%s; %s", file, set);
    unlink(file);
    gw_test_sim_finish(run);
    assert_int_equal(gw_sim_jobs(run->sim, &result, 1), 1);
    return result;
}

static void expect_done(struct gw_test_sim *run, const struct gw_job_result *result,
                        const char *set)
{
    if (run->totals.members_completed != run->totals.members)
        fail_msg("%s: %u of %u workers completed: %s", set, run->totals.members_completed,
                 run->totals.members, gw_job_reason_text((enum gw_job_reason)result->reason));
}

/* Packets of messages that a host sent and received, each counted once. */
static void expect_packets(const struct gw_test_sim *run, uint32_t host, uint64_t sent,
                           uint64_t received)
{
    const struct gw_sim_node *node = &run->sim->nodes[run->sim->place[host]];
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(node->endpoint);
    assert_true(stats->data_sent - stats->retransmits == ITERATIONS * sent);
    assert_true(stats->data_received - stats->duplicates == ITERATIONS * received);
}

/* 2 (n - 1) |U| / n in each direction, by either schedule and in any segments. */
static void coll__sends_what_arithmetic_says(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "workload.via=ring",
        "workload.via=hd",
        "workload.via=ring; workload.calls=3; workload.segment=8KiB; workload.flows=2",
        "workload.via=hd; workload.fusion=1MiB; workload.calls=2",
        "workload.via=ring; workload.schedule=p3; workload.partition=64KiB; workload.calls=4",
        "workload.via=ring; workload.schedule=bytescheduler; workload.partition=512KiB",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        struct gw_test_sim run;
        struct gw_job_result result = train(&run, 1, sets[i]);
        expect_done(&run, &result, sets[i]);
        for (uint32_t rank = 0; rank < WORKERS; rank++)
            expect_packets(&run, run.scenario.workload.job_hosts[rank], 2 * (WORKERS - 1) * PACKETS,
                           2 * (WORKERS - 1) * PACKETS);
        gw_test_sim_close(&run);
    }
}

/* |U| from and to each worker; the only server takes and gives n |U|. */
static void push__sends_what_arithmetic_says_to_one_server(void **state)
{
    (void)state;
    struct gw_test_sim run;
    const char *set = "workload.via=ps; workload.servers=1";
    struct gw_job_result result = train(&run, 1, set);
    expect_done(&run, &result, set);
    const struct gw_workload *workload = &run.scenario.workload;
    for (uint32_t rank = 0; rank < WORKERS; rank++)
        expect_packets(&run, workload->job_hosts[rank], COUNT_ALL, COUNT_ALL);
    expect_packets(&run, workload->job_servers[0], WORKERS * COUNT_ALL, WORKERS * COUNT_ALL);
    assert_true(result.server_bytes == (uint64_t)ITERATIONS * WORKERS * COUNT_ALL * MTU);
    gw_test_sim_close(&run);
}

/* 2 |U| (n - 1) / n in each direction, since what stays on the host passes no link; also in turn,
 * where servers have whole tensors, the sum over all hosts. */
static void push__sends_what_arithmetic_says_to_servers_on_workers(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "workload.via=ps; workload.servers=8; workload.colocated=yes; workload.split=0",
        "workload.via=ps; workload.servers=8; workload.colocated=yes; workload.split=0; "
        "workload.flows=8; workload.schedule=p3; workload.partition=64KiB",
        "workload.via=ps; workload.servers=8; workload.colocated=yes; workload.split=1GB",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        struct gw_test_sim run;
        struct gw_job_result result = train(&run, 1, sets[i]);
        expect_done(&run, &result, sets[i]);
        uint64_t sent = 0;
        for (uint32_t rank = 0; rank < WORKERS; rank++) {
            uint32_t host = run.scenario.workload.job_hosts[rank];
            const struct gw_sim_node *node = &run.sim->nodes[run.sim->place[host]];
            const struct gw_endpoint_stats *stats = gw_endpoint_stats(node->endpoint);
            sent += stats->data_sent - stats->retransmits;
            if (i < 2)
                expect_packets(&run, host, 2 * (WORKERS - 1) * PACKETS,
                               2 * (WORKERS - 1) * PACKETS);
        }
        assert_true(sent == (uint64_t)ITERATIONS * WORKERS * 2 * (WORKERS - 1) * PACKETS);
        gw_test_sim_close(&run);
    }
}

/* Every element of every sum, by the run's own check. */
static void coll__sums_are_right(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "workload.via=ring; host.payload=yes",
        "workload.via=hd; host.payload=yes; workload.calls=3",
        "workload.via=ring; host.payload=yes; workload.workers=5; workload.fusion=500KB",
        "workload.via=ring; host.payload=yes; workload.schedule=p3; workload.calls=2; "
        "workload.jitter=50%; workload.device=2080Ti; workload.images_per_s=1000000",
        "workload.via=ring; host.payload=yes; "
        "faults=[{at: 0, link: [host0, sw0], loss: 1%}, {at: 0, link: [host4, sw0], duplicate: "
        "5%}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        struct gw_test_sim run;
        struct gw_job_result result = train(&run, 1, sets[i]);
        expect_done(&run, &result, sets[i]);
        assert_int_equal(result.iterations, ITERATIONS);
        gw_test_sim_close(&run);
    }
}

/* Over whatever carries flows, and with workers that are not in step. */
static void movers__get_through(void **state)
{
    (void)state;
    static const char *const vias[] = {
        "workload.via=ring; workload.calls=2",
        "workload.via=hd",
        "workload.via=ps; workload.servers=3",
        "workload.via=ps; workload.servers=8; workload.colocated=yes",
        "workload.via=ps; workload.servers=1; workload.colocated=yes; workload.workers=1",
    };
    static const char *const others[] = {
        "cc=fixed; queue={kind: red, lossless: yes}; loss.rto=10000",
        "cc=swift; lb=spray; queue={kind: red, capacity: 100KiB}; host.ack_every=4",
        "cc=eqds+smartt; queue=trim; loss=trim",
        "workload.device=V100; workload.images_per_s=100000; workload.jitter=80%; "
        "workload.slowdown=3; workload.straggler=0; host.cost=tcp",
        "faults=[{at: 0, link: [host0, sw0], loss: 1%}, {at: 0, link: [host2, sw0], reorder: 5%, "
        "delay: 20us}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(vias); i++)
        for (uint32_t k = 0; k < GW_COUNT_OF(others); k++) {
            struct gw_test_sim run;
            uint64_t hash = 0;
            if ((i + k) % GW_TEST_EVERY(3))
                continue;
            for (uint32_t threads = 1; threads <= THREADS; threads++) {
                char set[512];
                snprintf(set, sizeof(set), "%s; %s", vias[i], others[k]);
                struct gw_job_result result = train(&run, threads, set);
                expect_done(&run, &result, set);
                assert_int_equal(result.iterations, ITERATIONS);
                if (threads == 2)
                    assert_true(run.totals.trace_hash == hash);
                hash = run.totals.trace_hash;
                gw_test_sim_close(&run);
            }
        }
}

/* Workers that are not in step give their credit to different slices, and none of them waits for
 * the others in a circle. */
static void push__does_not_wait_in_a_circle(void **state)
{
    (void)state;
    static const char *const others[] = {
        "workload.jitter=50%",
        "workload.slowdown=2",
        "workload.servers=8; workload.colocated=yes",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(others); i++) {
        struct gw_test_sim run;
        char set[512];
        snprintf(set, sizeof(set),
                 "workload.via=ps; workload.schedule=p3; workload.partition=4KiB; "
                 "workload.credit=16KiB; workload.device=V100; workload.images_per_s=400000; %s",
                 others[i]);
        struct gw_job_result result = train(&run, 1, set);
        expect_done(&run, &result, set);
        gw_test_sim_close(&run);
    }
}

/* A worker that is five times slower holds the others back only where all wait for all. */
static void push__waits_for_nobody_without_synchrony(void **state)
{
    (void)state;
    gw_time ends[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_test_sim run;
        const char *set = i ? "workload.via=ps; workload.synchronous=no; workload.device=V100; "
                              "workload.images_per_s=16000; workload.slowdown=5"
                            : "workload.via=ps; workload.device=V100; "
                              "workload.images_per_s=16000; workload.slowdown=5";
        struct gw_job_result result = train(&run, 1, set);
        expect_done(&run, &result, set);
        ends[i] = run.sim->members[1].end; /* of a fast one */
        gw_test_sim_close(&run);
    }
    assert_true(ends[1] * 2 < ends[0]);
}

/*
 * Messages follow one another without a gap: 2.4 MB in pieces of 64 KiB, about a BDP, between one
 * worker and a server take at most a quarter longer than the link needs for them, with all ACKs of
 * the answers and the way of the last piece. With one lane each waits for the one before.
 */
static void push__messages_follow_without_a_gap(void **state)
{
    (void)state;
    static const char *const lanes[] = {"workload.flows=1", "workload.flows=0"};
    gw_time times[2];
    for (uint32_t i = 0; i < 2; i++) {
        char set[512];
        struct gw_test_sim run;
        snprintf(set, sizeof(set),
                 "workload.via=ps; workload.workers=1; workload.schedule=p3; workload.credit=1GB; "
                 "workload.partition=64KiB; workload.iterations=1; %s",
                 lanes[i]);
        struct gw_job_result result = train(&run, 1, set);
        expect_done(&run, &result, set);
        times[i] = result.end - result.start;
        gw_test_sim_close(&run);
    }
    gw_time wire = (gw_time)COUNT_ALL * (MTU + 64) * BYTE_TIME;
    assert_in_range(times[1], wire, wire + wire / 4);
    assert_true(times[0] > wire + wire / 2);
}

/* All members say why they have no result, soon after the crash, and the run ends. */
static void movers__end_when_a_host_dies(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        enum gw_job_reason reason;
    } cases[] = {
        {"workload.via=ring; faults=[{at: 100us, node: host4, crash: yes}]", GW_JOB_LOST},
        {"workload.via=hd; faults=[{at: 100us, until: 200us, node: host4, crash: yes}]",
         GW_JOB_LOST},
        {"workload.via=ring; host.stall=1ms; faults=[{at: 100us, node: host4, down: yes}]",
         GW_JOB_LOST},
        {"workload.via=ps; faults=[{at: 100us, node: host4, crash: yes}]", GW_JOB_LOST},
        {"workload.via=ps; faults=[{at: 100us, until: 150us, node: host4, crash: yes}]",
         GW_JOB_LOST},
        {"workload.via=ps; faults=[{at: 100us, node: host16, crash: yes}]", GW_JOB_SILENT},
        {"workload.via=ps; faults=[{at: 100us, until: 130us, node: host16, crash: yes}]",
         GW_JOB_SILENT},
        {"workload.via=ps; host.stall=1ms; faults=[{at: 100us, node: host16, down: yes}]",
         GW_JOB_SILENT},
        {"workload.via=ps; host.stall=1ms; faults=[{at: 100us, node: host4, down: yes}]",
         GW_JOB_SILENT},
        {"workload.via=ps; workload.servers=8; workload.colocated=yes; "
         "faults=[{at: 100us, until: 1ms, node: host4, crash: yes}]",
         GW_JOB_LOST},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_test_sim run;
        struct gw_job_result result = train(&run, 1, cases[i].set);
        if (result.completed)
            fail_msg("%s: %u workers completed", cases[i].set, result.completed);
        assert_int_equal(result.failed, WORKERS);
        bool is_named = false;
        for (uint32_t rank = 0; rank < WORKERS; rank++)
            is_named |= run.sim->members[rank].reason == cases[i].reason;
        if (!is_named)
            fail_msg("%s: %s", cases[i].set, gw_job_reason_text((enum gw_job_reason)result.reason));
        assert_true(run.totals.end < 60 * GW_MS); /* 25 ms of silence, or stalls */
        gw_test_sim_close(&run);
    }
}

static void push__carries_no_payload(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run = {.sim = NULL};
    char path[GW_TEST_PATH_MAX], why[GW_WHY_MAX];
    gw_test_write_file(path, base);
    const struct gw_override overrides[] = {{"workload.via", "ps"}, {"host.payload", "yes"}};
    assert_int_equal(gw_scenario_load(&run.scenario, path, overrides, 2, why), 0);
    unlink(path);
    assert_true(gw_sim_open(&run.sim, &run.scenario, &options, why) < 0);
    assert_non_null(strstr(why, "carries no payload"));
    gw_scenario_free(&run.scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll__sends_what_arithmetic_says),
        cmocka_unit_test(push__sends_what_arithmetic_says_to_one_server),
        cmocka_unit_test(push__sends_what_arithmetic_says_to_servers_on_workers),
        cmocka_unit_test(coll__sums_are_right),
        cmocka_unit_test(movers__get_through),
        cmocka_unit_test(push__does_not_wait_in_a_circle),
        cmocka_unit_test(push__waits_for_nobody_without_synchrony),
        cmocka_unit_test(push__messages_follow_without_a_gap),
        cmocka_unit_test(movers__end_when_a_host_dies),
        cmocka_unit_test(push__carries_no_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
