/*
 * The receiver half of a flow: which packets have arrived, and where their payload goes; see
 * flow_rx.h.
 *
 * Any data packet that can be stored opens a flow, since each carries all that is needed. A flow
 * that is done stays as long as its place is not needed, to answer duplicates; one that failed, to
 * leave its packets unanswered. After that past_flows.h knows it, so that it does not open again,
 * and what it came to. Payload for which no memory is posted is kept, or dropped, with a NACK that
 * says so; dropped, with another when there is (early.h).
 *
 * On credit a trimmed packet opens a flow as well, since it is to be granted again.
 */
#include "core/host/flow_rx.h"

#include <string.h>

#include "base/align.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/host/credit.h"

static uint64_t rx_key(uint32_t peer, uint32_t flow)
{
    return (uint64_t)peer << 32 | flow;
}

static bool bit_test(const struct gw_endpoint *ep, const struct gw_rx_flow *flow, uint32_t seq)
{
    uint32_t at = seq & ep->span_mask;
    return gw_bit_is_set(flow->bits, at);
}

static void bit_flip(const struct gw_endpoint *ep, struct gw_rx_flow *flow, uint32_t seq)
{
    uint32_t at = seq & ep->span_mask;
    flow->bits[at / 64] ^= UINT64_C(1) << (at % 64);
}

void gw_flow_rx_foresee(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    uint32_t index = gw_map_get(&ep->rx_map, rx_key(pkt->src, pkt->flow));
    if (index == GW_MAP_NONE)
        return;
    const struct gw_rx_flow *flow = &ep->rx_flows[index];
    gw_prefetch(flow, sizeof(*flow), GW_PREFETCH_WRITE);
    gw_prefetch(&flow->bits[(pkt->seq & ep->span_mask) / 64], sizeof(*flow->bits),
                GW_PREFETCH_WRITE);
}

/* Index of a place for a flow, if need be that of the flow that ended first; or GW_FLOW_NONE. */
static uint32_t take_place(struct gw_endpoint *ep)
{
    uint32_t index = ep->rx_free;
    if (index != GW_FLOW_NONE) {
        ep->rx_free = ep->rx_flows[index].list_next;
        return index;
    }
    index = ep->done_head;
    if (index != GW_FLOW_NONE) {
        const struct gw_rx_flow *flow = &ep->rx_flows[index];
        ep->done_head = flow->list_next;
        gw_map_remove(&ep->rx_map, rx_key(flow->peer, flow->flow));
    }
    return index;
}

struct gw_expect *gw_endpoint_find_memory(const struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    for (uint32_t i = 0; i < ep->expect_end; i++) {
        struct gw_expect *expectation = &ep->expectations[i];
        if (expectation->data && expectation->peer == peer && expectation->tag == tag)
            return expectation;
    }
    return NULL;
}

bool gw_endpoint_expects(const struct gw_endpoint *ep, uint32_t peer, uint32_t tag)
{
    return gw_endpoint_find_memory(ep, peer, tag) != NULL;
}

/* Bytes of a packet's message at the least: only the last packet tells how long that is. */
static uint64_t least_bytes(const struct gw_pkt *pkt)
{
    bool is_last = pkt->seq + 1 == pkt->data.total;
    return (uint64_t)(pkt->data.total - 1) * pkt->data.mss + (is_last ? pkt->data.len : 1);
}

static void tell_unexpected(struct gw_endpoint *ep, const struct gw_pkt *pkt, uint64_t room,
                            gw_time now)
{
    gw_endpoint_tell_unexpected(ep, &(struct gw_event){.peer = pkt->src,
                                                       .tag = pkt->data.tag,
                                                       .bytes = least_bytes(pkt),
                                                       .room = room,
                                                       .at = now});
}

/* Whether there is memory for the message of an unknown flow, if it needs any; if not, whether none
 * has been posted yet. */
static bool is_expected(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now,
                        bool *is_early)
{
    /* A payload that was cut may have been one. */
    bool has_payload =
        pkt->q.flags & GW_PKT_TRIMMED ? ep->pool->bufs != NULL : pkt->buf != GW_BUF_NONE;
    const struct gw_expect *posted =
        has_payload ? gw_endpoint_find_memory(ep, pkt->src, pkt->data.tag) : NULL;
    bool is_short = posted && least_bytes(pkt) > posted->bytes;
    *is_early = has_payload && !posted;
    if (has_payload && (!posted || is_short))
        tell_unexpected(ep, pkt, posted ? posted->bytes : 0, now);
    return !has_payload ||
           (posted && !is_short && !(posted->arrived && pkt->data.total > posted->packets_max));
}

