/*
 * What the worker sends: results that are owed to a server, what is to be sent again, then new
 * fragments as far as the window allows; see worker.h.
 */
#include "core/aggregation/worker_impl.h"

#include <string.h>

#include "core/aggregation/agg_bound.h"

static bool worker_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                            gw_time now)
{
    const struct gw_worker *worker = (const struct gw_worker *)sender;
    (void)ep;
    (void)now;
    if (worker->is_paused)
        return false;
    return gw_outstanding_has_resend(&worker->out) || gw_result_log_has_next(&worker->log) ||
           gw_worker_has_next(worker);
}

/* The next fragment to send: one to be sent again, else a new one. False: none. */
static bool take_seq(struct gw_worker *worker, uint32_t *seq, bool *again, gw_time now)
{
    *again = gw_outstanding_has_resend(&worker->out) &&
             gw_outstanding_take_resend(&worker->out, seq, now);
    if (*again)
        return true;
    if (!gw_worker_has_next(worker))
        return false;
    *seq = gw_outstanding_take_next(&worker->out, now);
    return true;
}

static void write_place(const struct gw_worker *worker, struct gw_pkt *pkt)
{
    pkt->agg.bitmap = gw_worker_position(worker);
    pkt->agg.level = worker->cfg.level;
    memcpy(pkt->agg.above, worker->cfg.above, sizeof(pkt->agg.above));
}

/* Writes the payload of the packet's fragment, and says whether it is raw. */
static inline __attribute__((always_inline)) void
fill_payload(struct gw_worker *worker, const struct gw_row_tensor *work, struct gw_pkt *pkt)
{
    uint8_t *note = gw_outstanding_note(&worker->out, pkt->seq);
    if (worker->cfg.proactive && !(*note & GW_NOTE_RAW) &&
        gw_worker_values_might_saturate(&worker->values, work, pkt->seq)) {
        *note |= GW_NOTE_RAW;
        worker->stats.flagged++;
    }
    if (gw_worker_values_write(&worker->values, work, pkt, *note & GW_NOTE_RAW)) {
        *note |= GW_NOTE_RAW;
        pkt->agg_flags |= GW_AGG_RAW | GW_AGG_RESEND;
        worker->stats.raw++;
    }
}

/* Fills a packet that gives a result back to the server; false when none is owed. */
static bool supply(struct gw_worker *worker, struct gw_pkt *pkt)
{
    const struct gw_kept_result *kept = gw_result_log_next(&worker->log);
    if (!kept)
        return false;
    gw_app_pkt(&worker->app, pkt, worker->cfg.server, kept->seq, kept->values);
    pkt->key = kept->key;
    pkt->epoch = worker->cfg.epoch;
    pkt->scale = kept->scale;
    uint32_t lacks = gw_agg_result_lacks(kept->word);
    pkt->agg_flags = (kept->flags & GW_AGG_RAW) | GW_AGG_FINAL | GW_AGG_RESEND;
    pkt->agg_flags |= lacks ? GW_AGG_COLLISION : 0;
    pkt->index = lacks ? (uint16_t)lacks : gw_agg_index_of(&worker->index, kept->seq);
    write_place(worker, pkt);
    pkt->buf = kept->buf;
    if (kept->buf != GW_BUF_NONE)
        gw_buf_share(worker->app.pool->bufs, kept->buf);
    worker->stats.supplied++;
    return true;
}

