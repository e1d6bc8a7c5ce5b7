/* Inside of the job model, shared by its files and by nobody else. See job_model.h. */
#ifndef GW_TESTS_JOB_MODEL_IMPL_H
#define GW_TESTS_JOB_MODEL_IMPL_H

#include "job_model.h"
#include "support.h"

#include "core/control/coordinator.h"
#include "core/ranks/registrar.h"

enum {
    GW_JOB_MODEL_SHARDS = 2, /* of a server: via ina and via ps */
    GW_JOB_MODEL_TIMERS_MAX = 1024,
};

/* Memory of a call that has ended: filled with one byte, which it must still hold in the end. */
struct gw_job_model_grave {
    struct gw_job_model_grave *next;
    size_t size;
    unsigned char *bytes;
};

/* A call in work. */
struct gw_job_model_work {
    uint32_t index; /* of the program, plus 1; 0: free */
    unsigned char *in, *out;
    size_t in_size, out_size;
    struct gw_parts parts; /* of a call with parts */
    uint64_t fragments;    /* that this rank gets of it */
    uint32_t pushes; /* to its key that had ended well, or that this rank had begun, before it */
};

/* Memory that a rank's allocator has out. */
struct gw_job_model_block {
    struct gw_job_model_block *next, *before;
    size_t size;
};

enum gw_job_model_state {
    GW_JOB_MODEL_OPENING,
    GW_JOB_MODEL_OPEN,
    GW_JOB_MODEL_LEAVING,
    GW_JOB_MODEL_OVER, /* but its process may have something to tell others */
    GW_JOB_MODEL_GONE, /* there is no process */
};

/* A rank's process, or what is left of it. */
struct gw_job_model_actor {
    struct gw_communicator *comm;
    void *memory;
    enum gw_job_model_state state;
    uint32_t rank;
    uint32_t life;     /* counts its beginnings and ends */
    bool has_returned; /* it is the second process of the rank */
    bool is_dead;      /* it did not go, it died */
    gw_time turn_at;   /* when it is to act, if its endpoint has no event before */
    bool has_met;      /* the home has taken it in, */
    bool was_seated;   /* or one before it */
    bool ways[GW_JOB_MODEL_RANKS_MAX];
    struct gw_job_model_block blocks; /* head of a ring */
    size_t memory_now;
    struct gw_job_model_work works[GW_COMMUNICATOR_CALLS_MAX];
    uint32_t in_work, collectives_in_work;
    uint32_t order[2][GW_JOB_MODEL_CALLS_MAX]; /* what it has a part in: collectives, others */
    uint32_t count[2], next[2];
};

struct gw_job_model_home {
    struct gw_server *servers[GW_JOB_MODEL_SHARDS];
    struct gw_coordinator *coordinators[GW_JOB_MODEL_SHARDS];
    void *memories[2 * GW_JOB_MODEL_SHARDS];
    struct gw_registrar *registrar; /* of server 0 */
    void *registrar_memory;
    bool is_up;
    uint32_t life;
};

enum gw_job_model_timer_kind {
    GW_JOB_MODEL_COME,   /* rank `a` and the home hear each other */
    GW_JOB_MODEL_KNOW,   /* rank `a` hears server `b` */
    GW_JOB_MODEL_LOSE,   /* life `b` of the home has heard nothing of address `a` */
    GW_JOB_MODEL_DESERT, /* rank `a` has heard nothing of the home */
    GW_JOB_MODEL_MEET,   /* ranks `a` and `b` hear each other */
    GW_JOB_MODEL_MISS,   /* rank `a` has heard nothing of rank `b` */
    GW_JOB_MODEL_START,  /* rank `a` starts calls */
    GW_JOB_MODEL_LEAVE,  /* rank `a` leaves */
    GW_JOB_MODEL_BEAT,   /* sessions say who lives */
    GW_JOB_MODEL_DIE,    /* fault `a` begins */
    GW_JOB_MODEL_RETURN, /* fault `a` ends */
};

struct gw_job_model_timer {
    gw_time at;
    enum gw_job_model_timer_kind kind;
    uint32_t a, b;
    uint32_t life; /* of rank `a`: without it the timer means nothing */
};

