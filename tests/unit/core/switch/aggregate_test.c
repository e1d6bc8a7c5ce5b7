/* The switch's aggregation stage, rule by rule (ATP, sections 3.3 to 3.6). */
#include "aggregate_fixture.h"

#include "base/error.h"

static void gradient__the_last_one_leaves_with_the_sum(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 3);
    struct gw_pkt *marked = gradient(&s, 2, 20), *last = gradient(&s, 4, 300);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    marked->q.ecn = GW_ECN_CE;
    marked->scale = 17;
    assert_false(feed(&s, marked));
    assert_false(feed(&s, gradient(&s, 2, 20))); /* a duplicate */
    assert_true(feed(&s, last));
    assert_int_equal(last->agg.level, 1);
    assert_int_equal(last->agg.bitmap, 1); /* the position of this switch */
    assert_int_equal(last->agg_flags, GW_AGG_ECN);
    assert_int_equal(last->scale, 17);
    assert_int_equal(value_of(&s, last), 321);
    /* It stays taken, and late duplicates change nothing. */
    assert_false(feed(&s, gradient(&s, 1, 1)));
    assert_int_equal(value_of(&s, last), 321);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    gw_pkt_release(&s.pool, last);
    const struct gw_aggregate_stats *stats = gw_aggregate_stats(s.aggregate);
    assert_int_equal(stats->duplicates, 2);
    assert_int_equal(stats->completed, 1);
    result(&s, SEQ, GW_AGG_REQUEST, 0); /* not the end */
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    result(&s, SEQ, 0, 0);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    assert_int_equal(stats->freed, 1);
    stage_close(&s);
}

/* Who adds sees whether the sum holds a mark, and says so; what nobody added is not known. */
static void gradient__says_whether_its_sum_holds_a_mark(void **state)
{
    static const struct {
        int32_t first, second;
        bool is_unmarked;
    } cases[] = {
        {1, 2, true},          {INT32_MAX - 2, 1, true}, {INT32_MAX - 2, 2, false},
        {INT32_MAX, 0, false}, {INT32_MIN + 1, 0, true}, {0, INT32_MIN, false},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct stage s;
        stage_open(&s, 0, 2);
        assert_false(feed(&s, gradient(&s, 1, cases[i].first)));
        struct gw_pkt *pkt = gradient(&s, 2, cases[i].second);
        assert_false(pkt->agg.is_unmarked);
        assert_true(feed(&s, pkt));
        assert_int_equal(pkt->agg.is_unmarked, cases[i].is_unmarked);
        gw_pkt_release(&s.pool, pkt);
        stage_close(&s);
    }
    struct stage s;
    stage_open(&s, 0, 1);
    struct gw_pkt *alone = gradient(&s, 1, 5);
    assert_true(feed(&s, alone));
    assert_false(alone->agg.is_unmarked);
    gw_pkt_release(&s.pool, alone);
    stage_close(&s);
}

/* A worker can make the bound of a call stricter for all, and none looser. */
static void gradient__the_least_bound_leaves_with_the_sum(void **state)
{
    (void)state;
    static const uint8_t bounds[] = {9, 7, 8};
    struct gw_pkt *pkt = NULL;
    struct stage s;
    stage_open(&s, 0, GW_COUNT_OF(bounds));
    for (uint32_t i = 0; i < GW_COUNT_OF(bounds); i++) {
        pkt = gradient(&s, 1u << i, 1);
        pkt->agg.bound = bounds[i];
        assert_int_equal(feed(&s, pkt), i + 1 == GW_COUNT_OF(bounds));
    }
    assert_int_equal(pkt->agg.bound, 7);
    gw_pkt_release(&s.pool, pkt);
    stage_close(&s);
}

/* A duplicate may meet a long queue where what it repeats met none. */
static void gradient__a_duplicate_leaves_its_mark(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    struct gw_pkt *marked = gradient(&s, 1, 1);
    marked->q.ecn = GW_ECN_CE;
    assert_false(feed(&s, gradient(&s, 1, 1)));
    assert_false(feed(&s, marked));
    expect_passed(&s, gradient(&s, 2, 2), 1, GW_AGG_ECN, 3);
    stage_close(&s);
}

