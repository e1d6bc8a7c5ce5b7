/*
 * The same flows over the in-memory datapath, where every packet passes through bytes, and over a
 * driver that hands packets across as they are. Both must deliver the same bytes at the same time
 * with the same packets, in every case of the table.
 */
#include "host.h"
#include "support.h"

#include "base/prng.h"
#include "net/mem.h"

enum {
    ADDRESS_A = 1,
    ADDRESS_B = 2,
    MTU = 1000,
    HDR = 44, /* as on the wire, so that both drivers see the same size of data */
    PKTS = 1024,
    FLOWS_MAX = 4,
    EVENTS_MAX = 2 * FLOWS_MAX,
    STEPS_MAX = 200000,
};

#define LATENCY  (3 * GW_US)
#define RATE_BPS UINT64_C(10000000000)
#define STOP     (10 * GW_S)

static const uint64_t seed = 77;

struct test_case {
    const char *cc;
    const char *lb;
    const char *loss;
    uint32_t ack_every;
    uint32_t flows;
    size_t bytes;       /* of each message */
    uint64_t lose_data; /* masks over packets modulo 64 */
    uint64_t lose_acks;
};

static const struct test_case cases[] = {
    {"fixed", "ecmp", "timeout", 1, 1, 1, 0, 0},
    {"fixed", "ecmp", "timeout", 1, 1, MTU, 0, 0},
    {"fixed", "spray", "timeout", 1, 1, 300001, 0, 0},
    {"fixed", "spray", "timeout", 4, 3, 123456, 0, 0},
    {"smartt", "reps", "trim", 1, 4, 250000, 0, 0},
    {"smartt", "reps", "timeout", 1, 1, 300001, 0x8000000000000001, 0},
    {"smartt", "reps", "timeout", 1, 2, 300001, 0x00ff000000001000, 0x0000000200000000},
    {"smartt", "reps", "timeout", 8, 2, 200000, 0x0000000000040001, 0x0000000000000011},
};

/* What a run leaves behind. */
struct outcome {
    struct gw_endpoint_stats stats[2];
    struct gw_event events[2][EVENTS_MAX];
    uint32_t event_count[2];
    unsigned char *received[FLOWS_MAX];
};

struct pair {
    const struct test_case *test;
    struct gw_endpoint_cfg cfg[2];
    struct gw_test_host hosts[2];
    struct gw_transport transport;
    unsigned char *sent[FLOWS_MAX];
    struct outcome outcome;
};

static void pair_open(struct pair *pair, const struct test_case *test)
{
    *pair = (struct pair){.test = test};
    pair->transport = gw_test_transport(test->cc, test->lb, test->loss);
    for (uint32_t i = 0; i < 2; i++) {
        pair->cfg[i] = gw_test_host_cfg(ADDRESS_A + i, MTU);
        pair->cfg[i].hdr = HDR;
        pair->cfg[i].ack_every = test->ack_every;
        pair->cfg[i].ack_delay = 10 * GW_US;
        pair->cfg[i].seed = seed + i;
        gw_test_host_open(&pair->hosts[i], &pair->cfg[i], PKTS);
    }
    for (uint32_t i = 0; i < test->flows; i++) {
        pair->sent[i] = malloc(test->bytes);
        pair->outcome.received[i] = calloc(1, test->bytes);
        assert_non_null(pair->sent[i]);
        assert_non_null(pair->outcome.received[i]);
        gw_test_fill(pair->sent[i], test->bytes, seed + i);
    }
}

static void pair_start(struct pair *pair, gw_time now)
{
    for (uint32_t i = 0; i < pair->test->flows; i++) {
        uint32_t flow;
        struct gw_send send = {
            .peer = ADDRESS_B,
            .bytes = pair->test->bytes,
            .data = pair->sent[i],
            .tag = i,
            .transport = &pair->transport,
            .path = gw_test_path(&pair->cfg[0], RATE_BPS, 2 * LATENCY + GW_US),
        };
        assert_int_equal(gw_endpoint_expect(pair->hosts[1].endpoint, ADDRESS_A, i,
                                            pair->outcome.received[i], pair->test->bytes),
                         0);
        assert_int_equal(gw_endpoint_send(pair->hosts[0].endpoint, &send, &flow, now), 0);
    }
}

