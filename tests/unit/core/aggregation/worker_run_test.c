/*
 * A worker that is given packets together, and asked for many, does as one that is given and asked
 * for one by one: two that are equal, on equal hosts, through random results, requests, losses and
 * epochs. It looks into both after each round.
 */
#include "host.h"
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "base/prng.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/worker_impl.h"

enum {
    JOB = 4,
    FIRST_EPOCH = 6,
    SERVER = 9,
    WORLD = 8,
    VALUES = 3,
    WINDOW = 64,
    SEQS = 1024, /* more than are out, and a power of two */
    ELEMENTS = 600 * VALUES,
    TENSORS = 3, /* in work */
    MANY = 64,   /* packets at a time */
    FEW = 120,   /* packets of a host: at times there is none */
    PKTS = 1024,
    SEEDS = 80,
    ROUNDS = 1500,
};

/* One of the two. */
struct half {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_worker *worker;
    void *memory;
    float in[ELEMENTS], out[ELEMENTS];
    uint16_t counts[ELEMENTS];
};

struct twins {
    struct half at_once, one_by_one;
    struct gw_prng prng;
    gw_time now;
    uint16_t epoch;
    uint32_t first;           /* fragment of the job's calls */
    struct gw_pkt sent[SEQS]; /* the last gradient of each fragment */
    uint32_t next;            /* behind the last fragment that was sent */
    uint32_t in_work;         /* tensors */
    bool is_paused;
};

/* What was done together by the one, in all. */
static struct {
    uint32_t extended; /* packets that followed another */
    uint32_t joint;    /* results that were taken while another was */
    uint32_t owed, early, failed, raw;
} seen;

/* Of the one that does much together: what its ops and kernels are, and what it expected last. */
static struct gw_sender_ops watched_ops;
static const struct gw_kernels *kernels;
static struct gw_kernels watched_kernels;
static const struct gw_worker *watched;
static uint32_t expected_then;

static uint32_t watch_extend(struct gw_endpoint *ep, struct gw_sender *sender, struct gw_pkt **pkts,
                             uint32_t max, gw_time now)
{
    uint32_t count = gw_worker_sender_ops.extend(ep, sender, pkts, max, now);
    assert_in_range(count, 1, max);
    seen.extended += count - 1;
    return count;
}

static void watch_dequantise(void *x, const void *wire, uint32_t count,
                             const struct gw_scale *scale)
{
    seen.joint += watched->out.expected == expected_then && watched->out.ahead == 0;
    expected_then = watched->out.expected;
    kernels->dequantise[GW_DTYPE_F32](x, wire, count, scale);
}

static bool chance(struct twins *t, uint32_t percent)
{
    return gw_prng_below(&t->prng, 100) < percent;
}

static void half_open(struct half *half, const struct gw_worker_cfg *cfg, uint32_t train,
                      uint32_t pkts)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(1, 4 * VALUES);
    host.train = train;
    host.apps_max = 1;
    host.announcers_max = 2;
    host.app_events_max = TENSORS;
    gw_test_host_open(&half->host, &host, pkts);
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

static struct gw_worker_cfg usual_cfg(uint32_t first_seq)
{
    return (struct gw_worker_cfg){.job = JOB,
                                  .epoch = FIRST_EPOCH,
                                  .world = WORLD,
                                  .server = SERVER,
                                  .bitmap = 1,
                                  .values = VALUES,
                                  .window_max = WINDOW,
                                  .window_initial = WINDOW,
                                  .aggregators = 256,
                                  .tensors_max = TENSORS,
                                  .timeout = GW_MS,
                                  .scale_exponent = GW_SCALE_EXPONENT,
                                  .first_seq = first_seq,
                                  .kernels = kernels};
}

