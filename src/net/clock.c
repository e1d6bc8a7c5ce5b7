/* CLOCK_MONOTONIC as gw_time; see clock.h. */
#include "net/clock.h"

#include <time.h>

gw_time gw_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (gw_time)now.tv_sec * GW_S + (gw_time)now.tv_nsec * GW_NS;
}
