/*
 * A worker that is given packets together, and asked for many, does as one that is given and asked
 * for one by one: two that are equal, on equal hosts, through random results and losses.
 */
#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "base/prng.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/worker.h"

enum {
    JOB = 4,
    EPOCH = 6,
    SERVER = 9,
    WORLD = 8,
    VALUES = 3,
    WINDOW = 64,
    SEQS = 1024, /* more than are out, and a power of two */
    ELEMENTS = 600 * VALUES,
    TENSORS = 3, /* in work */
    PKTS = 1024,
    MANY = 64, /* packets at a time */
    ROUNDS = 1500,
};

static const uint32_t first_seq = UINT32_MAX - 300; /* wraps soon */

/* One of the two. */
struct half {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_worker *worker;
    void *memory;
    float in[ELEMENTS], out[ELEMENTS];
    uint16_t counts[ELEMENTS];
    uint32_t longest; /* packets that left at once */
};

struct twins {
    struct half at_once, one_by_one;
    struct gw_prng prng;
    gw_time now;
    struct gw_pkt sent[SEQS]; /* the last packet of each fragment that is out */
    uint32_t next;            /* behind the last fragment that was sent */
    uint32_t in_work;         /* tensors */
};

static bool chance(struct twins *t, uint32_t percent)
{
    return gw_prng_below(&t->prng, 100) < percent;
}

static void half_open(struct half *half, const struct gw_worker_cfg *cfg, uint32_t train)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(1, 4 * VALUES);
    host.train = train;
    host.apps_max = 1;
    host.app_events_max = 4;
    gw_test_host_open(&half->host, &host, PKTS);
    half->node = gw_endpoint_node(half->host.endpoint);
    half->memory = gw_test_take(gw_worker_size(cfg));
    assert_int_equal(gw_worker_init(&half->worker, half->memory, cfg, half->host.endpoint), 0);
}

static void half_close(struct half *half)
{
    gw_worker_fini(half->worker);
    free(half->memory);
    gw_test_host_close(&half->host);
}

static void open_twins(struct twins *t, uint64_t seed)
{
    memset(t, 0, sizeof(*t));
    t->prng = gw_prng_derive(seed, 0);
    t->now = GW_US;
    t->next = first_seq;
    struct gw_worker_cfg cfg = {
        .job = JOB,
        .epoch = EPOCH,
        .world = WORLD,
        .server = SERVER,
        .bitmap = 1,
        .values = VALUES,
        .window_max = WINDOW,
        .window_initial = chance(t, 50) ? WINDOW : 8,
        .aggregators = 256,
        .tensors_max = TENSORS,
        .timeout = GW_MS,
        .congestion_control = chance(t, 60),
        .halving = chance(t, 80) ? GW_AGG_HALVE_TOGETHER : GW_AGG_HALVE_ALONE,
        .overtaking = chance(t, 80) ? GW_AGG_OVERTAKEN_COUNTED : GW_AGG_OVERTAKEN_IN_A_ROW,
        .probe = chance(t, 70) ? GW_MS / 2 : 0,
        .resend_gap = chance(t, 30),
        .keeps_results = chance(t, 70),
        .offers_exponents = chance(t, 30),
        .proactive = chance(t, 20),
        .scale_exponent = GW_SCALE_EXPONENT,
        .first_seq = first_seq,
        .kernels = gw_kernels_best(gw_cpu_features())};
    cfg.takes_bounds = cfg.keeps_results && chance(t, 40);
    const uint32_t trains[] = {1, 4, 7, 16, MANY};
    uint32_t train = trains[gw_prng_below(&t->prng, 5)];
    half_open(&t->at_once, &cfg, train);
    half_open(&t->one_by_one, &cfg, train);
}

/* Both get a tensor of the same length and values, of which some do not fit. */
static void begin_tensor(struct twins *t)
{
    struct half *halves[] = {&t->at_once, &t->one_by_one};
    uint64_t count = 1 + gw_prng_below(&t->prng, chance(t, 50) ? 20 * VALUES : ELEMENTS);
    bool has_bound = chance(t, 50);
    for (uint64_t i = 0; i < count; i++)
        t->at_once.in[i] = chance(t, 1) ? 1e9f : (float)gw_prng_below(&t->prng, 1000) / 1000;
    memcpy(t->one_by_one.in, t->at_once.in, sizeof(t->at_once.in));
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_tensor tensor = {.in = halves[i]->in,
                                   .out = halves[i]->out,
                                   .count = count,
                                   .tag = 5,
                                   .bound = has_bound ? GW_Q16_ONE / 4 : 0,
                                   .counts = halves[i]->counts};
        assert_int_equal(gw_worker_reduce(halves[i]->worker, &tensor, t->now), 0);
    }
    t->in_work++;
}

