/*
 * A port of a switch with pFabric's queue: what is nearest to the end of its message leaves first,
 * however the messages came, and a full port loses what is farthest from it.
 */
#include "support.h"

#include "pool_fixture.h"
#include "switch_fixture.h"

#include "base/prng.h"

enum {
    PORTS = 4, /* destination d is behind port d */
    OUT = 0,
    PKTS = 256,
    SIZE = 1000,
    SLOTS = 24, /* packets that fit */
    MESSAGES = 8,
};

static const uint16_t leaves[] = {0, 1, 2, 3};

struct fixture {
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_pkt_pool pool;
};

static void fixture_open(struct fixture *f)
{
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "pfabric", &f->pool);
    cfg.capacity = gw_test_capacity(SLOTS * SIZE);
    cfg.routes = gw_test_routes(leaves, PORTS);
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->sw = gw_test_switch_open(&cfg);
    f->node = gw_switch_node(f->sw);
}

static void fixture_close(struct fixture *f)
{
    gw_test_switch_close(f->sw, PORTS, &f->pool);
}

/* A packet of a message of which so many bytes remain, through any port but the last. */
static void feed(struct fixture *f, uint32_t message, uint32_t remaining)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.size = SIZE, .kind = GW_PKT_DATA, .key = message, .rank = remaining},
        .dst = OUT,
        .seq = remaining,
        .buf = GW_BUF_NONE,
    };
    gw_node_input(f->node, (uint16_t)(1 + message % (PORTS - 1)), &pkt, 1, 0);
    f->node->ready_count = 0;
}

/* False: nothing waits. */
static bool pull(struct fixture *f, struct gw_pkt *copy)
{
    struct gw_pkt *pkt;
    if ((gw_node_output(f->node, OUT, &pkt, 1, 0) & ~GW_OUTPUT_MORE) == 0)
        return false;
    *copy = *pkt;
    gw_pkt_release(&f->pool, pkt);
    return true;
}

/* Packets that never wait behind one of their own message leave by what remains. */
static void switch_pfabric__sends_what_is_nearest_to_its_end(void **state)
{
    static const uint32_t remaining[] = {70000, 3000, 900000, 1, 2999, 70001, 0, 40000};
    (void)state;
    struct fixture f;
    struct gw_pkt pkt;
    uint32_t last = 0, count = 0;
    fixture_open(&f);
    for (uint32_t i = 0; i < GW_COUNT_OF(remaining); i++)
        feed(&f, i, remaining[i]);
    for (; pull(&f, &pkt); count++) {
        assert_true(pkt.seq >= last);
        last = pkt.seq;
    }
    assert_int_equal(count, GW_COUNT_OF(remaining));
    fixture_close(&f);
}

/*
 * More comes than leaves, of messages that each fall by a packet at a time. What leaves is of a
 * message that has the least remaining of all that waits, and of that message the earliest; what
 * is lost has the most. A model of what waits says so before each step.
 */
static void switch_pfabric__loses_what_is_farthest_from_its_end(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt pkt;
    struct gw_prng prng = gw_prng_derive(16, 0);
    uint32_t queue[SLOTS + 1][2], held = 0, left[MESSAGES] = {0}, lost = 0;
    fixture_open(&f);
    for (uint32_t step = 0; step < 3000; step++) {
        if (gw_prng_below(&prng, 3)) {
            uint32_t message = gw_prng_below(&prng, MESSAGES), worst = 0;
            left[message] = left[message] ? left[message] - 1 : gw_prng_below(&prng, 1000);
            queue[held][0] = message;
            queue[held++][1] = left[message];
            feed(&f, message, left[message]);
            for (uint32_t i = 1; i < held; i++)
                worst = queue[i][1] >= queue[worst][1] ? i : worst;
            if (held > SLOTS) {
                memmove(queue[worst], queue[worst + 1], (--held - worst) * sizeof(queue[0]));
                lost++;
            }
        } else {
            uint32_t best = 0, first = 0;
            for (uint32_t i = 1; i < held; i++)
                best = queue[i][1] < queue[best][1] ? i : best;
            assert_int_equal(pull(&f, &pkt), held > 0);
            if (!held)
                continue;
            while (queue[first][0] != queue[best][0])
                first++;
            assert_int_equal(pkt.q.key, queue[first][0]);
            assert_int_equal(pkt.seq, queue[first][1]);
            memmove(queue[first], queue[first + 1], (--held - first) * sizeof(queue[0]));
        }
        assert_int_equal(gw_switch_backlog(f.sw, OUT), held * SIZE);
    }
    assert_true(lost > 500);
    assert_int_equal(gw_switch_port_stats(f.sw, OUT).drops, lost);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch_pfabric__sends_what_is_nearest_to_its_end),
        cmocka_unit_test(switch_pfabric__loses_what_is_farthest_from_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