/* One draw after the other, so that all compilers draw the same. */
static struct gw_worker_cfg draw_cfg(struct twins *t)
{
    struct gw_worker_cfg cfg = usual_cfg(t->first);
    if (chance(t, 50))
        cfg.window_initial = 8;
    cfg.congestion_control = chance(t, 60);
    if (chance(t, 20))
        cfg.halving = GW_AGG_HALVE_ALONE;
    if (chance(t, 20))
        cfg.overtaking = GW_AGG_OVERTAKEN_IN_A_ROW;
    cfg.probe = chance(t, 70) ? GW_MS / 2 : 0;
    cfg.resend_gap = chance(t, 30);
    cfg.keeps_results = chance(t, 70);
    cfg.takes_bounds = cfg.keeps_results && chance(t, 40);
    cfg.offers_exponents = chance(t, 30);
    cfg.proactive = chance(t, 20);
    if (chance(t, 30))
        cfg.notice = (struct gw_notice_terms){.job = JOB, .units = 3, .rtt = 20 * GW_US};
    return cfg;
}

static void open_twins(struct twins *t, uint64_t seed)
{
    const uint32_t firsts[] = {UINT32_MAX - 300, 0, INT32_MAX - 200, UINT32_C(1) << 31, 12345};
    const uint32_t trains[] = {1, 4, 7, 16, MANY};
    memset(t, 0, sizeof(*t));
    t->prng = gw_prng_derive(seed, 0);
    t->now = GW_US;
    t->epoch = FIRST_EPOCH;
    t->next = t->first = firsts[gw_prng_below(&t->prng, 5)];
    uint32_t pkts = chance(t, 20) ? FEW : PKTS, train = trains[gw_prng_below(&t->prng, 5)];
    struct gw_worker_cfg cfg = draw_cfg(t);
    half_open(&t->one_by_one, &cfg, train, pkts);
    watched_kernels = *kernels;
    watched_kernels.dequantise[GW_DTYPE_F32] = watch_dequantise;
    cfg.kernels = &watched_kernels;
    half_open(&t->at_once, &cfg, train, pkts);
    watched = t->at_once.worker;
    expected_then = t->first - 1;
    t->at_once.worker->app.sender.ops = &watched_ops;
}

/* Both get a tensor of the same length and values, of which some do not fit. */
static void begin_tensor(struct twins *t)
{
    struct half *halves[] = {&t->at_once, &t->one_by_one};
    const enum gw_dtype types[] = {GW_DTYPE_F32, GW_DTYPE_F32, GW_DTYPE_I32, GW_DTYPE_BF16};
    struct gw_tensor tensor = {.tag = 5};
    tensor.count = 1 + gw_prng_below(&t->prng, chance(t, 50) ? 20 * VALUES : ELEMENTS);
    tensor.type = types[gw_prng_below(&t->prng, 4)];
    tensor.op = chance(t, 70) ? GW_OP_SUM : GW_OP_AVERAGE;
    tensor.bound = chance(t, 50) ? GW_Q16_ONE / 4 : 0;
    for (uint64_t i = 0; i < tensor.count; i++)
        t->at_once.in[i] = chance(t, 1) ? 1e9f : (float)gw_prng_below(&t->prng, 1000) / 1000;
    memcpy(t->one_by_one.in, t->at_once.in, sizeof(t->at_once.in));
    for (uint32_t i = 0; i < 2; i++) {
        tensor.in = halves[i]->in;
        tensor.out = halves[i]->out;
        tensor.counts = halves[i]->counts;
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
        count += result & ~GW_OUTPUT_MORE;
    }
    return count;
}

static void assert_same_pkt(const struct twins *t, const struct gw_pkt *a, const struct gw_pkt *b)
{
    struct gw_pkt said[2] = {*a, *b};
    for (uint32_t i = 0; i < 2; i++)
        said[i].q.next = said[i].buf = 0;
    assert_memory_equal(&said[0], &said[1], sizeof(said[0]));
    assert_int_equal(a->buf == GW_BUF_NONE, b->buf == GW_BUF_NONE);
    if (a->buf != GW_BUF_NONE)
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
        if (a[i]->q.kind == GW_PKT_GRAD) {
            t->sent[a[i]->seq % SEQS] = *a[i];
            if (gw_seq_before(t->next, a[i]->seq + 1))
                t->next = a[i]->seq + 1;
        }
        gw_pkt_release(&t->at_once.host.pool, a[i]);
        gw_pkt_release(&t->one_by_one.host.pool, b[i]);
    }
}