struct gw_job_model {
    const struct gw_job_model_cfg *cfg;
    struct gw_job_model_result *result;
    struct gw_tree_net net;
    struct gw_prng prng;
    gw_time begin;
    gw_time guard;   /* until when all must be over */
    uint32_t faults; /* that are still to begin or end */
    struct gw_transport transport, parts_transport;
    struct gw_job_model_actor actors[GW_JOB_MODEL_RANKS_MAX];
    struct gw_job_model_home homes[GW_JOB_MODEL_SERVERS_MAX];
    struct gw_job_model_timer timers[GW_JOB_MODEL_TIMERS_MAX];
    uint32_t timer_count;
    struct gw_job_model_grave *graves;
    uint32_t pushes_begun[GW_JOB_MODEL_CALLS_MAX]; /* bits, at the first call of a key */
    gw_q16 push_bounds[GW_JOB_MODEL_CALLS_MAX][GW_CALL_MODEL_PUSHES_MAX]; /* likewise */
    uint32_t pushes_ended[GW_JOB_MODEL_CALLS_MAX];
    uint64_t digests[GW_JOB_MODEL_CALLS_MAX]; /* of results of calls with parts; 0: none yet */
};

static inline gw_time gw_job_model_now(const struct gw_job_model *m)
{
    return gw_tree_net_now(&m->net);
}

static inline bool gw_job_model_is_up(const struct gw_job_model_actor *actor)
{
    return actor->state != GW_JOB_MODEL_GONE;
}

static inline struct gw_endpoint *gw_job_model_endpoint(const struct gw_job_model *m, uint32_t host)
{
    return m->net.hosts[host].host.endpoint;
}

/* Of the rank's process: another one has another. */
uint32_t gw_job_model_address(const struct gw_job_model *m, uint32_t rank);

/* A random time of at most so much. */
gw_time gw_job_model_some(struct gw_job_model *m, gw_time most);

void gw_job_model_at(struct gw_job_model *m, gw_time delay, enum gw_job_model_timer_kind kind,
                     uint32_t a, uint32_t b);

/* What is known of any path. */
struct gw_path gw_job_model_path(const struct gw_job_model *m);

/* job_model_homes.c */

/* What the host of a server must have room for. */
void gw_job_model_home_demand(const struct gw_job_model_cfg *cfg, struct gw_endpoint_cfg *endpoint);
void gw_job_model_home_start(struct gw_job_model *m, uint32_t server);
/* Dies; its host is killed by the caller. */
void gw_job_model_home_die(struct gw_job_model *m, uint32_t server);
void gw_job_model_home_close(struct gw_job_model *m, uint32_t server);
/* Tells the coordinators of a server who lives. */
void gw_job_model_home_beat(struct gw_job_model *m, uint32_t server);

/* job_model_ranks.c */

/* Of the communicator of a rank; its endpoint is filled in when the rank begins. */
struct gw_communicator_cfg gw_job_model_comm_cfg(struct gw_job_model *m, uint32_t rank);
void gw_job_model_rank_start(struct gw_job_model *m, uint32_t rank);
/* Dies with all that it has in hand. */
void gw_job_model_rank_die(struct gw_job_model *m, uint32_t rank);
/* Events, deadlines. */
void gw_job_model_rank_turn(struct gw_job_model *m, uint32_t rank);
/* Goes, if it is over and owes nothing to anybody. */
bool gw_job_model_rank_goes(struct gw_job_model *m, uint32_t rank);

/* job_model_calls.c */

/* Draws the order in which the rank starts its calls. */
void gw_job_model_draw(struct gw_job_model *m, struct gw_job_model_actor *actor);
/* Starts what it may, and sees to it that the rest is started. */
void gw_job_model_start_calls(struct gw_job_model *m, struct gw_job_model_actor *actor);
bool gw_job_model_has_calls(const struct gw_job_model_actor *actor);
/* A call has ended, well or refused. */
void gw_job_model_call_ended(struct gw_job_model *m, struct gw_job_model_actor *actor,
                             const struct gw_communicator_event *event);
/* The job has failed, or the rank has died: nobody may write to memory of calls any more. */
void gw_job_model_bury_calls(struct gw_job_model *m, struct gw_job_model_actor *actor);
void gw_job_model_check_graves(struct gw_job_model *m);

#endif
