/*
 * What messages and jobs can do without, in the simulator: as much arrives as must, over every
 * transport, and the sender says of each packet what it is worth.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"

enum {
    FLOWS = 3,
    PACKETS = 200, /* of each message */
};

static const char incast[] = "topology: {kind: star, hosts: 4, rate: 100Gbps, latency: 1us}\n"
                             "workload: {kind: incast, degree: 3, size: 200KB}\n"
                             "host: {mtu: 1000, header: 64}\n"
                             "queue: {kind: dlcp, capacity: 100KB}\n"
                             "loss: timeout\n"
                             "time_limit: 1s\n";

static const char training[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, rate: 100Gbps}\n"
    "workload: {kind: training, device: none, via: ps, workers: 8, servers: 2, colocated: yes,"
    " iterations: 2, split: 100KB, model: " GW_SOURCE_DIR "/tests/sim/small.csv}\n"
    "host: {mtu: 1400, header: 64}\n"
    "queue: {kind: dlcp, capacity: 200KB}\n"
    "loss: timeout\n"
    "time_limit: 1s\n";

static uint64_t sum(const uint64_t counts[GW_CLASSES])
{
    uint64_t total = 0;
    for (uint32_t class = 0; class < GW_CLASSES; class ++)
        total += counts[class];
    return total;
}

/* The bound in packets: 10 % of all but the last. */
static const uint32_t may_lack = (PACKETS - 1) / 10;

/* Flows that are acknowledged end as soon as they may; blasts take what still comes. */
static void bound__ends_messages_over_every_transport(void **state)
{
    static const char *const transports[] = {"smartt", "dctcp", "cubic", "eqds", "dlcp"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(transports); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, incast, "cc=%s; workload.bound=10%%", transports[i]);
        assert_int_equal(run.totals.completed, FLOWS);
        bool is_blast = run.scenario.transport.cc->on_report != NULL;
        for (uint32_t flow = 0; flow < FLOWS; flow++) {
            assert_true(run.flows[flow].missing_at_end <= may_lack);
            assert_true(is_blast || run.flows[flow].missing == may_lack);
            assert_true(run.flows[flow].received || is_blast);
        }
        gw_test_sim_close(&run);
    }
}

/* Without a bound all arrives, whatever is dropped on the way. */
static void bound__of_zero_is_exact(void **state)
{
    static const char *const transports[] = {"dctcp", "dlcp"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(transports); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, incast, "cc=%s; workload.important=0", transports[i]);
        assert_int_equal(run.totals.completed, FLOWS);
        assert_true(run.totals.drops > 0);
        for (uint32_t flow = 0; flow < FLOWS; flow++)
            assert_int_equal(run.flows[flow].missing_at_end, 0);
        gw_test_sim_close(&run);
    }
}

/* What is said to have arrived holds what was sent, and the rest is as it was: the run compares. */
static void bound__leaves_memory_of_what_is_missing_alone(void **state)
{
    static const char *const transports[] = {"dctcp", "dlcp"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(transports); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim bare, run;
        gw_test_sim_run(&bare, &options, incast, "cc=%s; workload.bound=10%%", transports[i]);
        gw_test_sim_run(&run, &options, incast, "cc=%s; workload.bound=10%%; host.payload=yes",
                        transports[i]);
        assert_int_equal(run.totals.completed, FLOWS);
        assert_true(run.totals.trace_hash == bare.totals.trace_hash);
        gw_test_sim_close(&bare);
        gw_test_sim_close(&run);
    }
}

/* Queues above their threshold drop what is unimportant and nothing else, in the class of the
 * messages. */
static void important__packets_are_not_shed(void **state)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    (void)state;
    gw_test_sim_run(&run, &options, incast,
                    "cc=dlcp; workload.important=50%%; workload.class=3; queue.capacity=10MB");
    assert_int_equal(run.totals.completed, FLOWS);
    assert_true(run.totals.losses[3].shed > 0);
    assert_int_equal(run.totals.losses[3].shed, run.totals.drops);
    assert_true(run.totals.marks > 0); /* important ones met the same queue */
    gw_test_sim_close(&run);
}

/* A job's pushes and pulls have bounds of their own; its results are those of any number of
 * threads. */
