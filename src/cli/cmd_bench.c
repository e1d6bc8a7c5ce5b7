/*
 * `gradwire bench`: all-reduces of random numbers, checked and timed, by local processes or as one
 * rank of several machines.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/bench_reduce.h"
#include "cli/bench_send.h"
#include "cli/cli.h"
#include "cli/option.h"
#include "cli/reduce.h"
#include "net/clock.h"
#include "workload/model/model.h"

enum {
    WORKERS_MAX = 64,
    ITERS_MAX = 100000,
    TEXT_MAX = 256,
    KEY_WORKERS = 256,
    KEY_SIZE,
    KEY_ITERS,
    KEY_MODEL,
    KEY_PAUSE,
    KEY_CHECK_ALL,
    KEY_RANK,
    KEY_WORLD,
    TENSORS_MAX = 1024, /* of a model */
    WHY_MAX = 512,
};

#define SIZE_MAX_BYTES (UINT64_C(16) << 30)
#define PAUSE_MAX      (10 * GW_S)

struct bench_args {
    struct gw_reduce_args common;
    struct gw_bench_parts_cfg parts;
    uint64_t workers, size, iters, rank, world;
    uint64_t tensors[TENSORS_MAX]; /* elements of each; the last comes first */
    uint32_t tensor_count;
    gw_time pause;
    bool has_rank, has_world, has_workers, checks_all;
};

/* What a rank tells the process that prints; in memory that they share. */
struct rank_report {
    bool is_done;
    int error;           /* of the library */
    char text[TEXT_MAX]; /* of its failure */
    struct gw_bench_reduce reduce;
    struct gw_bench_send send;
};

struct shared {
    struct rank_report ranks[WORKERS_MAX];
    double times[]; /* of every rank, `iters` each */
};

static const struct argp_option options[] = {
    {"workers", KEY_WORKERS, "N", 0, "local processes (4; of --via send: 2)", 0},
    {"size", KEY_SIZE, "BYTES", 0, "of each worker's float32 tensor (100MB)", 0},
    {"iters", KEY_ITERS, "K", 0, "all-reduces that are timed, after one that is not (5)", 0},
    {"pause", KEY_PAUSE, "TIME", 0, "idle time before each all-reduce, which is a burst then (0)",
     0},
    {"model", KEY_MODEL, "NAME", 0, "instead of --size: the gradients of a model, layer by layer",
     0},
    {"check-all", KEY_CHECK_ALL, NULL, 0,
     "check every element of every sum, not only of the last one", 0},
    {"rank", KEY_RANK, "R", 0, "several machines: we are this rank", 0},
    {"world", KEY_WORLD, "N", 0, "of so many, of which rank 0 is at --join", 0},
    {0},
};

static const char doc[] =
    "Sums random tensors over workers, checks every sum, and prints how long it took."
    "\vExamples:\n"
    "  gradwire bench --workers 4 --size 100MB\n"
    "  gradwire bench --via send --cc smartt --lb reps --paths 8    one flow between two\n"
    "  gradwire bench --rank 1 --world 4 --join 10.0.0.1:4790    on the second of four machines\n";

