/* The worker's exponents: what it offers, what it goes by, and what it sends raw for safety. */
#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/scaling.h"
#include "core/aggregation/worker.h"

enum {
    JOB = 4,
    EPOCH = 6,
    SERVER = 9,
    WORLD = 8, /* just below 2 is safe with 2^27 */
    VALUES = 2,
    WINDOW = 4,
    FRAGMENTS = 3 * WINDOW,
    PKTS = 64,
};

static const uint32_t first_seq = UINT32_MAX - 2; /* wraps soon */

struct bench {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_worker *worker;
    void *memory;
    float in[FRAGMENTS * VALUES];
    float out[FRAGMENTS * VALUES];
};

static struct gw_worker_cfg worker_cfg(void)
{
    return (struct gw_worker_cfg){.job = JOB,
                                  .epoch = EPOCH,
                                  .world = WORLD,
                                  .server = SERVER,
                                  .bitmap = 1,
                                  .values = VALUES,
                                  .window_max = WINDOW,
                                  .window_initial = WINDOW,
                                  .aggregators = 16,
                                  .tensors_max = 4,
                                  .timeout = GW_MS,
                                  .keeps_results = true,
                                  .offers_exponents = true,
                                  .scale_exponent = GW_SCALE_EXPONENT,
                                  .first_seq = first_seq,
                                  .kernels = gw_kernels_best(gw_cpu_features())};
}

/* Fragment i has the values 1 and 2^i. */
static void bench_open(struct bench *b, const struct gw_worker_cfg *cfg)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(1, 4 * VALUES);
    memset(b, 0, sizeof(*b));
    for (uint32_t i = 0; i < FRAGMENTS; i++) {
        b->in[VALUES * i] = 1;
        b->in[VALUES * i + 1] = (float)(1 << i);
    }
    host.apps_max = 1;
    host.app_events_max = 4;
    gw_test_host_open(&b->host, &host, PKTS);
    b->node = gw_endpoint_node(b->host.endpoint);
    b->memory = gw_test_take(gw_worker_size(cfg));
    assert_non_null(b->memory);
    assert_int_equal(gw_worker_init(&b->worker, b->memory, cfg, b->host.endpoint), 0);
}

static void bench_close(struct bench *b)
{
    gw_worker_fini(b->worker);
    free(b->memory);
    gw_test_host_close(&b->host);
}

/* Reduces `count` fragments of the values, from fragment `first` on. */
static void reduce(struct bench *b, uint32_t first, uint32_t count, enum gw_dtype type)
{
    struct gw_tensor tensor = {.in = b->in + (size_t)first * VALUES,
                               .out = b->out + (size_t)first * VALUES,
                               .count = (uint64_t)count * VALUES,
                               .type = type};
    assert_int_equal(gw_worker_reduce(b->worker, &tensor, 0), 0);
}

/* The next packet that leaves; its second value in *value. */
static struct gw_pkt next(struct bench *b, int32_t *value)
{
    struct gw_pkt *pkt, copy;
    b->node->ready_count = 0;
    assert_int_equal(gw_node_output(b->node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
    copy = *pkt;
    memcpy(value, gw_buf_bytes(&b->host.bufs, pkt->buf) + 4, sizeof(*value));
    gw_pkt_release(&b->host.pool, pkt);
    return copy;
}

/* Lets fragment `i` leave, which must be the next. */
static struct gw_pkt expect(struct bench *b, uint32_t i, int32_t *value)
{
    struct gw_pkt pkt = next(b, value);
    assert_int_equal(pkt.seq, first_seq + i);
    return pkt;
}

/* A result of `key`, both values of which are `value`. */
static void result(struct bench *b, uint32_t i, uint32_t key, int32_t value, uint8_t scale)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->host.pool);
    *pkt = (struct gw_pkt){.q = {.kind = GW_PKT_PARAM},
                           .src = SERVER,
                           .dst = 1,
                           .flow = JOB,
                           .key = key,
                           .epoch = EPOCH,
                           .scale = scale,
                           .seq = first_seq + i,
                           .buf = gw_buf_claim(&b->host.bufs),
                           .agg = {.values = VALUES}};
    for (uint32_t j = 0; j < VALUES; j++)
        memcpy(gw_buf_bytes(&b->host.bufs, pkt->buf) + 4 * (size_t)j, &value, 4);
    gw_node_input(b->node, 0, &pkt, 1, 0);
}

