/* The endpoint's frame: options, starting flows, events, dispatch. */
#include "unit/core/host/endpoint_fixture.h"

static void endpoint_size__refuses_options_out_of_range(void **state)
{
    (void)state;
    struct gw_pkt_pool pool;
    struct gw_endpoint_cfg good = fixture_cfg(), bad[16];
    uint32_t count = 0;
    good.pool = &pool;
    assert_true(gw_endpoint_size(&good) > 0);
    for (uint32_t i = 0; i < GW_COUNT_OF(bad); i++)
        bad[i] = good;
    bad[count++].port_count = 0;
    bad[count++].tx_flows_max = 0;
    bad[count++].tx_flows_max = 65537;
    bad[count++].rx_flows_max = 0;
    bad[count++].rx_flows_max = (1 << 20) + 1;
    bad[count++].span_max = 32;
    bad[count++].span_max = 100;
    bad[count++].span_max = 16384;
    bad[count++].mtu = 0;
    bad[count++].mtu = 65536;
    bad[count++].ack_every = 0;
    bad[count++].ack_every = GW_ACK_EVERY_MAX + 1;
    bad[count++].train = 0;
    bad[count++].pool = NULL;
    bad[count++].apps_max = 4097;
    bad[count++].app_events_max = (1 << 20) + 1;
    for (uint32_t i = 0; i < count; i++)
        if (gw_endpoint_size(&bad[i]) != 0)
            fail_msg("option %u", i);
}

static void endpoint_send__refuses_what_it_cannot_send(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    unsigned char byte = 0;
    uint32_t flow;
    fixture_open(&f, &cfg, "1000");
    struct gw_send good = {.peer = THEIRS,
                           .bytes = 1,
                           .transport = &f.transport,
                           .path = gw_test_path(&f.cfg, RATE_BPS, BRTT)};
    struct gw_send bad[4] = {good, good, good, good};
    bad[0].transport = NULL;
    bad[1].class = GW_CLASS_CONTROL;
    bad[2].path.rate_bps = 0;
    bad[3].bytes = (UINT64_C(1) << 32) * MTU;
    for (uint32_t i = 0; i < GW_COUNT_OF(bad); i++)
        assert_int_equal(gw_endpoint_send(f.endpoint, &bad[i], &flow, f.now), GW_ERR_INVALID);
    /* Payload needs buffers of a full packet. */
    struct gw_buf_pool *bufs = f.host.pool.bufs;
    f.host.pool.bufs = NULL;
    good.data = &byte;
    assert_int_equal(gw_endpoint_send(f.endpoint, &good, &flow, f.now), GW_ERR_INVALID);
    f.host.pool.bufs = bufs;
    assert_int_equal(f.node->ready_count, 0);
    fixture_no_event(&f);
    fixture_close(&f);
}

static void endpoint_send__completes_an_empty_message_at_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "1000");
    uint32_t first = fixture_send(&f, 0);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_SENT);
    assert_int_equal(event.flow, first);
    assert_true(event.at == f.now && event.bytes == 0);
    assert_int_equal(f.node->ready_count, 0);
    assert_int_not_equal(fixture_send(&f, 0), first); /* numbers are not reused at once */
    fixture_event(&f);
    fixture_close(&f);
}

/* As many flows as there is room for; the next one is refused until one has ended. */
static void endpoint_send__has_a_limit(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_pkt pkts[4];
    uint32_t flow, flows[3];
    cfg.tx_flows_max = 3;
    fixture_open(&f, &cfg, "1000");
    for (uint32_t i = 0; i < 3; i++)
        flows[i] = fixture_send(&f, MTU);
    assert_int_equal(fixture_try_send(&f, MTU, 0, &flow), GW_ERR_NO_ROOM);
    assert_int_equal(fixture_pull(&f, pkts, 4), 3);
    fixture_ack(&f, &pkts[1], 1);
    assert_int_equal(fixture_event(&f).flow, flows[1]);
    assert_int_equal(fixture_try_send(&f, MTU, 0, &flow), GW_OK);
    assert_int_not_equal(flow, flows[1]); /* the same index, another number */
    fixture_ack(&f, &pkts[1], 1);         /* late, for the flow that was there before */
    assert_true(fixture_stats(&f)->stray == 1);
    assert_int_equal(fixture_pull(&f, pkts + 3, 1), 1);
    fixture_ack(&f, &pkts[0], 1);
    fixture_ack(&f, &pkts[2], 1);
    fixture_ack(&f, &pkts[3], 1);
    struct gw_event events[4];
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 4), 3);
    fixture_close(&f);
}

/*
 * Nobody polls: what would end with an event that finds no room does not begin. After a poll all
 * goes on.
 */
