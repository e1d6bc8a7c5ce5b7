/* What the files with public calls share. */
#ifndef GW_LIB_CALLS_H
#define GW_LIB_CALLS_H

#include "gradwire.h"
#include "lib/io.h"

/* Returns `error`, with the line that gradwire_last_error() then has. */
int gw_calls_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* GRADWIRE_OK if this process may call with the job; else an error that is reported. */
int gw_calls_check(const gradwire *job);

/* Whether the job's ranks can send messages to each other. */
bool gw_calls_has_messages(const gradwire *job);

/* Starts a checked call, whose number it fills in. */
int gw_calls_start(gradwire *job, struct gw_command *command, gradwire_call *call);

#endif
