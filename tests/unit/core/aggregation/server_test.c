/* The parameter server, fed with single packets; what it sends is looked at one by one. */
#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/server.h"

enum {
    JOB = 4,
    EPOCH = 6,
    SERVER = 0,
    WORLD = 3,
    VALUES = 2,
    POSITIONS = 4,
    WINDOW = 2 * POSITIONS,
    RAW_MAX = 2,
    AGGREGATORS = 16,
    PKTS = 64,
};

#define QUIET (50 * GW_US)

static const uint32_t first_seq = UINT32_MAX - 1; /* wraps soon */

struct bench {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_server *server;
    void *memory;
};

/* A server that has had no epoch. */
static void bench_make(struct bench *b, uint8_t levels)
{
    struct gw_server_cfg cfg = {.job = JOB,
                                .world = WORLD,
                                .levels = levels,
                                .values = VALUES,
                                .window_max = POSITIONS,
                                .aggregators = AGGREGATORS,
                                .raw_max = RAW_MAX,
                                .retry = GW_US,
                                .quiet = QUIET,
                                .kernels = gw_kernels_best(gw_cpu_features())};
    struct gw_endpoint_cfg host = gw_test_host_cfg(SERVER, 4 * VALUES);
    host.apps_max = 1;
    gw_test_host_open(&b->host, &host, PKTS);
    b->node = gw_endpoint_node(b->host.endpoint);
    b->memory = gw_test_take(gw_server_size(&cfg));
    assert_int_equal(gw_server_init(&b->server, b->memory, &cfg, b->host.endpoint), 0);
}

/* Workers 0 and 1 share a rack, worker 2 has one of its own; their addresses are 10 and on. */
static void bench_open(struct bench *b, uint8_t levels)
{
    static const struct gw_place workers[WORLD] = {
        {.address = 10, .bitmap = 1},
        {.address = 11, .bitmap = 2},
        {.address = 12, .bitmap = 1, .above = {1}},
    };
    bench_make(b, levels);
    struct gw_server_epoch epoch = {
        .epoch = EPOCH, .levels = levels, .first_seq = first_seq, .places = workers};
    gw_server_begin(b->server, &epoch);
}

static void bench_close(struct bench *b)
{
    gw_server_fini(b->server);
    free(b->memory);
    gw_test_host_close(&b->host);
}

/* A gradient of worker `rank`; the payload is `value` twice. */
static struct gw_pkt *gradient(struct bench *b, uint32_t rank, uint32_t seq, uint32_t value)
{
    struct gw_pkt *pkt = gw_pkt_claim(&b->host.pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.kind = GW_PKT_GRAD, .size = 100},
        .src = 10 + rank,
        .dst = SERVER,
        .flow = JOB,
        .key = gw_agg_key(1, GW_DTYPE_I32, false),
        .epoch = EPOCH,
        .seq = seq,
        .index = 7,
        .buf = gw_buf_claim(&b->host.bufs),
        .agg = {.bitmap = rank == 1 ? 2 : 1, .values = VALUES, .above = {rank == 2}},
    };
    for (uint32_t i = 0; i < VALUES; i++)
        memcpy(gw_buf_bytes(&b->host.bufs, pkt->buf) + 4 * (size_t)i, &value, 4);
    return pkt;
}

static void input(struct bench *b, struct gw_pkt *pkt)
{
    gw_node_input(b->node, 0, &pkt, 1, 0);
}

static void send(struct bench *b, uint32_t rank, uint32_t seq, uint32_t value, uint8_t flags)
{
    struct gw_pkt *pkt = gradient(b, rank, seq, value);
    pkt->agg_flags = flags;
    input(b, pkt);
}

