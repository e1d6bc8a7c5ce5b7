/* The worker: its window, what it sends again, and what it makes of results. */
#include "host.h"
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "base/error.h"
#include "base/fixed.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/worker.h"

enum {
    JOB = 4,
    EPOCH = 6,
    SERVER = 9,
    VALUES = 62, /* with 58 bytes of header the paper's packet of 306 bytes */
    WINDOW = 64,
    INITIAL = 16,
    FRAGMENTS = 2000,
    AGGREGATORS = 128,
    PKTS = 128,
};

#define TIMEOUT GW_MS

static const uint32_t first_seq = UINT32_MAX - 30; /* wraps soon */

struct bench {
    struct gw_pkt_pool pool;
    struct gw_endpoint *endpoint;
    struct gw_node *node;
    struct gw_worker *worker;
    void *memory;
    bool is_ready; /* its port, as the last output said */
};

static struct gw_worker_cfg worker_cfg(gw_time stall)
{
    return (struct gw_worker_cfg){.job = JOB,
                                  .epoch = EPOCH,
                                  .world = 2,
                                  .server = SERVER,
                                  .bitmap = 2,
                                  .above = {3, 1},
                                  .values = VALUES,
                                  .window_max = WINDOW,
                                  .window_initial = INITIAL,
                                  .aggregators = AGGREGATORS,
                                  .tensors_max = 1,
                                  .timeout = TIMEOUT,
                                  .stall = stall,
                                  .congestion_control = true,
                                  .scale_exponent = GW_SCALE_EXPONENT,
                                  .first_seq = first_seq,
                                  .kernels = gw_kernels_best(gw_cpu_features())};
}

/* Carries no payload: what that does is the model's and the server's business. */
static void bench_open_trains(struct bench *b, uint32_t fragments, const struct gw_worker_cfg *cfg,
                              uint32_t train)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(1, 4 * VALUES);
    host.train = train;
    b->is_ready = false;
    gw_test_pool_open(&b->pool, NULL, PKTS, 0);
    host.hdr = 58;
    host.pool = &b->pool;
    host.apps_max = host.app_events_max = 1;
    b->endpoint = gw_endpoint_init(gw_test_take(gw_endpoint_size(&host)), &host);
    b->node = gw_endpoint_node(b->endpoint);
    b->memory = gw_test_take(gw_worker_size(cfg));
    assert_int_equal(gw_worker_init(&b->worker, b->memory, cfg, b->endpoint), 0);
    struct gw_tensor tensor = {.count = (uint64_t)fragments * VALUES, .tag = 5};
    assert_int_equal(gw_worker_reduce(b->worker, &tensor, 0), 0);
}

static void bench_open_with(struct bench *b, uint32_t fragments, const struct gw_worker_cfg *cfg)
{
    bench_open_trains(b, fragments, cfg, 1);
}

static void bench_open(struct bench *b, uint32_t fragments, gw_time stall)
{
    struct gw_worker_cfg cfg = worker_cfg(stall);
    bench_open_with(b, fragments, &cfg);
}

static void bench_close(struct bench *b)
{
    gw_worker_fini(b->worker);
    gw_test_pool_close(&b->pool);
    free(b->memory);
    free(b->endpoint);
}

/* Lets all leave; returns how many, the last of them in *last. */
static uint32_t drain(struct bench *b, struct gw_pkt *last, gw_time now)
{
    uint32_t count = 0, result;
    struct gw_pkt *pkt;
    b->node->ready_count = 0;
    do {
        result = gw_node_output(b->node, 0, &pkt, 1, now);
        if (result & ~GW_OUTPUT_MORE) {
            *last = *pkt;
            gw_pkt_release(&b->pool, pkt);
            count++;
        }
        assert_in_range(count, 0, WINDOW);
    } while (result & GW_OUTPUT_MORE);
    return count;
}

