/* The only clock of the project. Nothing outside net/ reads the time. */
#ifndef GW_NET_CLOCK_H
#define GW_NET_CLOCK_H

#include "base/time.h"

/* Monotonic time from an arbitrary origin, in picoseconds. */
gw_time gw_clock_now(void);

#endif