/* The next packet that leaves, of which a copy is returned; *value is its payload, if any. */
static bool take(struct bench *b, struct gw_pkt *copy, uint32_t *value)
{
    struct gw_pkt *pkt;
    b->node->ready_count = 0;
    if ((gw_node_output(b->node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE) == 0)
        return false;
    *copy = *pkt;
    if (pkt->buf != GW_BUF_NONE)
        memcpy(value, gw_buf_bytes(&b->host.bufs, pkt->buf), 4);
    gw_pkt_release(&b->host.pool, pkt);
    return true;
}

static void expect_result(struct bench *b, uint32_t seq, uint32_t dst, uint8_t flags,
                          uint32_t expected)
{
    struct gw_pkt pkt;
    uint32_t value = 0;
    assert_true(take(b, &pkt, &value));
    assert_int_equal(pkt.seq, seq);
    assert_int_equal(pkt.dst, dst);
    assert_int_equal(pkt.agg_flags, flags);
    assert_int_equal(value, expected);
}

static void expect_silence(struct bench *b)
{
    struct gw_pkt pkt;
    uint32_t value;
    assert_false(take(b, &pkt, &value));
}

static void server__adds_what_is_new_and_drops_what_overlaps(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    send(&b, 0, first_seq, 1, 0);
    send(&b, 0, first_seq, 1, GW_AGG_RESEND);
    struct gw_pkt *both = gradient(&b, 0, first_seq, 5);
    both->agg.bitmap = 3;
    input(&b, both); /* holds 0 again: dropped as a whole */
    struct gw_pkt *rack = gradient(&b, 2, first_seq, 300);
    rack->agg.level = 1;
    rack->agg.bitmap = 2; /* the position of the rack */
    input(&b, rack);
    expect_silence(&b);
    send(&b, 1, first_seq, 20, 0);
    expect_result(&b, first_seq, 10, 0, 321);
    expect_silence(&b);
    const struct gw_server_stats *stats = gw_server_stats(b.server);
    assert_int_equal(stats->overlaps, 2);
    assert_int_equal(stats->partial, 3);
    assert_int_equal(stats->received, 5);
    assert_int_equal(stats->bytes, 500);
    bench_close(&b);
}

/* A switch of this process may have kept what it has handed on. */
static void server__adds_to_no_buffer_that_others_hold(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    struct gw_pkt *kept = gradient(&b, 0, first_seq, 1);
    uint32_t buf = kept->buf, value = 0;
    gw_buf_share(&b.host.bufs, buf);
    input(&b, kept);
    send(&b, 1, first_seq, 20, 0);
    send(&b, 2, first_seq, 300, 0);
    expect_result(&b, first_seq, 10, 0, 321);
    memcpy(&value, gw_buf_bytes(&b.host.bufs, buf), sizeof(value));
    assert_int_equal(value, 1);
    gw_buf_release(&b.host.bufs, buf);
    bench_close(&b);
}

/* The sum waits for the copy that it needs, and then has each worker once. */
static void server__without_a_buffer_adds_nothing(void **state)
{
    (void)state;
    struct bench b;
    uint32_t bufs[PKTS], count = 0;
    bench_open(&b, 2);
    struct gw_pkt *kept = gradient(&b, 0, first_seq, 1);
    bufs[count++] = kept->buf;
    gw_buf_share(&b.host.bufs, kept->buf);
    input(&b, kept);
    struct gw_pkt *second = gradient(&b, 1, first_seq, 20);
    while ((bufs[count] = gw_buf_claim(&b.host.bufs)) != GW_BUF_NONE)
        count++;
    input(&b, second);
    assert_int_equal(gw_server_stats(b.server)->refused, 1);
    assert_int_equal(gw_server_stats(b.server)->partial, 1);
    while (count)
        gw_buf_release(&b.host.bufs, bufs[--count]);
    send(&b, 1, first_seq, 20, GW_AGG_RESEND);
    send(&b, 2, first_seq, 300, 0);
    expect_result(&b, first_seq, 10, 0, 321);
    bench_close(&b);
}

static void server__a_sum_of_all_replaces(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    send(&b, 0, first_seq, 1, 0);
    struct gw_pkt *all = gradient(&b, 0, first_seq, 44);
    all->agg.level = 2;
    input(&b, all);
    expect_result(&b, first_seq, 10, 0, 44);
    assert_int_equal(gw_server_stats(b.server)->complete, 1);
    bench_close(&b);
}

static void server__answers_only_who_asks_again(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq, 1, 0);
    expect_result(&b, first_seq, 10, 0, 3);
    send(&b, 1, first_seq, 1, 0); /* a duplicate */
    expect_silence(&b);
    send(&b, 1, first_seq, 1, GW_AGG_RESEND);
    expect_result(&b, first_seq, 11, GW_AGG_UNICAST, 3);
    bench_close(&b);
}

