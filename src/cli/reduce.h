/*
 * What `gradwire bench` and `gradwire allreduce` share: their options, and the report of what
 * all-reduces did.
 */
#ifndef GW_CLI_REDUCE_H
#define GW_CLI_REDUCE_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradwire.h"

/* argp children parse these into a struct gw_reduce_args as their input. */
struct gw_reduce_args {
    struct gradwire_options options;
    bool json;
};

extern const struct argp gw_reduce_argp;

/* What is known of a run; times in seconds. */
struct gw_reduce_report {
    uint32_t workers;
    enum gradwire_via via;
    uint64_t elements;
    uint64_t bytes;
    const double *times; /* `iters` of them; sorted by the report */
    uint32_t iters;
    double cpu_s; /* of all processes that were measured, over all iterations */
    bool has_cpu; /* it is of all workers, not of one */
    double max_abs_error;
    double exact_bound;
    struct gradwire_stats stats; /* of the rank that is the server */
    bool has_server;             /* this machine saw it */
};

/* Prints it, for people or as JSON. Returns an exit status. */
int gw_reduce_print(const struct gw_reduce_report *report, bool json);

/* Name of a way. */
const char *gw_reduce_via_name(enum gradwire_via via);

/*
 * The largest error that the sum of `workers` floats may have whose absolute values add up to
 * `magnitude` at most, and the average accordingly (docs/numbers.md).
 */
double gw_reduce_bound(uint32_t workers, double magnitude, enum gradwire_type type);

/* A UDP port of the loopback interface that is free now. Returns 0: there is none. */
uint16_t gw_reduce_free_port(void);

#endif
