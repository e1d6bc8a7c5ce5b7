/*
 * The sender half of a blast begins, sends and ends; see blast.h.
 *
 * The pace is kept from train to train. A train that comes late because a timer did is made good
 * for, but not the time in which others had their turn at the port.
 */
#include "core/host/blast.h"

#include "base/bits.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/cc/window.h"
#include "core/host/announce.h"

void gw_blast_tx_begin_round(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    const uint32_t words = (uint32_t)gw_bit_words(blast->total);
    (void)ep;
    blast->round++;
    blast->is_stopped = blast->has_last = blast->has_begun = false;
    blast->in_round[GW_UNIMPORTANT] = blast->in_round[GW_IMPORTANT] = 0;
    memset(blast->asked, 0, gw_bit_words(words) * sizeof(uint64_t));
    gw_blast_lane_begin_round(blast->lane, blast->transport, now);
}

/* ---- Periods. ---- */

uint32_t gw_blast_tx_period(const struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    uint32_t period = (uint32_t)((now - blast->round_at) / ep->cfg.report_every);
    for (uint32_t i = 0; i < GW_BLAST_PERIODS && blast->period != period; i++)
        blast->sent[++blast->period % GW_BLAST_PERIODS] = 0;
    return blast->period = period;
}

static void count_sent(const struct gw_endpoint *ep, struct gw_blast_tx *blast, uint32_t bytes,
                       gw_time now)
{
    if (!blast->has_begun) {
        blast->has_begun = true;
        blast->round_at = now;
        blast->period = blast->reported = 0;
        memset(blast->sent, 0, sizeof(blast->sent));
        gw_blast_tx_await_report(ep, blast, now);
    }
    blast->sent[gw_blast_tx_period(ep, blast, now) % GW_BLAST_PERIODS] += bytes;
}

/* ---- Hails and timers. ---- */

/* Whether something may leave, but for the pace. */
static bool may_send(const struct gw_blast_tx *blast)
{
    return gw_blast_tx_due(blast) && !blast->is_held && (blast->credit || blast->is_starved);
}

void gw_blast_tx_arm(struct gw_endpoint *ep, struct gw_blast_tx *blast)
{
    gw_time at = gw_stall_at(blast->progress_at, ep->cfg.stall);
    if (gw_deadline_before(blast->hold_at, at))
        at = blast->hold_at;
    if (gw_deadline_before(blast->hail_at, at))
        at = blast->hail_at;
    if (gw_deadline_before(blast->report_at, at))
        at = blast->report_at;
    if (gw_deadline_before(blast->starve_at, at))
        at = blast->starve_at;
    if (may_send(blast) && !blast->sender.in_ring && gw_deadline_before(blast->pace_at, at))
        at = blast->pace_at;
    gw_endpoint_arm(ep, gw_blast_tx_timer(ep, blast), at);
}

/* The base round trip in microseconds, as a RENDEZVOUS tells it. */
static uint32_t rtt_us(const struct gw_blast_tx *blast)
{
    gw_time us = (blast->path.brtt + GW_US - 1) / GW_US;
    return us < UINT16_MAX ? (uint32_t)us : UINT16_MAX;
}

/* What was just said is said again unless it is answered. */
static void await(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    blast->hailed_at = now;
    blast->hail_at = gw_time_add(now, gw_blast_rto(blast));
    gw_endpoint_arm_by(ep, gw_blast_tx_timer(ep, blast), blast->hail_at);
}

