/*
 * The inside of the communicator, shared by its files and by nobody else. See communicator.h.
 *
 * A call has a slot from its start until its last event has been polled. Sums by servers wait in a
 * row of their via for its stakes, collectives by flows in one for a run and a way; so each row
 * begins in the order of the calls. Messages, pushes and pulls wait in their own modules.
 *
 * Invariant: once the state is over, no module works on the memory of a call.
 */
#ifndef GW_CORE_COMMUNICATOR_IMPL_H
#define GW_CORE_COMMUNICATOR_IMPL_H

#include "base/assert.h"
#include "base/index_queue.h"
#include "core/calls/communicator.h"
#include "core/ranks/coll_run.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/messages.h"

enum {
    GW_COMMUNICATOR_RUNS = 2, /* collectives by flows that overlap; and of those with parts */
    GW_COMMUNICATOR_STAKES_MAX = 2 * GW_COMMUNICATOR_SERVERS_MAX,
    /* Each call has one event; besides, OPEN and the last one. */
    GW_COMMUNICATOR_EVENTS_MAX = GW_COMMUNICATOR_CALLS_MAX + 2,
};

/* Elements of a call: their bytes on all ranks can be counted. */
#define GW_COMMUNICATOR_COUNT_MAX (UINT64_C(1) << 48)

enum gw_communicator_state {
    GW_COMMUNICATOR_OPENING, /* all whom calls by the default need: running */
    GW_COMMUNICATOR_RUNNING, /* gw_communicator_leave(): leaving */
    GW_COMMUNICATOR_LEAVING, /* the mesh has left, then the stakes: over */
    GW_COMMUNICATOR_OVER,
};

enum gw_stake_state {
    GW_STAKE_OUT,     /* a call that needs it, and the server's address: joining */
    GW_STAKE_JOINING, /* GW_EVENT_JOINED: in */
    GW_STAKE_IN,      /* when the mesh has left: leaving */
    GW_STAKE_LEAVING, /* GW_EVENT_LEFT, or that nobody answers: gone */
    GW_STAKE_GONE,
};

/* This rank's part in a shard. */
struct gw_stake {
    void *memory; /* of the member */
    struct gw_member *member;
    struct gw_worker *worker; /* NULL before it has joined */
    uint32_t job;             /* of the shard */
    uint32_t server;          /* its number */
    uint32_t values;          /* per fragment; once it has joined */
    enum gw_stake_state state;
    bool is_wanted;   /* it is to join */
    bool is_attached; /* to the endpoint, with its worker */
};

struct gw_call_slot {
    struct gw_call call;
    uint64_t order; /* of a sum or collective: its number among them all */
    uint64_t turn;  /* of a sum by servers: its number among them */
    gw_time since;  /* likewise: its start */
    uint32_t next;  /* of its parts, the first that has not begun */
    uint32_t parts; /* begun, without a result */
    void *aside;    /* where the result of a reduce goes at those who do not want it; or NULL */
    int32_t token;  /* what a barrier adds up */
    struct gw_parts terms; /* of a call with parts; what the caller does not want to know is in
                              `notes` */
    void *notes;
    bool is_busy;
    bool is_by_servers; /* a sum by servers */
};

/* Slots in the order of their calls. */
struct gw_call_row {
    uint32_t slots[GW_COMMUNICATOR_CALLS_MAX];
    struct gw_index_queue queue; /* over them */
};

struct gw_communicator_run {
    struct gw_coll_run *run;
    void *memory; /* of it */
    uint32_t slot;
    uint64_t order; /* of the collective, as its slot's */
    uint32_t tag;   /* its first one */
    uint64_t tags;  /* how many there are */
    bool is_running;
    bool is_trailing; /* its call has ended, and copies of what it sent are still under way */
};

struct gw_communicator {
    struct gw_communicator_cfg cfg;
    enum gw_communicator_state state;
    struct gw_mesh *mesh;
    struct gw_messages *messages;
    struct gw_store *store;
    bool has_met;  /* the mesh has */
    bool has_left; /* likewise */

    uint32_t addresses[GW_COMMUNICATOR_SERVERS_MAX]; /* of servers; 0: not known yet */
    bool is_down[GW_COMMUNICATOR_SERVERS_MAX];       /* a server has gone */
    struct gw_stake stakes[GW_COMMUNICATOR_STAKES_MAX];

