/* The audit that ends every run: it passes on a good run, and fails when a book is cooked. */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "base/error.h"
#include "sim/audit.h"
#include "sim/crash.h"

static const char scenario[] = "topology: {kind: star, hosts: 4}\n"
                               "workload: {kind: incast, degree: 3, size: 1MiB}\n";

static void open_run(struct gw_test_sim *run)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_run(run, &options, scenario, "%s", "");
    assert_true(run->totals.trims > 0);
    assert_int_equal(gw_sim_audit(run->sim), 0);
}

/* The audit must now fail, and say why. */
static void expect_broken(struct gw_test_sim *run, int error, const char *why)
{
    assert_int_equal(gw_sim_audit(run->sim), error);
    if (!strstr(run->sim->why, why))
        fail_msg("expected \"%s\" in \"%s\"", why, run->sim->why);
    gw_test_sim_close(run);
}

static void audit__finds_a_packet_that_vanished(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_run(&run);
    run.sim->parts[0].arrivals--;
    expect_broken(&run, GW_ERR_INVALID, "packets sent = arrived + lost + under way");
}

static void audit__finds_a_loss_that_was_not_counted(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_run(&run);
    run.sim->parts[0].link_losses++;
    expect_broken(&run, GW_ERR_INVALID, "packets sent = arrived + lost + under way");
}

static void audit__finds_a_copy_that_did_not_arrive(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_run(&run);
    run.sim->parts[0].link_copies++;
    expect_broken(&run, GW_ERR_INVALID, "packets sent = arrived + lost + under way");
}

/* Adds a byte to what went into the port, wherever in its memory the switch keeps that. */
static void cook_port(struct gw_sim_node *node, uint16_t port)
{
    uint64_t *words = node->memory, in_bytes = gw_switch_port_stats(node->sw, port).in_bytes;
    for (size_t i = 0; i < node->memory_size / sizeof(*words); i++) {
        if (words[i] != in_bytes)
            continue;
        words[i]++;
        if (gw_switch_port_stats(node->sw, port).in_bytes == in_bytes + 1)
            return;
        words[i]--;
    }
    fail_msg("no such counter");
}

static void audit__finds_bytes_that_a_port_lost(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_run(&run);
    uint32_t sw = run.sim->place[run.scenario.topo.host_count];
    cook_port(&run.sim->nodes[sw], 0);
    expect_broken(&run, GW_ERR_INVALID, "bytes in = out + trimmed + dropped + queued (sw0");
}

/* The last moment to look at a switch is its crash. */
static void audit__finds_bytes_that_a_switch_lost_before_it_crashed(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_run(&run);
    uint32_t sw = run.sim->place[run.scenario.topo.host_count];
    cook_port(&run.sim->nodes[sw], 0);
    gw_sim_crash(run.sim, sw, run.totals.end, GW_TIME_NEVER);
    assert_int_equal(run.sim->error, GW_ERR_INVALID);
    assert_non_null(strstr(run.sim->why, "bytes in = out + trimmed + dropped + queued (sw0"));
    gw_test_sim_close(&run);
}

static void audit__finds_packets_that_the_wire_changed(void **state)
{
    (void)state;
    struct gw_test_sim run;
    open_run(&run);
    run.sim->parts[0].changed_by_wire = 3;
    expect_broken(&run, GW_ERR_MALFORMED, "--wire: 3 packets changed");
}

/* An error of the audit is an error of the run, with its line. */
static void audit__fails_the_run(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    char why[GW_WHY_MAX] = "";
    struct gw_test_sim run;
    gw_test_sim_open(&run, &options, scenario, "%s", "");
    run.sim->parts[0].arrivals = 1;
    assert_int_equal(gw_sim_run(run.sim, why), GW_ERR_INVALID);
    assert_non_null(strstr(why, "invariant broken: "));
    assert_null(strchr(why, '\n'));
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(audit__finds_a_packet_that_vanished),
        cmocka_unit_test(audit__finds_a_loss_that_was_not_counted),
        cmocka_unit_test(audit__finds_a_copy_that_did_not_arrive),
        cmocka_unit_test(audit__finds_bytes_that_a_port_lost),
        cmocka_unit_test(audit__finds_bytes_that_a_switch_lost_before_it_crashed),
        cmocka_unit_test(audit__finds_packets_that_the_wire_changed),
        cmocka_unit_test(audit__fails_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
