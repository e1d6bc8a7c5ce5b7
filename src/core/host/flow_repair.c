/*
 * The sender half of a flow repairs: what counts as lost, when, and what is done without an answer;
 * see flow_tx.h.
 *
 * A receiver that has no memory for the message yet says so: then nothing counts as lost by the
 * network, and single packets ask again, at growing distances, until one is acknowledged (as a
 * receiver that is not ready in InfiniBand, Architecture Specification volume 1,
 * section 9.7.5.2.8), or the receiver says that it is ready.
 */
#include "core/host/flow_tx.h"

#include "base/stall.h"

enum {
    /* Between packets that ask whether the receiver is ready: from an eighth of a base RTT, doubled
     * each time, to four. */
    HOLD_SHIFT_FIRST = 3,
    HOLD_SHIFT_MAX = 5,
};

/* Time since a record's transmission. */
static gw_time record_age(const struct gw_tx_record *record, gw_time now)
{
    int32_t ticks = (int32_t)((uint32_t)(now >> GW_TICK_SHIFT) - record->sent);
    return ticks < 0 ? 0 : (gw_time)ticks << GW_TICK_SHIFT;
}

/* How long the record's packet has been waiting, as loss detection counts. */
static gw_time waiting_time(const struct gw_tx_flow *flow, const struct gw_tx_record *record,
                            gw_time now)
{
    gw_time age = record_age(record, now);
    gw_time quiet = now - flow->progress_at;
    return flow->transport->loss->restarts && quiet < age ? quiet : age;
}

/*
 * When the record's packet will have waited for `rto`: at the beginning of a tick, since the age
 * does not change within one and a timer in between would fire in vain, again and again.
 */
static gw_time timeout_at(const struct gw_tx_flow *flow, const struct gw_tx_record *record,
                          gw_time rto, gw_time now)
{
    gw_time age = waiting_time(flow, record, now);
    if (age >= rto)
        return now;
    gw_time ticks = (rto - age + (1u << GW_TICK_SHIFT) - 1) >> GW_TICK_SHIFT;
    return ((now >> GW_TICK_SHIFT) + ticks) << GW_TICK_SHIFT;
}

/* The longest that a packet may stay unanswered now. */
static gw_time rto_of(const struct gw_tx_flow *flow)
{
    const struct gw_transport *transport = flow->transport;
    gw_time rto = transport->loss->period(flow->loss_state, transport->loss_cfg.bytes);
    return rto < GW_RTO_MAX ? rto : GW_RTO_MAX;
}

void gw_flow_tx_refresh_rto(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    gw_time rto = rto_of(flow);
    bool sooner = rto < flow->rto;
    flow->rto = rto;
    uint32_t oldest = gw_tx_list_first(flow->records, gw_tx_flight_head(ep));
    if (sooner && oldest != gw_tx_flight_head(ep))
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow),
                           timeout_at(flow, &flow->records[oldest], rto, now));
}

/* Moves a record in flight to the lost list; returns its payload. */
static uint32_t take_back(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at)
{
    uint32_t len = gw_tx_payload(flow, gw_tx_seq(ep, flow, at));
    gw_tx_list_remove(flow->records, at);
    gw_tx_list_append(flow->records, gw_tx_lost_head(ep), at);
    flow->records[at].state = GW_TX_LOST;
    flow->in_flight -= len;
    flow->lost_count++;
    return len;
}

void gw_flow_tx_lose(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at,
                     enum gw_tx_cause cause, gw_time now)
{
    gw_time sent_at = now - record_age(&flow->records[at], now);
    uint32_t len = take_back(ep, flow, at);
    const struct gw_transport *transport = flow->transport;
    struct gw_cc_loss loss = {
        .bytes = len,
        .in_flight = flow->in_flight,
        .sent_at = sent_at,
        .trimmed = cause == GW_TX_TRIMMED,
        .is_timeout = cause == GW_TX_TIMEOUT,
        .is_again = flow->records[at].resent,
    };
    transport->cc->on_loss(flow->cc_state, transport->cc_cfg.bytes, &flow->path, &loss,
                           &flow->window, now);
    flow->pace = flow->window.pace;
}