static struct gw_pkt *worker_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)sender;
    (void)ep;
    uint32_t seq = 0;
    bool again = false;
    struct gw_pkt *pkt = gw_app_claim(&worker->app);
    if (pkt && supply(worker, pkt))
        return pkt;
    gw_worker_skip(worker, now);
    if (!pkt || !gw_app_claim_buf(&worker->app, pkt)) {
        gw_app_arm_by(&worker->app, gw_time_add(now, worker->cfg.timeout));
        return NULL;
    }
    if (!take_seq(worker, &seq, &again, now)) {
        gw_pkt_release(worker->app.pool, pkt);
        return NULL;
    }
    const struct gw_row_tensor *work = gw_tensor_row_find(&worker->row, seq);
    gw_app_pkt(&worker->app, pkt, worker->cfg.server, seq,
               gw_tensor_row_values(&worker->row, work, seq));
    pkt->key = work->key;
    pkt->epoch = worker->cfg.epoch;
    if (worker->cfg.offers_exponents)
        pkt->scale = gw_worker_values_offer(&worker->values, seq);
    pkt->agg_flags = again ? GW_AGG_RESEND : 0;
    pkt->agg_flags |= gw_agg_congestion_says(&worker->cc, &worker->out, seq, again);
    pkt->index = gw_agg_index_of(&worker->index, seq);
    write_place(worker, pkt);
    pkt->agg.bound = worker->cfg.takes_bounds ? work->bound : 0;
    fill_payload(worker, work, pkt);
    if (!again && gw_worker_is_between_trains(worker))
        gw_app_end_train(&worker->app);
    worker->stats.sent++;
    worker->stats.resent += again;
    if (worker->app.timer_at == GW_TIME_NEVER)
        gw_app_arm(&worker->app, gw_outstanding_deadline(&worker->out, now));
    return pkt;
}

/* How many new fragments may follow the one that has just been filled: of the same length, in the
 * same train. If that is a new one, nothing else goes before them. */
static uint32_t room_behind(const struct gw_worker *worker, const struct gw_row_tensor *work,
                            const struct gw_pkt *pkt)
{
    const struct gw_outstanding *out = &worker->out;
    if (pkt->agg_flags & GW_AGG_RESEND || out->next - work->first == work->fragments ||
        gw_seq_before(out->next, worker->early_end))
        return 0;
    uint32_t room = worker->cc.end - out->next, train = worker->app.train;
    uint32_t of_train = train - (out->next - worker->train_first) % train;
    uint32_t whole = gw_tensor_row_whole(&worker->row, work, out->next);
    room = room < whole ? room : whole;
    room = room < of_train ? room : of_train;
    return room < worker->app.sender.train_left ? room : worker->app.sender.train_left;
}

static uint32_t worker_extend(struct gw_endpoint *ep, struct gw_sender *sender,
                              struct gw_pkt **pkts, uint32_t max, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)sender;
    const struct gw_row_tensor *work = gw_tensor_row_find(&worker->row, pkts[0]->seq);
    uint32_t end = work ? 1 + room_behind(worker, work, pkts[0]) : 1, count = 1;
    (void)ep;
    end = end < max ? end : max;
    while (count < end) {
        struct gw_pkt *pkt = gw_app_try(&worker->app);
        if (!pkt)
            break; /* emit() will find out, too */
        uint32_t seq = gw_outstanding_take_next(&worker->out, now);
        gw_app_pkt_like(&worker->app, pkt, pkts[0], seq);
        if (worker->cfg.offers_exponents)
            pkt->scale = gw_worker_values_offer(&worker->values, seq);
        pkt->agg_flags = gw_agg_congestion_says(&worker->cc, &worker->out, seq, false);
        pkt->index = gw_agg_index_of(&worker->index, seq);
        fill_payload(worker, work, pkt);
        pkts[count++] = pkt;
    }
    worker->stats.sent += count - 1;
    if (count > 1 && gw_worker_is_between_trains(worker))
        gw_app_end_train(&worker->app);
    return count;
}

const struct gw_sender_ops gw_worker_sender_ops = {
    .can_send = worker_can_send,
    .emit = worker_emit,
    .extend = worker_extend,
};

void gw_worker_wake(struct gw_worker *worker, gw_time now)
{
    gw_worker_skip(worker, now);
    if (!worker->app.sender.in_ring && worker_can_send(worker->app.ep, &worker->app.sender, now))
        gw_app_wake(&worker->app);
}
