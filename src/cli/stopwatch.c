/* The clocks of the system, in seconds. */
#include "cli/stopwatch.h"

#include <sys/resource.h>
#include <time.h>

double gw_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void gw_pause(double seconds)
{
    double whole = (double)(time_t)seconds;
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - whole))};
    if (seconds > 0)
        nanosleep(&left, NULL);
}

double gw_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