/* It becomes one that workers are not in, of a fragment that is out or not sent yet. */
static void leave_out(struct twins *t, struct gw_pkt *pkt)
{
    uint32_t lacks = 1 + gw_prng_below(&t->prng, 5);
    pkt->agg.bitmap = gw_agg_result_word(lacks, chance(t, 50));
    if (chance(t, 50))
        return;
    pkt->seq = t->next + gw_prng_below(&t->prng, 10);
    const struct gw_row_tensor *work = gw_tensor_row_find(&t->at_once.worker->row, pkt->seq);
    pkt->key = work ? work->key : pkt->key;
}

/* Changes something that a packet says, seldom to what one cannot say. */
static void spoil(struct twins *t, struct gw_pkt *pkt)
{
    const uint8_t flags[] = {GW_AGG_ECN,
                             GW_AGG_ECN | GW_AGG_MIXED,
                             GW_AGG_UNICAST,
                             GW_AGG_COLLISION,
                             GW_AGG_REQUEST,
                             GW_AGG_REQUEST | GW_AGG_RAW,
                             GW_AGG_REQUEST | GW_AGG_SPAN,
                             GW_AGG_REQUEST | GW_AGG_SPAN | GW_AGG_UNICAST};
    switch (gw_prng_below(&t->prng, 8)) {
    case 0:
        pkt->q.ecn = GW_ECN_CE;
        break;
    case 1:
        leave_out(t, pkt);
        break;
    case 2:
        pkt->scale = (uint8_t)gw_prng_next(&t->prng);
        break;
    case 3:
        pkt->seq += gw_prng_below(&t->prng, 5) - 2;
        break;
    case 4:
        pkt->agg.values = (uint16_t)gw_prng_below(&t->prng, VALUES + 1);
        break;
    case 5:
        pkt->key += chance(t, 50);
        pkt->epoch += chance(t, 50);
        pkt->agg_flags |= chance(t, 1) ? GW_AGG_FAILED : 0;
        break;
    default:
        pkt->agg_flags ^= flags[gw_prng_below(&t->prng, sizeof(flags))];
        pkt->agg.bitmap |= gw_prng_below(&t->prng, 256);
        pkt->index = (uint16_t)gw_prng_below(&t->prng, 40);
    }
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
                           .epoch = t->epoch,
                           .scale = GW_PKT_SCALE_NONE,
                           .agg_flags = sent->agg_flags & GW_AGG_RAW,
                           .seq = seq,
                           .agg = {.values = sent->agg.values}};
}

/* A packet of a host's own, with a payload, or without for want of buffers; NULL: there is none. */
static struct gw_pkt *given_to(struct half *half, const struct gw_pkt *pkt, const int32_t *values)
{
    struct gw_pkt *own = gw_pkt_claim(&half->host.pool);
    if (!own)
        return NULL;
    *own = *pkt;
    own->buf = gw_buf_claim(&half->host.bufs);
    if (own->buf != GW_BUF_NONE)
        memcpy(gw_buf_bytes(&half->host.bufs, own->buf), values, VALUES * sizeof(*values));
    return own;
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
        int32_t values[VALUES];
        pkt.seq = seq;
        for (uint32_t i = 0; i < VALUES; i++)
            values[i] = (int32_t)gw_prng_below(&t->prng, 1 << 30);
        if (chance(t, spoilt))
            spoil(t, &pkt);
        if (chance(t, spoilt / 2))
            continue; /* lost */
        together[count] = given_to(&t->at_once, &pkt, values);
        single[count] = given_to(&t->one_by_one, &pkt, values);
        assert_int_equal(together[count] == NULL, single[count] == NULL);
        if (!single[count])
            break;
        count++;
    }
    if (count)
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