void gw_blast_tx_announce(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    gw_q16 bound = blast->bound < GW_HAIL_BOUND_MAX ? blast->bound : GW_HAIL_BOUND_MAX;
    const struct gw_blast_say rendezvous = {
        .op = GW_HAIL_RENDEZVOUS,
        .peer = blast->peer,
        .flow = blast->id,
        .key = blast->key,
        .seq = rtt_us(blast) << GW_HAIL_RTT_SHIFT | (uint32_t)bound,
        .word = {blast->total, blast->tag},
        .number = (uint16_t)blast->path.mtu,
        .index = (uint16_t)blast->last_len,
        .marks = (uint8_t)((blast->is_bare ? GW_HAIL_BARE : 0) |
                           (gw_blast_tx_needs_credit(blast) ? GW_HAIL_ON_CREDIT : 0)),
        .time = now,
    };
    for (uint32_t i = 0; i < gw_blast_copies(ep); i++)
        gw_blast_say(ep, &rendezvous);
    await(ep, blast, now);
}

void gw_blast_tx_stop(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    blast->is_stopped = true;
    blast->report_at = blast->starve_at = GW_TIME_NEVER;
    if (gw_blast_tx_needs_credit(blast))
        blast->credit = 0; /* the receiver counts anew */
    gw_blast_say(ep, &(struct gw_blast_say){
                         .op = GW_HAIL_STOP,
                         .peer = blast->peer,
                         .flow = blast->id,
                         .key = blast->key,
                         .seq = blast->round,
                         .time = now,
                     });
    await(ep, blast, now);
}

/* Nothing is due any more. In a round that the receiver asked for it may ask for more. */
static void run_dry(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    if (blast->round == 0 || blast->has_last)
        gw_blast_tx_stop(ep, blast, now);
    else
        await(ep, blast, now);
}

/* ---- Sending. ---- */

/* How urgent what leaves next is: by how much has left so far, since places leave in no order. A
 * train has one class. */
static void urge_next(struct gw_blast_tx *blast)
{
    const struct gw_transport *transport = blast->transport;
    if (!transport->urgency)
        return;
    uint64_t sent = gw_min_u64((uint64_t)blast->sent_most * blast->path.mtu, blast->bytes);
    const struct gw_urgency_sample sample = {
        .bytes = blast->bytes, .sent = sent, .remains = blast->bytes - sent, .class = blast->class};
    struct gw_urgency urgency = transport->urgency->pick(transport->urgency_cfg.bytes, &sample);
    if (urgency.class != blast->sender.class)
        blast->sender.train_left = 0;
    blast->sender.class = urgency.class;
}

static bool is_early(const struct gw_blast_tx *blast, gw_time now)
{
    return !blast->sender.train_left && gw_time_before(now, blast->pace_at);
}

/* Without credit the receiver is asked for some, in time. */
static void await_credit(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    blast->starve_at = gw_time_add(now, gw_blast_rto(blast) << blast->starves);
    gw_endpoint_arm_by(ep, gw_blast_tx_timer(ep, blast), blast->starve_at);
}

void gw_blast_tx_wake(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    if (gw_blast_tx_due(blast) && !blast->credit && blast->starve_at == GW_TIME_NEVER)
        await_credit(ep, blast, now);
    if (blast->sender.in_ring || !may_send(blast))
        return;
    if (is_early(blast, now)) {
        gw_endpoint_arm_by(ep, gw_blast_tx_timer(ep, blast), blast->pace_at);
        return;
    }
    blast->joined_at = now;
    gw_egress_join(ep, &blast->sender);
}

static bool blast_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                           gw_time now)
{
    const struct gw_blast_tx *blast = (const struct gw_blast_tx *)sender;
    (void)ep;
    return may_send(blast) && !is_early(blast, now);
}

static void pick_entropy(struct gw_blast_tx *blast, gw_time now)
{
    const struct gw_transport *transport = blast->transport;
    const struct gw_lb_next next = {.bytes = blast->path.mtu, .is_resent = blast->round > 0};
    blast->sender.entropy =
        transport->lb->pick(blast->lb_state, transport->lb_cfg.bytes, &next, now);
}

/* Whether the next packet is the first of a burst that was announced. */
static bool is_head(const struct gw_blast_tx *blast)
{
    return blast->sender.leads && blast->sent_packets == 0;
}

