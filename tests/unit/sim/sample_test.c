/* Sampled series: when they are taken, what they hold, and in which order they come. */
#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"

/* A base RTT of 3284 ns at 800 Gb/s: the window of 1.25 bdp is 410,500 bytes. */
static const char scenario[] = "topology: {kind: star, hosts: 4}\n"
                               "workload: {kind: incast, degree: 3, size: 1MiB}\n"
                               "metrics: {sample: 2us}\n";

static void run_with(struct gw_test_sim *run, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_run(run, &options, scenario, "%s", set);
    assert_int_equal(run->totals.completed, run->totals.flows);
}

/* One value of every running flow per interval, from its start to its end. */
static void sample__takes_cwnd_at_every_multiple(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, "metrics.series=[cwnd]; cc={kind: fixed, window: 100000}");
    uint64_t count, expected = 0;
    const struct gw_sample *samples = gw_sim_samples(run.sim, &count);
    /* A window may have begun before a flow ended in it, and is sampled when it begins. */
    for (gw_time at = 2 * GW_US; at < run.totals.end; at += 2 * GW_US) {
        gw_time begin = (at + run.sim->window - 1) / run.sim->window * run.sim->window;
        for (uint32_t flow = 0; flow < 3; flow++)
            if (run.flows[flow].end >= begin && begin < run.totals.end) {
                assert_true(expected < count);
                const struct gw_sample *sample = &samples[expected++];
                assert_true(sample->at == at);
                assert_int_equal(sample->series, GW_SERIES_CWND);
                assert_int_equal(sample->subject, flow);
                assert_true(sample->value == 100000);
            }
    }
    assert_true(count == expected && count > 0);
    gw_test_sim_close(&run);
}

/* The rates of a flow, times the interval, are the bytes that were acknowledged. */
static void sample__rates_add_up_to_the_message(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, "metrics.series=[rate]");
    uint64_t count, bytes[3] = {0};
    const struct gw_sample *samples = gw_sim_samples(run.sim, &count);
    assert_true(count > 0);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(samples[i].series, GW_SERIES_RATE);
        assert_true(samples[i].value <= 800000000000);
        assert_true(samples[i].value % 4000000 == 0); /* whole bytes in 2 us */
        bytes[samples[i].subject] += samples[i].value / 4000000;
    }
    /* What was acknowledged after the last sample is missing: 2 us at the line rate. */
    for (uint32_t flow = 0; flow < 3; flow++)
        assert_true(bytes[flow] <= 1 << 20 && bytes[flow] > (1 << 20) - 2 * 100000);
    gw_test_sim_close(&run);
}

/* Only the port towards the receiver has a queue of data worth the name; it never exceeds its room.
 */
static void sample__sees_the_queue_of_the_bottleneck(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, "metrics.series=[queue]");
    uint64_t count, largest = 0;
    const struct gw_sample *samples = gw_sim_samples(run.sim, &count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(samples[i].series, GW_SERIES_QUEUE);
        assert_int_equal(samples[i].subject, run.scenario.topo.host_count);
        assert_true(samples[i].value > 0);
        if (samples[i].port == 0 && samples[i].value > largest)
            largest = samples[i].value;
        if (samples[i].port != 0)
            assert_true(samples[i].value < 4160);
    }
    /* Data up to the capacity, and the headers of what was trimmed. */
    assert_true(largest > run.scenario.queue.capacity - 4160);
    assert_true(largest < 3 * run.scenario.queue.capacity);
    gw_test_sim_close(&run);
}

static void sample__orders_by_time_then_series(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, "seed=1");
    uint64_t count, of_series[3] = {0};
    const struct gw_sample *samples = gw_sim_samples(run.sim, &count);
    for (uint64_t i = 0; i < count; i++) {
        of_series[samples[i].series]++;
        if (i > 0)
            assert_true(
                samples[i - 1].at < samples[i].at ||
                (samples[i - 1].at == samples[i].at && samples[i - 1].series <= samples[i].series));
    }
    assert_true(of_series[0] > 0 && of_series[0] == of_series[1] && of_series[2] > 0);
    gw_test_sim_close(&run);
}

/* Looking does not change what is seen. */
static void sample__leaves_the_run_alone(void **state)
{
    (void)state;
    struct gw_test_sim with, without;
    uint64_t count;
    run_with(&with, "seed=1");
    run_with(&without, "metrics.sample=0");
    gw_sim_samples(without.sim, &count);
    assert_true(count == 0);
    assert_true(with.totals.trace_hash == without.totals.trace_hash);
    gw_test_sim_close(&with);
    gw_test_sim_close(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample__takes_cwnd_at_every_multiple),
        cmocka_unit_test(sample__rates_add_up_to_the_message),
        cmocka_unit_test(sample__sees_the_queue_of_the_bottleneck),
        cmocka_unit_test(sample__orders_by_time_then_series),
        cmocka_unit_test(sample__leaves_the_run_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
