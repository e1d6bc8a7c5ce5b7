/*
 * The sender half of a blast hears of its receiver, or hears nothing for too long; see blast.h.
 *
 * A receiver that has no memory for the message yet says so: all that was sent is dropped there, so
 * all is due again, and the RENDEZVOUS asks at growing distances (as a flow does, flow_repair.c).
 *
 * REQUESTs answer the STOP of a round. The first begins the next one, others add to it, and the
 * last says that it is. A word of places that comes twice is taken once, so that what the network
 * doubles costs nothing. If the last one is lost, the sender does not wait for it for ever.
 *
 * Nothing that a receiver says keeps a sender at work for ever: it counts as progress, without
 * which the message stalls, only if it is about data that has left, and not for many times the
 * message; from then on only if less was asked for than ever before. Where many send to one host
 * nearly all is lost, and a message has to be sent as many times as there are senders.
 */
#include "core/host/blast.h"

#include "base/bits.h"
#include "base/stall.h"
#include "core/cc/window.h"

enum {
    /* Between questions whether the receiver is ready: from an eighth of a base RTT, doubled each
     * time, to four. */
    HOLD_SHIFT_FIRST = 3,
    HOLD_SHIFT_MAX = 5,
    STARVES_MAX = 6, /* doublings of the time without credit (own choice) */
    TIMES_MAX = 64,  /* that a message is sent while its receiver only asks for more (own choice) */
};

/* Something has come of what was sent, or will be sent, unless that is too often. */
static void note_progress(struct gw_blast_tx *blast, gw_time now)
{
    if (blast->sent_packets < (uint64_t)blast->total * TIMES_MAX)
        blast->progress_at = now;
}

/* A round is over: if less was asked for in it than in all before, the one before it has brought
 * something. */
static void compare_round(struct gw_blast_tx *blast, gw_time now)
{
    uint32_t in_round = blast->in_round[GW_UNIMPORTANT] + blast->in_round[GW_IMPORTANT];
    if (in_round >= blast->in_round_least)
        return;
    blast->in_round_least = in_round;
    blast->progress_at = now;
}

/* A hail was answered that left at the time that the answer echoes. */
static void take_answer(struct gw_blast_tx *blast, const struct gw_pkt *pkt, gw_time now)
{
    if (!gw_time_before(now, pkt->sent_at)) /* else it is to no hail of ours */
        gw_rto_on_ack(&blast->rto, pkt->sent_at);
}

/* The receiver has been heard of, and takes data. */
static void be_accepted(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    if (blast->is_accepted)
        return;
    blast->is_accepted = true;
    blast->is_held = false;
    blast->hold_at = GW_TIME_NEVER;
    blast->progress_at = now;
    if (!blast->is_stopped)
        blast->hail_at = GW_TIME_NEVER;
    gw_blast_tx_wake(ep, blast, now);
    gw_blast_tx_arm(ep, blast);
}

/* The receiver is not ready: what was sent is lost, and the rendezvous asks again. */
static void hold(const struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    if (blast->is_accepted || blast->hold_at != GW_TIME_NEVER)
        return; /* old news */
    gw_blast_tx_renew(ep, blast);
    blast->is_held = true;
    blast->is_stopped = blast->has_begun = false;
    blast->sender.train_left = 0;
    blast->hold_at = gw_time_add(now, (blast->path.brtt >> HOLD_SHIFT_FIRST) << blast->holds);
    blast->holds += blast->holds < HOLD_SHIFT_MAX;
    blast->hail_at = blast->report_at = GW_TIME_NEVER;
}

/* It had no credit: neither is what leaves now late, nor are reports of the time without. */
static void go_on(const struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    if (gw_time_before(blast->pace_at, now))
        blast->pace_at = now;
    if (blast->report_at != GW_TIME_NEVER)
        gw_blast_tx_await_report(ep, blast, now);
}

