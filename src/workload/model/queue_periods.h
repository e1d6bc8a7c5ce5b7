/*
 * Busy periods that a queue with thresholds and those before it make together.
 *
 * For the queues behind they are times without service, and their law counts: the mean alone says
 * how much service is left, the second and third moment how much gathers meanwhile. Without
 * thresholds they are those of M/M/1; thresholds make them shorter, the long ones above all.
 *
 * The moments follow from the density of the time that a period spends at each amount of work,
 * which is an initial value problem as in queue_loss.h: what crosses x on its way down has crossed
 * it on its way up, or began above. The same with a start drawn from that density gives the mean of
 * what is left at a random time, hence the second moment, and once more the third.
 */
#ifndef GW_WORKLOAD_QUEUE_PERIODS_H
#define GW_WORKLOAD_QUEUE_PERIODS_H

#include "workload/model/queue_loss.h"

/*
 * The periods of the queue that `maps` are prepared for and of what goes before it, with a
 * threshold and a limit in packets. Together they must have a load below 1.
 */
struct gw_periods gw_periods_find(const struct gw_loss_maps *maps, double threshold, double limit);

/* Those of queues that lose nothing, with a load below 1 together. */
struct gw_periods gw_periods_of_load(double load);

#endif
