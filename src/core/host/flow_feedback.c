/*
 * The sender half of a flow hears of its receiver: ACK, NACK and CREDIT; see flow_tx.h.
 *
 * Order of work on feedback: packet bookkeeping, load balancing, loss detection, congestion
 * control, then the flow joins the egress ring if it may send. Congestion control sees `in_flight`
 * without the packet that it is told of.
 */
#include "core/host/flow_tx.h"

#include "base/align.h"

void gw_flow_tx_foresee(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    uint32_t index = pkt->flow & UINT16_MAX;
    if (index >= ep->cfg.tx_flows_max)
        return;
    const struct gw_tx_flow *flow = &ep->tx_flows[index];
    gw_prefetch(flow, sizeof(*flow), GW_PREFETCH_WRITE);
    gw_prefetch(&flow->records[pkt->seq & ep->span_mask], sizeof(*flow->records),
                GW_PREFETCH_WRITE);
}

/* The flow that its receiver speaks of, or NULL: it ended, or the packet is none of ours. */
static struct gw_tx_flow *flow_of(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    uint32_t index = pkt->flow & UINT16_MAX;
    struct gw_tx_flow *flow = index < ep->cfg.tx_flows_max ? &ep->tx_flows[index] : NULL;
    if (!flow || !flow->transport || flow->id != pkt->flow || flow->peer != pkt->src) {
        ep->stats.stray++;
        return NULL;
    }
    return flow;
}

/*
 * The receiver has been heard of: from now on it grants. One more packet goes without credit, a new
 * one, so that its number tells the receiver how many did.
 */
static void end_free(struct gw_tx_flow *flow)
{
    if (flow->unpaid > 1)
        flow->unpaid = 1;
}

/* The flow that an ACK or NACK is for, or NULL. */
static struct gw_tx_flow *feedback_flow(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    struct gw_tx_flow *flow = flow_of(ep, pkt);
    if (!flow)
        return NULL;
    /* Of a packet never sent, or from the future; or of a part that may not be lost. */
    if (pkt->seq >= flow->next || (pkt->q.flags & GW_PKT_GIVEN_UP && flow->bound <= 0)) {
        ep->stats.malformed++;
        return NULL;
    }
    end_free(flow);
    return flow;
}

/* Takes packet `seq` off its list for good; returns its payload, or 0 if that was done before. */
static inline uint32_t settle_one(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t seq)
{
    uint32_t at = seq & ep->span_mask;
    struct gw_tx_record *record = &flow->records[at];
    if (!gw_tx_is_out(flow, seq) || record->state == GW_TX_SETTLED)
        return 0;
    uint32_t len = gw_tx_payload(flow, seq);
    gw_tx_list_remove(flow->records, at);
    if (record->state == GW_TX_FLIGHT)
        flow->in_flight -= len;
    else
        flow->lost_count--;
    record->state = GW_TX_SETTLED;
    return len;
}

/* Packet `seq` never arrived, as far as we know, and the receiver does without it. If nothing else
 * has told that it was lost, congestion control learns of it. */
static void let_go(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t seq, gw_time now)
{
    uint32_t at = seq & ep->span_mask;
    if (gw_tx_is_out(flow, seq) && flow->records[at].state == GW_TX_FLIGHT)
        gw_flow_tx_lose(ep, flow, at, GW_TX_OVERTAKEN, now);
    settle_one(ep, flow, seq);
}

static void advance_una(const struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    while (flow->una != flow->next &&
           flow->records[flow->una & ep->span_mask].state == GW_TX_SETTLED)
        flow->una++;
}

/*
 * Settles what an ACK says of all packets below `cum`; returns the payload that is newly
 * acknowledged. What a receiver lets go is half a span behind what has arrived (flow_rx.h): what is
 * nearer has arrived, and its own ACK comes later or is lost.
 */
