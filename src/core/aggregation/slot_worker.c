/*
 * The worker of aggregation in slots; see slot_worker.h.
 *
 * Invariants: fragment `seq` of slot i is the only one of the slot that can be out, all before it
 * there have results; a slot is on the list of its state, and on none when idle; the slot of
 * fragment row.end is end_slot, and that of the j-th behind it end_slot + j modulo the slots; a
 * timer is armed while a tensor is in work.
 */
#include "core/aggregation/slot_worker.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/index_list.h"
#include "base/stall.h"
#include "core/host/app.h"
#include "core/job.h"
#include "core/aggregation/tensor_row.h"

enum slot_state {
    SLOT_IDLE,    /* its fragment belongs to no tensor yet; a call moves it on */
    SLOT_READY,   /* its fragment waits to be sent; sending moves it on */
    SLOT_FLIGHT,  /* its fragment is out; the result or a timeout moves it on */
    SLOT_OVERDUE, /* its fragment waits to be sent again; that or the result moves it on */
};

/* A slot, or the head of a list: behind the job's slots there are two. */
struct slot {
    gw_time sent_at; /* last time */
    uint32_t seq;
    uint32_t prev;
    uint32_t next;
    uint8_t version;
    uint8_t state; /* enum slot_state */
};

struct gw_slot_worker {
    struct gw_app app;
    struct gw_slot_worker_cfg cfg;
    struct gw_tensor_row row;
    struct slot *slots;
    uint32_t waiting; /* head of the list of ready and overdue slots, in the order of sending */
    uint32_t flight;  /* head of the list of slots in flight, the one sent first in front */
    uint32_t end_slot;
    gw_time result_at; /* last result, or start of work */
    struct gw_slot_worker_stats stats;
};

GW_INDEX_LIST(slot_list, struct slot)

static bool slot_worker_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                                 gw_time now)
{
    const struct gw_slot_worker *worker = (const struct gw_slot_worker *)sender;
    (void)ep;
    (void)now;
    return !slot_list_is_empty(worker->slots, worker->waiting);
}

static void slot_worker_wake(struct gw_slot_worker *worker)
{
    if (!slot_list_is_empty(worker->slots, worker->waiting))
        gw_app_wake(&worker->app);
}

static void enter_ready(struct gw_slot_worker *worker, uint32_t at)
{
    worker->slots[at].state = SLOT_READY;
    slot_list_append(worker->slots, worker->waiting, at);
}

static void enter_overdue(struct gw_slot_worker *worker, uint32_t at)
{
    worker->slots[at].state = SLOT_OVERDUE;
    slot_list_remove(worker->slots, at);
    slot_list_append(worker->slots, worker->waiting, at);
}

static void enter_flight(struct gw_slot_worker *worker, uint32_t at, gw_time now)
{
    worker->slots[at].state = SLOT_FLIGHT;
    worker->slots[at].sent_at = now;
    slot_list_remove(worker->slots, at);
    slot_list_append(worker->slots, worker->flight, at);
}

/* Passes the slot on to its next fragment, with the other version. */
static void slot_advance(struct gw_slot_worker *worker, uint32_t at)
{
    struct slot *slot = &worker->slots[at];
    slot_list_remove(worker->slots, at);
    slot->seq += worker->cfg.slots;
    slot->version ^= 1;
    slot->state = SLOT_IDLE;
    if (gw_seq_before(slot->seq, worker->row.end))
        enter_ready(worker, at);
}

/*
 * Writes the payload. Values that have no integer are all replaced by a number that counts as
 * saturated, so that the sum does, too, on every worker.
 */
