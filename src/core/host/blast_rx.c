/*
 * The receiver half of a blast opens, takes data, and ends; see blast.h.
 *
 * What arrives is put where it belongs, in any order, and marked. After each arrival the policy of
 * core/finish is asked whether that is enough, and the bound of the sender; the stricter one rules.
 * When it is, the flow lingers until its sender knows, since what is under way may as well be
 * taken, but for no more than a base round trip: its application waits, and may not for hails
 * that are lost, or behind data. If all has arrived there is nothing to linger for. Then its place
 * is kept to answer a sender that has missed the end: until that has confirmed it or does not, and
 * from then on as long as no other flow needs it.
 */
#include "core/host/blast.h"

#include "base/bits.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/cc/window.h"
#include "core/host/credit.h"

static uint64_t map_key(uint32_t peer, uint32_t flow)
{
    return (uint64_t)peer << 32 | flow;
}

struct gw_blast_rx *gw_blast_rx_of(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    if (ep->cfg.blasts_max == 0)
        return NULL;
    uint32_t index = gw_map_get(&ep->blast_map, map_key(pkt->src, pkt->flow));
    return index == GW_MAP_NONE ? NULL : &ep->blasts_rx[index];
}

/* A place for a flow, if need be that of the one that ended first; or NULL. */
static struct gw_blast_rx *take_place(struct gw_endpoint *ep)
{
    uint32_t index = ep->blast_rx_free;
    if (index != GW_FLOW_NONE) {
        ep->blast_rx_free = ep->blasts_rx[index].list_next;
        return &ep->blasts_rx[index];
    }
    index = ep->blast_done_head;
    if (index == GW_FLOW_NONE)
        return NULL;
    struct gw_blast_rx *blast = &ep->blasts_rx[index];
    ep->blast_done_head = blast->list_next;
    gw_map_remove(&ep->blast_map, map_key(blast->peer, blast->flow));
    gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), GW_TIME_NEVER);
    return blast;
}

/* ---- Opening. ---- */

static bool rendezvous_is_sound(const struct gw_pkt *pkt)
{
    return pkt->hail.word[0] > 0 && pkt->hail.number > 0 && pkt->index > 0 &&
           pkt->index <= pkt->hail.number;
}

/* Payload bytes of the message that a sound RENDEZVOUS announces. */
static uint64_t bytes_of(const struct gw_pkt *pkt)
{
    return (uint64_t)(pkt->hail.word[0] - 1) * pkt->hail.number + pkt->index;
}

/* Whether posted memory is for the message: it is large enough, and who wants to know of each
 * packet means packets as large as our own. */
static bool is_for(const struct gw_endpoint *ep, const struct gw_expect *posted,
                   const struct gw_pkt *pkt)
{
    return bytes_of(pkt) <= posted->bytes &&
           ((!posted->arrived && !posted->notes) ||
            (pkt->hail.word[0] <= posted->packets_max && pkt->hail.number == ep->cfg.mtu));
}

static void describe(const struct gw_endpoint *ep, struct gw_blast_rx *blast,
                     const struct gw_pkt *pkt, const struct gw_expect *posted, gw_time now)
{
    const uint32_t rtt_us = pkt->seq >> GW_HAIL_RTT_SHIFT;
    *blast = (struct gw_blast_rx){
        .sender = {.ops = &gw_blast_request_ops, .class = GW_CLASS_DATA_MAX},
        .bits = blast->bits,
        .peer = pkt->src,
        .flow = pkt->flow,
        .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
        .tag = pkt->hail.word[1],
        .total = pkt->hail.word[0],
        .mss = pkt->hail.number,
        .last_len = pkt->index,
        .state = GW_BLAST_ACTIVE,
        .is_bare = !posted,
        .is_on_credit = pkt->hail.marks & GW_HAIL_ON_CREDIT,
        .bound = pkt->seq & GW_HAIL_BOUND_MAX,
        .rtt = (rtt_us ? rtt_us : 1) * GW_US,
        .finish = posted ? posted->finish : ep->cfg.finish,
        .heard_at = now,
        .data_at = now,
        .hail_delay = now - pkt->sent_at,
        .finish_at = GW_TIME_NEVER,
    };
    blast->sender.port = (uint16_t)(blast->key % ep->node.port_count);
    if (posted) {
        blast->memory = (struct gw_rx_memory){
            .data = posted->data, .room = posted->bytes, .arrived_bits = posted->arrived};
        blast->notes = posted->notes;
    }
}