static void server__without_a_tree_sends_to_each(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq, 1, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        expect_result(&b, first_seq, 10 + rank, GW_AGG_UNICAST, 3);
    expect_silence(&b);
    bench_close(&b);
}

/* Marks of switches, and of the last queue, which no switch has seen. */
static void server__returns_congestion_marks(void **state)
{
    (void)state;
    for (uint32_t by_switch = 0; by_switch < 2; by_switch++) {
        struct bench b;
        bench_open(&b, 2);
        struct gw_pkt *marked = gradient(&b, 0, first_seq, 1);
        if (by_switch)
            marked->agg_flags = GW_AGG_ECN;
        else
            marked->q.ecn = GW_ECN_CE;
        input(&b, marked);
        send(&b, 1, first_seq, 1, 0);
        send(&b, 2, first_seq, 1, 0);
        expect_result(&b, first_seq, 10, GW_AGG_ECN, 3);
        bench_close(&b);
    }
}

/* Who says that a fragment was lost that is in the sum waits for others. */
static void server__a_loss_of_what_is_there_is_none(void **state)
{
    (void)state;
    for (uint32_t was_there = 0; was_there < 2; was_there++) {
        struct bench b;
        bench_open(&b, 2);
        send(&b, was_there ? 0 : 1, first_seq, 1, GW_AGG_RESEND | GW_AGG_EVEN);
        send(&b, 0, first_seq, 1, GW_AGG_RESEND | GW_AGG_EVEN | GW_AGG_ECN);
        send(&b, was_there ? 1 : 2, first_seq, 1, GW_AGG_RESEND | GW_AGG_EVEN);
        if (was_there)
            send(&b, 2, first_seq, 1, GW_AGG_RESEND | GW_AGG_EVEN);
        expect_result(&b, first_seq, 10, was_there ? 0 : GW_AGG_ECN, 3);
        bench_close(&b);
    }
}

/* What a fragment was marked with is not said of the one that has its slot next. */
static void server__a_slots_next_fragment_begins_anew(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    for (uint32_t i = 0; i <= WINDOW; i++) {
        uint8_t mark = i == 0 ? GW_AGG_ECN : 0;
        for (uint32_t rank = 0; rank < WORLD; rank++)
            send(&b, rank, first_seq + i, i, mark);
        expect_result(&b, first_seq + i, 10, mark, WORLD * i);
    }
    bench_close(&b);
}

/* What is more than a window behind a sum of all is what all have: nobody can lack it. */
static void server__keeps_no_more_than_can_be_lacking(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    for (uint32_t i = 0; i <= POSITIONS + 1; i++) {
        for (uint32_t rank = 0; rank < WORLD; rank++)
            send(&b, rank, first_seq + i, i, 0);
        expect_result(&b, first_seq + i, 10, 0, WORLD * i);
    }
    send(&b, 1, first_seq, 0, GW_AGG_RESEND);
    expect_silence(&b);
    assert_int_equal(gw_server_stats(b.server)->stale, 1);
    send(&b, 1, first_seq + 1, 1, GW_AGG_RESEND);
    expect_result(&b, first_seq + 1, 11, GW_AGG_UNICAST, WORLD);
    bench_close(&b);
}

static void server__a_collision_moves_the_position(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    struct gw_agg_index index;
    uint64_t memory[32];
    struct gw_pkt pkt;
    uint32_t value;
    gw_agg_index_init(
        &index, memory,
        &(struct gw_agg_index_cfg){.job = JOB, .window = POSITIONS, .aggregators = AGGREGATORS});
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct gw_pkt *gradient_pkt = gradient(&b, rank, first_seq, 1);
        gradient_pkt->index = gw_agg_index_of(&index, first_seq);
        gradient_pkt->agg_flags = rank == 1 ? GW_AGG_COLLISION | GW_AGG_RESEND : 0;
        input(&b, gradient_pkt);
    }
    assert_true(take(&b, &pkt, &value));
    assert_int_equal(pkt.agg_flags, GW_AGG_COLLISION);
    assert_int_equal(pkt.index, gw_agg_index_of(&index, first_seq)); /* the one to free */
    for (uint32_t i = 0; i < POSITIONS; i++)
        assert_int_not_equal(gw_agg_index_of(&index, i), pkt.agg.bitmap);
    bench_close(&b);
}

