/* The described scenario loads again, to the same scenario, and describes itself the same. */
#include "unit/config/scenario_file.h"

/* Describes `file`, loads the description from `copy`, and compares the two scenarios. */
static void check_round_trip(const char *file, const char *copy, const char *set)
{
    char text[256], why[GW_WHY_MAX];
    struct gw_override override;
    if (set)
        override = scenario_override(text, set);
    char *first = gw_scenario_describe(file, set ? &override : NULL, set != NULL, why);
    if (!first)
        fail_msg("%s", why);
    FILE *out = fopen(copy, "w");
    assert_non_null(out);
    fputs(first, out);
    fclose(out);
    char *second = gw_scenario_describe(copy, NULL, 0, why);
    if (!second)
        fail_msg("%s", why);
    assert_string_equal(first, second);

    struct gw_scenario a, b;
    assert_int_equal(gw_scenario_load(&a, file, set ? &override : NULL, set != NULL, why), GW_OK);
    assert_int_equal(gw_scenario_load(&b, copy, NULL, 0, why), GW_OK);
    assert_string_equal(a.name, b.name);
    assert_memory_equal(&a.transport, &b.transport, sizeof(a.transport));
    assert_memory_equal(&a.host, &b.host, sizeof(a.host));
    assert_int_equal(a.queue.capacity, b.queue.capacity);
    assert_int_equal(a.queue.lossless, b.queue.lossless);
    assert_memory_equal(&a.queue.pause, &b.queue.pause, sizeof(a.queue.pause));
    assert_memory_equal(&a.queue.cfg, &b.queue.cfg, a.queue.qdisc->algo.cfg_size);
    assert_int_equal(a.bdp, b.bdp);
    assert_int_equal(a.topo.link_count, b.topo.link_count);
    assert_memory_equal(a.topo.links, b.topo.links, a.topo.link_count * sizeof(a.topo.links[0]));
    assert_int_equal(a.workload.flow_count, b.workload.flow_count);
    for (uint32_t f = 0; f < a.workload.flow_count; f++) {
        assert_int_equal(a.workload.flows[f].dst, b.workload.flows[f].dst);
        assert_int_equal(a.workload.flows[f].start, b.workload.flows[f].start);
    }
    assert_int_equal(a.fault_count, b.fault_count);
    assert_memory_equal(&a.metrics, &b.metrics, sizeof(a.metrics));
    gw_scenario_free(&a);
    gw_scenario_free(&b);
    free(first);
    free(second);
    unlink(copy);
}

static void scenario_describe__round_trips_the_shipped_files(void **state)
{
    static const struct {
        const char *name, *set;
    } cases[] = {
        {"permutation-1024", NULL},
        {"permutation-1024", "cc.preset=drafts"},
        {"permutation-1024", "host.preset=drafts"},
        {"incast", "workload.start_spread=1500ps"},
        {"link-failure", "convergence=30ms"},
        {"incast", "queue.lossless=yes"},
        {"incast", "host={rx_rate: 60Gbps, rx_cost: 5ns, cost_hosts: servers}"},
        {"flows", "workload.file=" GW_SOURCE_DIR "/scenarios/example.cm"},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char file[256], copy[SCENARIO_NAME_MAX];
        snprintf(file, sizeof(file), GW_SOURCE_DIR "/scenarios/%s.yaml", cases[i].name);
        scenario_file(copy, "");
        check_round_trip(file, copy, cases[i].set);
    }
}

static void scenario_describe__round_trips_lists(void **state)
{
    (void)state;
    char file[SCENARIO_NAME_MAX], copy[SCENARIO_NAME_MAX];
    scenario_file(file, "name: \"odd: \\\"name\\\" #1\"\n"
                        "topology:\n"
                        "  kind: links\n"
                        "  hosts: [a, b, -c]\n"
                        "  switches: [\"s 1\"]\n"
                        "  links:\n"
                        "    - {between: [a, s 1]}\n"
                        "    - {between: [b, s 1], rate: 25Gbps}\n"
                        "    - {between: [-c, s 1], latency: 0}\n"
                        "  override: [{between: [a, s 1], queue: 64KiB}]\n"
                        "workload: [permutation, {kind: background, pairs: 0->1 1->2}]\n"
                        "metrics: {sample: 1us, series: [queue, rate]}\n"
                        "faults:\n"
                        "  - at: 1us\n"
                        "    link: [a, s 1]\n"
                        "    loss: 0.1%\n"
                        "sweep: {cc: [smartt, fixed]}\n");
    scenario_file(copy, "");
    check_round_trip(file, copy, NULL);
    unlink(file);
}

static void scenario_describe__says_why_it_cannot(void **state)
{
    (void)state;
    char why[GW_WHY_MAX];
    assert_null(gw_scenario_describe("no-such.yaml", NULL, 0, why));
    assert_string_equal(why, "no-such.yaml: No such file or directory");
}

static void scenario_describe__writes_out_every_default(void **state)
{
    static const char *const lines[] = {
        "# 8 hosts, 1 switches, 8 links, 8 flows\n",
        "\nseed: 1\n",
        "\ntime_limit: 1s\n",
        "\nconvergence: never\n",
        "\ntopology:\n  kind: star\n  hosts: 8\n  rate: 800Gbps\n",
        "\nhost:\n  mtu: 4KiB\n  header: 64B\n  jitter: 1\n",
        "\nqueue:\n  kind: trim\n",
        "\ncc:\n  kind: smartt\n",
        "\nlb:\n  kind: reps\n",
        "\nloss:\n  kind: trim\n",
        "\nworkload:\n  - kind: permutation\n    size: 2MiB\n    count: 1\n",
        "\nmetrics:\n  sample: 0\n  rtt: no\n  series: []\n",
    };
    (void)state;
    char file[SCENARIO_NAME_MAX], why[GW_WHY_MAX];
    scenario_file(file, "topology: star\nworkload: permutation\n");
    char *text = gw_scenario_describe(file, NULL, 0, why);
    assert_non_null(text);
    for (size_t i = 0; i < GW_COUNT_OF(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("not there: %s", lines[i]);
    free(text);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_describe__round_trips_the_shipped_files),
        cmocka_unit_test(scenario_describe__round_trips_lists),
        cmocka_unit_test(scenario_describe__says_why_it_cannot),
        cmocka_unit_test(scenario_describe__writes_out_every_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
