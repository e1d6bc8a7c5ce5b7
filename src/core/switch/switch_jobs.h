/*
 * Job control in a switch: what a switch does with packets of kind GW_PKT_JOB (job.h).
 *
 * It adds its address to JOINs that pass, if it is sure to see all packets of that worker. It
 * collects what the server INSTALLs that the job's workers ask in their JOINs and READYs, one
 * member per packet in any order and any number of times; a member is a worker that was heard to
 * ask, and each is one once. When the members are complete, the job becomes active in the
 * aggregation stage. It belongs to that server until this removes it or falls silent. A newer epoch
 * or another life of the same server replaces it. Tenants share the places (core/tenants.h).
 *
 * Invariant: while a job is active, what the stage has of it is what the packets of one epoch and
 * one incarnation said, all of them the same.
 */
#ifndef GW_CORE_SWITCH_JOBS_H
#define GW_CORE_SWITCH_JOBS_H

#include "base/map.h"
#include "core/switch/aggregate.h"
#include "core/switch/asked.h"
#include "core/switch/askers.h"

struct gw_switch_job;

struct gw_switch_jobs {
    struct gw_aggregate *aggregate; /* NULL: the switch adds up nothing and knows no jobs */
    struct gw_switch_job *jobs;     /* [0, count) are in use */
    struct gw_map map;              /* number of a job to its index */
    struct gw_asked asked;          /* whoever may install one; with a stage */
    struct gw_askers askers;        /* and whoever may be a member */
    uint32_t count;
    uint64_t refused[GW_TENANTS_MAX + 1]; /* INSTALLs of each tenant that found no place; the last
                                             is of strangers */
    uint32_t address;                     /* of the switch */
    gw_time deadline; /* when gw_switch_jobs_expire() must be called at the latest, or never */
};

/* Bytes of memory for the jobs that the stage has room for; `aggregate` may be NULL. */
size_t gw_switch_jobs_size(const struct gw_aggregate *aggregate);

/* Makes an empty table in `memory`, aligned to 64; NULL when there is no stage. */
void gw_switch_jobs_init(struct gw_switch_jobs *jobs, void *memory, struct gw_aggregate *aggregate,
                         uint32_t address);

/* Where a worker's packet goes on to. */
struct gw_switch_jobs_way {
    bool is_edge; /* the next node is the server */
    bool spreads; /* there are several ways on from here */
};

/*
 * A JOIN or READY passes on its way to the server. False: its contents are impossible, drop it.
 */
bool gw_switch_jobs_pass(struct gw_switch_jobs *jobs, struct gw_pkt *pkt,
                         const struct gw_switch_jobs_way *way, gw_time now);

/*
 * Does what an INSTALL or REMOVE for this switch says, and turns it round into the answer: send it
 * on. False: its contents are impossible or contradict what is known of the same epoch, no worker
 * has asked that server, or the member was not heard to; nothing was done, drop it.
 */
bool gw_switch_jobs_input(struct gw_switch_jobs *jobs, struct gw_pkt *pkt, gw_time now);

/* A host has gone: of what it was the server another one may be, and what comes back is installed
 * again. */
void gw_switch_jobs_server_gone(struct gw_switch_jobs *jobs, uint32_t server);

/* Adds what a tenant has of the places for jobs, and of the stage. */
void gw_switch_jobs_use(const struct gw_switch_jobs *jobs, uint32_t who, struct gw_tenant_use *use);

/* Forgets jobs that nobody has refreshed for the stage's cfg.job_idle; returns how many. */
uint32_t gw_switch_jobs_expire(struct gw_switch_jobs *jobs, gw_time now);

#endif
