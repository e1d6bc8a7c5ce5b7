/* Messages that are combined with what lies where they belong, packet by packet. */
#include "base/cpu.h"
#include "core/quant/number.h"
#include "unit/core/host/endpoint_fixture.h"

enum {
    FLOW = 7,
    TOTAL = 3,
    VALUES = TOTAL * MTU / 4, /* of a message */
};

struct merge_fixture {
    struct endpoint_fixture f;
    int32_t values[VALUES]; /* that the message is combined with: each its number */
    int32_t stored[VALUES]; /* where it comes otherwise */
    struct gw_merger merger;
};

static void merge_open(struct merge_fixture *m)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&m->f, &cfg, "1MB");
    for (int32_t i = 0; i < VALUES; i++) {
        m->values[i] = i;
        m->stored[i] = -1;
    }
    m->merger = (struct gw_merger){
        .kernels = gw_kernels_best(gw_cpu_features()),
        .how = {.op = GW_OP_SUM, .type = GW_DTYPE_I32, .shares = 1},
    };
    const struct gw_expect expect = {.peer = THEIRS,
                                     .tag = FLOW,
                                     .data = m->stored,
                                     .bytes = sizeof(m->stored),
                                     .into = m->values,
                                     .merger = &m->merger};
    assert_int_equal(gw_endpoint_expect_part(m->f.endpoint, &expect), GW_OK);
}

static void merge_close(struct merge_fixture *m)
{
    struct gw_pkt pkts[8];
    fixture_pull(&m->f, pkts, 8);
    fixture_close(&m->f);
}

/* Packet `seq`, each of whose values is `value`. */
static void feed(struct merge_fixture *m, uint32_t seq, uint16_t mss, int32_t value)
{
    struct gw_pkt *pkt = gw_pkt_claim(&m->f.host.pool);
    *pkt = fixture_data(FLOW, seq, TOTAL);
    pkt->data.mss = pkt->data.len = mss;
    pkt->buf = gw_buf_claim(&m->f.host.bufs);
    for (uint32_t i = 0; i < MTU; i += 4)
        gw_u32_store(gw_buf_bytes(&m->f.host.bufs, pkt->buf) + i, (uint32_t)value);
    gw_node_input(m->f.node, 0, &pkt, 1, m->f.now);
    fixture_take_ready(&m->f);
}

/* In whatever order they come, and once each. */
static void flow_merge__adds_each_packet_once(void **state)
{
    (void)state;
    struct merge_fixture m;
    merge_open(&m);
    feed(&m, 2, MTU, 300000);
    feed(&m, 2, MTU, 300000);
    feed(&m, 0, MTU, 100000);
    feed(&m, 0, MTU, 100000);
    fixture_no_event(&m.f);
    feed(&m, 1, MTU, 200000);
    struct gw_event event = fixture_event(&m.f);
    assert_true(event.kind == GW_EVENT_RECEIVED && event.is_merged && !event.overflows);
    feed(&m, 1, MTU, 200000); /* it has ended */
    for (int32_t i = 0; i < VALUES; i++) {
        assert_int_equal(m.values[i], i + (i * 4 / MTU + 1) * 100000);
        assert_int_equal(m.stored[i], -1);
    }
    merge_close(&m);
}

/* Who sends in other pieces gets his message stored, for the receiver to combine it. */
static void flow_merge__stores_what_cuts_elements(void **state)
{
    (void)state;
    struct merge_fixture m;
    merge_open(&m);
    for (uint32_t seq = 0; seq < TOTAL; seq++)
        feed(&m, seq, MTU - 2, 0x05050505);
    struct gw_event event = fixture_event(&m.f);
    assert_true(event.kind == GW_EVENT_RECEIVED && !event.is_merged && !event.overflows);
    for (int32_t i = 0; i < VALUES; i++)
        assert_int_equal(m.values[i], i);
    for (uint32_t i = 0; i < TOTAL * (MTU - 2); i++)
        assert_int_equal(((unsigned char *)m.stored)[i], 5);
    merge_close(&m);
}

static void flow_merge__says_what_does_not_fit(void **state)
{
    (void)state;
    struct merge_fixture m;
    merge_open(&m);
    feed(&m, 0, MTU, INT32_MAX); /* one of them is added to 0 */
    feed(&m, 1, MTU, 1);
    feed(&m, 2, MTU, 1);
    struct gw_event event = fixture_event(&m.f);
    assert_true(event.is_merged && event.overflows);
    merge_close(&m);
}

/* Before the first packet and after it. */
static void flow_merge__leaves_alone_what_is_given_back(void **state)
{
    (void)state;
    for (uint32_t packets = 0; packets < 2; packets++) {
        struct merge_fixture m;
        merge_open(&m);
        if (packets)
            feed(&m, 0, MTU, 100000);
        gw_endpoint_forget(m.f.endpoint, m.values, sizeof(m.values));
        assert_false(gw_endpoint_expects(m.f.endpoint, THEIRS, FLOW));
        feed(&m, 1, MTU, 100000);
        feed(&m, 2, MTU, 100000);
        for (int32_t i = 0; i < VALUES; i++)
            assert_int_equal(m.values[i], i + (packets && i * 4 < MTU ? 100000 : 0));
        fixture_no_event(&m.f);
        merge_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_merge__adds_each_packet_once),
        cmocka_unit_test(flow_merge__stores_what_cuts_elements),
        cmocka_unit_test(flow_merge__says_what_does_not_fit),
        cmocka_unit_test(flow_merge__leaves_alone_what_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
