/*
 * What calls of simulated ranks carry, and the model that says what must come out of them.
 *
 * Everything is a pure function of the run's seed, the job, the call, its iteration and the rank.
 * Numbers are few small multiples of a power of two, so any sum of them, an average and a product
 * are exact in every type, whatever way they took: there is one right result to the last bit. What
 * is pushed is the same every time, so a value tells how many pushes it has seen.
 */
#ifndef GW_SIM_CALL_VALUES_H
#define GW_SIM_CALL_VALUES_H

#include "workload/workload.h"

/* A rank's part in a call. */
struct gw_sim_duty {
    const struct gw_call_spec *spec;
    enum gw_call_kind kind; /* the spec's; of a message that of this end */
    uint32_t job;
    uint32_t rank, world;
    uint32_t call; /* number in the job's list */
    uint32_t iteration;
    uint64_t seed;
    void *in, *out; /* NULL: it has none */
};

/* Takes memory for the duty, and fills what the call reads. */
void gw_sim_duty_fill(struct gw_sim_duty *duty);

/* What must come of what all ranks give to a sum, the whole of a reduce-scatter's; to be freed.
 * NULL: the call is no sum. It is the same for all ranks. */
void *gw_sim_duty_sums(const struct gw_sim_duty *duty);

/* Whether what the call wrote is right; not of a pull. */
bool gw_sim_duty_is_right(const struct gw_sim_duty *duty, const void *sums);

/* Of a pull: whether the value has seen a number of pushes, all of each; stores it. */
bool gw_sim_duty_pushes(const struct gw_sim_duty *duty, uint64_t *pushes);

void gw_sim_duty_free(struct gw_sim_duty *duty);

#endif
