/*
 * pFabric and PIAS on the workload and the fabric of their papers, made small, against the ideal
 * that the former compares itself with (section 5.1): a central scheduler that knows all flows,
 * over a fabric that is one big switch. Whenever a flow arrives or ends it goes through all flows
 * in the order of what they still have to send, and lets each have its two ports if both are free,
 * at their full rate.
 *
 * A flow's time is normalised by its time alone in the network.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

enum {
    FLOWS_MAX = 1000,
    HOSTS_MAX = 64,
    SMALL_BYTES = 100000, /* what the paper calls small */
};

/* Section 5.1: 20 us in each host on each way, 10 Gb/s to hosts and 40 Gb/s between switches. */
static const char fabric[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 8, rate: 10Gbps,\n"
    "  uplink_rate: 40Gbps, latency: 200ns, switch_latency: 0, host_delay: 40us}\n"
    "workload: {kind: poisson, sizes: web-search, load: 0.6, count: 200}\n"
    "host: {mtu: 1460, header: 40}\n"
    "cc: pfabric\n"
    "loss: pfabric\n"
    "urgency: pfabric\n"
    "lb: round-robin\n"
    "queue: {kind: pfabric, capacity: 2bdp}\n"
    "time_limit: 10s\n";

/* ---- The ideal. ---- */

struct ideal_flow {
    const struct gw_flow_spec *spec;
    gw_time work; /* time on the links of its two hosts, headers included */
    gw_time left; /* of it */
    gw_time end;  /* when nothing is left */
};

/* Of a message on a link of `rate_bps`. */
static gw_time work_of(const struct gw_scenario *scenario, uint64_t bytes, uint64_t rate_bps)
{
    uint64_t packets = (bytes + scenario->host.mtu - 1) / scenario->host.mtu;
    return (gw_time)((bytes + packets * scenario->host.header) * 8 * (GW_S / 1000) /
                     (rate_bps / 1000));
}

static int by_left(const void *a, const void *b)
{
    const struct ideal_flow *const *f = a, *const *g = b;
    if ((*f)->left != (*g)->left)
        return (*f)->left < (*g)->left ? -1 : 1;
    return *f < *g ? -1 : *f > *g;
}

/* Serves the flows that are there from `now` on; returns when something changes, `until` at the
 * latest. */
static gw_time serve(struct ideal_flow **active, uint32_t *count, gw_time now, gw_time until)
{
    struct ideal_flow *served[HOSTS_MAX];
    bool sends[HOSTS_MAX] = {false}, receives[HOSTS_MAX] = {false};
    uint32_t served_count = 0;
    qsort(active, *count, sizeof(*active), by_left);
    for (uint32_t i = 0; i < *count; i++) {
        const struct gw_flow_spec *spec = active[i]->spec;
        if (sends[spec->src] || receives[spec->dst])
            continue;
        sends[spec->src] = receives[spec->dst] = true;
        served[served_count++] = active[i];
        if (until == GW_TIME_NEVER || active[i]->left < until - now)
            until = now + active[i]->left;
    }
    for (uint32_t i = 0; i < served_count; i++) {
        served[i]->left -= until - now;
        served[i]->end = until;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (active[i]->left > 0)
            active[kept++] = active[i];
    *count = kept;
    return until;
}

/* Flows of a workload arrive in the order of their numbers. */
static void schedule_ideally(struct ideal_flow *flows, uint32_t flow_count)
{
    struct ideal_flow *active[FLOWS_MAX];
    uint32_t active_count = 0, next = 0;
    gw_time now = 0;
    while (next < flow_count || active_count > 0) {
        gw_time arrival = next < flow_count ? flows[next].spec->start : GW_TIME_NEVER;
        if (active_count == 0)
            now = arrival;
        while (next < flow_count && flows[next].spec->start == now)
            active[active_count++] = &flows[next++];
        arrival = next < flow_count ? flows[next].spec->start : GW_TIME_NEVER;
        now = serve(active, &active_count, now, arrival);
    }
}

/* ---- Both. ---- */

struct means {
    double simulated, ideal; /* normalised times of small flows */
    uint32_t count;
};

static struct means compare(struct gw_test_sim *run)
{
    static struct ideal_flow flows[FLOWS_MAX];
    const struct gw_scenario *scenario = &run->scenario;
    const struct gw_workload *workload = &scenario->workload;
    const struct gw_topo *topo = &scenario->topo;
    uint32_t full = scenario->host.mtu + scenario->host.header;
    assert_true(workload->flow_count <= FLOWS_MAX && topo->host_count <= HOSTS_MAX);
    for (uint32_t f = 0; f < workload->flow_count; f++) {
        const struct gw_flow_spec *spec = &workload->flows[f];
        gw_time work = work_of(scenario, spec->bytes, topo->links[0].side[0].rate_bps);
        flows[f] = (struct ideal_flow){.spec = spec, .work = work, .left = work};
    }
    schedule_ideally(flows, workload->flow_count);
    struct means means = {0};
    for (uint32_t f = 0; f < workload->flow_count; f++) {
        const struct gw_flow_spec *spec = flows[f].spec;
        assert_int_equal(run->flows[f].outcome, GW_FLOW_DONE);
        if (spec->bytes > SMALL_BYTES)
            continue;
        struct gw_topo_path path =
            gw_topo_path(topo, spec->src, spec->dst, full, scenario->host.header);
        /* What the links of the network and its hosts add, for the last packet and its ACK. */
        gw_time latency = path.one_way_full + path.one_way_ack -
                          gw_serialisation(gw_byte_time_from_bps(path.rate_bps_min), full);
        double alone = (double)(flows[f].work + latency);
        means.simulated += (double)(run->flows[f].end - run->flows[f].start) / alone;
        means.ideal += (double)(flows[f].end - spec->start + latency) / alone;
        means.count++;
    }
    means.simulated /= means.count;
    means.ideal /= means.count;
    return means;
}

static struct means run_with(const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, fabric, "%s", set);
    struct means means = compare(&run);
    gw_test_sim_close(&run);
    return means;
}

/* PIAS' own setting of switches and TCP (section 5.2): 240 packets, of which 65 are not marked. */
#define PIAS_SETTING                                                                               \
    "cc={kind: dctcp, preset: pias}; loss={kind: sack, preset: pias};"                             \
    "queue={kind: prio, capacity: 360000, mark: enqueue, kmin: 27.0834%, kmax: 27.0834%};"

static void pfabric__is_near_the_ideal(void **state)
{
    (void)state;
    static const char *const loads[] = {"0.1", "0.3", "0.6", "0.9"};
    for (uint32_t i = 0; i < GW_COUNT_OF(loads); i++) {
        char set[32];
        snprintf(set, sizeof(set), "workload.load=%s", loads[i]);
        struct means means = run_with(set);
        print_message("load %s: %.3f times the time alone, the ideal %.3f, %u small flows\n",
                      loads[i], means.simulated, means.ideal, means.count);
        assert_true(means.count > 80);
        assert_true(means.simulated <= 1.1 * means.ideal);
        assert_true(means.simulated >= 0.9 * means.ideal);
    }
}

/* The order in which both papers find them; each part of pFabric has its share in that. */
static void pfabric__needs_all_of_its_parts(void **state)
{
    (void)state;
    double whole = run_with("").simulated;
    double pias = run_with(PIAS_SETTING "urgency={kind: pias, preset: web-search-0.6}").simulated;
    double dctcp = run_with(PIAS_SETTING "urgency=message").simulated;
    assert_true(whole * 1.05 < pias && pias * 1.05 < dctcp);
    assert_true(whole * 1.1 < run_with("queue.kind=fifo").simulated);
    assert_true(whole * 1.1 < run_with("urgency=message").simulated);
}

/* ---- Single links. ---- */

/* Two hosts send to a third. */
static const char single[] =
    "topology: {kind: star, hosts: 3, rate: 10Gbps, latency: 1us, switch_latency: 0,\n"
    "  host_delay: 40us}\n"
    "workload: {kind: matrix}\n"
    "host: {mtu: 1460, header: 40, jitter: 0}\n"
    "cc: pfabric\n"
    "loss: pfabric\n"
    "urgency: pfabric\n"
    "lb: ecmp\n"
    "queue: {kind: pfabric, capacity: 2bdp}\n"
    "time_limit: 1s\n";

static void run_matrix(struct gw_test_sim *run, const char *matrix, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    char path[GW_TEST_PATH_MAX];
    gw_test_write_file(path, matrix);
    gw_test_sim_run(run, &options, single, "workload.file=%s; %s", path, set);
    unlink(path);
}

/* P1 of pFabric: what the shorter flow adds to its time alone is no more than the packet of the
 * other that is being sent. It is one window long: with more, each gap that its own ACKs leave lets
 * one more in. */
static void pfabric__lets_the_shorter_flow_pass(void **state)
{
    (void)state;
    const gw_time packet = 1200 * GW_NS;
    struct gw_test_sim alone, both;
    run_matrix(&alone, "Nodes 3\nConnections 1\n1->2 id 1 size 87600 start 300000000\n", "seed=1");
    run_matrix(&both,
               "Nodes 3\nConnections 2\n1->2 id 1 size 87600 start 300000000\n"
               "0->2 id 2 size 2920000 start 0\n",
               "seed=1");
    gw_time without = alone.flows[0].end - alone.flows[0].start;
    gw_time with = both.flows[0].end - both.flows[0].start;
    assert_true(both.flows[0].end < both.flows[1].end);
    assert_in_range(with, without, without + packet);
    assert_int_equal(both.flows[0].retransmits, 0);
    gw_test_sim_close(&alone);
    gw_test_sim_close(&both);
}

/* P1 of PIAS: without thresholds it is DCTCP. */
static void pias__is_dctcp_without_thresholds(void **state)
{
    static const char *const sets[] = {PIAS_SETTING "urgency=message",
                                       PIAS_SETTING "urgency={kind: pias, th0: 0}"};
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim runs[2];
    for (uint32_t i = 0; i < 2; i++)
        gw_test_sim_run(&runs[i], &options, fabric, "%s", sets[i]);
    assert_true(runs[0].totals.marks > 0 && runs[0].totals.marks == runs[1].totals.marks);
    for (uint32_t f = 0; f < runs[0].scenario.workload.flow_count; f++) {
        assert_true(runs[0].flows[f].end == runs[1].flows[f].end);
        assert_int_equal(runs[0].flows[f].retransmits, runs[1].flows[f].retransmits);
    }
    for (uint32_t i = 0; i < 2; i++)
        gw_test_sim_close(&runs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pfabric__is_near_the_ideal),
        cmocka_unit_test(pfabric__needs_all_of_its_parts),
        cmocka_unit_test(pfabric__lets_the_shorter_flow_pass),
        cmocka_unit_test(pias__is_dctcp_without_thresholds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
