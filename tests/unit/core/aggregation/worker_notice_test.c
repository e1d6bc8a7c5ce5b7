/* Bursts of workers: when a tensor is announced, what waits for that, and what calls it off. */
#include "host.h"
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "core/aggregation/slot_worker.h"
#include "core/aggregation/worker.h"
#include "core/job.h"

enum {
    OURS = 1,
    JOB = 4,
    SERVER = 9,
    VALUES = 16,
    WINDOW = 4,
    UNITS = 6,
    PKTS = 64,
    TENSORS_MAX = 4,
    FIRST_SEQ = 100,
};

#define RTT     (20 * GW_US)
#define TIMEOUT GW_MS

static const struct gw_notice_terms terms = {.job = JOB, .units = UNITS, .rtt = RTT};

struct bench {
    struct gw_pkt_pool pool;
    struct gw_endpoint *endpoint;
    struct gw_node *node;
    struct gw_worker *worker;
    struct gw_slot_worker *slots;
    void *memory;
    struct gw_pkt sent[PKTS]; /* by the last drain() */
    gw_time now;
};

static void bench_open_endpoint(struct bench *b)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(OURS, 4 * VALUES);
    *b = (struct bench){.now = (gw_time)0 - 5 * RTT / 2}; /* the clock wraps soon */
    gw_test_pool_open(&b->pool, NULL, PKTS, 0);
    host.pool = &b->pool;
    host.apps_max = host.announcers_max = 1;
    host.app_events_max = TENSORS_MAX;
    b->endpoint = gw_endpoint_init(gw_test_take(gw_endpoint_size(&host)), &host);
    b->node = gw_endpoint_node(b->endpoint);
}

static void bench_open(struct bench *b, const struct gw_notice_terms *notice, uint32_t server)
{
    struct gw_worker_cfg cfg = {.job = JOB,
                                .epoch = 1,
                                .world = 2,
                                .server = server,
                                .bitmap = 1,
                                .class = 3,
                                .values = VALUES,
                                .window_max = WINDOW,
                                .window_initial = WINDOW,
                                .aggregators = 64,
                                .tensors_max = TENSORS_MAX,
                                .timeout = TIMEOUT,
                                .congestion_control = true,
                                .keeps_results = true,
                                .first_seq = FIRST_SEQ,
                                .notice = *notice,
                                .kernels = gw_kernels_best(gw_cpu_features())};
    bench_open_endpoint(b);
    b->memory = gw_test_take(gw_worker_size(&cfg));
    assert_int_equal(gw_worker_init(&b->worker, b->memory, &cfg, b->endpoint), 0);
}

static void bench_open_slots(struct bench *b, uint32_t peer)
{
    struct gw_slot_worker_cfg cfg = {.job = JOB,
                                     .world = 2,
                                     .class = 3,
                                     .peer = peer,
                                     .slots = WINDOW,
                                     .values = VALUES,
                                     .tensors_max = TENSORS_MAX,
                                     .timeout = TIMEOUT,
                                     .first_seq = FIRST_SEQ,
                                     .notice = terms,
                                     .kernels = gw_kernels_best(gw_cpu_features())};
    bench_open_endpoint(b);
    b->memory = gw_test_take(gw_slot_worker_size(&cfg));
    assert_int_equal(gw_slot_worker_init(&b->slots, b->memory, &cfg, b->endpoint), 0);
}

static void bench_close(struct bench *b)
{
    if (b->worker)
        gw_worker_fini(b->worker);
    else
        gw_slot_worker_fini(b->slots);
    assert_true(gw_node_deadline(b->node) == GW_TIME_NEVER);
    gw_test_pool_close(&b->pool);
    free(b->memory);
    free(b->endpoint);
}

static void reduce(struct bench *b, uint32_t fragments)
{
    struct gw_tensor tensor = {.count = (uint64_t)fragments * VALUES};
    assert_int_equal(b->worker ? gw_worker_reduce(b->worker, &tensor, b->now)
                               : gw_slot_worker_reduce(b->slots, &tensor, b->now),
                     0);
}

