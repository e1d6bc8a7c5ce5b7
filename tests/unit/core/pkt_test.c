/* Pools of packets and buffers: what is claimed is distinct, what is released comes back. */
#include "support.h"

#include "base/prng.h"
#include "core/pkt.h"

enum {
    PKTS = 8,
    BUFS = 4,
    BUF_SIZE = 100,
};

struct fixture {
    _Alignas(64) struct gw_pkt pkts[PKTS];
    uint64_t memory[BUFS * BUF_SIZE / sizeof(uint64_t) + 64];
    struct gw_buf_pool bufs;
    struct gw_pkt_pool pool;
};

static int open_fixture(void **state)
{
    struct fixture *f = gw_test_take(sizeof(*f));
    assert_true(gw_buf_pool_size(BUFS, BUF_SIZE) <= sizeof(f->memory));
    gw_buf_pool_init(&f->bufs, f->memory, BUFS, BUF_SIZE);
    gw_pkt_pool_init(&f->pool, f->pkts, 0, PKTS, &f->bufs);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    free(*state);
    return 0;
}

/* Claims until the pool is empty; every packet must be another one. Returns how many there were. */
static uint32_t claim_all(struct fixture *f, struct gw_pkt_pool *pool, struct gw_pkt **claimed)
{
    bool seen[PKTS] = {false};
    uint32_t count = 0;
    for (struct gw_pkt *pkt; (pkt = gw_pkt_claim(pool)) != NULL; count++) {
        uint32_t index = gw_pkt_index(pool, pkt);
        assert_true(index < PKTS && !seen[index]);
        assert_ptr_equal(pkt, &f->pkts[index]);
        assert_ptr_equal(gw_pkt_at(pool, index), pkt);
        assert_int_equal(pkt->buf, GW_BUF_NONE);
        seen[index] = true;
        claimed[count] = pkt;
    }
    return count;
}

static void pkt_claim__gives_each_packet_once_and_again(void **state)
{
    struct fixture *f = *state;
    struct gw_pkt *claimed[PKTS];
    for (int round = 0; round < 3; round++) {
        assert_int_equal(claim_all(f, &f->pool, claimed), PKTS);
        assert_int_equal(f->pool.free_count, 0);
        for (uint32_t i = 0; i < PKTS; i++)
            gw_pkt_release(&f->pool, claimed[(i * 3) % PKTS]);
        assert_int_equal(f->pool.free_count, PKTS);
    }
}

static void pkt_claim__reuses_before_it_takes_fresh_ones(void **state)
{
    struct fixture *f = *state;
    struct gw_pkt *first = gw_pkt_claim(&f->pool);
    gw_pkt_release(&f->pool, first);
    assert_ptr_equal(gw_pkt_claim(&f->pool), first);
}

/* Two views of one memory: a packet that crosses ends up in the view that released it. */
static void pkt_release__moves_packets_between_views(void **state)
{
    struct fixture *f = *state;
    enum { SPLIT = 5 };
    struct gw_pkt_pool left, right;
    gw_pkt_pool_init(&left, f->pkts, 0, SPLIT, NULL);
    gw_pkt_pool_init(&right, f->pkts, SPLIT, PKTS - SPLIT, NULL);

    struct gw_pkt *claimed[PKTS];
    assert_int_equal(claim_all(f, &left, claimed), SPLIT);
    assert_int_equal(claim_all(f, &right, claimed + SPLIT), PKTS - SPLIT);
    for (uint32_t i = 0; i < PKTS; i++)
        gw_pkt_release(&right, claimed[i]);
    assert_null(gw_pkt_claim(&left));
    assert_int_equal(claim_all(f, &right, claimed), PKTS);
}

static void buf_claim__gives_disjoint_buffers_until_empty(void **state)
{
    struct fixture *f = *state;
    uint32_t claimed[BUFS];
    for (uint32_t i = 0; i < BUFS; i++) {
        claimed[i] = gw_buf_claim(&f->bufs);
        assert_int_not_equal(claimed[i], GW_BUF_NONE);
        memset(gw_buf_bytes(&f->bufs, claimed[i]), (int)i, BUF_SIZE);
    }
    assert_int_equal(gw_buf_claim(&f->bufs), GW_BUF_NONE);
    for (uint32_t i = 0; i < BUFS; i++) {
        unsigned char expected[BUF_SIZE];
        memset(expected, (int)i, sizeof(expected));
        assert_memory_equal(gw_buf_bytes(&f->bufs, claimed[i]), expected, BUF_SIZE);
    }
    gw_buf_release(&f->bufs, claimed[2]);
    assert_int_equal(gw_buf_claim(&f->bufs), claimed[2]);
}

