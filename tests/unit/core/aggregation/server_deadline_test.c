/*
 * The server of calls with a bound, and workers of the job that lie: who claims what others have
 * sent, comes late, twice or with what no call has, changes no sum but its own; and nobody is left
 * out of more than the bound.
 */
#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/server.h"

enum {
    JOB = 4,
    EPOCH = 6,
    SERVER = 0,
    WORLD = 5,
    FIRST = 100, /* fragment of the call */
    VALUES = 2,
    WINDOW = 16,
    AGGREGATORS = 64,
    TENTH = GW_AGG_BOUND_ONE / 10,
    HALF = GW_AGG_BOUND_ONE / 2,
    ALL = (1 << WORLD) - 1,
    PKTS = 256,
};

#define PATIENCE     (20 * GW_US)
#define PATIENCE_MAX (8 * PATIENCE)

struct bench {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_server *server;
    void *memory;
    gw_time now;
    uint8_t bound;
};

/* Workers 0 to 2 share a rack, 3 and 4 another; their addresses are 10 and on. */
static void begin(struct bench *b, uint32_t first, bool is_fresh)
{
    static const struct gw_place workers[WORLD] = {
        {.address = 10, .bitmap = 1},
        {.address = 11, .bitmap = 2},
        {.address = 12, .bitmap = 4},
        {.address = 13, .bitmap = 1, .above = {1}},
        {.address = 14, .bitmap = 2, .above = {1}},
    };
    const struct gw_server_epoch epoch = {
        .epoch = EPOCH, .levels = 2, .first_seq = first, .places = workers, .is_fresh = is_fresh};
    gw_server_begin(b->server, &epoch);
}

static void bench_open_with(struct bench *b, gw_time patience_max)
{
    struct gw_server_cfg cfg = {.job = JOB,
                                .world = WORLD,
                                .levels = 2,
                                .values = VALUES,
                                .window_max = WINDOW,
                                .aggregators = AGGREGATORS,
                                .raw_max = 2,
                                .retry = GW_US,
                                .quiet = GW_S,
                                .patience = PATIENCE,
                                .patience_max = patience_max,
                                .kernels = gw_kernels_best(gw_cpu_features())};
    struct gw_endpoint_cfg host = gw_test_host_cfg(SERVER, 4 * VALUES);
    host.apps_max = 1;
    *b = (struct bench){.bound = HALF};
    gw_test_host_open(&b->host, &host, PKTS);
    b->node = gw_endpoint_node(b->host.endpoint);
    b->memory = gw_test_take(gw_server_size(&cfg));
    assert_int_equal(gw_server_init(&b->server, b->memory, &cfg, b->host.endpoint), 0);
    begin(b, FIRST, true);
}

static void bench_open(struct bench *b)
{
    bench_open_with(b, PATIENCE);
}

static void bench_close(struct bench *b)
{
    gw_server_fini(b->server);
    free(b->memory);
    gw_test_host_close(&b->host);
}

static const struct gw_server_stats *stats_of(const struct bench *b)
{
    return gw_server_stats(b->server);
}

/* What workers of a set sum up to: a digit of 16 for each. */
static uint32_t sum_of(uint32_t set)
{
    uint32_t sum = 0;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        sum += (set >> rank & 1) << 4 * rank;
    return sum;
}

/* A gradient that worker `src` has sent, and that claims to be of a set below one switch. */
static struct gw_pkt *gradient(struct bench *b, uint32_t src, uint32_t set, uint32_t seq)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->host.pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.kind = GW_PKT_GRAD, .size = 100},
        .src = 10 + src,
        .dst = SERVER,
        .flow = JOB,
        .key = gw_agg_key(FIRST, GW_DTYPE_I32, false),
        .epoch = EPOCH,
        .seq = seq,
        .index = 7,
        .buf = gw_buf_claim(&b->host.bufs),
        .scale = GW_PKT_SCALE_NONE,
        .agg = {.bitmap = set >> 3 ? set >> 3 : set,
                .values = VALUES,
                .bound = b->bound,
                .above = {set >> 3 != 0}},
        .agg_flags = GW_AGG_RESEND,
    };
    uint32_t value = sum_of(set);
    for (uint32_t i = 0; i < VALUES; i++)
        memcpy(gw_buf_bytes(&b->host.bufs, pkt->buf) + 4 * (size_t)i, &value, 4);
    return pkt;
}