static struct gw_pkt *result_of(struct bench *b, uint32_t fragment, uint8_t flags)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
    *pkt = (struct gw_pkt){.q = {.kind = GW_PKT_PARAM},
                           .src = SERVER,
                           .dst = 1,
                           .flow = JOB,
                           .key = gw_agg_key(first_seq, GW_DTYPE_F32, false),
                           .epoch = EPOCH,
                           .agg_flags = flags,
                           .seq = first_seq + fragment,
                           .buf = GW_BUF_NONE,
                           .agg = {.values = VALUES}};
    return pkt;
}

static void input(struct bench *b, struct gw_pkt *pkt, gw_time now)
{
    gw_node_input(b->node, 0, &pkt, 1, now);
}

static void result(struct bench *b, uint32_t fragment, uint8_t flags)
{
    input(b, result_of(b, fragment, flags), 0);
}

static void worker__sends_a_window_of_packets_that_name_it(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, FRAGMENTS, 0);
    assert_int_equal(drain(&b, &last, 0), INITIAL);
    assert_int_equal(last.seq, first_seq + INITIAL - 1);
    assert_int_equal(last.dst, SERVER);
    assert_int_equal(last.flow, JOB);
    assert_int_equal(last.epoch, EPOCH);
    assert_int_equal(last.q.size, 306);
    assert_int_equal(last.q.ecn, GW_ECN_ECT0);
    assert_int_equal(last.agg.bitmap, 2);
    assert_int_equal(last.agg.above[0], 3);
    assert_int_equal(last.agg.above[1], 1);
    assert_int_equal(last.agg_flags, GW_AGG_EVEN);
    assert_int_equal(drain(&b, &last, 0), 0);
    bench_close(&b);
}

/* ATP section 3.7: 1500 bytes per result in slow start, then per window; a cut halves. */
static void worker__window_follows_the_marks(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    uint32_t fragment = 0;
    bench_open(&b, FRAGMENTS, 0);
    drain(&b, &last, 0);
    result(&b, fragment++, 0);
    assert_true(gw_worker_window(b.worker) == (uint64_t)(INITIAL + 5) << 16);
    while (gw_worker_window(b.worker) < (uint64_t)WINDOW << 16) {
        drain(&b, &last, 0);
        result(&b, fragment++, 0);
    }
    drain(&b, &last, 0);
    uint32_t next = last.seq + 1;
    result(&b, fragment++, GW_AGG_ECN);
    assert_true(gw_worker_window(b.worker) == (uint64_t)WINDOW / 2 << 16);
    while (gw_worker_expected(b.worker) != next) {
        result(&b, fragment++, GW_AGG_ECN); /* of the same window */
        assert_true(gw_worker_window(b.worker) == (uint64_t)WINDOW / 2 << 16 ||
                    gw_worker_expected(b.worker) == next);
        drain(&b, &last, 0);
    }
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
    for (uint64_t window = gw_worker_window(b.worker), i = 0; i < WINDOW / 2; i++) {
        drain(&b, &last, 0);
        result(&b, fragment++, 0);
        /* A window's worth of results: 5 packets, a little less as the window grows. */
        if (i == WINDOW / 2 - 1)
            assert_in_range(gw_worker_window(b.worker) - window, 4 << 16, 5 << 16);
    }
    bench_close(&b);
}

static void worker__the_window_never_falls_below_one(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, FRAGMENTS, 0);
    for (uint32_t i = 0; i < FRAGMENTS / 2; i++) {
        assert_true(drain(&b, &last, 0) > 0 || last.seq - first_seq >= i);
        result(&b, i, GW_AGG_ECN);
        assert_true(gw_worker_window(b.worker) >= GW_Q16_ONE);
    }
    assert_true(gw_worker_window(b.worker) == GW_Q16_ONE);
    bench_close(&b);
}

