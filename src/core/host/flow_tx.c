/*
 * The sender half of a flow: what is in flight, what is lost, and what each ACK, NACK and timeout
 * does.
 *
 * Order of work on feedback: packet bookkeeping, load balancing, loss detection, congestion
 * control, then the flow joins the egress ring if it may send. Congestion control sees `in_flight`
 * without the packet that it is told of.
 *
 * A receiver that has no memory for the message yet says so: then nothing counts as lost by the
 * network, and single packets ask again, at growing distances, until one is acknowledged (as a
 * receiver that is not ready in InfiniBand, Architecture Specification volume 1,
 * section 9.7.5.2.8).
 *
 * Invariants: una <= next <= total; next - una <= span; in_flight is the payload of the slots in
 * flight; a running flow has a timer armed while anything is in flight, and always when it may
 * stall.
 */
#include "core/host/endpoint_impl.h"

#include <string.h>

#include "base/error.h"

enum {
    /* Between packets that ask whether the receiver is ready: from an eighth of a base RTT, doubled
     * each time, to four. */
    HOLD_SHIFT_FIRST = 3,
    HOLD_SHIFT_MAX = 5,
};

/* The two list heads lie behind the slots of the span. */
static uint16_t flight_head(const struct gw_endpoint *ep)
{
    return (uint16_t)(ep->span_mask + 1);
}

static uint16_t lost_head(const struct gw_endpoint *ep)
{
    return (uint16_t)(ep->span_mask + 2);
}

static void list_init(struct gw_tx_slot *slots, uint16_t head)
{
    slots[head] = (struct gw_tx_slot){.prev = head, .next = head};
}

static void list_append(struct gw_tx_slot *slots, uint16_t head, uint16_t at)
{
    uint16_t tail = slots[head].prev;
    slots[at].prev = tail;
    slots[at].next = head;
    slots[tail].next = at;
    slots[head].prev = at;
}

static void list_remove(struct gw_tx_slot *slots, uint16_t at)
{
    slots[slots[at].prev].next = slots[at].next;
    slots[slots[at].next].prev = slots[at].prev;
}

/* A time as a tick, rounded up, so that no packet looks older than it is. */
static uint32_t tick_of(gw_time time)
{
    return (uint32_t)((time + (1u << GW_TICK_SHIFT) - 1) >> GW_TICK_SHIFT);
}

/* Time since a slot's transmission. */
static gw_time slot_age(const struct gw_tx_slot *slot, gw_time now)
{
    int32_t ticks = (int32_t)((uint32_t)(now >> GW_TICK_SHIFT) - slot->sent);
    return ticks < 0 ? 0 : (gw_time)ticks << GW_TICK_SHIFT;
}

/*
 * When the slot's age reaches `rto`: at the beginning of a tick, since the age does not change
 * within one and a timer in between would fire in vain, again and again.
 */
static gw_time timeout_at(const struct gw_tx_slot *slot, gw_time rto, gw_time now)
{
    gw_time age = slot_age(slot, now);
    if (age >= rto)
        return now;
    gw_time ticks = (rto - age + (1u << GW_TICK_SHIFT) - 1) >> GW_TICK_SHIFT;
    return ((now >> GW_TICK_SHIFT) + ticks) << GW_TICK_SHIFT;
}

static uint32_t payload_of(const struct gw_tx_flow *flow, uint32_t seq)
{
    return seq + 1 == flow->total ? flow->last_len : flow->path.mtu;
}

/* Which packet of the span a lost slot is: the seq >= una with that slot index. */
static uint32_t seq_of_slot(const struct gw_endpoint *ep, const struct gw_tx_flow *flow,
                            uint16_t at)
{
    return flow->una + ((at - flow->una) & ep->span_mask);
}

/* Whether a lost packet goes before a new one: not before credit, where the receiver counts. */
static bool resends(const struct gw_tx_flow *flow)
{
    return flow->lost_count && !flow->unpaid;
}

static bool has_work(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return flow->lost_count ||
           (flow->next != flow->total && flow->next - flow->una <= ep->span_mask);
}

/* Whether the receiver lets another packet go; for most flows it has no say. */
static bool credit_allows(const struct gw_tx_flow *flow)
{
    return flow->credit || flow->unpaid || flow->is_starved || flow->is_held;
}

