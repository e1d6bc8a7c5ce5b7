/* CLOCK_MONOTONIC as gw_time; see clock.h. */
#include "net/clock.h"

gw_time gw_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (gw_time)now.tv_sec * GW_S + (gw_time)now.tv_nsec * GW_NS;
}

struct timespec gw_clock_timespec(gw_time span)
{
    return (struct timespec){
        .tv_sec = (time_t)(span / GW_S),
        .tv_nsec = (long)(span % GW_S / GW_NS),
    };
}
