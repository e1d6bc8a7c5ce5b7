/*
 * Two endpoints and two bad links under a hand-cranked clock: packets are lost, doubled, trimmed,
 * marked and overtaken, messages go both ways, some before there is memory for them, and everything
 * must still arrive intact.
 *
 * The driver calls the verbs at arrivals and at deadlines and at no other time, so a deadline that
 * is late would stop a run for ever. Then the same run is repeated in other circumstances, and must
 * leave exactly the same trace of packets and events: with calls that carry other numbers of
 * packets, with useless calls of expire, and at the wrap of the clock.
 */
#include "host.h"
#include "support.h"

#include "base/prng.h"

enum {
    MTU = 100,
    HDR = 20,
    PKTS = 1024,
    MESSAGES = 3, /* each way */
    BYTES_MAX = 120 * MTU,
    ON_LINE_MAX = 2048,
    BURST = 6,           /* packets that a link takes at once */
    STEPS_MAX = 2000000, /* guards against hanging only */
    ROUNDS = 40,
    START_UNIT = 4096, /* ps; send times are kept in such ticks, so starts are multiples of it */
};

#define RATE_BPS UINT64_C(8000000000)
#define GRID     (100 * GW_NS) /* arrivals are rounded up to it, so that several coincide */
#define LATENCY  (2 * GW_US)
#define BRTT     (5 * GW_US)

/* How a run is driven, which must not matter. */
struct driving {
    bool splits;        /* calls carry a random number of packets, else one */
    bool expires_often; /* expire is called at every step */
    gw_time start;
};

struct item {
    gw_time at;
    struct gw_pkt pkt;
    unsigned char payload[MTU];
};

/* One direction. */
struct line {
    struct item *items; /* in the order of sending */
    uint32_t count;
    gw_time busy_until;
    bool is_ready; /* the sending port was reported and not yet pulled dry */
};

struct pair {
    struct driving driving;
    struct gw_endpoint_cfg cfg;
    struct gw_test_host hosts[2];
    struct gw_node *nodes[2];
    struct line lines[2]; /* lines[i] leads from host i to the other */
    unsigned char *sent[2][MESSAGES], *received[2][MESSAGES];
    uint64_t bytes[2][MESSAGES];
    gw_time late[2][MESSAGES]; /* since the start: when its memory is posted; NEVER: it is */
    struct gw_transport transport;
    struct gw_prng faults; /* the same in every driving of a round */
    struct gw_prng split;
    uint64_t trace; /* of all that left and all that happened */
    uint32_t events;
    gw_time now;
};

static uint64_t total_kept; /* packets that came before their memory */

static void note(struct pair *p, uint64_t value)
{
    p->trace = gw_mix64(p->trace ^ value);
}

static void pair_open(struct pair *p, const struct driving *driving, uint64_t seed)
{
    struct gw_prng shape = gw_prng_derive(seed, 1);
    *p = (struct pair){.driving = *driving,
                       .faults = gw_prng_derive(seed, 2),
                       .split = gw_prng_derive(seed, 3),
                       .now = driving->start};
    static const char *const lbs[] = {"reps", "spray", "ecmp"};
    uint32_t lb = gw_prng_below(&shape, GW_COUNT_OF(lbs));
    p->transport =
        gw_test_transport("smartt", lbs[lb], gw_prng_below(&shape, 2) ? "trim" : "timeout");
    p->cfg = gw_test_host_cfg(0, MTU);
    p->cfg.hdr = HDR;
    p->cfg.span_max = 64;
    p->cfg.ack_every =
        gw_prng_below(&shape, 2) ? 1 : 2 + gw_prng_below(&shape, GW_ACK_EVERY_MAX - 1);
    p->cfg.ack_delay = GW_US;
    p->cfg.train = 1 + gw_prng_below(&shape, 4);
    p->cfg.early_packets = gw_prng_below(&shape, 4) * gw_prng_below(&shape, 40);
    for (uint32_t i = 0; i < 2; i++) {
        p->cfg.address = i;
        gw_test_host_open(&p->hosts[i], &p->cfg, PKTS);
        p->nodes[i] = gw_endpoint_node(p->hosts[i].endpoint);
        p->lines[i].items = malloc(ON_LINE_MAX * sizeof(struct item));
        p->lines[i].busy_until = p->now;
        assert_non_null(p->lines[i].items);
    }
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t m = 0; m < MESSAGES; m++) {
            p->bytes[i][m] = gw_prng_below(&shape, 4) ? gw_prng_below(&shape, BYTES_MAX) : m;
            p->sent[i][m] = malloc(BYTES_MAX);
            p->received[i][m] = calloc(1, BYTES_MAX);
            assert_non_null(p->sent[i][m]);
            assert_non_null(p->received[i][m]);
            p->late[i][m] = gw_prng_below(&shape, 2) ? gw_prng_below(&shape, 100) * GW_US : 0;
            gw_test_fill(p->sent[i][m], BYTES_MAX, seed * 100 + i * 10 + m);
        }
}

