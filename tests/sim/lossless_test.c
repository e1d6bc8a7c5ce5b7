/*
 * Lossless networks under RDMA as simple as it gets: a window of one bandwidth-delay product that
 * never changes, no congestion control, and a timer so long that it only speaks when something is
 * lost.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"

enum {
    TEXT_MAX = 1024,
};

#define RDMA                                                                                       \
    "cc: fixed\n"                                                                                  \
    "loss: {kind: timeout, rto: 10000}\n"                                                          \
    "lb: ecmp\n"                                                                                   \
    "queue: {kind: fifo, lossless: yes}\n"                                                         \
    "time_limit: 100ms\n"

static const char star[] = "topology: {kind: star, hosts: 33}\n"
                           "workload: {kind: incast, degree: 32, size: 1MiB}\n" RDMA;
static const char tree[] = "topology: {kind: fat-tree, tiers: 3, k: 4}\n"
                           "workload: {kind: incast, degree: 8, size: 1MiB}\n" RDMA;

static void check_lost_nothing(const struct gw_test_sim *run)
{
    assert_int_equal(run->totals.completed, run->totals.flows);
    assert_int_equal(run->totals.members_completed, run->totals.members);
    assert_true(run->totals.drops == 0 && run->totals.trims == 0);
    assert_true(run->totals.host_drops == 0 && run->totals.link_losses == 0);
    assert_true(run->totals.retransmits == 0 && run->totals.spurious == 0);
}

/* Whatever fills the links between a PAUSE and its effect: the headroom has room for it. */
static void lossless_incast__drops_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *set;
    } cases[] = {
        {star, "seed=1"},
        {star, "host.jitter=0"},
        {star, "host.jitter=3; host.train=16"},
        {star, "host.mtu=1000; host.header=100; host.train=64; host.jitter=0"},
        {star, "topology.rate=10Gbps; topology.latency=100ns; topology.switch_latency=0; cc.bdp=8"},
        {star, "topology.latency=20us; topology.switch_latency=3us; topology.host_delay=5us; "
               "topology.rate=100Gbps; topology.hosts=5; workload.degree=4; workload.size=8MiB; "
               "cc.bdp=8"},
        {star, "queue.xoff=8321B; queue.xon=1B"},
        {star, "queue.kind=prio; host.ack_every=8"},
        {star, "queue.kind=red; queue.kmin=0; queue.kmax=1%; cc=smartt"},
        {star, "queue.kind=trim"},
        {tree, "seed=1"},
        {tree, "lb=spray"},
        {tree, "topology.oversubscription=2; workload={kind: permutation, size: 1MiB}"},
        {tree, "workload={kind: all-to-all, size: 512KiB, window: 8}"},
        {"topology:\n"
         "  kind: links\n"
         "  hosts: [a, b, c, d]\n"
         "  switches: [s, t]\n"
         "  links:\n"
         "    - {between: [a, s], rate: 100Gbps}\n"
         "    - {between: [b, s], rate: 400Gbps, latency: 5us}\n"
         "    - {between: [c, s]}\n"
         "    - {between: [s, t], rate: 300Gbps}\n"
         "    - {between: [t, d], rate: 40Gbps}\n"
         "workload: {kind: incast, degree: 3, receiver: 3, size: 2MiB}\n" RDMA,
         "seed=1"},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(i + 1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, cases[i].text, "%s", cases[i].set);
        check_lost_nothing(&run);
        if (run.totals.pauses == 0 || run.totals.paused == 0)
            fail_msg("%s: nothing was paused", cases[i].set);
        gw_test_sim_close(&run);
    }
}

/* The same queues without PAUSE lose, so the test above tests something. */
static void incast__drops_without_it(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star, "queue.lossless=no; loss.rto=3");
    assert_true(run.totals.drops > 0 && run.totals.pauses == 0 && run.totals.paused == 0);
    gw_test_sim_close(&run);
}

/* The bottleneck never runs dry: what is paused goes on in time. */
static void lossless_incast__is_near_the_ideal(void **state)
{
    (void)state;
    static const char *const texts[] = {star, tree};
    for (uint32_t i = 0; i < GW_COUNT_OF(texts); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options, texts[i], "workload.size=4MiB; workload.degree=8");
        check_lost_nothing(&run);
        gw_time bound = gw_sim_bound(&run.scenario);
        assert_true(run.totals.completion <= bound + bound / 100);
        gw_test_sim_close(&run);
    }
}

/* Times that the switches whose names begin with `name` paused a link. */
static uint64_t pauses_of(const struct gw_test_sim *run, const char *name)
{
    const struct gw_topo *topo = &run->scenario.topo;
    uint64_t pauses = 0;
    for (uint32_t id = topo->host_count; id < topo->node_count; id++)
        for (uint16_t port = 0; port < topo->nodes[id].port_count; port++)
            if (strncmp(topo->nodes[id].name, name, strlen(name)) == 0)
                pauses +=
                    gw_switch_port_stats(run->sim->nodes[run->sim->place[id]].sw, port).pauses;
    return pauses;
}

/* From the switch of the receiver up through the tree and down to the senders. */
static void lossless_incast__spreads_upstream(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_time hosts = 0;
    gw_test_sim_run(&run, &options, tree, "workload.size=4MiB");
    check_lost_nothing(&run);
    assert_true(pauses_of(&run, "tor") > 0);
    assert_true(pauses_of(&run, "agg") > 0);
    assert_true(pauses_of(&run, "core") > 0);
    for (uint32_t id = 0; id < run.scenario.topo.host_count; id++)
        hosts += gw_endpoint_paused(run.sim->nodes[run.sim->place[id]].endpoint);
    assert_true(hosts > 0);
    gw_test_sim_close(&run);
}