/* A train begins: its importance, path, and what it may make good for. The head takes the path of
 * its notice. */
static void begin_train(struct gw_blast_tx *blast, gw_time now)
{
    gw_time late =
        gw_time_before(blast->pace_at, blast->joined_at) ? blast->joined_at - blast->pace_at : 0;
    gw_blast_lane_begin_train(blast->lane, late, now);
    blast->joined_at = now;
    blast->importance = (uint8_t)gw_blast_tx_choose(blast);
    if (!is_head(blast))
        pick_entropy(blast, now);
}

/* Takes credit for a packet, and returns the flags that say so. */
static uint8_t pay(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    uint8_t flags = GW_PKT_ON_CREDIT;
    if (!gw_blast_tx_needs_credit(blast))
        return 0;
    if (blast->credit)
        blast->credit--;
    else
        flags |= GW_PKT_STARVED;
    blast->is_starved = false;
    if (blast->credit == 0) {
        blast->sender.train_left = 0;
        if (gw_blast_tx_due(blast))
            await_credit(ep, blast, now);
    }
    return flags;
}

static struct gw_pkt *data_pkt(const struct gw_endpoint *ep, const struct gw_blast_tx *blast,
                               struct gw_pkt *pkt, uint32_t place, gw_time now)
{
    const uint32_t len = gw_blast_len(blast, place);
    const uint32_t note = blast->notes ? blast->notes[place] : 0;
    pkt->q = (struct gw_qpkt){
        .size = len + ep->cfg.hdr,
        .key = blast->key,
        .class = blast->sender.class,
        .ecn = blast->ecn[blast->importance],
        .flags = GW_PKT_BLAST,
        .kind = GW_PKT_DATA,
    };
    if (is_head(blast))
        pkt->q.flags |= GW_PKT_HEAD;
    pkt->src = ep->cfg.address;
    pkt->dst = blast->peer;
    pkt->flow = blast->id;
    pkt->sent_at = now;
    pkt->seq = place;
    pkt->entropy = blast->sender.entropy;
    pkt->echo_entropy = 0;
    pkt->data.total = blast->total;
    pkt->data.len = (uint16_t)len;
    pkt->data.mss = (uint16_t)blast->path.mtu;
    pkt->data.tag = (uint32_t)blast->round << GW_HAIL_ROUND_SHIFT | note;
    if (blast->data)
        gw_sender_fill(ep, pkt, blast->data + (uint64_t)place * blast->path.mtu, len);
    return pkt;
}

/* After a packet of `bytes` on the wire. A short one ends its train, as the kernel wants it. */
static void end_packet(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_pkt *pkt,
                       gw_time now)
{
    count_sent(ep, blast, pkt->q.size, now);
    if (blast->round == 0 && blast->total - gw_blast_tx_due(blast) > blast->sent_most)
        blast->sent_most = blast->total - gw_blast_tx_due(blast);
    blast->sent_packets++;
    ep->stats.data_sent++;
    ep->stats.retransmits += blast->round > 0;
    blast->pace_at = gw_blast_lane_take(blast->lane, pkt->q.size);
    if (blast->due[blast->importance].count == 0 || pkt->data.len < blast->path.mtu)
        blast->sender.train_left = 0;
    urge_next(blast);
    if (gw_blast_tx_due(blast) == 0)
        run_dry(ep, blast, now);
    else if (is_early(blast, now))
        gw_endpoint_arm_by(ep, gw_blast_tx_timer(ep, blast), blast->pace_at);
}

