/*
 * The inside of training jobs in the simulator: shared by the files jobs.c and job_*.c, and
 * included by nobody else.
 *
 * A job of the scenario is split over its servers: each has a part of the tensor, a job number of
 * its own in the core (a "shard"), a server and a coordinator on its host. A worker of the job is a
 * "member" of the run: on its host it has one worker and membership per shard ("stake"). An
 * iteration ends when the last shard's part has its sum.
 */
#ifndef GW_SIM_JOBS_IMPL_H
#define GW_SIM_JOBS_IMPL_H

#include "core/aggregation/slot_worker.h"
#include "core/control/coordinator.h"
#include "core/control/member.h"
#include "sim/jobs.h"

/* One server's part of a job. */
struct gw_sim_shard {
    uint32_t job;             /* index into the workload's jobs */
    uint32_t host;            /* of the server */
    uint64_t first;           /* element of the tensor */
    uint64_t count;           /* elements */
    struct gw_server *server; /* NULL: its host is down */
    struct gw_coordinator *coordinator;
    void *memory[2];
    uint32_t lives;
    struct gw_server_stats past; /* of earlier lives */
};

/* A member's part in one shard. */
struct gw_sim_stake {
    struct gw_member *member;
    struct gw_worker *worker; /* NULL before it has joined */
    struct gw_slot_worker
        *slot_worker; /* of a job that sums in slots: it has no member, no worker */
    void *memory[2];
};

/* A worker of a training job. */
struct gw_sim_member {
    uint32_t job; /* index into the workload's jobs */
    uint32_t rank;
    uint32_t place;
    struct gw_sim_stake *stakes; /* one per shard of the job, or one in slots */
    uint32_t joined;             /* shards */
    uint32_t pending;            /* shards whose part of this iteration is in work */
    uint32_t iterations;         /* finished */
    gw_time start, end;
    enum gw_flow_outcome outcome;
    enum gw_job_reason reason; /* of a failure, and what it is about */
    uint32_t about;
    bool is_started;
    struct gw_worker_stats past; /* of what is gone */
    float *in, *out;             /* the tensor, in runs that carry payload */
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

/* A job of slots has no shard, and its members one stake. */
static inline uint32_t gw_sim_stakes(const struct gw_job_spec *spec)
{
    return spec->server_count ? spec->server_count : 1;
}

/* The switch that a host hangs on. */
static inline uint32_t gw_sim_home_of(const struct gw_sim *sim, uint32_t host)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    return topo->ports[topo->nodes[host].first_port].peer;
}

/* Attaches a shard's server and coordinator to their host; 0 or an error. */
int gw_sim_shard_open(struct gw_sim *sim, uint32_t shard);

/* Frees it; `dead`: the endpoint is gone already. */
void gw_sim_shard_close(struct gw_sim *sim, uint32_t shard, bool dead);

/* Frees what a member has on its host. */
void gw_sim_member_close(struct gw_sim *sim, struct gw_sim_member *member, bool dead);

/* job_results.c: adds counters, all of which are uint64_t; `size` in bytes. */
void gw_sim_add_stats(void *sum, const void *stats, size_t size);

/* job_slots.c: 0, or an error with `why` set. */
int gw_sim_slots_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why);
int gw_sim_slot_worker_open(struct gw_sim *sim, struct gw_sim_member *member);

/* job_payload.c: the member's part of the tensor for its next iteration. */
void gw_sim_payload_fill(const struct gw_sim *sim, struct gw_sim_member *member);

/* Whether every element is the sum over all workers. */
bool gw_sim_payload_is_right(const struct gw_sim *sim, const struct gw_sim_member *member);

#endif
