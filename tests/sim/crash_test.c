/*
 * Crashes of hosts and switches: what is lost with them, what becomes of the flows, that a node
 * comes back as if new, and that nothing of it escapes the books.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "sim/audit.h"
#include "sim/crash.h"
#include "sim/host_cost.h"

/* Three senders, one receiver (host 0), which is full from the start. A window is 600 ns. */
static const char star[] = "topology: {kind: star, hosts: 4}\n"
                           "workload: {kind: incast, degree: 3, size: 1MiB}\n"
                           "time_limit: 10ms\n";

/* Two leaves, two spines: half of what crosses uses each spine. */
static const char fabric[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}\n"
    "workload: {kind: all-to-all, size: 64KiB}\n"
    "lb: spray\n"
    "host: {stall: 200us}\n"
    "time_limit: 10ms\n";

static void run_with(struct gw_test_sim *run, const char *scenario, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_run(run, &options, scenario, "%s", set);
}

static struct gw_sim_node *node_of(const struct gw_test_sim *run, uint32_t id)
{
    return &run->sim->nodes[run->sim->place[id]];
}

/* Packets that nobody has given back. */
static uint64_t count_alive(const struct gw_sim *sim)
{
    uint64_t alive = 0;
    uint32_t share = (1u << GW_SIM_INDEX_BITS) / sim->part_count;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_pkt_pool *pool = &sim->parts[p].pool;
        alive += pool->fresh - (uint64_t)p * share;
        alive -= pool->free_count; /* negative for a partition that others gave packets */
    }
    return alive;
}

/* When every node has crashed there is no packet left, and the audit still agrees. */
static void expect_no_leak(struct gw_test_sim *run)
{
    for (uint32_t place = 0; place < run->sim->node_count; place++)
        gw_sim_crash(run->sim, place, run->totals.end, GW_TIME_NEVER);
    assert_true(count_alive(run->sim) == 0);
    assert_int_equal(gw_sim_audit(run->sim), 0);
    gw_test_sim_close(run);
}

/* The sender's flow fails at once, not by a stall; the others use the bandwidth. */
static void host_crash__fails_what_it_sends(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 5us, node: host2, crash: yes}]");
    assert_int_equal(run.totals.flows, 3);
    assert_int_equal(run.totals.completed, 2);
    for (uint32_t i = 0; i < 3; i++) {
        const struct gw_flow_result *flow = &run.flows[i];
        bool crashed = run.scenario.workload.flows[i].src == 2;
        assert_int_equal(flow->outcome, crashed ? GW_FLOW_FAILED : GW_FLOW_DONE);
        assert_int_equal(flow->received, !crashed);
        if (crashed)
            assert_true(flow->start == 0 && flow->end == 5400 * GW_NS); /* the next window */
    }
    expect_no_leak(&run);
}

/* A flow towards a host that has crashed for good fails when it has stalled, no earlier. */
static void host_crash__stalls_what_is_sent_to_it(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "host.stall=100us; faults=[{at: 5us, node: host0, crash: yes}]");
    assert_int_equal(run.totals.completed, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(run.flows[i].outcome, GW_FLOW_FAILED);
        assert_true(run.flows[i].end > 100 * GW_US && run.flows[i].end < 110 * GW_US);
    }
    assert_true(run.totals.link_losses > 0);
    expect_no_leak(&run);
    /* Without a stall they try until the limit. */
    run_with(&run, star, "time_limit=1ms; faults=[{at: 5us, node: host0, crash: yes}]");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(run.flows[i].outcome, GW_FLOW_PENDING);
    expect_no_leak(&run);
}

/*
 * A receiver that was away for a moment acknowledges what is sent to it, but it has lost the
 * beginning: no such message is reported as delivered.
 */
static void host_crash__never_claims_half_a_message(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "host.stall=100us; faults=[{at: 5us, until: 6us, node: host0, crash: yes}]");
    assert_int_equal(run.totals.completed, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(run.flows[i].outcome, GW_FLOW_FAILED);
        assert_false(run.flows[i].received);
    }
    expect_no_leak(&run);
}