static void input(struct bench *b, struct gw_pkt *pkt)
{
    gw_node_input(b->node, 0, &pkt, 1, b->now);
}

static void send(struct bench *b, uint32_t rank, uint32_t seq)
{
    input(b, gradient(b, rank, 1u << rank, seq));
}

static void send_all_but(struct bench *b, uint32_t missing, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t rank = 0; rank < WORLD; rank++)
            if (!(missing >> rank & 1))
                send(b, rank, first + i);
}

/* What the server has sent, of one kind: results of a fragment, or requests (seq 0). */
static uint32_t drain(struct bench *b, uint32_t seq, uint32_t *sum, uint32_t *lacks)
{
    struct gw_pkt *pkt;
    uint32_t count = 0;
    for (;;) {
        b->node->ready_count = 0;
        if ((gw_node_output(b->node, 0, &pkt, 1, b->now) & ~GW_OUTPUT_MORE) == 0)
            return count;
        if (!(pkt->agg_flags & GW_AGG_REQUEST) && pkt->seq == seq) {
            count++;
            memcpy(sum, gw_buf_bytes(&b->host.bufs, pkt->buf), 4);
            *lacks = gw_agg_result_lacks(pkt->agg.bitmap);
        }
        gw_pkt_release(&b->host.pool, pkt);
    }
}

/* A fragment's only result so far is of this set, and says so. */
static void expect_result(struct bench *b, uint32_t seq, uint32_t set)
{
    uint32_t sum = 0, lacks = 0;
    assert_int_equal(drain(b, seq, &sum, &lacks), 1);
    assert_int_equal(sum, sum_of(set));
    assert_int_equal(lacks, WORLD - (uint32_t)__builtin_popcount(set));
}

static void expect_none(struct bench *b, uint32_t seq)
{
    uint32_t sum, lacks;
    assert_int_equal(drain(b, seq, &sum, &lacks), 0);
}

static void pass(struct bench *b, gw_time time)
{
    b->now += time;
    gw_node_expire(b->node, b->now);
}

/* Long enough that the server asks, and then decides. */
static void wait(struct bench *b)
{
    for (uint32_t i = 0; i < 4; i++)
        pass(b, PATIENCE);
}

/* Worker 0 is asked, and answers at once: what the server waits is the least from then on. */
static void answer_at_once(struct bench *b)
{
    send_all_but(b, 1, FIRST, 1);
    pass(b, PATIENCE_MAX);
    b->now += GW_US;
    send(b, 0, FIRST);
    assert_int_equal(stats_of(b)->results, 1);
}

/* What comes after a fragment was completed without it is answered with what all have got. */
static void deadline__a_late_contribution_changes_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    send_all_but(&b, 1, FIRST, 2);
    wait(&b);
    expect_result(&b, FIRST, ALL & ~1);
    for (uint32_t i = 0; i < 3; i++) {
        send(&b, 0, FIRST);
        expect_result(&b, FIRST, ALL & ~1);
    }
    input(&b, gradient(&b, 0, 7, FIRST)); /* a switch adds it to what others sent */
    expect_result(&b, FIRST, ALL & ~1);
    input(&b, gradient(&b, 4, 7, FIRST)); /* of which the sender is none: no answer */
    expect_none(&b, FIRST);
    assert_int_equal(stats_of(&b)->left_out, 1);
    bench_close(&b);
}

/* A switch that says a sum twice, or a worker that claims what others have sent. */
static void deadline__nobody_is_in_a_sum_twice(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    send(&b, 1, FIRST);
    input(&b, gradient(&b, 0, 7, FIRST)); /* claims 1 again, and 2 */
    send(&b, 2, FIRST);
    input(&b, gradient(&b, 3, 24, FIRST));
    input(&b, gradient(&b, 4, 24, FIRST));
    assert_int_equal(stats_of(&b)->overlaps, 2);
    send_all_but(&b, 1, FIRST + 1, 1); /* half of two fragments is one */
    wait(&b);
    expect_result(&b, FIRST, ALL & ~1);
    bench_close(&b);
}

