/* The I/O thread: its phases, its station, and the application's side of it; see io.h. */
#include "lib/io_impl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/align.h"
#include "base/error.h"
#include "net/clock.h"
#include "net/yield.h"

#define TURN    (100 * GW_MS)
#define CROWDED (200 * GW_US) /* if others have the core for so long, who waits sleeps */

void gw_io_wake(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));
    (void)written; /* the counter is full: it is awake */
}

static void drain(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got; /* nothing was there */
}

void gw_io_enter(struct gw_io *io, enum gw_io_phase phase, gw_time wait)
{
    io->phase = phase;
    io->phase_until = gw_time_add(gw_io_now(io), wait);
}

/* What time or the application, rather than a packet, decides. */
static void step(struct gw_io *io)
{
    bool is_late = !gw_time_before(gw_io_now(io), io->phase_until);
    switch (io->phase) {
    case GW_IO_RUNNING:
        if (io->is_leaving && io->call_count) {
            gw_io_fail(io, GRADWIRE_ERR_CLOSED, "the job was closed with calls in work");
        } else if (io->is_leaving) {
            gw_io_enter(io, GW_IO_LEAVING, io->plan.stall);
            gw_communicator_leave(io->comm, gw_io_now(io));
        }
        break;
    case GW_IO_LEAVING:
        if (is_late)
            gw_io_enter(io, GW_IO_LINGERING, io->plan.stall);
        break;
    case GW_IO_LINGERING:
        if (is_late || gw_io_is_deserted(io))
            gw_io_enter(io, GW_IO_OVER, 0);
        break;
    case GW_IO_OPENING:
    case GW_IO_OVER:
        break;
    }
}

/* Whether nothing is left to be done, neither for the application nor for the others. */
static bool is_finished(const struct gw_io *io)
{
    return io->phase == GW_IO_OVER && io->is_leaving &&
           (!gw_time_before(gw_io_now(io), io->phase_until) || gw_io_is_deserted(io));
}

/* Says once that the home here has refused somebody, who may try again and again. */
static void tell_refusal(struct gw_io *io, const char *text)
{
    if (strcmp(io->refused, text) == 0)
        return;
    snprintf(io->refused, sizeof(io->refused), "%s", text);
    fprintf(stderr, "gradwire: %s\n", text);
}

static void take_neighbours(struct gw_io *io)
{
    struct gw_neighbour_event event;
    char text[GW_NET_ERROR_MAX];
    while (gw_station_poll(io->station, &event)) {
        if (event.dial < 0 && io->home) {
            gw_overlay_home_neighbour(io->home, &event, text);
            if (*text)
                tell_refusal(io, text);
        }
        bool may_be = gw_ways_neighbour(io->ways, &event, text);
        if (!may_be && io->phase < GW_IO_LEAVING)
            gw_io_fail(io, GRADWIRE_ERR_PEER, "%s", text);
    }
}

static void failed(struct gw_io *io, const struct gw_communicator_event *event)
{
    char text[GW_IO_TEXT_MAX];
    int error = gw_io_describe(io, event, text, sizeof(text));
    if (io->phase == GW_IO_LEAVING)
        gw_io_enter(io, GW_IO_LINGERING, io->plan.stall); /* nothing of ours is in work */
    else if (io->phase < GW_IO_LEAVING)
        gw_io_fail(io, error, "%s", text);
}

static void refused(struct gw_io *io, const struct gw_communicator_event *event)
{
    char text[GW_IO_TEXT_MAX];
    int error = gw_io_describe_refusal(&event->refusal, text, sizeof(text));
    gw_io_refuse_call(io, event->call, error, text);
}