void gw_blast_tx_take_credit(struct gw_endpoint *ep, struct gw_blast_tx *blast,
                             const struct gw_pkt *pkt, gw_time now)
{
    if (!gw_blast_tx_needs_credit(blast)) {
        ep->stats.malformed++;
        return;
    }
    if (!gw_seq_before(blast->granted, pkt->seq))
        return; /* overtaken by a later one */
    if (!blast->credit)
        go_on(ep, blast, now);
    /* More than the message makes no difference. */
    uint32_t credit = blast->credit + (pkt->seq - blast->granted);
    blast->credit = credit < blast->total ? credit : blast->total;
    blast->granted = pkt->seq;
    blast->starves = 0;
    blast->starve_at = GW_TIME_NEVER;
    if (gw_blast_tx_due(blast) && !blast->is_held)
        note_progress(blast, now); /* it brings something to leave */
    gw_blast_tx_wake(ep, blast, now);
    gw_blast_tx_arm(ep, blast);
}

static void hear_accept(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_pkt *pkt,
                        gw_time now)
{
    take_answer(blast, pkt, now);
    if (pkt->hail.marks & GW_HAIL_REFUSED && !blast->is_accepted) {
        blast->is_refused = true;
        gw_blast_tx_fail(ep, blast, now);
        return;
    }
    if (pkt->hail.marks & GW_HAIL_READY) {
        blast->holds = 0;
        if (blast->hold_at != GW_TIME_NEVER)
            blast->hold_at = now;
    } else if (pkt->hail.marks & GW_HAIL_NOT_READY) {
        hold(ep, blast, now);
    } else if (!blast->is_accepted) {
        /* A copy opened the flow, before which all was dropped. */
        if (pkt->seq == 0 && pkt->sent_at != blast->rendezvous_at && !blast->is_held) {
            gw_blast_tx_renew(ep, blast);
            blast->is_stopped = false;
        }
        be_accepted(ep, blast, now);
        return;
    }
    gw_blast_tx_arm(ep, blast);
}

/* What may be on its way at the end of a period: a train leaves at once but arrives over its time
 * on the links. */
static uint64_t under_way(const struct gw_endpoint *ep, const struct gw_blast_tx *blast)
{
    return ep->cfg.train > 1 ? (uint64_t)ep->cfg.train * (blast->path.mtu + blast->path.hdr) : 0;
}

/* Tells congestion control what has come of what was sent in a period. */
static void take_report(struct gw_endpoint *ep, struct gw_blast_tx *blast, uint64_t sent,
                        uint64_t received, gw_time now)
{
    const struct gw_cc_report report = {.period = ep->cfg.report_every,
                                        .sent = sent - gw_min_u64(sent, under_way(ep, blast)),
                                        .received = received};
    gw_blast_lane_report(blast->lane, blast->transport, &report, now);
}

/* What the report says of the paths that data has taken. */
static void take_echoes(struct gw_blast_tx *blast, const struct gw_pkt *pkt, uint32_t count,
                        gw_time now)
{
    const struct gw_transport *transport = blast->transport;
    const uint16_t entropies[GW_HAIL_ECHOES] = {
        (uint16_t)pkt->hail.word[1],
        (uint16_t)(pkt->hail.word[1] >> 16),
        pkt->index,
        pkt->hail.number,
    };
    for (uint32_t i = 0; i < count; i++) {
        const struct gw_lb_echo echo = {
            .rtt = gw_time_before(now, pkt->sent_at) ? 0 : now - pkt->sent_at,
            .entropy = entropies[i],
            .ce = pkt->hail.marks >> i & 1,
        };
        transport->lb->on_ack(blast->lb_state, transport->lb_cfg.bytes, &echo, now);
    }
}