static void job__says_what_arrived_of_each_way(void **state)
{
    static const char *const transports[] = {"dctcp", "dlcp"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(transports); i++) {
        struct gw_message_result results[2][GW_MESSAGE_WAYS + 1];
        uint64_t hashes[2];
        for (uint32_t threads = 1; threads <= 2; threads++) {
            const struct gw_sim_options options = {.seed = 1, .threads = threads};
            struct gw_test_sim run;
            gw_test_sim_run(&run, &options, training,
                            "cc=%s; workload.bound=20%%; workload.bound_pull=5%%; "
                            "workload.priority=layer; workload.importance=median-of-means",
                            transports[i]);
            assert_int_equal(run.totals.members_completed, 8);
            assert_true(gw_sim_messages(run.sim, 0, results[threads - 1]));
            hashes[threads - 1] = run.totals.trace_hash;
            gw_test_sim_close(&run);
        }
        assert_true(hashes[0] == hashes[1]);
        assert_memory_equal(results[0], results[1], sizeof(results[0]));
        const struct gw_message_result *push = &results[0][GW_MESSAGE_PUSH];
        const struct gw_message_result *pull = &results[0][GW_MESSAGE_PULL];
        assert_true(sum(push->missing) > 0);
        assert_true(5 * sum(push->missing) <= sum(push->packets));
        assert_true(20 * sum(pull->missing) <= sum(pull->packets));
        assert_true(push->packets[GW_CLASS_DATA_MAX] > 0 && push->packets[0] == 0);
        assert_true(4 * push->important > push->begun && 4 * push->important < 3 * push->begun);
        assert_true(push->median <= push->p99 && push->p99 <= push->p999);
        assert_true(push->p999 <= push->longest && push->mean_ps <= (double)push->longest);
        assert_int_equal(results[0][GW_MESSAGE_WAYS].sent, push->sent + pull->sent);
    }
}

/* All that a server adds up passes its link, whichever pieces it has. */
static void job__may_have_servers_at_random(void **state)
{
    static const char *const owners[] = {"turn", "random"};
    uint64_t sent[2];
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(owners); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_message_result results[GW_MESSAGE_WAYS + 1];
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, training,
                        "cc=dctcp; workload.colocated=no; workload.workers=6; workload.owner=%s",
                        owners[i]);
        assert_int_equal(run.totals.members_completed, 6);
        assert_true(gw_sim_messages(run.sim, 0, results));
        sent[i] = results[GW_MESSAGE_PUSH].sent;
        gw_test_sim_close(&run);
    }
    assert_int_equal(sent[0], sent[1]);
}

/* Each hop of a ring has its share of the bound; where a message is too short for that, none. */
static void ring__divides_the_bound_among_hops(void **state)
{
    static const uint32_t segments[] = {14000, 700000};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(segments); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_message_result results[GW_MESSAGE_WAYS + 1];
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, training,
                        "cc=dlcp; workload.colocated=no; workload.via=ring; workload.bound=20%%; "
                        "workload.segment=%u; workload.importance=none; queue.thresholds=[4000]; "
                        "workload.workers=4; faults=[{at: 0, link: [host0, leaf0], loss: 0.02}]",
                        segments[i]);
        assert_int_equal(run.totals.members_completed, 4);
        assert_true(gw_sim_messages(run.sim, 0, results));
        assert_true(15 * sum(results[0].missing) <= sum(results[0].packets)); /* 20 % of 3 hops */
        assert_int_equal(sum(results[0].missing) > 0, i == 1);
        gw_test_sim_close(&run);
    }
}

/* How long workers take for a sum of 4 MB over links of 500 Mb/s, some packets of which are lost,
 * with one more fault or none. */
