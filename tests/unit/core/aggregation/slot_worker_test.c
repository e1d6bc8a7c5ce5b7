/* The worker of slots: what is out, what is sent again, and what it makes of results. */
#include "host.h"
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "base/error.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/slot_worker.h"

enum {
    JOB = 4,
    EPOCH = 6,
    OURS = 1,
    PEER = 9,
    RANK = 2,
    VALUES = 32, /* with 52 bytes of header the packet of 180 bytes of the ATP paper's comparison */
    SLOTS = 5,
    FRAGMENTS = 23,
    TENSORS_MAX = 3,
    PKTS = 32,
};

#define TIMEOUT GW_MS

static const uint32_t first_seq = UINT32_MAX - 7; /* wraps soon */

struct bench {
    struct gw_pkt_pool pool;
    struct gw_endpoint *endpoint;
    struct gw_node *node;
    struct gw_slot_worker *worker;
    void *memory;
    struct gw_pkt sent[PKTS]; /* by the last drain() */
};

/* Carries no payload: what that does is the model's business. */
static void bench_open(struct bench *b, gw_time stall)
{
    struct gw_slot_worker_cfg cfg = {.job = JOB,
                                     .epoch = EPOCH,
                                     .rank = RANK,
                                     .world = 3,
                                     .class = 1,
                                     .peer = PEER,
                                     .slots = SLOTS,
                                     .values = VALUES,
                                     .tensors_max = TENSORS_MAX,
                                     .timeout = TIMEOUT,
                                     .stall = stall,
                                     .scale_exponent = GW_SCALE_EXPONENT,
                                     .first_seq = first_seq,
                                     .kernels = gw_kernels_best(gw_cpu_features())};
    struct gw_endpoint_cfg host = gw_test_host_cfg(OURS, 4 * VALUES);
    gw_test_pool_open(&b->pool, NULL, PKTS, 0);
    host.hdr = 52;
    host.pool = &b->pool;
    host.tx_flows_max = host.rx_flows_max = 1;
    host.apps_max = 1;
    host.app_events_max = TENSORS_MAX;
    b->endpoint = gw_endpoint_init(gw_test_take(gw_endpoint_size(&host)), &host);
    b->node = gw_endpoint_node(b->endpoint);
    b->memory = gw_test_take(gw_slot_worker_size(&cfg));
    assert_int_equal(gw_slot_worker_init(&b->worker, b->memory, &cfg, b->endpoint), 0);
}

static void bench_close(struct bench *b)
{
    gw_slot_worker_fini(b->worker);
    assert_true(gw_node_deadline(b->node) == GW_TIME_NEVER);
    gw_test_pool_close(&b->pool);
    free(b->memory);
    free(b->endpoint);
}

static void reduce(struct bench *b, uint32_t fragments, uint32_t tag, gw_time now)
{
    struct gw_tensor tensor = {.count = (uint64_t)fragments * VALUES - 1, .tag = tag};
    assert_int_equal(gw_slot_worker_reduce(b->worker, &tensor, now), 0);
}

/* Lets all leave; returns how many. */
static uint32_t drain(struct bench *b, gw_time now)
{
    uint32_t count = 0, result;
    struct gw_pkt *pkt;
    b->node->ready_count = 0;
    do {
        result = gw_node_output(b->node, 0, &pkt, 1, now);
        if (result & ~GW_OUTPUT_MORE) {
            assert_in_range(count, 0, PKTS - 1);
            b->sent[count++] = *pkt;
            gw_pkt_release(&b->pool, pkt);
        }
    } while (result & GW_OUTPUT_MORE);
    return count;
}

/* What the switch makes of a gradient. */
static struct gw_pkt result_of(const struct gw_pkt *gradient)
{
    struct gw_pkt result = *gradient;
    result.q.kind = GW_PKT_PARAM;
    result.src = PEER;
    result.dst = OURS;
    result.agg.bitmap = 7;
    return result;
}