/* A collision of worker `rank`; the others' packets are in a switch. */
static void collide(struct bench *b, uint32_t rank, uint32_t seq)
{
    send(b, rank, seq, 1, GW_AGG_COLLISION | GW_AGG_RESEND);
}

static void expect_request(struct bench *b, uint32_t seq, uint32_t positions)
{
    struct gw_pkt pkt;
    uint32_t value;
    assert_true(take(b, &pkt, &value));
    assert_int_equal(pkt.agg_flags, GW_AGG_REQUEST);
    assert_int_equal(pkt.seq, seq);
    assert_int_equal(pkt.dst, 10); /* and through the tree to all */
    assert_int_equal(pkt.agg.values, 0);
    assert_int_equal(pkt.agg.bitmap, positions);
}

/* When a later fragment is complete, all that collided ones lack has been sent. */
static void server__asks_for_what_a_collision_left_behind(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    collide(&b, 0, first_seq);
    send(&b, 2, first_seq + 1, 1, 0); /* lacks something, but was in no collision */
    expect_silence(&b);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq + 2, 1, 0);
    expect_request(&b, first_seq, 2 | 1); /* of the first rack, of the second */
    expect_result(&b, first_seq + 2, 10, 0, 3);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq + 3, 1, 0);
    expect_result(&b, first_seq + 3, 10, 0, 3); /* and it asks once */
    send(&b, 1, first_seq, 1, GW_AGG_RESEND);
    send(&b, 2, first_seq, 1, GW_AGG_RESEND);
    expect_result(&b, first_seq, 10, GW_AGG_COLLISION, 3);
    assert_int_equal(gw_server_stats(b.server)->asked, 1);
    bench_close(&b);
}

/* A request names who is missing when it leaves, and does not leave when nobody is. */
static void server__asks_for_no_more_than_it_lacks(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    collide(&b, 0, first_seq);
    collide(&b, 0, first_seq + 1);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq + 2, 1, 0);
    send(&b, 2, first_seq, 1, GW_AGG_RESEND);
    send(&b, 1, first_seq + 1, 1, GW_AGG_RESEND);
    send(&b, 2, first_seq + 1, 1, GW_AGG_RESEND);
    expect_request(&b, first_seq, 2);
    expect_result(&b, first_seq + 2, 10, 0, 3);
    expect_result(&b, first_seq + 1, 10, GW_AGG_COLLISION, 3);
    expect_silence(&b);
    bench_close(&b);
}

/* With nothing to overtake it: after a while, then after twice as long, until something comes. */
static void server__asks_when_it_is_quiet(void **state)
{
    (void)state;
    struct bench b;
    gw_time now = 0;
    bench_open(&b, 2);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    collide(&b, 2, first_seq);
    for (uint32_t round = 0; round < 4; round++) {
        expect_silence(&b);
        now += QUIET << round;
        gw_node_expire(b.node, now - 1);
        expect_silence(&b);
        assert_true(gw_node_deadline(b.node) == now);
        gw_node_expire(b.node, now);
        expect_request(&b, first_seq, 1);
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        send(&b, rank, first_seq, 1, GW_AGG_RESEND);
    expect_result(&b, first_seq, 10, GW_AGG_COLLISION, 3);
    gw_node_expire(b.node, now + GW_S);
    expect_silence(&b);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    bench_close(&b);
}

/* Nothing collides where nothing adds up. */
static void server__without_a_tree_asks_nobody(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    collide(&b, 0, first_seq);
    assert_true(gw_node_deadline(b.node) == GW_TIME_NEVER);
    bench_close(&b);
}

static void server__drops_what_no_worker_can_send(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    send(&b, 0, first_seq + POSITIONS, 1, 0); /* beyond the window, and before it */
    send(&b, 0, first_seq - 1, 1, 0);
    struct gw_pkt *epoch = gradient(&b, 0, first_seq, 1), *place = gradient(&b, 0, first_seq, 1);
    struct gw_pkt *nobody = gradient(&b, 0, first_seq, 1), *level = gradient(&b, 0, first_seq, 1);
    struct gw_pkt *stranger = gradient(&b, 0, first_seq, 1);
    epoch->epoch++;
    place->agg.above[0] = 9;
    nobody->agg.bitmap = 0;
    stranger->agg.bitmap = 1u << 31;
    level->agg.level = 3;
    input(&b, epoch);
    input(&b, place);
    input(&b, nobody);
    input(&b, level);
    input(&b, stranger);
    assert_int_equal(gw_server_stats(b.server)->stale, 7);
    /* None of that is in the way: two windows of fragments, one after the other. */
    for (uint32_t i = 0; i < 2 * WINDOW; i++) {
        for (uint32_t rank = 0; rank < WORLD; rank++)
            send(&b, rank, first_seq + i, i, 0);
        expect_result(&b, first_seq + i, 10, 0, 3 * i);
    }
    send(&b, 0, first_seq, 0, GW_AGG_RESEND); /* its slot is another's */
    expect_silence(&b);
    assert_int_equal(gw_server_stats(b.server)->stale, 8);
    bench_close(&b);
}

/* There is no map of aggregators yet that a result could be looked up in. */
static void server__without_an_epoch_takes_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_make(&b, 2);
    for (uint32_t flags = 0; flags < GW_AGG_SLOT; flags++) {
        struct gw_pkt *pkt = gradient(&b, 0, first_seq, 5);
        pkt->epoch = 0;
        pkt->agg_flags = (uint8_t)flags;
        input(&b, pkt);
        send(&b, 0, first_seq, 5, (uint8_t)flags);
    }
    assert_int_equal(gw_server_stats(b.server)->stale, 2 * GW_AGG_SLOT);
    expect_silence(&b);
    bench_close(&b);
}