static void gradient__one_worker_completes_at_once(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 1);
    struct gw_pkt *pkt = gradient(&s, 1, 8);
    assert_true(feed(&s, pkt));
    assert_int_equal(pkt->agg.level, 1);
    assert_int_equal(value_of(&s, pkt), 8);
    gw_pkt_release(&s.pool, pkt);
    stage_close(&s);
}

static void gradient__collisions_go_on(void **state)
{
    (void)state;
    static const uint8_t collided = GW_AGG_COLLISION | GW_AGG_RESEND;
    struct stage s;
    stage_open(&s, 0, 2);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    struct gw_pkt *other = gradient(&s, 2, 9), *same_index = gradient(&s, 2, 9);
    other->seq++;
    expect_passed(&s, other, 2, collided, 9);
    same_index->seq++;
    same_index->index += AGGREGATORS; /* an index from a larger table */
    expect_passed(&s, same_index, 2, collided, 9);
    struct gw_pkt *shorter = gradient(&s, 2, 9);
    shorter->agg.values--;
    expect_passed(&s, shorter, 2, collided, 9);
    struct gw_pkt *other_tensor = gradient(&s, 2, 9);
    other_tensor->key++;
    expect_passed(&s, other_tensor, 2, collided, 9);
    expect_passed(&s, gradient(&s, 2, 2), 1, 0, 3);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->collisions, 4);
    stage_close(&s);
}

static void gradient__strangers_pass(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    struct gw_pkt *job = gradient(&s, 1, 1), *epoch = gradient(&s, 1, 1);
    struct gw_pkt *raw = gradient(&s, 1, 1), *level = gradient(&s, 0, 1);
    struct gw_pkt *place = gradient(&s, 1, 1), *far_place = gradient(&s, 1, 1);
    job->flow++;
    epoch->epoch--;
    raw->agg_flags = GW_AGG_RAW;
    level->agg.level = 1;
    place->agg.above[0] = 1;
    far_place->agg.above[1] = 1;
    expect_passed(&s, job, 1, 0, 1);
    expect_passed(&s, epoch, 1, 0, 1);
    expect_passed(&s, raw, 1, GW_AGG_RAW, 1);
    expect_passed(&s, level, 0, 0, 1);
    expect_passed(&s, place, 1, 0, 1);
    expect_passed(&s, far_place, 1, 0, 1);
    expect_passed(&s, gradient(&s, 0, 1), 0, 0, 1); /* no position, several, none of ours */
    expect_passed(&s, gradient(&s, 3, 1), 3, 0, 1);
    expect_passed(&s, gradient(&s, 4, 1), 4, 0, 1);
    expect_passed(&s, resend(&s, 7, 1), 7, GW_AGG_RESEND, 1);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->foreign, 2);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->misplaced, 7);
    stage_close(&s);
}

static void gradient__a_higher_level_adds_racks(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 1, 2);
    struct gw_pkt *first = gradient(&s, 1, 1), *second = gradient(&s, 2, 2);
    struct gw_pkt *third = gradient(&s, 4, 4); /* there are two */
    first->agg.level = second->agg.level = third->agg.level = 1;
    assert_false(feed(&s, first));
    expect_passed(&s, third, 4, 0, 4);
    assert_true(feed(&s, second));
    assert_int_equal(second->agg.level, 2);
    assert_int_equal(value_of(&s, second), 3);
    gw_pkt_release(&s.pool, second);
    stage_close(&s);
}

static void gradient__copies_a_sum_that_others_hold(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    struct gw_pkt *pkt = gradient(&s, 1, 1);
    uint32_t buf = pkt->buf;
    gw_buf_share(&s.bufs, buf);
    assert_false(feed(&s, pkt));
    expect_passed(&s, gradient(&s, 2, 2), 1, 0, 3);
    struct gw_pkt kept = {.buf = buf};
    assert_int_equal(value_of(&s, &kept), 1);
    gw_buf_release(&s.bufs, buf);
    stage_close(&s);
}