static void worker__the_window_never_falls_below_its_floor(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.window_min = 6;
    bench_open_with(&b, FRAGMENTS, &cfg);
    for (uint32_t i = 0; i < FRAGMENTS / 2; i++) {
        drain(&b, &last, 0);
        result(&b, i, GW_AGG_ECN);
        assert_true(gw_worker_window(b.worker) >= 6 << 16);
    }
    assert_true(gw_worker_window(b.worker) == 6 << 16);
    bench_close(&b);
}

static void worker__three_overtaking_results_mean_a_loss(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, INITIAL, 0);
    drain(&b, &last, 0);
    result(&b, 1, 0);
    result(&b, 2, 0);
    result(&b, 2, 0); /* known */
    assert_int_equal(drain(&b, &last, 0), 0);
    result(&b, 3, 0);
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_int_equal(last.seq, first_seq);
    assert_int_equal(last.agg_flags,
                     GW_AGG_EVEN | GW_AGG_RESEND | GW_AGG_ECN); /* tells the others */
    for (uint32_t i = 4; i < INITIAL; i++)
        result(&b, i, 0);
    assert_int_equal(drain(&b, &last, 0), 0); /* once */
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 0);
    result(&b, 0, GW_AGG_ECN);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(b.endpoint, &event, 1), 1);
    assert_int_equal(event.kind, GW_EVENT_REDUCED);
    assert_int_equal(event.tag, 5);
    assert_int_equal(gw_worker_stats(b.worker)->duplicates, 1);
    bench_close(&b);
}

static void worker__silence_sends_the_expected_one_again(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, INITIAL, 8 * TIMEOUT);
    drain(&b, &last, 0);
    gw_time at = 0;
    for (uint32_t i = 0; i < 3; i++) { /* after 1, 2, 4 times the timeout */
        at += TIMEOUT << i;
        assert_true(gw_node_deadline(b.node) == at);
        gw_node_expire(b.node, at);
        assert_int_equal(drain(&b, &last, at), 1);
        assert_int_equal(last.seq, first_seq);
        assert_int_equal(last.agg_flags, GW_AGG_EVEN | GW_AGG_RESEND | GW_AGG_ECN);
    }
    assert_true(gw_node_deadline(b.node) == 8 * TIMEOUT); /* not after the stall */
    gw_node_expire(b.node, 8 * TIMEOUT);
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(b.endpoint, &event, 1), 1);
    assert_int_equal(event.kind, GW_EVENT_FAILED);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    assert_int_equal(drain(&b, &last, 8 * TIMEOUT), 0);
    bench_close(&b);
}

/* A result ends the doubling at once, also of the wait that has begun. */
static void worker__after_a_result_the_timeout_is_short_again(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, INITIAL, 0);
    drain(&b, &last, 0);
    gw_node_expire(b.node, TIMEOUT);
    gw_node_expire(b.node, 3 * TIMEOUT);
    assert_true(gw_node_deadline(b.node) == 7 * TIMEOUT);
    drain(&b, &last, 3 * TIMEOUT);
    input(&b, result_of(&b, 0, 0), 3 * TIMEOUT + 1);
    assert_true(gw_node_deadline(b.node) == 4 * TIMEOUT + 1);
    gw_node_expire(b.node, 4 * TIMEOUT + 1);
    drain(&b, &last, 4 * TIMEOUT + 1);
    assert_true(gw_worker_stats(b.worker)->resent > 2);
    bench_close(&b);
}

static void worker__a_request_is_met_raw(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, INITIAL, 0);
    drain(&b, &last, 0);
    result(&b, 7, GW_AGG_REQUEST | GW_AGG_RAW);
    result(&b, 7, GW_AGG_REQUEST | GW_AGG_RAW); /* waits already */
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_int_equal(last.seq, first_seq + 7);
    assert_int_equal(last.agg_flags, GW_AGG_EVEN | GW_AGG_RAW | GW_AGG_RESEND);
    bench_close(&b);
}

/* A server that has restarted asks for a fragment whose result this worker gives back: then it
 * lacks that still. */
