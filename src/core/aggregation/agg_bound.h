/*
 * What gradients and results say of calls that may lack workers: the bound of the call, and how
 * many workers a sum lacks (section "Without stragglers" of docs/aggregation.md).
 *
 * A bound travels in steps of 1/200, rounded down, so that what is left out is never more than the
 * caller allows. Switches keep the least of what they add up: one worker can make the bound
 * stricter for all, and none looser.
 *
 * A result's word (agg.bitmap) is 0 when nobody is lacking and its index does not move.
 */
#ifndef GW_CORE_AGG_BOUND_H
#define GW_CORE_AGG_BOUND_H

#include "base/fixed.h"
#include "core/job.h"

enum {
    GW_AGG_BOUND_ONE = 200, /* the bound that means all */
    GW_AGG_LACK_SHIFT = 16, /* in a result's word: workers that the sum lacks */
    GW_AGG_LACK_MASK = 0x7fff,
    GW_AGG_ODD_SHIFT = 31, /* its contributors' windows had been cut an odd number of times */
};

/* The bound that a gradient carries. */
static inline uint8_t gw_agg_bound_of(gw_q16 bound)
{
    if (bound <= 0)
        return 0;
    if (bound >= GW_Q16_ONE)
        return GW_AGG_BOUND_ONE;
    return (uint8_t)(bound * GW_AGG_BOUND_ONE / GW_Q16_ONE);
}

/* How many of so many fragments a worker may be left out of. */
static inline uint32_t gw_agg_bound_allows(uint32_t bound, uint32_t fragments)
{
    return (uint32_t)((uint64_t)fragments * bound / GW_AGG_BOUND_ONE);
}

/* Whether there can be a sum without so many: more than half of the workers must be in it. */
static inline bool gw_agg_may_lack(uint32_t lacking, uint32_t world)
{
    return lacking == 0 || 2 * lacking < world;
}

static inline uint32_t gw_agg_result_word(uint32_t lacking, bool is_odd)
{
    return lacking ? lacking << GW_AGG_LACK_SHIFT | (uint32_t)is_odd << GW_AGG_ODD_SHIFT : 0;
}

/* Workers that a result lacks. */
static inline uint32_t gw_agg_result_lacks(uint32_t word)
{
    return word >> GW_AGG_LACK_SHIFT & GW_AGG_LACK_MASK;
}

static inline bool gw_agg_result_is_odd(uint32_t word)
{
    return word >> GW_AGG_ODD_SHIFT;
}

#endif