uint8_t gw_blast_rx_open(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    if (!rendezvous_is_sound(pkt)) {
        ep->stats.malformed++;
        return GW_HAIL_REFUSED;
    }
    struct gw_past_end end;
    if (gw_past_flows_has(&ep->past_flows, pkt->src, pkt->flow, now, &end)) {
        ep->stats.stray++;
        return GW_HAIL_NOT_READY;
    }
    bool is_bare = pkt->hail.marks & GW_HAIL_BARE;
    struct gw_expect *posted =
        is_bare ? NULL : gw_endpoint_find_memory(ep, pkt->src, pkt->hail.word[1]);
    if (!is_bare && (!posted || bytes_of(pkt) > posted->bytes))
        gw_endpoint_tell_unexpected(ep, &(struct gw_event){.peer = pkt->src,
                                                           .tag = pkt->hail.word[1],
                                                           .bytes = bytes_of(pkt),
                                                           .room = posted ? posted->bytes : 0,
                                                           .at = now});
    if (pkt->hail.word[0] > ep->cfg.blast_packets_max || (posted && !is_for(ep, posted, pkt))) {
        ep->stats.rendezvous_refused++;
        return GW_HAIL_REFUSED;
    }
    struct gw_blast_rx *blast = NULL;
    if ((is_bare || posted) && gw_endpoint_has_event_room(ep))
        blast = take_place(ep);
    if (!blast) {
        if (!is_bare && !posted)
            gw_early_note(ep, pkt);
        ep->stats.rendezvous_early++;
        return GW_HAIL_NOT_READY;
    }
    describe(ep, blast, pkt, posted, now);
    memset(blast->bits, 0, gw_bit_words(blast->total) * sizeof(uint64_t));
    if (posted) {
        posted->data = NULL;
        gw_endpoint_trim(ep);
    }
    if (blast->is_on_credit)
        gw_credit_open(ep, &blast->grantee, blast->total, now);
    ep->promised++;
    int error = gw_map_put(&ep->blast_map, map_key(blast->peer, blast->flow),
                           (uint32_t)(blast - ep->blasts_rx));
    GW_ASSERT(error == GW_OK);
    if (ep->cfg.stall)
        gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), gw_stall_at(now, ep->cfg.stall));
    return 0;
}

/* ---- The end. ---- */

void gw_blast_rx_settle(struct gw_endpoint *ep, struct gw_blast_rx *blast)
{
    uint32_t index = (uint32_t)(blast - ep->blasts_rx);
    blast->finish_at = GW_TIME_NEVER;
    gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), GW_TIME_NEVER);
    blast->list_next = GW_FLOW_NONE;
    if (ep->blast_done_head == GW_FLOW_NONE)
        ep->blast_done_head = index;
    else
        ep->blasts_rx[ep->blast_done_tail].list_next = index;
    ep->blast_done_tail = index;
}

