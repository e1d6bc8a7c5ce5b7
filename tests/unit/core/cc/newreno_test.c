/* NewReno by direct calls: slow start, congestion avoidance, one cut per episode, timeouts. */
#include "tcp_fixture.h"

static void newreno_init__starts_with_ten_packets(void **state)
{
    (void)state;
    struct flow f = flow_make("newreno");
    flow_start(&f);
    assert_int_equal(packets_of(&f), 10);
    flow_set(&f, "initial", "4");
    flow_start(&f);
    assert_int_equal(packets_of(&f), 4);
}

/* Twice as much each round trip; with one packet per ACK the same, where each packet has its own.
 */
static void newreno_on_ack__doubles_in_slow_start(void **state)
{
    (void)state;
    struct flow f = flow_make("newreno");
    flow_start(&f);
    for (uint64_t expected = 20; expected <= 320; expected *= 2) {
        tcp_round(&f, 0);
        assert_int_equal(packets_of(&f), expected);
    }
    /* Two packets in one ACK count as two, or, as RFC 5681 has it, as one. */
    struct gw_cc_ack ack = {.bytes = 2 * MTU, .in_flight = 9 * MTU, .rtt = 1};
    flow_start(&f);
    f.now++;
    assert_int_equal(flow_ack_with(&f, &ack), 2 * MTU);
    flow_preset(&f, "rfc5681");
    flow_start(&f);
    f.now++;
    assert_int_equal(flow_ack_with(&f, &ack), MTU);
}

static void newreno_on_ack__adds_a_packet_per_round_trip(void **state)
{
    (void)state;
    struct flow f = tcp_at("newreno", 100);
    for (int i = 1; i <= 20; i++) {
        tcp_round(&f, 0);
        assert_true(is_close((double)f.window.cwnd / MTU, 100 + i, 0.02 * i));
    }
}

/* P1: W/2 after one loss in a window of W; more losses of that window are the same episode. */
static void newreno_on_loss__halves_once_per_window(void **state)
{
    (void)state;
    struct flow f = tcp_at("newreno", 100);
    gw_time sent_at = f.now;
    f.now += BRTT;
    tcp_lose(&f, sent_at, false);
    assert_in_range(packets_of(&f), 49, 51);
    for (gw_time at = sent_at; at < f.now; at += BRTT / 50) {
        assert_int_equal(tcp_lose(&f, at, false), 0);
        assert_int_equal(tcp_ack(&f, at, true), 0);  /* a mark belongs to it as well */
        assert_int_equal(tcp_ack(&f, at, false), 0); /* and nothing grows before it is over */
    }
    gw_time cut_at = f.now;
    f.now += BRTT;
    assert_true(tcp_ack(&f, cut_at, false) > 0);
    tcp_lose(&f, cut_at, false);
    assert_in_range(packets_of(&f), 24, 26);
}

/* RFC 3168: a mark halves as a loss does, once per window. */
static void newreno_on_ack__halves_for_marks_once_per_window(void **state)
{
    (void)state;
    struct flow f = tcp_at("newreno", 100);
    tcp_round(&f, 100);
    assert_in_range(packets_of(&f), 49, 51);
    tcp_round(&f, 1);
    assert_in_range(packets_of(&f), 24, 26);
    for (int i = 0; i < 10; i++)
        tcp_round(&f, 100);
    assert_int_equal(packets_of(&f), 2); /* no less */
}

/* One packet, then slow start to half of what was in flight; a second timeout keeps that half. */
static void newreno_on_loss__starts_over_after_a_timeout(void **state)
{
    (void)state;
    for (int timeouts = 1; timeouts <= 3; timeouts++) {
        struct flow f = tcp_at("newreno", 100);
        for (int i = 0; i < timeouts; i++) {
            gw_time sent_at = f.now;
            f.now += GW_MS;
            tcp_lose(&f, sent_at, true);
            tcp_lose(&f, sent_at, true); /* the rest of the window */
            assert_int_equal(packets_of(&f), 1);
        }
        for (uint64_t expected = 2; expected <= 32; expected *= 2) {
            tcp_round(&f, 0);
            assert_int_equal(packets_of(&f), expected);
        }
        tcp_round(&f, 0);
        assert_in_range(packets_of(&f), 49, 51);
        tcp_round(&f, 0);
        assert_in_range(packets_of(&f), 50, 52);
    }
}

/* What the sender does not use tells nothing of the path (RFC 7661). */
static void newreno_on_ack__grows_only_if_used(void **state)
{
    (void)state;
    struct flow f = tcp_at("newreno", 100);
    struct gw_cc_ack ack = {.bytes = MTU, .in_flight = 48 * MTU};
    assert_int_equal(flow_ack_with(&f, &ack), 0);
    ack.in_flight = 49 * MTU;
    assert_true(flow_ack_with(&f, &ack) > 0);
}