static gw_time time_of_a_sum(const char *via, const char *loss, const char *fault, uint64_t seed)
{
    static const char scenario[] =
        "topology: {kind: star, hosts: 4, rate: 500Mbps, latency: 10us, host_delay: 300us}\n"
        "workload: {kind: training, device: none, workers: 4, iterations: 1, segment: 256KiB,"
        " bound: 10%, bound_pull: 10%, model: " GW_SOURCE_DIR "/tests/sim/one_layer.csv}\n"
        "host: {mtu: 1408, header: 72, train: 45, report_every: 8500us, hail_copies: 2}\n"
        "queue: {kind: fifo, capacity: 1MB}\n"
        "cc: dlcp\n"
        "loss: {kind: timeout, rto: 4}\n"
        "time_limit: 10s\n";
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(seed);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, scenario,
                    "workload.via=%s; faults=[{at: 0, link: [host0, sw0], loss: %s},"
                    " {at: 0, link: [host1, sw0], loss: %s}, {at: 0, link: [host2, sw0], loss: %s},"
                    " {at: 0, link: [host3, sw0], loss: %s}%s]",
                    via, loss, loss, loss, loss, fault);
    assert_int_equal(run.totals.members_completed, 4);
    gw_time took = run.totals.end;
    gw_test_sim_close(&run);
    return took;
}

/* With a bound of 10 %, 1 % of what is lost on the way costs no waiting for hails that are lost,
 * nor data that is sent again. */
static void bound__makes_loss_cost_little_time(void **state)
{
    static const struct {
        const char *via;
        uint32_t percent; /* that it takes longer at most */
    } cases[] = {{"direct", 4}, {"ring", 8}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            gw_time whole = time_of_a_sum(cases[i].via, "0", "", seed);
            gw_time lossy = time_of_a_sum(cases[i].via, "0.005", "", seed); /* of two links */
            assert_in_range(lossy, whole - whole / 100, whole + whole * cases[i].percent / 100);
        }
}

/* A rank that does nothing for a while holds a sum up for about as long, whenever that is: nobody
 * else waits for its turn, and via ps it meets nobody at a link that is not its own. */
static void bound__waits_for_a_rank_that_sleeps_and_hardly_longer(void **state)
{
    enum { SLEEP_MS = 20, MORE_MS = 6 };
    static const char *const ways[] = {"direct", "ring"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(ways); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            gw_time awake = time_of_a_sum(ways[i], "0.005", "", seed);
            for (uint32_t at = 10; at <= 90; at += 20) {
                char fault[96];
                snprintf(fault, sizeof(fault),
                         ", {at: %ums, until: %ums, node: host%u, sleep: yes}", at, at + SLEEP_MS,
                         (uint32_t)seed % 4);
                gw_time asleep = time_of_a_sum(ways[i], "0.005", fault, seed);
                assert_in_range(asleep, awake, awake + (SLEEP_MS + MORE_MS) * GW_MS);
            }
        }
}

/* Where many send at once nearly all that is asked for is lost again, time after time; yet the last
 * message ends in less than twice the time that the link takes for all. */
static void bound__keeps_nobody_waiting_in_a_crowd(void **state)
{
    static const char crowd[] = "topology: {kind: star, hosts: 65, rate: 100Gbps, latency: 10us}\n"
                                "workload: {kind: incast, degree: 64, size: 400KB, bound: 10%}\n"
                                "host: {mtu: 1400, header: 64}\n"
                                "queue: {kind: dlcp, capacity: 64KB}\n"
                                "lb: round-robin\n"
                                "loss: timeout\n"
                                "time_limit: 10s\n";
    static const char *const controls[] = {"dlcp", "follow"};
    const gw_time alone =
        64 * gw_serialisation(gw_byte_time_from_bps(UINT64_C(100000000000)), 400000);
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(controls); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(seed);
            struct gw_test_sim run;
            gw_test_sim_run(&run, &options, crowd, "cc=%s", controls[i]);
            assert_int_equal(run.totals.completed, 64);
            assert_true(run.totals.completion < 2 * alone);
            gw_test_sim_close(&run);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound__makes_loss_cost_little_time),
        cmocka_unit_test(bound__waits_for_a_rank_that_sleeps_and_hardly_longer),
        cmocka_unit_test(bound__ends_messages_over_every_transport),
        cmocka_unit_test(bound__of_zero_is_exact),
        cmocka_unit_test(bound__leaves_memory_of_what_is_missing_alone),
        cmocka_unit_test(important__packets_are_not_shed),
        cmocka_unit_test(job__says_what_arrived_of_each_way),
        cmocka_unit_test(job__may_have_servers_at_random),
        cmocka_unit_test(ring__divides_the_bound_among_hops),
        cmocka_unit_test(bound__keeps_nobody_waiting_in_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
