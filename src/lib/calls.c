/* The public calls; see gradwire.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/calls.h"
#include "lib/io.h"
#include "lib/options.h"

enum {
    GUARD_MS = 15000, /* the I/O thread is late by so much: it is stuck */
};

struct gradwire {
    struct gw_io *io;
    int rank, world;
    uint32_t deadline_ms;
    pid_t owner;                     /* process that opened it */
    bool has_messages;               /* its ranks can send to each other */
    uint64_t started;                /* calls */
    uint64_t ended[GW_IO_CALLS_MAX]; /* the last call of each place that has ended */
    int errors[GW_IO_CALLS_MAX];     /* how */
    bool has_failed;                 /* one of them has: no more are taken */
};

static _Thread_local char last_error[GW_IO_TEXT_MAX];

const char *gradwire_last_error(void)
{
    return last_error;
}

const char *gradwire_version(void)
{
    return GW_VERSION;
}

const char *gradwire_error_text(int error)
{
    switch ((enum gradwire_error)error) {
    case GRADWIRE_OK:
        return "no error";
    case GRADWIRE_ERR_INVALID:
        return "an argument or option is out of its range";
    case GRADWIRE_ERR_NO_MEMORY:
        return "out of memory";
    case GRADWIRE_ERR_SYSTEM:
        return "the operating system refused";
    case GRADWIRE_ERR_TIMED_OUT:
        return "no progress before the deadline";
    case GRADWIRE_ERR_PEER:
        return "a worker, server or switch is lost, or refuses";
    case GRADWIRE_ERR_OVERFLOW:
        return "a sum does not fit its type";
    case GRADWIRE_ERR_UNSUPPORTED:
        return "not built yet, or not with this transport";
    case GRADWIRE_ERR_CLOSED:
        return "an earlier failure has ended the job";
    case GRADWIRE_ERR_FORKED:
        return "called in a child of the process that opened the job";
    case GRADWIRE_ERR_BUSY:
        return "too many calls are in work";
    }
    return "unknown error";
}

int gw_calls_fail(int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    return error;
}

static bool has_ended(const struct gradwire *job, uint64_t call)
{
    return job->ended[call % GW_IO_CALLS_MAX] >= call;
}

/* Takes completions until `call` has ended; waits up to `wait_ms` without any. */
static bool await(struct gradwire *job, uint64_t call, int wait_ms)
{
    struct gw_completion completion;
    while (!has_ended(job, call) && gw_io_receive(job->io, &completion, wait_ms)) {
        uint64_t at = completion.call % GW_IO_CALLS_MAX;
        job->ended[at] = completion.call;
        job->errors[at] = completion.error;
        job->has_failed |=
            completion.error != GRADWIRE_OK && !gw_io_refusal(job->io, completion.call);
    }
    return has_ended(job, call);
}

int gw_calls_check(const struct gradwire *job)
{
    if (!job)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "no job is given");
    if (job->owner != getpid())
        return gw_calls_fail(GRADWIRE_ERR_FORKED, "%s", gradwire_error_text(GRADWIRE_ERR_FORKED));
    return GRADWIRE_OK;
}

int gradwire_open(const struct gradwire_options *options, struct gradwire **result)
{
    struct gw_io_plan plan;
    struct gw_completion opened;
    char error[GW_NET_ERROR_MAX] = "";
    if (!options || !result)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "no options are given, or no place for the job");
    int code = gw_options_plan(options, &plan, error);
    if (code)
        return gw_calls_fail(code, "%s", error);
    struct gradwire *job = calloc(1, sizeof(*job));
    if (!job)
        return gw_calls_fail(GRADWIRE_ERR_NO_MEMORY, "out of memory");
    *job = (struct gradwire){
        .rank = plan.rank,
        .world = plan.world,
        .deadline_ms = (uint32_t)(plan.stall / GW_MS),
        .owner = getpid(),
        .has_messages = plan.via == GRADWIRE_VIA_RING,
    };
    code = gw_io_start(&plan, &job->io, error);
    if (code) {
        free(job);
        return gw_calls_fail(code, "%s", error);
    }
    /* Attaching and joining have a deadline each. */
    if (!gw_io_receive(job->io, &opened, (int)(2 * job->deadline_ms) + GUARD_MS))
        opened.error = gw_calls_fail(GRADWIRE_ERR_SYSTEM, "the I/O thread does not answer");
    else if (opened.error)
        gw_calls_fail(opened.error, "%s", gw_io_text(job->io));
    if (opened.error) {
        gw_io_stop(job->io);
        free(job);
        return opened.error;
    }
    *result = job;
    return GRADWIRE_OK;
}

