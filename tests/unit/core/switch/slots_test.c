/* The switch's stage of slots, rule by rule (SwitchML, algorithm 3). */
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "base/error.h"
#include "core/switch/slots.h"

enum {
    JOB = 5,
    EPOCH = 2,
    WORLD = 3,
    VALUES = 4,
    PKTS = 32,
    POOL = 8,
    FIRST = 3, /* slot of the pool that is the job's first */
    COUNT = 4, /* slots of the job */
    SLOT = 1,
    PEER = 90, /* where workers send to */
    JOBS_MAX = 2,
};

static const uint32_t first_seq = UINT32_MAX; /* numbers wrap at once */
static const uint32_t members[WORLD] = {11, 12, 13};

struct stage {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_slots *slots;
    const uint32_t *dsts; /* of the last result */
};

static struct gw_slots_job job_of(uint32_t job, uint32_t first, uint32_t count)
{
    return (struct gw_slots_job){.job = job,
                                 .epoch = EPOCH,
                                 .world = WORLD,
                                 .first = first,
                                 .count = count,
                                 .members = members};
}

static void stage_open(struct stage *s)
{
    gw_test_pool_open(&s->pool, &s->bufs, PKTS, 4 * VALUES);
    struct gw_slots_cfg cfg = {.slots = POOL,
                               .jobs_max = JOBS_MAX,
                               .kernels = gw_kernels_best(gw_cpu_features()),
                               .pool = &s->pool};
    s->slots = gw_slots_init(gw_test_take(gw_slots_size(&cfg)), &cfg);
    struct gw_slots_job job = job_of(JOB, FIRST, COUNT);
    assert_int_equal(gw_slots_install(s->slots, &job), 0);
}

/* Nothing may be missing, and every packet must have been counted once. */
static void stage_close(struct stage *s)
{
    const struct gw_slots_stats *stats = gw_slots_stats(s->slots);
    assert_int_equal(stats->gradients, stats->held + stats->completed + stats->repeated +
                                           stats->duplicates + stats->stale + stats->foreign +
                                           stats->malformed + stats->no_buffer);
    gw_slots_remove(s->slots, JOB);
    s->pool.bufs = &s->bufs; /* a case may have taken them away */
    gw_test_pool_close(&s->pool);
    free(s->slots);
}

/* What worker `rank` sends in use `use` of the slot; every value is `value`. */
static struct gw_pkt *gradient(struct stage *s, uint32_t use, uint32_t rank, int32_t value)
{
    struct gw_pkt *pkt = gw_pkt_claim(&s->pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.kind = GW_PKT_GRAD},
        .src = members[rank],
        .dst = PEER,
        .flow = JOB,
        .epoch = EPOCH,
        .agg_flags = GW_AGG_SLOT,
        .seq = first_seq + SLOT + use * COUNT,
        .index = SLOT,
        .buf = s->pool.bufs ? gw_buf_claim(&s->bufs) : GW_BUF_NONE,
        .agg = {.bitmap = 1u << rank, .values = VALUES, .level = use & 1},
    };
    for (uint32_t i = 0; i < VALUES && pkt->buf != GW_BUF_NONE; i++)
        memcpy(gw_buf_bytes(&s->bufs, pkt->buf) + 4 * (size_t)i, &value, 4);
    return pkt;
}

static uint32_t feed(struct stage *s, struct gw_pkt *pkt)
{
    return gw_slots_gradient(s->slots, pkt, &s->dsts);
}

static int32_t value_of(const struct stage *s, uint32_t buf)
{
    int32_t value;
    memcpy(&value, gw_buf_bytes(&s->bufs, buf) + 4 * (VALUES - 1), 4);
    return value;
}

/* Feeds a packet that becomes the result, for all workers or with `rank` for one. */
static void expect_result(struct stage *s, struct gw_pkt *pkt, uint32_t count, uint32_t rank,
                          int32_t value)
{
    uint32_t seq = pkt->seq;
    uint8_t version = pkt->agg.level;
    assert_int_equal(feed(s, pkt), count);
    assert_memory_equal(s->dsts, &members[rank], count * sizeof(uint32_t));
    assert_int_equal(pkt->q.kind, GW_PKT_PARAM);
    assert_int_equal(pkt->src, PEER);
    assert_int_equal(pkt->agg_flags, GW_AGG_SLOT);
    assert_int_equal(pkt->index, SLOT);
    assert_int_equal(pkt->seq, seq);
    assert_int_equal(pkt->agg.level, version);
    assert_int_equal(pkt->agg.bitmap, 7);
    assert_int_equal(pkt->agg.values, VALUES);
    assert_int_equal(value_of(s, pkt->buf), value);
    gw_pkt_release(&s->pool, pkt);
}

