/*
 * A lone flow with jitter 0 ends when arithmetic says, to the picosecond.
 *
 * With n packets over H links of equal rate, F and L the times of a full and of the last packet, A
 * of an acknowledgement, and l and s the latencies of links and switches:
 *
 *   the last byte arrives at    (n + H - 2) * F + L + H * l + (H - 1) * s
 *   the sender knows later by   H * (A + l) + (H - 1) * s
 *
 * since on every link the last packet waits for the full one before it (n > 1), and with n = 1 or L
 * = F this is n * F + (H - 1) * L. When the message was complete at the receiver is told by a flow
 * that this starts: it begins one window later.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"

struct route {
    const char *topology; /* settings of the scenario */
    uint32_t dst;         /* from host 0 */
    uint32_t hops;
};

/* Same ToR, another leaf, another pod. */
static const struct route routes[] = {
    {"topology.kind=star; topology.hosts=4", 3, 2},
    {"topology.kind=leaf-spine; topology.leaves=2; topology.spines=2", 5, 4},
    {"topology.kind=fat-tree; topology.tiers=3; topology.k=4", 15, 6},
};

struct fabric {
    const char *rate, *latency, *switch_latency, *header;
    uint64_t rate_bps;
    gw_time latency_ps, switch_latency_ps;
    uint32_t header_bytes;
};

static const struct fabric fabrics[] = {
    {"800Gbps", "600ns", "400ns", "64", 800000000000, 600000, 400000, 64},
    {"100Gbps", "1us", "0", "64", 100000000000, 1000000, 0, 64},
    {"40Gbps", "123ns", "77ns", "50", 40000000000, 123000, 77000, 50},
};

enum {
    MTU = 4096,
};

static const char scenario[] = "topology: {kind: star}\n"
                               "workload: {kind: matrix}\n"
                               "host: {mtu: 4096, jitter: 0}\n"
                               "loss: {rto: 100}\n"; /* long enough for the slowest fabric */

/* Sends `bytes` and compares both times with the formula. */
static void check(const struct route *route, const struct fabric *fabric, uint64_t bytes,
                  const char *lb)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    char matrix[256], path[GW_TEST_PATH_MAX];
    snprintf(matrix, sizeof(matrix),
             "Connections 2\nTriggers 1\n0->%u id 1 start 0 size %" PRIu64
             " recv_done_trigger 1\n%u->0 id 2 trigger 1 size 1\ntrigger id 1 oneshot\n",
             route->dst, bytes, route->dst);
    gw_test_write_file(path, matrix);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, scenario,
                    "%s; topology.rate=%s; topology.latency=%s; topology.switch_latency=%s; "
                    "host.header=%s; lb=%s; workload.file=%s",
                    route->topology, fabric->rate, fabric->latency, fabric->switch_latency,
                    fabric->header, lb, path);
    unlink(path);

    uint64_t packets = (bytes + MTU - 1) / MTU, hops = route->hops, header = fabric->header_bytes;
    gw_time full = gw_test_exact_time(MTU + header, fabric->rate_bps);
    gw_time last = gw_test_exact_time(bytes - (packets - 1) * MTU + header, fabric->rate_bps);
    gw_time waits = packets > 1 ? full : last; /* per hop after the first */
    gw_time switches = (hops - 1) * fabric->switch_latency_ps;
    gw_time received =
        (packets - 1) * full + (hops - 1) * waits + last + hops * fabric->latency_ps + switches;
    gw_time back =
        hops * (gw_test_exact_time(header, fabric->rate_bps) + fabric->latency_ps) + switches;

    assert_int_equal(run.totals.completed, 2);
    assert_true(run.totals.retransmits == 0);
    assert_true(run.flows[1].start - run.sim->window == received);
    assert_true(run.flows[0].end == received + back);
    gw_test_sim_close(&run);
}

/* Packets of one size may take any path: they cannot overtake each other. */
static void lone_flow_ends__on_the_picosecond(void **state)
{
    (void)state;
    static const uint64_t packets[] = {1, 2, 100, 1024};
    for (uint32_t r = 0; r < GW_COUNT_OF(routes); r++)
        for (uint32_t f = 0; f < GW_COUNT_OF(fabrics); f++)
            for (uint32_t p = 0; p < GW_COUNT_OF(packets); p++)
                check(&routes[r], &fabrics[f], packets[p] * MTU, "reps");
}

/* A short packet keeps to the path of the others, or it would overtake. */
static void lone_flow_ends__with_a_short_last_packet(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {1, 4095, MTU + 1, 7 * MTU + 2000, 512 * MTU + 4000};
    for (uint32_t r = 0; r < GW_COUNT_OF(routes); r++)
        for (uint32_t f = 0; f < GW_COUNT_OF(fabrics); f++)
            for (uint32_t b = 0; b < GW_COUNT_OF(bytes); b++)
                check(&routes[r], &fabrics[f], bytes[b], "ecmp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lone_flow_ends__on_the_picosecond),
        cmocka_unit_test(lone_flow_ends__with_a_short_last_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
