/* What a switch's aggregation stage does with packets that were sent again (ATP, section 3.7). */
#include "aggregate_fixture.h"

static void resend__takes_the_partial_sum_along(void **state)
{
    (void)state;
    for (uint32_t is_in = 0; is_in < 2; is_in++) {
        struct stage s;
        stage_open(&s, 0, 4);
        assert_false(feed(&s, gradient(&s, 1, 1)));
        assert_false(feed(&s, gradient(&s, 2, 20)));
        if (is_in)
            assert_false(feed(&s, gradient(&s, 4, 300)));
        expect_passed(&s, resend(&s, 4, 300), 7, GW_AGG_RESEND, 321);
        assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
        expect_passed(&s, resend(&s, 4, 300), 4, GW_AGG_RESEND, 300); /* is never held */
        assert_int_equal(gw_aggregate_stats(s.aggregate)->partials, 1);
        stage_close(&s);
    }
}

/* Else the last one would wait in the switch until somebody sends again. */
static void resend__lets_the_rest_follow_at_once(void **state)
{
    static const uint32_t members[] = {11, 12, 13, 14};
    (void)state;
    struct gw_aggregate_job job = {.job = JOB,
                                   .epoch = EPOCH,
                                   .fan_in = 4,
                                   .member_count = GW_COUNT_OF(members),
                                   .members = members};
    struct stage s;
    stage_open(&s, 0, 4);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    expect_passed(&s, resend(&s, 1, 1), 1, GW_AGG_RESEND, 1);
    expect_passed(&s, gradient(&s, 2, 20), 2, GW_AGG_RESEND, 20);
    expect_passed(&s, gradient(&s, 4, 300), 4, GW_AGG_RESEND, 300);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->followed, 2);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    /* Another fragment has the aggregator now, until it is an epoch of others'. */
    struct gw_pkt *next = gradient(&s, 1, 7);
    next->seq++;
    assert_false(feed(&s, next));
    expect_passed(&s, gradient(&s, 8, 4000), 8, GW_AGG_COLLISION | GW_AGG_RESEND, 4000);
    struct gw_pkt *again = resend(&s, 2, 20);
    again->seq++;
    expect_passed(&s, again, 3, GW_AGG_RESEND, 27);
    assert_int_equal(gw_aggregate_install(s.aggregate, &job), 0);
    next = gradient(&s, 4, 7);
    next->seq++;
    assert_false(feed(&s, next));
    assert_int_equal(gw_aggregate_stats(s.aggregate)->followed, 2);
    stage_close(&s);
}

/* Nor does it if a fragment before, of which somebody still wants the result, is sent again. */
static void resend__of_a_fragment_before_stops_no_rest(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 4);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    expect_passed(&s, resend(&s, 1, 1), 1, GW_AGG_RESEND, 1);
    struct gw_pkt *before = resend(&s, 2, 20);
    before->seq--;
    expect_passed(&s, before, 2, GW_AGG_RESEND, 20);
    expect_passed(&s, gradient(&s, 2, 20), 2, GW_AGG_RESEND, 20);
    stage_close(&s);
}

/* What a job has marked goes with it, also where the aggregator was another's last. */
static void resend__marks_nothing_for_a_job_that_comes_again(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    install(&s, JOB + 1, EPOCH, 0, 1);
    struct gw_pkt *other = gradient(&s, 1, 1);
    other->flow = JOB + 1;
    assert_true(feed(&s, other));
    gw_pkt_release(&s.pool, other);
    gw_aggregate_parameter(
        s.aggregate, &(struct gw_pkt){.flow = JOB + 1, .epoch = EPOCH, .seq = SEQ, .index = INDEX},
        0);
    expect_passed(&s, resend(&s, 1, 1), 1, GW_AGG_RESEND, 1);
    expect_passed(&s, gradient(&s, 2, 20), 2, GW_AGG_RESEND, 20);
    install(&s, JOB, EPOCH, 0, 2);
    assert_false(feed(&s, gradient(&s, 2, 20)));
    stage_close(&s);
}

/* The sum of other racks leaves beside a part of this one, and says nothing of that. */
static void expect_beside(struct stage *s, uint32_t bitmap, uint8_t flags, int32_t value)
{
    struct gw_pkt *sum = gw_aggregate_take_beside(s->aggregate);
    assert_non_null(sum);
    assert_null(gw_aggregate_take_beside(s->aggregate));
    assert_int_equal(sum->agg.level, 1);
    assert_int_equal(sum->agg.bitmap, bitmap);
    assert_int_equal(sum->agg_flags, flags);
    assert_int_equal(value_of(s, sum), value);
    gw_pkt_release(&s->pool, sum);
}

/* It met nothing that it could take along: what comes later does not wait for it, and what was
 * there does not stay. */
