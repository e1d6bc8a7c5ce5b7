/* The in-memory datapath: what arrives, when, and in which order, with a node that only counts. */
#include "pool_fixture.h"
#include "support.h"

#include "net/mem.h"

enum {
    PKTS = 256,
    BUFS = 64,
    MTU = 1000,
    WIRE = MTU + 44, /* bytes of a datagram */
    ARRIVALS_MAX = 256,
};

/* 8 Gbit/s: a byte takes 1 ns. */
#define RATE_BPS    UINT64_C(8000000000)
#define PACKET_TIME (WIRE * GW_NS)
#define LATENCY     (5 * GW_US)

/* Sends packets with numbers 0, 1, ... and writes down what it gets. */
struct counter_node {
    struct gw_node node;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_pkt pkts[PKTS];
    uint64_t buf_memory[BUFS * (MTU + 64) / sizeof(uint64_t)];
    uint16_t ready[1];
    bool is_ready;
    uint32_t to_send;
    uint32_t sent;
    uint32_t arrived;
    uint32_t calls; /* of input */
    uint32_t expired;
    gw_time expired_at;
    uint32_t seqs[ARRIVALS_MAX];
    gw_time times[ARRIVALS_MAX];
};

static void counter_input(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t count,
                          gw_time now)
{
    struct counter_node *self = (struct counter_node *)node;
    assert_int_equal(port, 0);
    self->calls++;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *payload = gw_buf_bytes(&self->bufs, pkts[i]->buf);
        for (uint32_t j = 0; j < MTU; j++)
            assert_int_equal(payload[j], (unsigned char)(pkts[i]->seq + j));
        assert_true(self->arrived < ARRIVALS_MAX);
        self->seqs[self->arrived] = pkts[i]->seq;
        self->times[self->arrived++] = now;
        gw_pkt_release(&self->pool, pkts[i]);
    }
}

static uint32_t counter_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts,
                               uint32_t max, gw_time now)
{
    struct counter_node *self = (struct counter_node *)node;
    uint32_t count = 0;
    assert_int_equal(port, 0);
    for (; count < max && self->sent < self->to_send; count++) {
        struct gw_pkt *pkt = gw_pkt_claim(&self->pool);
        assert_non_null(pkt);
        pkt->q = (struct gw_qpkt){.kind = GW_PKT_DATA, .ecn = GW_ECN_ECT0};
        pkt->buf = gw_buf_claim(&self->bufs);
        assert_int_not_equal(pkt->buf, GW_BUF_NONE);
        pkt->src = pkt->dst = pkt->flow = pkt->entropy = 0;
        pkt->sent_at = now;
        pkt->seq = self->sent++;
        pkt->data.total = UINT32_MAX - 1;
        pkt->data.tag = 0;
        pkt->data.len = pkt->data.mss = MTU;
        for (uint32_t j = 0; j < MTU; j++)
            gw_buf_bytes(&self->bufs, pkt->buf)[j] = (unsigned char)(pkt->seq + j);
        pkts[count] = pkt;
    }
    self->is_ready = self->sent < self->to_send;
    return self->is_ready ? count | GW_OUTPUT_MORE : count;
}

static void counter_expire(struct gw_node *node, gw_time now)
{
    struct counter_node *self = (struct counter_node *)node;
    self->expired++;
    self->expired_at = now;
    node->deadline = GW_TIME_NEVER;
}

static const struct gw_node_ops counter_ops = {counter_input, counter_output, counter_expire};

struct fixture {
    struct gw_mem *mem;
    struct counter_node *a;
    struct counter_node *b;
    uint32_t link;
};

