/*
 * The receiver half of a flow answers: ACKs and NACKs; see flow_rx.h.
 *
 * Every data packet is answered: at once, by turning it into its own ACK or NACK, or, with
 * ack_every > 1, by the ACK of a later packet (flushed at once when the CE bit changes, as in
 * RFC 8257 section 3.2, when the packet asks for it, when the message is complete, or when the
 * ACK cannot tell of all; and with ack_holes around holes, as in RFC 5681 section 4.2). An ACK
 * tells by its mask of packets near its own, and by `cum` of all before that one; the way of those
 * that only `cum` tells of was its own.
 */
#include "core/host/flow_rx.h"

#include "core/lb/entropy.h"

/* The way back has entropies of its own. */
static uint16_t next_entropy(struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    if (ep->cfg.ack_entropies == 0)
        return (uint16_t)gw_prng_next(&ep->prng);
    uint16_t entropy = flow->ack_entropy;
    flow->ack_entropy = gw_entropy_next(entropy, ep->cfg.ack_entropies);
    return entropy;
}

/* Turns a packet into an ACK or NACK on its way back, without the ACK's own fields. */
static void turn_around(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                        enum gw_pkt_kind kind)
{
    bool ce = pkt->q.ecn == GW_ECN_CE;
    gw_pkt_drop_payload(ep->pool, pkt);
    pkt->dst = pkt->src;
    pkt->src = ep->cfg.address;
    pkt->q = (struct gw_qpkt){
        .size = ep->cfg.hdr,
        .key = flow->key,
        .class = GW_CLASS_CONTROL,
        .ecn = GW_ECN_NOT_ECT,
        .flags = ce ? GW_PKT_ECHO_CE : 0,
        .kind = (uint8_t)kind,
    };
    pkt->echo_entropy = pkt->entropy;
    pkt->entropy = next_entropy(ep, flow);
    pkt->ack.cum = flow->cum;
    pkt->ack.mask[0] = pkt->ack.mask[1] = 0;
}

static void set_mask(struct gw_pkt *pkt, uint64_t mask)
{
    pkt->ack.mask[0] = (uint32_t)mask;
    pkt->ack.mask[1] = (uint32_t)(mask >> 32);
}

/* Adds to an ACK of a flow that has lost packets what the sender must know of them. */
static void report_lost(struct gw_rx_flow *flow, struct gw_pkt *pkt)
{
    bool is_end = flow->cum == flow->total;
    if (is_end)
        set_mask(pkt, flow->bytes);
    if (is_end || flow->has_let_go)
        pkt->q.flags |= GW_PKT_GIVEN_UP;
    flow->has_let_go = false;
}

void gw_flow_answer_ack(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt)
{
    turn_around(ep, flow, pkt, GW_PKT_ACK);
    if (flow->lost)
        report_lost(flow, pkt);
    ep->stats.acks_sent++;
    gw_egress_control(ep, pkt);
}

void gw_flow_answer_flush(struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    if (flow->held == 0)
        return;
    flow->held = 0;
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return; /* the sender's timeout and the next ACK's cum make up for it */
    pkt->src = flow->peer;
    pkt->flow = flow->flow;
    pkt->seq = flow->held_seq;
    pkt->sent_at = flow->held_sent_at;
    pkt->entropy = flow->held_entropy;
    pkt->q.ecn = flow->held_ce ? GW_ECN_CE : GW_ECN_ECT0;
    turn_around(ep, flow, pkt, GW_PKT_ACK);
    set_mask(pkt, flow->held_mask);
    if (flow->lost)
        report_lost(flow, pkt);
    ep->stats.acks_sent++;
    gw_egress_control(ep, pkt);
}

/* Re-bases the mask of held packets on `pkt`; false when its ACK could not tell of them all. */
static bool mask_rebase(struct gw_rx_flow *flow, const struct gw_pkt *pkt)
{
    int32_t shift = (int32_t)(pkt->seq - flow->held_seq);
    uint64_t mask = flow->held_mask, moved = 0;
    if (shift > -GW_ACK_MASK_BITS && shift < GW_ACK_MASK_BITS)
        moved = shift >= 0 ? mask >> shift : mask << -shift;
    if (moved != 0 && (shift >= 0 ? moved << shift : moved >> -shift) == mask) {
        flow->held_mask = moved;
        return true;
    }
    bool is_below_cum = (int32_t)(pkt->seq - GW_ACK_MASK_BEFORE - flow->cum) <= 0;
    if (shift < 0 || !is_below_cum || pkt->entropy != flow->held_entropy)
        return false;
    flow->held_mask = moved;
    return true;
}

void gw_flow_answer_coalesce(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                             gw_time now)
{
    bool ce = pkt->q.ecn == GW_ECN_CE;
    if (flow->held && (flow->held_ce != ce || !mask_rebase(flow, pkt)))
        gw_flow_answer_flush(ep, flow);
    if (flow->held == 0) {
        flow->held_mask = 0;
        flow->held_since = now;
        flow->held_ce = ce;
    }
    flow->held_seq = pkt->seq;
    flow->held_sent_at = pkt->sent_at;
    flow->held_entropy = pkt->entropy;
    flow->held_mask |= UINT64_C(1) << GW_ACK_MASK_BEFORE;
    flow->held++;
    bool is_whole = flow->cum == pkt->seq + 1 && flow->cum == flow->arrived + flow->lost;
    bool now_or_never = pkt->q.flags & GW_PKT_ACK_NOW || flow->cum == flow->total ||
                        (ep->cfg.ack_holes && !is_whole);
    gw_pkt_release(ep->pool, pkt);
    if (now_or_never || flow->held >= ep->cfg.ack_every)
        gw_flow_answer_flush(ep, flow);
    else
        gw_endpoint_arm_by(ep, gw_rx_timer(ep, flow),
                           gw_time_add(flow->held_since, ep->cfg.ack_delay));
}

void gw_flow_answer_nack(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                         uint8_t flags)
{
    turn_around(ep, flow, pkt, GW_PKT_NACK);
    pkt->q.flags |= flags;
    ep->stats.nacks_sent++;
    gw_egress_control(ep, pkt);
}

void gw_flow_answer_unknown(struct gw_endpoint *ep, struct gw_pkt *pkt, uint8_t flags)
{
    struct gw_rx_flow none = {.key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow)};
    gw_flow_answer_nack(ep, &none, pkt, flags);
}