/*
 * Three flows share the end of their path; a fourth shares the middle alone, which is wide enough
 * for all. Back-pressure holds it back with the others; drops would not.
 */
static gw_time victim_time(const char *set)
{
    static const char matrix[] = "Connections 4\n"
                                 "0->4 id 1 start 0 size 4000000\n"
                                 "1->4 id 2 start 0 size 4000000\n"
                                 "2->4 id 3 start 0 size 4000000\n"
                                 "3->5 id 4 start 20000000 size 1000000\n";
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    char path[GW_TEST_PATH_MAX], text[TEXT_MAX];
    struct gw_test_sim run;
    gw_test_write_file(path, matrix);
    snprintf(text, sizeof(text),
             "topology: {kind: dumbbell, hosts: 4, rate: 400Gbps, bottleneck_rate: 1600Gbps}\n"
             "workload: {kind: matrix, file: %s}\n" RDMA,
             path);
    gw_test_sim_run(&run, &options, text, "%s", set);
    unlink(path);
    gw_time time = run.flows[3].end - run.flows[3].start;
    assert_int_equal(run.flows[3].outcome, GW_FLOW_DONE);
    gw_test_sim_close(&run);
    return time;
}

static void lossless_victim__waits_behind_others(void **state)
{
    (void)state;
    gw_time alone = gw_test_exact_time(1000000, 400000000000);
    gw_time beside_drops = victim_time("cc.bdp=4; queue.lossless=no; loss.rto=3");
    gw_time beside_pauses = victim_time("cc.bdp=4");
    assert_true(beside_drops < 2 * alone);
    assert_true(beside_pauses > 2 * beside_drops);
}

/* PAUSEs and resumes are lost with the data: pauses lapse and are said again, and all arrives. */
static void lossless_links__that_lose_block_nobody(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, star,
                    "workload.degree=4; topology.hosts=5; loss.rto=20; "
                    "faults=[{at: 0, link: [host1, sw0], loss: 0.2}, "
                    "{at: 0, link: [host2, sw0], loss: 0.2}]");
    assert_int_equal(run.totals.completed, run.totals.flows);
    assert_true(run.totals.link_losses > 100 && run.totals.pauses > 0);
    gw_test_sim_close(&run);
}

/*
 * Aggregation, a parameter server and a ring, each where something is narrow: too few aggregators,
 * a server's link, an uplink. All pause and lose nothing; without PAUSE all lose.
 */
static void lossless_allreduce__drops_nothing(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "via=ina; aggregators=16",
        "via=rss",
        "via=ps",
        "via=ring; workload.interleaved=yes; topology.uplink_rate=50Gbps",
    };
    for (uint32_t i = 0; i < 2 * GW_COUNT_OF(sets); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        bool is_lossless = i % 2 == 0;
        gw_test_sim_run(&run, &options, "scenarios/allreduce.yaml",
                        "size=2MB; queue={kind: fifo, lossless: %s}; cc=fixed; %s",
                        is_lossless ? "yes" : "no", sets[i / 2]);
        assert_int_equal(run.totals.completed, run.totals.flows);
        assert_int_equal(run.totals.members_completed, run.totals.members);
        if ((run.totals.pauses > 0) != is_lossless || (run.totals.drops == 0) != is_lossless)
            fail_msg("%s: %llu pauses, %llu drops", sets[i / 2],
                     (unsigned long long)run.totals.pauses, (unsigned long long)run.totals.drops);
        assert_true(run.totals.trims == 0);
        gw_test_sim_close(&run);
    }
}

/* Eight racks in a binary tree: the server's switch sends seven copies of a result by its one port
 * upwards, and no more than three ports bring it anything. */
static void lossless_multicast__drops_nothing(void **state)
{
    static const char *const sets[] = {
        "workload.via=rss",
        "workload.via=rss; queue.xoff=9KB",
        "workload.via=ina; workload.levels=2",
        "workload.via=ina; workload.aggregators=16",
    };
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(sets); i++) {
        const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
        struct gw_test_sim run;
        gw_test_sim_run(&run, &options,
                        "topology: {kind: tree, depth: 4, fanout: 2, hosts_per_leaf: 2,\n"
                        "           latency: 5us}\n"
                        "queue: {kind: fifo, lossless: yes}\n"
                        "workload: {kind: allreduce, workers: 8, size: 2MB, window: 1024,\n"
                        "           window_initial: 1024, timeout: 10ms,\n"
                        "           congestion_control: no}\n",
                        "%s", sets[i]);
        assert_int_equal(run.totals.members_completed, run.totals.members);
        assert_true(run.totals.pauses > 0);
        assert_true(run.totals.drops == 0 && run.totals.trims == 0);
        gw_test_sim_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless_incast__drops_nothing),
        cmocka_unit_test(incast__drops_without_it),
        cmocka_unit_test(lossless_incast__is_near_the_ideal),
        cmocka_unit_test(lossless_incast__spreads_upstream),
        cmocka_unit_test(lossless_victim__waits_behind_others),
        cmocka_unit_test(lossless_links__that_lose_block_nobody),
        cmocka_unit_test(lossless_allreduce__drops_nothing),
        cmocka_unit_test(lossless_multicast__drops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
