/* What is taken for a WELCOME, at both bounds of every term. */
#include "support.h"

#include "core/control/welcome.h"

static const struct gw_welcome_limits narrow = {.world = 4, .values_max = 16, .window_max = 8};
static const struct gw_welcome_limits wide = {0};

static const struct gw_job_terms usual = {
    .rank = 1, .world = 4, .values = 16, .aggregators = 15, .window = 7};

static enum gw_welcome_verdict verdict_of(const struct gw_job_terms *terms,
                                          const struct gw_welcome_limits *limits)
{
    struct gw_pkt pkt = {.epoch = 3, .seq = 70, .index = 5, .scale = 20};
    struct gw_welcome welcome;
    gw_job_terms_pack(terms, pkt.job.word);
    return gw_welcome_read(&welcome, &pkt, limits, 1);
}

static void welcome_read__takes_what_was_said(void **state)
{
    (void)state;
    struct gw_pkt pkt = {.epoch = 3, .seq = 70, .index = 5, .scale = (uint8_t)-9};
    struct gw_welcome welcome;
    gw_job_terms_pack(&usual, pkt.job.word);
    assert_int_equal(gw_welcome_read(&welcome, &pkt, &narrow, 1), GW_WELCOME_POSSIBLE);
    assert_int_equal(welcome.epoch, 3);
    assert_int_equal(welcome.first_seq, 70);
    assert_int_equal(welcome.share, 5);
    assert_int_equal(welcome.scale_exponent, -9);
    assert_int_equal(welcome.terms.window, 7);
    assert_int_equal(gw_welcome_read(&welcome, &pkt, &narrow, GW_RANK_NONE), GW_WELCOME_POSSIBLE);
    assert_int_equal(gw_welcome_read(&welcome, &pkt, &narrow, 2), GW_WELCOME_MALFORMED);
    pkt.epoch = 0;
    assert_int_equal(gw_welcome_read(&welcome, &pkt, &narrow, 1), GW_WELCOME_MALFORMED);
}

static void welcome_read__scales_that_exist(void **state)
{
    (void)state;
    struct gw_pkt pkt = {.epoch = 3};
    struct gw_welcome welcome;
    gw_job_terms_pack(&usual, pkt.job.word);
    for (int exponent = INT8_MIN; exponent <= INT8_MAX; exponent++) {
        pkt.scale = (uint8_t)exponent;
        assert_int_equal(gw_welcome_read(&welcome, &pkt, &wide, 1),
                         exponent >= -110 && exponent <= 111 ? GW_WELCOME_POSSIBLE
                                                             : GW_WELCOME_MALFORMED);
    }
}

static void welcome_read__both_bounds_of_terms(void **state)
{
    (void)state;
    const struct {
        struct gw_job_terms terms;
        enum gw_welcome_verdict in_narrow, in_wide;
    } cases[] = {
        {{.rank = 1, .world = 4, .values = 1}, GW_WELCOME_POSSIBLE, GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 4, .values = 0}, GW_WELCOME_MALFORMED, GW_WELCOME_MALFORMED},
        {{.rank = 1, .world = 4, .values = 17}, GW_WELCOME_BEYOND, GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 4, .values = UINT16_MAX}, GW_WELCOME_BEYOND, GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 4, .values = 1, .window = 8}, GW_WELCOME_BEYOND, GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 4, .values = 1, .window = UINT16_MAX},
         GW_WELCOME_BEYOND,
         GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 1, .values = 1}, GW_WELCOME_MALFORMED, GW_WELCOME_MALFORMED},
        {{.rank = 1, .world = 2, .values = 1}, GW_WELCOME_BEYOND, GW_WELCOME_POSSIBLE},
        {{.rank = 0, .world = 4, .values = 1}, GW_WELCOME_MALFORMED, GW_WELCOME_MALFORMED},
        {{.rank = 1, .world = 4, .values = 1, .level = 2},
         GW_WELCOME_POSSIBLE,
         GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 4, .values = 1, .level = 3},
         GW_WELCOME_MALFORMED,
         GW_WELCOME_MALFORMED},
        {{.rank = 1, .world = 4, .values = 1, .indexing = 2},
         GW_WELCOME_POSSIBLE,
         GW_WELCOME_POSSIBLE},
        {{.rank = 1, .world = 4, .values = 1, .indexing = 3},
         GW_WELCOME_MALFORMED,
         GW_WELCOME_MALFORMED},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        assert_int_equal(verdict_of(&cases[i].terms, &narrow), cases[i].in_narrow);
        assert_int_equal(verdict_of(&cases[i].terms, &wide), cases[i].in_wide);
    }
}

static void welcome_read__bits_that_mean_nothing(void **state)
{
    (void)state;
    struct gw_welcome welcome;
    for (uint32_t bit = 28; bit < 32; bit++) {
        struct gw_pkt pkt = {.epoch = 3};
        gw_job_terms_pack(&usual, pkt.job.word);
        pkt.job.word[2] |= UINT32_C(1) << bit;
        assert_int_equal(gw_welcome_read(&welcome, &pkt, &wide, 1), GW_WELCOME_MALFORMED);
    }
}

/* A worker stays what it is: a server with another configuration cannot go on with it. */
static void welcome_agrees__is_about_sums(void **state)
{
    (void)state;
    const struct gw_welcome made = {.epoch = 3, .scale_exponent = 20, .terms = usual};
    struct gw_welcome other = made;
    other.epoch = 4;
    other.terms.level = 1;
    other.terms.position = 2;
    other.terms.aggregators = 99;
    assert_true(gw_welcome_agrees(&made, &other));
    other.scale_exponent = 21;
    assert_false(gw_welcome_agrees(&made, &other));
    other = made;
    other.terms.values--;
    assert_false(gw_welcome_agrees(&made, &other));
    other = made;
    other.terms.window++;
    assert_false(gw_welcome_agrees(&made, &other));
    other = made;
    other.terms.world++;
    assert_false(gw_welcome_agrees(&made, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(welcome_read__takes_what_was_said),
        cmocka_unit_test(welcome_read__scales_that_exist),
        cmocka_unit_test(welcome_read__both_bounds_of_terms),
        cmocka_unit_test(welcome_read__bits_that_mean_nothing),
        cmocka_unit_test(welcome_agrees__is_about_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