/* Lets all leave; returns how many. */
static uint32_t drain(struct bench *b)
{
    uint32_t count = 0, result;
    struct gw_pkt *pkt;
    b->node->ready_count = 0;
    do {
        result = gw_node_output(b->node, 0, &pkt, 1, b->now);
        if (result & ~GW_OUTPUT_MORE) {
            assert_in_range(count, 0, PKTS - 1);
            b->sent[count++] = *pkt;
            gw_pkt_release(&b->pool, pkt);
        }
    } while (result & GW_OUTPUT_MORE);
    return count;
}

static void input(struct bench *b, const struct gw_pkt *copy)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(b->node, 0, &pkt, 1, b->now);
}

/* The notice leaves and nothing else; returns it. */
static struct gw_pkt expect_notice(struct bench *b)
{
    assert_int_equal(drain(b), 1);
    assert_int_equal(b->sent[0].q.kind, GW_PKT_NOTICE);
    return b->sent[0];
}

static void reply(struct bench *b, const struct gw_pkt *notice)
{
    struct gw_pkt answer = *notice;
    answer.q.class = GW_CLASS_CONTROL;
    answer.src = notice->dst;
    answer.dst = OURS;
    answer.notice.is_answer = true;
    input(b, &answer);
}

/* Gradients leave, `count` of them from fragment `first` on, the first as a head or not. */
static void expect_gradients(struct bench *b, uint32_t first, uint32_t count, bool has_head)
{
    assert_int_equal(drain(b), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(b->sent[i].q.kind, GW_PKT_GRAD);
        assert_int_equal(b->sent[i].seq, FIRST_SEQ + first + i);
        assert_int_equal(b->sent[i].q.flags, has_head && i == 0 ? GW_PKT_HEAD : 0);
    }
}

/* The results of all that has just left. */
static void finish(struct bench *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt result = b->sent[i];
        result.q.kind = GW_PKT_PARAM;
        result.src = SERVER;
        result.dst = OURS;
        result.agg_flags &= GW_AGG_SLOT;
        input(b, &result);
    }
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(b->endpoint, &event, 1), 1);
    assert_int_equal(event.kind, GW_EVENT_REDUCED);
}

static void worker__announces_a_tensor_after_an_idle_time(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, SERVER);
    reduce(&b, WINDOW);
    struct gw_pkt notice = expect_notice(&b);
    assert_int_equal(notice.dst, SERVER);
    assert_int_equal(notice.flow, JOB);
    assert_int_equal(notice.notice.job, JOB);
    assert_int_equal(notice.notice.units, UNITS);
    assert_int_equal(notice.q.class, 3);
    assert_int_equal(notice.q.key, gw_flow_key(OURS, SERVER, JOB));
    b.now += 8 * GW_US;
    reply(&b, &notice);
    expect_gradients(&b, 0, WINDOW, true);
    assert_int_equal(b.sent[0].entropy, notice.entropy);
    assert_int_equal(b.sent[0].q.key, notice.q.key);
    finish(&b, WINDOW);
    b.now += 8 * GW_US; /* a round trip: no more than that */
    reduce(&b, WINDOW);
    expect_gradients(&b, WINDOW, WINDOW, false);
    finish(&b, WINDOW);
    b.now += 8 * GW_US + 1;
    reduce(&b, WINDOW);
    notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 2 * WINDOW, WINDOW, true);
    finish(&b, WINDOW);
    bench_close(&b);
}

static void worker__waits_no_longer_than_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t given = 0; given < 2; given++) { /* the round trip, or not: then the timeout */
        struct gw_notice_terms notice = terms;
        struct bench b;
        gw_time rtt = given ? RTT : TIMEOUT;
        notice.rtt = given ? RTT : 0;
        bench_open(&b, &notice, SERVER);
        gw_time begin = b.now;
        reduce(&b, 1);
        expect_notice(&b);
        b.now = gw_node_deadline(b.node);
        assert_int_equal(b.now - begin, rtt);
        gw_node_expire(b.node, b.now);
        expect_notice(&b);
        b.now = gw_node_deadline(b.node);
        assert_int_equal(b.now - begin, 2 * rtt);
        gw_node_expire(b.node, b.now);
        expect_gradients(&b, 0, 1, true);
        finish(&b, 1);
        bench_close(&b);
    }
}

