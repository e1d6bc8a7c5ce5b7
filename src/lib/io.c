/* The I/O thread of an open job; see io.h. */
#include "lib/io.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "lib/spsc.h"
#include "net/ranks/communicator.h"
#include "net/roles/overlay_home.h"
#include "net/roles/overlay_worker.h"

enum {
    MTU_MIN = 256,
    PEERS_MAX = GW_OVERLAY_WORLD_MAX + 16,
    PORT_MARGIN = 2, /* of the switch, beside those of the workers */
    PEERS_EACH = 2,  /* two ranks may have dialled each other */
    DIAL_NONE = -1,
};

#define TURN    (100 * GW_MS)
#define GOODBYE (500 * GW_MS) /* to tell others of a failure */

enum phase {
    PHASE_ATTACHING, /* all dials are up: joining */
    PHASE_JOINING,   /* JOINED: running; REFUSED: over */
    PHASE_RUNNING,   /* a failure: over; the application: leaving */
    PHASE_LEAVING,   /* LEFT, or no answer: lingering */
    PHASE_LINGERING, /* all others have left: over */
    PHASE_OVER,      /* the application has said that it is done: the thread ends */
};

_Static_assert(sizeof(struct gw_command) <= GW_SPSC_CELL_SIZE, "a command fits the ring");

struct gw_io {
    struct gw_io_plan plan;
    struct gw_spsc commands, completions;
    int to_engine, to_app; /* eventfds */
    pthread_t thread;
    char text[GW_IO_TEXT_MAX];
    char refusals[GW_IO_CALLS_MAX][GW_IO_TEXT_MAX]; /* of the last call of each place, or empty;
                                                       written before its completion */
    pthread_mutex_t stats_lock;
    struct gradwire_stats stats;

    /* The thread's own. */
    struct gw_station *station;
    struct gw_overlay_home *home; /* or NULL: another process is the server */
    struct gw_overlay_worker *worker;
    struct gw_communicator *comm; /* or NULL: there is a server, and a worker */
    int server_dial, switch_dial; /* or DIAL_NONE */
    uint32_t address;
    enum phase phase;
    gw_time phase_until;
    int error;                       /* what ended the job, once something has */
    bool is_leaving;                 /* the application has said so */
    bool was_opened;                 /* completion 0 is out */
    uint64_t calls[GW_IO_CALLS_MAX]; /* numbers of those in work, in order */
    uint32_t call_count;
};

static void wake(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));
    (void)written; /* the counter is full: it is awake */
}

static gw_time now_of(const struct gw_io *io)
{
    return gw_loop_now(gw_station_loop(io->station));
}

static void take_stats(struct gw_io *io)
{
    const struct gw_worker_stats *worker = io->comm ? NULL : gw_overlay_worker_stats(io->worker);
    const struct gw_endpoint_stats *flows = io->comm ? gw_communicator_stats(io->comm) : NULL;
    const struct gw_datapath_stats *udp = gw_datapath_stats(gw_station_datapath(io->station));
    struct gw_overlay_job_view view;
    struct gradwire_stats *stats = &io->stats;
    pthread_mutex_lock(&io->stats_lock);
    if (worker) {
        stats->fragments = worker->sent - worker->resent;
        stats->retransmits = worker->resent;
    }
    if (flows) {
        stats->fragments = flows->data_sent - flows->retransmits;
        stats->retransmits = flows->retransmits;
        stats->timeouts = flows->timeouts;
    }
    if (io->home && gw_overlay_server_view(gw_overlay_home_server(io->home), 0, &view)) {
        stats->server_received = view.server->received;
        stats->server_results = view.server->results;
        stats->switch_results = view.server->complete;
        stats->server_bytes = view.server->bytes;
        stats->overflow_fragments = view.server->overflowed;
    }
    stats->datagrams_sent = udp->sent;
    stats->datagrams_received = udp->received;
    stats->datagrams_refused = udp->runts + udp->malformed + udp->wrong_version +
                               udp->wrong_cookie + udp->forged + udp->repeated;
    stats->kernel_drops = udp->kernel_drops;
    pthread_mutex_unlock(&io->stats_lock);
}

static void complete(struct gw_io *io, uint64_t call, uint64_t bytes, int error)
{
    struct gw_completion completion = {.call = call, .bytes = bytes, .error = error};
    take_stats(io);
    bool has_room = gw_spsc_push(&io->completions, &completion, sizeof(completion));
    GW_ASSERT(has_room); /* there are more cells than calls */
    wake(io->to_app);
}

