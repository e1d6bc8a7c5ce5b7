/* Places of tenants: whatever the others ask for, and in whatever order, each finds his part. */
#include "support.h"

#include "base/prng.h"
#include "core/job.h"
#include "core/tenants.h"

enum {
    PLACES_MAX = 64,
    ROUNDS = 2000,
};

static void gw_tenants_of__finds_the_key_of_a_job(void **state)
{
    static const struct gw_tenants tenants = {.keys = {7, 0, 4095}, .count = 3};
    (void)state;
    assert_int_equal(gw_tenants_of(&tenants, gw_job_number(7, 1)), 0);
    assert_int_equal(gw_tenants_of(&tenants, gw_job_number(0, 12345)), 1);
    assert_int_equal(gw_tenants_of(&tenants, gw_job_number(4095, 1)), 2);
    assert_int_equal(gw_tenants_of(&tenants, gw_job_number(8, 1)), 3);
    assert_int_equal(gw_tenants_of(&(struct gw_tenants){.count = 0}, 1), 0);
}

/* Takes a place if there is one. */
static bool take(uint32_t *held, uint32_t count, uint32_t who, uint32_t places)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i <= count; i++)
        used += held[i];
    assert_true(used <= places);
    if (!gw_tenants_have_place(held, count, who, places, places - used))
        return false;
    held[who]++;
    return true;
}

static void gw_tenants_have_place__keeps_the_part_of_each(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct gw_prng prng = gw_prng_derive(1, round);
        uint32_t held[GW_TENANTS_MAX + 1] = {0};
        uint32_t count = 1 + (uint32_t)gw_prng_below(&prng, GW_TENANTS_MAX);
        uint32_t places = 1 + (uint32_t)gw_prng_below(&prng, PLACES_MAX);
        uint32_t polite = (uint32_t)gw_prng_below(&prng, count);
        for (uint32_t i = 0; i < 4 * places; i++) { /* the last one is no tenant */
            uint32_t who = (uint32_t)gw_prng_below(&prng, count + 1);
            if (who != polite && !take(held, count, who, places) && held[who])
                held[who] -= gw_prng_below(&prng, 2) == 0;
        }
        for (uint32_t i = 0; i < places / 2 / count; i++)
            assert_true(take(held, count, polite, places));
    }
}

/* Nothing is kept for who has his part; and alone one has all. */
static void gw_tenants_have_place__wastes_none(void **state)
{
    (void)state;
    for (uint32_t count = 0; count <= 2; count++) {
        uint32_t held[GW_TENANTS_MAX + 1] = {0}, taken = 0;
        while (take(held, count, 0, 8))
            taken++;
        assert_int_equal(taken, count < 2 ? 8 : 6);
        if (count == 2)
            assert_true(take(held, count, 1, 8) && take(held, count, 1, 8));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gw_tenants_of__finds_the_key_of_a_job),
        cmocka_unit_test(gw_tenants_have_place__keeps_the_part_of_each),
        cmocka_unit_test(gw_tenants_have_place__wastes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