/* Opens a flow for a packet that can be stored: a flow without memory would hold its place idle. */
static struct gw_rx_flow *flow_open(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    if (!gw_endpoint_has_event_room(ep))
        return NULL;
    uint32_t index = take_place(ep);
    if (index == GW_FLOW_NONE)
        return NULL;
    struct gw_rx_flow *flow = &ep->rx_flows[index];
    *flow = (struct gw_rx_flow){
        .bits = flow->bits,
        .peer = pkt->src,
        .flow = pkt->flow,
        .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
        .total = pkt->data.total,
        .tag = pkt->data.tag,
        .mss = pkt->data.mss,
        .finish = ep->pool->bufs ? NULL : ep->cfg.finish,
        .state = GW_RX_ACTIVE,
        .heard_at = now,
    };
    memset(flow->bits, 0, (ep->span_mask + 1) / 8);
    if (pkt->q.flags & GW_PKT_ON_CREDIT)
        gw_credit_open(ep, &flow->grantee, flow->total, now);
    ep->promised++;
    int error = gw_map_put(&ep->rx_map, rx_key(flow->peer, flow->flow), index);
    GW_ASSERT(error == GW_OK);
    if (ep->cfg.stall)
        gw_endpoint_arm(ep, gw_rx_timer(ep, flow), gw_stall_at(now, ep->cfg.stall));
    return flow;
}

/* The flow ends; it answers packets as `state` says until another flow needs its place. */
static void flow_retire(struct gw_endpoint *ep, struct gw_rx_flow *flow, enum gw_rx_state state)
{
    const struct gw_past_end end = {flow->tag, state == GW_RX_DONE ? flow->arrived : 0,
                                    flow->bytes};
    if (gw_rx_memory_of(ep, flow)->data)
        gw_past_flows_note(&ep->past_flows, flow->peer, flow->flow, end, flow->heard_at);
    uint32_t index = (uint32_t)(flow - ep->rx_flows);
    gw_endpoint_arm(ep, gw_rx_timer(ep, flow), GW_TIME_NEVER);
    gw_credit_leave(ep, &flow->grantee);
    ep->promised--;
    *gw_rx_memory_of(ep, flow) = (struct gw_rx_memory){0};
    flow->state = (uint8_t)state;
    flow->list_next = GW_FLOW_NONE;
    if (ep->done_head == GW_FLOW_NONE)
        ep->done_head = index;
    else
        ep->rx_flows[ep->done_tail].list_next = index;
    ep->done_tail = index;
}

static void flow_close(struct gw_endpoint *ep, struct gw_rx_flow *flow, enum gw_event_kind kind,
                       gw_time now)
{
    const struct gw_rx_memory own = *gw_rx_memory_of(ep, flow);
    flow_retire(ep, flow, kind == GW_EVENT_RECEIVED ? GW_RX_DONE : GW_RX_FAILED);
    gw_endpoint_post(ep, &(struct gw_event){.kind = kind,
                                            .flow = flow->flow,
                                            .peer = flow->peer,
                                            .tag = flow->tag,
                                            .bytes = flow->bytes,
                                            .missing = flow->lost,
                                            .mss = flow->mss,
                                            .is_merged = own.merger != NULL,
                                            .overflows = own.overflows,
                                            .at = now});
}

void gw_flow_rx_drop(struct gw_endpoint *ep, struct gw_rx_flow *flow)
{
    flow_retire(ep, flow, GW_RX_FAILED);
}

/* Takes the memory that is posted for the flow, if it may. */
static void take_memory(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_rx_memory *own)
{
    struct gw_expect *posted = gw_endpoint_find_memory(ep, flow->peer, flow->tag);
    if (!posted || (posted->arrived && flow->total > posted->packets_max))
        return;
    *own = (struct gw_rx_memory){
        .data = posted->data, .room = posted->bytes, .arrived_bits = posted->arrived};
    if (posted->into && flow->mss % gw_dtype_size(posted->merger->how.type) == 0) {
        own->merger = posted->merger;
        own->data = posted->into;
    }
    flow->finish = posted->finish;
    posted->data = NULL;
    gw_endpoint_trim(ep);
}