static void gradient__without_a_buffer_goes_on(void **state)
{
    (void)state;
    struct stage s;
    uint32_t taken[PKTS], count = 0;
    stage_open(&s, 0, 2);
    struct gw_pkt *pkt = gradient(&s, 1, 1), *next = gradient(&s, 2, 2);
    uint32_t buf = pkt->buf;
    gw_buf_share(&s.bufs, buf);
    assert_false(feed(&s, pkt));
    while ((taken[count] = gw_buf_claim(&s.bufs)) != GW_BUF_NONE)
        count++;
    expect_passed(&s, next, 2, GW_AGG_RESEND, 2);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->no_buffer, 1);
    while (count)
        gw_buf_release(&s.bufs, taken[--count]);
    gw_buf_release(&s.bufs, buf);
    stage_close(&s);
}

static void leak__a_result_or_the_sweep_reclaims(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    result(&s, SEQ + 1, 0, LEAK); /* of another fragment, not yet */
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    result(&s, SEQ + 1, 0, LEAK + 1);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    gw_aggregate_sweep(s.aggregate, LEAK);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    gw_aggregate_sweep(s.aggregate, LEAK + 1);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->leaked, 2);
    stage_close(&s);
}

/* A fragment of `job` for an aggregator; whether it got one. */
static bool takes(struct stage *s, uint32_t job, uint16_t index)
{
    struct gw_pkt *pkt = gradient(s, 1, 1);
    pkt->flow = job;
    pkt->index = index;
    pkt->seq = index;
    if (!feed(s, pkt))
        return true;
    assert_int_equal(pkt->agg_flags, GW_AGG_COLLISION | GW_AGG_RESEND);
    gw_pkt_release(&s->pool, pkt);
    return false;
}

/* Aggregators that the job that was installed as number `index` used last. */
static uint32_t taken_by(const struct stage *s, uint32_t index)
{
    return gw_aggregate_shares(s->aggregate)->jobs[index].held;
}

/* What the tenant's jobs have, and had to give to others. */
static void expect_use(const struct stage *s, uint32_t who, uint32_t aggregators, uint32_t yielded)
{
    struct gw_tenant_use use = {.jobs = 0};
    gw_aggregate_shares_use(gw_aggregate_shares(s->aggregate), who, &use);
    assert_int_equal(use.aggregators, aggregators);
    assert_int_equal(use.yielded, yielded);
}

/* It takes all, never completes any, and keeps on sending. */
static void share__a_greedy_job_leaves_a_polite_one_its_aggregators(void **state)
{
    enum { GREEDY = JOB + 1 };
    (void)state;
    struct stage s;
    stage_open(&s, 0, 3);
    install(&s, GREEDY, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_true(takes(&s, GREEDY, i));
    assert_true(takes(&s, JOB, 3));
    assert_true(takes(&s, JOB, 6));
    assert_false(takes(&s, JOB, 7)); /* more than its share is whoever comes first */
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_int_equal(takes(&s, GREEDY, i), i != 3 && i != 6);
    assert_int_equal(taken_by(&s, 0), 2);
    assert_int_equal(taken_by(&s, 1), 6);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->yielded, 2);
    gw_aggregate_remove(s.aggregate, GREEDY);
    stage_close(&s);
}

