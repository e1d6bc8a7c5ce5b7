/*
 * The receiver half of a flow: which packets have arrived, where their payload goes, and the ACKs.
 *
 * Any data packet that can be stored opens a flow, since each carries all that is needed. Every one
 * is answered: at once, by turning it into its own ACK or NACK, or, with ack_every > 1, by the ACK
 * of a later packet (flushed at once when the CE bit changes, as in RFC 8257 section 3.2, when the
 * packet asks for it, when the message is complete, or when the ACK's mask cannot reach). A
 * complete flow stays as long as its slot is not needed, to answer duplicates; one that failed, to
 * leave its packets unanswered. Payload for which no memory is posted is dropped with a NACK that
 * says so; nothing is remembered of it.
 *
 * On credit a trimmed packet opens a flow as well, since it is to be granted again.
 *
 * Invariant: bit (seq modulo span) is set only for arrived packets with cum < seq < cum + span.
 */
#include <string.h>

#include "base/error.h"
#include "core/host/credit.h"

static uint64_t rx_key(uint32_t peer, uint32_t flow)
{
    return (uint64_t)peer << 32 | flow;
}

static uint32_t rx_timer(const struct gw_endpoint *ep, uint32_t slot)
{
    return ep->cfg.tx_flows_max + slot;
}

static bool bit_test(const struct gw_endpoint *ep, const struct gw_rx_flow *flow, uint32_t seq)
{
    uint32_t at = seq & ep->span_mask;
    return flow->bits[at / 64] >> (at % 64) & 1;
}

static void bit_flip(const struct gw_endpoint *ep, struct gw_rx_flow *flow, uint32_t seq)
{
    uint32_t at = seq & ep->span_mask;
    flow->bits[at / 64] ^= UINT64_C(1) << (at % 64);
}

/* The flow that ended first gives up its slot. */
static uint32_t slot_recycle(struct gw_endpoint *ep)
{
    uint32_t slot = ep->done_head;
    if (slot == GW_SLOT_NONE)
        return GW_SLOT_NONE;
    struct gw_rx_flow *flow = &ep->rx_flows[slot];
    ep->done_head = flow->list_next;
    gw_map_remove(&ep->rx_map, rx_key(flow->peer, flow->flow));
    return slot;
}

/* The memory posted for a message, or NULL. */
static struct gw_expectation *find_memory(const struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    for (uint32_t i = 0; i < ep->cfg.expect_max; i++) {
        struct gw_expectation *expectation = &ep->expectations[i];
        if (expectation->data && expectation->peer == peer && expectation->tag == tag)
            return expectation;
    }
    return NULL;
}

bool gw_endpoint_expects(const struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    return find_memory(ep, peer, tag) != NULL;
}

/* Whether there is memory for the first packet of a message, if it needs any. */
static bool is_expected(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    /* A payload that was cut may have been one. */
    bool has_payload =
        pkt->q.flags & GW_PKT_TRIMMED ? ep->pool->bufs != NULL : pkt->buf != GW_BUF_NONE;
    return !has_payload || find_memory(ep, pkt->src, pkt->data.tag);
}

/* Opens a flow for a packet that can be stored: a flow without memory would hold its slot idle. */
static struct gw_rx_flow *flow_open(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    if (!gw_endpoint_has_event_room(ep))
        return NULL;
    uint32_t slot = ep->rx_free;
    if (slot != GW_SLOT_NONE)
        ep->rx_free = ep->rx_flows[slot].list_next;
    else if ((slot = slot_recycle(ep)) == GW_SLOT_NONE)
        return NULL;
    struct gw_rx_flow *flow = &ep->rx_flows[slot];
    *flow = (struct gw_rx_flow){
        .bits = flow->bits,
        .peer = pkt->src,
        .flow = pkt->flow,
        .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
        .total = pkt->data.total,
        .tag = pkt->data.tag,
        .mss = pkt->data.mss,
        .state = GW_RX_ACTIVE,
        .heard_at = now,
    };
    memset(flow->bits, 0, (ep->span_mask + 1) / 8);
    if (pkt->q.flags & GW_PKT_ON_CREDIT)
        gw_credit_open(ep, flow);
    ep->promised++;
    int error = gw_map_put(&ep->rx_map, rx_key(flow->peer, flow->flow), slot);
    GW_ASSERT(error == GW_OK);
    if (ep->cfg.stall)
        gw_endpoint_arm(ep, rx_timer(ep, slot), gw_time_add(now, ep->cfg.stall));
    return flow;
}

/* The flow ends; its slot answers packets as `state` says until another flow needs it. */
static void flow_retire(struct gw_endpoint *ep, struct gw_rx_flow *flow, enum gw_rx_state state)
{
    uint32_t slot = (uint32_t)(flow - ep->rx_flows);
    gw_endpoint_arm(ep, rx_timer(ep, slot), GW_TIME_NEVER);
    gw_credit_leave(ep, flow);
    ep->promised--;
    flow->data = NULL;
    flow->state = (uint8_t)state;
    flow->list_next = GW_SLOT_NONE;
    if (ep->done_head == GW_SLOT_NONE)
        ep->done_head = slot;
    else
        ep->rx_flows[ep->done_tail].list_next = slot;
    ep->done_tail = slot;
}

