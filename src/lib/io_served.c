/*
 * A job with a server: this rank is one of its workers, and rank 0 has the server and its switch,
 * if no other process is the server. See io_impl.h, net/roles/overlay_worker.h and overlay_home.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "core/notice.h"
#include "lib/io_impl.h"
#include "net/roles/overlay_home.h"
#include "net/roles/overlay_worker.h"

enum {
    HOME_PACKETS = 16384,
    HOME_PEERS = GW_OVERLAY_WORLD_MAX + 16,
    HOME_PORTS_MORE = 2, /* of the switch, beside those of the workers */
    PACKETS = 8192,
    PEERS = 16,
    DIAL_NONE = -1,
};

struct served {
    struct gw_overlay_worker *worker;
    struct gw_overlay_home *home; /* or NULL: another process is the server */
    int server_dial, switch_dial; /* or DIAL_NONE */
};

static struct served *served_of(const struct gw_io *io)
{
    return io->job;
}

static int open_worker(struct gw_io *io, uint32_t server, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_overlay_worker_cfg cfg = {
        .loop = gw_station_loop(io->station),
        .pool = gw_station_pool(io->station),
        .address = io->address,
        .job = gw_key_job(&plan->key, plan->job),
        .server = server,
        .rank = plan->rank,
        .notice = plan->notice,
        .incarnation = gw_key_random32(),
        .hdr = gw_datapath_overhead(gw_station_datapath(io->station)),
        .mtu = 4u * plan->values,
        .tensors_max = GW_IO_CALLS_MAX,
        .stall = plan->stall,
        .congestion_control = true,
        .seed = gw_key_random32(),
    };
    int code = gw_overlay_worker_open(&cfg, &served_of(io)->worker);
    return code ? gw_net_fail(error, code, "cannot make a worker: %s", gw_error_message(code))
                : GW_OK;
}