/* Keeps new events; true when every flow has ended on both sides. */
static bool pair_poll(struct pair *pair)
{
    struct outcome *outcome = &pair->outcome;
    for (uint32_t i = 0; i < 2; i++)
        outcome->event_count[i] +=
            gw_endpoint_poll(pair->hosts[i].endpoint, &outcome->events[i][outcome->event_count[i]],
                             EVENTS_MAX - outcome->event_count[i]);
    return outcome->event_count[0] == pair->test->flows &&
           outcome->event_count[1] == pair->test->flows;
}

static void pair_close(struct pair *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        pair->outcome.stats[i] = *gw_endpoint_stats(pair->hosts[i].endpoint);
        gw_test_host_close(&pair->hosts[i]);
    }
    for (uint32_t i = 0; i < pair->test->flows; i++) {
        assert_memory_equal(pair->sent[i], pair->outcome.received[i], pair->test->bytes);
        free(pair->sent[i]);
    }
}

static struct outcome run_over_bytes(const struct test_case *test)
{
    struct pair pair;
    pair_open(&pair, test);
    struct gw_mem *mem =
        gw_mem_open(&(struct gw_mem_cfg){.cookie = 9, .mtu = MTU, .frames_max = PKTS, .batch = 1});
    assert_non_null(mem);
    for (uint32_t i = 0; i < 2; i++)
        gw_mem_add(mem, gw_endpoint_node(pair.hosts[i].endpoint), &pair.hosts[i].pool);
    gw_mem_connect(
        mem, 0, 0, 1, 0,
        &(struct gw_mem_link){.latency = LATENCY, .rate_bps = RATE_BPS, .lose = test->lose_data});
    gw_mem_connect(mem, 1, 0, 0, 0,
                   &(struct gw_mem_link){.latency = LATENCY, .lose = test->lose_acks});
    pair_start(&pair, gw_mem_now(mem));
    bool done = false;
    for (uint32_t steps = 0; gw_mem_step(mem, STOP); steps++) {
        assert_true(steps < STEPS_MAX);
        done |= pair_poll(&pair);
    }
    assert_true(done);
    gw_mem_close(mem);
    pair_close(&pair);
    return pair.outcome;
}

/* One direction of the direct driver: a copy of each packet and its payload on the way. */
struct direct_link {
    gw_time busy_until;
    gw_byte_time byte_time;
    uint64_t lose;
    uint64_t sent;
    bool is_ready;
    uint32_t head, tail; /* positions in `flight`, modulo its size */
    struct {
        gw_time arrives_at;
        struct gw_pkt pkt;
        unsigned char payload[MTU];
    } flight[PKTS];
};

static void direct_pull(struct direct_link *link, struct gw_test_host *from, gw_time now)
{
    struct gw_node *node = gw_endpoint_node(from->endpoint);
    link->is_ready |= node->ready_count != 0;
    node->ready_count = 0;
    while (link->is_ready && !gw_time_before(now, link->busy_until)) {
        struct gw_pkt *pkt;
        uint32_t result = gw_node_output(node, 0, &pkt, 1, now);
        link->is_ready = result & GW_OUTPUT_MORE;
        if ((result & ~GW_OUTPUT_MORE) == 0)
            continue;
        link->busy_until = now + gw_serialisation(link->byte_time, pkt->q.size);
        if (!(link->lose >> (link->sent++ & 63) & 1)) {
            uint32_t at = link->tail++ % PKTS;
            assert_true(link->tail - link->head <= PKTS);
            link->flight[at].arrives_at = link->busy_until + LATENCY;
            link->flight[at].pkt = *pkt;
            if (pkt->buf != GW_BUF_NONE)
                memcpy(link->flight[at].payload, gw_buf_bytes(&from->bufs, pkt->buf),
                       pkt->data.len);
        }
        gw_pkt_release(&from->pool, pkt);
    }
}

