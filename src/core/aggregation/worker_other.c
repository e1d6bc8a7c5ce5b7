/*
 * What comes to a worker that is not the first result of a fragment that it has out: what the
 * server asks for, results that are early or known, and what is not meant for it; see worker.h.
 */
#include "core/aggregation/worker_impl.h"

#include "core/aggregation/agg_bound.h"

/* A result of what this worker has not sent: it waits for its turn, and then is not sent. */
static void take_early(struct gw_worker *worker, struct gw_pkt *pkt)
{
    if (!worker->cfg.takes_bounds || pkt->seq - worker->out.expected >= worker->log.count) {
        worker->stats.duplicates++;
        return;
    }
    worker->stats.early++;
    if (pkt->q.ecn == GW_ECN_CE)
        gw_agg_window_notice(&worker->cc.window);
    if (gw_seq_before(worker->early_end, pkt->seq + 1))
        worker->early_end = pkt->seq + 1;
    gw_result_log_keep(&worker->log, pkt);
}

/*
 * The server wants a fragment again: raw, or because of a collision what some of the workers sent.
 * All hear of a collision, so that none takes the fragment's being overtaken for a loss.
 */
static void take_request(struct gw_worker *worker, const struct gw_pkt *pkt)
{
    bool is_raw = pkt->agg_flags & GW_AGG_RAW;
    *gw_outstanding_note(&worker->out, pkt->seq) |= is_raw ? GW_NOTE_RAW : GW_NOTE_ASKED;
    if (is_raw || pkt->agg.bitmap & gw_worker_position(worker))
        gw_outstanding_resend(&worker->out, pkt->seq);
}

static bool is_span(const struct gw_pkt *pkt)
{
    const uint8_t span = GW_AGG_REQUEST | GW_AGG_SPAN;
    return (pkt->agg_flags & (span | GW_AGG_RAW)) == span;
}

/*
 * The server wants what this worker has out, up to the end of the span. What comes before that has
 * its result, and the worker lacks it: the server answers with that. What may still be on its way
 * is not sent again: its link may be slow, and it would be late for what it sends.
 */
static void take_invitation(struct gw_worker *worker, const struct gw_pkt *pkt, gw_time now)
{
    uint32_t end = pkt->seq + pkt->index + 1;
    gw_outstanding_resend_before(
        &worker->out, gw_seq_before(end, worker->out.next) ? end : worker->out.next, now);
}

/* The server wants what switches hold of a span of fragments, of whatever calls. */
static void take_span(struct gw_worker *worker, const struct gw_pkt *pkt)
{
    uint32_t seq = gw_seq_before(pkt->seq, worker->out.expected) ? worker->out.expected : pkt->seq;
    for (; gw_outstanding_has(&worker->out, seq) && seq - pkt->seq <= pkt->index; seq++) {
        *gw_outstanding_note(&worker->out, seq) |= GW_NOTE_ASKED;
        if (pkt->agg.bitmap & gw_worker_position(worker))
            gw_outstanding_resend(&worker->out, seq);
    }
}

/* Whether a packet is a result that lacks workers. */
static bool is_lacking(const struct gw_pkt *pkt)
{
    return !(pkt->agg_flags & (GW_AGG_REQUEST | GW_AGG_FAILED)) &&
           gw_agg_result_lacks(pkt->agg.bitmap) > 0;
}

/* Whether a packet cannot be meant for this worker, which has `work` out or NULL. */
static bool is_stale(const struct gw_worker *worker, const struct gw_row_tensor *work,
                     const struct gw_pkt *pkt)
{
    if (pkt->epoch != worker->cfg.epoch || pkt->src != worker->cfg.server)
        return true;
    if (is_lacking(pkt) &&
        !gw_agg_may_lack(gw_agg_result_lacks(pkt->agg.bitmap), worker->cfg.world))
        return true;
    return work && pkt->key != work->key && !is_span(pkt);
}

void gw_worker_take_other(struct gw_worker *worker, const struct gw_row_tensor *work,
                          struct gw_pkt *pkt, gw_time now)
{
    if (is_stale(worker, work, pkt)) {
        worker->stats.stale++;
    } else if (is_span(pkt) && pkt->agg_flags & GW_AGG_UNICAST) {
        take_invitation(worker, pkt, now);
    } else if (is_span(pkt)) {
        take_span(worker, pkt);
    } else if (is_lacking(pkt) && !gw_seq_before(pkt->seq, worker->out.next)) {
        take_early(worker, pkt);
    } else if (!work || *gw_outstanding_note(&worker->out, pkt->seq) & GW_NOTE_DONE) {
        worker->stats.duplicates++;
        if (!(pkt->agg_flags & GW_AGG_REQUEST)) { /* else the server lacks what we give back */
            gw_outstanding_note_answer(&worker->out, pkt->seq, now);
            gw_result_log_confirm(&worker->log, pkt->seq);
        }
    } else if (pkt->agg_flags & GW_AGG_FAILED) {
        gw_worker_fail(worker, GW_JOB_OVERFLOW, 0, now);
    } else if (pkt->agg_flags & GW_AGG_REQUEST) {
        take_request(worker, pkt);
    } else {
        worker->stats.stale++; /* a result, and nothing else is wrong with it: not as many values */
    }
}
