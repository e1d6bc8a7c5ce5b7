/*
 * The sender half of a flow begins, sends and ends; see flow_tx.h.
 *
 * Lost packets go before new ones. A flow is in the egress ring while it may have something to
 * send, and whether it may is asked when its turn comes.
 */
#include "core/host/flow_tx.h"

#include <string.h>

#include "base/stall.h"
#include "core/host/announce.h"
#include "core/host/credit.h"

/* Whether a lost packet goes before a new one: not before credit, where the receiver counts. */
static bool resends(const struct gw_tx_flow *flow)
{
    return flow->lost_count && !flow->unpaid;
}

/* The packet that is to leave next, if one is. */
static uint32_t next_seq(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return resends(flow) ? gw_tx_seq(ep, flow, gw_tx_list_first(flow->records, gw_tx_lost_head(ep)))
                         : flow->next;
}

static uint32_t next_payload(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return gw_tx_payload(flow, next_seq(ep, flow));
}

/* Whether the next packet fits in the window beside what is in flight. */
static bool next_fits(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    if (ep->cfg.resend_over && resends(flow))
        return flow->in_flight < flow->window.cwnd;
    return (uint64_t)flow->in_flight + next_payload(ep, flow) <= flow->window.cwnd;
}

static bool window_allows(const struct gw_endpoint *ep, const struct gw_tx_flow *flow)
{
    return gw_tx_has_work(ep, flow) && gw_tx_credit_allows(flow) && !flow->window.is_silent &&
           (flow->in_flight == 0 || (!flow->is_held && (next_fits(ep, flow) || flow->is_urged)));
}

void gw_flow_tx_drop(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    uint32_t index = gw_tx_index(ep, flow);
    if (flow->sender.announcer)
        gw_announce_give_up(ep, &flow->sender);
    gw_egress_leave(ep, &flow->sender);
    gw_endpoint_arm(ep, index, GW_TIME_NEVER);
    ep->promised--;
    flow->transport = NULL;
    flow->generation++;
    flow->free_next = ep->tx_free;
    ep->tx_free = index;
}

/* An event of the flow, to be filled in. */
static struct gw_event event_of(const struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    uint64_t memory = transport->cc->remember
                          ? transport->cc->remember(flow->cc_state, transport->cc_cfg.bytes)
                          : 0;
    return (struct gw_event){.flow = flow->id,
                             .peer = flow->peer,
                             .tag = flow->tag,
                             .bytes = flow->bytes,
                             .mss = (uint16_t)flow->path.mtu,
                             .retransmits = flow->resent_packets,
                             .window = flow->window.cwnd,
                             .memory = memory,
                             .at = now};
}

void gw_flow_tx_complete(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint64_t bytes,
                         gw_time now)
{
    struct gw_event event = event_of(flow, now);
    event.kind = GW_EVENT_SENT;
    event.bytes = bytes;
    event.missing = gw_tx_missing(flow, bytes);
    if (flow->sender.announcer)
        gw_announce_end(ep, &flow->sender, now);
    gw_flow_tx_drop(ep, flow);
    gw_endpoint_post(ep, &event);
}

void gw_flow_tx_fail(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    struct gw_event event = event_of(flow, now);
    event.kind = GW_EVENT_FAILED;
    gw_flow_tx_drop(ep, flow);
    gw_endpoint_post(ep, &event);
}

/* Whether the next packet must wait until `pace_at`. */
static bool is_early(const struct gw_tx_flow *flow, gw_time now)
{
    return (flow->pace || flow->is_held) && gw_time_before(now, flow->pace_at);
}

/* Of packet `seq`, of a flow with an algorithm for that. */
static struct gw_urgency urgency_of(const struct gw_tx_flow *flow, uint32_t seq)
{
    uint64_t sent = (uint64_t)flow->next * flow->path.mtu;
    struct gw_urgency_sample sample = {
        .bytes = flow->bytes,
        .sent = sent < flow->bytes ? sent : flow->bytes,
        .remains = flow->bytes - (uint64_t)seq * flow->path.mtu,
        .class = flow->class,
    };
    return flow->transport->urgency->pick(flow->transport->urgency_cfg.bytes, &sample);
}

/* How urgent what leaves next is decides where in the egress the flow waits. A train has one
 * class. */
static void urge_next(const struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    if (!flow->transport->urgency || !gw_tx_has_work(ep, flow))
        return;
    struct gw_urgency urgency = urgency_of(flow, next_seq(ep, flow));
    flow->sender.rank = urgency.rank;
    if (urgency.class != flow->sender.class)
        flow->sender.train_left = 0;
    flow->sender.class = urgency.class;
}

/* A flow in the ring whose pace has fallen since waits, too: the ring would let it go without a
 * timer. */
