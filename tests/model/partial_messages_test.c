/*
 * Messages that end when a part has arrived, from one endpoint to another by bad links under a
 * hand-cranked clock. Whatever is lost, doubled, trimmed or overtaken: the flow ends with the
 * packet that is enough, both ends say the same of it, what is marked as arrived holds data and all
 * else is untouched.
 *
 * Endpoints are called at arrivals and at deadlines and at no other time.
 */
#include "host.h"
#include "percent_policy.h"
#include "support.h"

#include "base/bits.h"
#include "base/prng.h"

enum {
    MTU = 100,
    HDR = 20,
    SPAN = 64,
    PKTS = 2048,
    MESSAGES = 3,
    PACKETS_MAX = 1000, /* of a message */
    ON_LINE_MAX = 2048,
    WORDS = (PACKETS_MAX + 63) / 64,
    STEPS_MAX = 4000000, /* guards against hanging only */
    ROUNDS = 300,
    UNTOUCHED = 0x55,
};

#define RATE_BPS UINT64_C(8000000000)
#define PKT_TIME ((gw_time)(MTU + HDR) * GW_NS) /* that a packet keeps a link busy */
#define LATENCY  (1 * GW_US)
#define BRTT     (2 * LATENCY + 2 * PKT_TIME) /* a packet and its ACK: some 18 packets */
#define START    (1000 * GW_MS)

/* What happens to packets, in percent unless it says otherwise. */
struct faults {
    uint32_t lost;       /* of any kind */
    uint32_t doubled;    /* likewise */
    uint32_t late;       /* likewise, by up to 16 packets */
    uint32_t trimmed;    /* data */
    uint32_t hole_every; /* data packets: one in so many never gets through; 0: none */
    uint32_t hole_trims; /* and is trimmed each time, else lost */
    uint32_t finals;     /* ACKs that end a flow: the first so many are lost */
};

struct item {
    gw_time at;
    struct gw_pkt pkt;
    unsigned char payload[MTU];
};

/* One direction. */
struct line {
    struct item items[ON_LINE_MAX];
    uint32_t count;
    gw_time busy_until;
    bool is_ready; /* the port was reported and is not pulled dry */
};

struct message {
    uint64_t bytes;
    struct gw_finish policy;
    uint32_t percent;
    unsigned char sent[PACKETS_MAX * MTU];
    unsigned char received[PACKETS_MAX * MTU];
    uint64_t arrived[WORDS];
    struct gw_event ends[2]; /* of the sender and of the receiver; kind UINT32_MAX: not yet */
    bool has_ended[2];
};

struct model {
    struct faults faults;
    struct gw_endpoint_cfg cfg;
    struct gw_test_host hosts[2];
    struct gw_node *nodes[2];
    struct line lines[2]; /* lines[i] leads from host i to the other */
    struct gw_transport transport;
    struct message messages[MESSAGES];
    uint32_t count; /* of messages */
    struct gw_prng prng;
    uint32_t finals_lost;
    gw_time now;
};

static struct model m;

static bool chance(uint32_t percent)
{
    return percent && gw_prng_below(&m.prng, 100) < percent;
}

static uint32_t total_of(const struct message *message)
{
    return (uint32_t)((message->bytes + MTU - 1) / MTU);
}

/* ---- The links. ---- */

static void take_ready(uint32_t host)
{
    struct gw_node *node = m.nodes[host];
    m.lines[host].is_ready |= node->ready_count > 0;
    node->ready_count = 0;
}

static bool is_final(const struct gw_pkt *pkt)
{
    return pkt->q.kind == GW_PKT_ACK && pkt->q.flags & GW_PKT_GIVEN_UP &&
           pkt->ack.cum == total_of(&m.messages[pkt->flow & UINT16_MAX]);
}

static bool is_hole(const struct gw_pkt *pkt)
{
    return m.faults.hole_every && pkt->q.kind == GW_PKT_DATA &&
           pkt->seq % m.faults.hole_every == m.faults.hole_every / 2;
}

static bool is_lost(const struct gw_pkt *pkt)
{
    if (is_final(pkt) && m.finals_lost < m.faults.finals)
        return ++m.finals_lost;
    return chance(m.faults.lost) || (is_hole(pkt) && !m.faults.hole_trims);
}

static void append(struct line *line, const struct item *item)
{
    assert_true(line->count < ON_LINE_MAX);
    struct item *copy = &line->items[line->count++];
    *copy = *item;
    copy->at += chance(m.faults.late) ? gw_prng_below(&m.prng, 16) * PKT_TIME : 0;
}

