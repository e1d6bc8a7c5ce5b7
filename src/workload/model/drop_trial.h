/*
 * Thresholds tried out: Poisson arrivals with exponential sizes through the discipline `dlcp`
 * itself (core/qdisc), at a port of its own. What the formulas of queue_loss.h expect is measured
 * here, with the error of the measurement.
 *
 * Time and draws are made of integers and of the four operations of doubles, so one seed gives the
 * same result on every machine.
 */
#ifndef GW_WORKLOAD_DROP_TRIAL_H
#define GW_WORKLOAD_DROP_TRIAL_H

#include "workload/model/drop_plan.h"

enum {
    GW_DROP_SMALL,
    GW_DROP_LARGE,
    GW_DROP_KINDS,
};

/* What became of the packets of a kind in a queue. */
struct gw_drop_seen {
    uint64_t arrived;
    uint64_t lost;
    double loss;
    double error; /* of `loss`: its standard deviation, from parts of the run */
};

/*
 * Queues hold what they hold when a packet comes, of whichever kind. So all packets of a queue tell
 * what either kind meets, and `either` is surer of the same losses than `queues`: it counts of both
 * kinds those that this kind's threshold would have dropped.
 */
struct gw_drop_trial {
    struct gw_drop_seen queues[GW_DROP_QUEUES_MAX][GW_DROP_KINDS];
    struct gw_drop_seen either[GW_DROP_QUEUES_MAX][GW_DROP_KINDS];
};

/*
 * Runs `arrivals` packets for all queues through the thresholds and limits of the plan. Returns 0,
 * or a negative error with a sentence in why[why_size]: the limits hold too many packets.
 */
int gw_drop_trial_run(struct gw_drop_trial *trial, const struct gw_drop_plan *plan,
                      const struct gw_drop_port *port, uint64_t arrivals, uint64_t seed, char *why,
                      uint32_t why_size);

#endif