static struct gw_pkt *blast_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_blast_tx *blast = (struct gw_blast_tx *)sender;
    struct gw_pkt *pkt = gw_sender_claim(ep, blast->data != NULL);
    if (!pkt) {
        blast->pace_at = gw_time_add(now, gw_blast_rto(blast));
        sender->train_left = 0;
        gw_endpoint_arm_by(ep, gw_blast_tx_timer(ep, blast), blast->pace_at);
        return NULL;
    }
    gw_blast_tx_look_ahead(ep, blast);
    if (!blast->due[blast->importance].count)
        sender->train_left = 0; /* what is due has changed while its train was under way */
    if (gw_sender_begins_train(ep, sender))
        begin_train(blast, now);
    struct gw_bitmap *due = &blast->due[blast->importance];
    uint32_t turn = gw_bitmap_first(due);
    gw_bitmap_clear(due, turn);
    data_pkt(ep, blast, pkt, gw_blast_order_place(&blast->order, turn), now);
    pkt->q.flags |= pay(ep, blast, now);
    end_packet(ep, blast, pkt, now);
    return pkt;
}

static const struct gw_sender_ops blast_sender_ops = {
    .can_send = blast_can_send,
    .emit = blast_emit,
};

/* ---- Beginning and end. ---- */

static void start_algorithms(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    const struct gw_transport *transport = blast->transport;
    uint64_t loss_state[GW_LOSS_STATE_MAX / 8] = {0};
    memset(blast->lb_state, 0, sizeof(blast->lb_state));
    blast->lane = gw_blast_lane_join(ep, transport, blast->peer, &blast->path, now);
    if (gw_time_before(blast->pace_at, blast->lane->free_at))
        blast->pace_at = blast->lane->free_at;
    transport->lb->init(blast->lb_state, transport->lb_cfg.bytes, &blast->path,
                        gw_prng_derive(ep->cfg.seed, (uint64_t)blast->id + 1));
    transport->loss->init(loss_state, transport->loss_cfg.bytes, &blast->path);
    gw_rto_init(&blast->rto, transport->loss->period(loss_state, transport->loss_cfg.bytes));
}

/* Announces the burst that the blast begins, if switches are to know of it. True: data waits. */
static bool announce_burst(struct gw_endpoint *ep, struct gw_blast_tx *blast,
                           const struct gw_notice_terms *terms, gw_time now)
{
    if (terms->units == 0 || blast->peer == ep->cfg.address)
        return false;
    struct gw_burst burst = {
        .terms = *terms,
        .peer = blast->peer,
        .flow = blast->id,
        .key = blast->key,
        .ecn = blast->ecn[gw_blast_tx_choose(blast)],
    };
    if (burst.terms.rtt == 0)
        burst.terms.rtt = blast->path.brtt;
    blast->joined_at = now;
    bool waits = gw_announce_begin(ep, &blast->sender, &burst, now);
    if (waits && blast->sender.leads) {
        begin_train(blast, now);
        pick_entropy(blast, now);
    }
    return waits;
}

/* What the blast is about, before anything has happened. */
static void describe(struct gw_endpoint *ep, struct gw_blast_tx *blast, const struct gw_send *send,
                     gw_time now)
{
    const uint32_t mtu = ep->cfg.mtu, total = (uint32_t)((send->bytes + mtu - 1) / mtu);
    /* The tables, and what a place keeps from one blast to the next. */
    *blast = (struct gw_blast_tx){
        .transport = send->transport,
        .due = {blast->due[0], blast->due[1]},
        .found = blast->found,
        .asked = blast->asked,
        .id = blast->id,
        .generation = blast->generation,
        .peer = send->peer,
        .key = gw_flow_key(ep->cfg.address, send->peer, blast->id),
        .tag = send->tag,
        .bytes = send->bytes,
        .total = total,
        .in_round_least = total,
        .is_bare = !send->data,
        .important_first = send->important_first,
        .class = send->class,
        .ecn = {GW_ECN_NOT_ECT,
                send->is_unimportant && !send->important ? GW_ECN_NOT_ECT : GW_ECN_ECT0},
        .bound = send->bound > 0 ? send->bound : 0,
        .data = send->data,
        .notes = send->notes,
        .path = send->path,
        .pace_at = now,
        .progress_at = now,
        .rendezvous_at = now,
        .hold_at = GW_TIME_NEVER,
        .report_at = GW_TIME_NEVER,
    };
    blast->path.mtu = mtu;
    blast->path.hdr = ep->cfg.hdr;
    blast->path.is_sampled = true;
    blast->last_len = (uint32_t)(send->bytes - (uint64_t)(blast->total - 1) * mtu);
    blast->sender = (struct gw_sender){
        .ops = &blast_sender_ops,
        .port = (uint16_t)(blast->key % ep->node.port_count),
        .class = send->class,
    };
}

