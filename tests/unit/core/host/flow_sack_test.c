/*
 * A flow whose losses are inferred from what arrived: which packets it resends, when the first of
 * them leaves, what a timeout and a probe do, and what congestion control is told of it all.
 */
#include "endpoint_fixture.h"

enum {
    WINDOW = 10, /* packets */
    TOTAL = 100,
};

/* What congestion control has been told; its window is halved for the first loss. */
static struct {
    uint32_t losses, timeouts;
    gw_time sent_at; /* of the latest loss */
} told;

static void told_init(void *state, const void *cfg, const struct gw_path *path,
                      struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)now;
    told.losses = told.timeouts = 0;
    *window = (struct gw_cc_window){.cwnd = (uint64_t)WINDOW * path->mtu};
}

static void told_on_ack(void *state, const void *cfg, const struct gw_path *path,
                        const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)ack;
    (void)window;
    (void)now;
}

static void told_on_loss(void *state, const void *cfg, const struct gw_path *path,
                         const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)now;
    assert_false(loss->trimmed);
    told.losses++;
    told.timeouts += loss->is_timeout;
    told.sent_at = loss->sent_at;
    window->cwnd = WINDOW / 2 * (uint64_t)path->mtu;
}

static uint64_t told_remember(const void *state, const void *cfg)
{
    (void)state;
    (void)cfg;
    return 77;
}

static const struct gw_cc_ops told_ops = {
    .algo = {.name = "told", .summary = "-", .source = "-"},
    .init = told_init,
    .on_ack = told_on_ack,
    .on_loss = told_on_loss,
    .remember = told_remember,
};

/* Takes what may leave, up to `max` packets, each at a time of its own. */
static uint32_t pull(struct endpoint_fixture *f, struct gw_pkt *pkts, uint32_t max)
{
    uint32_t count = 0;
    while (count < max && fixture_pull(f, &pkts[count], 1)) {
        count++;
        f->now += 100 * GW_NS;
    }
    return count;
}

/* Starts a message of `total` packets and takes its first window. */
static uint32_t sack_open(struct endpoint_fixture *f, uint32_t total, struct gw_pkt *pkts)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(f, &cfg, "1000");
    f->transport = gw_test_transport("fixed", "ecmp", "sack");
    f->transport.cc = &told_ops;
    fixture_send(f, (uint64_t)total * MTU);
    f->now += GW_US;
    return pull(f, pkts, WINDOW);
}

/* Acknowledges a packet alone: nothing below it but what `cum` says. */
static void ack(struct endpoint_fixture *f, const struct gw_pkt *data, uint32_t cum)
{
    f->now += GW_US;
    fixture_ack(f, data, cum);
}

static void close_early(struct endpoint_fixture *f)
{
    gw_test_host_close(&f->host);
}

/* The third ACK above a hole makes it a loss; it leaves at once, though the window is halved. */
static void flow_sack__resends_after_three_arrivals(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[WINDOW], more[WINDOW];
    assert_int_equal(sack_open(&f, TOTAL, pkts), WINDOW);
    for (uint32_t i = 1; i <= 2; i++) {
        ack(&f, &pkts[i], 0);
        assert_int_equal(pull(&f, more, WINDOW), 1);
        assert_int_equal(more[0].seq, WINDOW + i - 1); /* a new one for each */
    }
    assert_int_equal(told.losses, 0);
    ack(&f, &pkts[3], 0);
    assert_true(told.losses == 1 && told.timeouts == 0);
    assert_in_range(told.sent_at - pkts[0].sent_at, 0, 2 * 4096);
    assert_int_equal(pull(&f, more, WINDOW), 1);
    assert_int_equal(more[0].seq, 0);
    /* Then nothing until what is in flight, 9 packets, is below the window of 5. */
    for (uint32_t i = 4; i <= 7; i++) {
        ack(&f, &pkts[i], 0);
        assert_int_equal(pull(&f, more + 1, 1), 0);
    }
    ack(&f, &pkts[8], 0);
    assert_int_equal(pull(&f, more + 1, 1), 1);
    assert_int_equal(more[1].seq, WINDOW + 2);
    /* The copy closes the hole. */
    ack(&f, &more[0], 9);
    assert_int_equal(told.losses, 1);
    assert_true(fixture_stats(&f)->overtaken == 1 && fixture_stats(&f)->timeouts == 0);
    close_early(&f);
}

/* All that was sent before three arrivals is lost together, and only the first is urgent. */
static void flow_sack__finds_all_holes_at_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[WINDOW], more[WINDOW];
    assert_int_equal(sack_open(&f, WINDOW, pkts), WINDOW);
    ack(&f, &pkts[7], 0);
    ack(&f, &pkts[9], 0);
    ack(&f, &pkts[4], 0);
    assert_int_equal(told.losses, 4); /* 0 to 3: the fourth of the newest three left before 5, 6 */
    assert_int_equal(pull(&f, more, WINDOW), 2);
    assert_true(more[0].seq == 0 && more[1].seq == 1); /* 3 in flight, a window of 5 */
    ack(&f, &pkts[8], 0);
    assert_int_equal(told.losses, 6);
    close_early(&f);
}