/* The flow has no event to post any more. */
static void retire(struct gw_endpoint *ep, struct gw_blast_rx *blast, enum gw_blast_state state)
{
    const struct gw_past_end end = {blast->tag, state == GW_BLAST_DONE ? blast->arrived : 0,
                                    blast->bytes};
    if (blast->memory.data)
        gw_past_flows_note(&ep->past_flows, blast->peer, blast->flow, end, blast->heard_at);
    gw_egress_leave(ep, &blast->sender);
    gw_credit_leave(ep, &blast->grantee);
    ep->promised--;
    blast->memory = (struct gw_rx_memory){0};
    blast->notes = NULL;
    blast->state = (uint8_t)state;
    blast->is_stopped = false;
    blast->period_bytes = 0;
    if (state == GW_BLAST_FAILED || blast->finish_at == GW_TIME_NEVER)
        gw_blast_rx_settle(ep, blast);
    else
        gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), blast->finish_at);
}

void gw_blast_rx_close(struct gw_endpoint *ep, struct gw_blast_rx *blast, enum gw_event_kind kind,
                       gw_time now)
{
    /* A flow that never got anything, and has no memory, is nobody's. */
    bool is_nobodys = blast->is_bare && blast->arrived == 0;
    retire(ep, blast, kind == GW_EVENT_RECEIVED ? GW_BLAST_DONE : GW_BLAST_FAILED);
    if (is_nobodys)
        return;
    if (kind == GW_EVENT_RECEIVED)
        ep->stats.given_up += blast->total - blast->arrived;
    gw_endpoint_post(ep, &(struct gw_event){.kind = kind,
                                            .flow = blast->flow,
                                            .peer = blast->peer,
                                            .tag = blast->tag,
                                            .bytes = blast->bytes,
                                            .missing = blast->total - blast->arrived,
                                            .mss = blast->mss,
                                            .at = now});
}

void gw_blast_rx_drop(struct gw_endpoint *ep, struct gw_blast_rx *blast)
{
    retire(ep, blast, GW_BLAST_FAILED);
}

void gw_blast_rx_finish(struct gw_endpoint *ep, const struct gw_blast_rx *blast, gw_time now)
{
    gw_blast_say(ep, &(struct gw_blast_say){
                         .op = GW_HAIL_FINISH,
                         .peer = blast->peer,
                         .flow = blast->flow,
                         .key = blast->key,
                         .seq = blast->arrived,
                         .number = blast->round,
                         .word = {(uint32_t)blast->bytes, (uint32_t)(blast->bytes >> 32)},
                         .time = now,
                     });
}

gw_time gw_blast_rx_finish_again(struct gw_blast_rx *blast, gw_time now)
{
    return gw_time_add(now, (2 * blast->rtt << blast->finishes++) + GW_US);
}

/* It has enough. */
static void be_enough(struct gw_endpoint *ep, struct gw_blast_rx *blast, gw_time now)
{
    if (blast->state == GW_BLAST_ACTIVE) {
        blast->state = GW_BLAST_LINGERING;
        blast->is_stopped = false;
        blast->period_bytes = 0;
        gw_egress_leave(ep, &blast->sender);
        gw_credit_leave(ep, &blast->grantee);
        for (uint32_t i = 0; i < gw_blast_copies(ep); i++)
            gw_blast_rx_finish(ep, blast, now);
        blast->finish_at = gw_blast_rx_finish_again(blast, now);
        blast->linger_at = gw_time_add(now, blast->rtt);
        gw_endpoint_arm(ep, gw_blast_rx_timer(ep, blast), blast->linger_at);
    }
    if (blast->arrived == blast->total)
        gw_blast_rx_close(ep, blast, GW_EVENT_RECEIVED, now);
}

/* ---- Data. ---- */

bool gw_blast_rx_round(struct gw_blast_rx *blast, uint16_t round)
{
    int16_t ahead = (int16_t)(uint16_t)(round - blast->round);
    if (ahead > 0) {
        blast->round = round;
        blast->is_stopped = blast->is_answered = blast->has_begun = false;
        blast->lag = 0;
        blast->period_bytes = blast->echoes = blast->echoes_ce = 0; /* nobody waits for them */
    }
    return ahead >= 0;
}

