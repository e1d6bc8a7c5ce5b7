/* Flows that have ended, and whose places are others': their senders are told how. */
#include "percent_policy.h"
#include "unit/core/host/endpoint_fixture.h"

enum {
    FLOW = 77,
    TAG = 5,
    TOTAL = 4,
};

static unsigned char memory[TOTAL * MTU];

/* Packet `seq` of flow FLOW and so many; returns the answer. */
static struct gw_pkt come_of(struct endpoint_fixture *f, uint32_t tag, uint32_t seq, uint32_t total)
{
    struct gw_pkt data = fixture_data(FLOW, seq, total), back;
    data.data.tag = tag;
    data.buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, data.buf), 0xaa, MTU);
    fixture_input(f, &data);
    assert_int_equal(fixture_pull(f, &back, 1), 1);
    return back;
}

static struct gw_pkt come(struct endpoint_fixture *f, uint32_t seq)
{
    return come_of(f, TAG, seq, TOTAL);
}

/* Others come and go until the place is theirs. */
static void take_all_places(struct endpoint_fixture *f)
{
    for (uint32_t i = 1; i <= f->cfg.rx_flows_max; i++) {
        struct gw_pkt data = fixture_data(FLOW + i, 0, 1), back;
        fixture_input(f, &data);
        assert_int_equal(fixture_pull(f, &back, 1), 1);
        assert_int_equal(fixture_event(f).flow, FLOW + i);
    }
}

/* Of a message of which a part was enough, how much that was. */
static void flow_past__tells_how_much_was_enough(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "4000");
    const struct gw_finish half = percent_policy(50);
    const struct gw_expect expect = {
        .peer = THEIRS, .tag = TAG, .data = memory, .bytes = sizeof(memory), .finish = &half};
    assert_int_equal(gw_endpoint_expect_part(f.endpoint, &expect), GW_OK);
    come(&f, 0);
    const struct gw_pkt end = come(&f, 2);
    assert_true(end.q.kind == GW_PKT_ACK && end.q.flags == GW_PKT_GIVEN_UP);
    assert_int_equal(fixture_event(&f).missing, 2);
    take_all_places(&f);
    const struct gw_pkt again = come(&f, 2);
    assert_true(again.q.kind == GW_PKT_ACK && again.q.flags == GW_PKT_GIVEN_UP);
    assert_true(again.ack.cum == TOTAL && gw_pkt_mask(&again) == gw_pkt_mask(&end));
    /* Others by a wrap, the second of fewer packets than had come. */
    assert_int_equal(come_of(&f, TAG + 1, 2, TOTAL).q.kind, GW_PKT_NACK);
    assert_int_equal(come_of(&f, TAG, 0, 1).q.kind, GW_PKT_NACK);
    assert_true(fixture_stats(&f)->stray == 3);
    fixture_no_event(&f);
    fixture_close(&f);
}

/* Of one that failed nothing is known: its sender may go on, in vain. */
static void flow_past__says_nothing_of_what_failed(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.stall = GW_MS;
    fixture_open(&f, &cfg, "4000");
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, TAG, memory, sizeof(memory)), GW_OK);
    assert_int_equal(come(&f, 0).q.kind, GW_PKT_ACK);
    fixture_expire(&f);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_FAILED);
    take_all_places(&f);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, TAG, memory, sizeof(memory)), GW_OK);
    assert_int_equal(come(&f, 1).q.flags, GW_PKT_NOT_READY);
    assert_true(gw_endpoint_expects(f.endpoint, THEIRS, TAG));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_past__tells_how_much_was_enough),
        cmocka_unit_test(flow_past__says_nothing_of_what_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