static struct counter_node *counter_new(void)
{
    struct counter_node *self = gw_test_take(sizeof(*self));
    memset(self, 0, sizeof(*self));
    self->node = (struct gw_node){
        .ops = &counter_ops, .deadline = GW_TIME_NEVER, .ready = self->ready, .port_count = 1};
    assert_true(gw_buf_pool_size(BUFS, MTU) <= sizeof(self->buf_memory));
    gw_buf_pool_init(&self->bufs, self->buf_memory, BUFS, MTU);
    gw_pkt_pool_init(&self->pool, self->pkts, 0, PKTS, &self->bufs);
    return self;
}

static struct fixture open_pair(const struct gw_mem_cfg *cfg, const struct gw_mem_link *link)
{
    struct fixture f = {.mem = gw_mem_open(cfg), .a = counter_new(), .b = counter_new()};
    assert_non_null(f.mem);
    uint32_t a = gw_mem_add(f.mem, &f.a->node, &f.a->pool);
    uint32_t b = gw_mem_add(f.mem, &f.b->node, &f.b->pool);
    f.link = gw_mem_connect(f.mem, a, 0, b, 0, link);
    return f;
}

/* Every packet and buffer is back in its pool. */
static void close_pair(struct fixture *f)
{
    struct counter_node *nodes[] = {f->a, f->b};
    for (int i = 0; i < 2; i++) {
        struct gw_pkt_pool *pool = &nodes[i]->pool;
        assert_int_equal(gw_test_pool_free(pool), PKTS);
        for (uint32_t j = 0; j < BUFS; j++)
            assert_int_not_equal(gw_buf_claim(&nodes[i]->bufs), GW_BUF_NONE);
        free(nodes[i]);
    }
    gw_mem_close(f->mem);
}

static void start(struct counter_node *node, uint32_t count)
{
    node->to_send += count;
    gw_node_report(&node->node, 0, &node->is_ready);
}

static void run(struct gw_mem *mem)
{
    uint32_t steps = 0;
    while (gw_mem_step(mem, GW_TIME_NEVER))
        assert_true(++steps < 10000);
}

static const struct gw_mem_cfg plain = {.cookie = 1, .mtu = MTU, .frames_max = 128, .batch = 1};
static const struct gw_mem_link fast = {.latency = LATENCY};

static void mem_step__packets_arrive_after_serialisation_and_latency(void **state)
{
    (void)state;
    struct gw_mem_cfg cfg = plain;
    cfg.start = (gw_time)0 - 7 * PACKET_TIME; /* the clock wraps under way */
    struct fixture f =
        open_pair(&cfg, &(struct gw_mem_link){.latency = LATENCY, .rate_bps = RATE_BPS});
    start(f.a, 20);
    run(f.mem);
    assert_int_equal(f.b->arrived, 20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(f.b->seqs[i], i);
        assert_true(f.b->times[i] == cfg.start + (i + 1) * PACKET_TIME + LATENCY);
    }
    close_pair(&f);
}

static void mem_step__without_a_rate_packets_travel_together(void **state)
{
    (void)state;
    struct gw_mem_cfg cfg = plain;
    cfg.batch = 8;
    struct fixture f = open_pair(&cfg, &fast);
    start(f.a, 20);
    run(f.mem);
    assert_int_equal(f.b->arrived, 20);
    assert_int_equal(f.b->calls, 3); /* 8 + 8 + 4 */
    for (uint32_t i = 0; i < 20; i++)
        assert_true(f.b->seqs[i] == i && f.b->times[i] == LATENCY);
    close_pair(&f);
}

static void mem_step__loses_exactly_the_named_packets(void **state)
{
    (void)state;
    static const uint64_t mask = 1u << 0 | 1u << 5 | UINT64_C(1) << 63;
    struct gw_mem_link link = fast;
    link.lose = mask;
    struct fixture f = open_pair(&plain, &link);
    for (uint32_t sent = 0; sent < 150; sent += 50) {
        start(f.a, 50);
        run(f.mem);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < 150; i++)
        if (!(mask >> i % 64 & 1))
            assert_int_equal(f.b->seqs[at++], i);
    assert_int_equal(f.b->arrived, at);
    assert_int_equal(gw_mem_stats(f.mem, f.link)->lost, 150 - at);
    close_pair(&f);
}

