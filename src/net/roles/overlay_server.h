/*
 * A parameter server on the overlay: an endpoint with two shards per job, one whose sums switches
 * begin and its direct twin (core/job.h), each with a coordinator and a server; and the registrar
 * of a job whose home this is.
 *
 * Use: open (which adds its node to the loop), link its port 0 or give it direct ways, and open
 * jobs; then hand over events after every turn of the loop. What it does is seen in its counters.
 */
#ifndef GW_NET_OVERLAY_SERVER_H
#define GW_NET_OVERLAY_SERVER_H

#include "core/control/coordinator.h"
#include "core/ranks/registrar.h"
#include "net/roles/overlay.h"

enum {
    GW_OVERLAY_JOBS_MAX = 64,
};

struct gw_overlay_server_cfg {
    struct gw_loop *loop;
    struct gw_pkt_pool *pool;
    uint32_t address;
    uint32_t incarnation;      /* random, not 0 */
    uint32_t hdr;              /* bytes of IP, UDP and our header */
    uint32_t mtu;              /* payload bytes of a full packet */
    uint32_t jobs_max;         /* 1 to GW_OVERLAY_JOBS_MAX */
    struct gw_tenants tenants; /* who share them */
    uint32_t ranks_max;        /* of all jobs whose home this is, together */
    bool has_switches;         /* others than its own may be on the way to ranks */
    gw_time stall;             /* a rank that takes no message for so long is lost */
    uint64_t seed;
    /* Whether the worker at that address has come for the job. NULL: all have. */
    bool (*has_come)(const void *context, uint32_t job, uint32_t address);
    const void *context;
};

/* A job as its workers must know it. */
struct gw_overlay_job {
    uint32_t job;
    uint16_t world;
    uint16_t values;      /* elements per fragment, at most mtu / 4 */
    uint16_t window;      /* fragments; a power of two */
    uint32_t aggregators; /* of the switches */
    bool is_home;         /* has the registrar here */
};

struct gw_overlay_server;

/* Returns 0, GW_ERR_INVALID (options that fit no endpoint) or GW_ERR_NO_MEMORY. */
int gw_overlay_server_open(const struct gw_overlay_server_cfg *cfg,
                           struct gw_overlay_server **server);

/* After the loop is closed: its packets go with the pool. */
void gw_overlay_server_close(struct gw_overlay_server *server);

/* Its number in the loop. */
uint16_t gw_overlay_server_node(const struct gw_overlay_server *server);

struct gw_endpoint *gw_overlay_server_endpoint(struct gw_overlay_server *server);

/*
 * Serves the job from now on; a job that is served already is no error if it is the same. Returns
 * 0, GW_ERR_INVALID (another world), GW_ERR_NO_ROOM (jobs_max, or what is left is for
 * other tenants), or GW_ERR_NO_MEMORY.
 */
int gw_overlay_server_add(struct gw_overlay_server *server, const struct gw_overlay_job *job);

/* A rank of a job whose home this is has come, or come again; returns as gw_registrar_come(). */
enum gw_job_reason gw_overlay_server_come(struct gw_overlay_server *server, uint32_t job,
                                          const struct gw_registrar_rank *rank, gw_time now);

/* Its session has ended. */
void gw_overlay_server_gone(struct gw_overlay_server *server, uint32_t job, uint32_t address,
                            gw_time now);

/* Another process has its rank now. */
void gw_overlay_server_dismiss(struct gw_overlay_server *server, uint32_t job, uint32_t address);

/* Whether the job that the process at this address was a rank of is over, also for one that has not
 * heard of it: it is not to come again. */
bool gw_overlay_server_is_over(const struct gw_overlay_server *server, uint32_t job,
                               uint32_t address);

/* Takes the events of its endpoint. */
void gw_overlay_server_poll(struct gw_overlay_server *server, gw_time now);

/* The job's worker of this rank and address was alive at that time. */
void gw_overlay_server_hear(struct gw_overlay_server *server, uint32_t job, uint16_t rank,
                            uint32_t address, gw_time at, gw_time now);

/* What is known of the path between this server and the workers of the job now. */
void gw_overlay_server_set_path(struct gw_overlay_server *server, uint32_t job,
                                const struct gw_notice_path *path);

/* Forgets the job, if it is at no work: its workers have left, have failed, or have never all come.
 * Of a job whose home this is, no rank may have a session any more. False: it is at work. */
bool gw_overlay_server_forget(struct gw_overlay_server *server, uint32_t job);

/* Adds what a tenant has of the places for jobs. */
void gw_overlay_server_use(const struct gw_overlay_server *server, uint32_t who,
                           struct gw_tenant_use *use);

/* Sums over all jobs since it was opened, those that are forgotten included. */
struct gw_overlay_totals {
    uint64_t received; /* gradient packets */
    uint64_t results;  /* fragments finished */
    uint64_t complete; /* of these, added up in switches altogether */
    uint64_t bytes;    /* received, on the wire */
};
struct gw_overlay_totals gw_overlay_server_totals(const struct gw_overlay_server *server);

/* What a job that is served is doing. */
struct gw_overlay_job_view {
    struct gw_overlay_job job;
    enum gw_coordinator_phase phase;
    uint16_t epoch;
    bool is_owing;                 /* something is under way to a rank */
    struct gw_server_stats server; /* of both shards */
    struct gw_coordinator_stats coordinator;
};

/* Shows job `index`, in the order in which they came; false: there are not so many. */
bool gw_overlay_server_view(const struct gw_overlay_server *server, uint32_t index,
                            struct gw_overlay_job_view *view);

#endif