/* Two of two jobs get a half each, of three a third. */
static void share__equal_parts_are_of_the_jobs_there_are(void **state)
{
    enum { GREEDY = JOB + 1, THIRD = JOB + 2 };
    (void)state;
    struct stage s;
    stage_make(&s, GW_AGGREGATE_SHARE_EQUAL, GW_AGG_RECLAIM_SWEEP);
    install(&s, GREEDY, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_true(takes(&s, GREEDY, i));
    install(&s, JOB, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_int_equal(takes(&s, JOB, i), i < AGGREGATORS / 2);
    install(&s, THIRD, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_int_equal(takes(&s, THIRD, i), i < AGGREGATORS / 3);
    assert_int_equal(taken_by(&s, 0), 4);
    assert_int_equal(taken_by(&s, 1), 2);
    gw_aggregate_remove(s.aggregate, GREEDY);
    gw_aggregate_remove(s.aggregate, THIRD);
    stage_close(&s);
}

/* Who opens many jobs divides his own part. */
static void share__many_jobs_of_a_key_have_the_part_of_one(void **state)
{
    (void)state;
    const uint32_t greedy = gw_job_number(1, 1), other = gw_job_number(1, 2);
    struct stage s;
    stage_make(&s, GW_AGGREGATE_SHARE_EQUAL, GW_AGG_RECLAIM_SWEEP);
    install(&s, greedy, EPOCH, 0, 3);
    install(&s, other, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_true(takes(&s, i % 2 ? greedy : other, i));
    install(&s, JOB, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_int_equal(takes(&s, JOB, i), i < AGGREGATORS / 2);
    assert_false(takes(&s, greedy, 1)); /* each of the two has a quarter */
    assert_int_equal(taken_by(&s, 0), AGGREGATORS / 4);
    expect_use(&s, 0, AGGREGATORS / 2, 0);
    expect_use(&s, 1, AGGREGATORS / 2, AGGREGATORS / 2);
    expect_use(&s, 2, 0, 0);
    gw_aggregate_remove(s.aggregate, greedy);
    gw_aggregate_remove(s.aggregate, other);
    stage_close(&s);
}

/* To others a key is one: also of its job that is within its part something is taken over. */
static void share__how_a_key_divides_its_part_is_no_matter_of_others(void **state)
{
    (void)state;
    const uint32_t greedy = gw_job_number(1, 1), other = gw_job_number(1, 2);
    struct stage s;
    stage_make(&s, GW_AGGREGATE_SHARE_EQUAL, GW_AGG_RECLAIM_SWEEP);
    install(&s, greedy, EPOCH, 0, 3);
    install(&s, other, EPOCH, 0, 3);
    for (uint16_t i = 0; i < AGGREGATORS; i++)
        assert_true(takes(&s, i ? greedy : other, i));
    install(&s, JOB, EPOCH, 0, 3);
    assert_true(takes(&s, JOB, 0));
    assert_int_equal(taken_by(&s, 1), 0);
    assert_true(takes(&s, other, 1)); /* among themselves each has a quarter */
    assert_false(takes(&s, greedy, 1));
    gw_aggregate_remove(s.aggregate, greedy);
    gw_aggregate_remove(s.aggregate, other);
    stage_close(&s);
}

/* An aggregator of a window under way is free between two fragments, and yet of its share. */
static void share__is_of_what_was_used_last(void **state)
{
    enum { OTHER = JOB + 1 };
    (void)state;
    struct stage s;
    stage_open(&s, 0, 3);
    install(&s, OTHER, EPOCH, 0, 3);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    result(&s, SEQ, 0, 0);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    assert_int_equal(taken_by(&s, 0), 1);
    assert_true(takes(&s, OTHER, INDEX)); /* what is free is anybody's */
    assert_int_equal(taken_by(&s, 0), 0);
    assert_int_equal(taken_by(&s, 1), 1);
    gw_aggregate_remove(s.aggregate, OTHER);
    stage_close(&s);
}

/* A partial sum that is taken over is lost as a whole: what comes of it later is not added up. */
static void share__what_is_taken_over_is_in_no_sum(void **state)
{
    enum { GREEDY = JOB + 1 };
    (void)state;
    struct stage s;
    stage_open(&s, 0, 3);
    install(&s, GREEDY, EPOCH, 0, 3);
    for (uint16_t i = 0; i < 3; i++)
        assert_true(takes(&s, GREEDY, i));
    struct gw_pkt *own = gradient(&s, 1, 7), *late = gradient(&s, 2, 1);
    own->index = 2;
    assert_false(feed(&s, own));
    late->flow = GREEDY;
    late->index = 2;
    late->seq = 2;
    expect_passed(&s, late, 2, GW_AGG_COLLISION | GW_AGG_RESEND, 1);
    struct gw_pkt *again = resend(&s, 2, 20);
    again->index = 2;
    expect_passed(&s, again, 3, GW_AGG_RESEND, 27);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 2);
    gw_aggregate_remove(s.aggregate, GREEDY);
    stage_close(&s);
}

/* Below its share nobody has to give, and a job is not robbed for one that has enough. */
static void share__is_not_taken_from_those_within_it(void **state)
{
    enum { OTHER = JOB + 1 };
    (void)state;
    struct stage s;
    stage_open(&s, 0, 3);
    install(&s, OTHER, EPOCH, 0, 3);
    assert_true(takes(&s, OTHER, 0));
    assert_true(takes(&s, OTHER, 1));
    assert_false(takes(&s, JOB, 0));
    assert_true(takes(&s, OTHER, 2));
    assert_true(takes(&s, JOB, 4));
    assert_true(takes(&s, JOB, 5));
    assert_false(takes(&s, JOB, 2));
    assert_int_equal(gw_aggregate_stats(s.aggregate)->yielded, 0);
    gw_aggregate_remove(s.aggregate, OTHER);
    stage_close(&s);
}

/* As published: whatever becomes of its job, a result on the index finds it leaked, and only that.
 */
static void leak__results_alone_reclaim_if_they_are_to(void **state)
{
    (void)state;
    struct stage s;
    stage_open_with(&s, 0, 3, GW_AGG_RECLAIM_RESULTS);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    gw_aggregate_sweep(s.aggregate, 10 * LEAK);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    /* The same numbers in another life of the job find it taken, not theirs. */
    gw_aggregate_remove(s.aggregate, JOB);
    install(&s, JOB, EPOCH, 0, 3);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    expect_passed(&s, gradient(&s, 2, 20), 2, GW_AGG_COLLISION | GW_AGG_RESEND, 20);
    result(&s, SEQ, 0, LEAK);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 1);
    result(&s, SEQ + 1, 0, LEAK + 1);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->leaked, 1);
    stage_close(&s);
}

/* A sum says of all that is in it whether it was sent before a cut of the window, or after. */
static void gradient__gathers_the_parities_of_cuts(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 3);
    struct gw_pkt *odd = gradient(&s, 1, 1), *even = gradient(&s, 2, 1);
    struct gw_pkt *last = gradient(&s, 4, 1);
    odd->agg_flags = GW_AGG_ODD;
    even->agg_flags = last->agg_flags = GW_AGG_EVEN;
    assert_false(feed(&s, odd));
    assert_false(feed(&s, even));
    assert_true(feed(&s, last));
    assert_int_equal(last->agg_flags, GW_AGG_ODD | GW_AGG_EVEN);
    gw_pkt_release(&s.pool, last);
    stage_close(&s);
}

static void install__replaces_and_removes(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    install(&s, JOB + 1, EPOCH, 0, 2);
    install(&s, JOB + 2, EPOCH, 0, 2);
    static const uint32_t other[] = {77};
    struct gw_aggregate_job one = {
        .job = JOB + 3, .fan_in = 1, .member_count = 1, .members = other};
    assert_int_equal(gw_aggregate_install(s.aggregate, &one), GW_ERR_NO_ROOM);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    install(&s, JOB, EPOCH + 1, 0, 2); /* frees what the earlier epoch had */
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    gw_aggregate_remove(s.aggregate, JOB);
    gw_aggregate_remove(s.aggregate, JOB); /* no error */
    assert_null(gw_aggregate_job(s.aggregate, JOB));
    assert_null(gw_aggregate_job(s.aggregate, 0)); /* the number of no job, in what is free */
    assert_int_equal(gw_aggregate_install(s.aggregate, &one), 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(gw_aggregate_job(s.aggregate, JOB + 1)->members[i], 11 + i);
        assert_int_equal(gw_aggregate_job(s.aggregate, JOB + 2)->members[i], 11 + i);
    }
    assert_int_equal(gw_aggregate_job(s.aggregate, JOB + 3)->members[0], 77);
    stage_close(&s);
}

/* Of jobs that have some, in whatever order others go. */
static void install__keeps_the_workers_of_positions(void **state)
{
    (void)state;
    static const uint32_t members[] = {11, 12, 13};
    static const uint16_t workers[] = {1, 32, GW_WORLD_MAX};
    struct stage s;
    struct gw_aggregate_job job = {.epoch = EPOCH, .fan_in = 2, .member_count = 2};
    struct gw_aggregate *aggregate;
    stage_open(&s, 0, 2);
    aggregate = s.aggregate;
    gw_aggregate_remove(aggregate, JOB);
    for (uint32_t i = 0; i < 3; i++) {
        job.job = JOB + i;
        job.members = members + (i + 1) % 2;
        job.workers = i == 1 ? NULL : workers + i / 2;
        assert_int_equal(gw_aggregate_install(aggregate, &job), 0);
    }
    for (uint32_t gone = 0; gone < 2; gone++) {
        gw_aggregate_remove(aggregate, JOB + gone);
        const struct gw_aggregate_job *last = gw_aggregate_job(aggregate, JOB + 2);
        assert_memory_equal(last->members, members + 1, 2 * sizeof(*members));
        assert_memory_equal(last->workers, workers + 1, 2 * sizeof(*workers));
        const struct gw_aggregate_job *middle = gw_aggregate_job(aggregate, JOB + 1);
        assert_true(gone ? middle == NULL : middle && middle->workers == NULL);
    }
    job.workers = workers;
    for (uint32_t i = 3; i < 5; i++) { /* where the last one has been before */
        job.job = JOB + i;
        assert_int_equal(gw_aggregate_install(aggregate, &job), 0);
        assert_memory_equal(gw_aggregate_job(aggregate, job.job)->workers, workers,
                            2 * sizeof(*workers));
    }
    assert_int_equal(gw_aggregate_job(aggregate, JOB + 2)->workers[0], 32);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient__the_last_one_leaves_with_the_sum),
        cmocka_unit_test(gradient__says_whether_its_sum_holds_a_mark),
        cmocka_unit_test(gradient__the_least_bound_leaves_with_the_sum),
        cmocka_unit_test(gradient__a_duplicate_leaves_its_mark),
        cmocka_unit_test(gradient__one_worker_completes_at_once),
        cmocka_unit_test(gradient__collisions_go_on),
        cmocka_unit_test(gradient__strangers_pass),
        cmocka_unit_test(gradient__a_higher_level_adds_racks),
        cmocka_unit_test(gradient__copies_a_sum_that_others_hold),
        cmocka_unit_test(gradient__without_a_buffer_goes_on),
        cmocka_unit_test(leak__a_result_or_the_sweep_reclaims),
        cmocka_unit_test(share__a_greedy_job_leaves_a_polite_one_its_aggregators),
        cmocka_unit_test(share__equal_parts_are_of_the_jobs_there_are),
        cmocka_unit_test(share__many_jobs_of_a_key_have_the_part_of_one),
        cmocka_unit_test(share__how_a_key_divides_its_part_is_no_matter_of_others),
        cmocka_unit_test(share__is_of_what_was_used_last),
        cmocka_unit_test(share__what_is_taken_over_is_in_no_sum),
        cmocka_unit_test(share__is_not_taken_from_those_within_it),
        cmocka_unit_test(leak__results_alone_reclaim_if_they_are_to),
        cmocka_unit_test(gradient__gathers_the_parities_of_cuts),
        cmocka_unit_test(install__replaces_and_removes),
        cmocka_unit_test(install__keeps_the_workers_of_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