/* Another epoch, in which a server may lack what it has said before. */
static void begin_epoch(struct twins *t)
{
    struct gw_worker *workers[] = {t->at_once.worker, t->one_by_one.worker};
    bool is_fresh = t->in_work == 0 && chance(t, 50);
    uint32_t seq = workers[0]->out.expected - gw_prng_below(&t->prng, 130);
    seq = gw_seq_before(seq, t->first) ? t->first : seq;
    seq = is_fresh ? (uint32_t)gw_prng_next(&t->prng) : seq;
    t->epoch++;
    for (uint32_t i = 0; i < 2; i++)
        gw_worker_place(workers[i],
                        &(struct gw_worker_place){
                            .epoch = t->epoch, .bitmap = 1, .first_seq = seq, .is_fresh = is_fresh},
                        t->now);
    t->first = is_fresh ? seq : t->first;
    t->next = workers[0]->out.next;
    t->is_paused = false;
    seen.owed += gw_worker_owes(workers[0]);
}

static void pause(struct twins *t)
{
    gw_worker_pause(t->at_once.worker);
    gw_worker_pause(t->one_by_one.worker);
    t->is_paused = true;
}

#define ASSERT_SAME(a, b, what) assert_memory_equal(&(a)->what, &(b)->what, sizeof((a)->what))

static void compare_out(const struct gw_outstanding *a, const struct gw_outstanding *b)
{
    assert_memory_equal(a->notes, b->notes, a->cfg.max);
    assert_memory_equal(a->sent_at, b->sent_at, a->cfg.max * sizeof(*a->sent_at));
    ASSERT_SAME(a, b, expected);
    ASSERT_SAME(a, b, next);
    ASSERT_SAME(a, b, ahead);
    ASSERT_SAME(a, b, in_a_row);
    ASSERT_SAME(a, b, was_overtaken);
    ASSERT_SAME(a, b, newest);
    ASSERT_SAME(a, b, checked);
    ASSERT_SAME(a, b, credit);
    ASSERT_SAME(a, b, patience);
    ASSERT_SAME(a, b, last_trips);
    ASSERT_SAME(a, b, least_trip);
    ASSERT_SAME(a, b, longest_answer);
    ASSERT_SAME(a, b, is_timing);
    ASSERT_SAME(a, b, timed);
    ASSERT_SAME(a, b, may_probe);
    ASSERT_SAME(a, b, results_since);
    ASSERT_SAME(a, b, timeouts);
    ASSERT_SAME(a, b, progress_at);
}

static void compare_log(const struct twins *t)
{
    const struct gw_result_log *a = &t->at_once.worker->log, *b = &t->one_by_one.worker->log;
    ASSERT_SAME(a, b, owed);
    ASSERT_SAME(a, b, at);
    for (uint32_t i = 0; i < a->count; i++) {
        struct gw_kept_result kept[] = {a->entries[i], b->entries[i]};
        bool has_values = kept[0].is_there && kept[0].buf != GW_BUF_NONE;
        assert_int_equal(kept[0].buf == GW_BUF_NONE, kept[1].buf == GW_BUF_NONE);
        if (has_values)
            assert_memory_equal(gw_buf_bytes(&t->at_once.host.bufs, kept[0].buf),
                                gw_buf_bytes(&t->one_by_one.host.bufs, kept[1].buf),
                                4 * kept[0].values);
        kept[0].buf = kept[1].buf = 0;
        assert_memory_equal(&kept[0], &kept[1], sizeof(kept[0]));
    }
}

