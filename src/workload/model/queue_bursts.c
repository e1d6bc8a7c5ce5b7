/* Bursts behind a queue with thresholds; see queue_bursts.h. */
#include "workload/model/queue_bursts.h"

enum {
    STEPS_MAX = 4096, /* without thresholds: far more than decides, below a load of 0.99 */
};

#define NOTHING 1e-7 /* mass that does not count any more, by the whole */

static void raise(struct gw_loss_walk *walk, const struct gw_loss_maps *maps, uint32_t at,
                  uint32_t threshold)
{
    if (at < threshold)
        gw_loss_raise(walk, maps);
    else
        gw_loss_raise_limit(walk, maps);
}

/* By trapezoids, in two walks: the mass above needs that of all. */
static double left_of(const struct gw_loss_maps *maps, uint32_t threshold, uint32_t limit,
                      double step)
{
    struct gw_loss_walk walk;
    gw_loss_begin(&walk, maps);
    for (uint32_t i = 0; i < limit; i++)
        raise(&walk, maps, i, threshold);
    double above = gw_loss_above(&walk, maps), total = gw_loss_below(&walk) + above;
    gw_loss_begin(&walk, maps);
    double sum = 0, last = 0;
    for (uint32_t i = 0; i <= limit; i++) {
        double mass = total - gw_loss_below(&walk);
        double here = mass * mass / gw_loss_flow(&walk) - mass;
        sum += i == 0 ? mass * mass / gw_loss_flow(&walk) : (here + last) / 2 * step;
        last = here;
        if (mass < total * NOTHING)
            return sum / total;
        if (i < limit)
            raise(&walk, maps, i, threshold);
    }
    /* Above the limit nothing arrives, and both fall as sizes do: trapezoids without end. */
    double fall = gw_loss_decay(step);
    return (sum + last * step * (1 + fall) / (1 - fall) / 2) / total;
}

double gw_bursts_left(const struct gw_loss_maps *maps, uint32_t threshold, uint32_t limit,
                      double step)
{
    return left_of(maps, threshold, limit, step);
}

double gw_bursts_unlimited(const struct gw_loss_maps *maps, double step)
{
    struct gw_loss_walk walk;
    uint32_t steps = 0;
    gw_loss_begin(&walk, maps);
    double least = gw_loss_below(&walk) * NOTHING * NOTHING;
    for (; gw_loss_flow(&walk) > least && steps < STEPS_MAX; steps++)
        gw_loss_raise(&walk, maps);
    return left_of(maps, steps, steps, step);
}
