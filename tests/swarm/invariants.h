/*
 * What must hold after every simulation, whatever the scenario. Conservation of bytes and packets
 * is the simulator's own audit; here is what can be said from outside: every flow ends or there is
 * a reason why it cannot, none is faster than light, and the counters agree with each other.
 */
#ifndef GW_TESTS_INVARIANTS_H
#define GW_TESTS_INVARIANTS_H

#include "sim/sim.h"

/*
 * A limit that every flow meets which can be delivered at all: many times what the whole workload
 * needs over the slowest link, one message after the other, and many timeouts on top.
 */
gw_time gw_invariants_time_limit(const struct gw_scenario *scenario);

/* Fails the test when a run that ended without an error broke an invariant. */
void gw_invariants_check(const struct gw_scenario *scenario, const struct gw_sim *sim);

/*
 * True of a run in which trimmed headers took all of a link: with strict priority for control they
 * can, when many senders meet on a slow link and headers are not far smaller than packets. Flows
 * may then never end.
 */
bool gw_invariants_is_starved(const struct gw_scenario *scenario,
                              const struct gw_sim_totals *totals);

#endif
