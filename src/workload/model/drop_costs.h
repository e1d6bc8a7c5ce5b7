/*
 * What lost gradients cost, by queue: curves of extra training rounds against the part that is
 * lost (DLCP, appendix B: f^S and f^L).
 *
 * A CSV file has the header `queue,gradients,loss,rounds` and a row per point: the queue from 1,
 * `small` or `large`, the part that is lost (0.01 or 1%), and the rounds that this costs more. Each
 * curve begins at nothing for no loss, goes straight from point to point, and on as its last piece.
 * Points of a curve are in ascending order of loss, and of rounds. A queue without a point of a
 * kind has those of the queue before it.
 */
#ifndef GW_WORKLOAD_DROP_COSTS_H
#define GW_WORKLOAD_DROP_COSTS_H

#include <stdint.h>

enum {
    GW_DROP_QUEUES_MAX = 7,
    GW_DROP_POINTS_MAX = 16, /* of a curve */
};

struct gw_drop_curve {
    uint32_t count;
    double loss[GW_DROP_POINTS_MAX];
    double rounds[GW_DROP_POINTS_MAX];
};

struct gw_drop_costs {
    struct gw_drop_curve small[GW_DROP_QUEUES_MAX]; /* in the order of service */
    struct gw_drop_curve large[GW_DROP_QUEUES_MAX];
};

/*
 * Straight lines from what figure 5 of DLCP says training bears: 1.1 % of the front layers, 0.4 %
 * of the back layers, 1.6 % of the smallest and 0.1 % of the largest gradients. A round is the cost
 * of losing as much of a queue as it bears, small and large alike.
 */
void gw_drop_costs_default(struct gw_drop_costs *costs, uint32_t queues);

/* Returns 0, or a negative error with a sentence in why[why_size] that names the line. */
int gw_drop_costs_load(struct gw_drop_costs *costs, const char *path, uint32_t queues, char *why,
                       uint32_t why_size);

double gw_drop_cost(const struct gw_drop_curve *curve, double loss);

#endif