static void enter(struct gw_io *io, enum phase phase, gw_time wait)
{
    io->phase = phase;
    io->phase_until = gw_time_add(now_of(io), wait);
}

/* Ends the job. What is in work has failed, or does so now. */
__attribute__((format(printf, 3, 4))) static void fail(struct gw_io *io, int error,
                                                       const char *format, ...)
{
    va_list args;
    if (io->error == GRADWIRE_OK) {
        va_start(args, format);
        vsnprintf(io->text, sizeof(io->text), format, args);
        va_end(args);
        io->error = error;
    }
    if (io->comm)
        gw_communicator_abort(io->comm, now_of(io));
    else if (io->worker)
        gw_overlay_worker_fail(io->worker, now_of(io));
    if (!io->was_opened)
        complete(io, 0, 0, io->error);
    io->was_opened = true;
    for (uint32_t i = 0; i < io->call_count; i++)
        complete(io, io->calls[i], 0, io->error);
    io->call_count = 0;
    enter(io, PHASE_OVER, GOODBYE);
}

/* Why the job is over, as the core says it. */
static void fail_by(struct gw_io *io, const struct gw_event *event)
{
    enum gw_job_reason reason = (enum gw_job_reason)event->reason;
    double seconds = (double)io->plan.deadline / GW_S;
    const char *server = io->home ? "rank 0" : io->plan.server[0] ? io->plan.server : io->plan.join;
    if (reason == GW_JOB_LOST)
        fail(io, GRADWIRE_ERR_PEER, "rank %u is lost", event->about);
    else if (reason == GW_JOB_SILENT && io->phase == PHASE_JOINING)
        fail(io, GRADWIRE_ERR_TIMED_OUT,
             "the job did not begin within %g s: not all of its %u ranks have come to %s", seconds,
             io->plan.world, server);
    else if (reason == GW_JOB_SILENT)
        fail(io, GRADWIRE_ERR_PEER, "the server (%s) is silent", server);
    else if (reason == GW_JOB_STALLED)
        fail(io, GRADWIRE_ERR_TIMED_OUT, "no result from the server (%s) for %g s", server,
             seconds);
    else if (reason == GW_JOB_OVERFLOW)
        fail(io, GRADWIRE_ERR_OVERFLOW, "a sum of int32 does not fit an int32");
    else if (reason == GW_JOB_RANK)
        fail(io, GRADWIRE_ERR_PEER, "rank %u is taken already, or not below %u", io->plan.rank,
             io->plan.world);
    else
        fail(io, GRADWIRE_ERR_PEER, "the server (%s) says: %s", server, gw_job_reason_text(reason));
}

static int start_reduce(struct gw_io *io, const struct gw_command *command)
{
    struct gw_tensor tensor = {
        .in = command->in,
        .out = command->out,
        .count = command->count,
        .type = (enum gw_dtype)command->type,
        .average = command->average,
    };
    gw_time now = now_of(io);
    return io->comm ? gw_communicator_reduce(io->comm, command->call, &tensor, now)
                    : gw_overlay_worker_reduce(io->worker, &tensor, now);
}

static int start_message(struct gw_io *io, const struct gw_command *command)
{
    struct gw_communicator_message message = {
        .call = command->call,
        .rank = command->rank,
        .tag = command->tag,
        .data = command->out,
        .bytes = command->count,
        .is_receive = command->kind == GW_COMMAND_RECEIVE,
    };
    return gw_communicator_move(io->comm, &message, now_of(io));
}

static int start_store_call(struct gw_io *io, const struct gw_command *command)
{
    struct gw_communicator_store_call call = {
        .call = command->call,
        .key = command->key,
        .data = command->out,
        .shape = {.count = command->count, .type = (enum gw_dtype)command->type},
        .is_pull = command->kind == GW_COMMAND_PULL,
    };
    return gw_communicator_store(io->comm, &call, now_of(io));
}

