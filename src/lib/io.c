/* The I/O thread: its phases, its station, and the application's side of it; see io.h. */
#include "lib/io_impl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/align.h"
#include "base/error.h"

enum {
    MTU_MIN = 256,
};

#define TURN (100 * GW_MS)

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
    case GW_IO_ATTACHING:
        io->kind->attach(io, is_late);
        break;
    case GW_IO_RUNNING:
        if (io->is_leaving && io->call_count) {
            gw_io_fail(io, GRADWIRE_ERR_CLOSED, "the job was closed with calls in work");
        } else if (io->is_leaving) {
            gw_io_enter(io, GW_IO_LEAVING, io->plan.stall);
            io->kind->leave(io);
        }
        break;
    case GW_IO_LEAVING:
        if (is_late)
            gw_io_enter(io, GW_IO_LINGERING, io->plan.stall);
        break;
    case GW_IO_LINGERING:
        if (is_late || io->kind->is_deserted(io))
            gw_io_enter(io, GW_IO_OVER, 0);
        break;
    case GW_IO_JOINING:
    case GW_IO_OVER:
        break;
    }
}

/* Whether nothing is left to be done, neither for the application nor for the others. */
static bool is_finished(const struct gw_io *io)
{
    return io->phase == GW_IO_OVER && io->is_leaving &&
           !(gw_time_before(gw_io_now(io), io->phase_until) && io->kind->is_owing(io));
}

static void take_neighbours(struct gw_io *io)
{
    struct gw_neighbour_event event;
    while (gw_station_poll(io->station, &event))
        io->kind->take_neighbour(io, &event);
}

static void *io_main(void *argument)
{
    struct gw_io *io = argument;
    char error[GW_NET_ERROR_MAX];
    while (!is_finished(io)) {
        gw_io_take_commands(io);
        step(io);
        gw_time wait = io->kind->has_work(io) ? 0 : TURN;
        int code = gw_station_turn(io->station, gw_time_add(gw_io_now(io), wait), error);
        if (gw_loop_has_input(gw_station_loop(io->station)))
            drain(io->to_thread);
        /* First: what is done is done, and one who fails says why before he goes. */
        io->kind->take_events(io);
        if (code && io->phase != GW_IO_OVER)
            gw_io_fail(io, GRADWIRE_ERR_SYSTEM, "%s", error);
        take_neighbours(io);
        io->kind->take_events(io);
    }
    return NULL;
}

uint32_t gw_io_mtu(const struct gw_io_plan *plan)
{
    uint32_t bytes = 4u * plan->values;
    return bytes > MTU_MIN ? bytes : MTU_MIN;
}

bool gw_io_is_joined(const struct gw_io_plan *plan)
{
    return !plan->server[0] && plan->rank == 0;
}

int gw_io_open_station(struct gw_io *io, const struct gw_io_station *station, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_sock_addr own = {.length = 0};
    int code = GW_OK;
    if (gw_io_is_joined(plan) && plan->join[0])
        code = gw_sock_addr_resolve(plan->join, &own, error);
    if (code)
        return code;
    struct gw_station_cfg cfg = {
        .datapath = plan->datapath,
        .address = plan->bind[0] ? plan->bind : NULL,
        .family_of = plan->server[0] ? plan->server
                     : plan->join[0] ? plan->join
                                     : NULL,
        .port = own.length ? gw_sock_addr_port(&own) : 0,
        .entropies = plan->paths,
        .packets = station->packets,
        .mtu = gw_io_mtu(plan),
        .peers_max = station->peers_max,
        .accepts = station->accepts,
        .authenticates = plan->authenticates,
        .signals_by_option = plan->signals_by_option,
        .node_address = station->node_address,
        .role = GW_ATTACH_HOST,
        .keys = &plan->key,
        .key_count = 1,
        .faults = plan->faults,
        .fds = {io->to_thread},
        .fd_count = 1,
    };
    return gw_station_open(&cfg, &io->station, error);
}

static void free_all(struct gw_io *io)
{
    if (io->station)
        gw_station_close(io->station);
    io->kind->close(io);
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
    io->kind = plan->via == GRADWIRE_VIA_RING ? &gw_io_ranks : &gw_io_served;
    pthread_mutex_init(&io->stats_lock, NULL);
    io->to_thread = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    io->to_app = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (io->to_thread < 0 || io->to_app < 0) {
        free_all(io);
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "cannot open an eventfd");
    }
    int code = gw_key_setup() ? GW_ERR_SYSTEM : GW_OK;
    if (!code) {
        io->address = gw_key_random32();
        code = io->kind->open(io, error);
    }
    if (code) {
        free_all(io);
        return error_of(code);
    }
    gw_io_enter(io, io->kind->attach ? GW_IO_ATTACHING : GW_IO_JOINING, plan->stall);
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
    struct gw_command leave = {.kind = GW_COMMAND_LEAVE};
    while (!gw_spsc_push(&io->commands, &leave, sizeof(leave)))
        usleep(1000);
    gw_io_wake(io->to_thread);
    pthread_join(io->thread, NULL);
    free_all(io);
}

bool gw_io_send(struct gw_io *io, const struct gw_command *command)
{
    if (!gw_spsc_push(&io->commands, command, sizeof(*command)))
        return false;
    gw_io_wake(io->to_thread);
    return true;
}

bool gw_io_receive(struct gw_io *io, struct gw_completion *completion, int wait_ms)
{
    struct pollfd fd = {.fd = io->to_app, .events = POLLIN};
    if (gw_spsc_pop(&io->completions, completion, sizeof(*completion)))
        return true;
    if (wait_ms == 0)
        return false;
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
