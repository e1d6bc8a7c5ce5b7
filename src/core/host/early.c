/* Messages that came too early; see early.h. */
#include "core/host/early.h"

#include <string.h>

#include "core/host/blast.h"
#include "core/host/flow_rx.h"

static void forget(struct gw_early *early, uint32_t at)
{
    early->count--;
    memmove(&early->flows[at], &early->flows[at + 1],
            (early->count - at) * sizeof(early->flows[at]));
}

void gw_early_note(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    struct gw_early *early = &ep->early;
    bool is_blast = pkt->q.kind == GW_PKT_HAIL;
    uint32_t at = 0;
    while (at < early->count &&
           (early->flows[at].peer != pkt->src || early->flows[at].flow != pkt->flow))
        at++;
    if (at == GW_EARLY_MAX)
        forget(early, 0);
    if (at >= early->count)
        at = early->count++;
    early->flows[at] = (struct gw_early_flow){
        .peer = pkt->src,
        .flow = pkt->flow,
        .tag = is_blast ? pkt->hail.word[1] : pkt->data.tag,
        .seq = pkt->seq,
        .sent_at = pkt->sent_at,
        .entropy = pkt->entropy,
        .is_blast = is_blast,
    };
}

/* By a NACK of the packet that was dropped. */
static void tell_flow(struct gw_endpoint *ep, const struct gw_early_flow *flow)
{
    struct gw_rx_flow none = {.key = gw_flow_key(ep->cfg.address, flow->peer, flow->flow)};
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return;
    pkt->src = flow->peer;
    pkt->flow = flow->flow;
    pkt->seq = flow->seq;
    pkt->sent_at = flow->sent_at;
    pkt->entropy = flow->entropy;
    pkt->q.ecn = GW_ECN_NOT_ECT;
    gw_flow_answer_nack(ep, &none, pkt, GW_PKT_READY);
}

static void tell_blast(struct gw_endpoint *ep, const struct gw_early_flow *flow)
{
    const struct gw_pkt rendezvous = {
        .src = flow->peer, .flow = flow->flow, .sent_at = flow->sent_at};
    gw_blast_rx_accept(ep, &rendezvous, 0, GW_HAIL_READY);
}

void gw_early_tell(struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    struct gw_early *early = &ep->early;
    for (uint32_t i = 0; i < early->count;) {
        const struct gw_early_flow flow = early->flows[i];
        if (flow.peer != peer || flow.tag != tag) {
            i++;
            continue;
        }
        forget(early, i);
        if (flow.is_blast)
            tell_blast(ep, &flow);
        else
            tell_flow(ep, &flow);
    }
}