void gw_blast_rx_report(struct gw_endpoint *ep, struct gw_blast_rx *blast)
{
    if (blast->period_bytes == 0)
        return;
    gw_blast_say(
        ep, &(struct gw_blast_say){
                .op = GW_HAIL_REPORT,
                .peer = blast->peer,
                .flow = blast->flow,
                .key = blast->key,
                .seq = (uint32_t)blast->round << GW_HAIL_ROUND_SHIFT | (blast->period & UINT16_MAX),
                .word = {blast->period_bytes, (uint32_t)blast->echo[1] << 16 | blast->echo[0]},
                .index = blast->echo[2],
                .number = blast->echo[3],
                .marks = (uint8_t)(blast->echoes << GW_HAIL_ECHOES_SHIFT | blast->echoes_ce),
                .time = blast->data_sent_at,
            });
    blast->period_bytes = 0;
    blast->echoes = blast->echoes_ce = 0;
    memset(blast->echo, 0, sizeof(blast->echo));
}

/*
 * Periods begin with the first packet of the round, as the sender's do. Was that one under way for
 * longer than another, the sender's began earlier than they seem: reports would be about periods
 * long ago for the rest of the round.
 */
static void agree_on_periods(struct gw_blast_rx *blast, const struct gw_pkt *pkt, gw_time now)
{
    if (!blast->has_begun) {
        blast->has_begun = true;
        blast->round_at = now;
        blast->round_sent_at = pkt->sent_at;
        blast->period = 0;
    }
    /* Of times of another clock only the lower 48 bits are known (core/codec.h). */
    int64_t later = (int64_t)((pkt->sent_at - blast->round_sent_at) << 16) >> 16;
    gw_time since = now - blast->round_at;
    if (later > 0 && (gw_time)later > since && (gw_time)later < now)
        blast->round_at = now - (gw_time)later;
}

/* Counts a packet of the present round for the next report. */
static void count(struct gw_endpoint *ep, struct gw_blast_rx *blast, const struct gw_pkt *pkt,
                  gw_time now)
{
    agree_on_periods(blast, pkt, now);
    uint32_t period = (uint32_t)((now - blast->round_at) / ep->cfg.report_every);
    if (period != blast->period)
        gw_blast_rx_report(ep, blast);
    blast->period = period;
    blast->period_bytes = gw_add_u32(blast->period_bytes, pkt->q.size);
    /* The latest ones, in turn. */
    uint32_t at = blast->arrived % GW_HAIL_ECHOES;
    if (blast->echoes < GW_HAIL_ECHOES)
        at = blast->echoes++;
    blast->echo[at] = pkt->entropy;
    blast->echoes_ce &= (uint8_t) ~(1u << at);
    blast->echoes_ce |= (uint8_t)((pkt->q.ecn == GW_ECN_CE) << at);
    gw_endpoint_arm_by(ep, gw_blast_rx_timer(ep, blast),
                       gw_time_add(blast->round_at, (gw_time)(period + 1) * ep->cfg.report_every));
}

/* Of a delay up to now, what was over before the host's last nap, or came after it: a packet that
 * has waited here for the host to wake is not late. */
static gw_time less_nap(const struct gw_endpoint *ep, gw_time delay, gw_time now)
{
    gw_time since = now - delay;
    if (gw_time_before(ep->nap_until, since))
        return delay;
    return gw_time_before(since, ep->nap_from) ? ep->nap_from - since : 0;
}

/* How much longer than the fastest hail the packet was under way. Of times of another clock only
 * the lower 48 bits are known (core/codec.h). */
static void measure_lag(struct gw_endpoint *ep, struct gw_blast_rx *blast, const struct gw_pkt *pkt,
                        gw_time now)
{
    int64_t lag = (int64_t)((now - pkt->sent_at - blast->hail_delay) << 16) >> 16;
    gw_time own = lag < 0 ? 0 : less_nap(ep, (gw_time)lag, now);
    gw_time most = own < GW_BLAST_LAG_MAX ? own : GW_BLAST_LAG_MAX;
    if (most > blast->lag)
        blast->lag = most;
    if (most > ep->blast_lag)
        ep->blast_lag = most;
    else
        ep->blast_lag -= (ep->blast_lag - most) / 64;
}

