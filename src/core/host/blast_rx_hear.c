/*
 * The receiver half of a blast hears of its sender, and does what is due in time; see blast.h.
 *
 * A STOP says that all of a round has left. It may have overtaken data, so it is answered when none
 * has come for a while. Its REQUESTs leave in the endpoint's turn, as control, one for each word of
 * places with something missing.
 */
#include "core/host/blast.h"

#include "base/stall.h"
#include "core/host/credit.h"

/* Fields that a RENDEZVOUS fixes: a copy must say the same. */
static bool is_same(const struct gw_blast_rx *blast, const struct gw_pkt *pkt)
{
    return pkt->hail.word[0] == blast->total && pkt->hail.word[1] == blast->tag &&
           pkt->hail.number == blast->mss && pkt->index == blast->last_len &&
           (pkt->seq & GW_HAIL_BOUND_MAX) == (uint64_t)blast->bound;
}

void gw_blast_rx_accept(struct gw_endpoint *ep, const struct gw_pkt *pkt, uint32_t arrived,
                        uint8_t marks)
{
    gw_blast_say(ep, &(struct gw_blast_say){
                         .op = GW_HAIL_ACCEPT,
                         .peer = pkt->src,
                         .flow = pkt->flow,
                         .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
                         .seq = arrived,
                         .marks = marks,
                         .time = pkt->sent_at,
                     });
}

/* Keeps the fastest hail as what data is compared with. */
static void measure_hail(struct gw_blast_rx *blast, const struct gw_pkt *pkt, gw_time now)
{
    gw_time delay = now - pkt->sent_at;
    if ((int64_t)((delay - blast->hail_delay) << 16) < 0)
        blast->hail_delay = delay;
}

static void hear_rendezvous(struct gw_endpoint *ep, struct gw_blast_rx *blast,
                            const struct gw_pkt *pkt, gw_time now)
{
    if (!blast) {
        gw_blast_rx_accept(ep, pkt, 0, gw_blast_rx_open(ep, pkt, now));
    } else if (!is_same(blast, pkt)) {
        ep->stats.malformed++;
    } else if (blast->state == GW_BLAST_DONE || blast->state == GW_BLAST_LINGERING) {
        gw_blast_rx_finish(ep, blast, now);
    } else if (blast->state == GW_BLAST_ACTIVE) {
        measure_hail(blast, pkt, now);
        gw_blast_rx_accept(ep, pkt, blast->arrived, 0);
    }
}

/* How long no data must have come before what is missing counts as lost. */
static gw_time patience(const struct gw_endpoint *ep, const struct gw_blast_rx *blast)
{
    /* Without any of this round, what others have met tells. */
    gw_time lag = blast->has_begun ? blast->lag : ep->blast_lag;
    return 2 * lag + blast->rtt / 2 + GW_US;
}

/* How far the answers to two STOPs lie apart: no further than reports, since where many send at
 * once nothing may come of several rounds. */
static gw_time answers_apart(const struct gw_endpoint *ep, const struct gw_blast_rx *blast)
{
    gw_time apart = blast->rtt << blast->patience;
    gw_time most = blast->rtt > ep->cfg.report_every ? blast->rtt : ep->cfg.report_every;
    return apart < most ? apart : most;
}

/* When the STOP is to be answered, as things are. */
static gw_time answer_at(const struct gw_endpoint *ep, const struct gw_blast_rx *blast)
{
    gw_time quiet_since =
        gw_time_before(blast->stop_at, blast->data_at) ? blast->data_at : blast->stop_at;
    gw_time at = gw_time_add(quiet_since, patience(ep, blast));
    gw_time again_at = gw_time_add(blast->answered_at, answers_apart(ep, blast));
    return blast->asked_for && gw_time_before(at, again_at) ? again_at : at;
}

static void hear_stop(struct gw_endpoint *ep, struct gw_blast_rx *blast, const struct gw_pkt *pkt,
                      gw_time now)
{
    if (blast->state == GW_BLAST_DONE || blast->state == GW_BLAST_LINGERING) {
        gw_blast_rx_finish(ep, blast, now);
        return;
    }
    if (blast->state != GW_BLAST_ACTIVE || !gw_blast_rx_round(blast, (uint16_t)pkt->seq))
        return;
    measure_hail(blast, pkt, now);
    if (blast->is_stopped)
        return;
    if (blast->is_answered && now - blast->answered_at < blast->rtt) {
        ep->stats.stops_ignored++;
        return;
    }
    blast->is_stopped = true;
    blast->stop_at = now;
    blast->stop_sent_at = pkt->sent_at;
    gw_endpoint_arm_by(ep, gw_blast_rx_timer(ep, blast), answer_at(ep, blast));
}

/* Its sender knows that it has enough. */
static void hear_confirm(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now)
{
    if (blast->finish_at == GW_TIME_NEVER)
        return; /* it has not said so, or knows */
    blast->finish_at = GW_TIME_NEVER;
    if (blast->state == GW_BLAST_LINGERING)
        gw_blast_rx_close(ep, blast, GW_EVENT_RECEIVED, now);
    else
        gw_blast_rx_settle(ep, blast);
}

/* The flow has ended before, and another has its place: its sender is told how. False: it has not,
 * or that is not known. */
static bool tell_past(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_past_end end;
    if (!gw_past_flows_has(&ep->past_flows, pkt->src, pkt->flow, now, &end) || end.arrived == 0 ||
        (pkt->hail.op == GW_HAIL_RENDEZVOUS && end.tag != pkt->hail.word[1]))
        return false;
    const struct gw_blast_rx blast = {
        .peer = pkt->src,
        .flow = pkt->flow,
        .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
        .arrived = end.arrived,
        .bytes = end.bytes,
    };
    ep->stats.stray++;
    gw_blast_rx_finish(ep, &blast, now);
    return true;
}