static void worker__head_is_one_when_it_is_resent(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, SERVER);
    reduce(&b, 2);
    struct gw_pkt notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 0, 2, true);
    b.now += TIMEOUT;
    gw_node_expire(b.node, b.now);
    expect_gradients(&b, 0, 1, true);
    bench_close(&b);
}

static void worker__tensors_meanwhile_wait_with_the_first(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, SERVER);
    reduce(&b, 1);
    struct gw_pkt notice = expect_notice(&b);
    reduce(&b, 2);
    assert_int_equal(drain(&b), 0);
    reply(&b, &notice);
    expect_gradients(&b, 0, 3, true);
    reduce(&b, 1);
    expect_gradients(&b, 3, 1, false);
    bench_close(&b);
}

/* An epoch ends while the burst waits: the next one announces it again. */
static void worker__pause_calls_the_burst_off(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, SERVER);
    reduce(&b, 2);
    struct gw_pkt notice = expect_notice(&b);
    gw_worker_pause(b.worker);
    reply(&b, &notice);
    assert_int_equal(drain(&b), 0);
    reduce(&b, 1); /* between two epochs */
    assert_int_equal(drain(&b), 0);
    struct gw_worker_place place = {.epoch = 2, .bitmap = 2, .first_seq = FIRST_SEQ};
    gw_worker_place(b.worker, &place, b.now);
    notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 0, 3, true);
    /* And one that has left: what is sent again is a burst of its own. */
    gw_worker_pause(b.worker);
    place.epoch = 3;
    gw_worker_place(b.worker, &place, b.now);
    notice = expect_notice(&b);
    /* Another place before that is answered. */
    place.epoch = 4;
    gw_worker_place(b.worker, &place, b.now);
    assert_int_equal(drain(&b), 1);
    assert_int_equal(b.sent[0].seq, notice.seq + 1);
    reply(&b, &b.sent[0]);
    expect_gradients(&b, 0, 3, true);
    assert_int_equal(b.sent[0].epoch, 4);
    bench_close(&b);
}

static void worker__announces_nothing_between_two_epochs(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, SERVER);
    gw_worker_pause(b.worker);
    reduce(&b, 2);
    assert_int_equal(drain(&b), 0);
    struct gw_worker_place place = {.epoch = 2, .bitmap = 1, .first_seq = FIRST_SEQ};
    gw_worker_place(b.worker, &place, b.now);
    struct gw_pkt notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 0, 2, true);
    bench_close(&b);
}

static void worker__failure_calls_the_burst_off(void **state)
{
    (void)state;
    struct bench b;
    struct gw_event event;
    bench_open(&b, &terms, SERVER);
    reduce(&b, 2);
    struct gw_pkt notice = expect_notice(&b);
    gw_worker_fail(b.worker, GW_JOB_STALLED, 0, b.now);
    assert_int_equal(gw_endpoint_poll(b.endpoint, &event, 1), 1);
    assert_int_equal(event.kind, GW_EVENT_FAILED);
    reply(&b, &notice);
    assert_int_equal(drain(&b), 0);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    struct gw_worker_place place = {
        .epoch = 2, .bitmap = 1, .first_seq = FIRST_SEQ + 50, .is_fresh = true};
    gw_worker_place(b.worker, &place, b.now);
    assert_int_equal(drain(&b), 0);
    reduce(&b, 1);
    notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 50, 1, true);
    bench_close(&b);
}