static void worker__a_request_confirms_no_result_that_is_owed(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.keeps_results = true;
    bench_open_with(&b, 1, &cfg);
    drain(&b, &last, 0);
    result(&b, 0, 0);
    const struct gw_worker_place place = {
        .epoch = EPOCH, .bitmap = 2, .above = {3, 1}, .first_seq = first_seq};
    gw_worker_place(b.worker, &place, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(gw_worker_owes(b.worker));
        assert_int_equal(drain(&b, &last, 0), 1);
        assert_true(last.agg_flags & GW_AGG_FINAL);
        result(&b, 0, GW_AGG_REQUEST | GW_AGG_RAW);
        gw_node_expire(b.node, gw_node_deadline(b.node));
    }
    result(&b, 0, 0);
    assert_false(gw_worker_owes(b.worker));
    bench_close(&b);
}

/* To a server that has restarted goes what somebody may lack: a window, not all that there was. */
static void worker__keeps_no_more_than_can_be_lacking(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last, *pkt;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.keeps_results = true;
    bench_open_with(&b, 2 * WINDOW, &cfg);
    for (uint32_t i = 0; i < 2 * WINDOW - 1; i++) {
        drain(&b, &last, 0);
        result(&b, i, 0);
    }
    drain(&b, &last, 0);
    const struct gw_worker_place place = {
        .epoch = EPOCH, .bitmap = 2, .above = {3, 1}, .first_seq = first_seq};
    gw_worker_place(b.worker, &place, 0);
    for (uint32_t i = 0; i <= WINDOW; i++) {
        assert_int_equal(gw_node_output(b.node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
        assert_int_equal(pkt->seq, first_seq + 2 * WINDOW - 2 - WINDOW + i);
        assert_true(pkt->agg_flags & GW_AGG_FINAL);
        gw_pkt_release(&b.pool, pkt);
    }
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_false(last.agg_flags & GW_AGG_FINAL);
    bench_close(&b);
}

/* The server asks for what a collision left behind: that is no loss, and the window stays. */
static void worker__what_collided_is_sent_again_by_those_who_are_asked(void **state)
{
    (void)state;
    static const uint32_t others = ~2u, mine = 2;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, INITIAL, 0);
    drain(&b, &last, 0);
    struct gw_pkt *request = result_of(&b, 0, GW_AGG_REQUEST);
    request->agg.values = 0;
    request->agg.bitmap = others;
    input(&b, request, 0);
    for (uint32_t i = 1; i < 8; i++)
        result(&b, i, 0);
    assert_int_equal(drain(&b, &last, 0), 0);
    request = result_of(&b, 0, GW_AGG_REQUEST);
    request->agg.values = 0;
    request->agg.bitmap = mine;
    input(&b, request, 0);
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_int_equal(last.seq, first_seq);
    assert_int_equal(last.agg_flags, GW_AGG_EVEN | GW_AGG_RESEND);
    result(&b, 0, GW_AGG_COLLISION);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 0);
    assert_int_equal(gw_worker_expected(b.worker), first_seq + 8);
    /* Another one that is overtaken is lost. */
    for (uint32_t i = 9; i < 12; i++)
        result(&b, i, 0);
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_int_equal(last.seq, first_seq + 8);
    result(&b, 8, last.agg_flags & GW_AGG_ECN);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
    bench_close(&b);
}

