/*
 * Which packets of a collective are important: each is compared with the others of its message, as
 * they leave, be they a rank's own values, sums on their way or results that are passed on.
 */
#include "coll_run_fixture.h"

#include "base/bits.h"

enum {
    PACKETS = 30, /* of a message at the most */
    WORLD = 4,
    COUNT = 20000,
    EACH = MTU / 4, /* elements of a fragment */
    UNITS = (COUNT + EACH - 1) / EACH,
    MESSAGES_MAX = 1024,
};

/* A message as its packets were seen. */
struct seen {
    uint32_t src, flow;
    uint32_t total, arrived;
    uint64_t bytes;
    uint64_t important;
    unsigned char data[PACKETS * MTU];
};

static struct seen messages[MESSAGES_MAX];
static uint32_t message_count;

static struct model m;
static const struct gw_node_ops *inner;
static uint64_t chosen[WORLD * UNITS / 64 + 1];

static struct seen *message_of(const struct gw_pkt *pkt)
{
    uint32_t i = 0;
    while (i < message_count && (messages[i].src != pkt->src || messages[i].flow != pkt->flow))
        i++;
    assert_true(i < MESSAGES_MAX);
    if (i == message_count)
        messages[message_count++] =
            (struct seen){.src = pkt->src, .flow = pkt->flow, .total = pkt->data.total};
    return &messages[i];
}

/* Output of a worker, looked at. */
static uint32_t spy_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                           gw_time now)
{
    uint32_t answer = inner->output(node, port, pkts, max, now);
    for (uint32_t i = 0; i < (answer & ~GW_OUTPUT_MORE); i++) {
        const struct gw_pkt *pkt = pkts[i];
        if (pkt->q.kind != GW_PKT_DATA || pkt->data.total > PACKETS || pkt->buf == GW_BUF_NONE)
            continue;
        struct seen *message = message_of(pkt);
        const struct gw_buf_pool *bufs = &m.workers[pkt->src - FIRST_ADDRESS].host.bufs;
        memcpy(message->data + (size_t)pkt->seq * MTU, gw_buf_bytes(bufs, pkt->buf), pkt->data.len);
        message->arrived++;
        message->bytes += pkt->data.len;
        message->important |= (uint64_t)(pkt->q.ecn == GW_ECN_ECT0) << pkt->seq;
    }
    return answer;
}

/* By a rule, or by the bits `chosen`: then each element is the number of its fragment, also of what
 * is combined. */
static void begin(uint32_t rank, enum gw_coll_kind kind, enum gw_importance_rule rule,
                  bool is_chosen, struct gw_prng *prng)
{
    static uint64_t arrived[WORLD][WORLD * COUNT / 64];
    static uint16_t counts[WORLD][WORLD * COUNT];
    static float in[WORLD][WORLD * COUNT], out[WORLD][WORLD * COUNT];
    const struct gw_parts parts = {
        .importance = (uint8_t)rule,
        .important = is_chosen ? chosen : NULL,
        .arrived = arrived[rank],
        .counts = counts[rank],
    };
    for (uint32_t i = 0; i < WORLD * COUNT; i++)
        in[rank][i] = is_chosen ? (float)(i / COUNT * UNITS + i % COUNT / EACH)
                                : (float)gw_prng_below(prng, 1 << (i / EACH % 7 + 1));
    const struct gw_coll_call call = {
        .coll = kind == GW_COLL_ALLREDUCE ? m.coll : gw_coll_for(kind),
        .tensor = {.in = in[rank],
                   .out = out[rank],
                   .count = COUNT,
                   .type = GW_DTYPE_F32,
                   .op = is_chosen ? GW_OP_MAX : GW_OP_SUM,
                   .tag = m.tag},
        .parts = &parts,
        .fragment = EACH,
    };
    assert_int_equal(gw_coll_run_start(m.workers[rank].run, &call, gw_mem_now(m.mem)), GW_OK);
}

/* What the rule says of the message, all at once. */
static uint64_t decide(const struct seen *message, enum gw_importance_rule rule)
{
    uint64_t bits;
    struct gw_importance importance;
    const struct gw_importance_terms terms = {
        .rule = rule, .type = GW_DTYPE_F32, .kernels = gw_kernels_best(0)};
    const struct gw_importance_tensor tensor = {
        .values = message->data, .size = message->bytes, .fragment_size = MTU};
    gw_importance_init(&importance, &tensor, &terms, 0);
    gw_importance_fill(&importance, &bits);
    return bits;
}

/* What the application says of the fragments that the message carries. */
static uint64_t look_up(const struct seen *message)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < message->total; i++) {
        float fragment;
        memcpy(&fragment, message->data + (size_t)i * MTU, sizeof(fragment));
        bits |= (uint64_t)gw_bit_is_set(chosen, (uint64_t)fragment) << i;
    }
    return bits;
}

static void check_kind(const char *coll, enum gw_coll_kind kind, enum gw_importance_rule rule,
                       bool is_chosen)
{
    const struct setup setup = {
        .coll = coll, .world = WORLD, .segment = PACKETS * MTU, .flows = 3, .takes_parts = true};
    struct gw_node_ops spy;
    struct gw_prng prng = gw_prng_derive(kind, rule);
    uint32_t important = 0, packets = 0;
    message_count = 0;
    model_open(&m, &setup);
    inner = gw_endpoint_node(m.workers[0].host.endpoint)->ops;
    spy = *inner;
    spy.output = spy_output;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        gw_endpoint_node(m.workers[rank].host.endpoint)->ops = &spy;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        begin(rank, kind, rule, is_chosen, &prng);
    model_run(&m);
    for (uint32_t i = 0; i < message_count; i++) {
        const struct seen *message = &messages[i];
        assert_int_equal(message->arrived, message->total);
        assert_true(message->important == (is_chosen ? look_up(message) : decide(message, rule)));
        important += (uint32_t)__builtin_popcountll(message->important);
        packets += message->total;
    }
    assert_true(packets >= COUNT / EACH);
    if (is_chosen || rule == GW_IMPORTANCE_MEDIAN_OF_MEANS)
        assert_in_range(important, packets * 2 / 5, packets * 3 / 5);
    model_close(&m);
}

static void coll_importance__is_that_of_what_a_packet_carries(void **state)
{
    (void)state;
    static const char *const colls[] = {"ring", "direct"};
    for (uint32_t rule = GW_IMPORTANCE_ALL; rule < GW_IMPORTANCE_RULES; rule++) {
        for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++)
            check_kind(colls[c], GW_COLL_ALLREDUCE, (enum gw_importance_rule)rule, false);
        check_kind("ring", GW_COLL_ALLGATHER, (enum gw_importance_rule)rule, false);
        check_kind("ring", GW_COLL_REDUCE_SCATTER, (enum gw_importance_rule)rule, false);
    }
}

static void coll_importance__is_what_the_application_says_of_the_fragment(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(7, 0);
    for (size_t i = 0; i < GW_COUNT_OF(chosen); i++)
        chosen[i] = gw_prng_next(&prng);
    check_kind("ring", GW_COLL_ALLREDUCE, GW_IMPORTANCE_ALL, true);
    check_kind("direct", GW_COLL_ALLREDUCE, GW_IMPORTANCE_ALL, true);
    check_kind("ring", GW_COLL_REDUCE_SCATTER, GW_IMPORTANCE_ALL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_importance__is_that_of_what_a_packet_carries),
        cmocka_unit_test(coll_importance__is_what_the_application_says_of_the_fragment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
