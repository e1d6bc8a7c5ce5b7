/*
 * The stages of a switch together: what one decides does not disturb what another keeps.
 */
#include "support.h"

#include "pool_fixture.h"
#include "switch_fixture.h"

#include "base/cpu.h"
#include "core/job.h"
#include "core/pause.h"

enum {
    PORTS = 4, /* hosts 0 and 1 are behind the ports of their numbers */
    FAR = 2,   /* behind ports 2 and 3, which take turns */
    PKTS = 64,
    SWITCH = 100, /* its address */
    JOB = 9,
    SIZE = 1000,
};

static const uint16_t leaves[] = {0, 1, GW_ROUTE_SET | 0};
static const struct gw_switch_set sets[] = {{.first = 0, .count = 2}};
static const uint16_t members[] = {2, 3};

struct fixture {
    struct gw_pkt_pool pool;
    struct gw_aggregate *aggregate;
    struct gw_switch *sw;
    uint16_t turns[1];
};

static int open_fixture(void **state)
{
    static const struct gw_pause_cfg pause = {.xoff = 2 * SIZE, .xon = SIZE, .time = 40 * GW_US};
    struct fixture *f = calloc(1, sizeof(*f));
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    const struct gw_aggregate_cfg cfg = {
        .aggregators = 4,
        .jobs_max = 3,
        .members_max = 40,
        .leak = GW_MS,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .pool = &f->pool,
    };
    f->aggregate = gw_aggregate_init(gw_test_take(gw_aggregate_size(&cfg)), &cfg);
    struct gw_switch_cfg sw = gw_test_switch_cfg(PORTS, "fifo", &f->pool);
    sw.aggregate = f->aggregate;
    sw.address = SWITCH;
    sw.routes = gw_test_routes(leaves, GW_COUNT_OF(leaves));
    sw.routes.sets = sets;
    sw.routes.members = members;
    sw.routes.turns = f->turns;
    sw.lossless = &pause;
    f->sw = gw_test_switch_open(&sw);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    gw_switch_fini(f->sw);
    gw_test_switch_check(f->sw, PORTS);
    gw_aggregate_remove(f->aggregate, JOB);
    gw_test_pool_close(&f->pool);
    free(f->sw);
    free(f->aggregate);
    free(f);
    return 0;
}

static void arrive(struct fixture *f, uint16_t in, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(gw_switch_node(f->sw), in, &pkt, 1, GW_S);
    gw_switch_node(f->sw)->ready_count = 0;
}

/* Packets that a port holds, which all leave. */
static uint32_t drain(struct fixture *f, uint16_t port)
{
    struct gw_node *node = gw_switch_node(f->sw);
    uint32_t count = 0;
    for (uint32_t answer = GW_OUTPUT_MORE; answer & GW_OUTPUT_MORE;) {
        struct gw_pkt *pkt;
        answer = gw_node_output(node, port, &pkt, 1, GW_S);
        if (answer & ~GW_OUTPUT_MORE) {
            count++;
            gw_pkt_release(&f->pool, pkt);
        }
    }
    return count;
}

/* The books of a lossless switch are by the port of arrival, which its own answers have, too. */
static void switch_stages__answers_are_in_the_books(void **state)
{
    struct fixture *f = *state;
    for (uint8_t class = 0; class < GW_CLASSES; class ++)
        for (uint8_t op = 0; op < GW_JOB_OPS; op++) {
            struct gw_pkt pkt = {
                .q = {.size = 64, .class = class, .kind = GW_PKT_JOB},
                .src = 1,
                .dst = SWITCH,
                .flow = JOB,
                .key = 77,
                .epoch = 4,
                .seq = 1,
                .agg_flags = op,
                .job.word = {1, 0x0100, SWITCH},
                .buf = GW_BUF_NONE,
            };
            arrive(f, 1, &pkt);
            bool is_answered = op == GW_JOB_INSTALL || op == GW_JOB_REMOVE;
            assert_true(drain(f, 1) <= is_answered);
        }
    assert_int_equal(gw_switch_port_stats(f->sw, 1).pauses, 0);
    assert_true(gw_node_deadline(gw_switch_node(f->sw)) == GW_TIME_NEVER);
}

static struct gw_pkt gradient(uint32_t seq, uint32_t bit)
{
    return (struct gw_pkt){
        .q = {.size = SIZE, .kind = GW_PKT_GRAD, .class = 1},
        .src = bit == 1 ? 0 : 1,
        .dst = FAR,
        .flow = JOB,
        .key = 5,
        .epoch = 1,
        .seq = seq,
        .index = (uint16_t)seq,
        .agg = {.bitmap = bit, .values = 16},
        .buf = GW_BUF_NONE,
    };
}

/* A gradient that ends here takes nobody's turn: what leaves uses the uplinks alternately. */
static void switch_stages__what_stays_takes_no_turn(void **state)
{
    struct fixture *f = *state;
    const uint32_t hosts[] = {0, 1};
    const struct gw_aggregate_job job = {
        .job = JOB, .epoch = 1, .fan_in = 2, .member_count = 2, .members = hosts};
    assert_int_equal(gw_aggregate_install(f->aggregate, &job), 0);
    for (uint32_t seq = 0; seq < 4; seq++) {
        uint16_t uplink = (uint16_t)(2 + seq % 2);
        struct gw_pkt first = gradient(seq, 1), last = gradient(seq, 2);
        arrive(f, 0, &first);
        assert_int_equal(gw_switch_backlog(f->sw, 2) + gw_switch_backlog(f->sw, 3), 0);
        arrive(f, 1, &last);
        assert_int_equal(gw_switch_backlog(f->sw, uplink), SIZE);
        assert_int_equal(drain(f, uplink), 1);
        assert_int_equal(drain(f, (uint16_t)(5 - uplink)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(switch_stages__answers_are_in_the_books, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(switch_stages__what_stays_takes_no_turn, open_fixture,
                                        close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
