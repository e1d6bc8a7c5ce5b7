/* What the files with public calls share. */
#ifndef GW_LIB_CALLS_H
#define GW_LIB_CALLS_H

#include "gradwire.h"
#include "lib/io.h"

/* Returns `error`, with the line that gradwire_last_error() then has. */
int gw_calls_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* GRADWIRE_OK if this process may call with the job; else an error that is reported. */
int gw_calls_check(const gradwire *job);

/* GRADWIRE_OK if the type is known; else an error that is reported. */
int gw_calls_check_type(enum gradwire_type type);

/* How a call is to be made: options of it alone, or NULL, and where its number goes. */
struct gw_calls_how {
    const struct gradwire_call_options *options;
    gradwire_call *call; /* NULL: wait */
};

/* Starts a checked call, whose number and `via` it fills in, and waits for it unless its number is
 * asked for. */
int gw_calls_run(gradwire *job, struct gw_call *call, struct gw_calls_how how);

/* Of a call without elements, which has nothing to do: checks its options, and says that it has no
 * fragments. */
int gw_calls_run_empty(gradwire *job, struct gw_call *call,
                       const struct gradwire_call_options *options);

/* Of the form that always starts: GRADWIRE_OK, or an error that is reported: the number is to go
 * nowhere. */
int gw_calls_check_place(const gradwire_call *call);

#endif
