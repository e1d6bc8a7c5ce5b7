/* Round trips and rates of paths, on a clock that the test moves. */
#include "support.h"

#include "net/path_meter.h"

static void rtt_meter__smooths_and_keeps_the_least(void **state)
{
    (void)state;
    struct gw_rtt_meter meter = {0};
    assert_int_equal(gw_rtt_meter_least(&meter), 0);
    gw_rtt_meter_take(&meter, 900 * GW_US, GW_S);
    assert_in_range(meter.smoothed, 899 * GW_US, 901 * GW_US);
    for (int i = 0; i < 100; i++)
        gw_rtt_meter_take(&meter, 300 * GW_US, GW_S + i * GW_MS);
    gw_rtt_meter_take(&meter, 5 * GW_MS, 2 * GW_S);
    assert_int_equal(gw_rtt_meter_least(&meter), 300 * GW_US);
    assert_in_range(meter.smoothed, 700 * GW_US, 950 * GW_US);
}

/* A route that got longer is believed after two windows at the latest, and not before one. */
static void rtt_meter__forgets_what_is_old(void **state)
{
    (void)state;
    struct gw_rtt_meter meter = {0};
    gw_rtt_meter_take(&meter, 100 * GW_US, 0);
    for (gw_time now = 200 * GW_MS; now < GW_PATH_METER_WINDOW; now += 200 * GW_MS)
        gw_rtt_meter_take(&meter, 2 * GW_MS, now);
    assert_int_equal(gw_rtt_meter_least(&meter), 100 * GW_US);
    for (gw_time now = 0; now <= GW_PATH_METER_WINDOW; now += 200 * GW_MS)
        gw_rtt_meter_take(&meter, 2 * GW_MS, GW_PATH_METER_WINDOW + now);
    assert_int_equal(gw_rtt_meter_least(&meter), 2 * GW_MS);
    gw_rtt_meter_take(&meter, 3 * GW_MS, 5 * GW_PATH_METER_WINDOW); /* nothing for a long time */
    assert_int_equal(gw_rtt_meter_least(&meter), 3 * GW_MS);
}

/* A clock that wraps is no reason to forget, and no sample is none. */
static void rtt_meter__passes_the_end_of_time(void **state)
{
    (void)state;
    struct gw_rtt_meter meter = {0};
    gw_rtt_meter_take(&meter, 0, UINT64_MAX - GW_MS);
    assert_int_equal(gw_rtt_meter_least(&meter), 1);
    gw_rtt_meter_take(&meter, GW_MS, GW_MS);
    assert_int_equal(gw_rtt_meter_least(&meter), 1);
}

static void rate_meter__finds_the_busiest_span(void **state)
{
    (void)state;
    struct gw_rate_meter meter = {0};
    uint64_t bytes = 12345;
    gw_rate_meter_take(&meter, bytes, GW_S);
    gw_rate_meter_take(&meter, bytes + 1000000, GW_S + GW_MS); /* too short a time to say */
    assert_int_equal(gw_rate_meter_most(&meter), 0);
    for (int i = 1; i <= 30; i++) { /* 1 Gb/s for a second between idle ones */
        bytes += i > 10 && i <= 20 ? 12500000 : 0;
        gw_rate_meter_take(&meter, bytes, GW_S + i * GW_PATH_METER_SPAN);
    }
    assert_int_equal(gw_rate_meter_most(&meter), UINT64_C(1000000000));
}

static void rate_meter__forgets_what_is_old(void **state)
{
    (void)state;
    struct gw_rate_meter meter = {0};
    uint64_t bytes = 0;
    gw_time now = 0;
    for (; now < 3 * GW_PATH_METER_WINDOW; now += GW_PATH_METER_SPAN) {
        gw_rate_meter_take(&meter, bytes, now);
        bytes += now < GW_S ? 125000000 : 1250000;
        if (now == GW_PATH_METER_WINDOW + GW_S)
            assert_int_equal(gw_rate_meter_most(&meter), UINT64_C(10000000000));
    }
    assert_int_equal(gw_rate_meter_most(&meter), UINT64_C(100000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rtt_meter__smooths_and_keeps_the_least),
        cmocka_unit_test(rtt_meter__forgets_what_is_old),
        cmocka_unit_test(rtt_meter__passes_the_end_of_time),
        cmocka_unit_test(rate_meter__finds_the_busiest_span),
        cmocka_unit_test(rate_meter__forgets_what_is_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
