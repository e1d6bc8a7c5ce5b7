/*
 * The losses to expect of a plan: those by the formula, unless a trial refutes it.
 *
 * The formula (queue_loss.h) is good where losses are rare. Where they are frequent, what is lost
 * shapes what else is: which packets are left in a queue's work, and how long those behind it wait.
 * That is when a short trial (drop_trial.h) is sure of them, and it has no approximations.
 */
#ifndef GW_WORKLOAD_DROP_EXPECT_H
#define GW_WORKLOAD_DROP_EXPECT_H

#include "workload/model/drop_plan.h"

/*
 * Replaces the losses of a plan, as the formula has them, by those of a trial of so many arrivals,
 * where that is sure of them and refutes the formula, says so in the plan, and prices it again. The
 * same on every machine and in every call. There is no trial where it could not be sure of any, or
 * the limits hold more packets than it takes.
 */
void gw_drop_expect(struct gw_drop_plan *plan, const struct gw_drop_port *port, uint64_t arrivals);

#endif