static uint32_t next_payload(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    if (!resends(flow))
        return payload_of(flow, flow->next);
    return payload_of(flow, seq_of_slot(ep, flow, flow->slots[lost_head(ep)].next));
}

static bool window_allows(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return has_work(ep, flow) && credit_allows(flow) &&
           (flow->in_flight == 0 ||
            (!flow->is_held &&
             (uint64_t)flow->in_flight + next_payload(ep, flow) <= flow->window.cwnd));
}

void gw_flow_tx_drop(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    uint32_t index = gw_tx_index(ep, flow);
    gw_egress_leave(ep, &flow->sender);
    gw_endpoint_arm(ep, index, GW_TIME_NEVER);
    ep->promised--;
    flow->transport = NULL;
    flow->generation++;
    flow->free_next = ep->tx_free;
    ep->tx_free = index;
}

static void flow_end(struct gw_endpoint *ep, struct gw_tx_flow *flow, enum gw_event_kind kind,
                     gw_time now)
{
    gw_flow_tx_drop(ep, flow);
    gw_endpoint_post(ep, &(struct gw_event){.kind = kind,
                                            .flow = flow->id,
                                            .peer = flow->peer,
                                            .tag = flow->tag,
                                            .bytes = flow->bytes,
                                            .retransmits = flow->resent_packets,
                                            .window = flow->window.cwnd,
                                            .at = now});
}

/* Whether the next packet must wait until `pace_at`. */
static bool is_early(const struct gw_tx_flow *flow, gw_time now)
{
    return (flow->pace || flow->is_held) && gw_time_before(now, flow->pace_at);
}

/* Joins the egress ring, or waits for its time, if there is something that may be sent. A flow in
 * the ring whose pace has fallen since waits, too: the ring would let it go without a timer. */
static void flow_wake(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    bool waits = is_early(flow, now);
    if (waits)
        gw_egress_leave(ep, &flow->sender);
    if (flow->sender.in_ring || !window_allows(ep, flow))
        return;
    if (waits)
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), flow->pace_at);
    else
        gw_egress_join(ep, &flow->sender);
}

static void refresh_rto(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    gw_time rto = transport->loss->period(flow->loss_state, transport->loss_cfg.bytes);
    if (rto > GW_RTO_MAX)
        rto = GW_RTO_MAX;
    bool sooner = rto < flow->rto;
    flow->rto = rto;
    uint16_t oldest = flow->slots[flight_head(ep)].next;
    if (sooner && oldest != flight_head(ep))
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), timeout_at(&flow->slots[oldest], rto, now));
}

/* When the flow fails unless something is acknowledged before. */
static gw_time stall_at(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return ep->cfg.stall ? gw_time_add(flow->progress_at, ep->cfg.stall) : GW_TIME_NEVER;
}

