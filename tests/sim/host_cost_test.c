/*
 * What packets cost a host. A lone flow with jitter 0 ends when arithmetic says, to the picosecond:
 * with n full packets over two links and a switch, each costing the receiver c and each ACK the
 * sender a, where c is above a packet's time on a link,
 *
 *   the first packet arrives at    2 * F + 2 * l + s
 *   and the sender knows later by  n * c + 2 * A + 2 * l + s + a
 *
 * since ACKs then come every c, and none waits. F and A are the times of a packet and an ACK on a
 * link, l and s the latencies of link and switch.
 */
#include "sim_support.h"
#include "support.h"

#include "sim/host_cost.h"
#include "sim/sim_impl.h"

enum {
    PACKETS = 200,
};

static const gw_time full = 41600 * GW_NS / 1000; /* 4160 bytes at 800 Gb/s */
static const gw_time ack = 640 * GW_NS / 1000;    /* 64 bytes */
static const gw_time one_way = 2 * 600 * GW_NS + 400 * GW_NS;

/* One flow of PACKETS full packets, all of which may be under way. */
static const char lone[] = "topology: {kind: star, hosts: 2}\n"
                           "workload: {kind: incast, degree: 1, size: 800KiB}\n"
                           "host: {jitter: 0}\n"
                           "queue: {kind: fifo, capacity: 4MiB}\n"
                           "cc: {kind: fixed, bdp: 100}\n"
                           "loss: {kind: timeout, rto: 10000}\n";

static gw_time lone_flow_time(const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, lone, "%s", set);
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.data_packets == PACKETS && run.totals.host_drops == 0);
    gw_time time = run.flows[0].end;
    gw_test_sim_close(&run);
    return time;
}

static void rx_cost__spaces_packets(void **state)
{
    (void)state;
    gw_time cost = 300 * GW_NS;
    assert_true(lone_flow_time("host.rx_cost=300ns") ==
                2 * full + one_way + PACKETS * cost + 2 * ack + one_way + cost);
}

/* 40 Gb/s: 832 ns for a packet, 12.8 ns for an ACK. */
static void rx_rate__spaces_packets(void **state)
{
    (void)state;
    gw_time cost = 20 * full, ack_cost = 20 * ack;
    assert_true(lone_flow_time("host.rx_rate=40Gbps") ==
                2 * full + one_way + PACKETS * cost + 2 * ack + one_way + ack_cost);
    /* Both: they add up. */
    assert_true(lone_flow_time("host.rx_rate=40Gbps; host.rx_cost=100ns") ==
                2 * full + one_way + PACKETS * (cost + 100 * GW_NS) + 2 * ack + one_way + ack_cost +
                    100 * GW_NS);
}

/* The last packet leaves after all but one of the costs, and ACKs come no faster. */
static void tx_cost__spaces_packets(void **state)
{
    (void)state;
    gw_time cost = 150 * GW_NS;
    assert_true(lone_flow_time("host.tx_cost=150ns") ==
                (PACKETS - 1) * cost + 2 * full + one_way + 2 * ack + one_way);
    /* Below the time of a packet it is hidden. */
    assert_true(lone_flow_time("host.tx_cost=41ns") == lone_flow_time("seed=1"));
}

/* 20 Gb/s: 1664 ns for a packet; the last one leaves after all of the others. */
static void tx_rate__spaces_packets(void **state)
{
    (void)state;
    gw_time cost = 40 * full;
    assert_true(lone_flow_time("host.tx_rate=20Gbps") ==
                (PACKETS - 1) * cost + 2 * full + one_way + 2 * ack + one_way);
    /* Both: they add up. */
    assert_true(lone_flow_time("host.tx_rate=20Gbps; host.tx_cost=100ns") ==
                (PACKETS - 1) * (cost + 100 * GW_NS) + 2 * full + one_way + 2 * ack + one_way);
}

static void cost__names_a_model(void **state)
{
    (void)state;
    assert_true(lone_flow_time("host.cost=rdma") == lone_flow_time("seed=1"));
    assert_true(lone_flow_time("host.cost=tcp") ==
                lone_flow_time("host.rx_cost=150ns; host.rx_rate=27Gbps; host.tx_cost=75ns; "
                               "host.tx_rate=54Gbps"));
    /* What is written beside the name wins, before it or behind. */
    assert_true(lone_flow_time("host.rx_cost=1us; host.cost=tcp; host.rx_rate=27Gbps") ==
                lone_flow_time("host.rx_cost=1us; host.rx_rate=27Gbps"));
}