void gw_flow_tx_wake(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    if (flow->window.is_silent)
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), flow->window.silent_until);
    bool waits = is_early(flow, now);
    if (waits)
        gw_egress_leave(ep, &flow->sender);
    if (flow->sender.in_ring)
        return;
    if (!window_allows(ep, flow)) {
        flow->waits_for_pace = false;
        return;
    }
    if (waits) {
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), flow->pace_at);
        return;
    }
    urge_next(ep, flow);
    gw_egress_join(ep, &flow->sender);
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

/* Takes the next packet to send off the lost list, or a new one. */
static uint32_t take_seq(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    if (!resends(flow)) {
        flow->records[flow->next & ep->span_mask].resent = 0;
        return flow->next++;
    }
    uint32_t at = gw_tx_list_first(flow->records, gw_tx_lost_head(ep));
    gw_tx_list_remove(flow->records, at);
    flow->lost_count--;
    flow->records[at].resent = 1;
    flow->resent_packets++;
    ep->stats.retransmits++;
    return gw_tx_seq(ep, flow, at);
}

/* Of a train whose first packet has `bytes`. */
static uint16_t pick_entropy(struct gw_tx_flow *flow, uint32_t bytes, bool is_resent, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    const struct gw_lb_next next = {.bytes = bytes, .is_resent = is_resent};
    return transport->lb->pick(flow->lb_state, transport->lb_cfg.bytes, &next, now);
}

/* A packet is weighed when it is known to be the next, and again when it is sent again. */
static uint8_t weigh(struct gw_tx_flow *flow, uint32_t seq)
{
    if (flow->weighed == seq)
        return flow->weighed_ecn;
    flow->weighed = seq;
    flow->weighed_ecn =
        gw_importance_weigh(&flow->rule, &seq, 1, NULL) ? flow->ecn : GW_ECN_NOT_ECT;
    return flow->weighed_ecn;
}

static uint8_t ecn_of(struct gw_tx_flow *flow, uint32_t seq)
{
    if (flow->important)
        return gw_ecn_by_importance(flow->important, seq);
    return flow->weighs ? weigh(flow, seq) : flow->ecn;
}

/* A train shares its ECN: it ends if the next packet differs from the one that was sent. */
static void end_mixed_train(const struct gw_endpoint *ep, struct gw_tx_flow *flow, uint8_t ecn)
{
    uint32_t seq = next_seq(ep, flow);
    if (seq < flow->total && ecn_of(flow, seq) != ecn)
        flow->sender.train_left = 0;
}

/* Packet `seq` as it leaves now, without its payload. */
static void fill_pkt(const struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t seq,
                     struct gw_pkt *pkt, gw_time now)
{
    uint32_t len = gw_tx_payload(flow, seq);
    pkt->q = (struct gw_qpkt){
        .size = len + ep->cfg.hdr,
        .key = flow->key,
        .class = flow->sender.class,
        .ecn = ecn_of(flow, seq),
        .flags = GW_PKT_TRIMMABLE,
        .kind = GW_PKT_DATA,
    };
    if (flow->transport->urgency)
        pkt->q.rank = urgency_of(flow, seq).rank;
    pkt->src = ep->cfg.address;
    pkt->dst = flow->peer;
    pkt->flow = flow->id;
    pkt->sent_at = now;
    pkt->seq = seq;
    pkt->entropy = flow->sender.entropy;
    pkt->echo_entropy = 0;
    pkt->data.total = flow->total;
    pkt->data.len = (uint16_t)len;
    pkt->data.mss = (uint16_t)flow->path.mtu;
    pkt->data.tag = flow->tag;
}

/*
 * Whether the receiver must not hold back the ACK of the packet that was just sent: nothing more
 * may follow for now; or it would hold back so many that the window stood still meanwhile.
 */
static bool must_ask(const struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t len)
{
    flow->unasked += len;
    bool is_quarter = ep->cfg.ack_every > GW_ACK_MASK_BEFORE &&
                      flow->unasked >= GW_ACK_ASKED * flow->path.mtu &&
                      4 * (uint64_t)flow->unasked >= flow->window.cwnd;
    if (window_allows(ep, flow) && !is_quarter)
        return false;
    flow->unasked = 0;
    return true;
}

/* A paced flow has sent a packet: when the next one may leave. */
static void take_pace(const struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t size,
                      gw_time now)
{
    gw_time late = flow->waits_for_pace ? now - flow->pace_at : 0;
    if (late > ep->cfg.pace_late)
        late = ep->cfg.pace_late;
    flow->pace_at = gw_time_add(now - late, gw_serialisation(flow->pace, size));
    flow->waits_for_pace = window_allows(ep, flow);
}

