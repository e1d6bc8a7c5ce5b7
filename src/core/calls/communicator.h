/*
 * A communicator, as MPI and NCCL call it: a job as one of its ranks sees it. It takes calls of all
 * kinds, brings each to its end, and ends with the job: sums by way of servers (aggregation and
 * control), collectives from rank to rank, messages, and values that ranks keep (ranks/).
 *
 * A sum goes by its `via`. Via ina and ps it is divided over the job's servers as *shards*: a
 * tensor of up to `whole` bytes belongs to one server, in turn by the number of the call, a larger
 * one is divided evenly (ATP, sections 2.1 and A.5). Shards 0 to m - 1 of m servers are via ina,
 * the next m are those of the same servers via ps. The rank's part in a shard, member and worker,
 * is its *stake*; it joins when the first call needs it, those of the default via at the start.
 * What servers cannot do (other types and operations) goes by ring, and is counted.
 *
 * Everything else is flows between ranks: all-gather and reduce-scatter by ring, broadcast and
 * reduce along a chain, messages, pushes and pulls.
 *
 * Order: all ranks start the same collectives (all but messages, pushes and pulls) in the same
 * order, with equal arguments; they may end in another. Memory of a call is the communicator's
 * until the call has ended.
 *
 * The driver owns endpoint, clock and ways. It tells where servers are and which ranks can be
 * reached (gw_communicator_mesh()), hands over each event of the endpoint, polls, and calls expire
 * at the deadline. Server 0's host is the registrar.
 */
#ifndef GW_CORE_COMMUNICATOR_H
#define GW_CORE_COMMUNICATOR_H

#include "core/allocator.h"
#include "core/control/member.h"
#include "core/parts.h"
#include "core/quant/kernels.h"
#include "core/ranks/mesh.h"
#include "core/ranks/store.h"
#include "core/tensor.h"

enum {
    GW_COMMUNICATOR_SERVERS_MAX = GW_JOB_SHARDS_MAX,
    GW_COMMUNICATOR_CALLS_MAX = 64,  /* in work at the same time */
    GW_COMMUNICATOR_DIRECT_MAX = 32, /* ranks that send to each other in collectives with parts */
};

/* How a sum travels. */
enum gw_via {
    GW_VIA_INA,  /* added up in switches on the way to the server */
    GW_VIA_PS,   /* added up by the server alone */
    GW_VIA_RING, /* from rank to rank */
    GW_VIAS,
    GW_VIA_DEFAULT = GW_VIAS, /* of a call: the job's */
};

enum gw_call_kind {
    GW_CALL_ALLREDUCE,
    GW_CALL_REDUCE,         /* `out` is of the root alone */
    GW_CALL_BROADCAST,      /* in place, `out`; by root's */
    GW_CALL_ALLGATHER,      /* `count` of each; `out` has room for all */
    GW_CALL_REDUCE_SCATTER, /* `count` for each; `in` has all */
    GW_CALL_BARRIER,
    GW_CALL_SEND,    /* `count` bytes of `in` to `peer` */
    GW_CALL_RECEIVE, /* at most `count` bytes to `out` from `peer` */
    GW_CALL_PUSH,    /* adds `in` to the value of `key` */
    GW_CALL_PULL,    /* copies it to `out` */
    GW_CALL_KINDS,
};

struct gw_call {
    enum gw_call_kind kind;
    enum gw_via via; /* of all-reduce, reduce and barrier */
    enum gw_dtype type;
    enum gw_op op;
    uint64_t number; /* the caller's, not 0; comes back */
    const void *in;  /* memory of both is NULL in simulations without payload */
    void *out;
    uint64_t count;  /* elements; of a message: bytes. At least 1, but of a barrier */
    uint64_t stride; /* of all-gather and reduce-scatter without `parts`: elements from one rank's
                        to the next one's where all are, at least `count`; 0: count */
    uint32_t peer;   /* root, or the other rank of a message */
    uint32_t tag;    /* of a message */
    uint64_t key;    /* of a value */
    const struct gw_parts
        *parts; /* NULL: nothing may be missing, all is important, and class and
                   order are the communicator's; its memory is too, until the end */
};