static void start_call(struct gw_io *io, const struct gw_command *command)
{
    bool is_message = command->kind == GW_COMMAND_SEND || command->kind == GW_COMMAND_RECEIVE;
    io->refusals[command->call % GW_IO_CALLS_MAX][0] = '\0';
    if (io->phase != PHASE_RUNNING) {
        complete(io, command->call, 0, io->error ? io->error : GRADWIRE_ERR_CLOSED);
        return;
    }
    io->calls[io->call_count++] = command->call;
    int code = command->kind == GW_COMMAND_REDUCE ? start_reduce(io, command)
               : is_message                       ? start_message(io, command)
                                                  : start_store_call(io, command);
    if (code)
        fail(io, GRADWIRE_ERR_PEER, "the job takes no more calls: %s", gw_error_message(code));
}

static void take_commands(struct gw_io *io)
{
    struct gw_command command;
    while (gw_spsc_pop(&io->commands, &command, sizeof(command))) {
        if (command.kind == GW_COMMAND_LEAVE)
            io->is_leaving = true;
        else
            start_call(io, &command);
    }
}

/* Whether everybody whom we need has a session with us. */
static bool is_attached(const struct gw_io *io)
{
    const struct gw_neighbours *neighbours = gw_station_neighbours(io->station);
    return (io->server_dial == DIAL_NONE || gw_neighbours_is_up(neighbours, io->server_dial)) &&
           (io->switch_dial == DIAL_NONE || gw_neighbours_is_up(neighbours, io->switch_dial));
}

static int open_worker(struct gw_io *io, uint32_t server)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_overlay_worker_cfg cfg = {
        .loop = gw_station_loop(io->station),
        .pool = gw_station_pool(io->station),
        .address = io->address,
        .job = gw_key_job(&plan->key, plan->job),
        .server = server,
        .rank = plan->rank,
        .incarnation = gw_key_random32(),
        .hdr = gw_datapath_overhead(gw_station_datapath(io->station)),
        .mtu = 4u * plan->values,
        .tensors_max = GW_IO_CALLS_MAX,
        .stall = plan->deadline,
        .congestion_control = true,
        .seed = gw_key_random32(),
    };
    return gw_overlay_worker_open(&cfg, &io->worker);
}

static struct gw_greeting greeting_of(const struct gw_io_plan *plan)
{
    return (struct gw_greeting){
        .job = gw_key_job(&plan->key, plan->job),
        .world = plan->world,
        .rank = plan->rank,
        .is_direct = plan->via == GRADWIRE_VIA_PS,
    };
}

/* One that we dialled is there: the switch is the way to everybody, else the server is. */
static void dialled_up(struct gw_io *io, const struct gw_neighbour_event *event)
{
    bool is_way_out = io->switch_dial == DIAL_NONE || event->dial == io->switch_dial;
    if (event->dial == io->server_dial)
        gw_overlay_worker_set_server(io->worker, event->said.address);
    gw_loop_link(gw_station_loop(io->station),
                 (struct gw_loop_port){gw_overlay_worker_node(io->worker), 0}, event->peer,
                 is_way_out);
}

/* A server of its own comes back; rank 0 does not. */
static void server_down(struct gw_io *io)
{
    if (io->phase == PHASE_LEAVING || io->phase == PHASE_LINGERING)
        enter(io, PHASE_LINGERING, 0); /* it has closed: nobody needs us */
    else if (!io->plan.server[0] && io->phase != PHASE_OVER && io->phase != PHASE_ATTACHING)
        fail(io, GRADWIRE_ERR_PEER, "rank 0, the server at %s, is lost", io->plan.join);
}

static void take_neighbours(struct gw_io *io)
{
    struct gw_neighbour_event event;
    char why[GW_NET_ERROR_MAX];
    while (gw_station_poll(io->station, &event)) {
        if (io->comm) {
            gw_communicator_neighbour(io->comm, &event);
        } else if (event.dial < 0 && io->home) {
            gw_overlay_home_neighbour(io->home, &event, why);
            if (*why)
                fprintf(stderr, "gradwire: %s\n", why);
        } else if (event.kind == GW_NEIGHBOUR_UP) {
            dialled_up(io, &event);
        } else if (event.kind == GW_NEIGHBOUR_REFUSED) {
            fail(io, GRADWIRE_ERR_PEER, "%s refuses us: %s",
                 gw_neighbours_dial_name(gw_station_neighbours(io->station), event.dial),
                 gw_attach_reason_text((enum gw_attach_reason)event.said.reason));
        } else if (event.dial == io->server_dial) {
            server_down(io);
        }
    }
}

