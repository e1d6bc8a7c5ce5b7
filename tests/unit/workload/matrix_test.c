/* Connection matrices: the grammar, the three kinds of triggers, and errors that name the line. */
#include "unit/workload/workload_fixture.h"

static void make(struct generated *made, const struct gw_topo *topo, const char *text)
{
    char name[32], settings[48];
    generate_file(name, text);
    snprintf(settings, sizeof(settings), "file=%s", name);
    generate(made, topo, "matrix", settings, 1);
    unlink(name);
}

static void matrix__reads_plain_flows(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=16");
    make(&made, &topo,
         "Nodes 16\nConnections 2\n0->13 start 0 size 2000000\n"
         "13->0 id 7 start 1500000 size 3000000 prio 2\n\n");
    assert_string_equal(made.why, "");
    assert_int_equal(made.workload.flow_count, 2);
    assert_int_equal(made.workload.trigger_count, 0);
    const struct gw_flow_spec *flows = made.workload.flows;
    assert_int_equal(flows[0].src, 0);
    assert_int_equal(flows[0].dst, 13);
    assert_int_equal(flows[0].bytes, 2000000);
    assert_int_equal(flows[0].start, 0);
    assert_int_equal(flows[0].id, 0);
    assert_int_equal(flows[1].id, 7);
    assert_int_equal(flows[1].start, 1500 * GW_NS);
    assert_int_equal(flows[1].fires_sent, GW_TRIGGER_NONE);
    assert_int_equal(flows[1].fires_received, GW_TRIGGER_NONE);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

/* Triggers may be defined before or after their use, and with any numbers. */
static void matrix__reads_all_kinds_of_triggers(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "star", "hosts=16");
    make(&made, &topo,
         "# a comment\r\n"
         "Nodes 16\r\nConnections 7\r\nTriggers 3\r\n"
         "trigger id 9 oneshot\n"
         "0->1 id 1 start 0 size 1 send_done_trigger 30 recv_done_trigger 9\n"
         "0->2 id 2 start 0 size 1 send_done_trigger 30\n"
         "1->2 id 3 trigger 30 size 1 send_done_trigger 5\n"
         "1->3 id 4 trigger 5 size 1 send_done_trigger 5\n"
         "1->4 id 5 trigger 5 size 1\n"
         "2->5 id 6 size 1 trigger 9\n"
         "2->6 id 7 trigger 9 size 1\n"
         "trigger id 30 barrier count 2\n"
         "  trigger   id\t5 multishot\n");
    assert_string_equal(made.why, "");
    const struct gw_workload *workload = &made.workload;
    assert_int_equal(workload->flow_count, 7);
    assert_int_equal(workload->trigger_count, 3);
    static const struct {
        uint32_t needs, start_count, starts[2];
        bool one_each;
    } expected[] = {{1, 2, {3, 4}, true}, {1, 2, {5, 6}, false}, {2, 1, {2}, false}};
    enum { MULTISHOT, ONESHOT, BARRIER };
    for (uint32_t t = 0; t < 3; t++) {
        const struct gw_trigger_spec *trigger = &workload->triggers[t];
        assert_int_equal(trigger->needs, expected[t].needs);
        assert_int_equal(trigger->one_each, expected[t].one_each);
        assert_int_equal(trigger->start_count, expected[t].start_count);
        for (uint32_t i = 0; i < trigger->start_count; i++)
            assert_int_equal(workload->starts[trigger->first_start + i], expected[t].starts[i]);
    }
    assert_int_equal(workload->flows[0].fires_sent, BARRIER);
    assert_int_equal(workload->flows[0].fires_received, ONESHOT);
    assert_int_equal(workload->flows[1].fires_sent, BARRIER);
    assert_int_equal(workload->flows[1].fires_received, GW_TRIGGER_NONE);
    assert_int_equal(workload->flows[2].fires_sent, MULTISHOT);
    assert_int_equal(workload->flows[2].start, GW_TIME_NEVER);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

/* A second workload's triggers and flows come after those of the first. */
static void matrix__appends(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    char name[32];
    build(&topo, "star", "hosts=16");
    generate(&made, &topo, "all-to-all", "hosts=3 window=1", 1);
    generate_file(name, "Connections 2\nTriggers 1\n0->1 start 0 size 1 send_done_trigger 4\n"
                        "1->2 trigger 4 size 1\ntrigger id 4 oneshot\n");
    union gw_algo_cfg cfg;
    const struct gw_algo *algo = gw_registry_find(&gw_workload_registry, "matrix");
    gw_algo_defaults(algo, &cfg);
    gw_algo_set(algo, &cfg, "file", name);
    struct gw_workload_ctx ctx = {
        .topo = &topo, .directory = ".", .why = made.why, .why_size = sizeof(made.why)};
    assert_int_equal(((const struct gw_workload_kind *)algo)->generate(&made.workload, &cfg, &ctx),
                     GW_OK);
    unlink(name);
    assert_int_equal(made.workload.flow_count, 6 + 2);
    assert_int_equal(made.workload.flows[6].fires_sent, 3);
    assert_int_equal(made.workload.starts[made.workload.triggers[3].first_start], 7);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void matrix__is_found_beside_the_scenario(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "fat-tree", "");
    generate_in(&made, &topo, "matrix", "file=example.cm", 1, GW_SOURCE_DIR "/scenarios");
    assert_int_equal(made.error, GW_OK);
    assert_int_equal(made.workload.flow_count, 9);
    assert_int_equal(made.workload.trigger_count, 5);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void matrix__names_the_line_at_fault(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"Nodes 17\n", ":1: Nodes 17, but the topology has 16 hosts"},
        {"Nodes\n", ":1: Nodes: a number must follow"},
        {"Nodes 4\n\n0->4 start 0 size 1\n", ":3: host 4 does not exist: the file says Nodes 4"},
        {"Connections 1\n0->16 start 0 size 1\n", ":2: host 16 does not exist: the topology"},
        {"0-1 start 0 size 1\n", ":1: unknown word: 0-1"},
        {"0->1x start 0 size 1\n", ":1: a pair of hosts must be like 0->13, not 0->1x"},
        {"3->3 start 0 size 1\n", ":1: host 3 sends to itself"},
        {"0->1 size 1\n", ":1: a flow needs either a start or a trigger"},
        {"0->1 start 0 trigger 1 size 1\n", ":1: a flow needs either a start or a trigger"},
        {"0->1 start 0\n", ":1: a flow needs a size"},
        {"0->1 start -5 size 1\n", ":1: start: value out of range: -5"},
        {"0->1 start 0 size 2MB\n", ":1: size: wrong or missing unit: 2MB"},
        {"0->1 start 0 size\n", ":1: size: a number must follow"},
        {"0->1 start 0 size 1 colour 3\n", ":1: unknown word: colour"},
        {"0->1 id 0 start 0 size 1\n", ":1: id: 0 is not allowed"},
        {"Connections 2\n0->1 start 0 size 1\n", ":2: the file says Connections 2, but has 1"},
        {"Connections 1\n0->1 start 0 size 1\ntrigger id 1 oneshot\n",
         ":3: the file says Triggers 0, but has 1"},
        {"Connections 1\n0->1 trigger 3 size 1\n", ":2: trigger 3 is not defined"},
        {"Connections 1\nTriggers 1\ntrigger id 1 oneshot\n0->1 start 0 size 1 "
         "recv_done_trigger 2\n",
         ":4: trigger 2 is not defined"},
        {"Connections 0\nTriggers 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot\n",
         ":4: trigger 1 is defined twice"},
        {"", ": the file is empty; it must say how many Connections it has"},
        {"Nodes 4\n", ":1: it must say how many Connections it has"},
        {"trigger id 1\n", ":1: a trigger needs an id and one of"},
        {"trigger oneshot\n", ":1: a trigger needs an id and one of"},
        {"trigger id 1 oneshot multishot\n", ":1: a trigger needs an id and one of"},
        {"trigger id 1 barrier\n", ":1: a barrier needs a count"},
        {"trigger id 1 barrier count 0\n", ":1: count: 0 is not allowed"},
        {"trigger id 1 twice\n", ":1: unknown word: twice"},
        {"Failures 1\n", ":1: what fails is said under `faults`"},
    };
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=16");
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct generated made;
        make(&made, &topo, cases[i].text);
        assert_true(made.error < 0);
        assert_int_equal(strncmp(made.why, "file /tmp/gradwire_test_", 24), 0);
        if (!strstr(made.why, cases[i].why))
            fail_msg("case %zu: said \"%s\"", i, made.why);
        assert_int_equal(made.workload.flow_count, 0);
        gw_workload_fini(&made.workload);
    }
    gw_topo_fini(&topo);
}

static void matrix__refuses_a_line_that_is_too_long(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    char text[2000];
    build(&topo, "star", "hosts=16");
    memset(text, ' ', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    make(&made, &topo, text);
    assert_non_null(strstr(made.why, ":1: the line is longer than"));
    gw_workload_fini(&made.workload);
    generate_refused(&topo, "matrix", "", "file is missing");
    generate_refused(&topo, "matrix", "file=no-such.cm", "file no-such.cm: No such file");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrix__reads_plain_flows),
        cmocka_unit_test(matrix__reads_all_kinds_of_triggers),
        cmocka_unit_test(matrix__appends),
        cmocka_unit_test(matrix__is_found_beside_the_scenario),
        cmocka_unit_test(matrix__names_the_line_at_fault),
        cmocka_unit_test(matrix__refuses_a_line_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
