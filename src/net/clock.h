/* The only clock of the project. Nothing outside net/ reads the time. */
#ifndef GW_NET_CLOCK_H
#define GW_NET_CLOCK_H

#include <time.h>

#include "base/time.h"

/* Monotonic time from an arbitrary origin, in picoseconds. */
gw_time gw_clock_now(void);

/* A span of time as system calls take it, without what is less than a nanosecond. */
struct timespec gw_clock_timespec(gw_time span);

#endif