/* Results for a server that restarted are a burst, too, and over when the server confirms them. */
static void worker__results_that_are_owed_are_announced(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, SERVER);
    reduce(&b, 2);
    struct gw_pkt notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 0, 2, true);
    struct gw_pkt results[2];
    for (uint32_t i = 0; i < 2; i++) {
        results[i] = b.sent[i];
        results[i].q.kind = GW_PKT_PARAM;
        results[i].src = SERVER;
        results[i].dst = OURS;
        results[i].agg_flags = 0;
        results[i].epoch = 2;
    }
    finish(&b, 2);
    b.now += GW_MS;
    struct gw_worker_place place = {.epoch = 2, .bitmap = 1, .first_seq = FIRST_SEQ};
    gw_worker_place(b.worker, &place, b.now);
    assert_true(gw_worker_owes(b.worker));
    notice = expect_notice(&b);
    reply(&b, &notice);
    expect_gradients(&b, 0, 2, true);
    assert_true(b.sent[0].agg_flags & GW_AGG_FINAL);
    for (uint32_t i = 0; i < 2; i++)
        input(&b, &results[i]);
    assert_false(gw_worker_owes(b.worker));
    b.now += GW_MS;
    gw_node_expire(b.node, b.now);
    reduce(&b, 1);
    expect_notice(&b); /* so the busy period had ended */
    bench_close(&b);
}

static void worker__does_not_announce_to_its_own_host(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, &terms, OURS);
    reduce(&b, 1);
    assert_int_equal(drain(&b), 0); /* the gradient has stayed here */
    assert_int_equal(gw_endpoint_stats(b.endpoint)->stray, 1);
    assert_int_equal(gw_endpoint_stats(b.endpoint)->notices_sent, 0);
    bench_close(&b);
}

static void slot_worker__announces_a_tensor_after_an_idle_time(void **state)
{
    (void)state;
    for (uint32_t own = 0; own < 2; own++) { /* also when gradients are addressed to itself */
        struct bench b;
        uint32_t peer = own ? OURS : SERVER;
        bench_open_slots(&b, peer);
        reduce(&b, WINDOW);
        struct gw_pkt notice = expect_notice(&b);
        assert_int_equal(notice.dst, peer);
        assert_int_equal(notice.q.ecn, GW_ECN_NOT_ECT);
        b.now += 8 * GW_US;
        if (own) {
            input(&b, &notice); /* the switch has sent it back, and so it answers itself */
            assert_int_equal(gw_endpoint_stats(b.endpoint)->notices_received, 1);
        } else {
            reply(&b, &notice);
        }
        assert_int_equal(drain(&b), WINDOW);
        assert_int_equal(b.sent[0].q.flags, GW_PKT_HEAD);
        assert_int_equal(b.sent[0].entropy, notice.entropy);
        assert_int_equal(b.sent[1].q.flags, 0);
        assert_int_equal(gw_endpoint_stats(b.endpoint)->answers_received, 1);
        finish(&b, WINDOW);
        reduce(&b, WINDOW);
        assert_int_equal(drain(&b), WINDOW);
        assert_int_equal(b.sent[0].q.kind, GW_PKT_GRAD);
        assert_int_equal(b.sent[0].q.flags, 0);
        finish(&b, WINDOW);
        b.now += GW_MS;
        gw_node_expire(b.node, b.now);
        reduce(&b, WINDOW);
        expect_notice(&b);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker__announces_a_tensor_after_an_idle_time),
        cmocka_unit_test(worker__waits_no_longer_than_a_round_trip),
        cmocka_unit_test(worker__head_is_one_when_it_is_resent),
        cmocka_unit_test(worker__tensors_meanwhile_wait_with_the_first),
        cmocka_unit_test(worker__pause_calls_the_burst_off),
        cmocka_unit_test(worker__announces_nothing_between_two_epochs),
        cmocka_unit_test(worker__failure_calls_the_burst_off),
        cmocka_unit_test(worker__results_that_are_owed_are_announced),
        cmocka_unit_test(worker__does_not_announce_to_its_own_host),
        cmocka_unit_test(slot_worker__announces_a_tensor_after_an_idle_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
