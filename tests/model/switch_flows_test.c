/*
 * Endpoints and a switch under a hand-cranked clock, joined by the in-memory datapath: every
 * packet, trimmed ones included, passes through its bytes on each link.
 */
#include "host.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "net/mem.h"

enum {
    SENDERS = 2,
    RECEIVER = SENDERS, /* its address and port; senders are 0 to SENDERS - 1 */
    HOSTS = SENDERS + 1,
    MTU = 1000,
    HDR = 44,
    PKTS = 2048,
    BYTES = 500 * MTU + 1,
    QUEUE_PACKETS = 10, /* far below the two windows of the first round trip */
    STEPS_MAX = 1000000,
};

#define LATENCY  (2 * GW_US)
#define RATE_BPS UINT64_C(10000000000)
#define BRTT     (4 * LATENCY + 2 * GW_US)

struct model {
    struct gw_mem *mem;
    struct gw_endpoint_cfg cfg[HOSTS];
    struct gw_test_host hosts[HOSTS];
    struct gw_switch *sw;
    struct gw_pkt_pool sw_pool;
    struct gw_buf_pool sw_bufs;
    unsigned char *sent[SENDERS];
    unsigned char *received[SENDERS];
};

/* Port i of the switch leads to host i. */
static const uint16_t leaves[HOSTS] = {0, 1, 2};

static void switch_open(struct model *m, const char *qdisc)
{
    static const uint32_t capacity[HOSTS] = {1 << 20, 1 << 20, QUEUE_PACKETS * (MTU + HDR)};
    struct gw_switch_cfg cfg = gw_test_switch_cfg(HOSTS, qdisc, &m->sw_pool);
    cfg.capacity = capacity;
    cfg.trim_size = HDR;
    cfg.routes = gw_test_routes(leaves, HOSTS);
    gw_test_pool_open(&m->sw_pool, &m->sw_bufs, PKTS, MTU);
    m->sw = gw_test_switch_open(&cfg);
}

static void model_open(struct model *m, const char *qdisc)
{
    *m = (struct model){0};
    m->mem = gw_mem_open(&(struct gw_mem_cfg){.cookie = 3,
                                              .mtu = MTU,
                                              .frames_max = PKTS,
                                              .batch = 1,
                                              .start = (gw_time)0 - GW_MS}); /* wraps soon */
    assert_non_null(m->mem);
    for (uint32_t i = 0; i < HOSTS; i++) {
        m->cfg[i] = gw_test_host_cfg(i, MTU);
        m->cfg[i].hdr = HDR;
        gw_test_host_open(&m->hosts[i], &m->cfg[i], PKTS);
        gw_mem_add(m->mem, gw_endpoint_node(m->hosts[i].endpoint), &m->hosts[i].pool);
    }
    switch_open(m, qdisc);
    uint32_t sw = gw_mem_add(m->mem, gw_switch_node(m->sw), &m->sw_pool);
    for (uint16_t i = 0; i < HOSTS; i++) {
        struct gw_mem_link link = {.latency = LATENCY, .rate_bps = RATE_BPS};
        gw_mem_connect(m->mem, i, 0, sw, i, &link);
        gw_mem_connect(m->mem, sw, i, i, 0, &link);
    }
}

static void model_start(struct model *m, const struct gw_transport *transport, bool trims)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        uint32_t flow;
        m->sent[i] = malloc(BYTES);
        m->received[i] = calloc(1, BYTES);
        assert_non_null(m->sent[i]);
        assert_non_null(m->received[i]);
        gw_test_fill(m->sent[i], BYTES, i);
        struct gw_send send = {
            .peer = RECEIVER,
            .bytes = BYTES,
            .data = m->sent[i],
            .transport = transport,
            .path = gw_test_path(&m->cfg[i], RATE_BPS, BRTT),
        };
        send.path.trims = trims;
        send.path.hops = 2;
        assert_int_equal(
            gw_endpoint_expect(m->hosts[RECEIVER].endpoint, i, 0, m->received[i], BYTES), 0);
        assert_int_equal(gw_endpoint_send(m->hosts[i].endpoint, &send, &flow, gw_mem_now(m->mem)),
                         0);
    }
}

static void model_run(struct model *m)
{
    struct gw_event event;
    uint32_t sent = 0, received = 0;
    for (uint32_t steps = 0; gw_mem_step(m->mem, GW_TIME_NEVER); steps++) {
        assert_true(steps < STEPS_MAX);
        for (uint32_t i = 0; i < HOSTS; i++) {
            while (gw_endpoint_poll(m->hosts[i].endpoint, &event, 1)) {
                assert_int_equal(event.kind, i == RECEIVER ? GW_EVENT_RECEIVED : GW_EVENT_SENT);
                assert_true(event.bytes == BYTES);
                *(i == RECEIVER ? &received : &sent) += 1;
            }
        }
    }
    assert_int_equal(sent, SENDERS);
    assert_int_equal(received, SENDERS);
}

static void model_close(struct model *m)
{
    for (uint16_t i = 0; i < HOSTS; i++) {
        assert_int_equal(gw_switch_backlog(m->sw, i), 0);
        gw_test_host_close(&m->hosts[i]);
    }
    gw_test_switch_check(m->sw, HOSTS);
    for (uint32_t i = 0; i < 2 * HOSTS; i++)
        assert_true(gw_mem_stats(m->mem, i)->malformed == 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        assert_memory_equal(m->sent[i], m->received[i], BYTES);
        free(m->sent[i]);
        free(m->received[i]);
    }
    gw_test_pool_close(&m->sw_pool);
    free(m->sw);
    gw_mem_close(m->mem);
}

static void switch_and_flows__trimmed_packets_are_repaired_by_nacks(void **state)
{
    (void)state;
    struct model m;
    struct gw_transport transport = gw_test_transport("smartt", "reps", "trim");
    model_open(&m, "trim");
    model_start(&m, &transport, true);
    model_run(&m);
    struct gw_port_stats port = gw_switch_port_stats(m.sw, RECEIVER);
    const struct gw_endpoint_stats *receiver = gw_endpoint_stats(m.hosts[RECEIVER].endpoint);
    assert_true(port.trims > 0 && port.marks > 0);
    assert_true(port.drops == 0);
    assert_true(receiver->nacks_sent == port.trims);
    uint64_t resent = 0, timeouts = 0;
    for (uint32_t i = 0; i < SENDERS; i++) {
        resent += gw_endpoint_stats(m.hosts[i].endpoint)->retransmits;
        timeouts += gw_endpoint_stats(m.hosts[i].endpoint)->timeouts;
    }
    assert_true(resent == port.trims && timeouts == 0);
    model_close(&m);
}

static void switch_and_flows__dropped_packets_are_repaired_by_timeouts(void **state)
{
    (void)state;
    struct model m;
    struct gw_transport transport = gw_test_transport("smartt", "spray", "timeout");
    model_open(&m, "red");
    model_start(&m, &transport, false);
    model_run(&m);
    struct gw_port_stats port = gw_switch_port_stats(m.sw, RECEIVER);
    assert_true(port.drops > 0 && port.trims == 0);
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch_and_flows__trimmed_packets_are_repaired_by_nacks),
        cmocka_unit_test(switch_and_flows__dropped_packets_are_repaired_by_timeouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
