/*
 * Every schedule of the registry, played over real numbers: all workers end with the sum, sends and
 * receives match, and as many bytes travel as the papers say.
 */
#include "support.h"

#include "core/coll/coll.h"

enum {
    N_MAX = 33,
    COUNT_MAX = 130,
};

struct play {
    const struct gw_coll_ops *coll;
    uint32_t n;
    uint32_t count;
    uint32_t values[N_MAX][COUNT_MAX];
    uint32_t before[N_MAX][COUNT_MAX];
    uint64_t sent[N_MAX];
    uint64_t largest; /* of any step */
};

static void play_step(struct play *p, uint32_t at)
{
    memcpy(p->before, p->values, sizeof(p->before));
    for (uint32_t rank = 0; rank < p->n; rank++) {
        struct gw_coll_step mine = p->coll->step(rank, p->n, at, p->count);
        assert_in_range(mine.from, 0, p->n - 1);
        assert_int_not_equal(mine.from, rank);
        struct gw_coll_step theirs = p->coll->step(mine.from, p->n, at, p->count);
        assert_int_equal(theirs.to, rank);
        assert_int_equal(theirs.send_first, mine.recv_first);
        assert_int_equal(theirs.send_count, mine.recv_count);
        assert_int_equal(theirs.op, mine.op);
        assert_true(mine.recv_first + mine.recv_count <= p->count);
        for (uint64_t i = mine.recv_first; i < mine.recv_first + mine.recv_count; i++) {
            uint32_t arrived = p->before[mine.from][i];
            p->values[rank][i] = mine.op == GW_COLL_REDUCE ? p->values[rank][i] + arrived : arrived;
        }
        p->sent[rank] += mine.send_count;
        if (p->largest < mine.send_count)
            p->largest = mine.send_count;
    }
}

static void play(const struct gw_coll_ops *coll, uint32_t n, uint32_t count)
{
    static struct play p;
    p = (struct play){.coll = coll, .n = n, .count = count};
    for (uint32_t rank = 0; rank < n; rank++)
        for (uint32_t i = 0; i < count; i++)
            p.values[rank][i] = (rank + 1) * 1000003 + i * 7919;
    for (uint32_t at = 0; at < coll->steps(n); at++)
        play_step(&p, at);
    assert_int_equal(coll->largest(n, count), p.largest);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (uint32_t rank = 0; rank < n; rank++)
            sum += (rank + 1) * 1000003 + i * 7919;
        for (uint32_t rank = 0; rank < n; rank++)
            assert_int_equal(p.values[rank][i], sum);
    }
    /* 2 (n - 1) / n of the tensor, exactly if it divides; every schedule known is so thrifty. */
    for (uint32_t rank = 0; rank < n && count % n == 0; rank++)
        assert_int_equal(p.sent[rank], 2 * (n - 1) * (uint64_t)count / n);
}

static void coll__every_schedule_sums(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 7, 32, 64, 99, COUNT_MAX};
    for (uint32_t i = 0; i < gw_coll_registry.count; i++) {
        const struct gw_coll_ops *coll = (const struct gw_coll_ops *)gw_coll_registry.algos[i];
        uint32_t allowed = 0;
        for (uint32_t n = 2; n <= N_MAX; n++) {
            if (!coll->allows(n))
                continue;
            allowed++;
            for (uint32_t c = 0; c < GW_COUNT_OF(counts); c++)
                play(coll, n, counts[c]);
        }
        assert_true(allowed >= 5); /* the powers of two at least */
        assert_false(coll->allows(1));
    }
}

enum life {
    OWN,    /* values may be added */
    LEFT,   /* sent off to be added elsewhere: only the sum may come */
    SUMMED, /* has arrived */
};

/* What each element of a worker goes through, see coll.h: no value is missed or added twice. */
static void check_lives(const struct gw_coll_ops *coll, uint32_t n, uint32_t rank, uint32_t count)
{
    enum life lives[COUNT_MAX] = {OWN};
    struct gw_coll_step last = {.recv_count = 0};
    for (uint32_t at = 0; at < coll->steps(n); at++) {
        struct gw_coll_step step = coll->step(rank, n, at, count);
        for (uint64_t i = step.send_first; i < step.send_first + step.send_count; i++)
            if (step.op == GW_COLL_REDUCE) {
                assert_int_equal(lives[i], OWN);
                lives[i] = LEFT;
            } else {
                assert_true(lives[i] != LEFT);
            }
        for (uint64_t i = step.recv_first; i < step.recv_first + step.recv_count; i++) {
            assert_int_equal(lives[i], step.op == GW_COLL_REDUCE ? OWN : LEFT);
            if (step.op == GW_COLL_COPY)
                lives[i] = SUMMED;
        }
        if (step.op == GW_COLL_REDUCE)
            last = step;
    }
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(lives[i], i - last.recv_first < last.recv_count ? OWN : SUMMED);
}

static void coll__every_element_is_sent_off_once_or_summed_here(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_coll_registry.count; i++) {
        const struct gw_coll_ops *coll = (const struct gw_coll_ops *)gw_coll_registry.algos[i];
        for (uint32_t n = 2; n <= N_MAX; n++)
            for (uint32_t rank = 0; coll->allows(n) && rank < n; rank++) {
                check_lives(coll, n, rank, COUNT_MAX);
                check_lives(coll, n, rank, n - 1);
            }
    }
}

static void coll__steps_are_as_many_as_stated(void **state)
{
    (void)state;
    const struct gw_coll_ops *ring =
        (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "ring");
    const struct gw_coll_ops *butterfly =
        (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "halving-doubling");
    assert_non_null(ring);
    assert_non_null(butterfly);
    assert_int_equal(ring->steps(8), 14);
    assert_int_equal(butterfly->steps(8), 6);
    assert_false(butterfly->allows(6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll__every_schedule_sums),
        cmocka_unit_test(coll__every_element_is_sent_off_once_or_summed_here),
        cmocka_unit_test(coll__steps_are_as_many_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