/* One whole use, in which the sum is 111 times `value`. */
static void use_slot(struct stage *s, uint32_t use, int32_t value)
{
    assert_int_equal(feed(s, gradient(s, use, 2, 100 * value)), 0);
    assert_int_equal(feed(s, gradient(s, use, 0, value)), 0);
    expect_result(s, gradient(s, use, 1, 10 * value), WORLD, 0, 111 * value);
}

static void gradient__the_last_one_becomes_the_result_for_all(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    for (uint32_t use = 0; use < 6; use++)
        use_slot(&s, use, (int32_t)use + 1);
    assert_int_equal(gw_slots_stats(s.slots)->completed, 6);
    assert_int_equal(gw_slots_stats(s.slots)->held, 12);
    stage_close(&s);
}

static void gradient__a_duplicate_is_not_added_again(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    assert_int_equal(feed(&s, gradient(&s, 0, 0, 1)), 0);
    assert_int_equal(feed(&s, gradient(&s, 0, 0, 1)), 0);
    assert_int_equal(feed(&s, gradient(&s, 0, 2, 100)), 0);
    assert_int_equal(feed(&s, gradient(&s, 0, 0, 1)), 0);
    expect_result(&s, gradient(&s, 0, 1, 10), WORLD, 0, 111);
    assert_int_equal(gw_slots_stats(s.slots)->duplicates, 2);
    stage_close(&s);
}

/* Who repeats a contribution has not seen the result, and gets it alone. */
static void gradient__who_repeats_gets_the_result_back(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    use_slot(&s, 0, 1);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        expect_result(&s, gradient(&s, 0, rank, 1), 1, rank, 111);
    /* The other version has begun: the result is still there. */
    assert_int_equal(feed(&s, gradient(&s, 1, 0, 2)), 0);
    expect_result(&s, gradient(&s, 0, 2, 100), 1, 2, 111);
    assert_int_equal(feed(&s, gradient(&s, 1, 2, 200)), 0);
    expect_result(&s, gradient(&s, 1, 1, 20), WORLD, 0, 222);
    assert_int_equal(gw_slots_stats(s.slots)->repeated, 4);
    stage_close(&s);
}

/* A packet of an earlier use of the version changes nothing and gets nothing. */
static void gradient__a_late_one_is_dropped(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    for (uint32_t use = 0; use < 4; use++)
        use_slot(&s, use, 1);
    assert_int_equal(feed(&s, gradient(&s, 0, 1, 10)), 0); /* version 0 has use 2's result */
    assert_int_equal(feed(&s, gradient(&s, 4, 0, 5)), 0);
    assert_int_equal(feed(&s, gradient(&s, 2, 1, 10)), 0); /* and now use 4's beginning */
    assert_int_equal(feed(&s, gradient(&s, 0, 2, 100)), 0);
    assert_int_equal(feed(&s, gradient(&s, 4, 2, 500)), 0);
    expect_result(&s, gradient(&s, 4, 1, 50), WORLD, 0, 555);
    assert_int_equal(gw_slots_stats(s.slots)->stale, 3);
    stage_close(&s);
}

/* Somebody gave up a fragment and all behind it: a sum that will never be complete is dropped. */
static void gradient__a_newer_fragment_takes_over(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    assert_int_equal(feed(&s, gradient(&s, 0, 0, 7)), 0);
    assert_int_equal(feed(&s, gradient(&s, 6, 1, 10)), 0);
    assert_int_equal(feed(&s, gradient(&s, 0, 2, 7)), 0);
    assert_int_equal(feed(&s, gradient(&s, 6, 0, 1)), 0);
    expect_result(&s, gradient(&s, 6, 2, 100), WORLD, 0, 111);
    stage_close(&s);
}

/* What a driver or the sender still refers to is never written. */
static void gradient__a_shared_buffer_is_not_written(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    struct gw_pkt *first = gradient(&s, 0, 0, 1);
    uint32_t shared = first->buf;
    gw_buf_share(&s.bufs, shared);
    assert_int_equal(feed(&s, first), 0);
    assert_int_equal(feed(&s, gradient(&s, 0, 1, 10)), 0);
    assert_int_equal(value_of(&s, shared), 1);
    struct gw_pkt *last = gradient(&s, 0, 2, 100);
    uint32_t own = last->buf;
    gw_buf_share(&s.bufs, own);
    assert_int_equal(feed(&s, last), WORLD);
    assert_int_equal(value_of(&s, own), 100);
    assert_int_equal(value_of(&s, last->buf), 111);
    /* The result, on its way, outlives the next uses of its version. */
    use_slot(&s, 1, 3);
    use_slot(&s, 2, 4);
    assert_int_equal(value_of(&s, last->buf), 111);
    gw_pkt_release(&s.pool, last);
    gw_buf_release(&s.bufs, shared);
    gw_buf_release(&s.bufs, own);
    stage_close(&s);
}