/* What is beyond the window, of nobody, of another call or epoch begins nothing. */
static void deadline__what_no_worker_can_have_sent_is_dropped(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (uint32_t i = 0; i < 200; i++) {
        struct gw_pkt *pkt = gradient(&b, 0, 1, FIRST + (i % 5 == 0 ? WINDOW + i : i % WINDOW));
        pkt->epoch += i % 5 == 1;
        pkt->agg.values += (uint16_t)(i % 5 == 2 ? VALUES : 0);
        pkt->agg.bitmap = i % 5 == 3 ? 8 : i % 5 == 4 ? 0 : pkt->agg.bitmap;
        input(&b, pkt);
    }
    assert_int_equal(stats_of(&b)->stale, 200);
    wait(&b);
    assert_int_equal(stats_of(&b)->probes, 0);
    bench_close(&b);
}

/* Of ten fragments a tenth is one, however often the server decides. */
static void deadline__the_bound_is_not_passed(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    b.bound = TENTH;
    send_all_but(&b, 1, FIRST, 12);
    for (uint32_t i = 0; i < 20; i++)
        wait(&b);
    assert_int_equal(stats_of(&b)->left_out, 1);
    assert_int_equal(stats_of(&b)->results, 1);
    for (uint32_t i = 1; i < 12; i++)
        send(&b, 0, FIRST + i);
    assert_int_equal(stats_of(&b)->results, 12);
    expect_none(&b, FIRST + 12);
    bench_close(&b);
}

/* One worker says that the call is longer, or its bound looser, than it is. */
static void deadline__one_worker_makes_no_bound_looser(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    b.bound = GW_AGG_BOUND_ONE;
    for (uint32_t i = 0; i < WINDOW; i++)
        send(&b, 4, FIRST + i);
    b.bound = TENTH;
    for (uint32_t rank = 1; rank < 4; rank++)
        for (uint32_t i = 0; i < 9; i++)
            send(&b, rank, FIRST + i);
    for (uint32_t i = 0; i < 20; i++)
        wait(&b);
    assert_int_equal(stats_of(&b)->left_out, 0); /* a tenth of nine is none */
    bench_close(&b);
}

/* Half of the workers or fewer complete nothing. */
static void deadline__a_minority_decides_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    b.bound = GW_AGG_BOUND_ONE;
    input(&b, gradient(&b, 3, 24, FIRST));
    for (uint32_t i = 0; i < 20; i++)
        wait(&b);
    assert_int_equal(stats_of(&b)->results, 0);
    send(&b, 0, FIRST);
    wait(&b);
    expect_result(&b, FIRST, 25);
    bench_close(&b);
}

static struct gw_pkt * final(struct bench *b, uint32_t src, uint32_t seq, uint32_t lacks)
{
    struct gw_pkt *pkt = gradient(b, src, 1u << src, seq);
    pkt->agg_flags |= GW_AGG_FINAL | (lacks ? GW_AGG_COLLISION : 0);
    pkt->index = lacks ? (uint16_t)lacks : pkt->index;
    return pkt;
}

/* Results are taken back from workers only of what an epoch before can have completed. */
static void deadline__a_worker_completes_nothing_alone(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    input(&b, final(&b, 0, FIRST, 0));
    input(&b, final(&b, 0, FIRST, 2));
    assert_int_equal(stats_of(&b)->restored, 0);
    begin(&b, FIRST, false);
    input(&b, final(&b, 0, FIRST, WORLD / 2 + 1)); /* no server left out so many */
    assert_int_equal(stats_of(&b)->restored, 0);
    input(&b, final(&b, 0, FIRST, WORLD / 2));
    assert_int_equal(stats_of(&b)->restored, 1);
    for (uint32_t i = 1; i < 100; i++) {
        send_all_but(&b, 0, FIRST + i, 1);
        expect_result(&b, FIRST + i, ALL);
    }
    input(&b, final(&b, 0, FIRST + 100, 0));
    assert_int_equal(stats_of(&b)->restored, 1);
    bench_close(&b);
}

/* Who is late, or claims to be, does not make the server talk without end. */
static void deadline__a_flood_is_not_answered_with_requests(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    send_all_but(&b, 1, FIRST, 8);
    wait(&b);
    assert_int_equal(stats_of(&b)->left_out, 4);
    expect_result(&b, FIRST, ALL & ~1);
    uint64_t invited = stats_of(&b)->invited, probes = stats_of(&b)->probes;
    for (uint32_t i = 0; i < 1000; i++) {
        send(&b, 0, FIRST + i % 4);
        expect_result(&b, FIRST + i % 4, ALL & ~1);
    }
    assert_true(stats_of(&b)->invited - invited <= 2);
    assert_true(stats_of(&b)->probes - probes <= 1);
    bench_close(&b);
}

