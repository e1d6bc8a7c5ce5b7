/* Flows on credit: what is free, who wants credit, and the pacer; see credit.h. */
#include "core/host/credit.h"

#include "core/host/blast.h"
#include "core/host/flow_rx.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t gw_credit_free(const struct gw_endpoint *ep, const struct gw_transport *transport,
                        const struct gw_path *path, uint32_t total)
{
    struct gw_grant_plan plan = {0};
    transport->grant->plan(transport->grant_cfg.bytes, path, &plan);
    return min_u32(min_u32(plan.first, ep->cfg.span_max), total);
}

static uint32_t free_packets(const struct gw_endpoint *ep, uint32_t total)
{
    return min_u32(total, ep->cfg.grant.first);
}

static void want_join(struct gw_endpoint *ep, struct gw_grantee *grantee, gw_time now)
{
    if (grantee->next || ep->cfg.grant.first == 0)
        return;
    if (ep->want_tail) {
        grantee->next = ep->want_tail->next;
        ep->want_tail->next = grantee;
    } else {
        grantee->next = grantee;
    }
    ep->want_tail = grantee;
    if (!ep->is_granting) {
        ep->is_granting = true;
        ep->credit_pacer = (struct gw_pacer){.free_at = now};
        gw_endpoint_arm(ep, gw_credit_timer(ep), now);
    }
}

void gw_credit_open(struct gw_endpoint *ep, struct gw_grantee *grantee, uint32_t total, gw_time now)
{
    grantee->due = free_packets(ep, total);
    want_join(ep, grantee, now);
}

/* Removes who is behind `before` from the queue. */
static void want_remove_after(struct gw_endpoint *ep, struct gw_grantee *before)
{
    struct gw_grantee *grantee = before->next;
    if (before == grantee)
        ep->want_tail = NULL;
    else if (ep->want_tail == grantee)
        ep->want_tail = before;
    before->next = grantee->next;
    grantee->next = NULL;
}

void gw_credit_leave(struct gw_endpoint *ep, struct gw_grantee *grantee)
{
    if (!grantee->next)
        return;
    struct gw_grantee *before = grantee;
    while (before->next != grantee)
        before = before->next;
    want_remove_after(ep, before);
}

void gw_credit_arrived(struct gw_endpoint *ep, struct gw_grantee *grantee, uint32_t total,
                       const struct gw_pkt *pkt, gw_time now)
{
    uint32_t free = free_packets(ep, total);
    uint32_t gone = 1; /* of what was due */
    if (pkt->q.flags & GW_PKT_STARVED)
        gone = grantee->due;
    else if (pkt->q.flags & GW_PKT_LAST_FREE && pkt->seq < free)
        gone += free - (pkt->seq + 1);
    grantee->due -= min_u32(gone, grantee->due);
    want_join(ep, grantee, now);
}

void gw_credit_renew(struct gw_endpoint *ep, struct gw_grantee *grantee, gw_time now)
{
    grantee->due = 0;
    want_join(ep, grantee, now);
}

/* What credit is about. */
struct terms {
    uint32_t peer, flow, key;
    uint32_t missing; /* packets */
    uint32_t size;    /* of each */
};

/* The peer says how large its packets are; the link takes none that is larger than ours. */
static uint32_t packet_size(const struct gw_endpoint *ep, uint16_t mss)
{
    return min_u32(mss, ep->cfg.mtu) + ep->cfg.hdr;
}

static struct terms terms_of(const struct gw_endpoint *ep, const struct gw_grantee *grantee)
{
    const uintptr_t at = (uintptr_t)grantee - (uintptr_t)ep->blasts_rx;
    if (at < ep->cfg.blasts_max * sizeof(*ep->blasts_rx)) {
        const struct gw_blast_rx *blast = &ep->blasts_rx[at / sizeof(*ep->blasts_rx)];
        return (struct terms){blast->peer, blast->flow, blast->key, blast->total - blast->arrived,
                              packet_size(ep, blast->mss)};
    }
    const struct gw_rx_flow *flow =
        &ep->rx_flows[((uintptr_t)grantee - (uintptr_t)ep->rx_flows) / sizeof(*ep->rx_flows)];
    return (struct terms){flow->peer, flow->flow, flow->key,
                          flow->total - flow->arrived - flow->lost, packet_size(ep, flow->mss)};
}

/* Packets that may be granted now: at most one train. */
static uint32_t wanted(const struct gw_endpoint *ep, const struct gw_grantee *grantee,
                       const struct terms *terms)
{
    if (terms->missing <= grantee->due || ep->cfg.grant.ahead <= grantee->due)
        return 0;
    return min_u32(min_u32(terms->missing, ep->cfg.grant.ahead) - grantee->due, ep->cfg.train);
}

/* False when the pool is empty. */
static bool send_credit(struct gw_endpoint *ep, struct gw_grantee *grantee,
                        const struct terms *terms, uint32_t count)
{
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return false;
    grantee->granted += count;
    grantee->due += count;
    *pkt = (struct gw_pkt){
        .q = {.size = ep->cfg.hdr,
              .key = terms->key,
              .class = GW_CLASS_CONTROL,
              .ecn = GW_ECN_NOT_ECT,
              .kind = GW_PKT_CREDIT},
        .src = ep->cfg.address,
        .dst = terms->peer,
        .flow = terms->flow,
        .seq = grantee->granted,
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
        struct gw_grantee *grantee = ep->want_tail->next;
        const struct terms terms = terms_of(ep, grantee);
        uint32_t count = wanted(ep, grantee, &terms);
        if (count == 0) { /* until another packet of it arrives */
            want_remove_after(ep, ep->want_tail);
            continue;
        }
        if (!send_credit(ep, grantee, &terms, count))
            count = 1; /* its turn is over all the same: try again later */
        ep->want_tail = grantee;
        gw_pacer_take(&ep->credit_pacer, count * gw_serialisation(ep->cfg.grant.pace, terms.size));
    }
    /* The time of the last credit passes even if nobody waits. */
    ep->is_granting = ep->want_tail || !gw_pacer_is_free(&ep->credit_pacer, now);
    gw_endpoint_arm(ep, gw_credit_timer(ep),
                    ep->is_granting ? ep->credit_pacer.free_at : GW_TIME_NEVER);
}
