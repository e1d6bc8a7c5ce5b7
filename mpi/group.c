/*
 * Groups: jobs of communicators, and the sums in them; see group.h.
 *
 * A job takes GRADWIRE_CALLS_MAX calls; more of them wait in the group, in order. While a thread
 * waits here for a sum it lets MPI progress, because the ranks that it waits for may themselves
 * wait for a message of this one. One lock guards all groups; nobody waits while holding it.
 */
#include "group.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "meeting.h"

enum {
    WORLD_MAX = 1024, /* gradwire.h */
    PAUSE_NS = 50000, /* MPI moves a socket buffer or so each time */
    /* MPI waits for ever, so a rank may be late; who has died is noticed by its session's end. As
       long as PyTorch waits by default. */
    DEADLINE_MS = 30 * 60 * 1000,
};

/* A sum in work. */
struct gw_sum {
    struct gw_sum *next;
    struct gw_sum_args args;
    gradwire_call call;    /* of the job, if it was started */
    MPI_Request request;   /* that stands for it, if it has one */
    int code;              /* MPI's, when it has ended */
    bool is_started;       /* else the job has too many calls */
    bool has_request;      /* else somebody waits for it */
    atomic_bool has_ended; /* of one without request: whoever waits may go */
};

struct gw_group {
    struct gw_group *next; /* opened after this one */
    MPI_Comm comm;
    gradwire *job;        /* NULL: not opened, or that failed */
    struct gw_sum *first; /* in work, in the order of the calls */
    bool is_open;
    bool is_told; /* the error handler knows */
    int code;     /* MPI's, of what has ended the job */
};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct gw_group *groups; /* those that are open */
static int keyval = MPI_KEYVAL_INVALID;
static int watch = -1;                 /* epoll descriptor of all jobs */
static int error_class;                /* of our errors; 0: there was none yet */
static _Thread_local int request_code; /* of our requests that this thread has taken back */

/* A code for what has ended a job, of a class of our own; its text is the last error's. Prints it,
 * too: MPI may end the program at once, and lose what it prints itself. */
static int code_of(const char *text)
{
    static int code;
    int rank;
    char line[MPI_MAX_ERROR_STRING];
    snprintf(line, sizeof(line), "gradwire: %s", text);
    pthread_mutex_lock(&lock);
    if (!error_class) {
        PMPI_Add_error_class(&error_class);
        PMPI_Add_error_code(error_class, &code);
        PMPI_Add_error_string(error_class, "gradwire: a job has failed");
    }
    PMPI_Add_error_string(code, line);
    pthread_mutex_unlock(&lock);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "gradwire: rank %d of MPI_COMM_WORLD: %s\n", rank, text);
    return code;
}

static int raise_error(MPI_Comm comm, int code)
{
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

static int forget(MPI_Comm comm, int key, void *group, void *extra)
{
    (void)comm, (void)key, (void)extra;
    free(group);
    return MPI_SUCCESS;
}

static struct gw_group *make(MPI_Comm comm)
{
    int is_inter = 0, world = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_size(comm, &world);
    struct gw_group *group = NULL;
    if (!is_inter && world > 1 && world <= WORLD_MAX)
        group = calloc(1, sizeof(*group));
    if (!group)
        return NULL;
    group->comm = comm;
    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
    PMPI_Comm_set_attr(comm, keyval, group);
    pthread_mutex_unlock(&lock);
    return group;
}

struct gw_group *gw_group_of(MPI_Comm comm, bool makes)
{
    struct gw_group *group = NULL;
    int is_there = 0;
    if (comm == MPI_COMM_NULL)
        return NULL;
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_get_attr(comm, keyval, &group, &is_there);
    if (is_there)
        return group;
    return makes ? make(comm) : NULL;
}

bool gw_group_is_open(const struct gw_group *group)
{
    return group->is_open;
}

/* What was chosen, once. */
static void tell(const struct gradwire_options *options, const struct gw_meeting *meeting)
{
    static const char *const ways[] = {"ina", "ps", "ring"};
    static atomic_bool is_told;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0 || atomic_exchange(&is_told, true))
        return;
    fprintf(stderr, "gradwire: sums of %d ranks on %d host%s via %s%s%s, %s %s\n", options->world,
            meeting->hosts, meeting->hosts == 1 ? "" : "s", ways[options->via],
            options->switch_ ? ", switch " : "", options->switch_ ? options->switch_ : "",
            options->server ? "server" : "rank 0 at",
            options->server ? options->server : options->join);
}