/* It is left out of nothing that is more than two windows behind what it sent last, else it could
 * not get all results. */
static void deadline__nobody_is_left_two_windows_behind(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    b.bound = GW_AGG_BOUND_ONE;
    for (uint32_t i = 0; i < 3 * WINDOW; i++) {
        send_all_but(&b, 1, FIRST + i, 1);
        wait(&b);
        drain(&b, 0, &(uint32_t){0}, &(uint32_t){0});
    }
    assert_int_equal(stats_of(&b)->left_out, 2 * WINDOW);
    send(&b, 0, FIRST + 2 * WINDOW);
    for (uint32_t i = 0; i < 20; i++)
        wait(&b);
    assert_int_equal(stats_of(&b)->left_out, 3 * WINDOW - 1);
    bench_close(&b);
}

/* Whether the server still asks after the least time when these were late for long. */
static bool asks_soon_after(uint32_t first, uint32_t second)
{
    const uint32_t late[] = {first, second};
    uint32_t seq = FIRST + 1;
    struct bench b;
    bench_open_with(&b, PATIENCE_MAX);
    answer_at_once(&b);
    for (uint32_t i = 0; i < GW_COUNT_OF(late); i++, seq += 4) {
        uint64_t left_out = stats_of(&b)->left_out;
        send_all_but(&b, 1u << late[i], seq, 4);
        pass(&b, PATIENCE); /* asks it alone */
        pass(&b, PATIENCE);
        assert_true(stats_of(&b)->left_out > left_out);
        b.now += 4 * PATIENCE;
        send_all_but(&b, ALL & ~(1u << late[i]), seq, 4);
        assert_int_equal(stats_of(&b)->results, seq + 4 - FIRST);
    }
    uint64_t probes = stats_of(&b)->probes;
    send_all_but(&b, 1, seq, 1);
    pass(&b, PATIENCE);
    bool asks = stats_of(&b)->probes > probes;
    bench_close(&b);
    return asks;
}

/* One straggler is nothing usual: for that nobody is waited for longer. */
static void deadline__stragglers_stretch_the_patience_if_they_are_several(void **state)
{
    (void)state;
    assert_true(asks_soon_after(0, 0));
    assert_false(asks_soon_after(0, 4));
}

/* Who is late is asked again when answers have usually come, not only when the fastest would. */
static void deadline__asks_again_after_a_usual_trip(void **state)
{
    (void)state;
    struct bench b;
    bench_open_with(&b, PATIENCE_MAX);
    answer_at_once(&b);
    send_all_but(&b, 7, FIRST + 1, 1);
    pass(&b, PATIENCE); /* asks 0, whom a minority does not make late */
    b.now += 12 * PATIENCE;
    send_all_but(&b, 24, FIRST + 1, 1);
    assert_int_equal(stats_of(&b)->results, 2);
    send_all_but(&b, 1, FIRST + 2, 4);
    pass(&b, 3 * PATIENCE);
    pass(&b, 3 * PATIENCE);
    assert_int_equal(stats_of(&b)->left_out, 3); /* half of six */
    pass(&b, PATIENCE / 2 + 1);
    assert_int_equal(stats_of(&b)->invited, 0);
    pass(&b, PATIENCE / 2);
    assert_int_equal(stats_of(&b)->invited, 1);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadline__a_late_contribution_changes_nothing),
        cmocka_unit_test(deadline__nobody_is_in_a_sum_twice),
        cmocka_unit_test(deadline__what_no_worker_can_have_sent_is_dropped),
        cmocka_unit_test(deadline__the_bound_is_not_passed),
        cmocka_unit_test(deadline__one_worker_makes_no_bound_looser),
        cmocka_unit_test(deadline__a_minority_decides_nothing),
        cmocka_unit_test(deadline__a_worker_completes_nothing_alone),
        cmocka_unit_test(deadline__a_flood_is_not_answered_with_requests),
        cmocka_unit_test(deadline__nobody_is_left_two_windows_behind),
        cmocka_unit_test(deadline__stragglers_stretch_the_patience_if_they_are_several),
        cmocka_unit_test(deadline__asks_again_after_a_usual_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
