/*
 * The inside of the worker, shared by worker.c, worker_other.c and worker_send.c and by nobody
 * else.
 *
 * Invariants: expected <= next <= row.end; what is out fits the largest window; results that are
 * owed to a server leave before gradients; it is busy (core/host/app.h) while it has work and is
 * not between two epochs.
 */
#ifndef GW_CORE_WORKER_IMPL_H
#define GW_CORE_WORKER_IMPL_H

#include "core/aggregation/agg_congestion.h"
#include "core/aggregation/outstanding.h"
#include "core/aggregation/result_log.h"
#include "core/aggregation/tensor_row.h"
#include "core/aggregation/worker.h"
#include "core/aggregation/worker_values.h"
#include "core/host/app.h"

struct gw_worker {
    struct gw_app app;
    struct gw_worker_cfg cfg;
    struct gw_agg_index index;
    void *index_memory;
    struct gw_tensor_row row; /* in work */
    struct gw_outstanding out;
    struct gw_agg_congestion cc;
    struct gw_worker_values values;
    struct gw_result_log log;
    uint32_t early_end;   /* no result behind it has come early */
    uint32_t train_first; /* where trains are counted from: the last tensor begun in idleness */
    bool is_paused;       /* between two epochs */
    bool is_out;          /* failed: an epoch must begin before the next call */
    gw_time result_at;    /* last result, or start of work */
    struct gw_worker_stats stats;
};

/* The worker's position below its first switch. */
static inline uint32_t gw_worker_position(const struct gw_worker *worker)
{
    const struct gw_worker_cfg *cfg = &worker->cfg;
    return cfg->level == 0 ? cfg->bitmap : UINT32_C(1) << cfg->above[cfg->level - 1];
}

/* Whether there are tensors without sums, or results that a server may lack. */
static inline bool gw_worker_has_work(const struct gw_worker *worker)
{
    return gw_tensor_row_count(&worker->row) || gw_result_log_owes(&worker->log);
}

enum {
    GW_WORKER_TRAINS_OUT = 3, /* while so many are under way, the next waits until it can be full */
};

/* Whether the next fragment that was never sent begins a train. */
static inline bool gw_worker_is_between_trains(const struct gw_worker *worker)
{
    return (worker->out.next - worker->train_first) % worker->app.train == 0;
}

/*
 * Whether a fragment that was never sent may leave: each result makes room for one, and once a
 * train is in pieces its pieces would come back as such for ever. So trains are the same fragments
 * at all workers, and the first one of a train waits until the window has room for all.
 */
static inline bool gw_worker_may_begin(const struct gw_worker *worker)
{
    uint32_t train = worker->app.train, left = worker->row.end - worker->out.next;
    return !gw_worker_is_between_trains(worker) ||
           worker->cc.end - worker->out.next >= (left < train ? left : train) ||
           gw_outstanding_count(&worker->out) < GW_WORKER_TRAINS_OUT * train;
}

/* Whether there is a fragment that was never sent, and room for it in the window. */
static inline bool gw_worker_has_next(const struct gw_worker *worker)
{
    return worker->out.next != worker->row.end &&
           gw_agg_congestion_has_room(&worker->cc, &worker->out) && gw_worker_may_begin(worker);
}

/* Takes results that came early, as far as fragments that are next to be sent have them. */
void gw_worker_skip(struct gw_worker *worker, gw_time now);

/* worker_other.c */

/* A packet comes that is not the first result of a fragment that is out; `work` is the tensor of
 * its fragment, or NULL if that is not out. The packet stays the caller's. */
void gw_worker_take_other(struct gw_worker *worker, const struct gw_row_tensor *work,
                          struct gw_pkt *pkt, gw_time now);

/* worker_send.c */

extern const struct gw_sender_ops gw_worker_sender_ops;

/* It may have something to send that it had not before. */
void gw_worker_wake(struct gw_worker *worker, gw_time now);

#endif
