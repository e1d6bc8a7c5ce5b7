/* The order of a blast: each place has one turn, and each turn is as likely. */
#include "support.h"

#include "core/host/blast_order.h"

enum {
    DRAWS = 4000,
};

static void blast_order__gives_each_place_one_turn(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(1, 0);
    for (uint32_t total = 1; total <= 1200; total += total < 70 ? 1 : 31) {
        static bool seen[1200];
        memset(seen, 0, sizeof(seen));
        struct gw_blast_order order = gw_blast_order_draw(total, &prng);
        for (uint32_t turn = 0; turn < total; turn++) {
            uint32_t place = gw_blast_order_place(&order, turn);
            assert_true(place < total && !seen[place]);
            seen[place] = true;
            assert_int_equal(gw_blast_order_turn(&order, place), turn);
            assert_int_equal(gw_blast_order_next(&order, place),
                             gw_blast_order_place(&order, turn + 1));
        }
    }
    /* And of as many as there can be. */
    struct gw_blast_order large = gw_blast_order_draw(UINT32_MAX - 1, &prng);
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint32_t place = gw_prng_below(&prng, UINT32_MAX - 1);
        uint32_t turn = gw_blast_order_turn(&large, place);
        assert_int_equal(gw_blast_order_place(&large, turn), place);
        assert_int_equal(gw_blast_order_place(&large, turn + 1),
                         gw_blast_order_next(&large, place));
    }
}

/* Each of ten places is last about as often as the others. */
static void blast_order__favours_nobody(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(2, 0);
    uint32_t last[10] = {0};
    for (uint32_t i = 0; i < DRAWS; i++) {
        struct gw_blast_order order = gw_blast_order_draw(10, &prng);
        last[gw_blast_order_place(&order, 9)]++;
    }
    for (uint32_t place = 0; place < 10; place++) /* five standard deviations */
        assert_in_range(last[place], DRAWS / 10 - 95, DRAWS / 10 + 95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blast_order__gives_each_place_one_turn),
        cmocka_unit_test(blast_order__favours_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
