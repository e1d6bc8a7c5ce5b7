/* The pacer's bound over every stretch of time, with owners that come in time and late. */
#include "support.h"

#include "base/pacer.h"
#include "base/prng.h"

enum {
    PIECES = 400,
    SEEDS = 20,
    LATE_MS_MAX = 5, /* more than is made good for */
};

/* Times of a test lie around the wrap. */
static const gw_time begin = 0 - 300 * GW_MS;

/* When each piece left, and how long it takes at the pace. */
struct departure {
    gw_time at, takes;
};

/* A piece leaves, as late after the pacer would have let it as the owner comes. */
static struct departure leave(struct gw_pacer *pacer, gw_time *now, gw_time late, gw_time takes)
{
    if (gw_time_before(*now, pacer->free_at)) {
        assert_false(gw_pacer_is_free(pacer, pacer->free_at - 1));
        *now = pacer->free_at;
    }
    *now += late;
    gw_pacer_catch_up(pacer, *now);
    assert_true(gw_pacer_is_free(pacer, *now));
    gw_pacer_take(pacer, takes);
    return (struct departure){.at = *now, .takes = takes};
}

/* What leaves from piece i on and before piece j takes no longer than there is between them. */
static void check_every_stretch(const struct departure *departures, gw_time allowance)
{
    for (uint32_t i = 0; i < PIECES; i++) {
        gw_time takes = 0;
        for (uint32_t j = i + 1; j < PIECES; j++) {
            takes += departures[j - 1].takes;
            assert_true(takes <= departures[j].at - departures[i].at + allowance);
        }
    }
}

static void pacer_take__keeps_the_pace_of_an_owner_in_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        struct gw_prng prng = {.state = seed};
        struct gw_pacer pacer = {.free_at = begin};
        struct departure departures[PIECES];
        gw_time now = begin;
        for (uint32_t i = 0; i < PIECES; i++)
            departures[i] = leave(&pacer, &now, 0, gw_prng_below(&prng, 1000) * GW_US);
        check_every_stretch(departures, 0);
    }
}

static void pacer_catch_up__makes_good_for_little(void **state)
{
    (void)state;
    bool more_than_pace = false;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        struct gw_prng prng = {.state = seed};
        struct gw_pacer pacer = {.free_at = begin};
        struct departure departures[PIECES];
        gw_time now = begin;
        for (uint32_t i = 0; i < PIECES; i++) {
            gw_time late = gw_prng_below(&prng, 4) ? 0 : gw_prng_below(&prng, LATE_MS_MAX) * GW_MS;
            departures[i] = leave(&pacer, &now, late, gw_prng_below(&prng, 1000) * GW_US);
            more_than_pace |= i > 0 && departures[i].at == departures[i - 1].at;
        }
        check_every_stretch(departures, GW_PACER_LATE_MAX);
    }
    assert_true(more_than_pace);
}

/* An owner that is late by no more than the limit has lost nothing. */
static void pacer_catch_up__loses_nothing_up_to_the_limit(void **state)
{
    (void)state;
    struct gw_pacer pacer = {.free_at = begin};
    gw_pacer_catch_up(&pacer, begin + GW_PACER_LATE_MAX);
    assert_int_equal(pacer.free_at, begin);
    gw_pacer_catch_up(&pacer, begin + GW_PACER_LATE_MAX + 1);
    assert_int_equal(pacer.free_at, begin + 1);
    pacer.free_at = begin + GW_S;
    gw_pacer_catch_up(&pacer, begin);
    assert_int_equal(pacer.free_at, begin + GW_S);
}

/* What did not wait earns nothing, and what waits does not push the next departure ahead. */
static void pacer_wait__counts_from_when_something_waits(void **state)
{
    (void)state;
    struct gw_pacer pacer = {.free_at = begin};
    gw_pacer_wait(&pacer, begin + GW_MS);
    assert_int_equal(pacer.free_at, begin + GW_MS);
    gw_pacer_take(&pacer, 3 * GW_MS);
    gw_pacer_wait(&pacer, begin + 2 * GW_MS);
    assert_int_equal(pacer.free_at, begin + 4 * GW_MS);
}

/* The sum that would read as "never" does not. */
static void pacer_take__is_never_never(void **state)
{
    (void)state;
    struct gw_pacer pacer = {.free_at = GW_TIME_NEVER - GW_US};
    gw_pacer_take(&pacer, GW_US);
    assert_int_equal(pacer.free_at, 0);
    assert_false(gw_pacer_is_free(&pacer, GW_TIME_NEVER - 1));
    assert_true(gw_pacer_is_free(&pacer, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pacer_take__keeps_the_pace_of_an_owner_in_time),
        cmocka_unit_test(pacer_catch_up__makes_good_for_little),
        cmocka_unit_test(pacer_catch_up__loses_nothing_up_to_the_limit),
        cmocka_unit_test(pacer_wait__counts_from_when_something_waits),
        cmocka_unit_test(pacer_take__is_never_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