/* A pool of MANY buffers in memory of its own. */
enum {
    MANY = 200,
};

static struct gw_buf_pool *open_many(uint32_t size)
{
    struct gw_buf_pool *bufs = malloc(sizeof(*bufs));
    void *memory = malloc(gw_buf_pool_size(MANY, size));
    assert_true(bufs && memory);
    gw_buf_pool_init(bufs, memory, MANY, size);
    return bufs;
}

static void close_many(struct gw_buf_pool *bufs)
{
    free(bufs->memory);
    free(bufs);
}

/* Random claims and releases against a list of who holds what: no buffer has two owners, none is
 * lost, and the pool is empty exactly when all are held. */
static void buf_claim__gives_each_of_many_to_one_owner(void **state)
{
    (void)state;
    struct gw_buf_pool *bufs = open_many(BUF_SIZE);
    struct gw_prng prng = {.state = 3};
    uint32_t held[MANY], count = 0, times_empty = 0;
    bool is_held[MANY] = {false};
    for (int step = 0; step < 100000; step++) {
        uint32_t swing = step / 1000 % 2 ? 3 : 1; /* fills and drains in turns */
        if (gw_prng_below(&prng, 4) < swing) {
            uint32_t buf = gw_buf_claim(bufs);
            assert_int_equal(buf == GW_BUF_NONE, count == MANY);
            times_empty += buf == GW_BUF_NONE;
            if (buf != GW_BUF_NONE) {
                assert_true(buf < MANY && !is_held[buf]);
                is_held[buf] = true;
                held[count++] = buf;
            }
        } else if (count > 0) {
            uint32_t at = gw_prng_below(&prng, count);
            is_held[held[at]] = false;
            gw_buf_release(bufs, held[at]);
            held[at] = held[--count];
        }
    }
    assert_true(times_empty > 100);
    close_many(bufs);
}

/* Trains that come and go, some of them kept for long: nearly all packets of a train lie behind
 * their predecessor. */
static void buf_claim__lays_trains_side_by_side(void **state)
{
    (void)state;
    enum { TRAIN = 20, KEPT = 3 };
    struct gw_buf_pool *bufs = open_many(BUF_SIZE);
    uint32_t trains[KEPT + 1][TRAIN];
    uint32_t breaks = 0;
    for (uint32_t round = 0; round < 1000; round++) {
        uint32_t *train = trains[round % (KEPT + 1)];
        for (uint32_t i = 0; i < TRAIN; i++) {
            if (round > KEPT)
                gw_buf_release(bufs, train[i]);
            train[i] = gw_buf_claim(bufs);
        }
        for (uint32_t i = 1; i < TRAIN; i++)
            breaks += gw_buf_bytes(bufs, train[i]) != gw_buf_bytes(bufs, train[i - 1]) + BUF_SIZE;
    }
    assert_in_range(breaks, 0, 1000);
    close_many(bufs);
}

/* What is set apart before a payload belongs to that buffer alone. */
static void buf_front__lies_between_payloads(void **state)
{
    (void)state;
    enum { FRONT = 12 };
    struct gw_buf_pool *bufs = open_many(BUF_SIZE);
    gw_buf_pool_set_front(bufs, FRONT);
    assert_int_equal(bufs->size, BUF_SIZE - FRONT);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t buf = gw_buf_claim(bufs);
        memset(gw_buf_bytes(bufs, buf) - FRONT, (int)buf, FRONT + bufs->size);
    }
    for (uint32_t buf = 0; buf < MANY; buf++)
        for (uint32_t k = 0; k < FRONT + bufs->size; k++)
            assert_int_equal(gw_buf_bytes(bufs, buf)[(int)k - FRONT], buf);
    close_many(bufs);
}