/* The payload is combined with what is there. */
static void merge(struct gw_rx_memory *own, unsigned char *at, const unsigned char *payload,
                  uint32_t len)
{
    const struct gw_merger *merger = own->merger;
    uint32_t count = (uint32_t)(len / gw_dtype_size(merger->how.type));
    own->overflows |= !gw_combine(merger->kernels, &merger->how, at, payload, count);
}

/* Puts the payload where it belongs. False: there is no memory for it. */
static bool store(struct gw_endpoint *ep, struct gw_rx_flow *flow, const struct gw_pkt *pkt)
{
    if (pkt->buf == GW_BUF_NONE)
        return true;
    struct gw_rx_memory *own = gw_rx_memory_of(ep, flow);
    if (!own->data)
        take_memory(ep, flow, own);
    uint64_t offset = (uint64_t)pkt->seq * flow->mss;
    if (!own->data || offset + pkt->data.len > own->room)
        return false;
    const unsigned char *payload = gw_buf_bytes(ep->pool->bufs, pkt->buf);
    if (own->merger)
        merge(own, own->data + offset, payload, pkt->data.len);
    else
        memcpy(own->data + offset, payload, pkt->data.len);
    if (own->arrived_bits)
        gw_bit_set(own->arrived_bits, pkt->seq);
    return true;
}

/* Packet `seq` >= cum is settled. */
static void settle(const struct gw_endpoint *ep, struct gw_rx_flow *flow, uint32_t seq)
{
    bit_flip(ep, flow, seq);
    while (bit_test(ep, flow, flow->cum))
        bit_flip(ep, flow, flow->cum++);
}

/* Whether another packet may stay lost. */
static bool may_give_up(const struct gw_rx_flow *flow)
{
    const struct gw_finish_sample rest = {
        .total = flow->total,
        .arrived = flow->total - flow->lost - 1,
        .lost = flow->lost + 1,
        .tag = flow->tag,
        .bound = GW_Q16_ONE,
    };
    return flow->finish && flow->finish->ops->is_enough(flow->finish->cfg.bytes, &rest);
}

static void give_up(struct gw_endpoint *ep, struct gw_rx_flow *flow, uint32_t seq)
{
    flow->lost++;
    ep->stats.given_up++;
    settle(ep, flow, seq);
}

/* Packet `seq` of a flow with a policy has arrived: lets go of the holes far behind it, and of all
 * that is missing if it is enough. */
static void finish_after(struct gw_endpoint *ep, struct gw_rx_flow *flow, uint32_t seq)
{
    const struct gw_finish_sample sample = {
        .total = flow->total,
        .arrived = flow->arrived,
        .lost = flow->lost,
        .tag = flow->tag,
        .bound = GW_Q16_ONE,
    };
    if (flow->finish->ops->is_enough(flow->finish->cfg.bytes, &sample)) {
        flow->lost = flow->total - flow->arrived;
        flow->cum = flow->total;
        return;
    }
    uint32_t reach = (ep->span_mask + 1) / 2;
    while (flow->cum < seq && seq - flow->cum >= reach && may_give_up(flow)) {
        flow->grantee.due -= flow->grantee.due > 0; /* it is not under way any more */
        flow->has_let_go = true;
        give_up(ep, flow, flow->cum);
    }
}

