/*
 * The application's side of the rings, and who drives the job: its thread, or the application while
 * it waits for a call.
 *
 * To hand a call to a thread, and its end back, wakes somebody twice, which costs more than a small
 * sum. So when the last call in work has ended the thread parks for a while: it leaves the job to
 * the application, whose next blocking call takes the turns itself. A job that nobody drives
 * answers nobody. So that is for a millisecond, a fifth where others need this process most (the
 * home), and the thread does not park before all has left that could, nor past a deadline, nor at
 * all where values are kept for others, who may ask at any time. Often the next call comes before
 * that, as would the one after it: so when the application waits for the only call in work it asks
 * the thread to park, and has an answer after the turn. While the application drives the thread
 * looks as often whether that is over, in a millisecond if there were several calls since, more and
 * more rarely while that is the same call (which calls the thread when it has lasted), and lets it
 * go on if it has made another call since: a thread that came back amid many would have to drive
 * the next ones. Calls that are started, and not waited for, are the thread's, and so are large
 * ones: their packets are many enough to hide who is woken, and systems place a thread that does
 * nothing else better.
 *
 * Invariant: whoever takes a turn holds `turn`. Before the thread parks by itself it says so, and
 * looks at the ring then; the application fills the ring, and looks then whether the thread is
 * parked. So one of both sees the other.
 */
#define _GNU_SOURCE
#include "lib/io_impl.h"

#include <errno.h>
#include <fenv.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "net/clock.h"

enum {
    SPINS_ALONE = 3,          /* times as long as where two threads do */
    DRIVEN_MAX = 1024 * 1024, /* bytes of a call that the application drives */
};

#define LASTS (1 * GW_MS) /* a call that takes longer */

/* The thread, after a call has ended, if none comes. */
#define PARKED      (1 * GW_MS)
#define PARKED_HOME (200 * GW_US)

#define ASKED_MAX (200 * GW_US) /* for an answer */

/* Who waits sleeps if others have the core for so long: where the application drives, peers alone
 * do; else it and the thread wait for each other. */
#define CROWDED       (200 * GW_US)
#define CROWDED_ALONE (1 * GW_MS)

void gw_io_wake(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));
    (void)written; /* the counter is full: it is awake */
}

void gw_io_empty(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got; /* nothing was there */
}

int gw_io_fd(const struct gw_io *io)
{
    return io->to_app;
}

void gw_io_drain(const struct gw_io *io)
{
    gw_io_empty(io->to_app);
}

void gw_io_recall(const struct gw_io *io)
{
    gw_io_wake(io->to_app);
}

void gw_io_yield(struct gw_io *io)
{
    gw_yield(&io->yield, gw_clock_now(), io->is_driven ? CROWDED_ALONE : CROWDED);
}

static void set_awaited(struct gw_io *io, bool is_awaited)
{
    atomic_store_explicit(&io->is_awaited, is_awaited, memory_order_relaxed);
}

/* ---- Who drives. ---- */

/* For how long nobody has to; 0: the thread does. */
static gw_time parked_for(struct gw_io *io)
{
    const gw_time clock = gw_clock_now(), now = gw_io_now(io);
    if (!gw_io_may_park(io, 0) || !gw_io_is_quiet(io) || !gw_time_before(clock, io->parks_until))
        return 0;
    const gw_time due = gw_loop_due(gw_station_loop(io->station));
    const gw_time deadline = gw_communicator_deadline(io->comm);
    gw_time end = gw_time_add(now, io->parks_until - clock);
    end = gw_deadline_before(due, end) ? due : end;
    end = gw_deadline_before(deadline, end) ? deadline : end;
    return gw_time_before(now, end) ? end - now : 0;
}

/* Waits for so long to be called. */
static bool is_called(const struct gw_io *io, gw_time left)
{
    struct pollfd fd = {.fd = io->to_thread, .events = POLLIN};
    const struct timespec timeout = gw_clock_timespec(left);
    if (ppoll(&fd, 1, &timeout, NULL) <= 0)
        return false;
    gw_io_empty(io->to_thread);
    return true;
}

static uint32_t driven_yet(struct gw_io *io)
{
    return atomic_load_explicit(&io->driven, memory_order_relaxed);
}

gw_time gw_io_parks_for(const struct gw_io *io)
{
    return io->home ? PARKED_HOME : PARKED;
}

static bool change_driver(struct gw_io *io, enum gw_io_driver from, enum gw_io_driver to)
{
    return atomic_compare_exchange_strong(&io->driver, &from, to);
}

/* Answers the application if it asks, which waits for one call; else the thread parks if it may by
 * itself. Returns for how long it does. */
static gw_time park(struct gw_io *io)
{
    const bool may = gw_io_may_park(io, gw_spsc_is_empty(&io->commands) ? 1 : 0);
    if (change_driver(io, GW_IO_ASKED, may ? GW_IO_PARKED : GW_IO_THREAD)) {
        gw_io_empty(io->to_thread); /* it was woken for the call */
        return may ? gw_io_parks_for(io) : 0;
    }
    gw_time left = parked_for(io);
    if (left)
        change_driver(io, GW_IO_THREAD, GW_IO_PARKED);
    bool is_parked = atomic_load(&io->driver) == GW_IO_PARKED;
    return is_parked && gw_spsc_is_empty(&io->commands) ? left : 0;
}

void gw_io_park(struct gw_io *io)
{
    gw_time left;
    while ((left = park(io)) != 0) {
        gw_loop_pause(gw_station_loop(io->station));
        uint32_t before = driven_yet(io);
        bool is_back = false;
        pthread_mutex_unlock(&io->turn);
        while (!is_back && !is_called(io, left)) {
            uint32_t driven = driven_yet(io);
            bool is_new = driven != before;
            is_back = !is_new && pthread_mutex_trylock(&io->turn) == 0;
            bool is_busy = driven - before > 1;
            left = !is_new ? 2 * left : is_busy ? PARKED : gw_io_parks_for(io);
            before = driven;
        }
        if (!is_back)
            pthread_mutex_lock(&io->turn);
        io->calls_thread = false;
    }
    change_driver(io, GW_IO_PARKED, GW_IO_THREAD);
}