/* Joins the others' job; the text says why not. */
static int open_job(struct gw_group *group, struct gradwire_options *options,
                    struct gw_meeting *meeting, char *text)
{
    gw_meeting_let_go(meeting);
    options->job = meeting->job;
    options->join = options->server ? NULL : meeting->join;
    if (meeting->error[0]) {
        snprintf(text, GW_MEETING_TEXT_MAX, "%s", meeting->error);
        return GRADWIRE_ERR_SYSTEM;
    }
    int code = gradwire_open(options, &group->job);
    if (code)
        snprintf(text, GW_MEETING_TEXT_MAX, "%s", gradwire_last_error());
    else
        tell(options, meeting);
    return code;
}

static void append(struct gw_group *group)
{
    struct epoll_event event = {.events = EPOLLIN};
    pthread_mutex_lock(&lock);
    struct gw_group **end = &groups;
    while (*end)
        end = &(*end)->next;
    *end = group;
    if (watch < 0)
        watch = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(watch, EPOLL_CTL_ADD, gradwire_fd(group->job), &event);
    pthread_mutex_unlock(&lock);
}

int gw_group_open(struct gw_group *group)
{
    struct gradwire_options options;
    struct gw_meeting meeting;
    char text[GW_MEETING_TEXT_MAX] = "another rank cannot open the job";
    gradwire_options_init(&options, sizeof(options));
    options.deadline_ms = DEADLINE_MS;
    PMPI_Comm_rank(group->comm, &options.rank);
    PMPI_Comm_size(group->comm, &options.world);
    /* Without switches by which sums are faster, floats are added as programs expect: as floats. */
    if (options.via == GRADWIRE_VIA_DEFAULT)
        options.via = options.server || options.switch_ ? GRADWIRE_VIA_INA : GRADWIRE_VIA_RING;
    int code = gw_meeting_agree(group->comm, &options, &meeting);
    if (code)
        return code;
    int own = open_job(group, &options, &meeting, text), worst;
    code = PMPI_Allreduce(&own, &worst, 1, MPI_INT, MPI_MIN, group->comm);
    if (code)
        return code;
    group->is_open = true;
    if (!worst) {
        append(group);
        return MPI_SUCCESS;
    }
    gradwire_close(group->job);
    group->job = NULL;
    group->code = code_of(text);
    group->is_told = true;
    return raise_error(group->comm, group->code);
}

/* A sum has ended, and is no longer the group's. */
static void end(struct gw_group *group, struct gw_sum *sum, int error)
{
    if (error && !group->code)
        group->code = code_of(gradwire_last_error());
    sum->code = error ? group->code : MPI_SUCCESS;
    if (sum->has_request)
        PMPI_Grequest_complete(sum->request);
    else
        atomic_store(&sum->has_ended, true);
}

/* Starts what the job has room for, and ends what has ended. */
static void advance(struct gw_group *group)
{
    for (struct gw_sum **at = &group->first; *at;) {
        struct gw_sum *sum = *at;
        const struct gw_sum_args *args = &sum->args;
        int has_ended = 0, error = GRADWIRE_OK;
        if (sum->is_started)
            error = gradwire_test(group->job, sum->call, &has_ended);
        else
            error = gradwire_allreduce_start(group->job, args->in, args->out, args->count,
                                             args->type, GRADWIRE_SUM, &sum->call);
        if (error == GRADWIRE_ERR_BUSY)
            return;
        sum->is_started = true;
        if (!has_ended && !error) {
            at = &sum->next;
            continue;
        }
        *at = sum->next;
        end(group, sum, error);
    }
}

