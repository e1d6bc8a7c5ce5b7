/*
 * Pseudo-random numbers: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
 *
 * The generator is an explicit 8-byte object; there is no other source of randomness in the
 * project. One seed makes a run: every node, flow and fault draws its own stream with
 * gw_prng_derive(), so what one of them draws never shifts what another sees.
 */
#ifndef GW_BASE_PRNG_H
#define GW_BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct gw_prng {
    uint64_t state;
};

/* Finaliser of splitmix64: a bijection of 64 bits in which every input bit reaches every output. */
static inline uint64_t gw_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t gw_prng_next(struct gw_prng *prng)
{
    return gw_mix64(prng->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Uniform in [0, bound); bound 0 gives 0. The bias is below bound / 2^32. */
static inline uint32_t gw_prng_below(struct gw_prng *prng, uint32_t bound)
{
    return (uint32_t)(((gw_prng_next(prng) >> 32) * bound) >> 32);
}

/* True with probability `chance_q32` / 2^32; 2^32 is always true. */
static inline bool gw_prng_chance(struct gw_prng *prng, uint64_t chance_q32)
{
    return (gw_prng_next(prng) >> 32) < chance_q32;
}

/* The independent stream number `stream` of `seed`. */
static inline struct gw_prng gw_prng_derive(uint64_t seed, uint64_t stream)
{
    return (struct gw_prng){gw_mix64(seed + gw_mix64(stream + UINT64_C(0x9e3779b97f4a7c15)))};
}

#endif
