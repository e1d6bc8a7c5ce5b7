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
    uint32_t memory[BUFS * (BUF_SIZE + sizeof(uint32_t)) / sizeof(uint32_t)];
    struct gw_buf_pool bufs;
    struct gw_pkt_pool pool;
};

static int open_fixture(void **state)
{
    struct fixture *f = aligned_alloc(64, sizeof(*f));
    assert_non_null(f);
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
    uint32_t buf = gw_buf_claim(&f->bufs);
    memset(gw_buf_bytes(&f->bufs, buf), 7, BUF_SIZE);
    assert_int_equal(gw_buf_own(&f->bufs, buf, BUF_SIZE), buf);
    gw_buf_share(&f->bufs, buf);
    uint32_t copy = gw_buf_own(&f->bufs, buf, BUF_SIZE);
    assert_int_not_equal(copy, buf);
    assert_memory_equal(gw_buf_bytes(&f->bufs, copy), gw_buf_bytes(&f->bufs, buf), BUF_SIZE);
    assert_int_equal(gw_buf_own(&f->bufs, buf, BUF_SIZE), buf); /* one reference is left */
    gw_buf_share(&f->bufs, buf);
    while (gw_buf_claim(&f->bufs) != GW_BUF_NONE)
        ;
    assert_int_equal(gw_buf_own(&f->bufs, buf, BUF_SIZE), GW_BUF_NONE);
    assert_int_equal(f->bufs.refs[buf], 2);
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
        TEST(pkt_release__frees_a_shared_payload_last),
        TEST(buf_own__copies_only_what_is_shared),
        cmocka_unit_test(seq_before__holds_around_the_wrap),
        TEST(pool_init__accepts_empty_pools),
        TEST(pkt_fifo__keeps_order_and_counts_bytes),
        cmocka_unit_test(flow_key__tells_flows_and_directions_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