void gradwire_close(struct gradwire *job)
{
    if (!job)
        return;
    if (job->owner == getpid())
        gw_io_stop(job->io);
    free(job);
}

bool gw_calls_has_messages(const struct gradwire *job)
{
    return job->has_messages;
}

int gradwire_rank(const struct gradwire *job)
{
    return job->rank;
}

int gradwire_world(const struct gradwire *job)
{
    return job->world;
}

int gw_calls_start(struct gradwire *job, struct gw_command *command, gradwire_call *call)
{
    uint64_t next = job->started + 1;
    await(job, job->started, 0);
    if (job->has_failed)
        return gw_calls_fail(GRADWIRE_ERR_CLOSED, "the job has ended: %s", gw_io_text(job->io));
    command->call = next;
    bool has_room = next <= GW_IO_CALLS_MAX || has_ended(job, next - GW_IO_CALLS_MAX);
    if (!has_room || !gw_io_send(job->io, command))
        return gw_calls_fail(GRADWIRE_ERR_BUSY, "%d calls are in work", GW_IO_CALLS_MAX);
    *call = job->started = next;
    return GRADWIRE_OK;
}

int gradwire_allreduce_start(struct gradwire *job, const void *in, void *out, size_t count,
                             enum gradwire_type type, enum gradwire_op op, gradwire_call *call)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    if ((uint32_t)type > GRADWIRE_INT32 || (uint32_t)op > GRADWIRE_AVERAGE)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "type %d or op %d is not known", type, op);
    if (op == GRADWIRE_AVERAGE && type == GRADWIRE_INT32)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "an average is of floats, not of int32");
    if (!in || !out || count == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "in or out is NULL, or count is 0");
    struct gw_command command = {
        .kind = GW_COMMAND_REDUCE,
        .in = in,
        .out = out,
        .count = count,
        .type = (uint8_t)type,
        .op = (uint8_t)(op == GRADWIRE_AVERAGE ? GW_OP_AVERAGE : GW_OP_SUM),
    };
    return gw_calls_start(job, &command, call);
}

int gradwire_test(struct gradwire *job, gradwire_call call, int *done)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    if (call == 0 || call > job->started || call + GW_IO_CALLS_MAX <= job->started)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "call %llu is not in work",
                             (unsigned long long)call);
    *done = await(job, call, 0);
    if (!*done)
        return GRADWIRE_OK;
    code = job->errors[call % GW_IO_CALLS_MAX];
    const char *refusal = gw_io_refusal(job->io, call);
    return code ? gw_calls_fail(code, "%s", refusal ? refusal : gw_io_text(job->io)) : GRADWIRE_OK;
}

int gradwire_wait(struct gradwire *job, gradwire_call call)
{
    int done;
    int code = gradwire_test(job, call, &done);
    if (code || done)
        return code;
    /* The io fails what makes no progress; long calls that do make some come to no harm. */
    while (!await(job, call, -1))
        continue;
    return gradwire_test(job, call, &done);
}

int gradwire_allreduce(struct gradwire *job, const void *in, void *out, size_t count,
                       enum gradwire_type type, enum gradwire_op op)
{
    gradwire_call call = 0;
    if (count == 0)
        return gw_calls_check(job);
    int code = gradwire_allreduce_start(job, in, out, count, type, op, &call);
    return code ? code : gradwire_wait(job, call);
}

int gradwire_get_stats(const struct gradwire *job, struct gradwire_stats *stats)
{
    struct gradwire_stats all;
    int code = gw_calls_check(job);
    if (code)
        return code;
    size_t size = stats ? stats->size : 0;
    if (size < sizeof(size_t) || size > sizeof(all))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "stats.size is not that of this version");
    gw_io_stats(job->io, &all);
    all.size = size;
    memcpy(stats, &all, size);
    return GRADWIRE_OK;
}
