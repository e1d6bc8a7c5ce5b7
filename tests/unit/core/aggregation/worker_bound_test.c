/* Calls with a bound: when a loss means congestion. */
#include "host.h"
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/worker.h"
#include "core/job.h"

enum {
    OURS = 1,
    JOB = 4,
    SERVER = 9,
    VALUES = 16,
    WINDOW = 8,
    FRAGMENTS = 100,
    PKTS = 64,
    FIRST_SEQ = 100,
};

#define TRIP (20 * GW_US)

struct bench {
    struct gw_pkt_pool pool;
    struct gw_endpoint *endpoint;
    struct gw_node *node;
    struct gw_worker *worker;
    void *memory;
    gw_time now;
};

static void bench_open(struct bench *b, gw_q16 bound)
{
    struct gw_worker_cfg cfg = {.job = JOB,
                                .world = 3,
                                .server = SERVER,
                                .bitmap = 1,
                                .values = VALUES,
                                .window_max = WINDOW,
                                .window_initial = WINDOW,
                                .aggregators = 64,
                                .tensors_max = 1,
                                .timeout = GW_S,
                                .congestion_control = true,
                                .keeps_results = true,
                                .takes_bounds = true,
                                .first_seq = FIRST_SEQ,
                                .kernels = gw_kernels_best(gw_cpu_features())};
    struct gw_endpoint_cfg host = gw_test_host_cfg(OURS, 4 * VALUES);
    struct gw_tensor tensor = {.count = (uint64_t)FRAGMENTS * VALUES, .bound = bound};
    *b = (struct bench){0};
    gw_test_pool_open(&b->pool, NULL, PKTS, 0);
    host.pool = &b->pool;
    host.apps_max = host.app_events_max = 1;
    b->endpoint = gw_endpoint_init(gw_test_take(gw_endpoint_size(&host)), &host);
    b->node = gw_endpoint_node(b->endpoint);
    b->memory = gw_test_take(gw_worker_size(&cfg));
    assert_int_equal(gw_worker_init(&b->worker, b->memory, &cfg, b->endpoint), 0);
    assert_int_equal(gw_worker_reduce(b->worker, &tensor, b->now), 0);
}

static void bench_close(struct bench *b)
{
    gw_worker_fini(b->worker);
    gw_test_pool_close(&b->pool);
    free(b->memory);
    free(b->endpoint);
}

/* Lets all leave; returns what leaves of fragment `at`, or zeros. */
static struct gw_pkt drain(struct bench *b, uint32_t at)
{
    struct gw_pkt *pkt, found = {0};
    uint32_t left;
    b->node->ready_count = 0;
    do {
        left = gw_node_output(b->node, 0, &pkt, 1, b->now);
        if (!(left & ~GW_OUTPUT_MORE))
            continue;
        if (pkt->seq == FIRST_SEQ + at)
            found = *pkt;
        gw_pkt_release(&b->pool, pkt);
    } while (left & GW_OUTPUT_MORE);
    return found;
}

/* `lacks`: so many workers. */
static void result(struct bench *b, uint32_t fragment, uint32_t lacks)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){.q = {.kind = GW_PKT_PARAM},
                           .src = SERVER,
                           .dst = OURS,
                           .flow = JOB,
                           .key = gw_agg_key(FIRST_SEQ, GW_DTYPE_F32, false),
                           .seq = FIRST_SEQ + fragment,
                           .buf = GW_BUF_NONE,
                           .agg = {.bitmap = gw_agg_result_word(lacks, false), .values = VALUES}};
    gw_node_input(b->node, 0, &pkt, 1, b->now);
}

/* Windows whose results come after `trip`. */
static void go_round(struct bench *b, uint32_t *at, uint32_t windows, gw_time trip)
{
    for (uint32_t end = *at + windows * WINDOW; *at < end;) {
        drain(b, *at);
        b->now += trip;
        for (uint32_t i = 0; i < WINDOW; i++)
            result(b, (*at)++, 0);
    }
}

/* A fragment is lost while round trips take so long: which one. *says: whether the others hear of
 * congestion. */
static uint32_t lose_one(struct bench *b, gw_q16 bound, gw_time trip, bool *says)
{
    uint32_t at = 0;
    bench_open(b, bound);
    go_round(b, &at, 1, TRIP);
    go_round(b, &at, 2, trip);
    drain(b, at);
    b->now += trip;
    for (uint32_t i = 1; i <= 3; i++)
        result(b, at + i, 0);
    struct gw_pkt again = drain(b, at);
    assert_true(again.agg_flags & GW_AGG_RESEND);
    *says = again.agg_flags & GW_AGG_ECN;
    return at;
}

static bool says_congestion(gw_q16 bound, gw_time trip)
{
    struct bench b;
    bool says;
    lose_one(&b, bound, trip, &says);
    bench_close(&b);
    return says;
}

static void worker__takes_a_loss_within_the_bound_for_no_congestion(void **state)
{
    (void)state;
    assert_true(says_congestion(0, TRIP));
    assert_false(says_congestion(GW_Q16_ONE / 10, TRIP));
    assert_false(says_congestion(GW_Q16_ONE / 10, 3 * TRIP));
    assert_true(says_congestion(GW_Q16_ONE / 250, TRIP)); /* allows none of the fragments */
}

static void worker__takes_it_for_congestion_while_packets_wait(void **state)
{
    (void)state;
    assert_true(says_congestion(GW_Q16_ONE / 10, 5 * TRIP));
}

/* Its result is for all, and says nothing of a loss: others were waited for, unless it is without
 * what was lost. */
static void worker__says_again_that_what_a_sum_lacks_was_lost(void **state)
{
    (void)state;
    for (uint32_t lacks = 0; lacks < 2; lacks++) {
        struct bench b;
        bool says;
        uint32_t at = lose_one(&b, 0, TRIP, &says);
        assert_true(says);
        result(&b, at, lacks);
        struct gw_pkt next = drain(&b, at + WINDOW);
        assert_int_equal(next.seq, FIRST_SEQ + at + WINDOW);
        assert_int_equal((next.agg_flags & GW_AGG_ECN) != 0, lacks);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker__takes_a_loss_within_the_bound_for_no_congestion),
        cmocka_unit_test(worker__takes_it_for_congestion_while_packets_wait),
        cmocka_unit_test(worker__says_again_that_what_a_sum_lacks_was_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
