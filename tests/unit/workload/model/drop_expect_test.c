/* Losses to expect: the formula's, unless a trial is sure that it does not hold. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "workload/model/drop_expect.h"
#include "workload/model/drop_trial.h"

enum {
    MEAN = 10000, /* bytes of a packet; large, so that whole bytes do not matter */
    ARRIVALS = 3000000,
    SEED = 5,
};

/* Thresholds and limits in packets. */
static struct gw_drop_plan rated(struct gw_drop_port *port, const uint32_t *thresholds,
                                 const uint32_t *limits)
{
    struct gw_drop_plan plan = {0};
    port->packet = MEAN;
    gw_drop_costs_default(&port->costs, port->queues);
    for (uint32_t q = 0; q < port->queues; q++) {
        plan.queues[q].threshold = (uint64_t)thresholds[q] * MEAN;
        plan.queues[q].limit = (uint64_t)limits[q] * MEAN;
    }
    gw_drop_plan_rate(&plan, port);
    return plan;
}

static void compare(double said, const struct gw_drop_seen *seen, const char *what)
{
    if (fabs(said / seen->loss - 1) > 0.1)
        fail_msg("seed %d, %s: said %.5f, seen %.5f (error %.5f)", SEED, what, said, seen->loss,
                 seen->error);
}

/*
 * Where the formula is off by more than a tenth: in a queue that is alone and overloaded, where few
 * packets are large, and behind queues that lose percents of what comes. Another trial is what to
 * compare with.
 */
static void gw_drop_expect__is_near_where_the_formula_is_not(void **state)
{
    static const uint32_t thresholds[2][7] = {{1}, {0, 0, 0, 0, 0, 1, 3}};
    static const uint32_t limits[2][7] = {{7}, {0, 0, 0, 0, 0, 4, 5}};
    struct gw_drop_port ports[] = {
        {.queues = 1, .loads = {2}, .small = 0.9},
        {.queues = 7,
         .loads = {0.0007, 0.0026, 0.0068, 0.0341, 0.0273, 0.6078, 0.1207},
         .small = 0.5},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(ports); i++) {
        struct gw_drop_plan plan = rated(&ports[i], thresholds[i], limits[i]);
        struct gw_drop_trial trial;
        char what[64];
        gw_drop_expect(&plan, &ports[i], ARRIVALS);
        assert_int_equal(
            gw_drop_trial_run(&trial, &plan, &ports[i], ARRIVALS, SEED, what, sizeof(what)), 0);
        for (uint32_t q = i ? 5 : 0; q < ports[i].queues; q++) {
            const struct gw_drop_choice *choice = &plan.queues[q];
            snprintf(what, sizeof(what), "queue %u of %u", q + 1, ports[i].queues);
            compare(choice->loss.small, &trial.queues[q][GW_DROP_SMALL], what);
            compare(choice->loss.large, &trial.queues[q][GW_DROP_LARGE], what);
        }
        assert_true(plan.queues[ports[i].queues - 1].large_tried);
    }
}

/*
 * Of 100000 arrivals a trial is sure of the loss of the small ones, whatever the formula says, and
 * not of that of the large ones. Costs are of both.
 */
static void gw_drop_expect__keeps_what_a_trial_does_not_refute(void **state)
{
    const uint32_t threshold = 2, limit = 8;
    struct gw_drop_port port = {.queues = 1, .loads = {0.8}, .small = 0.5};
    struct gw_drop_plan plan = rated(&port, &threshold, &limit);
    struct gw_drop_choice *choice = &plan.queues[0];
    (void)state;
    choice->loss = (struct gw_loss){.small = 0.3, .large = 0.005};
    gw_drop_expect(&plan, &port, 100000);
    assert_true(choice->small_tried && !choice->large_tried);
    assert_true(choice->loss.small < 0.25 && choice->loss.large == 0.005);
    assert_float_equal(choice->cost,
                       gw_drop_cost(&port.costs.small[0], choice->loss.small) +
                           gw_drop_cost(&port.costs.large[0], choice->loss.large),
                       1e-12);
    assert_true(plan.cost == choice->cost);
    const double said = choice->loss.small *= 1.0001;
    gw_drop_expect(&plan, &port, 100000);
    assert_true(!choice->small_tried && choice->loss.small == said);
}

/* Nor is there a trial of more packets than it takes. */
static void gw_drop_expect__leaves_a_plan_without_a_trial_alone(void **state)
{
    static const uint32_t thresholds[] = {2, 1 << 20}, limits[] = {4, 1 << 20};
    static const uint64_t arrivals[] = {0, 100000};
    struct gw_drop_port port = {.loads = {1.2, 0}, .small = 0.5};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(arrivals); i++) {
        port.queues = i + 1;
        struct gw_drop_plan formula = rated(&port, thresholds, limits), plan = formula;
        gw_drop_expect(&plan, &port, arrivals[i]);
        assert_memory_equal(&plan, &formula, sizeof(plan));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gw_drop_expect__is_near_where_the_formula_is_not),
        cmocka_unit_test(gw_drop_expect__keeps_what_a_trial_does_not_refute),
        cmocka_unit_test(gw_drop_expect__leaves_a_plan_without_a_trial_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