/* Lets `count` leave; the last of them in *last. */
static void send_some(struct bench *b, uint32_t count, struct gw_pkt *last)
{
    struct gw_pkt *pkt;
    b->node->ready_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(gw_node_output(b->node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
        *last = *pkt;
        gw_pkt_release(&b->pool, pkt);
    }
}

/* Three results of what left after a resend overtake it, too; results of what left before do not.
 */
static void worker__a_resend_is_lost_when_later_ones_overtake_it(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.window_initial = 2 * INITIAL; /* half of it is enough here */
    bench_open_with(&b, FRAGMENTS, &cfg);
    send_some(&b, 5, &last);
    for (uint32_t i = 1; i < 4; i++)
        result(&b, i, 0);
    send_some(&b, 1, &last);
    assert_int_equal(last.seq, first_seq);
    send_some(&b, 3, &last); /* 5, 6 and 7 */
    for (uint32_t i = 4; i < 7; i++)
        result(&b, i, 0);
    assert_int_equal(gw_worker_stats(b.worker)->resent, 1);
    send_some(&b, 1, &last);
    assert_int_equal(last.seq, first_seq + 8);
    result(&b, 7, 0);
    send_some(&b, 1, &last);
    assert_int_equal(last.seq, first_seq);
    assert_int_equal(last.agg_flags, GW_AGG_EVEN | GW_AGG_RESEND | GW_AGG_ECN);
    assert_int_equal(gw_worker_stats(b.worker)->resent, 2);
    bench_close(&b);
}

/* A result that met congestion on its way here: nobody else knows. */
static void met(struct bench *b, uint32_t fragment)
{
    struct gw_pkt *pkt = result_of(b, fragment, 0);
    pkt->q.ecn = GW_ECN_CE;
    input(b, pkt, 0);
}

static void worker__a_mark_on_the_way_down_goes_up_with_the_next_gradient(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, FRAGMENTS, 0);
    send_some(&b, INITIAL, &last);
    met(&b, 0);
    assert_true(gw_worker_window(b.worker) > (uint64_t)INITIAL << 16); /* not cut alone */
    send_some(&b, 1, &last);
    assert_int_equal(last.agg_flags, GW_AGG_EVEN | GW_AGG_ECN);
    uint32_t says = last.seq - first_seq;
    send_some(&b, 1, &last);
    assert_int_equal(last.agg_flags, GW_AGG_EVEN); /* once per mark */
    for (uint32_t i = 1; i < says; i++)
        result(&b, i, 0);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 0);
    result(&b, says, GW_AGG_ECN);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
    uint64_t window = gw_worker_window(b.worker);
    /* What had been sent by then is of the same window, whatever its results meet. */
    uint32_t sent = last.seq - first_seq + 1;
    met(&b, says + 1);
    result(&b, says + 2, GW_AGG_ECN);
    for (uint32_t i = says + 3; i < sent; i++)
        result(&b, i, 0);
    assert_true(gw_worker_window(b.worker) > window);
    send_some(&b, 2, &last);
    assert_int_equal(last.agg_flags, GW_AGG_ODD); /* after one cut, and without a word of a mark */
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
    /* Some worker had sent this one before its cut. */
    result(&b, sent, GW_AGG_ECN | GW_AGG_MIXED);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
    result(&b, sent + 1, GW_AGG_ECN);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 2);
    bench_close(&b);
}

/* The server had the result all the time, and answers with it: this worker lost its copy, and that
 * is congestion. A result for all that says nothing of the loss had the fragment all the time. */
static void worker__the_loss_of_a_copy_goes_up_with_the_next_gradient(void **state)
{
    (void)state;
    for (uint32_t is_answer = 0; is_answer < 2; is_answer++) {
        struct bench b;
        struct gw_pkt last;
        bench_open(&b, FRAGMENTS, 0);
        send_some(&b, INITIAL, &last);
        for (uint32_t i = 1; i < 4; i++)
            result(&b, i, 0);
        send_some(&b, 1, &last);
        assert_int_equal(last.agg_flags, GW_AGG_EVEN | GW_AGG_RESEND | GW_AGG_ECN);
        result(&b, 0, is_answer ? GW_AGG_UNICAST : 0);
        assert_int_equal(gw_worker_stats(b.worker)->cuts, 0);
        send_some(&b, 1, &last);
        assert_int_equal(last.seq, first_seq + INITIAL);
        assert_int_equal(last.agg_flags, GW_AGG_EVEN | (is_answer ? GW_AGG_ECN : 0));
        bench_close(&b);
    }
}

