/* Time that passes, for what is measured. */
#ifndef GW_CLI_STOPWATCH_H
#define GW_CLI_STOPWATCH_H

/* Seconds since some time in the past. */
double gw_seconds(void);

/* Lets so many seconds pass. */
void gw_pause(double seconds);

/* Seconds that the processors have worked for this process. */
double gw_cpu_seconds(void);

#endif