/* Lets at most `limit` packets leave, `max` at a time; returns how many did. */
static uint32_t drain(struct half *half, struct gw_pkt **pkts, uint32_t limit, uint32_t max,
                      gw_time now)
{
    uint32_t count = 0, result = GW_OUTPUT_MORE;
    half->node->ready_count = 0;
    while (result & GW_OUTPUT_MORE && count < limit) {
        uint32_t left = limit - count < max ? limit - count : max;
        result = gw_node_output(half->node, 0, pkts + count, left, now);
        uint32_t got = result & ~GW_OUTPUT_MORE;
        half->longest = got > half->longest ? got : half->longest;
        count += got;
    }
    return count;
}

static void assert_same_pkt(const struct twins *t, const struct gw_pkt *a, const struct gw_pkt *b)
{
    struct gw_pkt said[2] = {*a, *b};
    for (uint32_t i = 0; i < 2; i++)
        said[i].q.next = said[i].buf = 0;
    assert_memory_equal(&said[0], &said[1], sizeof(said[0]));
    assert_memory_equal(gw_buf_bytes(&t->at_once.host.bufs, a->buf),
                        gw_buf_bytes(&t->one_by_one.host.bufs, b->buf), 4 * a->agg.values);
}

/* What leaves is the same. */
static void send(struct twins *t)
{
    struct gw_pkt *a[2 * WINDOW], *b[2 * WINDOW];
    uint32_t limit = chance(t, 70) ? 2 * WINDOW : gw_prng_below(&t->prng, 20);
    uint32_t count = drain(&t->at_once, a, limit, MANY, t->now);
    assert_int_equal(drain(&t->one_by_one, b, limit, 1, t->now), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_same_pkt(t, a[i], b[i]);
        t->sent[a[i]->seq % SEQS] = *a[i];
        if (gw_seq_before(t->next, a[i]->seq + 1))
            t->next = a[i]->seq + 1;
        gw_pkt_release(&t->at_once.host.pool, a[i]);
        gw_pkt_release(&t->one_by_one.host.pool, b[i]);
    }
}

/* Changes something that a result says, seldom to what one cannot say. */
static void spoil(struct twins *t, struct gw_pkt *pkt)
{
    switch (gw_prng_below(&t->prng, 10)) {
    case 0:
        pkt->agg_flags ^= GW_AGG_ECN;
        break;
    case 1:
        pkt->agg_flags ^= GW_AGG_ECN | GW_AGG_MIXED;
        break;
    case 2:
        pkt->q.ecn = GW_ECN_CE;
        break;
    case 3:
        pkt->agg_flags ^= GW_AGG_UNICAST;
        break;
    case 4:
        pkt->agg_flags |= GW_AGG_COLLISION;
        pkt->agg.bitmap |= gw_prng_below(&t->prng, 256);
        break;
    case 5:
        pkt->agg.bitmap = gw_agg_result_word(1 + gw_prng_below(&t->prng, 5), chance(t, 50));
        break;
    case 6:
        pkt->scale = (uint8_t)gw_prng_next(&t->prng);
        break;
    case 7:
        pkt->agg_flags |= GW_AGG_REQUEST | (chance(t, 50) ? GW_AGG_RAW : 0);
        break;
    case 8:
        pkt->seq += gw_prng_below(&t->prng, 5) - 2;
        break;
    default:
        pkt->key += chance(t, 50);
        pkt->epoch += chance(t, 50);
    }
}

/* A packet of a host's own, with a payload. */
static struct gw_pkt *given_to(struct half *half, const struct gw_pkt *pkt, const int32_t *values)
{
    struct gw_pkt *own = gw_pkt_claim(&half->host.pool);
    *own = *pkt;
    own->buf = gw_buf_claim(&half->host.bufs);
    memcpy(gw_buf_bytes(&half->host.bufs, own->buf), values, VALUES * sizeof(*values));
    return own;
}

/* The usual result of a fragment. */
static struct gw_pkt result_of(const struct twins *t, uint32_t seq)
{
    const struct gw_pkt *sent = &t->sent[seq % SEQS];
    return (struct gw_pkt){.q = {.kind = GW_PKT_PARAM},
                           .src = SERVER,
                           .dst = 1,
                           .flow = JOB,
                           .key = sent->key,
                           .epoch = EPOCH,
                           .scale = GW_PKT_SCALE_NONE,
                           .agg_flags = sent->agg_flags & GW_AGG_RAW,
                           .seq = seq,
                           .agg = {.values = sent->agg.values}};
}

