/* The I/O thread: its phases and its station; see io.h. */
#include "lib/io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/align.h"
#include "base/error.h"
#include "net/clock.h"

#define TURN (100 * GW_MS)

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
        if (io->is_leaving)
            gw_io_fail(io, GRADWIRE_ERR_CLOSED, "the job was closed before all had come");
        break;
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
    else if (io->phase < GW_IO_LEAVING) {
        io->reason = event->reason;
        io->about = event->about;
        gw_io_fail(io, error, "%s", text);
    }
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
    gw_time now = gw_io_time(io);
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

static bool is_awaited(const struct gw_io *io)
{
    return atomic_load_explicit(&io->is_awaited, memory_order_relaxed);
}

bool gw_io_may_park(const struct gw_io *io, uint32_t calls)
{
    return io->phase == GW_IO_RUNNING && !io->is_leaving && io->call_count <= calls &&
           !gw_communicator_keeps_values(io->comm);
}

bool gw_io_is_quiet(const struct gw_io *io)
{
    return gw_deadline_before(gw_io_now(io), gw_loop_due(gw_station_loop(io->station))) &&
           !gw_communicator_has_work(io->comm);
}

/* When the job has to be looked at again, without anything arriving. */
static gw_time wake_time(const struct gw_io *io)
{
    gw_time now = gw_io_time(io), deadline = gw_communicator_deadline(io->comm);
    if (gw_communicator_has_work(io->comm) || is_awaited(io))
        return now;
    gw_time at = gw_time_add(now, TURN);
    return gw_deadline_before(deadline, at) ? deadline : at;
}

static void expire(struct gw_io *io)
{
    gw_time now = gw_io_time(io), deadline = gw_communicator_deadline(io->comm);
    if (deadline != GW_TIME_NEVER && !gw_time_before(now, deadline))
        gw_communicator_expire(io->comm, now);
}

void gw_io_turn(struct gw_io *io)
{
    char error[GW_NET_ERROR_MAX];
    struct gw_loop *loop = gw_station_loop(io->station);
    gw_io_take_commands(io);
    step(io);
    bool parks = gw_io_may_park(io, 0) && io->parks_in;
    io->parks_in -= parks;
    int code = gw_station_turn(io->station, parks ? 0 : wake_time(io), error);
    if (gw_loop_has_input(loop))
        gw_io_empty(io->to_thread);
    expire(io);
    /* First: what is done is done, and one who fails says why before he goes. */
    take_events(io);
    if (code && io->phase != GW_IO_OVER)
        gw_io_fail(io, GRADWIRE_ERR_SYSTEM, "%s", error);
    take_neighbours(io);
    gw_ways_turn(io->ways);
    take_events(io);
    if (is_awaited(io) && (!io->is_driven || gw_loop_is_idle(loop)))
        gw_io_yield(io);
}

/* The thread has the rounding and the denormal numbers of whoever has started it. */
static void *io_main(void *argument)
{
    struct gw_io *io = argument;
    fesetenv(FE_DFL_ENV);
    gw_loop_own(gw_station_loop(io->station));
    pthread_mutex_lock(&io->turn);
    while (!is_finished(io)) {
        gw_io_park(io);
        gw_io_turn(io);
    }
    pthread_mutex_unlock(&io->turn);
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
    pthread_mutex_destroy(&io->turn);
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

int gw_io_start(const struct gw_io_plan *plan, const struct gw_io *first, struct gw_io **result,
                char *error)
{
    struct gw_io *io = aligned_alloc(GW_CACHE_LINE, gw_aligned(sizeof(*io)));
    if (!io)
        return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory");
    memset(io, 0, sizeof(*io));
    io->plan = *plan;
    io->reason = GW_JOB_LOST; /* what fails here alone */
    io->about = plan->rank;
    gw_yield_init(&io->yield, gw_clock_now());
    pthread_mutex_init(&io->stats_lock, NULL);
    pthread_mutex_init(&io->turn, NULL);
    io->to_thread = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    io->to_app =
        first ? fcntl(first->to_app, F_DUPFD_CLOEXEC, 0) : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (io->to_thread < 0 || io->to_app < 0) {
        int reason = errno;
        free_all(io);
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "cannot open an eventfd: %s",
                           strerror(reason));
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

static void command(struct gw_io *io, const struct gw_command *what)
{
    while (!gw_spsc_push(&io->commands, what, sizeof(*what)))
        usleep(1000);
    gw_io_wake(io->to_thread);
}

void gw_io_leave(struct gw_io *io)
{
    command(io, &(struct gw_command){.leaves = true});
}

void gw_io_fail_like(struct gw_io *io, const struct gw_io *other)
{
    command(io, &(struct gw_command){.leaves = true,
                                     .fails = true,
                                     .reason = (uint8_t)(other ? other->reason : GW_JOB_LOST),
                                     .about = other ? other->about : io->plan.rank});
}

void gw_io_stop(struct gw_io *io)
{
    gw_io_leave(io);
    pthread_join(io->thread, NULL);
    free_all(io);
}

uint16_t gw_io_port(const struct gw_io *io)
{
    return gw_sock_addr_port(gw_datapath_address(gw_station_datapath(io->station)));
}

int gw_io_failure(const struct gw_io *io)
{
    return atomic_load(&io->failure);
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
