/*
 * Blasts between two endpoints by bad links under a hand-cranked clock: whatever is lost, doubled
 * or late. Endpoints are called at arrivals and at deadlines and at no other time.
 */
#ifndef GW_TESTS_BLAST_PAIR_H
#define GW_TESTS_BLAST_PAIR_H

#include "host.h"
#include "support.h"

#include "base/bits.h"
#include "base/prng.h"
#include "core/blast_hail.h"

enum {
    PAIR_MTU = 100,
    PAIR_HDR = 20,
    PAIR_PKTS = 4096,
    PAIR_MESSAGES = 3,
    PAIR_PACKETS_MAX = 1000, /* of a message */
    PAIR_ON_LINE_MAX = 4096,
    PAIR_WORDS = (PAIR_PACKETS_MAX + 63) / 64,
    PAIR_STEPS_MAX = 1000000, /* guards against hanging only */
    PAIR_UNTOUCHED = 0x55,
};

#define PAIR_RATE_BPS UINT64_C(8000000000)
#define PAIR_PKT_TIME ((gw_time)(PAIR_MTU + PAIR_HDR) * GW_NS) /* that one keeps a link busy */
#define PAIR_LATENCY  (1 * GW_US)
#define PAIR_BRTT     (2 * PAIR_LATENCY + 2 * PAIR_PKT_TIME)
#define PAIR_START    (1000 * GW_MS)

/* What happens to packets. */
struct pair_faults {
    uint32_t lost;    /* percent of any kind */
    uint32_t doubled; /* likewise */
    uint32_t late;    /* likewise, by up to `late_by` */
    gw_time late_by;
    uint32_t hails_lost; /* percent, of these alone */
    uint32_t ops_lost;   /* bit o: the first `first_lost` hails of operation o are lost */
    uint32_t first_lost; /* of each operation */
    uint32_t data_every; /* data packets: one in so many is lost; 0: none */
    gw_time data_late;   /* all data is late by as much: hails overtake it */
    gw_time skew;        /* of the receiver's clock against the sender's */
    bool is_one_way;     /* nothing gets back */
    bool (*drops)(const struct gw_pkt *pkt); /* NULL, or whether this one is lost */
};

struct pair_item {
    gw_time at;
    struct gw_pkt pkt;
    unsigned char payload[PAIR_MTU];
};

/* One direction. */
struct pair_line {
    struct pair_item items[PAIR_ON_LINE_MAX];
    uint32_t count;
    gw_time busy_until;
    bool is_ready; /* the port was reported and is not pulled dry */
};

struct pair_message {
    struct gw_send send;
    struct gw_expect expect;
    struct gw_finish policy;
    gw_q16 bound; /* the stricter one */
    unsigned char sent[PAIR_PACKETS_MAX * PAIR_MTU];
    unsigned char received[PAIR_PACKETS_MAX * PAIR_MTU];
    uint64_t arrived[PAIR_WORDS];
    uint64_t important[PAIR_WORDS];
    uint16_t notes[2][PAIR_PACKETS_MAX]; /* that were sent, and came */
    struct gw_event ends[2];             /* of the sender and of the receiver */
    bool has_ended[2];
};

struct pair {
    struct pair_faults faults;
    struct gw_endpoint_cfg cfg;
    struct gw_test_host hosts[2];
    struct gw_node *nodes[2];
    struct pair_line lines[2]; /* lines[i] leads from host i to the other */
    struct gw_transport transport;
    struct pair_message messages[PAIR_MESSAGES];
    uint32_t count; /* of messages */
    struct gw_prng prng;
    uint32_t lost[GW_HAIL_OPS];
    uint32_t data_count;
    gw_time now;
};

static inline bool pair_chance(struct pair *p, uint32_t percent)
{
    return percent && gw_prng_below(&p->prng, 100) < percent;
}

static inline uint32_t pair_total(const struct pair_message *message)
{
    return (uint32_t)((message->send.bytes + PAIR_MTU - 1) / PAIR_MTU);
}

