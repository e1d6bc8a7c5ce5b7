/* Thresholds: the best of all there are, the errors, and the curves of costs. */
#include "support.h"

#include <math.h>

#include "workload/model/drop_plan.h"

enum {
    PACKET = 1000,
    STEPS = 3, /* of the buffer that is tried out */
};

static char why[256];

static struct gw_drop_port make_port(uint32_t queues, uint64_t steps)
{
    struct gw_drop_port port = {
        .queues = queues, .small = 0.5, .packet = PACKET, .buffer = (steps + queues) * PACKET};
    gw_drop_costs_default(&port.costs, queues);
    return port;
}

/* The least cost of all ways to divide the buffer, by trying them. */
static double try_all(const struct gw_drop_port *port)
{
    double least = INFINITY;
    for (uint64_t l0 = 0; l0 <= STEPS; l0++)
        for (uint64_t l1 = 0; l0 + l1 <= STEPS; l1++)
            for (uint64_t s0 = 0; s0 <= l0; s0++)
                for (uint64_t s1 = 0; s1 <= l1; s1++) {
                    struct gw_drop_plan plan = {0};
                    plan.queues[0].threshold = s0 * PACKET;
                    plan.queues[0].limit = l0 * PACKET;
                    plan.queues[1].threshold = s1 * PACKET;
                    plan.queues[1].limit = l1 * PACKET;
                    gw_drop_plan_rate(&plan, port);
                    least = plan.cost < least ? plan.cost : least;
                }
    return least;
}

/* By the paper's formula queues do not depend on each other's losses, so nothing may be better. */
static void gw_drop_plan_make__finds_the_best_by_the_paper(void **state)
{
    static const double loads[][2] = {{0.5, 0.4}, {0.1, 1.2}, {0.9, 0.05}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(loads); i++) {
        struct gw_drop_port port = make_port(2, STEPS);
        struct gw_drop_plan plan;
        port.paper = true;
        memcpy(port.loads, loads[i], sizeof(loads[i]));
        assert_int_equal(gw_drop_plan_make(&plan, &port, why, sizeof(why)), 0);
        assert_true(fabs(plan.cost / try_all(&port) - 1) < 1e-9);
    }
}

/* By ours they do, and the rounds of loads leave at most a little, also of what is compared with.
 */
static void gw_drop_plan_make__finds_the_best(void **state)
{
    (void)state;
    struct gw_drop_port port = make_port(2, STEPS);
    struct gw_drop_plan plan;
    port.loads[0] = 0.5;
    port.loads[1] = 0.4;
    assert_int_equal(gw_drop_plan_make(&plan, &port, why, sizeof(why)), 0);
    double best = try_all(&port);
    assert_true(plan.cost >= best * (1 - 1e-4) && plan.cost <= best * 1.02);
    assert_true(plan.queues[0].limit + plan.queues[1].limit <= STEPS * PACKET);
    assert_true(plan.queues[0].threshold <= plan.queues[0].limit);
}

/* A buffer of 1 MB is divided on a grid, and nothing is beyond it. */
static void gw_drop_plan_make__takes_large_buffers(void **state)
{
    (void)state;
    struct gw_drop_port port = make_port(2, 1000);
    struct gw_drop_plan plan;
    port.loads[0] = 0.4;
    port.loads[1] = 3;
    assert_int_equal(gw_drop_plan_make(&plan, &port, why, sizeof(why)), 0);
    assert_true(plan.queues[0].limit + plan.queues[1].limit + 2 * PACKET <= port.buffer);
    assert_true(plan.queues[1].loss.small > 0.5 && plan.queues[1].loss.small <= 1);
    assert_true(isfinite(plan.cost));
}

static void gw_drop_plan_make__names_the_starved_queue(void **state)
{
    (void)state;
    struct gw_drop_port port = make_port(3, 100);
    struct gw_drop_plan plan;
    port.loads[0] = 0.5;
    port.loads[1] = 0.5;
    port.loads[2] = 0.1;
    assert_true(gw_drop_plan_make(&plan, &port, why, sizeof(why)) < 0);
    assert_string_equal(why, "queue 3 is starved: those before it take 100.0 % of the service");
    port.loads[2] = 0; /* nobody misses it */
    assert_int_equal(gw_drop_plan_make(&plan, &port, why, sizeof(why)), 0);
    port.buffer = 5 * PACKET;
    assert_true(gw_drop_plan_make(&plan, &port, why, sizeof(why)) < 0);
    assert_string_equal(why, "the buffer must hold at least 2 packets for each of 3 queues");
}

