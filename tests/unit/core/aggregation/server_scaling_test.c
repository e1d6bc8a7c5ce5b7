/* The server's exponents: the least offer, said once and for all, when overflow is frequent. */
#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/scaling.h"
#include "core/aggregation/server.h"

enum {
    JOB = 4,
    EPOCH = 6,
    SERVER = 0,
    WORLD = 3,
    VALUES = 2,
    POSITIONS = 4,
    PKTS = 64,
    RAW = GW_AGG_RAW | GW_AGG_RESEND,
    WHOLE = 1,   /* level of a packet with the sum of all */
    NOTICED = 5, /* overflows that make 0.1 % of 4096 fragments */
};

static const uint32_t first_seq = UINT32_MAX - 1; /* wraps soon */

struct bench {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_server *server;
    void *memory;
    uint32_t seq; /* next fragment */
};

static void bench_open(struct bench *b, bool agrees)
{
    static const struct gw_place places[WORLD] = {
        {.address = 10, .bitmap = 1},
        {.address = 11, .bitmap = 2},
        {.address = 12, .bitmap = 4},
    };
    struct gw_server_cfg cfg = {.job = JOB,
                                .world = WORLD,
                                .levels = 1,
                                .values = VALUES,
                                .window_max = POSITIONS,
                                .aggregators = 16,
                                .raw_max = 2,
                                .retry = GW_US,
                                .scale_exponent = GW_SCALE_EXPONENT,
                                .agrees_exponents = agrees,
                                .proactive = true,
                                .kernels = gw_kernels_best(gw_cpu_features())};
    struct gw_server_epoch epoch = {
        .epoch = EPOCH, .levels = 1, .first_seq = first_seq, .places = places};
    struct gw_endpoint_cfg host = gw_test_host_cfg(SERVER, 4 * VALUES);
    host.apps_max = 1;
    gw_test_host_open(&b->host, &host, PKTS);
    b->node = gw_endpoint_node(b->host.endpoint);
    b->memory = gw_test_take(gw_server_size(&cfg));
    b->seq = first_seq;
    assert_non_null(b->memory);
    assert_int_equal(gw_server_init(&b->server, b->memory, &cfg, b->host.endpoint), 0);
    gw_server_begin(b->server, &epoch);
}

static void bench_close(struct bench *b)
{
    gw_server_fini(b->server);
    free(b->memory);
    gw_test_host_close(&b->host);
}

/* A gradient of worker `rank`, both values of which are `value`. */
static struct gw_pkt *gradient(struct bench *b, uint32_t rank, float value, uint8_t flags,
                               uint8_t scale)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->host.pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.kind = GW_PKT_GRAD, .size = 100},
        .src = 10 + rank,
        .dst = SERVER,
        .flow = JOB,
        .key = gw_agg_key(1, GW_DTYPE_F32, false),
        .epoch = EPOCH,
        .scale = scale,
        .agg_flags = flags,
        .seq = b->seq,
        .buf = gw_buf_claim(&b->host.bufs),
        .agg = {.bitmap = UINT32_C(1) << rank, .values = VALUES},
    };
    for (uint32_t i = 0; i < VALUES; i++)
        memcpy(gw_buf_bytes(&b->host.bufs, pkt->buf) + 4 * (size_t)i, &value, 4);
    return pkt;
}

static void input(struct bench *b, struct gw_pkt *pkt)
{
    gw_node_input(b->node, 0, &pkt, 1, 0);
}

/* What the next packet says, which has the flags. */
static uint8_t take(struct bench *b, uint8_t flags)
{
    struct gw_pkt *pkt;
    b->node->ready_count = 0;
    assert_int_equal(gw_node_output(b->node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE, 1);
    uint8_t scale = pkt->scale;
    assert_int_equal(pkt->agg_flags, flags);
    gw_pkt_release(&b->host.pool, pkt);
    return scale;
}

/* One fragment with a value per worker, each with an offer; what its result says. */
static uint8_t fragment(struct bench *b, uint8_t flags, const float values[WORLD],
                        const uint8_t offers[WORLD])
{
    for (uint32_t rank = 0; rank < WORLD; rank++)
        input(b, gradient(b, rank, values[rank], flags, offers[rank]));
    b->seq++;
    return take(b, flags & GW_AGG_RAW);
}

static const float zeros[WORLD];
static const uint8_t offers[WORLD] = {130, 120, 125};

/* Fragments that overflow, until the server takes note. */
static void overflow(struct bench *b)
{
    for (uint32_t i = 1; i < NOTICED; i++)
        assert_int_equal(fragment(b, RAW, zeros, offers), GW_PKT_SCALE_NONE);
    assert_int_equal(fragment(b, RAW, zeros, offers), 120);
}

/* Offers of all raw packets, of all partial sums, and of a sum of all. */
static void server__says_the_least_offer_while_many_overflow(void **state)
{
    static const uint8_t nothing[WORLD] = {GW_PKT_SCALE_NONE, GW_PKT_SCALE_NONE, GW_PKT_SCALE_NONE};
    static const uint8_t some[WORLD] = {GW_PKT_SCALE_NONE, 7, GW_PKT_SCALE_NONE};
    (void)state;
    struct bench b;
    bench_open(&b, true);
    assert_int_equal(fragment(&b, 0, zeros, offers), GW_PKT_SCALE_NONE);
    overflow(&b);
    assert_int_equal(fragment(&b, 0, zeros, offers), 120);
    assert_int_equal(fragment(&b, 0, zeros, some), 7);
    assert_int_equal(fragment(&b, 0, zeros, nothing), GW_PKT_SCALE_NONE);
    struct gw_pkt *whole = gradient(&b, 0, 0, 0, 99);
    whole->agg.level = WHOLE;
    input(&b, whole);
    b.seq++;
    assert_int_equal(take(&b, 0), 99);
    assert_int_equal(gw_server_stats(b.server)->scaled, 4);
    uint32_t quiet = 0; /* fragments until it has forgotten */
    while (fragment(&b, 0, zeros, offers) != GW_PKT_SCALE_NONE)
        assert_in_range(++quiet, 1, 4096);
    assert_true(quiet > 100);
    bench_close(&b);
}

static void server__says_nothing_unless_it_is_to_agree(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, false);
    for (uint32_t i = 0; i < 4 * NOTICED; i++)
        assert_int_equal(fragment(&b, RAW, zeros, offers), GW_PKT_SCALE_NONE);
    bench_close(&b);
}

