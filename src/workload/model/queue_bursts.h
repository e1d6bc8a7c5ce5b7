/*
 * How far thresholds shorten the bursts that a queue lets through.
 *
 * For the queues behind, a busy period of those before is a time without service, and what counts
 * is how long it still lasts, seen at a random time in it. A queue's work w takes the sum over
 * x < w of g(x) dx, the time in which x shrinks by dx, arrivals included: so its part of that time
 * is the integral of g(x) P(x), where P(x) is the chance that the work is above x. With U(x), the
 * density of being served, excursions above x last P/U on average and begin with an exponential
 * size, hence g = G - G' with G = P/U. By parts that is the sum of P^2/U - P, and P(0)^2/U(0).
 */
#ifndef GW_WORKLOAD_QUEUE_BURSTS_H
#define GW_WORKLOAD_QUEUE_BURSTS_H

#include "workload/model/queue_loss.h"

/*
 * The time that a burst still takes for this queue's part, times the chance to meet one, in mean
 * packets. Threshold and limit count steps of `step` packets, those of the maps. The load above and
 * that of the queue must be below 1 together.
 */
double gw_bursts_left(const struct gw_loss_maps *maps, uint32_t threshold, uint32_t limit,
                      double step);

/* The same without thresholds. */
double gw_bursts_unlimited(const struct gw_loss_maps *maps, double step);

#endif
