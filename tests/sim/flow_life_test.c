/*
 * How flows begin and end: triggers, empty messages, background flows, the time limit, and flows
 * that give up.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"

enum {
    TEXT_MAX = 1024,
};

static const char star[] = "topology: {kind: star, hosts: 4}\n"
                           "workload: {kind: incast, degree: 1, size: 1MiB}\n"
                           "time_limit: 10ms\n";

/* Prepares the flows of a connection matrix between four hosts. */
static void open_matrix(struct gw_test_sim *run, const char *matrix)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    char path[GW_TEST_PATH_MAX], text[TEXT_MAX];
    gw_test_write_file(path, matrix);
    snprintf(text, sizeof(text), "%sworkload: {kind: matrix, file: %s}\n",
             "topology: {kind: star, hosts: 4}\n", path);
    gw_test_sim_open(run, &options, text, "%s", "");
    unlink(path);
}

static void run_matrix(struct gw_test_sim *run, const char *matrix)
{
    open_matrix(run, matrix);
    gw_test_sim_finish(run);
    assert_int_equal(run->totals.completed, run->totals.flows);
}

/* It is sent and received at once, and fires both of its triggers. */
static void empty_flow__completes_when_it_starts(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_matrix(&run, "Connections 3\nTriggers 2\n"
                      "0->1 id 1 start 5000000 size 1 send_done_trigger 1 recv_done_trigger 2\n"
                      "1->2 id 2 trigger 1 size 1\n2->3 id 3 trigger 2 size 1\n"
                      "trigger id 1 oneshot\ntrigger id 2 oneshot\n");
    run.scenario.workload.flows[0].bytes = 0; /* in a matrix, size 0 means a flow without end */
    gw_test_sim_finish(&run);
    assert_int_equal(run.totals.completed, 3);
    assert_true(run.flows[0].start == 5 * GW_US && run.flows[0].end == 5 * GW_US);
    assert_true(run.flows[1].start == 5 * GW_US + run.sim->window);
    assert_true(run.flows[2].start == 5 * GW_US + run.sim->window);
    assert_true(run.totals.data_packets == 2);
    gw_test_sim_close(&run);
}

static void endless_flow__runs_in_the_background(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_matrix(&run, "Connections 2\n0->1 id 1 start 0 size 0\n2->3 id 2 start 0 size 100000\n");
    assert_int_equal(run.totals.flows, 1);
    assert_true(run.scenario.workload.flows[0].background);
    assert_int_equal(run.flows[0].outcome, GW_FLOW_PENDING);
    gw_test_sim_close(&run);
}

/* All flows of a oneshot start one window after its first firing; the second one finds none. */
static void trigger__oneshot_starts_all_once(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_matrix(&run, "Connections 4\nTriggers 1\n"
                     "0->1 id 1 start 0 size 100000 send_done_trigger 1\n"
                     "1->0 id 2 start 0 size 300000 send_done_trigger 1\n"
                     "2->3 id 3 trigger 1 size 1000\n3->2 id 4 trigger 1 size 1000\n"
                     "trigger id 1 oneshot\n");
    assert_true(run.flows[0].end < run.flows[1].end);
    for (uint32_t i = 2; i < 4; i++)
        assert_true(run.flows[i].start == run.flows[0].end + run.sim->window);
    gw_test_sim_close(&run);
}

static void trigger__barrier_waits_for_the_last(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_matrix(&run, "Connections 5\nTriggers 1\n"
                     "0->1 id 1 start 0 size 100000 send_done_trigger 1\n"
                     "1->0 id 2 start 0 size 300000 send_done_trigger 1\n"
                     "2->0 id 3 start 9000000 size 50000 send_done_trigger 1\n"
                     "2->3 id 4 trigger 1 size 1000\n3->2 id 5 trigger 1 size 1000\n"
                     "trigger id 1 barrier count 3\n");
    gw_time last = run.flows[2].end;
    assert_true(run.flows[0].end < last && run.flows[1].end < last);
    for (uint32_t i = 3; i < 5; i++)
        assert_true(run.flows[i].start == last + run.sim->window);
    gw_test_sim_close(&run);
}

/* Each firing starts the next flow of the list: a window of two over five messages. */
static void trigger__multishot_starts_one_per_firing(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_matrix(&run, "Connections 5\nTriggers 1\n"
                     "0->1 id 1 start 0 size 100000 send_done_trigger 1\n"
                     "0->2 id 2 start 0 size 300000 send_done_trigger 1\n"
                     "0->3 id 3 trigger 1 size 100000 send_done_trigger 1\n"
                     "0->1 id 4 trigger 1 size 100000 send_done_trigger 1\n"
                     "0->2 id 5 trigger 1 size 100000 send_done_trigger 1\n"
                     "trigger id 1 multishot\n");
    for (uint32_t i = 2; i < 5; i++) {
        uint32_t fired_before = 0, firing = 0;
        for (uint32_t j = 0; j < 5; j++) {
            fired_before += run.flows[j].end + run.sim->window < run.flows[i].start;
            firing += run.flows[j].end + run.sim->window == run.flows[i].start;
        }
        assert_int_equal(fired_before, i - 2);
        assert_int_equal(firing, 1);
    }
    gw_test_sim_close(&run);
}

