/* --timeline: what workers of jobs did when, as a file that Perfetto and Chrome open. */
#ifndef GW_CLI_TRACE_EVENTS_H
#define GW_CLI_TRACE_EVENTS_H

#include "cli/report.h"

/*
 * Writes the finished run to `file`, called `name` in complaints: Chrome's trace-event JSON, times
 * in microseconds. A job is a process, its worker of rank r the thread r; layers are complete
 * events of it, named as in the model, with "forward" or "backward" as category. Pieces of
 * gradients under way and bursts (times with any piece under way) are asynchronous events of
 * categories "piece" and "burst". Returns whether it could be written.
 */
bool gw_trace_events_write(const struct gw_run_report *run, FILE *file, const char *name);

#endif
