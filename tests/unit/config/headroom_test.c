/* The keys of lossless queues and of what packets cost a host, and the sizes that follow. */
#include "unit/config/scenario_file.h"

#define SCENARIO                                                                                   \
    "topology: {kind: star, hosts: 4, rate: 100Gbps, latency: 1us, switch_latency: 500ns}\n"       \
    "workload: {kind: incast, degree: 3}\n"

#define LOSSLESS "queue: {kind: fifo, lossless: yes"

enum {
    FULL = 4096 + 64,
    /* From a host into the switch, at a byte per 80 ps; times in units of 10 ps. The PAUSE waits
     * for a packet of 332.8 ns, takes 5.12 ns, and 1 us to the host; what then leaves arrives 1.5
     * us later, and up to its own 332.8 ns late; and each end has one packet in work. */
    HEADROOM = (33280 + 512 + 100000 + 150000 + 33280) / 8 + 2 * FULL,
};

static void queue_lossless__sizes_follow_from_the_links(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, SCENARIO LOSSLESS "}\n", NULL);
    const struct gw_pause_cfg *pause = &scenario.queue.pause;
    assert_true(scenario.queue.lossless);
    assert_in_range(pause->xon, HEADROOM, HEADROOM + 1);
    assert_int_equal(pause->xoff, pause->xon + 2 * FULL);
    assert_int_equal(scenario.queue.capacity, 4 * (pause->xoff + pause->xon));
    assert_true(pause->time == 100 * GW_US);
    gw_scenario_free(&scenario);

    /* The longest of the links counts, and a host's train. */
    scenario_load(&scenario, SCENARIO LOSSLESS "}\nhost: {train: 5}\n", NULL);
    assert_in_range(scenario.queue.pause.xon, HEADROOM + 4 * FULL, HEADROOM + 4 * FULL + 1);
    gw_scenario_free(&scenario);
    scenario_load(&scenario, SCENARIO LOSSLESS "}\n",
                  "topology.override=[{between: [host2, sw0], latency: 101us}]");
    assert_in_range(scenario.queue.pause.xon, HEADROOM + 2500000, HEADROOM + 2500001);
    assert_true(scenario.queue.pause.time > 16 * 101 * GW_US);
    gw_scenario_free(&scenario);

    scenario_load(&scenario, SCENARIO, NULL);
    assert_false(scenario.queue.lossless);
    gw_scenario_free(&scenario);
}

/* Four racks; the server of a job is in the last one. */
static void queue_lossless__has_room_for_copies(void **state)
{
    static const struct {
        const char *job;
        uint32_t copies;
    } cases[] = {
        {"via: ps, workers: 4", 1},
        {"via: switchml, workers: 3", 1},
        {"via: ring, workers: 4", 1},
        {"workers: 1", 1},
        {"workers: 2", 2},
        {"workers: 3", 3},
        {"workers: 4", 3},
        {"workers: 8", 3},
        {"workers: 2, jobs: 3", 2},
        {"workers: 4, via: rss", 3},
        {"workers: 4, via: rss, servers: 8", 3}, /* in all racks, each with a worker */
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_scenario scenario;
        char text[512];
        snprintf(text, sizeof(text),
                 "topology: {kind: tree, depth: 3, fanout: 2, hosts_per_leaf: 3}\n"
                 "workload: {kind: allreduce, %s}\n" LOSSLESS "}\n",
                 cases[i].job);
        scenario_load(&scenario, text, NULL);
        const struct gw_pause_cfg *pause = &scenario.queue.pause;
        assert_int_equal(scenario.queue.capacity, 4 * (pause->xoff + cases[i].copies * pause->xon));
        gw_scenario_free(&scenario);
    }
}

static void queue_lossless__knows_the_packets_of_jobs(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    static const char text[] =
        "topology: {kind: star, hosts: 4}\n"
        "workload: {kind: allreduce, workers: 3, values: 4000}\n" LOSSLESS "}\n";
    scenario_load(&scenario, text, NULL);
    assert_int_equal(gw_scenario_packet_max(&scenario), 16064);
    assert_int_equal(scenario.queue.pause.xoff - scenario.queue.pause.xon, 2 * 16064);
    gw_scenario_free(&scenario);
    scenario_refused(text, "queue={kind: fifo, capacity: 16000}",
                     "it must hold a packet of 16064 bytes");
}

