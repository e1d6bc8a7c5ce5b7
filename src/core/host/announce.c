/* Announcers; see announce.h. */
#include "core/host/announce.h"

GW_INDEX_LIST(announcer_list, struct gw_announcer)

static uint32_t index_of(const struct gw_endpoint *ep, const struct gw_announcer *announcer)
{
    return (uint32_t)(announcer - ep->announcers);
}

/* The head of the list of announcers without users lies behind them all. */
static uint32_t idle_head(const struct gw_endpoint *ep)
{
    return ep->cfg.announcers_max;
}

static uint32_t timer_of(const struct gw_endpoint *ep, const struct gw_announcer *announcer)
{
    return gw_announcer_timer(ep) + index_of(ep, announcer);
}

static uint64_t map_key(uint32_t job, uint32_t peer)
{
    return (uint64_t)job << 32 | peer;
}

static struct gw_announcer *user_of(const struct gw_endpoint *ep, const struct gw_sender *sender)
{
    return &ep->announcers[sender->announcer - 1];
}

/* ---- How long a round trip takes. ---- */

static gw_time round_trip(const struct gw_announcer *announcer)
{
    return announcer->is_measured ? announcer->srtt : announcer->burst.terms.rtt;
}

/* How long a burst waits for the answer: a little more than the round trip however even it is, so
 * that an answer is not late by the last picosecond. */
static gw_time patience(const struct gw_announcer *announcer)
{
    if (!announcer->is_measured)
        return 2 * announcer->burst.terms.rtt;
    gw_time margin = 4 * announcer->rttvar;
    gw_time least = announcer->srtt / 8 + 1;
    return announcer->srtt + (margin > least ? margin : least);
}

/* As in RFC 6298, section 2. However late an answer comes, it counts for twice the patience. */
static void measure(struct gw_announcer *announcer, gw_time rtt)
{
    gw_time most = 2 * patience(announcer);
    if (rtt > most)
        rtt = most;
    if (!announcer->is_measured) {
        announcer->srtt = rtt;
        announcer->rttvar = rtt / 2;
        announcer->is_measured = true;
        return;
    }
    gw_time off = rtt > announcer->srtt ? rtt - announcer->srtt : announcer->srtt - rtt;
    announcer->rttvar = announcer->rttvar - announcer->rttvar / 4 + off / 4;
    announcer->srtt = announcer->srtt - announcer->srtt / 8 + rtt / 8;
}

/* ---- Notices leave. ---- */

/* One more copy is to leave. */
static void ask(struct gw_endpoint *ep, struct gw_announcer *announcer, gw_time now)
{
    announcer->is_due = true;
    announcer->asked_at[announcer->sent] = now;
    gw_egress_join(ep, &announcer->sender);
}

static bool notice_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                            gw_time now)
{
    (void)ep;
    (void)now;
    return ((const struct gw_announcer *)sender)->is_due;
}

static struct gw_pkt *notice_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_announcer *announcer = (struct gw_announcer *)sender;
    const struct gw_burst *burst = &announcer->burst;
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    gw_endpoint_arm_by(ep, timer_of(ep, announcer), gw_time_add(now, patience(announcer) / 2));
    if (!pkt)
        return NULL;
    *pkt = (struct gw_pkt){
        .q = {.size = ep->cfg.hdr,
              .key = burst->key,
              .class = sender->class,
              .ecn = burst->ecn,
              .kind = GW_PKT_NOTICE},
        .src = ep->cfg.address,
        .dst = burst->peer,
        .flow = burst->flow,
        .seq = announcer->number + announcer->sent,
        .entropy = announcer->leader->entropy,
        .buf = GW_BUF_NONE,
        .notice = {.job = burst->terms.job, .units = burst->terms.units},
    };
    announcer->is_due = false;
    announcer->sent++;
    ep->stats.notices_sent++;
    ep->stats.bursts_announced += announcer->sent == 1;
    return pkt;
}

static const struct gw_sender_ops notice_sender_ops = {
    .can_send = notice_can_send,
    .emit = notice_emit,
};

/* ---- A burst waits, and leaves. ---- */

/* No notice is to be sent any more. */
static void stop_asking(struct gw_endpoint *ep, struct gw_announcer *announcer)
{
    announcer->is_asking = announcer->is_due = false;
    announcer->leader = NULL;
    gw_egress_leave(ep, &announcer->sender);
    gw_endpoint_arm(ep, timer_of(ep, announcer), GW_TIME_NEVER);
}

