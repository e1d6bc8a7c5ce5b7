/* What leaves next by a port of the endpoint, and the contract of `output`. */
#include "unit/core/host/endpoint_fixture.h"

enum {
    SENT_MAX = 256,
};

static uint32_t send_class(struct endpoint_fixture *f, uint64_t packets, uint8_t class)
{
    uint32_t flow;
    assert_int_equal(fixture_try_send(f, packets * MTU, class, &flow), GW_OK);
    return flow;
}

/* Acknowledges all of `pkts` that are data, and takes the events. */
static void settle(struct endpoint_fixture *f, const struct gw_pkt *pkts, uint32_t count)
{
    struct gw_event event;
    for (uint32_t i = 0; i < count; i++)
        if (pkts[i].q.kind == GW_PKT_DATA)
            fixture_ack(f, &pkts[i], 0);
    while (gw_endpoint_poll(f->endpoint, &event, 1))
        assert_int_equal(event.kind, GW_EVENT_SENT);
}

static void open_train(struct endpoint_fixture *f, uint32_t train)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.train = train;
    fixture_open(f, &cfg, "1000000");
}

static void egress_output__sends_control_first(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX], data = fixture_data(3, 0, 9);
    open_train(&f, 1);
    send_class(&f, 4, GW_CLASS_DATA_MAX);
    assert_int_equal(fixture_pull(&f, pkts, 2), 2);
    fixture_input(&f, &data);
    data.seq = 1;
    fixture_input(&f, &data);
    assert_int_equal(fixture_pull(&f, pkts + 2, SENT_MAX), 4);
    assert_int_equal(pkts[2].q.kind, GW_PKT_ACK);
    assert_int_equal(pkts[3].q.kind, GW_PKT_ACK);
    assert_int_equal(pkts[3].seq, 1); /* in the order of arrival */
    assert_int_equal(pkts[4].q.kind, GW_PKT_DATA);
    settle(&f, pkts, 6);
    fixture_close(&f);
}

/* Answers to one host that have one entropy leave as one, as far as the caller wants; those of
 * another kind, or to somebody else, begin the next. */
static void egress_output__sends_control_in_trains(void **state)
{
    (void)state;
    static const uint32_t maxima[] = {8, 2}, trains[][5] = {{3, 1, 1, 1}, {2, 1, 1, 1, 1}};
    for (uint32_t i = 0; i < GW_COUNT_OF(maxima); i++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        struct gw_pkt *pkts[8], data = fixture_data(3, 0, 9);
        cfg.ack_entropies = 1;
        fixture_open(&f, &cfg, "1000000");
        for (data.seq = 0; data.seq < 6; data.seq++) {
            data.src = data.seq == 5 ? THEIRS + 1 : THEIRS;
            data.q.flags = data.seq == 3 ? GW_PKT_TRIMMABLE | GW_PKT_TRIMMED : GW_PKT_TRIMMABLE;
            data.q.size = data.seq == 3 ? HDR : HDR + MTU;
            fixture_input(&f, &data);
        }
        for (uint32_t k = 0, more = GW_OUTPUT_MORE; more; k++) {
            uint32_t result = gw_node_output(f.node, 0, pkts, maxima[i], f.now);
            more = result & GW_OUTPUT_MORE;
            assert_int_equal(result & ~GW_OUTPUT_MORE, trains[i][k]);
            for (uint32_t n = 0; n < trains[i][k]; n++) {
                assert_int_equal(pkts[n]->q.kind, pkts[0]->q.kind);
                assert_int_equal(pkts[n]->dst, pkts[0]->dst);
                gw_pkt_release(&f.host.pool, pkts[n]);
            }
            assert_true((k == 4 || trains[i][k + 1] == 0) == !more);
        }
        fixture_close(&f);
    }
}

/* Higher classes leave first, whichever was there before. */
static void egress_output__serves_classes_in_order(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    static const uint8_t classes[] = {0, 3, 6, 1};
    static const uint8_t served[] = {6, 3, 1, 0};
    open_train(&f, 1);
    for (uint32_t i = 0; i < GW_COUNT_OF(classes); i++)
        send_class(&f, 5, classes[i]);
    assert_int_equal(fixture_pull(&f, pkts, 7), 7); /* 5 of class 6, 2 of class 3 */
    send_class(&f, 2, 4);
    assert_int_equal(fixture_pull(&f, pkts + 7, SENT_MAX - 7), 15);
    assert_int_equal(pkts[7].q.class, 4);
    assert_int_equal(pkts[8].q.class, 4);
    for (uint32_t i = 0; i < 22; i++)
        if (pkts[i].q.class != 4)
            assert_int_equal(pkts[i].q.class, served[(i > 8 ? i - 2 : i) / 5]);
    settle(&f, pkts, 22);
    fixture_close(&f);
}