/* If nothing had been acknowledged, nothing is lost with the receiver but time. */
static void host_crash__before_the_first_packet_costs_time(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 0, until: 60us, node: host0, crash: yes}]");
    assert_int_equal(run.totals.completed, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(run.flows[i].received && run.flows[i].end > 60 * GW_US);
    expect_no_leak(&run);
}

/* What waits for its processor is gone, and leaves the room to what comes later. */
static void host_crash__empties_its_queue(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "host={rx_rate: 20Gbps, rx_queue: 64KiB, stall: 20us};"
             "workload=[{kind: incast, degree: 3, size: 1MiB},"
             " {kind: incast, degree: 3, size: 8KiB, start: 100us}];"
             "faults=[{at: 6us, until: 60us, node: host0, crash: yes}]");
    assert_int_equal(run.totals.completed, 3);
    assert_true(run.totals.host_drops > 0);
    assert_int_equal(node_of(&run, 0)->cost->drops, 0);
    expect_no_leak(&run);
}

/*
 * What the host was to start while it is down starts when it is back, which takes effect at a
 * window's beginning; what it was to start later is not touched.
 */
static void host_crash__starts_late_what_fell_into_it(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "workload=[{kind: incast, degree: 3, size: 64KiB, start: 20us},"
             " {kind: incast, degree: 3, size: 64KiB, start: 100us}];"
             "faults=[{at: 5us, until: 50us, node: host1, crash: yes}]");
    assert_int_equal(run.totals.completed, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const struct gw_flow_spec *spec = &run.scenario.workload.flows[i];
        gw_time begin = spec->src == 1 && spec->start == 20 * GW_US ? 50 * GW_US : spec->start;
        assert_true(run.flows[i].start == spec->start);
        assert_true(run.flows[i].end > begin && run.flows[i].end < begin + 10 * GW_US);
    }
    expect_no_leak(&run);
}

/* If it never comes back, they fail when they were to start. */
static void host_crash__for_good_fails_what_was_to_start(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "workload.start=20us; workload.size=64KiB;"
             "faults=[{at: 5us, node: host1, crash: yes}]");
    assert_int_equal(run.totals.completed, 2);
    for (uint32_t i = 0; i < 3; i++) {
        if (run.scenario.workload.flows[i].src != 1)
            continue;
        assert_int_equal(run.flows[i].outcome, GW_FLOW_FAILED);
        assert_false(run.flows[i].started);
        assert_true(run.flows[i].start == 20 * GW_US && run.flows[i].end == 20 * GW_US);
    }
    expect_no_leak(&run);
}

/* Two faults that overlap: the host is back when both have ended. */
static void host_crash__twice_needs_both_to_end(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "workload.start=20us; workload.size=64KiB;"
             "faults=[{at: 5us, until: 50us, node: host1, crash: yes},"
             " {at: 10us, until: 30us, node: host1, crash: yes}]");
    assert_int_equal(run.totals.completed, 3);
    assert_int_equal(node_of(&run, 1)->lives, 2);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(run.scenario.workload.flows[i].src != 1 || run.flows[i].end > 50 * GW_US);
    for (uint32_t i = 0; i < run.scenario.topo.link_count; i++)
        assert_false(run.scenario.topo.links[i].down);
    expect_no_leak(&run);
}

/*
 * A host that crashes again and again begins its flows with new numbers each time, so that its
 * peers never take a new message for an old one: three messages, each in another life.
 */