static void depart(uint32_t host, struct gw_pkt *pkt)
{
    struct gw_pkt_pool *pool = &m.hosts[host].pool;
    struct item item = {.at = m.now + PKT_TIME + LATENCY, .pkt = *pkt};
    if (pkt->buf != GW_BUF_NONE)
        memcpy(item.payload, gw_buf_bytes(pool->bufs, pkt->buf), pkt->data.len);
    gw_pkt_release(pool, pkt);
    if (is_lost(&item.pkt))
        return;
    if (item.pkt.q.kind == GW_PKT_DATA && (chance(m.faults.trimmed) || is_hole(&item.pkt))) {
        item.pkt.q.flags |= GW_PKT_TRIMMED;
        item.pkt.q.size = HDR;
        item.pkt.buf = GW_BUF_NONE;
    }
    append(&m.lines[host], &item);
    if (chance(m.faults.doubled))
        append(&m.lines[host], &item);
}

static void pull(uint32_t host)
{
    struct line *line = &m.lines[host];
    while (line->is_ready && !gw_time_before(m.now, line->busy_until)) {
        struct gw_pkt *pkt;
        uint32_t result = gw_node_output(m.nodes[host], 0, &pkt, 1, m.now);
        line->is_ready = result & GW_OUTPUT_MORE;
        if (!(result & ~GW_OUTPUT_MORE))
            break;
        bool is_data = pkt->q.kind == GW_PKT_DATA;
        line->busy_until = m.now + (is_data ? PKT_TIME : PKT_TIME / 6);
        depart(host, pkt);
    }
}

static void arrive(uint32_t host)
{
    struct line *line = &m.lines[host];
    struct gw_pkt_pool *pool = &m.hosts[1 - host].pool;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        struct item *item = &line->items[i];
        if (gw_time_before(m.now, item->at)) {
            line->items[kept++] = *item;
            continue;
        }
        struct gw_pkt *pkt = gw_pkt_claim(pool);
        assert_non_null(pkt);
        bool has_payload = item->pkt.buf != GW_BUF_NONE;
        *pkt = item->pkt;
        pkt->buf = has_payload ? gw_buf_claim(pool->bufs) : GW_BUF_NONE;
        if (has_payload)
            memcpy(gw_buf_bytes(pool->bufs, pkt->buf), item->payload, MTU);
        gw_node_input(m.nodes[1 - host], 0, &pkt, 1, m.now);
        take_ready(1 - host);
    }
    line->count = kept;
}

/* ---- The run. ---- */

static void take_events(uint32_t host)
{
    struct gw_event event;
    while (gw_endpoint_poll(m.hosts[host].endpoint, &event, 1)) {
        assert_true(event.tag < m.count && !m.messages[event.tag].has_ended[host]);
        m.messages[event.tag].ends[host] = event;
        m.messages[event.tag].has_ended[host] = true;
    }
}

static gw_time sooner(gw_time a, gw_time b)
{
    return gw_deadline_before(a, b) ? a : b;
}

static gw_time next_step(void)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; i < 2; i++) {
        const struct line *line = &m.lines[i];
        next = sooner(next, gw_node_deadline(m.nodes[i]));
        if (line->is_ready)
            next = sooner(next, line->busy_until);
        for (uint32_t j = 0; j < line->count; j++)
            next = sooner(next, line->items[j].at);
    }
    return next;
}

/* Runs until nothing is left to do; returns the time that it took until the last event. */
static gw_time run(void)
{
    gw_time next;
    for (uint32_t steps = 0; (next = next_step()) != GW_TIME_NEVER; steps++) {
        assert_true(steps < STEPS_MAX);
        if (gw_time_before(m.now, next))
            m.now = next;
        for (uint32_t i = 0; i < 2; i++) {
            arrive(i);
            gw_node_expire(m.nodes[i], m.now);
            take_ready(i);
        }
        pull(0);
        pull(1);
        take_events(0);
        take_events(1);
    }
    gw_time last = START;
    for (uint32_t i = 0; i < 2 * m.count; i++)
        if (m.messages[i / 2].has_ended[i % 2] &&
            gw_time_before(last, m.messages[i / 2].ends[i % 2].at))
            last = m.messages[i / 2].ends[i % 2].at;
    return last - START;
}

static void model_open(const struct faults *faults, const char *cc, uint64_t seed)
{
    memset(&m, 0, sizeof(m));
    m.faults = *faults;
    m.prng = gw_prng_derive(seed, 1);
    m.now = START;
    m.transport = gw_test_transport(cc, "spray", "trim");
    m.cfg = gw_test_host_cfg(0, MTU);
    m.cfg.hdr = HDR;
    m.cfg.span_max = SPAN;
    m.cfg.ack_delay = GW_US;
}