/* Takes the turns from the thread, which is asked to park for that unless others need the core.
 * False: it does not. */
static bool claim(struct gw_io *io)
{
    const gw_time end = gw_time_add(gw_clock_now(), ASKED_MAX);
    bool has_asked = false;
    for (;;) {
        const gw_time clock = gw_clock_now();
        const bool waits = gw_time_before(clock, end) && !gw_yield_rests(&io->yield, clock);
        has_asked |= !has_asked && waits && change_driver(io, GW_IO_THREAD, GW_IO_ASKED);
        enum gw_io_driver driver = atomic_load(&io->driver);
        if (driver == GW_IO_PARKED && pthread_mutex_trylock(&io->turn) == 0)
            return true;
        if (driver == GW_IO_THREAD && (has_asked || !waits))
            return false;
        if (driver == GW_IO_ASKED && !waits)
            change_driver(io, GW_IO_ASKED, GW_IO_THREAD);
        else
            gw_io_yield(io); /* it parks or comes back right now */
    }
}

/* The next completion, if there is one. */
static bool pop(struct gw_io *io, struct gw_completion *completion)
{
    bool is_there = gw_spsc_pop(&io->completions, completion, sizeof(*completion));
    if (is_there && completion->call == io->drives)
        io->drives = 0;
    return is_there;
}

/* Takes turns until there is a completion. After one that had something to do it does not sleep for
 * a while, as more will come; unless the call lasts: then packets are many, and meanwhile the core
 * is better with who sends them. */
static void take_turns(struct gw_io *io, struct gw_completion *completion, gw_time lasts_from)
{
    const gw_time spin = SPINS_ALONE * io->plan.spin;
    gw_time clock = gw_clock_now(), sleeps_at = gw_time_add(clock, spin);
    while (!pop(io, completion)) {
        set_awaited(io, gw_time_before(clock, sleeps_at) && !gw_yield_rests(&io->yield, clock));
        gw_io_turn(io);
        clock = gw_clock_now();
        if (!gw_loop_is_idle(gw_station_loop(io->station)) && gw_time_before(clock, lasts_from))
            sleeps_at = gw_time_add(clock, spin);
    }
    set_awaited(io, false);
    while (gw_io_may_park(io, 0) && io->parks_in && !gw_io_is_quiet(io))
        gw_io_turn(io);
}

/* By the application, which has claimed the turns. It may round as it likes, and flush denormal
 * numbers to zero: sums may not. Nobody cancels it before it gives the turns back. */
static void drive(struct gw_io *io, struct gw_completion *completion)
{
    const gw_time lasts_from = gw_time_add(gw_clock_now(), LASTS);
    fenv_t its_own;
    int cancels;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    fegetenv(&its_own);
    fesetenv(FE_DFL_ENV);
    io->is_driven = true;
    atomic_fetch_add_explicit(&io->driven, 1, memory_order_relaxed);
    take_turns(io, completion, lasts_from);
    io->is_driven = false;
    fesetenv(&its_own);
    if (!gw_spsc_is_empty(&io->completions))
        gw_io_wake(io->to_app); /* somebody may wait for more at its descriptor */
    bool is_done = gw_io_may_park(io, 0) && gw_io_is_quiet(io);
    /* Again and again until it comes: the next call's turns may be first to hear of it. */
    bool calls = io->calls_thread || !is_done || !gw_time_before(gw_clock_now(), lasts_from);
    io->calls_thread = calls;
    pthread_mutex_unlock(&io->turn);
    if (calls)
        gw_io_wake(io->to_thread);
    pthread_setcancelstate(cancels, &cancels);
}

/* ---- The rings. ---- */

bool gw_io_send(struct gw_io *io, const struct gw_call *call, bool waits)
{
    const struct gw_command command = {.call = *call};
    if (!gw_spsc_push(&io->commands, &command, sizeof(command)))
        return false;
    bool drives = waits && call->count <= DRIVEN_MAX / gw_dtype_size(call->type);
    io->drives = drives ? call->number : 0;
    if (!drives || atomic_load(&io->driver) != GW_IO_PARKED)
        gw_io_wake(io->to_thread);
    return true;
}

/* Looks for a completion without sleeping, unless others need the core. */
static bool spin(struct gw_io *io, struct gw_completion *completion)
{
    gw_time now = gw_clock_now(), end = gw_time_add(now, io->plan.spin);
    bool has_come = false;
    if (gw_yield_rests(&io->yield, now))
        return false;
    set_awaited(io, true);
    while (!has_come && gw_time_before(now, end) && !gw_yield_rests(&io->yield, now)) {
        gw_io_yield(io);
        has_come = pop(io, completion);
        now = gw_clock_now();
    }
    set_awaited(io, false);
    return has_come;
}

bool gw_io_receive(struct gw_io *io, struct gw_completion *completion, int wait_ms)
{
    struct pollfd fd = {.fd = io->to_app, .events = POLLIN};
    if (pop(io, completion))
        return true;
    if (wait_ms == 0)
        return false;
    if (wait_ms < 0 && io->drives && claim(io)) {
        drive(io, completion);
        return true;
    }
    if (io->plan.spin && spin(io, completion))
        return true;
    while (poll(&fd, 1, wait_ms) < 0 && errno == EINTR)
        continue;
    gw_io_empty(io->to_app);
    return pop(io, completion);
}
