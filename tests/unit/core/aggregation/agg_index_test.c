/* The map from window positions to aggregators. */
#include "support.h"

#include "core/aggregation/agg_index.h"

enum {
    POSITIONS = 64,
    JOB = 9,
};

static struct gw_agg_index make(uint32_t aggregators, enum gw_agg_indexing indexing, uint32_t share)
{
    struct gw_agg_index index;
    size_t size = gw_agg_index_size(POSITIONS, aggregators);
    void *memory = gw_test_take(size);
    gw_agg_index_init(&index, memory, POSITIONS, aggregators, indexing, JOB, share);
    return index;
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
    assert_int_equal(gw_agg_index_unused(&linear, 5), 5);
    assert_false(gw_agg_index_move(&linear, 5, 40));
    assert_int_equal(gw_agg_index_of(&linear, 5), 5);
    free(linear.used);
    free(own.used);
}

static void index_unused__finds_one_until_all_are_used(void **state)
{
    (void)state;
    struct gw_agg_index index = make(POSITIONS + 1, GW_AGG_INDEX_HASH, 0);
    struct gw_agg_index full = make(POSITIONS, GW_AGG_INDEX_HASH, 0);
    for (uint32_t seq = 0; seq < 1000; seq++) {
        uint16_t to = gw_agg_index_unused(&index, seq);
        for (uint32_t i = 0; i < POSITIONS; i++)
            assert_int_not_equal(gw_agg_index_of(&index, i), to);
        assert_true(gw_agg_index_move(&index, seq, to));
        assert_int_equal(gw_agg_index_of(&index, seq), to);
        assert_int_equal(gw_agg_index_unused(&full, seq), gw_agg_index_of(&full, seq));
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
    uint16_t first = gw_agg_index_unused(&a, 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_init__hashed_ones_are_distinct_while_they_can_be),
        cmocka_unit_test(index_init__linear_and_static_are_rows),
        cmocka_unit_test(index_unused__finds_one_until_all_are_used),
        cmocka_unit_test(index_move__agrees_whatever_the_order_of_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
