/*
 * Completion times behind a queue with thresholds: from when a packet of a later queue is on the
 * wire until all queues before that one are empty again.
 *
 * When such a packet's turn comes they are empty, and its size is independent of all before. So
 * completion times are independent of each other and alike, and what their law is, is all that a
 * queue needs to know of those before it. Without thresholds they are busy periods of M/M/1;
 * thresholds make them shorter, the long ones above all.
 *
 * Here are three moments. They follow from the density of the time that is spent at each amount of
 * work of the queue, an initial value problem as in queue_loss.h: what crosses x on its way down
 * has crossed it on its way up, or began above. The same with a start drawn from that density gives
 * the mean of what is left at a random time, hence the second moment, and once more the third.
 */
#ifndef GW_WORKLOAD_QUEUE_COMPLETION_H
#define GW_WORKLOAD_QUEUE_COMPLETION_H

#include "workload/model/queue_loss.h"

/*
 * Behind the queue that `maps` are prepared for, with a threshold and a limit in packets. What is
 * served before it and what arrives for it must be a load below 1 together.
 */
struct gw_completion gw_completion_behind(const struct gw_loss_maps *maps, double threshold,
                                          double limit);

/* Behind queues that lose nothing, with this load, below 1. */
struct gw_completion gw_completion_of_load(double load);

#endif