static void resend__that_takes_nothing_lets_the_rest_follow_as_well(void **state)
{
    (void)state;
    for (uint32_t partials = 0; partials < 2; partials++) {
        bool keeps = partials == GW_AGG_PARTIALS_KEEP;
        struct stage s;
        stage_open(&s, 1, 3);
        install_by(&s, JOB, EPOCH, 1, 3, (enum gw_agg_partials)partials);
        struct gw_pkt *lower = resend(&s, 1, 7), *first = gradient(&s, 2, 20);
        struct gw_pkt *second = gradient(&s, 4, 300), *last = gradient(&s, 1, 1);
        first->agg.level = second->agg.level = last->agg.level = 1;
        expect_passed(&s, lower, 1, GW_AGG_RESEND, 7);
        if (keeps)
            expect_passed(&s, first, 2, GW_AGG_RESEND, 20);
        else
            assert_false(feed(&s, first));
        lower = resend(&s, 1, 7);
        lower->seq = second->seq = last->seq = lower->seq + 1;
        lower->index = second->index = last->index = lower->index + 1;
        lower->agg_flags |= GW_AGG_COLLISION | GW_AGG_ECN;
        second->agg_flags = GW_AGG_EVEN;
        assert_false(feed(&s, second));
        expect_passed(&s, lower, 1, GW_AGG_RESEND | GW_AGG_COLLISION | GW_AGG_ECN, 7);
        if (keeps) {
            expect_beside(&s, 4, GW_AGG_EVEN, 300);
            expect_passed(&s, last, 1, GW_AGG_RESEND, 1);
        } else {
            assert_null(gw_aggregate_take_beside(s.aggregate));
            assert_false(feed(&s, last));
        }
        assert_int_equal(gw_aggregate_taken(s.aggregate), keeps ? 0 : 2);
        assert_int_equal(gw_aggregate_stats(s.aggregate)->followed, keeps ? 2 : 0);
        stage_close(&s);
    }
}

/* Others of the job pass here with the same bitmap, or the packet is not what the sum is of. */
static void resend__from_elsewhere_leaves_the_sum_alone(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    struct gw_pkt *rack = resend(&s, 1, 5), *sum = resend(&s, 1, 5), *shorter = resend(&s, 2, 5);
    rack->agg.above[0] = 1;
    sum->agg.level = 1;
    shorter->agg.values--;
    expect_passed(&s, rack, 1, GW_AGG_RESEND, 5);
    expect_passed(&s, sum, 1, GW_AGG_RESEND, 5);
    expect_passed(&s, shorter, 2, GW_AGG_RESEND, 5);
    expect_passed(&s, gradient(&s, 2, 20), 1, 0, 21);
    stage_close(&s);
}

/* The resent one is the last: the sum goes on as if nothing had been. */
static void resend__that_completes_leaves_one_level_up(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 0, 2);
    assert_false(feed(&s, gradient(&s, 1, 1)));
    struct gw_pkt *pkt = resend(&s, 2, 20);
    assert_true(feed(&s, pkt));
    assert_int_equal(pkt->agg.level, 1);
    assert_int_equal(pkt->agg.bitmap, 1);
    assert_int_equal(pkt->agg_flags, GW_AGG_RESEND);
    assert_int_equal(value_of(&s, pkt), 21);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    gw_pkt_release(&s.pool, pkt);
    stage_close(&s);
}

/* A part of a rack, at a switch above racks: the rack's whole is in the sum, or it cannot be. */
static void resend__of_a_lower_level_takes_along_what_its_rack_is_in(void **state)
{
    (void)state;
    struct stage s;
    stage_open(&s, 1, 3);
    struct gw_pkt *rack = gradient(&s, 2, 20), *own = resend(&s, 5, 7);
    struct gw_pkt *again = gradient(&s, 2, 20);
    rack->agg.level = again->agg.level = 1;
    again->seq++;
    assert_false(feed(&s, rack));
    own->agg.above[0] = 1;
    assert_true(feed(&s, own));
    assert_int_equal(own->agg.level, 1);
    assert_int_equal(own->agg.bitmap, 2);
    assert_int_equal(value_of(&s, own), 20);
    assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
    gw_pkt_release(&s.pool, own);
    /* One of this level is added, and takes all along. */
    assert_false(feed(&s, again));
    struct gw_pkt *same = resend(&s, 1, 300);
    same->agg.level = 1;
    same->seq++;
    expect_passed(&s, same, 3, GW_AGG_RESEND, 320);
    assert_int_equal(gw_aggregate_stats(s.aggregate)->partials, 2);
    stage_close(&s);
}

/* Without a packet for the sum, or in a call with a bound, it stays, until the next one that can
 * takes it along. */