static void flow_close(struct gw_endpoint *ep, struct gw_rx_flow *flow, enum gw_event_kind kind,
                       gw_time now)
{
    flow_retire(ep, flow, kind == GW_EVENT_RECEIVED ? GW_RX_DONE : GW_RX_FAILED);
    gw_endpoint_post(ep, &(struct gw_event){.kind = kind,
                                            .flow = flow->flow,
                                            .peer = flow->peer,
                                            .tag = flow->tag,
                                            .bytes = flow->bytes,
                                            .at = now});
}

void gw_flow_rx_drop(struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    flow_retire(ep, flow, GW_RX_FAILED);
}

/* Turns a packet into an ACK or NACK on its way back, without the ACK's own fields. */
static void turn_around(struct gw_endpoint *ep, const struct gw_rx_flow *flow, struct gw_pkt *pkt,
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
    pkt->entropy = (uint16_t)gw_prng_next(&ep->prng);
    pkt->ack.cum = flow->cum;
    pkt->ack.mask[0] = pkt->ack.mask[1] = 0;
}

static void send_ack(struct gw_endpoint *ep, const struct gw_rx_flow *flow, struct gw_pkt *pkt)
{
    turn_around(ep, flow, pkt, GW_PKT_ACK);
    ep->stats.acks_sent++;
    gw_egress_control(ep, pkt);
}

/* Sends the ACK that is held back, from a fresh packet. */
static void flush_held(struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    if (flow->held == 0)
        return;
    flow->held = 0;
    struct gw_pkt *pkt = gw_pkt_claim(ep->pool);
    if (!pkt) {
        ep->stats.pool_empty++;
        return; /* the sender's timeout and the next ACK's cum make up for it */
    }
    pkt->src = flow->peer;
    pkt->flow = flow->flow;
    pkt->seq = flow->held_seq;
    pkt->sent_at = flow->held_sent_at;
    pkt->entropy = flow->held_entropy;
    pkt->q.ecn = flow->held_ce ? GW_ECN_CE : GW_ECN_ECT0;
    turn_around(ep, flow, pkt, GW_PKT_ACK);
    pkt->ack.mask[0] = (uint32_t)flow->held_mask;
    pkt->ack.mask[1] = (uint32_t)(flow->held_mask >> 32);
    ep->stats.acks_sent++;
    gw_egress_control(ep, pkt);
}

/* Re-bases the mask of held packets on `seq`; false when it cannot reach them all. */
static bool mask_rebase(struct gw_rx_flow *flow, uint32_t seq)
{
    int32_t shift = (int32_t)(seq - flow->held_seq);
    if (shift <= -GW_ACK_MASK_BITS || shift >= GW_ACK_MASK_BITS)
        return false;
    uint64_t mask = flow->held_mask;
    uint64_t moved = shift >= 0 ? mask >> shift : mask << -shift;
    if ((shift >= 0 ? moved << shift : moved >> -shift) != mask)
        return false;
    flow->held_mask = moved;
    return true;
}

/* Acknowledges `pkt` with those held back, or holds it back as well. Takes the packet. */
static void coalesce(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                     gw_time now)
{
    bool ce = pkt->q.ecn == GW_ECN_CE;
    if (flow->held && (flow->held_ce != ce || !mask_rebase(flow, pkt->seq)))
        flush_held(ep, flow);
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
    bool now_or_never = pkt->q.flags & GW_PKT_ACK_NOW || flow->cum == flow->total;
    gw_pkt_release(ep->pool, pkt);
    if (now_or_never || flow->held >= ep->cfg.ack_every)
        flush_held(ep, flow);
    else
        gw_endpoint_arm_by(ep, rx_timer(ep, (uint32_t)(flow - ep->rx_flows)),
                           gw_time_add(flow->held_since, ep->cfg.ack_delay));
}

/* Puts the payload where it belongs. False: there is no memory for it. */
static bool store(struct gw_endpoint *ep, struct gw_rx_flow *flow, const struct gw_pkt *pkt)
{
    if (pkt->buf == GW_BUF_NONE)
        return true;
    struct gw_expectation *posted = flow->data ? NULL : find_memory(ep, flow->peer, flow->tag);
    if (posted) {
        flow->data = posted->data;
        flow->room = posted->bytes;
        posted->data = NULL;
    }
    uint64_t offset = (uint64_t)pkt->seq * flow->mss;
    if (!flow->data || offset + pkt->data.len > flow->room)
        return false;
    memcpy(flow->data + offset, gw_buf_bytes(ep->pool->bufs, pkt->buf), pkt->data.len);
    return true;
}

