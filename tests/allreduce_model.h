/*
 * A job's workers, its server and the switches of its tree, joined by the in-memory datapath: every
 * packet passes through its bytes, and links lose, double and delay packets as a seed says. The job
 * forms by job control, and processes die and come back as a script says.
 *
 * The root switch has the server, workers of its own and, below it, racks of workers or pods of
 * racks.
 */
#ifndef GW_TESTS_ALLREDUCE_MODEL_H
#define GW_TESTS_ALLREDUCE_MODEL_H

#include "core/switch/aggregate.h"
#include "core/control/coordinator.h"
#include "core/control/member.h"
#include "window_watch.h"

enum {
    GW_MODEL_WORKERS_MAX = 24,
    GW_MODEL_RACKS_MAX = 4,
    GW_MODEL_FAULTS_MAX = 4,
    GW_MODEL_VALUES_MAX = 64,
};

/* A process that dies. */
struct gw_model_fault {
    gw_time at;   /* since the beginning; 0: no fault */
    gw_time back; /* when it comes back; 0: never */
    enum gw_model_victim {
        GW_MODEL_SERVER,
        GW_MODEL_SWITCH, /* comes back empty */
        GW_MODEL_WORKER, /* comes back as another process of the same rank, on the spare host */
    } victim;
    uint32_t which; /* rank; switch: racks, then pods, then the root */
};

/* A worker whose link stands still now and then. */
struct gw_model_pauses {
    gw_time first;  /* since the beginning; 0: never */
    gw_time length; /* of each */
    gw_time every;  /* from the beginning of one to that of the next, longer than it */
    uint32_t rank;
    bool loses; /* what is sent meanwhile is lost; else it is late */
};

/* The rules of the job; 0 are ours. */
struct gw_model_rules {
    enum gw_agg_halving halving;
    enum gw_agg_overtaking overtaking;
    enum gw_agg_hashing hashing;
    enum gw_agg_remap remap;
    enum gw_agg_partials partials;
    enum gw_agg_reclaim reclaim;
    bool is_decimal; /* the scale */
};

enum { GW_MODEL_RULES = 7 };

/* Those whose bit is set are the paper's. */
struct gw_model_rules gw_model_rules_of(uint32_t bits);

struct gw_model_cfg {
    uint64_t seed;
    uint32_t racks; /* 0: all workers are at the root */
    uint32_t rack_workers[GW_MODEL_RACKS_MAX];
    uint32_t pods; /* racks are spread over so many switches of a level in between; 0: no such */
    uint32_t root_workers;
    uint32_t aggregators; /* per switch */
    uint32_t values;      /* per fragment */
    uint32_t window;
    uint32_t window_initial; /* 0: the largest */
    uint32_t queue_bytes;    /* of a port of a switch, which marks from a fifth of it; 0: ample */
    struct gw_model_rules rules;
    uint8_t notice; /* gw_notice_option of all workers */
    uint32_t first_seq;
    uint32_t tensors;
    uint32_t counts[8]; /* elements of each */
    uint32_t rounds;    /* times that all tensors are reduced; 0 is 1 */
    enum gw_dtype type;
    bool average;
    bool aggregates; /* else the switches only forward */
    bool rack_scale; /* every rack for itself: what is above only multiplies */
    bool one_by_one; /* a worker has one tensor in work, not all from the start */
    bool proactive;  /* fragments that might saturate travel raw */
    bool dynamic;    /* exponents are agreed on */
    bool resend_gap; /* all that is overdue is sent again */
    gw_time apart;   /* a worker begins so long after the one before it; without faults */
    bool rejoins;    /* workers whose calls failed join again and begin with the first round */
    uint32_t mover;  /* rank + 1 of the worker that leaves after a round and comes back elsewhere */
    struct gw_model_fault faults[GW_MODEL_FAULTS_MAX];
    gw_q16 bound;         /* of all calls */
    gw_time patience;     /* of the server; 0: it waits for everybody */
    gw_time patience_max; /* 0: the patience */
    struct gw_model_pauses pauses;
    bool loses_copies; /* one in 64 of what goes down to the first worker */
    uint32_t lose_of_64, double_of_64, delay_of_64; /* packets of each link, out of 64 */
    gw_time stall;                                  /* 0: never give up */
    gw_time quiet; /* of the server; 0: workers notice alone what collisions left behind */
    /* Element `index` of a worker's tensor, as the bits of the type. */
    uint32_t (*element)(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                        uint32_t index);
};

struct gw_model_result {
    uint32_t world;
    uint32_t reduced[GW_MODEL_WORKERS_MAX]; /* tensors that ended well, of the last attempt */
    uint32_t failed[GW_MODEL_WORKERS_MAX];  /* tensors that did not, of all attempts */
    uint8_t reason[GW_MODEL_WORKERS_MAX];   /* of the last failure: enum gw_job_reason */
    uint32_t about[GW_MODEL_WORKERS_MAX];
    bool died[GW_MODEL_WORKERS_MAX];          /* and nobody has come back for it */
    unsigned char *out[GW_MODEL_WORKERS_MAX]; /* all tensors one after the other */
    unsigned char *in[GW_MODEL_WORKERS_MAX];
    uint16_t *counts[GW_MODEL_WORKERS_MAX]; /* of all fragments: contributors */
    uint32_t fragments;
    size_t bytes;
    uint32_t epochs;
    uint64_t bursts;                    /* announced by workers that live at the end */
    struct gw_server_stats server;      /* of the last life */
    struct gw_worker_stats workers;     /* summed */
    struct gw_aggregate_stats switches; /* summed */
    uint32_t taken;                     /* aggregators still taken at the end */
    uint32_t jobs_left;                 /* switches that still know the job at the end */
    bool windows_equal;                 /* all workers ended with one window */
    struct gw_window_watch watch;       /* means something if nobody died */
    gw_time time;
};

/* What names the scale of its floats. */
static inline int gw_model_scale(const struct gw_model_cfg *cfg)
{
    return cfg->rules.is_decimal ? GW_SCALE_DECIMAL : GW_SCALE_EXPONENT;
}

/* Runs to the end (or fails the test after too many steps). */
void gw_model_run(const struct gw_model_cfg *cfg, struct gw_model_result *result);
void gw_model_result_free(struct gw_model_result *result);

/*
 * What one fragment must become, by portable kernels: `in` points to each worker's `count`
 * elements. With integers, scaled by 2^exponent unless they are int32; false: they or their sum do
 * not fit.
 */
bool gw_model_integer_sum(const struct gw_model_cfg *cfg, int exponent, uint32_t world,
                          const unsigned char *const *in, uint32_t count, unsigned char *out);
/* With raw floats, in rank order. */
void gw_model_raw_sum(const struct gw_model_cfg *cfg, uint32_t world,
                      const unsigned char *const *in, uint32_t count, unsigned char *out);

#endif
