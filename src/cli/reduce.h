/*
 * What `gradwire bench` and `gradwire allreduce` share: their options, and the report of what
 * all-reduces did.
 */
#ifndef GW_CLI_REDUCE_H
#define GW_CLI_REDUCE_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "gradwire.h"

/* How long others may follow a rank that has failed: one that is silent is missed before that. */
#define GW_REDUCE_FOLLOW (3 * GW_S)

/* argp children parse these into a struct gw_reduce_args as their input. */
struct gw_reduce_args {
    struct gradwire_options options;
    const char *lose, *duplicate, *delay, *seed; /* faults on purpose; NULL: none */
    bool is_send; /* --via send: no sum, but messages from rank 0 to rank 1 */
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
    double cpu_s; /* of all workers' processes in those, in seconds */
    double max_abs_error;
    double exact_bound;
    struct gradwire_stats stats; /* of the rank that is the server */
    bool has_server;             /* this machine saw it */
    bool may_lose;               /* a part; then: */
    double missing[2];           /* shares, of the workers' contributions and of the sums */
};

/* Prints it, for people or as JSON. Returns an exit status. */
int gw_reduce_print(const struct gw_reduce_report *report, bool json);

/* Fills them as the library does; but one way, ina, is what a command takes by default. */
void gw_reduce_options_init(struct gradwire_options *defaults);

/*
 * The largest error that the sum of `workers` numbers may have whose absolute values add up to
 * `magnitude` at most (docs/numbers.md).
 */
double gw_reduce_bound(enum gradwire_via via, uint32_t workers, double magnitude,
                       enum gradwire_type type);

/* Copies `count` times, and sorts them; the caller frees them. NULL: out of memory, reported. */
double *gw_reduce_sorted(const double *times, uint32_t count);

double gw_reduce_mean(const double *times, uint32_t count);

/* The time below which `part` of the sorted times lie. */
double gw_reduce_quantile(const double *times, uint32_t count, double part);

/* A UDP port of the loopback interface that is free now. Returns 0: there is none. */
uint16_t gw_reduce_free_port(void);

#endif