static void input(struct bench *b, const struct gw_pkt *copy, gw_time now)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
    assert_non_null(pkt);
    *pkt = *copy;
    gw_node_input(b->node, 0, &pkt, 1, now);
}

static void answer(struct bench *b, const struct gw_pkt *gradient, gw_time now)
{
    struct gw_pkt result = result_of(gradient);
    input(b, &result, now);
}

static void expect_event(struct bench *b, enum gw_event_kind kind, uint32_t tag)
{
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(b->endpoint, &event, 1), 1);
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.tag, tag);
    assert_int_equal(event.flow, JOB);
    assert_int_equal(event.peer, PEER);
}

static void expect_no_event(struct bench *b)
{
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(b->endpoint, &event, 1), 0);
}

/* Fragment f travels in slot f modulo SLOTS, with the version of its turn there. */
static void expect_fragment(const struct gw_pkt *pkt, uint32_t fragment)
{
    assert_int_equal(pkt->seq, first_seq + fragment);
    assert_int_equal(pkt->index, fragment % SLOTS);
    assert_int_equal(pkt->agg.level, fragment / SLOTS % 2);
}

static void slot_worker__sends_one_fragment_per_slot(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    reduce(&b, FRAGMENTS, 0, 0);
    assert_int_equal(drain(&b, 0), SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        expect_fragment(&b.sent[i], i);
        assert_int_equal(b.sent[i].q.kind, GW_PKT_GRAD);
        assert_int_equal(b.sent[i].q.size, 180);
        assert_int_equal(b.sent[i].q.class, 1);
        assert_int_equal(b.sent[i].q.ecn, GW_ECN_NOT_ECT);
        assert_int_equal(b.sent[i].src, OURS);
        assert_int_equal(b.sent[i].dst, PEER);
        assert_int_equal(b.sent[i].flow, JOB);
        assert_int_equal(b.sent[i].epoch, EPOCH);
        assert_int_equal(b.sent[i].agg_flags, GW_AGG_SLOT);
        assert_int_equal(b.sent[i].agg.bitmap, 1u << RANK);
        assert_int_equal(b.sent[i].key, gw_agg_key(first_seq, GW_DTYPE_F32, false));
    }
    assert_int_equal(drain(&b, 0), 0);
    bench_close(&b);
}

/* Results in any order: each releases the next fragment of its slot, and that one only. */
static void slot_worker__a_result_releases_the_next_of_its_slot(void **state)
{
    (void)state;
    static const uint32_t order[] = {3, 0, 4, 1, 2};
    struct bench b;
    struct gw_pkt out[SLOTS];
    bench_open(&b, 0);
    reduce(&b, FRAGMENTS, 7, 0);
    assert_int_equal(drain(&b, 0), SLOTS);
    memcpy(out, b.sent, sizeof(out));
    for (uint32_t done = 0; done < FRAGMENTS; done++) {
        uint32_t fragment = done / SLOTS * SLOTS + order[done % SLOTS];
        if (done >= FRAGMENTS / SLOTS * SLOTS)
            fragment = done; /* the last ones do not need all slots */
        expect_no_event(&b);
        expect_fragment(&out[fragment % SLOTS], fragment);
        answer(&b, &out[fragment % SLOTS], 0);
        bool has_next = fragment + SLOTS < FRAGMENTS;
        assert_int_equal(drain(&b, 0), has_next);
        if (has_next) {
            expect_fragment(&b.sent[0], fragment + SLOTS);
            out[fragment % SLOTS] = b.sent[0];
        }
        assert_int_equal(gw_slot_worker_seq(b.worker, fragment % SLOTS),
                         first_seq + fragment + SLOTS);
    }
    expect_event(&b, GW_EVENT_REDUCED, 7);
    assert_int_equal(gw_slot_worker_stats(b.worker)->sent, FRAGMENTS);
    assert_int_equal(gw_slot_worker_stats(b.worker)->results, FRAGMENTS);
    gw_node_expire(b.node, 10 * TIMEOUT);
    assert_int_equal(drain(&b, 10 * TIMEOUT), 0);
    bench_close(&b);
}