/* No switch has added up anything, so nobody speaks for others. */
static void server__without_a_tree_each_speaks_for_itself(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    struct gw_pkt *other = gradient(&b, 0, first_seq, 100), *both = gradient(&b, 0, first_seq, 100);
    other->src = 77;
    both->agg.bitmap = 3;
    input(&b, other);
    input(&b, both);
    assert_int_equal(gw_server_stats(b.server)->stale, 2);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq, 1 + rank, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        expect_result(&b, first_seq, 10 + rank, GW_AGG_UNICAST, 6);
    bench_close(&b);
}

static void server__a_disagreement_about_the_tensor_is_stale(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    struct gw_pkt *key = gradient(&b, 1, first_seq, 1), *shorter = gradient(&b, 1, first_seq, 1);
    send(&b, 0, first_seq, 1, 0);
    key->key++;
    shorter->agg.values--;
    input(&b, key);
    input(&b, shorter);
    assert_int_equal(gw_server_stats(b.server)->stale, 2);
    bench_close(&b);
}

/* A saturated sum: everybody is asked for raw values, and once more on an integer packet. */
static void server__collects_raw_values(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    send(&b, 0, first_seq, INT32_MAX, 0);
    expect_result(&b, first_seq, 10, GW_AGG_REQUEST | GW_AGG_RAW, 0);
    send(&b, 1, first_seq, 1, GW_AGG_RESEND);
    expect_result(&b, first_seq, 11, GW_AGG_REQUEST | GW_AGG_RAW | GW_AGG_UNICAST, 0);
    send(&b, 2, first_seq, (uint32_t)-5, GW_AGG_RAW | GW_AGG_RESEND);
    send(&b, 0, first_seq, INT32_MAX, GW_AGG_RAW | GW_AGG_RESEND);
    send(&b, 0, first_seq, INT32_MAX, GW_AGG_RAW | GW_AGG_RESEND); /* once only */
    expect_silence(&b);
    send(&b, 1, first_seq, 1, GW_AGG_RAW | GW_AGG_RESEND);
    expect_result(&b, first_seq, 10, GW_AGG_RAW, INT32_MAX - 4);
    bench_close(&b);
}

/* What follows would bring the sum back, but a mark stays one, as in switches. */
static void server__a_sum_that_saturates_on_the_way_travels_raw(void **state)
{
    static const uint32_t values[WORLD] = {INT32_MAX - 1, 5, (uint32_t)-9};
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    send(&b, 0, first_seq, values[0], 0);
    expect_silence(&b);
    send(&b, 1, first_seq, values[1], 0);
    expect_result(&b, first_seq, 10, GW_AGG_REQUEST | GW_AGG_RAW, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq, values[rank], GW_AGG_RAW | GW_AGG_RESEND);
    expect_result(&b, first_seq, 10, GW_AGG_RAW, INT32_MAX - 5);
    bench_close(&b);
}

