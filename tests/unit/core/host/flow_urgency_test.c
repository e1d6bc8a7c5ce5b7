/* Flows that say how urgent their packets are: classes that fall, ranks that stay, and who leaves
 * first. */
#include "unit/core/host/endpoint_fixture.h"

#include <stdio.h>

enum {
    SENT_MAX = 64,
};

static void open_urgent(struct endpoint_fixture *f, const char *urgency, uint32_t train)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.train = train;
    fixture_open(f, &cfg, "1000000");
    f->transport.urgency = (const void *)gw_registry_find(&gw_urgency_registry, urgency);
    assert_non_null(f->transport.urgency);
    gw_algo_defaults(&f->transport.urgency->algo, f->transport.urgency_cfg.bytes);
}

static void set_tag(struct endpoint_fixture *f, const char *name, const char *value)
{
    assert_int_equal(
        gw_algo_set(&f->transport.urgency->algo, f->transport.urgency_cfg.bytes, name, value), 0);
}

static void settle(struct endpoint_fixture *f, const struct gw_pkt *pkts, uint32_t count)
{
    struct gw_event event;
    for (uint32_t i = 0; i < count; i++)
        fixture_ack(f, &pkts[i], 0);
    while (gw_endpoint_poll(f->endpoint, &event, 1))
        assert_int_equal(event.kind, GW_EVENT_SENT);
}

static void three_classes(struct endpoint_fixture *f, uint32_t train)
{
    open_urgent(f, "pias", train);
    set_tag(f, "th0", "3000");
    set_tag(f, "th1", "8000");
    set_tag(f, "th2", "0");
}

/* PIAS' P2 and P3, whatever trains are allowed: none reaches over a threshold. */
static void flow_urgency__falls_as_the_message_ages(void **state)
{
    (void)state;
    for (uint32_t train = 1; train <= 5; train += 2) {
        struct endpoint_fixture f;
        struct gw_pkt pkts[SENT_MAX];
        three_classes(&f, train);
        fixture_send(&f, 3 * MTU);
        assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 3);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(pkts[i].q.class, 6);
        settle(&f, pkts, 3);
        fixture_send(&f, 12 * MTU);
        assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 12);
        for (uint32_t i = 0; i < 12; i++) {
            assert_int_equal(pkts[i].seq, i);
            assert_int_equal(pkts[i].q.class, i < 3 ? 6 : i < 8 ? 5 : 4);
        }
        settle(&f, pkts, 12);
        fixture_close(&f);
    }
}

/* With all thresholds a message passes through every class of data, one after the other. */
static void flow_urgency__falls_through_all_classes(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    open_urgent(&f, "pias", 3);
    for (uint32_t i = 0; i < GW_CLASS_DATA_MAX; i++) {
        char name[] = {'t', 'h', (char)('0' + i), 0}, text[16];
        snprintf(text, sizeof(text), "%u", (i + 1) * 2 * MTU);
        set_tag(&f, name, text);
    }
    uint32_t count = 2 * (GW_CLASS_DATA_MAX + 1) + 1;
    fixture_send(&f, count * MTU);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pkts[i].q.class, i / 2 < GW_CLASS_DATA_MAX ? GW_CLASS_DATA_MAX - i / 2
                                                                    : GW_CLASS_BEST_EFFORT);
    settle(&f, pkts, count);
    fixture_close(&f);
}

/* What is sent again is as old as its message. */
static void flow_urgency__never_rises_again(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    three_classes(&f, 1);
    fixture_send(&f, 5 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 5);
    assert_int_equal(pkts[0].q.class, 6);
    assert_int_equal(pkts[4].q.class, 5);
    fixture_nack(&f, &pkts[0]);
    assert_int_equal(fixture_pull(&f, pkts, 1), 1);
    assert_int_equal(pkts[0].seq, 0);
    assert_int_equal(pkts[0].q.class, 5);
    settle(&f, pkts, 5);
    fixture_close(&f);
}

/* A message that has fallen waits for one that has not. */
static void flow_urgency__lets_young_messages_pass(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    three_classes(&f, 4);
    uint32_t old = fixture_send(&f, 10 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 5), 5);
    uint32_t young = fixture_send(&f, 4 * MTU);
    assert_int_equal(fixture_pull(&f, pkts + 5, SENT_MAX - 5), 9);
    for (uint32_t i = 5; i < 8; i++)
        assert_int_equal(pkts[i].flow, young);
    /* Both in class 5: behind what is there. */
    assert_int_equal(pkts[8].flow, old);
    settle(&f, pkts, 14);
    fixture_close(&f);
}

/* The rank is that of the packet's place, also when it is sent again; the class is the message's.
 */