int gw_blast_tx_start(struct gw_endpoint *ep, const struct gw_send *send, uint32_t *flow,
                      gw_time now)
{
    if ((send->bytes + ep->cfg.mtu - 1) / ep->cfg.mtu > ep->cfg.blast_packets_max)
        return GW_ERR_INVALID;
    uint32_t index = ep->blast_tx_free;
    if (index == GW_FLOW_NONE)
        return GW_ERR_NO_ROOM;
    struct gw_blast_tx *blast = &ep->blasts_tx[index];
    ep->blast_tx_free = blast->free_next;
    ep->promised++;
    *flow = blast->id = (uint32_t)blast->generation << 16 | (ep->cfg.tx_flows_max + index);
    describe(ep, blast, send, now);
    struct gw_prng prng = gw_prng_derive(ep->cfg.seed, UINT64_C(1) << 33 | blast->id);
    blast->order = gw_blast_order_draw(blast->total, &prng);
    gw_blast_tx_appraise(blast, send);
    gw_blast_tx_renew(ep, blast);
    urge_next(blast);
    start_algorithms(ep, blast, now);
    gw_blast_tx_announce(ep, blast, now);
    gw_blast_tx_arm(ep, blast);
    if (!announce_burst(ep, blast, &send->notice, now))
        gw_blast_tx_wake(ep, blast, now);
    return GW_OK;
}

void gw_blast_tx_drop(struct gw_endpoint *ep, struct gw_blast_tx *blast)
{
    if (blast->sender.announcer)
        gw_announce_give_up(ep, &blast->sender);
    gw_egress_leave(ep, &blast->sender);
    gw_endpoint_arm(ep, gw_blast_tx_timer(ep, blast), GW_TIME_NEVER);
    gw_blast_lane_leave(ep, blast->lane);
    ep->promised--;
    blast->transport = NULL;
    blast->generation++;
    blast->free_next = ep->blast_tx_free;
    ep->blast_tx_free = (uint32_t)(blast - ep->blasts_tx);
}

/* An event of the blast, to be filled in. */
static struct gw_event event_of(const struct gw_blast_tx *blast, enum gw_event_kind kind,
                                gw_time now)
{
    return (struct gw_event){.kind = kind,
                             .flow = blast->id,
                             .peer = blast->peer,
                             .tag = blast->tag,
                             .bytes = blast->bytes,
                             .mss = (uint16_t)blast->path.mtu,
                             .is_refused = blast->is_refused,
                             .retransmits = blast->sent_packets - blast->sent_most,
                             .at = now};
}

void gw_blast_tx_complete(struct gw_endpoint *ep, struct gw_blast_tx *blast, uint32_t packets,
                          uint64_t bytes, gw_time now)
{
    struct gw_event event = event_of(blast, GW_EVENT_SENT, now);
    event.bytes = bytes;
    event.missing = blast->total - packets;
    if (blast->sender.announcer)
        gw_announce_end(ep, &blast->sender, now);
    gw_blast_tx_drop(ep, blast);
    gw_endpoint_post(ep, &event);
}

void gw_blast_tx_fail(struct gw_endpoint *ep, struct gw_blast_tx *blast, gw_time now)
{
    struct gw_event event = event_of(blast, GW_EVENT_FAILED, now);
    gw_blast_tx_drop(ep, blast);
    gw_endpoint_post(ep, &event);
}
