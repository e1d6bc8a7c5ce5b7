/* When jobs start; see job_arrivals.h. */
#include "workload/job_arrivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "topo/memory.h"
#include "workload/generate.h"
#include "workload/model/csv_line.h"

#define HEADER "start,model,workers,iterations"

enum {
    COLUMNS = 4,
    JOBS_MAX = 65536,
    WHY_MAX = 512,
};

gw_time gw_job_arrivals_next(struct gw_job_arrivals *arrivals, struct gw_prng *prng)
{
    gw_time start = arrivals->next, gap = arrivals->interval;
    if (arrivals->is_exponential)
        gap = (gw_time)(((unsigned __int128)gap * gw_workload_exponential(prng)) >> 32);
    arrivals->next = gw_workload_later(start, gap);
    return start;
}

/* The model must be there; what has been looked up before is. */
static int check_model(const struct gw_job_trace *trace, const char *name,
                       const struct gw_workload_file *file, struct gw_workload_ctx *ctx)
{
    for (uint32_t i = 0; i < trace->count; i++)
        if (strcmp(trace->arrivals[i].model, name) == 0)
            return GW_OK;
    struct gw_model model;
    char why[WHY_MAX];
    struct gw_workload_ctx own = *ctx;
    own.why = why;
    own.why_size = sizeof(why);
    int error = gw_workload_model(&model, name, &own);
    if (error)
        return gw_workload_file_error(file, ctx, error, "%s", why);
    gw_model_free(&model);
    return GW_OK;
}

static int read_count(const char *column, const char *text, const struct gw_workload_file *file,
                      struct gw_workload_ctx *ctx, uint32_t *count)
{
    uint64_t number;
    if (gw_parse_count(text, &number) || number == 0 || number > 1000000)
        return gw_workload_file_error(file, ctx, GW_ERR_RANGE,
                                      "%s must be a whole number from 1 to 1000000, not '%s'",
                                      column, text);
    *count = (uint32_t)number;
    return GW_OK;
}

static int add_arrival(struct gw_job_trace *trace, struct gw_workload_file *file,
                       struct gw_workload_ctx *ctx)
{
    struct gw_job_arrival arrival = {.line = file->line};
    char *columns[COLUMNS];
    uint32_t count = gw_csv_split(file->text, columns, COLUMNS);
    if (count != COLUMNS)
        return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                      "has %u columns instead of %d (" HEADER ")", count, COLUMNS);
    int error = gw_parse_time(columns[0], &arrival.start);
    if (error || arrival.start > GW_WORKLOAD_TIME_MAX)
        return gw_workload_file_error(file, ctx, error ? error : GW_ERR_RANGE,
                                      "start must be a time of up to 20 days, not '%s'",
                                      columns[0]);
    if (trace->count && arrival.start < trace->arrivals[trace->count - 1].start)
        return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                      "start must not be before that of the job above");
    if (strlen(columns[1]) >= sizeof(arrival.model))
        return gw_workload_file_error(file, ctx, GW_ERR_RANGE, "model is longer than %d characters",
                                      GW_PARAM_TEXT_MAX - 1);
    memcpy(arrival.model, columns[1], strlen(columns[1]) + 1);
    error = check_model(trace, columns[1], file, ctx);
    if (!error)
        error = read_count("workers", columns[2], file, ctx, &arrival.workers);
    if (!error)
        error = read_count("iterations", columns[3], file, ctx, &arrival.iterations);
    if (!error && trace->count == JOBS_MAX)
        error = gw_workload_file_error(file, ctx, GW_ERR_RANGE, "more than %d jobs", JOBS_MAX);
    if (error)
        return error;
    trace->arrivals =
        gw_memory_grow(trace->arrivals, &trace->room, trace->count + 1, sizeof(trace->arrivals[0]));
    trace->arrivals[trace->count++] = arrival;
    return GW_OK;
}

int gw_job_trace_read(struct gw_job_trace *trace, const char *name, struct gw_workload_ctx *ctx)
{
    struct gw_workload_file file;
    *trace = (struct gw_job_trace){0};
    int error = gw_workload_open(&file, name, ctx);
    if (error)
        return error;
    int more = gw_workload_read(&file, ctx);
    if (more >= 0 && (more == 0 || strcmp(gw_csv_trim(file.text), HEADER) != 0))
        error =
            gw_workload_file_error(&file, ctx, GW_ERR_INVALID, "%sthe first line must be " HEADER,
                                   file.line ? "" : "the file is empty; ");
    while (!error && more > 0 && (more = gw_workload_read(&file, ctx)) > 0)
        error = add_arrival(trace, &file, ctx);
    if (!error && more == 0 && trace->count == 0)
        error = gw_workload_file_error(&file, ctx, GW_ERR_INVALID, "there is no job");
    fclose(file.stream);
    return error ? error : more;
}

void gw_job_trace_free(struct gw_job_trace *trace)
{
    free(trace->arrivals);
    *trace = (struct gw_job_trace){0};
}