static void start_credit(const struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    struct gw_grant_plan plan = {0};
    flow->credit = transport->grant ? 0 : UINT32_MAX;
    flow->granted = 0;
    flow->is_starved = false;
    flow->answered_at = now;
    if (transport->grant)
        transport->grant->plan(transport->grant_cfg.bytes, &flow->path, &plan);
    flow->free = plan.first < ep->cfg.span_max ? plan.first : ep->cfg.span_max;
    if (flow->free > flow->total)
        flow->free = flow->total;
    flow->unpaid = flow->free;
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

/* Pays for the packet that was just taken; returns its flags. */
static uint8_t pay(struct gw_tx_flow *flow)
{
    if (flow->unpaid) {
        flow->unpaid--;
        bool is_early_end = !flow->unpaid && flow->next != flow->free;
        return is_early_end ? GW_PKT_ON_CREDIT | GW_PKT_LAST_FREE : GW_PKT_ON_CREDIT;
    }
    if (flow->credit) {
        flow->credit--;
        return GW_PKT_ON_CREDIT;
    }
    flow->is_starved = false;
    return GW_PKT_ON_CREDIT | GW_PKT_STARVED;
}

static const struct gw_sender_ops tx_sender_ops;

void gw_flow_tx_start(struct gw_endpoint *ep, struct gw_tx_flow *flow, const struct gw_send *send,
                      gw_time now)
{
    const struct gw_transport *transport = send->transport;
    uint32_t mtu = ep->cfg.mtu;
    flow->transport = transport;
    flow->path = send->path;
    flow->path.mtu = mtu;
    flow->path.hdr = ep->cfg.hdr;
    flow->total = (uint32_t)((send->bytes + mtu - 1) / mtu);
    flow->last_len = (uint32_t)(send->bytes - (uint64_t)(flow->total - 1) * mtu);
    flow->next = flow->una = flow->in_flight = flow->lost_count = 0;
    flow->peer = send->peer;
    flow->tag = send->tag;
    flow->key = gw_flow_key(ep->cfg.address, send->peer, flow->id);
    flow->sender = (struct gw_sender){
        .ops = &tx_sender_ops,
        .port = (uint16_t)(flow->key % ep->node.port_count),
        .class = send->class,
    };
    flow->bytes = send->bytes;
    flow->data = send->data;
    flow->acked_bytes = flow->resent_packets = 0;
    flow->is_held = false;
    flow->holds = 0;
    flow->pace_at = flow->progress_at = now;
    list_init(flow->slots, flight_head(ep));
    list_init(flow->slots, lost_head(ep));
    memset(flow->loss_state, 0, sizeof(flow->loss_state));
    memset(flow->lb_state, 0, sizeof(flow->lb_state));
    memset(flow->cc_state, 0, sizeof(flow->cc_state));
    flow->window = (struct gw_cc_window){0};
    transport->cc->init(flow->cc_state, transport->cc_cfg.bytes, &flow->path, &flow->window, now);
    transport->lb->init(flow->lb_state, transport->lb_cfg.bytes, &flow->path,
                        gw_prng_derive(ep->cfg.seed, (uint64_t)flow->id + 1));
    transport->loss->init(flow->loss_state, transport->loss_cfg.bytes, &flow->path);
    flow->pace = flow->window.pace;
    start_credit(ep, flow, now);
    flow->rto = GW_RTO_MAX;
    refresh_rto(ep, flow, now);
    gw_endpoint_arm(ep, gw_tx_index(ep, flow), stall_at(ep, flow));
    flow_wake(ep, flow, now);
}

/* A packet with its payload buffer, or NULL. */
static struct gw_pkt *claim_pkt(struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    struct gw_pkt *pkt = gw_pkt_claim(ep->pool);
    if (pkt && flow->data) {
        pkt->buf = gw_buf_claim(ep->pool->bufs);
        if (pkt->buf == GW_BUF_NONE) {
            gw_pkt_release(ep->pool, pkt);
            pkt = NULL;
        }
    }
    return pkt;
}

/* Takes the next packet to send off the lost list, or a new one. */
static uint32_t take_seq(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    if (!resends(flow)) {
        flow->slots[flow->next & ep->span_mask].resent = 0;
        return flow->next++;
    }
    uint16_t at = flow->slots[lost_head(ep)].next;
    list_remove(flow->slots, at);
    flow->lost_count--;
    flow->slots[at].resent = 1;
    flow->resent_packets++;
    ep->stats.retransmits++;
    return seq_of_slot(ep, flow, at);
}

/* The next packet of a flow that can send; NULL when the pool is empty (a timer tries again). */
static struct gw_pkt *tx_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_tx_flow *flow = (struct gw_tx_flow *)sender;
    uint32_t index = gw_tx_index(ep, flow);
    struct gw_pkt *pkt = claim_pkt(ep, flow);
    if (!pkt) {
        ep->stats.pool_empty++;
        gw_endpoint_arm_by(ep, index, gw_time_add(now, flow->rto));
        return NULL;
    }
    const struct gw_transport *transport = flow->transport;
    uint32_t seq = take_seq(ep, flow);
    uint32_t len = payload_of(flow, seq);
    if (gw_sender_begins_train(ep, sender))
        sender->entropy = transport->lb->pick(flow->lb_state, transport->lb_cfg.bytes, len, now);

    struct gw_tx_slot *slot = &flow->slots[seq & ep->span_mask];
    slot->sent = tick_of(now);
    slot->state = GW_TX_FLIGHT;
    list_append(flow->slots, flight_head(ep), (uint16_t)(seq & ep->span_mask));
    flow->in_flight += len;
    gw_endpoint_arm_by(ep, index, gw_time_add(now, flow->rto));

    pkt->q = (struct gw_qpkt){
        .size = len + ep->cfg.hdr,
        .key = flow->key,
        .class = flow->sender.class,
        .ecn = GW_ECN_ECT0,
        .flags = GW_PKT_TRIMMABLE,
        .kind = GW_PKT_DATA,
    };
    if (transport->grant)
        pkt->q.flags |= pay(flow);
    pkt->src = ep->cfg.address;
    pkt->dst = flow->peer;
    pkt->flow = flow->id;
    pkt->sent_at = now;
    pkt->seq = seq;
    pkt->entropy = sender->entropy;
    pkt->echo_entropy = 0;
    pkt->data.total = flow->total;
    pkt->data.len = (uint16_t)len;
    pkt->data.mss = (uint16_t)flow->path.mtu;
    pkt->data.tag = flow->tag;
    if (flow->data)
        memcpy(gw_buf_bytes(ep->pool->bufs, pkt->buf), flow->data + (uint64_t)seq * flow->path.mtu,
               len);
    if (flow->pace) {
        gw_time gap = gw_serialisation(flow->pace, pkt->q.size);
        flow->pace_at = gw_time_add(now, gap);
        gw_endpoint_arm_by(ep, index, flow->pace_at);
    }
    /* Nothing more may follow for now: the receiver must not hold this ACK back. */
    if (ep->cfg.ack_every > 1 && !window_allows(ep, flow))
        pkt->q.flags |= GW_PKT_ACK_NOW;
    ep->stats.data_sent++;
    return pkt;
}