/* The clock of a host. */
static inline gw_time pair_clock(const struct pair *p, uint32_t host)
{
    return p->now + (host ? p->faults.skew : 0);
}

/* ---- The links. ---- */

static inline void pair_take_ready(struct pair *p, uint32_t host)
{
    struct gw_node *node = p->nodes[host];
    p->lines[host].is_ready |= node->ready_count > 0;
    node->ready_count = 0;
}

static inline bool pair_loses(struct pair *p, uint32_t host, const struct gw_pkt *pkt)
{
    const struct pair_faults *faults = &p->faults;
    bool is_hail = pkt->q.kind == GW_PKT_HAIL;
    if (faults->is_one_way && host == 1)
        return true;
    if (faults->drops && faults->drops(pkt))
        return true;
    if (is_hail && faults->ops_lost >> pkt->hail.op & 1 &&
        p->lost[pkt->hail.op] < faults->first_lost)
        return ++p->lost[pkt->hail.op];
    if (is_hail && pair_chance(p, faults->hails_lost))
        return true;
    if (!is_hail && faults->data_every && ++p->data_count % faults->data_every == 0)
        return true;
    return pair_chance(p, faults->lost);
}

static inline void pair_append(struct pair *p, struct pair_line *line, const struct pair_item *item)
{
    assert_true(line->count < PAIR_ON_LINE_MAX);
    struct pair_item *copy = &line->items[line->count++];
    *copy = *item;
    if (pair_chance(p, p->faults.late))
        copy->at += gw_prng_below(&p->prng, 1000) * (p->faults.late_by / 1000);
}

static inline void pair_depart(struct pair *p, uint32_t host, struct gw_pkt *pkt)
{
    struct gw_pkt_pool *pool = &p->hosts[host].pool;
    struct pair_item item = {.at = p->now + PAIR_PKT_TIME + PAIR_LATENCY, .pkt = *pkt};
    if (pkt->buf != GW_BUF_NONE)
        memcpy(item.payload, gw_buf_bytes(pool->bufs, pkt->buf), pkt->data.len);
    if (pkt->q.kind == GW_PKT_DATA)
        item.at += p->faults.data_late;
    gw_pkt_release(pool, pkt);
    if (pair_loses(p, host, &item.pkt))
        return;
    pair_append(p, &p->lines[host], &item);
    if (pair_chance(p, p->faults.doubled))
        pair_append(p, &p->lines[host], &item);
}

static inline void pair_pull(struct pair *p, uint32_t host)
{
    struct pair_line *line = &p->lines[host];
    while (line->is_ready && !gw_time_before(p->now, line->busy_until)) {
        struct gw_pkt *pkt;
        uint32_t result = gw_node_output(p->nodes[host], 0, &pkt, 1, pair_clock(p, host));
        line->is_ready = result & GW_OUTPUT_MORE;
        pair_take_ready(p, host);
        if (!(result & ~GW_OUTPUT_MORE))
            break;
        bool is_data = pkt->q.kind == GW_PKT_DATA;
        line->busy_until = p->now + (is_data ? PAIR_PKT_TIME : PAIR_PKT_TIME / 6);
        pair_depart(p, host, pkt);
    }
}

static inline void pair_arrive(struct pair *p, uint32_t host)
{
    struct pair_line *line = &p->lines[host];
    struct gw_pkt_pool *pool = &p->hosts[1 - host].pool;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        struct pair_item *item = &line->items[i];
        if (gw_time_before(p->now, item->at)) {
            if (kept != i)
                line->items[kept] = *item;
            kept++;
            continue;
        }
        struct gw_pkt *pkt = gw_pkt_claim(pool);
        assert_non_null(pkt);
        bool has_payload = item->pkt.buf != GW_BUF_NONE;
        *pkt = item->pkt;
        pkt->buf = has_payload ? gw_buf_claim(pool->bufs) : GW_BUF_NONE;
        if (has_payload)
            memcpy(gw_buf_bytes(pool->bufs, pkt->buf), item->payload, PAIR_MTU);
        gw_node_input(p->nodes[1 - host], 0, &pkt, 1, pair_clock(p, 1 - host));
        pair_take_ready(p, 1 - host);
    }
    line->count = kept;
}