/* The next packet of a flow that can send; NULL when the pool is empty (a timer tries again). */
static struct gw_pkt *tx_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_tx_flow *flow = (struct gw_tx_flow *)sender;
    uint32_t index = gw_tx_index(ep, flow);
    struct gw_pkt *pkt = gw_sender_claim(ep, flow->data != NULL);
    if (!pkt) {
        gw_endpoint_arm_by(ep, index, gw_time_add(now, flow->rto));
        return NULL;
    }
    uint32_t seq = take_seq(ep, flow);
    uint32_t len = gw_tx_payload(flow, seq);
    struct gw_tx_record *record = &flow->records[seq & ep->span_mask];
    if (gw_sender_begins_train(ep, sender))
        sender->entropy = pick_entropy(flow, len, record->resent, now);

    record->sent = gw_tx_tick(now);
    record->state = GW_TX_FLIGHT;
    gw_tx_list_append(flow->records, gw_tx_flight_head(ep), seq & ep->span_mask);
    flow->in_flight += len;
    flow->is_urged = false;
    gw_endpoint_arm_by(ep, index, gw_time_add(now, flow->rto));

    fill_pkt(ep, flow, seq, pkt, now);
    if (seq == 0 && sender->leads)
        pkt->q.flags |= GW_PKT_HEAD;
    if (flow->transport->grant)
        pkt->q.flags |= pay(flow);
    if (flow->data)
        gw_sender_fill(ep, pkt, flow->data + (uint64_t)seq * flow->path.mtu, len);
    if (flow->pace) {
        take_pace(ep, flow, pkt->q.size, now);
        gw_endpoint_arm_by(ep, index, flow->pace_at);
    }
    if (ep->cfg.ack_every > 1 && must_ask(ep, flow, len))
        pkt->q.flags |= GW_PKT_ACK_NOW;
    if (flow->important || flow->weighs)
        end_mixed_train(ep, flow, pkt->q.ecn);
    ep->stats.data_sent++;
    urge_next(ep, flow);
    return pkt;
}

void gw_flow_tx_ask(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at, gw_time now)
{
    struct gw_tx_record *record = &flow->records[at];
    uint32_t seq = gw_tx_seq(ep, flow, at);
    record->sent = gw_tx_tick(now);
    record->resent = 1;
    gw_tx_list_remove(flow->records, at);
    gw_tx_list_append(flow->records, gw_tx_flight_head(ep), at);
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return;
    ep->stats.probes++;
    fill_pkt(ep, flow, seq, pkt, now);
    pkt->entropy = pick_entropy(flow, ep->cfg.hdr, true, now);
    pkt->q.size = ep->cfg.hdr;
    pkt->q.class = GW_CLASS_CONTROL;
    pkt->q.flags |= GW_PKT_TRIMMED;
    gw_egress_control(ep, pkt);
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

static void start_credit(const struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    flow->credit = transport->grant ? 0 : UINT32_MAX;
    flow->granted = 0;
    flow->is_starved = false;
    flow->answered_at = now;
    flow->free = transport->grant ? gw_credit_free(ep, transport, &flow->path, flow->total) : 0;
    flow->unpaid = flow->free;
}

/* Announces the burst that the flow begins, if it begins one and anybody but this host is to know
 * of it. True: the flow waits. */
static bool announce(struct gw_endpoint *ep, struct gw_tx_flow *flow,
                     const struct gw_notice_terms *terms, gw_time now)
{
    if (terms->units == 0 || flow->peer == ep->cfg.address)
        return false;
    struct gw_burst burst = {
        .terms = *terms,
        .peer = flow->peer,
        .flow = flow->id,
        .key = flow->key,
        .ecn = ecn_of(flow, 0),
    };
    if (burst.terms.rtt == 0)
        burst.terms.rtt = flow->path.brtt;
    bool waits = gw_announce_begin(ep, &flow->sender, &burst, now);
    if (waits && flow->sender.leads)
        flow->sender.entropy = pick_entropy(flow, gw_tx_payload(flow, 0), false, now);
    return waits;
}

/* How it is known which packets are important. */
static void appraise(struct gw_tx_flow *flow, const struct gw_send *send)
{
    const struct gw_importance_tensor tensor = {
        .values = send->data, .size = send->bytes, .fragment_size = flow->path.mtu};
    flow->ecn = send->is_unimportant ? GW_ECN_NOT_ECT : GW_ECN_ECT0;
    flow->important = send->important;
    flow->weighs = gw_send_is_weighed(send);
    flow->weighed = UINT32_MAX;
    if (flow->weighs)
        gw_importance_init(&flow->rule, &tensor, &send->importance, GW_IMPORTANCE_SEED);
}

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
    flow->class = send->class;
    appraise(flow, send);
    flow->bound = send->bound;
    flow->given_up = 0;
    flow->acked_bytes = flow->resent_packets = 0;
    flow->is_held = flow->is_urged = false;
    flow->holds = 0;
    flow->pace_at = flow->progress_at = now;
    gw_tx_list_init(flow->records, gw_tx_flight_head(ep));
    gw_tx_list_init(flow->records, gw_tx_lost_head(ep));
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
    gw_flow_tx_refresh_rto(ep, flow, now);
    gw_endpoint_arm(ep, gw_tx_index(ep, flow), gw_stall_at(flow->progress_at, ep->cfg.stall));
    urge_next(ep, flow);
    if (!announce(ep, flow, &send->notice, now))
        gw_flow_tx_wake(ep, flow, now);
}