/* A payload that several packets share goes back with the last of them, not before. */
static void pkt_release__frees_a_shared_payload_last(void **state)
{
    struct fixture *f = *state;
    uint32_t buf = gw_buf_claim(&f->bufs);
    while (gw_buf_claim(&f->bufs) != GW_BUF_NONE)
        ;
    struct gw_pkt *copies[3];
    for (size_t i = 0; i < GW_COUNT_OF(copies); i++) {
        copies[i] = gw_pkt_claim(&f->pool);
        copies[i]->buf = buf;
        if (i > 0)
            gw_buf_share(&f->bufs, buf);
    }
    gw_pkt_release(&f->pool, copies[0]);
    gw_pkt_drop_payload(&f->pool, copies[1]);
    assert_int_equal(copies[1]->buf, GW_BUF_NONE);
    assert_int_equal(gw_buf_claim(&f->bufs), GW_BUF_NONE);
    gw_pkt_drop_payload(&f->pool, copies[1]);
    gw_pkt_release(&f->pool, copies[1]);
    assert_int_equal(gw_buf_claim(&f->bufs), GW_BUF_NONE);
    gw_pkt_release(&f->pool, copies[2]);
    assert_int_equal(gw_buf_claim(&f->bufs), buf);
}

/* A buffer of one owner stays; a shared one is copied, and the other owners' stays as it is. */
static void buf_own__copies_only_what_is_shared(void **state)
{
    struct fixture *f = *state;
    const uint32_t first = gw_buf_claim(&f->bufs);
    uint32_t buf = first, copy = first;
    memset(gw_buf_bytes(&f->bufs, first), 7, BUF_SIZE);
    assert_true(gw_buf_own(&f->bufs, &buf, BUF_SIZE));
    assert_int_equal(buf, first);
    gw_buf_share(&f->bufs, first);
    assert_true(gw_buf_own(&f->bufs, &copy, BUF_SIZE));
    assert_int_not_equal(copy, first);
    assert_memory_equal(gw_buf_bytes(&f->bufs, copy), gw_buf_bytes(&f->bufs, first), BUF_SIZE);
    assert_true(gw_buf_own(&f->bufs, &buf, BUF_SIZE)); /* one reference is left */
    assert_int_equal(buf, first);
    gw_buf_share(&f->bufs, first);
    while (gw_buf_claim(&f->bufs) != GW_BUF_NONE)
        ;
    assert_false(gw_buf_own(&f->bufs, &buf, BUF_SIZE));
    assert_true(buf == first && f->bufs.refs[first] == 2);
}

/* What is lent takes no buffer until it is settled, which copies it; where no buffer is free the
 * packet goes. */
static void pkt_settle__copies_what_is_lent(void **state)
{
    enum { LEN = BUF_SIZE - 1 };
    struct fixture *f = *state;
    unsigned char memory[3][LEN];
    struct gw_pkt *pkts[4];
    uint32_t own = gw_buf_claim(&f->bufs), taken = 0;
    for (uint32_t i = 0; i < 3; i++) {
        memset(memory[i], (int)i + 1, LEN);
        pkts[i] = gw_pkt_claim(&f->pool);
        pkts[i]->data.len = LEN;
        pkts[i]->buf = gw_buf_lend(&f->bufs, memory[i]);
        assert_true(gw_buf_is_lent(pkts[i]->buf));
        assert_ptr_equal(gw_buf_payload(&f->bufs, pkts[i]->buf), memory[i]);
    }
    pkts[3] = gw_pkt_claim(&f->pool);
    pkts[3]->buf = own;
    assert_false(gw_buf_is_lent(own) || gw_buf_is_lent(GW_BUF_NONE));
    assert_ptr_equal(gw_buf_payload(&f->bufs, own), gw_buf_bytes(&f->bufs, own));
    gw_pkt_drop_payload(&f->pool, pkts[1]); /* gives nothing back */
    assert_int_equal(pkts[1]->buf, GW_BUF_NONE);
    pkts[1]->buf = gw_buf_lend(&f->bufs, memory[1]);
    while (taken < BUFS - 2 && gw_buf_claim(&f->bufs) != GW_BUF_NONE)
        taken++;
    struct gw_pkt *first = pkts[0]; /* the one that gets the last buffer */
    uint64_t lost = 5;
    assert_int_equal(gw_pkt_settle(&f->pool, pkts, 4, &lost), 2);
    assert_int_equal(lost, 5 + 2);
    memset(memory, 0, sizeof(memory));
    assert_ptr_equal(pkts[0], first);
    assert_int_equal(pkts[1]->buf, own);
    for (uint32_t k = 0; k < LEN; k++)
        assert_int_equal(gw_buf_bytes(&f->bufs, pkts[0]->buf)[k], 1);
}