static void mem_step__doubles_and_delays_the_named_packets(void **state)
{
    (void)state;
    struct gw_mem_link link = {.latency = LATENCY,
                               .rate_bps = RATE_BPS,
                               .duplicate = 1u << 1,
                               .delay = 1u << 2,
                               .delay_by = 2 * PACKET_TIME + PACKET_TIME / 2};
    static const uint32_t expected[] = {0, 1, 1, 3, 4, 2, 5};
    struct fixture f = open_pair(&plain, &link);
    start(f.a, 6);
    run(f.mem);
    assert_int_equal(f.b->arrived, GW_COUNT_OF(expected));
    assert_memory_equal(f.b->seqs, expected, sizeof(expected));
    const struct gw_mem_stats *stats = gw_mem_stats(f.mem, f.link);
    assert_true(stats->sent == 6 && stats->doubled == 1 && stats->delivered == 7);
    close_pair(&f);
}

/* A frame may not overtake the one before it when the link becomes shorter. */
static void mem_change__keeps_the_order(void **state)
{
    (void)state;
    struct fixture f = open_pair(&plain, &fast);
    start(f.a, 2);
    assert_true(gw_mem_step(f.mem, GW_TIME_NEVER));
    gw_mem_change(f.mem, f.link, &(struct gw_mem_link){.latency = 1});
    start(f.a, 2);
    run(f.mem);
    static const uint32_t expected[] = {0, 1, 2, 3};
    assert_int_equal(f.b->arrived, 4);
    assert_memory_equal(f.b->seqs, expected, sizeof(expected));
    close_pair(&f);
}

static void mem_step__counts_what_finds_no_room(void **state)
{
    (void)state;
    struct gw_mem_cfg cfg = plain;
    cfg.frames_max = 10;
    struct fixture f = open_pair(&cfg, &fast);
    uint32_t held[BUFS];
    for (uint32_t i = 0; i < BUFS; i++)
        held[i] = gw_buf_claim(&f.b->bufs);
    start(f.a, 16);
    run(f.mem);
    const struct gw_mem_stats *stats = gw_mem_stats(f.mem, f.link);
    assert_true(stats->sent == 16 && stats->overflow == 6 && stats->no_room == 10);
    assert_int_equal(f.b->arrived, 0);
    for (uint32_t i = 0; i < BUFS; i++)
        gw_buf_release(&f.b->bufs, held[i]);
    close_pair(&f);
}

static void mem_step__timers_fire_on_time_and_the_clock_stops_at_until(void **state)
{
    (void)state;
    struct fixture f = open_pair(&plain, &fast);
    f.b->node.deadline = 3 * GW_MS;
    assert_false(gw_mem_step(f.mem, 2 * GW_MS));
    assert_true(gw_mem_now(f.mem) == 2 * GW_MS && f.b->expired == 0);
    assert_true(gw_mem_step(f.mem, 4 * GW_MS));
    assert_true(f.b->expired == 1 && f.b->expired_at == 3 * GW_MS);
    assert_false(gw_mem_step(f.mem, 4 * GW_MS));
    assert_false(gw_mem_step(f.mem, GW_TIME_NEVER));
    assert_true(gw_mem_now(f.mem) == 4 * GW_MS);
    close_pair(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mem_step__packets_arrive_after_serialisation_and_latency),
        cmocka_unit_test(mem_step__without_a_rate_packets_travel_together),
        cmocka_unit_test(mem_step__loses_exactly_the_named_packets),
        cmocka_unit_test(mem_step__doubles_and_delays_the_named_packets),
        cmocka_unit_test(mem_change__keeps_the_order),
        cmocka_unit_test(mem_step__counts_what_finds_no_room),
        cmocka_unit_test(mem_step__timers_fire_on_time_and_the_clock_stops_at_until),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