/* Whether a packet is of the message as its RENDEZVOUS said. */
static bool data_is_sound(const struct gw_blast_rx *blast, const struct gw_pkt *pkt)
{
    uint32_t len = pkt->seq + 1 == blast->total ? blast->last_len : blast->mss;
    return pkt->seq < blast->total && pkt->data.total == blast->total &&
           pkt->data.mss == blast->mss && pkt->data.len == len;
}

/* Puts the payload where it belongs. False: there is no memory for it. */
static bool store(const struct gw_endpoint *ep, struct gw_blast_rx *blast, const struct gw_pkt *pkt)
{
    if ((pkt->buf == GW_BUF_NONE) != blast->is_bare)
        return false;
    if (pkt->buf != GW_BUF_NONE)
        memcpy(blast->memory.data + (uint64_t)pkt->seq * blast->mss,
               gw_buf_bytes(ep->pool->bufs, pkt->buf), pkt->data.len);
    if (blast->memory.arrived_bits)
        gw_bit_set(blast->memory.arrived_bits, pkt->seq);
    if (blast->notes)
        blast->notes[pkt->seq] = (uint16_t)pkt->data.tag;
    return true;
}

/* Takes a packet of an open flow in, once it is known to be sound. */
static void take(struct gw_endpoint *ep, struct gw_blast_rx *blast, const struct gw_pkt *pkt,
                 gw_time now)
{
    measure_lag(ep, blast, pkt, now);
    blast->data_at = now;
    blast->data_sent_at = pkt->sent_at;
    if (blast->is_on_credit && blast->state == GW_BLAST_ACTIVE)
        gw_credit_arrived(ep, &blast->grantee, blast->total, pkt, now);
    bool is_present = gw_blast_rx_round(blast, (uint16_t)(pkt->data.tag >> GW_HAIL_ROUND_SHIFT));
    if (is_present && blast->state == GW_BLAST_ACTIVE)
        count(ep, blast, pkt, now);
    if (gw_bit_is_set(blast->bits, pkt->seq)) {
        ep->stats.duplicates++;
        return;
    }
    if (!store(ep, blast, pkt)) {
        ep->stats.refused++;
        return;
    }
    gw_bit_set(blast->bits, pkt->seq);
    blast->arrived++;
    blast->bytes += pkt->data.len;
    blast->heard_at = now;
    ep->stats.progress++;
    const struct gw_finish_sample sample = {
        .total = blast->total,
        .arrived = blast->arrived,
        .tag = blast->tag,
        .bound = blast->bound,
    };
    if (gw_finish_is_enough(blast->finish, &sample))
        be_enough(ep, blast, now);
}

/* A packet of a flow that is done. A sender without credit waits for more, and cannot know. */
static void take_late(struct gw_endpoint *ep, const struct gw_blast_rx *blast,
                      const struct gw_pkt *pkt, gw_time now)
{
    ep->stats.duplicates++;
    if (pkt->q.flags & GW_PKT_STARVED)
        gw_blast_rx_finish(ep, blast, now);
}

void gw_blast_rx_data(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    ep->stats.data_received++;
    struct gw_blast_rx *blast = gw_blast_rx_of(ep, pkt);
    if (!blast)
        ep->stats.early++;
    else if (pkt->q.flags & GW_PKT_TRIMMED || !data_is_sound(blast, pkt))
        ep->stats.malformed++;
    else if (blast->state == GW_BLAST_FAILED)
        ep->stats.refused++;
    else if (blast->state == GW_BLAST_DONE)
        take_late(ep, blast, pkt, now);
    else
        take(ep, blast, pkt, now);
    gw_pkt_release(ep->pool, pkt);
}