static void fill_payload(struct gw_slot_worker *worker, const struct gw_row_tensor *work,
                         struct gw_pkt *pkt)
{
    static const unsigned char saturated[4] = {0, 0, 0, 0x80}; /* INT32_MIN, little-endian */
    const unsigned char *in = work->tensor.in;
    if (!in)
        return;
    unsigned char *out = gw_buf_bytes(worker->app.pool->bufs, pkt->buf);
    in += gw_tensor_row_offset(&worker->row, work, pkt->seq);
    if (worker->cfg.kernels->quantise[work->tensor.type](out, in, pkt->agg.values, &work->scale))
        return;
    for (uint32_t i = 0; i < pkt->agg.values; i++)
        memcpy(out + sizeof(saturated) * i, saturated, sizeof(saturated));
}

static struct gw_pkt *slot_worker_emit(struct gw_endpoint *ep, struct gw_sender *sender,
                                       gw_time now)
{
    struct gw_slot_worker *worker = (struct gw_slot_worker *)sender;
    struct gw_pkt *pkt = gw_app_claim(&worker->app);
    (void)ep;
    if (!pkt || !gw_app_claim_buf(&worker->app, pkt))
        return NULL; /* the timer wakes it */
    uint32_t at = slot_list_first(worker->slots, worker->waiting);
    const struct slot *slot = &worker->slots[at];
    const struct gw_row_tensor *work = gw_tensor_row_find(&worker->row, slot->seq);
    gw_app_pkt(&worker->app, pkt, worker->cfg.peer, slot->seq,
               gw_tensor_row_values(&worker->row, work, slot->seq));
    pkt->q.ecn = GW_ECN_NOT_ECT;
    pkt->key = work->key;
    pkt->epoch = worker->cfg.epoch;
    pkt->agg_flags = GW_AGG_SLOT;
    pkt->index = (uint16_t)at;
    pkt->agg.level = slot->version;
    pkt->agg.bitmap = UINT32_C(1) << worker->cfg.rank;
    fill_payload(worker, work, pkt);
    worker->stats.sent++;
    worker->stats.resent += slot->state == SLOT_OVERDUE;
    enter_flight(worker, at, now);
    return pkt;
}

/* Ends the oldest tensor. */
static void end_first(struct gw_slot_worker *worker, enum gw_event_kind kind,
                      enum gw_job_reason reason, gw_time now)
{
    const struct gw_tensor *tensor = &gw_tensor_row_first(&worker->row)->tensor;
    gw_app_post(&worker->app, &(struct gw_event){
                                  .kind = kind,
                                  .flow = worker->cfg.job,
                                  .peer = worker->cfg.peer,
                                  .tag = tensor->tag,
                                  .bytes = tensor->count * gw_dtype_size(tensor->type),
                                  .retransmits = worker->stats.resent,
                                  .reason = (uint8_t)reason,
                                  .at = now,
                              });
    gw_tensor_row_pop(&worker->row);
}

/* Gives up all tensors in work; every slot waits for its first fragment behind them. */
static void slot_worker_fail(struct gw_slot_worker *worker, gw_time now)
{
    while (gw_tensor_row_first(&worker->row))
        end_first(worker, GW_EVENT_FAILED, GW_JOB_STALLED, now);
    for (uint32_t behind = 0; behind < worker->cfg.slots; behind++) {
        struct slot *slot = &worker->slots[(worker->end_slot + behind) % worker->cfg.slots];
        uint32_t seq = worker->row.end + behind;
        slot->version ^= (seq - slot->seq) / worker->cfg.slots & 1;
        slot->seq = seq;
        slot->state = SLOT_IDLE;
    }
    slot_list_init(worker->slots, worker->waiting);
    slot_list_init(worker->slots, worker->flight);
    gw_app_rest(&worker->app);
    gw_app_arm(&worker->app, GW_TIME_NEVER);
}