struct gw_communicator_cfg {
    struct gw_endpoint *endpoint; /* of this rank; with room for gw_communicator_demand() */
    uint32_t address;             /* its own */
    uint32_t job;
    uint16_t rank;
    uint16_t world;
    enum gw_via via;                            /* the default */
    uint32_t server_count;                      /* m, 1 to GW_COMMUNICATOR_SERVERS_MAX */
    uint64_t whole;                             /* bytes */
    bool has_ways;                              /* as in struct gw_mesh_cfg */
    uint8_t notice;                             /* gw_notice_option of the job's bursts */
    uint8_t class;                              /* of its messages */
    const struct gw_transport *transport;       /* of flows; must outlive it */
    const struct gw_transport *parts_transport; /* of calls with parts, one for blasts; must outlive
                                                   it. NULL: such calls are refused */
    uint32_t mtu;                               /* payload bytes of a full packet */
    uint32_t segment;       /* bytes of a collective that travel as one message: a
                               multiple of 4, at least 8 */
    uint32_t flows;         /* of a collective at the same time */
    uint32_t parts_segment; /* of a collective with parts, as `segment`: bounds are kept in each
                               message, so the longer it is, the finer they are; 0: as `segment` */
    uint64_t largest;     /* bytes of a message, push or pull with parts, at the most; a longer one
                             is refused */
    uint32_t incarnation; /* random, not 0 */
    /* Of stakes. What the job's terms say is filled in, tensors_max, and kernels if it is NULL;
     * window_initial (0: the job's window) and window_min count as the job's window at most. A job
     * of a larger window than window_max (0: any) fails here, before memory is taken. */
    struct gw_worker_cfg worker;
    gw_time retry; /* as in struct gw_member_cfg */
    gw_time beat;
    gw_time stall;                    /* without progress for so long, the job fails; 0: never */
    const struct gw_kernels *kernels; /* NULL: no payload; then nothing is pushed or pulled */
    struct gw_allocator allocator;    /* for workers, values, and what is received for them, and
                                         for what a reduce by servers gives those who do not want it */
};

enum gw_communicator_event_kind {
    GW_COMMUNICATOR_OPEN,    /* calls are taken: all ranks have come */
    GW_COMMUNICATOR_WANTS,   /* a way to `rank`: see mesh.h */
    GW_COMMUNICATOR_DONE,    /* `call` has ended */
    GW_COMMUNICATOR_REFUSED, /* a push or pull was refused and has changed nothing; see `refusal` */
    GW_COMMUNICATOR_FAILED,  /* the job has failed, calls in work were dropped; the last event */
    GW_COMMUNICATOR_LEFT,    /* nobody needs us: we may go; the last event */
};

struct gw_communicator_event {
    enum gw_communicator_event_kind kind;
    uint64_t call;    /* its number */
    uint64_t bytes;   /* of a message received; of a failure, of one that is longer than the
                         `room` for it: at least so many */
    uint64_t room;    /* of a failure, for that message; 0: it is none of that */
    uint32_t tag;     /* likewise, of the message */
    uint64_t missing; /* fragments that call.parts->arrived has no bit for */
    uint32_t rank;    /* that a way is wanted to */
    enum gw_job_reason reason; /* of a failure */
    uint32_t about;            /* rank, or `world`: nobody that is known */
    uint32_t server;           /* that said so, or has been silent; server_count: a rank did */
    struct gw_refusal refusal;
};

struct gw_communicator_stats {
    uint64_t rerouted;           /* sums that their via cannot do, and that went by ring */
    struct gw_worker_stats sums; /* over all stakes */
};

struct gw_communicator;

/* Adds what it needs to an endpoint's limits: flows, posted memory, applications, their events and
 * announcers. cfg->endpoint is not looked at. */
void gw_communicator_demand(const struct gw_communicator_cfg *cfg,
                            struct gw_endpoint_cfg *endpoint);