static void take_ready(struct pair *p, uint32_t host)
{
    struct gw_node *node = p->nodes[host];
    assert_true(node->ready_count <= 1);
    if (node->ready_count) {
        assert_false(p->lines[host].is_ready);
        p->lines[host].is_ready = true;
    }
    node->ready_count = 0;
}

/* Posts memory whose time has come. */
static void post(struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t m = 0; m < MESSAGES; m++) {
            if (p->late[i][m] > p->now - p->driving.start)
                continue;
            p->late[i][m] = GW_TIME_NEVER;
            assert_int_equal(gw_endpoint_expect(p->hosts[1 - i].endpoint, i, m,
                                                p->received[1 - i][m], p->bytes[i][m]),
                             0);
            take_ready(p, 1 - i);
        }
}

static void start_messages(struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t m = 0; m < MESSAGES; m++) {
            uint32_t flow;
            struct gw_send send = {.peer = 1 - i,
                                   .bytes = p->bytes[i][m],
                                   .data = p->sent[i][m],
                                   .tag = m,
                                   .class = (uint8_t)(m % 2),
                                   .transport = &p->transport,
                                   .path = gw_test_path(&p->cfg, RATE_BPS, BRTT)};
            assert_int_equal(gw_endpoint_send(p->hosts[i].endpoint, &send, &flow, p->now), 0);
            take_ready(p, i);
        }
}

static uint32_t batch(struct pair *p, uint32_t most)
{
    return p->driving.splits ? 1 + gw_prng_below(&p->split, most) : 1;
}

static void append(struct line *line, const struct item *item, gw_time delay)
{
    assert_true(line->count < ON_LINE_MAX);
    struct item *copy = &line->items[line->count++];
    *copy = *item;
    copy->at = (item->at + delay + GRID - 1) / GRID * GRID;
}

/* Puts a packet on the line, or loses, marks, trims, doubles or delays it. */
static void depart(struct pair *p, uint32_t host, struct gw_pkt *pkt)
{
    struct line *line = &p->lines[host];
    struct gw_pkt_pool *pool = &p->hosts[host].pool;
    /* The clock wraps: arrivals are kept as times since the start. */
    struct item item = {.at = p->now - p->driving.start + LATENCY, .pkt = *pkt};
    bool is_data = pkt->q.kind == GW_PKT_DATA;
    if (pkt->buf != GW_BUF_NONE)
        memcpy(item.payload, gw_buf_bytes(pool->bufs, pkt->buf), pkt->data.len);
    note(p, pkt->q.size | (uint64_t)pkt->q.class << 16 | (uint64_t)pkt->q.flags << 24 |
                (uint64_t)pkt->q.kind << 32 | (uint64_t)pkt->q.ecn << 40 | (uint64_t)host << 48);
    note(p, (uint64_t)pkt->flow << 32 | pkt->seq);
    note(p, (uint64_t)pkt->entropy << 16 | pkt->echo_entropy);
    note(p, pkt->sent_at - p->driving.start);
    note(p, pkt->ack.cum ^ (uint64_t)pkt->ack.mask[0] << 32);
    note(p, pkt->ack.mask[1]);
    note(p, p->now - p->driving.start);
    gw_pkt_release(pool, pkt);
    uint32_t fate = gw_prng_below(&p->faults, 100);
    if (fate < 5)
        return;
    if (is_data && fate < 15)
        item.pkt.q.ecn = GW_ECN_CE;
    if (is_data && fate >= 15 && fate < 20) {
        item.pkt.q.flags |= GW_PKT_TRIMMED;
        item.pkt.q.size = HDR;
        item.pkt.buf = GW_BUF_NONE;
    }
    append(line, &item, fate >= 20 && fate < 25 ? gw_prng_below(&p->faults, 20) * GW_US : 0);
    if (fate >= 25 && fate < 30)
        append(line, &item, gw_prng_below(&p->faults, 20) * GW_US);
}

