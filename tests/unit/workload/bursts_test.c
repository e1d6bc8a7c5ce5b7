/* Bursts: who sends in each, and what starts the next one. */
#include "unit/workload/workload_fixture.h"

#include "core/notice.h"

/* Two leaves of three hosts and a server on the root, which is host 6. */
static const char tree[] = "fanout=2 hosts_per_leaf=3 root_hosts=1";

static void bursts__follow_one_another_after_a_pause(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "tree", tree);
    generate(&made, &topo, "bursts",
             "size=5MB workers=3 iterations=4 idle=7s start=20s hosts=4,0-2 server=6", 1);
    assert_int_equal(made.error, GW_OK);
    const struct gw_workload *workload = &made.workload;
    static const uint32_t hosts[] = {4, 0, 1};
    assert_int_equal(workload->flow_count, 12);
    assert_int_equal(workload->burst_count, 4);
    assert_int_equal(workload->trigger_count, 3);
    assert_int_equal(workload->tenant_count, 1);
    for (uint32_t i = 0; i < 12; i++) {
        const struct gw_flow_spec *flow = &workload->flows[i];
        uint32_t burst = i / 3;
        assert_int_equal(flow->src, hosts[i % 3]);
        assert_int_equal(flow->dst, 6);
        assert_int_equal(flow->bytes, 5000000);
        assert_int_equal(flow->start, burst ? GW_TIME_NEVER : 20 * GW_S);
        assert_int_equal(flow->burst, burst + 1);
        assert_int_equal(flow->tenant, 1);
        assert_int_equal(flow->fires_sent, burst < 3 ? burst : GW_TRIGGER_NONE);
        assert_int_equal(flow->fires_received, GW_TRIGGER_NONE);
        assert_false(flow->background);
    }
    for (uint32_t t = 0; t < 3; t++) {
        const struct gw_trigger_spec *trigger = &workload->triggers[t];
        assert_int_equal(trigger->needs, 3);
        assert_int_equal(trigger->delay, 7 * GW_S);
        assert_int_equal(trigger->start_count, 3);
        assert_false(trigger->one_each);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(workload->starts[trigger->first_start + i], 3 * (t + 1) + i);
        assert_int_equal(workload->bursts[t].first_flow, 3 * t);
        assert_int_equal(workload->bursts[t].flow_count, 3);
    }
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

/* Without a list, workers go from rack to rack, and the last host is the server. */
static void bursts__spread_workers_over_racks(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "tree", tree);
    generate(&made, &topo, "bursts", "workers=6 iterations=1", 1);
    assert_int_equal(made.error, GW_OK);
    assert_int_equal(made.workload.trigger_count, 0);
    bool sends[7] = {false};
    for (uint32_t i = 0; i < 6; i++) {
        const struct gw_flow_spec *flow = &made.workload.flows[i];
        assert_int_equal(flow->dst, 6);
        assert_false(sends[flow->src]);
        sends[flow->src] = true;
    }
    assert_int_not_equal(made.workload.flows[0].src / 3, made.workload.flows[1].src / 3);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void bursts__are_announced_as_the_option_says(void **state)
{
    static const struct {
        const char *settings;
        uint8_t option;
    } cases[] = {
        {"workers=1", GW_NOTICE_FORMULA + 2},
        {"workers=1 announce=no", GW_NOTICE_OFF},
        {"workers=1 announce=10", 2},
        {"workers=1 announce=1/1", GW_NOTICE_FORMULA},
    };
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=3");
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct generated made;
        generate(&made, &topo, "bursts", cases[i].settings, 1);
        assert_int_equal(made.error, GW_OK);
        assert_int_equal(made.workload.tenants[0].announce, cases[i].option);
        gw_workload_fini(&made.workload);
    }
    gw_topo_fini(&topo);
}

/* Nobody waits for those who never send. */
static void bursts__may_be_silent(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated made;
    build(&topo, "tree", tree);
    generate(&made, &topo, "bursts", "workers=2 iterations=3 silent=yes", 1);
    assert_int_equal(made.error, GW_OK);
    assert_int_equal(made.workload.flow_count, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(made.workload.flows[i].silent && made.workload.flows[i].background);
    gw_workload_fini(&made.workload);
    gw_topo_fini(&topo);
}

static void bursts__refuse_what_cannot_be(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=4");
    generate_refused(&topo, "bursts", "workers=4", "workers: 4 are more than the hosts beside");
    generate_refused(&topo, "bursts", "workers=3 hosts=0,1",
                     "workers: 3 are more than the hosts that are given");
    generate_refused(&topo, "bursts", "workers=0", "workers must be");
    generate_refused(&topo, "bursts", "size=0", "size must be");
    generate_refused(&topo, "bursts", "iterations=0", "iterations must be");
    generate_refused(&topo, "bursts", "idle=432001s", "idle must be");
    generate_refused(&topo, "bursts", "server=4", "server must be one of the 4 hosts");
    generate_refused(&topo, "bursts", "server=0-1", "server must be one of the 4 hosts");
    generate_refused(&topo, "bursts", "server=1 hosts=0-2", "hosts: 1 is the server");
    generate_refused(&topo, "bursts", "announce=12", "announce must be no, a multiple of 5");
    generate_refused(&topo, "bursts", "announce=80", "announce must be");
    generate_refused(&topo, "bursts", "announce=1/3", "announce must be");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bursts__follow_one_another_after_a_pause),
        cmocka_unit_test(bursts__spread_workers_over_racks),
        cmocka_unit_test(bursts__are_announced_as_the_option_says),
        cmocka_unit_test(bursts__may_be_silent),
        cmocka_unit_test(bursts__refuse_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
