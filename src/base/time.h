/*
 * Time and rates, in integers only.
 *
 * gw_time counts picoseconds since a node was initialised. It is unsigned and may wrap (after 213
 * days), so points in time are compared by signed difference, and any two that are compared lie
 * less than 106 days apart. GW_TIME_NEVER is no point in time: test for it before comparing;
 * gw_deadline_before() does so.
 *
 * A rate is kept as the time of one byte in 1/65536 ps (gw_byte_time), which turns the
 * serialisation time of a packet into a multiplication and is exact for every rate that divides
 * 8e12 bit/s.
 */
#ifndef GW_BASE_TIME_H
#define GW_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t gw_time;

#define GW_TIME_NEVER UINT64_MAX

#define GW_NS ((gw_time)1000)
#define GW_US ((gw_time)1000 * GW_NS)
#define GW_MS ((gw_time)1000 * GW_US)
#define GW_S  ((gw_time)1000 * GW_MS)

/* True when point in time `a` lies before `b`. Neither may be GW_TIME_NEVER. */
static inline bool gw_time_before(gw_time a, gw_time b)
{
    return (int64_t)(a - b) < 0;
}

/* As gw_time_before(), for deadlines: "never" lies after everything but itself. */
static inline bool gw_deadline_before(gw_time a, gw_time b)
{
    return a != GW_TIME_NEVER && (b == GW_TIME_NEVER || gw_time_before(a, b));
}

/* `from + delay`, one picosecond later when the sum would read as "never". */
static inline gw_time gw_time_add(gw_time from, gw_time delay)
{
    gw_time sum = from + delay;
    return sum + (sum == GW_TIME_NEVER);
}

/* Time of one byte at some rate, in 1/65536 ps. Zero means "no limit". */
typedef uint64_t gw_byte_time;

enum {
    GW_BYTE_TIME_SHIFT = 16,
    /* Slowest rate for which gw_serialisation() of a 64 KiB packet cannot overflow. */
    GW_RATE_BPS_MIN = 100000,
};

/* `rate_bps` must not be below GW_RATE_BPS_MIN. */
static inline gw_byte_time gw_byte_time_from_bps(uint64_t rate_bps)
{
    return ((UINT64_C(8000000000000) << GW_BYTE_TIME_SHIFT) + rate_bps / 2) / rate_bps;
}

/* Time that `bytes` occupy a link, rounded to the nearest picosecond. */
static inline gw_time gw_serialisation(gw_byte_time byte_time, uint32_t bytes)
{
    return (bytes * byte_time + (1u << (GW_BYTE_TIME_SHIFT - 1))) >> GW_BYTE_TIME_SHIFT;
}

#endif