static void endpoint_events__never_overflow(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_pkt pkt;
    uint32_t flow;
    cfg.tx_flows_max = 2;
    cfg.rx_flows_max = 2; /* so there is room for 4 events */
    fixture_open(&f, &cfg, "1000");
    for (uint32_t i = 0; i < 3; i++)
        fixture_send(&f, 0);
    uint32_t running = fixture_send(&f, MTU); /* promised */
    assert_int_equal(fixture_try_send(&f, 0, 0, &flow), GW_ERR_NO_ROOM);
    assert_int_equal(fixture_try_send(&f, MTU, 0, &flow), GW_ERR_NO_ROOM);
    struct gw_pkt data = fixture_data(1, 0, 1);
    fixture_input(&f, &data);
    assert_true(fixture_stats(&f)->refused == 1);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    fixture_ack(&f, &pkt, 1);
    assert_int_equal(f.node->event_count, 4);

    struct gw_event events[8];
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 1), 1);
    fixture_input(&f, &data);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    assert_int_equal(pkt.q.kind, GW_PKT_ACK);
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 8), 4);
    assert_int_equal(events[2].flow, running);
    assert_int_equal(events[3].kind, GW_EVENT_RECEIVED);
    assert_int_equal(f.node->event_count, 0);
    fixture_close(&f);
}

static void endpoint_input__counts_what_is_not_for_it(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_pkt pkt = fixture_data(1, 0, 1);
    fixture_open(&f, &cfg, "1000");
    pkt.dst = THEIRS;
    fixture_input(&f, &pkt);
    assert_true(fixture_stats(&f)->stray == 1);
    pkt.dst = OURS;
    pkt.q.kind = GW_PKT_KINDS;
    fixture_input(&f, &pkt);
    assert_true(fixture_stats(&f)->malformed == 1);
    pkt.q.kind = GW_PKT_GRAD; /* of a job that nobody here has */
    fixture_input(&f, &pkt);
    assert_true(fixture_stats(&f)->stray == 2);
    assert_int_equal(f.ready_count, 0);
    fixture_no_event(&f);
    fixture_close(&f);
}

static void endpoint_expect__has_a_limit(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    unsigned char memory[4];
    cfg.expect_max = 2;
    fixture_open(&f, &cfg, "1000");
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, 1, memory, 4), GW_OK);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, 2, memory, 4), GW_OK);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, 3, memory, 4), GW_ERR_NO_ROOM);
    fixture_close(&f);
}

static void endpoint_flow_info__knows_no_strangers(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_flow_info info;
    struct gw_pkt pkt;
    fixture_open(&f, &cfg, "1000");
    assert_false(gw_endpoint_flow_info(f.endpoint, 0, &info));
    assert_false(gw_endpoint_flow_info(f.endpoint, UINT32_MAX, &info));
    uint32_t flow = fixture_send(&f, MTU);
    assert_true(gw_endpoint_flow_info(f.endpoint, flow, &info));
    assert_true(info.cwnd == 1000 && info.window_packets == 0);
    assert_false(gw_endpoint_flow_info(f.endpoint, flow + (1 << 16), &info));
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    fixture_ack(&f, &pkt, 1);
    assert_false(gw_endpoint_flow_info(f.endpoint, flow, &info));
    fixture_event(&f);
    fixture_close(&f);
}

/* What a crash of the host does: nothing stays, and what is made in the same memory is new. */
static void endpoint_fini__releases_and_can_be_made_again(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_flow_info info;
    struct gw_pkt pkt;
    fixture_open(&f, &cfg, "4000");
    uint32_t first = fixture_send(&f, 4 * MTU);
    assert_int_equal(fixture_pull(&f, &pkt, 1), 1);
    for (uint32_t seq = 0; seq < 3; seq++) {
        struct gw_pkt data = fixture_data(1, seq, 4);
        fixture_input(&f, &data);
    }
    assert_int_equal(gw_endpoint_fini(f.endpoint), 3);
    assert_int_equal(gw_endpoint_fini(f.endpoint), 0);
    cfg.pool = &f.host.pool;
    cfg.generation = 7;
    assert_ptr_equal(gw_endpoint_init(f.endpoint, &cfg), f.endpoint);
    f.ready_count = 0;
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    assert_false(gw_endpoint_flow_info(f.endpoint, first, &info));
    uint32_t again = fixture_send(&f, MTU);
    assert_int_equal(again >> 16, 7);
    assert_int_equal(again & UINT16_MAX, first & UINT16_MAX);
    fixture_ack(&f, &pkt, 1); /* late, for the flow of the earlier life */
    assert_true(fixture_stats(&f)->stray == 1);
    assert_int_equal(fixture_pull(&f, &pkt, 2), 1);
    fixture_ack(&f, &pkt, 1);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
    fixture_close(&f);
}

/* A PAUSE that has not left is a packet, too; the latest of a port, so one for each. */
static void endpoint_fini__releases_pauses(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.port_count = 3;
    fixture_open(&f, &cfg, "4000");
    assert_true(gw_endpoint_pause(f.endpoint, 0, GW_US));
    assert_true(gw_endpoint_pause(f.endpoint, 2, GW_US));
    assert_true(gw_endpoint_pause(f.endpoint, 2, 0));
    assert_int_equal(gw_endpoint_fini(f.endpoint), 2);
    assert_int_equal(gw_endpoint_fini(f.endpoint), 0);
    fixture_close(&f); /* fails when a packet is missing */
}