static void hear_report(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_pkt *pkt,
                        gw_time now)
{
    uint32_t count = pkt->hail.marks >> GW_HAIL_ECHOES_SHIFT;
    if (count > GW_HAIL_ECHOES) {
        ep->stats.malformed++;
        return;
    }
    ep->stats.reports_received++;
    be_accepted(ep, blast, now);
    take_echoes(blast, pkt, count, now);
    blast->received += pkt->hail.word[0];
    if (!blast->has_begun || pkt->seq >> GW_HAIL_ROUND_SHIFT != blast->round)
        return;
    uint32_t present = gw_blast_tx_period(ep, blast, now);
    uint32_t period = present - (uint16_t)(present - pkt->seq);
    if (present - period >= GW_BLAST_PERIODS || period < blast->reported || period > present)
        return; /* too long ago, or doubled */
    blast->reported = period + 1;
    uint32_t sent = blast->sent[period % GW_BLAST_PERIODS];
    if (sent)
        note_progress(blast, now);
    take_report(ep, blast, sent, pkt->hail.word[0], now);
    if (!blast->is_stopped)
        gw_blast_tx_await_report(ep, blast, now);
    gw_blast_tx_arm(ep, blast);
}

/* Whether a REQUEST is about places of the message. */
static bool request_is_sound(const struct gw_blast_tx *blast, const struct gw_pkt *pkt)
{
    return pkt->seq % GW_HAIL_PLACES == 0 && pkt->seq < blast->total &&
           (gw_hail_words(pkt) || pkt->hail.marks & GW_HAIL_LAST) &&
           !(gw_hail_words(pkt) & ~gw_bitmap_mask(pkt->seq / 64, blast->total));
}

/*
 * A round is over of which no report has come: its packets may all have gone to a path that is
 * broken, and those of the next one would, too.
 */
static void suspect_paths(struct gw_blast_tx *blast, gw_time now)
{
    const struct gw_transport *transport = blast->transport;
    if (blast->reported == 0)
        transport->lb->on_timeout(blast->lb_state, transport->lb_cfg.bytes, blast->round_at, now);
}

static void hear_request(struct gw_endpoint *ep, struct gw_blast_tx *blast,
                         const struct gw_pkt *pkt, gw_time now)
{
    if (!request_is_sound(blast, pkt)) {
        ep->stats.malformed++;
        return;
    }
    bool begins = blast->is_stopped && pkt->hail.number == blast->round;
    bool goes_on =
        !blast->is_stopped && blast->round && pkt->hail.number == (uint16_t)(blast->round - 1);
    if (!begins && !goes_on)
        return; /* of an earlier round */
    ep->stats.requests_received++;
    be_accepted(ep, blast, now);
    if (begins) {
        take_answer(blast, pkt, now);
        if (gw_hail_words(pkt))
            note_progress(blast, now);
        compare_round(blast, now);
        suspect_paths(blast, now);
        gw_blast_tx_begin_round(ep, blast, now);
    }
    uint32_t word = pkt->seq / 64;
    if (!gw_bit_is_set(blast->asked, word)) {
        gw_bit_set(blast->asked, word);
        for (uint64_t mask = gw_hail_words(pkt); mask; mask &= mask - 1)
            gw_blast_tx_demand(blast, pkt->seq + (uint32_t)__builtin_ctzll(mask));
    }
    blast->has_last |= pkt->hail.marks & GW_HAIL_LAST;
    if (gw_blast_tx_due(blast)) {
        blast->hail_at = GW_TIME_NEVER;
        gw_blast_tx_wake(ep, blast, now);
    } else if (blast->has_last) {
        gw_blast_tx_stop(ep, blast, now);
    }
    gw_blast_tx_arm(ep, blast);
}

/* Whether a FINISH may be true: that many have left, and less would not be enough for us. */
static bool finish_is_sound(const struct gw_blast_tx *blast, uint32_t packets, uint64_t bytes)
{
    if (packets == 0 || packets > blast->sent_most || bytes > blast->bytes)
        return false;
    const uint32_t missing = blast->total - packets;
    const uint64_t missing_bytes = blast->bytes - bytes;
    /* All are full but the last, which may be missing or not. */
    const uint64_t most = (uint64_t)missing * blast->path.mtu;
    return gw_finish_bound_allows(blast->bound, blast->total, missing) &&
           (missing_bytes == most ||
            (missing && missing_bytes == most - blast->path.mtu + blast->last_len));
}