/* The call at this place of those in work has ended. */
static void end_call(struct gw_io *io, uint32_t at, uint64_t bytes, int error)
{
    uint64_t call = io->calls[at];
    io->call_count--;
    memmove(&io->calls[at], &io->calls[at + 1], (io->call_count - at) * sizeof(io->calls[0]));
    complete(io, call, bytes, error);
}

/* The call at this place is refused, and the job goes on. */
static void refuse_call(struct gw_io *io, uint32_t at,
                        const struct gw_communicator_refusal *refusal)
{
    static const int errors[] = {
        [GW_COMMUNICATOR_UNKNOWN_KEY] = GRADWIRE_ERR_INVALID,
        [GW_COMMUNICATOR_OTHER_SHAPE] = GRADWIRE_ERR_INVALID,
        [GW_COMMUNICATOR_SUM_OVERFLOW] = GRADWIRE_ERR_OVERFLOW,
        [GW_COMMUNICATOR_NO_MEMORY] = GRADWIRE_ERR_NO_MEMORY,
    };
    gw_communicator_refusal(refusal, io->refusals[io->calls[at] % GW_IO_CALLS_MAX], GW_IO_TEXT_MAX);
    end_call(io, at, 0, errors[refusal->why]);
}

static void joined(struct gw_io *io)
{
    enter(io, PHASE_RUNNING, 0);
    io->was_opened = true;
    complete(io, 0, 0, GRADWIRE_OK);
}

static void take_worker_events(struct gw_io *io)
{
    struct gw_event event;
    while (gw_overlay_worker_poll(io->worker, &event)) {
        if (event.kind == GW_EVENT_JOINED && io->phase == PHASE_JOINING) {
            joined(io);
        } else if (event.kind == GW_EVENT_REDUCED) {
            if (io->call_count)                  /* else all have failed meanwhile */
                end_call(io, 0, 0, GRADWIRE_OK); /* they end in their order */
        } else if (io->phase == PHASE_LEAVING) {
            enter(io, PHASE_LINGERING, io->plan.deadline);
        } else if (event.kind == GW_EVENT_REFUSED || event.kind == GW_EVENT_FAILED) {
            if (io->phase != PHASE_OVER)
                fail_by(io, &event);
        }
    }
}

static void communicator_failed(struct gw_io *io, enum gw_job_reason reason)
{
    bool is_late = reason == GW_JOB_SILENT || reason == GW_JOB_STALLED;
    int error = reason == GW_JOB_OVERFLOW ? GRADWIRE_ERR_OVERFLOW
                : is_late                 ? GRADWIRE_ERR_TIMED_OUT
                                          : GRADWIRE_ERR_PEER;
    if (io->phase != PHASE_LINGERING)
        fail(io, error, "%s", gw_communicator_text(io->comm));
}

static void take_communicator_events(struct gw_io *io)
{
    struct gw_communicator_event event;
    while (gw_communicator_poll(io->comm, &event, now_of(io))) {
        uint32_t at = 0;
        switch (event.kind) {
        case GW_COMMUNICATOR_OPEN:
            joined(io);
            break;
        case GW_COMMUNICATOR_DONE:
        case GW_COMMUNICATOR_REFUSED:
            while (at < io->call_count && io->calls[at] != event.call)
                at++;
            if (at < io->call_count && event.kind == GW_COMMUNICATOR_DONE)
                end_call(io, at, event.bytes, GRADWIRE_OK);
            else if (at < io->call_count)
                refuse_call(io, at, &event.refusal);
            break;
        case GW_COMMUNICATOR_FAILED:
            communicator_failed(io, event.reason);
            break;
        case GW_COMMUNICATOR_LEFT:
            enter(io, PHASE_OVER, 0);
            break;
        }
    }
}

/* Whether the server of this process has nobody left. */
static bool is_deserted(struct gw_io *io)
{
    struct gw_overlay_job_view view;
    if (!io->home || !gw_overlay_server_view(gw_overlay_home_server(io->home), 0, &view))
        return true;
    return view.phase != GW_COORDINATOR_RUNNING && view.phase != GW_COORDINATOR_INSTALLING;
}