static uint32_t settle_below(struct gw_endpoint *ep, struct gw_tx_flow *flow,
                             const struct gw_pkt *pkt, uint32_t cum, gw_time now)
{
    bool is_given_up = pkt->q.flags & GW_PKT_GIVEN_UP;
    uint32_t reach = (ep->span_mask + 1) / 2, bytes = 0;
    for (uint32_t seq = flow->una; seq < cum; seq++)
        if (is_given_up && seq < pkt->seq && pkt->seq - seq >= reach)
            let_go(ep, flow, seq, now);
        else
            bytes += settle_one(ep, flow, seq);
    advance_una(ep, flow);
    return bytes;
}

/* Settles everything that an ACK reports; returns the payload that is newly acknowledged. */
static uint32_t settle_all(struct gw_endpoint *ep, struct gw_tx_flow *flow,
                           const struct gw_pkt *pkt, gw_time now)
{
    uint32_t bytes = settle_one(ep, flow, pkt->seq);
    uint64_t mask = gw_pkt_mask(pkt);
    for (; mask; mask &= mask - 1)
        bytes +=
            settle_one(ep, flow, pkt->seq - GW_ACK_MASK_BEFORE + (uint32_t)__builtin_ctzll(mask));
    advance_una(ep, flow);
    uint32_t cum = pkt->ack.cum < flow->next ? pkt->ack.cum : flow->next;
    if (flow->una < cum)
        bytes += settle_below(ep, flow, pkt, cum, now);
    return bytes;
}

static struct gw_lb_echo echo_of(const struct gw_tx_flow *flow, const struct gw_pkt *pkt,
                                 gw_time now)
{
    return (struct gw_lb_echo){
        .rtt = gw_time_before(now, pkt->sent_at) ? 0 : now - pkt->sent_at,
        .in_flight = flow->in_flight,
        .entropy = pkt->echo_entropy,
        .ce = pkt->q.flags & GW_PKT_ECHO_CE,
    };
}

/* The receiver has what it wants: nothing of the flow is sent any more. */
static void end_early(struct gw_endpoint *ep, struct gw_tx_flow *flow, const struct gw_pkt *pkt,
                      gw_time now)
{
    uint64_t arrived = gw_pkt_mask(pkt);
    if (arrived < flow->bytes &&
        gw_finish_bound_allows(flow->bound, flow->total, gw_tx_missing(flow, arrived)))
        gw_flow_tx_complete(ep, flow, arrived, now);
    else
        ep->stats.malformed++;
}

void gw_flow_tx_ack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_tx_flow *flow = feedback_flow(ep, pkt);
    if (!flow)
        return;
    ep->stats.progress++;
    if (pkt->q.flags & GW_PKT_GIVEN_UP && pkt->ack.cum == flow->total) {
        end_early(ep, flow, pkt, now);
        return;
    }
    const struct gw_transport *transport = flow->transport;
    const struct gw_tx_record *record = &flow->records[pkt->seq & ep->span_mask];
    /* The ACK is for an earlier copy: resending was not needed. */
    if (gw_tx_is_out(flow, pkt->seq) && record->state == GW_TX_FLIGHT && record->resent &&
        record->sent != gw_tx_tick(pkt->sent_at))
        ep->stats.spurious++;
    uint32_t una = flow->una;
    gw_time lost_before = GW_TIME_NEVER;
    if (transport->loss->on_delivery)
        lost_before = gw_flow_tx_deliver(ep, flow, pkt, now);
    uint32_t bytes = settle_all(ep, flow, pkt, now);
    const struct gw_lb_echo echo = echo_of(flow, pkt, now);
    transport->lb->on_ack(flow->lb_state, transport->lb_cfg.bytes, &echo, now);
    if (bytes == 0 && flow->una == una)
        return;
    flow->acked_bytes += bytes;
    flow->progress_at = now;
    gw_flow_tx_release(ep, flow, now);
    if (flow->una == flow->total) {
        gw_flow_tx_complete(ep, flow, flow->acked_bytes, now);
        return;
    }
    transport->loss->on_ack(flow->loss_state, transport->loss_cfg.bytes, pkt->sent_at, echo.rtt);
    gw_flow_tx_refresh_rto(ep, flow, now);
    struct gw_cc_ack ack = {
        .bytes = bytes,
        .in_flight = flow->in_flight,
        .rtt = echo.rtt,
        .ce = echo.ce,
    };
    transport->cc->on_ack(flow->cc_state, transport->cc_cfg.bytes, &flow->path, &ack, &flow->window,
                          now);
    flow->pace = flow->window.pace;
    if (lost_before != GW_TIME_NEVER)
        gw_flow_tx_lose_before(ep, flow, lost_before, now);
    gw_flow_tx_wake(ep, flow, now);
}

