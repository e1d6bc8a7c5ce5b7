/* A job without a server: ranks send to each other; see io_impl.h and net/ranks/team.h. */
#include "lib/io_impl.h"
#include "net/ranks/team.h"

enum {
    PACKETS = 8192,
    PEERS_EACH = 2, /* two ranks may have dialled each other */
    PEERS_MORE = 16,
};

static int open_ranks(struct gw_io *io, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    const struct gw_io_station station = {
        .packets = PACKETS,
        .node_address = io->address,
        .peers_max = (uint16_t)(PEERS_EACH * plan->world + PEERS_MORE),
        .accepts = true,
    };
    int code = gw_io_open_station(io, &station, error);
    if (code)
        return code;
    struct gw_team_cfg cfg = {
        .station = io->station,
        .address = io->address,
        .job = gw_key_job(&plan->key, plan->job),
        .rank = plan->rank,
        .world = plan->world,
        .join = plan->join,
        .switch_ = plan->switch_[0] ? plan->switch_ : NULL,
        .mtu = 4u * plan->values,
        .rate_bps = plan->rate_bps,
        .notice = plan->notice,
        .coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "ring"),
        .transport = plan->transport,
        .stall = plan->stall,
        .seed = gw_key_random32(),
    };
    struct gw_team *comm = NULL;
    code = gw_team_open(&cfg, &comm, error);
    io->job = comm;
    return code;
}

static void close_ranks(struct gw_io *io)
{
    if (io->job)
        gw_team_close(io->job);
}

static int start_reduce(struct gw_io *io, const struct gw_command *command)
{
    const struct gw_tensor tensor = gw_command_tensor(command);
    return gw_team_reduce(io->job, command->call, &tensor, gw_io_now(io));
}

static int start_message(struct gw_io *io, const struct gw_command *command)
{
    struct gw_team_message message = {
        .call = command->call,
        .rank = command->rank,
        .tag = command->tag,
        .data = command->out,
        .bytes = command->count,
        .is_receive = command->kind == GW_COMMAND_RECEIVE,
    };
    return gw_team_move(io->job, &message, gw_io_now(io));
}

static int start_store_call(struct gw_io *io, const struct gw_command *command)
{
    struct gw_team_store_call call = {
        .call = command->call,
        .key = command->key,
        .data = command->out,
        .shape = {.count = command->count, .type = (enum gw_dtype)command->type},
        .is_pull = command->kind == GW_COMMAND_PULL,
    };
    return gw_team_store(io->job, &call, gw_io_now(io));
}

static int start(struct gw_io *io, const struct gw_command *command)
{
    switch (command->kind) {
    case GW_COMMAND_REDUCE:
        return start_reduce(io, command);
    case GW_COMMAND_SEND:
    case GW_COMMAND_RECEIVE:
        return start_message(io, command);
    default:
        return start_store_call(io, command);
    }
}

static void take_neighbour(struct gw_io *io, const struct gw_neighbour_event *event)
{
    gw_team_neighbour(io->job, event);
}

static void refused(struct gw_io *io, const struct gw_team_event *event)
{
    static const int errors[] = {
        [GW_TEAM_UNKNOWN_KEY] = GRADWIRE_ERR_INVALID,
        [GW_TEAM_OTHER_SHAPE] = GRADWIRE_ERR_INVALID,
        [GW_TEAM_SUM_OVERFLOW] = GRADWIRE_ERR_OVERFLOW,
        [GW_TEAM_NO_MEMORY] = GRADWIRE_ERR_NO_MEMORY,
    };
    char text[GW_IO_TEXT_MAX];
    gw_team_refusal(&event->refusal, text, sizeof(text));
    gw_io_refuse_call(io, event->call, errors[event->refusal.why], text);
}

static void failed(struct gw_io *io, enum gw_job_reason reason)
{
    bool is_late = reason == GW_JOB_SILENT || reason == GW_JOB_STALLED;
    int error = reason == GW_JOB_OVERFLOW ? GRADWIRE_ERR_OVERFLOW
                : is_late                 ? GRADWIRE_ERR_TIMED_OUT
                                          : GRADWIRE_ERR_PEER;
    if (io->phase != GW_IO_LINGERING)
        gw_io_fail(io, error, "%s", gw_team_text(io->job));
}

static void take_events(struct gw_io *io)
{
    struct gw_team_event event;
    while (gw_team_poll(io->job, &event, gw_io_now(io))) {
        switch (event.kind) {
        case GW_TEAM_OPEN:
            gw_io_joined(io);
            break;
        case GW_TEAM_DONE:
            gw_io_end_call(io, event.call, event.bytes);
            break;
        case GW_TEAM_REFUSED:
            refused(io, &event);
            break;
        case GW_TEAM_FAILED:
            failed(io, event.reason);
            break;
        case GW_TEAM_LEFT:
            gw_io_enter(io, GW_IO_OVER, 0);
            break;
        }
    }
}

static bool has_work(const struct gw_io *io)
{
    return gw_team_has_work(io->job);
}

static void leave(struct gw_io *io)
{
    gw_team_leave(io->job, gw_io_now(io));
}

static void fail(struct gw_io *io)
{
    gw_team_abort(io->job, gw_io_now(io));
}

/* Who needs us has not let us go before. */
static bool is_deserted(const struct gw_io *io)
{
    (void)io;
    return true;
}

static bool is_owing(const struct gw_io *io)
{
    return gw_team_is_busy(io->job);
}

static void stats(const struct gw_io *io, struct gradwire_stats *out)
{
    const struct gw_endpoint_stats *flows = gw_team_stats(io->job);
    out->fragments = flows->data_sent - flows->retransmits;
    out->retransmits = flows->retransmits;
    out->timeouts = flows->timeouts;
}

const struct gw_io_kind gw_io_ranks = {
    .open = open_ranks,
    .close = close_ranks,
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
