/*
 * The inside of the I/O thread, shared by io.c, io_calls.c and the two kinds of job: io_served.c
 * and io_ranks.c. Nobody else includes it.
 *
 * io.c has the thread, its phases and its station; a kind has the nodes of the job, and says what
 * happens to them. Everything here is the thread's own but for what gw_io says otherwise.
 */
#ifndef GW_LIB_IO_IMPL_H
#define GW_LIB_IO_IMPL_H

#include <pthread.h>

#include "core/tensor.h"
#include "lib/io.h"
#include "lib/spsc.h"
#include "net/station/station.h"

enum gw_io_phase {
    GW_IO_ATTACHING, /* all dials are up: joining */
    GW_IO_JOINING,   /* joined: running; refused: over */
    GW_IO_RUNNING,   /* a failure: over; the application: leaving */
    GW_IO_LEAVING,   /* left, or no answer: lingering */
    GW_IO_LINGERING, /* all others have left: over */
    GW_IO_OVER,      /* the application has said that it is done: the thread ends */
};

/* A kind of job. What open() makes is in io->job. */
struct gw_io_kind {
    /*
     * Opens the station, makes what this process has of the job, and asks those it needs for a
     * session. Returns 0, or a negative error with `error` filled; close() follows in either case.
     */
    int (*open)(struct gw_io *io, char *error);
    /* Frees it; the station is closed, if it ever was open. */
    void (*close)(struct gw_io *io);
    /* While attaching: goes on to join, or fails if that is late. NULL: open() begins to join. */
    void (*attach)(struct gw_io *io, bool is_late);
    /* Starts a call; 0, or a negative error: the job takes no more. */
    int (*start)(struct gw_io *io, const struct gw_command *command);
    void (*take_neighbour)(struct gw_io *io, const struct gw_neighbour_event *event);
    /* Takes all events of its nodes. */
    void (*take_events)(struct gw_io *io);
    /* Whether it has events, or something to do, without anything arriving. */
    bool (*has_work)(const struct gw_io *io);
    /* The phase is leaving now. */
    void (*leave)(struct gw_io *io);
    /* The job has failed here: tells the others. Calls in work are dropped. */
    void (*fail)(struct gw_io *io);
    /* While lingering: whether nobody is left who needs this process. */
    bool (*is_deserted)(const struct gw_io *io);
    /* While over: whether others still are to hear something. */
    bool (*is_owing)(const struct gw_io *io);
    void (*stats)(const struct gw_io *io, struct gradwire_stats *stats);
};

struct gw_io {
    struct gw_io_plan plan;
    struct gw_spsc commands, completions; /* shared with the application */
    int to_thread, to_app;                /* eventfds */
    pthread_t thread;
    char text[GW_IO_TEXT_MAX];                      /* written before the failure is reported */
    char refusals[GW_IO_CALLS_MAX][GW_IO_TEXT_MAX]; /* of the last call of each place, or empty;
                                                       written before its completion */
    pthread_mutex_t stats_lock;
    struct gradwire_stats stats; /* under the lock */

    /* The thread's own. */
    const struct gw_io_kind *kind;
    void *job;
    struct gw_station *station;
    uint32_t address; /* of this rank's node */
    enum gw_io_phase phase;
    gw_time phase_until;
    int error;                       /* what ended the job, once something has */
    bool is_leaving;                 /* the application has said so */
    bool was_opened;                 /* completion 0 is out */
    uint64_t calls[GW_IO_CALLS_MAX]; /* numbers of those in work, in order */
    uint32_t call_count;
};

/* A job through a server, and one among ranks. */
extern const struct gw_io_kind gw_io_served, gw_io_ranks;

/* io.c. */

static inline gw_time gw_io_now(const struct gw_io *io)
{
    return gw_loop_now(gw_station_loop(io->station));
}

/* Enters a phase, which lasts so long at most. */
void gw_io_enter(struct gw_io *io, enum gw_io_phase phase, gw_time wait);

/* What a kind needs of the station. */
struct gw_io_station {
    uint32_t packets;
    uint32_t node_address;
    uint16_t peers_max;
    bool accepts; /* others may dial us */
};

/* Opens io->station; 0, or a negative error with `error` filled. */
int gw_io_open_station(struct gw_io *io, const struct gw_io_station *station, char *error);

/* Bytes of payload that its packets have room for. */
uint32_t gw_io_mtu(const struct gw_io_plan *plan);

/* Whether the others join this rank. */
bool gw_io_is_joined(const struct gw_io_plan *plan);

/* Wakes the other side of a ring. */
void gw_io_wake(int fd);

/* What a GW_COMMAND_REDUCE sums. */
static inline struct gw_tensor gw_command_tensor(const struct gw_command *command)
{
    return (struct gw_tensor){
        .in = command->in,
        .out = command->out,
        .count = command->count,
        .type = (enum gw_dtype)command->type,
        .op = (enum gw_op)command->op,
    };
}

/* io_calls.c. */

/* Takes what the application has called. */
void gw_io_take_commands(struct gw_io *io);

/* All ranks are there: calls may come. */
void gw_io_joined(struct gw_io *io);

/* A call in work has ended; what has failed meanwhile is passed over. */
void gw_io_end_call(struct gw_io *io, uint64_t call, uint64_t bytes);
/* The oldest call in work has. */
void gw_io_end_oldest(struct gw_io *io);

/* A call alone is refused, and the job goes on. */
void gw_io_refuse_call(struct gw_io *io, uint64_t call, int error, const char *text);

/* Ends the job. What is in work has failed, or does so now. The first error is the job's. */
void gw_io_fail(struct gw_io *io, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