static bool tx_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender, gw_time now)
{
    const struct gw_tx_flow *flow = (const struct gw_tx_flow *)sender;
    return window_allows(ep, flow) && !is_early(flow, now);
}

static const struct gw_sender_ops tx_sender_ops = {
    .can_send = tx_can_send,
    .emit = tx_emit,
};

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
    uint16_t at = (uint16_t)(seq & ep->span_mask);
    struct gw_tx_slot *slot = &flow->slots[at];
    if (seq - flow->una >= flow->next - flow->una || slot->state == GW_TX_ACKED)
        return 0;
    uint32_t len = payload_of(flow, seq);
    list_remove(flow->slots, at);
    if (slot->state == GW_TX_FLIGHT)
        flow->in_flight -= len;
    else
        flow->lost_count--;
    slot->state = GW_TX_ACKED;
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
    while (flow->una != flow->next && flow->slots[flow->una & ep->span_mask].state == GW_TX_ACKED)
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
    const struct gw_tx_slot *slot = &flow->slots[pkt->seq & ep->span_mask];
    /* The ACK is for an earlier copy: resending was not needed. */
    if (pkt->seq - flow->una < flow->next - flow->una && slot->state == GW_TX_FLIGHT &&
        slot->resent && slot->sent != tick_of(pkt->sent_at))
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
        flow_end(ep, flow, GW_EVENT_SENT, now);
        return;
    }
    transport->loss->on_ack(flow->loss_state, transport->loss_cfg.bytes, pkt->sent_at);
    refresh_rto(ep, flow, now);
    struct gw_cc_ack ack = {
        .bytes = bytes,
        .in_flight = flow->in_flight,
        .rtt = echo.rtt,
        .ce = echo.ce,
    };
    transport->cc->on_ack(flow->cc_state, transport->cc_cfg.bytes, &flow->path, &ack, &flow->window,
                          now);
    flow->pace = flow->window.pace;
    flow_wake(ep, flow, now);
}

/* Moves a slot in flight to the lost list; returns its payload. */
static uint32_t take_back(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint16_t at)
{
    uint32_t len = payload_of(flow, seq_of_slot(ep, flow, at));
    list_remove(flow->slots, at);
    list_append(flow->slots, lost_head(ep), at);
    flow->slots[at].state = GW_TX_LOST;
    flow->in_flight -= len;
    flow->lost_count++;
    return len;
}

