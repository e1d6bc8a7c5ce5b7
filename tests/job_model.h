/*
 * A whole job in memory: ranks with a communicator each, servers with all that a home has, and a
 * tree of switches between them, on a clock that is turned by hand. The model is the driver of them
 * all: it plays the sessions by which processes know of each other, the ways from rank to rank, and
 * deaths, as a script says.
 *
 * Ranks start the calls of a program that all know: collectives in its order, the rest in any. What
 * a call gives is compared with call_model.h when it ends, and its memory is watched until the end
 * of the world: nobody may write there any more.
 *
 * Whatever happens, the model fails the test when a rank does not end in time, when packets,
 * buffers or memory are lost, or when something stays restless.
 */
#ifndef GW_TESTS_JOB_MODEL_H
#define GW_TESTS_JOB_MODEL_H

#include "call_model.h"
#include "tree_net.h"

#include "core/aggregation/server.h"

enum {
    GW_JOB_MODEL_RANKS_MAX = GW_CALL_MODEL_RANKS_MAX,
    GW_JOB_MODEL_SERVERS_MAX = 4,
    GW_JOB_MODEL_FAULTS_MAX = 4,
    GW_JOB_MODEL_CALLS_MAX = 256,
    GW_JOB_MODEL_NUMBER = 9, /* of the job */
};

/* How the model's parts see each other. */
#define GW_JOB_MODEL_STALL   (150 * GW_MS) /* of communicators */
#define GW_JOB_MODEL_SILENCE (5 * GW_MS)   /* after which a session with a dead process ends */

struct gw_job_model_fault {
    gw_time at;   /* since the beginning; 0: no fault */
    gw_time back; /* when it comes back; 0: never */
    enum gw_job_model_victim {
        GW_JOB_MODEL_RANK,   /* comes back as another process */
        GW_JOB_MODEL_SERVER, /* 0 is the home */
        GW_JOB_MODEL_SWITCH, /* comes back empty */
        GW_JOB_MODEL_ABORT,  /* the application of a rank gives the job up */
        GW_JOB_MODEL_WAY,    /* all ways of a rank break, and nobody has died */
    } victim;
    uint32_t which;
};

struct gw_job_model_cfg {
    uint64_t seed;
    uint32_t world, servers;
    uint32_t racks, pods;                       /* as in struct gw_tree_net_cfg */
    uint32_t rank_home[GW_JOB_MODEL_RANKS_MAX]; /* switch: a rack, or `racks + pods`, the root */
    uint32_t server_home[GW_JOB_MODEL_SERVERS_MAX]; /* likewise */
    enum gw_via via;                                /* the default */
    uint64_t whole;                                 /* bytes of a tensor that has one server */
    bool has_ways;    /* ranks reach each other without sessions, and die unseen */
    bool is_early;    /* calls are started before the job is open */
    uint8_t notice;   /* gw_notice_option */
    uint32_t values;  /* per fragment */
    uint32_t window;  /* fragments */
    uint32_t segment; /* bytes of a collective's message */
    uint32_t depth;   /* collectives that a rank has in work, at most */
    gw_time pause;    /* between two starts of calls of a rank, at most */
    gw_time apart;    /* between the ranks' beginnings, and their ends, at most */
    gw_time patience; /* of servers, with calls that may lose a part; 0: they wait for all */
    gw_time leave_after[GW_JOB_MODEL_RANKS_MAX]; /* its last call a rank leaves; 0: at random */
    uint32_t queue_bytes, aggregators, lose_of_64, double_of_64, delay_of_64;
    const struct gw_model_call *calls;
    uint32_t call_count;
    struct gw_job_model_fault faults[GW_JOB_MODEL_FAULTS_MAX];
    /* A node in the place of another host, which is to be quiet when it is told to; or NULL. */
    struct gw_node *stranger;
    struct gw_pkt_pool *stranger_pool;
    uint32_t stranger_home;
    void (*hush)(struct gw_node *stranger);
};

enum gw_job_model_end {
    GW_JOB_MODEL_DIED, /* and nobody has come back for it */
    GW_JOB_MODEL_LEFT, /* all its calls have ended well */
    GW_JOB_MODEL_FAILED,
};

struct gw_job_model_rank {
    enum gw_job_model_end end;
    gw_time ended;                   /* since the beginning */
    uint32_t done, refused, dropped; /* calls; the last by the failure */
    /* Of a failure. */
    enum gw_job_reason reason;
    uint32_t about, server;
    struct gw_communicator_stats stats;
};

struct gw_job_model_server {
    struct gw_server_stats sums[2]; /* of its last life: via ina, via ps */
    uint64_t epochs;                /* of all lives */
    struct gw_mem_stats from, to;   /* of its link */
};

struct gw_job_model_result {
    struct gw_job_model_rank ranks[GW_JOB_MODEL_RANKS_MAX];
    struct gw_job_model_server servers[GW_JOB_MODEL_SERVERS_MAX];
    struct gw_aggregate_stats switches;              /* summed, of last lives */
    uint64_t contributions_missing, results_missing; /* fragments of calls with parts */
    uint64_t left_out;                               /* of these, by servers */
    uint64_t memory_most;                            /* bytes that one rank's allocator had out */
    gw_time time;
};

/* Runs the world to its end. */
void gw_job_model_run(const struct gw_job_model_cfg *cfg, struct gw_job_model_result *result);

/* Address of the host behind the servers: the stranger's. */
uint32_t gw_job_model_stranger_address(const struct gw_job_model_cfg *cfg);

#endif
