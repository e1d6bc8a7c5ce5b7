/*
 * Calls of the application: they come by a ring, are in work, and end once, by a completion on the
 * other ring. When the job fails all that are in work end with its error, and later ones too.
 */
#include "lib/io_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/clock.h"

enum { TURNS_AFTER = 4 }; /* the end of a call, for answers to what has come with it */

#define GOODBYE (500 * GW_MS) /* to tell others of a failure */

_Static_assert(sizeof(struct gw_command) <= GW_SPSC_CELL_SIZE, "a command fits the ring");

static uint64_t refused_by(const struct gw_endpoint_stats *flows)
{
    return flows->refused + flows->stray + flows->malformed + flows->early +
           flows->rendezvous_early + flows->rendezvous_refused + flows->stops_ignored;
}

/* What this rank, and the home if it is here, have counted. */
static void take_job_stats(const struct gw_io *io, struct gradwire_stats *out)
{
    const struct gw_endpoint_stats *flows = gw_endpoint_stats(io->endpoint);
    const struct gw_communicator_stats stats = gw_communicator_stats(io->comm);
    struct gw_overlay_job_view view;
    out->fragments = stats.sums.sent - stats.sums.resent + flows->data_sent - flows->retransmits;
    out->retransmits = stats.sums.resent + flows->retransmits;
    out->timeouts = flows->timeouts;
    out->given_up = flows->given_up;
    out->rerouted = stats.rerouted;
    out->packets_refused = refused_by(flows);
    if (!io->home || !gw_overlay_server_view(gw_overlay_home_server(io->home), 0, &view))
        return;
    out->server_received = view.server.received;
    out->server_results = view.server.results;
    out->switch_results = view.server.complete;
    out->server_bytes = view.server.bytes;
    out->overflow_fragments = view.server.overflowed;
    const struct gw_overlay_switch *sw = gw_overlay_home_switch(io->home);
    out->copies_saved = sw ? gw_switch_stats(gw_overlay_switch_core(sw))->copies_saved : 0;
}

static void take_stats(struct gw_io *io)
{
    const struct gw_datapath_stats *udp = gw_datapath_stats(gw_station_datapath(io->station));
    struct gradwire_stats *stats = &io->stats;
    pthread_mutex_lock(&io->stats_lock);
    take_job_stats(io, stats);
    stats->datagrams_sent = udp->sent;
    stats->datagrams_received = udp->received;
    stats->datagrams_refused = udp->runts + udp->malformed + udp->wrong_version +
                               udp->wrong_cookie + udp->forged + udp->repeated;
    stats->kernel_drops = udp->kernel_drops;
    pthread_mutex_unlock(&io->stats_lock);
}

static void complete(struct gw_io *io, const struct gw_completion *completion)
{
    take_stats(io);
    bool has_room = gw_spsc_push(&io->completions, completion, sizeof(*completion));
    GW_ASSERT(has_room); /* there are more cells than calls */
    io->parks_until = gw_time_add(gw_clock_now(), gw_io_parks_for(io));
    io->parks_in = TURNS_AFTER;
    if (!io->is_driven)
        gw_io_wake(io->to_app);
}

/* The call has ended for an error, or without one has nothing to tell. */
static void complete_as(struct gw_io *io, uint64_t call, int error)
{
    complete(io, &(struct gw_completion){.call = call, .error = error});
}

void gw_io_opened(struct gw_io *io)
{
    gw_io_enter(io, GW_IO_RUNNING, 0);
    if (io->plan.rings) /* a way takes a while */
        gw_mesh_reaches(gw_communicator_mesh(io->comm), (io->plan.rank + 1u) % io->plan.world,
                        true);
    io->was_opened = true;
    complete_as(io, 0, GRADWIRE_OK);
}

void gw_io_fail(struct gw_io *io, int error, const char *format, ...)
{
    va_list args;
    if (io->error == GRADWIRE_OK) {
        va_start(args, format);
        vsnprintf(io->text, sizeof(io->text), format, args);
        va_end(args);
        io->error = error;
    }
    atomic_store(&io->failure, io->error);
    gw_communicator_abort(io->comm, gw_io_now(io));
    gw_ways_go_straight(io->ways);
    if (!io->was_opened)
        complete_as(io, 0, io->error);
    io->was_opened = true;
    for (uint32_t i = 0; i < io->call_count; i++)
        complete_as(io, io->calls[i], io->error);
    io->call_count = 0;
    gw_io_enter(io, GW_IO_OVER, GOODBYE);
}

static void start_call(struct gw_io *io, const struct gw_call *call)
{
    io->refusals[call->number % GW_IO_CALLS_MAX][0] = '\0';
    if (io->phase != GW_IO_RUNNING) {
        complete_as(io, call->number, io->error ? io->error : GRADWIRE_ERR_CLOSED);
        return;
    }
    io->calls[io->call_count++] = call->number;
    int code = gw_communicator_call(io->comm, call, gw_io_now(io));
    if (code == GW_ERR_INVALID && call->kind == GW_CALL_RECEIVE)
        gw_io_refuse_call(io, call->number, GRADWIRE_ERR_INVALID,
                          "another receive with this tag from this rank is in work");
    else if (code == GW_ERR_INVALID)
        gw_io_refuse_call(io, call->number, GRADWIRE_ERR_INVALID,
                          "so many elements are more than one call can move");
    else if (code)
        gw_io_fail(io, GRADWIRE_ERR_PEER, "the job takes no more calls: %s",
                   gw_error_message(code));
}

/* What another thread of this rank has failed for. */
static void fail_as(struct gw_io *io, const struct gw_command *command)
{
    if (io->phase == GW_IO_OVER)
        return;
    gw_communicator_abort_as(io->comm, (enum gw_job_reason)command->reason, command->about,
                             gw_io_now(io));
    gw_io_fail(io, GRADWIRE_ERR_CLOSED, "another thread of this rank has failed");
}

void gw_io_take_commands(struct gw_io *io)
{
    struct gw_command command;
    while (gw_spsc_pop(&io->commands, &command, sizeof(command))) {
        if (command.fails)
            fail_as(io, &command);
        if (command.leaves)
            io->is_leaving = true;
        else
            start_call(io, &command.call);
    }
}

/* The call at this place of those in work has ended. */
static void end_call(struct gw_io *io, uint32_t at, const struct gw_completion *completion)
{
    io->call_count--;
    memmove(&io->calls[at], &io->calls[at + 1], (io->call_count - at) * sizeof(io->calls[0]));
    complete(io, completion);
}

/* The place of a call; call_count: it is not in work. */
static uint32_t find_call(const struct gw_io *io, uint64_t call)
{
    uint32_t at = 0;
    while (at < io->call_count && io->calls[at] != call)
        at++;
    return at;
}

void gw_io_end_call(struct gw_io *io, uint64_t call, uint64_t bytes, uint64_t missing)
{
    uint32_t at = find_call(io, call);
    if (at < io->call_count)
        end_call(io, at, &(struct gw_completion){.call = call, .bytes = bytes, .missing = missing});
}

void gw_io_refuse_call(struct gw_io *io, uint64_t call, int error, const char *text)
{
    uint32_t at = find_call(io, call);
    if (at == io->call_count)
        return;
    snprintf(io->refusals[call % GW_IO_CALLS_MAX], GW_IO_TEXT_MAX, "%s", text);
    end_call(io, at, &(struct gw_completion){.call = call, .error = error});
}