/* Takes all events of this rank, and of the home if it is here. */
static void take_events(struct gw_io *io)
{
    gw_time now = gw_io_now(io);
    struct gw_event happened;
    struct gw_communicator_event event;
    while (gw_endpoint_poll(io->endpoint, &happened, 1))
        gw_communicator_event(io->comm, &happened, now);
    if (io->home)
        gw_overlay_home_poll(io->home);
    while (gw_communicator_poll(io->comm, &event, now)) {
        switch (event.kind) {
        case GW_COMMUNICATOR_OPEN:
            gw_io_opened(io);
            break;
        case GW_COMMUNICATOR_WANTS:
            gw_ways_want(io->ways, event.rank);
            break;
        case GW_COMMUNICATOR_DONE:
            gw_io_end_call(io, event.call, event.bytes, event.missing);
            break;
        case GW_COMMUNICATOR_REFUSED:
            refused(io, &event);
            break;
        case GW_COMMUNICATOR_FAILED:
            failed(io, &event);
            break;
        case GW_COMMUNICATOR_LEFT:
            gw_io_enter(io, GW_IO_LINGERING, io->plan.stall);
            break;
        }
    }
}

/* By either side, while it looks for something without sleeping. */
static void yield(struct gw_io *io)
{
    gw_time until;
    if (gw_yield(CROWDED, &until))
        atomic_store_explicit(&io->crowded_until, until, memory_order_relaxed);
}

static bool is_crowded(const struct gw_io *io, gw_time clock)
{
    return gw_time_before(clock, atomic_load_explicit(&io->crowded_until, memory_order_relaxed));
}

static bool is_awaited(const struct gw_io *io)
{
    return atomic_load_explicit(&io->is_awaited, memory_order_relaxed);
}

/* When the thread has to look at the job again, without anything arriving. */
static gw_time wake_time(const struct gw_io *io)
{
    gw_time now = gw_io_now(io), deadline = gw_communicator_deadline(io->comm);
    if (gw_communicator_has_work(io->comm) || is_awaited(io))
        return now;
    gw_time at = gw_time_add(now, TURN);
    return gw_deadline_before(deadline, at) ? deadline : at;
}

static void expire(struct gw_io *io)
{
    gw_time now = gw_io_now(io), deadline = gw_communicator_deadline(io->comm);
    if (deadline != GW_TIME_NEVER && !gw_time_before(now, deadline))
        gw_communicator_expire(io->comm, now);
}

static void *io_main(void *argument)
{
    struct gw_io *io = argument;
    char error[GW_NET_ERROR_MAX];
    while (!is_finished(io)) {
        gw_io_take_commands(io);
        step(io);
        int code = gw_station_turn(io->station, wake_time(io), error);
        if (is_awaited(io))
            yield(io);
        if (gw_loop_has_input(gw_station_loop(io->station)))
            drain(io->to_thread);
        expire(io);
        /* First: what is done is done, and one who fails says why before he goes. */
        take_events(io);
        if (code && io->phase != GW_IO_OVER)
            gw_io_fail(io, GRADWIRE_ERR_SYSTEM, "%s", error);
        take_neighbours(io);
        gw_ways_turn(io->ways);
        take_events(io);
    }
    return NULL;
}

static void free_all(struct gw_io *io)
{
    if (io->station)
        gw_station_close(io->station);
    gw_io_close_job(io);
    if (io->station)
        gw_station_free(io->station);
    if (io->to_thread >= 0)
        close(io->to_thread);
    if (io->to_app >= 0)
        close(io->to_app);
    pthread_mutex_destroy(&io->stats_lock);
    free(io);
}

static int error_of(int code)
{
    switch (code) {
    case GW_OK:
        return GRADWIRE_OK;
    case GW_ERR_INVALID:
        return GRADWIRE_ERR_INVALID;
    case GW_ERR_NO_MEMORY:
        return GRADWIRE_ERR_NO_MEMORY;
    default:
        return GRADWIRE_ERR_SYSTEM;
    }
}

/* Starts the thread with all signals blocked: they are the application's. */
static int start_thread(struct gw_io *io)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(&io->thread, NULL, io_main, io);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reason;
}