static void take_result(struct gw_slot_worker *worker, struct gw_row_tensor *work,
                        const struct gw_pkt *pkt, gw_time now)
{
    const struct gw_kernels *kernels = worker->cfg.kernels;
    worker->stats.results++;
    worker->result_at = now;
    work->results++;
    if (pkt->buf != GW_BUF_NONE && work->tensor.out) {
        unsigned char *out = work->tensor.out;
        const unsigned char *in = gw_buf_bytes(worker->app.pool->bufs, pkt->buf);
        out += gw_tensor_row_offset(&worker->row, work, pkt->seq);
        if (kernels->is_saturated(in, pkt->agg.values)) {
            worker->stats.spoilt++;
            work->is_spoilt = true;
        } else {
            kernels->dequantise[work->tensor.type](out, in, pkt->agg.values, &work->scale);
        }
    }
    slot_advance(worker, pkt->index);
    for (work = gw_tensor_row_first(&worker->row); work && work->results == work->fragments;
         work = gw_tensor_row_first(&worker->row))
        end_first(worker, work->is_spoilt ? GW_EVENT_FAILED : GW_EVENT_REDUCED,
                  work->is_spoilt ? GW_JOB_OVERFLOW : GW_JOB_OK, now);
}

/* The tensor that a packet has a result for, or NULL: it has none that is awaited. */
static struct gw_row_tensor *awaited_by(struct gw_slot_worker *worker, const struct gw_pkt *pkt)
{
    const struct slot *slot = pkt->index < worker->cfg.slots ? &worker->slots[pkt->index] : NULL;
    if (!slot || pkt->epoch != worker->cfg.epoch || pkt->agg_flags != GW_AGG_SLOT) {
        worker->stats.stale++;
        return NULL;
    }
    if (gw_seq_before(pkt->seq, slot->seq)) {
        worker->stats.duplicates++;
        return NULL;
    }
    bool is_out = slot->state == SLOT_FLIGHT || slot->state == SLOT_OVERDUE;
    struct gw_row_tensor *work = gw_tensor_row_find(&worker->row, pkt->seq);
    if (!is_out || pkt->seq != slot->seq || pkt->agg.level != slot->version ||
        pkt->key != work->key ||
        pkt->agg.values != gw_tensor_row_values(&worker->row, work, pkt->seq)) {
        worker->stats.stale++;
        return NULL;
    }
    return work;
}

static void slot_worker_input(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    struct gw_slot_worker *worker = (struct gw_slot_worker *)app;
    for (uint32_t i = 0; i < count; i++) {
        struct gw_row_tensor *work = awaited_by(worker, pkts[i]);
        if (work)
            take_result(worker, work, pkts[i], now);
        if (gw_app_is_announced(app) && gw_tensor_row_count(&worker->row) == 0)
            gw_app_idle(app, now);
        gw_pkt_release(app->pool, pkts[i]);
    }
    slot_worker_wake(worker);
}

static void slot_worker_expire(struct gw_app *app, gw_time now)
{
    struct gw_slot_worker *worker = (struct gw_slot_worker *)app;
    const struct slot *slots = worker->slots;
    gw_time timeout = worker->cfg.timeout;
    if (gw_tensor_row_count(&worker->row) == 0) {
        gw_app_arm(app, GW_TIME_NEVER);
        return;
    }
    if (gw_stall_is_over(worker->result_at, worker->cfg.stall, now)) {
        slot_worker_fail(worker, now);
        return;
    }
    uint32_t oldest = slot_list_first(slots, worker->flight);
    for (; oldest != worker->flight && now - slots[oldest].sent_at >= timeout;
         oldest = slot_list_first(slots, worker->flight))
        enter_overdue(worker, oldest);
    gw_app_arm(app, gw_time_add(oldest == worker->flight ? now : slots[oldest].sent_at, timeout));
    slot_worker_wake(worker);
}

static const struct gw_sender_ops slot_worker_sender_ops = {
    .can_send = slot_worker_can_send,
    .emit = slot_worker_emit,
};

static const struct gw_app_ops slot_worker_app_ops = {
    .role = GW_APP_SLOT_WORKER,
    .input = slot_worker_input,
    .expire = slot_worker_expire,
};

