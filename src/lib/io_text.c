/*
 * The words for failures: one line for people, which names the rank, server or switch that it is
 * about. The core says no more than reason and numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/io_impl.h"

enum {
    BEATS_SILENT = 10, /* of a switch that is not only late */
};

/* Who did not run for nearly as long as a silence may be given up, and notices what came of it when
 * it runs again. */
#define AWAY       (GW_STATION_SILENCE - 5 * GW_STATION_BEAT)
#define AWAY_SHOWS GW_S

/* What the line is made of. */
struct line {
    const struct gw_io *io;
    char *text;
    size_t size;
};

#define SAY(line, error, ...) (snprintf((line)->text, (line)->size, __VA_ARGS__), (error))

static double seconds_of(const struct gw_io *io)
{
    return (double)io->plan.stall / GW_S;
}

static const char *server_name(const struct gw_io *io, uint32_t server)
{
    return io->home || server >= io->server_count ? "rank 0" : io->servers[server];
}

/*
 * Whether it may come of a switch that is silent: nothing came, or a rank has left that noticed it
 * first, and whose word of that was overtaken by its farewell. To be to blame it must have been
 * silent for half of the time in which nothing moved, as what others tell of it is a little old; or
 * for ten beats, as others may have waited for less.
 */
static bool is_of_switch(const struct gw_io *io, const struct gw_communicator_event *event,
                         char name[GW_NEIGHBOURS_NAME_MAX])
{
    bool is_of_rank = event->reason == GW_JOB_LOST && event->about < io->plan.world;
    gw_time least = io->plan.stall / 2;
    if (io->plan.stall == 0 || least > BEATS_SILENT * GW_STATION_BEAT)
        least = BEATS_SILENT * GW_STATION_BEAT;
    return (is_of_rank || event->reason == GW_JOB_SILENT || event->reason == GW_JOB_STALLED) &&
           gw_ways_finds_silent_switch(io->ways, least, name);
}

/*
 * Whether it comes of this process, which did not run: the others have given it up, and what they
 * said to that, or that they have left, is what it read first.
 */
static bool is_own_absence(const struct gw_io *io, const struct gw_communicator_event *event,
                           gw_time *away)
{
    *away = gw_loop_away(gw_station_loop(io->station), AWAY_SHOWS);
    return *away > AWAY && (event->reason == GW_JOB_LOST || event->reason == GW_JOB_SILENT ||
                            event->reason == GW_JOB_STALLED);
}

/* The others say that this rank is silent, or lost. */
static int say_given_up(const struct line *line, int error)
{
    const struct gw_io *io = line->io;
    const char *advice = io->was_opened ? "" : ": are via and server equal on all?";
    return SAY(line, error, "rank %u, which is this one, was waited for by another one in vain%s",
               io->plan.rank, advice);
}

/* Not all have come in time. */
static int say_no_beginning(const struct line *line)
{
    const struct gw_io *io = line->io;
    uint32_t world = io->plan.world, server = gw_ways_silent_server(io->ways);
    if (server < io->server_count) {
        enum gw_attach_reason refusal = gw_ways_refusal(io->ways, server);
        if (refusal != GW_ATTACH_OK)
            return SAY(line, GRADWIRE_ERR_PEER, "%s refuses us: %s", io->servers[server],
                       gw_attach_reason_text(refusal));
        return SAY(line, GRADWIRE_ERR_TIMED_OUT, "no answer from %s at %s for %g s",
                   io->plan.server_count ? "the server" : "rank 0", io->servers[server],
                   seconds_of(io));
    }
    if (gw_mesh_place(gw_communicator_mesh(io->comm), io->plan.rank))
        return SAY(line, GRADWIRE_ERR_TIMED_OUT,
                   "all %u ranks have come, but within %g s not to the same sums: are via and "
                   "server equal on all?",
                   world, seconds_of(io));
    uint32_t missing =
        io->home ? gw_overlay_home_missing(io->home, io->job, io->plan.world) : world;
    if (missing < world)
        return SAY(line, GRADWIRE_ERR_TIMED_OUT,
                   "the job did not begin within %g s: not all of its %u ranks have come, rank %u "
                   "for one has not",
                   seconds_of(io), world, missing);
    if (io->home)
        return SAY(line, GRADWIRE_ERR_TIMED_OUT,
                   "the job did not begin within %g s: all of its %u ranks have come, but one of "
                   "them may be dead",
                   seconds_of(io), world);
    return SAY(line, GRADWIRE_ERR_TIMED_OUT,
               "the job did not begin within %g s: not all of its %u ranks have come to %s at %s",
               seconds_of(io), world, io->plan.server_count ? "the server" : "rank 0",
               server_name(io, 0));
}