static void hear_finish(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_pkt *pkt,
                        gw_time now)
{
    uint64_t bytes = gw_hail_words(pkt);
    if (!finish_is_sound(blast, pkt->seq, bytes)) {
        ep->stats.malformed++;
        return;
    }
    gw_blast_say(ep, &(struct gw_blast_say){
                         .op = GW_HAIL_CONFIRM,
                         .peer = blast->peer,
                         .flow = blast->id,
                         .key = blast->key,
                         .time = pkt->sent_at,
                     });
    gw_blast_tx_complete(ep, blast, pkt->seq, bytes, now);
}

void gw_blast_tx_hear(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_pkt *pkt,
                      gw_time now)
{
    ep->stats.progress++;
    switch (pkt->hail.op) {
    case GW_HAIL_ACCEPT:
        hear_accept(ep, blast, pkt, now);
        break;
    case GW_HAIL_REPORT:
        hear_report(ep, blast, pkt, now);
        break;
    case GW_HAIL_REQUEST:
        hear_request(ep, blast, pkt, now);
        break;
    default:
        hear_finish(ep, blast, pkt, now);
    }
}

/* A hail has waited for its answer for long enough. */
static void say_again(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    ep->stats.timeouts++;
    gw_rto_on_timeout(&blast->rto, blast->hailed_at, now);
    blast->hail_at = GW_TIME_NEVER;
    if (!blast->is_accepted)
        gw_blast_tx_announce(ep, blast, now);
    if (!gw_blast_tx_due(blast))
        gw_blast_tx_stop(ep, blast, now);
}

/* Periods have passed without a report. */
static void miss_reports(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    const struct gw_transport *transport = blast->transport;
    const gw_time while_lost = GW_BLAST_REPORTS_LOST * ep->cfg.report_every;
    uint32_t present = gw_blast_tx_period(ep, blast, now);
    uint64_t sent = blast->sent[(present ? present - 1 : 0) % GW_BLAST_PERIODS];
    if (sent) {
        take_report(ep, blast, sent, 0, now);
        transport->lb->on_timeout(blast->lb_state, transport->lb_cfg.bytes, now - while_lost, now);
    }
    blast->report_at = gw_time_add(now, while_lost);
}

/* No credit has come for long. If that was asked for, the path of the question may be broken. */
static void starve(const struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    const struct gw_transport *transport = blast->transport;
    if (blast->starves)
        transport->lb->on_timeout(blast->lb_state, transport->lb_cfg.bytes,
                                  now - (gw_blast_rto(blast) << blast->starves), now);
    blast->starve_at = GW_TIME_NEVER;
    blast->is_starved = !blast->credit && gw_blast_tx_due(blast);
    go_on(ep, blast, now);
    blast->starves += blast->starves < STARVES_MAX;
}

void gw_blast_tx_expire(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    if (gw_stall_is_over(blast->progress_at, ep->cfg.stall, now)) {
        gw_blast_tx_fail(ep, blast, now);
        return;
    }
    if (blast->hold_at != GW_TIME_NEVER && !gw_time_before(now, blast->hold_at)) {
        blast->hold_at = GW_TIME_NEVER;
        gw_blast_tx_announce(ep, blast, now);
    }
    if (blast->hail_at != GW_TIME_NEVER && !gw_time_before(now, blast->hail_at))
        say_again(ep, blast, now);
    if (blast->report_at != GW_TIME_NEVER && !gw_time_before(now, blast->report_at))
        miss_reports(ep, blast, now);
    if (blast->starve_at != GW_TIME_NEVER && !gw_time_before(now, blast->starve_at))
        starve(ep, blast, now);
    gw_blast_tx_wake(ep, blast, now);
    gw_blast_tx_arm(ep, blast);
}
