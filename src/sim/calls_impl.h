/*
 * The inside of the mover of calls: shared by mover_calls.c, calls_server.c and calls_books.c, and
 * included by nobody else.
 */
#ifndef GW_SIM_CALLS_IMPL_H
#define GW_SIM_CALLS_IMPL_H

#include "core/ranks/mesh_wire.h"
#include "core/ranks/registrar.h"
#include "sim/call_values.h"
#include "sim/mover.h"
#include "sim/rank_memory.h"
#include "sim/shard.h"

enum {
    GW_SIM_CALLS_VIAS = 2,     /* of sums that servers make: a server has so many shards */
    GW_SIM_CALLS_PATIENCE = 2, /* times host.stall: so that those who send to a dead rank name it */
};

/* What has become of pushes of a key, over all ranks. */
struct gw_sim_pushes {
    uint64_t begun, done;
};

/* What must come of a sum, as the rank that ended it first has reckoned. */
struct gw_sim_sums {
    void *numbers; /* NULL: no call was reckoned yet, or it is no sum */
    uint32_t iteration;
};

/* What a job has. */
struct gw_sim_crew {
    struct gw_sim_shard *shards;    /* those with switches, then those without, by server */
    struct gw_registrar *registrar; /* NULL: its host is down */
    void *memory;                   /* of the registrar */
    uint32_t home_lives;
    struct gw_call_result *results; /* by call of the list */
    struct gw_sim_pushes *pushes;   /* of the key of a call, at the first call that has it */
    uint32_t *first_of_key;         /* that call, by call */
    struct gw_sim_sums *sums;       /* of the latest iteration, by call */
    uint64_t resent;                /* by ranks whose communicator is gone */
};

/* A call in work. */
struct gw_sim_work {
    struct gw_sim_duty duty;
    gw_time begun;
    uint64_t pushes; /* of its key that had ended then */
};

/* What a member has on its host. */
struct gw_sim_rank {
    struct gw_communicator *comm; /* NULL: it has not started */
    void *memory;
    struct gw_sim_rank_memory lent; /* to the communicator */
    struct gw_sim_work *works;      /* by berth */
    gw_time look_at;                /* when it learns what has become of servers */
    uint32_t down;                  /* those that it knows to be gone: bits by number */
    uint32_t home_life;             /* of the home that it has met */
    bool is_cut;                    /* what its home sends does not reach it */
    bool is_driven;                 /* calls from inside return at once */
};

/* The host of the job's home. */
static inline uint32_t gw_sim_calls_home(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    return gw_sim_servers_of(sim, spec)[0];
}

/* calls_server.c: the job's servers, and its home. Endpoints exist in all of these. */

void gw_sim_calls_add_servers(const struct gw_sim *sim, const struct gw_job_spec *spec,
                              struct gw_sim_demand *demands);
int gw_sim_calls_open_servers(struct gw_sim *sim, const struct gw_job_spec *spec,
                              struct gw_sim_crew *crew);
void gw_sim_calls_close_servers(const struct gw_job_spec *spec, struct gw_sim_crew *crew);
void gw_sim_calls_servers_crashed(struct gw_sim *sim, uint32_t index, uint32_t place, gw_time now);
void gw_sim_calls_servers_restarted(struct gw_sim *sim, uint32_t index, uint32_t place);

/* The home is to hear of a member a round trip after `from`; returns when. */
gw_time gw_sim_calls_greet(struct gw_sim *sim, struct gw_sim_member *member, gw_time from);

/* Nothing more comes from a member: the home is to notice after job.silence. */
void gw_sim_calls_silence(struct gw_sim *sim, struct gw_sim_member *member, gw_time now);

/* What the home sends does not reach a host: the rank there will notice, too. */
void gw_sim_calls_cut(struct gw_sim *sim, uint32_t index, uint32_t host, gw_time now);

/* The member learns what has become of servers. */
void gw_sim_calls_look(const struct gw_sim *sim, const struct gw_sim_member *member, gw_time now);

/* It hears of a member, or notices. */
void gw_sim_calls_heard(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now);

/* calls_books.c: what became of calls, and whether it is right. */

void gw_sim_calls_open_books(const struct gw_sim *sim, const struct gw_sim_job *job,
                             struct gw_sim_crew *crew);
void gw_sim_calls_close_books(const struct gw_sim_job *job, struct gw_sim_crew *crew);

/* A member begins a call of the list; it may have no part in it: then duty.kind is GW_CALL_KINDS.
 */
void gw_sim_calls_begin(const struct gw_sim *sim, const struct gw_sim_member *member,
                        uint32_t index, struct gw_sim_work *work, gw_time now);

/* A call has ended with this event. False: what it has brought is wrong. */
bool gw_sim_calls_end(const struct gw_sim *sim, struct gw_sim_work *work,
                      const struct gw_communicator_event *event, gw_time now);

#endif