/* A copy that is lost again is found like any other packet: by later arrivals, not by its age. */
static void flow_sack__finds_a_copy_that_is_lost(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[WINDOW], copy, more[2 * WINDOW];
    assert_int_equal(sack_open(&f, TOTAL, pkts), WINDOW);
    for (uint32_t i = 1; i <= 3; i++)
        ack(&f, &pkts[i], 0);
    uint32_t count = pull(&f, more, 2 * WINDOW);
    assert_true(count >= 1 && more[0].seq == 0);
    copy = more[0];
    for (uint32_t i = 4; i < WINDOW; i++)
        ack(&f, &pkts[i], 0);
    f.now += GW_US;
    count = pull(&f, more, 2 * WINDOW);
    assert_true(count >= 3);
    ack(&f, &more[0], 0);
    ack(&f, &more[1], 0);
    assert_int_equal(told.losses, 1);
    ack(&f, &more[2], 0);
    assert_int_equal(told.losses, 2);
    assert_in_range(told.sent_at - copy.sent_at, 0, 2 * 4096);
    close_early(&f);
}

/* A probe after two round trips without an answer: a new packet if there is one, else the last. */
static void flow_sack__probes_a_silent_tail(void **state)
{
    (void)state;
    for (uint32_t total = WINDOW; total <= TOTAL; total += TOTAL - WINDOW) {
        struct endpoint_fixture f;
        struct gw_pkt pkts[WINDOW], probe, more[WINDOW];
        assert_int_equal(sack_open(&f, total, pkts), WINDOW);
        gw_time begin = f.now;
        while (fixture_stats(&f)->probes == 0)
            fixture_expire(&f);
        assert_in_range(f.now, begin + 2 * BRTT - GW_US, begin + 2 * BRTT + GW_US);
        assert_int_equal(pull(&f, more, WINDOW), 1);
        probe = more[0];
        assert_int_equal(probe.seq, total == WINDOW ? WINDOW - 1 : WINDOW);
        assert_int_equal(told.losses, 0);
        /* Its answer tells that the tail is lost; half of it may leave at once. */
        f.now += BRTT;
        ack(&f, &probe, 0);
        assert_int_equal(told.losses, total == WINDOW ? WINDOW - 1 : WINDOW);
        assert_true(fixture_stats(&f)->timeouts == 0);
        assert_int_equal(pull(&f, more, WINDOW), WINDOW / 2);
        assert_int_equal(more[0].seq, 0);
        close_early(&f);
    }
}

/* Without an answer to that either, all is lost after the timeout, which an answer restarts. */
static void flow_sack__loses_all_after_a_timeout(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[WINDOW], more[WINDOW];
    assert_int_equal(sack_open(&f, TOTAL, pkts), WINDOW);
    f.now += 5 * GW_US;
    ack(&f, &pkts[0], 1);
    gw_time heard = f.now;
    while (fixture_stats(&f)->timeouts == 0)
        fixture_expire(&f);
    assert_true(fixture_stats(&f)->probes == 1);
    assert_in_range(f.now, heard + 10 * GW_MS - GW_US, heard + 10 * GW_MS + GW_US);
    assert_true(told.losses == WINDOW - 1 && told.timeouts == WINDOW - 1);
    pull(&f, more, WINDOW);
    assert_true(more[0].seq == 1 && more[1].seq == 2); /* before new ones, and in order */
    close_early(&f);
}

/* An ACK for several packets counts each of them, a late one of a copy none. */
static void flow_sack__counts_packets_not_acks(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[WINDOW];
    assert_int_equal(sack_open(&f, TOTAL, pkts), WINDOW);
    struct gw_pkt both = fixture_answer(&pkts[4], GW_PKT_ACK, 0);
    both.ack.mask[1] = 1;                 /* itself, */
    both.ack.mask[0] = UINT32_C(1) << 31; /* and the one before */
    fixture_input(&f, &both);
    assert_int_equal(told.losses, 0);
    both.ack.mask[0] |= UINT32_C(1) << 30;
    fixture_input(&f, &both);
    assert_int_equal(told.losses, 2); /* 0 and 1: three that left after them are there */
    close_early(&f);
}

/* What a flow leaves for the next one comes with its end. */
static void flow_end__tells_what_to_remember(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[WINDOW];
    assert_int_equal(sack_open(&f, WINDOW, pkts), WINDOW);
    ack(&f, &pkts[WINDOW - 1], WINDOW);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_SENT);
    assert_true(event.window == WINDOW * MTU && event.memory == 77);
    close_early(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_sack__resends_after_three_arrivals),
        cmocka_unit_test(flow_sack__finds_all_holes_at_once),
        cmocka_unit_test(flow_sack__finds_a_copy_that_is_lost),
        cmocka_unit_test(flow_sack__probes_a_silent_tail),
        cmocka_unit_test(flow_sack__loses_all_after_a_timeout),
        cmocka_unit_test(flow_sack__counts_packets_not_acks),
        cmocka_unit_test(flow_end__tells_what_to_remember),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