/* Flows of one class take turns, a train each. */
static void egress_output__takes_turns(void **state)
{
    (void)state;
    static const uint32_t trains[] = {1, 3};
    for (uint32_t t = 0; t < GW_COUNT_OF(trains); t++) {
        struct endpoint_fixture f;
        struct gw_pkt pkts[SENT_MAX];
        uint32_t flows[3], train = trains[t];
        open_train(&f, train);
        for (uint32_t i = 0; i < 3; i++)
            flows[i] = send_class(&f, 12, 2);
        assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 36);
        for (uint32_t i = 0; i < 36; i++)
            assert_int_equal(pkts[i].flow, flows[i / train % 3]);
        settle(&f, pkts, 36);
        fixture_close(&f);
    }
}

/* A flow without window does not hold up the others; once it may send it takes its turn again. */
static void egress_output__skips_who_may_not_send(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "2000");
    uint32_t a = send_class(&f, 6, 0);
    uint32_t b = send_class(&f, 2, 0);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 4);
    fixture_ack(&f, &pkts[0], 0);
    assert_int_equal(pkts[0].flow, a);
    assert_int_equal(fixture_pull(&f, pkts + 4, SENT_MAX - 4), 1);
    assert_int_equal(pkts[4].flow, a);
    fixture_ack(&f, &pkts[1], 0);
    assert_int_equal(pkts[1].flow, b);
    fixture_ack(&f, &pkts[3], 0);
    fixture_event(&f);
    fixture_ack(&f, &pkts[2], 0);
    fixture_ack(&f, &pkts[4], 0);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 2);
    fixture_ack(&f, &pkts[0], 0);
    fixture_ack(&f, &pkts[1], 0);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 1);
    fixture_ack(&f, &pkts[0], 0);
    fixture_event(&f);
    fixture_close(&f);
}

/* With max 0 nothing leaves, also not control, and the port says whether it stays ready. */
static void egress_output__of_nothing_changes_nothing(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt data = fixture_data(3, 0, 9), pkts[4], *none = NULL;
    open_train(&f, 1);
    send_class(&f, 2, 0);
    assert_int_equal(gw_node_output(f.node, 0, &none, 0, f.now), GW_OUTPUT_MORE);
    fixture_input(&f, &data);
    assert_int_equal(gw_node_output(f.node, 0, &none, 0, f.now), GW_OUTPUT_MORE);
    assert_null(none);
    assert_int_equal(fixture_pull(&f, pkts, 4), 3);
    assert_int_equal(gw_node_output(f.node, 0, &none, 0, f.now), 0);
    settle(&f, pkts, 3);
    fixture_close(&f);
}

/*
 * A quiet port is reported when it gets work, once however much that is; a port that is being
 * pulled, or is reported already, is not reported again.
 */
static void egress_ready__is_reported_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8], *pkt, data = fixture_data(3, 0, 9);
    open_train(&f, 1);
    assert_int_equal(f.node->ready_count, 0);
    send_class(&f, 2, 0);
    send_class(&f, 1, 3);
    assert_int_equal(f.node->ready_count, 1);
    assert_int_equal(f.node->ready[0], 0);
    f.node->ready_count = 0;
    assert_int_equal(gw_node_output(f.node, 0, &pkt, 1, f.now), 1 | GW_OUTPUT_MORE);
    pkts[0] = *pkt;
    gw_pkt_release(&f.host.pool, pkt);
    fixture_input(&f, &data); /* between two pulls of a port that has more */
    assert_int_equal(f.ready_count, 0);
    f.ready[f.ready_count++] = 0;
    assert_int_equal(fixture_pull(&f, pkts + 1, 7), 3);
    fixture_input(&f, &data); /* now it is quiet: the duplicate's ACK wakes it */
    assert_int_equal(f.ready_count, 1);
    assert_int_equal(fixture_pull(&f, pkts + 4, 4), 1);
    settle(&f, pkts, 5);
    assert_int_equal(f.ready_count, 0); /* nothing left to say */
    fixture_close(&f);
}

/* Flows and control spread over the ports; each keeps to one. */
static void egress_ports__are_all_used(void **state)
{
    (void)state;
    enum {
        PORTS = 4,
        FLOWS = 64,
    };
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.port_count = PORTS;
    cfg.tx_flows_max = FLOWS;
    fixture_open(&f, &cfg, "1000000");
    for (uint32_t i = 0; i < FLOWS; i++)
        send_class(&f, 2, 0);
    fixture_take_ready(&f);
    assert_int_equal(f.ready_count, PORTS);
    uint32_t by_port[PORTS] = {0}, port_of[FLOWS], total = 0;
    struct gw_pkt copies[2 * FLOWS];
    for (uint32_t i = 0; i < FLOWS; i++)
        port_of[i] = PORTS;
    for (uint16_t port = 0; port < PORTS; port++) {
        struct gw_pkt *pkt;
        for (uint32_t result = GW_OUTPUT_MORE; result & GW_OUTPUT_MORE; total++) {
            result = gw_node_output(f.node, port, &pkt, 1, f.now);
            uint32_t index = pkt->flow & UINT16_MAX;
            assert_true(port_of[index] == PORTS || port_of[index] == port);
            port_of[index] = port;
            by_port[port]++;
            copies[total] = *pkt;
            gw_pkt_release(&f.host.pool, pkt);
        }
        assert_true(by_port[port] > 2 * FLOWS / PORTS / 4);
    }
    assert_int_equal(total, 2 * FLOWS);
    f.ready_count = 0;
    settle(&f, copies, total);
    fixture_close(&f);
}