static void flow_urgency__ranks_by_what_remains(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX], again[2];
    uint32_t flow;
    open_urgent(&f, "pfabric", 1);
    assert_int_equal(fixture_try_send(&f, 4 * MTU + 7, 2, &flow), GW_OK);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(pkts[i].q.rank, (4 - i) * MTU + 7);
        assert_int_equal(pkts[i].q.class, 2);
    }
    fixture_nack(&f, &pkts[1]);
    assert_int_equal(fixture_pull(&f, again, 2), 1);
    assert_int_equal(again[0].seq, 1);
    assert_int_equal(again[0].q.rank, 3 * MTU + 7);
    pkts[1] = again[0];
    settle(&f, pkts, 5);
    fixture_close(&f);
}

/* On its own port, too, the message that is nearest to its end goes first, and to its end. */
static void flow_urgency__sends_the_nearest_to_its_end(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    open_urgent(&f, "pfabric", 2);
    uint32_t longest = fixture_send(&f, 12 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, 3), 3); /* 9 remain, in the midst of a train */
    uint32_t nine = fixture_send(&f, 8 * MTU + 500);
    uint32_t two = fixture_send(&f, 2 * MTU);
    uint32_t seven = fixture_send(&f, 7 * MTU);
    assert_int_equal(fixture_pull(&f, pkts + 3, SENT_MAX - 3), 27);
    const uint32_t order[] = {two, seven, nine, longest}, counts[] = {2, 7, 9, 9};
    for (uint32_t o = 0, i = 3; o < 4; o++)
        for (uint32_t k = 0; k < counts[o]; k++)
            assert_int_equal(pkts[i++].flow, order[o]);
    settle(&f, pkts, 30);
    fixture_close(&f);
}

/* ---- Probes of pFabric. ---- */

static void open_probing(struct endpoint_fixture *f)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    fixture_open(f, &cfg, "2000");
    const struct gw_algo *algo = gw_registry_find(&gw_loss_registry, "pfabric");
    f->transport.loss = (const void *)algo;
    gw_algo_defaults(algo, f->transport.loss_cfg.bytes);
    assert_int_equal(gw_algo_set(algo, f->transport.loss_cfg.bytes, "probe_after", "2"), 0);
}

/* Until something is to be sent; a timer may be early. */
static uint32_t pull_later(struct endpoint_fixture *f, struct gw_pkt *pkts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 10 && !count; i++) {
        fixture_expire(f);
        count = fixture_pull(f, pkts, SENT_MAX);
    }
    return count;
}

/* After so many timeouts in a row one header leaves per timeout, before all data; data, one packet
 * of it, only when the receiver has answered that; more when something has arrived. */
static void flow_urgency__asks_with_a_header(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    open_probing(&f);
    fixture_send(&f, 3 * MTU);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 2);
    assert_int_equal(pull_later(&f, pkts), 2);
    assert_int_equal(fixture_stats(&f)->timeouts, 2); /* both at once */
    for (uint32_t probe = 1; probe <= 2; probe++) {
        assert_int_equal(pull_later(&f, pkts), 1);
        assert_int_equal(pkts[0].q.size, HDR);
        assert_int_equal(pkts[0].q.class, GW_CLASS_CONTROL);
        assert_true(pkts[0].q.flags & GW_PKT_TRIMMED);
        assert_int_equal(pkts[0].seq, 0);
        assert_int_equal(fixture_stats(&f)->probes, probe);
        assert_int_equal(fixture_stats(&f)->timeouts, 3);
    }
    fixture_nack(&f, &pkts[0]);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 1);
    assert_int_equal(pkts[0].q.size, MTU + HDR);
    assert_int_equal(pull_later(&f, pkts), 1); /* lost as well */
    assert_int_equal(pkts[0].q.size, HDR);
    /* It has that one: as much as the window allows. */
    fixture_ack(&f, &pkts[0], 0);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 2);
    fixture_ack(&f, &pkts[0], 0);
    fixture_ack(&f, &pkts[1], 0);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
    fixture_close(&f);
}

/* Without memory for a probe the timer tries again. */
static void flow_urgency__asks_later_when_the_pool_is_empty(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[SENT_MAX];
    open_probing(&f);
    fixture_send(&f, MTU);
    assert_int_equal(fixture_pull(&f, pkts, SENT_MAX), 1);
    assert_int_equal(pull_later(&f, pkts), 1);
    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    for (uint32_t i = 0; i < 10 && !fixture_stats(&f)->pool_empty; i++)
        fixture_expire(&f);
    assert_int_equal(fixture_stats(&f)->pool_empty, 1);
    fixture_give_back(&f, &hoard);
    assert_int_equal(pull_later(&f, pkts), 1);
    assert_int_equal(pkts[0].q.size, HDR);
    fixture_ack(&f, &pkts[0], 1);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_SENT);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_urgency__falls_as_the_message_ages),
        cmocka_unit_test(flow_urgency__falls_through_all_classes),
        cmocka_unit_test(flow_urgency__never_rises_again),
        cmocka_unit_test(flow_urgency__lets_young_messages_pass),
        cmocka_unit_test(flow_urgency__ranks_by_what_remains),
        cmocka_unit_test(flow_urgency__sends_the_nearest_to_its_end),
        cmocka_unit_test(flow_urgency__asks_with_a_header),
        cmocka_unit_test(flow_urgency__asks_later_when_the_pool_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