/* Carves the tables out of the arena, behind the worker itself. */
static void slot_worker_carve(struct gw_slot_worker *worker, const struct gw_slot_worker_cfg *cfg,
                              struct gw_arena *arena)
{
    void *row = gw_arena_take(arena, gw_tensor_row_size(cfg->tensors_max));
    worker->slots = gw_arena_take(arena, (cfg->slots + 2) * sizeof(*worker->slots));
    if (arena->base)
        gw_tensor_row_init(&worker->row, row, cfg->tensors_max, cfg->values, cfg->first_seq);
}

size_t gw_slot_worker_size(const struct gw_slot_worker_cfg *cfg)
{
    struct gw_slot_worker worker;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(worker));
    slot_worker_carve(&worker, cfg, &arena);
    return arena.used;
}

int gw_slot_worker_init(struct gw_slot_worker **result, void *memory,
                        const struct gw_slot_worker_cfg *cfg, struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->world <= GW_SLOTS_WORLD_MAX && cfg->rank < cfg->world);
    GW_ASSERT(cfg->slots >= 1 && cfg->slots <= GW_SLOTS_MAX && cfg->timeout > 0);
    struct gw_arena arena = {.base = memory};
    struct gw_slot_worker *worker = gw_arena_take(&arena, sizeof(*worker));
    *worker = (struct gw_slot_worker){
        .app = {.ops = &slot_worker_app_ops,
                .job = cfg->job,
                .notice = cfg->notice,
                .sender = {.ops = &slot_worker_sender_ops, .class = cfg->class}},
        .cfg = *cfg,
        .waiting = cfg->slots,
        .flight = cfg->slots + 1,
    };
    *result = worker;
    int error = gw_app_attach(&worker->app, ep);
    if (error)
        return error;
    GW_ASSERT(!worker->app.pool->bufs || worker->app.pool->bufs->size / 4 >= cfg->values);
    if (cfg->notice.rtt == 0)
        worker->app.notice.rtt = cfg->timeout;
    slot_worker_carve(worker, cfg, &arena);
    for (uint32_t i = 0; i < cfg->slots; i++)
        worker->slots[i] = (struct slot){.seq = cfg->first_seq + i};
    slot_list_init(worker->slots, worker->waiting);
    slot_list_init(worker->slots, worker->flight);
    return GW_OK;
}

void gw_slot_worker_fini(struct gw_slot_worker *worker)
{
    gw_app_detach(&worker->app);
}

int gw_slot_worker_reduce(struct gw_slot_worker *worker, const struct gw_tensor *tensor,
                          gw_time now)
{
    uint32_t begin = worker->row.end;
    if ((tensor->in != NULL) != (worker->app.pool->bufs != NULL))
        return GW_ERR_INVALID;
    if (!gw_app_may_promise(&worker->app))
        return GW_ERR_NO_ROOM;
    bool was_idle = gw_tensor_row_count(&worker->row) == 0;
    int error =
        gw_tensor_row_push(&worker->row, tensor, worker->cfg.scale_exponent, worker->cfg.world);
    if (error)
        return error;
    if (was_idle) {
        worker->result_at = now;
        gw_app_busy(&worker->app, worker->cfg.peer, now);
    }
    gw_app_promise(&worker->app);
    uint32_t fragments = worker->row.end - begin;
    for (uint32_t i = 0; i < fragments && i < worker->cfg.slots; i++) {
        uint32_t at = (worker->end_slot + i) % worker->cfg.slots;
        if (worker->slots[at].state == SLOT_IDLE)
            enter_ready(worker, at);
    }
    worker->end_slot = (worker->end_slot + fragments) % worker->cfg.slots;
    gw_app_arm_by(&worker->app, gw_time_add(now, worker->cfg.timeout));
    slot_worker_wake(worker);
    return GW_OK;
}

uint32_t gw_slot_worker_seq(const struct gw_slot_worker *worker, uint32_t slot)
{
    return worker->slots[slot].seq;
}

const struct gw_slot_worker_stats *gw_slot_worker_stats(const struct gw_slot_worker *worker)
{
    return &worker->stats;
}
