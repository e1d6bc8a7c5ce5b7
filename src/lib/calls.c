/* The public calls; see gradwire.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/call_parts.h"
#include "lib/calls.h"
#include "lib/channels.h"
#include "lib/options.h"

enum {
    RING_BYTES = 256 << 10, /* more goes around a ring, see choose_via() */
};

struct gradwire {
    struct gw_channels *channels;
    int rank, world;
    pid_t owner;                     /* process that opened it */
    bool is_watched;                 /* somebody waits for gradwire_fd() */
    uint32_t untold;                 /* calls that have ended, and were not asked for since */
    bool is_untold[GW_IO_CALLS_MAX]; /* whether the last of each place that has ended is such */
    uint64_t last;                   /* number of the call that was started last */
    uint64_t begun[GW_IO_CALLS_MAX]; /* the last call of each place: its number modulo the places */
    uint64_t ended[GW_IO_CALLS_MAX]; /* the last one that has ended */
    int errors[GW_IO_CALLS_MAX];     /* how */
    uint64_t bytes[GW_IO_CALLS_MAX]; /* of it, if it is a message */
    uint64_t missing[GW_IO_CALLS_MAX];           /* fragments of it */
    struct gw_call_parts parts[GW_IO_CALLS_MAX]; /* what it may do without */
    struct gw_call_parts_job terms;              /* what that depends on */
    enum gw_via via;                             /* of calls that do not say; or GW_VIA_DEFAULT */
    bool rings;                                  /* of these, the large ones */
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
        return "a result does not fit its type";
    case GRADWIRE_ERR_UNSUPPORTED:
        return "not supported";
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

static void set_untold(struct gradwire *job, uint64_t call, bool is_untold)
{
    bool *place = &job->is_untold[call % GW_IO_CALLS_MAX];
    job->untold += (uint32_t)is_untold - (uint32_t)*place;
    *place = is_untold;
}

/* Takes all completions there are, and may wait for that of `call`. */
static bool await(struct gradwire *job, uint64_t call, bool waits)
{
    struct gw_completion completion;
    while (gw_channels_receive(job->channels, &completion,
                               waits && !has_ended(job, call) ? call : 0)) {
        uint64_t at = completion.call % GW_IO_CALLS_MAX;
        job->ended[at] = completion.call;
        job->errors[at] = completion.error;
        job->bytes[at] = completion.bytes;
        job->missing[at] = completion.missing;
        set_untold(job, completion.call, true);
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
    char error[GW_IO_TEXT_MAX] = "";
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
        .owner = getpid(),
        .terms = {.mtu = plan.mtu, .rank = plan.rank, .world = plan.world, .largest = plan.largest},
        .via = (enum gw_via)plan.via,
        .rings = plan.rings,
    };
    code = gw_channels_open(&plan, &job->channels, error);
    if (code) {
        free(job);
        return gw_calls_fail(code, "%s", error);
    }
    *result = job;
    return GRADWIRE_OK;
}

void gradwire_close(struct gradwire *job)
{
    if (!job)
        return;
    if (job->owner == getpid())
        gw_channels_close(job->channels);
    for (uint32_t at = 0; at < GW_IO_CALLS_MAX; at++)
        gw_call_parts_end(&job->parts[at], 0, 0);
    free(job);
}

int gradwire_rank(const struct gradwire *job)
{
    return job->rank;
}

int gradwire_world(const struct gradwire *job)
{
    return job->world;
}

int gw_calls_check_type(enum gradwire_type type)
{
    if ((uint32_t)type > GRADWIRE_UINT8)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "type %d is not known", type);
    return GRADWIRE_OK;
}

int gw_calls_check_place(const gradwire_call *call)
{
    if (!call)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "no place is given for the number of the call");
    return GRADWIRE_OK;
}

void gradwire_call_options_init(struct gradwire_call_options *options, size_t size)
{
    const struct gradwire_call_options defaults = {.size = size, .via = GRADWIRE_VIA_DEFAULT};
    memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

/*
 * How a call goes that may go any way. Where rank 0 adds up alone, its link carries the values of
 * all others; around a ring no link carries more than twice one rank's. But a ring has more steps,
 * one after the other: for what is small rank 0 is faster, the longer the faster links are
 * (docs/benchmarks.md; at 10 Gb/s and 50 us a step four ranks are even at 250 KB). Two ranks have a
 * step or two, and share the work.
 */
static enum gw_via choose_via(const struct gradwire *job, enum gradwire_via via, uint64_t bytes)
{
    const enum gw_via wanted = via == GRADWIRE_VIA_DEFAULT ? job->via : (enum gw_via)via;
    if (wanted != GW_VIA_DEFAULT)
        return wanted;
    return job->rings && (job->world == 2 || bytes > RING_BYTES) ? GW_VIA_RING : GW_VIA_INA;
}

static enum gw_via via_of(const struct gradwire *job, const struct gw_call *call,
                          const struct gradwire_call_options *options)
{
    return choose_via(job, options ? options->via : GRADWIRE_VIA_DEFAULT,
                      call->count * gw_dtype_size(call->type));
}

static int check_via(enum gradwire_via via)
{
    if ((uint32_t)via > GRADWIRE_VIA_DEFAULT)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "via is %d: ina, ps, ring or default", via);
    return GRADWIRE_OK;
}

/* Whether nobody else is to be told in the same memory. */
static int check_told(const struct gradwire *job, const struct gradwire_parts *told)
{
    for (uint32_t at = 0; at < GW_IO_CALLS_MAX; at++)
        if (gw_call_parts_tells(&job->parts[at], told))
            return gw_calls_fail(GRADWIRE_ERR_INVALID,
                                 "parts, or an array of it, is of call %llu, which was not waited "
                                 "for",
                                 (unsigned long long)job->begun[at]);
    return GRADWIRE_OK;
}

