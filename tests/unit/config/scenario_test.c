/* Scenarios: defaults, shorthands, the shipped files, and errors with file, line and key. */
#include "unit/config/scenario_file.h"

#define TOPOLOGY "topology: {kind: star, hosts: 8}\n"
#define SCENARIO TOPOLOGY "workload: permutation\n"

static void scenario_load__fills_in_the_defaults(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, "topology: fat-tree\nworkload: permutation\n", NULL);
    assert_int_equal(scenario.topo.host_count, 1024);
    assert_int_equal(scenario.workload.flow_count, 1024);
    assert_int_equal(scenario.workload.flows[0].bytes, 2 << 20);
    assert_string_equal(scenario.transport.cc->algo.name, "smartt");
    assert_string_equal(scenario.transport.lb->algo.name, "reps");
    assert_string_equal(scenario.transport.loss->algo.name, "trim");
    assert_string_equal(scenario.queue.qdisc->algo.name, "trim");
    assert_int_equal(scenario.brtt_max, 11453440);
    assert_int_equal(scenario.host_rate_bps, 800000000000);
    assert_int_equal(scenario.bdp, 1145344);
    assert_int_equal(scenario.queue.capacity, 1145344);
    assert_int_equal(scenario.queue.shared.bytes, 0);
    assert_int_equal(scenario.host.mtu, 4096);
    assert_int_equal(scenario.host.header, 64);
    assert_int_equal(scenario.host.jitter, GW_Q16_ONE);
    assert_int_equal(scenario.host.ack_every, 1);
    assert_int_equal(scenario.host.train, 1);
    assert_int_equal(scenario.host.stall, 0);
    assert_false(scenario.host.payload);
    assert_int_equal(scenario.seed, 1);
    assert_int_equal(scenario.time_limit, GW_S);
    assert_int_equal(scenario.convergence, GW_TIME_NEVER);
    assert_int_equal(scenario.metrics.sample, 0);
    assert_int_equal(scenario.fault_count, 0);
    assert_int_equal(strncmp(scenario.name, "gradwire_test_", 14), 0);
    assert_null(strchr(scenario.name, '.'));
    gw_scenario_free(&scenario);
}

static void scenario_load__reads_every_section(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario,
                  TOPOLOGY
                  "name: a run\n"
                  "workload:\n"
                  "  - {kind: incast, degree: 3, size: 1KiB}\n"
                  "  - background\n"
                  "cc: {kind: smartt, preset: drafts, fd: 0.5}\n"
                  "lb: {kind: spray}\n"
                  "loss: timeout\n"
                  "queue: {kind: dlcp, thresholds: [9KB], capacity: 0.5bdp, shared: 1MiB,\n"
                  "        shared_alpha: 2, shared_alpha_important: 8}\n"
                  "host: {mtu: 1500, header: 40B, jitter: 0, ack_every: 4,\n"
                  "       ack_delay: 2us, train: 8, stall: 1ms, payload: yes}\n"
                  "metrics: {sample: 1us, series: [rate, cwnd]}\n"
                  "seed: 18446744073709551615\n"
                  "time_limit: 5ms\n"
                  "convergence: 50us\n",
                  NULL);
    assert_string_equal(scenario.name, "a run");
    assert_int_equal(scenario.workload.flow_count, 4);
    assert_true(scenario.workload.flows[3].background);
    assert_string_equal(scenario.transport.lb->algo.name, "spray");
    assert_string_equal(scenario.transport.loss->algo.name, "timeout");
    assert_string_equal(scenario.queue.qdisc->algo.name, "dlcp");
    assert_int_equal(scenario.queue.capacity, scenario.bdp / 2);
    assert_int_equal(scenario.queue.shared.bytes, 1 << 20);
    assert_int_equal(scenario.queue.shared.alpha, 2 * GW_Q16_ONE);
    assert_int_equal(scenario.queue.shared.alpha_important, 8 * GW_Q16_ONE);
    assert_int_equal(scenario.host.mtu, 1500);
    assert_int_equal(scenario.host.header, 40);
    assert_int_equal(scenario.host.jitter, 0);
    assert_int_equal(scenario.host.ack_every, 4);
    assert_int_equal(scenario.host.ack_delay, 2 * GW_US);
    assert_int_equal(scenario.host.train, 8);
    assert_int_equal(scenario.host.stall, GW_MS);
    assert_true(scenario.host.payload);
    assert_int_equal(scenario.metrics.sample, GW_US);
    assert_true(scenario.metrics.cwnd && scenario.metrics.rate && !scenario.metrics.queue);
    assert_int_equal(scenario.seed, UINT64_MAX);
    assert_int_equal(scenario.time_limit, 5 * GW_MS);
    assert_int_equal(scenario.convergence, 50 * GW_US);
    gw_scenario_free(&scenario);
}