static struct gw_loop_port worker_port(const struct gw_io *io)
{
    return (struct gw_loop_port){gw_overlay_worker_node(served_of(io)->worker), 0};
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

/* This process is the server, with a switch of its own; its worker joins here. */
static int open_home(struct gw_io *io, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct served *served = served_of(io);
    const struct gw_greeting greeting = greeting_of(plan);
    const struct gw_io_station station = {
        .packets = HOME_PACKETS,
        .node_address = gw_key_random32(),
        .peers_max = HOME_PEERS,
        .accepts = true,
    };
    int code = gw_io_open_station(io, &station, error);
    if (code)
        return code;
    struct gw_overlay_home_cfg home = {
        .station = io->station,
        .server_address = station.node_address,
        .switch_address = gw_key_random32(),
        .adds_up = plan->via == GRADWIRE_VIA_INA,
        .ports = (uint16_t)(plan->world + HOME_PORTS_MORE),
        .aggregators = GW_OVERLAY_AGGREGATORS,
        .jobs_max = 1,
        .mtu = gw_io_mtu(plan),
        .values = plan->values,
        .window = plan->window,
    };
    code = gw_overlay_home_open(&home, &served->home);
    if (code)
        return gw_net_fail(error, code, "cannot make a server: %s", gw_error_message(code));
    code = open_worker(io, station.node_address, error);
    if (code)
        return code;
    code = gw_overlay_home_join(served->home, worker_port(io), io->address, &greeting);
    return code ? gw_net_fail(error, code, "cannot serve the job: %s", gw_error_message(code))
                : GW_OK;
}

/* Another process is the server; a switch may be on the way to it. */
static int open_guest(struct gw_io *io, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct served *served = served_of(io);
    struct gw_greeting greeting = greeting_of(plan), to_switch = greeting;
    const struct gw_io_station station = {
        .packets = PACKETS, .node_address = io->address, .peers_max = PEERS};
    int code = gw_io_open_station(io, &station, error);
    if (!code)
        code = open_worker(io, 0, error);
    if (code)
        return code;
    served->server_dial =
        gw_station_dial(io->station, plan->server[0] ? plan->server : plan->join, &greeting, error);
    if (served->server_dial < 0)
        return served->server_dial;
    if (!plan->switch_[0])
        return GW_OK;
    to_switch.is_direct = false;
    served->switch_dial = gw_station_dial(io->station, plan->switch_, &to_switch, error);
    return served->switch_dial < 0 ? served->switch_dial : GW_OK;
}

static int open_served(struct gw_io *io, char *error)
{
    struct served *served = calloc(1, sizeof(*served));
    if (!served)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    served->server_dial = served->switch_dial = DIAL_NONE;
    io->job = served;
    return gw_io_is_joined(&io->plan) ? open_home(io, error) : open_guest(io, error);
}

static void close_served(struct gw_io *io)
{
    struct served *served = served_of(io);
    if (!served)
        return;
    if (served->worker)
        gw_overlay_worker_close(served->worker);
    if (served->home)
        gw_overlay_home_close(served->home);
    free(served);
}

static bool is_up(const struct gw_io *io, int dial)
{
    return dial == DIAL_NONE || gw_neighbours_is_up(gw_station_neighbours(io->station), dial);
}

static void attach(struct gw_io *io, bool is_late)
{
    const struct served *served = served_of(io);
    if (is_up(io, served->server_dial) && is_up(io, served->switch_dial)) {
        gw_io_enter(io, GW_IO_JOINING, 0);
        gw_overlay_worker_join(served->worker, gw_io_now(io));
    } else if (is_late) {
        bool has_switch = is_up(io, served->switch_dial);
        int dial = has_switch ? served->server_dial : served->switch_dial;
        gw_io_fail(io, GRADWIRE_ERR_TIMED_OUT, "no answer from the %s at %s for %g s",
                   has_switch ? "server" : "switch",
                   gw_neighbours_dial_name(gw_station_neighbours(io->station), dial),
                   (double)io->plan.stall / GW_S);
    }
}

static int start(struct gw_io *io, const struct gw_command *command)
{
    const struct gw_tensor tensor = gw_command_tensor(command);
    GW_ASSERT(command->kind == GW_COMMAND_REDUCE); /* calls.c takes no others */
    return gw_overlay_worker_reduce(served_of(io)->worker, &tensor, gw_io_now(io));
}

/* One that we dialled is there: the switch is the way to everybody, else the server is. */
static void dialled_up(struct gw_io *io, const struct gw_neighbour_event *event)
{
    const struct served *served = served_of(io);
    bool is_way_out = served->switch_dial == DIAL_NONE || event->dial == served->switch_dial;
    if (event->dial == served->server_dial)
        gw_overlay_worker_set_server(served->worker, event->said.address);
    gw_loop_link(gw_station_loop(io->station), worker_port(io), event->peer, is_way_out);
}

/* A server of its own comes back; rank 0 does not. */
static void server_down(struct gw_io *io)
{
    if (io->phase == GW_IO_LEAVING || io->phase == GW_IO_LINGERING)
        gw_io_enter(io, GW_IO_LINGERING, 0); /* it has closed: nobody needs us */
    else if (!io->plan.server[0] && io->phase != GW_IO_OVER && io->phase != GW_IO_ATTACHING)
        gw_io_fail(io, GRADWIRE_ERR_PEER, "rank 0, the server at %s, is lost", io->plan.join);
}

static void take_neighbour(struct gw_io *io, const struct gw_neighbour_event *event)
{
    const struct served *served = served_of(io);
    char why[GW_NET_ERROR_MAX];
    if (event->dial < 0 && served->home) {
        gw_overlay_home_neighbour(served->home, event, why);
        if (*why)
            fprintf(stderr, "gradwire: %s\n", why);
    } else if (event->kind == GW_NEIGHBOUR_UP) {
        dialled_up(io, event);
    } else if (event->kind == GW_NEIGHBOUR_REFUSED) {
        gw_io_fail(io, GRADWIRE_ERR_PEER, "%s refuses us: %s",
                   gw_neighbours_dial_name(gw_station_neighbours(io->station), event->dial),
                   gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    } else if (event->dial == served->server_dial) {
        server_down(io);
    }
}

/* Why the job is over, as the core says it. */
static void fail_by(struct gw_io *io, const struct gw_event *event)
{
    const struct gw_io_plan *plan = &io->plan;
    enum gw_job_reason reason = (enum gw_job_reason)event->reason;
    double seconds = (double)plan->stall / GW_S;
    const char *server = served_of(io)->home ? "rank 0"
                         : plan->server[0]   ? plan->server
                                             : plan->join;
    if (reason == GW_JOB_LOST)
        gw_io_fail(io, GRADWIRE_ERR_PEER, "rank %u is lost", event->about);
    else if (reason == GW_JOB_SILENT && io->phase == GW_IO_JOINING)
        gw_io_fail(io, GRADWIRE_ERR_TIMED_OUT,
                   "the job did not begin within %g s: not all of its %u ranks have come to %s",
                   seconds, plan->world, server);
    else if (reason == GW_JOB_SILENT)
        gw_io_fail(io, GRADWIRE_ERR_PEER, "the server (%s) is silent", server);
    else if (reason == GW_JOB_STALLED)
        gw_io_fail(io, GRADWIRE_ERR_TIMED_OUT, "no result from the server (%s) for %g s", server,
                   seconds);
    else if (reason == GW_JOB_OVERFLOW)
        gw_io_fail(io, GRADWIRE_ERR_OVERFLOW, "a sum of int32 does not fit an int32");
    else if (reason == GW_JOB_RANK)
        gw_io_fail(io, GRADWIRE_ERR_PEER, "rank %u is taken already, or not below %u", plan->rank,
                   plan->world);
    else if (reason == GW_JOB_NOTICE && event->about < plan->world)
        gw_io_fail(io, GRADWIRE_ERR_PEER,
                   "rank %u announces its bursts differently from those that came before it",
                   event->about);
    else if (reason == GW_JOB_NOTICE)
        gw_io_fail(io, GRADWIRE_ERR_PEER,
                   "no threshold of at most %d packets follows from the path of the job's bursts",
                   GW_NOTICE_PACKETS_MAX);
    else
        gw_io_fail(io, GRADWIRE_ERR_PEER, "the server (%s) says: %s", server,
                   gw_job_reason_text(reason));
}

static void take_events(struct gw_io *io)
{
    struct gw_event event;
    while (gw_overlay_worker_poll(served_of(io)->worker, &event)) {
        if (event.kind == GW_EVENT_JOINED && io->phase == GW_IO_JOINING) {
            gw_io_joined(io);
        } else if (event.kind == GW_EVENT_REDUCED) {
            gw_io_end_oldest(io); /* they end in their order */
        } else if (io->phase == GW_IO_LEAVING) {
            gw_io_enter(io, GW_IO_LINGERING, io->plan.stall);
        } else if (event.kind == GW_EVENT_REFUSED || event.kind == GW_EVENT_FAILED) {
            if (io->phase != GW_IO_OVER)
                fail_by(io, &event);
        }
    }
}

static bool has_work(const struct gw_io *io)
{
    (void)io;
    return false;
}

static void leave(struct gw_io *io)
{
    if (gw_overlay_worker_leave(served_of(io)->worker, gw_io_now(io)) != GW_OK)
        gw_io_enter(io, GW_IO_LINGERING, io->plan.stall);
}

static void fail(struct gw_io *io)
{
    gw_overlay_worker_fail(served_of(io)->worker, gw_io_now(io));
}

/* The server of this process, if it is one, has nobody left. */
static bool is_deserted(const struct gw_io *io)
{
    struct gw_overlay_home *home = served_of(io)->home;
    struct gw_overlay_job_view view;
    if (!home || !gw_overlay_server_view(gw_overlay_home_server(home), 0, &view))
        return true;
    return view.phase != GW_COORDINATOR_RUNNING && view.phase != GW_COORDINATOR_INSTALLING;
}

static bool is_owing(const struct gw_io *io)
{
    (void)io;
    return false;
}

static void stats(const struct gw_io *io, struct gradwire_stats *out)
{
    const struct served *served = served_of(io);
    const struct gw_worker_stats *worker = gw_overlay_worker_stats(served->worker);
    struct gw_overlay_job_view view;
    if (worker) { /* the job has begun */
        out->fragments = worker->sent - worker->resent;
        out->retransmits = worker->resent;
    }
    if (!served->home || !gw_overlay_server_view(gw_overlay_home_server(served->home), 0, &view))
        return;
    out->server_received = view.server->received;
    out->server_results = view.server->results;
    out->switch_results = view.server->complete;
    out->server_bytes = view.server->bytes;
    out->overflow_fragments = view.server->overflowed;
}

const struct gw_io_kind gw_io_served = {
    .open = open_served,
    .close = close_served,
    .attach = attach,
    .start = start,
    .take_neighbour = take_neighbour,
    .take_events = take_events,
    .has_work = has_work,
    .leave = leave,
    .fail = fail,
    .is_deserted = is_deserted,
    .is_owing = is_owing,
    .stats = stats,
};