/* What time, rather than a packet, decides. */
static void step(struct gw_io *io)
{
    gw_time now = now_of(io);
    bool is_late = !gw_time_before(now, io->phase_until);
    switch (io->phase) {
    case PHASE_ATTACHING:
        if (is_attached(io)) {
            enter(io, PHASE_JOINING, 0);
            gw_overlay_worker_join(io->worker, now);
        } else if (is_late) {
            const struct gw_neighbours *neighbours = gw_station_neighbours(io->station);
            bool has_switch =
                io->switch_dial == DIAL_NONE || gw_neighbours_is_up(neighbours, io->switch_dial);
            fail(
                io, GRADWIRE_ERR_TIMED_OUT, "no answer from the %s at %s for %g s",
                has_switch ? "server" : "switch",
                gw_neighbours_dial_name(neighbours, has_switch ? io->server_dial : io->switch_dial),
                (double)io->plan.deadline / GW_S);
        }
        break;
    case PHASE_RUNNING:
        if (io->is_leaving && io->call_count) {
            fail(io, GRADWIRE_ERR_CLOSED, "the job was closed with calls in work");
        } else if (io->is_leaving) {
            enter(io, PHASE_LEAVING, io->plan.deadline);
            if (io->comm)
                gw_communicator_leave(io->comm, now);
            else if (gw_overlay_worker_leave(io->worker, now) != GW_OK)
                enter(io, PHASE_LINGERING, io->plan.deadline);
        }
        break;
    case PHASE_LEAVING:
        if (is_late)
            enter(io, PHASE_LINGERING, io->plan.deadline);
        break;
    case PHASE_LINGERING:
        if (is_late || is_deserted(io))
            enter(io, PHASE_OVER, 0);
        break;
    case PHASE_JOINING:
    case PHASE_OVER:
        break;
    }
}

static void drain(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got; /* nothing was there */
}

/* Whether nothing is left to be done, neither for the application nor for the others. */
static bool is_finished(const struct gw_io *io)
{
    bool owes = io->comm && gw_communicator_is_busy(io->comm) &&
                gw_time_before(now_of(io), io->phase_until);
    return io->phase == PHASE_OVER && io->is_leaving && !owes;
}

static void take_events(struct gw_io *io)
{
    if (io->comm)
        take_communicator_events(io);
    else
        take_worker_events(io);
}

static void *io_main(void *argument)
{
    struct gw_io *io = argument;
    char error[GW_NET_ERROR_MAX];
    while (!is_finished(io)) {
        take_commands(io);
        step(io);
        gw_time wait = io->comm && gw_communicator_has_work(io->comm) ? 0 : TURN;
        int code = gw_station_turn(io->station, gw_time_add(now_of(io), wait), error);
        if (gw_loop_has_input(gw_station_loop(io->station)))
            drain(io->to_engine);
        take_events(
            io); /* first: what is done is done, and one who fails says why before he goes */
        if (code && io->phase != PHASE_OVER)
            fail(io, GRADWIRE_ERR_SYSTEM, "%s", error);
        take_neighbours(io);
        take_events(io);
    }
    return NULL;
}

static bool is_without_server(const struct gw_io_plan *plan)
{
    return plan->via == GRADWIRE_VIA_RING;
}

/* Whether the others join this rank. */
static bool others_join(const struct gw_io_plan *plan)
{
    return !plan->server[0] && plan->rank == 0;
}

static int open_station(struct gw_io *io, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    bool is_host = others_join(plan) && !is_without_server(plan); /* of server and switch */
    struct gw_sock_addr own = {.length = 0};
    int code = GW_OK;
    if (others_join(plan) && plan->join[0])
        code = gw_sock_addr_resolve(plan->join, &own, error);
    if (code)
        return code;
    io->address = gw_key_random32();
    struct gw_station_cfg cfg = {
        .address = plan->bind[0] ? plan->bind : NULL,
        .family_of = plan->server[0] ? plan->server
                     : plan->join[0] ? plan->join
                                     : NULL,
        .port = own.length ? gw_sock_addr_port(&own) : 0,
        .entropies = plan->paths,
        .packets = is_host ? 16384 : 8192,
        .mtu = 4u * plan->values > MTU_MIN ? 4u * plan->values : MTU_MIN,
        .peers_max = is_host                   ? PEERS_MAX
                     : is_without_server(plan) ? (uint16_t)(PEERS_EACH * plan->world + 16)
                                               : 16,
        .accepts = others_join(plan) || is_without_server(plan),
        .authenticates = plan->authenticates,
        .node_address = is_host ? gw_key_random32() : io->address,
        .role = GW_ATTACH_HOST,
        .keys = &plan->key,
        .key_count = 1,
        .faults = plan->faults,
        .fds = {io->to_engine},
        .fd_count = 1,
    };
    code = gw_station_open(&cfg, &io->station, error);
    if (code || !is_host)
        return code;
    struct gw_overlay_home_cfg home = {
        .station = io->station,
        .server_address = cfg.node_address,
        .switch_address = gw_key_random32(),
        .adds_up = plan->via == GRADWIRE_VIA_INA,
        .ports = (uint16_t)(plan->world + PORT_MARGIN),
        .aggregators = GW_OVERLAY_AGGREGATORS,
        .jobs_max = 1,
        .mtu = cfg.mtu,
        .values = plan->values,
        .window = plan->window,
    };
    code = gw_overlay_home_open(&home, &io->home);
    if (code)
        gw_net_fail(error, code, "cannot make a server: %s", gw_error_message(code));
    return code ? code : open_worker(io, cfg.node_address);
}