/* Answers a packet of a flow that has ended before, whose place another has by now. */
static void answer_past(struct gw_endpoint *ep, struct gw_pkt *pkt, const struct gw_past_end *end)
{
    const uint32_t total = pkt->data.total;
    ep->stats.stray++;
    if (end->arrived == 0 || end->arrived > total || end->tag != pkt->data.tag) {
        gw_flow_answer_unknown(ep, pkt, GW_PKT_NOT_READY);
        return;
    }
    struct gw_rx_flow flow = {
        .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
        .total = total,
        .cum = total,
        .lost = total - end->arrived,
        .bytes = end->bytes,
    };
    gw_flow_answer_ack(ep, &flow, pkt);
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
    uint32_t index = gw_map_get(&ep->rx_map, rx_key(pkt->src, pkt->flow));
    struct gw_rx_flow *flow = index == GW_MAP_NONE ? NULL : &ep->rx_flows[index];
    struct gw_past_end end;
    bool is_early;
    if (!data_is_sound(pkt) ||
        (flow && (pkt->data.total != flow->total || pkt->data.mss != flow->mss ||
                  pkt->data.tag != flow->tag))) {
        ep->stats.malformed++;
    } else if (!flow && pkt->q.flags & GW_PKT_TRIMMED && !(pkt->q.flags & GW_PKT_ON_CREDIT)) {
        gw_flow_answer_unknown(ep, pkt, 0);
        return NULL;
    } else if (!flow && gw_past_flows_has(&ep->past_flows, pkt->src, pkt->flow, now, &end)) {
        answer_past(ep, pkt, &end);
        return NULL;
    } else if (!flow && !is_expected(ep, pkt, now, &is_early)) {
        if (is_early && gw_early_keep(ep, pkt, now))
            return NULL;
        ep->stats.refused++;
        gw_flow_answer_unknown(ep, pkt, GW_PKT_NOT_READY);
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

/* A packet came without its payload: it is to be sent again, or is not worth it. */
static void take_trimmed(struct gw_endpoint *ep, struct gw_rx_flow *flow, struct gw_pkt *pkt,
                         gw_time now)
{
    if (!may_give_up(flow)) {
        gw_flow_answer_nack(ep, flow, pkt, 0);
        return;
    }
    give_up(ep, flow, pkt->seq);
    if (flow->cum != flow->total) {
        gw_flow_answer_nack(ep, flow, pkt, GW_PKT_GIVEN_UP);
        return;
    }
    gw_flow_answer_ack(ep, flow, pkt);
    flow_close(ep, flow, GW_EVENT_RECEIVED, now);
}

void gw_flow_rx_data(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    ep->stats.data_received++;
    gw_flow_rx_take(ep, pkt, now);
}

void gw_flow_rx_flush(struct gw_endpoint *ep, uint32_t peer, uint32_t flow)
{
    uint32_t index = gw_map_get(&ep->rx_map, rx_key(peer, flow));
    if (index != GW_MAP_NONE)
        gw_flow_answer_flush(ep, &ep->rx_flows[index]);
}

void gw_flow_rx_take(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    struct gw_rx_flow *flow = data_flow(ep, pkt, now);
    if (!flow)
        return;
    flow->heard_at = now;
    if (pkt->q.flags & GW_PKT_ON_CREDIT && flow->state == GW_RX_ACTIVE)
        gw_credit_arrived(ep, &flow->grantee, flow->total, pkt, now);
    uint32_t ahead = pkt->seq - flow->cum; /* wraps to a large number when seq < cum */
    bool is_duplicate =
        pkt->seq < flow->cum || (ahead <= ep->span_mask && bit_test(ep, flow, pkt->seq));
    if (is_duplicate) {
        ep->stats.duplicates++;
        gw_flow_answer_ack(ep, flow, pkt);
        return;
    }
    bool is_whole = !(pkt->q.flags & GW_PKT_TRIMMED);
    if (ahead > ep->span_mask || (is_whole && !store(ep, flow, pkt))) {
        const struct gw_rx_memory *own = gw_rx_memory_of(ep, flow);
        if (own->data && least_bytes(pkt) > own->room)
            tell_unexpected(ep, pkt, own->room, now);
        ep->stats.refused++;
        gw_pkt_release(ep->pool, pkt);
        return;
    }
    if (!is_whole) {
        take_trimmed(ep, flow, pkt, now);
        return;
    }
    flow->bytes += pkt->data.len;
    flow->arrived++;
    ep->stats.progress++;
    settle(ep, flow, pkt->seq);
    if (flow->finish)
        finish_after(ep, flow, pkt->seq);
    bool is_complete = flow->cum == flow->total;
    if (ep->cfg.ack_every > 1)
        gw_flow_answer_coalesce(ep, flow, pkt, now);
    else
        gw_flow_answer_ack(ep, flow, pkt);
    if (is_complete)
        flow_close(ep, flow, GW_EVENT_RECEIVED, now);
}

void gw_flow_rx_expire(struct gw_endpoint *ep, struct gw_rx_flow *flow, gw_time now)
{
    gw_time next = gw_stall_at(flow->heard_at, ep->cfg.stall);
    if (flow->held) {
        gw_time due = gw_time_add(flow->held_since, ep->cfg.ack_delay);
        if (!gw_time_before(now, due))
            gw_flow_answer_flush(ep, flow);
        else if (gw_deadline_before(due, next))
            next = due;
    }
    if (gw_stall_is_over(flow->heard_at, ep->cfg.stall, now))
        flow_close(ep, flow, GW_EVENT_FAILED, now);
    else
        gw_endpoint_arm(ep, gw_rx_timer(ep, flow), next);
}