/* A message of `bytes`, of which `percent` of the packets are enough; 100: no policy. */
static void add_message(uint64_t bytes, uint32_t percent)
{
    struct message *message = &m.messages[m.count];
    message->bytes = bytes;
    message->percent = percent;
    message->policy = percent_policy(percent);
    gw_test_fill(message->sent, sizeof(message->sent), 7 + m.count);
    memset(message->received, UNTOUCHED, sizeof(message->received));
    m.count++;
}

static void start(void)
{
    struct gw_path path = gw_test_path(&m.cfg, RATE_BPS, BRTT);
    if (m.transport.grant)
        m.transport.grant->plan(m.transport.grant_cfg.bytes, &path, &m.cfg.grant);
    for (uint32_t i = 0; i < 2; i++) {
        m.cfg.address = i;
        gw_test_host_open(&m.hosts[i], &m.cfg, PKTS);
        m.nodes[i] = gw_endpoint_node(m.hosts[i].endpoint);
        m.lines[i].busy_until = START;
    }
    for (uint32_t i = 0; i < m.count; i++) {
        struct message *message = &m.messages[i];
        uint32_t flow;
        struct gw_expect expect = {.peer = 0,
                                   .tag = i,
                                   .data = message->received,
                                   .bytes = message->bytes,
                                   .finish = message->percent < 100 ? &message->policy : NULL,
                                   .arrived = message->arrived,
                                   .packets_max = PACKETS_MAX};
        struct gw_send send = {.peer = 1,
                               .bytes = message->bytes,
                               .data = message->sent,
                               .tag = i,
                               .bound = GW_Q16_ONE,
                               .transport = &m.transport,
                               .path = path};
        assert_int_equal(gw_endpoint_expect_part(m.hosts[1].endpoint, &expect), 0);
        assert_int_equal(gw_endpoint_send(m.hosts[0].endpoint, &send, &flow, START), 0);
        assert_int_equal(flow & UINT16_MAX, i);
    }
    take_ready(0);
}

static void model_close(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(gw_endpoint_stats(m.hosts[i].endpoint)->malformed == 0);
        gw_test_host_close(&m.hosts[i]);
    }
}

/* Both ends are done and agree, and memory is as the marks say. */
static void check_message(const struct message *message)
{
    uint32_t total = total_of(message), count = 0;
    uint64_t bytes = 0;
    const struct gw_event *sent = &message->ends[0], *received = &message->ends[1];
    assert_true(message->has_ended[0] && message->has_ended[1]);
    assert_true(sent->kind == GW_EVENT_SENT && received->kind == GW_EVENT_RECEIVED);
    assert_true(sent->bytes == received->bytes);
    assert_int_equal(sent->missing, received->missing);
    for (uint32_t seq = 0; seq < total; seq++) {
        uint64_t at = (uint64_t)seq * MTU;
        uint32_t size = (uint32_t)(message->bytes - at < MTU ? message->bytes - at : MTU);
        if (gw_bit_is_set(message->arrived, seq)) {
            count++;
            bytes += size;
            assert_memory_equal(message->received + at, message->sent + at, size);
        } else {
            for (uint32_t i = 0; i < size; i++)
                assert_int_equal(message->received[at + i], UNTOUCHED);
        }
    }
    assert_true(bytes == received->bytes);
    /* Not one packet more than is enough, and none beyond the end. */
    assert_int_equal(count, percent_needed(total, message->percent));
    assert_int_equal(count + received->missing, total);
    for (uint64_t i = message->bytes; i < sizeof(message->received); i++)
        assert_int_equal(message->received[i], UNTOUCHED);
}

/* ---- Tests. ---- */