/* The weights and biases of each layer. */
static error_t set_model(struct bench_args *args, const char *name)
{
    char why[WHY_MAX];
    struct gw_model model;
    if (gw_model_load(&model, name, why, sizeof(why))) {
        gw_complain("--model=%s: %s", name, why);
        return EINVAL;
    }
    error_t error = 0;
    if (model.tensor_count == 0 || model.tensor_count > TENSORS_MAX ||
        model.params > SIZE_MAX_BYTES / 4) {
        error = gw_option_refuse("model", name, "up to %d tensors and 16 GiB", TENSORS_MAX);
    }
    args->tensor_count = 0;
    for (uint32_t i = 0; i < model.layer_count && !error; i++) {
        const struct gw_layer *layer = &model.layers[i];
        if (layer->weights)
            args->tensors[args->tensor_count++] = layer->weights;
        if (layer->biases)
            args->tensors[args->tensor_count++] = layer->biases;
    }
    args->size = 4 * model.params;
    gw_model_free(&model);
    return error;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct bench_args *args = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        state->child_inputs[0] = &args->common;
        state->child_inputs[1] = &args->parts;
        return 0;
    case KEY_WORKERS:
        args->has_workers = true;
        return gw_option_number("workers", text, 1, WORKERS_MAX, &args->workers);
    case KEY_SIZE:
        if (gw_parse_bytes(text, &args->size) == 0 && args->size >= 4 &&
            args->size <= SIZE_MAX_BYTES)
            return 0;
        return gw_option_refuse("size", text, "bytes from 4 to 16GiB, as 100MB");
    case KEY_MODEL:
        return set_model(args, text);
    case KEY_ITERS:
        return gw_option_number("iters", text, 1, ITERS_MAX, &args->iters);
    case KEY_PAUSE:
        if (gw_parse_time(text, &args->pause) == 0 && args->pause <= PAUSE_MAX)
            return 0;
        return gw_option_refuse("pause", text, "a time up to 10s");
    case KEY_CHECK_ALL:
        args->checks_all = true;
        return 0;
    case KEY_RANK:
        args->has_rank = true;
        return gw_option_number("rank", text, 0, 1023, &args->rank);
    case KEY_WORLD:
        args->has_world = true;
        return gw_option_number("world", text, 1, 1024, &args->world);
    case ARGP_KEY_END:
        if (args->tensor_count == 0)
            args->tensors[args->tensor_count++] = args->size / 4;
        return 0;
    case ARGP_KEY_ARG:
        gw_complain("bench: '%s': no argument is expected", text);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static struct gw_bench_send_cfg send_cfg(const struct bench_args *args)
{
    return (struct gw_bench_send_cfg){args->size, args->iters, &args->parts};
}

/* Whether anything may be missing, or is more important than the rest. */
static bool has_parts(const struct gw_bench_parts_cfg *parts)
{
    return parts->bound > 0 || parts->bound_pull > 0 ||
           parts->importance != GRADWIRE_IMPORTANCE_ALL;
}

/* Lets what may lose a part be as large as the tensors, or the message, are. */
static void set_largest(struct bench_args *args)
{
    uint64_t bytes = args->common.is_send ? args->size : 0;
    for (uint32_t i = 0; i < args->tensor_count; i++)
        if (bytes < 4 * args->tensors[i])
            bytes = 4 * args->tensors[i];
    if (has_parts(&args->parts) && args->common.options.largest < bytes)
        args->common.options.largest = bytes;
}

/* How floats are added: by the ranks as they are, or by switches and server as integers. */
static enum gradwire_via adds_as(const struct bench_args *args)
{
    enum gradwire_via via = args->common.options.via;
    return via == GRADWIRE_VIA_PS && has_parts(&args->parts) ? GRADWIRE_VIA_RING : via;
}

static double bound_of(const struct bench_args *args)
{
    uint32_t workers = (uint32_t)args->common.options.world;
    return gw_reduce_bound(adds_as(args), workers, workers, GRADWIRE_FLOAT32);
}

/* A sum that was wrong before the rank failed matters more than why it failed. */
static void say_why(const struct bench_args *args, int code, struct rank_report *report)
{
    const char *why = code == GRADWIRE_ERR_NO_MEMORY ? "out of memory" : gradwire_last_error();
    int rank = args->common.options.rank;
    if (report->reduce.max_abs_error <= bound_of(args))
        snprintf(report->text, sizeof(report->text), "rank %d: %s", rank, why);
    else
        snprintf(report->text, sizeof(report->text),
                 "rank %d: a sum is wrong by %g, more than the bound of %g; and then: %s", rank,
                 report->reduce.max_abs_error, bound_of(args), why);
}

/* One rank's whole life. */
static void run_rank(const struct bench_args *args, struct rank_report *report, double *times)
{
    gradwire *job = NULL;
    const struct gw_bench_reduce_cfg reduce = {.tensors = args->tensors,
                                               .count = args->tensor_count,
                                               .iters = args->iters,
                                               .checks_all = args->checks_all,
                                               .parts = &args->parts,
                                               .pause_s = (double)args->pause / GW_S};
    const struct gw_bench_send_cfg send = send_cfg(args);
    int code = gradwire_open(&args->common.options, &job);
    if (!code && args->common.is_send)
        code = gw_bench_send(job, &send, times, &report->send);
    else if (!code)
        code = gw_bench_reduce(job, &reduce, &report->reduce, times);
    if (code)
        say_why(args, code, report);
    gradwire_close(job);
    report->error = code;
    report->is_done = code == GRADWIRE_OK;
}

/* Says why the rank has failed. Returns an exit status: what the library refuses is bad usage. */
static int complain(const struct rank_report *rank)
{
    gw_complain("bench: %s", rank->text);
    return rank->error == GRADWIRE_ERR_INVALID ? GW_EXIT_USAGE : GW_EXIT_FAILURE;
}

/* Prints what rank 0 knows. */
static int print(const struct bench_args *args, const struct rank_report *rank, const double *times)
{
    const struct gw_bench_reduce *reduce = &rank->reduce;
    uint32_t workers = (uint32_t)args->common.options.world;
    const struct gw_bench_send_cfg send = send_cfg(args);
    if (args->common.is_send)
        return gw_bench_send_print(&args->common, &send, times, &rank->send);
    struct gw_reduce_report report = {
        .workers = workers,
        .via = args->common.options.via,
        .elements = args->size / 4,
        .bytes = args->size / 4 * 4,
        .times = times,
        .iters = (uint32_t)args->iters,
        .cpu_s = reduce->cpu_s,
        .max_abs_error = reduce->max_abs_error,
        .exact_bound = bound_of(args),
        .stats = reduce->stats,
        .may_lose = args->parts.bound > 0 || args->parts.bound_pull > 0,
        .missing = {reduce->missing.contributions, reduce->missing.results},
        .has_server = !args->common.options.server && args->common.options.via != GRADWIRE_VIA_RING,
    };
    int status = gw_reduce_print(&report, args->common.json);
    if (status == GW_EXIT_OK && !(report.max_abs_error <= report.exact_bound)) {
        gw_complain("a sum is wrong by %g, more than the bound of %g", report.max_abs_error,
                    report.exact_bound);
        return GW_EXIT_FAILURE;
    }
    if (status == GW_EXIT_OK && !gw_bench_parts_kept(&reduce->missing, &args->parts))
        return GW_EXIT_FAILURE;
    return status;
}

/* Local ranks, each a process. */
struct ranks {
    struct shared *shared;
    uint32_t count, running;
    pid_t pids[WORKERS_MAX];
    int failed; /* the first that has; -1: none has */
    gw_time failed_at;
};

static void fail_rank(struct ranks *ranks, int rank, const char *why)
{
    struct rank_report *report = &ranks->shared->ranks[rank];
    if (ranks->failed >= 0)
        return;
    ranks->failed = rank;
    ranks->failed_at = gw_clock_now();
    if (!*report->text)
        snprintf(report->text, TEXT_MAX, "rank %d: %s", rank, why);
}

static void start_ranks(struct ranks *ranks, struct bench_args *args)
{
    const pid_t parent = getpid();
    for (uint32_t i = 0; i < ranks->count && ranks->failed < 0; i++) {
        args->common.options.rank = (int)i;
        ranks->pids[i] = fork();
        if (ranks->pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive who prints */
            if (getppid() != parent)
                _exit(GW_EXIT_FAILURE);
            run_rank(args, &ranks->shared->ranks[i], ranks->shared->times + i * args->iters);
            _exit(0);
        }
        if (ranks->pids[i] > 0)
            ranks->running++;
        else
            fail_rank(ranks, (int)i, strerror(errno));
    }
}

/* Takes note of those that have ended. */
static void reap_ranks(struct ranks *ranks)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        int rank = 0;
        while (ranks->pids[rank] != pid)
            rank++;
        ranks->pids[rank] = 0;
        ranks->running--;
        if (!ranks->shared->ranks[rank].is_done)
            fail_rank(ranks, rank, "its process has died");
    }
}