int gw_io_start(const struct gw_io_plan *plan, struct gw_io **result, char *error)
{
    struct gw_io *io = aligned_alloc(GW_CACHE_LINE, gw_aligned(sizeof(*io)));
    if (!io)
        return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory");
    memset(io, 0, sizeof(*io));
    io->plan = *plan;
    atomic_init(&io->crowded_until, gw_clock_now());
    pthread_mutex_init(&io->stats_lock, NULL);
    io->to_thread = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    io->to_app = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (io->to_thread < 0 || io->to_app < 0) {
        free_all(io);
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "cannot open an eventfd");
    }
    int code = gw_key_setup() ? GW_ERR_SYSTEM : GW_OK;
    if (code)
        gw_net_fail(error, code, "the system gives no random numbers");
    else
        code = gw_io_open_job(io, error);
    if (code) {
        free_all(io);
        return error_of(code);
    }
    gw_io_enter(io, GW_IO_OPENING, 0);
    int reason = start_thread(io);
    if (reason) {
        free_all(io);
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "cannot start a thread: %s",
                           strerror(reason));
    }
    *result = io;
    return GRADWIRE_OK;
}

void gw_io_stop(struct gw_io *io)
{
    const struct gw_command leave = {.leaves = true};
    while (!gw_spsc_push(&io->commands, &leave, sizeof(leave)))
        usleep(1000);
    gw_io_wake(io->to_thread);
    pthread_join(io->thread, NULL);
    free_all(io);
}

bool gw_io_send(struct gw_io *io, const struct gw_call *call)
{
    const struct gw_command command = {.call = *call};
    if (!gw_spsc_push(&io->commands, &command, sizeof(command)))
        return false;
    gw_io_wake(io->to_thread);
    return true;
}

int gw_io_fd(const struct gw_io *io)
{
    return io->to_app;
}

void gw_io_drain(const struct gw_io *io)
{
    drain(io->to_app);
}

void gw_io_recall(const struct gw_io *io)
{
    gw_io_wake(io->to_app);
}

/* Looks for a completion without sleeping, unless others need the core. */
static bool spin(struct gw_io *io, struct gw_completion *completion)
{
    gw_time now = gw_clock_now(), end = gw_time_add(now, io->plan.spin);
    bool has_come = false;
    if (is_crowded(io, now))
        return false;
    atomic_store_explicit(&io->is_awaited, true, memory_order_relaxed);
    while (!has_come && gw_time_before(now, end) && !is_crowded(io, now)) {
        yield(io);
        has_come = gw_spsc_pop(&io->completions, completion, sizeof(*completion));
        now = gw_clock_now();
    }
    atomic_store_explicit(&io->is_awaited, false, memory_order_relaxed);
    return has_come;
}

bool gw_io_receive(struct gw_io *io, struct gw_completion *completion, int wait_ms)
{
    struct pollfd fd = {.fd = io->to_app, .events = POLLIN};
    if (gw_spsc_pop(&io->completions, completion, sizeof(*completion)))
        return true;
    if (wait_ms == 0)
        return false;
    if (io->plan.spin && spin(io, completion))
        return true;
    while (poll(&fd, 1, wait_ms) < 0 && errno == EINTR)
        continue;
    drain(io->to_app);
    return gw_spsc_pop(&io->completions, completion, sizeof(*completion));
}

const char *gw_io_text(const struct gw_io *io)
{
    return io->text;
}

const char *gw_io_refusal(const struct gw_io *io, uint64_t call)
{
    const char *text = io->refusals[call % GW_IO_CALLS_MAX];
    return *text ? text : NULL;
}

void gw_io_stats(struct gw_io *io, struct gradwire_stats *stats)
{
    pthread_mutex_lock(&io->stats_lock);
    *stats = io->stats;
    pthread_mutex_unlock(&io->stats_lock);
}