/* Without memory for the copy, a contribution is as good as lost. */
static void gradient__without_a_buffer_it_must_come_again(void **state)
{
    (void)state;
    struct stage s;
    uint32_t taken[PKTS], count = 0;
    stage_open(&s);
    struct gw_pkt *first = gradient(&s, 0, 0, 1), *second = gradient(&s, 0, 1, 10);
    uint32_t shared = first->buf;
    gw_buf_share(&s.bufs, shared);
    assert_int_equal(feed(&s, first), 0);
    for (uint32_t buf; (buf = gw_buf_claim(&s.bufs)) != GW_BUF_NONE;)
        taken[count++] = buf;
    assert_int_equal(feed(&s, second), 0);
    assert_int_equal(gw_slots_stats(s.slots)->no_buffer, 1);
    while (count)
        gw_buf_release(&s.bufs, taken[--count]);
    assert_int_equal(feed(&s, gradient(&s, 0, 2, 100)), 0);
    expect_result(&s, gradient(&s, 0, 1, 10), WORLD, 0, 111);
    gw_buf_release(&s.bufs, shared);
    stage_close(&s);
}

/* Changes one field at a time; nothing of that may reach a sum. */
static void gradient__what_does_not_fit_is_dropped(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    assert_int_equal(feed(&s, gradient(&s, 0, 0, 1)), 0);
    for (uint32_t field = 0; field < 9; field++) {
        struct gw_pkt *pkt = gradient(&s, 0, 1, 10);
        switch (field) {
        case 0:
            pkt->index = COUNT; /* another job's, or nobody's */
            break;
        case 1:
            pkt->agg.level = 2;
            break;
        case 2:
            pkt->agg.bitmap = 1u << WORLD;
            break;
        case 3:
            pkt->agg.bitmap = 6;
            break;
        case 4:
            pkt->agg.bitmap = 0;
            break;
        case 5:
            pkt->agg_flags |= GW_AGG_RAW;
            break;
        case 6:
            pkt->agg.values--;
            break;
        case 7:
            pkt->key++;
            break;
        default:
            pkt->epoch--;
        }
        assert_int_equal(feed(&s, pkt), 0);
    }
    struct gw_pkt *unknown = gradient(&s, 0, 1, 10);
    unknown->flow++;
    assert_int_equal(feed(&s, unknown), 0);
    assert_int_equal(gw_slots_stats(s.slots)->malformed, 8);
    assert_int_equal(gw_slots_stats(s.slots)->foreign, 2);
    assert_int_equal(feed(&s, gradient(&s, 0, 2, 100)), 0);
    expect_result(&s, gradient(&s, 0, 1, 10), WORLD, 0, 111);
    stage_close(&s);
}

static void gradient__a_single_worker_gets_its_values_back(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    struct gw_slots_job job = job_of(JOB, FIRST, COUNT);
    job.world = 1;
    assert_int_equal(gw_slots_install(s.slots, &job), 0);
    for (uint32_t use = 0; use < 4; use++) {
        struct gw_pkt *pkt = gradient(&s, use, 0, 7);
        assert_int_equal(feed(&s, pkt), 1);
        assert_int_equal(s.dsts[0], members[0]);
        assert_int_equal(value_of(&s, pkt->buf), 7);
        gw_pkt_release(&s.pool, pkt);
    }
    stage_close(&s);
}

static void gradient__32_workers_fill_the_bitmap(void **state)
{
    (void)state;
    struct stage s;
    uint32_t many[GW_SLOTS_WORLD_MAX] = {0};
    stage_open(&s);
    struct gw_slots_job job = job_of(JOB, FIRST, COUNT);
    job.world = GW_SLOTS_WORLD_MAX;
    job.members = many;
    assert_int_equal(gw_slots_install(s.slots, &job), 0);
    for (uint32_t rank = 0; rank < GW_SLOTS_WORLD_MAX; rank++) {
        struct gw_pkt *pkt = gradient(&s, 0, 0, 1);
        bool is_last = rank == GW_SLOTS_WORLD_MAX - 1;
        pkt->agg.bitmap = 1u << rank;
        assert_int_equal(feed(&s, pkt), is_last ? GW_SLOTS_WORLD_MAX : 0);
        if (is_last) {
            assert_int_equal(value_of(&s, pkt->buf), GW_SLOTS_WORLD_MAX);
            gw_pkt_release(&s.pool, pkt);
        }
    }
    stage_close(&s);
}