/* Whoever asks again, and whatever it offers meanwhile. */
static void server__says_it_once_and_for_all(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, true);
    overflow(&b);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        input(&b, gradient(&b, 0, 0, GW_AGG_RESEND, 100)); /* an overlap counts as an offer */
        input(&b, gradient(&b, rank, 0, 0, offers[rank]));
    }
    assert_int_equal(take(&b, 0), 100);
    while (gw_server_stats(b.server)->answered < WORLD)
        input(&b, gradient(&b, 1, 0, GW_AGG_RESEND, 3));
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(take(&b, GW_AGG_UNICAST), 100);
    /* Nor do fragments that overflowed before a result, or requests, say it. */
    b.seq++;
    input(&b, gradient(&b, 0, 0, RAW, 50));
    assert_int_equal(take(&b, GW_AGG_REQUEST | GW_AGG_RAW), GW_PKT_SCALE_NONE);
    bench_close(&b);
}

/* A server that restarted knows of no overflow, but workers go by what it said before. */
static void server__keeps_what_a_given_back_result_says(void **state)
{
    static const uint8_t said[] = {GW_PKT_SCALE_NONE, 90, 0};
    (void)state;
    struct bench b;
    bench_open(&b, true);
    for (uint32_t i = 0; i < GW_COUNT_OF(said); i++) {
        input(&b, gradient(&b, 0, 0, GW_AGG_RESEND, 5));
        input(&b, gradient(&b, 1, 0, GW_AGG_FINAL | GW_AGG_RESEND, said[i]));
        assert_int_equal(take(&b, 0), said[i]);
        b.seq++;
    }
    bench_close(&b);
}

/* Three values below 16 fit 2^27 as such; their sum decides, and the exponent that was agreed on.
 */
static void server__counts_what_was_raw_for_nothing(void **state)
{
    static const struct {
        float values[WORLD];
        bool fits, fits_agreed; /* 2^27, and 2^21: up to 1024 */
    } cases[] = {
        {{9, -9, 3}, true, true},      {{5, 5, 5.9f}, true, true},    {{9, 9, -9}, true, true},
        {{9, 9, -2}, false, true},     {{20, -10, -3}, false, true},  {{-8, -8, 0}, false, true},
        {{1e30f, 0, 0}, false, false}, {{600, 600, 0}, false, false},
    };
    static const uint8_t to_21[WORLD] = {131, 131, 131};
    static const uint8_t none[WORLD] = {GW_PKT_SCALE_NONE, GW_PKT_SCALE_NONE, GW_PKT_SCALE_NONE};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct bench b;
        bench_open(&b, true);
        const struct gw_server_stats *stats = gw_server_stats(b.server);
        fragment(&b, RAW, cases[i].values, none);
        assert_int_equal(stats->needless, cases[i].fits);
        while (stats->scaled == 0)
            fragment(&b, RAW, (const float[WORLD]){1e30f}, to_21);
        for (uint32_t j = 1; j < POSITIONS; j++)
            fragment(&b, RAW, (const float[WORLD]){1e30f}, none);
        fragment(&b, RAW, cases[i].values, none);
        assert_int_equal(stats->needless, cases[i].fits + cases[i].fits_agreed);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server__says_the_least_offer_while_many_overflow),
        cmocka_unit_test(server__says_nothing_unless_it_is_to_agree),
        cmocka_unit_test(server__says_it_once_and_for_all),
        cmocka_unit_test(server__keeps_what_a_given_back_result_says),
        cmocka_unit_test(server__counts_what_was_raw_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
