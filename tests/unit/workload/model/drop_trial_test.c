/* Thresholds tried out: known losses, the error that is stated, and the limits. */
#include "support.h"

#include <math.h>

#include "workload/model/drop_trial.h"

enum { MEAN = 10000, ARRIVALS = 100000 };

static char why[128];

static struct gw_drop_trial run(const struct gw_drop_port *port, const struct gw_drop_plan *plan,
                                uint64_t arrivals, uint64_t seed)
{
    struct gw_drop_trial trial;
    assert_int_equal(gw_drop_trial_run(&trial, plan, port, arrivals, seed, why, sizeof(why)), 0);
    return trial;
}

/* With L = 0 a queue takes a packet only when none waits: M/M/1/2. */
static void gw_drop_trial_run__loses_what_a_finite_queue_does(void **state)
{
    static const double loads[] = {0.1, 0.7, 2};
    const struct gw_drop_plan plan = {0};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(loads); i++) {
        double load = loads[i], exact = load * load / (1 + load + load * load);
        const struct gw_drop_port port = {
            .queues = 1, .loads = {load}, .small = 0.25, .packet = MEAN};
        const struct gw_drop_trial trial = run(&port, &plan, ARRIVALS, 1);
        const struct gw_drop_seen *seen = trial.queues[0];
        assert_int_equal(seen[GW_DROP_SMALL].arrived + seen[GW_DROP_LARGE].arrived, ARRIVALS);
        assert_true(fabs((double)seen[GW_DROP_SMALL].arrived / ARRIVALS - 0.25) < 0.01);
        for (uint32_t kind = 0; kind < GW_DROP_KINDS; kind++) {
            assert_true(fabs(seen[kind].loss - exact) < 4 * seen[kind].error);
            assert_true(seen[kind].error < 0.1 * exact);
        }
    }
}

/* The errors that runs state are how far runs lie apart: within a factor of 1.5, of 40 runs. */
static void gw_drop_trial_run__states_its_error(void **state)
{
    enum { RUNS = 40, OF_RUN = 20000 };
    const struct gw_drop_port port = {.queues = 2, .loads = {0.5, 0.4}, .small = 1, .packet = MEAN};
    const struct gw_drop_plan plan = {.queues = {{.threshold = 5 * MEAN, .limit = 5 * MEAN},
                                                 {.threshold = 5 * MEAN, .limit = 5 * MEAN}}};
    double sum = 0, squares = 0, stated = 0;
    (void)state;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        const struct gw_drop_trial trial = run(&port, &plan, OF_RUN, seed);
        const struct gw_drop_seen *seen = &trial.queues[1][GW_DROP_SMALL];
        sum += seen->loss;
        squares += seen->loss * seen->loss;
        stated += seen->error * seen->error;
    }
    double apart = sqrt((squares / RUNS - sum / RUNS * sum / RUNS) * RUNS / (RUNS - 1));
    assert_true(sqrt(stated / RUNS) < 1.5 * apart && sqrt(stated / RUNS) > apart / 1.5);
}

/* What packets of either kind meet is what those of one kind do, and is surer of the rare kind. */
static void gw_drop_trial_run__learns_from_packets_of_either_kind(void **state)
{
    const struct gw_drop_port port = {.queues = 1, .loads = {1}, .small = 0.9, .packet = MEAN};
    const struct gw_drop_plan plan = {.queues = {{.threshold = 2 * MEAN, .limit = 4 * MEAN}}};
    const struct gw_drop_trial trial = run(&port, &plan, ARRIVALS, 1);
    (void)state;
    for (uint32_t kind = 0; kind < GW_DROP_KINDS; kind++) {
        const struct gw_drop_seen *of_kind = &trial.queues[0][kind],
                                  *of_either = &trial.either[0][kind];
        assert_int_equal(of_either->arrived, ARRIVALS);
        assert_true(of_either->lost > of_kind->lost);
        assert_true(fabs(of_either->loss - of_kind->loss) < 4 * of_kind->error);
    }
    assert_true(trial.either[0][GW_DROP_LARGE].error < 0.7 * trial.queues[0][GW_DROP_LARGE].error);
}

static void gw_drop_trial_run__is_told_by_its_seed(void **state)
{
    const struct gw_drop_port port = {.queues = 1, .loads = {0.8}, .small = 0.5, .packet = MEAN};
    const struct gw_drop_plan plan = {.queues = {{.threshold = MEAN, .limit = 3 * MEAN}}};
    (void)state;
    const struct gw_drop_trial one = run(&port, &plan, 1000, 1), same = run(&port, &plan, 1000, 1),
                               other = run(&port, &plan, 1000, 2);
    assert_memory_equal(&one.queues[0], &same.queues[0], sizeof(one.queues[0]));
    assert_int_not_equal(one.queues[0][GW_DROP_SMALL].arrived,
                         other.queues[0][GW_DROP_SMALL].arrived);
}

static void gw_drop_trial_run__refuses_too_many_packets(void **state)
{
    const struct gw_drop_port port = {.queues = 1, .loads = {0.8}, .small = 0.5, .packet = 64};
    const struct gw_drop_plan plan = {.queues = {{.limit = UINT64_C(1) << 31}}};
    struct gw_drop_trial trial;
    (void)state;
    assert_true(gw_drop_trial_run(&trial, &plan, &port, 1, 1, why, sizeof(why)) < 0);
    assert_string_equal(why, "the limits hold more than 524288 packets: too many to try out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gw_drop_trial_run__loses_what_a_finite_queue_does),
        cmocka_unit_test(gw_drop_trial_run__states_its_error),
        cmocka_unit_test(gw_drop_trial_run__learns_from_packets_of_either_kind),
        cmocka_unit_test(gw_drop_trial_run__is_told_by_its_seed),
        cmocka_unit_test(gw_drop_trial_run__refuses_too_many_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
