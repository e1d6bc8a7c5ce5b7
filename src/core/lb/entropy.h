/*
 * Entropy values of load balancers: numbers in [0, count), where count comes from an option and may
 * be any number from 1 to 65536.
 */
#ifndef GW_CORE_ENTROPY_H
#define GW_CORE_ENTROPY_H

#include "base/prng.h"

enum {
    GW_ENTROPIES_MAX = 1 << 16, /* what the header field has room for */
};

/* The option within its limits. */
static inline uint32_t gw_entropy_count(uint32_t option)
{
    return option == 0 ? 1 : option < GW_ENTROPIES_MAX ? option : GW_ENTROPIES_MAX;
}

/* Uniform over the entropies of the option. */
static inline uint16_t gw_entropy_random(struct gw_prng *prng, uint32_t option)
{
    return (uint16_t)gw_prng_below(prng, gw_entropy_count(option));
}

/* The one that follows; after the last comes 0. */
static inline uint16_t gw_entropy_next(uint16_t entropy, uint32_t option)
{
    uint32_t next = (uint32_t)entropy + 1;
    return next < gw_entropy_count(option) ? (uint16_t)next : 0;
}

#endif
