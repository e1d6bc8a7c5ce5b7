/*
 * What is asked of the network, and when: a list of flows, and triggers that start flows when
 * others end.
 *
 * A workload kind is one file here and one line in workload.def; it appends flows and triggers and
 * is a pure function of its options, the topology and a random stream.
 */
#ifndef GW_WORKLOAD_WORKLOAD_H
#define GW_WORKLOAD_WORKLOAD_H

#include "base/fixed.h"
#include "base/prng.h"
#include "core/calls/communicator.h"
#include "core/coll/coll.h"
#include "core/notice.h"
#include "topo/topo.h"
#include "workload/job_rules.h"
#include "workload/job_worth.h"
#include "workload/model/plan.h"
#include "workload/schedule/schedule.h"

#define GW_TRIGGER_NONE UINT32_MAX

/* Nothing starts later, and a run ends by then: with any computation or timeout behind it, which
 * takes up to five days more, points in time stay comparable (base/time.h). */
#define GW_WORKLOAD_TIME_MAX  (20 * 24 * 3600 * GW_S)
#define GW_WORKLOAD_DELAY_MAX (5 * 24 * 3600 * GW_S)

enum {
    GW_PLAN_NAME_MAX = 64,
};

#define GW_CALL_RANKS_ALL UINT32_MAX

/* One message from one host to another. */
struct gw_flow_spec {
    uint32_t src;
    uint32_t dst;
    uint64_t bytes;
    gw_time start;           /* GW_TIME_NEVER: started by a trigger */
    uint32_t id;             /* as written in the input, else the index; only for reports */
    uint32_t fires_sent;     /* trigger fired when the sender knows that all is delivered */
    uint32_t fires_received; /* trigger fired when the receiver has everything */
    bool background;         /* the run does not wait for it */
    uint32_t burst;          /* that it is part of, from 1; 0: none */
    uint32_t tenant;         /* that announces it, from 1; 0: it is not announced */
    bool silent;             /* it is announced, and nothing of it is ever sent */
    uint32_t follows;        /* flow of the same connection, from 1, that ends before; 0: none */
    gw_q16 bound;            /* the largest part of it that may be missing in the end */
    gw_q16 unimportant;      /* so many of its packets may be dropped selectively */
    uint8_t class;           /* GW_CLASS_BEST_EFFORT to GW_CLASS_DATA_MAX */
    bool goes_on;            /* with the window with which that one ended; else it begins anew, as
                                after a silence, with its threshold (RFC 5681, section 4.1) */
};

/* Whoever announces bursts of plain flows, as a job announces its own. */
struct gw_tenant_spec {
    uint8_t announce;                  /* gw_notice_option */
    uint8_t units;                     /* threshold that follows from it; 0: no notices */
    struct gw_notice_path notice_path; /* from this */
};

/* Flows that start together, and after which a tenant pauses. */
struct gw_burst_spec {
    uint32_t first_flow;
    uint32_t flow_count;
};

/* Starts flows once it has been fired `needs` times. */
struct gw_trigger_spec {
    uint32_t needs;       /* 1: a oneshot; n: a barrier of n flows */
    uint32_t first_start; /* index into `starts` */
    uint32_t start_count; /* flows to start; with `one_each`, one flow per firing, in order */
    bool one_each;        /* every firing starts the next flow of the list (a window of flows) */
    gw_time delay;        /* from the last firing that it needed until they start, at least */
};

/* How a job's gradients are moved, and who adds them up. */
enum gw_job_via {
    GW_JOB_VIA_INA,      /* fragments, added up by every switch of the job's tree (ATP) */
    GW_JOB_VIA_RSS,      /* by the switches of its racks, each for itself */
    GW_JOB_VIA_PS,       /* by nobody on the way: the server does it all */
    GW_JOB_VIA_SWITCHML, /* by the switch of its rack, in slots of the job's own; no server */
    GW_JOB_VIA_PUSH,     /* flows: pushed to servers, and pulled back from them */
    GW_JOB_VIA_COLL,     /* flows among the workers, by a schedule of core/coll; no server */
    GW_JOB_VIA_CALLS,    /* each call of a list as it says, by a communicator */
};