/* The byte of the greatest safe exponent for fragment i: 8 times 2^i must stay below 2^31 - 8. */
static uint8_t byte_for(uint32_t i)
{
    int safe = 27 - (int)i;
    return gw_scaling_byte(safe < GW_SCALE_EXPONENT ? safe : GW_SCALE_EXPONENT);
}

/* For what it knows, of floats, also of another tensor. */
static void worker__offers_for_the_fragment_one_window_later(void **state)
{
    (void)state;
    struct bench b;
    struct gw_worker_cfg cfg = worker_cfg();
    int32_t value;
    bench_open(&b, &cfg);
    reduce(&b, 0, 2, GW_DTYPE_F32);
    reduce(&b, 2, 3, GW_DTYPE_F32);
    reduce(&b, 5, 1, GW_DTYPE_I32);
    reduce(&b, 6, 1, GW_DTYPE_F32);
    uint32_t key = gw_agg_key(first_seq, GW_DTYPE_F32, false);
    assert_int_equal(expect(&b, 0, &value).scale, byte_for(4));
    assert_int_equal(expect(&b, 1, &value).scale, GW_PKT_SCALE_NONE); /* int32 */
    assert_int_equal(expect(&b, 2, &value).scale, byte_for(6));
    assert_int_equal(expect(&b, 3, &value).scale, GW_PKT_SCALE_NONE); /* not there yet */
    result(&b, 0, key, 0, GW_PKT_SCALE_NONE);
    assert_int_equal(expect(&b, 4, &value).scale, GW_PKT_SCALE_NONE);
    bench_close(&b);
}

static uint32_t key_of(uint32_t first)
{
    return gw_agg_key(first_seq + first, GW_DTYPE_F32, false);
}

/* A window is out; the results of its fragments say the bytes. */
static void open_agreed(struct bench *b, const struct gw_worker_cfg *cfg,
                        const uint8_t bytes[WINDOW])
{
    int32_t value;
    bench_open(b, cfg);
    reduce(b, 0, FRAGMENTS, GW_DTYPE_F32);
    for (uint32_t i = 0; i < WINDOW; i++)
        expect(b, i, &value);
    for (uint32_t i = 0; i < WINDOW; i++)
        result(b, i, key_of(0), 0, bytes[i]);
}

/* Both ways, by the byte of one window before; no byte means more than the job's exponent. */
static void worker__goes_by_the_result_one_window_before(void **state)
{
    static const int exponents[WINDOW] = {10, 27, 27, 0};
    const uint8_t bytes[WINDOW] = {gw_scaling_byte(10), GW_PKT_SCALE_NONE, gw_scaling_byte(28),
                                   gw_scaling_byte(0)};
    (void)state;
    struct bench b;
    struct gw_worker_cfg cfg = worker_cfg();
    int32_t value;
    open_agreed(&b, &cfg, bytes);
    for (uint32_t i = WINDOW; i < 2 * WINDOW; i++) {
        int exponent = exponents[i - WINDOW];
        struct gw_pkt pkt = expect(&b, i, &value);
        bool fits = (int)i + exponent < 31;
        assert_int_equal(pkt.agg_flags & GW_AGG_RAW, fits ? 0 : GW_AGG_RAW);
        if (fits)
            assert_int_equal(value, 1 << ((int)i + exponent));
        /* What the first window's results said must not count any more, nor what this one says. */
        result(&b, i, key_of(0), 3 << exponent, gw_scaling_byte(-5));
        assert_true(b.out[i * VALUES] == 3 && b.out[i * VALUES + 1] == 3);
    }
    expect(&b, 2 * WINDOW, &value);
    assert_int_equal(value, 1 << (2 * WINDOW - 5));
    bench_close(&b);
}

/* Neither a second result of the fragment before, nor sending again, changes anything. */
static void worker__an_exponent_stays(void **state)
{
    const uint8_t bytes[WINDOW] = {gw_scaling_byte(10), gw_scaling_byte(9), gw_scaling_byte(8),
                                   gw_scaling_byte(7)};
    (void)state;
    struct bench b;
    struct gw_worker_cfg cfg = worker_cfg();
    int32_t value;
    open_agreed(&b, &cfg, bytes);
    expect(&b, WINDOW, &value);
    for (uint32_t i = 0; i < WINDOW; i++)
        result(&b, i, key_of(0), 0, gw_scaling_byte(1));
    gw_node_expire(b.node, GW_MS);
    struct gw_pkt again = expect(&b, WINDOW, &value);
    assert_int_equal(again.agg_flags, GW_AGG_RESEND | GW_AGG_ECN | GW_AGG_EVEN);
    assert_int_equal(value, 1 << (WINDOW + 10));
    for (uint32_t i = 1; i < WINDOW; i++) {
        expect(&b, WINDOW + i, &value);
        assert_int_equal(value, 1 << ((int)WINDOW + 10));
    }
    bench_close(&b);
}