/* Mb/s that one worker gets back from one server, in packets of `values`. */
static uint64_t atp_goodput(const char *cost, uint32_t values)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    struct gw_job_result job;
    gw_test_sim_run(&run, &options, "scenarios/allreduce.yaml",
                    "topology={kind: star, hosts: 2, rate: 100Gbps, latency: 1us}; "
                    "faults=[]; via=ps; workers=1; size=4MB; workload.values=%u; host.header=58; "
                    "workload.window=1024; workload.window_initial=1024; "
                    "workload.congestion_control=no; host.cost=%s",
                    values, cost);
    assert_int_equal(gw_sim_jobs(run.sim, &job, 1), 1);
    assert_int_equal(job.completed, 1);
    gw_test_sim_close(&run);
    return UINT64_C(8) * 4000000 * 1000 / ((job.end - job.start) / GW_NS);
}

static void assert_near(uint64_t value, uint64_t wanted, uint64_t tolerance)
{
    assert_in_range(value, wanted - tolerance, wanted + tolerance);
}

/* ATP's Figure 19: each step as many times faster as the paper says, and 60 Gb/s at the end. */
static void cost__has_the_steps_of_atp(void **state)
{
    (void)state;
    uint64_t plain = atp_goodput("atp-default", 31), tso = atp_goodput("atp-tso", 31),
             mpqp = atp_goodput("atp-mpqp", 31), two_pass = atp_goodput("atp", 62);
    print_message("%llu, %llu, %llu, %llu Mb/s\n", (unsigned long long)plain,
                  (unsigned long long)tso, (unsigned long long)mpqp, (unsigned long long)two_pass);
    assert_near(tso * 100 / plain, 300, 9);
    assert_near(mpqp * 100 / tso, 147, 4);
    assert_near(two_pass * 100 / mpqp, 130, 4);
    assert_near(two_pass, 60000, 1800);
}

/* One core receives 20 Gb/s of TCP in packets of 1500 bytes; the sender could do twice as much. */
static void cost__of_tcp_is_one_core(void **state)
{
    (void)state;
    gw_time with = lone_flow_time("host.cost=tcp; host.mtu=1436; workload.size=287200");
    uint64_t mbps = UINT64_C(8) * PACKETS * 1500 * 1000 / ((with - 2 * one_way) / GW_NS);
    assert_near(mbps, 20000, 1000);
}

static const char incast[] = "topology: {kind: star, hosts: 9}\n"
                             "workload: {kind: incast, degree: 8, size: 1MiB}\n"
                             "queue: {kind: fifo, capacity: 16MiB}\n"
                             "cc: {kind: fixed, bdp: 4}\n"
                             "loss: {kind: timeout, rto: 30}\n"
                             "time_limit: 100ms\n";

static void rx_queue__drops_what_is_too_much(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, incast, "host.rx_rate=200Gbps; host.rx_queue=256KiB");
    assert_int_equal(run.totals.completed, 8);
    assert_true(run.totals.host_drops > 0 && run.totals.drops == 0);
    assert_true(run.totals.retransmits >= run.totals.host_drops);
    gw_test_sim_close(&run);
    gw_test_sim_run(&run, &options, incast, "host.rx_rate=200Gbps");
    assert_true(run.totals.completed == 8 && run.totals.host_drops == 0);
    gw_test_sim_close(&run);
}

/* The host pauses its switch, the switch the senders, and the host never waits for data. */
static void rx_queue__pauses_a_lossless_link(void **state)
{
    static const char *const sets[] = {"host.jitter=1", "host.jitter=0; host.train=8",
                                       "host.tx_cost=100ns; host.train=4"};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, incast,
                        "host.rx_rate=200Gbps; host.rx_queue=640KiB; queue={kind: fifo, lossless: "
                        "yes}; loss.rto=10000; %s",
                        sets[i]);
        assert_int_equal(run.totals.completed, 8);
        assert_true(run.totals.host_drops == 0 && run.totals.drops == 0);
        assert_true(run.totals.retransmits == 0);
        const struct gw_sim_node *receiver = &run.sim->nodes[run.sim->place[0]];
        assert_true(receiver->cost->meters[0].pauses > 0);
        assert_true(run.totals.pauses > receiver->cost->meters[0].pauses);
        gw_time work = 8 * 256 * 4 * full; /* a quarter of the rate of a link */
        assert_true(run.totals.completion >= work);
        assert_true(run.totals.completion <= work + work / 50);
        gw_test_sim_close(&run);
    }
}

