/*
 * Arithmetic of congestion windows in integers: products that cannot overflow, ratios of times, and
 * windows in 1/65536 byte.
 *
 * Every function saturates rather than wraps, so that no feedback, however absurd, makes a small
 * window a large one.
 */
#ifndef GW_CORE_WINDOW_H
#define GW_CORE_WINDOW_H

#include "base/fixed.h"
#include "core/path.h"

/* Gains above this (32768.0) have no use and would overflow. */
#define GW_GAIN_MAX ((gw_q16)1 << 31)

enum {
    GW_REFERENCE_BDP = 150000,     /* bytes: 100 Gb/s at 12 us, for which papers give gains */
    GW_RATIO_BYTES_MAX = 0xffffff, /* keeps size / cwnd within 64 bits */
};

static inline uint64_t gw_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint32_t gw_add_u32(uint32_t a, uint32_t b)
{
    return b > UINT32_MAX - a ? UINT32_MAX : a + b;
}

/* (a * b) >> shift, or all ones when that does not fit. */
static inline uint64_t gw_mul_shift(uint64_t a, uint64_t b, unsigned shift)
{
    unsigned __int128 product = ((unsigned __int128)a * b) >> shift;
    return product >> 64 ? UINT64_MAX : (uint64_t)product;
}

/* a / b of two times, in 1/2^24. */
static inline uint64_t gw_time_ratio(gw_time a, gw_time b)
{
    if (a >> 40) {
        a >>= 24;
        b >>= 24;
    }
    return (a << 24) / (b ? b : 1);
}

/* A configured gain within [0, GW_GAIN_MAX], in 1/65536. */
static inline uint64_t gw_gain(gw_q16 value)
{
    return value < 0 ? 0 : gw_min_u64((uint64_t)value, (uint64_t)GW_GAIN_MAX);
}

/* bytes / cwnd, in 1/2^32. The window is at least a packet, so 8 of its fractional bits suffice. */
static inline uint64_t gw_cwnd_share(uint32_t bytes, uint64_t cwnd)
{
    return (gw_min_u64(bytes, GW_RATIO_BYTES_MAX) << 40) / (cwnd >> 8);
}

static inline uint64_t gw_cwnd_clamp(uint64_t cwnd, uint64_t floor, uint64_t ceiling)
{
    return cwnd < floor ? floor : gw_min_u64(cwnd, ceiling);
}

/* The window after a change of either sign, at least a packet and at most `ceiling`. */
static inline uint64_t gw_cwnd_move(uint64_t cwnd, int64_t change, const struct gw_path *path,
                                    uint64_t ceiling)
{
    int64_t moved = (int64_t)cwnd + change;
    return gw_cwnd_clamp(moved < 0 ? 0 : (uint64_t)moved, (uint64_t)path->mtu << 16, ceiling);
}

/* `factor` times the bdp, in 1/65536 byte, at least a packet and at most what 32 bits can count. */
static inline uint64_t gw_cwnd_of_bdp(gw_q16 factor, const struct gw_path *path)
{
    return gw_cwnd_clamp(gw_gain(factor) * path->bdp, (uint64_t)path->mtu << 16,
                         (uint64_t)UINT32_MAX << 16);
}

/*
 * Time per wire byte at which a window of `bytes`, less than a packet, leaves once per `rtt`; no
 * slower than the slowest rate that base/time.h counts with. Counting cannot keep such a window,
 * since one packet is always allowed (Swift, section 3).
 */
static inline gw_byte_time gw_window_pace(const struct gw_path *path, gw_time rtt, uint64_t bytes)
{
    const gw_byte_time slowest = gw_byte_time_from_bps(GW_RATE_BPS_MIN);
    if (rtt / bytes >= slowest >> GW_BYTE_TIME_SHIFT)
        return slowest;
    return (rtt << GW_BYTE_TIME_SHIFT) / bytes * path->mtu / (path->mtu + path->hdr);
}

#endif