static void server__an_integer_sum_that_does_not_fit_fails(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, 2);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq, INT32_MAX, GW_AGG_RAW | GW_AGG_RESEND);
    expect_result(&b, first_seq, 10, GW_AGG_RAW | GW_AGG_FAILED, 0);
    bench_close(&b);
}

/* The sum depends on the order of adding, but not on that of arrival. */
static void server__adds_raw_floats_in_rank_order(void **state)
{
    static const uint32_t orders[][WORLD] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    static const float values[WORLD] = {1e30f, -1e30f, 1.0f};
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(orders); i++) {
        struct bench b;
        bench_open(&b, 2);
        for (uint32_t j = 0; j < WORLD; j++) {
            uint32_t bits;
            memcpy(&bits, &values[orders[i][j]], sizeof(bits));
            struct gw_pkt *pkt = gradient(&b, orders[i][j], first_seq, bits);
            pkt->key = gw_agg_key(1, GW_DTYPE_F32, false);
            pkt->agg_flags = GW_AGG_RAW | GW_AGG_RESEND;
            input(&b, pkt);
        }
        expect_result(&b, first_seq, 10, GW_AGG_RAW,
                      0x3f800000); /* the request was met before it left */
        bench_close(&b);
    }
}

/* Newer fragments hold all rows and wait for a worker that first waits for the oldest. */
static void server__the_oldest_raw_fragment_always_gets_a_row(void **state)
{
    static const uint8_t raw = GW_AGG_RAW | GW_AGG_RESEND;
    (void)state;
    struct bench b;
    struct gw_pkt pkt;
    uint32_t value;
    bench_open(&b, 2);
    for (uint32_t i = 1; i <= RAW_MAX; i++)
        send(&b, 0, first_seq + i, i, raw);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        send(&b, rank, first_seq, 7, raw);
    assert_int_equal(gw_server_stats(b.server)->results, 1);
    for (uint32_t i = 1; i <= RAW_MAX; i++)
        for (uint32_t rank = 0; rank < WORLD; rank++)
            send(&b, rank, first_seq + i, i, raw);
    assert_int_equal(gw_server_stats(b.server)->results, 1 + RAW_MAX);
    uint32_t results = 0;
    while (take(&b, &pkt, &value))
        if (!(pkt.agg_flags & GW_AGG_REQUEST)) {
            assert_int_equal(value, pkt.seq == first_seq ? 21 : 3 * (pkt.seq - first_seq));
            results++;
        }
    assert_int_equal(results, 1 + RAW_MAX);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server__adds_what_is_new_and_drops_what_overlaps),
        cmocka_unit_test(server__adds_to_no_buffer_that_others_hold),
        cmocka_unit_test(server__without_a_buffer_adds_nothing),
        cmocka_unit_test(server__a_sum_of_all_replaces),
        cmocka_unit_test(server__answers_only_who_asks_again),
        cmocka_unit_test(server__without_a_tree_sends_to_each),
        cmocka_unit_test(server__returns_congestion_marks),
        cmocka_unit_test(server__a_loss_of_what_is_there_is_none),
        cmocka_unit_test(server__a_slots_next_fragment_begins_anew),
        cmocka_unit_test(server__keeps_no_more_than_can_be_lacking),
        cmocka_unit_test(server__a_collision_moves_the_position),
        cmocka_unit_test(server__asks_for_what_a_collision_left_behind),
        cmocka_unit_test(server__asks_for_no_more_than_it_lacks),
        cmocka_unit_test(server__asks_when_it_is_quiet),
        cmocka_unit_test(server__without_a_tree_asks_nobody),
        cmocka_unit_test(server__drops_what_no_worker_can_send),
        cmocka_unit_test(server__without_an_epoch_takes_nothing),
        cmocka_unit_test(server__without_a_tree_each_speaks_for_itself),
        cmocka_unit_test(server__a_disagreement_about_the_tensor_is_stale),
        cmocka_unit_test(server__collects_raw_values),
        cmocka_unit_test(server__a_sum_that_saturates_on_the_way_travels_raw),
        cmocka_unit_test(server__an_integer_sum_that_does_not_fit_fails),
        cmocka_unit_test(server__adds_raw_floats_in_rank_order),
        cmocka_unit_test(server__the_oldest_raw_fragment_always_gets_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