/* Workers of a job are as fast as ever; the server works off all gradients at its rate. */
static void cost_hosts__can_be_the_servers_alone(void **state)
{
    (void)state;
    static const char *const vias[] = {"ps", "ring"};
    for (uint32_t i = 0; i < GW_COUNT_OF(vias); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        struct gw_job_result job;
        gw_test_sim_run(&run, &options, "scenarios/allreduce.yaml",
                        "via=%s; size=1MB; workers=4; host.rx_rate=10Gbps; host.cost_hosts=servers",
                        vias[i]);
        uint32_t costly = 0;
        for (uint32_t id = 0; id < run.scenario.topo.host_count; id++)
            costly += run.sim->nodes[run.sim->place[id]].cost != NULL;
        uint32_t jobs = gw_sim_jobs(run.sim, &job, 1);
        assert_int_equal(costly, jobs);
        if (jobs) {
            assert_int_equal(job.completed, 4);
            uint32_t server = run.scenario.workload.job_servers[0];
            assert_non_null(run.sim->nodes[run.sim->place[server]].cost);
            gw_time work = job.server_bytes * gw_test_exact_time(1, 10000000000);
            assert_true(job.end - job.start >= work);
            assert_true(job.end - job.start <= 2 * work);
        }
        gw_test_sim_close(&run);
    }
}

/* Nothing leaves a sender that sleeps, and what comes to a receiver that does waits for it. */
static void sleep__holds_up_a_host_and_loses_nothing(void **state)
{
    (void)state;
    gw_time wakes = 100 * GW_US;
    gw_time awake = lone_flow_time("seed=1");
    gw_time sender = lone_flow_time("faults=[{at: 5us, until: 100us, node: host1, sleep: yes}]");
    assert_true(sender > awake + 94 * GW_US && sender <= awake + 95 * GW_US);
    /* All packets have come when it wakes, and their ACKs leave at once. */
    assert_true(lone_flow_time("faults=[{at: 1us, until: 100us, node: host0, sleep: yes}]") ==
                wakes + PACKETS * ack + ack + one_way);
    /* What it was at when it fell asleep has been done when it wakes. */
    gw_time cost = 300 * GW_NS, first = 2 * full + one_way;
    uint64_t begun = (6 * GW_US - first) / cost + 1;
    assert_true(lone_flow_time("host.rx_cost=300ns; "
                               "faults=[{at: 6us, until: 100us, node: host0, sleep: yes}]") ==
                wakes + (PACKETS - begun) * cost + 2 * ack + one_way + cost);
    /* Longer than another sleep that ends first. */
    assert_true(lone_flow_time("faults=[{at: 1us, until: 100us, node: host0, sleep: yes},"
                               " {at: 2us, until: 50us, node: host0, sleep: yes}]") ==
                wakes + PACKETS * ack + ack + one_way);
}

/* No more waits than the host has room for. */
static void sleep__overflows_the_queue_of_a_host(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, lone,
                    "host.rx_queue=41600B; loss.rto=4; "
                    "faults=[{at: 0, until: 100us, node: host0, sleep: yes}]");
    assert_int_equal(run.totals.completed, 1);
    assert_in_range(run.totals.host_drops, PACKETS - 10, UINT32_MAX);
    assert_true(run.flows[0].end > 100 * GW_US);
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rx_cost__spaces_packets),
        cmocka_unit_test(rx_rate__spaces_packets),
        cmocka_unit_test(tx_cost__spaces_packets),
        cmocka_unit_test(tx_rate__spaces_packets),
        cmocka_unit_test(cost__names_a_model),
        cmocka_unit_test(cost__has_the_steps_of_atp),
        cmocka_unit_test(cost__of_tcp_is_one_core),
        cmocka_unit_test(rx_queue__drops_what_is_too_much),
        cmocka_unit_test(sleep__holds_up_a_host_and_loses_nothing),
        cmocka_unit_test(sleep__overflows_the_queue_of_a_host),
        cmocka_unit_test(rx_queue__pauses_a_lossless_link),
        cmocka_unit_test(cost_hosts__can_be_the_servers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
