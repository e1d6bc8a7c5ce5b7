/*
 * The sender half of a flow hears of its receiver: ACK, NACK and CREDIT; see flow_tx.h.
 *
 * Order of work on feedback: packet bookkeeping, load balancing, loss detection, congestion
 * control, then the flow joins the egress ring if it may send. Congestion control sees `in_flight`
 * without the packet that it is told of.
 */
#include "core/host/flow_tx.h"

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
    /* Of a packet never sent, or from the future. */
    if (pkt->seq >= flow->next) {
        ep->stats.malformed++;
        return NULL;
    }
    end_free(flow);
    return flow;
}

/* Takes packet `seq` off its list; returns the payload that is newly acknowledged. */
static uint32_t ack_one(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t seq)
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

/* Acknowledges everything that `pkt` reports; returns the payload that is new. */
static uint32_t ack_all(struct gw_endpoint *ep, struct gw_tx_flow *flow, const struct gw_pkt *pkt)
{
    uint32_t bytes = ack_one(ep, flow, pkt->seq);
    uint64_t mask = (uint64_t)pkt->ack.mask[1] << 32 | pkt->ack.mask[0];
    for (; mask; mask &= mask - 1)
        bytes += ack_one(ep, flow, pkt->seq - GW_ACK_MASK_BEFORE + (uint32_t)__builtin_ctzll(mask));
    uint32_t cum = pkt->ack.cum < flow->next ? pkt->ack.cum : flow->next;
    for (uint32_t seq = flow->una; seq < cum; seq++)
        bytes += ack_one(ep, flow, seq);
    while (flow->una != flow->next &&
           flow->records[flow->una & ep->span_mask].state == GW_TX_SETTLED)
        flow->una++;
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

void gw_flow_tx_ack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_tx_flow *flow = feedback_flow(ep, pkt);
    if (!flow)
        return;
    const struct gw_transport *transport = flow->transport;
    const struct gw_tx_record *record = &flow->records[pkt->seq & ep->span_mask];
    /* The ACK is for an earlier copy: resending was not needed. */
    if (gw_tx_is_out(flow, pkt->seq) && record->state == GW_TX_FLIGHT && record->resent &&
        record->sent != gw_tx_tick(pkt->sent_at))
        ep->stats.spurious++;
    uint32_t bytes = ack_all(ep, flow, pkt);
    const struct gw_lb_echo echo = echo_of(flow, pkt, now);
    transport->lb->on_ack(flow->lb_state, transport->lb_cfg.bytes, &echo, now);
    if (bytes == 0)
        return;
    flow->acked_bytes += bytes;
    flow->progress_at = now;
    if (flow->is_held) {
        flow->is_held = false;
        /* The packet that was to ask may need credit now, and only the timer asks for that. */
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), gw_time_add(now, flow->rto));
    }
    if (flow->una == flow->total) {
        gw_flow_tx_end(ep, flow, GW_EVENT_SENT, now);
        return;
    }
    transport->loss->on_ack(flow->loss_state, transport->loss_cfg.bytes, pkt->sent_at);
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
    gw_flow_tx_wake(ep, flow, now);
}

void gw_flow_tx_nack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_tx_flow *flow = feedback_flow(ep, pkt);
    if (!flow)
        return;
    const struct gw_transport *transport = flow->transport;
    uint32_t at = pkt->seq & ep->span_mask;
    const struct gw_tx_record *record = &flow->records[at];
    const struct gw_lb_echo echo = echo_of(flow, pkt, now);
    bool is_trimmed = !(pkt->q.flags & GW_PKT_NOT_READY);
    if (is_trimmed)
        transport->lb->on_trim(flow->lb_state, transport->lb_cfg.bytes, &echo, now);
    /* Late news of a packet that was acknowledged, or that was sent again since. */
    if (!gw_tx_is_out(flow, pkt->seq) || record->state != GW_TX_FLIGHT ||
        record->sent != gw_tx_tick(pkt->sent_at))
        return;
    if (!is_trimmed) {
        if (flow->acked_bytes == 0)
            gw_flow_tx_hold(ep, flow, now);
        return;
    }
    if (!transport->loss->on_nack(flow->loss_state, transport->loss_cfg.bytes))
        return;
    flow->answered_at = now;
    gw_flow_tx_lose(ep, flow, at, true, now);
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