/* The row of tensors is one stream of fragments; tensors end in its order. */
static void slot_worker__tensors_follow_each_other_in_the_slots(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt out[4];
    bench_open(&b, 0);
    reduce(&b, 2, 0, 0); /* fragments 0 and 1 */
    reduce(&b, 1, 1, 0); /* 2 */
    reduce(&b, 6, 2, 0); /* 3 to 8 */
    assert_int_equal(drain(&b, 0), SLOTS);
    memcpy(out, b.sent, sizeof(out));
    for (uint32_t i = 0; i < SLOTS; i++)
        expect_fragment(&b.sent[i], i);
    struct gw_tensor more = {.count = 1};
    assert_int_equal(gw_slot_worker_reduce(b.worker, &more, 0), GW_ERR_NO_ROOM);
    answer(&b, &out[2], 0);
    answer(&b, &out[1], 0);
    expect_no_event(&b);
    answer(&b, &out[0], 0);
    expect_event(&b, GW_EVENT_REDUCED, 0);
    expect_event(&b, GW_EVENT_REDUCED, 1);
    assert_int_equal(drain(&b, 0), 3);
    expect_fragment(&b.sent[0], 7); /* in the order of the results */
    expect_fragment(&b.sent[1], 6);
    expect_fragment(&b.sent[2], 5);
    answer(&b, &out[3], 0);
    assert_int_equal(drain(&b, 0), 1);
    expect_fragment(&b.sent[0], 8);
    answer(&b, &b.sent[0], 0);
    assert_int_equal(drain(&b, 0), 0);
    reduce(&b, 7, 3, 0); /* 9 to 15: slot 3 waits for one, and slot 4 is out */
    assert_int_equal(drain(&b, 0), 1);
    expect_fragment(&b.sent[0], 13);
    bench_close(&b);
}

/* Every slot has a time of its own, and what is sent again is the same packet. */
static void slot_worker__silence_sends_the_fragment_of_the_slot_again(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt out[SLOTS];
    const gw_time half = TIMEOUT / 2;
    bench_open(&b, 0);
    reduce(&b, FRAGMENTS, 0, 0);
    drain(&b, 0);
    memcpy(out, b.sent, sizeof(out));
    answer(&b, &out[1], half);
    assert_int_equal(drain(&b, half), 1);
    out[1] = b.sent[0];
    assert_true(gw_node_deadline(b.node) == TIMEOUT);
    gw_node_expire(b.node, TIMEOUT - 1);
    assert_int_equal(drain(&b, TIMEOUT - 1), 0);
    gw_node_expire(b.node, TIMEOUT);
    assert_int_equal(drain(&b, TIMEOUT), SLOTS - 1);
    for (uint32_t i = 0; i < SLOTS - 1; i++) {
        struct gw_pkt *again = &b.sent[i], *before = &out[again->index];
        assert_int_equal(again->index, i == 0 ? 0 : i + 1);
        assert_int_equal(again->seq, before->seq);
        assert_int_equal(again->agg.level, before->agg.level);
        assert_int_equal(again->agg_flags, before->agg_flags);
        assert_int_equal(again->agg.bitmap, before->agg.bitmap);
    }
    assert_true(gw_node_deadline(b.node) == TIMEOUT + half);
    gw_node_expire(b.node, TIMEOUT + half);
    assert_int_equal(drain(&b, TIMEOUT + half), 1);
    expect_fragment(&b.sent[0], SLOTS + 1);
    assert_int_equal(gw_slot_worker_stats(b.worker)->resent, SLOTS);
    bench_close(&b);
}

/* A result that comes while its fragment waits to be sent again: that is not sent any more. */
static void slot_worker__a_late_result_stops_the_resend(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt out[SLOTS];
    bench_open(&b, 0);
    reduce(&b, SLOTS + 1, 0, 0);
    drain(&b, 0);
    memcpy(out, b.sent, sizeof(out));
    gw_node_expire(b.node, TIMEOUT);
    answer(&b, &out[0], TIMEOUT);
    answer(&b, &out[3], TIMEOUT);
    assert_int_equal(drain(&b, TIMEOUT), 4);
    expect_fragment(&b.sent[0], 1);
    expect_fragment(&b.sent[1], 2);
    expect_fragment(&b.sent[2], 4);
    expect_fragment(&b.sent[3], SLOTS);
    assert_int_equal(gw_slot_worker_stats(b.worker)->resent, 3);
    bench_close(&b);
}