/* ---- Losses that arrivals tell of. ---- */

/* The tick at which a record's packet left, as a time. */
static gw_time record_time(const struct gw_tx_record *record, gw_time now)
{
    gw_time tick = now >> GW_TICK_SHIFT;
    return (tick + (gw_time)(int64_t)(int32_t)(record->sent - (uint32_t)tick)) << GW_TICK_SHIFT;
}

/* Whether an ACK names packet `seq`, rather than all below some other. */
static bool names(const struct gw_pkt *pkt, uint32_t seq)
{
    uint32_t bit = seq - pkt->seq + GW_ACK_MASK_BEFORE;
    return seq == pkt->seq || (bit < GW_ACK_MASK_BITS && gw_pkt_mask(pkt) >> bit & 1);
}

/*
 * Tells loss detection that packet `seq` has arrived, unless that is no news, or it was sent more
 * than once and nothing tells which copy it was. Moves *lost_before on.
 */
static void deliver(const struct gw_endpoint *ep, struct gw_tx_flow *flow, const struct gw_pkt *pkt,
                    uint32_t seq, gw_time now, gw_time *lost_before)
{
    const struct gw_transport *transport = flow->transport;
    const struct gw_tx_record *record = &flow->records[seq & ep->span_mask];
    if (!gw_tx_is_out(flow, seq) || record->state != GW_TX_FLIGHT)
        return;
    if (record->resent && (seq != pkt->seq || record->sent != gw_tx_tick(pkt->sent_at)))
        return;
    gw_time before = transport->loss->on_delivery(flow->loss_state, transport->loss_cfg.bytes,
                                                  record_time(record, now));
    if (before != GW_TIME_NEVER &&
        (*lost_before == GW_TIME_NEVER || gw_time_before(*lost_before, before)))
        *lost_before = before;
}

gw_time gw_flow_tx_deliver(const struct gw_endpoint *ep, struct gw_tx_flow *flow,
                           const struct gw_pkt *pkt, gw_time now)
{
    gw_time lost_before = GW_TIME_NEVER;
    uint32_t cum = pkt->ack.cum < flow->next ? pkt->ack.cum : flow->next;
    for (uint32_t seq = flow->una; seq < cum; seq++)
        if (!names(pkt, seq))
            deliver(ep, flow, pkt, seq, now, &lost_before);
    for (uint32_t bit = 0; gw_pkt_mask(pkt) && bit < GW_ACK_MASK_BITS; bit++)
        if (bit != GW_ACK_MASK_BEFORE && gw_pkt_mask(pkt) >> bit & 1)
            deliver(ep, flow, pkt, pkt->seq - GW_ACK_MASK_BEFORE + bit, now, &lost_before);
    deliver(ep, flow, pkt, pkt->seq, now, &lost_before);
    return lost_before;
}

void gw_flow_tx_lose_before(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time lost_before,
                            gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    const uint32_t head = gw_tx_flight_head(ep), tick = gw_tx_tick(lost_before);
    /* Nothing is being repaired yet: the first of them need not wait for the window to drain
     * (RFC 6675, section 5, (4.3)). */
    bool is_first = !flow->lost_count && !flow->records[flow->una & ep->span_mask].resent;
    bool any = false;
    for (uint32_t oldest; (oldest = gw_tx_list_first(flow->records, head)) != head; any = true) {
        if ((int32_t)(flow->records[oldest].sent - tick) >= 0)
            break;
        ep->stats.overtaken++;
        gw_flow_tx_lose(ep, flow, oldest, GW_TX_OVERTAKEN, now);
    }
    if (!any)
        return;
    transport->loss->on_loss(flow->loss_state, transport->loss_cfg.bytes, now);
    flow->rto = rto_of(flow);
    flow->is_urged = is_first;
}

void gw_flow_tx_hold(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    while (!gw_tx_list_is_empty(flow->records, gw_tx_flight_head(ep)))
        take_back(ep, flow, gw_tx_list_first(flow->records, gw_tx_flight_head(ep)));
    flow->is_held = true;
    flow->waits_for_pace = false;
    flow->unpaid = 0;
    flow->pace_at = gw_time_add(now, (flow->path.brtt >> HOLD_SHIFT_FIRST) << flow->holds);
    flow->holds += flow->holds < HOLD_SHIFT_MAX;
    gw_flow_tx_wake(ep, flow, now);
}