static void wait_append(struct gw_announcer *announcer, struct gw_sender *sender)
{
    if (announcer->waiting) {
        sender->ring_next = announcer->waiting->ring_next;
        announcer->waiting->ring_next = sender;
    } else {
        sender->ring_next = sender;
    }
    announcer->waiting = sender;
    sender->in_ring = true;
}

static void wait_remove(struct gw_announcer *announcer, struct gw_sender *sender)
{
    struct gw_sender *before = announcer->waiting;
    while (before->ring_next != sender)
        before = before->ring_next;
    before->ring_next = sender->ring_next;
    if (before == sender)
        announcer->waiting = NULL;
    else if (announcer->waiting == sender)
        announcer->waiting = before;
    sender->in_ring = false;
}

/* All that wait join the egress, in the order in which they came. */
static void leave(struct gw_endpoint *ep, struct gw_announcer *announcer)
{
    stop_asking(ep, announcer);
    ep->stats.bursts_unanswered += announcer->sent && !announcer->is_answered;
    ep->stats.bursts_unannounced += !announcer->sent;
    while (announcer->waiting) {
        struct gw_sender *sender = announcer->waiting->ring_next;
        wait_remove(announcer, sender);
        sender->leads &= announcer->sent > 0;
        gw_egress_join(ep, sender);
    }
}

/* The notice is answered: its burst leaves now, or after its lead. */
static void lead(struct gw_endpoint *ep, struct gw_announcer *announcer, gw_time now)
{
    if (announcer->burst.terms.lead == 0) {
        leave(ep, announcer);
        return;
    }
    announcer->is_due = false;
    gw_egress_leave(ep, &announcer->sender);
    announcer->until = gw_time_add(now, announcer->burst.terms.lead);
    gw_endpoint_arm(ep, timer_of(ep, announcer), announcer->until);
}

void gw_announce_expire(struct gw_endpoint *ep, uint32_t timer, gw_time now)
{
    struct gw_announcer *announcer = &ep->announcers[timer - gw_announcer_timer(ep)];
    if (!gw_time_before(now, announcer->until)) {
        leave(ep, announcer);
        return;
    }
    gw_endpoint_arm(ep, timer, announcer->until);
    if (announcer->sent < GW_NOTICES_MAX)
        ask(ep, announcer, now);
}

/* ---- Busy periods. ---- */

/* The announcer of the job and peer, or one that has had no users for the longest time; NULL: all
 * have some. */
static struct gw_announcer *find_or_claim(struct gw_endpoint *ep, const struct gw_burst *burst)
{
    uint64_t key = map_key(burst->terms.job, burst->peer);
    uint32_t index = gw_map_get(&ep->announcer_map, key);
    if (index != GW_MAP_NONE)
        return &ep->announcers[index];
    if (announcer_list_is_empty(ep->announcers, idle_head(ep)))
        return NULL;
    index = announcer_list_first(ep->announcers, idle_head(ep));
    struct gw_announcer *announcer = &ep->announcers[index];
    const struct gw_burst *last = &announcer->burst;
    if (announcer->is_known)
        gw_map_remove(&ep->announcer_map, map_key(last->terms.job, last->peer));
    gw_map_put(&ep->announcer_map, key, index);
    announcer->is_known = announcer->is_over = true;
    announcer->is_measured = false;
    return announcer;
}

/* A busy period begins, which `leader` leads. */
static void begin_asking(struct gw_endpoint *ep, struct gw_announcer *announcer,
                         struct gw_sender *leader, const struct gw_burst *burst, gw_time now)
{
    announcer->number += announcer->sent;
    announcer->sent = 0;
    announcer->is_asking = true;
    announcer->is_answered = false;
    announcer->burst = *burst;
    announcer->leader = leader;
    announcer->sender.port = leader->port;
    announcer->sender.class = leader->class;
    announcer->until = gw_time_add(now, patience(announcer));
    leader->leads = true;
    leader->train_left = ep->cfg.train;
    gw_endpoint_arm(ep, timer_of(ep, announcer), announcer->until);
    ask(ep, announcer, now);
}

