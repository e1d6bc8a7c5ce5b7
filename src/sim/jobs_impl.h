/*
 * The inside of training jobs in the simulator: shared by the files jobs.c, job_*.c and mover_*.c,
 * and included by nobody else.
 *
 * A worker of a job is a "member" of the run. It follows the job's plan: it computes layer by
 * layer, forward and backward; a scheduler hands out pieces of the gradients, and the job's mover
 * (mover.h) takes them to the others and brings the sums back. job_train.c has the rules.
 *
 * All that a member writes belongs to its host, and so to one partition. What members of a job must
 * agree on crosses hosts in job_order.c.
 */
#ifndef GW_SIM_JOBS_IMPL_H
#define GW_SIM_JOBS_IMPL_H

#include "base/fixed.h"
#include "core/job.h"
#include "sim/jobs.h"
#include "sim/message_books.h"
#include "workload/schedule/scheduler.h"

struct gw_sim_mover_ops;
struct gw_sim_timeline;

/* A piece that rank 0 has handed out, and when. */
struct gw_sim_said {
    gw_time at;
    uint32_t backward; /* pass that it is of */
    struct gw_piece piece;
};

/* What rank 0 decides for all members of its job. */
struct gw_sim_order {
    struct gw_sim_said *said; /* a ring; NULL: everyone decides for itself */
    uint32_t room;
    uint64_t count;      /* pieces said so far; rank 0's partition writes it */
    uint64_t published;  /* of these, that the others may see; the serial phase writes it */
    uint32_t limit;      /* iterations of the job, as rank 0 knows it */
    uint32_t limit_seen; /* as the others do */
};

/* What a job has achieved so far. */
struct gw_sim_progress {
    uint64_t back;        /* bytes of gradients of which workers have the sums, over all workers */
    uint64_t switch_sums; /* fragments that switches summed wholly */
    uint64_t server_sums; /* others, or parts of pieces, that servers finished */
};

struct gw_sim_job {
    const struct gw_job_spec *spec;
    const struct gw_plan *plan;
    const struct gw_sim_mover_ops *ops;
    void *mover;                             /* its state of the job, if it has any */
    struct gw_sim_progress progress, before; /* at the last sample, and at the one before */
    struct gw_sim_books *books;              /* message_books.h; NULL: the mover keeps none */
    uint64_t *offsets;                       /* of each tensor, among the bytes of all */
    uint32_t pieces;                         /* of an iteration, at most */
    uint32_t first_tag;                      /* of its events, see mover.h */
    uint32_t room;                           /* pieces that a member may have under way */
    struct gw_sim_order order;
};

enum gw_sim_phase {
    GW_SIM_OUTSIDE,  /* it has not joined */
    GW_SIM_FORWARD,  /* `layer` is to be computed, or is being computed */
    GW_SIM_BACKWARD, /* likewise */
    GW_SIM_COMPUTED, /* all iterations; gradients may be under way */
};

/* What a member has spent its time with since it opened. */
struct gw_sim_reading {
    gw_time at;
    gw_time waited;      /* not computed */
    gw_time moved;       /* had a piece under way */
    uint32_t bursts;     /* times that it began to have one */
    uint32_t iterations; /* begun */
};

struct gw_sim_clock {
    struct gw_sim_reading sum;  /* up to its time */
    bool is_waiting, is_moving; /* since then */
    gw_time burst_end;          /* if it is not moving, since when */
    /* When the first iteration could start, the one behind the warm-up, and the one behind the last
     * that was computed; and when the last sums of an iteration were back. */
    struct gw_sim_reading first, warm, last, over;
};

/* A host of the job that has died, as a member learns of it. */
struct gw_sim_loss {
    gw_time at; /* when it does; GW_TIME_NEVER: all are alive, or its mover notices */
    enum gw_job_reason reason;
    uint32_t about;
};