static uint32_t send_from(struct endpoint_fixture *f, const unsigned char *data)
{
    uint32_t flow;
    struct gw_send send = {
        .peer = THEIRS,
        .bytes = MTU,
        .data = data,
        .transport = &f->transport,
        .path = gw_test_path(&f->cfg, RATE_BPS, BRTT),
    };
    assert_int_equal(gw_endpoint_send(f->endpoint, &send, &flow, f->now), GW_OK);
    return flow;
}

static void input_payload(struct endpoint_fixture *f, uint32_t flow, uint32_t seq)
{
    struct gw_pkt data = fixture_data(flow, seq, 2);
    data.buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, data.buf), 0xaa, MTU);
    fixture_input(f, &data);
}

/*
 * Of each kind of use, one inside of what is forgotten and one outside: flows 1 and 2 receive,
 * memory is posted for 3 and 4, and two flows send. The full number of each can then begin again.
 */
static void endpoint_forget__lets_go_of_memory(void **state)
{
    (void)state;
    static unsigned char memory[8 * MTU], untouched[MTU];
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    struct gw_flow_info info;
    struct gw_pkt pkts[8];
    cfg.tx_flows_max = 2;
    cfg.rx_flows_max = 4;
    cfg.expect_max = 4;
    cfg.stall = 10 * GW_MS;
    fixture_open(&f, &cfg, "1000");
    for (uint32_t tag = 1; tag <= 4; tag++)
        assert_int_equal(
            gw_endpoint_expect(f.endpoint, THEIRS, tag, memory + 2 * MTU * (tag - 1), 2 * MTU), 0);
    input_payload(&f, 1, 0);
    input_payload(&f, 2, 0);
    uint32_t within = send_from(&f, memory + 3 * MTU), beyond = send_from(&f, memory + 4 * MTU);

    gw_endpoint_forget(f.endpoint, memory + 2 * MTU, 2 * MTU); /* 2 and the first sender */
    gw_endpoint_forget(f.endpoint, memory + 6 * MTU, 1);       /* 4 */
    gw_endpoint_forget(f.endpoint, memory + 4 * MTU - 1, 1);   /* nothing begins there */
    gw_endpoint_forget(f.endpoint, memory, 0);                 /* no memory at all */
    assert_false(gw_endpoint_flow_info(f.endpoint, within, &info));
    assert_true(gw_endpoint_flow_info(f.endpoint, beyond, &info));
    memset(memory + 2 * MTU, 0, 2 * MTU);
    input_payload(&f, 2, 1);
    input_payload(&f, 4, 0);
    assert_true(fixture_stats(&f)->refused == 2);
    assert_memory_equal(memory + 2 * MTU, untouched, MTU);
    assert_memory_equal(memory + 3 * MTU, untouched, MTU);
    assert_memory_equal(memory + 6 * MTU, untouched, MTU);
    fixture_no_event(&f);

    input_payload(&f, 1, 1);
    assert_int_equal(fixture_event(&f).flow, 1);
    send_from(&f, memory);
    /* The ACKs of 1 and 2, that 4 is not expected, the last ACK of 1, then both senders. */
    assert_int_equal(fixture_pull(&f, pkts, 8), 6);
    assert_int_equal(pkts[2].q.kind, GW_PKT_NACK);
    assert_int_equal(pkts[4].q.kind, GW_PKT_DATA);
    assert_int_equal(pkts[4].flow, beyond);
    fixture_ack(&f, &pkts[4], 1);
    fixture_ack(&f, &pkts[5], 1);
    struct gw_event events[4];
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 4), 2);
    /* 3 is still posted; two of the four places were left behind by 1 and 2, one by 4. */
    for (uint32_t tag = 5; tag <= 7; tag++)
        assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, tag, memory, MTU), GW_OK);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, 8, memory, MTU), GW_ERR_NO_ROOM);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoint_size__refuses_options_out_of_range),
        cmocka_unit_test(endpoint_send__refuses_what_it_cannot_send),
        cmocka_unit_test(endpoint_send__completes_an_empty_message_at_once),
        cmocka_unit_test(endpoint_send__has_a_limit),
        cmocka_unit_test(endpoint_events__never_overflow),
        cmocka_unit_test(endpoint_input__counts_what_is_not_for_it),
        cmocka_unit_test(endpoint_expect__has_a_limit),
        cmocka_unit_test(endpoint_flow_info__knows_no_strangers),
        cmocka_unit_test(endpoint_fini__releases_and_can_be_made_again),
        cmocka_unit_test(endpoint_fini__releases_pauses),
        cmocka_unit_test(endpoint_forget__lets_go_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
