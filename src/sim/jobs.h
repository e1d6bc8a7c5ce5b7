/*
 * Training jobs in the simulator, as the rest of it sees them: servers and members on hosts, and
 * the stages of switches that add up.
 */
#ifndef GW_SIM_JOBS_H
#define GW_SIM_JOBS_H

#include "sim/sim_impl.h"

/* What a host needs for all that the workload may ask of it at the same time. */
struct gw_sim_demand {
    uint32_t timed;    /* flows it sends that start by the clock */
    uint32_t sends;    /* flows it sends: in all, or of a mover at the same time */
    uint32_t receives; /* likewise, flows it receives */
    uint32_t expects;  /* receive buffers that a mover posts at the same time */
    uint32_t apps;     /* workers and servers of jobs */
    uint32_t events;   /* of these, beyond a few for each */
    uint32_t servers;  /* of jobs */
    uint32_t announcers;
};

/* Decides how jobs are run, and then says what they need of hosts, by host. */
int gw_sim_jobs_prepare(struct gw_sim *sim, char *why);
void gw_sim_jobs_demand(const struct gw_sim *sim, struct gw_sim_demand *demands);

/* Opens the workload's jobs on hosts that exist; 0, or an error with `why` set. */
int gw_sim_jobs_open(struct gw_sim *sim, char *why);
void gw_sim_jobs_close(struct gw_sim *sim);

/* Members that have finished all their iterations. */
uint32_t gw_sim_members_done(const struct gw_sim *sim);

/* The aggregation stage of switch `id`, or NULL when it needs none. */
struct gw_aggregate *gw_sim_aggregate(const struct gw_sim *sim, struct gw_pkt_pool *pool,
                                      uint32_t id);

/* Likewise the stage of SwitchML's slots, with all jobs installed. */
struct gw_slots *gw_sim_slots(const struct gw_sim *sim, struct gw_pkt_pool *pool, uint32_t id);
/* Installs them again; slots that were in use are empty then. */
void gw_sim_slots_install(const struct gw_sim *sim, struct gw_slots *slots, uint32_t id);

/* Lets a member join its job; false when its endpoint has no room. Behind all members: the first
 * server of a member's job hears of it. */
bool gw_sim_member_start(struct gw_sim_part *part, uint32_t index, gw_time now);

/* Calls the members of a host whose time has come. */
void gw_sim_members_expire(struct gw_sim_part *part, const struct gw_sim_app *app, gw_time now);

/* True for an event of a job, on the host `node`; it has then been handled. */
bool gw_sim_job_event(struct gw_sim_part *part, struct gw_sim_node *node,
                      const struct gw_event *event, gw_time now);

/* The number that a server's shard of a job has in packets. */
uint32_t gw_sim_shard_number(const struct gw_job_spec *spec, uint32_t server);

/* The largest part of a job's message that may be missing, by its tag; 0 also if it is no job's. */
gw_q16 gw_sim_job_bound(const struct gw_sim *sim, uint32_t tag);

/* The job whose gradients a packet carries; UINT32_MAX: none's. */
uint32_t gw_sim_job_of_packet(const struct gw_sim *sim, const struct gw_pkt *pkt);

/* In the serial phase: takes the samples of series about jobs. */
void gw_sim_jobs_sample(struct gw_sim *sim, gw_time at);

/* In the serial phase: tells members what the first of their job has decided. */
void gw_sim_jobs_agree(struct gw_sim *sim);

/*
 * In the serial phase: the node at `place` crashes, or is back. The first is called while the core
 * node still is what it was; on return nothing may refer to packets, buffers or the endpoint. Then
 * the node is made anew: applications are detached, a switch's stage knows no job and starts of
 * members are forgotten. The second is called when routes and links are up.
 */
void gw_sim_jobs_crashed(struct gw_sim *sim, uint32_t place, gw_time now);
void gw_sim_jobs_restarted(struct gw_sim *sim, uint32_t place);

/* job_results.c: adds a struct of counters, all of which are uint64_t; `size` in bytes. */
void gw_sim_add_stats(void *sum, const void *stats, size_t size);

#endif