/* A packet that was trimmed need not be sent again. True: that was the last of the flow. */
static bool given_up(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t seq, gw_time now)
{
    if (settle_one(ep, flow, seq)) {
        flow->given_up++;
        flow->progress_at = now;
    }
    advance_una(ep, flow);
    if (flow->una != flow->total)
        return false;
    gw_flow_tx_complete(ep, flow, flow->acked_bytes, now);
    return true;
}

void gw_flow_tx_nack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_tx_flow *flow = feedback_flow(ep, pkt);
    if (!flow)
        return;
    if (pkt->q.flags & GW_PKT_READY) {
        gw_flow_tx_release(ep, flow, now);
        return;
    }
    const struct gw_transport *transport = flow->transport;
    uint32_t at = pkt->seq & ep->span_mask;
    const struct gw_tx_record *record = &flow->records[at];
    const struct gw_lb_echo echo = echo_of(flow, pkt, now);
    bool is_trimmed = !(pkt->q.flags & GW_PKT_NOT_READY);
    bool is_given_up = is_trimmed && pkt->q.flags & GW_PKT_GIVEN_UP;
    if (is_trimmed)
        transport->lb->on_trim(flow->lb_state, transport->lb_cfg.bytes, &echo, now);
    /* Late news of a packet that was acknowledged, or that was sent again since. */
    bool is_late = !gw_tx_is_out(flow, pkt->seq) || record->state != GW_TX_FLIGHT ||
                   record->sent != gw_tx_tick(pkt->sent_at);
    if (is_late && !is_given_up)
        return;
    if (is_given_up && !gw_finish_bound_allows(flow->bound, flow->total, flow->given_up + 1)) {
        ep->stats.malformed++;
        return;
    }
    if (!is_trimmed) {
        if (flow->acked_bytes == 0)
            gw_flow_tx_hold(ep, flow, now);
        return;
    }
    bool is_lost =
        !is_late && transport->loss->on_nack(flow->loss_state, transport->loss_cfg.bytes);
    if (!is_lost && !is_given_up)
        return;
    flow->answered_at = now;
    if (is_lost)
        gw_flow_tx_lose(ep, flow, at, GW_TX_TRIMMED, now);
    if (is_given_up && given_up(ep, flow, pkt->seq, now))
        return;
    gw_flow_tx_wake(ep, flow, now);
}

void gw_flow_tx_credit(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_tx_flow *flow = flow_of(ep, pkt);
    if (!flow)
        return;
    if (!flow->transport->grant) {
        ep->stats.malformed++;
        return;
    }
    if (!gw_seq_before(flow->granted, pkt->seq))
        return; /* overtaken by a later one */
    end_free(flow);
    /* More than a flow can have under way makes no difference. */
    uint32_t credit = flow->credit + (pkt->seq - flow->granted);
    flow->credit = credit < ep->cfg.span_max ? credit : ep->cfg.span_max;
    flow->granted = pkt->seq;
    flow->is_starved = false;
    flow->answered_at = now;
    gw_flow_tx_wake(ep, flow, now);
}
