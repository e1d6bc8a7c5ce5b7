/*
 * Runs with `host.payload`: the same runs as without, in which every message that is delivered is
 * what was sent, whatever the network does to its packets; and a message that is not is found.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "base/error.h"
#include "sim/crash.h"
#include "sim/payload.h"

static const char fabric[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}\n"
    "workload: {kind: all-to-all, size: 64KiB}\n"
    "lb: spray\n"
    "host: {stall: 300us}\n"
    "time_limit: 10ms\n";

static void run_with(struct gw_test_sim *run, const char *payload, const char *set, bool wire)
{
    const struct gw_sim_options options = {.seed = 5, .threads = 3, .wire = wire};
    gw_test_sim_run(run, &options, fabric, "host.payload=%s; %s", payload, set);
}

/* Buffers that nobody has given back. */
static uint32_t count_alive(struct gw_buf_pool *bufs)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < bufs->count; i++)
        alive += bufs->refs[i] != 0;
    return alive;
}

/* When every node has crashed, nobody holds a buffer. */
static void expect_no_leak(struct gw_test_sim *run)
{
    for (uint32_t place = 0; place < run->sim->node_count; place++)
        gw_sim_crash(run->sim, place, run->totals.end, GW_TIME_NEVER);
    assert_int_equal(count_alive(run->sim->parts[0].pool.bufs), 0);
}

/* The contents cannot be seen in a run: same trace, flows and totals. */
static void payload__changes_nothing_else(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "workload.size=64KiB",
        "workload.size=1",
        "workload.size=4097",
        "workload.size=100000; host.mtu=1500; host.ack_every=8; host.train=4",
        "workload=[{kind: incast, degree: 7, size: 1MiB}, {kind: incast, degree: 1, size: 0}]",
        "workload={kind: incast, degree: 7, size: 1MiB}; queue=red; loss=timeout",
        "faults=[{at: 0, link: [host0, leaf0], loss: 3%}]",
        "faults=[{at: 0, link: [leaf0, spine0], corrupt: 3%}]",
        "faults=[{at: 0, link: [leaf0, spine0], duplicate: 20%},"
        " {at: 0, link: [leaf1, spine0], reorder: 20%, delay: 9us}]",
        "faults=[{at: 3us, until: 30us, node: leaf1, crash: yes}]",
        "faults=[{at: 3us, until: 4us, node: host1, crash: yes},"
        " {at: 5us, until: 20us, node: host6, crash: yes}]",
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        struct gw_test_sim with, without;
        run_with(&without, "no", sets[i], false);
        run_with(&with, "yes", sets[i], true);
        if (memcmp(&with.totals, &without.totals, sizeof(with.totals)) != 0)
            fail_msg("another run with \"%s\"", sets[i]);
        assert_int_equal(with.scenario.workload.flow_count, without.scenario.workload.flow_count);
        uint32_t delivered = 0;
        for (uint32_t f = 0; f < with.scenario.workload.flow_count; f++) {
            assert_int_equal(with.flows[f].outcome, without.flows[f].outcome);
            assert_true(with.flows[f].end == without.flows[f].end);
            assert_true(with.flows[f].retransmits == without.flows[f].retransmits);
            delivered += with.flows[f].received;
        }
        assert_true(delivered > 0);
        assert_int_equal(with.sim->part_count, 1);
        assert_int_equal(without.sim->part_count, 3);
        expect_no_leak(&with);
        gw_test_sim_close(&with);
        gw_test_sim_close(&without);
    }
}

/* Too few buffers slow a run down; what is delivered is still right. */
static void payload__survives_the_end_of_buffers(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    uint32_t hoard[1 << 16], hoarded = 0;
    gw_test_sim_open(&run, &options, fabric, "%s", "host.payload=yes; host.stall=0");
    struct gw_buf_pool *bufs = run.sim->parts[0].pool.bufs;
    assert_true(bufs->count > 40 && bufs->count <= GW_COUNT_OF(hoard));
    while (hoarded < bufs->count - 40)
        hoard[hoarded++] = gw_buf_claim(bufs);
    gw_test_sim_finish(&run);
    assert_int_equal(run.totals.completed, run.totals.flows);
    uint64_t starved = 0;
    for (uint32_t place = 0; place < run.sim->node_count; place++)
        if (run.sim->nodes[place].endpoint)
            starved += gw_endpoint_stats(run.sim->nodes[place].endpoint)->pool_empty;
    assert_true(starved > 0);
    while (hoarded > 0)
        gw_buf_release(bufs, hoard[--hoarded]);
    expect_no_leak(&run);
    gw_test_sim_close(&run);
}

/* A flow without end has no contents, and does not stop those that have. */
static void payload__is_not_for_endless_flows(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_open(&run, &options, fabric, "%s", "host.payload=yes");
    struct gw_workload *workload = &run.scenario.workload;
    workload->flows[3].bytes = UINT64_C(1) << 40;
    workload->flows[3].background = true;
    run.sim->awaited--;
    gw_test_sim_finish(&run);
    assert_int_equal(run.totals.completed, workload->flow_count - 1);
    assert_null(gw_sim_payload_message(run.sim, 3));
    gw_test_sim_close(&run);
}

/* Changes a bit of what some flow sends; the run must end with one line that says so. */
static void payload__finds_a_changed_byte(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    static const uint32_t offsets[] = {0, 1, 4095, 4096, 65535};
    for (uint32_t i = 0; i < GW_COUNT_OF(offsets); i++) {
        struct gw_test_sim run;
        char why[GW_WHY_MAX] = "";
        gw_test_sim_open(&run, &options, fabric, "%s", "host.payload=yes; workload.start=1us");
        /* Made before the flow starts, which then takes it as it is. */
        unsigned char *bytes = (unsigned char *)(uintptr_t)gw_sim_payload_message(run.sim, 7);
        bytes[offsets[i]] ^= 4;
        assert_int_equal(gw_sim_run(run.sim, why), GW_ERR_MALFORMED);
        assert_string_equal(why, "payload: 1 messages changed on their way");
        gw_test_sim_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload__changes_nothing_else),
        cmocka_unit_test(payload__survives_the_end_of_buffers),
        cmocka_unit_test(payload__is_not_for_endless_flows),
        cmocka_unit_test(payload__finds_a_changed_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