/* Bytes of memory that it needs; 0 when `cfg` is invalid. */
size_t gw_communicator_size(const struct gw_communicator_cfg *cfg);

/* Makes one in `memory`, aligned to 64. Returns 0 and sets *comm, or the error of gw_app_attach()
 * or GW_ERR_NO_MEMORY; then nothing is left attached. */
int gw_communicator_init(struct gw_communicator **comm, void *memory,
                         const struct gw_communicator_cfg *cfg, gw_time now);

/* Gives up everything at once, without a word to the others. */
void gw_communicator_fini(struct gw_communicator *comm);

/* Where a server is, and the path to it: from then on it is asked. Each server once before
 * GW_COMMUNICATOR_OPEN can come, and again when it has come back; at another address the registrar
 * is found, but not the shards that this rank is in. */
void gw_communicator_set_server(struct gw_communicator *comm, uint32_t server, uint32_t address,
                                const struct gw_path *path, gw_time now);

/* A server has gone, and may come back: set_server() says so, or the server itself. Sums wait for
 * it; who leaves does not. */
void gw_communicator_server_down(struct gw_communicator *comm, uint32_t server, gw_time now);

/* For ways and paths to other ranks. */
struct gw_mesh *gw_communicator_mesh(struct gw_communicator *comm);

/*
 * Starts a call, before GW_COMMUNICATOR_OPEN too; it ends with DONE, REFUSED or the job's failure.
 * Poll afterwards. Returns 0; GW_ERR_NO_ROOM (GW_COMMUNICATOR_CALLS_MAX are in work, or have an
 * event that was not polled); GW_ERR_INVALID (a type that the operation is not for, a rank out of
 * range, memory that is missing, too large, a second receive of a rank and tag); GW_ERR_NO_MEMORY;
 * or GW_ERR_OUT (it is over, or leaves).
 */
int gw_communicator_call(struct gw_communicator *comm, const struct gw_call *call, gw_time now);

/* Whether servers can do such a sum. */
bool gw_via_can(enum gw_via via, const struct gw_call *call);

/*
 * Elements of a fragment of a call with parts, of a message bytes: as many as fill a packet. 0: the
 * call cannot have parts (there is no transport for them; its kind, type, size or world; see
 * docs/bounded-loss.md).
 */
uint32_t gw_communicator_fragment(const struct gw_communicator *comm, const struct gw_call *call);

/* Takes an event of the endpoint; false: it is not about this communicator. */
bool gw_communicator_event(struct gw_communicator *comm, const struct gw_event *event, gw_time now);

/* The next event; false: none. Does a part of the work on values, too. */
bool gw_communicator_poll(struct gw_communicator *comm, struct gw_communicator_event *event,
                          gw_time now);

/* Whether polling would do more, without anything arriving. */
bool gw_communicator_has_work(const struct gw_communicator *comm);

/* Whether other ranks may ask this one for a value at any time. */
bool gw_communicator_keeps_values(const struct gw_communicator *comm);

/* Begins to leave, with no calls in work; ends with LEFT or FAILED. */
void gw_communicator_leave(struct gw_communicator *comm, gw_time now);

/* Fails the job because of something here, and tells the others. FAILED follows unless it is over.
 */
void gw_communicator_abort(struct gw_communicator *comm, gw_time now);

/* Likewise, because of what an event FAILED of another job has said of its rank `about`, who is
 * known here by the same number. */
void gw_communicator_abort_as(struct gw_communicator *comm, enum gw_job_reason reason,
                              uint32_t about, gw_time now);

/* Whether something that we owe to others is still under way. */
bool gw_communicator_is_busy(const struct gw_communicator *comm);

/* Until when expire must be called; GW_TIME_NEVER: need not be. */
gw_time gw_communicator_deadline(const struct gw_communicator *comm);
void gw_communicator_expire(struct gw_communicator *comm, gw_time now);

struct gw_communicator_stats gw_communicator_stats(const struct gw_communicator *comm);

#endif