/* Results in any order: at the same expected fragment the window is the same. */
static void worker__the_window_is_that_of_the_expected_fragment(void **state)
{
    (void)state;
    enum { RESULTS = INITIAL };
    uint64_t windows[2];
    for (uint32_t backwards = 0; backwards < 2; backwards++) {
        struct bench b;
        struct gw_pkt last;
        bench_open(&b, FRAGMENTS, 0);
        drain(&b, &last, 0);
        for (uint32_t i = 0; i < RESULTS; i++) {
            uint32_t fragment = backwards ? RESULTS - 1 - i : i;
            result(&b, fragment, fragment % 5 == 3 ? GW_AGG_ECN : 0);
        }
        assert_int_equal(gw_worker_expected(b.worker), first_seq + RESULTS);
        assert_int_equal(gw_worker_stats(b.worker)->cuts, 1);
        windows[backwards] = gw_worker_window(b.worker);
        bench_close(&b);
    }
    assert_true(windows[0] == windows[1]);
}

/* As published: marks and losses halve this worker's window, at once, and nobody is told. */
static void worker__alone_it_halves_at_once(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.halving = GW_AGG_HALVE_ALONE;
    bench_open_with(&b, FRAGMENTS, &cfg);
    drain(&b, &last, 0);
    met(&b, 0);
    assert_true(gw_worker_window(b.worker) == (uint64_t)INITIAL / 2 << 16);
    for (uint32_t i = 1; i < INITIAL; i++)
        result(&b, i, 0);
    send_some(&b, 1, &last);
    assert_int_equal(last.agg_flags, 0);
    uint64_t window = gw_worker_window(b.worker);
    drain(&b, &last, 0);
    for (uint32_t i = 1; i < 4; i++)
        result(&b, INITIAL + i, 0);
    assert_int_equal(gw_worker_stats(b.worker)->cuts, 2);
    assert_in_range(gw_worker_window(b.worker), window / 2, window / 2 + (1 << 16));
    send_some(&b, 1, &last);
    assert_int_equal(last.agg_flags, GW_AGG_RESEND);
    bench_close(&b);
}

/* What has its result makes room, though the expected one has none. */
static void worker__unacknowledged_ones_are_what_is_limited(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.congestion_control = false;
    cfg.window_max = WINDOW - 10;
    bench_open_with(&b, FRAGMENTS, &cfg);
    assert_int_equal(drain(&b, &last, 0), INITIAL);
    for (uint32_t i = 1; last.seq - first_seq < WINDOW - 1; i++) {
        result(&b, i, 0);
        drain(&b, &last, 0);
    }
    result(&b, INITIAL + 1, 0);
    assert_int_equal(last.seq, first_seq + WINDOW - 1); /* as many as have a position */
    bench_close(&b);
}

/* As published: three in a row, and again three in a row. */
static void worker__three_in_a_row_mean_a_loss_again_and_again(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    cfg.overtaking = GW_AGG_OVERTAKEN_IN_A_ROW;
    bench_open_with(&b, INITIAL, &cfg);
    drain(&b, &last, 0);
    result(&b, 2, 0);
    result(&b, 3, 0);
    result(&b, 0, 0); /* the expected one: they are no row */
    result(&b, 4, 0);
    result(&b, 5, 0);
    assert_int_equal(drain(&b, &last, 0), 0);
    result(&b, 6, 0);
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_int_equal(last.seq, first_seq + 1);
    for (uint32_t i = 7; i < 10; i++)
        result(&b, i, 0);
    assert_int_equal(drain(&b, &last, 0), 1);
    assert_int_equal(gw_worker_stats(b.worker)->resent, 2);
    bench_close(&b);
}

