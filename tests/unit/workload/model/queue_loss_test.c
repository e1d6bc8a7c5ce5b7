/* Losses by the formula against the discipline itself, under the arrivals that it assumes. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "workload/model/drop_trial.h"

enum {
    QUEUES = GW_DROP_QUEUES_MAX,
    MEAN = 10000, /* bytes of a packet; large, so that whole bytes do not matter */
    SEED = 5,
};

/* A case: thresholds and limits in packets. */
struct expectation {
    uint32_t queues;
    uint32_t arrivals;
    double small; /* part of the packets */
    double loads[QUEUES], thresholds[QUEUES], limits[QUEUES];
    bool small_alone[QUEUES]; /* the others' loss is too rare to tell in so many arrivals */
};

static void compare_one(double said, const struct gw_drop_seen *seen, const char *what)
{
    /* Only what the run itself knows to a twenty-fifth is worth a comparison to a tenth. */
    assert_true(seen->error < 0.04 * seen->loss);
    if (fabs(said / seen->loss - 1) > 0.1)
        fail_msg("seed %d, %s: said %.5f, seen %.5f (%.0f packets, error %.5f)", SEED, what, said,
                 seen->loss, (double)seen->lost, seen->error);
}

static void compare(const struct expectation *expectation)
{
    struct gw_drop_port port = {.queues = expectation->queues,
                                .small = expectation->small,
                                .packet = MEAN,
                                .buffer = 1000 * MEAN};
    struct gw_drop_plan plan = {0};
    struct gw_drop_trial trial;
    char what[64];
    for (uint32_t q = 0; q < port.queues; q++) {
        port.loads[q] = expectation->loads[q];
        plan.queues[q].threshold = (uint64_t)expectation->thresholds[q] * MEAN;
        plan.queues[q].limit = (uint64_t)expectation->limits[q] * MEAN;
    }
    gw_drop_plan_rate(&plan, &port);
    assert_int_equal(
        gw_drop_trial_run(&trial, &plan, &port, expectation->arrivals, SEED, what, sizeof(what)),
        0);
    for (uint32_t q = 0; q < port.queues; q++) {
        if (expectation->limits[q] >= 60)
            continue; /* it loses nothing, and is there for those behind */
        snprintf(what, sizeof(what), "queue %u of %u, small", q + 1, port.queues);
        compare_one(plan.queues[q].loss.small, &trial.queues[q][GW_DROP_SMALL], what);
        snprintf(what, sizeof(what), "queue %u of %u, large", q + 1, port.queues);
        if (!expectation->small_alone[q])
            compare_one(plan.queues[q].loss.large, &trial.queues[q][GW_DROP_LARGE], what);
    }
}

/* One queue, far from empty and far beyond what the port serves. */
static void queue_loss__is_that_of_the_discipline_alone(void **state)
{
    static const struct expectation cases[] = {
        {1, 700000, 0.5, {0.9}, {10}, {13}, {0}},
        {1, 300000, 0.5, {0.9}, {5}, {8}, {0}},
        {1, 400000, 0.5, {1.2}, {10}, {16}, {0}},
        {1, 150000, 0.5, {0.5}, {3}, {3}, {0}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        compare(&cases[i]);
}

/* Queues behind others, whose completion times they wait for, and before others, for a packet. */
static void queue_loss__is_that_of_the_discipline_among_others(void **state)
{
    static const struct expectation cases[] = {
        {2, 1000000, 0.5, {0.4, 0.4}, {60, 8}, {60, 8}, {0}},
        {3, 1500000, 0.5, {0.6, 0.18, 0.13}, {100, 100, 12}, {100, 100, 12}, {0}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        compare(&cases[i]);
}

/* And behind queues that lose percents of what comes, so that only short bursts get through. */
static void queue_loss__is_that_of_the_discipline_behind_losses(void **state)
{
    static const struct expectation cases[] = {
        {3, 2000000, 0.5, {0.5, 0.3, 0.15}, {5, 4, 7}, {6, 7, 11}, {0}},
        {7,
         1000000,
         0.5,
         {0.33, 0.14, 0.13, 0.12, 0.12, 0.13, 0.13},
         {4, 3, 3, 3, 4, 4, 1},
         {5, 4, 5, 6, 8, 13, 23},
         {true, true, true, true, true, true, true}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        compare(&cases[i]);
}

/*
 * And where few packets are large and L is far above S: what is at the head of the work came, in
 * part, when nothing but large ones did. With S = 0 next to nothing else is there.
 */
static void queue_loss__is_that_of_the_discipline_with_few_large(void **state)
{
    static const struct expectation cases[] = {
        {1, 300000, 0.5, {0.8}, {0}, {3}, {0}},
        {1, 700000, 0.8, {0.95}, {0}, {2}, {0}},
        {2, 2500000, 0.7, {0.5, 0.4}, {60, 4}, {60, 7}, {0}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        compare(&cases[i]);
}

/* Known values of M/M/1/m, also where powers neither grow nor fall. */
static void gw_loss_paper__is_that_of_a_finite_queue(void **state)
{
    (void)state;
    assert_float_equal(gw_loss_paper(0.5, 1), 1.0 / 3, 1e-12);
    assert_float_equal(gw_loss_paper(1, 4), 0.2, 1e-12);
    assert_float_equal(gw_loss_paper(1 + 1e-9, 4), 0.2, 1e-6);
    assert_float_equal(gw_loss_paper(2, 3), 8.0 / 15, 1e-12);
    assert_float_equal(gw_loss_paper(4, 0.5), 6.0 / 7, 1e-9);
    assert_float_equal(gw_loss_paper(2, 100000), 0.5, 1e-12);
    assert_true(gw_loss_paper(0.5, 100000) < 1e-300);
}

/* exp(-x) without the C library. */
static void gw_loss_decay__is_the_exponential(void **state)
{
    (void)state;
    for (double x = 0; x < 600; x = x * 1.5 + 0.01)
        assert_true(fabs(gw_loss_decay(x) / exp(-x) - 1) < 1e-9);
    assert_true(gw_loss_decay(1e6) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_loss__is_that_of_the_discipline_alone),
        cmocka_unit_test(queue_loss__is_that_of_the_discipline_among_others),
        cmocka_unit_test(queue_loss__is_that_of_the_discipline_behind_losses),
        cmocka_unit_test(queue_loss__is_that_of_the_discipline_with_few_large),
        cmocka_unit_test(gw_loss_paper__is_that_of_a_finite_queue),
        cmocka_unit_test(gw_loss_decay__is_the_exponential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
