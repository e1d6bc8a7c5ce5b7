/*
 * The worker: the part of an endpoint that hands a job's tensors to in-network aggregation and
 * takes the results (ATP, sections 3.4 to 3.7).
 *
 * Tensors are cut into fragments of `values` elements with consecutive sequence numbers. At most a
 * window of them is out; the result of a fragment is its acknowledgement. A fragment is sent again
 * when three later results have overtaken it or nothing came for `timeout`; the window follows the
 * congestion marks that results carry, by additive increase and multiplicative decrease. Workers
 * that expect the same fragment have the same window (agg_window.h). They scale a fragment by the
 * exponent that the result one window before it says (scaling.h).
 *
 * In a call with a bound the server may complete fragments without a straggler. The straggler takes
 * such results as they come, and does not send what it missed. Losses there say nothing of
 * congestion, marks do, as long as no more than the bound of the call's fragments are lost and
 * round trips do not say that packets wait (outstanding.h).
 *
 * What one worker alone notices, it tells the others in gradients that say "congestion".
 *
 * Attach it to an endpoint, reduce tensors, poll GW_EVENT_REDUCED or GW_EVENT_FAILED.
 */
#ifndef GW_CORE_WORKER_H
#define GW_CORE_WORKER_H

#include "core/aggregation/agg_index.h"
#include "core/host/endpoint.h"
#include "core/notice.h"
#include "core/quant/kernels.h"
#include "core/tensor.h"

struct gw_worker_cfg {
    uint32_t job;
    uint16_t epoch;
    uint16_t world;          /* workers of the job */
    uint32_t server;         /* address */
    uint8_t level;           /* of the first switch that adds up this worker */
    uint32_t bitmap;         /* its position there, if level is 0: one bit */
    uint8_t above[2];        /* position of its switch, or if level is 1 of itself, and so on up */
    uint8_t class;           /* of its gradient packets */
    uint32_t hdr;            /* bytes of a packet that are not values; 0: as the endpoint says */
    uint32_t values;         /* elements per fragment */
    uint32_t window_max;     /* fragments, 1 to GW_AGG_WINDOW_MAX */
    uint32_t window_initial; /* fragments */
    uint32_t window_min;     /* fragments: it is not cut below; 0: one, as in the paper. More where
                                packets are also lost without congestion */
    uint32_t aggregators;    /* of the switches */
    enum gw_agg_indexing indexing;
    enum gw_agg_hashing hashing;
    enum gw_agg_halving halving;
    enum gw_agg_overtaking overtaking;
    uint32_t share;       /* number of the job's range when indexing is static */
    uint32_t tensors_max; /* in work at the same time */
    gw_time timeout;      /* without progress: send the expected fragment again; doubles while
                             nothing comes at all */
    gw_time probe;        /* after a result, for longer than usual, which is this at the most, and
                             two of the shortest round trips without another: send it once
                             more; below timeout, 0: no */
    gw_time stall;        /* without progress: fail; 0: never */
    bool resend_gap;      /* send every overdue fragment again, not only the expected one */
    bool congestion_control; /* else the window stays at window_initial */
    bool keeps_results; /* those of the last two windows, in their buffers: to supply a server that
                           restarts */
    bool takes_bounds;  /* calls may have one; else it counts as 0. Keeps results of four windows,
                           and those that come before their fragments are sent; needs
                           keeps_results */
    int scale_exponent; /* values travel as multiples of 2^-exponent, or of 10^-8
                           (GW_SCALE_DECIMAL), unless a result says a smaller exponent */
    bool offers_exponents; /* dynamic scaling: says which exponents later fragments could use */
    bool proactive;        /* floats whose sum might saturate travel raw from the start */
    uint32_t first_seq;    /* of the first fragment; equal on all workers and the server */
    struct gw_notice_terms notice; /* of tensors after an idle time; rtt 0: that is timeout */
    const struct gw_kernels *kernels;
};

struct gw_worker_stats {
    uint64_t sent; /* gradient packets, resent ones included */
    uint64_t resent;
    uint64_t results;    /* fragments finished */
    uint64_t duplicates; /* results that were known */
    uint64_t raw;        /* fragments sent raw */
    uint64_t flagged;    /* fragments that `proactive` made raw */
    uint64_t remaps;     /* positions moved to another aggregator */
    uint64_t cuts;       /* of the window */
    uint64_t early;      /* results of fragments that it has not sent, which lack it */
    uint64_t skipped;    /* fragments that it never sent, for that */
    uint64_t lacking;    /* results that lack workers */
    uint64_t supplied;   /* results given back to a server that restarted */
    uint64_t stale;      /* packets of another epoch, or malformed */
};

/* What an epoch tells a worker. */
struct gw_worker_place {
    uint16_t epoch;
    uint8_t level; /* these three as in gw_worker_cfg */
    uint32_t bitmap;
    uint8_t above[2];
    uint32_t first_seq; /* of the epoch; not behind what the worker expects, unless is_fresh */
    bool is_fresh;      /* it has no calls in work, and begins with first_seq; so do all workers of
                           the epoch, or none: they forget the exponents that results said */
};

struct gw_worker;

/* Bytes of memory that a worker needs. */
size_t gw_worker_size(const struct gw_worker_cfg *cfg);

/*
 * Makes a worker in `memory`, aligned to 64, and attaches it. Returns 0 and sets *worker, or the
 * error of gw_app_attach().
 */
int gw_worker_init(struct gw_worker **worker, void *memory, const struct gw_worker_cfg *cfg,
                   struct gw_endpoint *endpoint);

/* Detaches; tensors in work post no event any more. The memory is the caller's again. */
void gw_worker_fini(struct gw_worker *worker);

/*
 * Queues a tensor. Returns 0, GW_ERR_NO_ROOM (tensors_max are in work, or events wait to be
 * polled), GW_ERR_INVALID, or GW_ERR_OUT (a call has failed: the job must begin another epoch).
 */
int gw_worker_reduce(struct gw_worker *worker, const struct gw_tensor *tensor, gw_time now);

/* Sends nothing more until the next gw_worker_place(). Calls in work wait. */
void gw_worker_pause(struct gw_worker *worker);

/*
 * Begins an epoch: what has no result is sent again, by the new place; results since
 * `place->first_seq` that the worker keeps are supplied to the server until it confirms them.
 */
void gw_worker_place(struct gw_worker *worker, const struct gw_worker_place *place, gw_time now);

/*
 * Fails all calls in work, with enum gw_job_reason and the rank or address that it is about.
 * The worker is out, as after a failure of its own: gw_worker_place() brings it back.
 */
void gw_worker_fail(struct gw_worker *worker, uint32_t reason, uint32_t about, gw_time now);

/* True while results were given back that the server has not confirmed: do not leave. */
bool gw_worker_owes(const struct gw_worker *worker);

/* True after a failure: no call is taken. */
bool gw_worker_is_out(const struct gw_worker *worker);

/* Window in 1/65536 fragments. */
uint64_t gw_worker_window(const struct gw_worker *worker);

/* First fragment without result. */
uint32_t gw_worker_expected(const struct gw_worker *worker);

const struct gw_worker_stats *gw_worker_stats(const struct gw_worker *worker);

#endif
