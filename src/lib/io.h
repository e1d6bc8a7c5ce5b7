/*
 * An I/O thread of an open job: it owns its nodes and sockets. The application talks to it
 * by two rings, each with an eventfd that wakes the other side; while it waits it may do what the
 * thread would do (io_drive.c). The job is one communicator
 * (core/calls/communicator.h) over one endpoint; rank 0 has the job's home besides, if no other
 * process is the server.
 *
 * A life: opening (all ranks come), running (calls), leaving, and lingering until nobody needs this
 * process. A failure ends all calls and takes no more; what it was is in `text`, which is written
 * before the first completion that reports it.
 */
#ifndef GW_LIB_IO_H
#define GW_LIB_IO_H

#include "core/calls/communicator.h"
#include "gradwire.h"
#include "net/key.h"
#include "net/udp/udp.h"

enum {
    GW_IO_TEXT_MAX = 256,
    GW_IO_CALLS_MAX = GRADWIRE_CALLS_MAX,
    GW_IO_NAME_MAX = 256,
    GW_IO_SERVERS_MAX = GW_COMMUNICATOR_SERVERS_MAX,
    GW_IO_CHANNELS_MAX = 16,
};

/* What an I/O thread is started with: options that have been checked. */
struct gw_io_plan {
    enum gradwire_via via; /* whose servers must be there when the job opens */
    bool rings;            /* large sums of which nobody says how they go: around a ring */
    uint16_t rank;
    uint16_t world;
    uint16_t channel; /* number of this thread among those of the job, see channels.h */
    uint16_t channels;
    uint16_t values;
    uint16_t window;
    uint32_t mtu;     /* payload bytes of a packet between ranks */
    uint64_t largest; /* bytes of a call with a bound */
    gw_time stall;    /* without progress for so long, the job fails */
    gw_time spin;     /* who waits sleeps only after so long */
    struct gw_key key;
    bool authenticates;
    bool encrypts;
    char job[GW_IO_NAME_MAX];
    char join[GW_IO_NAME_MAX]; /* of rank 0, which is the server if there is no other; with another
                                  channel than the first it listens at any port */
    char servers[GW_IO_SERVERS_MAX][GW_IO_NAME_MAX];
    uint32_t server_count;        /* 0: rank 0 is the server */
    char switch_[GW_IO_NAME_MAX]; /* empty: none but the server's own */
    char bind[GW_IO_NAME_MAX];    /* empty: any */
    const struct gw_datapath_ops *datapath;
    struct gw_datapath_faults faults;
    struct gw_sock_addr group; /* where results go that are added up here; length 0: to each */
    bool chooses_group;        /* then some group */
    bool hears_groups;
    uint16_t paths;    /* source ports */
    uint64_t rate_bps; /* of the ways, for flows; 0: as measured */
    uint8_t notice;    /* gw_notice_option: how bursts are announced */
    bool signals_by_option;
    struct gw_transport transport;       /* of flows */
    struct gw_transport parts_transport; /* of calls that may lose a part */
};

struct gw_completion {
    uint64_t call;    /* 0: the job is open */
    uint64_t bytes;   /* of a message: that have arrived; else 0 */
    uint64_t missing; /* fragments that the call does without */
    int error;        /* enum gradwire_error; the text of a failure is gw_io_text() */
};

struct gw_io;

/* Opens sockets and starts the thread. `first`: who else is heard by the same descriptor, or NULL.
 * Returns GRADWIRE_OK, or an error with `error` filled. */
int gw_io_start(const struct gw_io_plan *plan, const struct gw_io *first, struct gw_io **io,
                char *error);

/* Tells the thread to leave the job; what is in work fails. No calls may follow. */
void gw_io_leave(struct gw_io *io);

/* The same because `other`, a job of the same ranks, has failed, whose reason all then hear here,
 * too; or (NULL) because of something else in this process. */
void gw_io_fail_like(struct gw_io *io, const struct gw_io *other);

/* The same, then waits until it has, and frees everything. */
void gw_io_stop(struct gw_io *io);

/* Where it listens. */
uint16_t gw_io_port(const struct gw_io *io);

/* `waits`: gw_io_receive() follows at once. False: too much is in work. */
bool gw_io_send(struct gw_io *io, const struct gw_call *call, bool waits);

/*
 * The next completion; waits up to `wait_ms` for it, -1: as long as it takes, which the plan's
 * stall limits. False: none came.
 */
bool gw_io_receive(struct gw_io *io, struct gw_completion *completion, int wait_ms);

/* A descriptor that is readable when there may be completions, until it is drained: to be drained
 * before they are received. It can be made readable again. */
int gw_io_fd(const struct gw_io *io);
void gw_io_drain(const struct gw_io *io);
void gw_io_recall(const struct gw_io *io);

/* The error that has ended the job, or GRADWIRE_OK. */
int gw_io_failure(const struct gw_io *io);

/* What it was, as soon as that or a completion says that there is one. */
const char *gw_io_text(const struct gw_io *io);

/* Why this call alone, which has ended, was refused; NULL: it was not. */
const char *gw_io_refusal(const struct gw_io *io, uint64_t call);

/* Counters as of the last completion. */
void gw_io_stats(struct gw_io *io, struct gradwire_stats *stats);

#endif
