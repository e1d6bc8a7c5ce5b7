/*
 * The key of a tensor in gradient and parameter packets: which of the job's tensors it is, and what
 * the server must know of it to add up raw fragments.
 */
#ifndef GW_CORE_AGG_KEY_H
#define GW_CORE_AGG_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quant/kernels.h"

/* `number` counts the job's tensors; its upper three bits are lost. */
static inline uint32_t gw_agg_key(uint32_t number, enum gw_dtype type, bool average)
{
    return number << 3 | (average ? 4u : 0u) | (uint32_t)type;
}

/* Fragments before `seq` in the same tensor, whose number is that of its first fragment. */
static inline uint32_t gw_agg_key_before(uint32_t key, uint32_t seq)
{
    return (seq - (key >> 3)) & UINT32_MAX >> 3;
}

static inline enum gw_dtype gw_agg_key_type(uint32_t key)
{
    return (enum gw_dtype)(key & 3);
}

static inline bool gw_agg_key_average(uint32_t key)
{
    return key & 4;
}

#endif