static int say_silence(const struct line *line, const struct gw_communicator_event *event)
{
    const struct gw_io *io = line->io;
    enum gw_attach_reason refusal = gw_ways_switch_refusal(io->ways);
    if (gw_ways_is_cut_off(io->ways) && refusal != GW_ATTACH_OK)
        return SAY(line, GRADWIRE_ERR_PEER, "the switch at %s refuses us: %s", io->plan.switch_,
                   gw_attach_reason_text(refusal));
    if (gw_ways_is_cut_off(io->ways))
        return SAY(line, GRADWIRE_ERR_TIMED_OUT, "no answer from the switch at %s for %g s",
                   io->plan.switch_, seconds_of(io));
    if (!io->was_opened)
        return say_no_beginning(line);
    if (event->reason == GW_JOB_SILENT && event->server < io->server_count)
        return SAY(line, GRADWIRE_ERR_PEER, "the server (%s) is silent",
                   server_name(io, event->server));
    if (event->server < io->server_count)
        return SAY(line, GRADWIRE_ERR_TIMED_OUT,
                   "no result from the server (%s) for %g s; some rank may not have started the "
                   "call, or have left",
                   server_name(io, event->server), seconds_of(io));
    if (event->about == io->plan.rank)
        return say_given_up(line, GRADWIRE_ERR_TIMED_OUT);
    if (event->about < io->plan.world)
        return SAY(line, GRADWIRE_ERR_TIMED_OUT, "nothing came from rank %u for %g s", event->about,
                   seconds_of(io));
    return SAY(line, GRADWIRE_ERR_TIMED_OUT, "no progress for %g s", seconds_of(io));
}

static int say_lost(const struct line *line, uint32_t rank)
{
    const struct gw_io *io = line->io;
    if (rank == io->plan.rank)
        return say_given_up(line, GRADWIRE_ERR_PEER);
    bool is_server = rank == 0 && io->plan.server_count == 0 && io->plan.join[0] && !io->home;
    if (is_server)
        return SAY(line, GRADWIRE_ERR_PEER, "rank 0, the server at %s, is lost", io->plan.join);
    return SAY(line, GRADWIRE_ERR_PEER, "rank %u is lost", rank);
}

static int say_notice(const struct line *line, uint32_t about)
{
    if (about < line->io->plan.world)
        return SAY(line, GRADWIRE_ERR_PEER,
                   "rank %u announces its bursts differently from those that came before it",
                   about);
    return SAY(line, GRADWIRE_ERR_PEER,
               "no threshold of at most %d packets follows from the path of the job's bursts",
               GW_NOTICE_PACKETS_MAX);
}

/* Reasons that say it all, once it is known whose they are. */
static int say_reason(const struct line *line, const struct gw_communicator_event *event)
{
    const struct gw_io *io = line->io;
    bool is_rank = event->about < io->plan.world && event->server >= io->server_count;
    if (event->reason == GW_JOB_MISMATCH && is_rank && event->room)
        return SAY(line, GRADWIRE_ERR_PEER,
                   "a message of rank %u with tag %u has at least %" PRIu64
                   " bytes, and its receive has room for %" PRIu64,
                   event->about, event->tag, event->bytes, event->room);
    if (event->reason == GW_JOB_MISMATCH && is_rank)
        return SAY(line, GRADWIRE_ERR_PEER,
                   "a call or message of rank %u is of another size, kind, via or bound than "
                   "another rank's",
                   event->about);
    if (event->reason == GW_JOB_BROKEN && is_rank)
        return SAY(line, GRADWIRE_ERR_PEER, "rank %u sent a message that makes no sense",
                   event->about);
    if (is_rank)
        return SAY(line, GRADWIRE_ERR_PEER, "rank %u: %s", event->about,
                   gw_job_reason_text(event->reason));
    return SAY(line, GRADWIRE_ERR_PEER, "the server (%s) says: %s", server_name(io, event->server),
               gw_job_reason_text(event->reason));
}

