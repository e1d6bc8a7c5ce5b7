/* Moments of completion times, where they are known. */
#include "support.h"

#include <math.h>

#include "workload/model/queue_completion.h"

static struct gw_loss_maps maps;

static void prepare(double above, double own)
{
    const struct gw_drop_queue queue = {.above = above,
                                        .arrives = above,
                                        .completion = gw_completion_of_load(above),
                                        .own = own,
                                        .small = 0.5};
    gw_loss_prepare(&maps, &queue, 1);
}

static void compare(struct gw_completion found, struct gw_completion known, double part)
{
    assert_true(fabs(found.mean / known.mean - 1) < part);
    assert_true(fabs(found.square / known.square - 1) < part);
    assert_true(fabs(found.cube / known.cube - 1) < part);
}

/* Thresholds that are never met make no difference, whatever goes before. */
static void gw_completion_behind__is_a_busy_period_without_losses(void **state)
{
    static const double loads[][2] = {{0, 0.3}, {0, 0.8}, {0.2, 0.5}, {0.6, 0.2}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(loads); i++) {
        prepare(loads[i][0], loads[i][1]);
        compare(gw_completion_behind(&maps, 300, 300),
                gw_completion_of_load(loads[i][0] + loads[i][1]), 0.005);
    }
}

/* Nor does it matter how far beyond they are. */
static void gw_completion_behind__takes_large_limits(void **state)
{
    (void)state;
    prepare(0.2, 0.5);
    compare(gw_completion_behind(&maps, 1e6, 2e6), gw_completion_of_load(0.7), 0.005);
}

/*
 * With L = 0 one packet may wait. The packet on the wire, X, is followed by another one if any came
 * meanwhile, and so on: C = X, and in that case another C. Packets that lie at random are farthest
 * from the truth where there is one.
 */
static void gw_completion_behind__of_one_place(void **state)
{
    const double own = 0.6;
    /* Moments of X where something came: all less those where nothing did. */
    double x0 = 1 - 1 / (1 + own), x1 = 1 - 1 / pow(1 + own, 2), x2 = 2 - 2 / pow(1 + own, 3);
    struct gw_completion known = {.mean = 1 / (1 - x0)};
    known.square = (2 + 2 * x1 * known.mean) / (1 - x0);
    known.cube = (6 + 3 * x2 * known.mean + 3 * x1 * known.square) / (1 - x0);
    (void)state;
    prepare(0, own);
    compare(gw_completion_behind(&maps, 0, 0), known, 0.12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gw_completion_behind__is_a_busy_period_without_losses),
        cmocka_unit_test(gw_completion_behind__takes_large_limits),
        cmocka_unit_test(gw_completion_behind__of_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