static int check_options(const struct gradwire *job, const struct gradwire_call_options *options)
{
    if (options->size != sizeof(*options)) /* so far there has been one version */
        return gw_calls_fail(GRADWIRE_ERR_INVALID,
                             "the options of the call are of another version of the library");
    int code = check_via(options->via);
    return code || !options->parts ? code : check_told(job, options->parts);
}

/* The next number whose place is free: its last call has ended, and was asked for since. A call
 * that lasts, such as a message that is awaited, is passed over. 0: there is none. */
static uint64_t next_number(const struct gradwire *job)
{
    for (uint64_t next = job->last + 1; next <= job->last + GW_IO_CALLS_MAX; next++) {
        uint64_t at = next % GW_IO_CALLS_MAX;
        if (job->begun[at] == job->ended[at] && !job->is_untold[at])
            return next;
    }
    return 0;
}

/* Starts a call, whose number it fills in, by its options; NULL: the defaults. `waits`: who calls
 * will at once. */
static int start(struct gradwire *job, struct gw_call *call,
                 const struct gradwire_call_options *options, bool waits)
{
    char error[GW_NET_ERROR_MAX];
    await(job, job->last, false);
    if (gw_channels_have_failed(job->channels))
        return gw_calls_fail(GRADWIRE_ERR_CLOSED, "the job has ended: %s",
                             gw_channels_text(job->channels));
    call->number = next_number(job);
    struct gw_call_parts *parts = &job->parts[call->number % GW_IO_CALLS_MAX];
    int code = GRADWIRE_OK;
    if (call->number && options)
        code = gw_call_parts_begin(parts, options, &job->terms, call, error);
    if (!code && call->parts && gw_channels_cut(job->channels, call))
        gw_call_parts_tell_all(parts, job->world);
    if (code)
        return gw_calls_fail(code, "%s", error);
    if (!call->number || !gw_channels_send(job->channels, call, waits)) {
        if (call->number)
            gw_call_parts_end(parts, 0, 0);
        return gw_calls_fail(GRADWIRE_ERR_BUSY,
                             "%d calls are in work, or were not waited for: wait for one",
                             GW_IO_CALLS_MAX);
    }
    job->last = call->number;
    job->begun[job->last % GW_IO_CALLS_MAX] = job->last;
    return GRADWIRE_OK;
}

int gw_calls_run(struct gradwire *job, struct gw_call *call, struct gw_calls_how how)
{
    int code = how.options ? check_options(job, how.options) : GRADWIRE_OK;
    call->via = via_of(job, call, how.options);
    if (!code)
        code = start(job, call, how.options, how.call == NULL);
    if (code)
        return code;
    if (!how.call)
        return gradwire_wait(job, call->number);
    *how.call = call->number;
    return GRADWIRE_OK;
}

int gw_calls_run_empty(struct gradwire *job, struct gw_call *call,
                       const struct gradwire_call_options *options)
{
    char error[GW_NET_ERROR_MAX];
    struct gw_call_parts parts;
    int code = options ? check_options(job, options) : GRADWIRE_OK;
    if (code || !options)
        return code;
    call->via = via_of(job, call, options);
    code = gw_call_parts_begin(&parts, options, &job->terms, call, error);
    if (code)
        return gw_calls_fail(code, "%s", error);
    gw_call_parts_end(&parts, 0, 0);
    return GRADWIRE_OK;
}

size_t gradwire_fragments(const struct gradwire *job, size_t count, enum gradwire_type type,
                          enum gradwire_via via)
{
    if (gw_calls_check(job) || gw_calls_check_type(type) || check_via(via))
        return 0;
    enum gw_via way = choose_via(job, via, count * gw_dtype_size((enum gw_dtype)type));
    size_t each = gw_call_parts_fragment(job->terms.mtu, (enum gw_dtype)type, way);
    return count / each + (count % each != 0);
}

int gradwire_fd(struct gradwire *job)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    job->is_watched = true;
    if (job->untold)
        gw_io_recall(gw_channels_first(job->channels));
    return gw_io_fd(gw_channels_first(job->channels));
}

int gradwire_test(struct gradwire *job, gradwire_call call, int *done)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    if (call == 0 || job->begun[call % GW_IO_CALLS_MAX] != call)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "call %llu is not in work",
                             (unsigned long long)call);
    if (!done)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "no place is given for whether it has ended");
    if (job->is_watched) /* before it looks: what ends later makes it readable again */
        gw_io_drain(gw_channels_first(job->channels));
    *done = await(job, call, false);
    if (*done)
        set_untold(job, call, false);
    if (job->is_watched && job->untold)
        gw_io_recall(gw_channels_first(job->channels));
    if (!*done)
        return GRADWIRE_OK;
    uint64_t at = call % GW_IO_CALLS_MAX;
    gw_call_parts_end(&job->parts[at], job->bytes[at], job->missing[at]);
    code = job->errors[at];
    const char *refusal = gw_channels_refusal(job->channels, call);
    return code ? gw_calls_fail(code, "%s", refusal ? refusal : gw_channels_text(job->channels))
                : GRADWIRE_OK;
}

int gradwire_wait(struct gradwire *job, gradwire_call call)
{
    int done;
    int code = gradwire_test(job, call, &done);
    if (code || done)
        return code;
    /* The io fails what makes no progress; long calls that do make some come to no harm. */
    await(job, call, true);
    return gradwire_test(job, call, &done);
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
    gw_channels_stats(job->channels, &all);
    all.size = size;
    memcpy(stats, &all, size);
    return GRADWIRE_OK;
}
