/* The receiver half of flows on credit: who wants credit, and the pacer; see credit.h. */
#include "core/host/credit.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t free_packets(const struct gw_endpoint *ep, const struct gw_rx_flow *flow)
{
    return min_u32(flow->total, ep->cfg.grant.first);
}

void gw_credit_open(const struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    flow->due = free_packets(ep, flow);
}

static void want_join(struct gw_endpoint *ep, struct gw_rx_flow *flow, gw_time now)
{
    if (flow->wants_credit)
        return;
    flow->wants_credit = true;
    if (ep->want_tail) {
        flow->want_next = ep->want_tail->want_next;
        ep->want_tail->want_next = flow;
    } else {
        flow->want_next = flow;
    }
    ep->want_tail = flow;
    if (!ep->is_granting) {
        ep->is_granting = true;
        ep->credit_pacer = (struct gw_pacer){.free_at = now};
        gw_endpoint_arm(ep, gw_credit_timer(ep), now);
    }
}

/* Removes the flow behind `before` from the queue. */
static void want_remove_after(struct gw_endpoint *ep, struct gw_rx_flow *before)
{
    struct gw_rx_flow *flow = before->want_next;
    flow->wants_credit = false;
    if (before == flow) {
        ep->want_tail = NULL;
        return;
    }
    if (ep->want_tail == flow)
        ep->want_tail = before;
    before->want_next = flow->want_next;
}

void gw_credit_leave(struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    if (!flow->wants_credit)
        return;
    struct gw_rx_flow *before = flow;
    while (before->want_next != flow)
        before = before->want_next;
    want_remove_after(ep, before);
}

void gw_credit_arrived(struct gw_endpoint *ep, struct gw_rx_flow *flow, const struct gw_pkt *pkt,
                       gw_time now)
{
    uint32_t free = free_packets(ep, flow);
    uint32_t gone = 1; /* of what was due */
    if (pkt->q.flags & GW_PKT_STARVED)
        gone = flow->due;
    else if (pkt->q.flags & GW_PKT_LAST_FREE && pkt->seq < free)
        gone += free - (pkt->seq + 1);
    flow->due -= min_u32(gone, flow->due);
    if (ep->cfg.grant.first)
        want_join(ep, flow, now);
}

/* Packets that the flow may be granted now: at most one train. */
static uint32_t wanted(const struct gw_endpoint *ep, const struct gw_rx_flow *flow)
{
    uint32_t missing = flow->total - flow->arrived - flow->lost;
    if (missing <= flow->due || ep->cfg.grant.ahead <= flow->due)
        return 0;
    return min_u32(min_u32(missing, ep->cfg.grant.ahead) - flow->due, ep->cfg.train);
}

/* False when the pool is empty. */
static bool send_credit(struct gw_endpoint *ep, struct gw_rx_flow *flow, uint32_t count)
{
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return false;
    flow->granted += count;
    flow->due += count;
    *pkt = (struct gw_pkt){
        .q = {.size = ep->cfg.hdr,
              .key = flow->key,
              .class = GW_CLASS_CONTROL,
              .ecn = GW_ECN_NOT_ECT,
              .kind = GW_PKT_CREDIT},
        .src = ep->cfg.address,
        .dst = flow->peer,
        .flow = flow->flow,
        .seq = flow->granted,
        .entropy = (uint16_t)gw_prng_next(&ep->prng),
        .buf = GW_BUF_NONE,
    };
    ep->stats.credits_sent++;
    gw_egress_control(ep, pkt);
    return true;
}

void gw_credit_expire(struct gw_endpoint *ep, gw_time now)
{
    gw_pacer_catch_up(&ep->credit_pacer, now);
    while (ep->want_tail && gw_pacer_is_free(&ep->credit_pacer, now)) {
        struct gw_rx_flow *flow = ep->want_tail->want_next;
        uint32_t count = wanted(ep, flow);
        if (count == 0) { /* until another packet of it arrives */
            want_remove_after(ep, ep->want_tail);
            continue;
        }
        if (!send_credit(ep, flow, count))
            count = 1; /* its turn is over all the same: try again later */
        ep->want_tail = flow;
        gw_pacer_take(&ep->credit_pacer,
                      count * gw_serialisation(ep->cfg.grant.pace, flow->mss + ep->cfg.hdr));
    }
    /* The time of the last credit passes even if nobody waits. */
    ep->is_granting = ep->want_tail || !gw_pacer_is_free(&ep->credit_pacer, now);
    gw_endpoint_arm(ep, gw_credit_timer(ep),
                    ep->is_granting ? ep->credit_pacer.free_at : GW_TIME_NEVER);
}