/* A scenario that says nothing of a key is the same as one that says its default. */
static void scenario_load__gives_all_series_when_only_sampled(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, SCENARIO "metrics: {sample: 1us}\n", NULL);
    assert_true(scenario.metrics.cwnd && scenario.metrics.rate && scenario.metrics.queue);
    gw_scenario_free(&scenario);
}

static void scenario_load__draws_workloads_from_the_seed(void **state)
{
    (void)state;
    struct gw_scenario a, b;
    uint32_t same = 0;
    static const char text[] = TOPOLOGY "workload: [{kind: permutation, count: 8}, "
                                        "{kind: permutation, count: 8}]\n";
    scenario_load(&a, text, NULL);
    scenario_load(&b, text, "seed=2");
    for (uint32_t f = 0; f < 64; f++)
        same += a.workload.flows[f].dst == b.workload.flows[f].dst;
    assert_true(same < 32);
    same = 0; /* entries have streams of their own */
    for (uint32_t f = 0; f < 64; f++)
        same += a.workload.flows[f].dst == a.workload.flows[64 + f].dst;
    assert_true(same < 32);
    gw_scenario_free(&a);
    gw_scenario_free(&b);
}

static void scenario_load__names_file_line_and_key(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"workload: permutation\n", ":1: topology is missing"},
        {TOPOLOGY, ":1: workload is missing"},
        {TOPOLOGY "workload: {size: 3}\n", ":2: workload: workload.kind is missing"},
        {TOPOLOGY "workload: []\n", ":2: workload: expected at least one workload"},
        {TOPOLOGY "workload:\n  kind: permutation\n  sizee: 2MiB\n",
         ":4: workload.sizee: unknown key \"sizee\"; the nearest known are: size, "},
        {TOPOLOGY "workload:\n  kind: permutation\n  size: 2MX\n",
         ":4: workload.size: wrong or missing unit: 2MX; expected a size such as 2MiB"},
        {TOPOLOGY "workload:\n  - kind: incast\n    degree: 8\n",
         ":4: workload.0.degree: must be from 1 to 7, the hosts but one, not 8"},
        {TOPOLOGY "workload:\n  kind: incast\n", ":2: workload: degree must be from 1 to 7"},
        {TOPOLOGY "workload:\n  kind: matrix\n  file: no-such.cm\n",
         ":4: workload.file: no-such.cm: No such file or directory"},
        {TOPOLOGY "workload: storm\n", ":2: workload: unknown kind: storm; expected one of: perm"},
        {TOPOLOGY "workload: {kind: background, pairs: 0->1, size: 100TiB}\n",
         ":2: workload: a flow of 109951162777600 bytes has more than 2^32 packets"},
        {SCENARIO "worklod: 3\n",
         ":3: worklod: unknown key \"worklod\"; the nearest known are: workload, "},
        {SCENARIO "cc:\n  kind: magic\n", ":4: cc.kind: unknown kind: magic; expected one of: "},
        {SCENARIO "cc: [smartt]\n", ":3: cc: expected a single value, not a list"},
        {SCENARIO "cc: {preset: nice}\n", ":3: cc.preset: unknown preset: nice; the presets of"},
        {SCENARIO "host: {cost: udp}\n",
         ":3: host.cost: unknown cost: udp; the presets of host are"},
        {SCENARIO "lb: {kind: reps, colour: 3}\n", ":3: lb.colour: unknown key"},
        {SCENARIO "metrics: {sample: 999ps}\n", "metrics.sample: sample must be at least 1ns"},
        {"topology: {kind: star, hosts: 4, override: [{between: [host0, sw0], queue: 1KB}]}\n"
         "workload: {kind: permutation}\n",
         "topology: the queue of the link between host0 and sw0 is 1000 bytes; it must hold"},
        {SCENARIO "host: {mtu: 0}\n", ":3: host.mtu: mtu must be"},
        {SCENARIO "host: {mtu: 65535}\n", ":3: host.mtu: mtu must be"},
        {SCENARIO "host: {header: 0}\n", ":3: host.header: header must be"},
        {SCENARIO "host: {payload: maybe}\n", ":3: host.payload: not understood: maybe"},
        {SCENARIO "host: {ack_every: 33}\n", ":3: host.ack_every: ack_every must be"},
        {SCENARIO "host: {ack_entropies: 65537}\n",
         ":3: host.ack_entropies: ack_entropies must be at most 65536"},
        {SCENARIO "host: {bdp: 4GiB}\n", ":3: host.bdp: bdp must be below 4 GiB"},
        {SCENARIO "host: {train: 0}\n", ":3: host.train: train must be"},
        {SCENARIO "host: {jitter: -1}\n", ":3: host.jitter: value out of range"},
        {SCENARIO "host: [1]\n", ":3: host: expected a map, not a list"},
        {SCENARIO "metrics: {series: [cwnd]}\n", ":3: metrics.series: a series needs"},
        {SCENARIO "metrics: {sample: 1us, series: [heat]}\n", "series.0: unknown series: heat"},
        {SCENARIO "metrics: {sample: 1us, series: cwnd}\n", "metrics.series: expected a list"},
        {SCENARIO "seed: one\n", ":3: seed: not understood: one; expected a whole number"},
        {SCENARIO "time_limit: 0\n", ":3: time_limit: value out of range: 0"},
        {SCENARIO "time_limit: 1728001s\n", ":3: time_limit: must be at most 20 days"},
        {SCENARIO "convergence: 1728001s\n", ":3: convergence: must be at most 20 days"},
        {TOPOLOGY "workload: {kind: permutation, start: 1728001s}\n",
         ":2: workload.start: nothing may start later"},
        {TOPOLOGY "workload: {kind: training, workers: 4, start: 1728001s}\n",
         ":2: workload.start: nothing may start later"},
        {TOPOLOGY "workload: {kind: training, workers: 2, jobs: 2, interval: 9000000s,\n"
                  "  start: 9000000s}\n",
         ":3: workload.start: nothing may start later"},
        {SCENARIO "time_limit: never\n", ":3: time_limit: not understood: never"},
        {SCENARIO "convergence: soon\n", ":3: convergence: not understood: soon; expected a time"},
        {SCENARIO "name: ''\n", ":3: name: a name has 1 to 63 characters"},
        {"topology: [star\n", ".yaml:1: "},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        scenario_refused(cases[i].text, NULL, cases[i].why);
}