/* int32 ignores what a result says, and passes it by. */
static void worker__int32_is_not_scaled(void **state)
{
    (void)state;
    struct bench b;
    struct gw_worker_cfg cfg = worker_cfg();
    int32_t value, number = -77;
    cfg.proactive = true;
    bench_open(&b, &cfg);
    memcpy(&b.in[WINDOW * VALUES + 1], &number, sizeof(number));
    reduce(&b, 0, WINDOW, GW_DTYPE_F32);
    reduce(&b, WINDOW, 1, GW_DTYPE_I32);
    for (uint32_t i = 0; i < WINDOW; i++)
        expect(&b, i, &value);
    result(&b, 0, key_of(0), 0, gw_scaling_byte(3));
    expect(&b, WINDOW, &value);
    assert_int_equal(value, number);
    result(&b, WINDOW, gw_agg_key(first_seq + WINDOW, GW_DTYPE_I32, false), 1234, 0);
    memcpy(&value, &b.out[WINDOW * VALUES], sizeof(value));
    assert_int_equal(value, 1234);
    bench_close(&b);
}

/* 1 is below the bound for eight workers and 2^27, 2 is not; with 2^26 2 is, and 4 is not. */
static void worker__proactive_asks_the_bound(void **state)
{
    const uint8_t bytes[WINDOW] = {gw_scaling_byte(23), gw_scaling_byte(23), gw_scaling_byte(22),
                                   GW_PKT_SCALE_NONE};
    static const bool is_raw[2 * WINDOW] = {false, true, true, true, false, true, true, true};
    (void)state;
    struct bench b;
    struct gw_worker_cfg cfg = worker_cfg();
    int32_t value;
    cfg.proactive = true;
    bench_open(&b, &cfg);
    reduce(&b, 0, FRAGMENTS, GW_DTYPE_F32);
    for (uint32_t i = 0; i < 2 * WINDOW; i++) {
        struct gw_pkt pkt = expect(&b, i, &value);
        assert_int_equal(pkt.agg_flags & ~GW_AGG_EVEN, is_raw[i] ? GW_AGG_RAW | GW_AGG_RESEND : 0);
        if (i < WINDOW)
            result(&b, i, key_of(0), 0, bytes[i]);
    }
    assert_int_equal(gw_worker_stats(b.worker)->flagged, 6);
    bench_close(&b);
}

/* A worker gives results back with what they said, and a fresh epoch begins like a job. */
static void worker__epochs_keep_or_forget(void **state)
{
    const uint8_t bytes[WINDOW] = {gw_scaling_byte(10), gw_scaling_byte(9), gw_scaling_byte(8),
                                   gw_scaling_byte(7)};
    (void)state;
    struct bench b;
    struct gw_worker_cfg cfg = worker_cfg();
    int32_t value;
    open_agreed(&b, &cfg, bytes);
    struct gw_worker_place place = {.epoch = EPOCH, .bitmap = 1, .first_seq = first_seq};
    gw_worker_place(b.worker, &place, 0);
    for (uint32_t i = 0; i < WINDOW; i++) {
        struct gw_pkt pkt = expect(&b, i, &value);
        assert_int_equal(pkt.agg_flags & GW_AGG_FINAL, GW_AGG_FINAL);
        assert_int_equal(pkt.scale, bytes[i]);
    }
    expect(&b, WINDOW, &value);
    assert_int_equal(value, 1 << (WINDOW + 10)); /* kept */
    gw_worker_fail(b.worker, 0, 0, 0);
    struct gw_event event;
    assert_int_equal(gw_endpoint_poll(b.host.endpoint, &event, 1), 1);
    place.is_fresh = true;
    gw_worker_place(b.worker, &place, 0);
    reduce(&b, 0, WINDOW, GW_DTYPE_F32);
    for (uint32_t i = 0; i < WINDOW - 1; i++) {
        expect(&b, i, &value);
        assert_int_equal(value, 1 << (27 + i));
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker__offers_for_the_fragment_one_window_later),
        cmocka_unit_test(worker__goes_by_the_result_one_window_before),
        cmocka_unit_test(worker__an_exponent_stays),
        cmocka_unit_test(worker__int32_is_not_scaled),
        cmocka_unit_test(worker__proactive_asks_the_bound),
        cmocka_unit_test(worker__epochs_keep_or_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