static void kill_ranks(const struct ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++)
        if (ranks->pids[i] > 0)
            kill(ranks->pids[i], SIGKILL);
}

/* Waits for all; `ended` is SIGCHLD, and blocked. When one fails the others follow, but for those
 * that had not met it yet: these are ended. */
static void await_ranks(struct ranks *ranks, const sigset_t *ended)
{
    for (reap_ranks(ranks); ranks->running > 0; reap_ranks(ranks)) {
        gw_time waited = ranks->failed < 0 ? 0 : gw_clock_now() - ranks->failed_at;
        const struct timespec left =
            gw_clock_timespec(waited < GW_REDUCE_FOLLOW ? GW_REDUCE_FOLLOW - waited : 0);
        if (sigtimedwait(ended, NULL, ranks->failed < 0 ? NULL : &left) < 0 && errno == EAGAIN) {
            kill_ranks(ranks);
            sigwaitinfo(ended, NULL);
        }
    }
}

static int run_local(struct bench_args *args)
{
    struct ranks ranks = {.count = (uint32_t)args->workers, .failed = -1};
    size_t size = sizeof(*ranks.shared) + ranks.count * args->iters * sizeof(double);
    ranks.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char join[64];
    sigset_t ended;
    if (ranks.shared == MAP_FAILED) {
        gw_complain("out of memory");
        return GW_EXIT_FAILURE;
    }
    struct gradwire_options *own = &args->common.options;
    own->world = (int)ranks.count;
    if (!own->join && !own->server) {
        snprintf(join, sizeof(join), "127.0.0.1:%u", gw_reduce_free_port());
        own->join = join;
    }
    fflush(NULL);
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL);
    start_ranks(&ranks, args);
    await_ranks(&ranks, &ended);
    int exit_status = ranks.failed >= 0 ? complain(&ranks.shared->ranks[ranks.failed])
                                        : print(args, &ranks.shared->ranks[0], ranks.shared->times);
    munmap(ranks.shared, size);
    return exit_status;
}

