/* The map from window positions to aggregators. */
#include "support.h"

#include "core/aggregation/agg_index.h"

enum {
    POSITIONS = 64,
    JOB = 9,
};

static struct gw_agg_index make_of(const struct gw_agg_index_cfg *cfg)
{
    struct gw_agg_index index;
    void *memory = gw_test_take(gw_agg_index_size(cfg));
    gw_agg_index_init(&index, memory, cfg);
    return index;
}

static struct gw_agg_index make(uint32_t aggregators, enum gw_agg_indexing indexing, uint32_t share)
{
    return make_of(&(struct gw_agg_index_cfg){.job = JOB,
                                              .window = POSITIONS,
                                              .aggregators = aggregators,
                                              .indexing = indexing,
                                              .share = share});
}

static void index_init__hashed_ones_are_distinct_while_they_can_be(void **state)
{
    (void)state;
    for (uint32_t aggregators = 1; aggregators <= 3 * POSITIONS; aggregators++) {
        struct gw_agg_index index = make(aggregators, GW_AGG_INDEX_HASH, 0);
        uint32_t count[3 * POSITIONS] = {0}, distinct = 0;
        for (uint32_t i = 0; i < POSITIONS; i++) {
            assert_true(gw_agg_index_of(&index, i) < aggregators);
            assert_int_equal(gw_agg_index_of(&index, i), gw_agg_index_of(&index, i + POSITIONS));
            distinct += count[gw_agg_index_of(&index, i)]++ == 0;
        }
        assert_int_equal(distinct, aggregators < POSITIONS ? aggregators : POSITIONS);
        free(index.used);
    }
}

static void index_init__linear_and_static_are_rows(void **state)
{
    (void)state;
    struct gw_agg_index linear = make(50, GW_AGG_INDEX_LINEAR, 3);
    struct gw_agg_index own = make(4 * POSITIONS, GW_AGG_INDEX_STATIC, 3);
    for (uint32_t i = 0; i < POSITIONS; i++) {
        assert_int_equal(gw_agg_index_of(&linear, i), i % 50);
        assert_int_equal(gw_agg_index_of(&own, i), 3 * POSITIONS + i);
    }
    assert_int_equal(gw_agg_index_next(&linear, 5), 5);
    assert_false(gw_agg_index_move(&linear, 5, 40));
    assert_int_equal(gw_agg_index_of(&linear, 5), 5);
    free(linear.used);
    free(own.used);
}

static void index_next__finds_one_until_all_are_used(void **state)
{
    (void)state;
    struct gw_agg_index index = make(POSITIONS + 1, GW_AGG_INDEX_HASH, 0);
    struct gw_agg_index full = make(POSITIONS, GW_AGG_INDEX_HASH, 0);
    for (uint32_t seq = 0; seq < 1000; seq++) {
        uint16_t to = gw_agg_index_next(&index, seq);
        for (uint32_t i = 0; i < POSITIONS; i++)
            assert_int_not_equal(gw_agg_index_of(&index, i), to);
        assert_true(gw_agg_index_move(&index, seq, to));
        assert_int_equal(gw_agg_index_of(&index, seq), to);
        assert_int_equal(gw_agg_index_next(&full, seq), gw_agg_index_of(&full, seq));
    }
    assert_false(gw_agg_index_move(&index, 0, POSITIONS + 1)); /* there is none */
    free(index.used);
    free(full.used);
}

/* News of two positions that change places by way of a third index, in either order. */
static void index_move__agrees_whatever_the_order_of_positions(void **state)
{
    (void)state;
    struct gw_agg_index a = make(POSITIONS + 1, GW_AGG_INDEX_HASH, 0);
    struct gw_agg_index b = make(POSITIONS + 1, GW_AGG_INDEX_HASH, 0);
    uint16_t first = gw_agg_index_next(&a, 1);
    uint16_t second = gw_agg_index_of(&a, 1); /* free once position 1 has moved */
    assert_true(gw_agg_index_move(&a, 1, first));
    assert_true(gw_agg_index_move(&a, 2, second));
    assert_true(gw_agg_index_move(&b, 2, second));
    assert_true(gw_agg_index_move(&b, 1, first));
    for (uint32_t i = 0; i < POSITIONS; i++)
        assert_int_equal(gw_agg_index_of(&a, i), gw_agg_index_of(&b, i));
    free(a.used);
    free(b.used);
}