/* A packet is lost, and congestion control learns of it. */
static void lose(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint16_t at, bool trimmed,
                 gw_time now)
{
    uint32_t len = take_back(ep, flow, at);
    const struct gw_transport *transport = flow->transport;
    struct gw_cc_loss loss = {.bytes = len, .in_flight = flow->in_flight, .trimmed = trimmed};
    transport->cc->on_loss(flow->cc_state, transport->cc_cfg.bytes, &flow->path, &loss,
                           &flow->window, now);
    flow->pace = flow->window.pace;
}

/* The receiver is not ready: what is in flight is dropped there, and one packet asks again. */
static void hold(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    uint16_t oldest;
    while ((oldest = flow->slots[flight_head(ep)].next) != flight_head(ep))
        take_back(ep, flow, oldest);
    flow->is_held = true;
    flow->unpaid = 0;
    flow->pace_at = gw_time_add(now, (flow->path.brtt >> HOLD_SHIFT_FIRST) << flow->holds);
    flow->holds += flow->holds < HOLD_SHIFT_MAX;
    flow_wake(ep, flow, now);
}

void gw_flow_tx_nack(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_tx_flow *flow = feedback_flow(ep, pkt);
    if (!flow)
        return;
    const struct gw_transport *transport = flow->transport;
    uint16_t at = (uint16_t)(pkt->seq & ep->span_mask);
    const struct gw_tx_slot *slot = &flow->slots[at];
    const struct gw_lb_echo echo = echo_of(flow, pkt, now);
    bool is_trimmed = !(pkt->q.flags & GW_PKT_NOT_READY);
    if (is_trimmed)
        transport->lb->on_trim(flow->lb_state, transport->lb_cfg.bytes, &echo, now);
    /* Late news of a packet that was acknowledged, or that was sent again since. */
    if (pkt->seq - flow->una >= flow->next - flow->una || slot->state != GW_TX_FLIGHT ||
        slot->sent != tick_of(pkt->sent_at))
        return;
    if (!is_trimmed) {
        if (flow->acked_bytes == 0)
            hold(ep, flow, now);
        return;
    }
    if (!transport->loss->on_nack(flow->loss_state, transport->loss_cfg.bytes))
        return;
    flow->answered_at = now;
    lose(ep, flow, at, true, now);
    flow_wake(ep, flow, now);
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
    flow_wake(ep, flow, now);
}

/* Asks for credit when none has come for long, and nothing is in flight that would bring some. */
static void check_starved(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    if (flow->in_flight || !has_work(ep, flow) || credit_allows(flow))
        return;
    gw_time heard = gw_time_before(flow->answered_at, flow->progress_at) ? flow->progress_at
                                                                         : flow->answered_at;
    gw_time due = gw_time_add(heard, flow->rto);
    if (gw_time_before(now, due))
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), due);
    else
        flow->is_starved = true;
}

void gw_flow_tx_expire(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    uint32_t index = gw_tx_index(ep, flow);
    if (ep->cfg.stall && now - flow->progress_at >= ep->cfg.stall) {
        flow_end(ep, flow, GW_EVENT_FAILED, now);
        return;
    }
    uint16_t oldest;
    while ((oldest = flow->slots[flight_head(ep)].next) != flight_head(ep)) {
        gw_time age = slot_age(&flow->slots[oldest], now);
        if (age < flow->rto)
            break;
        ep->stats.timeouts++;
        lose(ep, flow, oldest, false, now);
        transport->lb->on_timeout(flow->lb_state, transport->lb_cfg.bytes, now - age, now);
        transport->loss->on_timeout(flow->loss_state, transport->loss_cfg.bytes, now - age, now);
        flow->rto = transport->loss->period(flow->loss_state, transport->loss_cfg.bytes);
        if (flow->rto > GW_RTO_MAX)
            flow->rto = GW_RTO_MAX;
    }
    gw_endpoint_arm(ep, index, stall_at(ep, flow));
    if (oldest != flight_head(ep))
        gw_endpoint_arm_by(ep, index, timeout_at(&flow->slots[oldest], flow->rto, now));
    check_starved(ep, flow, now);
    flow_wake(ep, flow, now);
}