/* We are one rank of several machines; rank 0 prints. */
static int run_one(struct bench_args *args)
{
    struct rank_report report = {.is_done = false};
    double *times = calloc(args->iters, sizeof(*times));
    if (!times) {
        gw_complain("out of memory");
        return GW_EXIT_FAILURE;
    }
    args->common.options.rank = (int)args->rank;
    args->common.options.world = (int)args->world;
    run_rank(args, &report, times);
    int status = GW_EXIT_OK;
    if (!report.is_done)
        status = complain(&report);
    else if (args->rank == 0)
        status = print(args, &report, times);
    free(times);
    return status;
}

int gw_cmd_bench(int argc, char **argv)
{
    static const struct argp_child children[] = {
        {&gw_reduce_argp, 0, NULL, 0}, {&gw_bench_parts_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options, .parser = parse_option, .doc = doc, .children = children};
    struct bench_args args = {.workers = 4, .size = 100000000, .iters = 5};
    gw_reduce_options_init(&args.common.options);
    argp_err_exit_status = GW_EXIT_USAGE;
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, &args);
    if (error)
        return GW_EXIT_USAGE;
    if (args.common.is_send && !args.has_workers)
        args.workers = 2;
    if (args.common.is_send && (args.has_rank ? args.world : args.workers) != 2) {
        gw_complain("bench: --via=send is between two: expected --workers 2 or --world 2");
        return GW_EXIT_USAGE;
    }
    if (args.has_rank != args.has_world) {
        gw_complain("bench: --rank and --world belong together");
        return GW_EXIT_USAGE;
    }
    if (args.has_rank && args.has_workers) {
        gw_complain("bench: --workers are local processes; several machines need --world");
        return GW_EXIT_USAGE;
    }
    if (!gw_bench_parts_check_cfg(&args.parts, args.common.options.via, args.common.is_send))
        return GW_EXIT_USAGE;
    set_largest(&args);
    return args.has_rank ? run_one(&args) : run_local(&args);
}