/* Any faults, any coalescing, with a window, credit, or both. */
static void partial_messages__end_alike_at_both_ends(void **state)
{
    (void)state;
    static const char *const ccs[] = {"smartt", "eqds", "eqds+smartt"};
    static const uint32_t percents[] = {100, 99, 90, 90, 50, 1};
    uint64_t given_up = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct gw_prng shape = gw_prng_derive(seed, 2);
        const struct faults faults = {.lost = gw_prng_below(&shape, 2) * gw_prng_below(&shape, 20),
                                      .doubled = gw_prng_below(&shape, 6),
                                      .late = gw_prng_below(&shape, 20),
                                      .trimmed =
                                          gw_prng_below(&shape, 2) * gw_prng_below(&shape, 30),
                                      .finals = gw_prng_below(&shape, 4)};
        print_message("seed %u\n", (unsigned)seed);
        model_open(&faults, ccs[gw_prng_below(&shape, GW_COUNT_OF(ccs))], seed);
        m.cfg.ack_every =
            gw_prng_below(&shape, 2) ? 1 : 2 + gw_prng_below(&shape, GW_ACK_EVERY_MAX - 1);
        m.cfg.train = 1 + gw_prng_below(&shape, 4);
        for (uint32_t i = 0; i < MESSAGES; i++)
            add_message(1 + gw_prng_below(&shape, PACKETS_MAX * MTU),
                        percents[gw_prng_below(&shape, GW_COUNT_OF(percents))]);
        start();
        run();
        for (uint32_t i = 0; i < MESSAGES; i++)
            check_message(&m.messages[i]);
        given_up += gw_endpoint_stats(m.hosts[1].endpoint)->given_up;
        model_close();
    }
    assert_true(given_up > 100);
}

/* Time of a message of many spans with 90 % and a fixed window of `window` packets. */
static gw_time time_of(const struct faults *faults, const char *window)
{
    model_open(faults, "fixed", 1);
    assert_int_equal(gw_algo_set(&m.transport.cc->algo, m.transport.cc_cfg.bytes, "window", window),
                     0);
    add_message(PACKETS_MAX * MTU, 90);
    start();
    gw_time time = run();
    check_message(&m.messages[0]);
    model_close();
    return time;
}

/* A packet of each span never gets through, and the link is as busy as if it were not wanted: only
 * the holes themselves take time. */
static void partial_messages__are_not_held_up_by_holes(void **state)
{
    (void)state;
    static const struct faults none = {.lost = 0};
    static const struct faults holes[] = {
        {.hole_every = SPAN},
        {.hole_every = SPAN, .hole_trims = 1},
        {.hole_every = 20, .hole_trims = 1},
    };
    gw_time clean = time_of(&none, "2400"); /* 24 packets: the link is always busy */
    assert_in_range(clean, 900 * PKT_TIME, 900 * PKT_TIME + 2 * BRTT);
    for (uint32_t i = 0; i < GW_COUNT_OF(holes); i++) {
        uint32_t lost = 900 / holes[i].hole_every + 1;
        /* A hole is sent, and sent again at most once before it is let go. */
        assert_in_range(time_of(&holes[i], "2400"), clean, clean + 2 * lost * PKT_TIME + BRTT);
    }
}

/* The same holes without a policy: the message never ends but by the stall. */
static void partial_messages__need_a_policy(void **state)
{
    (void)state;
    static const struct faults holes = {.hole_every = SPAN};
    model_open(&holes, "smartt", 1);
    m.cfg.stall = 100 * GW_MS;
    add_message(PACKETS_MAX * MTU, 100);
    start();
    run();
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(m.messages[0].ends[i].kind, GW_EVENT_FAILED);
    model_close();
}

/* The last word is lost, again and again: it is said again as long as it is asked for. */
static void partial_messages__repeat_the_last_word(void **state)
{
    (void)state;
    static const char *const ccs[] = {"smartt", "eqds"};
    for (uint32_t i = 0; i < 2 * GW_COUNT_OF(ccs); i++) {
        const struct faults faults = {.finals = 40};
        model_open(&faults, ccs[i / 2], 1);
        m.cfg.ack_every = i % 2 ? 16 : 1;
        add_message(200 * MTU, 90);
        start();
        run();
        check_message(&m.messages[0]);
        assert_int_equal(m.finals_lost, 40);
        model_close();
    }
}

/* If it never comes, the sender has stalled in the end; it cannot know what has arrived. */
static void partial_messages__stall_without_the_last_word(void **state)
{
    (void)state;
    const struct faults faults = {.finals = UINT32_MAX};
    model_open(&faults, "smartt", 1);
    m.cfg.stall = 50 * GW_MS;
    add_message(200 * MTU, 90);
    start();
    run();
    assert_int_equal(m.messages[0].ends[0].kind, GW_EVENT_FAILED);
    assert_int_equal(m.messages[0].ends[1].kind, GW_EVENT_RECEIVED);
    assert_int_equal(m.messages[0].ends[1].missing, 20);
    model_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_messages__end_alike_at_both_ends),
        cmocka_unit_test(partial_messages__are_not_held_up_by_holes),
        cmocka_unit_test(partial_messages__need_a_policy),
        cmocka_unit_test(partial_messages__repeat_the_last_word),
        cmocka_unit_test(partial_messages__stall_without_the_last_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
