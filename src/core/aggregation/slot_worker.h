/*
 * The worker of aggregation in slots: the part of an endpoint that hands a job's tensors to the
 * slots of its switch and takes the results (SwitchML, NSDI 2021, sections 3.3 to 3.5, algorithms 2
 * and 4). What the switch does is in core/switch/slots.h.
 *
 * Each slot of the job has at most one fragment out, and the result of that one releases the next:
 * so the pool is the window, and results are the clock. A fragment without result for `timeout` is
 * sent again, unchanged. There is no congestion control, and packets say so (Not-ECT).
 *
 * A number that does not fit has no other way to travel: values must be scaled so that sums stay
 * below 2^31 - 1 in magnitude, which the paper finds out by profiling. When a worker's value or a
 * sum does not fit, the call fails on all workers, and the calls behind it go on.
 *
 * Attach it to an endpoint, reduce tensors, poll GW_EVENT_REDUCED or GW_EVENT_FAILED.
 */
#ifndef GW_CORE_SLOT_WORKER_H
#define GW_CORE_SLOT_WORKER_H

#include "core/host/endpoint.h"
#include "core/quant/kernels.h"
#include "core/tensor.h"

struct gw_slot_worker_cfg {
    uint32_t job;
    uint16_t epoch;
    uint16_t rank;        /* below world */
    uint16_t world;       /* workers of the job, 1 to GW_SLOTS_WORLD_MAX */
    uint8_t class;        /* of its gradient packets, and so of the results */
    uint32_t peer;        /* address that gradients go to: any for which they pass the switch */
    uint32_t slots;       /* of the job, 1 to GW_SLOTS_MAX; as installed in the switch */
    uint32_t values;      /* elements per fragment */
    uint32_t tensors_max; /* in work at the same time */
    gw_time timeout;      /* without result: send the fragment again */
    gw_time stall;        /* without any result: fail all calls in work; 0: never */
    int scale_exponent;   /* values travel as multiples of 2^-exponent */
    uint32_t first_seq;   /* of the first fragment; equal on all workers */
    struct gw_notice_terms notice; /* of tensors after an idle time; rtt 0: that is timeout */
    const struct gw_kernels *kernels;
};

struct gw_slot_worker_stats {
    uint64_t sent; /* gradient packets, resent ones included */
    uint64_t resent;
    uint64_t results;    /* fragments finished */
    uint64_t spoilt;     /* of these, without a sum: it does not fit */
    uint64_t duplicates; /* results that were known */
    uint64_t stale;      /* packets of another epoch, or malformed */
};

struct gw_slot_worker;

/* Bytes of memory that a worker needs. */
size_t gw_slot_worker_size(const struct gw_slot_worker_cfg *cfg);

/*
 * Makes a worker in `memory`, aligned to 64, and attaches it. Returns 0 and sets *worker, or the
 * error of gw_app_attach().
 */
int gw_slot_worker_init(struct gw_slot_worker **worker, void *memory,
                        const struct gw_slot_worker_cfg *cfg, struct gw_endpoint *endpoint);

/* Detaches; tensors in work post no event any more. The memory is the caller's again. */
void gw_slot_worker_fini(struct gw_slot_worker *worker);

/*
 * Queues a tensor. Every worker must reduce the same row; after a failure by `stall`, too: then
 * each of the following calls succeeds as soon as all workers make it at the same time. Returns 0,
 * GW_ERR_NO_ROOM (tensors_max are in work, or events wait to be polled), or GW_ERR_INVALID.
 */
int gw_slot_worker_reduce(struct gw_slot_worker *worker, const struct gw_tensor *tensor,
                          gw_time now);

/* The fragment whose turn it is in a slot of the job: the first one there without result. */
uint32_t gw_slot_worker_seq(const struct gw_slot_worker *worker, uint32_t slot);

const struct gw_slot_worker_stats *gw_slot_worker_stats(const struct gw_slot_worker *worker);

#endif