    struct gw_call_slot slots[GW_COMMUNICATOR_CALLS_MAX];
    uint32_t busy;    /* slots */
    uint32_t in_work; /* calls that have not ended */
    uint32_t moves;   /* of these, the messages, pushes and pulls */
    uint64_t ordered; /* sums and collectives, ever */
    uint64_t turns;   /* sums by servers, ever */
    uint64_t rerouted;
    struct gw_call_row sums[GW_VIA_RING]; /* by servers, that have not begun; by via */
    struct gw_call_row collectives;       /* by flows, that have not begun */

    struct gw_communicator_run runs[2 * GW_COMMUNICATOR_RUNS]; /* those for parts are the last */
    uint32_t run_count;
    struct gw_event *kept; /* without payload: what came before its time */
    uint32_t kept_count, kept_room;

    gw_time ask_at;   /* a question begins or ends; GW_TIME_NEVER: no sum by servers waits */
    uint8_t question; /* its payload */
    bool is_asking;

    gw_time progress_at; /* of what others are to do, see communicator_fail.c */
    uint64_t arrivals;   /* as of then */
    bool is_touched;     /* something has happened since the last poll */
    struct gw_communicator_event events[GW_COMMUNICATOR_EVENTS_MAX];
    struct gw_index_queue waiting; /* of these, the ones that have not been polled */
};

static inline bool gw_communicator_has_payload(const struct gw_communicator *comm)
{
    return comm->cfg.kernels != NULL;
}

/* The rank that collectives by flows send to. */
static inline uint32_t gw_communicator_next(const struct gw_communicator *comm)
{
    return (comm->cfg.rank + 1u) % comm->cfg.world;
}

/* Appends a slot, for which there is room. */
static inline void gw_call_row_push(struct gw_call_row *row, uint32_t slot)
{
    row->slots[gw_index_queue_push(&row->queue)] = slot;
}

/* The number of a call in tags. */
static inline uint32_t gw_call_number(uint64_t order)
{
    return order & GW_MESH_CALL_MASK;
}

/* The tag of a question about a sum by servers. */
static inline uint32_t gw_call_question(const struct gw_call_slot *slot)
{
    return gw_call_number(slot->order) << GW_MESH_SEGMENT_BITS | slot->call.via;
}

/* communicator.c */

void gw_communicator_post(struct gw_communicator *comm, const struct gw_communicator_event *event);
/* Ends a call with this event. */
void gw_communicator_end(struct gw_communicator *comm, uint32_t slot,
                         const struct gw_communicator_event *event);

/* communicator_check.c */

/* Whether this is a call that the communicator takes, but for what runs say. `via` is not the
 * default. */
bool gw_communicator_takes(const struct gw_communicator *comm, const struct gw_call *call);
static inline bool gw_call_is_sum(const struct gw_call *call)
{
    return call->kind == GW_CALL_ALLREDUCE || call->kind == GW_CALL_REDUCE ||
           call->kind == GW_CALL_BARRIER;
}
static inline bool gw_call_is_move(const struct gw_call *call)
{
    return call->kind >= GW_CALL_SEND;
}

/* communicator_stakes.c */

/* Attaches the members of all stakes. Returns 0 or the error of gw_app_attach(). */
int gw_communicator_attach_stakes(struct gw_communicator *comm);
/* Detaches what is attached; workers' memory stays. */
void gw_communicator_detach_stakes(struct gw_communicator *comm);
/* Gives memory of workers back; they are detached. */
void gw_communicator_free_stakes(struct gw_communicator *comm);
/* The stakes of a via are to join. */
void gw_communicator_want_stakes(struct gw_communicator *comm, enum gw_via via, gw_time now);
/* A server's address is known. */
void gw_communicator_move_stakes(struct gw_communicator *comm, uint32_t server, gw_time now);
/* Whether calls can go by all of a via. */
bool gw_communicator_has_stakes(const struct gw_communicator *comm, enum gw_via via);
/* Takes an event of an application. False: it is not of a stake. */
bool gw_communicator_stakes_event(struct gw_communicator *comm, const struct gw_event *event,
                                  gw_time now);
/* Joins or leaves what is to, and fails the job if a stake has failed without a call that could
 * have said so. */
void gw_communicator_tend_stakes(struct gw_communicator *comm, gw_time now);
bool gw_communicator_are_stakes_gone(const struct gw_communicator *comm);
void gw_communicator_count_stakes(const struct gw_communicator *comm, struct gw_worker_stats *sums);

/* communicator_sums.c */

/* Begins the sums by servers that can. */
void gw_communicator_begin_sums(struct gw_communicator *comm, gw_time now);
/* A part of one is there. */
void gw_communicator_part_done(struct gw_communicator *comm, uint32_t slot);

/* communicator_parts.c */