/* A link that is free takes a burst, in as many calls as the driving says. */
static void pull(struct pair *p, uint32_t host)
{
    struct line *line = &p->lines[host];
    uint32_t left = BURST;
    while (line->is_ready && left > 0 && !gw_time_before(p->now, line->busy_until)) {
        struct gw_pkt *pkts[BURST];
        uint32_t max = batch(p, left);
        uint32_t result = gw_node_output(p->nodes[host], 0, pkts, max, p->now);
        uint32_t count = result & ~GW_OUTPUT_MORE;
        assert_true(count <= max && (count > 0 || !(result & GW_OUTPUT_MORE)));
        for (uint32_t i = 0; i < count; i++) {
            assert_true(pkts[i]->dst == pkts[0]->dst && pkts[i]->entropy == pkts[0]->entropy);
            assert_true(pkts[i]->q.class == pkts[0]->q.class && pkts[i]->q.ecn == pkts[0]->q.ecn);
            depart(p, host, pkts[i]);
        }
        line->is_ready = result & GW_OUTPUT_MORE;
        left -= count;
    }
    if (left < BURST)
        line->busy_until = p->now + (BURST - left) * 120 * GW_NS;
}

/* Gives the other host all packets that are due, in batches. */
static void arrive(struct pair *p, uint32_t host)
{
    struct line *line = &p->lines[host];
    uint32_t other = 1 - host, kept = 0, filled = 0, size = batch(p, 8);
    struct gw_pkt *pkts[8];
    gw_time since = p->now - p->driving.start;
    for (uint32_t i = 0; i < line->count; i++) {
        struct item *item = &line->items[i];
        if (item->at > since) {
            line->items[kept++] = *item;
            continue;
        }
        struct gw_pkt_pool *pool = &p->hosts[other].pool;
        struct gw_pkt *pkt = gw_pkt_claim(pool);
        assert_non_null(pkt);
        bool has_payload = item->pkt.buf != GW_BUF_NONE;
        *pkt = item->pkt;
        pkt->buf = GW_BUF_NONE;
        if (has_payload) {
            pkt->buf = gw_buf_claim(pool->bufs);
            assert_int_not_equal(pkt->buf, GW_BUF_NONE);
            memcpy(gw_buf_bytes(pool->bufs, pkt->buf), item->payload, MTU);
        }
        pkts[filled++] = pkt;
        if (filled == size) {
            gw_node_input(p->nodes[other], 0, pkts, filled, p->now);
            take_ready(p, other);
            filled = 0;
            size = batch(p, 8);
        }
    }
    line->count = kept;
    if (filled)
        gw_node_input(p->nodes[other], 0, pkts, filled, p->now);
    take_ready(p, other);
}

static void take_events(struct pair *p, uint32_t host)
{
    struct gw_event event;
    while (gw_endpoint_poll(p->hosts[host].endpoint, &event, 1)) {
        assert_true(event.kind == GW_EVENT_SENT || event.kind == GW_EVENT_RECEIVED);
        note(p, (uint64_t)event.kind << 32 | event.tag | (uint64_t)host << 48);
        note(p, event.bytes << 32 ^ event.retransmits);
        note(p, event.at - p->driving.start);
        p->events++;
    }
}

/* The next time at which anything must be done, since the start. */
static gw_time next_step(const struct pair *p)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; i < 2; i++) {
        const struct line *line = &p->lines[i];
        gw_time deadline = gw_node_deadline(p->nodes[i]);
        if (deadline != GW_TIME_NEVER && deadline - p->driving.start < next)
            next = deadline - p->driving.start;
        if (line->is_ready && line->busy_until - p->driving.start < next)
            next = line->busy_until - p->driving.start;
        for (uint32_t m = 0; m < MESSAGES; m++)
            if (p->late[i][m] < next)
                next = p->late[i][m];
        for (uint32_t j = 0; j < line->count; j++)
            if (line->items[j].at < next)
                next = line->items[j].at;
    }
    return next;
}