/* ---- The run. ---- */

static inline void pair_take_events(struct pair *p, uint32_t host)
{
    struct gw_event event;
    while (gw_endpoint_poll(p->hosts[host].endpoint, &event, 1)) {
        assert_true(event.tag < p->count && !p->messages[event.tag].has_ended[host]);
        p->messages[event.tag].ends[host] = event;
        p->messages[event.tag].has_ended[host] = true;
    }
}

static inline gw_time pair_next_step(const struct pair *p)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; i < 2; i++) {
        const struct pair_line *line = &p->lines[i];
        gw_time at = gw_node_deadline(p->nodes[i]);
        if (at != GW_TIME_NEVER && i)
            at -= p->faults.skew;
        next = gw_deadline_before(at, next) ? at : next;
        if (line->is_ready && gw_deadline_before(line->busy_until, next))
            next = line->busy_until;
        for (uint32_t j = 0; j < line->count; j++)
            next = gw_deadline_before(line->items[j].at, next) ? line->items[j].at : next;
    }
    return next;
}

/* One instant. False: nothing is left to do. */
static inline bool pair_step(struct pair *p)
{
    gw_time next = pair_next_step(p);
    if (next == GW_TIME_NEVER)
        return false;
    if (gw_time_before(p->now, next))
        p->now = next;
    for (uint32_t i = 0; i < 2; i++) {
        pair_arrive(p, i);
        gw_node_expire(p->nodes[i], pair_clock(p, i));
        pair_take_ready(p, i);
    }
    pair_pull(p, 0);
    pair_pull(p, 1);
    pair_take_events(p, 0);
    pair_take_events(p, 1);
    return true;
}

/* Runs until nothing is left to do; returns the time that it took until the last event. */
static inline gw_time pair_run(struct pair *p)
{
    for (uint32_t steps = 0; pair_step(p); steps++)
        assert_true(steps < PAIR_STEPS_MAX);
    gw_time last = 0;
    for (uint32_t i = 0; i < 2 * p->count; i++) {
        const struct pair_message *message = &p->messages[i / 2];
        gw_time took = message->ends[i % 2].at - PAIR_START - (i % 2 ? p->faults.skew : 0);
        if (message->has_ended[i % 2] && took > last)
            last = took;
    }
    return last;
}

static inline void pair_open(struct pair *p, const struct pair_faults *faults, uint64_t seed)
{
    memset(p, 0, sizeof(*p));
    p->faults = *faults;
    p->prng = gw_prng_derive(seed, 1);
    p->now = PAIR_START;
    p->transport = gw_test_transport("dlcp", "spray", "trim");
    p->cfg = gw_test_host_cfg(0, PAIR_MTU);
    p->cfg.hdr = PAIR_HDR;
    p->cfg.blasts_max = 4;
    p->cfg.blast_packets_max = PAIR_PACKETS_MAX;
    p->cfg.report_every = 10 * GW_US;
    p->cfg.seed = seed;
}

/* A message of `bytes`, of which the sender and the receiver allow as much to be missing. */
static inline struct pair_message *pair_add(struct pair *p, uint64_t bytes, gw_q16 sender,
                                            gw_q16 receiver)
{
    uint32_t tag = p->count++;
    struct pair_message *message = &p->messages[tag];
    message->policy = gw_finish_within(receiver);
    message->bound = sender < receiver ? sender : receiver;
    gw_test_fill(message->sent, sizeof(message->sent), 7 + tag);
    memset(message->received, PAIR_UNTOUCHED, sizeof(message->received));
    for (uint32_t i = 0; i < PAIR_PACKETS_MAX; i++) {
        message->notes[0][i] = (uint16_t)(i * 2654435761u >> 16);
        message->notes[1][i] = PAIR_UNTOUCHED;
    }
    message->send = (struct gw_send){
        .peer = 1, .bytes = bytes, .data = message->sent, .tag = tag, .bound = sender};
    message->send.notes = message->notes[0];
    message->expect = (struct gw_expect){.peer = 0,
                                         .tag = tag,
                                         .data = message->received,
                                         .bytes = bytes,
                                         .finish = receiver > 0 ? &message->policy : NULL,
                                         .arrived = message->arrived,
                                         .notes = message->notes[1],
                                         .packets_max = PAIR_PACKETS_MAX};
    return message;
}