/* T (1 + j d) is found again from its own values, and from others the nearest by least squares. */
static void gw_drop_plan_rate__fits_the_sequence(void **state)
{
    static const uint64_t exact[] = {4, 6, 8, 10}, other[] = {2, 2, 5, 7};
    (void)state;
    struct gw_drop_port port = make_port(4, 100);
    struct gw_drop_plan plan = {0};
    for (uint32_t q = 0; q < 4; q++) {
        port.loads[q] = 0.2;
        plan.queues[q].threshold = plan.queues[q].limit = exact[q] * PACKET;
    }
    gw_drop_plan_rate(&plan, &port);
    assert_int_equal(plan.threshold, 4 * PACKET);
    assert_int_equal(plan.step, GW_Q16_ONE / 2);
    for (uint32_t q = 0; q < 4; q++)
        plan.queues[q].threshold = plan.queues[q].limit = other[q] * PACKET;
    gw_drop_plan_rate(&plan, &port);
    assert_int_equal(plan.threshold, 1300); /* the line 1.3 + 1.8 j */
    assert_int_equal(plan.step, (18 * GW_Q16_ONE + 6) / 13);
}

/* Layer x of n goes to queue floor(x P / n), with its bytes. */
static void gw_drop_port_load__maps_layers_to_queues(void **state)
{
    struct gw_layer layers[5] = {
        {.weights = 10}, {.weights = 20}, {.biases = 30}, {.weights = 15, .biases = 25}};
    struct gw_model model = {.layers = layers, .layer_count = 5, .params = 100};
    struct gw_drop_port port = {.queues = 2};
    (void)state;
    gw_drop_port_load(&port, &model, 0.5);
    assert_float_equal(port.loads[0], 0.30, 1e-12);
    assert_float_equal(port.loads[1], 0.20, 1e-12);
}

/* Front layers bear more than back ones, and small gradients more than large ones. */
static void gw_drop_costs_default__follows_the_figure(void **state)
{
    struct gw_drop_costs costs;
    (void)state;
    gw_drop_costs_default(&costs, 7);
    double front = gw_drop_cost(&costs.small[0], 0.011) + gw_drop_cost(&costs.large[0], 0.011);
    double back = gw_drop_cost(&costs.small[6], 0.004) + gw_drop_cost(&costs.large[6], 0.004);
    assert_float_equal(front, 2, 1e-9);
    assert_float_equal(back, 2, 1e-9);
    assert_float_equal(gw_drop_cost(&costs.large[3], 0.01) / gw_drop_cost(&costs.small[3], 0.01),
                       16, 1e-9);
}

static void gw_drop_cost__is_straight_between_points_and_beyond(void **state)
{
    static const struct gw_drop_curve curve = {.count = 2, .loss = {0.01, 0.03}, .rounds = {1, 5}};
    (void)state;
    assert_float_equal(gw_drop_cost(&curve, 0), 0, 0);
    assert_float_equal(gw_drop_cost(&curve, 0.005), 0.5, 1e-12);
    assert_float_equal(gw_drop_cost(&curve, 0.02), 3, 1e-12);
    assert_float_equal(gw_drop_cost(&curve, 0.05), 9, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gw_drop_plan_make__finds_the_best_by_the_paper),
        cmocka_unit_test(gw_drop_plan_make__finds_the_best),
        cmocka_unit_test(gw_drop_plan_make__takes_large_buffers),
        cmocka_unit_test(gw_drop_plan_make__names_the_starved_queue),
        cmocka_unit_test(gw_drop_plan_rate__fits_the_sequence),
        cmocka_unit_test(gw_drop_port_load__maps_layers_to_queues),
        cmocka_unit_test(gw_drop_costs_default__follows_the_figure),
        cmocka_unit_test(gw_drop_cost__is_straight_between_points_and_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