static void newreno_init__goes_on_where_a_connection_was(void **state)
{
    (void)state;
    struct flow f = tcp_make("newreno");
    flow_start(&f);
    tcp_round(&f, 0);
    f.path.window = f.window.cwnd;
    f.path.memory = f.ops->remember(f.state, &f.cfg);
    flow_start(&f);
    assert_int_equal(packets_of(&f), 20);
    tcp_round(&f, 0);
    assert_int_equal(packets_of(&f), 40); /* still in slow start */
    tcp_round(&f, 1);
    f.path.window = f.window.cwnd;
    f.path.memory = f.ops->remember(f.state, &f.cfg);
    flow_start(&f);
    tcp_round(&f, 0);
    assert_in_range(packets_of(&f), 20, 21); /* no more */
}

static void newreno_on_ack__ends_at_the_receivers_buffer(void **state)
{
    (void)state;
    struct flow f = flow_make("newreno");
    flow_set(&f, "cwnd_max", "100000");
    flow_start(&f);
    for (int i = 0; i < 10; i++)
        tcp_round(&f, 0);
    assert_int_equal(f.window.cwnd, 100000);
}

/*
 * RFC 6937: while a cut takes effect, what leaves is in proportion to what arrives, and after a
 * round trip the new window is in flight.
 */
static void newreno_cut__takes_effect_in_proportion(void **state)
{
    (void)state;
    for (int is_mark = 0; is_mark < 2; is_mark++) {
        struct flow f = tcp_at("newreno", 100);
        flow_set(&f, "prr", "yes");
        flow_start(&f);
        const gw_time sent_at = f.now;
        uint32_t in_flight = 99 * MTU, sent = 0;
        f.now += BRTT;
        if (is_mark)
            flow_ack_with(&f, &(struct gw_cc_ack){
                                  .bytes = MTU, .in_flight = in_flight, .rtt = BRTT, .ce = true});
        else
            tcp_lose_with(
                &f, &(struct gw_cc_loss){.bytes = MTU, .in_flight = in_flight, .sent_at = sent_at});
        for (uint32_t acked = 1; acked < 100; acked++) {
            for (; in_flight + MTU <= f.window.cwnd; in_flight += MTU)
                sent++;
            assert_in_range(sent + 1, (acked - 1) / 2, acked / 2 + 2);
            in_flight -= MTU;
            flow_ack_with(&f, &(struct gw_cc_ack){
                                  .bytes = MTU, .in_flight = in_flight, .rtt = f.now - sent_at});
        }
        gw_time cut_at = f.now;
        f.now += BRTT;
        tcp_ack(&f, cut_at, false);
        assert_int_equal(packets_of(&f), 50);
    }
}

/* Where more is lost than the cut takes, the window is filled again, a little faster than what
 * arrives. */
static void newreno_cut__fills_the_window_again(void **state)
{
    (void)state;
    struct flow f = tcp_at("newreno", 100);
    flow_set(&f, "prr", "yes");
    flow_start(&f);
    const gw_time sent_at = f.now;
    f.now += BRTT;
    uint32_t in_flight = 100 * MTU;
    for (int lost = 0; lost < 80; lost++) {
        in_flight -= MTU;
        tcp_lose_with(
            &f, &(struct gw_cc_loss){.bytes = MTU, .in_flight = in_flight, .sent_at = sent_at});
    }
    uint32_t sent = 0;
    for (uint32_t acked = 1; acked <= 15; acked++) {
        for (; in_flight + MTU <= f.window.cwnd; in_flight += MTU)
            sent++;
        assert_in_range(sent, acked, 2 * acked + 1);
        in_flight -= MTU;
        flow_ack_with(
            &f, &(struct gw_cc_ack){.bytes = MTU, .in_flight = in_flight, .rtt = f.now - sent_at});
    }
    assert_true(in_flight <= 50 * MTU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newreno_init__starts_with_ten_packets),
        cmocka_unit_test(newreno_on_ack__doubles_in_slow_start),
        cmocka_unit_test(newreno_on_ack__adds_a_packet_per_round_trip),
        cmocka_unit_test(newreno_on_loss__halves_once_per_window),
        cmocka_unit_test(newreno_on_ack__halves_for_marks_once_per_window),
        cmocka_unit_test(newreno_on_loss__starts_over_after_a_timeout),
        cmocka_unit_test(newreno_on_ack__grows_only_if_used),
        cmocka_unit_test(newreno_init__goes_on_where_a_connection_was),
        cmocka_unit_test(newreno_cut__takes_effect_in_proportion),
        cmocka_unit_test(newreno_cut__fills_the_window_again),
        cmocka_unit_test(newreno_on_ack__ends_at_the_receivers_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