/* The receiver is done half a round trip before the sender knows. */
static void trigger__tells_received_from_sent(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_matrix(&run, "Connections 3\nTriggers 2\n"
                     "0->1 id 1 start 0 size 8192 recv_done_trigger 1 send_done_trigger 2\n"
                     "2->3 id 2 trigger 1 size 1000\n3->2 id 3 trigger 2 size 1000\n"
                     "trigger id 1 oneshot\ntrigger id 2 oneshot\n");
    /* Two links of 600 ns, a switch of 400 ns; the ACK's own time and jitter add a few ns. */
    gw_time apart = run.flows[2].start - run.flows[1].start;
    assert_true(apart >= 1600 * GW_NS && apart < 1700 * GW_NS);
    gw_test_sim_close(&run);
}

static void run_ends__without_waiting_for_background_flows(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star, "workload=[{kind: incast, degree: 2, size: 64KiB}, %s]",
                    "{kind: background, pairs: 2->3}");
    assert_int_equal(run.scenario.workload.flow_count, 3);
    assert_int_equal(run.totals.flows, 2);
    assert_int_equal(run.totals.completed, 2);
    assert_int_equal(run.flows[2].outcome, GW_FLOW_PENDING);
    assert_true(run.flows[2].started);
    gw_time last = run.flows[0].end > run.flows[1].end ? run.flows[0].end : run.flows[1].end;
    /* To the end of the window, no further. */
    assert_true(run.totals.end > last && run.totals.end <= last + run.sim->window);
    gw_test_sim_close(&run);
}

static void time_limit__leaves_flows_unfinished(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star, "workload=[%s, %s]; time_limit=20us",
                    "{kind: incast, degree: 2, size: 8MiB}",
                    "{kind: incast, degree: 1, size: 1, start: 30us}");
    assert_int_equal(run.totals.flows, 3);
    assert_int_equal(run.totals.completed, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(run.flows[i].outcome, GW_FLOW_PENDING);
        assert_int_equal(run.flows[i].started, i < 2);
    }
    assert_true(run.totals.end <= 20 * GW_US + run.sim->window);
    assert_true(run.totals.completion == 0);
    gw_test_sim_close(&run);
}

/* A dead link: the flow fails once nothing was acknowledged for `stall`, and the run ends. */
static void stalled_flow__fails_at_its_time(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star, "host.stall=100us; %s",
                    "faults=[{at: 0, link: [host0, sw0], down: yes}]");
    assert_int_equal(run.totals.flows, 1);
    assert_int_equal(run.totals.completed, 0);
    assert_int_equal(run.flows[0].outcome, GW_FLOW_FAILED);
    assert_true(run.flows[0].end == 100 * GW_US);
    assert_true(run.totals.end <= 100 * GW_US + run.sim->window);
    gw_test_sim_close(&run);
}

/* The same when the link dies on the way: the time counts from the last acknowledgement. */
static void stalled_flow__counts_from_its_last_progress(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star, "host.stall=100us; %s",
                    "faults=[{at: 10us, link: [host0, sw0], down: yes}]");
    assert_int_equal(run.flows[0].outcome, GW_FLOW_FAILED);
    /* What was on its way when the link failed is still acknowledged, but cannot cross it. */
    assert_true(run.flows[0].end > 110 * GW_US - 2 * GW_US && run.flows[0].end < 112 * GW_US);
    gw_test_sim_close(&run);
}

/* An interruption shorter than `stall` costs time, not the flow. */
static void stalled_flow__survives_a_short_interruption(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star, "host.stall=100us; %s",
                    "faults=[{at: 5us, until: 60us, link: [host0, sw0], down: yes}]");
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.flows[0].retransmits > 0 && run.flows[0].end > 60 * GW_US);
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_flow__completes_when_it_starts),
        cmocka_unit_test(endless_flow__runs_in_the_background),
        cmocka_unit_test(trigger__oneshot_starts_all_once),
        cmocka_unit_test(trigger__barrier_waits_for_the_last),
        cmocka_unit_test(trigger__multishot_starts_one_per_firing),
        cmocka_unit_test(trigger__tells_received_from_sent),
        cmocka_unit_test(run_ends__without_waiting_for_background_flows),
        cmocka_unit_test(time_limit__leaves_flows_unfinished),
        cmocka_unit_test(stalled_flow__fails_at_its_time),
        cmocka_unit_test(stalled_flow__counts_from_its_last_progress),
        cmocka_unit_test(stalled_flow__survives_a_short_interruption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