static int open_communicator(struct gw_io *io, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_communicator_cfg cfg = {
        .station = io->station,
        .address = io->address,
        .job = gw_key_job(&plan->key, plan->job),
        .rank = plan->rank,
        .world = plan->world,
        .join = plan->join,
        .switch_ = plan->switch_[0] ? plan->switch_ : NULL,
        .mtu = 4u * plan->values,
        .rate_bps = plan->rate_bps,
        .coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "ring"),
        .transport = plan->transport,
        .stall = plan->deadline,
        .seed = gw_key_random32(),
    };
    return gw_communicator_open(&cfg, &io->comm, error);
}

/* Makes what this process has of the job, and asks those it needs for a session. */
static int open_job(struct gw_io *io, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_greeting greeting = greeting_of(plan), to_switch = greeting;
    if (is_without_server(plan))
        return open_communicator(io, error);
    if (io->home) {
        struct gw_loop_port port = {gw_overlay_worker_node(io->worker), 0};
        int code = gw_overlay_home_join(io->home, port, io->address, &greeting);
        return code ? gw_net_fail(error, code, "cannot serve the job: %s", gw_error_message(code))
                    : GW_OK;
    }
    int code = open_worker(io, 0);
    if (code)
        return gw_net_fail(error, code, "cannot make a worker: %s", gw_error_message(code));
    io->server_dial =
        gw_station_dial(io->station, plan->server[0] ? plan->server : plan->join, &greeting, error);
    if (io->server_dial < 0)
        return io->server_dial;
    if (plan->switch_[0]) {
        to_switch.is_direct = false;
        io->switch_dial = gw_station_dial(io->station, plan->switch_, &to_switch, error);
        if (io->switch_dial < 0)
            return io->switch_dial;
    }
    return GW_OK;
}

static void free_all(struct gw_io *io)
{
    if (io->station)
        gw_station_close(io->station);
    if (io->worker)
        gw_overlay_worker_close(io->worker);
    if (io->comm)
        gw_communicator_close(io->comm);
    if (io->home)
        gw_overlay_home_close(io->home);
    if (io->station)
        gw_station_free(io->station);
    if (io->to_engine >= 0)
        close(io->to_engine);
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
    struct gw_io *io = aligned_alloc(64, (sizeof(*io) + 63) / 64 * 64);
    if (!io)
        return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory");
    memset(io, 0, sizeof(*io));
    io->plan = *plan;
    pthread_mutex_init(&io->stats_lock, NULL);
    io->server_dial = io->switch_dial = DIAL_NONE;
    io->to_engine = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    io->to_app = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (io->to_engine < 0 || io->to_app < 0) {
        free_all(io);
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "cannot open an eventfd");
    }
    int code = gw_key_setup() ? GW_ERR_SYSTEM : open_station(io, error);
    if (!code)
        code = open_job(io, error);
    if (code) {
        free_all(io);
        return error_of(code);
    }
    enter(io, io->comm ? PHASE_JOINING : PHASE_ATTACHING, plan->deadline);
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
    wake(io->to_engine);
    pthread_join(io->thread, NULL);
    free_all(io);
}

bool gw_io_send(struct gw_io *io, const struct gw_command *command)
{
    if (!gw_spsc_push(&io->commands, command, sizeof(*command)))
        return false;
    wake(io->to_engine);
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
