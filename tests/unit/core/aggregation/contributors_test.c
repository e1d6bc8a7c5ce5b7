/* Whose values a packet carries, and who is asked for what is missing. */
#include "support.h"

#include "core/aggregation/contributors.h"

enum {
    WORLD = 9,
    LEVELS = 3,
};

/*
 * Two racks of two below pod 0, one rack of two below pod 1, a worker at pod 1 itself, and two at
 * the root.
 */
static const struct gw_place places[WORLD] = {
    {.level = 0, .bitmap = 1, .above = {0, 0}},
    {.level = 0, .bitmap = 2, .above = {0, 0}},
    {.level = 0, .bitmap = 1, .above = {1, 0}},
    {.level = 0, .bitmap = 2, .above = {1, 0}},
    {.level = 0, .bitmap = 1, .above = {0, 1}},
    {.level = 0, .bitmap = 2, .above = {0, 1}},
    {.level = 1, .above = {1, 1}},
    {.level = 2, .above = {0, 2}},
    {.level = 2, .above = {0, 3}},
};

struct bench {
    struct gw_contributors tree;
    void *memory;
};

static void bench_open(struct bench *b)
{
    b->memory = gw_test_take(gw_contributors_size(WORLD, LEVELS));
    gw_contributors_init(&b->tree, b->memory, WORLD, LEVELS);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        gw_contributors_enter(&b->tree, rank, &places[rank]);
}

static struct gw_rank_set set_of(uint32_t ranks)
{
    struct gw_rank_set set = {0};
    for (uint32_t rank = 0; rank < WORLD; rank++)
        if (ranks >> rank & 1)
            gw_rank_set_add(&set, rank);
    return set;
}

static void contributors__are_named_by_positions_below_a_switch(void **state)
{
    static const struct {
        uint8_t level;
        uint32_t bitmap;
        uint8_t above[2];
        uint32_t ranks; /* bit i: rank i; 0: no such place */
    } cases[] = {
        {0, 1, {0, 0}, 1},   {0, 3, {1, 0}, 12},   {0, 4, {1, 0}, 0},
        {0, 0, {1, 0}, 0},   {1, 1, {9, 0}, 3}, /* of its own level nothing but the bitmap counts */
        {1, 3, {0, 0}, 15},  {1, 1, {0, 1}, 48},   {1, 2, {0, 1}, 64},
        {1, 3, {0, 1}, 112}, {1, 4, {0, 1}, 0},    {1, 5, {0, 1}, 0}, /* one is enough */
        {1, 0, {0, 1}, 0},   {2, 1, {7, 7}, 15},   {2, 2, {0, 0}, 112},
        {2, 4, {0, 0}, 128}, {2, 13, {0, 0}, 399}, {3, 1, {0, 0}, 511},
    };
    (void)state;
    struct bench b;
    bench_open(&b);
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_pkt pkt = {.agg = {.level = cases[i].level,
                                     .bitmap = cases[i].bitmap,
                                     .above = {cases[i].above[0], cases[i].above[1]}}};
        struct gw_rank_set set, expected = set_of(cases[i].ranks);
        const struct gw_rank_set *found = gw_contributors_of(&b.tree, &pkt, &set);
        assert_int_equal(found != NULL, cases[i].ranks != 0);
        assert_true(!found || gw_rank_set_equals(found, &expected));
        assert_int_equal(found == &b.tree.everybody, found && cases[i].level == 3);
    }
    free(b.memory);
}

static bool is_same_switch(const struct gw_place *a, const struct gw_place *b)
{
    return a->level == b->level && (a->level > 0 || a->above[0] == b->above[0]) &&
           (a->level > 1 || a->above[1] == b->above[1]);
}

/* Whoever has what: from every switch that has missing workers below it one of them is asked. */
static void contributors_missing__asks_one_below_every_switch(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (uint32_t ranks = 0; ranks < 1u << WORLD; ranks++) {
        struct gw_rank_set set = set_of(ranks);
        uint32_t positions = gw_contributors_missing(&b.tree, &set, NULL), firsts = 0;
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            bool is_first = !(ranks >> rank & 1);
            for (uint32_t other = 0; other < rank; other++)
                is_first &= ranks >> other & 1 || !is_same_switch(&places[rank], &places[other]);
            if (is_first)
                firsts |= gw_place_bit(&places[rank]);
        }
        assert_int_equal(positions, firsts);
    }
    free(b.memory);
}

/* Of 40 ranks, in two racks of 20, those beyond the 32nd are told apart as those before. */
static void contributors__tells_many_ranks_apart(void **state)
{
    enum {
        MANY = 40,
        RACK = MANY / 2,
    };
    (void)state;
    struct gw_contributors tree;
    void *memory = gw_test_take(gw_contributors_size(MANY, 2));
    gw_contributors_init(&tree, memory, MANY, 2);
    for (uint32_t rank = 0; rank < MANY; rank++)
        gw_contributors_enter(&tree, rank,
                              &(struct gw_place){.level = 0,
                                                 .bitmap = UINT32_C(1) << rank % RACK,
                                                 .above = {(uint8_t)(rank / RACK), 0}});
    struct gw_rank_set all = {0};
    for (uint32_t rank = 0; rank < MANY; rank++) {
        const struct gw_pkt pkt = {
            .agg = {.bitmap = UINT32_C(1) << rank % RACK, .above = {(uint8_t)(rank / RACK), 0}}};
        struct gw_rank_set set, missing;
        assert_ptr_equal(gw_contributors_of(&tree, &pkt, &set), &set);
        assert_int_equal(gw_rank_set_next(&set, 0), rank);
        assert_int_equal(gw_rank_set_count(&set), 1);
        assert_false(gw_rank_set_overlaps(&set, &all));
        missing = tree.everybody;
        gw_rank_set_remove(&missing, &all);
        assert_int_equal(gw_rank_set_count(&missing), MANY - rank);
        gw_rank_set_join(&missing, &all);
        assert_true(gw_rank_set_equals(&missing, &tree.everybody));
        gw_rank_set_join(&all, &set);
        assert_int_equal(gw_rank_set_count(&all), rank + 1);
        /* One below each switch that lacks somebody is asked. */
        assert_int_equal(gw_contributors_missing(&tree, &all, NULL),
                         rank < RACK - 1   ? UINT32_C(1) << (rank + 1) | 1
                         : rank < MANY - 1 ? UINT32_C(1) << (rank + 1) % RACK
                                           : 0);
    }
    assert_true(gw_rank_set_equals(&all, &tree.everybody));
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contributors__are_named_by_positions_below_a_switch),
        cmocka_unit_test(contributors__tells_many_ranks_apart),
        cmocka_unit_test(contributors_missing__asks_one_below_every_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
