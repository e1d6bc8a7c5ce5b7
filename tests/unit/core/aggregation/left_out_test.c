/* Who was left out of which call: the bound holds at any time, per worker and call. */
#include "core/aggregation/left_out.h"

#include "support.h"

#include "core/aggregation/agg_bound.h"

enum {
    WORLD = 70, /* more than a word of a set */
    TENTH = GW_AGG_BOUND_ONE / 10,
};

static struct gw_left_out books;
static uint32_t memory[GW_LEFT_OUT_CALLS * WORLD];

static void start(void)
{
    assert_int_equal(gw_left_out_size(WORLD), sizeof(memory));
    memset(memory, 0xff, sizeof(memory));
    gw_left_out_init(&books, memory, WORLD);
}

static bool leave_out(uint32_t key, uint32_t seq, uint32_t known, uint8_t bound, uint32_t rank)
{
    struct gw_rank_set missing = {0};
    gw_rank_set_add(&missing, rank);
    const struct gw_left_out_item item = {
        .key = key, .seq = seq, .known = known, .bound = bound, .missing = &missing};
    return gw_left_out_add(&books, &item);
}

static void left_out__allows_the_bound_of_what_is_known(void **state)
{
    (void)state;
    start();
    assert_false(leave_out(1, 8, 9, TENTH, 3));
    assert_true(leave_out(1, 9, 10, TENTH, 3));
    assert_false(leave_out(1, 18, 19, TENTH, 3));
    assert_true(leave_out(1, 19, 20, TENTH, 3));
    assert_true(leave_out(1, 19, 20, TENTH, 69)); /* each worker has its own share */
}

static void left_out__all_of_them_or_none(void **state)
{
    (void)state;
    start();
    assert_true(leave_out(1, 9, 10, TENTH, 3));
    struct gw_rank_set missing = {0};
    gw_rank_set_add(&missing, 3);
    gw_rank_set_add(&missing, 69);
    struct gw_left_out_item item = {
        .key = 1, .seq = 10, .known = 11, .bound = TENTH, .missing = &missing};
    assert_false(gw_left_out_add(&books, &item));
    assert_int_equal(gw_left_out_most(&books, 1, &missing), 1);
    assert_true(leave_out(1, 11, 12, TENTH, 69)); /* it was not charged */
}

static void left_out__goes_by_the_strictest_bound_of_a_call(void **state)
{
    (void)state;
    start();
    assert_true(leave_out(1, 50, 100, 100, 3));
    assert_false(leave_out(1, 51, 100, 1, 3));
    assert_false(leave_out(1, 52, 100, 100, 3)); /* which holds from then on */
    assert_true(leave_out(1, 53, 400, 100, 3));
}

static void left_out__calls_are_open_until_all_before_is_done(void **state)
{
    (void)state;
    start();
    for (uint32_t call = 0; call < GW_LEFT_OUT_CALLS; call++)
        assert_true(leave_out(call, 100 * call + 10, 50, TENTH, 0));
    assert_false(leave_out(99, 2000, 50, TENTH, 0)); /* no page */
    gw_left_out_close(&books, 11, 0);                /* the call itself */
    gw_left_out_close(&books, 10, 1);                /* not behind its newest */
    assert_false(leave_out(99, 2000, 50, TENTH, 0));
    gw_left_out_close(&books, 101, 1);
    assert_true(leave_out(99, 2000, 50, TENTH, 0));
    gw_left_out_clear(&books);
    assert_true(leave_out(98, 2000, 10, TENTH, 0));
    assert_false(leave_out(98, 2001, 11, TENTH, 0));
}

static void agg_bound__is_rounded_down(void **state)
{
    (void)state;
    assert_int_equal(gw_agg_bound_of(0), 0);
    assert_int_equal(gw_agg_bound_of(-1), 0);
    assert_int_equal(gw_agg_bound_of(GW_Q16_ONE / 201), 0);
    assert_int_equal(gw_agg_bound_of((GW_Q16_ONE + 5) / 10), TENTH);
    assert_int_equal(gw_agg_bound_of(GW_Q16_ONE), GW_AGG_BOUND_ONE);
    assert_int_equal(gw_agg_bound_of(2 * GW_Q16_ONE), GW_AGG_BOUND_ONE);
    for (gw_q16 bound = 0; bound <= GW_Q16_ONE; bound += 7)
        assert_true((gw_q16)gw_agg_bound_of(bound) * GW_Q16_ONE <= bound * GW_AGG_BOUND_ONE);
}

static void agg_bound__a_sum_has_more_than_half_of_the_workers(void **state)
{
    (void)state;
    assert_true(gw_agg_may_lack(0, 1));
    assert_false(gw_agg_may_lack(1, 2));
    assert_true(gw_agg_may_lack(1, 3));
    assert_false(gw_agg_may_lack(4, 8));
    assert_true(gw_agg_may_lack(3, 8));
    assert_false(gw_agg_may_lack(UINT16_MAX, 8));
}

static void agg_bound__a_complete_result_says_nothing(void **state)
{
    (void)state;
    assert_int_equal(gw_agg_result_word(0, true), 0);
    for (uint32_t lacks = 1; lacks < GW_WORLD_MAX; lacks++) {
        uint32_t word = gw_agg_result_word(lacks, lacks % 2) | UINT16_MAX;
        assert_int_equal(gw_agg_result_lacks(word), lacks);
        assert_int_equal(gw_agg_result_is_odd(word), lacks % 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_out__allows_the_bound_of_what_is_known),
        cmocka_unit_test(left_out__all_of_them_or_none),
        cmocka_unit_test(left_out__goes_by_the_strictest_bound_of_a_call),
        cmocka_unit_test(left_out__calls_are_open_until_all_before_is_done),
        cmocka_unit_test(agg_bound__is_rounded_down),
        cmocka_unit_test(agg_bound__a_sum_has_more_than_half_of_the_workers),
        cmocka_unit_test(agg_bound__a_complete_result_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
