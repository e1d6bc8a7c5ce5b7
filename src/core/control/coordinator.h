/*
 * Job control on the server's side: gathers the workers, places them and the switches in a tree,
 * and begins and ends epochs; see job.h.
 *
 * It keeps no state that must outlive it: one that restarts learns from the workers who they are,
 * what they expect, which epoch they were in and how they announce bursts.
 */
#ifndef GW_CORE_COORDINATOR_H
#define GW_CORE_COORDINATOR_H

#include "core/job.h"
#include "core/notice.h"
#include "core/aggregation/server.h"

struct gw_coordinator_cfg {
    uint32_t job;
    uint16_t world;
    uint8_t levels;      /* of switches that add up, at most; 0: none; 1: every rack for itself */
    uint32_t window_max; /* the terms of the workers: see gw_worker_cfg */
    uint16_t values;     /* elements per fragment */
    uint16_t share;      /* number of the job's range when indexing is static */
    uint32_t aggregators;
    enum gw_agg_indexing indexing;
    enum gw_agg_hashing hashing;
    enum gw_agg_partials partials; /* told to switches */
    int8_t scale_exponent;
    uint32_t incarnation;  /* random, not 0 */
    uint32_t first_seq;    /* of the first epoch */
    gw_time retry;         /* until an unanswered packet is sent again */
    gw_time beat;          /* between refreshes of the switches */
    gw_time silence;       /* a worker that is silent for so long is given up: several of the
                              workers' beats */
    bool agrees_exponents; /* as the server's: workers then hold what no newcomer has, so one that
                              leaves can only come back after the calls of all have failed */
    /* Whether the worker at that address may have a seat now; one that may not yet is not answered.
     * NULL: all may. */
    bool (*admits)(const void *context, uint32_t address);
    const void *context;
    struct gw_notice_path notice_path; /* for workers that announce bursts by the formula */
    struct gw_server *server;          /* of the same job, on the same endpoint */
};

enum gw_coordinator_phase {
    GW_COORDINATOR_GATHERING,  /* the last worker's JOIN moves it on */
    GW_COORDINATOR_INSTALLING, /* the last switch's INSTALLED moves it on */
    GW_COORDINATOR_RUNNING,    /* a JOIN, a silent worker or the last LEAVE moves it on */
    GW_COORDINATOR_CLOSING, /* the switches are to forget the job: a JOIN, or time, moves it on */
};

struct gw_coordinator_stats {
    uint64_t epochs;   /* begun */
    uint64_t silences; /* epochs that ended because a worker was silent */
    uint64_t refused;  /* JOINs */
    uint64_t stray;    /* packets of no worker or switch of the job */
};

struct gw_coordinator;

/* Bytes of memory that a coordinator needs. */
size_t gw_coordinator_size(const struct gw_coordinator_cfg *cfg);

/*
 * Makes a coordinator in `memory`, aligned to 64, and attaches it. Returns 0 and sets *coordinator,
 * or the error of gw_app_attach().
 */
int gw_coordinator_init(struct gw_coordinator **coordinator, void *memory,
                        const struct gw_coordinator_cfg *cfg, struct gw_endpoint *endpoint);

/* Detaches at once, without a word to anybody. The server is the caller's. */
void gw_coordinator_fini(struct gw_coordinator *coordinator);

/*
 * The worker of this rank and address was alive at that time, as the caller knows by another way
 * than the job's packets: while a switch between is down, nobody is lost.
 */
void gw_coordinator_hear(struct gw_coordinator *coordinator, uint32_t rank, uint32_t address,
                         gw_time at);

/* What is known of the path now. The threshold of the job's bursts follows from what was known when
 * its first epoch began. */
void gw_coordinator_set_notice_path(struct gw_coordinator *coordinator,
                                    const struct gw_notice_path *path);

enum gw_coordinator_phase gw_coordinator_phase(const struct gw_coordinator *coordinator);

/* Of the running or the last epoch; 0: none. */
uint16_t gw_coordinator_epoch(const struct gw_coordinator *coordinator);

const struct gw_coordinator_stats *gw_coordinator_stats(const struct gw_coordinator *coordinator);

#endif