static void direct_deliver(struct direct_link *link, struct gw_test_host *to, gw_time now)
{
    while (link->head != link->tail &&
           !gw_time_before(now, link->flight[link->head % PKTS].arrives_at)) {
        const struct gw_pkt *sent = &link->flight[link->head % PKTS].pkt;
        struct gw_pkt *pkt = gw_pkt_claim(&to->pool);
        assert_non_null(pkt);
        *pkt = *sent;
        if (sent->buf != GW_BUF_NONE) {
            pkt->buf = gw_buf_claim(&to->bufs);
            memcpy(gw_buf_bytes(&to->bufs, pkt->buf), link->flight[link->head % PKTS].payload,
                   sent->data.len);
        }
        link->head++;
        gw_node_input(gw_endpoint_node(to->endpoint), 0, &pkt, 1, now);
    }
}

static gw_time direct_next(struct direct_link *links, struct pair *pair, gw_time now)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_node *node = gw_endpoint_node(pair->hosts[i].endpoint);
        struct direct_link *link = &links[i];
        gw_time times[] = {
            gw_node_deadline(node),
            link->is_ready || node->ready_count ? link->busy_until : GW_TIME_NEVER,
            link->head != link->tail ? link->flight[link->head % PKTS].arrives_at : GW_TIME_NEVER,
        };
        for (size_t j = 0; j < GW_COUNT_OF(times); j++)
            next = gw_deadline_before(times[j], next) ? times[j] : next;
    }
    return gw_deadline_before(next, now) ? now : next;
}

static struct outcome run_directly(const struct test_case *test)
{
    struct pair pair;
    gw_time now = 0;
    bool done = false;
    struct direct_link *links = calloc(2, sizeof(*links));
    assert_non_null(links);
    links[0].byte_time = gw_byte_time_from_bps(RATE_BPS);
    links[0].lose = test->lose_data;
    links[1].lose = test->lose_acks;
    pair_open(&pair, test);
    pair_start(&pair, now);
    uint32_t steps = 0;
    for (gw_time next; (next = direct_next(links, &pair, now)) != GW_TIME_NEVER; steps++) {
        assert_true(steps < STEPS_MAX && gw_time_before(next, STOP));
        now = next;
        for (uint32_t i = 0; i < 2; i++)
            direct_pull(&links[i], &pair.hosts[i], now);
        for (uint32_t i = 0; i < 2; i++)
            direct_deliver(&links[i], &pair.hosts[1 - i], now);
        for (uint32_t i = 0; i < 2; i++) {
            struct gw_node *node = gw_endpoint_node(pair.hosts[i].endpoint);
            if (!gw_deadline_before(now, gw_node_deadline(node)))
                gw_node_expire(node, now);
        }
        done |= pair_poll(&pair);
    }
    assert_true(done);
    free(links);
    pair_close(&pair);
    return pair.outcome;
}

static void assert_same_event(const struct gw_event *a, const struct gw_event *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flow, b->flow);
    assert_int_equal(a->peer, b->peer);
    assert_int_equal(a->tag, b->tag);
    assert_true(a->bytes == b->bytes && a->retransmits == b->retransmits && a->at == b->at);
}

static void mem_and_direct__deliver_the_same(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        const struct test_case *test = &cases[i];
        struct outcome bytes = run_over_bytes(test);
        struct outcome direct = run_directly(test);
        for (uint32_t j = 0; j < 2; j++) {
            assert_memory_equal(&bytes.stats[j], &direct.stats[j], sizeof(bytes.stats[j]));
            for (uint32_t k = 0; k < test->flows; k++)
                assert_same_event(&bytes.events[j][k], &direct.events[j][k]);
        }
        for (uint32_t j = 0; j < test->flows; j++) {
            assert_int_equal(bytes.events[0][j].kind, GW_EVENT_SENT);
            assert_int_equal(bytes.events[1][j].kind, GW_EVENT_RECEIVED);
            assert_memory_equal(bytes.received[j], direct.received[j], test->bytes);
            free(bytes.received[j]);
            free(direct.received[j]);
        }
        if (test->lose_data)
            assert_true(bytes.stats[0].retransmits > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mem_and_direct__deliver_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