static void send_nack(struct gw_endpoint *ep, const struct gw_rx_flow *flow, struct gw_pkt *pkt,
                      uint8_t flags)
{
    turn_around(ep, flow, pkt, GW_PKT_NACK);
    pkt->q.flags |= flags;
    ep->stats.nacks_sent++;
    gw_egress_control(ep, pkt);
}

/* Answers a packet of a flow that is not open, of which there is nothing to remember. */
static void nack_unknown(struct gw_endpoint *ep, struct gw_pkt *pkt, uint8_t flags)
{
    const struct gw_rx_flow none = {.key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow)};
    send_nack(ep, &none, pkt, flags);
}

/* True when the packet's own fields do not contradict each other. */
static bool data_is_sound(const struct gw_pkt *pkt)
{
    bool is_last = pkt->seq + 1 == pkt->data.total;
    return pkt->seq < pkt->data.total && pkt->data.len > 0 && pkt->data.len <= pkt->data.mss &&
           (is_last || pkt->data.len == pkt->data.mss) && pkt->data.total != UINT32_MAX;
}

/*
 * The flow of a data packet, opened if need be. NULL: the packet has been dealt with, and the
 * reason is counted.
 */
static struct gw_rx_flow *data_flow(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    uint32_t slot = gw_map_get(&ep->rx_map, rx_key(pkt->src, pkt->flow));
    struct gw_rx_flow *flow = slot == GW_MAP_NONE ? NULL : &ep->rx_flows[slot];
    if (!data_is_sound(pkt) ||
        (flow && (pkt->data.total != flow->total || pkt->data.mss != flow->mss))) {
        ep->stats.malformed++;
    } else if (!flow && pkt->q.flags & GW_PKT_TRIMMED && !(pkt->q.flags & GW_PKT_ON_CREDIT)) {
        nack_unknown(ep, pkt, 0);
        return NULL;
    } else if (!flow && !is_expected(ep, pkt)) {
        ep->stats.refused++;
        nack_unknown(ep, pkt, GW_PKT_NOT_READY);
        return NULL;
    } else if (!flow && (flow = flow_open(ep, pkt, now)) == NULL) {
        ep->stats.refused++;
    } else if (flow->state == GW_RX_FAILED) {
        ep->stats.refused++;
    } else {
        return flow;
    }
    gw_pkt_release(ep->pool, pkt);
    return NULL;
}

void gw_flow_rx_data(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    ep->stats.data_received++;
    struct gw_rx_flow *flow = data_flow(ep, pkt, now);
    if (!flow)
        return;
    flow->heard_at = now;
    if (pkt->q.flags & GW_PKT_ON_CREDIT && flow->state == GW_RX_ACTIVE)
        gw_credit_arrived(ep, flow, pkt, now);
    uint32_t ahead = pkt->seq - flow->cum; /* wraps to a large number when seq < cum */
    bool is_duplicate =
        pkt->seq < flow->cum || (ahead <= ep->span_mask && bit_test(ep, flow, pkt->seq));
    if (is_duplicate) {
        ep->stats.duplicates++;
        send_ack(ep, flow, pkt);
        return;
    }
    if (ahead > ep->span_mask || (!(pkt->q.flags & GW_PKT_TRIMMED) && !store(ep, flow, pkt))) {
        ep->stats.refused++;
        gw_pkt_release(ep->pool, pkt);
        return;
    }
    if (pkt->q.flags & GW_PKT_TRIMMED) {
        send_nack(ep, flow, pkt, 0);
        return;
    }
    flow->bytes += pkt->data.len;
    bit_flip(ep, flow, pkt->seq);
    while (bit_test(ep, flow, flow->cum))
        bit_flip(ep, flow, flow->cum++);
    bool is_complete = flow->cum == flow->total;
    if (ep->cfg.ack_every > 1)
        coalesce(ep, flow, pkt, now);
    else
        send_ack(ep, flow, pkt);
    if (is_complete)
        flow_close(ep, flow, GW_EVENT_RECEIVED, now);
}

void gw_flow_rx_expire(struct gw_endpoint *ep, uint32_t slot, gw_time now)
{
    struct gw_rx_flow *flow = &ep->rx_flows[slot];
    gw_time next = GW_TIME_NEVER;
    if (flow->held) {
        gw_time due = gw_time_add(flow->held_since, ep->cfg.ack_delay);
        if (gw_time_before(now, due))
            next = due;
        else
            flush_held(ep, flow);
    }
    if (ep->cfg.stall) {
        gw_time due = gw_time_add(flow->heard_at, ep->cfg.stall);
        if (!gw_time_before(now, due)) {
            flow_close(ep, flow, GW_EVENT_FAILED, now);
            return;
        }
        if (gw_deadline_before(due, next))
            next = due;
    }
    gw_endpoint_arm(ep, rx_timer(ep, slot), next);
}