/*
 * What the workers of a job compute, and in which order their gradients leave. Workers whose plan
 * takes no time sum one tensor after the other.
 */
struct gw_train_spec {
    uint32_t plan;  /* index into `plans` */
    uint32_t batch; /* samples of each worker in an iteration; 0: none, iterations are counted */
    const struct gw_schedule_ops *schedule;
    uint64_t schedule_cfg[8]; /* its options */
    uint64_t fusion;          /* bytes of a buffer of fused tensors; 0: no fusion */
    gw_time cycle;            /* of fusion */
    uint32_t warmup;          /* iterations that measures leave out, if there are more */
    gw_q16 jitter;            /* an iteration's computation takes up to so much longer, at random */
    gw_q16 slowdown;          /* the straggler's takes so many times longer; at least 1 */
    uint32_t straggler;       /* its rank */
    bool is_asynchronous;     /* nobody waits for the others' gradients */
    gw_time end;              /* no iteration begins later, or two at most; 0: none ends it */
};

/* A call that the workers of a job make in every iteration. */
struct gw_call_spec {
    enum gw_call_kind kind; /* GW_CALL_SEND: a message, of which GW_CALL_RECEIVE is the other end */
    enum gw_via via;        /* GW_VIA_DEFAULT: the job's */
    enum gw_dtype type;
    enum gw_op op;
    uint64_t count; /* elements, as in struct gw_call; of a barrier 0 */
    uint32_t root;
    uint32_t from, to; /* ranks of a message */
    uint32_t rank;     /* that pushes or pulls; GW_CALL_RANKS_ALL: every one */
    uint64_t key;
};

/*
 * A training job: workers that compute and sum gradients, iteration by iteration. One that makes
 * calls has a plan without computation, with a tensor for each of them.
 */
struct gw_job_spec {
    uint32_t first_worker; /* index into `job_hosts` */
    uint32_t worker_count;
    uint32_t first_server; /* index into `job_servers` */
    uint32_t server_count; /* each has a part of the gradients */
    enum gw_job_via via;
    const char *way;                /* what the scenario calls it; static text */
    const struct gw_coll_ops *coll; /* via GW_JOB_VIA_COLL */
    uint8_t levels;                 /* of switches that add up, at most */
    struct gw_train_spec train;
    uint64_t bytes;        /* of all gradients of an iteration */
    uint32_t calls;        /* pieces under way at the same time via GW_JOB_VIA_COLL or _CALLS */
    uint32_t first_call;   /* index into `calls` of the workload, via GW_JOB_VIA_CALLS */
    enum gw_via calls_via; /* the default of its calls */
    uint32_t flows;        /* messages at the same time: of a call, or from a worker to a server and
                              back; 0: 4 */
    uint64_t segment;      /* bytes of a message of a call, a multiple of 4 */
    uint64_t whole; /* a piece of up to so many bytes has one server, larger ones are divided */
    uint64_t draw;  /* of which server that is; 0: in turn */
    uint32_t iterations;
    uint8_t announce;                  /* gw_notice_option */
    uint8_t units;                     /* threshold that follows from it; 0: no notices */
    struct gw_notice_path notice_path; /* from which it follows */
    uint32_t values;                   /* elements per fragment */
    uint32_t window;                   /* fragments, at most */
    uint32_t window_initial;
    uint32_t aggregators; /* of every switch that adds up */
    uint32_t slots;       /* of the job, via SwitchML */
    uint32_t indexing;    /* enum gw_agg_indexing */
    struct gw_job_rules rules;
    struct gw_job_worth worth;
    uint32_t share; /* number of the job's range for static indexing */
    uint32_t key;   /* whose it is: upper bits of the numbers of its shards */
    bool congestion_control;
    bool resend_gap;
    bool proactive;        /* fragments that might saturate travel raw */
    bool dynamic_scaling;  /* exponents are agreed on */
    uint32_t magnitude;    /* payload: values are below 2^magnitude */
    uint32_t overflow_ppm; /* payload: so many of a million fragments have sums that saturate */
    gw_time timeout;
    gw_time leak;     /* of aggregators */
    gw_time patience; /* without a result, in sums that may lack workers; 0: they may not */
    gw_time patience_max;
    gw_time beat;    /* between signs of life of a worker */
    gw_time silence; /* a worker that is silent for so long is given up */
    gw_time start;
};

