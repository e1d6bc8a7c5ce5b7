/* Random programs of calls for the job model. */
#ifndef GW_TESTS_RANDOM_CALLS_H
#define GW_TESTS_RANDOM_CALLS_H

#include "call_model.h"

#include "base/prng.h"

/* Draws `count` calls of ranks below `world`, with up to `elements_max` elements each. */
void gw_random_calls(struct gw_prng *prng, uint32_t world, uint64_t elements_max, uint32_t count,
                     struct gw_model_call *calls);

#endif
