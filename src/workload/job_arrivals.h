/*
 * When jobs start: at intervals, fixed or random, or as a file says.
 *
 * A trace is a CSV file with one job per line, in the order of their starts:
 *
 *     start,model,workers,iterations
 *     0,resnet50,8,100
 *     250ms,vgg16,4,50
 */
#ifndef GW_WORKLOAD_JOB_ARRIVALS_H
#define GW_WORKLOAD_JOB_ARRIVALS_H

#include <stdbool.h>

#include "workload/workload.h"

/* A sequence of starts: set `next` to the first one. */
struct gw_job_arrivals {
    gw_time next;
    gw_time interval;    /* between two starts; the mean if it is random */
    bool is_exponential; /* random, as of jobs that know nothing of each other */
};

/* The start of the next job; draws from the stream only if the interval is random. */
gw_time gw_job_arrivals_next(struct gw_job_arrivals *arrivals, struct gw_prng *prng);

struct gw_job_arrival {
    gw_time start;
    char model[GW_PARAM_TEXT_MAX]; /* one that gw_workload_model() has loaded once */
    uint32_t workers;
    uint32_t iterations;
    uint32_t line; /* of the file; 0: it comes from none */
};

struct gw_job_trace {
    struct gw_job_arrival *arrivals; /* starts do not fall */
    uint32_t count, room;
};

/*
 * Reads a trace; relative names as gw_workload_open() has them. Returns 0, or a negative error with
 * ctx->why set, which names file and line. gw_job_trace_free() takes it back, also after an error.
 */
int gw_job_trace_read(struct gw_job_trace *trace, const char *name, struct gw_workload_ctx *ctx);
void gw_job_trace_free(struct gw_job_trace *trace);

#endif