static void host_crash__does_not_reuse_flow_numbers(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "topology.hosts=2;"
             "workload=[{kind: incast, degree: 1, size: 64KiB, start: 0},"
             " {kind: incast, degree: 1, size: 64KiB, start: 20us},"
             " {kind: incast, degree: 1, size: 64KiB, start: 40us}];"
             "faults=[{at: 10us, until: 11us, node: host1, crash: yes},"
             " {at: 30us, until: 31us, node: host1, crash: yes}]");
    assert_int_equal(run.totals.completed, 3);
    assert_int_equal(node_of(&run, 1)->lives, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(run.flows[i].received);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(run.sim->flow_numbers[i], run.sim->flow_numbers[j]);
    }
    /* Each message was really sent: 16 packets, in three lives. */
    assert_true(run.totals.data_packets == 3 * 16);
    expect_no_leak(&run);
}

/*
 * A message whose last ACK was lost is received by both lives of its receiver, but fires its
 * trigger once: the barrier waits for the other message, at 200 us.
 */
static void host_crash__fires_a_trigger_once(void **state)
{
    (void)state;
    static const char matrix[] = "Connections 3\nTriggers 1\n"
                                 "1->0 id 1 start 0 size 1 recv_done_trigger 1\n"
                                 "2->0 id 2 start 200000000 size 1 recv_done_trigger 1\n"
                                 "3->1 id 3 trigger 1 size 1\n"
                                 "trigger id 1 barrier count 2\n";
    struct gw_test_sim run;
    char path[GW_TEST_PATH_MAX], set[256];
    gw_test_write_file(path, matrix);
    snprintf(set, sizeof(set),
             "workload={kind: matrix, file: %s};"
             "faults=[{at: 1us, until: 20us, link: [host1, sw0], loss: 1},"
             " {at: 10us, until: 11us, node: host0, crash: yes}]",
             path);
    run_with(&run, star, set);
    unlink(path);
    assert_int_equal(run.totals.completed, 3);
    assert_true(run.flows[0].retransmits > 0 && run.flows[0].end > 20 * GW_US);
    assert_true(node_of(&run, 0)->lives == 2 && node_of(&run, 0)->app.sends == 0);
    assert_true(run.flows[2].start > 200 * GW_US);
    expect_no_leak(&run);
}

/* A full queue goes down with the switch; the flows send again and end. */
static void switch_crash__loses_its_queues(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 5us, until: 20us, node: sw0, crash: yes}]");
    assert_int_equal(run.totals.completed, 3);
    /* Three senders at full rate have filled the queue to the receiver; headers were trimmed. */
    uint64_t full = run.scenario.queue.capacity / 4160;
    assert_true(run.totals.trims > 0);
    assert_true(run.totals.crash_losses > full / 2);
    assert_true(run.totals.crash_losses < full + run.totals.trims);
    assert_true(run.totals.link_losses > 0);
    assert_true(run.totals.completion > 20 * GW_US);
    assert_int_equal(node_of(&run, run.scenario.topo.host_count)->lives, 2);
    expect_no_leak(&run);
}

/* Whenever routing notices, the switch knows its routes again in the end. */
static void switch_crash__comes_back_with_routes(void **state)
{
    (void)state;
    static const char *const convergence[] = {"never", "0", "5us", "50us"};
    for (uint32_t i = 0; i < GW_COUNT_OF(convergence); i++) {
        struct gw_test_sim run;
        char set[160];
        snprintf(set, sizeof(set),
                 "convergence=%s; faults=[{at: 5us, until: 15us, node: spine1, crash: yes}]",
                 convergence[i]);
        run_with(&run, fabric, set);
        assert_int_equal(run.totals.completed, run.totals.flows);
        assert_true(run.totals.link_losses > 0);
        expect_no_leak(&run);
    }
}

/* What the counters of the first life said is still in the totals. */
static void switch_crash__keeps_the_totals(void **state)
{
    (void)state;
    struct gw_test_sim calm, run;
    run_with(&calm, star, "seed=1");
    assert_true(calm.totals.trims > 0);
    /* After the last flow has ended nothing is left to lose. */
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_open(&run, &options, star, "%s", "seed=1");
    gw_test_sim_finish(&run);
    for (uint32_t place = 0; place < run.sim->node_count; place++)
        gw_sim_crash(run.sim, place, run.totals.end, GW_TIME_NEVER);
    struct gw_sim_totals after = gw_sim_totals(run.sim);
    assert_true(after.trims == calm.totals.trims && after.marks == calm.totals.marks);
    assert_true(after.data_packets == calm.totals.data_packets);
    assert_true(after.retransmits == calm.totals.retransmits);
    assert_true(after.trace_hash == calm.totals.trace_hash);
    gw_test_sim_close(&calm);
    gw_test_sim_close(&run);
}

