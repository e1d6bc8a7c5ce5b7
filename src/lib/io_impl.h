/*
 * The inside of the I/O thread, shared by io.c (the thread and its phases), io_drive.c (the
 * application's side, and who of both drives), io_calls.c (calls in work), io_job.c (what this
 * process has of the job) and io_text.c (the words for failures). Nobody else includes it.
 *
 * Everything here is of whoever drives but for what gw_io says otherwise.
 */
#ifndef GW_LIB_IO_IMPL_H
#define GW_LIB_IO_IMPL_H

#include <pthread.h>

#include "lib/io.h"
#include "lib/spsc.h"
#include "net/ranks/ways.h"
#include "net/yield.h"

enum gw_io_phase {
    GW_IO_OPENING,   /* all ranks have come: running; they do not: over */
    GW_IO_RUNNING,   /* a failure: over; the application: leaving */
    GW_IO_LEAVING,   /* all have left, or no answer: lingering */
    GW_IO_LINGERING, /* nobody needs this process: over */
    GW_IO_OVER,      /* the application has said that it is done: the thread ends */
};

/* Between the two: the application asks, or takes that back, and all else is the thread's to say.
 */
enum gw_io_driver {
    GW_IO_THREAD, /* the thread, until it parks */
    GW_IO_ASKED,  /* the thread, which the application asks to park */
    GW_IO_PARKED, /* nobody, or the application; the thread will come back by itself */
};

/* What the application says. */
struct gw_command {
    struct gw_call call;
    bool leaves; /* it is done, in place of a call, ... */
    bool fails;  /* ... as the job has failed, for this: */
    uint8_t reason;
    uint32_t about;
};

struct gw_io {
    struct gw_io_plan plan;
    struct gw_spsc commands, completions; /* shared with the application */
    int to_thread, to_app;                /* eventfds */
    atomic_bool is_awaited;               /* the application looks for completions and does not
                                             sleep: nor does who drives */
    struct gw_yield yield;                /* while it rests both do */
    pthread_t thread;
    pthread_mutex_t turn;             /* who holds it drives */
    _Atomic enum gw_io_driver driver; /* who drives, by and by */
    atomic_uint driven;        /* calls that the application has begun to drive, modulo 2^32 */
    uint64_t drives;           /* the application's own: the call for which it may, or 0 */
    char text[GW_IO_TEXT_MAX]; /* written before the failure is reported, as are the next two */
    enum gw_job_reason reason; /* what ranks say of it to each other */
    uint32_t about;
    atomic_int failure;                             /* `error`, once those are written */
    char refusals[GW_IO_CALLS_MAX][GW_IO_TEXT_MAX]; /* of the last call of each place, or empty;
                                                       written before its completion */
    pthread_mutex_t stats_lock;
    struct gradwire_stats stats; /* under the lock */

    /* Of whoever drives. */
    bool is_driven;      /* by the application */
    bool calls_thread;   /* an application that has driven, until the thread has the turns again */
    gw_time parks_until; /* by the clock: until then the thread may be parked, */
    uint32_t parks_in;   /* after so many turns at most, which do not sleep */
    struct gw_station *station;
    struct gw_overlay_home *home; /* NULL: another process is the server */
    struct gw_endpoint *endpoint; /* of this rank */
    void *comm_memory;
    struct gw_communicator *comm;
    struct gw_ways *ways;
    const char *servers[GW_IO_SERVERS_MAX]; /* HOST:PORT, of rank 0 if there are no others */
    uint32_t server_count;
    uint32_t job; /* number */
    enum gw_io_phase phase;
    gw_time phase_until;
    int error;                       /* what ended the job, once something has */
    bool is_leaving;                 /* the application has said so */
    bool was_opened;                 /* completion 0 is out */
    char refused[GW_IO_TEXT_MAX];    /* what was said last of somebody who was refused */
    uint64_t calls[GW_IO_CALLS_MAX]; /* numbers of those in work, in order */
    uint32_t call_count;
};

/* io.c. */

static inline gw_time gw_io_now(const struct gw_io *io)
{
    return gw_loop_now(gw_station_loop(io->station));
}

/* As of the last look at the clock; see loop.h. */
static inline gw_time gw_io_time(const struct gw_io *io)
{
    return gw_loop_time(gw_station_loop(io->station));
}

/* Enters a phase, which lasts so long at most. */
void gw_io_enter(struct gw_io *io, enum gw_io_phase phase, gw_time wait);

/* One turn of everything, which sleeps until something comes or is due. */
void gw_io_turn(struct gw_io *io);

/* Whether the turns may pause for a moment with so many calls in work: the job runs, no other is
 * in work, and nobody may ask for a value that is kept here. */
bool gw_io_may_park(const struct gw_io *io, uint32_t calls);

/* Whether nothing is left to be done without an arrival, for a while. */
bool gw_io_is_quiet(const struct gw_io *io);

/* io_drive.c. */

/* Wakes the other side of a ring. */
void gw_io_wake(int fd);
void gw_io_empty(int fd);

/* For how long at a time. */
gw_time gw_io_parks_for(const struct gw_io *io);

/* By the thread, which holds `turn`: leaves it to the application, if it may, for a while. */
void gw_io_park(struct gw_io *io);

/* Lets others have the core, by who looks for something without sleeping. */
void gw_io_yield(struct gw_io *io);

/* io_job.c. */

/* Opens the station, makes what this process has of the job, and begins to come to it. Returns 0,
 * or a negative error with `error` filled; gw_io_close_job() follows in either case. */
int gw_io_open_job(struct gw_io *io, char *error);
void gw_io_close_job(struct gw_io *io);

/* Whether nobody is left who needs this process. */
bool gw_io_is_deserted(const struct gw_io *io);

/* io_calls.c. */

/* Takes what the application has called. */
void gw_io_take_commands(struct gw_io *io);

/* All ranks are there: calls may come. */
void gw_io_opened(struct gw_io *io);

/* A call in work has ended; what has failed meanwhile is passed over. */
void gw_io_end_call(struct gw_io *io, uint64_t call, uint64_t bytes, uint64_t missing);

/* A call alone is refused, and the job goes on. */
void gw_io_refuse_call(struct gw_io *io, uint64_t call, int error, const char *text);

/* Ends the job. What is in work has failed, or does so now. The first error is the job's. */
void gw_io_fail(struct gw_io *io, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* io_text.c. */

/* Why the job has failed: writes one line, and returns an enum gradwire_error. */
int gw_io_describe(const struct gw_io *io, const struct gw_communicator_event *event, char *text,
                   size_t size);

/* Why a push or pull was refused. */
int gw_io_describe_refusal(const struct gw_refusal *refusal, char *text, size_t size);

#endif