/* A simulation without payload follows the same rules. */
static void gradient__needs_no_payload(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    s.pool.bufs = NULL;
    assert_int_equal(feed(&s, gradient(&s, 0, 0, 1)), 0);
    assert_int_equal(feed(&s, gradient(&s, 0, 1, 1)), 0);
    struct gw_pkt *last = gradient(&s, 0, 2, 1);
    assert_int_equal(feed(&s, last), WORLD);
    assert_int_equal(last->buf, GW_BUF_NONE);
    gw_pkt_release(&s.pool, last);
    stage_close(&s);
}

/* Ranges of jobs are disjoint parts of the pool. */
static void install__divides_the_pool(void **state)
{
    static const struct {
        uint32_t first, count;
        int result;
    } cases[] = {
        {0, FIRST + 1, GW_ERR_INVALID},
        {FIRST + COUNT - 1, 1, GW_ERR_INVALID},
        {FIRST + 1, 1, GW_ERR_INVALID},
        {0, POOL, GW_ERR_INVALID},
        {POOL, 1, GW_ERR_INVALID},
        {POOL - 1, 2, GW_ERR_INVALID},
        {UINT32_MAX, 2, GW_ERR_INVALID},
        {0, POOL + 1, GW_ERR_INVALID},
        {0, FIRST, GW_OK},
        {FIRST + COUNT, 1, GW_OK}, /* moves it there */
    };
    (void)state;
    struct stage s;
    stage_open(&s);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_slots_job job = job_of(JOB + 1, cases[i].first, cases[i].count);
        assert_int_equal(gw_slots_install(s.slots, &job), cases[i].result);
    }
    struct gw_slots_job third = job_of(JOB + 2, 0, 1);
    assert_int_equal(gw_slots_install(s.slots, &third), GW_ERR_NO_ROOM);
    gw_slots_remove(s.slots, JOB + 1);
    assert_int_equal(gw_slots_install(s.slots, &third), GW_OK);
    stage_close(&s);
}

/* Two jobs use their slots of the same number, and nothing of one shows in the other. */
static void install__keeps_jobs_apart(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    struct gw_slots_job other = job_of(JOB + 1, 0, SLOT + 1);
    assert_int_equal(gw_slots_install(s.slots, &other), 0);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct gw_pkt *pkt = gradient(&s, 0, rank, 1000);
        pkt->flow = JOB + 1;
        if (feed(&s, pkt))
            gw_pkt_release(&s.pool, pkt);
        assert_int_equal(gw_slots_stats(s.slots)->completed, rank == WORLD - 1);
    }
    use_slot(&s, 0, 1);
    gw_slots_remove(s.slots, JOB + 1);
    expect_result(&s, gradient(&s, 0, 0, 1), 1, 0, 111);
    stage_close(&s);
}

/* A new epoch begins with empty slots, also where the last one was further. */
static void install__a_new_epoch_forgets_the_last(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s);
    struct gw_slots_job job = job_of(JOB, FIRST, COUNT);
    use_slot(&s, 8, 1);
    assert_int_equal(feed(&s, gradient(&s, 9, 0, 1)), 0);
    struct gw_pkt *old = gradient(&s, 9, 1, 10);
    job.epoch = EPOCH + 1;
    assert_int_equal(gw_slots_install(s.slots, &job), 0);
    assert_int_equal(feed(&s, old), 0);
    assert_int_equal(gw_slots_stats(s.slots)->foreign, 1);
    job.epoch = EPOCH; /* so that the helpers fit */
    assert_int_equal(gw_slots_install(s.slots, &job), 0);
    use_slot(&s, 0, 3);
    use_slot(&s, 1, 5);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient__the_last_one_becomes_the_result_for_all),
        cmocka_unit_test(gradient__a_duplicate_is_not_added_again),
        cmocka_unit_test(gradient__who_repeats_gets_the_result_back),
        cmocka_unit_test(gradient__a_late_one_is_dropped),
        cmocka_unit_test(gradient__a_newer_fragment_takes_over),
        cmocka_unit_test(gradient__a_shared_buffer_is_not_written),
        cmocka_unit_test(gradient__without_a_buffer_it_must_come_again),
        cmocka_unit_test(gradient__what_does_not_fit_is_dropped),
        cmocka_unit_test(gradient__a_single_worker_gets_its_values_back),
        cmocka_unit_test(gradient__32_workers_fill_the_bitmap),
        cmocka_unit_test(gradient__needs_no_payload),
        cmocka_unit_test(install__divides_the_pool),
        cmocka_unit_test(install__keeps_jobs_apart),
        cmocka_unit_test(install__a_new_epoch_forgets_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