/* Whether a call with parts can be done, as far as it is for its parts. */
bool gw_communicator_takes_parts(const struct gw_communicator *comm, const struct gw_call *call);
/* Whether a call is a collective by flows because of its parts. */
bool gw_communicator_is_by_parts(const struct gw_call *call);
/* The schedule by which an all-reduce with parts goes. */
const struct gw_coll_ops *gw_communicator_parts_coll(const struct gw_call *call);
/* Copies the terms of a call that begins, with memory for what the caller does not want to know.
 * Returns 0 or GW_ERR_NO_MEMORY. */
int gw_communicator_begin_parts(struct gw_communicator *comm, uint32_t slot);
/* A sum by servers is there: nothing is missing of its results. */
void gw_communicator_note_sums(const struct gw_communicator *comm, struct gw_call_slot *slot);
/* Gives that memory back. */
void gw_communicator_end_parts(struct gw_communicator *comm, struct gw_call_slot *slot);
/* Packets of the longest message that may lose a part. */
uint32_t gw_communicator_packets_max(const struct gw_communicator_cfg *cfg);

/* communicator_collectives.c */

/* What a run is made with, one for parts too. */
struct gw_coll_run_cfg gw_communicator_run_cfg(const struct gw_communicator_cfg *cfg);
struct gw_coll_run_cfg gw_communicator_parts_cfg(const struct gw_communicator_cfg *cfg);
/* How many runs there are. */
uint32_t gw_communicator_run_count(const struct gw_communicator_cfg *cfg);
/* What the run of this number is made with. */
struct gw_coll_run_cfg gw_communicator_cfg_of(const struct gw_communicator_cfg *cfg, uint32_t run);
/* The addresses of ranks are known: makes runs. */
void gw_communicator_meet(struct gw_communicator *comm, gw_time now);
/* Whether a call can be a collective by flows: also if its segments can be numbered. */
bool gw_communicator_takes_collective(struct gw_communicator *comm, uint32_t slot);
/* Whether a sum or collective of this order is to wait: a collective runs that began long before
 * it.
 */
bool gw_communicator_is_ahead(const struct gw_communicator *comm, uint64_t order);
/* Takes note of runs that have ended, and begins the collectives that can. */
void gw_communicator_advance_runs(struct gw_communicator *comm, gw_time now);
/* Hands a flow's event to runs; true: it is one's. */
bool gw_communicator_runs_event(struct gw_communicator *comm, const struct gw_event *event,
                                gw_time now);
/* A message has come that nothing is posted for, or too little: fails the job if it cannot be of
 * the calls that this rank makes. */
void gw_communicator_unexpected(struct gw_communicator *comm, const struct gw_event *event,
                                gw_time now);
/* A rank that the next collective cannot reach yet; `world`: none. */
uint32_t gw_communicator_unreached(struct gw_communicator *comm);
gw_time gw_communicator_runs_deadline(const struct gw_communicator *comm);
void gw_communicator_expire_runs(struct gw_communicator *comm, gw_time now);
/* Memory of their calls is the callers' again. */
void gw_communicator_drop_runs(struct gw_communicator *comm);

/* communicator_ask.c */

/* A sum by servers has started. */
void gw_communicator_note_sum(struct gw_communicator *comm, struct gw_call_slot *slot, gw_time now);
/* Asks, or ends a question, if it is time. */
void gw_communicator_ask(struct gw_communicator *comm, gw_time now);
/* Nobody reads the question any more. */
void gw_communicator_stop_asking(struct gw_communicator *comm);

/* communicator_fail.c */

/* Whether all are there that calls by the default need. */
bool gw_communicator_can_open(struct gw_communicator *comm);
/* Nothing works on memory of calls any more. */
void gw_communicator_drop_all(struct gw_communicator *comm);

struct gw_communicator_failure {
    enum gw_job_reason reason;
    uint32_t about;                 /* as in struct gw_communicator_event */
    uint32_t server;                /* likewise */
    const struct gw_event *message; /* that is too long; or NULL */
};

/* Ends the job, unless it is over. */
void gw_communicator_fail(struct gw_communicator *comm,
                          const struct gw_communicator_failure *failure, gw_time now);
/* The same, found by this rank or said by another. */
void gw_communicator_fail_ranks(struct gw_communicator *comm, enum gw_job_reason reason,
                                uint32_t about, gw_time now);
/* Takes note of progress. */
void gw_communicator_note_progress(struct gw_communicator *comm, gw_time now);
/* Fails what has stalled and does not watch itself; and when that will have. */
void gw_communicator_watch(struct gw_communicator *comm, gw_time now);
gw_time gw_communicator_watch_deadline(const struct gw_communicator *comm);

#endif