static void scenario_load__names_what_is_wrong_with_queues(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {SCENARIO "queue: {capacity: 3bpd}\n", ":3: queue.capacity: wrong or missing unit: 3bpd"},
        {SCENARIO "queue: {capacity: 1KiB}\n", ":3: queue.capacity: capacity is 1024 bytes"},
        {SCENARIO "queue: {capacity: -1bdp}\n", ":3: queue.capacity: value out of range: -1bdp"},
        {SCENARIO "queue: {shared_alpha: 0}\n", ":3: queue.shared_alpha: shared_alpha must be"},
        {SCENARIO "queue: {shared_alpha_important: -1}\n",
         ":3: queue.shared_alpha_important: value"},
        {SCENARIO "queue: {kind: dlcp, limits: [1KB, x]}\n", ":3: queue.limits: not understood"},
        {SCENARIO "queue: {kind: dlcp, step: -0.2}\n", ":3: queue.step: below -1/6 the"},
        {SCENARIO "queue: {kind: dlcp, limits: [16KB, 8KB], thresholds: [12KB]}\n",
         ":3: queue.limits: no queue's limit may be below its threshold"},
        {SCENARIO "queue: {kind: dlcp, limits: [100KB]}\n", ":3: queue.limits: no queue's limit"},
        {SCENARIO "queue: {kind: dlcp, thresholds: [9KB], threshold: 32KB}\n",
         ":3: queue.threshold: says nothing beside thresholds"},
        {SCENARIO "queue: {kind: dlcp, thresholds: [9KB], step: 0}\n", ":3: queue.step: says"},
        {SCENARIO "queue: {kind: dlcp, control: -1}\n", ":3: queue.control: value out of"},
        {SCENARIO "queue: {kind: pfabric, control: -1}\n", ":3: queue.control: value out of"},
        {SCENARIO "queue: {kind: prio, control: -1}\n", ":3: queue.control: value out of"},
        {SCENARIO "queue: {kind: prio, kmin: 90%}\n", ":3: queue: kmax: must not be below kmin"},
        {SCENARIO "queue: {kind: prio, kmin: -1}\n", ":3: queue.kmin: value out of range"},
        {SCENARIO "queue: {kind: fifo, control: -1}\n", ":3: queue.control: value out of"},
        {SCENARIO "queue: {kind: trim, kmax: 10%}\n", ":3: queue.kmax: must not be below kmin"},
        {SCENARIO "queue: {kind: dlcp, lossless: yes}\n", ":3: queue.lossless: dlcp drops"},
        {SCENARIO "queue: {shared: 1KB}\n", ":3: queue.shared: one port's part of the pool must"},
        {SCENARIO "queue: {shared: 8KiB, shared_alpha: 0.5}\n", "queue.shared: one port's part"},
        {SCENARIO "queue: {kind: fifo, colour: 3}\n", ":3: queue.colour: unknown key"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        scenario_refused(cases[i].text, NULL, cases[i].why);
}

static void scenario_load__names_the_override_at_fault(void **state)
{
    static const struct {
        const char *set, *why;
    } cases[] = {
        {"workload.sizee=2MiB", "--set workload.sizee=2MiB: unknown key \"sizee\"; the nearest"},
        {"workload.size=2MX", "--set workload.size=2MX: wrong or missing unit: 2MX; expected"},
        {"topology.hosts=0", "--set topology.hosts=0: must be from 1"},
        {"cc=magic", "--set cc=magic: unknown kind: magic"},
        {"cc={kind: smartt, fdx: 1}", "--set cc={kind: smartt, fdx: 1}: cc.fdx: unknown key"},
        {"cc.fdx=1", "--set cc.fdx=1: unknown key"},
        {"speed=9", "--set speed=9: unknown key"},
        {"queue.capacity=[1", "--set queue.capacity=[1: "},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        scenario_refused(SCENARIO, cases[i].set, cases[i].why);
    scenario_refused(SCENARIO "urgency: {kind: pias, th2: 10KB}\n", NULL,
                     ":3: urgency.th2: must not be below th1");
    scenario_refused("topology: star\nworkload: permutation\ncc: dlcp\nurgency: pfabric\n", NULL,
                     ":4: urgency: urgency pfabric ranks packets by their place, and with cc dlcp "
                     "they leave in no order");
}

static void scenario_load__names_a_missing_file(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    char why[GW_WHY_MAX];
    assert_int_equal(gw_scenario_load(&scenario, "no/such.yaml", NULL, 0, why), GW_ERR_SYSTEM);
    assert_string_equal(why, "no/such.yaml: No such file or directory");
    gw_scenario_free(&scenario);
}

/* A flow between hosts that nothing connects. */
static void scenario_load__refuses_a_flow_without_route(void **state)
{
    (void)state;
    scenario_refused("topology:\n"
                     "  kind: links\n"
                     "  hosts: [a, b, c]\n"
                     "  switches: [s, t]\n"
                     "  links: [{between: [a, s]}, {between: [b, s]}, {between: [c, t]}]\n"
                     "workload: {kind: background, pairs: 0->1 2->0}\n",
                     NULL, ":6: workload: no route from c to a");
}

static void scenario_load__reads_the_shipped_files(void **state)
{
    static const struct {
        const char *file, *sets[3];
        uint32_t hosts, flows, faults;
    } cases[] = {
        {"permutation-1024", {NULL}, 1024, 1024, 0},
        {"permutation-1024",
         {"topology.oversubscription=1", "workload.size=64KiB", "lb=ecmp"},
         1024,
         1024,
         0},
        {"incast", {NULL}, 1024, 8, 0},
        {"incast", {"workload.degree=100", "cc=fixed"}, 1024, 100, 0},
        {"incast", {"cc=eqds"}, 1024, 8, 0},
        {"all-to-all-128", {NULL}, 128, 128 * 127, 0},
        {"flows", {NULL}, 1024, 9, 0},
        {"link-failure", {NULL}, 128, 128, 1},
        {"permutation-8192", {NULL}, 8192, 8192, 0},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char file[256], copies[3][64], why[GW_WHY_MAX];
        struct gw_override overrides[3];
        uint32_t count = 0;
        for (; count < 3 && cases[i].sets[count]; count++)
            overrides[count] = scenario_override(copies[count], cases[i].sets[count]);
        snprintf(file, sizeof(file), GW_SOURCE_DIR "/scenarios/%s.yaml", cases[i].file);
        struct gw_scenario scenario;
        if (gw_scenario_load(&scenario, file, overrides, count, why) != GW_OK)
            fail_msg("%s", why);
        assert_string_equal(scenario.name, cases[i].file);
        assert_int_equal(scenario.topo.host_count, cases[i].hosts);
        assert_int_equal(scenario.workload.flow_count, cases[i].flows);
        assert_int_equal(scenario.fault_count, cases[i].faults);
        gw_scenario_free(&scenario);
    }
}

/* "a+b" has the keys of both, and b's presets; a grant alone has its own. */
static void scenario_load__combines_a_grant_with_a_congestion_control(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{kind: eqds+smartt, md: 3, credit_pace: 0.9}", "{kind: eqds+smartt, preset: drafts}",
        "{kind: eqds, preset: drafts}", "{kind: eqds, credit_first: 2}"};
    static const char *const bad[] = {"eqds+",
                                      "smartt+eqds",
                                      "+smartt",
                                      "eqds+nobody",
                                      "{kind: smartt, credit_pace: 0.9}",
                                      "{kind: eqds, md: 3}",
                                      "{kind: eqds, preset: paper}"};
    char why[GW_WHY_MAX];
    const char *file = GW_SOURCE_DIR "/scenarios/incast.yaml";
    for (size_t i = 0; i < GW_COUNT_OF(good) + GW_COUNT_OF(bad); i++) {
        bool is_good = i < GW_COUNT_OF(good);
        const char *text = is_good ? good[i] : bad[i - GW_COUNT_OF(good)];
        const struct gw_override override = {"cc", text};
        struct gw_scenario scenario;
        int error = gw_scenario_load(&scenario, file, &override, 1, why);
        if ((error == GW_OK) != is_good)
            fail_msg("%s: %s", text, is_good ? why : "accepted");
        if (!error) {
            assert_string_equal(scenario.transport.grant->algo.name, "eqds");
            gw_scenario_free(&scenario);
        } else {
            assert_non_null(strstr(why, "cc"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_load__fills_in_the_defaults),
        cmocka_unit_test(scenario_load__reads_every_section),
        cmocka_unit_test(scenario_load__combines_a_grant_with_a_congestion_control),
        cmocka_unit_test(scenario_load__gives_all_series_when_only_sampled),
        cmocka_unit_test(scenario_load__draws_workloads_from_the_seed),
        cmocka_unit_test(scenario_load__names_file_line_and_key),
        cmocka_unit_test(scenario_load__names_what_is_wrong_with_queues),
        cmocka_unit_test(scenario_load__names_the_override_at_fault),
        cmocka_unit_test(scenario_load__names_a_missing_file),
        cmocka_unit_test(scenario_load__refuses_a_flow_without_route),
        cmocka_unit_test(scenario_load__reads_the_shipped_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