/* Makes the hosts, and posts memory for all messages. */
static inline void pair_make(struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        p->cfg.address = i;
        gw_test_host_open(&p->hosts[i], &p->cfg, PAIR_PKTS);
        p->nodes[i] = gw_endpoint_node(p->hosts[i].endpoint);
        p->lines[i].busy_until = PAIR_START;
    }
}

static inline void pair_expect(struct pair *p, uint32_t tag)
{
    assert_int_equal(gw_endpoint_expect_part(p->hosts[1].endpoint, &p->messages[tag].expect), 0);
}

static inline uint32_t pair_send(struct pair *p, uint32_t tag)
{
    uint32_t flow;
    struct pair_message *message = &p->messages[tag];
    message->send.transport = &p->transport;
    message->send.path = gw_test_path(&p->cfg, PAIR_RATE_BPS, PAIR_BRTT);
    assert_int_equal(gw_endpoint_send(p->hosts[0].endpoint, &message->send, &flow, p->now), 0);
    pair_take_ready(p, 0);
    return flow;
}

/* All of that. */
static inline void pair_start(struct pair *p)
{
    pair_make(p);
    for (uint32_t i = 0; i < p->count; i++) {
        pair_expect(p, i);
        pair_send(p, i);
    }
}

static inline const struct gw_endpoint_stats *pair_stats(const struct pair *p, uint32_t host)
{
    return gw_endpoint_stats(p->hosts[host].endpoint);
}

static inline void pair_close(struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(pair_stats(p, i)->malformed == 0);
        gw_test_host_close(&p->hosts[i]);
    }
}

/* Both ends are done within the bound, and memory, marks and notes are as they should be. */
static inline void pair_check(const struct pair_message *message)
{
    uint32_t total = pair_total(message), count = 0;
    uint64_t bytes = 0;
    const struct gw_event *sent = &message->ends[0], *received = &message->ends[1];
    assert_true(message->has_ended[0] && message->has_ended[1]);
    assert_true(sent->kind == GW_EVENT_SENT && received->kind == GW_EVENT_RECEIVED);
    for (uint32_t place = 0; place < total; place++) {
        uint64_t at = (uint64_t)place * PAIR_MTU;
        uint64_t left = message->send.bytes - at;
        uint32_t size = (uint32_t)(left < PAIR_MTU ? left : PAIR_MTU);
        if (gw_bit_is_set(message->arrived, place)) {
            count++;
            bytes += size;
            assert_memory_equal(message->received + at, message->sent + at, size);
            assert_int_equal(message->notes[1][place], message->notes[0][place]);
        } else {
            for (uint32_t i = 0; i < size; i++)
                assert_int_equal(message->received[at + i], PAIR_UNTOUCHED);
            assert_int_equal(message->notes[1][place], PAIR_UNTOUCHED);
        }
    }
    for (uint64_t i = message->send.bytes; i < sizeof(message->received); i++)
        assert_int_equal(message->received[i], PAIR_UNTOUCHED);
    assert_true(bytes == received->bytes);
    assert_int_equal(count + received->missing, total);
    /* What the sender was told was within the bound, and it may only have become more. */
    assert_true(gw_finish_bound_allows(message->bound, total, sent->missing));
    assert_true(sent->bytes <= received->bytes && sent->missing >= received->missing);
    assert_true((message->send.bytes - bytes) << 16 <=
                (uint64_t)message->bound * message->send.bytes);
}

#endif