static void seq_before__holds_around_the_wrap(void **state)
{
    (void)state;
    for (uint32_t a = UINT32_MAX - 3; a != 4; a++) {
        assert_false(gw_seq_before(a, a));
        assert_true(gw_seq_before(a, a + 1));
        assert_true(gw_seq_before(a, a + INT32_MAX));
        assert_false(gw_seq_before(a + 1, a));
        assert_false(gw_seq_before(a + INT32_MAX, a));
    }
}

static void pool_init__accepts_empty_pools(void **state)
{
    struct fixture *f = *state;
    struct gw_buf_pool bufs;
    gw_buf_pool_init(&bufs, f->memory, 0, BUF_SIZE);
    assert_int_equal(gw_buf_claim(&bufs), GW_BUF_NONE);
    struct gw_pkt_pool pool;
    gw_pkt_pool_init(&pool, f->pkts, 3, 0, NULL);
    assert_null(gw_pkt_claim(&pool));
}

/* Random pushes and pops against a counter: packets leave in the order of their numbers. */
static void pkt_fifo__keeps_order_and_counts_bytes(void **state)
{
    struct fixture *f = *state;
    struct gw_pkt_fifo fifo = {.count = 0};
    struct gw_prng prng = {.state = 1};
    uint32_t pushed = 0, popped = 0, bytes = 0;
    for (int step = 0; step < 10000; step++) {
        struct gw_pkt *pkt = gw_prng_below(&prng, 2) ? gw_pkt_claim(&f->pool) : NULL;
        if (pkt) {
            pkt->seq = pushed++;
            pkt->q.size = 1 + gw_prng_below(&prng, 9000);
            bytes += pkt->q.size;
            gw_pkt_fifo_push(&fifo, &f->pool, pkt);
        } else if (fifo.count > 0) {
            pkt = gw_pkt_fifo_pop(&fifo, &f->pool);
            assert_int_equal(pkt->seq, popped++);
            bytes -= pkt->q.size;
            gw_pkt_release(&f->pool, pkt);
        }
        assert_int_equal(fifo.count, pushed - popped);
        assert_int_equal(fifo.bytes, bytes);
    }
    assert_true(popped > 1000);
}

static void flow_key__tells_flows_and_directions_apart(void **state)
{
    (void)state;
    uint32_t key = gw_flow_key(1, 2, 3);
    assert_int_equal(gw_flow_key(1, 2, 3), key);
    assert_int_not_equal(gw_flow_key(2, 1, 3), key);
    assert_int_not_equal(gw_flow_key(1, 2, 4), key);
    assert_int_not_equal(gw_flow_key(1, 3, 3), key);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pkt_claim__gives_each_packet_once_and_again),
        TEST(pkt_claim__reuses_before_it_takes_fresh_ones),
        TEST(pkt_release__moves_packets_between_views),
        TEST(buf_claim__gives_disjoint_buffers_until_empty),
        cmocka_unit_test(buf_claim__gives_each_of_many_to_one_owner),
        cmocka_unit_test(buf_claim__lays_trains_side_by_side),
        cmocka_unit_test(buf_front__lies_between_payloads),
        TEST(pkt_release__frees_a_shared_payload_last),
        TEST(buf_own__copies_only_what_is_shared),
        TEST(pkt_settle__copies_what_is_lent),
        cmocka_unit_test(seq_before__holds_around_the_wrap),
        TEST(pool_init__accepts_empty_pools),
        TEST(pkt_fifo__keeps_order_and_counts_bytes),
        cmocka_unit_test(flow_key__tells_flows_and_directions_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