/* Flows that are one operation of many hosts, and complete together. */
struct gw_collective_spec {
    const char *kind; /* static text */
    uint32_t first_flow;
    uint32_t flow_count;
};

/* A plan that jobs share. */
struct gw_named_plan {
    struct gw_plan plan;
    char name[GW_PLAN_NAME_MAX]; /* of the model, for reports */
};

struct gw_workload {
    struct gw_named_plan *plans;
    uint32_t plan_count, plan_room;
    struct gw_tenant_spec *tenants;
    uint32_t tenant_count, tenant_room;
    struct gw_burst_spec *bursts;
    uint32_t burst_count, burst_room;
    struct gw_collective_spec *collectives;
    uint32_t collective_count, collective_room;
    struct gw_job_spec *jobs;
    struct gw_call_spec *calls; /* grouped by job */
    uint32_t call_count, call_room;
    uint32_t *job_hosts;   /* workers, grouped by job, by rank */
    uint32_t *job_servers; /* hosts, grouped by job; the index is the shard's job number,
                              but for the key */
    uint32_t job_count, job_room;
    uint32_t job_server_count, job_server_room;
    uint32_t job_host_count, job_host_room;
    struct gw_flow_spec *flows;
    struct gw_trigger_spec *triggers;
    uint32_t *starts; /* flow indices, grouped by trigger */
    uint32_t flow_count, flow_room;
    uint32_t trigger_count, trigger_room;
    uint32_t start_count, start_room;
};

struct gw_workload_ctx {
    const struct gw_topo *topo; /* finished and routed */
    const char *directory;      /* relative file names are relative to this */
    struct gw_prng prng;        /* this entry's own stream */
    const void *items; /* of the kind's list, one after the other, as cfg_size of its table says */
    uint32_t item_count;
    uint32_t item; /* that `why` is about; item_count: none of them */
    char *why;     /* a sentence that begins with the name of the parameter at fault */
    size_t why_size;
};

struct gw_workload_kind {
    struct gw_algo algo;
    /* Appends to `workload`. Returns 0, or a negative error with ctx->why set. */
    int (*generate)(struct gw_workload *workload, const void *cfg, struct gw_workload_ctx *ctx);
    /* What the items of its list have for parameters, and the list's key for a name; NULL: it has
     * no list. */
    const struct gw_algo *item;
};

extern const struct gw_registry gw_workload_registry;

void gw_workload_init(struct gw_workload *workload);
void gw_workload_fini(struct gw_workload *workload);

/* For kinds. Each returns the new index; out of memory ends the program with one clear line. */
uint32_t gw_workload_add_flow(struct gw_workload *workload, const struct gw_flow_spec *flow);
uint32_t gw_workload_add_trigger(struct gw_workload *workload, uint32_t needs, bool one_each);
/* Adds a plan, which is the workload's from now on. */
uint32_t gw_workload_add_plan(struct gw_workload *workload, const struct gw_plan *plan,
                              const char *name);
/* Adds a job, whose workers and servers are those added since the last job. */
uint32_t gw_workload_add_job(struct gw_workload *workload, const struct gw_job_spec *job);
void gw_workload_add_worker(struct gw_workload *workload, uint32_t host);
uint32_t gw_workload_add_call(struct gw_workload *workload, const struct gw_call_spec *call);
void gw_workload_add_server(struct gw_workload *workload, uint32_t host);
/* Adds a collective of all flows from `first_flow` on. */
void gw_workload_add_collective(struct gw_workload *workload, const char *kind,
                                uint32_t first_flow);
/* Adds a tenant and returns its number, from 1. */
uint32_t gw_workload_add_tenant(struct gw_workload *workload, uint8_t announce);
/* Adds a burst of all flows from `first_flow` on, each of which is made part of it. */
void gw_workload_add_burst(struct gw_workload *workload, uint32_t first_flow);
/* Adds a flow to the trigger that was added last. */
void gw_workload_add_start(struct gw_workload *workload, uint32_t flow);

#endif