/* A flow that fails while it waits for its turn leaves the others in their order. */
static void egress_ring__survives_leaving(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.stall = 10 * GW_US;
    struct gw_event event;
    fixture_open(&f, &cfg, "1000000");
    uint32_t flows[5];
    gw_time start = f.now;
    for (uint32_t i = 0; i < 5; i += 2)
        flows[i] = send_class(&f, 2, 0);
    f.now = start + 5 * GW_US;
    for (uint32_t i = 1; i < 5; i += 2)
        flows[i] = send_class(&f, 2, 0);
    f.now = start + 10 * GW_US;
    gw_node_expire(f.node, f.now);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(gw_endpoint_poll(f.endpoint, &event, 1), 1);
        assert_int_equal(event.kind, GW_EVENT_FAILED);
        assert_int_equal(event.flow, flows[2 * i]);
    }
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(pkts[i].flow, flows[i % 2 ? 3 : 1]);
    settle(&f, pkts, 4);
    fixture_close(&f);
}

/* The same for the last in the ring: here a flow that is acknowledged while it waits to resend. */
static void egress_ring__survives_the_last_one_leaving(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt first, pkts[SENT_MAX];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(&f, &cfg, "1000000");
    uint32_t flows[4];
    send_class(&f, 1, 0);
    assert_int_equal(fixture_pull(&f, &first, 1), 1);
    flows[0] = send_class(&f, 2, 0);
    flows[1] = send_class(&f, 2, 0);
    fixture_nack(&f, &first); /* joins as the last */
    fixture_ack(&f, &first, 1);
    assert_int_equal(fixture_event(&f).flow, first.flow);
    flows[2] = send_class(&f, 2, 0);
    flows[3] = send_class(&f, 2, 0);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(pkts[i].flow, flows[i % 4]);
    settle(&f, pkts, 8);
    fixture_close(&f);
}

/* To this host, of memory that is lent: without buffers it is refused, and sent again. */
static void egress_output__refuses_to_itself_without_buffers(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    unsigned char sent[3 * MTU], received[3 * MTU];
    uint32_t flow, held[PKTS + 1], count = 0;
    struct gw_event events[3];
    struct gw_pkt copy;
    cfg.lends = true;
    fixture_open(&f, &cfg, "1000000");
    f.transport = gw_test_transport("fixed", "spray", "timeout");
    gw_test_fill(sent, sizeof(sent), 1);
    struct gw_send send = {.peer = OURS,
                           .bytes = sizeof(sent),
                           .data = sent,
                           .transport = &f.transport,
                           .path = gw_test_path(&f.cfg, RATE_BPS, BRTT)};
    assert_int_equal(gw_endpoint_expect(f.endpoint, OURS, 0, received, sizeof(received)), GW_OK);
    assert_int_equal(gw_endpoint_send(f.endpoint, &send, &flow, f.now), GW_OK);
    while ((held[count] = gw_buf_claim(&f.host.bufs)) != GW_BUF_NONE)
        count++;
    assert_int_equal(fixture_pull(&f, &copy, 1), 0);
    assert_int_equal(fixture_stats(&f)->data_sent, 3);
    assert_int_equal(fixture_stats(&f)->data_received, 0);
    assert_int_equal(fixture_stats(&f)->refused, 3);
    fixture_no_event(&f);
    while (count > 0)
        gw_buf_release(&f.host.bufs, held[--count]);
    for (int i = 0; i < 10 && f.node->event_count < 2; i++) {
        fixture_expire(&f);
        assert_int_equal(fixture_pull(&f, &copy, 1), 0);
    }
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 3), 2); /* sent and received */
    assert_memory_equal(received, sent, sizeof(sent));
    assert_int_equal(fixture_stats(&f)->refused, 3);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(egress_output__sends_control_first),
        cmocka_unit_test(egress_output__sends_control_in_trains),
        cmocka_unit_test(egress_output__serves_classes_in_order),
        cmocka_unit_test(egress_output__takes_turns),
        cmocka_unit_test(egress_output__skips_who_may_not_send),
        cmocka_unit_test(egress_output__of_nothing_changes_nothing),
        cmocka_unit_test(egress_ready__is_reported_once),
        cmocka_unit_test(egress_ports__are_all_used),
        cmocka_unit_test(egress_ring__survives_leaving),
        cmocka_unit_test(egress_ring__survives_the_last_one_leaving),
        cmocka_unit_test(egress_output__refuses_to_itself_without_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