static void resend__leaves_a_sum_to_the_next_one(void **state)
{
    (void)state;
    for (uint8_t bound = 0; bound < 2; bound++) {
        struct stage s;
        stage_open(&s, 1, 3);
        struct gw_pkt *rack = gradient(&s, 2, 20), *lower = resend(&s, 1, 7);
        struct gw_pkt *last = gradient(&s, 1, 1), *others[PKTS];
        uint32_t count = 0;
        rack->agg.level = last->agg.level = 1;
        rack->agg.bound = bound;
        assert_false(feed(&s, rack));
        while (!bound && (others[count] = gw_pkt_claim(&s.pool)))
            count++;
        assert_true(feed(&s, lower));
        assert_null(gw_aggregate_take_beside(s.aggregate));
        assert_int_equal(gw_aggregate_stats(s.aggregate)->passed, 1);
        expect_passed(&s, last, 3, GW_AGG_RESEND, 21);
        gw_pkt_release(&s.pool, lower);
        while (count > 0)
            gw_pkt_release(&s.pool, others[--count]);
        stage_close(&s);
    }
}

/* As published: above the first level a resent packet frees the aggregator and takes nothing. */
static void resend__discards_a_partial_sum_above_the_first_level(void **state)
{
    (void)state;
    for (uint8_t level = 0; level < 2; level++) {
        struct stage s;
        stage_open(&s, level, 3);
        install_by(&s, JOB, EPOCH, level, 3, GW_AGG_PARTIALS_DISCARD);
        struct gw_pkt *first = gradient(&s, 1, 1), *again = resend(&s, 2, 20);
        first->agg.level = again->agg.level = level;
        assert_false(feed(&s, first));
        expect_passed(&s, again, level ? 2 : 3, GW_AGG_RESEND, level ? 20 : 21);
        assert_int_equal(gw_aggregate_taken(s.aggregate), 0);
        assert_int_equal(gw_aggregate_stats(s.aggregate)->discarded, level);
        stage_close(&s);
    }
}

/* A resend that says that the fragment was lost; it comes when `others` are in the sum. */
static void expect_said(uint8_t fan_in, uint32_t others, uint8_t parity, enum gw_ecn ecn,
                        bool is_said)
{
    struct stage s;
    stage_open(&s, 0, fan_in);
    for (uint32_t bit = 1; bit <= others; bit <<= 1)
        if (others & bit) {
            struct gw_pkt *pkt = gradient(&s, bit, 1);
            if (feed(&s, pkt))
                gw_pkt_release(&s.pool, pkt);
        }
    struct gw_pkt *again = resend(&s, 1, 1);
    again->q.ecn = ecn;
    again->agg_flags |= parity | GW_AGG_ECN;
    assert_true(feed(&s, again));
    assert_int_equal((again->agg_flags & GW_AGG_ECN) != 0, is_said);
    gw_pkt_release(&s.pool, again);
    stage_close(&s);
}

/* Its worker waits for others, unless the sum has left, and was lost behind this switch. */
static void resend__of_what_is_here_says_nothing_of_a_loss(void **state)
{
    (void)state;
    expect_said(3, 1, GW_AGG_EVEN, GW_ECN_ECT0, false);
    expect_said(3, 3, GW_AGG_ODD, GW_ECN_ECT0, false);
    expect_said(3, 2, GW_AGG_EVEN, GW_ECN_ECT0, true); /* others are here, and it is not */
    expect_said(3, 0, GW_AGG_EVEN, GW_ECN_ECT0, true);
    expect_said(2, 3, GW_AGG_EVEN, GW_ECN_ECT0, true); /* the sum has left */
    expect_said(3, 1, GW_AGG_EVEN, GW_ECN_CE, true);   /* it met congestion itself */
    expect_said(3, 1, 0, GW_ECN_ECT0, true);           /* as published */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resend__takes_the_partial_sum_along),
        cmocka_unit_test(resend__lets_the_rest_follow_at_once),
        cmocka_unit_test(resend__of_a_fragment_before_stops_no_rest),
        cmocka_unit_test(resend__marks_nothing_for_a_job_that_comes_again),
        cmocka_unit_test(resend__that_takes_nothing_lets_the_rest_follow_as_well),
        cmocka_unit_test(resend__from_elsewhere_leaves_the_sum_alone),
        cmocka_unit_test(resend__that_completes_leaves_one_level_up),
        cmocka_unit_test(resend__of_a_lower_level_takes_along_what_its_rack_is_in),
        cmocka_unit_test(resend__leaves_a_sum_to_the_next_one),
        cmocka_unit_test(resend__discards_a_partial_sum_above_the_first_level),
        cmocka_unit_test(resend__of_what_is_here_says_nothing_of_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