static void worker__what_is_not_its_own_is_stale(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, FRAGMENTS, 0);
    drain(&b, &last, 0);
    struct gw_pkt *epoch = result_of(&b, 0, 0), *key = result_of(&b, 0, 0);
    struct gw_pkt *shorter = result_of(&b, 0, 0), *failed = result_of(&b, 0, GW_AGG_FAILED);
    struct gw_pkt *strange = result_of(&b, 0, 0);
    strange->src = SERVER + 1;
    epoch->epoch--;
    key->key++;
    shorter->agg.values--;
    failed->key++;
    input(&b, epoch, 0);
    input(&b, key, 0);
    input(&b, shorter, 0);
    input(&b, failed, 0);
    input(&b, strange, 0);
    result(&b, INITIAL, 0); /* never sent */
    result(&b, UINT32_MAX, 0);
    assert_int_equal(gw_worker_stats(b.worker)->stale, 5);
    assert_int_equal(gw_worker_stats(b.worker)->duplicates, 2);
    assert_int_equal(gw_worker_stats(b.worker)->results, 0);
    assert_int_equal(gw_worker_expected(b.worker), first_seq);
    bench_close(&b);
}

static void worker__follows_the_news_of_a_position(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt last;
    bench_open(&b, FRAGMENTS, 0);
    drain(&b, &last, 0);
    struct gw_pkt *moved = result_of(&b, 0, GW_AGG_COLLISION);
    uint16_t to = last.index; /* another position still has it: its news is on the way */
    moved->agg.bitmap = to;
    input(&b, moved, 0);
    for (uint32_t i = 1; last.seq != first_seq + WINDOW; i++) {
        b.node->ready_count = 0;
        while (last.seq != first_seq + WINDOW) {
            struct gw_pkt *pkt;
            if (!(gw_node_output(b.node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE))
                break;
            last = *pkt;
            gw_pkt_release(&b.pool, pkt);
        }
        result(&b, i, 0);
    }
    assert_int_equal(last.index, to);
    assert_int_equal(gw_worker_stats(b.worker)->remaps, 1);
    bench_close(&b);
}

/* The next train that leaves, of which the last packet is *last; 0: none does. */
static uint32_t next_train(struct bench *b, struct gw_pkt *last)
{
    struct gw_pkt *pkts[WINDOW];
    if (!b->node->ready_count && !b->is_ready)
        return 0;
    b->node->ready_count = 0;
    uint32_t count = gw_node_output(b->node, 0, pkts, WINDOW, 0);
    b->is_ready = count & GW_OUTPUT_MORE;
    count &= ~GW_OUTPUT_MORE;
    for (uint32_t i = 0; i < count; i++) {
        *last = *pkts[i];
        gw_pkt_release(&b->pool, pkts[i]);
    }
    return count;
}

/* Trains are not begun before there is room for all of them, while others are under way. */
static void worker__trains_stay_whole(void **state)
{
    (void)state;
    enum { TRAIN = 8 };
    struct bench b;
    struct gw_pkt last;
    struct gw_worker_cfg cfg = worker_cfg(0);
    uint32_t sent = 0, results = 0;
    cfg.congestion_control = false;
    cfg.window_initial = WINDOW;
    bench_open_trains(&b, FRAGMENTS - 3, &cfg, TRAIN);
    for (uint32_t count; (count = next_train(&b, &last)) > 0; sent += count)
        assert_int_equal(count, TRAIN);
    assert_int_equal(sent, WINDOW);
    while (sent + TRAIN <= FRAGMENTS - 3) { /* which the last train has */
        result(&b, results++, 0);
        uint32_t count = next_train(&b, &last);
        assert_int_equal(count, sent + TRAIN <= results + WINDOW ? TRAIN : 0);
        sent += count;
    }
    while (sent < FRAGMENTS - 3) {
        result(&b, results++, 0);
        sent += next_train(&b, &last);
    }
    assert_int_equal(last.seq + 1, first_seq + FRAGMENTS - 3);
    /* After a time without work the next tensor begins a train. */
    while (results < FRAGMENTS - 3)
        result(&b, results++, 0);
    struct gw_event event;
    const struct gw_tensor next = {.count = 2 * TRAIN * VALUES};
    assert_int_equal(gw_endpoint_poll(b.endpoint, &event, 1), 1);
    assert_int_equal(gw_worker_reduce(b.worker, &next, 0), 0);
    assert_int_equal(next_train(&b, &last), TRAIN);
    assert_int_equal(next_train(&b, &last), TRAIN);
    bench_close(&b);
    /* Where the window holds no more than a few, nothing waits. */
    cfg.window_initial = cfg.window_max = 2 * TRAIN;
    bench_open_trains(&b, FRAGMENTS, &cfg, TRAIN);
    assert_int_equal(drain(&b, &last, 0), 2 * TRAIN);
    for (uint32_t i = 0; i < 2 * TRAIN; i++) {
        result(&b, i, 0);
        assert_int_equal(next_train(&b, &last), 1);
    }
    bench_close(&b);
}

static void worker_reduce__refuses_what_cannot_be(void **state)
{
    (void)state;
    struct bench b;
    float value = 0;
    struct gw_event event;
    bench_open(&b, 1, 0);
    struct gw_tensor none = {.count = 0}, huge = {.count = UINT64_MAX}, one = {.count = 1};
    struct gw_tensor payload = {.count = 1, .in = &value, .out = &value};
    struct gw_tensor wide = {.count = 1, .type = GW_DTYPE_F64};
    struct gw_tensor least = {.count = 1, .op = GW_OP_MIN};
    assert_int_equal(gw_worker_reduce(b.worker, &none, 0), GW_ERR_INVALID);
    assert_int_equal(gw_worker_reduce(b.worker, &wide, 0), GW_ERR_INVALID);
    assert_int_equal(gw_worker_reduce(b.worker, &least, 0), GW_ERR_INVALID);
    assert_int_equal(gw_worker_reduce(b.worker, &huge, 0), GW_ERR_INVALID);
    assert_int_equal(gw_worker_reduce(b.worker, &payload, 0), GW_ERR_INVALID);
    assert_int_equal(gw_worker_reduce(b.worker, &one, 0), GW_ERR_NO_ROOM);
    struct gw_pkt last;
    drain(&b, &last, 0);
    result(&b, 0, 0);
    assert_int_equal(gw_endpoint_poll(b.endpoint, &event, 1), 1);
    assert_int_equal(gw_worker_reduce(b.worker, &one, 0), 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker__sends_a_window_of_packets_that_name_it),
        cmocka_unit_test(worker__window_follows_the_marks),
        cmocka_unit_test(worker__the_window_never_falls_below_one),
        cmocka_unit_test(worker__the_window_never_falls_below_its_floor),
        cmocka_unit_test(worker__three_overtaking_results_mean_a_loss),
        cmocka_unit_test(worker__silence_sends_the_expected_one_again),
        cmocka_unit_test(worker__after_a_result_the_timeout_is_short_again),
        cmocka_unit_test(worker__a_request_is_met_raw),
        cmocka_unit_test(worker__a_request_confirms_no_result_that_is_owed),
        cmocka_unit_test(worker__keeps_no_more_than_can_be_lacking),
        cmocka_unit_test(worker__what_collided_is_sent_again_by_those_who_are_asked),
        cmocka_unit_test(worker__a_resend_is_lost_when_later_ones_overtake_it),
        cmocka_unit_test(worker__a_mark_on_the_way_down_goes_up_with_the_next_gradient),
        cmocka_unit_test(worker__the_loss_of_a_copy_goes_up_with_the_next_gradient),
        cmocka_unit_test(worker__the_window_is_that_of_the_expected_fragment),
        cmocka_unit_test(worker__alone_it_halves_at_once),
        cmocka_unit_test(worker__unacknowledged_ones_are_what_is_limited),
        cmocka_unit_test(worker__three_in_a_row_mean_a_loss_again_and_again),
        cmocka_unit_test(worker__what_is_not_its_own_is_stale),
        cmocka_unit_test(worker__follows_the_news_of_a_position),
        cmocka_unit_test(worker__trains_stay_whole),
        cmocka_unit_test(worker_reduce__refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