static void step(struct pair *p)
{
    post(p);
    for (uint32_t i = 0; i < 2; i++)
        arrive(p, i);
    for (uint32_t i = 0; i < 2; i++) {
        gw_time deadline = gw_node_deadline(p->nodes[i]);
        if (p->driving.expires_often ||
            (deadline != GW_TIME_NEVER && !gw_time_before(p->now, deadline)))
            gw_node_expire(p->nodes[i], p->now);
        take_ready(p, i);
        take_events(p, i);
    }
    for (uint32_t i = 0; i < 2; i++)
        pull(p, i);
}

/* Every message ends on both sides; empty ones are not seen by the receiver. */
static uint32_t events_expected(const struct pair *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t m = 0; m < MESSAGES; m++)
            count += p->bytes[i][m] ? 2 : 1;
    return count;
}

static uint64_t run(const struct driving *driving, uint64_t seed)
{
    struct pair p;
    pair_open(&p, driving, seed);
    start_messages(&p);
    step(&p);
    uint32_t steps = 0;
    for (gw_time next; (next = next_step(&p)) != GW_TIME_NEVER; steps++) {
        assert_true(steps < STEPS_MAX);
        if (p.now - driving->start < next)
            p.now = driving->start + next;
        step(&p);
    }
    if (p.events != events_expected(&p))
        fail_msg("seed %u: %u of %u events", (unsigned)seed, p.events, events_expected(&p));
    for (uint32_t i = 0; i < 2; i++) {
        const struct gw_endpoint_stats *stats = gw_endpoint_stats(p.hosts[i].endpoint);
        assert_true(stats->malformed == 0 && stats->pool_empty == 0);
        total_kept += stats->kept;
        note(&p, stats->retransmits << 32 ^ stats->spurious << 16 ^ stats->duplicates);
        for (uint32_t m = 0; m < MESSAGES; m++) {
            assert_memory_equal(p.sent[i][m], p.received[1 - i][m], p.bytes[i][m]);
            free(p.sent[i][m]);
            free(p.received[1 - i][m]);
        }
        gw_test_host_close(&p.hosts[i]);
        free(p.lines[i].items);
    }
    return p.trace;
}

static const struct driving plain = {.start = 1000 * START_UNIT};

/* Deadlines are all that the driver goes by, so none may be late. */
static void endpoint_pair__delivers_everything(void **state)
{
    (void)state;
    uint64_t first = run(&plain, 1);
    for (uint64_t seed = 2; seed < 2 + ROUNDS; seed++)
        assert_true(run(&plain, seed) != first);
    assert_true(run(&plain, 1) == first);
    assert_true(total_kept > 20 * ROUNDS);
}

static void endpoint_pair__does_not_depend_on_batches(void **state)
{
    (void)state;
    struct driving split = plain;
    split.splits = true;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        assert_true(run(&plain, seed) == run(&split, seed));
}

static void endpoint_pair__does_not_mind_expire(void **state)
{
    (void)state;
    struct driving often = plain;
    often.expires_often = true;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        assert_true(run(&plain, seed) == run(&often, seed));
}

/* An hour before the wrap, and so shortly before it that the run crosses it. */
static void endpoint_pair__does_not_see_the_wrap(void **state)
{
    (void)state;
    struct driving hour = plain, soon = plain;
    hour.start = (gw_time)0 - 3600 * GW_S / START_UNIT * START_UNIT;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint64_t expected = run(&plain, seed);
        soon.start = (gw_time)0 - seed * 2000 * START_UNIT; /* 8 us and more */
        assert_true(run(&hour, seed) == expected);
        assert_true(run(&soon, seed) == expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoint_pair__delivers_everything),
        cmocka_unit_test(endpoint_pair__does_not_depend_on_batches),
        cmocka_unit_test(endpoint_pair__does_not_mind_expire),
        cmocka_unit_test(endpoint_pair__does_not_see_the_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
