/*
 * How densely packets end at the head of a queue's work, where that is above a threshold.
 *
 * A packet that meets more work than S is taken if no packet ends within what is too much of it
 * (queue_loss.h). How many do depends on when that work came: what came while the queue held less
 * than S is of both kinds, and made of packets as they come; what came above S is of few, large in
 * kind, so that if there is much of it in spite of that, its packets are long. It came at the top,
 * and gets to the head.
 *
 * So the density of ends is followed from where they come to be, at the top of the work, to the
 * head: it moves as the queue is served, and shrinks or grows with the density of the work that it
 * is a part of. While an end is known to be within what is too much, no packet is taken; other ends
 * are taken to lie at random, with the density that is found. That is the one approximation here.
 */
#ifndef GW_WORKLOAD_QUEUE_HEADS_H
#define GW_WORKLOAD_QUEUE_HEADS_H

#include "workload/model/queue_loss.h"

/*
 * Sets how many packets end in work of the mean size at the head, above the threshold and above the
 * limit, both in packets. That is felt by whoever walks above the threshold afterwards.
 */
void gw_queue_heads(struct gw_loss_maps *maps, double threshold, double limit);

#endif