static void slot_worker__ignores_what_is_not_its_result(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    reduce(&b, FRAGMENTS, 0, 0);
    drain(&b, 0);
    for (uint32_t field = 0; field < 8; field++) {
        struct gw_pkt pkt = result_of(&b.sent[1]);
        switch (field) {
        case 0:
            pkt.index = SLOTS;
            break;
        case 1:
            pkt.index = 2;
            pkt.agg.level = 1;
            break;
        case 2:
            pkt.seq += SLOTS; /* of a fragment that is not out */
            break;
        case 3:
            pkt.agg.level = 1;
            break;
        case 4:
            pkt.key++;
            break;
        case 5:
            pkt.agg.values--;
            break;
        case 6:
            pkt.agg_flags |= GW_AGG_REQUEST;
            break;
        default:
            pkt.epoch++;
        }
        input(&b, &pkt, 0);
        assert_int_equal(drain(&b, 0), 0);
    }
    /* Field 1 names the slot of a later fragment: known there. */
    assert_int_equal(gw_slot_worker_stats(b.worker)->stale, 7);
    assert_int_equal(gw_slot_worker_stats(b.worker)->duplicates, 1);
    bench_close(&b);
}

static void slot_worker__a_result_counts_once(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    reduce(&b, 1, 0, 0);
    drain(&b, 0);
    for (uint32_t i = 0; i < 3; i++)
        answer(&b, &b.sent[0], 0);
    expect_event(&b, GW_EVENT_REDUCED, 0);
    expect_no_event(&b);
    assert_int_equal(gw_slot_worker_stats(b.worker)->results, 1);
    assert_int_equal(gw_slot_worker_stats(b.worker)->duplicates, 2);
    bench_close(&b);
}

/* After a failure, slots go on where all workers will: behind the tensors that failed. */
static void slot_worker__fails_without_any_result(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 3 * TIMEOUT);
    reduce(&b, 7, 0, 0); /* fragments 0 to 6 */
    reduce(&b, 7, 1, 0); /* 7 to 13 */
    drain(&b, 0);
    struct gw_pkt late = b.sent[2];
    answer(&b, &b.sent[0], TIMEOUT / 2);
    for (gw_time now = TIMEOUT; now < 3 * TIMEOUT + TIMEOUT / 2; now += TIMEOUT / 2) {
        expect_no_event(&b);
        gw_node_expire(b.node, now);
        drain(&b, now);
    }
    gw_node_expire(b.node, 4 * TIMEOUT);
    expect_event(&b, GW_EVENT_FAILED, 0);
    expect_event(&b, GW_EVENT_FAILED, 1);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    assert_int_equal(drain(&b, 4 * TIMEOUT), 0);
    answer(&b, &late, 4 * TIMEOUT);
    reduce(&b, 12, 2, 4 * TIMEOUT); /* 14 to 25 */
    assert_int_equal(drain(&b, 4 * TIMEOUT), SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++)
        expect_fragment(&b.sent[i], 14 + i);
    answer(&b, &b.sent[4], 4 * TIMEOUT);
    assert_int_equal(drain(&b, 4 * TIMEOUT), 1);
    expect_fragment(&b.sent[0], 23);
    bench_close(&b);
}

/* Also when not one packet could leave. */
static void slot_worker__fails_although_its_port_is_never_pulled(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2 * TIMEOUT);
    reduce(&b, 1, 0, 0);
    while (gw_node_deadline(b.node) != GW_TIME_NEVER) {
        assert_true(gw_node_deadline(b.node) <= 2 * TIMEOUT);
        gw_node_expire(b.node, gw_node_deadline(b.node));
    }
    expect_event(&b, GW_EVENT_FAILED, 0);
    bench_close(&b);
}