void gw_flow_tx_release(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    if (!flow->is_held)
        return;
    flow->is_held = false;
    flow->holds = 0;
    flow->pace_at = now;
    /* What it has lost may need credit now, and only the timer asks for that. */
    gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), gw_time_add(now, flow->rto));
    gw_flow_tx_wake(ep, flow, now);
}

/* Asks for credit when none has come for long, and nothing is in flight that would bring some. */
static void check_starved(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    if (flow->in_flight || !gw_tx_has_work(ep, flow) || gw_tx_credit_allows(flow))
        return;
    gw_time heard = gw_time_before(flow->answered_at, flow->progress_at) ? flow->progress_at
                                                                         : flow->answered_at;
    gw_time due = gw_time_add(heard, flow->rto);
    if (gw_time_before(now, due))
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), due);
    else
        flow->is_starved = true;
}

/* One packet is to leave whatever the window says: a new one, or the latest once more. */
static void probe(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    ep->stats.probes++;
    flow->is_urged = true;
    if (!gw_tx_has_work(ep, flow))
        take_back(ep, flow, flow->records[gw_tx_flight_head(ep)].prev);
}

/* Of all that is in flight, the packet at record `at` alone is not lost yet: its header asks. */
static void ask(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at, gw_time now)
{
    while (flow->records[at].next != gw_tx_flight_head(ep)) {
        ep->stats.timeouts++;
        gw_flow_tx_lose(ep, flow, flow->records[at].next, GW_TX_TIMEOUT, now);
    }
    flow->is_held = true;
    gw_flow_tx_ask(ep, flow, at, now);
}

/* The oldest packet in flight has waited for long enough. */
static void time_out(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t oldest, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    gw_time sent_at = now - record_age(&flow->records[oldest], now);
    enum gw_loss_verdict verdict =
        transport->loss->on_timeout(flow->loss_state, transport->loss_cfg.bytes, sent_at, now);
    if (verdict == GW_LOSS_PROBE) {
        probe(ep, flow);
        return;
    }
    if (verdict == GW_LOSS_ASK) {
        ask(ep, flow, oldest, now);
        return;
    }
    do {
        ep->stats.timeouts++;
        gw_flow_tx_lose(ep, flow, gw_tx_list_first(flow->records, gw_tx_flight_head(ep)),
                        GW_TX_TIMEOUT, now);
    } while (verdict == GW_LOSS_ALL && !gw_tx_list_is_empty(flow->records, gw_tx_flight_head(ep)));
    transport->lb->on_timeout(flow->lb_state, transport->lb_cfg.bytes, sent_at, now);
}

static void end_silence(struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    flow->window.is_silent = false;
    transport->cc->on_silence_end(flow->cc_state, transport->cc_cfg.bytes, &flow->path,
                                  flow->in_flight, &flow->window, now);
    flow->pace = flow->window.pace;
}

void gw_flow_tx_expire(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    uint32_t index = gw_tx_index(ep, flow);
    if (gw_stall_is_over(flow->progress_at, ep->cfg.stall, now)) {
        gw_flow_tx_fail(ep, flow, now);
        return;
    }
    if (flow->window.is_silent && !gw_time_before(now, flow->window.silent_until))
        end_silence(flow, now);
    uint32_t oldest;
    while ((oldest = gw_tx_list_first(flow->records, gw_tx_flight_head(ep))) !=
           gw_tx_flight_head(ep)) {
        if (waiting_time(flow, &flow->records[oldest], now) < flow->rto)
            break;
        time_out(ep, flow, oldest, now);
        flow->rto = rto_of(flow);
    }
    gw_endpoint_arm(ep, index, gw_stall_at(flow->progress_at, ep->cfg.stall));
    if (oldest != gw_tx_flight_head(ep))
        gw_endpoint_arm_by(ep, index, timeout_at(flow, &flow->records[oldest], flow->rto, now));
    check_starved(ep, flow, now);
    gw_flow_tx_wake(ep, flow, now);
}