bool gw_announce_begin(struct gw_endpoint *ep, struct gw_sender *sender,
                       const struct gw_burst *burst, gw_time now)
{
    struct gw_announcer *announcer = find_or_claim(ep, burst);
    if (!announcer) {
        ep->stats.bursts_unannounced++;
        return false;
    }
    sender->announcer = index_of(ep, announcer) + 1;
    if (announcer->users++ == 0) {
        announcer_list_remove(ep->announcers, index_of(ep, announcer));
        if (announcer->is_over || now - announcer->idle_since > round_trip(announcer))
            begin_asking(ep, announcer, sender, burst, now);
    }
    if (announcer->is_asking)
        wait_append(announcer, sender);
    return announcer->is_asking;
}

/* A user is none any more. True: there is no other. */
static bool remove_user(struct gw_endpoint *ep, struct gw_sender *sender)
{
    struct gw_announcer *announcer = user_of(ep, sender);
    bool was_leader = sender == announcer->leader;
    if (announcer->is_asking)
        wait_remove(announcer, sender);
    sender->announcer = 0;
    sender->leads = false;
    if (--announcer->users > 0) {
        if (was_leader)
            leave(ep, announcer);
        return false;
    }
    if (announcer->is_asking)
        stop_asking(ep, announcer);
    announcer_list_append(ep->announcers, idle_head(ep), index_of(ep, announcer));
    return true;
}

void gw_announce_end(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_announcer *announcer = user_of(ep, sender);
    bool was_asking = announcer->is_asking;
    if (!remove_user(ep, sender))
        return;
    announcer->is_over = was_asking;
    announcer->idle_since = now;
}

void gw_announce_give_up(struct gw_endpoint *ep, struct gw_sender *sender)
{
    struct gw_announcer *announcer = user_of(ep, sender);
    if (remove_user(ep, sender))
        announcer->is_over = true;
}

/* ---- Notices and answers arrive. ---- */

/* Turns a notice into its answer. */
static void answer(struct gw_endpoint *ep, struct gw_pkt *pkt)
{
    ep->stats.notices_received++;
    gw_pkt_drop_payload(ep->pool, pkt);
    pkt->dst = pkt->src;
    pkt->src = ep->cfg.address;
    pkt->q = (struct gw_qpkt){
        .size = pkt->q.size,
        .key = gw_flow_key(pkt->src, pkt->dst, pkt->flow),
        .class = GW_CLASS_CONTROL,
        .ecn = GW_ECN_NOT_ECT,
        .kind = GW_PKT_NOTICE,
    };
    pkt->entropy = (uint16_t)gw_prng_next(&ep->prng);
    pkt->notice.is_answer = true;
    gw_egress_control(ep, pkt);
}

static void take_answer(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    uint32_t index = gw_map_get(&ep->announcer_map, map_key(pkt->notice.job, pkt->src));
    struct gw_announcer *announcer = index == GW_MAP_NONE ? NULL : &ep->announcers[index];
    uint32_t copy = announcer ? pkt->seq - announcer->number : 0;
    if (!announcer || pkt->flow != announcer->burst.flow || copy >= announcer->sent) {
        ep->stats.stray++;
        return;
    }
    ep->stats.answers_received++;
    if (announcer->is_answered)
        return;
    announcer->is_answered = true;
    measure(announcer, now - announcer->asked_at[copy]);
    if (announcer->is_asking)
        lead(ep, announcer, now);
}

void gw_announce_input(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    if (!pkt->notice.is_answer) {
        answer(ep, pkt);
        return;
    }
    take_answer(ep, pkt, now);
    gw_pkt_release(ep->pool, pkt);
}

bool gw_endpoint_notice_rtt(const struct gw_endpoint *ep, uint32_t job, uint32_t peer, gw_time *rtt)
{
    uint32_t index = gw_map_get(&ep->announcer_map, map_key(job, peer));
    if (index == GW_MAP_NONE || !ep->announcers[index].is_measured)
        return false;
    *rtt = ep->announcers[index].srtt;
    return true;
}

void gw_announce_init(struct gw_endpoint *ep)
{
    announcer_list_init(ep->announcers, idle_head(ep));
    for (uint32_t i = 0; i < ep->cfg.announcers_max; i++) {
        ep->announcers[i] = (struct gw_announcer){
            .sender = {.ops = &notice_sender_ops},
            .number = (uint32_t)ep->cfg.generation << 16,
        };
        announcer_list_append(ep->announcers, idle_head(ep), i);
    }
}
