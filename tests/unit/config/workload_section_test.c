/* The section `workload`: kinds with a list of items, and what is refused, with its place. */
#include "unit/config/scenario_file.h"

#define TOPOLOGY "topology: {kind: star, hosts: 8}\n"
#define CALLS                                                                                      \
    TOPOLOGY "workload:\n"                                                                         \
             "  kind: calls\n"                                                                     \
             "  workers: 4\n"                                                                      \
             "  via: ps\n"                                                                         \
             "  calls:\n"                                                                          \
             "    - {do: allreduce, type: float64, op: max, bytes: 8KB}\n"                         \
             "    - {do: send, from: 3, to: 1, bytes: 7}\n"                                        \
             "    - {do: push, key: 9, rank: 2, via: ring, bytes: 4KB}\n"

static void workload__reads_the_items_of_a_list(void **state)
{
    (void)state;
    struct gw_scenario scenario;
    scenario_load(&scenario, CALLS, NULL);
    const struct gw_workload *workload = &scenario.workload;
    assert_int_equal(workload->job_count, 1);
    assert_int_equal(workload->jobs[0].calls_via, GW_VIA_PS);
    assert_int_equal(workload->jobs[0].bytes, 8000 + 7 + 4000);
    assert_int_equal(workload->call_count, 3);
    const struct gw_call_spec *calls = workload->calls + workload->jobs[0].first_call;
    assert_int_equal(calls[0].kind, GW_CALL_ALLREDUCE);
    assert_int_equal(calls[0].via, GW_VIA_DEFAULT);
    assert_int_equal(calls[0].type, GW_DTYPE_F64);
    assert_int_equal(calls[0].op, GW_OP_MAX);
    assert_int_equal(calls[0].count, 1000);
    assert_int_equal(calls[1].kind, GW_CALL_SEND);
    assert_int_equal(calls[1].from, 3);
    assert_int_equal(calls[1].to, 1);
    assert_int_equal(calls[1].count, 7);
    assert_int_equal(calls[2].kind, GW_CALL_PUSH);
    assert_int_equal(calls[2].rank, 2);
    assert_int_equal(calls[2].key, 9);
    assert_int_equal(calls[2].via, GW_VIA_RING);
    assert_true(scenario.host.payload); /* what ranks say to each other has contents */
    gw_scenario_free(&scenario);
}

static void workload__names_the_item_at_fault(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"workload.calls=7", "workload.calls=7: expected a list"},
        {"workload.calls=[]", "workload.calls=[]: from 1 to 4096 are possible, not 0"},
        {"workload.calls=[{do: barrier}, 5]", "workload.calls.1: expected a map"},
        {"workload.calls.1.bytes=0", "calls.1.bytes=0: must be from 1 to 4 GiB"},
        {"workload.calls.0.bytes=9", "calls.0.bytes=9: must be a multiple of 8"},
        {"workload.calls.0.do=sum", "calls.0.do=sum: not understood: sum"},
        {"workload.calls.0.root=4", "calls.0.root=4: must be a rank, below 4"},
        {"workload.calls.1.to=4", "calls.1.to=4: must be a rank"},
        {"workload.calls.1.from=1", "calls.1.from=1: must be a rank"},
        {"workload.calls.2.rank=4", "calls.2.rank=4: expected all, or a rank below 4"},
        {"workload.calls.2.type=int64", "calls.2.type=int64: what is pushed"},
        {"workload.calls.2.tipe=int64", "unknown key \"tipe\""},
        {"workload.kind=permutation", "workload.workers: unknown key"},
        {"workload.ahead=0", "workload.ahead=0: must be from 1 to 64"},
        {"workload.segment=12", "workload.segment=12: must be a multiple of 8"},
        {"workload.stacked=yes", "workload.stacked=yes: a host has one communicator"},
        {"workload.via=tree", "workload.via=tree: unknown: tree; expected ina, ps, ring"},
        {"workload.workers=1", "workload.workers=1: must be from 2"},
        {"workload={kind: calls, workers: 2, placement: given, hosts: 0-2, calls: [{}]}",
         "hosts: address 0 is nobody's"},
    };
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        scenario_refused(CALLS, cases[i][0], cases[i][1]);
    scenario_refused(TOPOLOGY "workload: {kind: calls, workers: 4}\n", NULL, "calls: from 1");
    scenario_refused(TOPOLOGY "workload: {kind: incast, calls: []}\n", NULL,
                     "unknown key \"calls\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workload__reads_the_items_of_a_list),
        cmocka_unit_test(workload__names_the_item_at_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
