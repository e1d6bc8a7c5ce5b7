/* Messages that came too early; see early.h. */
#include "core/host/early.h"

#include <string.h>

#include "core/host/blast.h"
#include "core/host/flow_rx.h"

/* Returns how many packets there were. */
static uint32_t drop_kept(struct gw_endpoint *ep, struct gw_early_flow *flow)
{
    const uint32_t count = flow->kept.count;
    while (flow->kept.count)
        gw_pkt_release(ep->pool, gw_pkt_fifo_pop(&flow->kept, ep->pool));
    memset(flow->seqs, 0, sizeof(flow->seqs));
    ep->early.kept -= count;
    return count;
}

/* Takes an entry out of the table, with what is kept of it. */
static struct gw_early_flow take_out(struct gw_early *early, uint32_t at)
{
    const struct gw_early_flow flow = early->flows[at];
    early->count--;
    memmove(&early->flows[at], &early->flows[at + 1],
            (early->count - at) * sizeof(early->flows[at]));
    early->kept -= flow.kept.count;
    return flow;
}

/* Of flows with one tag the packets of the newest are kept: the others may have been given up. */
static void drop_older(struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    for (uint32_t i = 0; i < ep->early.count; i++) {
        struct gw_early_flow *flow = &ep->early.flows[i];
        if (flow->peer == peer && flow->tag == tag && !flow->has_memory)
            drop_kept(ep, flow);
    }
}

/* The entry of a packet's message, which is new if need be, and says what the packet says. */
static struct gw_early_flow *note(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    struct gw_early *early = &ep->early;
    const bool is_blast = pkt->q.kind == GW_PKT_HAIL;
    const uint32_t tag = is_blast ? pkt->hail.word[1] : pkt->data.tag;
    uint32_t at = 0;
    while (at < early->count &&
           (early->flows[at].peer != pkt->src || early->flows[at].flow != pkt->flow))
        at++;
    if (at == GW_EARLY_MAX) {
        drop_kept(ep, &early->flows[0]);
        take_out(early, 0);
    }
    if (at >= early->count) {
        drop_older(ep, pkt->src, tag);
        at = early->count++;
        early->flows[at] = (struct gw_early_flow){.peer = pkt->src, .flow = pkt->flow};
    } else if (early->flows[at].tag != tag) {
        drop_kept(ep, &early->flows[at]);
    }
    struct gw_early_flow *flow = &early->flows[at];
    flow->tag = tag;
    flow->seq = pkt->seq;
    flow->sent_at = pkt->sent_at;
    flow->entropy = pkt->entropy;
    flow->is_blast = is_blast;
    return flow;
}

void gw_early_note(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    note(ep, pkt);
}

/* By a NACK of the packet that was noted. */
static void tell_flow(struct gw_endpoint *ep, const struct gw_early_flow *flow, uint8_t flag)
{
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return;
    pkt->src = flow->peer;
    pkt->flow = flow->flow;
    pkt->seq = flow->seq;
    pkt->sent_at = flow->sent_at;
    pkt->entropy = flow->entropy;
    pkt->q.ecn = GW_ECN_NOT_ECT;
    gw_flow_answer_unknown(ep, pkt, flag);
}

/* Whether there is room for another packet, if need be that of messages noted before this one. */
static bool make_room(struct gw_endpoint *ep, const struct gw_early_flow *flow)
{
    struct gw_early_flow *other = ep->early.flows;
    for (; ep->early.kept >= ep->cfg.early_packets && other != flow; other++)
        drop_kept(ep, other);
    return ep->early.kept < ep->cfg.early_packets;
}

bool gw_early_keep(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    struct gw_early_flow *flow = note(ep, pkt);
    flow->is_starved = flow->is_starved || pkt->q.flags & GW_PKT_STARVED;
    if (pkt->buf == GW_BUF_NONE || pkt->seq >= GW_EARLY_PACKETS ||
        gw_bit_is_set(flow->seqs, pkt->seq) || !make_room(ep, flow))
        return false;
    const bool is_asked = ep->cfg.ack_every == 1 || pkt->q.flags & GW_PKT_ACK_NOW;
    if (flow->kept.count == 0 || is_asked)
        tell_flow(ep, flow, GW_PKT_NOT_READY);
    gw_bit_set(flow->seqs, pkt->seq);
    pkt->sent_at -= now;
    gw_pkt_fifo_push(&flow->kept, ep->pool, pkt);
    ep->early.kept++;
    ep->stats.kept++;
    return true;
}

static void tell_blast(struct gw_endpoint *ep, const struct gw_early_flow *flow)
{
    const struct gw_pkt rendezvous = {
        .src = flow->peer, .flow = flow->flow, .sent_at = flow->sent_at};
    gw_blast_rx_accept(ep, &rendezvous, 0, GW_HAIL_READY);
}

/* Its sender that there is memory. */
static void tell(struct gw_endpoint *ep, const struct gw_early_flow *flow)
{
    if (flow->is_blast)
        tell_blast(ep, flow);
    else
        tell_flow(ep, flow, GW_PKT_READY);
}

void gw_early_tell(struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    struct gw_early *early = &ep->early;
    for (uint32_t i = 0; i < early->count;) {
        struct gw_early_flow *noted = &early->flows[i];
        if (noted->peer != peer || noted->tag != tag || noted->has_memory) {
            i++;
        } else if (noted->kept.count) {
            noted->has_memory = true;
            gw_endpoint_arm(ep, gw_early_timer(ep), ep->looked_at);
            return; /* it takes the memory */
        } else {
            const struct gw_early_flow flow = take_out(early, i);
            tell(ep, &flow);
        }
    }
}

/* What was kept of a flow arrives now. Its sender took all of it back, so if it has no credit
 * nothing more is under way. */
static void take_in(struct gw_endpoint *ep, struct gw_early_flow *flow, gw_time now)
{
    while (flow->kept.count) {
        struct gw_pkt *pkt = gw_pkt_fifo_pop(&flow->kept, ep->pool);
        pkt->sent_at += now;
        if (flow->is_starved && flow->kept.count == 0 && pkt->q.flags & GW_PKT_ON_CREDIT)
            pkt->q.flags |= GW_PKT_STARVED;
        gw_flow_rx_take(ep, pkt, now);
    }
    gw_flow_rx_flush(ep, flow->peer, flow->flow);
}

void gw_early_expire(struct gw_endpoint *ep, gw_time now)
{
    struct gw_early *early = &ep->early;
    gw_endpoint_arm(ep, gw_early_timer(ep), GW_TIME_NEVER);
    for (uint32_t i = 0; i < early->count;) {
        if (!early->flows[i].has_memory) {
            i++;
            continue;
        }
        struct gw_early_flow flow = take_out(early, i);
        if (flow.kept.count == 0)
            tell(ep, &flow); /* its packets have given way */
        else
            take_in(ep, &flow, now);
        i = 0; /* what was kept may be early again */
    }
}

uint32_t gw_early_fini(struct gw_endpoint *ep)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ep->early.count; i++)
        count += drop_kept(ep, &ep->early.flows[i]);
    return count;
}
