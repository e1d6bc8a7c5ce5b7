/* pFabric's window: one bdp at once, slow start after a timeout, and nothing else moves it. */
#include "unit/core/cc/tcp_fixture.h"

enum {
    PACKETS_MAX = BDP / MTU, /* whole packets of the largest window */
};

static void cc_pfabric__begins_with_the_bdp(void **state)
{
    (void)state;
    struct flow f = flow_make("pfabric");
    f.path.window = 5 * MTU; /* of an earlier message: forgotten */
    f.path.memory = 2 * MTU;
    flow_start(&f);
    assert_int_equal(f.window.cwnd, BDP);
    assert_int_equal(f.window.pace, 0);
    flow_set(&f, "bdp", "0.5");
    flow_start(&f);
    assert_int_equal(f.window.cwnd, BDP / 2);
    flow_set(&f, "bdp", "0");
    flow_start(&f);
    assert_int_equal(f.window.cwnd, MTU);
}

static void cc_pfabric__ignores_marks_and_other_losses(void **state)
{
    (void)state;
    struct flow f = flow_make("pfabric");
    flow_start(&f);
    gw_time sent_at = f.now;
    f.now += BRTT;
    assert_int_equal(tcp_ack(&f, sent_at, true), 0);
    assert_int_equal(tcp_lose(&f, sent_at, false), 0);
    assert_int_equal(f.window.cwnd, BDP);
}

/* One packet; then one more for each that arrives, up to half of what it was; then one per window;
 * never above the bdp. */
static void cc_pfabric__starts_slowly_after_a_timeout(void **state)
{
    (void)state;
    struct flow f = flow_make("pfabric");
    flow_start(&f);
    gw_time sent_at = f.now;
    f.now += 3 * BRTT;
    tcp_lose(&f, sent_at, true);
    assert_int_equal(f.window.cwnd, MTU);
    /* The others that were in flight are part of the same. */
    assert_int_equal(tcp_lose(&f, sent_at + GW_NS, true), 0);
    assert_int_equal(tcp_ack(&f, sent_at, false), 0); /* left before the timeout */
    for (uint32_t packets = 1; packets <= PACKETS_MAX / 2; packets++) {
        sent_at = f.now;
        f.now += BRTT;
        assert_int_equal(tcp_ack(&f, sent_at, false), MTU);
    }
    for (uint32_t round = 0; round < PACKETS_MAX; round++) {
        uint64_t before = f.window.cwnd;
        tcp_round(&f, 0);
        assert_true(f.window.cwnd <= before + MTU);
        assert_true(f.window.cwnd >= before + MTU / 2 || f.window.cwnd >= BDP - MTU);
    }
    assert_in_range(f.window.cwnd, BDP - MTU, BDP);
}

/* Half of the window is at least two packets, however often it times out. */
static void cc_pfabric__never_ends_slow_start_below_two(void **state)
{
    (void)state;
    struct flow f = flow_make("pfabric");
    flow_start(&f);
    for (uint32_t i = 0; i < 8; i++) {
        gw_time sent_at = f.now;
        f.now += 3 * BRTT;
        tcp_lose(&f, sent_at, true);
        assert_int_equal(f.window.cwnd, MTU);
        sent_at = f.now;
        f.now += BRTT;
        assert_int_equal(tcp_ack(&f, sent_at, false), MTU);
    }
}

/* As DLCP compares it: TCP's first window, and slow start up to the bdp. */
static void cc_pfabric__has_dlcps_preset(void **state)
{
    (void)state;
    struct flow f = flow_make("pfabric");
    flow_preset(&f, "dlcp");
    flow_start(&f);
    assert_int_equal(packets_of(&f), 10);
    tcp_round(&f, 0);
    assert_int_equal(packets_of(&f), 20);
    for (uint32_t i = 0; i < 3; i++)
        tcp_round(&f, 0);
    assert_int_equal(f.window.cwnd, BDP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cc_pfabric__begins_with_the_bdp),
        cmocka_unit_test(cc_pfabric__ignores_marks_and_other_losses),
        cmocka_unit_test(cc_pfabric__starts_slowly_after_a_timeout),
        cmocka_unit_test(cc_pfabric__never_ends_slow_start_below_two),
        cmocka_unit_test(cc_pfabric__has_dlcps_preset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