static int describe(const struct line *line, const struct gw_communicator_event *event)
{
    const struct gw_io *io = line->io;
    char name[GW_NEIGHBOURS_NAME_MAX];
    gw_time away;
    if (is_own_absence(io, event, &away))
        return SAY(
            line, GRADWIRE_ERR_PEER,
            "rank %u, which is this one, did not run for %.1f s, and the job ended meanwhile",
            io->plan.rank, (double)away / GW_S);
    if (is_of_switch(io, event, name))
        return SAY(line, GRADWIRE_ERR_TIMED_OUT, "the switch at %s does not answer", name);
    if (event->reason == GW_JOB_SILENT || event->reason == GW_JOB_STALLED)
        return say_silence(line, event);
    switch (event->reason) {
    case GW_JOB_LOST:
        if (event->about < io->plan.world)
            return say_lost(line, event->about);
        return SAY(line, GRADWIRE_ERR_PEER, "a rank is lost");
    case GW_JOB_OVERFLOW:
        return SAY(line, GRADWIRE_ERR_OVERFLOW,
                   "a result of integers does not fit their type (int32, int64 or uint8)");
    case GW_JOB_RANK:
        return SAY(line, GRADWIRE_ERR_PEER, "another process is rank %u of the job, and alive",
                   io->plan.rank);
    case GW_JOB_NOTICE:
        return say_notice(line, event->about);
    default:
        return say_reason(line, event);
    }
}

/* A link that takes no long packets lets sessions come up, and then nothing arrives. */
static void add_too_long(const struct line *line)
{
    const struct gw_datapath_stats *udp = gw_datapath_stats(gw_station_datapath(line->io->station));
    size_t used = strlen(line->text);
    if (udp->too_long)
        snprintf(line->text + used, line->size - used,
                 "; %" PRIu64 " packets were longer than a link takes: are values too many?",
                 udp->too_long);
}

int gw_io_describe(const struct gw_io *io, const struct gw_communicator_event *event, char *text,
                   size_t size)
{
    const struct line line = {io, text, size};
    int error = describe(&line, event);
    add_too_long(&line);
    return error;
}

int gw_io_describe_refusal(const struct gw_refusal *refusal, char *text, size_t size)
{
    static const char *const types[GW_DTYPES] = {
        [GW_DTYPE_F32] = "float32", [GW_DTYPE_F16] = "float16", [GW_DTYPE_BF16] = "bfloat16",
        [GW_DTYPE_I32] = "int32",   [GW_DTYPE_F64] = "float64", [GW_DTYPE_I64] = "int64",
        [GW_DTYPE_U8] = "uint8"};
    const struct gw_value_shape *asked = &refusal->asked, *found = &refusal->found;
    const struct line line = {NULL, text, size};
    const char *what = refusal->is_pull ? "pull" : "push";
    switch (refusal->why) {
    case GW_REFUSED_UNKNOWN_KEY:
        return SAY(&line, GRADWIRE_ERR_INVALID,
                   "pull of key %" PRIu64 ": nobody has pushed it (rank %u would keep it)",
                   refusal->key, refusal->rank);
    case GW_REFUSED_OTHER_SHAPE:
        return SAY(&line, GRADWIRE_ERR_INVALID,
                   "%s of key %" PRIu64 ": %" PRIu64 " %s, but its value at rank %u is %" PRIu64
                   " %s",
                   what, refusal->key, asked->count, types[asked->type], refusal->rank,
                   found->count, types[found->type]);
    case GW_REFUSED_OVERFLOW:
        return SAY(&line, GRADWIRE_ERR_OVERFLOW,
                   "push of key %" PRIu64
                   ": a sum of %s does not fit the type; the value at rank %u is as it was",
                   refusal->key, types[asked->type], refusal->rank);
    case GW_REFUSED_NO_MEMORY:
        return SAY(&line, GRADWIRE_ERR_NO_MEMORY,
                   "%s of key %" PRIu64 ": rank %u has no memory for %" PRIu64 " bytes", what,
                   refusal->key, refusal->rank, asked->count * gw_dtype_size(asked->type));
    case GW_REFUSED_NOT:
        break;
    }
    return SAY(&line, GRADWIRE_ERR_INVALID, "%s of key %" PRIu64 " is refused", what, refusal->key);
}
