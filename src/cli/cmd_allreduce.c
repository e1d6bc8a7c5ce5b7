/* `gradwire allreduce`: sums the tensors of real files, one local worker per file. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "cli/cli.h"
#include "cli/npy.h"
#include "cli/reduce.h"
#include "cli/stopwatch.h"

enum {
    FILES_MAX = 64,
    TEXT_MAX = 256,
    KEY_OUTPUT = 'o',
    KEY_AVERAGE = 256,
};

struct allreduce_args {
    struct gw_reduce_args common;
    const char *files[FILES_MAX];
    uint32_t file_count;
    const char *output;
    bool average;
};

/* A worker: a thread with a file. */
struct worker {
    const struct allreduce_args *args;
    struct gradwire_options options;
    struct gw_npy array;
    pthread_t thread;
    int ended; /* where its address is written when it has ended */
    int error; /* of the library */
    bool has_job;
    char text[TEXT_MAX];
    double seconds;
    struct gradwire_stats stats;
};

static const struct argp_option options[] = {
    {"output", KEY_OUTPUT, "OUT.npy", 0, "write the sum there", 0},
    {"average", KEY_AVERAGE, 0, 0, "the average instead of the sum", 0},
    {0},
};

static const char doc[] =
    "Sums tensors of float32, float16 or int32, all of one shape, by one local worker per file."
    "\vExample:\n"
    "  gradwire allreduce -o sum.npy a.npy b.npy c.npy\n";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct allreduce_args *args = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        state->child_inputs[0] = &args->common;
        return 0;
    case KEY_OUTPUT:
        args->output = text;
        return 0;
    case KEY_AVERAGE:
        args->average = true;
        return 0;
    case ARGP_KEY_ARG:
        if (args->file_count == FILES_MAX) {
            gw_complain("allreduce: more than %d files", FILES_MAX);
            return EINVAL;
        }
        args->files[args->file_count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (args->file_count)
            return 0;
        gw_complain("allreduce: no file given; try 'gradwire allreduce --help'");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static enum gradwire_type type_of(const struct gw_npy *array)
{
    static const enum gradwire_type types[] = {[GW_NPY_FLOAT32] = GRADWIRE_FLOAT32,
                                               [GW_NPY_FLOAT16] = GRADWIRE_FLOAT16,
                                               [GW_NPY_INT32] = GRADWIRE_INT32};
    return types[array->type];
}

static double element(const struct gw_npy *array, const void *data, uint64_t i)
{
    if (array->type == GW_NPY_FLOAT32)
        return ((const float *)data)[i];
    if (array->type == GW_NPY_INT32)
        return ((const int32_t *)data)[i];
    uint16_t half = ((const uint16_t *)data)[i];
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(fraction + 1024, exponent - 25);
    return half & 0x8000 ? -value : value;
}

/* What is as short goes into a pipe whole. */
static void announce_end(const struct worker *worker)
{
    ssize_t put = write(worker->ended, &worker, sizeof(worker));
    GW_ASSERT(put == sizeof(worker));
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    const struct gw_npy *array = &worker->array;
    gradwire *job = NULL;
    worker->error = gradwire_open(&worker->options, &job);
    double begin = gw_seconds();
    if (!worker->error)
        worker->error =
            gradwire_allreduce(job, array->data, array->data, array->count, type_of(array),
                               worker->args->average ? GRADWIRE_AVERAGE : GRADWIRE_SUM);
    worker->seconds = gw_seconds() - begin;
    worker->has_job = job != NULL;
    if (worker->error)
        snprintf(worker->text, sizeof(worker->text), "%s", gradwire_last_error());
    worker->stats.size = sizeof(worker->stats);
    if (job)
        gradwire_get_stats(job, &worker->stats);
    gradwire_close(job);
    announce_end(worker);
    return NULL;
}

/* Reads all files. Returns an exit status; all of one shape, or a line that names two files. */
static int read_files(const struct allreduce_args *args, struct worker *workers)
{
    char error[GW_NPY_ERROR_MAX];
    for (uint32_t i = 0; i < args->file_count; i++) {
        struct gw_npy *array = &workers[i].array;
        if (gw_npy_read(args->files[i], array, error) != 0) {
            gw_complain("%s", error);
            return GW_EXIT_USAGE;
        }
        if (!gw_npy_is_alike(&workers[0].array, array, error)) {
            gw_complain("%s and %s differ: %s", args->files[0], args->files[i], error);
            return GW_EXIT_USAGE;
        }
    }
    if (args->average && workers[0].array.type == GW_NPY_INT32) {
        gw_complain("%s: an average is of floats, not of int32", args->files[0]);
        return GW_EXIT_USAGE;
    }
    return GW_EXIT_OK;
}

static bool start(struct worker *worker)
{
    int reason = pthread_create(&worker->thread, NULL, run_worker, worker);
    if (reason) {
        worker->error = GRADWIRE_ERR_SYSTEM;
        snprintf(worker->text, sizeof(worker->text), "cannot start a thread: %s", strerror(reason));
    }
    return reason == 0;
}

/* The sums and magnitudes that are right, computed here; NULL: out of memory. */
static double *reference(const struct allreduce_args *args, const struct worker *workers,
                         double *magnitude)
{
    uint64_t count = workers[0].array.count;
    double *sums = calloc(count ? count : 1, sizeof(*sums));
    *magnitude = 0;
    for (uint64_t i = 0; sums && i < count; i++) {
        double total = 0;
        for (uint32_t k = 0; k < args->file_count; k++) {
            double x = element(&workers[k].array, workers[k].array.data, i);
            sums[i] += x;
            total += fabs(x);
        }
        if (args->average)
            sums[i] /= args->file_count;
        *magnitude = total > *magnitude && isfinite(total) ? total : *magnitude;
    }
    return sums;
}

/* From which size on a sum is infinite, rounded to its type. */
static const double infinite_from[] = {
    [GW_NPY_FLOAT32] = 0x1.ffffffp127, [GW_NPY_FLOAT16] = 0x1.ffep15, [GW_NPY_INT32] = INFINITY};

/* How far a sum is from the right one; finite, so that it can be said in JSON. */
static double error_of(enum gw_npy_type type, double found, double right)
{
    if (isinf(found) && fabs(right) >= infinite_from[type] && signbit(found) == signbit(right))
        return 0;
    if (isnan(found) && isnan(right))
        return 0;
    return fmin(fabs(found - right), DBL_MAX);
}

static double largest_error(const struct gw_npy *array, const double *sums)
{
    double largest = 0;
    for (uint64_t i = 0; i < array->count; i++)
        largest = fmax(largest, error_of(array->type, element(array, array->data, i), sums[i]));
    return largest;
}

static int report(const struct allreduce_args *args, const struct worker *workers, double cpu_s,
                  const double *sums, double magnitude)
{
    const struct gw_npy *array = &workers[0].array;
    struct gw_reduce_report report = {
        .workers = args->file_count,
        .via = args->common.options.via,
        .elements = array->count,
        .bytes = array->count * gw_npy_element(array->type),
        .times = &workers[0].seconds,
        .iters = 1,
        .cpu_s = cpu_s,
        .max_abs_error = largest_error(array, sums),
        .exact_bound =
            gw_reduce_bound(args->common.options.via, args->file_count, magnitude, type_of(array)),
        .stats = workers[0].stats,
        .has_server = !args->common.options.server && args->common.options.via != GRADWIRE_VIA_RING,
    };
    return gw_reduce_print(&report, args->common.json);
}

/* All workers of a run. */
struct crew {
    char join[64];               /* where they meet */
    int ended[2];                /* a pipe: those that have ended, in their order */
    uint32_t count;              /* that have begun, and have not ended yet */
    const struct worker *failed; /* the first that has, or NULL */
};

/* Up to the first that cannot be. */
static void start_all(struct crew *crew, const struct allreduce_args *args, struct worker *workers)
{
    snprintf(crew->join, sizeof(crew->join), "127.0.0.1:%u", gw_reduce_free_port());
    for (uint32_t i = 0; i < args->file_count && !crew->failed; i++) {
        struct worker *worker = &workers[i];
        worker->args = args;
        worker->ended = crew->ended[1];
        worker->options = args->common.options;
        worker->options.rank = (int)i;
        worker->options.world = (int)args->file_count;
        if (!worker->options.join && !worker->options.server)
            worker->options.join = crew->join;
        if (start(worker))
            crew->count++;
        else
            crew->failed = worker;
    }
}

/* When one fails the others follow, but for those that had not met it yet: these are left. */
static void await_all(struct crew *crew)
{
    struct pollfd fd = {.fd = crew->ended[0], .events = POLLIN};
    while (crew->count) {
        const struct worker *worker;
        int ready = poll(&fd, 1, crew->failed ? (int)(GW_REDUCE_FOLLOW / GW_MS) : -1);
        if (ready == 0)
            return;
        if (ready < 0) /* a signal */
            continue;
        ssize_t got = read(fd.fd, &worker, sizeof(worker));
        GW_ASSERT(got == sizeof(worker));
        pthread_join(worker->thread, NULL);
        crew->count--;
        if (worker->error && !crew->failed)
            crew->failed = worker;
    }
}

/* Options that are refused are no file's. */
static void complain(const struct allreduce_args *args, const struct worker *worker)
{
    if (!worker->has_job && worker->error == GRADWIRE_ERR_INVALID)
        gw_complain("allreduce: %s", worker->text);
    else
        gw_complain("allreduce: %s: %s", args->files[worker->options.rank], worker->text);
}

/* Lets the workers do it; one that waits in vain ends with the process. Returns an exit status. */
static int let_reduce(const struct allreduce_args *args, struct worker *workers)
{
    struct crew crew = {.failed = NULL};
    if (pipe2(crew.ended, O_CLOEXEC) != 0) {
        gw_complain("allreduce: cannot make a pipe: %s", strerror(errno));
        return GW_EXIT_FAILURE;
    }
    start_all(&crew, args, workers);
    await_all(&crew);
    if (crew.failed)
        complain(args, crew.failed);
    if (crew.count)
        _exit(GW_EXIT_FAILURE); /* what they use cannot be freed */
    close(crew.ended[0]);
    close(crew.ended[1]);
    if (!crew.failed)
        return GW_EXIT_OK;
    return crew.failed->error == GRADWIRE_ERR_INVALID ? GW_EXIT_USAGE : GW_EXIT_FAILURE;
}

/* The sum, and its report. Returns an exit status. */
static int reduce(const struct allreduce_args *args, struct worker *workers)
{
    double magnitude, cpu_s = gw_cpu_seconds();
    double *sums = reference(args, workers, &magnitude);
    if (!sums) {
        gw_complain("out of memory");
        return GW_EXIT_FAILURE;
    }
    int status = let_reduce(args, workers);
    if (status == GW_EXIT_OK)
        status = report(args, workers, gw_cpu_seconds() - cpu_s, sums, magnitude);
    free(sums);
    return status;
}

int gw_cmd_allreduce(int argc, char **argv)
{
    static const struct argp_child children[] = {{&gw_reduce_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.options = options,
                                     .parser = parse_option,
                                     .args_doc = "A.npy B.npy...",
                                     .doc = doc,
                                     .children = children};
    struct allreduce_args args = {.file_count = 0};
    char error[GW_NPY_ERROR_MAX];
    gw_reduce_options_init(&args.common.options);
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &args) != 0)
        return GW_EXIT_USAGE;
    if (args.common.is_send) {
        gw_complain("allreduce: --via=send sums nothing: expected ina, ps or ring");
        return GW_EXIT_USAGE;
    }
    if (args.output && gw_npy_try_write(args.output, error) != 0) {
        gw_complain("%s", error);
        return GW_EXIT_USAGE;
    }
    struct worker *workers = calloc(args.file_count, sizeof(*workers));
    int status = workers ? read_files(&args, workers) : GW_EXIT_FAILURE;
    if (!workers)
        gw_complain("out of memory");
    if (status == GW_EXIT_OK)
        status = reduce(&args, workers);
    if (status == GW_EXIT_OK && args.output &&
        gw_npy_write(args.output, &workers[0].array, error) != 0) {
        gw_complain("%s", error);
        status = GW_EXIT_FAILURE;
    }
    for (uint32_t i = 0; workers && i < args.file_count; i++)
        gw_npy_free(&workers[i].array);
    free(workers);
    return status;
}