static void slot_worker__waits_for_packets(void **state)
{
    (void)state;
    struct bench b;
    struct gw_pkt *taken[PKTS + 1];
    uint32_t count = 0;
    bench_open(&b, 0);
    reduce(&b, FRAGMENTS, 0, 0);
    while ((taken[count] = gw_pkt_claim(&b.pool)) != NULL)
        count++;
    assert_int_equal(drain(&b, 0), 0);
    assert_int_equal(gw_endpoint_stats(b.endpoint)->pool_empty, 1);
    while (count)
        gw_pkt_release(&b.pool, taken[--count]);
    gw_node_expire(b.node, gw_node_deadline(b.node));
    assert_int_equal(drain(&b, TIMEOUT), SLOTS);
    bench_close(&b);
}

static void slot_worker__refuses_what_it_cannot_reduce(void **state)
{
    (void)state;
    struct bench b;
    float x = 0;
    const struct gw_tensor bad[] = {
        {.count = 0},
        {.count = 1, .type = GW_DTYPES},
        {.count = 1, .type = GW_DTYPE_SUMMABLE},
        {.count = 1, .op = GW_OP_MIN},
        {.count = 1, .in = &x, .out = &x}, /* there are no buffers */
        {.count = UINT64_MAX},
    };
    bench_open(&b, 0);
    for (size_t i = 0; i < GW_COUNT_OF(bad); i++)
        assert_int_equal(gw_slot_worker_reduce(b.worker, &bad[i], 0), GW_ERR_INVALID);
    assert_int_equal(drain(&b, 0), 0);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    /* As many events as may wait: another tensor could not say that it has ended. */
    for (uint32_t tag = 0; tag < TENSORS_MAX; tag++) {
        reduce(&b, 1, tag, 0);
        assert_int_equal(drain(&b, 0), 1);
        answer(&b, &b.sent[0], 0);
    }
    struct gw_tensor tensor = {.count = 1};
    reduce(&b, 1, TENSORS_MAX, 0);
    reduce(&b, 1, TENSORS_MAX + 1, 0); /* two flows could end, too */
    assert_int_equal(gw_slot_worker_reduce(b.worker, &tensor, 0), GW_ERR_NO_ROOM);
    bench_close(&b);
}

/* The switch consumes gradients; one that comes to a host has missed it. */
static void slot_worker__gradients_at_a_host_are_stray(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    reduce(&b, 1, 0, 0);
    drain(&b, 0);
    struct gw_pkt pkt = b.sent[0];
    pkt.dst = OURS;
    input(&b, &pkt, 0);
    assert_int_equal(gw_endpoint_stats(b.endpoint)->stray, 1);
    pkt = result_of(&b.sent[0]);
    pkt.agg_flags = 0; /* a parameter for a worker of the other kind */
    input(&b, &pkt, 0);
    assert_int_equal(gw_endpoint_stats(b.endpoint)->stray, 2);
    expect_no_event(&b);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slot_worker__sends_one_fragment_per_slot),
        cmocka_unit_test(slot_worker__a_result_releases_the_next_of_its_slot),
        cmocka_unit_test(slot_worker__tensors_follow_each_other_in_the_slots),
        cmocka_unit_test(slot_worker__silence_sends_the_fragment_of_the_slot_again),
        cmocka_unit_test(slot_worker__a_late_result_stops_the_resend),
        cmocka_unit_test(slot_worker__ignores_what_is_not_its_result),
        cmocka_unit_test(slot_worker__a_result_counts_once),
        cmocka_unit_test(slot_worker__fails_without_any_result),
        cmocka_unit_test(slot_worker__fails_although_its_port_is_never_pulled),
        cmocka_unit_test(slot_worker__waits_for_packets),
        cmocka_unit_test(slot_worker__refuses_what_it_cannot_reduce),
        cmocka_unit_test(slot_worker__gradients_at_a_host_are_stray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