/* Results of some fragments from the expected one on, or from another; most of them are a run. */
static void receive(struct twins *t)
{
    struct gw_pkt *together[MANY], *single[MANY];
    uint32_t seq = gw_worker_expected(t->at_once.worker), out = t->next - seq, count = 0;
    uint32_t wanted = 1 + gw_prng_below(&t->prng, 40), spoilt = chance(t, 60) ? 0 : 8;
    bool are_alike = chance(t, 15); /* whatever they should be */
    if (out == 0 || out > WINDOW)
        return;
    seq += chance(t, 80) ? 0 : gw_prng_below(&t->prng, out + 4);
    struct gw_pkt first = result_of(t, seq);
    if (are_alike && chance(t, 80))
        spoil(t, &first);
    for (; count < wanted && gw_seq_before(seq, t->next + 8); seq++) {
        struct gw_pkt pkt = are_alike ? first : result_of(t, seq);
        pkt.seq = seq;
        int32_t values[VALUES];
        for (uint32_t i = 0; i < VALUES; i++)
            values[i] = (int32_t)gw_prng_below(&t->prng, 1 << 30);
        if (chance(t, spoilt))
            spoil(t, &pkt);
        if (chance(t, spoilt / 2))
            continue; /* lost */
        together[count] = given_to(&t->at_once, &pkt, values);
        single[count++] = given_to(&t->one_by_one, &pkt, values);
    }
    if (count == 0)
        return;
    gw_node_input(t->at_once.node, 0, together, count, t->now);
    for (uint32_t i = 0; i < count; i++)
        gw_node_input(t->one_by_one.node, 0, &single[i], 1, t->now);
}

static void wait(struct twins *t)
{
    struct half *halves[] = {&t->at_once, &t->one_by_one};
    t->now += chance(t, 97) ? gw_prng_below(&t->prng, 50) * GW_US : GW_MS;
    for (uint32_t i = 0; i < 2; i++)
        if (!gw_time_before(t->now, gw_node_deadline(halves[i]->node)))
            gw_node_expire(halves[i]->node, t->now);
}

/* Nothing that can be seen of the two differs. */
static void compare(struct twins *t)
{
    const struct half *a = &t->at_once, *b = &t->one_by_one;
    struct gw_event events[2][4];
    memset(events, 0, sizeof(events));
    uint32_t count = gw_endpoint_poll(a->host.endpoint, events[0], 4);
    assert_int_equal(gw_endpoint_poll(b->host.endpoint, events[1], 4), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(events[0][i].kind, GW_EVENT_REDUCED);
        assert_int_equal(events[1][i].kind, GW_EVENT_REDUCED);
        assert_int_equal(events[0][i].missing, events[1][i].missing);
        assert_int_equal(events[0][i].retransmits, events[1][i].retransmits);
        t->in_work--;
    }
    assert_true(gw_node_deadline(a->node) == gw_node_deadline(b->node));
    assert_true(gw_worker_window(a->worker) == gw_worker_window(b->worker));
    assert_int_equal(gw_worker_expected(a->worker), gw_worker_expected(b->worker));
    assert_memory_equal(gw_worker_stats(a->worker), gw_worker_stats(b->worker),
                        sizeof(struct gw_worker_stats));
    assert_int_equal(a->host.pool.free_count, b->host.pool.free_count);
}

static void worker__does_at_once_what_it_does_one_by_one(void **state)
{
    (void)state;
    uint32_t longest = 0;
    struct twins *t = gw_test_take(sizeof(*t));
    for (uint64_t seed = 0; seed < 60; seed++) {
        open_twins(t, seed);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            while (t->in_work < TENSORS)
                begin_tensor(t);
            send(t);
            receive(t);
            wait(t);
            compare(t);
        }
        assert_in_range(gw_worker_stats(t->at_once.worker)->results, 1000, UINT32_MAX);
        assert_memory_equal(t->at_once.out, t->one_by_one.out, sizeof(t->at_once.out));
        assert_memory_equal(t->at_once.counts, t->one_by_one.counts, sizeof(t->at_once.counts));
        longest = t->at_once.longest > longest ? t->at_once.longest : longest;
        half_close(&t->at_once);
        half_close(&t->one_by_one);
    }
    assert_in_range(longest, 16, MANY);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker__does_at_once_what_it_does_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