/* A worker of a training job. */
struct gw_sim_member {
    uint32_t job; /* index into the workload's jobs */
    uint32_t rank;
    uint32_t place;
    uint32_t next_here; /* member on the same host; UINT32_MAX: none */
    void *mover;        /* what the mover has on the host; NULL: nothing, or not any more */
    struct gw_scheduler *scheduler;
    enum gw_sim_phase phase;
    uint32_t layer;
    gw_time layer_end;       /* GW_TIME_NEVER: it computes nothing */
    uint32_t begun;          /* iterations */
    uint32_t backward;       /* passes begun */
    uint32_t iterations;     /* of which all gradients are back */
    gw_time wake;            /* when the engine wants to be called */
    gw_time quiet_since;     /* neither computes nor has anything under way; else GW_TIME_NEVER */
    struct gw_sim_loss loss; /* the first of them */
    gw_q16 pace;             /* times that computation of this iteration takes longer */
    struct gw_prng prng;     /* of its computation */
    bool is_busy;            /* is being advanced: calls from inside return at once */
    uint64_t back;           /* bytes of the pieces whose sums are back */
    uint64_t followed;       /* pieces of the job's order that it has taken */
    struct gw_piece *pieces; /* by berth */
    uint32_t *free_berths;
    uint32_t free_count;
    struct gw_sim_timeline *timeline; /* NULL: not kept */
    struct gw_sim_clock clock;
    gw_time start, end;
    enum gw_flow_outcome outcome;
    enum gw_job_reason reason; /* of a failure, and what it is about */
    uint32_t about;
    bool is_started;
    bool is_leaving; /* all is done but for a farewell */
    float *in, *out; /* gradients and sums, in runs that carry payload */
};

static inline const struct gw_job_spec *gw_sim_job_spec(const struct gw_sim *sim, uint32_t job)
{
    return &sim->scenario->workload.jobs[job];
}

/* The hosts of its workers, by rank. */
static inline const uint32_t *gw_sim_workers_of(const struct gw_sim *sim,
                                                const struct gw_job_spec *spec)
{
    return sim->scenario->workload.job_hosts + spec->first_worker;
}

/* The hosts of its servers. */
static inline const uint32_t *gw_sim_servers_of(const struct gw_sim *sim,
                                                const struct gw_job_spec *spec)
{
    return sim->scenario->workload.job_servers + spec->first_server;
}

static inline struct gw_sim_job *gw_sim_job_of(const struct gw_sim *sim,
                                               const struct gw_sim_member *member)
{
    return &sim->jobs[member->job];
}

/* The member of a rank. */
static inline struct gw_sim_member *gw_sim_member_of(const struct gw_sim *sim,
                                                     const struct gw_job_spec *spec, uint32_t rank)
{
    return &sim->members[spec->first_worker + rank];
}

/* The switch that a host hangs on. */
static inline uint32_t gw_sim_home_of(const struct gw_sim *sim, uint32_t host)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    return topo->ports[topo->nodes[host].first_port].peer;
}

/* Pieces of an iteration, at most. */
uint32_t gw_sim_pieces_of(const struct gw_job_spec *spec, const struct gw_plan *plan);

/* A scheduler for one member of a job. */
struct gw_scheduler *gw_sim_scheduler_open(const struct gw_sim_job *job);

/* When a member wants to be called next. */
void gw_sim_member_wake(struct gw_sim *sim, struct gw_sim_member *member, gw_time at);

/* jobs.c: whether every host of a job has one way into the network, which leads to a switch; 0, or
 * an error with `why` set. */
int gw_sim_homes_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why);

/* job_train.c: makes a member ready to join, and frees what it has. */
void gw_sim_train_open(struct gw_sim *sim, struct gw_sim_member *member);
void gw_sim_train_close(struct gw_sim_member *member);

/* Does whatever the member can do at this time. */
void gw_sim_train_advance(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);

/* The time has come at which it wanted to be called. */
void gw_sim_train_expire(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);

/* job_order.c: whether the members of a job follow rank 0, and the memory for it. */
void gw_sim_order_open(struct gw_sim_job *job);
void gw_sim_order_close(struct gw_sim_job *job);

/* Rank 0 hands out a piece. */
void gw_sim_order_say(struct gw_sim_job *job, const struct gw_sim_member *member,
                      const struct gw_piece *piece, gw_time now);

/* The piece that a member must hand out next, if it is known to it and its tensors are ready. */
bool gw_sim_order_next(const struct gw_sim *sim, struct gw_sim_member *member,
                       struct gw_piece *piece, gw_time now);

/* When the next piece will be known to a member; GW_TIME_NEVER: it is, or nobody knows. */
gw_time gw_sim_order_deadline(const struct gw_sim *sim, const struct gw_sim_member *member,
                              gw_time now);

/* Whether the member may begin another iteration: an end by time is decided by rank 0. */
bool gw_sim_order_goes_on(struct gw_sim *sim, struct gw_sim_member *member, gw_time now);

/* job_payload.c: the member's gradients of its next iteration. */
void gw_sim_payload_fill(const struct gw_sim *sim, struct gw_sim_member *member);

/* Whether sums of the job can be checked, or GW_ERR_INVALID with the reason in `why`. */
int gw_sim_payload_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why);

/* Whether every element is the sum over all workers, or with a bound over those that are in it. */
bool gw_sim_payload_is_right(const struct gw_sim *sim, const struct gw_sim_member *member);

#endif
