/* Results for hosts that a group reaches: one packet for those, one for each of the others. */
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/cpu.h"

enum {
    HOSTS = 4, /* host h has address HOST + h and hangs on port 1 + h */
    UPLINK = 0,
    GROUP = 1 + HOSTS, /* port of the group */
    PORTS = GROUP + 1,
    PKTS = 64,
    SIZE = 1000,
    HOST = 100,
    SERVER = 7,
    JOB = 9,
};

struct fixture {
    struct gw_switch *sw;
    struct gw_aggregate *aggregate;
    struct gw_pkt_pool pool;
};

static int open_fixture(void **state)
{
    static const uint32_t members[HOSTS] = {HOST, HOST + 1, HOST + 2, HOST + 3};
    const struct gw_aggregate_job job = {
        .job = JOB, .fan_in = HOSTS, .members = members, .member_count = HOSTS};
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    struct gw_aggregate_cfg aggregate = {
        .aggregators = 8,
        .jobs_max = 1,
        .members_max = HOSTS,
        .leak = GW_S,
        .job_idle = GW_S,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &f->pool,
    };
    f->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&aggregate)), &aggregate);
    assert_int_equal(gw_aggregate_install(f->aggregate, &job), 0);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "fifo", &f->pool);
    cfg.learned_max = 16;
    cfg.learned_idle = GW_S;
    cfg.uplink = UPLINK;
    cfg.train = 8;
    cfg.aggregate = f->aggregate;
    f->sw = gw_test_switch_open(&cfg);
    for (uint16_t host = 0; host < HOSTS; host++)
        assert_int_equal(gw_switch_open_port(f->sw, 1 + host, HOST + host, true, 0), 0);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    gw_switch_fini(f->sw);
    gw_test_pool_close(&f->pool);
    free(f->sw);
    free(f->aggregate);
    free(f);
    return 0;
}

/* A result of the job comes from above, for `dst`. */
static void arrive(struct fixture *f, uint32_t dst, uint8_t agg_flags)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    *pkt = (struct gw_pkt){
        .q = {.size = SIZE, .kind = GW_PKT_PARAM},
        .src = SERVER,
        .dst = dst,
        .flow = JOB,
        .agg_flags = agg_flags,
        .buf = GW_BUF_NONE,
    };
    gw_node_input(gw_switch_node(f->sw), UPLINK, &pkt, 1, 0);
}

/* Packets that leave by a port now, all of them for `dst`. */
static uint32_t count_out(struct fixture *f, uint16_t port, uint32_t dst)
{
    struct gw_pkt *pkts[8];
    struct gw_node *node = gw_switch_node(f->sw);
    uint32_t count = gw_node_output(node, port, pkts, 8, 0) & ~GW_OUTPUT_MORE;
    node->ready_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pkts[i]->dst, dst);
        gw_pkt_release(&f->pool, pkts[i]);
    }
    return count;
}

/* The group's packet is for the first host that has none of its own. */
static void expect_out(struct fixture *f, const uint32_t *hosts, uint32_t group)
{
    uint16_t first = 0;
    while (first < HOSTS && hosts[first])
        first++;
    for (uint16_t host = 0; host < HOSTS; host++)
        assert_int_equal(count_out(f, 1 + host, HOST + host), hosts[host]);
    assert_int_equal(count_out(f, GROUP, HOST + first), group);
}

/* Every set of hosts that hear the group. */
static void switch_group__replaces_the_copies_of_those_who_hear(void **state)
{
    struct fixture *f = *state;
    for (uint32_t hearing = 0; hearing < 1 << HOSTS; hearing++) {
        uint32_t expected[HOSTS], heard = 0;
        for (uint16_t host = 0; host < HOSTS; host++) {
            bool hears = hearing >> host & 1;
            gw_switch_set_group(f->sw, 1 + host, hears ? GROUP : GW_PORT_NONE, 0);
            expected[host] = !hears;
            heard += hears;
        }
        uint64_t saved = gw_switch_stats(f->sw)->copies_saved;
        arrive(f, HOST, 0);
        expect_out(f, expected, heard > 0);
        assert_int_equal(gw_switch_stats(f->sw)->copies_saved - saved, heard ? heard - 1 : 0);
    }
}

/* What is for one host alone does not go to the group. */
static void switch_group__leaves_the_rest_alone(void **state)
{
    struct fixture *f = *state;
    for (uint16_t host = 0; host < HOSTS; host++)
        gw_switch_set_group(f->sw, 1 + host, GROUP, 0);
    arrive(f, HOST + 2, GW_AGG_UNICAST);
    expect_out(f, (const uint32_t[HOSTS]){0, 0, 1, 0}, 0);
}

/* A host that has gone and come back is out of the group until somebody says otherwise. */
static void switch_group__ends_with_the_port(void **state)
{
    struct fixture *f = *state;
    for (uint16_t host = 0; host < HOSTS; host++)
        gw_switch_set_group(f->sw, 1 + host, GROUP, 0);
    gw_switch_close_port(f->sw, 1, 0);
    assert_int_equal(gw_switch_open_port(f->sw, 1, HOST, true, 0), 0);
    count_out(f, UPLINK, GW_ADDRESS_NONE); /* it was announced */
    arrive(f, HOST, 0);
    expect_out(f, (const uint32_t[HOSTS]){1, 0, 0, 0}, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(switch_group__replaces_the_copies_of_those_who_hear),
        TEST(switch_group__leaves_the_rest_alone),
        TEST(switch_group__ends_with_the_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