void gw_blast_rx_hear(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_blast_rx *blast = gw_blast_rx_of(ep, pkt);
    if (!blast && ep->cfg.blasts_max && pkt->hail.op != GW_HAIL_CONFIRM && tell_past(ep, pkt, now))
        return;
    if (ep->cfg.blasts_max && pkt->hail.op == GW_HAIL_RENDEZVOUS) {
        hear_rendezvous(ep, blast, pkt, now);
    } else if (!blast) {
        ep->stats.stray++;
    } else if (pkt->hail.op == GW_HAIL_STOP) {
        hear_stop(ep, blast, pkt, now);
    } else {
        hear_confirm(ep, blast, now);
    }
}

/* ---- REQUESTs. ---- */

/* The places of a word that are missing. */
static uint64_t missing_of(const struct gw_blast_rx *blast, uint32_t word)
{
    return ~blast->bits[word] & gw_bitmap_mask(word, blast->total);
}

/* The first word from `word` on with something missing, or how many words there are. */
static uint32_t next_word(const struct gw_blast_rx *blast, uint32_t word)
{
    const uint32_t words = (uint32_t)gw_bit_words(blast->total);
    while (word < words && !missing_of(blast, word))
        word++;
    return word;
}

static bool request_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                             gw_time now)
{
    const struct gw_blast_rx *blast = (const struct gw_blast_rx *)sender;
    (void)ep;
    (void)now;
    return blast->ask_word < gw_bit_words(blast->total);
}

static struct gw_pkt *request_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_blast_rx *blast = (struct gw_blast_rx *)sender;
    const uint32_t words = (uint32_t)gw_bit_words(blast->total);
    uint32_t word = next_word(blast, blast->ask_word);
    word =
        word < words ? word : words - 1; /* that has come meanwhile: nothing but the end is told */
    const uint32_t next = next_word(blast, word + 1);
    const uint64_t missing = missing_of(blast, word);
    struct gw_pkt *pkt =
        gw_blast_hail(ep, &(struct gw_blast_say){
                              .op = GW_HAIL_REQUEST,
                              .peer = blast->peer,
                              .flow = blast->flow,
                              .key = blast->key,
                              .seq = word * GW_HAIL_PLACES,
                              .word = {(uint32_t)missing, (uint32_t)(missing >> 32)},
                              .number = blast->ask_round,
                              .marks = next < words ? 0 : GW_HAIL_LAST,
                              /* Less the time that the STOP has waited here. */
                              .time = blast->stop_sent_at + (now - blast->stop_at),
                          });
    if (!pkt) {
        blast->ask_word = words; /* a repeated STOP asks for them again */
        return NULL;
    }
    if (gw_sender_begins_train(ep, sender))
        sender->entropy = pkt->entropy;
    pkt->entropy = sender->entropy;
    blast->ask_word = next;
    ep->stats.requests_sent++;
    return pkt;
}

const struct gw_sender_ops gw_blast_request_ops = {
    .can_send = request_can_send,
    .emit = request_emit,
};

/* Asks for all that is missing. */
static void answer_stop(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now)
{
    const uint32_t missing = blast->total - blast->arrived;
    if (missing != blast->asked_for)
        blast->patience = 0;
    else if (blast->patience < GW_BLAST_PATIENCE_MAX)
        blast->patience++;
    blast->asked_for = missing;
    blast->ask_round = blast->round;
    blast->is_stopped = false;
    blast->is_answered = true;
    blast->answered_at = now;
    blast->ask_word = next_word(blast, 0);
    if (blast->is_on_credit)
        gw_credit_renew(ep, &blast->grantee, now);
    gw_egress_join(ep, &blast->sender);
}

/* ---- Time. ---- */

static void expire_active(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now)
{
    gw_time next = gw_stall_at(blast->heard_at, ep->cfg.stall);
    if (blast->is_stopped) {
        gw_time at = answer_at(ep, blast);
        if (!gw_time_before(now, at))
            answer_stop(ep, blast, now);
        else if (gw_deadline_before(at, next))
            next = at;
    }
    if (blast->period_bytes) {
        gw_time at =
            gw_time_add(blast->round_at, (gw_time)(blast->period + 1) * ep->cfg.report_every);
        if (!gw_time_before(now, at))
            gw_blast_rx_report(ep, blast);
        else if (gw_deadline_before(at, next))
            next = at;
    }
    gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), next);
}

/* Its sender has not said that it knows. */
static void finish_again(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now)
{
    if (blast->finishes == GW_BLAST_FINISHES) {
        gw_blast_rx_settle(ep, blast); /* that is gone, or will ask */
        return;
    }
    gw_blast_rx_finish(ep, blast, now);
    blast->finish_at = gw_blast_rx_finish_again(blast, now);
    gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), blast->finish_at);
}

void gw_blast_rx_expire(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now)
{
    if (blast->state == GW_BLAST_ACTIVE) {
        if (gw_stall_is_over(blast->heard_at, ep->cfg.stall, now))
            gw_blast_rx_close(ep, blast, GW_EVENT_FAILED, now);
        else
            expire_active(ep, blast, now);
    } else if (blast->state == GW_BLAST_LINGERING) {
        if (gw_time_before(now, blast->linger_at))
            gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), blast->linger_at);
        else
            gw_blast_rx_close(ep, blast, GW_EVENT_RECEIVED, now);
    } else if (blast->finish_at != GW_TIME_NEVER && !gw_time_before(now, blast->finish_at)) {
        finish_again(ep, blast, now);
    } else {
        gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), blast->finish_at);
    }
}