/* ATP figure 13a: a third of 1980 aggregators is 660, and the window of a job all of them. */
static void index_static__is_exactly_the_share(void **state)
{
    (void)state;
    enum { SHARE = 660 };
    for (uint32_t share = 0; share < 3; share++) {
        struct gw_agg_index index =
            make_of(&(struct gw_agg_index_cfg){.window = SHARE,
                                               .aggregators = 3 * SHARE,
                                               .indexing = GW_AGG_INDEX_STATIC,
                                               .share = share});
        assert_int_equal(gw_agg_span(SHARE, GW_AGG_INDEX_STATIC), SHARE);
        for (uint32_t begin = 0; begin < 5 * SHARE; begin += 331) { /* any window of them */
            bool used[3 * SHARE] = {false};
            for (uint32_t i = 0; i < SHARE; i++) {
                uint32_t at = gw_agg_index_of(&index, begin + i);
                assert_in_range(at, share * SHARE, (share + 1) * SHARE - 1);
                assert_false(used[at]);
                used[at] = true;
            }
        }
        free(index.used);
    }
}

/* A window may be of any size; positions are a power of two, so that numbers may wrap. */
static void index_positions__have_room_for_the_window(void **state)
{
    (void)state;
    assert_int_equal(gw_agg_positions(1), 1);
    assert_int_equal(gw_agg_positions(2), 2);
    assert_int_equal(gw_agg_positions(800), 1024);
    assert_int_equal(gw_agg_positions(1024), 1024);
    assert_int_equal(gw_agg_positions(GW_AGG_WINDOW_MAX), GW_AGG_WINDOW_MAX);
    struct gw_agg_index index = make_of(
        &(struct gw_agg_index_cfg){.job = JOB, .window = POSITIONS - 20, .aggregators = 1000});
    for (uint32_t seq = 0; seq < POSITIONS; seq++)
        assert_int_equal(gw_agg_index_of(&index, seq - POSITIONS), gw_agg_index_of(&index, seq));
    free(index.used);
}

/* As published: hashed from the whole number, over all aggregators; what moves is the index. */
static void index_sequence__moves_everything_that_has_the_index(void **state)
{
    (void)state;
    enum { AGGREGATORS = 100, FRAGMENTS = 5000 };
    struct gw_agg_index index = make_of(&(struct gw_agg_index_cfg){.job = JOB,
                                                                   .window = POSITIONS,
                                                                   .aggregators = AGGREGATORS,
                                                                   .hashing = GW_AGG_HASH_SEQUENCE,
                                                                   .remap = GW_AGG_REMAP_REHASH});
    uint16_t before[FRAGMENTS];
    uint32_t count[AGGREGATORS] = {0}, moved = 0;
    for (uint32_t seq = 0; seq < FRAGMENTS; seq++)
        count[before[seq] = gw_agg_index_of(&index, seq)]++;
    for (uint32_t i = 0; i < AGGREGATORS; i++)
        assert_in_range(count[i], FRAGMENTS / AGGREGATORS / 3, 3 * FRAGMENTS / AGGREGATORS);
    uint16_t to = gw_agg_index_next(&index, 7);
    assert_true(gw_agg_index_move(&index, 7, to));
    for (uint32_t seq = 0; seq < FRAGMENTS; seq++) {
        bool is_there = before[seq] == before[7];
        assert_int_equal(gw_agg_index_of(&index, seq), is_there ? to : before[seq]);
        moved += is_there;
    }
    assert_int_equal(moved, count[before[7]]);
    free(index.used);
}

/* HASH(index): depends on nothing but the index. */
static void index_rehash__depends_on_the_index_only(void **state)
{
    (void)state;
    struct gw_agg_index_cfg cfg = {
        .job = JOB, .window = POSITIONS, .aggregators = 1000, .remap = GW_AGG_REMAP_REHASH};
    struct gw_agg_index a = make_of(&cfg);
    cfg.job++;
    struct gw_agg_index b = make_of(&cfg);
    for (uint32_t seq = 0; seq < POSITIONS; seq++) {
        gw_agg_index_move(&b, seq, gw_agg_index_of(&a, seq));
        assert_int_equal(gw_agg_index_next(&b, seq), gw_agg_index_next(&a, seq));
        assert_int_not_equal(gw_agg_index_next(&a, seq), gw_agg_index_of(&a, seq));
    }
    free(a.used);
    free(b.used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_init__hashed_ones_are_distinct_while_they_can_be),
        cmocka_unit_test(index_init__linear_and_static_are_rows),
        cmocka_unit_test(index_next__finds_one_until_all_are_used),
        cmocka_unit_test(index_move__agrees_whatever_the_order_of_positions),
        cmocka_unit_test(index_static__is_exactly_the_share),
        cmocka_unit_test(index_positions__have_room_for_the_window),
        cmocka_unit_test(index_sequence__moves_everything_that_has_the_index),
        cmocka_unit_test(index_rehash__depends_on_the_index_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