/* Hosts and switches, for good and for a while, with routes that move: one result. */
static void crash__is_the_same_for_any_threads(void **state)
{
    (void)state;
    static const char set[] =
        "convergence=8us;"
        "faults=[{at: 7us, until: 12us, node: host1, crash: yes},"
        " {at: 4us, until: 30us, node: spine0, crash: yes},"
        " {at: 6us, node: host6, crash: yes}, {at: 3us, until: 9us, node: leaf1, crash: yes},"
        " {at: 0, link: [host2, leaf0], duplicate: 5%}, "
        " {at: 0, link: [host3, leaf0], reorder: 5%, delay: 3us}]";
    struct gw_sim_totals first = {0};
    struct gw_flow_result flows[8 * 7];
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct gw_test_sim run;
        const struct gw_sim_options options = {.seed = 3, .threads = threads, .wire = true};
        gw_test_sim_run(&run, &options, fabric, "%s", set);
        assert_int_equal(run.totals.flows, GW_COUNT_OF(flows));
        if (threads == 1) {
            first = run.totals;
            memcpy(flows, run.flows, sizeof(flows));
            assert_true(first.crash_losses > 0 && first.link_copies > 0);
            assert_true(first.completed > 0 && first.completed < first.flows);
        }
        assert_memory_equal(&first, &run.totals, sizeof(first));
        for (uint32_t i = 0; i < GW_COUNT_OF(flows); i++) {
            assert_int_equal(flows[i].outcome, run.flows[i].outcome);
            assert_true(flows[i].end == run.flows[i].end);
            assert_true(flows[i].retransmits == run.flows[i].retransmits);
        }
        expect_no_leak(&run);
    }
}

/* Another life is another stream: the salt of a switch that starts again is not the old one. */
static void crash__gives_new_streams(void **state)
{
    (void)state;
    struct gw_test_sim run;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_open(&run, &options, fabric, "%s", "seed=1");
    uint64_t seeds[3];
    for (uint32_t life = 0; life < GW_COUNT_OF(seeds); life++) {
        seeds[life] = node_of(&run, 0)->cfg->seed;
        for (uint32_t i = 0; i < life; i++)
            assert_true(seeds[i] != seeds[life]);
        gw_sim_crash(run.sim, run.sim->place[0], 0, GW_US);
        gw_sim_restart(run.sim, run.sim->place[0]);
    }
    assert_int_equal(gw_sim_audit(run.sim), 0);
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_crash__fails_what_it_sends),
        cmocka_unit_test(host_crash__stalls_what_is_sent_to_it),
        cmocka_unit_test(host_crash__never_claims_half_a_message),
        cmocka_unit_test(host_crash__before_the_first_packet_costs_time),
        cmocka_unit_test(host_crash__empties_its_queue),
        cmocka_unit_test(host_crash__starts_late_what_fell_into_it),
        cmocka_unit_test(host_crash__for_good_fails_what_was_to_start),
        cmocka_unit_test(host_crash__twice_needs_both_to_end),
        cmocka_unit_test(host_crash__does_not_reuse_flow_numbers),
        cmocka_unit_test(host_crash__fires_a_trigger_once),
        cmocka_unit_test(switch_crash__loses_its_queues),
        cmocka_unit_test(switch_crash__comes_back_with_routes),
        cmocka_unit_test(switch_crash__keeps_the_totals),
        cmocka_unit_test(crash__is_the_same_for_any_threads),
        cmocka_unit_test(crash__gives_new_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