bool gw_groups_progress(void)
{
    struct gw_group *failed;
    bool is_busy;
    do {
        MPI_Comm comm = MPI_COMM_NULL;
        int code = MPI_SUCCESS;
        failed = NULL;
        is_busy = false;
        pthread_mutex_lock(&lock);
        for (struct gw_group *group = groups; group && !failed; group = group->next) {
            if (group->first)
                advance(group);
            is_busy |= group->first != NULL;
            if (group->code && !group->is_told)
                failed = group;
        }
        if (failed) {
            failed->is_told = true;
            comm = failed->comm;
            code = failed->code;
        }
        pthread_mutex_unlock(&lock);
        if (failed)
            raise_error(comm, code);
    } while (failed);
    return is_busy;
}

void gw_groups_pause(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct pollfd fd = {.fd = watch, .events = POLLIN};
    ppoll(&fd, 1, &pause, NULL);
}

/* One round of waiting for sums, in which MPI progresses, too. */
static void wait_a_little(void)
{
    int is_there;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
    gw_groups_pause();
}

static void begin(struct gw_group *group, struct gw_sum *sum)
{
    pthread_mutex_lock(&lock);
    struct gw_sum **last = &group->first;
    while (*last)
        last = &(*last)->next;
    *last = sum;
    pthread_mutex_unlock(&lock);
    gw_groups_progress();
}

int gw_group_sum(struct gw_group *group, const struct gw_sum_args *args)
{
    struct gw_sum sum = {.args = *args};
    if (group->code)
        return raise_error(group->comm, group->code);
    begin(group, &sum);
    for (; !atomic_load(&sum.has_ended); gw_groups_progress())
        wait_a_little();
    return sum.code;
}

static int query(void *extra, MPI_Status *status)
{
    const struct gw_sum *sum = extra;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    if (sum->code)
        request_code = sum->code;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    free(extra);
    return MPI_SUCCESS;
}

/* MPI forbids that of a collective. */
static int cancel(void *extra, int has_ended)
{
    (void)extra, (void)has_ended;
    return MPI_SUCCESS;
}

int gw_group_sum_start(struct gw_group *group, const struct gw_sum_args *args, MPI_Request *request)
{
    if (group->code)
        return raise_error(group->comm, group->code);
    struct gw_sum *sum = calloc(1, sizeof(*sum));
    if (!sum)
        return raise_error(group->comm, MPI_ERR_NO_MEM);
    *sum = (struct gw_sum){.args = *args, .has_request = true};
    int code = PMPI_Grequest_start(query, release, cancel, sum, &sum->request);
    if (code) {
        free(sum);
        return code;
    }
    *request = sum->request;
    begin(group, sum);
    return MPI_SUCCESS;
}

int gw_groups_code(int code)
{
    int other = request_code;
    request_code = MPI_SUCCESS;
    return code ? code : other;
}

static bool is_busy(struct gw_group *group)
{
    pthread_mutex_lock(&lock);
    bool result = group->first != NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

void gw_group_leave(struct gw_group *group)
{
    for (; is_busy(group); gw_groups_progress())
        wait_a_little();
    /* So that nobody waits for the others' end without letting MPI progress. */
    if (group->job && !group->code)
        PMPI_Barrier(group->comm);
    pthread_mutex_lock(&lock);
    for (struct gw_group **at = &groups; *at; at = &(*at)->next)
        if (*at == group) {
            *at = group->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    gradwire_close(group->job);
    PMPI_Comm_delete_attr(group->comm, keyval);
}

void gw_groups_leave(void)
{
    while (groups)
        gw_group_leave(groups);
}