/* Nothing that can be seen of the two differs, nor what they keep. */
static void compare(struct twins *t)
{
    const struct half *a = &t->at_once, *b = &t->one_by_one;
    struct gw_event events[2][TENSORS];
    uint32_t count = gw_endpoint_poll(a->host.endpoint, events[0], TENSORS);
    assert_int_equal(gw_endpoint_poll(b->host.endpoint, events[1], TENSORS), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(events[0][i].kind, events[1][i].kind);
        assert_int_equal(events[0][i].missing, events[1][i].missing);
        assert_int_equal(events[0][i].retransmits, events[1][i].retransmits);
        seen.failed += events[0][i].kind == GW_EVENT_FAILED;
        t->in_work--;
    }
    assert_true(gw_node_deadline(a->node) == gw_node_deadline(b->node));
    assert_int_equal(gw_test_pool_free(&a->host.pool), gw_test_pool_free(&b->host.pool));
    assert_memory_equal(gw_worker_stats(a->worker), gw_worker_stats(b->worker),
                        sizeof(struct gw_worker_stats));
    assert_memory_equal(gw_endpoint_stats(a->host.endpoint), gw_endpoint_stats(b->host.endpoint),
                        sizeof(struct gw_endpoint_stats));
    compare_out(&a->worker->out, &b->worker->out);
    compare_log(t);
    ASSERT_SAME(a->worker, b->worker, cc.window.size);
    ASSERT_SAME(a->worker, b->worker, cc.window.owes_mark);
    ASSERT_SAME(a->worker, b->worker, cc.end);
    ASSERT_SAME(a->worker, b->worker, early_end);
    ASSERT_SAME(a->worker, b->worker, app.sender.train_left);
    assert_memory_equal(a->worker->values.agreed, b->worker->values.agreed,
                        a->worker->values.positions);
}

static void play(struct twins *t)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (gw_worker_is_out(t->at_once.worker) || (t->is_paused && chance(t, 20)))
            begin_epoch(t);
        else if (!t->is_paused && gw_prng_below(&t->prng, 200) == 0)
            pause(t);
        while (t->in_work < TENSORS && chance(t, 70))
            begin_tensor(t);
        send(t);
        receive(t);
        wait(t);
        compare(t);
    }
    assert_memory_equal(t->at_once.out, t->one_by_one.out, sizeof(t->at_once.out));
    assert_memory_equal(t->at_once.counts, t->one_by_one.counts, sizeof(t->at_once.counts));
}

static void worker__does_at_once_what_it_does_one_by_one(void **state)
{
    (void)state;
    struct twins *t = gw_test_take(sizeof(*t));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        print_message("seed %u\n", (uint32_t)seed);
        open_twins(t, seed);
        play(t);
        seen.early += (uint32_t)gw_worker_stats(t->at_once.worker)->early;
        seen.raw += (uint32_t)gw_worker_stats(t->at_once.worker)->raw;
        half_close(&t->at_once);
        half_close(&t->one_by_one);
    }
    assert_in_range(seen.extended, 100 * SEEDS, UINT32_MAX);
    assert_in_range(seen.joint, 100 * SEEDS, UINT32_MAX);
    assert_true(seen.owed > 10 && seen.early > 10 && seen.failed > 10 && seen.raw > 10);
    free(t);
}

/* A worker may begin with any number, and numbers wrap: what came early long ago is no matter. */
static void worker__takes_together_whatever_its_numbers(void **state)
{
    (void)state;
    const uint32_t train = 8;
    for (uint32_t i = 0; i < 16; i++) {
        struct half half = {.worker = NULL};
        struct gw_pkt *pkts[MANY];
        const struct gw_worker_cfg cfg = usual_cfg(i << 28);
        half_open(&half, &cfg, train, PKTS);
        half.worker->early_end -= INT32_MAX - WINDOW / 2;
        const struct gw_tensor tensor = {
            .in = half.in, .out = half.out, .count = (uint64_t)WINDOW * VALUES};
        assert_int_equal(gw_worker_reduce(half.worker, &tensor, 0), 0);
        half.worker->app.sender.ops = &watched_ops;
        seen.extended = 0;
        assert_int_equal(drain(&half, pkts, MANY, MANY, 0), WINDOW);
        assert_int_equal(seen.extended, WINDOW - WINDOW / train);
        for (uint32_t at = 0; at < WINDOW; at++)
            gw_pkt_release(&half.host.pool, pkts[at]);
        half_close(&half);
    }
}

int main(void)
{
    kernels = gw_kernels_best(gw_cpu_features());
    watched_ops = gw_worker_sender_ops;
    watched_ops.extend = watch_extend;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker__does_at_once_what_it_does_one_by_one),
        cmocka_unit_test(worker__takes_together_whatever_its_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