static void queue_lossless__takes_sizes_as_written(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, SCENARIO LOSSLESS ", xoff: 20KB, xon: 1KB, capacity: 1MB}\n", NULL);
    assert_int_equal(scenario.queue.pause.xoff, 20000);
    assert_int_equal(scenario.queue.pause.xon, 1000);
    assert_int_equal(scenario.queue.capacity, 1000000);
    gw_scenario_free(&scenario);
    scenario_load(&scenario, SCENARIO LOSSLESS ", xoff: 20KB}\n", NULL);
    assert_int_equal(scenario.queue.pause.xon, 20000 - 2 * FULL);
    gw_scenario_free(&scenario);
}

static void host_cost__reads_every_key(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, SCENARIO, NULL);
    assert_false(gw_host_has_cost(&scenario.host.cost));
    gw_scenario_free(&scenario);
    scenario_load(&scenario,
                  SCENARIO "host: {rx_cost: 100ns, rx_rate: 60Gbps, tx_cost: 50ns, "
                           "rx_queue: 1MB, cost_hosts: servers}\n" LOSSLESS "}\n",
                  NULL);
    const struct gw_host_cost_cfg *cost = &scenario.host.cost;
    assert_true(gw_host_has_cost(cost));
    assert_true(cost->rx_cost == 100 * GW_NS && cost->tx_cost == 50 * GW_NS);
    assert_true(cost->rx_rate_bps == UINT64_C(60000000000) && cost->rx_queue == 1000000);
    assert_int_equal(cost->hosts, GW_COST_SERVERS);
    /* From the switch into the host: its PAUSE may be late by jitter and tx_cost, 382.8 ns; and
     * 500 ns on top of the 2 us there and back, now on the other way. */
    uint64_t headroom = (33280 + 33280 + 5000 + 512 + 150000 + 100000) / 8 + 2 * FULL;
    assert_in_range(cost->pause.xoff, 1000000 - headroom - 1, 1000000 - headroom);
    assert_int_equal(cost->pause.xon, cost->pause.xoff - 2 * FULL);
    gw_scenario_free(&scenario);
}

static void queue_lossless__refuses_what_would_lose(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {LOSSLESS ", capacity: 1bdp}\n",
         ":3: queue.capacity: is 70948 bytes; to be lossless it needs 104228 for each of 4 "},
        {LOSSLESS ", shared: 1MB}\n", ":3: queue.shared: shared needs lossless: no"},
        {LOSSLESS ", control_weight: 3}\n", "queue.lossless: control_weight needs lossless: no"},
        {LOSSLESS ", xoff: 8320}\n", ":3: queue.xoff: must be above two packets, 8320 bytes"},
        {LOSSLESS ", xoff: 20KB, xon: 20KB}\n", ":3: queue.xon: must be below xoff"},
        {LOSSLESS ", xoff: 2GiB}\n", ":3: queue: capacity is "},
        {LOSSLESS ", xoff: 3TiB}\n", ":3: queue: capacity is "},
        {"queue: {xoff: 20KB}\n", ":3: queue.xoff: needs lossless: yes"},
        {"queue: {xon: 20KB}\n", ":3: queue.xon: needs lossless: yes"},
        {"host: {rx_queue: 60KB}\n" LOSSLESS "}\n",
         ":3: host.rx_queue: is 60000 bytes; to be lossless it needs "},
        {"host: {rx_rate: 60Gb}\n", ":3: host.rx_rate: "},
        {"host: {rx_cost: 5}\n", ":3: host.rx_cost: "},
        {"host: {cost_hosts: some}\n", ":3: host.cost_hosts: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s%s", SCENARIO, cases[i].text);
        scenario_refused(text, NULL, cases[i].why);
    }
    scenario_refused(SCENARIO LOSSLESS "}\n",
                     "topology.override=[{between: [host0, sw0], queue: 100KB}]",
                     "a queue of sw0 is 100000 bytes; to be lossless it needs ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_lossless__sizes_follow_from_the_links),
        cmocka_unit_test(queue_lossless__has_room_for_copies),
        cmocka_unit_test(queue_lossless__knows_the_packets_of_jobs),
        cmocka_unit_test(queue_lossless__takes_sizes_as_written),
        cmocka_unit_test(host_cost__reads_every_key),
        cmocka_unit_test(queue_lossless__refuses_what_would_lose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
